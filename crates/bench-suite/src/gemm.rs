//! GEMM tasks run by baselines, and beside them by programs of ours.

use std::sync::Arc;

use tilewright_core::buffer::{Buffer, Filling, Workload, views};
use tilewright_core::computation::Computation;
use tilewright_core::dtype::DType;
use tilewright_core::program::{Code, HostArgs, HostCode, Program, Step};
use tilewright_ops::gemm::{C, Gemm, GemmInput};

use crate::baseline::{Baseline, multiply};
use crate::compare::{Contender, Outcome, Policy, compare};
use crate::exact::ExactProduct;
use crate::report::{Report, TaskReport};
use crate::tasks::Task;

/// `baseline` on `input` as a contender.
pub fn baseline_contender<'a>(
    baseline: &'a dyn Baseline,
    input: &'a GemmInput,
    threads: usize,
) -> Contender<'a, Workload> {
    let name = baseline.identity().name;
    Contender::new(name, move |work: &mut Workload| {
        multiply(baseline, input, &mut work.buffers, &work.scalars, threads).map_err(|error| error.to_string())
    })
}

/// Code that the host cannot call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("program: step {step} is not code of this host")]
pub struct NotHostCode {
    /// Position of the step.
    pub step: usize,
}

/// What a host program does, step by step.
enum HostStep {
    Fill { range: std::ops::Range<usize>, value: u8 },
    Run(Arc<dyn HostCode>),
}

/// A program for this host as a contender, with a workspace of its own.
///
/// # Errors
/// [`NotHostCode`] for a program of another device.
pub fn program_contender(name: &str, program: &Program) -> Result<Contender<'static, Workload>, NotHostCode> {
    let steps = program.steps.iter().enumerate().map(|(index, step)| match step {
        Step::FillWorkspace { offset, bytes, value } => {
            Ok(HostStep::Fill { range: *offset as usize..(offset + bytes) as usize, value: *value })
        }
        Step::Launch { code: Code::Host(code), .. } => Ok(HostStep::Run(Arc::clone(code))),
        _ => Err(NotHostCode { step: index }),
    });
    let steps: Vec<HostStep> = steps.collect::<Result<_, _>>()?;
    let mut workspace = Buffer::zeroed(DType::I8, program.workspace as usize);
    let program = program.clone();
    Ok(Contender::new(name, move |work: &mut Workload| {
        program.expect(&work.specs, &work.scalars).map_err(|error| error.to_string())?;
        for step in &steps {
            match step {
                HostStep::Fill { range, value } => workspace.bytes_mut()[range.clone()].fill(*value),
                HostStep::Run(code) => {
                    let mut views = views(&mut work.buffers);
                    let mut args = HostArgs { buffers: &mut views, scalars: &work.scalars, workspace: &mut workspace };
                    code.run(&mut args).map_err(|error| error.to_string())?;
                }
            }
        }
        Ok(())
    }))
}

/// Compares on one input, on data of small integers. Every contender starts from the same C (NaN if beta = 0, since it must not
/// be read), and every element of its result is checked exactly before it is timed.
pub fn compare_gemm(
    input: &GemmInput,
    contenders: &mut [Contender<'_, Workload>],
    policy: &Policy,
    seed: u64,
) -> Vec<Outcome> {
    let mut work = Gemm.workload(input, Filling::Exact, seed);
    let exact = ExactProduct::new(input, &work);
    let before = work.buffers[C].clone();
    let check = |work: &Workload| exact.check(&work.buffers).map_err(|wrong| wrong.to_string());
    compare(contenders, &mut work, policy, |work| work.buffers[C].clone_from(&before), check)
}

/// What to compare, and how.
#[derive(Clone, Copy, Debug)]
pub struct Bench<'a> {
    /// The baselines that take part.
    pub baselines: &'a [&'a dyn Baseline],
    /// Threads of every contender.
    pub threads: usize,
    /// How long and how often to time.
    pub policy: Policy,
    /// Seed of the data.
    pub seed: u64,
}

