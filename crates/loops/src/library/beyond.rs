//! Classes that the paper leaves out: strides in shared memory, sums at once, far strides, and data that stay in a cache.

use super::{GROUPS_1D, Scale, Set};
use crate::affine::idx;
use crate::error::LoopError;
use crate::kernel::{Array, Axis, LoopKernel, Stmt, add_to, declare, each, load, local, set, store};
use crate::size::{Size, size};
use tilewright_core::buffer::Role;
use tilewright_core::dtype::DType::F32;

/// Rows of a tile that are read in turn.
const ROWS: i64 = 2;

/// Each thread reads shared memory `2 k` times, neighbouring threads `stride` elements apart: 1 and odd strides touch all
/// banks, 32 one alone. A barrier keeps the loads in the loop.
///
/// # Errors
/// A group that does not fit the generator.
pub fn bank_stride(stride: i64, group: i64) -> Result<LoopKernel, LoopError> {
    let at = || [idx("u"), idx("it") * stride];
    LoopKernel::new(format!("bank_stride_{stride}"))
        .domain("i", "n")
        .domain("r", "k")
        .domain("u", ROWS)
        .array(Array::input("a", F32, ["n"]))
        .array(Array::output("out", F32, ["n"]))
        .array(Array::shared("tile", F32, [ROWS, group * stride]))
        .stmt(each("i", [declare("sum", F32, 0.0), store("out", ["i"], local("sum"))]))
        .spread("i", group, Axis::X, "ig", "it")
        .map(|mut kernel| {
            let fill = each("u", [store("tile", at(), load("a", [idx("ig") * group + idx("it")]))]);
            let sum = each("u", [set("sum", local("sum") + load("tile", at()))]);
            insert(&mut kernel.body, 1, vec![fill, Stmt::Barrier, each("r", [sum, Stmt::Barrier])]);
            kernel
        })?
        .unroll("u")
}

/// Puts statements into the innermost of nested loops, before its last ones.
fn insert(body: &mut Vec<Stmt>, before_last: usize, new: Vec<Stmt>) {
    if let [Stmt::For { body: inner, .. }] = &mut body[..] {
        return insert(inner, before_last, new);
    }
    let at = body.len().saturating_sub(before_last);
    body.splice(at..at, new);
}

/// Each thread adds `k` times to one of `m` elements at once, neighbouring threads to neighbouring ones.
///
/// # Errors
/// A group that does not fit the generator.
pub fn atomics(group: i64) -> Result<LoopKernel, LoopError> {
    LoopKernel::new("atomics")
        .domain("b", size("n") / group)
        .domain("i", group)
        .domain("r", "k")
        .array(Array::new("out", F32, [Size::from(group), "k".into()], Role::InOut))
        .stmt(each("b", [each("i", [each("r", [add_to("out", ["i", "r"], 1.0)])])]))
        .map("b", crate::kernel::Mapping::Group(Axis::X))?
        .map("i", crate::kernel::Mapping::Thread(Axis::X))
}

/// Each thread adds up `k` elements that are `stride` elements from those of its neighbours; nothing between them is read.
///
/// # Errors
/// A group that does not fit the generator.
pub fn uncoalesced(stride: i64, group: i64) -> Result<LoopKernel, LoopError> {
    LoopKernel::new(format!("uncoalesced_{stride}"))
        .domain("i", "n")
        .domain("r", "k")
        .array(Array::input("a", F32, [size("k"), size("n") * stride]))
        .array(Array::output("out", F32, ["n"]))
        .stmt(each(
            "i",
            [
                declare("sum", F32, 0.0),
                each("r", [set("sum", local("sum") + load("a", [idx("r"), idx("i") * stride]))]),
                store("out", ["i"], local("sum")),
            ],
        ))
        .spread("i", group, Axis::X, "ig", "it")
}

/// Each group adds up `m` rows of `group` elements, all groups the same ones, `k` times: data that stay in a cache.
///
/// # Errors
/// A group that does not fit the generator.
pub fn reread(group: i64) -> Result<LoopKernel, LoopError> {
    LoopKernel::new("reread")
        .domain("i", "n")
        .domain("p", "k")
        .domain("r", "m")
        .array(Array::input("a", F32, [size("m"), Size::from(group)]))
        .array(Array::output("out", F32, ["n"]))
        .stmt(each("i", [declare("sum", F32, 0.0), store("out", ["i"], local("sum"))]))
        .spread("i", group, Axis::X, "ig", "it")
        .map(|mut kernel| {
            let read = each("p", [each("r", [set("sum", local("sum") + load("a", ["r", "it"]))])]);
            insert(&mut kernel.body, 1, vec![read]);
            kernel
        })
}

pub(super) fn add(set: &mut Set, scale: Scale) -> Result<(), LoopError> {
    let groups = if scale == Scale::Tiny { &GROUPS_1D[..1] } else { &GROUPS_1D[..] };
    let k = if scale == Scale::Tiny { 2 } else { 16 };
    for &group in groups {
        for t in 0..scale.cases(3) {
            let n = (scale.of(12, 20) << (2 * t)).max(group);
            for stride in [1, 2, 3, 4, 8] {
                let name = format!("stride {stride}");
                set.add("bank_stride", &name, bank_stride(stride, group), &[("n", n), ("k", k)])?;
            }
            set.add("atomics", "", atomics(group), &[("n", n), ("k", k)])?;
            for stride in [5, 8, 16] {
                let n = (scale.of(9, 16) << (2 * t)).max(group);
                let name = format!("stride {stride}");
                set.add("uncoalesced", &name, uncoalesced(stride, group), &[("n", n), ("k", 2 * k)])?;
            }
            for rows in [4, 16, 64, 256] {
                if scale == Scale::Tiny && rows > 4 {
                    continue;
                }
                let n = (scale.of(12, 18) << t).max(group);
                let m = rows * 512 / group;
                set.add("reread", "", reread(group), &[("n", n), ("m", m), ("k", (512 / rows).clamp(2, 32))])?;
            }
        }
    }
    add_panels(set, scale)
}

/// Sums down narrow panels of a wide matrix: runs too short for a cache to foresee what comes next, as where a product reads
/// what nobody packed.
fn add_panels(set: &mut Set, scale: Scale) -> Result<(), LoopError> {
    let groups = if scale == Scale::Tiny { &[32][..] } else { &[16, 32, 64][..] };
    for &group in groups {
        for t in 0..scale.cases(3) {
            let (n, k) = (scale.of(9, 13) << (2 * t), if scale == Scale::Tiny { 4 } else { 512 });
            set.add("panel", "", uncoalesced(1, group), &[("n", n), ("k", k)])?;
        }
    }
    Ok(())
}
