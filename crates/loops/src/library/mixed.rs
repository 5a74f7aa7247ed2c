//! Kernels that do several things at a time: what goes on side by side in a core cannot be told from kernels that do one thing.

use super::{GROUPS_1D, Scale, Set};
use crate::affine::{Affine, idx};
use crate::error::LoopError;
use crate::kernel::{Array, Axis, Expr, LoopKernel, Mapping, Unary, declare, each, load, local, set, store};
use crate::size::{Size, size};
use tilewright_core::dtype::DType::F32;

/// What is done with every loaded element, beside multiply-adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Nothing.
    Nothing,
    /// A quotient.
    Quotient,
    /// A reciprocal of a square root.
    Rsqrt,
    /// A power of e.
    Exp,
}

impl Beside {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Nothing, Self::Quotient, Self::Rsqrt, Self::Exp];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "loads",
            Self::Quotient => "loads and div",
            Self::Rsqrt => "loads and rsqrt",
            Self::Exp => "loads and exp",
        }
    }

    /// A summand from an element; none depends on the one before, so that only their sum is a chain.
    fn of(self, element: Expr) -> Option<Expr> {
        let positive = || element.clone().fma(element.clone(), 1.0);
        match self {
            Self::Nothing => None,
            Self::Quotient => Some(Expr::Number(1.0) / positive()),
            Self::Rsqrt => Some(positive().unary(Unary::Rsqrt)),
            Self::Exp => Some(element.unary(Unary::Exp)),
        }
    }
}

/// Each thread reads a column of `m` elements `k` times, the same ones as all groups, and does `fmas` multiply-adds in two chains
/// and one other operation with each.
///
/// # Errors
/// A group that does not fit the generator.
pub fn mixed(beside: Beside, fmas: usize, group: i64) -> Result<LoopKernel, LoopError> {
    let mut step = vec![declare("v", F32, load("a", ["r", "it"]))];
    for chain in (0..fmas).map(|i| ["x", "y"][i % 2]) {
        step.push(set(chain, local(chain).fma(0.5, local("v"))));
    }
    step.extend(beside.of(local("v")).map(|value| set("sum", local("sum") + value)));
    if fmas == 0 {
        step.push(set("x", local("x") + local("v")));
    }
    let sums = [declare("sum", F32, 0.0), declare("x", F32, 0.0), declare("y", F32, 0.0)];
    let read = each("p", [each("r", step)]);
    let last = store("out", ["ig", "it"], local("sum") + local("x") + local("y"));
    LoopKernel::new(format!("mixed_{}_{fmas}", beside.name().replace(' ', "_")))
        .domain("ig", size("n") / group)
        .domain("it", group)
        .domain("p", "k")
        .domain("r", "m")
        .array(Array::input("a", F32, [size("m"), Size::from(group)]))
        .array(Array::output("out", F32, [size("n") / group, Size::from(group)]))
        .stmt(each("ig", [each("it", sums.into_iter().chain([read, last]))]))
        .map("ig", Mapping::Group(Axis::X))?
        .map("it", Mapping::Thread(Axis::X))
}

/// What goes through the first level of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cached {
    /// A load and a store.
    Copy,
    /// Two loads for a multiply-add.
    Dot,
    /// Three loads for a multiply-add, and a store.
    Triad,
}

impl Cached {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Copy, Self::Dot, Self::Triad];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Dot => "dot",
            Self::Triad => "triad",
        }
    }
}

/// Each thread goes through columns of `m` elements `k` times, which stay in a cache: more is loaded and stored than computed.
///
/// # Errors
/// A group that does not fit the generator.
pub fn cached(what: Cached, group: i64) -> Result<LoopKernel, LoopError> {
    let of = |array: &'static str| load(array, ["r", "it"]);
    let to = |value: Expr| store("out", ["ig", "r", "it"], value);
    let (step, last) = match what {
        Cached::Copy => (to(of("a")), None),
        Cached::Dot => {
            let last = store("out", [idx("ig"), Affine::from(0), idx("it")], local("sum"));
            (set("sum", of("a").fma(of("b"), local("sum"))), Some(last))
        }
        Cached::Triad => (to(of("a").fma(of("b"), of("c"))), None),
    };
    let first = last.is_some().then(|| declare("sum", F32, 0.0));
    let body = first.into_iter().chain([each("p", [each("r", [step])])]).chain(last);
    let read: &[&'static str] = match what {
        Cached::Copy => &["a"],
        Cached::Dot => &["a", "b"],
        Cached::Triad => &["a", "b", "c"],
    };
    let kernel = LoopKernel::new(format!("cached_{}", what.name()))
        .domain("ig", size("n") / group)
        .domain("it", group)
        .domain("p", "k")
        .domain("r", "m")
        .array(Array::output("out", F32, [size("n") / group, size("m"), Size::from(group)]));
    let input =
        |kernel: LoopKernel, name: &&'static str| kernel.array(Array::input(name, F32, [size("m"), Size::from(group)]));
    read.iter()
        .fold(kernel, input)
        .stmt(each("ig", [each("it", body)]))
        .map("ig", Mapping::Group(Axis::X))?
        .map("it", Mapping::Thread(Axis::X))
}

/// Multiply-adds of an iteration.
const FMAS: [usize; 4] = [0, 4, 8, 16];

pub(super) fn add(set: &mut Set, scale: Scale) -> Result<(), LoopError> {
    let groups = if scale == Scale::Tiny { &GROUPS_1D[..1] } else { &GROUPS_1D[..] };
    let (m, k) = if scale == Scale::Tiny { (4, 2) } else { (16, 16) };
    for &group in groups {
        for beside in Beside::ALL {
            for fmas in FMAS {
                for t in 0..scale.cases(2) {
                    let n = (scale.of(10, 18) << (2 * t)).max(group);
                    let name = format!("{} {fmas} fma", beside.name());
                    set.add("mixed", &name, mixed(beside, fmas, group), &[("n", n), ("m", m), ("k", k)])?;
                }
            }
        }
        for what in Cached::ALL {
            for t in 0..scale.cases(2) {
                let n = (scale.of(10, 18) << (2 * t)).max(group);
                set.add("cached", what.name(), cached(what, group), &[("n", n), ("m", 512 / group), ("k", 8 * k)])?;
            }
        }
    }
    Ok(())
}
