//! The kernel.

use super::driver::Blueprint;
use super::space::{self, Config, description};
use crate::LINE;
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

/// Longest of the shorter side of C: a matrix of dot products reads each operand too often where both sides are long.
const THIN: usize = 64;

/// Reductions for which no other kernel comes near, beside all of a long vector and a matrix: where C has a side that fills less than three
/// quarters of a vector, or where it is no more than so many elements either way and the reduction is very long. Where a vector is a line,
/// its lanes take so long to be summed that as many vectors of k are wanted as that side has elements beside its first, and half of one for
/// a side of one element.
const LONG: usize = 64;
const VERY_LONG: usize = 1000;
const LITTLE: usize = 32;

/// Sizes of the second-level cache beyond which operands that several tiles read come from memory each time.
const NEAR: usize = 3;

/// Elements of C up to which operands may also come from the last-level cache each time, where vectors are less than a line: other kernels
/// transpose there by instructions that a core has few of.
const FEW: usize = 512;

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

    /// Thin products of operands that are contiguous along k: A stored transposed or one tight row, B stored plain or one tight column.
    fn accepts(&self, input: &GemmInput) -> Result<(), InputError> {
        input.only(&GemmInput::PLAIN)?;
        let GemmInput { m, n, layout, .. } = *input;
        if !lies_along_k(input) {
            return Err(InputError::new("layout", format!("{layout}: dot products read A and B along k, as of tn")));
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
        DotPlan { input: input.clone(), blueprint: Blueprint::new(one_stride(input), config) }
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

    /// Vectors times matrices, and dot products: other kernels have whole vectors along a side of a few elements.
    fn suits(&self, device: &DeviceSpec, input: &GemmInput) -> f64 {
        let vector = device.fact("vec_max").map_or(16, |bytes| bytes as usize);
        let lanes = vector / input.dtype().size();
        let (short, long) = (input.m.min(input.n), input.m.max(input.n));
        let few = if vector < LINE {
            (short <= 1 && long > LITTLE) || (is_thin(short, lanes) && input.k >= LONG)
        } else {
            let enough = input.k >= (lanes / 2).max(lanes * short.saturating_sub(1));
            is_thin(short, lanes) && enough && (long > LITTLE || input.k >= LONG)
        };
        let cache = device.fact("l2_bytes").map_or(512 << 10, |bytes| bytes as usize);
        let bytes = (short + long).saturating_mul(input.k * input.dtype().size());
        let last = device.fact("l3_bytes").map_or(0, |bytes| bytes as usize);
        let is_cheap = vector < LINE && short * long <= FEW && bytes <= last / 2;
        let is_near = bytes <= NEAR * cache || is_cheap;
        if few || (long <= LITTLE && input.k >= VERY_LONG && is_near) { 2.0 } else { 0.0 }
    }

    fn default_point(&self, _: &DeviceSpec, _: &GemmInput, space: &BoundSpace) -> Option<Point> {
        space::default_point(space)
    }
}

/// Whether rows of op(A) and columns of op(B) are contiguous.
pub(crate) fn lies_along_k(input: &GemmInput) -> bool {
    let GemmInput { m, n, lda, ldb, layout, .. } = *input;
    (layout.a_transposed() || (m == 1 && lda == 1)) && (!layout.b_transposed() || (n == 1 && ldb == 1))
}

/// Whether the shorter side of C fills less than about three quarters of a vector.
pub(crate) fn is_thin(short: usize, lanes: usize) -> bool {
    4 * short <= 3 * lanes
}

/// The input with the leading dimension of a single row of A, or column of B, as its distance along the side of length 1: nothing.
fn one_stride(input: &GemmInput) -> GemmInput {
    let mut input = input.clone();
    if !input.layout.a_transposed() {
        input.lda = 0;
    }
    if input.layout.b_transposed() {
        input.ldb = 0;
    }
    input
}
