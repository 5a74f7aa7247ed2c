//! Tuning parameters of the GEMM by matrix instructions.

use super::space::Names;
use crate::gemm::{Bounds, Raster, Split};
use crate::simt::Load;
use serde::{Deserialize, Serialize};
use tilewright_core::space::Values;

/// One value per tuning parameter. Sizes are in elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MmaConfig {
    /// Rows of C of a warp.
    pub m_w: u32,
    /// Columns of C of a warp.
    pub n_w: u32,
    /// Rows of C of a block.
    pub m_l: u32,
    /// Columns of C of a block.
    pub n_l: u32,
    /// Steps of the reduction that a block has in shared memory per stage.
    pub u: u32,
    /// Slices of the reduction over the grid.
    pub k_g: u32,
    /// Elements of A of one copy or load.
    pub vec_a: u32,
    /// Elements of B of one copy or load.
    pub vec_b: u32,
    /// Elements of C of one store.
    pub vec_c: u32,
    /// Stages in shared memory.
    pub stages: u32,
    /// How tiles come in.
    pub load: Load,
    /// How slices are summed.
    pub split: Split,
    /// Which way neighbouring blocks lie.
    pub raster: Raster,
    /// Whether accesses are predicated.
    pub bounds: Bounds,
}

impl MmaConfig {
    /// The parameters of a point of the space that the names are of; `None` for one of another space.
    pub(super) fn of(names: &Names, at: &Values<'_>) -> Option<Self> {
        let [m_w, n_w, m_l, n_l, u, k_g, vec_a, vec_b, vec_c, stages] = at.ints(names.sizes)?;
        let [load, split, raster, bounds] = at.read(names.words)?;
        let (load, split) = (Load::of(load), Split::of(split));
        let (raster, bounds) = (Raster::of(raster), Bounds::of(bounds));
        Some(Self { m_w, n_w, m_l, n_l, u, k_g, vec_a, vec_b, vec_c, stages, load, split, raster, bounds })
    }
}
