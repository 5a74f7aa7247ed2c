//! Random inputs and random legal configurations for them.

// Each test uses its part.
#![allow(dead_code)]

pub(crate) mod conv;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::kernel::Kernel;
use tilewright_core::space::{BoundSpace, Point};
use tilewright_ops::gemm::{Accuracy, Activation, Bias, Gemm, GemmInput, Layout, ScalarClass};
use tilewright_ptxgen::bacugen::{BacugenGemm, BacugenPlan};
use tilewright_ptxgen::gemm::{GemmPlan, Load, SimtGemm, Template};
use tilewright_ptxgen::mma::{MmaGemm, MmaPlan};
use tilewright_ptxgen::target::Target;

/// Those that matrix instructions are generated for.
pub(crate) const MMA_TARGETS: [&str; 4] = ["sm_80", "sm_90", "sm_100", "sm_120"];

/// The targets that are claimed.
pub(crate) const TARGETS: [&str; 7] = ["sm_50", "sm_60", "sm_70", "sm_80", "sm_90", "sm_100", "sm_120"];

const SIZES: [usize; 14] = [1, 7, 16, 32, 64, 100, 128, 256, 512, 1000, 1024, 2048, 2560, 4096];

pub(crate) fn spec(target: &str) -> Arc<DeviceSpec> {
    Arc::new(target.parse::<Target>().unwrap().spec())
}

pub(crate) fn input(rng: &mut ChaCha8Rng) -> GemmInput {
    let dtype = if rng.random() { DType::F32 } else { DType::F64 };
    input_of(rng, dtype.into())
}

/// Operands, sums and results that matrix instructions multiply.
pub(crate) const MMA_TYPES: [[DType; 3]; 9] = [
    [DType::F16, DType::F16, DType::F16],
    [DType::F16, DType::F32, DType::F16],
    [DType::F16, DType::F32, DType::F32],
    [DType::Bf16, DType::F32, DType::Bf16],
    [DType::Bf16, DType::F32, DType::F32],
    [DType::Tf32, DType::F32, DType::F32],
    [DType::F32, DType::F32, DType::F32],
    [DType::F64, DType::F64, DType::F64],
    [DType::I8, DType::I32, DType::I32],
];

/// An input of one of [`MMA_TYPES`], some with an epilogue.
pub(crate) fn mma_input(rng: &mut ChaCha8Rng) -> GemmInput {
    // Operands of f32 are rounded or split.
    let chosen = rng.random_range(0..=MMA_TYPES.len());
    let [operand, accumulator, output] = MMA_TYPES.get(chosen).copied().unwrap_or([DType::F32; 3]);
    let mut input = input_of(rng, ElementTypes { operand, accumulator, output });
    match operand {
        DType::I8 => {
            input.alpha = ScalarClass::One;
            input.beta = [ScalarClass::One, ScalarClass::Zero][rng.random_range(0..2)];
        }
        DType::F32 => input.accuracy = [Accuracy::Tf32, Accuracy::ThreeTf32][rng.random_range(0..2)],
        _ => {}
    }
    input.epilogue.bias = Bias::ALL[rng.random_range(0..3)];
    if rng.random() {
        input.epilogue.activation = Activation::Relu;
    }
    input
}

fn input_of(rng: &mut ChaCha8Rng, types: ElementTypes) -> GemmInput {
    let mut size = || SIZES[rng.random_range(0..SIZES.len())];
    let (m, n, k) = (size(), size(), size());
    let mut input = GemmInput::new(m, n, k, types, Layout::ALL[rng.random_range(0..4)]);
    let classes = [ScalarClass::One, ScalarClass::Other, ScalarClass::Zero];
    input.alpha = classes[rng.random_range(0..2)];
    input.beta = classes[rng.random_range(0..3)];
    if rng.random_range(0..4) == 0 {
        (input.lda, input.ldb, input.ldc) = (input.lda + 4, input.ldb + 1, input.ldc + 2);
    }
    if rng.random_range(0..4) == 0 {
        input.align = types.operand.size().max(types.output.size());
    }
    input
}

/// Sums in pairs of f16.
pub(crate) const PAIRS: [(DType, DType, DType); 2] =
    [(DType::F16, DType::F16, DType::F16), (DType::F16, DType::F16, DType::F32)];

/// Every combination of types beside f32 and f64 throughout, and [`PAIRS`].
pub(crate) const TYPES: [(DType, DType, DType); 6] = [
    (DType::F16, DType::F32, DType::F16),
    (DType::F16, DType::F32, DType::F32),
    (DType::Bf16, DType::F32, DType::Bf16),
    (DType::Bf16, DType::F32, DType::F32),
    (DType::C32, DType::C32, DType::C32),
    (DType::C64, DType::C64, DType::C64),
];

/// An input of one of [`TYPES`], some with an epilogue.
pub(crate) fn typed(rng: &mut ChaCha8Rng) -> GemmInput {
    typed_of(rng, &TYPES)
}

