//! Symmetric linear systems: a Krylov method with a preconditioner.

mod krylov;
mod precondition;

use crate::computation::{Computation, InputFeature, Named, Variant, Work};
use crate::generate::{self, matrices, rng};
use crate::matrix::{Csr, some};
use krylov::{BiCgStab, Cg};
use precondition::{BlockJacobi, FactorisedInverse, Jacobi};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// A symmetric matrix with a right-hand side.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// The matrix.
    pub matrix: Csr,
    /// The right-hand side.
    pub rhs: Vec<f64>,
    /// What the right-hand side was made from.
    pub solution: Vec<f64>,
}

impl System {
    /// A system with a seeded solution.
    pub fn of(matrix: Csr, seed: u64) -> Self {
        let mut rng = rng("solution", seed);
        let solution: Vec<f64> = (0..matrix.cols).map(|_| rng.random_range(-1.0..1.0)).collect();
        Self { rhs: matrix.times(&solution), matrix, solution }
    }

    /// The diagonal of some rows.
    fn diagonal(&self) -> Vec<f64> {
        some(self.matrix.rows(), LOOK).map(|row| in_row(&self.matrix, row).0).collect()
    }
}

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

/// Solving a symmetric system.
pub struct Solver;

/// Operations of one iteration; their number is not known before.
fn work(s: &System, products: f64, vectors: f64, own: f64) -> Work {
    let (entries, rows) = (s.matrix.nonzeros() as f64, s.matrix.rows() as f64);
    Work {
        dp_flops: 2.0 * products * entries + 2.0 * vectors * rows + own * entries,
        streamed: 1.5 * products * entries + 1.5 * vectors * rows + own * entries,
        cached: products * entries,
        other: products * (entries + rows),
        ..Work::default()
    }
}

impl Computation for Solver {
    const NAME: &'static str = "solver";
    type Input = System;
    type Output = Vec<f64>;

    fn variants() -> Vec<Variant<System, Vec<f64>>> {
        let legal = |s: &System| if s.matrix.rows() == s.matrix.cols { Ok(()) } else { Err("a square matrix") };
        vec![
            Variant {
                name: "bicgstab-jacobi",
                legal,
                prepare: krylov::prepare::<BiCgStab, Jacobi>,
                work: |s| work(s, 2.0, 12.0, 0.0),
            },
            Variant {
                name: "bicgstab-bjacobi",
                legal,
                prepare: krylov::prepare::<BiCgStab, BlockJacobi>,
                work: |s| work(s, 2.0, 18.0, 0.0),
            },
            Variant {
                name: "bicgstab-fainv",
                legal,
                prepare: krylov::prepare::<BiCgStab, FactorisedInverse>,
                work: |s| work(s, 4.0, 12.0, 2.0),
            },
            Variant {
                name: "cg-jacobi",
                legal,
                prepare: krylov::prepare::<Cg, Jacobi>,
                work: |s| work(s, 1.0, 6.0, 0.0),
            },
            Variant {
                name: "cg-bjacobi",
                legal,
                prepare: krylov::prepare::<Cg, BlockJacobi>,
                work: |s| work(s, 1.0, 9.0, 0.0),
            },
            Variant {
                name: "cg-fainv",
                legal,
                prepare: krylov::prepare::<Cg, FactorisedInverse>,
                work: |s| work(s, 2.0, 6.0, 2.0),
            },
        ]
    }

    fn features() -> Vec<InputFeature<System>> {
        let size = |name, of: fn(&System) -> f64| InputFeature { name, flag: false, of };
        let signed = |name, of: fn(&System) -> f64| InputFeature { name, flag: true, of };
        vec![
            size("nnz", |s| s.matrix.nonzeros() as f64),
            size("rows", |s| s.matrix.rows() as f64),
            signed("trace", |s| mean_and_variance(&s.diagonal()).0 * s.matrix.rows() as f64),
            signed("diag_avg", |s| mean_and_variance(&s.diagonal()).0),
            size("diag_var", |s| mean_and_variance(&s.diagonal()).1),
            size("diag_dominance", dominance),
            // How far from dominant, and how much of it a block Jacobi preconditioner sees.
            signed("beside_most", |s| beside(s).0.ln_1p()),
            signed("beside_mean", |s| beside(s).1.ln_1p()),
            signed("beside_in_block", |s| beside(s).2),
        ]
    }

    fn reference(s: &System) -> Vec<f64> {
        s.solution.clone()
    }

    /// By the residual: how far the solution is off depends on the matrix's condition.
    fn judge(s: &System, _: &Vec<f64>, found: &Vec<f64>) -> Result<(), String> {
        if found.len() != s.rhs.len() {
            return Err(format!("{} unknowns instead of {}", found.len(), s.rhs.len()));
        }
        let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let off: Vec<f64> = s.matrix.times(found).iter().zip(&s.rhs).map(|(a, b)| a - b).collect();
        let residual = norm(&off) / norm(&s.rhs).max(f64::MIN_POSITIVE);
        // The recurrences of the methods drift from the true residual.
        if residual <= 100.0 * TOLERANCE { Ok(()) } else { Err(format!("relative residual {residual:e}")) }
    }

