//! What a cached plan costs to call, beyond the work itself: a loop of 1,000 calls, each of which looks the plan up by
//! its typed input and runs it. The floor is the same loop calling the code directly.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;
use tilewright_core::buffer::{Filling, View, views};
use tilewright_core::computation::Computation;
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::program::{DeviceError, HostArgs, HostCode, Program};
use tilewright_core::space::Config;
use tilewright_cpu::{CpuDevice, CpuSmall};
use tilewright_ops::gemm::GemmInput;
use tilewright_runtime::table::{HostPlan, PlanTable};

const CALLS: u64 = 1000;

/// Does nothing: what is left is dispatch.
struct Nothing;

impl HostCode for Nothing {
    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        black_box(&args.scalars);
        Ok(())
    }
}

/// Plans of some inputs beside the one that is called, so that the table is not a table of one.
fn inputs(kernel: &CpuSmall) -> Vec<GemmInput> {
    let parse = |m: i64| {
        let words = Config::parse(&format!("m={m},n={m},k={m},dtype=f32")).ok()?;
        kernel.computation().parse(&words).ok()
    };
    (1..=64).filter_map(parse).collect()
}

fn dispatch(c: &mut Criterion) {
    let mut group = c.benchmark_group("dispatch");
    group.throughput(Throughput::Elements(CALLS)).measurement_time(Duration::from_secs(3));
    let kernel = CpuSmall::new();
    let inputs = inputs(&kernel);
    // The scalars are checked as they are for code that does something.
    let nothing = |input| {
        let program = Program::host(Arc::new(Nothing), 0).taking(kernel.computation().scalars(input));
        HostPlan::new(&program).expect("host code")
    };
    let mut table: PlanTable<GemmInput, HostPlan> = PlanTable::default();
    for input in &inputs {
        table.insert(input.clone(), nothing(input));
    }
    let mut buffers: Vec<View<'_>> = Vec::new();
    group.bench_function("1000 calls of nothing", |b| {
        b.iter(|| {
            for i in 0..CALLS as usize {
                let input = black_box(&inputs[i % inputs.len()]);
                let plan = table.get_mut(input).expect("a plan");
                plan.call(&mut buffers, &[1.0, 0.0]).expect("a run");
            }
        });
    });
    gemm(&mut group, kernel);
    group.finish();
}

/// An 8 x 8 x 8 product on the host: next to no work, found in the table and called directly.
fn gemm(group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>, kernel: CpuSmall) {
    let spec = CpuDevice::new(1).expect("one thread").spec().clone();
    let input = inputs(&kernel).remove(7);
    let problem = Bound::new(Arc::new(kernel), spec, input.clone()).expect("the host has what the rules name");
    let point = problem.default_point().expect("a default");
    let program = problem.program(&problem.space().check(&point).expect("the default is legal"));
    let work = problem.workload(Filling::Real, 1);
    let (mut owned, scalars) = (work.buffers, work.scalars);
    let mut buffers = views(&mut owned);
    let mut direct = HostPlan::new(&program).expect("host code");
    group.bench_function("1000 calls of gemm 8x8x8, direct", |b| {
        b.iter(|| (0..CALLS).for_each(|_| direct.call(&mut buffers, &scalars).expect("a run")));
    });
    let mut table: PlanTable<GemmInput, HostPlan> = PlanTable::default();
    table.insert(input.clone(), HostPlan::new(&program).expect("host code"));
    group.bench_function("1000 calls of gemm 8x8x8, from the table", |b| {
        b.iter(|| {
            for _ in 0..CALLS {
                let plan = table.get_mut(black_box(&input)).expect("a plan");
                plan.call(&mut buffers, &scalars).expect("a run");
            }
        });
    });
}

criterion_group!(benches, dispatch);
criterion_main!(benches);