impl Bench<'_> {
    /// One task: the baselines and, if given, our contender.
    pub fn task(&self, task: &Task, ours: Option<Contender<'_, Workload>>) -> TaskReport {
        let name = ours.as_ref().map(|ours| ours.name().to_owned());
        let baselines = self.baselines.iter();
        let baselines = baselines.map(|baseline| baseline_contender(*baseline, &task.input, self.threads));
        let mut contenders: Vec<_> = ours.into_iter().chain(baselines).collect();
        let outcomes = compare_gemm(&task.input, &mut contenders, &self.policy, self.seed);
        TaskReport::new(task, name.as_deref(), &outcomes)
    }

    /// The whole report. `peak_gflops` is the measured peak at this many threads, if known.
    pub fn report(&self, dtype: DType, peak_gflops: Option<f64>, tasks: Vec<TaskReport>) -> Report {
        let names = self.baselines.iter().map(|baseline| baseline.identity().name.to_owned()).collect();
        Report::new(dtype.name(), self.threads, peak_gflops, names, tasks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::find_all;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;
    use tilewright_core::program::DeviceError;
    use tilewright_ops::gemm::{Layout, ScalarClass};

    const QUICK: Policy = Policy {
        rounds: 1,
        min_rounds: 1,
        enough: Duration::ZERO,
        block: Duration::ZERO,
        warm_up: Duration::ZERO,
        settle: false,
    };

    /// Multiplies by a baseline; counts its runs; wants its workspace filled.
    struct Borrowed(GemmInput, AtomicU64);

    impl HostCode for Borrowed {
        fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
            assert_eq!(args.workspace.bytes(), [0, 0, 7, 7]);
            self.1.fetch_add(1, Ordering::Relaxed);
            let mut owned: Vec<Buffer> = args.buffers.iter().map(|v| Buffer::zeroed(v.dtype(), v.len())).collect();
            owned.iter_mut().zip(&*args.buffers).for_each(|(b, v)| b.bytes_mut().copy_from_slice(v.bytes()));
            multiply(&*find_all().found[0], &self.0, &mut owned, args.scalars, 1)
                .map_err(|error| DeviceError::Run(error.to_string()))?;
            args.buffers[C].bytes_mut().unwrap().copy_from_slice(owned[C].bytes());
            Ok(())
        }
    }

    #[test]
    fn a_program_stands_beside_the_baselines() {
        let tight = GemmInput::new(5, 6, 7, DType::F32, Layout::Tn);
        let input = GemmInput { alpha: ScalarClass::Other, beta: ScalarClass::Other, ..tight };
        let code = Arc::new(Borrowed(input.clone(), AtomicU64::new(0)));
        let mut program = Program::host(Arc::clone(&code) as Arc<dyn HostCode>, 4);
        program.steps.insert(0, Step::FillWorkspace { offset: 2, bytes: 2, value: 7 });
        let mut contenders = vec![program_contender("ours", &program).unwrap()];
        contenders.extend(find_all().found.iter().map(|found| baseline_contender(&**found, &input, 1)));
        contenders.push(Contender::new("idle", |_: &mut Workload| Ok(())));
        contenders.push(Contender::new("failing", |_: &mut Workload| Err("no".to_owned())));
        let outcomes = compare_gemm(&input, &mut contenders, &QUICK, 3);
        let (failing, idle) = (outcomes[outcomes.len() - 1].clone(), outcomes[outcomes.len() - 2].clone());
        assert_eq!(failing.time, Err("no".to_owned()));
        assert!(idle.time.unwrap_err().contains("row 0"));
        assert!(outcomes[..outcomes.len() - 2].iter().all(|outcome| outcome.time.is_ok()), "{outcomes:?}");
        assert!(code.1.load(Ordering::Relaxed) >= 3);
    }

    #[test]
    fn a_bench_reports_ours_beside_the_baselines() {
        let tasks = crate::tasks::TaskSet::Edges.tasks(DType::F64);
        let ours = |input: GemmInput| {
            let run = move |work: &mut Workload| {
                multiply(&*find_all().found[1], &input, &mut work.buffers, &work.scalars, 1).map_err(|e| e.to_string())
            };
            Contender::new("tilewright", run)
        };
        let baselines = find_all().select("gemm").unwrap();
        let bench = Bench { baselines: &baselines, threads: 1, policy: QUICK, seed: 1 };
        let reports: Vec<_> = tasks.iter().map(|task| bench.task(task, Some(ours(task.input.clone())))).collect();
        assert!(reports.iter().all(|report| report.ratio.is_some() && report.wrong.is_empty()), "{reports:?}");
        let report = bench.report(DType::F64, None, reports);
        assert!(report.geomean_ratio >= report.worst_ratio);
        assert_eq!(report.baselines_found, ["gemm"]);
        assert_eq!(bench.task(&tasks[0], None).ratio, None);
    }

    #[test]
    fn code_of_another_device_is_refused() {
        let code = Code::Ptx { text: String::new(), entry: String::new() };
        let launch = Step::Launch { code, grid: [1; 3], block: [1; 3], shared_bytes: 0, args: Vec::new() };
        let program = Program::new(vec![launch], 0);
        assert_eq!(program_contender("ours", &program).unwrap_err(), NotHostCode { step: 0 });
    }
}
