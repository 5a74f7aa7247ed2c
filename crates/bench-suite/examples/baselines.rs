//! Times every baseline of this machine on a task set:
//! `cargo run --release -p tilewright-bench-suite --example baselines -- [SET] [f32|f64] [THREADS] [TASK-PREFIX]`

use std::error::Error;

use tilewright_bench_suite::baseline::find_all;
use tilewright_bench_suite::compare::Policy;
use tilewright_bench_suite::gemm::{GemmElement, compare_task, contender};
use tilewright_bench_suite::report::{Report, TaskReport};
use tilewright_bench_suite::tasks::{Task, TaskSet};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, default| arguments.get(index).map_or(default, String::as_str);
    let set: TaskSet = argument(0, "isaac-table4").parse()?;
    let threads: usize = argument(2, "1").parse()?;
    let mut tasks = set.tasks();
    tasks.retain(|task| task.name.starts_with(argument(3, "")));
    for missing in &find_all().missing {
        eprintln!("{} is missing: {}", missing.name, missing.reason);
    }
    for found in &find_all().found {
        eprintln!("found {}", found.identity());
    }
    let report = match argument(1, "f32") {
        "f32" => time::<f32>(&tasks, threads),
        "f64" => time::<f64>(&tasks, threads),
        other => return Err(format!("dtype: unknown `{other}`; known: f32, f64").into()),
    };
    print!("{}", report.table());
    Ok(())
}

fn time<T: GemmElement>(tasks: &[Task], threads: usize) -> Report {
    let policy = Policy::for_threads(threads);
    let reports = tasks.iter().map(|task| {
        let mut contenders: Vec<_> =
            find_all().found.iter().map(|baseline| contender::<T>(&**baseline, threads)).collect();
        TaskReport::new(task, None, &compare_task(task, &mut contenders, &policy, 1))
    });
    let names = find_all().found.iter().map(|baseline| baseline.identity().name.to_owned()).collect();
    Report::new(T::DTYPE, threads, None, names, reports.collect())
}
