//! What the code of a product depends on.

use super::emit;
use crate::gemm::{self, Frame, Names, Template};
use crate::ir::Module;
use crate::simt::Arrangement;
use crate::target::Target;
use tilewright_core::space::Values;
use tilewright_ops::gemm::GemmInput;

/// What code is specialised to: a product of the GEMM's, whose threads are arranged as the paper's.
#[derive(Clone, Debug)]
pub struct Blueprint {
    /// The tile of a thread, the grids that load, numbers, scalars and registers.
    pub product: gemm::Blueprint,
}

impl Blueprint {
    /// What an input and a configuration need of the code; `None` for a point of another space.
    pub(super) fn new(target: Target, input: &GemmInput, names: &Names, at: &Values<'_>) -> Option<Self> {
        let mut product = gemm::Blueprint::new(target, input, names, at)?;
        let Arrangement { t_m, t_n, .. } = product.arrangement;
        product.arrangement = Arrangement::interleaved([t_m, t_n]);
        Some(Self { product })
    }
}

impl Template for Blueprint {
    fn frame(&self) -> Frame {
        self.product.frame()
    }

    fn module(&self) -> Module {
        emit::module(self)
    }
}
