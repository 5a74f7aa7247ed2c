//! Arrays that the compiler makes vectors of, and work that is compiled for a plan's vectors.

use super::finish::Real;
use crate::codegen::vector::{Vector, Width};
use crate::exec::pack::Packed;
use crate::scalar::Float;
use std::ops::{Add, Mul, Sub};
use tilewright_ops::conv::winograd::Linear;

/// A vector.
#[derive(Clone, Copy)]
pub(crate) struct Lanes<T, const L: usize>([T; L]);

/// An element type.
pub(crate) trait Element:
    Copy + Default + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + 'static
{
    fn of(x: f64) -> Self;
}

impl Element for f32 {
    #[inline(always)]
    fn of(x: f64) -> Self {
        x as f32
    }
}

impl Element for f64 {
    #[inline(always)]
    fn of(x: f64) -> Self {
        x
    }
}

impl<T: Element, const L: usize> Lanes<T, L> {
    #[inline(always)]
    pub(crate) fn zero() -> Self {
        Self([T::default(); L])
    }

    /// # Safety
    /// As many elements must be readable.
    #[inline(always)]
    pub(crate) unsafe fn read(from: *const T) -> Self {
        // SAFETY: the caller's contract; arrays of elements are aligned as elements are.
        Self(unsafe { from.cast::<[T; L]>().read() })
    }

    /// # Safety
    /// As many elements must be writable.
    #[inline(always)]
    pub(crate) unsafe fn write(self, to: *mut T) {
        // SAFETY: the caller's contract.
        unsafe { to.cast::<[T; L]>().write(self.0) }
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, lane: usize, value: T) {
        self.0[lane] = value;
    }

    #[inline(always)]
    pub(crate) fn map(self, f: impl Fn(T) -> T) -> Self {
        let mut out = self;
        out.0.iter_mut().for_each(|x| *x = f(*x));
        out
    }

    #[inline(always)]
    pub(crate) fn zip(self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        let mut out = self;
        for (x, y) in out.0.iter_mut().zip(other.0) {
            *x = f(*x, y);
        }
        out
    }
}

impl<T: Element, const L: usize> Linear for Lanes<T, L> {
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.zip(other, |x, y| x + y)
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        self.zip(other, |x, y| x - y)
    }

    #[inline(always)]
    fn times(self, by: f64) -> Self {
        let by = T::of(by);
        self.map(|x| x * by)
    }
}

/// An element type of what is computed with arrays.
pub(crate) trait Number: Packed + Element + Real {}
impl Number for f32 {}
impl Number for f64 {}

/// What is done with arrays that the compiler makes vectors of.
pub(crate) trait Work {
    /// Does it.
    ///
    /// # Safety
    /// What each work says.
    unsafe fn run<T: Number, const L: usize>(&self);
}

/// Does it with arrays as long as a plan's vectors, compiled for them where they are the host's.
///
/// # Safety
/// What the work needs; the vectors must be the host's where they are called native.
pub(crate) unsafe fn with_vectors((vector, is_native): (Vector, bool), work: &impl Work) {
    // SAFETY: the caller's contract.
    unsafe {
        match (vector.width, vector.float) {
            #[cfg(target_arch = "x86_64")]
            (Width::Z, Float::F32) if is_native => wide::<f32, 16>(work),
            #[cfg(target_arch = "x86_64")]
            (Width::Z, Float::F64) if is_native => wide::<f64, 8>(work),
            #[cfg(target_arch = "x86_64")]
            (Width::Y, Float::F32) if is_native => narrow::<f32, 8>(work),
            #[cfg(target_arch = "x86_64")]
            (Width::Y, Float::F64) if is_native => narrow::<f64, 4>(work),
            (Width::Z, Float::F32) => work.run::<f32, 16>(),
            (Width::Z, Float::F64) => work.run::<f64, 8>(),
            (Width::Y, Float::F32) => work.run::<f32, 8>(),
            (Width::Y, Float::F64) => work.run::<f64, 4>(),
            (Width::X, Float::F32) => work.run::<f32, 4>(),
            (Width::X, Float::F64) => work.run::<f64, 2>(),
        }
    }
}

/// # Safety
/// As for [`with_vectors`], on a host with AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn wide<T: Number, const L: usize>(work: &impl Work) {
    // SAFETY: the caller's contract.
    unsafe { work.run::<T, L>() };
}

/// # Safety
/// As for [`with_vectors`], on a host with AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn narrow<T: Number, const L: usize>(work: &impl Work) {
    // SAFETY: the caller's contract.
    unsafe { work.run::<T, L>() };
}
