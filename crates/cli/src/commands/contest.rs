//! A decided plan beside the baselines, interleaved: what `tune`, `run` and `bench` share.

use crate::device::Opened;
use crate::failure::{Failure, Kind};
use tilewright_bench_suite::baseline::{Baseline, find_all};
use tilewright_bench_suite::compare::Policy;
use tilewright_bench_suite::gemm::{Bench, program_contender};
use tilewright_bench_suite::report::{Report, TaskReport};
use tilewright_bench_suite::tasks::Task;
use tilewright_bench_suite::vendor::{LIBRARIES, Vendors};
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_core::dtype::DType;
use tilewright_core::objective::Objective;
use tilewright_core::problem::{Measure, Problem};

/// Our name among the contenders.
const OURS: &str = "tilewright";

/// Where a plan meets the baselines.
pub(crate) enum Arena {
    /// The host, and the libraries found on it.
    Host { baselines: Vec<&'static dyn Baseline>, threads: usize, policy: Policy, seed: u64 },
    /// Another device, and its maker's libraries.
    Device { libraries: Vec<&'static str>, rounds: usize, seed: u64 },
}

impl Arena {
    /// The place of a device, with the baselines that `--baselines` names.
    pub(crate) fn of(device: &Opened, selection: &str, seed: u64) -> Result<Self, Failure> {
        if device.spec().kind != DeviceKind::Cpu {
            let rounds = Policy::for_threads(1).rounds;
            return Ok(Self::Device { libraries: vendor(selection)?, rounds, seed });
        }
        let threads = threads(device.spec());
        let policy = Policy::for_threads(threads);
        Ok(Self::Host { baselines: baselines(selection)?, threads, policy, seed })
    }

    /// With fewer rounds.
    pub(crate) fn quick(mut self, most: usize) -> Self {
        match &mut self {
            Self::Host { policy, .. } => policy.rounds = most,
            Self::Device { rounds, .. } => *rounds = most,
        }
        self
    }

    /// Times the code of a point beside the baselines, every result checked first.
    pub(crate) fn contest(
        &self,
        device: &mut Opened,
        problem: &dyn Problem,
        point: &[u16],
        task: &Task,
    ) -> Result<TaskReport, Failure> {
        self.meet(device, problem, point, task, true)
    }

    /// The same without the baselines.
    pub(crate) fn alone(
        &self,
        device: &mut Opened,
        problem: &dyn Problem,
        point: &[u16],
        task: &Task,
    ) -> Result<TaskReport, Failure> {
        self.meet(device, problem, point, task, false)
    }

    fn meet(
        &self,
        device: &mut Opened,
        problem: &dyn Problem,
        point: &[u16],
        task: &Task,
        beside: bool,
    ) -> Result<TaskReport, Failure> {
        let legal = problem.space().check(point).map_err(|e| Failure::new(Kind::Nothing, &e.rule, &e))?;
        let program = problem.program(&legal);
        let mut report = match self {
            Self::Host { baselines, threads, policy, seed } => {
                let baselines = if beside { &baselines[..] } else { &[] };
                let bench = Bench { baselines, threads: *threads, policy: *policy, seed: *seed };
                let ours = program_contender(OURS, &program).map_err(|e| Failure::new(Kind::Device, "device", e))?;
                bench.task(task, Some(ours))
            }
            Self::Device { libraries, rounds, seed } => {
                let libraries = if beside { &libraries[..] } else { &[] };
                let vendors = Vendors { objective: &Objective::default(), rounds: *rounds, seed: *seed };
                vendors.task(device.device(), problem, task, (OURS, program), libraries)?
            }
        };
        report.config = Some(problem.space().config(point));
        Ok(report)
    }

    /// The whole table.
    pub(crate) fn report(&self, dtype: DType, peak_gflops: Option<f64>, tasks: Vec<TaskReport>) -> Report {
        let (names, threads) = match self {
            Self::Host { baselines, threads, .. } => {
                (baselines.iter().map(|baseline| baseline.identity().name.to_owned()).collect(), *threads)
            }
            Self::Device { .. } => {
                let mut names: Vec<String> =
                    tasks.iter().flat_map(|task| task.baselines.iter().map(|row| row.name.clone())).collect();
                names.sort();
                names.dedup();
                (names, 1)
            }
        };
        Report::new(dtype.name(), threads, peak_gflops, names, tasks)
    }
}

fn baselines(selection: &str) -> Result<Vec<&'static dyn Baseline>, Failure> {
    if selection == "none" {
        return Ok(Vec::new());
    }
    find_all().select(selection).map_err(|e| Failure::new(Kind::Usage, "baselines", e))
}

fn vendor(selection: &str) -> Result<Vec<&'static str>, Failure> {
    match selection {
        "none" => Ok(Vec::new()),
        "all" => Ok(LIBRARIES.into()),
        names => names.split(',').map(str::trim).map(known).collect(),
    }
}

fn known(name: &str) -> Result<&'static str, Failure> {
    LIBRARIES.into_iter().find(|library| *library == name).ok_or_else(|| {
        let message = format!("unknown `{name}`; known on this device: all, none, {}", LIBRARIES.join(", "));
        Failure::new(Kind::Usage, "baselines", message)
    })
}

/// Threads of the problem's device.
fn threads(device: &DeviceSpec) -> usize {
    device.fact("threads").and_then(|t| usize::try_from(t).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{DeviceName, Named as _};
    use crate::open::local;
    use tilewright_core::computation::Computation;
    use tilewright_core::problem::{AnyKernel, Erased};
    use tilewright_ops::gemm::{Gemm, GemmInput, Layout};
    use tilewright_ptxgen::gemm::SimtGemm;
    use tilewright_runtime::Live;

    /// A device without libraries, by the one that needs no hardware.
    #[test]
    fn a_plan_runs_alone_where_the_makers_libraries_are_missing() {
        let device = DeviceName::parse("emulator:sm_80").unwrap();
        let mut device = Live::new(local(&device).unwrap());
        let kernel = Erased::new(SimtGemm::new());
        let spec = device.spec().clone();
        let input = GemmInput::new(33, 17, 9, DType::F32, Layout::Nt);
        let problem = kernel.problem(&spec, &Gemm.words(&input)).unwrap();
        let point = problem.default_point().unwrap();
        let arena = Arena::Device { libraries: LIBRARIES.into(), rounds: 2, seed: 1 };
        let task = Task { name: "small".into(), input };
        let report = arena.contest(&mut device, &*problem, &point, &task).unwrap();
        assert!(report.ours_s.is_some() && report.baselines.is_empty() && report.wrong.is_empty(), "{report:?}");
        assert_eq!(report.config, Some(problem.space().config(&point)));
        let report = arena.report(DType::F32, None, vec![report]);
        assert_eq!((report.threads, report.baselines_found.len()), (1, 0));
    }

    #[test]
    fn libraries_of_a_device_are_chosen_by_name() {
        assert_eq!(vendor("all").unwrap(), LIBRARIES);
        assert_eq!(vendor("none").unwrap(), [""; 0]);
        assert_eq!(vendor("cublaslt").unwrap(), ["cublaslt"]);
        let error = vendor("cublas,mkl").unwrap_err();
        assert!(error.message.contains("`mkl`"), "{}", error.message);
    }
}
