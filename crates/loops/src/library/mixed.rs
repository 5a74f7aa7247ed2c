//! Kernels that do several things at a time: what goes on side by side in a core cannot be told from kernels that do one thing.

use super::{GROUPS_1D, Scale, Set};
use crate::affine::{Affine, idx};
use crate::error::LoopError;
use crate::kernel::{Array, Axis, Expr, LoopKernel, Mapping, Unary, declare, each, load, local, set, store};
use crate::size::{Size, size};
use tilewright_core::dtype::DType::F32;

/// What is done with every loaded element, beside multiply-adds.
#[derive(Clone, Copy, Debug)]
pub struct Beside {
    /// The name in reports.
    pub name: &'static str,
    /// A summand from an element; none depends on the one before, so that only their sum is a chain.
    of: fn(Expr) -> Option<Expr>,
}

impl Beside {
    /// Every kind: nothing, a quotient, a reciprocal of a square root, a power of e.
    pub const ALL: [Self; 4] = [
        Self { name: "loads", of: |_| None },
        Self { name: "loads and div", of: |x| Some(Expr::Number(1.0) / positive(x)) },
        Self { name: "loads and rsqrt", of: |x| Some(positive(x).unary(Unary::Rsqrt)) },
        Self { name: "loads and exp", of: |x| Some(x.unary(Unary::Exp)) },
    ];
}

fn positive(element: Expr) -> Expr {
    element.clone().fma(element, 1.0)
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
    step.extend((beside.of)(local("v")).map(|value| set("sum", local("sum") + value)));
    if fmas == 0 {
        step.push(set("x", local("x") + local("v")));
    }
    let sums = [declare("sum", F32, 0.0), declare("x", F32, 0.0), declare("y", F32, 0.0)];
    let read = each("p", [each("r", step)]);
    let last = store("out", ["ig", "it"], local("sum") + local("x") + local("y"));
    LoopKernel::new(format!("mixed_{}_{fmas}", beside.name.replace(' ', "_")))
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
#[derive(Clone, Copy, Debug)]
pub struct Cached {
    /// The name in reports.
    pub name: &'static str,
    /// What is loaded: an element that is stored, two factors that are summed up, or those and a summand.
    read: &'static [&'static str],
    sums: bool,
}

impl Cached {
    /// Every kind: a load and a store, two loads for a multiply-add, three loads for a multiply-add and a store.
    pub const ALL: [Self; 3] = [
        Self { name: "copy", read: &["a"], sums: false },
        Self { name: "dot", read: &["a", "b"], sums: true },
        Self { name: "triad", read: &["a", "b", "c"], sums: false },
    ];
}

/// Each thread goes through columns of `m` elements `k` times, which stay in a cache: more is loaded and stored than computed.
///
/// # Errors
/// A group that does not fit the generator.
pub fn cached(what: Cached, group: i64) -> Result<LoopKernel, LoopError> {
    let of = |array: &'static str| load(array, ["r", "it"]);
    let (mut body, mut last, mut step) = (Vec::new(), None, store("out", ["ig", "r", "it"], of("a")));
    if what.sums {
        body.push(declare("sum", F32, 0.0));
        step = set("sum", of("a").fma(of("b"), local("sum")));
        last = Some(store("out", [idx("ig"), Affine::from(0), idx("it")], local("sum")));
    } else if let [a, b, c] = what.read {
        step = store("out", ["ig", "r", "it"], of(a).fma(of(b), of(c)));
    }
    body.push(each("p", [each("r", [step])]));
    body.extend(last);
    let mut kernel = LoopKernel::new(format!("cached_{}", what.name))
        .domain("ig", size("n") / group)
        .domain("it", group)
        .domain("p", "k")
        .domain("r", "m")
        .array(Array::output("out", F32, [size("n") / group, size("m"), Size::from(group)]));
    for name in what.read {
        kernel = kernel.array(Array::input(name, F32, [size("m"), Size::from(group)]));
    }
    kernel.stmt(each("ig", [each("it", body)])).map("ig", Mapping::Group(Axis::X))?.map("it", Mapping::Thread(Axis::X))
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
                    let name = format!("{} {fmas} fma", beside.name);
                    set.add("mixed", &name, mixed(beside, fmas, group), &[("n", n), ("m", m), ("k", k)])?;
                }
            }
        }
        for what in Cached::ALL {
            for t in 0..scale.cases(2) {
                let n = (scale.of(10, 18) << (2 * t)).max(group);
                set.add("cached", what.name, cached(what, group), &[("n", n), ("m", 512 / group), ("k", 8 * k)])?;
            }
        }
    }
    Ok(())
}
