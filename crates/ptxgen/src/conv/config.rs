//! Tuning parameters of the SIMT convolution, in ISAAC's names.

use super::space::Description;
use crate::simt::Load;
use serde::{Deserialize, Serialize};
use tilewright_core::expr::Val;
use tilewright_core::space::Values;

/// Which way neighbouring threads gather.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scan {
    /// Along positions.
    Places,
    /// Along the reduction; what is gathered is transposed on its way.
    Steps,
}

/// One value per tuning parameter. Sizes are in elements; images, rows and columns are those of the result.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ConvConfig {
    /// Outputs of a thread.
    pub k_s: u32,
    /// Images of a thread.
    pub n_s: u32,
    /// Rows of a thread.
    pub p_s: u32,
    /// Columns of a thread.
    pub q_s: u32,
    /// Outputs of a block.
    pub k_l: u32,
    /// Images of a block.
    pub n_l: u32,
    /// Rows of a block.
    pub p_l: u32,
    /// Columns of a block.
    pub q_l: u32,
    /// Steps of the reduction that a block has in shared memory per stage.
    pub u: u32,
    /// Accumulator sets of a thread that steps of the reduction are dealt to; summed in registers.
    pub c_s: u32,
    /// Groups of threads of a block, each with its share of a stage's steps; summed by a tree in shared memory.
    pub c_l: u32,
    /// Slices of the reduction over the grid.
    pub c_g: u32,
    /// Elements of the filters of one load.
    pub vec_f: u32,
    /// Gathered elements of one load.
    pub vec_g: u32,
    /// Stages in shared memory.
    pub stages: u32,
    /// How tiles come in.
    pub load: Load,
    /// Which way neighbouring threads gather.
    pub scan: Scan,
}

impl ConvConfig {
    /// The parameters of a point of the kernel's space; `None` for one of another space.
    pub(super) fn of(at: &Values<'_>) -> Option<Self> {
        let names = Description::get();
        let [k_s, n_s, p_s, q_s, k_l, n_l, p_l, q_l, u, c_s, c_l, c_g, vec_f, vec_g, stages] = at.ints(names.sizes)?;
        let [load, scan] = at.read(names.words)?;
        let load = match load {
            Val::Str("nc") => Load::Nc,
            Val::Str("async") => Load::Async,
            _ => Load::Global,
        };
        let scan = if scan == Val::Str("steps") { Scan::Steps } else { Scan::Places };
        Some(Self { k_s, n_s, p_s, q_s, k_l, n_l, p_l, q_l, u, c_s, c_l, c_g, vec_f, vec_g, stages, load, scan })
    }

    /// Images, rows and columns of a thread.
    pub(crate) fn thread(&self) -> [u32; 3] {
        [self.n_s, self.p_s, self.q_s]
    }

    /// Images, rows and columns of a block.
    pub(crate) fn block(&self) -> [u32; 3] {
        [self.n_l, self.p_l, self.q_l]
    }
}
