//! The classes of section 4.1 that move data.

use super::{GROUPS_1D, GROUPS_2D, Scale, Set, pitched};
use crate::affine::idx;
use crate::error::LoopError;
use crate::kernel::{Array, Axis, Expr, LoopKernel, declare, each, load, local, set, store};
use crate::size::size;
use tilewright_core::dtype::DType::F32;

/// `C = A B` by square tiles in shared memory, row-major: A is `n x m`, B is `m x l`. A group has `x` by `y` threads, each with
/// one element of C; tiles of A are `x` wide.
///
/// # Errors
/// A group that does not fit the generator.
pub fn matmul(group: (i64, i64)) -> Result<LoopKernel, LoopError> {
    product("matmul")
        .spread_2d(group)?
        .split("k", group.0, "ko", "ki")?
        .prefetch("a", "ta", Some("ko"), &["it", "ki"], 0)?
        .prefetch("b", "tb", Some("ko"), &["ki", "jt"], 0)?
        .unroll("ki")
}

/// `C = A B` with one element a thread and nothing in shared memory; all three are `n x n`.
///
/// # Errors
/// A group that does not fit the generator.
pub fn naive_matmul(group: (i64, i64)) -> Result<LoopKernel, LoopError> {
    product("naive_matmul").spread_2d(group)
}

fn product(name: &str) -> LoopKernel {
    let sum = local("sum");
    LoopKernel::new(name)
        .domain("i", "n")
        .domain("j", "l")
        .domain("k", "m")
        .array(Array::input("a", F32, [size("n"), pitched("m")]))
        .array(Array::input("b", F32, [size("m"), pitched("l")]))
        .array(Array::output("c", F32, [size("n"), pitched("l")]))
        .stmt(each(
            "i",
            [each(
                "j",
                [
                    declare("sum", F32, 0.0),
                    each("k", [set("sum", load("a", ["i", "k"]).fma(load("b", ["k", "j"]), sum.clone()))]),
                    store("c", ["i", "j"], sum),
                ],
            )],
        ))
}

/// `z = 3 x + 5 y` on every `stride`-th element.
///
/// # Errors
/// A group that does not fit the generator.
pub fn scale_and_add(stride: i64, group: i64) -> Result<LoopKernel, LoopError> {
    let at = || [idx("i") * stride];
    let shape = || [size("n") * stride];
    LoopKernel::new(format!("scale_and_add_{stride}"))
        .domain("i", "n")
        .array(Array::input("x", F32, shape()))
        .array(Array::input("y", F32, shape()))
        .array(Array::new("z", F32, shape(), tilewright_core::buffer::Role::InOut))
        .stmt(each("i", [store("z", at(), load("x", at()) * 3.0 + load("y", at()) * 5.0)]))
        .spread("i", group, Axis::X, "ig", "it")
}

/// How a matrix is transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transposing {
    /// Through tiles in shared memory: neighbouring threads read and write neighbouring elements.
    Tiled,
    /// Neighbouring threads write neighbouring elements, and read far apart.
    Reading,
    /// Neighbouring threads read neighbouring elements, and write far apart.
    Writing,
}

