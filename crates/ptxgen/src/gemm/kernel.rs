//! GEMM in PTX as a tunable kernel.

use super::config::{Bounds, GemmConfig, Load, Raster, Split};
use super::plan::GemmPlan;
use super::{default, features, space};
use crate::target::Target;
use std::sync::OnceLock;
use tilewright_core::counts::Counts;
use tilewright_core::device::DeviceSpec;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::program::Program;
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
use tilewright_ops::gemm::{Gemm, GemmInput};

/// The kernel `gemm.simt`.
#[derive(Debug)]
pub struct SimtGemm {
    space: ParamSpace,
}

impl Default for SimtGemm {
    fn default() -> Self {
        Self::new()
    }
}

impl SimtGemm {
    /// The kernel with its space.
    pub fn new() -> Self {
        static SPACE: OnceLock<ParamSpace> = OnceLock::new();
        // The description is a constant of this crate; a test builds it.
        let build = || space::space().unwrap_or_else(|e| unreachable!("the space of gemm.simt: {e}"));
        Self { space: SPACE.get_or_init(build).clone() }
    }

    /// The parameters of a point, typed.
    fn decode(&self, point: &[u16]) -> GemmConfig {
        let at = |name: &str| {
            let i = space::NAMES.iter().position(|n| *n == name).unwrap_or(0);
            &self.space.params()[i].values[usize::from(point[i])]
        };
        let int = |name| at(name).as_int().and_then(|x| u32::try_from(x).ok()).unwrap_or(0);
        let is = |name, word: &str| at(name).as_str() == Some(word);
        GemmConfig {
            m_s: int("m_s"),
            n_s: int("n_s"),
            m_l: int("m_l"),
            n_l: int("n_l"),
            u: int("u"),
            k_s: int("k_s"),
            k_l: int("k_l"),
            k_g: int("k_g"),
            vec_a: int("vec_a"),
            vec_b: int("vec_b"),
            vec_c: int("vec_c"),
            stages: int("stages"),
            load: LOADS.iter().find(|(_, word)| is("load", word)).map_or(Load::Global, |(l, _)| *l),
            split: if is("split", "atomic") { Split::Atomic } else { Split::Ordered },
            raster: if is("raster", "n") { Raster::N } else { Raster::M },
            bounds: if is("bounds", "whole") { Bounds::Whole } else { Bounds::Checked },
        }
    }
}

const LOADS: [(Load, &str); 3] = [(Load::Global, "global"), (Load::Nc, "nc"), (Load::Async, "async")];

impl Kernel for SimtGemm {
    type Of = Gemm;
    type Plan = GemmPlan;

    fn id(&self) -> KernelId {
        KernelId::new("gemm.simt.1")
    }

    fn computation(&self) -> &Gemm {
        &Gemm
    }

    fn space(&self) -> &ParamSpace {
        &self.space
    }

    fn symbols(&self, device: &DeviceSpec, input: &GemmInput) -> Symbols {
        input.symbols(device)
    }

    fn plan(&self, device: &DeviceSpec, input: &GemmInput, at: &Legal<'_>) -> GemmPlan {
        GemmPlan::new(target(device), input, &self.decode(at.point()))
    }

    fn generate(&self, plan: &GemmPlan) -> Program {
        plan.program([0; 3])
    }

    fn counts(&self, plan: &GemmPlan) -> Option<Counts> {
        plan.count().ok()
    }

    fn feature_names(&self) -> Vec<Feature> {
        features::names()
    }

    fn features(&self, device: &DeviceSpec, input: &GemmInput, at: &Values<'_>, out: &mut Vec<f32>) {
        features::features(device, input, &self.decode(at.point()), out);
    }

    fn default_point(&self, _: &DeviceSpec, _: &GemmInput, space: &BoundSpace) -> Option<Point> {
        default::default_point(space)
    }
}

/// What code for a device is made for. The rule `target` lets no older device pass.
pub(super) fn target(device: &DeviceSpec) -> Target {
    device.fact("sm").and_then(Target::of_sm).unwrap_or(Target::OLDEST)
}
