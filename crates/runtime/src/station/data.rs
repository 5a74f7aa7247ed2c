//! Data to run on: given, or made where the device is.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use tilewright_core::buffer::{Buffer, BufferSpec, Workload};
use tilewright_core::dtype::DType;

/// Elements after which noise repeats. Longer than what any cache line or tile sees, short enough to be made at once: what the
/// numbers are changes the power that a device draws, and with it its clock, but not where in a buffer they stand.
pub(crate) const PERIOD: usize = 1 << 16;

/// What a station holds.
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

    /// The contents in host memory.
    pub fn workload(&self) -> Arc<Workload> {
        match self {
            Self::Given(work) => work.clone(),
            Self::Noise { specs, scalars, seed } => {
                let buffers = specs.iter().map(|spec| repeated(&noise(spec.dtype, spec.len, *seed), spec)).collect();
                Arc::new(Workload { specs: specs.clone(), buffers, scalars: scalars.clone() })
            }
        }
    }
}

/// The first elements of a noisy buffer, as many as it has before it repeats. Types without plain conversion hold small
/// numbers of their own.
pub fn noise(dtype: DType, len: usize, seed: u64) -> Buffer {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut out = Buffer::zeroed(dtype, len.min(PERIOD));
    match dtype {
        DType::F32 => out.as_mut_slice::<f32>().fill_with(|| rng.random_range(-1.0..1.0)),
        DType::F64 => out.as_mut_slice::<f64>().fill_with(|| rng.random_range(-1.0..1.0)),
        // Exponents below that of 1 in binary16 and bfloat16, and in either half of complex numbers: finite everywhere.
        _ => out.bytes_mut().fill_with(|| rng.random::<u8>() & 0x37),
    }
    out
}

fn repeated(first: &Buffer, spec: &BufferSpec) -> Buffer {
    let mut out = Buffer::zeroed(spec.dtype, spec.len);
    if !first.is_empty() {
        out.bytes_mut().chunks_mut(first.bytes().len()).for_each(|c| c.copy_from_slice(&first.bytes()[..c.len()]));
    }
    out
}
