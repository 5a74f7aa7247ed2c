//! Runs all parts of a plan, and sums the slices of a reduction that threads split.

use super::driver::{Call, Compiled};
use crate::scalar::{Float, Numbers};
use crate::split::share;
use std::ops::Range;
use tilewright_core::dtype::DType;
use tilewright_core::element::{Bf16, F16};
use tilewright_ops::gemm::ScalarClass;

/// An element of C, beside sums of type `T`.
pub(super) trait Kept<T>: Copy {
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
        self.to_f32()
    }

    fn of(sum: f32) -> Self {
        Self::from_f32(sum)
    }
}

impl Kept<f32> for Bf16 {
    fn widened(self) -> f32 {
        self.to_f32()
    }

    fn of(sum: f32) -> Self {
        Self::from_f32(sum)
    }
}

/// Sums that are added up at a time: some lines, so that every loop over them is one of vectors.
const RUN: usize = 64;

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

    /// Computes so many products, each at the addresses of its number.
    ///
    /// # Safety
    /// As for [`Compiled::run`], of every product.
    pub(crate) unsafe fn run_all(&self, count: u32, call: &(dyn Fn(u32) -> Call + Sync)) {
        if self.blueprint.reduces() {
            // SAFETY: the caller's contract.
            return (0..count).for_each(|product| unsafe { self.run(&call(product)) });
        }
        // Threads wait for each other once, and not after every product: what they write is their own.
        tilewright_threads::run(self.blueprint.threads(), &|thread| {
            // SAFETY: the caller's contract.
            (0..count).for_each(|product| unsafe { self.run_part(thread, &call(product)) });
        });
    }

    /// Sums all slices on this thread, in the shares of several.
    ///
    /// # Safety
    /// As for [`Compiled::run`]; all slices must be complete.
    #[cfg(test)]
    pub(crate) unsafe fn reduce_all(&self, call: &Call) {
        // SAFETY: the caller's contract.
        (0..3).for_each(|thread| unsafe { self.reduce(thread, 3, call) });
    }

    /// Sums the slices of one thread's share of the columns, in order, so that repeats are bitwise equal.
    ///
    /// # Safety
    /// As for [`Compiled::run`]; all slices must be complete and no other thread may touch the share's C.
    unsafe fn reduce(&self, thread: usize, threads: usize, call: &Call) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the caller's contract; the host has these instructions.
            return unsafe { self.reduce_by_vectors(thread, threads, call) };
        }
        // SAFETY: the caller's contract.
        unsafe { self.reduce_plainly(thread, threads, call) };
    }

    /// The same loops, compiled for AVX2.
    ///
    /// # Safety
    /// As for [`Compiled::reduce`], on a host with AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn reduce_by_vectors(&self, thread: usize, threads: usize, call: &Call) {
        // SAFETY: the caller's contract.
        unsafe { self.reduce_plainly(thread, threads, call) };
    }

    /// # Safety
    /// As for [`Compiled::reduce`].
    #[inline(always)]
    unsafe fn reduce_plainly(&self, thread: usize, threads: usize, call: &Call) {
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
    #[inline(always)]
    unsafe fn reduce_as<T, O: Kept<T>>(&self, thread: usize, threads: usize, call: &Call, beta: T)
    where
        T: Copy + Default + std::ops::Add<Output = T> + std::ops::Mul<Output = T>,
    {
        let (b, parts) = (&self.blueprint, self.blueprint.numbers.parts());
        let all = b.frame.v_len * parts;
        if b.frame.c_v == 1 {
            for s in share(&(0..b.frame.s_len), thread, threads) {
                for first in (0..all).step_by(RUN) {
                    // SAFETY: the caller's contract; the column is this thread's.
                    unsafe { self.reduce_run::<T, O>(s, first..all.min(first + RUN), call, beta) };
                }
            }
            return;
        }
        // Of a C that is transposed, columns are shared out just as well: threads that wrote neighbours in a column would wait for each other's
        // lines, so that 20 x 99 x 521 took four times as long.
        let columns = share(&(0..b.frame.v_len), thread, threads);
        let end = columns.end * parts;
        for first in (columns.start * parts..end).step_by(RUN) {
            for s in 0..b.frame.s_len {
                // SAFETY: the caller's contract; the columns are this thread's.
                unsafe { self.reduce_run::<T, O>(s, first..end.min(first + RUN), call, beta) };
            }
        }
    }

    /// Sums the slices of a run of at most [`RUN`] numbers along vectors, at one place across them.
    ///
    /// # Safety
    /// As for [`Compiled::reduce_as`]; the run must lie within C, and no other thread may touch it there.
    #[inline(always)]
    unsafe fn reduce_run<T, O: Kept<T>>(&self, s: usize, run: Range<usize>, call: &Call, beta: T)
    where
        T: Copy + Default + std::ops::Add<Output = T> + std::ops::Mul<Output = T>,
    {
        let (b, first) = (&self.blueprint, run.start);
        let slices = call.workspace.wrapping_add(b.threads() * (b.v_buffer() + b.s_buffer()));
        let (stride, slice) = (b.slice_stride(), b.slice_bytes() / size_of::<T>());
        let slices = slices.cast::<T>().cast_const();
        let (c, parts) = (call.c.cast::<O>(), b.numbers.parts());
        let (from, to) = (slices.wrapping_add(s * stride * parts), c.wrapping_add(s * b.frame.c_s * parts));
        let mut held = [T::default(); RUN];
        let sums = &mut held[..run.len()];
        // SAFETY: within the slices, which are complete, and within C, where the run is this thread's.
        unsafe {
            for g in 0..b.config.k_g as usize {
                add(sums, from.wrapping_add(g * slice + first), g == 0);
            }
            // Loops of their own for neighbours and for numbers of one part: with a division they are not vectorised.
            if b.frame.c_v == 1 {
                keep(sums, |i| to.wrapping_add(first + i), b.input.beta, beta);
            } else if parts == 1 {
                keep(sums, |i| to.wrapping_add((first + i) * b.frame.c_v), b.input.beta, beta);
            } else {
                let place = |at: usize| at / parts * b.frame.c_v * parts + at % parts;
                keep(sums, |i| to.wrapping_add(place(first + i)), b.input.beta, beta);
            }
        }
    }
}

