//! In-place transposition by Catanzaro, Keller and Garland's decomposition: columns are rotated, rows permuted, columns
//! permuted.

mod columns;
mod rows;
mod skinny;

use crate::computation::{Computation, Failure, InputFeature, Named, Prepared, Ready, Variant, Work};
use crate::device::Device;
use crate::generate::{self, rng};
use rand::Rng;

/// A dense matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    /// Number of rows, at least 1.
    pub rows: usize,
    /// Number of columns, at least 1.
    pub cols: usize,
    /// Whether rows stand one after another; otherwise columns do.
    pub row_major: bool,
    /// The elements.
    pub data: Vec<f64>,
}

impl Dense {
    /// A seeded matrix.
    pub fn random(rows: usize, cols: usize, row_major: bool, seed: u64) -> Self {
        let mut rng = rng("dense", seed);
        let data = (0..rows * cols).map(|_| rng.random_range(-1.0..1.0)).collect();
        Self { rows, cols, row_major, data }
    }

    /// Length and number of what stands one after another.
    fn storage(&self) -> (usize, usize) {
        if self.row_major { (self.rows, self.cols) } else { (self.cols, self.rows) }
    }
}

/// What a view of `m` rows of `n` elements needs to know.
#[derive(Clone, Copy, Debug)]
struct Shape {
    m: usize,
    n: usize,
    /// `m` over the greatest common divisor.
    a: usize,
    /// `n` over the greatest common divisor.
    b: usize,
}

impl Shape {
    fn of(m: usize, n: usize) -> Self {
        let c = gcd(m, n).max(1);
        Self { m, n, a: (m / c).max(1), b: (n / c).max(1) }
    }

    fn coprime(&self) -> bool {
        self.a == self.m
    }

    /// `(i n - i / a) mod m` for every row: where columns take their elements from, but for the column's number.
    fn bases(&self) -> Vec<u32> {
        (0..self.m).map(|i| ((i * self.n - i / self.a) % self.m) as u32).collect()
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Rows of a skinny view are at most this long: a window of as many rows stays in the first cache.
pub const SKINNY: usize = 64;

/// Transposing in place.
pub struct Transpose;

struct Run<'a> {
    input: &'a Dense,
    data: Vec<f64>,
    shape: Shape,
    how: fn(&mut [f64], Shape, &Device),
}

/// `turned`: the view has as many rows as the storage has columns.
fn prepare(input: &Dense, turned: bool, how: fn(&mut [f64], Shape, &Device)) -> Ready<'_, Vec<f64>> {
    let (m, n) = input.storage();
    let shape = if turned { Shape::of(n, m) } else { Shape::of(m, n) };
    Box::new(Run { input, data: input.data.clone(), shape, how })
}

impl Prepared<Vec<f64>> for Run<'_> {
    fn reset(&mut self) {
        self.data.copy_from_slice(&self.input.data);
    }

    fn again(&self) -> bool {
        false
    }

    fn run(&mut self, device: &Device) -> Result<(), Failure> {
        if self.shape.m > 1 && self.shape.n > 1 {
            (self.how)(&mut self.data, self.shape, device);
        }
        Ok(())
    }

    fn output(&self) -> Vec<f64> {
        self.data.clone()
    }
}

/// Columns to rows: rotate, permute rows, permute columns.
fn c2r(data: &mut [f64], s: Shape, device: &Device) {
    if !s.coprime() {
        columns::each(data, s, device, columns::Step::Rotate);
    }
    rows::permute(data, s, device, false);
    columns::each(data, s, device, columns::Step::Gather);
}

/// Rows to columns: the inverse of every step of [`c2r`], the last first.
fn r2c(data: &mut [f64], s: Shape, device: &Device) {
    columns::each(data, s, device, columns::Step::Scatter);
    rows::permute(data, s, device, true);
    if !s.coprime() {
        columns::each(data, s, device, columns::Step::RotateBack);
    }
}

fn work(d: &Dense, passes: f64) -> Work {
    let n = d.data.len() as f64;
    Work { streamed: 2.0 * passes * n, cached: 2.0 * passes * n, other: 3.0 * passes * n, ..Work::default() }
}