    fn inputs() -> Vec<Named<System>> {
        generate::collection("systems", 200, |rng, seed| {
            let entries = generate::sized(rng, 800.0, 15_000.0);
            let (family, arguments, make) = draw(rng, entries, seed);
            Named::new(family, &arguments, move || System::of(make(), 1))
        })
    }
}

/// Makes a symmetric matrix.
type Make = Box<dyn Fn() -> Csr + Send + Sync>;

/// A symmetric matrix with about so many entries.
fn draw(rng: &mut ChaCha8Rng, entries: f64, seed: u64) -> (&'static str, String, Make) {
    let within = |v: f64, least: f64| v.round().max(least) as usize;
    // Three digits, so that the name says all.
    let mut decimal = |from, to| (generate::sized(rng, from, to) * 1000.0).round() / 1000.0;
    match seed % 5 {
        0 => {
            let size = decimal(0.01, 3.0);
            let points = [5, 7, 27][rng.random_range(0..3)];
            // A quarter is indefinite, or nearly singular.
            let shift = if rng.random_bool(0.25) { -size / 3.0 } else { size };
            let shift = (shift * 1000.0).round() / 1000.0;
            let side = within((entries / points as f64).powf(if points == 5 { 0.5 } else { 1.0 / 3.0 }), 4.0);
            let make = move || matrices::stencil(points, side, shift);
            ("stencil", format!("{points},{side},{shift}"), Box::new(make))
        }
        1 => {
            let mass = decimal(0.005, 5.0);
            let side = within((entries / 7.0).sqrt(), 8.0);
            let mixing = [1, side, 30, side * side][rng.random_range(0..4)];
            let make = move || matrices::mesh(side, mixing, mass, seed);
            ("mesh", format!("{side},{mixing},{mass},{seed}"), Box::new(make))
        }
        2 => {
            let (mass, span) = (decimal(0.02, 2.0), decimal(1.0, 6.0));
            let side = within((entries / 7.0).sqrt(), 8.0);
            let mixing = [1, side * side][rng.random_range(0..2)];
            let make = move || matrices::scaled(&matrices::mesh(side, mixing, mass, seed), span, seed);
            ("scaled-mesh", format!("{side},{mixing},{mass},{span},{seed}"), Box::new(make))
        }
        3 => {
            let coupling = decimal(0.01, 0.6);
            let size = [2, 4, 4, 8, 16][rng.random_range(0..5)];
            let count = within(entries / (size * size + 2 * size) as f64, 4.0);
            let make = move || matrices::coupled_blocks(count, size, coupling, seed);
            ("coupled-blocks", format!("{count},{size},{coupling},{seed}"), Box::new(make))
        }
        _ => {
            let excess = decimal(0.005, 1.5);
            let per_row = within(generate::sized(rng, 3.0, 40.0), 3.0);
            let excess = if rng.random_bool(0.15) { -excess / 4.0 } else { excess };
            let rows = within(entries / per_row as f64, 40.0);
            let make = move || matrices::dominant(rows, per_row, excess, seed);
            ("dominant", format!("{rows},{per_row},{excess},{seed}"), Box::new(make))
        }
    }
}

/// The largest and the mean sum of sizes beside the diagonal over the diagonal's, and the share of those sums that lies in
/// blocks of four on the diagonal; of some rows.
fn beside(s: &System) -> (f64, f64, f64) {
    let (mut most, mut sum, mut near, mut all) = (0.0f64, 0.0, 0.0, 0.0);
    for row in some(s.matrix.rows(), LOOK) {
        let (own, others, close) = in_row(&s.matrix, row);
        // A row without a diagonal is as far from dominance as there is.
        let ratio = (others / own.abs().max(1e-9)).min(1e9);
        (most, sum, near, all) = (most.max(ratio), sum + ratio, near + close, all + others);
    }
    (most, sum / s.matrix.rows().clamp(1, LOOK) as f64, near / f64::max(all, 1e-300))
}

fn mean_and_variance(numbers: &[f64]) -> (f64, f64) {
    let n = numbers.len().max(1) as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    (mean, numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n)
}

/// Share of some rows whose diagonal is at least the sum of the others' sizes.
fn dominance(s: &System) -> f64 {
    let dominant = |&row: &usize| {
        let (own, others, _) = in_row(&s.matrix, row);
        own.abs() >= others
    };
    some(s.matrix.rows(), LOOK).filter(dominant).count() as f64 / s.matrix.rows().clamp(1, LOOK) as f64
}
