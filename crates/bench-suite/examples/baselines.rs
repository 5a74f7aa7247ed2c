//! Times every baseline of this machine on a task set:
//! `cargo run --release -p tilewright-bench-suite --example baselines -- [SET] [f32|f64] [THREADS] [TASK-PREFIX]`

use std::error::Error;

use tilewright_bench_suite::baseline::find_all;
use tilewright_bench_suite::compare::Policy;
use tilewright_bench_suite::gemm::Bench;
use tilewright_bench_suite::tasks::TaskSet;
use tilewright_core::dtype::DType;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, default| arguments.get(index).map_or(default, String::as_str);
    let set: TaskSet = argument(0, "isaac-table4").parse()?;
    let dtype: DType = argument(1, "f32").parse()?;
    let threads: usize = argument(2, "1").parse()?;
    let inventory = find_all();
    for missing in &inventory.missing {
        eprintln!("{} is missing: {}", missing.name, missing.reason);
    }
    for found in &inventory.found {
        eprintln!("found {}", found.identity());
    }
    let baselines = inventory.select("all")?;
    let bench = Bench { baselines: &baselines, threads, policy: Policy::for_threads(threads), seed: 1 };
    let tasks = set.tasks(dtype).into_iter().filter(|task| task.name.starts_with(argument(3, "")));
    let reports = tasks.map(|task| bench.task(&task, None)).collect();
    print!("{}", bench.report(dtype, None, reports).table());
    Ok(())
}
