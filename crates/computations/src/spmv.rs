//! y = A x with a sparse matrix, in six storage formats.

mod compressed;
pub(crate) mod generators;
mod look;
mod padded;

use crate::description::{DataFeature, Description, Variant, size, spec};
use crate::generate::rng;
use crate::matrix::{Csr, error_bound, market};
use crate::source::{Fault, Generator};
use rand::Rng;
use tilewright_core::buffer::{Buffer, BufferSpec, Buffers, ExpectedBuffer, Filling, Role};
use tilewright_core::computation::Work;
use tilewright_core::dtype::DType;

/// Sparse matrix times vector: `starts`, `columns` and `values` of the matrix by rows, `x`, and `y`.
pub struct Spmv;

/// Stored elements over entries beyond which padding does not apply.
const FILL: &str = "padding multiplies the entries by 20 at most";
/// As many elements as 512 MB hold.
const SIZE: &str = "fewer than 64 million elements are stored";

/// A variant that pads: `stored` names how many elements it stores.
fn padded(variant: Variant<Csr>, fill: &'static str, most: &'static str) -> Variant<Csr> {
    variant.rule("fill", fill, FILL).rule("stored", most, SIZE)
}

/// The buffers of a matrix by rows.
pub(crate) fn matrix_specs(m: &Csr) -> Vec<BufferSpec> {
    vec![
        spec("starts", DType::I32, m.starts.len(), Role::In),
        spec("columns", DType::I32, m.nonzeros(), Role::In),
        spec("values", DType::F64, m.nonzeros(), Role::In),
    ]
}

/// Fills the first three buffers.
pub(crate) fn fill_matrix(m: &Csr, buffers: &mut [Buffer]) {
    if let [starts, columns, values, ..] = buffers {
        starts.as_mut_slice::<u32>().copy_from_slice(&m.starts);
        columns.as_mut_slice::<u32>().copy_from_slice(&m.columns);
        values.as_mut_slice::<f64>().copy_from_slice(&m.values);
    }
}

/// A vector of seeded numbers in [-1, 1), or of small integers. There is no special one: padded formats multiply zeros with what
/// stands anywhere in the vector, so products are defined for finite vectors only.
pub(crate) fn fill_vector(filling: Filling, seed: u64, x: &mut [f64]) {
    let mut rng = rng("vector", seed);
    x.fill_with(|| match filling {
        Filling::Exact => f64::from(rng.random_range(-4i32..=4)),
        Filling::Real | Filling::Special => rng.random_range(-1.0..1.0),
    });
}

impl Description for Spmv {
    const NAME: &'static str = "spmv";
    const FIELD: &'static str = "matrix";
    const DRAWN: (f64, f64) = (800.0, 1e6);
    const ELEMENT_BYTES: f64 = 14.0;
    /// Where a row begins and two vectors; a column and a value.
    const BUFFERS: (f64, f64) = (20.0, 12.0);
    type Data = Csr;

    const GENERATORS: &'static [Generator<Csr>] = generators::ALL;
    const AWKWARD: &'static [&'static str] = &[
        "matrix=sparse,rows=0,cols=0,entries=0,seed=1",
        "matrix=sparse,rows=1,cols=1,entries=1,seed=1",
        "matrix=sparse,rows=1,cols=3,entries=0,seed=1",
        "matrix=sparse,rows=5,cols=0,entries=0,seed=1",
        "matrix=sparse,rows=7,cols=3,entries=3,seed=2",
        "matrix=sparse,rows=2,cols=19,entries=40,seed=3",
        "matrix=full-rows,rows=37,per_row=2,full=1,seed=3",
        "matrix=diagonals,rows=67,count=5,seed=1",
        "matrix=uniform,rows=31,per_row=5,seed=31",
    ];
    const FEATURES: &'static [DataFeature<Csr>] = &[
        size("rows", |m| m.rows() as f64),
        size("nonzeros", |m| m.nonzeros() as f64),
        size("avg_nz_per_row", look::mean_length),
        size("rl_sd", |m| look::lengths(m).1),
        size("max_deviation", |m| look::lengths(m).2),
        // Rare long rows: a sample misses them, the number of entries does not.
        size("avg_over_sample", |m| look::mean_length(m) / look::lengths(m).0.max(1e-3)),
        size("dia_fill_in", look::dia_fill),
        size("ell_fill_in", look::ell_fill),
        size("sellp_fill_in", look::sellp_fill),
    ];

    fn read(file: &[u8]) -> Option<Result<Csr, Fault>> {
        Some(market::parse(file))
    }

    fn symbols(m: &Csr) -> Vec<(&'static str, i64)> {
        let whole = |x: usize| i64::try_from(x).unwrap_or(i64::MAX);
        let entries = m.nonzeros().max(1);
        // Counting diagonals ends where there are too many in any case.
        let most = padded::MOST_FILL * entries / m.rows().max(1) + 1;
        vec![
            ("entries", whole(entries)),
            ("dia_stored", whole(m.diagonals_up_to(most).len().saturating_mul(m.rows()))),
            ("ell_stored", whole(m.longest().saturating_mul(m.rows()))),
            ("sellp_stored", whole(padded::sliced(m))),
        ]
    }

    fn work(m: &Csr) -> Work {
        let (entries, rows) = (m.nonzeros() as f64, m.rows() as f64);
        Work { flops: 2.0 * entries, bytes: 12.0 * entries + 12.0 * rows + 8.0 * m.cols as f64 }
    }

    fn specs(m: &Csr) -> Vec<BufferSpec> {
        let mut all = matrix_specs(m);
        all.push(spec("x", DType::F64, m.cols, Role::In));
        all.push(spec("y", DType::F64, m.rows(), Role::Out));
        all
    }

    fn fill(m: &Csr, filling: Filling, seed: u64, buffers: &mut [Buffer]) {
        fill_matrix(m, buffers);
        fill_vector(filling, seed, buffers[3].as_mut_slice());
    }

    fn reference(m: &Csr, before: &Buffers) -> ExpectedBuffer {
        let x = before[3].as_slice::<f64>();
        let (values, bounds) = (0..m.rows()).map(|row| m.exact_product(row, x, 0.0)).map(error_bound).unzip();
        ExpectedBuffer { index: 4, values, bounds }
    }

    fn variants() -> Vec<Variant<Csr>> {
        let banded = |variant: Variant<Csr>| variant.param("band", &padded::BANDS, padded::BAND);
        let dia = banded(Variant::new("dia", padded::dia));
        let ell = banded(Variant::new("ell", padded::ell));
        let sellp = Variant::new("sellp", |m, _| padded::sellp(m));
        vec![
            Variant::new("csr", |m, _| compressed::by_rows(m, false)),
            Variant::new("csr-vector", |m, _| compressed::by_rows(m, true)),
            padded(dia, "dia_stored <= 20 * entries", "dia_stored < 64000000"),
            padded(ell, "ell_stored <= 20 * entries", "ell_stored < 64000000"),
            padded(sellp, "sellp_stored <= 20 * entries", "sellp_stored < 64000000"),
            Variant::new("coo", |m, _| compressed::coo(m)),
        ]
    }
}