/// Adds neighbours in memory to sums, or begins them.
///
/// # Safety
/// As many as there are sums must be readable.
#[inline(always)]
unsafe fn add<T: Copy + std::ops::Add<Output = T>>(sums: &mut [T], from: *const T, begins: bool) {
    for (i, sum) in sums.iter_mut().enumerate() {
        // SAFETY: the caller's contract.
        let next = unsafe { from.add(i).read() };
        *sum = if begins { next } else { *sum + next };
    }
}

/// Writes sums to their places in C.
///
/// # Safety
/// The places must be readable and writable.
#[inline(always)]
unsafe fn keep<T, O: Kept<T>>(sums: &[T], to: impl Fn(usize) -> *mut O, class: ScalarClass, beta: T)
where
    T: Copy + std::ops::Add<Output = T> + std::ops::Mul<Output = T>,
{
    // SAFETY: the caller's contract.
    unsafe {
        match class {
            ScalarClass::Zero => sums.iter().enumerate().for_each(|(i, sum)| to(i).write(O::of(*sum))),
            ScalarClass::One => {
                sums.iter().enumerate().for_each(|(i, sum)| to(i).write(O::of(to(i).read().widened() + *sum)));
            }
            ScalarClass::Other => {
                let kept = |sum: T, at: *mut O| O::of(beta * at.read().widened() + sum);
                sums.iter().enumerate().for_each(|(i, sum)| to(i).write(kept(*sum, to(i))));
            }
        }
    }
}
