//! GEMM on the host CPU as a tunable kernel.

mod default;
mod features;
#[cfg(feature = "loops")]
mod operations;
pub(crate) mod space;

use crate::blueprint::Blueprint;
use crate::config::GemmConfig;
use crate::device::HostGemm;
use crate::scalar::Kind;
use crate::sets::PAGE;
use space::Description;
use std::sync::Arc;
use tilewright_core::computation::InputError;
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
#[cfg(feature = "loops")]
use tilewright_core::operations::Operations;
use tilewright_core::program::Program;
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
#[cfg(feature = "loops")]
use tilewright_loops::host::Caches;
#[cfg(test)]
use tilewright_ops::gemm::Accuracy;
use tilewright_ops::gemm::{Gemm, GemmInput};

/// Bytes of a last-level cache of some cores. One of all cores of a large processor holds more, and takes as long as memory.
pub(crate) const SHARED_BY_FEW: usize = 32 << 20;

/// Multiply-adds up to which a product is not worth the waking of threads.
pub(crate) const THREADED: usize = 5 << 16;

/// Multiply-adds that writing an element takes as long as, where C takes at most twice the first-level cache, and where it takes
/// more: 64 x 1023 x 1 took 0.75 of the time on two threads.
const WRITTEN: [usize; 2] = [4, 16];

/// Multiply-adds that reading four bytes of an operand takes as long as.
pub(crate) const READ: usize = 4;

/// What an element of a C of so many bytes, for so many steps, takes, its writing included, in multiply-adds.
pub(crate) fn steps_of_work(k: usize, bytes: usize, l1: usize) -> usize {
    k.saturating_add(WRITTEN[usize::from(bytes > l1.saturating_mul(2))])
}

/// Steps of a reduction that are enough for a thread.
pub(crate) const ENOUGH_STEPS: usize = 256;

/// Whether threads that divided the side of `v` elements, which lie one after the other at each step of `k`, beside `s` others, would read
/// short runs of them from beyond their own caches, where each could read all of some steps: a processor fetches ahead what only the other
/// thread needs. 300 x 2 x 3000 took 3 times as long in parts along columns, in f32, and 753 x 16 x 1051 1.4 times. Not where few steps make
/// up for the sums of each thread that have to be added.
pub(crate) fn reads_short_runs(threads: usize, [v, s, k]: [usize; 3], es: usize, l2: usize) -> bool {
    let step = v.saturating_mul(es);
    let is_long = k >= ENOUGH_STEPS * threads && v.saturating_mul(4 * s) <= (v + s).saturating_mul(k);
    threads > 1 && is_long && step.saturating_mul(k) > l2 / 2 && step <= 4 * PAGE
}

/// The kernel `gemm.cpu`, or one of its peers for other numbers, which has a space of its own: `gemm.cpu-complex`, whose elements take more
/// registers, `gemm.cpu-3m`, whose complex products are made of three real ones, and `gemm.cpu-narrow`, which converts operands as it packs
/// or loads them.
#[derive(Debug, Default)]
pub struct CpuGemm {
    kind: Kind,
}

/// A legal (device, input, configuration) with everything derived from it.
#[derive(Clone, Debug)]
pub struct GemmPlan {
    pub(crate) blueprint: Blueprint,
}

/// What `gemm.cpu-narrow` computes: sums of floating point have 32 bits, also where fewer are asked for.
pub(crate) const NARROW: [ElementTypes; 7] = [
    with_sums(DType::Bf16, DType::F32, DType::F32),
    with_sums(DType::Bf16, DType::F32, DType::Bf16),
    ElementTypes::all(DType::Bf16),
    with_sums(DType::F16, DType::F32, DType::F32),
    with_sums(DType::F16, DType::F32, DType::F16),
    ElementTypes::all(DType::F16),
    ElementTypes::of(DType::I8),
];

const fn with_sums(operand: DType, accumulator: DType, output: DType) -> ElementTypes {
    ElementTypes { operand, accumulator, output }
}

impl CpuGemm {
    /// The kernel `gemm.cpu`, of real numbers.
    pub fn new() -> Self {
        Self { kind: Kind::Real }
    }

    /// The kernel `gemm.cpu-complex`.
    pub fn complex() -> Self {
        Self { kind: Kind::Complex }
    }

    /// The kernel `gemm.cpu-3m`, of complex numbers by three real products, for inputs whose accuracy allows them.
    pub fn three_m() -> Self {
        Self { kind: Kind::ThreeM }
    }

