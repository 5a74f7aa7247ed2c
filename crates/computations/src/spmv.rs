//! y = A x with a sparse matrix, in six storage formats.

mod compressed;
mod look;
mod padded;

use crate::computation::{Computation, InputFeature, Named, Variant, Work};
use crate::generate::{self, matrices, rng};
use crate::matrix::Csr;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

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
            plain("avg_nz_per_row", |p| look::mean_length(&p.matrix)),
            plain("rl_sd", |p| look::lengths(&p.matrix).1),
            plain("max_deviation", |p| look::lengths(&p.matrix).2),
            // Rare long rows: a sample misses them, the number of entries does not.
            plain("avg_over_sample", |p| look::mean_length(&p.matrix) / look::lengths(&p.matrix).0.max(1e-3)),
            plain("dia_fill_in", |p| look::dia_fill(&p.matrix)),
            plain("ell_fill_in", |p| look::ell_fill(&p.matrix)),
            plain("sellp_fill_in", |p| look::sellp_fill(&p.matrix)),
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
        generate::collection("matrices", 243, |rng, seed| {
            let entries = generate::sized(rng, 800.0, 250_000.0);
            let (family, arguments, make) = draw(rng, entries, seed);
            Named::new(family, &arguments, move || Product::of(make(), 1))
        })
    }
}

/// A matrix with about so many entries.
fn draw(rng: &mut ChaCha8Rng, entries: f64, seed: u64) -> (&'static str, String, Make) {
    let within = |v: f64, least: f64| v.round().max(least) as usize;
    match seed % 9 {
        0 => {
            let points = [5, 7, 27][rng.random_range(0..3)];
            let side = within((entries / points as f64).powf(if points == 5 { 0.5 } else { 1.0 / 3.0 }), 4.0);
            ("stencil", format!("{points},{side}"), Box::new(move || matrices::stencil(points, side, 0.1)))
        }
        1 => {
            let half = within(generate::sized(rng, 1.0, 60.0), 1.0);
            let density = if rng.random_bool(0.5) { 1.0 } else { f64::from(rng.random_range(10..100)) / 100.0 };
            let rows = within(entries / (1.0 + 2.0 * half as f64 * density), 40.0);
            let make = move || matrices::banded(rows, half, density, seed);
            ("banded", format!("{rows},{half},{density},{seed}"), Box::new(make))
        }
        2 => {
            let count = within(generate::sized(rng, 3.0, 40.0), 3.0);
            let rows = within(entries / count as f64, 60.0);
            let make = move || matrices::diagonals(rows, count, seed);
            ("diagonals", format!("{rows},{count},{seed}"), Box::new(make))
        }
        3 => {
            let per_row = within(generate::sized(rng, 2.0, 120.0), 2.0);
            let rows = within(entries / per_row as f64, 20.0);
            let make = move || matrices::uniform(rows, per_row, seed);
            ("uniform", format!("{rows},{per_row},{seed}"), Box::new(make))
        }
        4 => {
            let mean = f64::from(rng.random_range(20..250)) / 10.0;
            let exponent = f64::from(rng.random_range(21..36)) / 10.0;
            let (rows, longest) = (within(entries / mean, 50.0), within(generate::sized(rng, 60.0, 4000.0), 1.0));
            let make = move || matrices::power_law(rows, mean, exponent, longest, seed);
            ("power-law", format!("{rows},{mean},{exponent},{longest},{seed}"), Box::new(make))
        }
        5 => {
            let per_row = within(generate::sized(rng, 3.0, 24.0), 3.0);
            let scale = (entries / per_row as f64).log2().round().max(6.0) as u32;
            let make = move || matrices::rmat(scale, per_row, seed);
            ("rmat", format!("{scale},{per_row},{seed}"), Box::new(make))
        }
        6 => {
            let (size, per_row) = ([2, 3, 4, 6, 8, 16, 32][rng.random_range(0..7)], rng.random_range(2..6));
            let count = within(entries / (size * size * per_row) as f64, 4.0);
            let make = move || matrices::blocks(count, size, per_row, seed);
            ("blocks", format!("{count},{size},{per_row},{seed}"), Box::new(make))
        }
        7 => {
            let side = within((entries / 7.0).sqrt(), 8.0);
            let mixing = [1, side, 30, side * side][rng.random_range(0..4)];
            let make = move || matrices::mesh(side, mixing, 0.1, seed);
            ("mesh", format!("{side},{mixing},{seed}"), Box::new(make))
        }
        _ => {
            let (per_row, full) = (rng.random_range(2..9), within(generate::sized(rng, 1.0, 20.0), 1.0));
            let rows = within(entries / (per_row + full) as f64, 100.0);
            let make = move || matrices::with_full_rows(rows, per_row, full, seed);
            ("full-rows", format!("{rows},{per_row},{full},{seed}"), Box::new(make))
        }
    }
}
