//! Tests of convolutions: right results by generated code in the interpreter, without an access outside of the tensors, and by
//! plain routines.

use super::blueprint::Blueprint;
use super::depthwise::CpuDepthwise;
use super::driver::{Call, Compiled};
use super::finish::Finish;
use super::kernel::CpuConv;
use super::winograd::CpuWinograd;
use crate::device::CpuDevice;
use crate::exec::code::assemble;
use crate::interpreter::{Memory, Rights};
use crate::proofs::{Interpreted, device};
use proptest::prelude::*;
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::sync::Arc;
use tilewright_core::buffer::{Buffer, Filling, Workload};
use tilewright_core::computation::{Computation, InputLimits};
use tilewright_core::data::Data;
use tilewright_core::device::{Device, DeviceSpec};
use tilewright_core::dtype::DType;
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::space::Config;
use tilewright_ops::conv::{Activation, BIAS, Conv, ConvInput};

/// The plan of a random legal point: parameters in order, each among the values that earlier ones allow.
fn any_plan<K: Kernel<Of = Conv>>(
    kernel: K,
    device: &DeviceSpec,
    input: &ConvInput,
    rng: &mut StdRng,
) -> Option<K::Plan> {
    let problem = Bound::new(Arc::new(kernel), Arc::new(device.clone()), input.clone()).unwrap();
    let space = problem.space();
    for _ in 0..200 {
        let (mut point, mut allowed) = (Vec::new(), Vec::new());
        while point.len() < space.params().len() {
            allowed.clear();
            space.next_values(&point, &mut allowed);
            let Some(&value) = allowed.get(rng.random_range(0..allowed.len().max(1))) else { break };
            point.push(value);
        }
        if let Ok(legal) = space.check(&point) {
            return Some(problem.plan(&legal));
        }
    }
    None
}

fn call(input: &ConvInput, work: &mut Workload, workspace: &mut Buffer) -> Call {
    let null = std::ptr::null();
    let at = |work: &Workload, i: usize| work.buffers[i].bytes().as_ptr();
    let (written, gathered) = (input.written(), input.gathered());
    Call {
        gathered: at(work, gathered),
        filter: at(work, 3 - written - gathered),
        finish: Finish {
            bias: if input.epilogue.bias { at(work, BIAS) } else { null },
            residual: input.residual().map_or(null, |buffer| at(work, buffer)),
            relu: input.epilogue.activation == Activation::Relu,
            simd: crate::device::generates(),
        },
        result: work.buffers[written].bytes_mut().as_mut_ptr(),
        workspace: workspace.bytes_mut().as_mut_ptr(),
    }
}

/// Runs all parts in the interpreter, one after the other; panels and slabs are filled natively.
fn interpret(blueprint: &Blueprint, input: &ConvInput, work: &mut Workload) -> Result<(), String> {
    let (code, _) = assemble(&blueprint.tiles().0).unwrap();
    let compiled = Compiled::new(blueprint.clone()).unwrap();
    let mut workspace = Buffer::zeroed(DType::I8, blueprint.workspace());
    let mut memory = Memory::default();
    for (i, buffer) in work.buffers.iter().enumerate() {
        let rights = if i == input.written() { Rights::ReadWrite } else { Rights::Read };
        memory.allow(buffer.bytes().as_ptr() as u64, buffer.bytes().len(), rights);
    }
    memory.allow(blueprint.table.as_ptr() as u64, size_of_val(blueprint.table.as_slice()), Rights::Read);
    let table = &compiled.blueprint.table;
    memory.allow(table.as_ptr() as u64, size_of_val(table.as_slice()), Rights::Read);
    memory.allow(workspace.bytes().as_ptr() as u64, workspace.len(), Rights::ReadWrite);
    let call = call(input, work, &mut workspace);
    let runs = Interpreted::new(code, memory);
    for thread in 0..blueprint.config.t {
        // SAFETY: buffers have the input's extents, the workspace the plan's size; one thread runs after the other.
        unsafe { compiled.pack(thread, blueprint.config.t, &call) };
    }
    for thread in 0..blueprint.config.t {
        // SAFETY: as above; all panels are packed.
        unsafe { compiled.run_part(thread, &call, &runs) };
    }
    runs.fault().map_or(Ok(()), |fault| Err(format!("{fault:?}")))
}

fn run_portably(blueprint: &Blueprint, input: &ConvInput, work: &mut Workload) -> Result<(), String> {
    let mut workspace = Buffer::zeroed(DType::I8, blueprint.workspace());
    let call = call(input, work, &mut workspace);
    // SAFETY: buffers have the input's extents, the workspace the plan's size; the routines need no instruction set.
    unsafe { Compiled::portable(blueprint.clone()).run(&call) };
    Ok(())
}