    /// The one whose space has most of what an input allows.
    #[cfg(test)]
    pub(crate) fn of(input: &GemmInput) -> Self {
        let is_allowed = input.accuracy == Accuracy::ThreeM;
        Self { kind: if is_allowed { Kind::ThreeM } else { Kind::of(input.dtype()) } }
    }

    /// The kernel `gemm.cpu-narrow`, of 16-bit floating point with sums of 32 bits, and of 8-bit integers.
    pub fn narrow() -> Self {
        Self { kind: Kind::Narrow }
    }
}

impl Kernel for CpuGemm {
    type Of = Gemm;
    type Plan = GemmPlan;

    fn id(&self) -> KernelId {
        KernelId::new(match self.kind {
            Kind::Real => "gemm.cpu.6",
            Kind::Complex => "gemm.cpu-complex.2",
            Kind::ThreeM => "gemm.cpu-3m.1",
            Kind::Narrow => "gemm.cpu-narrow.5",
        })
    }

    fn computation(&self) -> &Gemm {
        &Gemm
    }

    fn space(&self) -> &ParamSpace {
        &Description::of(self.kind).space
    }

    fn accepts(&self, input: &GemmInput) -> Result<(), InputError> {
        input.only(match self.kind {
            Kind::Real => &GemmInput::PLAIN,
            Kind::Complex | Kind::ThreeM => &GemmInput::COMPLEX,
            Kind::Narrow => &NARROW,
        })?;
        if self.kind == Kind::ThreeM { input.only_three_products() } else { Ok(()) }
    }

    fn symbols(&self, device: &DeviceSpec, input: &GemmInput) -> Symbols {
        let mut symbols = input.symbols(device);
        if self.kind == Kind::Narrow {
            symbols.set("element", self.kind.element(input.dtype()));
            symbols.set("i8", input.dtype() == DType::I8);
            symbols.set("bf16", input.dtype() == DType::Bf16);
            for fact in ["avx512_vnni", "avx512_bf16"] {
                symbols.set(fact, device.fact(fact).unwrap_or(0));
            }
        }
        symbols
    }

    fn derivations(&self) -> Vec<(&'static str, String)> {
        let mut all = GemmInput::derivations();
        if self.kind == Kind::Narrow {
            all.retain(|(name, _)| *name != "element");
            all.extend([
                ("element", "4".to_owned()),
                ("i8", "dtype == 'i8'".to_owned()),
                ("bf16", "dtype == 'bf16'".to_owned()),
            ]);
        }
        all
    }

    fn plan(&self, _: &DeviceSpec, input: &GemmInput, at: &Legal<'_>) -> GemmPlan {
        // The names are the kernel's own, and the conformance suite reads them all at legal points.
        let blueprint =
            blueprint(self.kind, input, at).unwrap_or_else(|| unreachable!("{at:?} is no legal point of gemm.cpu"));
        GemmPlan { blueprint }
    }

    #[cfg(feature = "loops")]
    fn operations(&self, device: &DeviceSpec, _: &GemmInput, plan: &GemmPlan) -> Option<Operations> {
        // What is counted are elements of one number.
        (self.kind == Kind::Real).then(|| operations::of(plan, &Caches::of(device)))
    }

    fn generate(&self, plan: &GemmPlan) -> Program {
        Program::host(Arc::new(HostGemm::new(plan)), 0)
    }

    fn feature_names(&self) -> Vec<Feature> {
        features::names()
    }

    fn features(&self, _: &DeviceSpec, input: &GemmInput, at: &Values<'_>, out: &mut Vec<f32>) {
        features::features(self.kind, input, at, out);
    }

    fn suits(&self, device: &DeviceSpec, input: &GemmInput) -> f64 {
        if self.kind == Kind::ThreeM { default::three_m::suits(device, input) } else { 0.0 }
    }

    fn default_point(&self, device: &DeviceSpec, input: &GemmInput, space: &BoundSpace) -> Option<Point> {
        default::default_point(device, (self.kind, input), space)
    }
}

/// What follows from a point; `None` for one of another space.
fn blueprint(kind: Kind, input: &GemmInput, at: &Values<'_>) -> Option<Blueprint> {
    let names = Description::of(kind);
    let [vectors] = at.ints([names.vectors])?;
    let native = match names.native {
        Some(native) => at.ints::<u32, 1>([native])? == [1],
        None => false,
    };
    Some(Blueprint::new(input.clone(), GemmConfig::of(at, kind)?, vectors, (kind, native)))
}
