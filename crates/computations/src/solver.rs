//! Symmetric linear systems: a Krylov method with a preconditioner.

mod krylov;
mod precondition;

use crate::computation::{Computation, InputFeature, Named, Variant, Work};
use crate::generate::{matrices, rng};
use crate::matrix::Csr;
use krylov::{BiCgStab, Cg};
use precondition::{BlockJacobi, FactorisedInverse, Jacobi};
use rand::Rng;

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

    fn diagonal(&self) -> Vec<f64> {
        let mut diagonal = vec![0.0; self.matrix.rows()];
        self.matrix.entries().filter(|(r, c, _)| r == c).for_each(|(r, _, v)| diagonal[r] = v);
        diagonal
    }
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
            signed("trace", |s| s.diagonal().iter().sum()),
            signed("diag_avg", |s| mean_and_variance(&s.diagonal()).0),
            size("diag_var", |s| mean_and_variance(&s.diagonal()).1),
            size("diag_dominance", dominance),
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
        type Make = Box<dyn Fn() -> Csr + Send + Sync>;
        let mut all: Vec<(&'static str, String, Make)> = Vec::new();
        for (points, side, shift) in [
            (5, 20, 0.01),
            (5, 40, 0.1),
            (5, 56, 0.5),
            (5, 70, 2.0),
            (7, 9, 0.05),
            (7, 14, 0.3),
            (7, 18, 1.0),
            (27, 7, 0.1),
            (27, 10, 1.0),
            (27, 12, 4.0),
            (5, 30, -0.05),
            (7, 10, -0.4),
            (5, 16, -1.0),
        ] {
            all.push((
                "stencil",
                format!("{points},{side},{shift}"),
                Box::new(move || matrices::stencil(points, side, shift)),
            ));
        }
        for (seed, (side, mixing, mass)) in [
            (20, 1, 0.1),
            (36, 1, 0.02),
            (50, 1, 1.0),
            (36, 1296, 0.1),
            (60, 900, 3.0),
            (28, 28, 0.005),
            (44, 200, 0.3),
            (70, 1, 5.0),
        ]
        .into_iter()
        .enumerate()
        {
            let make = move || matrices::mesh(side, mixing, mass, seed as u64);
            all.push(("mesh", format!("{side},{mixing},{mass},{seed}"), Box::new(make)));
        }
        for (seed, (side, mixing, mass, span)) in
            [(24, 1, 0.1, 2.0), (40, 1, 0.5, 4.0), (48, 500, 1.0, 3.0), (30, 1, 0.05, 6.0), (60, 1, 2.0, 2.0)]
                .into_iter()
                .enumerate()
        {
            let make = move || matrices::scaled(&matrices::mesh(side, mixing, mass, seed as u64), span, seed as u64);
            all.push(("scaled-mesh", format!("{side},{mixing},{mass},{span},{seed}"), Box::new(make)));
        }
        for (seed, (count, size, coupling)) in [
            (100, 4, 0.02),
            (400, 4, 0.1),
            (800, 4, 0.25),
            (150, 8, 0.05),
            (300, 8, 0.1),
            (60, 16, 0.02),
            (1000, 4, 0.05),
            (500, 4, 0.4),
        ]
        .into_iter()
        .enumerate()
        {
            let make = move || matrices::coupled_blocks(count, size, coupling, seed as u64);
            all.push(("coupled-blocks", format!("{count},{size},{coupling},{seed}"), Box::new(make)));
        }
        for (seed, (rows, per_row, excess)) in [
            (800, 4, 0.02),
            (3000, 6, 0.2),
            (6000, 3, 1.0),
            (1500, 20, 0.1),
            (4000, 10, 0.01),
            (2000, 5, -0.3),
            (9000, 4, 0.5),
            (1000, 40, 0.3),
        ]
        .into_iter()
        .enumerate()
        {
            let make = move || matrices::dominant(rows, per_row, excess, seed as u64);
            all.push(("dominant", format!("{rows},{per_row},{excess},{seed}"), Box::new(make)));
        }
        let named = |(family, arguments, make): (_, String, Make)| {
            Named::new(family, &arguments, move || System::of(make(), 1))
        };
        all.into_iter().map(named).collect()
    }
}

fn mean_and_variance(numbers: &[f64]) -> (f64, f64) {
    let n = numbers.len().max(1) as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    (mean, numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n)
}

/// Share of rows whose diagonal is at least the sum of the others' sizes.
fn dominance(s: &System) -> f64 {
    let rows = s.matrix.rows();
    let dominant = |&row: &usize| {
        let (columns, values) = s.matrix.row(row);
        let (mut own, mut others) = (0.0, 0.0);
        for (&c, v) in columns.iter().zip(values) {
            *if c as usize == row { &mut own } else { &mut others } += v.abs();
        }
        own >= others
    };
    (0..rows).filter(dominant).count() as f64 / rows.max(1) as f64
}
