//! Symmetric linear systems: a Krylov method with a preconditioner.

mod generators;
mod krylov;
mod precondition;
mod reference;

use crate::description::{DataFeature, Description, Variant, flag, size, spec};
use crate::matrix::{Csr, market, some};
use crate::source::{Fault, Generator};
use crate::spmv::{fill_matrix, fill_vector, matrix_specs};
use krylov::{BiCgStab, Cg, prepare};
use precondition::{BlockJacobi, FactorisedInverse, Jacobi};
use tilewright_core::buffer::{Buffer, BufferSpec, Buffers, ExpectedBuffer, Filling, Role};
use tilewright_core::computation::Work;
use tilewright_core::dtype::DType;

/// Rows that features look at: all of them take as long as several iterations.
const LOOK: usize = 40;

/// Of a row: the diagonal, the sum of the others' sizes, and how much of that is in the block of four on the diagonal.
fn in_row(m: &Csr, row: usize) -> (f64, f64, f64) {
    let (columns, values) = m.row(row);
    let (mut own, mut others, mut near) = (0.0, 0.0, 0.0);
    for (&c, v) in columns.iter().zip(values) {
        if c as usize == row {
            own = *v;
        } else {
            others += v.abs();
            near += if c as usize / 4 == row / 4 { v.abs() } else { 0.0 };
        }
    }
    (own, others, near)
}

/// Norm of the residual over that of the right-hand side at which a solver ends.
pub const TOLERANCE: f64 = 1e-8;
/// Iterations after which it gives up.
pub const MOST_ITERATIONS: usize = 500;

/// The residual, over the norm of the right-hand side, of what counts as a solution: the recurrences of the methods drift.
pub const SOLVED: f64 = 100.0 * TOLERANCE;

/// Solving a symmetric system: `starts`, `columns` and `values` of the matrix by rows, `rhs`, and `x`.
pub struct Solver;

impl Description for Solver {
    const NAME: &'static str = "solve";
    const FIELD: &'static str = "matrix";
    const DRAWN: (f64, f64) = (800.0, 1e5);
    const ELEMENT_BYTES: f64 = 16.0;
    /// Where a row begins and two vectors; a column and a value.
    const BUFFERS: (f64, f64) = (20.0, 12.0);
    type Data = Csr;

    const GENERATORS: &'static [Generator<Csr>] = generators::ALL;
    const AWKWARD: &'static [&'static str] = &[
        "matrix=dominant,rows=0,per_row=0,excess=1,seed=1",
        "matrix=dominant,rows=1,per_row=0,excess=1,seed=1",
        "matrix=dominant,rows=5,per_row=0,excess=0.5,seed=1",
        "matrix=stencil,points=5,side=7,shift=0.1",
        "matrix=stencil,points=27,side=4,shift=0.5",
        "matrix=mesh,side=7,mixing=49,mass=0.5,seed=1",
        "matrix=coupled-blocks,blocks=13,size=4,coupling=0.1,seed=1",
        "matrix=dominant,rows=101,per_row=5,excess=0.2,seed=1",
    ];
    const FEATURES: &'static [DataFeature<Csr>] = &[
        size("nnz", |m| m.nonzeros() as f64),
        size("rows", |m| m.rows() as f64),
        flag("trace", |m| mean_and_variance(&diagonal(m)).0 * m.rows() as f64),
        flag("diag_avg", |m| mean_and_variance(&diagonal(m)).0),
        size("diag_var", |m| mean_and_variance(&diagonal(m)).1),
        size("diag_dominance", dominance),
        // How far from dominant, and how much of it a block Jacobi preconditioner sees.
        flag("beside_most", |m| beside(m).0.ln_1p()),
        flag("beside_mean", |m| beside(m).1.ln_1p()),
        flag("beside_in_block", |m| beside(m).2),
    ];

    fn read(file: &[u8]) -> Option<Result<Csr, Fault>> {
        let square = |m: Csr| {
            let message = || format!("{}x{} entries; a system has as many rows as columns", m.rows(), m.cols);
            if m.rows() == m.cols { Ok(m) } else { Err(Fault { line: 1, column: 1, message: message() }) }
        };
        Some(market::parse(file).and_then(square))
    }

    /// One product: no method gets by with less.
    fn work(m: &Csr) -> Work {
        let (entries, rows) = (m.nonzeros() as f64, m.rows() as f64);
        Work { flops: 2.0 * entries, bytes: 12.0 * entries + 20.0 * rows }
    }

    fn specs(m: &Csr) -> Vec<BufferSpec> {
        let mut all = matrix_specs(m);
        all.push(spec("rhs", DType::F64, m.rows(), Role::In));
        all.push(spec("x", DType::F64, m.rows(), Role::Out));
        all
    }

    /// The right-hand side is made from a seeded solution.
    fn fill(m: &Csr, filling: Filling, seed: u64, buffers: &mut [Buffer]) {
        fill_matrix(m, buffers);
        let mut solution = vec![0.0; m.cols];
        fill_vector(filling, seed, &mut solution);
        buffers[3].as_mut_slice().copy_from_slice(&m.times(&solution));
    }

    fn reference(m: &Csr, before: &Buffers) -> ExpectedBuffer {
        let (values, bound) = reference::solution(m, before[3].as_slice());
        ExpectedBuffer { index: 4, bounds: vec![bound; values.len()], values }
    }

    fn variants() -> Vec<Variant<Csr>> {
        vec![
            Variant::new("bicgstab-jacobi", prepare::<BiCgStab, Jacobi>),
            Variant::new("bicgstab-bjacobi", prepare::<BiCgStab, BlockJacobi>),
            Variant::new("bicgstab-fainv", prepare::<BiCgStab, FactorisedInverse>),
            Variant::new("cg-jacobi", prepare::<Cg, Jacobi>),
            Variant::new("cg-bjacobi", prepare::<Cg, BlockJacobi>),
            Variant::new("cg-fainv", prepare::<Cg, FactorisedInverse>),
        ]
    }
}

/// The diagonal of some rows.
fn diagonal(m: &Csr) -> Vec<f64> {
    some(m.rows(), LOOK).map(|row| in_row(m, row).0).collect()
}

/// The largest and the mean sum of sizes beside the diagonal over the diagonal's, and the share of those sums that lies in
/// blocks of four on the diagonal; of some rows.
fn beside(m: &Csr) -> (f64, f64, f64) {
    let (mut most, mut sum, mut near, mut all) = (0.0f64, 0.0, 0.0, 0.0);
    for row in some(m.rows(), LOOK) {
        let (own, others, close) = in_row(m, row);
        // A row without a diagonal is as far from dominance as there is.
        let ratio = (others / own.abs().max(1e-9)).min(1e9);
        (most, sum, near, all) = (most.max(ratio), sum + ratio, near + close, all + others);
    }
    (most, sum / m.rows().clamp(1, LOOK) as f64, near / f64::max(all, 1e-300))
}

fn mean_and_variance(numbers: &[f64]) -> (f64, f64) {
    let n = numbers.len().max(1) as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    (mean, numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n)
}

/// Share of some rows whose diagonal is at least the sum of the others' sizes.
fn dominance(m: &Csr) -> f64 {
    let dominant = |&row: &usize| {
        let (own, others, _) = in_row(m, row);
        own.abs() >= others
    };
    some(m.rows(), LOOK).filter(dominant).count() as f64 / m.rows().clamp(1, LOOK) as f64
}