/// An awkward input and the plan of a random point, run some way.
fn check(
    device: &DeviceSpec,
    fixed: &str,
    seed: u64,
    run: fn(&Blueprint, &ConvInput, &mut Workload) -> Result<(), String>,
) -> Result<(), TestCaseError> {
    let mut rng = StdRng::seed_from_u64(seed);
    let limits = InputLimits { max_flops: 4e5, max_bytes: 4e6 };
    let input = Conv.draw_awkward(&Config::parse(fixed).unwrap(), &limits, &mut || rng.random_range(0.0..1.0)).unwrap();
    prop_assume!(CpuConv::new().accepts(&input).is_ok());
    let Some(plan) = any_plan(CpuConv::new(), device, &input, &mut rng) else {
        return Err(TestCaseError::reject("no legal point was drawn"));
    };
    prop_assume!(plan.empty.is_empty() && !plan.blueprints.is_empty());
    let config = plan.blueprints[0].config.clone();
    let mut work = Conv.workload(&input, Filling::Real, seed);
    let expected = Conv.reference(&input, &work.buffers, &[]).unwrap();
    for blueprint in &plan.blueprints {
        prop_assert_eq!(run(blueprint, &input, &mut work), Ok(()), "{:?} {:?}", input, config);
    }
    let verdict = expected.compare(&work.buffers);
    prop_assert!(verdict.is_right(), "{:?} {:?} {:?}", verdict, input, config);
    Ok(())
}

/// A convolution of an awkward input whose kernel is no generated code, with vectors of a width that the host has, or without any.
fn check_on_host<K: Kernel<Of = Conv>>(new: fn() -> K, fixed: &str, vec: i64, seed: u64) -> Result<(), TestCaseError>
where
    K::Plan: std::fmt::Debug,
{
    let mut rng = StdRng::seed_from_u64(seed);
    let limits = InputLimits { max_flops: 2e6, max_bytes: 4e6 };
    let direction = ["forward", "data"][rng.random_range(0..2)];
    let fixed = Config::parse(&format!("{fixed},direction={direction}")).unwrap();
    let input = Conv.draw_awkward(&fixed, &limits, &mut || rng.random_range(0.0..1.0)).unwrap();
    let kernel = new();
    prop_assume!(kernel.accepts(&input).is_ok());
    let Some(plan) = any_plan(kernel, &device(vec, rng.random_range(1..4)), &input, &mut rng) else {
        return Err(TestCaseError::reject("no legal point was drawn"));
    };
    let work = Arc::new(Conv.workload(&input, Filling::Real, seed));
    let named = format!("{input:?} {plan:?}");
    let mut host = CpuDevice::new(1).unwrap();
    host.upload(&Data::Given(work.clone())).unwrap();
    host.run(&new().generate(&plan).on(Conv.buffers(&input))).unwrap();
    let verdict = Conv.reference(&input, &work.buffers, &[]).unwrap().compare(&host.read().unwrap());
    prop_assert!(verdict.is_right(), "{:?} {}", verdict, named);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 10_000, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn avx512_is_right_and_within_bounds(threads in 1i64..4, seed in any::<u64>()) {
        check(&device(64, threads), "", seed, interpret)?;
    }

    #[test]
    fn avx2_is_right_and_within_bounds(threads in 1i64..4, seed in any::<u64>()) {
        check(&device(32, threads), "", seed, interpret)?;
    }

    #[test]
    fn narrow_vectors_are_right_and_within_bounds(seed in any::<u64>()) {
        check(&device(16, 1), "", seed, interpret)?;
    }

    #[test]
    fn portable_routines_are_right(seed in any::<u64>()) {
        check(&device(16, 2), "", seed, run_portably)?;
    }

    #[test]
    fn winograds_are_right(wide in 0usize..3, seed in any::<u64>()) {
        let vec = [16, 32, 64][wide];
        prop_assume!(vec <= crate::device::vec_max());
        check_on_host(CpuWinograd::new, "r=3,s=3,stride=1,dilation=1", vec, seed)?;
    }

    #[test]
    fn depthwise_ones_are_right(wide in 0usize..3, channels in 1usize..70, seed in any::<u64>()) {
        let vec = [16, 32, 64][wide];
        prop_assume!(vec <= crate::device::vec_max());
        check_on_host(CpuDepthwise::new, &format!("c={channels},k={channels},groups={channels}"), vec, seed)?;
    }
}
