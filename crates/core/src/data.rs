//! Data to run on: given, or made where the device is.

use crate::buffer::{Buffer, BufferSpec, Buffers, Workload};
use crate::dtype::DType;
use crate::program::DeviceError;
use std::sync::Arc;

/// Elements after which noise repeats. Longer than what any cache line or tile sees, short enough to be made at once: what the
/// numbers are changes the power that a device draws, and with it its clock, but not where in a buffer they stand.
const PERIOD: usize = 1 << 16;

/// What a device is given to hold.
#[derive(Clone, Debug)]
pub enum Data {
    /// These very contents, for results.
    Given(Arc<Workload>),
    /// Uniform reals in [-1, 1), for times. Costs next to nothing to send or to make.
    Noise {
        /// The buffers.
        specs: Vec<BufferSpec>,
        /// The scalars.
        scalars: Vec<f64>,
        /// The same seed gives the same numbers.
        seed: u64,
    },
}

impl Data {
    /// The buffers.
    pub fn specs(&self) -> &[BufferSpec] {
        match self {
            Self::Given(work) => &work.specs,
            Self::Noise { specs, .. } => specs,
        }
    }

    /// The scalars.
    pub fn scalars(&self) -> &[f64] {
        match self {
            Self::Given(work) => &work.scalars,
            Self::Noise { scalars, .. } => scalars,
        }
    }

    /// Whether given contents are what their specification says.
    ///
    /// # Errors
    /// The first buffer that has another type or length, or their number.
    pub fn check(&self) -> Result<(), DeviceError> {
        let Self::Given(work) = self else { return Ok(()) };
        let refuse = |name: &str, message| Err(DeviceError::Argument { name: name.into(), message });
        if work.specs.len() != work.buffers.len() {
            return refuse("buffers", format!("{} are given, {} are specified", work.buffers.len(), work.specs.len()));
        }
        let unlike = |(s, b): &(&BufferSpec, &Buffer)| s.dtype != b.dtype() || s.len != b.len();
        match work.specs.iter().zip(&work.buffers).find(unlike) {
            Some((spec, buffer)) => refuse(spec.name, format!("{buffer:?} is no {} x {}", spec.len, spec.dtype)),
            None => Ok(()),
        }
    }

    /// The contents in host memory.
    ///
    /// # Errors
    /// As [`Data::check`] and [`Buffer::try_zeroed`].
    pub fn buffers(&self) -> Result<Buffers, DeviceError> {
        self.check()?;
        Ok(match self {
            Self::Given(work) => work.buffers.iter().map(Buffer::try_clone).collect::<Result<_, _>>()?,
            Self::Noise { specs, seed, .. } => {
                let long = |spec: &BufferSpec| repeated(&noise(spec.dtype, spec.len, *seed), spec);
                specs.iter().map(long).collect::<Result<_, _>>()?
            }
        })
    }
}

/// The first elements of a noisy buffer, as many as it has before it repeats: uniform in [-1, 1) in either part, rounded to the
/// type; of integers, those from -64 to 63.
pub fn noise(dtype: DType, len: usize, seed: u64) -> Buffer {
    let mut random = SplitMix(seed);
    let mut out = Buffer::zeroed(dtype, len.min(PERIOD));
    match dtype {
        DType::F32 => out.as_mut_slice::<f32>().fill_with(|| random.real() as f32),
        DType::F64 => out.as_mut_slice::<f64>().fill_with(|| random.real()),
        integer if integer.is_integer() => {
            (0..out.len()).for_each(|i| out.set_f64(i, (64.0 * random.real()).floor()));
        }
        _ => (0..out.len()).for_each(|i| {
            let value = (random.real(), random.real());
            // Every index is there.
            let _ = out.set(i, value);
        }),
    }
    out
}

fn repeated(first: &Buffer, spec: &BufferSpec) -> Result<Buffer, DeviceError> {
    let mut out = Buffer::try_zeroed(spec.dtype, spec.len)?;
    if !first.is_empty() {
        out.bytes_mut().chunks_mut(first.bytes().len()).for_each(|c| c.copy_from_slice(&first.bytes()[..c.len()]));
    }
    Ok(out)
}

/// `SplitMix64` (Steele, Lea, Flood 2014): enough for noise, which nobody draws conclusions from.
pub(crate) struct SplitMix(pub(crate) u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In [-1, 1), a multiple of 2^-23, so that it is the same number in binary32.
    pub(crate) fn real(&mut self) -> f64 {
        (self.next() >> 40) as f64 / f64::from(1 << 23) - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Role;

    fn noise_of(dtype: DType, len: usize, seed: u64) -> Buffer {
        let specs = vec![BufferSpec { name: "x", dtype, len, role: Role::In }];
        Data::Noise { specs, scalars: Vec::new(), seed }.buffers().unwrap().remove(0)
    }

    #[test]
    fn noise_repeats_after_a_period_and_by_its_seed() {
        let long = noise_of(DType::F64, PERIOD + 5, 1);
        let values = long.as_slice::<f64>();
        assert_eq!(values[..5], values[PERIOD..]);
        assert!(values.iter().all(|x| (-1.0..1.0).contains(x)));
        assert!(values.windows(2).take(100).all(|w| w[0] != w[1]));
        assert_eq!(noise_of(DType::F64, 100, 1).bytes(), &long.bytes()[..800]);
        assert_ne!(noise_of(DType::F64, 100, 2).bytes(), &long.bytes()[..800]);
        assert!(noise_of(DType::F32, 0, 1).is_empty());
    }

    #[test]
    fn noise_of_half_floats_is_finite() {
        assert!(noise_of(DType::F16, 1000, 3).as_slice::<u16>().iter().all(|x| x & 0x7c00 != 0x7c00));
    }

    #[test]
    fn contents_that_are_not_what_is_specified_are_refused() {
        let spec = |len| BufferSpec { name: "x", dtype: DType::F32, len, role: Role::In };
        let given = |specs: Vec<BufferSpec>| {
            let buffers = vec![Buffer::zeroed(DType::F32, 3)];
            Data::Given(Arc::new(Workload { specs, buffers, scalars: Vec::new() })).check()
        };
        assert_eq!(given(vec![spec(3)]), Ok(()));
        assert!(given(vec![spec(4)]).unwrap_err().to_string().contains("\"x\""));
        assert!(given(vec![spec(3), spec(3)]).unwrap_err().to_string().contains("2 are specified"));
    }
}
