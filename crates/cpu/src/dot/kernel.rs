//! The kernel.

use super::default;
use super::driver::Blueprint;
use super::space::{Config, description};
use crate::exec::parts::HostParts;
use std::sync::Arc;
use tilewright_core::computation::InputError;
use tilewright_core::device::DeviceSpec;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::program::Program;
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
use tilewright_ops::gemm::{Gemm, GemmInput};

/// The kernel `gemm.cpu-dot`.
#[derive(Debug, Default)]
pub struct CpuDot(());

/// A legal (device, input, configuration) with everything derived from it.
#[derive(Clone, Debug)]
pub struct DotPlan {
    input: GemmInput,
    pub(super) blueprint: Blueprint,
}

/// Longest of the shorter side of C: where both are longer, kernels that pack either operand lose less at the edges of C than lanes take to be
/// summed.
const THIN: usize = 128;

impl CpuDot {
    /// The kernel with its space.
    pub fn new() -> Self {
        Self(())
    }
}

impl Kernel for CpuDot {
    type Of = Gemm;
    type Plan = DotPlan;

    fn id(&self) -> KernelId {
        KernelId::new("gemm.cpu-dot.3")
    }

    fn computation(&self) -> &Gemm {
        &Gemm
    }

    fn space(&self) -> &ParamSpace {
        &description().space
    }

    /// Thin products whose longer operand is contiguous along k: A stored transposed or one tight row, B stored plain or one tight column.
    fn accepts(&self, input: &GemmInput) -> Result<(), InputError> {
        input.only(&GemmInput::PLAIN)?;
        let GemmInput { m, n, layout, .. } = *input;
        let (a, b) = (a_lies_along_k(input), b_lies_along_k(input));
        if !((a || m <= n) && (b || n <= m) && (a || b)) {
            let message = format!("{layout}: dot products read the longer of A and B along k, as of tn");
            return Err(InputError::new("layout", message));
        }
        if input.batch.count > 1 {
            let message = format!("{} products at once: there is code for one", input.batch.count);
            return Err(InputError::new("batch", message));
        }
        if m.min(n) > THIN {
            let message = format!("{m} x {n}: dot products are for results of at most {THIN} rows or columns");
            return Err(InputError::new(if m < n { "m" } else { "n" }, message));
        }
        Ok(())
    }

    fn symbols(&self, device: &DeviceSpec, input: &GemmInput) -> Symbols {
        input.symbols(device)
    }

    fn derivations(&self) -> Vec<(&'static str, String)> {
        GemmInput::derivations()
    }

    fn plan(&self, _: &DeviceSpec, input: &GemmInput, at: &Legal<'_>) -> DotPlan {
        // The names are the kernel's own, and the conformance suite reads them all at legal points.
        let config = Config::of(at).unwrap_or_else(|| unreachable!("{at:?} is no legal point of gemm.cpu-dot"));
        DotPlan { input: input.clone(), blueprint: Blueprint::new(input, config) }
    }

    fn generate(&self, plan: &DotPlan) -> Program {
        let blueprint = plan.blueprint.clone();
        Program::host(Arc::new(HostParts::new(&plan.input, blueprint.config.vec, blueprint)), 0)
    }

    fn feature_names(&self) -> Vec<Feature> {
        description().feature_names()
    }

    fn features(&self, _: &DeviceSpec, _: &GemmInput, at: &Values<'_>, out: &mut Vec<f32>) {
        description().features(at, out);
    }

    fn suits(&self, device: &DeviceSpec, input: &GemmInput) -> f64 {
        default::suits(device, input)
    }

    fn default_point(&self, device: &DeviceSpec, input: &GemmInput, space: &BoundSpace) -> Option<Point> {
        default::default_point(device, input, space)
    }
}

/// Whether rows of op(A) and columns of op(B) are contiguous.
pub(crate) fn lies_along_k(input: &GemmInput) -> bool {
    a_lies_along_k(input) && b_lies_along_k(input)
}

pub(super) fn a_lies_along_k(input: &GemmInput) -> bool {
    input.layout.a_transposed() || (input.m == 1 && input.lda == 1)
}

pub(super) fn b_lies_along_k(input: &GemmInput) -> bool {
    !input.layout.b_transposed() || (input.n == 1 && input.ldb == 1)
}

/// Whether the shorter side of C fills less than about three quarters of a vector.
pub(crate) fn is_thin(short: usize, lanes: usize) -> bool {
    4 * short <= 3 * lanes
}
