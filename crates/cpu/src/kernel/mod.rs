//! GEMM on the host CPU as a tunable kernel.

mod default;
mod features;
#[cfg(feature = "loops")]
mod operations;
mod space;

use crate::blueprint::Blueprint;
use crate::config::{Axis, GemmConfig, Order, Store};
use crate::device::HostGemm;
use crate::geometry::Geometry;
use crate::scalar::{Factor, Float};
use space::at;
use std::sync::{Arc, OnceLock};
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
#[cfg(feature = "loops")]
use tilewright_core::operations::Operations;
use tilewright_core::program::Program;
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
#[cfg(feature = "loops")]
use tilewright_loops::host::Caches;
use tilewright_ops::gemm::{Gemm, GemmInput, ScalarClass};

/// The kernel `gemm.cpu`.
#[derive(Debug)]
pub struct CpuGemm {
    space: ParamSpace,
}

/// A legal (device, input, configuration) with everything derived from it.
#[derive(Clone, Debug)]
pub struct GemmPlan {
    pub(crate) blueprint: Blueprint,
    pub(crate) input: GemmInput,
}

impl Default for CpuGemm {
    fn default() -> Self {
        Self::new()
    }
}

impl CpuGemm {
    /// The kernel with its space.
    pub fn new() -> Self {
        static SPACE: OnceLock<ParamSpace> = OnceLock::new();
        // The description is a constant of this crate; a test builds it.
        let build = || space::space().unwrap_or_else(|e| unreachable!("the space of gemm.cpu: {e}"));
        Self { space: SPACE.get_or_init(build).clone() }
    }

    /// The parameters of a point, typed.
    pub(crate) fn decode(&self, point: &[u16]) -> GemmConfig {
        let value = |i: usize| &self.space.params()[i].values[usize::from(point[i])];
        let int = |i: usize| value(i).as_int().and_then(|x| u32::try_from(x).ok()).unwrap_or(0);
        let is = |i: usize, word: &str| value(i).as_str() == Some(word);
        let config = GemmConfig {
            axis: if is(at::AXIS, "n") { Axis::N } else { Axis::M },
            m_s: int(at::M_S),
            n_s: int(at::N_S),
            m_l: int(at::M_L),
            n_l: int(at::N_L),
            u: int(at::U),
            k_s: int(at::K_S),
            k_l: int(at::K_L),
            k_g: int(at::K_G),
            t: int(at::T),
            t_m: int(at::T_M),
            t_n: (int(at::T) / (int(at::T_M) * int(at::K_G)).max(1)).max(1),
            pack_a: int(at::PACK_A) == 1,
            pack_b: int(at::PACK_B) == 1,
            vec: int(at::VEC),
            prefetch: int(at::PREFETCH),
            order: if is(at::ORDER, "broadcast") { Order::Broadcast } else { Order::Vector },
            store: if is(at::STORE, "stream") { Store::Stream } else { Store::Normal },
        };
        oriented(config)
    }
}

impl Kernel for CpuGemm {
    type Of = Gemm;
    type Plan = GemmPlan;

    fn id(&self) -> KernelId {
        KernelId::new("gemm.cpu.2")
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

    fn plan(&self, _: &DeviceSpec, input: &GemmInput, at: &Legal<'_>) -> GemmPlan {
        GemmPlan { blueprint: Blueprint::new(geometry(input), &self.decode(at.point())), input: input.clone() }
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

    fn features(&self, device: &DeviceSpec, input: &GemmInput, at: &Values<'_>, out: &mut Vec<f32>) {
        features::features(device, input, &self.decode(at.point()), out);
    }

    fn default_point(&self, _: &DeviceSpec, _: &GemmInput, space: &BoundSpace) -> Option<Point> {
        default::default_point(space)
    }
}

/// From the problem that the kernel solves to the caller's, and back: see the space's documentation.
fn oriented(config: GemmConfig) -> GemmConfig {
    if config.axis == Axis::N { config.transposed() } else { config }
}

fn geometry(input: &GemmInput) -> Geometry {
    let factor = |class| match class {
        ScalarClass::Zero => Factor::Zero,
        ScalarClass::One => Factor::One,
        ScalarClass::Other => Factor::Other,
    };
    Geometry {
        float: if input.dtype == DType::F64 { Float::F64 } else { Float::F32 },
        m: input.m,
        n: input.n,
        k: input.k,
        transpose_a: input.layout.a_transposed(),
        transpose_b: input.layout.b_transposed(),
        lda: input.lda,
        ldb: input.ldb,
        ldc: input.ldc,
        alpha: factor(input.alpha),
        beta: factor(input.beta),
    }
}
