//! A decided plan beside the baselines, interleaved: what `tune`, `run` and `bench` share.

use crate::failure::{Failure, Kind};
use tilewright_bench_suite::baseline::{Baseline, find_all};
use tilewright_bench_suite::gemm::{Bench, program_contender};
use tilewright_bench_suite::report::TaskReport;
use tilewright_bench_suite::tasks::Task;
use tilewright_core::device::DeviceSpec;
use tilewright_core::problem::Problem;

/// Our name among the contenders.
const OURS: &str = "tilewright";

/// The baselines that `--baselines` names.
pub(crate) fn baselines(selection: &str) -> Result<Vec<&'static dyn Baseline>, Failure> {
    if selection == "none" {
        return Ok(Vec::new());
    }
    find_all().select(selection).map_err(|e| Failure::new(Kind::Usage, "baselines", e))
}

/// Times the code of a point beside the baselines, every result checked first.
pub(crate) fn contest(
    problem: &dyn Problem,
    point: &[u16],
    task: &Task,
    bench: &Bench<'_>,
) -> Result<TaskReport, Failure> {
    let program = problem.program(point).map_err(|e| Failure::new(Kind::Nothing, &e.rule, &e))?;
    let ours = program_contender(OURS, &program).map_err(|e| Failure::new(Kind::Device, "device", e))?;
    let mut report = bench.task(task, Some(ours));
    report.config = Some(problem.space().config(point));
    Ok(report)
}

/// Threads of the problem's device.
pub(crate) fn threads(device: &DeviceSpec) -> usize {
    device.fact("threads").and_then(|t| usize::try_from(t).ok()).unwrap_or(1)
}
