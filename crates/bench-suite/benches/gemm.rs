//! GEMM with its untuned configuration on one device, by criterion.
//!
//! `TILEWRIGHT_BENCH_DEVICE` names the device: `cpu` (unless set) or `cuda:N`. Criterion keeps its baselines by the name of the
//! group, which holds the device's, so that each device is compared with itself.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;
use tilewright_bench_suite::tasks::{Task, TaskSet};
use tilewright_core::device::Device;
use tilewright_core::dtype::DType;
use tilewright_core::measurement::Timing;
use tilewright_core::problem::{AnyKernel, Erased, Problem};
use tilewright_core::program::{DeviceError, Program};
use tilewright_core::space::Config;
use tilewright_cpu::{CpuDevice, CpuGemm};
use tilewright_ptxgen::gemm::SimtGemm;

const VARIABLE: &str = "TILEWRIGHT_BENCH_DEVICE";

/// One of each kind of shape.
const TASKS: [&str; 5] = ["linpack-512", "linpack-1024", "deepbench-fwd-16", "ica-32", "lapack-svd-100"];

/// A device and the kernel that runs on it.
type Bench = (Box<dyn Device>, Box<dyn AnyKernel>);

fn open(name: &str) -> Result<Bench, DeviceError> {
    let missing = |why: &str| DeviceError::Missing { device: name.to_owned(), why: why.into() };
    match name.split_once(':') {
        None if name == "cpu" => {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            Ok((Box::new(CpuDevice::new(cores)?), Box::new(Erased::new(CpuGemm::new()))))
        }
        Some(("cuda", ordinal)) => {
            let ordinal = ordinal.parse().map_err(|_| missing("its number is none"))?;
            Ok((cuda(ordinal)?, Box::new(Erased::new(SimtGemm::new()))))
        }
        _ => Err(missing("cpu or cuda:N")),
    }
}

#[cfg(feature = "cuda")]
fn cuda(ordinal: usize) -> Result<Box<dyn Device>, DeviceError> {
    Ok(Box::new(tilewright_runtime::cuda::CudaDevice::open(ordinal)?))
}

#[cfg(not(feature = "cuda"))]
fn cuda(ordinal: usize) -> Result<Box<dyn Device>, DeviceError> {
    Err(DeviceError::Missing { device: format!("cuda:{ordinal}"), why: "built without the feature cuda".into() })
}

/// The untuned program of a task.
fn program(kernel: &dyn AnyKernel, device: &dyn Device, task: &Task) -> Option<(Box<dyn Problem>, Program)> {
    let problem = kernel.problem(device.spec(), &task.input).ok()?;
    let program = problem.program(&problem.space().check(&problem.default_point()?).ok()?);
    Some((problem, program))
}

fn gemm(c: &mut Criterion) {
    let name = std::env::var(VARIABLE).unwrap_or_else(|_| "cpu".into());
    let (mut device, kernel) = match open(&name) {
        Ok(opened) => opened,
        Err(error) => {
            println!("skipped: {error}; {VARIABLE} names a device");
            return;
        }
    };
    let name = device.spec().name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let mut group = c.benchmark_group(format!("gemm-{name}"));
    group.sample_size(20).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
    for dtype in [DType::F32, DType::F64] {
        let fixed = Config(vec![("dtype".to_owned(), dtype.name().into())]);
        let tasks = TaskSet::IsaacTable4.tasks(&*kernel, &fixed).unwrap_or_default();
        for task in tasks.into_iter().filter(|t| TASKS.contains(&t.name.as_str())) {
            let Some((problem, program)) = program(&*kernel, &*device, &task) else { continue };
            if let Err(error) = device.upload(&problem.data(1)) {
                println!("skipped: {} {dtype}: {error}", task.name);
                continue;
            }
            group.throughput(Throughput::Elements(problem.work().flops as u64));
            group.bench_function(BenchmarkId::new(&task.name, dtype), |b| {
                b.iter_custom(|runs| timed(&mut *device, black_box(&program), runs));
            });
        }
    }
    group.finish();
}

/// The time of so many runs by the device's own clock: the median of one, that many times.
fn timed(device: &mut dyn Device, program: &Program, runs: u64) -> Duration {
    let repeats = u32::try_from(runs).unwrap_or(u32::MAX).clamp(1, 50);
    let policy = Timing { min_repeats: repeats.min(3), max_repeats: repeats, relative_error: 0.0, ..Timing::default() };
    match device.time(program, &policy) {
        Ok(measurement) => Duration::from_secs_f64(measurement.time_s * runs as f64),
        Err(error) => {
            println!("failed: {error}");
            Duration::MAX
        }
    }
}

criterion_group!(benches, gemm);
criterion_main!(benches);
