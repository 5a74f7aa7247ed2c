//! Tuning parameters of the convolution.

use super::space::Description;
use tilewright_core::expr::Val;
use tilewright_core::space::Values;

/// What vectors run along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Axis {
    /// Outputs of the filters.
    Outs,
    /// Neighbouring positions.
    Positions,
}

/// One value per tuning parameter. Sizes are in elements unless stated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConvConfig {
    pub(crate) axis: Axis,
    /// Register tile along vectors, and across them.
    pub(crate) v_s: usize,
    pub(crate) s_s: usize,
    /// Positions of a block.
    pub(crate) positions: usize,
    /// Steps of the reduction of a block.
    pub(crate) u: usize,
    /// Unroll of the loop over the reduction.
    pub(crate) k_s: usize,
    /// Independent accumulator sets.
    pub(crate) k_l: usize,
    /// Threads in all, and along outputs.
    pub(crate) t: usize,
    pub(crate) t_outs: usize,
    /// Vector width in bytes.
    pub(crate) vec: usize,
    /// Prefetch distance in packed filters, in steps of the reduction; 0 is none.
    pub(crate) prefetch: u32,
    /// Whether the operand that is loaded as vectors stays in the first-level cache while the other one streams.
    pub(crate) keeps_v: bool,
    /// Whether images are copied to slabs.
    pub(crate) slab: bool,
    /// Whether sums are kept with neighbouring outputs side by side until they are complete.
    pub(crate) stage: bool,
}

impl ConvConfig {
    /// The parameters of a point; `None` for one of another space.
    pub(crate) fn of(at: &Values<'_>) -> Option<Self> {
        let names = Description::get();
        let [v_s, s_s, positions, u, k_s, k_l, t, t_outs, vec, prefetch, slab, stage] =
            at.ints::<u32, _>(names.sizes)?;
        let [axis, order] = at.read(names.words)?;
        Some(Self {
            axis: if axis == Val::Str("q") { Axis::Positions } else { Axis::Outs },
            v_s: v_s as usize,
            s_s: s_s as usize,
            positions: positions as usize,
            u: u as usize,
            k_s: k_s as usize,
            k_l: k_l as usize,
            t: t as usize,
            t_outs: t_outs as usize,
            vec: vec as usize,
            prefetch,
            keeps_v: order == Val::Str("vector"),
            slab: slab == 1,
            stage: stage == 1,
        })
    }
}
