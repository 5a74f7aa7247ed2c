//! Kernels that only compute (section 4.1): no element is read, one is written by each thread.

use super::{GROUPS_2D, Scale, Set, pitched};
use crate::affine::idx;
use crate::error::LoopError;
use crate::kernel::{Array, Expr, LoopKernel, Unary, declare, each, local, set, store};
use crate::size::size;
use tilewright_core::dtype::DType::F32;

/// What is repeated.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// The name in reports.
    pub name: &'static str,
    /// The next value of a running number, from itself and the two constants of the thread: four operations of which none is the
    /// same in two iterations. Values stay near 1.
    step: fn(Expr) -> Expr,
}

impl Operation {
    /// Every kind; the paper's compilers make fused multiply-adds of the others.
    pub const ALL: [Self; 6] = [
        Self { name: "add", step: |x| x + local("p") - local("q") + local("q") - local("p") },
        Self { name: "mul", step: |x| x * local("p") * local("q") * local("p") * local("q") },
        Self { name: "div", step: |x| (Expr::Number(1.0) / (Expr::Number(1.0) / (x / local("p")))) / local("q") },
        Self { name: "exp", step: |x| (0..4).fold(x, |x, _| x.unary(Unary::Exp) - 1.75) },
        Self { name: "rsqrt", step: |x| (0..4).fold(x, |x, _| x.unary(Unary::Rsqrt)) },
        Self { name: "fma", step: |x| (0..2).fold(x, |x, _| x.fma(local("p"), local("q")).fma(0.5, 0.25)) },
    ];
}

/// Each thread of an `n x n` grid repeats eight operations of one kind `k` times, in two chains or in one, and stores their sum.
///
/// # Errors
/// A group that does not fit the generator.
pub fn arithmetic(what: Operation, one_chain: bool, group: (i64, i64)) -> Result<LoopKernel, LoopError> {
    let steps = match one_chain {
        true => vec![set("x", (what.step)((what.step)(local("x"))))],
        false => ["x", "y"].map(|name| set(name, (what.step)(local(name)))).into(),
    };
    let chained = if one_chain { "_chained" } else { "" };
    // Near 1, different in every thread, so that nothing can be computed once for all.
    let near_one = |scale: f64| Expr::Index(idx("i") + idx("j")) * scale + 1.0;
    LoopKernel::new(format!("arithmetic_{}{chained}", what.name))
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
        .spread_2d(group)
}

pub(super) fn add(into: &mut Set, scale: Scale) -> Result<(), LoopError> {
    let groups = if scale == Scale::Tiny { &GROUPS_2D[1..2] } else { &GROUPS_2D[..] };
    for &group in groups {
        for what in Operation::ALL {
            for t in 0..scale.cases(3) {
                let n = scale.of(5, 9) << t;
                for m in 0..scale.cases(3) {
                    let k = if scale == Scale::Tiny { 4 } else { 32 << m };
                    into.add("arithmetic", what.name, arithmetic(what, false, group), &[("n", n), ("k", k)])?;
                }
                if t == 0 {
                    let name = format!("{} in one chain", what.name);
                    let k = if scale == Scale::Tiny { 4 } else { 64 };
                    into.add("arithmetic", &name, arithmetic(what, true, group), &[("n", n), ("k", k)])?;
                }
            }
        }
    }
    Ok(())
}
