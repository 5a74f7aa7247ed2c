//! GEMM tasks run by baselines, alone or beside a kernel of ours.

use crate::baseline::Baseline;
use crate::compare::{Contender, Outcome, Policy, compare};
use crate::operands::{Element, Operands};
use crate::tasks::Task;

/// An element type that a baseline multiplies.
pub trait GemmElement: Element {
    /// One call of `baseline` on `operands`, alpha = 1 and beta = 0.
    ///
    /// # Errors
    /// Sizes beyond 32-bit BLAS.
    fn run(
        baseline: &dyn Baseline,
        operands: &mut Operands<Self>,
        threads: usize,
    ) -> Result<(), crate::baseline::CallError>;
}

impl GemmElement for f32 {
    fn run(
        baseline: &dyn Baseline,
        operands: &mut Operands<f32>,
        threads: usize,
    ) -> Result<(), crate::baseline::CallError> {
        operands.call(1.0, 0.0).map(|mut call| baseline.sgemm(&mut call, threads))
    }
}

impl GemmElement for f64 {
    fn run(
        baseline: &dyn Baseline,
        operands: &mut Operands<f64>,
        threads: usize,
    ) -> Result<(), crate::baseline::CallError> {
        operands.call(1.0, 0.0).map(|mut call| baseline.dgemm(&mut call, threads))
    }
}

/// `baseline` as a contender, alpha = 1 and beta = 0. Sizes that 32-bit BLAS cannot take leave C as it was, which the check refuses.
pub fn contender<'a, T: GemmElement>(baseline: &'a dyn Baseline, threads: usize) -> Contender<'a, Operands<T>> {
    Contender::new(baseline.identity().name, move |operands: &mut Operands<T>| {
        let _ = T::run(baseline, operands, threads);
    })
}

/// Compares on one task with alpha = 1 and beta = 0: every contender starts from a C of NaN, which it must not read, and
/// every element of its result is checked.
pub fn compare_task<T: GemmElement>(
    task: &Task,
    contenders: &mut [Contender<'_, Operands<T>>],
    policy: &Policy,
    seed: u64,
) -> Vec<Outcome> {
    let mut operands = Operands::<T>::new(task.m, task.n, task.k, task.layout, seed);
    compare(contenders, &mut operands, policy, Operands::poison_c, |operands| {
        operands.verify(1, 0).map_err(|wrong| wrong.to_string())
    })
}
