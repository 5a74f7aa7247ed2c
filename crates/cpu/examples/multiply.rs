//! One product: plan it, generate its code, run it, check it against the reference, and tell the rate.
//!
//! `cargo run --release -p tilewright-cpu --example multiply -- m=2560 n=16 k=2560 layout=nn`

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use tilewright_core::buffer::Filling;
use tilewright_core::computation::Computation;
use tilewright_core::data::Data;
use tilewright_core::device::Device;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::space::Config;
use tilewright_cpu::{CpuDevice, CpuGemm};
use tilewright_ops::gemm::Gemm;

const RUNS: u32 = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let fields: Vec<String> = std::env::args().skip(1).collect();
    let fields = if fields.is_empty() { "m=500,n=300,k=400".to_owned() } else { fields.join(",") };
    let input = Gemm.parse(&Config::parse(&fields)?)?;

    let mut device = CpuDevice::new(1)?.with_peaks();
    let problem = Bound::new(Arc::new(CpuGemm::new()), device.spec().clone(), input)?;
    println!("{}: {} legal configurations", problem.device().name, problem.space().count_legal());

    let point = problem.default_point().ok_or("nothing is legal")?;
    let work = Arc::new(problem.workload(Filling::Real, 1));
    device.upload(&Data::Given(work.clone()))?;
    let program = problem.program(&problem.space().check(&point)?);
    device.run(&program)?;
    let verdict = problem.reference(&work.buffers, &work.scalars)?.compare(&device.read()?);
    println!("{}: largest relative error {:.1e}", problem.space().config(&point.0), verdict.max_rel_error);

    let start = Instant::now();
    for _ in 0..RUNS {
        device.run(&program)?;
    }
    let rate = problem.work().flops * f64::from(RUNS) / start.elapsed().as_secs_f64();
    let name = if problem.input().get("dtype") == Some(&"f64".into()) { "peak_flops_f64" } else { "peak_flops_f32" };
    let peak = device.spec().measured.get(name).copied().unwrap_or(f64::NAN);
    println!("{:.1} GFLOP/s, {:.0}% of the measured peak", rate / 1e9, 100.0 * rate / peak);
    Ok(())
}
