//! Times every baseline of this machine on a task set:
//! `cargo run --release -p tilewright-bench-suite --example baselines -- [SET] [f32|f64] [THREADS] [TASK-PREFIX]`

use std::error::Error;

use tilewright_bench_suite::baseline::find_all;
use tilewright_bench_suite::compare::Policy;
use tilewright_bench_suite::gemm::{baseline_contender, compare_gemm};
use tilewright_bench_suite::report::{Report, TaskReport};
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
    let policy = Policy::for_threads(threads);
    let mut reports = Vec::new();
    for task in set.tasks(dtype).iter().filter(|task| task.name.starts_with(argument(3, ""))) {
        let found = inventory.found.iter();
        let mut contenders: Vec<_> = found.map(|found| baseline_contender(&**found, &task.input, threads)).collect();
        let outcomes = compare_gemm(&task.input, &mut contenders, &policy, 1);
        reports.push(TaskReport::new(task, None, &outcomes));
    }
    let names = inventory.found.iter().map(|found| found.identity().name.to_owned()).collect();
    print!("{}", Report::new(dtype.name(), threads, None, names, reports).table());
    Ok(())
}
