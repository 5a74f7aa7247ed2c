//! Times configurations of products that a file lists, beside the libraries of a CUDA device.
//!
//! ```text
//! cargo run --release -p tilewright-bench-suite --features cuda --example listed -- FILE [ROUNDS [DEVICE]]
//! ```
//!
//! A line of the file is an input and what is timed on it, separated by tabs: kernels by their names without a version, each with a
//! configuration behind a bar or without one for its default. What a configuration does not name is as in the default.
//!
//! ```text
//! m=8192,n=8192,k=8192,dtype=f64,layout=nn <tab> gemm.mma <tab> gemm.mma|raster=m <tab> gemm.simt
//! ```
//!
//! Everything is compiled first; then rounds go over all that a line lists and the libraries, and the least time of each counts. Results
//! are not checked: `verify` does that. Printed are the time, the rate, and the least time of the libraries over it.

use std::error::Error;
use std::sync::Arc;
use tilewright::kernels::Kernels;
use tilewright_baselines::{device_kernels, device_libraries};
use tilewright_core::device::{Device, DeviceKind};
use tilewright_core::expr::Value;
use tilewright_core::measurement::Timing;
use tilewright_core::problem::{AnyKernel, Measure as _, Problem};
use tilewright_core::space::{Config, Point};
use tilewright_runtime::Live;
use tilewright_runtime::cuda::CudaDevice;

/// What is timed.
struct Entry {
    name: String,
    problem: Box<dyn Problem>,
    point: Point,
    is_library: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let file = arguments.first().ok_or("a file of inputs and configurations is needed")?;
    let rounds: usize = arguments.get(1).map_or("3", String::as_str).parse()?;
    let ordinal: usize = arguments.get(2).map_or("0", String::as_str).parse()?;
    let mut device = CudaDevice::open(ordinal)?;
    for library in device_libraries().routines {
        device = device.with_library(library);
    }
    println!("{}, {}", device.spec().name, device.environment().lines().join(", "));
    let kernels = Kernels::default();
    let kernels: Vec<Arc<dyn AnyKernel>> = kernels.variants("gemm", DeviceKind::Cuda)?.into_iter().cloned().collect();
    let mut lines = Vec::new();
    for line in std::fs::read_to_string(file)?.lines().filter(|line| !line.trim().is_empty()) {
        lines.push(entries(line, &kernels, &device)?);
    }
    for (_, entries) in &lines {
        for Entry { problem, point, .. } in entries {
            device.precompile(&[problem.program(&problem.space().check(point)?)]);
        }
    }
    let mut measure = Live::new(device);
    lines.iter().try_for_each(|(input, entries)| time(&mut measure, input, entries, rounds))
}

/// The input of a line, and what is to be timed on it.
fn entries(
    line: &str,
    kernels: &[Arc<dyn AnyKernel>],
    device: &CudaDevice,
) -> Result<(Config, Vec<Entry>), Box<dyn Error>> {
    let mut parts = line.split('\t');
    let input = Config::parse(parts.next().unwrap_or_default())?;
    let mut entries = Vec::new();
    for part in parts {
        let (name, config) = part.split_once('|').unwrap_or((part, ""));
        let kernel = kernels.iter().find(|kernel| kernel.id().as_str().starts_with(&format!("{name}.")));
        let problem = kernel.ok_or_else(|| format!("{name} is no kernel of a GPU"))?.problem(device.spec(), &input)?;
        let default = problem.default_point();
        let point = match config {
            "" => default.ok_or_else(|| format!("{name} has nothing legal for {input}"))?,
            config => Config::parse(config)?.to_point(problem.space().params(), default.as_deref())?,
        };
        problem.space().check(&point).map_err(|why| format!("{part} for {input}: {why}"))?;
        entries.push(Entry { name: part.to_owned(), problem, point, is_library: false });
    }
    for library in device_kernels("gemm") {
        // Not every library has every type.
        let Ok(problem) = library.problem(device.spec(), &input) else { continue };
        let Some(point) = problem.default_point() else { continue };
        entries.push(Entry { name: library.id().to_string(), problem, point, is_library: true });
    }
    Ok((input, entries))
}

/// Times what is listed for an input, and prints it.
fn time(
    measure: &mut Live<CudaDevice>,
    input: &Config,
    entries: &[Entry],
    rounds: usize,
) -> Result<(), Box<dyn Error>> {
    let size = |name: &str| input.get(name).and_then(Value::as_int).unwrap_or(1) as f64;
    let flops = 2.0 * size("m") * size("n") * size("k");
    let mut best = vec![f64::INFINITY; entries.len()];
    for _ in 0..rounds {
        for (entry, best) in entries.iter().zip(&mut best) {
            *best = best.min(measure.measure(&*entry.problem, &entry.point, &Timing::default())?.time_s);
        }
    }
    let libraries = entries.iter().zip(&best).filter(|(entry, _)| entry.is_library);
    let library = libraries.map(|(_, time)| *time).fold(f64::INFINITY, f64::min);
    println!("{input}");
    for (entry, time) in entries.iter().zip(&best) {
        let config = match entry.name.contains('|') || entry.is_library {
            true => String::new(),
            false => format!(" {}", entry.problem.space().config(&entry.point)),
        };
        let (us, rate) = (time * 1e6, flops / time / 1e12);
        println!("  {us:10.2} us {rate:9.2} TFLOP/s {:6.3}  {}{config}", library / time, entry.name);
    }
    Ok(())
}
