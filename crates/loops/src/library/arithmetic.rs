//! Kernels that only compute (section 4.1): no element is read, one is written by each thread.

use super::{GROUPS_2D, Scale, Set, pitched};
use crate::affine::idx;
use crate::error::LoopError;
use crate::kernel::{Array, Axis, Expr, LoopKernel, Unary, declare, each, local, set, store};
use crate::size::size;
use tilewright_core::dtype::DType::F32;

/// What is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Sums and differences.
    Add,
    /// Products.
    Mul,
    /// Quotients.
    Div,
    /// Powers of e.
    Exp,
    /// Reciprocals of square roots.
    Rsqrt,
    /// Fused multiply-adds, which the paper's compilers make of the others.
    Fma,
}

impl Operation {
    /// Every kind.
    pub const ALL: [Self; 6] = [Self::Add, Self::Mul, Self::Div, Self::Exp, Self::Rsqrt, Self::Fma];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Mul => "mul",
            Self::Div => "div",
            Self::Exp => "exp",
            Self::Rsqrt => "rsqrt",
            Self::Fma => "fma",
        }
    }

    /// The next value of a running number, from itself and the two constants of the thread: four operations of which none is
    /// the same in two iterations. Values stay near 1.
    fn step(self, x: Expr) -> Expr {
        let (p, q) = (|| local("p"), || local("q"));
        match self {
            Self::Add => x + p() - q() + q() - p(),
            Self::Mul => x * p() * q() * p() * q(),
            Self::Div => (Expr::Number(1.0) / (Expr::Number(1.0) / (x / p()))) / q(),
            Self::Exp => {
                let minus = |x: Expr| x.unary(Unary::Exp) - 1.75;
                minus(minus(minus(minus(x))))
            }
            Self::Rsqrt => x.unary(Unary::Rsqrt).unary(Unary::Rsqrt).unary(Unary::Rsqrt).unary(Unary::Rsqrt),
            Self::Fma => x.fma(p(), q()).fma(0.5, 0.25).fma(p(), q()).fma(0.5, 0.25),
        }
    }
}

/// Each thread of an `n x n` grid repeats eight operations of one kind `k` times, in two chains or in one, and stores their sum.
///
/// # Errors
/// A group that does not fit the generator.
pub fn arithmetic(what: Operation, one_chain: bool, (x, y): (i64, i64)) -> Result<LoopKernel, LoopError> {
    let steps = match one_chain {
        true => vec![set("x", what.step(what.step(local("x"))))],
        false => vec![set("x", what.step(local("x"))), set("y", what.step(local("y")))],
    };
    let chained = if one_chain { "_chained" } else { "" };
    // Near 1, different in every thread, so that nothing can be computed once for all.
    let near_one = |scale: f64| Expr::Index(idx("i") + idx("j")) * scale + 1.0;
    LoopKernel::new(format!("arithmetic_{}{chained}", what.name()))
        .domain("i", "n")
        .domain("j", "n")
        .domain("r", "k")
        .array(Array::output("out", F32, [size("n"), pitched("n")]))
        .stmt(each(
            "i",
            [each(
                "j",
                [
                    declare("p", F32, near_one(1e-7)),
                    declare("q", F32, Expr::Number(1.0) / local("p")),
                    declare("x", F32, local("p")),
                    declare("y", F32, local("q")),
                    each("r", steps),
                    store("out", ["i", "j"], local("x") + local("y")),
                ],
            )],
        ))
        .spread("j", x, Axis::X, "jg", "jt")?
        .spread("i", y, Axis::Y, "ig", "it")
}

pub(super) fn add(into: &mut Set, scale: Scale) -> Result<(), LoopError> {
    let groups = if scale == Scale::Tiny { &GROUPS_2D[1..2] } else { &GROUPS_2D[..] };
    for &group in groups {
        for what in Operation::ALL {
            for t in 0..scale.cases(3) {
                let n = scale.of(5, 9) << t;
                for m in 0..scale.cases(3) {
                    let k = if scale == Scale::Tiny { 4 } else { 32 << m };
                    into.add("arithmetic", what.name(), arithmetic(what, false, group), &[("n", n), ("k", k)])?;
                }
                if t == 0 {
                    let name = format!("{} in one chain", what.name());
                    let k = if scale == Scale::Tiny { 4 } else { 64 };
                    into.add("arithmetic", &name, arithmetic(what, true, group), &[("n", n), ("k", k)])?;
                }
            }
        }
    }
    Ok(())
}