fn passes(d: &Dense) -> f64 {
    if gcd(d.rows, d.cols) == 1 { 2.0 } else { 3.0 }
}

impl Computation for Transpose {
    const NAME: &'static str = "transpose";
    type Input = Dense;
    type Output = Vec<f64>;

    fn variants() -> Vec<Variant<Dense, Vec<f64>>> {
        const LONG: &str = "rows of at most 64 elements";
        vec![
            Variant {
                name: "c2r",
                legal: |_| Ok(()),
                prepare: |d| prepare(d, false, c2r),
                work: |d| work(d, passes(d)),
            },
            Variant {
                name: "r2c",
                legal: |_| Ok(()),
                prepare: |d| prepare(d, true, r2c),
                work: |d| work(d, passes(d)),
            },
            Variant {
                name: "skinny-c2r",
                legal: |d| if d.storage().1 <= SKINNY { Ok(()) } else { Err(LONG) },
                prepare: |d| prepare(d, false, skinny::c2r),
                work: |d| work(d, passes(d) + 1.0),
            },
            Variant {
                name: "skinny-r2c",
                legal: |d| if d.storage().0 <= SKINNY { Ok(()) } else { Err(LONG) },
                prepare: |d| prepare(d, true, skinny::r2c),
                work: |d| work(d, passes(d) + 1.0),
            },
        ]
    }

    fn features() -> Vec<InputFeature<Dense>> {
        vec![
            InputFeature { name: "m", flag: false, of: |d| d.rows as f64 },
            InputFeature { name: "n", flag: false, of: |d| d.cols as f64 },
            InputFeature { name: "row_major", flag: true, of: |d| f64::from(u8::from(d.row_major)) },
            // What stands one after another: layout and sizes in one.
            InputFeature { name: "lines", flag: false, of: |d| d.storage().0 as f64 },
            InputFeature { name: "line_length", flag: false, of: |d| d.storage().1 as f64 },
            InputFeature { name: "common", flag: false, of: |d| gcd(d.rows, d.cols) as f64 },
            InputFeature { name: "coprime", flag: true, of: |d| f64::from(u8::from(gcd(d.rows, d.cols) == 1)) },
        ]
    }

    fn reference(d: &Dense) -> Vec<f64> {
        let (m, n) = d.storage();
        (0..n).flat_map(|j| (0..m).map(move |i| d.data[i * n + j])).collect()
    }

    fn judge(_: &Dense, expected: &Vec<f64>, found: &Vec<f64>) -> Result<(), String> {
        let at = expected.iter().zip(found).position(|(e, f)| e.to_bits() != f.to_bits());
        let at = at.or_else(|| (expected.len() != found.len()).then_some(found.len()));
        at.map_or(Ok(()), |at| Err(format!("differs at {at}")))
    }

    fn inputs() -> Vec<Named<Dense>> {
        generate::collection("shapes", 240, |rng, seed| {
            // Logarithms of the sizes are uniform: from 2^8 to 2^17 elements.
            let total = rng.random_range(8.0..17.0f64);
            let (family, rows) = match seed % 3 {
                0 => ("square-like", total / 2.0 + rng.random_range(-1.5..1.5)),
                1 => ("any", rng.random_range(1.0..total - 1.0)),
                _ if rng.random_bool(0.5) => ("skinny", rng.random_range(1.0..5.0)),
                _ => ("skinny", total - rng.random_range(1.0..5.0)),
            };
            let whole = |log: f64| log.exp2().round().max(2.0) as usize;
            let (mut rows, mut cols) = (whole(rows), whole(total - rows));
            if rng.random_bool(0.4) {
                let factor = [2, 3, 4, 8][rng.random_range(0..4)];
                (rows, cols) = (rows.div_ceil(factor) * factor, cols.div_ceil(factor) * factor);
            }
            let row_major = rng.random_bool(0.7);
            let what = format!("{rows},{cols},{row_major},{seed}");
            Named::new(family, &what, move || Dense::random(rows, cols, row_major, seed))
        })
    }
}
