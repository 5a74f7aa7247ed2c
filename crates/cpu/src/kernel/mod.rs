//! GEMM on the host CPU as a tunable kernel.

mod default;
mod features;
#[cfg(feature = "loops")]
mod operations;
pub(crate) mod space;

use crate::blueprint::Blueprint;
use crate::config::GemmConfig;
use crate::device::HostGemm;
use space::Description;
use std::sync::Arc;
use tilewright_core::computation::InputError;
use tilewright_core::device::DeviceSpec;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
#[cfg(feature = "loops")]
use tilewright_core::operations::Operations;
use tilewright_core::program::Program;
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
#[cfg(feature = "loops")]
use tilewright_loops::host::Caches;
use tilewright_ops::gemm::{Gemm, GemmInput};

/// The kernel `gemm.cpu`.
#[derive(Debug, Default)]
pub struct CpuGemm(());

/// A legal (device, input, configuration) with everything derived from it.
#[derive(Clone, Debug)]
pub struct GemmPlan {
    pub(crate) blueprint: Blueprint,
}

impl CpuGemm {
    /// The kernel with its space.
    pub fn new() -> Self {
        Self(())
    }
}

impl Kernel for CpuGemm {
    type Of = Gemm;
    type Plan = GemmPlan;

    fn id(&self) -> KernelId {
        KernelId::new("gemm.cpu.3")
    }

    fn computation(&self) -> &Gemm {
        &Gemm
    }

    fn space(&self) -> &ParamSpace {
        &Description::get().space
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

    fn plan(&self, _: &DeviceSpec, input: &GemmInput, at: &Legal<'_>) -> GemmPlan {
        // The names are the kernel's own, and the conformance suite reads them all at legal points.
        let blueprint = blueprint(input, at).unwrap_or_else(|| unreachable!("{at:?} is no legal point of gemm.cpu"));
        GemmPlan { blueprint }
    }

    #[cfg(feature = "loops")]
    fn operations(&self, device: &DeviceSpec, _: &GemmInput, plan: &GemmPlan) -> Option<Operations> {
        Some(operations::of(plan, &Caches::of(device)))
    }

    fn generate(&self, plan: &GemmPlan) -> Program {
        Program::host(Arc::new(HostGemm::new(plan)), 0)
    }

    fn feature_names(&self) -> Vec<Feature> {
        features::names()
    }

    fn features(&self, _: &DeviceSpec, input: &GemmInput, at: &Values<'_>, out: &mut Vec<f32>) {
        features::features(input, at, out);
    }

    fn default_point(&self, device: &DeviceSpec, input: &GemmInput, space: &BoundSpace) -> Option<Point> {
        default::default_point(device, input, space)
    }
}

/// What follows from a point; `None` for one of another space.
fn blueprint(input: &GemmInput, at: &Values<'_>) -> Option<Blueprint> {
    let [vectors] = at.ints([Description::get().vectors])?;
    Some(Blueprint::new(input.clone(), GemmConfig::of(at)?, vectors))
}
