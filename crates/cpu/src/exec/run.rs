//! Runs all parts of a plan, and sums the slices of a reduction that threads split.

use super::driver::{Call, Compiled};
use crate::scalar::{Float, Numbers};
use crate::split::share;
use tilewright_core::dtype::DType;
use tilewright_core::element::{Bf16, F16};
use tilewright_ops::gemm::ScalarClass;

/// An element of C, beside sums of type `T`.
trait Kept<T>: Copy {
    fn widened(self) -> T;

    /// The nearest to a sum.
    fn of(sum: T) -> Self;
}

impl<T: Copy> Kept<T> for T {
    fn widened(self) -> T {
        self
    }

    fn of(sum: T) -> Self {
        sum
    }
}

impl Kept<f32> for F16 {
    fn widened(self) -> f32 {
        self.to_f64() as f32
    }

    fn of(sum: f32) -> Self {
        Self::from_f64(sum.into())
    }
}

impl Kept<f32> for Bf16 {
    fn widened(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    fn of(sum: f32) -> Self {
        if sum.is_nan() {
            return Self::from_f64(sum.into());
        }
        // To even; a carry goes into the exponent, as it should.
        let bits = sum.to_bits();
        Self(((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16)
    }
}

impl Compiled {
    /// Computes the whole product.
    ///
    /// # Safety
    /// The operands must be readable and C writable over the extents of the plan's input, the workspace over its
    /// size and aligned to 64 bytes, nobody else may touch C or the workspace, and the host must have the plan's
    /// instruction set.
    pub(crate) unsafe fn run(&self, call: &Call) {
        let b = &self.blueprint;
        let threads = b.threads();
        // SAFETY: the caller's contract; parts of different threads do not overlap.
        tilewright_threads::run(threads, &|thread| unsafe { self.run_part(thread, call) });
        if b.reduces() {
            // SAFETY: all slices are complete; threads take different columns.
            tilewright_threads::run(threads, &|thread| unsafe { self.reduce(thread, threads, call) });
        }
    }

    /// Sums all slices on this thread.
    ///
    /// # Safety
    /// As for [`Compiled::run`]; all slices must be complete.
    #[cfg(test)]
    pub(crate) unsafe fn reduce_all(&self, call: &Call) {
        // SAFETY: the caller's contract.
        unsafe { self.reduce(0, 1, call) };
    }

    /// Sums the slices of one thread's share of the columns, in order, so that repeats are bitwise equal.
    ///
    /// # Safety
    /// As for [`Compiled::run`]; all slices must be complete and no other thread may touch the share's C.
    unsafe fn reduce(&self, thread: usize, threads: usize, call: &Call) {
        // SAFETY: the caller's contract.
        unsafe {
            match (self.blueprint.numbers, self.blueprint.input.types.output, self.blueprint.vector.float) {
                (Numbers::Pairs | Numbers::Quads, ..) => {
                    self.reduce_as::<i32, i32>(thread, threads, call, call.beta as i32)
                }
                (_, DType::Bf16, _) => self.reduce_as::<f32, Bf16>(thread, threads, call, call.beta as f32),
                (_, DType::F16, _) => self.reduce_as::<f32, F16>(thread, threads, call, call.beta as f32),
                (_, _, Float::F32) => self.reduce_as::<f32, f32>(thread, threads, call, call.beta as f32),
                (_, _, Float::F64) => self.reduce_as::<f64, f64>(thread, threads, call, call.beta),
            }
        }
    }

    /// # Safety
    /// As for [`Compiled::reduce`]; `T` is the type of the plan's sums, of their components, and `O` that of C.
    unsafe fn reduce_as<T, O: Kept<T>>(&self, thread: usize, threads: usize, call: &Call, beta: T)
    where
        T: Copy + std::ops::Add<Output = T> + std::ops::Mul<Output = T>,
    {
        let b = &self.blueprint;
        let slices = call.workspace.wrapping_add(b.threads() * (b.v_buffer() + b.s_buffer()));
        let (stride, slice) = (b.slice_stride(), b.slice_bytes() / size_of::<T>());
        let slices = slices.cast::<T>().cast_const();
        let (c, parts) = (call.c.cast::<O>(), b.numbers.parts());
        let one = |s: usize, v: usize, part: usize| {
            let at = (s * stride + v) * parts + part;
            // SAFETY: within the slices, which are complete, and within C; the column is this thread's.
            unsafe {
                let mut sum = slices.add(at).read();
                for g in 1..b.config.k_g as usize {
                    sum = sum + slices.add(g * slice + at).read();
                }
                let to = c.add((v * b.frame.c_v + s * b.frame.c_s) * parts + part);
                let kept = match b.input.beta {
                    ScalarClass::Zero => sum,
                    ScalarClass::One => to.read().widened() + sum,
                    ScalarClass::Other => beta * to.read().widened() + sum,
                };
                to.write(O::of(kept));
            }
        };
        for s in share(&(0..b.frame.s_len), thread, threads) {
            // A loop of its own for numbers of one part: one of two is not vectorised.
            if parts == 1 {
                (0..b.frame.v_len).for_each(|v| one(s, v, 0));
            } else {
                (0..b.frame.v_len).for_each(|v| (0..parts).for_each(|part| one(s, v, part)));
            }
        }
    }
}
