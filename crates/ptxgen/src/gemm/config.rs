//! Tuning parameters of the SIMT GEMM, in ISAAC's names.

use super::space::Names;
use crate::simt::Load;
use serde::{Deserialize, Serialize};
use tilewright_core::expr::Val;
use tilewright_core::space::Values;

/// How the slices of a reduction that is split over the grid are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Partial sums in the workspace, added in order by a second kernel: the same bytes every time.
    Ordered,
    /// Atomic additions to C in the order of arrival, after C was scaled by beta.
    Atomic,
    /// Partial sums in the workspace, added in order by the block of a tile that comes last: the same bytes every time, in one launch.
    Ticket,
    /// No slices: a fixed number of blocks share the stages of all tiles evenly, so that a tile may have several blocks; see `stream`.
    Stream,
}

/// Which way neighbouring blocks lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Raster {
    /// Along the rows of C.
    M,
    /// Along its columns.
    N,
    /// Row by row of `GROUP` tiles side by side, so that blocks that run at once read few rows of A and few columns of B.
    Grouped,
}

/// Columns of tiles side by side in [`Raster::Grouped`].
pub(crate) const GROUP: u32 = 8;

/// Whether sizes that tiles do not divide are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bounds {
    /// Every access is predicated.
    Checked,
    /// Tiles divide the sizes; nothing is checked.
    Whole,
}

impl Split {
    /// By its word.
    pub(crate) fn of(word: Val<'_>) -> Self {
        match word {
            Val::Str("atomic") => Self::Atomic,
            Val::Str("ticket") => Self::Ticket,
            Val::Str("stream") => Self::Stream,
            _ => Self::Ordered,
        }
    }
}

impl Raster {
    /// By its word.
    pub(crate) fn of(word: Val<'_>) -> Self {
        match word {
            Val::Str("n") => Self::N,
            Val::Str("grouped") => Self::Grouped,
            _ => Self::M,
        }
    }
}

impl Bounds {
    /// By its word.
    pub(crate) fn of(word: Val<'_>) -> Self {
        if word == Val::Str("whole") { Self::Whole } else { Self::Checked }
    }
}

/// One value per tuning parameter. Sizes are in elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GemmConfig {
    /// Rows of C of a thread.
    pub m_s: u32,
    /// Columns of C of a thread.
    pub n_s: u32,
    /// Rows of C of a block.
    pub m_l: u32,
    /// Columns of C of a block.
    pub n_l: u32,
    /// Steps of the reduction that a block has in shared memory per stage.
    pub u: u32,
    /// Accumulator sets of a thread that steps of the reduction are dealt to; summed in registers.
    pub k_s: u32,
    /// Groups of threads of a block, each with its share of a stage's steps; summed by a tree in shared memory.
    pub k_l: u32,
    /// Slices of the reduction over the grid.
    pub k_g: u32,
    /// Elements of A of one load.
    pub vec_a: u32,
    /// Elements of B of one load.
    pub vec_b: u32,
    /// Elements of C of one store.
    pub vec_c: u32,
    /// Stages in shared memory.
    pub stages: u32,
    /// Blocks of a multiprocessor that the registers of a thread leave room for.
    pub occupancy: u32,
    /// How tiles come in.
    pub load: Load,
    /// How slices are summed.
    pub split: Split,
    /// Which way neighbouring blocks lie.
    pub raster: Raster,
    /// Whether accesses are predicated.
    pub bounds: Bounds,
}

impl GemmConfig {
    /// The parameters of a point of the space that the names are of; `None` for one of another space.
    pub(super) fn of(names: &Names, at: &Values<'_>) -> Option<Self> {
        let [m_s, n_s, m_l, n_l, u, k_s, k_l, k_g, vec_a, vec_b, vec_c, stages, occupancy] = at.ints(names.sizes)?;
        let [load, split, raster, bounds] = at.read(names.words)?;
        let (load, split) = (Load::of(load), Split::of(split));
        let (raster, bounds) = (Raster::of(raster), Bounds::of(bounds));
        let sizes = Self {
            m_s,
            n_s,
            m_l,
            n_l,
            u,
            k_s,
            k_l,
            k_g,
            vec_a,
            vec_b,
            vec_c,
            stages,
            occupancy,
            load,
            split,
            raster,
            bounds,
        };
        Some(sizes)
    }
}
