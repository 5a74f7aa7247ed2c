//! Special registers, read once at the start of a block: none of these changes while a block runs.

use super::{Setting, coordinates};
use crate::lanes::WARP;

/// A thread of a block.
pub(super) struct Thread<'a> {
    pub(super) setting: &'a Setting<'a>,
    /// Of the block, by axis.
    pub(super) index: [u32; 3],
    pub(super) warp: usize,
    pub(super) lane: usize,
}

/// The value in a thread, along an axis where there are several.
type Value = fn(&Thread<'_>, usize) -> u32;

/// By name. Every block is a cluster of its own.
const REGISTERS: [(&str, Value); 23] = [
    ("%tid", |t, axis| t.tid().get(axis).copied().unwrap_or(0)),
    ("%ntid", |t, axis| t.setting.block.get(axis).copied().unwrap_or(1)),
    ("%ctaid", |t, axis| t.index.get(axis).copied().unwrap_or(0)),
    ("%clusterid", |t, axis| t.index.get(axis).copied().unwrap_or(0)),
    ("%nctaid", |t, axis| t.setting.grid.get(axis).copied().unwrap_or(1)),
    ("%nclusterid", |t, axis| t.setting.grid.get(axis).copied().unwrap_or(1)),
    ("%laneid", |t, _| t.lane as u32),
    ("%warpid", |t, _| t.warp as u32),
    ("%nwarpid", |t, _| t.setting.threads().div_ceil(WARP) as u32),
    ("%lanemask_eq", |t, _| 1 << t.lane),
    ("%lanemask_lt", |t, _| (1 << t.lane) - 1),
    ("%lanemask_le", |t, _| u32::MAX >> (31 - t.lane)),
    ("%lanemask_gt", |t, _| !(u32::MAX >> (31 - t.lane))),
    ("%lanemask_ge", |t, _| !((1 << t.lane) - 1)),
    ("%dynamic_smem_size", |t, _| t.setting.dynamic_shared),
    ("%total_smem_size", |t, _| t.setting.shared_bytes() as u32),
    ("%cluster_ctaid", |_, _| 0),
    ("%cluster_ctarank", |_, _| 0),
    ("%smid", |_, _| 0),
    ("%gridid", |_, _| 0),
    ("%cluster_nctaid", |_, _| 1),
    ("%cluster_nctarank", |_, _| 1),
    ("%nsmid", |_, _| 1),
];

/// A special register: its number, and an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Special(usize, usize);

impl Special {
    /// By the name with its axis, such as `%tid.x`; axis 3 is the unused fourth element.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let (base, axis) = name.split_once('.').unwrap_or((name, "x"));
        let axis = ["x", "y", "z", "w"].iter().position(|a| *a == axis)?;
        REGISTERS.iter().position(|(known, _)| *known == base).map(|at| Self(at, axis))
    }

    pub(super) fn value(self, thread: &Thread<'_>) -> u64 {
        let (_, value) = REGISTERS[self.0];
        value(thread, self.1).into()
    }
}

impl Thread<'_> {
    fn tid(&self) -> [u32; 3] {
        coordinates((self.warp * WARP + self.lane) as u64, self.setting.block)
    }
}
