//! The same products without generated code, for hosts that the generator has none for.

use super::blueprint::Blueprint;
use super::routine::Constants;
use std::ops::{Add, Mul};
use tilewright_ops::gemm::ScalarClass;

/// An element type, with its scalars as [`Constants`] holds them.
pub(super) trait Element: Copy + Default + Add<Output = Self> + Mul<Output = Self> {
    fn of_bits(bits: u64) -> Self;
}

impl Element for f32 {
    fn of_bits(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }
}

impl Element for f64 {
    fn of_bits(bits: u64) -> Self {
        Self::from_bits(bits)
    }
}

/// Computes one product.
///
/// # Safety
/// The operands must be readable and C writable over the extents of the plan's input, and `T` its element type.
pub(super) unsafe fn product<T: Element>(b: &Blueprint, v: *const u8, s: *const u8, c: *mut u8, constants: &Constants) {
    let (alpha, beta) = (T::of_bits(constants.alpha), T::of_bits(constants.beta));
    for j in 0..b.s.extent as i64 {
        for i in 0..b.v.extent as i64 {
            let mut sum = T::default();
            for step in 0..b.k as i64 {
                let v = v.wrapping_offset((i * b.v_along + step * b.v_step) as isize).cast::<T>();
                let s = s.wrapping_offset((j * b.s_along + step * b.s_step) as isize).cast::<T>();
                // SAFETY: the caller's contract: both are within the operands.
                sum = sum + unsafe { v.read() * s.read() };
            }
            let product = if b.input.alpha == ScalarClass::Other { alpha * sum } else { sum };
            let at = c.wrapping_offset((i * b.c_v + j * b.c_s) as isize).cast::<T>();
            // SAFETY: the caller's contract; C is read only if beta is not zero.
            unsafe {
                at.write(match b.input.beta {
                    ScalarClass::Zero => product,
                    ScalarClass::One => at.read() + product,
                    ScalarClass::Other => beta * at.read() + product,
                });
            }
        }
    }
}
