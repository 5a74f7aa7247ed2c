//! y = A x with a sparse matrix, in six storage formats.

mod compressed;
mod padded;

use crate::computation::{Computation, InputFeature, Named, Variant, Work};
use crate::generate::{matrices, rng};
use crate::matrix::{Csr, spread};
use rand::Rng;

/// A matrix and a vector.
#[derive(Clone, Debug)]
pub struct Product {
    /// The matrix.
    pub matrix: Csr,
    /// The vector, as long as the matrix has columns.
    pub x: Vec<f64>,
}

impl Product {
    /// The matrix with a seeded vector.
    pub fn of(matrix: Csr, seed: u64) -> Self {
        let mut rng = rng("vector", seed);
        let x = (0..matrix.cols).map(|_| rng.random_range(-1.0..1.0)).collect();
        Self { matrix, x }
    }
}

/// Sparse matrix times vector.
pub struct Spmv;

/// The most that padding may multiply the entries by; beyond it a format does not apply.
pub const MOST_FILL: f64 = 20.0;

/// Stored elements over entries; 1 of an empty matrix.
fn fill(stored: usize, m: &Csr) -> f64 {
    if m.nonzeros() == 0 { 1.0 } else { stored as f64 / m.nonzeros() as f64 }
}

fn dia_fill(m: &Csr) -> f64 {
    fill(m.diagonals().len() * m.rows(), m)
}

fn ell_fill(m: &Csr) -> f64 {
    fill(m.longest() * m.rows(), m)
}

fn padding(fill: f64, m: &Csr) -> Result<(), &'static str> {
    // Small matrices may be padded at will.
    let stored = fill * m.nonzeros() as f64;
    if fill <= MOST_FILL && stored < 6.4e7 { Ok(()) } else { Err("at most 20 stored elements an entry") }
}

fn work(stored: f64, p: &Product, loads_of_y: f64) -> Work {
    let rows = p.matrix.rows() as f64;
    Work {
        dp_flops: 2.0 * stored,
        streamed: 2.5 * stored + rows,
        cached: loads_of_y,
        other: stored + rows,
        ..Work::default()
    }
}

/// Makes a matrix.
type Make = Box<dyn Fn() -> Csr + Send + Sync>;

impl Computation for Spmv {
    const NAME: &'static str = "spmv";
    type Input = Product;
    type Output = Vec<f64>;

    fn variants() -> Vec<Variant<Product, Vec<f64>>> {
        vec![
            Variant {
                name: "csr",
                legal: |_| Ok(()),
                prepare: |p| compressed::by_rows(p, false),
                work: |p| work(p.matrix.nonzeros() as f64, p, 0.0),
            },
            Variant {
                name: "csr-vector",
                legal: |_| Ok(()),
                prepare: |p| compressed::by_rows(p, true),
                work: |p| work(p.matrix.nonzeros() as f64 + 8.0 * p.matrix.rows() as f64, p, 0.0),
            },
            Variant {
                name: "dia",
                legal: |p| padding(dia_fill(&p.matrix), &p.matrix),
                prepare: padded::dia,
                work: |p| {
                    let stored = dia_fill(&p.matrix) * p.matrix.nonzeros() as f64;
                    Work { streamed: 2.0 * stored, ..work(stored, p, 2.0 * stored) }
                },
            },
            Variant {
                name: "ell",
                legal: |p| padding(ell_fill(&p.matrix), &p.matrix),
                prepare: padded::ell,
                work: |p| {
                    let stored = ell_fill(&p.matrix) * p.matrix.nonzeros() as f64;
                    work(stored, p, 2.0 * stored)
                },
            },
            Variant {
                name: "sellp",
                legal: |p| padding(fill(padded::sliced(&p.matrix), &p.matrix), &p.matrix),
                prepare: padded::sellp,
                work: |p| work(padded::sliced(&p.matrix) as f64, p, 0.0),
            },
            Variant {
                name: "coo",
                legal: |_| Ok(()),
                prepare: compressed::coo,
                work: |p| work(p.matrix.nonzeros() as f64 * 1.2, p, 2.0 * p.matrix.nonzeros() as f64),
            },
        ]
    }

    fn features() -> Vec<InputFeature<Product>> {
        let plain = |name, of: fn(&Product) -> f64| InputFeature { name, flag: false, of };
        vec![
            plain("rows", |p| p.matrix.rows() as f64),
            plain("nonzeros", |p| p.matrix.nonzeros() as f64),
            plain("avg_nz_per_row", |p| spread(p.matrix.lengths()).0),
            plain("rl_sd", |p| spread(p.matrix.lengths()).1),
            plain("max_deviation", |p| spread(p.matrix.lengths()).2),
            plain("dia_fill_in", |p| dia_fill(&p.matrix)),
            plain("ell_fill_in", |p| ell_fill(&p.matrix)),
        ]
    }

    fn reference(p: &Product) -> Vec<f64> {
        p.matrix.times(&p.x)
    }

