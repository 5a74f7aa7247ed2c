//! The kernel.

use super::blueprint::{self, Blueprint};
use super::default;
use super::host::HostSmall;
use super::space::{Config, description};
use crate::codegen::vector::Width;
use crate::kernel::THREADED;
use std::sync::Arc;
use tilewright_core::computation::InputError;
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::program::Program;
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
use tilewright_ops::gemm::{Gemm, GemmInput};

/// Above what `gemm.cpu-dot` says of all that it is made for.
const BEFORE_DOT: f64 = 3.0;

/// Whether a matrix has so few elements in each row that a vector is multiplied by that summing the lanes of a dot product takes longer than
/// transposing them: one vector and a half, as measured where a vector of 32 bytes holds eight.
fn is_brief(device: &DeviceSpec, input: &GemmInput) -> bool {
    let lanes = device.fact("vec_max").map_or(16, |bytes| bytes as usize) / input.dtype().size();
    lanes == 8 && input.dtype() == DType::F32 && input.m.min(input.n) == 1 && 2 * input.k <= 3 * lanes
}

/// The kernel `gemm.cpu-small`.
#[derive(Debug, Default)]
pub struct CpuSmall(());

/// A legal (device, input, configuration) with everything derived from it.
#[derive(Clone, Debug)]
pub struct SmallPlan {
    pub(super) blueprint: Blueprint,
}

impl CpuSmall {
    /// The kernel with its space.
    pub fn new() -> Self {
        Self(())
    }
}

impl Kernel for CpuSmall {
    type Of = Gemm;
    type Plan = SmallPlan;

    fn id(&self) -> KernelId {
        KernelId::new("gemm.cpu-small.2")
    }

    fn computation(&self) -> &Gemm {
        &Gemm
    }

    fn space(&self) -> &ParamSpace {
        &description().space
    }

    fn accepts(&self, input: &GemmInput) -> Result<(), InputError> {
        input.only(&GemmInput::PLAIN)
    }

    fn symbols(&self, device: &DeviceSpec, input: &GemmInput) -> Symbols {
        input.symbols(device)
    }

    fn derivations(&self) -> Vec<(&'static str, String)> {
        GemmInput::derivations()
    }

    fn plan(&self, device: &DeviceSpec, input: &GemmInput, at: &Legal<'_>) -> SmallPlan {
        // The names are the kernel's own, and the conformance suite reads them all at legal points.
        let config = Config::of(at).unwrap_or_else(|| unreachable!("{at:?} is no legal point of gemm.cpu-small"));
        let evex = device.facts.get("vec_max").is_some_and(|bytes| *bytes >= Width::Z.bytes() as i64);
        SmallPlan { blueprint: Blueprint::new(blueprint::straightened(input), config, evex) }
    }

    fn generate(&self, plan: &SmallPlan) -> Program {
        let workspace = plan.blueprint.workspace() as u64;
        Program::host(Arc::new(HostSmall::new(&plan.blueprint)), workspace)
    }

    fn feature_names(&self) -> Vec<Feature> {
        description().feature_names()
    }

    fn features(&self, _: &DeviceSpec, _: &GemmInput, at: &Values<'_>, out: &mut Vec<f32>) {
        description().features(at, out);
    }

    /// A single product that is large enough for several threads may be better off with them; and where there is little to do but to
    /// write long columns of a C beyond the first-level cache, who writes them from end to end is ahead, which a panel of A prevents.
    fn suits(&self, device: &DeviceSpec, input: &GemmInput) -> f64 {
        if default::writes_columns(input) && blueprint::straightened(input).layout.a_transposed() {
            return 0.0;
        }
        if is_brief(device, input) {
            return BEFORE_DOT;
        }
        let alone = device.facts.get("threads").is_none_or(|threads| *threads == 1);
        let shared = [input.n, input.k].iter().fold(input.m, |work, size| work.saturating_mul(*size));
        f64::from(u8::from(alone || input.batch.count > 1 || shared <= THREADED))
    }

    fn default_point(&self, _: &DeviceSpec, input: &GemmInput, space: &BoundSpace) -> Option<Point> {
        default::default_point(&blueprint::straightened(input), space)
    }
}
