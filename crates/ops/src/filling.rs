//! What workloads are filled with.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use tilewright_core::buffer::{Buffer, Filling};
use tilewright_core::dtype::DType;

/// Largest absolute value of [`Filling::Exact`] data.
const EXACT_MAX: i32 = 4;

/// Largest absolute value of other 32-bit integers: far enough from the end of their range that what is added to them stays in it.
const WIDE_MAX: i32 = 1 << 24;

/// Sets every component; those of an element are asked for one after the other, by its index. Typed once and not per element:
/// large inputs have tens of millions of them.
pub(crate) fn fill(buffer: &mut Buffer, mut value: impl FnMut(usize) -> f64) {
    match buffer.dtype() {
        DType::F32 => buffer.as_mut_slice::<f32>().iter_mut().enumerate().for_each(|(i, x)| *x = value(i) as f32),
        DType::F64 => buffer.as_mut_slice::<f64>().iter_mut().enumerate().for_each(|(i, x)| *x = value(i)),
        DType::C32 => {
            let components = buffer.as_mut_slice::<[f32; 2]>().as_flattened_mut();
            components.iter_mut().enumerate().for_each(|(i, x)| *x = value(i / 2) as f32);
        }
        DType::C64 => {
            let components = buffer.as_mut_slice::<[f64; 2]>().as_flattened_mut();
            components.iter_mut().enumerate().for_each(|(i, x)| *x = value(i / 2));
        }
        _ => (0..buffer.len()).for_each(|i| buffer.set_f64(i, value(i))),
    }
}

/// What stands where nothing may be read: NaN, or an integer that changes every sum that it gets into.
pub(crate) fn poison(dtype: DType) -> f64 {
    match dtype {
        DType::I8 => f64::from(0x55i8),
        DType::I32 => f64::from(0x5555_5555i32),
        _ => f64::NAN,
    }
}

/// One number. Of integers, the special ones are the ends of the range, and all are exact: small ones would hide sums that saturate.
pub(crate) fn draw(rng: &mut ChaCha8Rng, filling: Filling, dtype: DType) -> f64 {
    match filling {
        Filling::Real | Filling::Exact if dtype.is_integer() => integer(rng, dtype),
        Filling::Real => real(rng, dtype),
        Filling::Exact => f64::from(rng.random_range(-EXACT_MAX..=EXACT_MAX)),
        Filling::Special if dtype.is_integer() => match rng.random_range(0..4u32) {
            0 => range(dtype).0.into(),
            1 => range(dtype).1.into(),
            _ => integer(rng, dtype),
        },
        Filling::Special => match rng.random_range(0..200u32) {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => f64::NEG_INFINITY,
            _ => real(rng, dtype),
        },
    }
}

/// Uniform with all bits of the type's significand: binary32 would hide a kernel that narrows binary64, and sums of its products
/// would be exact there.
fn real(rng: &mut ChaCha8Rng, dtype: DType) -> f64 {
    match dtype {
        DType::F64 | DType::C64 => rng.random_range(-1.0..1.0),
        _ => f64::from(rng.random_range(-1f32..1.0)),
    }
}

fn integer(rng: &mut ChaCha8Rng, dtype: DType) -> f64 {
    let (least, most) = range(dtype);
    f64::from(rng.random_range(least..=most))
}

fn range(dtype: DType) -> (i32, i32) {
    match dtype {
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        _ => (-WIDE_MAX, WIDE_MAX),
    }
}
