//! What a plan costs: its legality, its code, and a call beyond the work itself.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use tilewright_core::buffer::{Buffer, Filling, views};
use tilewright_core::device::HostProgram;
use tilewright_core::dtype::DType;
use tilewright_core::problem::{Bound, Problem};
use tilewright_cpu::{CpuDevice, CpuGemm};
use tilewright_ops::gemm::{GemmInput, Layout};

fn bound(input: GemmInput) -> (CpuDevice, Bound<CpuGemm>) {
    let device = CpuDevice::new(1).expect("a host");
    let problem = Bound::new(Arc::new(CpuGemm::new()), device.spec().clone(), input).expect("a cpu has all symbols");
    (device, problem)
}

fn plans(c: &mut Criterion) {
    let (_, problem) = bound(GemmInput::new(2048, 2048, 2048, DType::F32, Layout::Nt));
    let point = problem.default_point().expect("a default");
    let space = problem.space();
    c.bench_function("legality of a point", |b| b.iter(|| space.is_legal(black_box(&point.0))));
    let mut row = Vec::new();
    c.bench_function("features of a configuration", |b| {
        b.iter(|| {
            row.clear();
            problem.config_features(black_box(&point), &mut row);
        });
    });
    let legal = space.check(&point).expect("the default is legal");
    c.bench_function("plan and code", |b| b.iter(|| problem.program(black_box(&legal))));
}

fn dispatch(c: &mut Criterion) {
    let (_, problem) = bound(GemmInput::new(1, 1, 1, DType::F32, Layout::Nn));
    let point = problem.default_point().expect("a default");
    let program = problem.program(&problem.space().check(&point).expect("the default is legal"));
    let program = HostProgram::new(&program).expect("host code");
    let mut work = problem.workload(Filling::Real, 1);
    let mut views = views(&mut work.buffers);
    let mut workspace = Buffer::zeroed(DType::I8, program.workspace());
    c.bench_function("call of a 1 x 1 x 1 product", |b| {
        b.iter(|| program.run(&mut views, &work.scalars, &mut workspace));
    });
}

criterion_group!(benches, plans, dispatch);
criterion_main!(benches);
