//! Sums that are not C as they are: of an edge, with an alpha, or to be rounded.

use super::driver::Sums;
use tilewright_core::element::Bf16;
use tilewright_ops::gemm::ScalarClass;

/// A type of C, beside sums of a type.
pub(super) trait Written<S>: Copy {
    fn finished(sum: S, old: Option<Self>, alpha: f32, beta: f32) -> Self;
}

impl Written<f32> for f32 {
    fn finished(sum: f32, old: Option<f32>, alpha: f32, beta: f32) -> f32 {
        old.map_or(alpha * sum, |old| beta * old + alpha * sum)
    }
}

impl Written<f32> for Bf16 {
    fn finished(sum: f32, old: Option<Self>, alpha: f32, beta: f32) -> Self {
        Self::from_f32(f32::finished(sum, old.map(Self::to_f32), alpha, beta))
    }
}

/// Neither alpha nor beta multiplies integers.
impl Written<i32> for i32 {
    fn finished(sum: i32, old: Option<i32>, _: f32, _: f32) -> i32 {
        old.map_or(sum, |old| old.wrapping_add(sum))
    }
}

/// Writes a block of sums, `stride` of them from column to column, to C.
///
/// # Safety
/// The sums must be readable over the block, C writable over it, and read where beta is not zero.
pub(super) unsafe fn write<S: Copy, C: Written<S>>(sums: (*const S, usize), c: *mut C, to: &Sums) {
    let [alpha, beta] = to.factors;
    for j in 0..to.columns {
        let (from, column) = (sums.0.wrapping_add(j * sums.1), c.wrapping_add(j * to.ldc));
        // Two loops, in neither of which anything is decided: both are vectorised.
        // SAFETY: the caller's contract.
        unsafe {
            if to.beta == ScalarClass::Zero {
                (0..to.rows).for_each(|i| column.add(i).write(C::finished(*from.add(i), None, alpha, beta)));
            } else {
                (0..to.rows).for_each(|i| {
                    let at = column.add(i);
                    at.write(C::finished(*from.add(i), Some(at.read()), alpha, beta));
                });
            }
        }
    }
}
