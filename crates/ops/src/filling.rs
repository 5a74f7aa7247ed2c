//! What workloads are filled with.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use tilewright_core::buffer::{Buffer, Filling};
use tilewright_core::dtype::DType;

/// Largest absolute value of [`Filling::Exact`] data.
const EXACT_MAX: i32 = 4;

/// Sets every element. Typed once and not per element: large inputs have tens of millions of them.
pub(crate) fn fill(buffer: &mut Buffer, mut value: impl FnMut(usize) -> f64) {
    match buffer.dtype() {
        DType::F32 => buffer.as_mut_slice::<f32>().iter_mut().enumerate().for_each(|(i, x)| *x = value(i) as f32),
        DType::F64 => buffer.as_mut_slice::<f64>().iter_mut().enumerate().for_each(|(i, x)| *x = value(i)),
        _ => (0..buffer.len()).for_each(|i| buffer.set_f64(i, value(i))),
    }
}

/// One number.
pub(crate) fn draw(rng: &mut ChaCha8Rng, filling: Filling, dtype: DType) -> f64 {
    match filling {
        Filling::Real => real(rng, dtype),
        Filling::Exact => f64::from(rng.random_range(-EXACT_MAX..=EXACT_MAX)),
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
        DType::F64 => rng.random_range(-1.0..1.0),
        _ => f64::from(rng.random_range(-1f32..1.0)),
    }
}