fn typed_of(rng: &mut ChaCha8Rng, among: &[(DType, DType, DType)]) -> GemmInput {
    let (operand, accumulator, output) = among[rng.random_range(0..among.len())];
    let mut input = input(rng);
    let layouts = Layout::every(operand);
    let of = ElementTypes { operand, accumulator, output };
    let new = GemmInput::new(input.m, input.n, input.k, of, layouts[rng.random_range(0..layouts.len())]);
    (input.types, input.layout, input.align) = (of, new.layout, 64);
    (input.lda, input.ldb, input.ldc) = (new.lda, new.ldb, new.ldc);
    if rng.random_range(0..4) == 0 {
        (input.lda, input.ldb, input.ldc) = (input.lda + 4, input.ldb + 1, input.ldc + 2);
    }
    if rng.random_range(0..4) == 0 {
        input.align = operand.size().max(output.size());
    }
    input.epilogue.bias = Bias::ALL[rng.random_range(0..3)];
    if !operand.is_complex() && rng.random() {
        input.epilogue.activation = Activation::Relu;
    }
    input
}

/// A legal point, each parameter uniform among the values that the rules leave it; `None` after a few dead ends.
pub(crate) fn point(space: &BoundSpace, rng: &mut ChaCha8Rng) -> Option<Point> {
    let mut attempt = || {
        let (mut point, mut allowed) = (Vec::new(), Vec::new());
        for _ in space.params() {
            allowed.clear();
            space.next_values(&point, &mut allowed);
            point.push(*allowed.get(rng.random_range(0..allowed.len().max(1)))?);
        }
        Some(Point(point))
    };
    (0..100).find_map(|_| attempt())
}

/// So many random legal plans for a target.
pub(crate) fn plans(target: &str, count: usize, seed: u64) -> Vec<GemmPlan> {
    plans_of(&SimtGemm::new(), input, target, count, seed)
}

/// The same for inputs of every type, some with an epilogue.
pub(crate) fn typed_plans(target: &str, count: usize, seed: u64) -> Vec<GemmPlan> {
    plans_of(&SimtGemm::new(), typed, target, count, seed)
}

/// The same of products of few columns, whose rows of A go straight to registers.
pub(crate) fn straight_plans(target: &str, count: usize, seed: u64) -> Vec<GemmPlan> {
    let narrow = |rng: &mut ChaCha8Rng| {
        let input = if rng.random() { input(rng) } else { typed(rng) };
        let n = [1, 5, 8, 16, 32, 64][rng.random_range(0..6)];
        let new = GemmInput::new(input.m, n, input.k, input.types, input.layout);
        // Padded as what was drawn.
        let ldb = new.ldb + if rng.random() { 0 } else { 4 };
        GemmInput { lda: input.lda, ldb, ldc: input.ldc, align: input.align, epilogue: input.epilogue, ..new }
    };
    let drawn = (seed..seed + 1000).flat_map(|seed| plans_of(&SimtGemm::new(), narrow, target, 32, seed));
    let straight: Vec<GemmPlan> =
        drawn.filter(|plan| plan.blueprint().config.load == Load::Straight).take(count).collect();
    assert_eq!(straight.len(), count, "{target}");
    straight
}

/// The same of blocks that share the stages of all tiles, of every type.
pub(crate) fn streamed_plans(target: &str, count: usize, seed: u64) -> Vec<GemmPlan> {
    let any = |rng: &mut ChaCha8Rng| if rng.random() { input(rng) } else { typed(rng) };
    let drawn = (seed..seed + 1000).flat_map(|seed| plans_of(&SimtGemm::new(), any, target, 32, seed));
    let streamed: Vec<GemmPlan> = drawn.filter(|plan| plan.sharing().is_some()).take(count).collect();
    assert_eq!(streamed.len(), count, "{target}");
    streamed
}

/// The same with sums in pairs of f16; none for devices that have no arithmetic of it.
pub(crate) fn paired_plans(target: &str, count: usize, seed: u64) -> Vec<GemmPlan> {
    let count = if target == "sm_50" { 0 } else { count };
    plans_of(&SimtGemm::new(), |rng| typed_of(rng, &PAIRS), target, count, seed)
}

/// The same by matrix instructions.
pub(crate) fn mma_plans(target: &str, count: usize, seed: u64) -> Vec<MmaPlan> {
    plans_of(&MmaGemm::new(), mma_input, target, count, seed)
}

/// The same of BACUGen's stencil.
pub(crate) fn bacugen_plans(target: &str, count: usize, seed: u64) -> Vec<BacugenPlan> {
    plans_of(&BacugenGemm::new(), bacugen_input, target, count, seed)
}

/// An input of S, D, C or Z.
pub(crate) fn bacugen_input(rng: &mut ChaCha8Rng) -> GemmInput {
    let mut input = if rng.random() { input(rng) } else { typed(rng) };
    while input.types.operand.size() < 4 {
        input = typed(rng);
    }
    input
}

fn plans_of<T: Template, K: Kernel<Of = Gemm, Plan = GemmPlan<T>>>(
    kernel: &K,
    input: fn(&mut ChaCha8Rng) -> GemmInput,
    target: &str,
    count: usize,
    seed: u64,
) -> Vec<GemmPlan<T>> {
    let spec = spec(target);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut plans = Vec::new();
    while plans.len() < count {
        let input = input(&mut rng);
        let space = kernel.space().bind(&kernel.symbols(&spec, &input)).unwrap();
        let Some(point) = point(&space, &mut rng) else { continue };
        plans.push(kernel.plan(&spec, &input, &space.check(&point).unwrap()));
    }
    plans
}
