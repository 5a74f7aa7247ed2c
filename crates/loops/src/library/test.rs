//! The test kernels of section 5.

use super::{PITCH, Scale, Set, measurement, pitched};
use crate::affine::{Affine, idx};
use crate::error::LoopError;
use crate::kernel::{Array, Axis, LoopKernel, Unary, declare, each, load, local, set, store};
use crate::size::{Size, size};
use tilewright_core::dtype::DType::F32;

/// A five-point stencil with a quadratic source term on an `n x n` matrix; tiles with their halo are fetched into shared
/// memory.
///
/// # Errors
/// A group that does not fit the generator.
pub fn finite_difference(group: (i64, i64)) -> Result<LoopKernel, LoopError> {
    let u = |di: i64, dj: i64| load("u", [idx("i") + di, idx("j") + dj]);
    let around = u(0, 1) + u(2, 1) + u(1, 0) + u(1, 2);
    let source = local("here") * local("here") * 0.5;
    let body = [declare("here", F32, u(1, 1)), store("to", ["i", "j"], (around - local("here") * 4.0) * 0.25 + source)];
    LoopKernel::new("finite_difference")
        .domain("i", "n")
        .domain("j", "n")
        .array(Array::input("u", F32, [size("n") + 2, size("n") + 2 + PITCH]))
        .array(Array::output("to", F32, [size("n"), pitched("n")]))
        .stmt(each("i", [each("j", body)]))
        .spread_2d(group)?
        .prefetch("u", "tile", None, &["it", "jt"], 0)
}

/// The tiled product of an `n x m` and an `m x n` matrix where `m` is an eighth of `n`.
///
/// # Errors
/// A group that does not fit the generator.
pub fn skinny_matmul(group: (i64, i64)) -> Result<LoopKernel, LoopError> {
    let mut kernel = measurement::matmul(group)?;
    kernel.name = "skinny_matmul".to_owned();
    Ok(kernel)
}

/// Radius of the filters.
const RADIUS: i64 = 3;

/// Three filters over three images of three colours, `n x n` each; the colour is the fastest index.
///
/// # Errors
/// A group that does not fit the generator.
pub fn convolution(group: (i64, i64)) -> Result<LoopKernel, LoopError> {
    let width = 2 * RADIUS + 1;
    let image = load("image", [idx("p"), idx("i") + idx("di"), idx("j") + idx("dj"), idx("c")]);
    let filter = load("filter", [idx("f"), idx("di"), idx("dj"), idx("c")]);
    let body = [
        declare("sum", F32, 0.0),
        each("di", [each("dj", [each("c", [set("sum", image.fma(filter, local("sum")))])])]),
        store("out", [idx("p"), idx("f"), idx("i"), idx("j")], local("sum")),
    ];
    let padded = || size("n") + (width - 1);
    LoopKernel::new("convolution")
        .domain("p", 3)
        .domain("f", 3)
        .domain("i", "n")
        .domain("j", "n")
        .domain("di", width)
        .domain("dj", width)
        .domain("c", 3)
        .array(Array::input("image", F32, [Size::from(3), padded(), padded() + PITCH, 3.into()]))
        .array(Array::input("filter", F32, [3, width, width, 3]))
        .array(Array::output("out", F32, [Size::from(3), 3.into(), size("n"), pitched("n")]))
        .stmt(each("i", [each("j", [each("p", [each("f", body)])])]))
        .spread_2d(group)?
        .unroll("c")
}

/// For each of `n` positions the sum of the inverses of the distances to all of them; a little is added to squared distances,
/// since one of them is zero. Positions are fetched in blocks of a group.
///
/// # Errors
/// A group that does not fit the generator.
pub fn n_body(group: i64) -> Result<LoopKernel, LoopError> {
    let at = |d: i64, i: &'static str| load("x", [Affine::from(d), idx(i)]);
    let away = |name: &'static str, from: &'static str, d: i64| declare(name, F32, local(from) - at(d, "j"));
    let square = |name: &'static str| local(name) * local(name);
    let distance = square("d0") + square("d1") + square("d2") + 1e-4;
    let step = [
        away("d0", "x0", 0),
        away("d1", "x1", 1),
        away("d2", "x2", 2),
        set("sum", local("sum") + distance.unary(Unary::Rsqrt)),
    ];
    let body = [
        declare("x0", F32, load("y", [Affine::from(0), idx("i")])),
        declare("x1", F32, load("y", [Affine::from(1), idx("i")])),
        declare("x2", F32, load("y", [Affine::from(2), idx("i")])),
        declare("sum", F32, 0.0),
        each("j", step),
        store("out", ["i"], local("sum")),
    ];
    LoopKernel::new("n_body")
        .domain("i", "n")
        .domain("j", "n")
        .array(Array::input("x", F32, [Size::from(3), "n".into()]).column_major())
        // The same positions under another name: one is fetched in blocks, the other read once.
        .array(Array::input("y", F32, [Size::from(3), "n".into()]).column_major())
        .array(Array::output("out", F32, ["n"]))
        .stmt(each("i", body))
        .spread("i", group, Axis::X, "ig", "it")?
        .split("j", group, "jo", "ji")?
        .prefetch("x", "tile", Some("jo"), &["ji"], 0)
}

pub(super) fn add(set: &mut Set, scale: Scale) -> Result<(), LoopError> {
    for t in 0..scale.cases(4) {
        let letter = ["a", "b", "c", "d"][t as usize % 4];
        let n = scale.of(7, 11) << t;
        set.add("finite_difference", letter, finite_difference((16, 16)), &[("n", n)])?;
        let n = if scale == Scale::Tiny { 64 } else { scale.of(7, 10) << t };
        set.add("skinny_matmul", letter, skinny_matmul((16, 16)), &[("n", n), ("m", (n / 8).max(16)), ("l", n)])?;
        let n = if scale == Scale::Tiny { 16 } else { scale.of(5, 8) << t };
        set.add("convolution", letter, convolution((16, 16)), &[("n", n)])?;
        let n = (scale.of(9, 12) << t).max(256);
        set.add("n_body", letter, n_body(256), &[("n", n)])?;
    }
    Ok(())
}
