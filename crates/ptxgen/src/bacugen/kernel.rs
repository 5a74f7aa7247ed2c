//! BACUGen's GEMM as a tunable kernel.

use super::blueprint::Blueprint;
use super::default;
use super::space::{Description, GRIDS};
use crate::gemm::{GemmPlan, facts, features, kernel};
use crate::target::Target;
use tilewright_core::computation::InputError;
use tilewright_core::counts::Counts;
use tilewright_core::device::DeviceSpec;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::program::Program;
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
use tilewright_ops::gemm::{Gemm, GemmInput};

/// A legal (device, input, configuration) with everything derived from it.
pub type BacugenPlan = GemmPlan<Blueprint>;

/// The kernel `gemm.bacugen`.
#[derive(Debug, Default)]
pub struct BacugenGemm(());

impl BacugenGemm {
    /// The kernel with its space.
    pub fn new() -> Self {
        Self(())
    }

    fn plan_of(device: &DeviceSpec, input: &GemmInput, at: &Values<'_>) -> Option<BacugenPlan> {
        let names = &Description::get().names;
        let blueprint = Blueprint::new(Target::of(device), input, names, at)?;
        Some(GemmPlan::of(blueprint, input, at.ints(names.grid)?))
    }
}

impl Kernel for BacugenGemm {
    type Of = Gemm;
    type Plan = BacugenPlan;

    fn id(&self) -> KernelId {
        KernelId::new("gemm.bacugen.2")
    }

    fn computation(&self) -> &Gemm {
        &Gemm
    }

    fn space(&self) -> &ParamSpace {
        &Description::get().space
    }

    fn accepts(&self, input: &GemmInput) -> Result<(), InputError> {
        input.only_types(&[GemmInput::PLAIN, GemmInput::COMPLEX].concat())?;
        kernel::whole_numbers(input)
    }

    fn symbols(&self, device: &DeviceSpec, input: &GemmInput) -> Symbols {
        facts::symbols(device, input)
    }

    fn derivations(&self) -> Vec<(&'static str, String)> {
        facts::derivations()
    }

    fn plan(&self, device: &DeviceSpec, input: &GemmInput, at: &Legal<'_>) -> BacugenPlan {
        // The names are the kernel's own, and the conformance suite reads them all at legal points.
        Self::plan_of(device, input, at)
            .unwrap_or_else(|| unreachable!("{at:?} is no point of gemm.bacugen, or not legal there"))
    }

    fn generate(&self, plan: &BacugenPlan) -> Program {
        plan.program([0; 3])
    }

    fn counts(&self, plan: &BacugenPlan) -> Option<Counts> {
        plan.count().ok()
    }

    fn feature_names(&self) -> Vec<Feature> {
        features::names().into_iter().chain(GRIDS.map(Feature::size)).collect()
    }

    fn features(&self, _: &DeviceSpec, input: &GemmInput, at: &Values<'_>, out: &mut Vec<f32>) {
        let Description { names, grids, .. } = Description::get();
        features::features([input.m as u32, input.n as u32], input.batch.count, names, at, out);
        let grids: Option<[u32; GRIDS.len()]> = at.ints(*grids);
        out.extend(grids.map_or([f32::NAN; GRIDS.len()], |grids| grids.map(|size| size as f32)));
    }

    fn default_point(&self, _: &DeviceSpec, _: &GemmInput, space: &BoundSpace) -> Option<Point> {
        default::default_point(space)
    }
}
