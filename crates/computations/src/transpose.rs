//! In-place transposition by Catanzaro, Keller and Garland's decomposition: columns are rotated, rows permuted, columns
//! permuted.

mod columns;
mod rows;
mod skinny;

use crate::description::{DataFeature, Description, Routine, Variant, exactly, flag, size, spec};
use crate::device::Device;
use crate::source::{Field, Generator};
use crate::spmv::fill_vector;
use tilewright_core::buffer::{Buffer, BufferSpec, Buffers, ExpectedBuffer, Filling, Role};
use tilewright_core::computation::Work;
use tilewright_core::dtype::DType;

/// The shape of a dense matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Dense {
    /// Number of rows, at least 1.
    pub rows: usize,
    /// Number of columns, at least 1.
    pub cols: usize,
    /// Whether rows stand one after another; otherwise columns do.
    pub row_major: bool,
}

impl Dense {
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

/// Transposing in place: `data`, whose rows or columns stand one after another, and afterwards those of the transpose.
pub struct Transpose;

/// What moves the elements of a view, with the columns that are moved together.
type How = fn(&mut [f64], Shape, &Device, usize);

/// `turned`: the view has as many rows as the storage has columns.
fn prepare(d: &Dense, turned: bool, how: How, params: &[i64]) -> Routine {
    let (m, n) = d.storage();
    let shape = if turned { Shape::of(n, m) } else { Shape::of(m, n) };
    let width = params.first().map_or(1, |w| w.unsigned_abs() as usize);
    Box::new(move |device, _, data| {
        if shape.m > 1 && shape.n > 1 {
            how(data.as_mut_slice(), shape, device, width);
        }
        Ok(())
    })
}

/// Columns to rows: rotate, permute rows, permute columns.
fn c2r(data: &mut [f64], s: Shape, device: &Device, width: usize) {
    if !s.coprime() {
        columns::each(data, s, device, columns::Step::Rotate, width);
    }
    rows::permute(data, s, device, false);
    columns::each(data, s, device, columns::Step::Gather, width);
}

/// Rows to columns: the inverse of every step of [`c2r`], the last first.
fn r2c(data: &mut [f64], s: Shape, device: &Device, width: usize) {
    columns::each(data, s, device, columns::Step::Scatter, width);
    rows::permute(data, s, device, true);
    if !s.coprime() {
        columns::each(data, s, device, columns::Step::RotateBack, width);
    }
}

/// Rows of a skinny view are at most this long: a window of as many rows stays in the first cache.
const SKINNY: &str = "a window of as many rows stays in the first cache";

impl Description for Transpose {
    const NAME: &'static str = "transpose";
    const FIELD: &'static str = "matrix";
    const DRAWN: (f64, f64) = (256.0, 2e6);
    const ELEMENT_BYTES: f64 = 16.0;
    const BUFFERS: (f64, f64) = (0.0, 8.0);
    type Data = Dense;

    const GENERATORS: &'static [Generator<Dense>] = &[Generator {
        name: "dense",
        fields: &[
            Field::whole("rows", 1, 1 << 24),
            Field::whole("cols", 1, 1 << 24),
            Field::one_of("row_major", &[0.0, 1.0]).or(1.0),
        ],
        rows: |_| 0.0,
        elements: |n| n.real("rows") * n.real("cols"),
        make: |n| Dense { rows: n.whole("rows"), cols: n.whole("cols"), row_major: n.whole("row_major") == 1 },
        draw: |dice, elements| {
            let total = elements.max(4.0).log2();
            let rows = match dice.below(6) {
                0 | 1 => total / 2.0 + dice.between(-1.5, 1.5),
                2 | 3 => dice.between(0.0, total),
                4 => dice.between(1.0, 5.0),
                _ => total - dice.between(1.0, 5.0),
            };
            let whole = |log: f64| log.exp2().round().max(1.0);
            let (mut rows, mut cols) = (whole(rows), whole(total - rows));
            if dice.chance(0.4) {
                let factor = dice.pick([2.0, 3.0, 4.0, 8.0]);
                (rows, cols) = ((rows / factor).ceil() * factor, (cols / factor).ceil() * factor);
            }
            vec![rows, cols, f64::from(u8::from(dice.chance(0.7)))]
        },
    }];
    const AWKWARD: &'static [&'static str] = &[
        "matrix=dense,rows=1,cols=1,row_major=1",
        "matrix=dense,rows=1,cols=9,row_major=0",
        "matrix=dense,rows=2,cols=3,row_major=1",
        "matrix=dense,rows=97,cols=5,row_major=0",
        "matrix=dense,rows=12,cols=18,row_major=1",
        "matrix=dense,rows=64,cols=65,row_major=1",
        "matrix=dense,rows=71,cols=71,row_major=0",
    ];
    const FEATURES: &'static [DataFeature<Dense>] = &[
        size("m", |d| d.rows as f64),
        size("n", |d| d.cols as f64),
        flag("row_major", |d| f64::from(u8::from(d.row_major))),
        // What stands one after another: layout and sizes in one.
        size("lines", |d| d.storage().0 as f64),
        size("line_length", |d| d.storage().1 as f64),
        size("common", |d| gcd(d.rows, d.cols) as f64),
        flag("coprime", |d| f64::from(u8::from(gcd(d.rows, d.cols) == 1))),
    ];

    fn symbols(d: &Dense) -> Vec<(&'static str, i64)> {
        vec![("lines", d.storage().0 as i64), ("line_length", d.storage().1 as i64)]
    }

    fn work(d: &Dense) -> Work {
        Work { flops: 0.0, bytes: 16.0 * (d.rows * d.cols) as f64 }
    }

    fn specs(d: &Dense) -> Vec<BufferSpec> {
        vec![spec("data", DType::F64, d.rows * d.cols, Role::InOut)]
    }

    fn fill(_: &Dense, filling: Filling, seed: u64, buffers: &mut [Buffer]) {
        let data = buffers[0].as_mut_slice::<f64>();
        fill_vector(filling, seed, data);
        if filling == Filling::Special {
            data.iter_mut().step_by(5).for_each(|x| *x = f64::NAN);
        }
    }

    fn reference(d: &Dense, before: &Buffers) -> ExpectedBuffer {
        let ((m, n), data) = (d.storage(), before[0].as_slice::<f64>());
        exactly(0, (0..n).flat_map(|j| (0..m).map(move |i| data[i * n + j])).collect())
    }

    fn variants() -> Vec<Variant<Dense>> {
        let moved = |variant: Variant<Dense>| variant.param("width", &columns::WIDTHS, 8);
        let skinny_c2r = Variant::new("skinny-c2r", |d, p| prepare(d, false, skinny::c2r, p));
        let skinny_r2c = Variant::new("skinny-r2c", |d, p| prepare(d, true, skinny::r2c, p));
        vec![
            moved(Variant::new("c2r", |d, p| prepare(d, false, c2r, p))),
            moved(Variant::new("r2c", |d, p| prepare(d, true, r2c, p))),
            skinny_c2r.rule("skinny", "line_length <= 64", SKINNY),
            skinny_r2c.rule("skinny", "lines <= 64", SKINNY),
        ]
    }
}
