//! What the tests run kernels on and with.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use tilewright_core::buffer::{Buffers, Filling, Workload};
use tilewright_core::computation::Computation;
use tilewright_core::data::Data;
use tilewright_core::device::{Device, DeviceSpec};
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::program::Program;
use tilewright_core::space::Config;
use tilewright_emulator::EmulatorDevice;
use tilewright_ops::gemm::{Gemm, GemmInput};
use tilewright_ptxgen::gemm::{GemmPlan, SimtGemm};
use tilewright_ptxgen::target::Target;

pub(crate) fn spec(target: &str) -> Arc<DeviceSpec> {
    Arc::new(target.parse::<Target>().unwrap().spec())
}

/// A device that fails a run at its first finding.
pub(crate) fn device(target: &str) -> EmulatorDevice {
    EmulatorDevice::new(spec(target)).unwrap()
}

pub(crate) fn input(words: &str) -> GemmInput {
    Gemm.parse(&Config::parse(words).unwrap()).unwrap()
}

fn problem<K: Kernel<Of = Gemm>>(kernel: K, target: &str, input: &GemmInput) -> Bound<K> {
    Bound::new(Arc::new(kernel), spec(target), input.clone()).unwrap()
}

/// The plan of `gemm.simt` with these parameters, the others as they are by default.
pub(crate) fn plan(target: &str, input: &GemmInput, config: &str) -> GemmPlan {
    plan_of(SimtGemm::new(), target, input, config)
}

/// The same of any kernel.
pub(crate) fn plan_of<K: Kernel<Of = Gemm>>(kernel: K, target: &str, input: &GemmInput, config: &str) -> K::Plan {
    let (problem, parsed) = (problem(kernel, target, input), Config::parse(config).unwrap());
    let point = parsed.to_point(problem.space().params(), problem.default_point().as_deref()).unwrap();
    let legal = problem.space().check(&point);
    problem.plan(&legal.unwrap_or_else(|e| panic!("{input:?}, {config}: {e}")))
}

/// The plan of a legal point of `gemm.simt`, each parameter uniform among the values that the rules leave it; parameters in `fixed`
/// as they are there.
pub(crate) fn any_plan(target: &str, input: &GemmInput, fixed: &str, rng: &mut ChaCha8Rng) -> Option<GemmPlan> {
    any_plan_of(SimtGemm::new(), target, input, fixed, rng)
}

/// The same of any kernel.
pub(crate) fn any_plan_of<K: Kernel<Of = Gemm>>(
    kernel: K,
    target: &str,
    input: &GemmInput,
    fixed: &str,
    rng: &mut ChaCha8Rng,
) -> Option<K::Plan> {
    let (problem, fixed) = (problem(kernel, target, input), Config::parse(fixed).unwrap());
    let space = problem.space();
    let mut attempt = || {
        let (mut point, mut allowed) = (Vec::new(), Vec::new());
        for param in space.params() {
            space.next_values(&point, &mut allowed);
            let wanted = fixed.get(&param.name).map(|v| param.index_of(v).unwrap());
            allowed.retain(|i| wanted.is_none_or(|w| w == *i));
            point.push(*allowed.get(rng.random_range(0..allowed.len().max(1)))?);
        }
        Some(problem.plan(&space.check(&point).unwrap()))
    };
    (0..300).find_map(|_| attempt())
}

pub(crate) fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Runs on data of a seed: what the buffers hold afterwards.
pub(crate) fn run(device: &mut EmulatorDevice, program: &Program, work: &Workload, what: &str) -> Buffers {
    device.upload(&Data::Given(Arc::new(work.clone()))).unwrap_or_else(|e| panic!("{what}: {e}"));
    device.run(program).unwrap_or_else(|e| panic!("{what}: {e}"));
    device.read().unwrap()
}

/// Runs a plan on data of this kind and compares with the reference; nothing may be found.
pub(crate) fn check(target: &str, input: &GemmInput, plan: &GemmPlan, filling: Filling, seed: u64) {
    let what = format!("{:?}", plan.blueprint().config);
    check_program(target, input, &plan.program([0; 3]), &what, filling, seed);
}

/// The same of a program, with words for its configuration.
pub(crate) fn check_program(
    target: &str,
    input: &GemmInput,
    program: &Program,
    what: &str,
    filling: Filling,
    seed: u64,
) {
    let what = format!("{target}, {input:?}, {what}, {filling:?} data of seed {seed}");
    let work = Gemm.workload(input, filling, seed);
    let after = run(&mut device(target), program, &work, &what);
    let verdict = Gemm.reference(input, &work.buffers, &work.scalars).unwrap().compare(&after);
    assert!(verdict.is_right(), "{what}: {} wrong, the first {:?}", verdict.wrong, verdict.first);
}