impl Transposing {
    /// Every way, with its name in reports.
    pub const ALL: [(&'static str, Self); 3] =
        [("tiled", Self::Tiled), ("reading", Self::Reading), ("writing", Self::Writing)];
}

/// The transpose of an `n x n` matrix. A group that goes through shared memory fetches a tile of `y` columns and `x` rows, and stores
/// it with rows and columns exchanged.
///
/// # Errors
/// A group that does not fit the generator.
pub fn transpose((name, how): (&str, Transposing), group: (i64, i64)) -> Result<LoopKernel, LoopError> {
    let matrix = || [size("n"), pitched("n")];
    let (to, from) = if how == Transposing::Writing { (["j", "i"], ["i", "j"]) } else { (["i", "j"], ["j", "i"]) };
    let kernel = LoopKernel::new(format!("transpose_{name}"))
        .domain("i", "n")
        .domain("j", "n")
        .array(Array::input("a", F32, matrix()))
        .array(Array::output("b", F32, matrix()))
        .stmt(each("i", [each("j", [store("b", to, load("a", from))])]))
        .spread_2d(group)?;
    if how == Transposing::Tiled { kernel.prefetch("a", "tile", None, &["jt", "it"], 1) } else { Ok(kernel) }
}

/// Names in reports of kernels that copy, and the arrays whose sums they store; where there is none, the index of each element.
pub const COPIES: [(&str, &[&str]); 3] = [("copy", &["a"]), ("sum of four", &["a", "b", "c", "d"]), ("index", &[])];

/// Copies arrays or sums of arrays, element by element: one of [`COPIES`].
///
/// # Errors
/// A group that does not fit the generator.
pub fn stride_one((name, inputs): (&str, &'static [&'static str]), group: i64) -> Result<LoopKernel, LoopError> {
    let mut kernel = LoopKernel::new(name.replace(' ', "_")).domain("i", "n");
    for input in inputs {
        kernel = kernel.array(Array::input(input, F32, ["n"]));
    }
    let value = inputs.iter().map(|array| load(array, ["i"])).reduce(|a, b| a + b);
    kernel
        .array(Array::output("to", F32, ["n"]))
        .stmt(each("i", [store("to", ["i"], value.unwrap_or(Expr::Index(idx("i"))))]))
        .spread("i", group, Axis::X, "ig", "it")
}

/// Sums that one thread takes.
const SUMS: i64 = 256;

/// Each thread adds up the elements `width i` to `width i + width - 1` of 256 columns of a column-major array: neighbouring
/// threads are `width` elements apart, and everything between them is read too.
///
/// # Errors
/// A group that does not fit the generator.
pub fn strided_sums(width: i64, group: i64) -> Result<LoopKernel, LoopError> {
    let parts = (0..width).map(|part| load("a", [idx("i") * width + part, idx("j")]));
    let sum = parts.reduce(|a, b| a + b).unwrap_or(Expr::Number(0.0));
    LoopKernel::new(format!("strided_sums_{width}"))
        .domain("i", "n")
        .domain("j", SUMS)
        .array(Array::input("a", F32, [size("n") * width, SUMS.into()]).column_major())
        .array(Array::output("out", F32, ["n"]))
        .stmt(each(
            "i",
            [declare("sum", F32, 0.0), each("j", [set("sum", local("sum") + sum)]), store("out", ["i"], local("sum"))],
        ))
        .spread("i", group, Axis::X, "ig", "it")
}

/// Groups as if each thread had one element of an `n x n` matrix, and nothing to do.
///
/// # Errors
/// A group that does not fit the generator.
pub fn empty(group: (i64, i64)) -> Result<LoopKernel, LoopError> {
    LoopKernel::new("empty").domain("i", "n").domain("j", "n").stmt(each("i", [each("j", [])])).spread_2d(group)
}

pub(super) fn add(set: &mut Set, scale: Scale) -> Result<(), LoopError> {
    let groups_2d = if scale == Scale::Tiny { &GROUPS_2D[1..2] } else { &GROUPS_2D[..] };
    let groups_1d = if scale == Scale::Tiny { &GROUPS_1D[..1] } else { &GROUPS_1D[..] };
    for &group in groups_2d {
        for t in 0..scale.cases(4) {
            let n = scale.of(6, 9) << t;
            for (name, m, l) in [("square", n, n), ("flat", n / 2, n), ("deep", n * 2, n), ("wide", n, n * 2)] {
                set.add("matmul", name, matmul(group), &[("n", n), ("m", m), ("l", l)])?;
            }
            set.add("naive_matmul", "", naive_matmul(group), &[("n", n), ("m", n), ("l", n)])?;
            let n = scale.of(7, 10) << t;
            for way in Transposing::ALL {
                set.add("transpose", way.0, transpose(way, group), &[("n", n)])?;
            }
        }
        for t in 0..scale.cases(6) {
            set.add("empty", "", empty(group), &[("n", scale.of(6, 9) << t)])?;
        }
    }
    for &group in groups_1d {
        for t in 0..scale.cases(4) {
            let n = (scale.of(15, 22) << t).max(group);
            for stride in 1..=3 {
                set.add("scale_and_add", &format!("stride {stride}"), scale_and_add(stride, group), &[("n", n)])?;
            }
            let n = (scale.of(10, 16) << t).max(group);
            set.add("stride_2_filled", "", strided_sums(2, group), &[("n", n)])?;
            set.add("stride_3_filled", "", strided_sums(3, group), &[("n", n)])?;
        }
        for t in 0..scale.cases(9) {
            let n = (scale.of(12, 18) << t).max(group);
            for what in COPIES {
                set.add("stride_1", what.0, stride_one(what, group), &[("n", n)])?;
            }
        }
    }
    Ok(())
}