    fn judge(p: &Product, expected: &Vec<f64>, found: &Vec<f64>) -> Result<(), String> {
        if expected.len() != found.len() {
            return Err(format!("{} rows instead of {}", found.len(), expected.len()));
        }
        for (row, (e, f)) in expected.iter().zip(found).enumerate() {
            let (columns, values) = p.matrix.row(row);
            let size: f64 = columns.iter().zip(values).map(|(&c, v)| (v * p.x[c as usize]).abs()).sum();
            let bound = f64::EPSILON * (columns.len() + 2) as f64 * size;
            if (e - f).abs() > bound || f.is_nan() {
                return Err(format!("row {row}: {f} instead of {e}, at most {bound:e} off"));
            }
        }
        Ok(())
    }

    fn inputs() -> Vec<Named<Product>> {
        let mut all: Vec<(&'static str, String, Make)> = Vec::new();
        for (points, sides) in [(5, [24, 64, 110, 180]), (7, [8, 14, 22, 30]), (27, [6, 9, 13, 19])] {
            for side in sides {
                all.push((
                    "stencil",
                    format!("{points},{side}"),
                    Box::new(move || matrices::stencil(points, side, 0.1)),
                ));
            }
        }
        for (seed, (rows, half, density)) in [
            (400, 2, 1.0),
            (3000, 1, 1.0),
            (9000, 4, 1.0),
            (2500, 20, 1.0),
            (4000, 12, 0.5),
            (9000, 10, 0.2),
            (3000, 50, 0.1),
            (20000, 3, 0.6),
            (1000, 60, 1.0),
            (12000, 8, 0.8),
        ]
        .into_iter()
        .enumerate()
        {
            let make = move || matrices::banded(rows, half, density, seed as u64);
            all.push(("banded", format!("{rows},{half},{density},{seed}"), Box::new(make)));
        }
        for (seed, (rows, count)) in
            [(800, 4), (4000, 6), (12000, 10), (2000, 30), (30000, 3), (5000, 16)].into_iter().enumerate()
        {
            all.push((
                "diagonals",
                format!("{rows},{count},{seed}"),
                Box::new(move || matrices::diagonals(rows, count, seed as u64)),
            ));
        }
        for (seed, (rows, per_row)) in
            [(500, 4), (4000, 3), (10000, 8), (2000, 32), (30000, 5), (800, 120), (6000, 16), (20000, 2)]
                .into_iter()
                .enumerate()
        {
            all.push((
                "uniform",
                format!("{rows},{per_row},{seed}"),
                Box::new(move || matrices::uniform(rows, per_row, seed as u64)),
            ));
        }
        for (seed, (rows, mean, exponent, longest)) in [
            (1000, 6.0, 2.2, 300),
            (8000, 4.0, 2.5, 1000),
            (20000, 3.0, 2.1, 4000),
            (4000, 12.0, 3.0, 400),
            (12000, 8.0, 2.3, 60),
            (2000, 30.0, 2.6, 2000),
            (15000, 6.0, 3.5, 100),
            (6000, 2.0, 2.1, 3000),
        ]
        .into_iter()
        .enumerate()
        {
            let make = move || matrices::power_law(rows, mean, exponent, longest, seed as u64);
            all.push(("power-law", format!("{rows},{mean},{exponent},{longest},{seed}"), Box::new(make)));
        }
        for (seed, (scale, per_row)) in
            [(9, 8), (11, 4), (12, 12), (13, 6), (14, 4), (14, 10), (10, 24), (15, 3)].into_iter().enumerate()
        {
            all.push((
                "rmat",
                format!("{scale},{per_row},{seed}"),
                Box::new(move || matrices::rmat(scale, per_row, seed as u64)),
            ));
        }
        for (seed, (count, size, per_row)) in
            [(100, 4, 3), (1000, 4, 4), (500, 8, 3), (2000, 3, 5), (200, 16, 4), (60, 32, 2), (3000, 6, 2)]
                .into_iter()
                .enumerate()
        {
            let make = move || matrices::blocks(count, size, per_row, seed as u64);
            all.push(("blocks", format!("{count},{size},{per_row},{seed}"), Box::new(make)));
        }
        for (seed, (side, mixing)) in
            [(20, 1), (60, 1), (60, 400), (120, 1), (120, 14400), (160, 100), (100, 30), (40, 1600)]
                .into_iter()
                .enumerate()
        {
            all.push((
                "mesh",
                format!("{side},{mixing},{seed}"),
                Box::new(move || matrices::mesh(side, mixing, 0.1, seed as u64)),
            ));
        }
        for (seed, (rows, per_row, full)) in
            [(2000, 3, 2), (8000, 5, 4), (15000, 2, 1), (4000, 8, 20)].into_iter().enumerate()
        {
            let make = move || matrices::with_full_rows(rows, per_row, full, seed as u64);
            all.push(("full-rows", format!("{rows},{per_row},{full},{seed}"), Box::new(make)));
        }
        let named = |(family, arguments, make): (_, String, Box<dyn Fn() -> Csr + Send + Sync>)| {
            Named::new(family, &arguments, move || Product::of(make(), 1))
        };
        all.into_iter().map(named).collect()
    }
}
