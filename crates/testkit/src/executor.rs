//! Conformance of an [`Executor`].

use crate::points::legal_points;
use crate::results::{run, same_bytes};
use crate::violation::{Conformity, Violation, demand, ensure};
use std::sync::{Arc, Mutex, PoisonError};
use tilewright_core::buffer::{Buffer, Filling, Workload};
use tilewright_core::dtype::DType;
use tilewright_core::problem::{Executor, Loaded, Problem};
use tilewright_core::program::{Code, DeviceError, HostArgs, HostCode, Program, ScalarClass, ScalarSpec, Step};

const SUITE: &str = "executor";

fn violation(check: &'static str, message: impl ToString) -> Violation {
    Violation { suite: SUITE, check, message: message.to_string() }
}

/// Holds an executor to its contract on a problem of its device. The problem's kernel is taken to be right.
///
/// Checked: memory reads back as written, before and after a run; a run gives the right result, again after the data
/// was written anew; two loaded programs do not share memory; buffers of another shape are refused, and so are scalars
/// that the program was not made for.
///
/// # Panics
/// With the first broken promise.
#[track_caller]
pub fn executor(executor: &mut dyn Executor, problem: &dyn Problem) {
    demand(try_executor(executor, problem));
}

/// [`executor`], returning the first broken promise.
///
/// # Errors
/// The broken promise.
pub fn try_executor(executor: &mut dyn Executor, problem: &dyn Problem) -> Conformity {
    let spec = executor.spec().clone();
    ensure!(
        spec.fingerprint() == problem.device().fingerprint(),
        "same-device",
        "the problem is bound to {:?}, the executor is {:?}",
        problem.device().id,
        spec.id
    );
    let points = legal_points(problem.space(), 2, 1);
    let [first, .., last] = points.as_slice() else {
        return Err(violation("two-points", "the suite needs a problem with two legal points"));
    };
    let program = |p: &[u16]| match problem.space().check(p) {
        Ok(legal) => Ok(problem.program(&legal)),
        Err(e) => Err(violation("two-points", e)),
    };
    let (first, last) = (program(first)?, program(last)?);
    let works = [1, 2].map(|seed| problem.workload(Filling::Real, seed));
    memory(executor, problem, &first, &works)?;
    independent(executor, problem, [&first, &last], &works)?;
    for program in [&first, &last] {
        let outcome = run(executor, problem, program, &works[0]).map_err(|e| violation("runs", e))?;
        ensure!(outcome.verdict.is_right(), "result-is-right", "{:?}", outcome.verdict.first);
    }
    scalars(executor, &first, &works[0])?;
    ensure!(**executor.spec() == *spec, "spec-is-stable", "the device's facts changed while it ran");
    Ok(())
}

fn load(executor: &mut dyn Executor, program: &Program, work: &Workload) -> Result<Box<dyn Loaded>, Violation> {
    executor.prepare(program, work).map_err(|e| violation("runs", e))
}

fn read(loaded: &mut dyn Loaded) -> Result<Vec<Buffer>, Violation> {
    loaded.read().map_err(|e| violation("memory-reads-back", e))
}

fn memory(executor: &mut dyn Executor, problem: &dyn Problem, program: &Program, works: &[Workload; 2]) -> Conformity {
    let mut loaded = load(executor, program, &works[0])?;
    ensure!(
        same_bytes(&read(&mut *loaded)?, &works[0].buffers),
        "memory-reads-back",
        "buffers read before a run differ from what was loaded"
    );
    for work in [&works[1], &works[0]] {
        loaded.write(&work.buffers).map_err(|e| violation("memory-reads-back", e))?;
        ensure!(
            same_bytes(&read(&mut *loaded)?, &work.buffers),
            "memory-reads-back",
            "buffers read back differ from what was written"
        );
        let expected = problem.reference(&work.buffers, &work.scalars);
        for _ in 0..2 {
            loaded.write(&work.buffers).map_err(|e| violation("memory-reads-back", e))?;
            loaded.run().map_err(|e| violation("runs", e))?;
            let verdict = expected.compare(&read(&mut *loaded)?);
            ensure!(verdict.is_right(), "result-is-right", "after writing anew: {:?}", verdict.first);
        }
    }
    let longer = Buffer::zeroed(DType::I8, works[0].buffers.iter().map(|b| b.bytes().len()).sum::<usize>() + 1);
    let refused = loaded.write(&vec![longer]);
    ensure!(refused.is_err(), "other-shapes-refused", "one longer buffer was written over {:?}", works[0].buffers);
    Ok(())
}

fn independent(
    executor: &mut dyn Executor,
    problem: &dyn Problem,
    programs: [&Program; 2],
    works: &[Workload; 2],
) -> Conformity {
    let mut first = load(executor, programs[0], &works[0])?;
    let mut last = load(executor, programs[1], &works[1])?;
    first.run().map_err(|e| violation("runs", e))?;
    last.run().map_err(|e| violation("runs", e))?;
    for (loaded, work) in [(&mut first, &works[0]), (&mut last, &works[1])] {
        let verdict = problem.reference(&work.buffers, &work.scalars).compare(&read(&mut **loaded)?);
        ensure!(
            verdict.is_right(),
            "programs-are-independent",
            "with two programs loaded, one is wrong: {:?}",
            verdict.first
        );
    }
    Ok(())
}

/// A program made for one value of its scalars, and one that takes another number of them, are refused on this workload.
fn scalars(executor: &mut dyn Executor, program: &Program, work: &Workload) -> Conformity {
    let spec = |class| ScalarSpec { name: "probe", class };
    let given = work.scalars.iter().map(|value| spec(ScalarClass::Exactly(*value)));
    let others = work.scalars.iter().map(|value| spec(ScalarClass::AllBut(*value)));
    let more = given.clone().chain([spec(ScalarClass::Any)]);
    for (specs, fit) in [(given.collect(), true), (others.collect(), work.scalars.is_empty()), (more.collect(), false)]
    {
        let specs: Vec<ScalarSpec> = specs;
        let program = program.clone().taking(specs.clone());
        let ran = executor.prepare(&program, work).and_then(|mut loaded| loaded.run());
        let refused = matches!(&ran, Err(DeviceError::Argument { name, .. }) if name.contains("probe"));
        ensure!(
            if fit { ran.is_ok() } else { refused },
            "other-scalars-refused",
            "a program that takes {specs:?} gives {ran:?} on {:?}",
            work.scalars
        );
    }
    Ok(())
}

/// Holds an executor of host code to the rest of its contract: workspace, fills, order of steps, errors of the code,
/// and code of other devices.
///
/// # Panics
/// With the first broken promise.
#[track_caller]
pub fn host_executor(executor: &mut dyn Executor) {
    demand(try_host_executor(executor));
}

/// [`host_executor`], returning the first broken promise.
///
/// # Errors
/// The broken promise.
pub fn try_host_executor(executor: &mut dyn Executor) -> Conformity {
    workspace(executor)?;
    let nothing = Workload { specs: Vec::new(), buffers: Vec::new(), scalars: vec![2.5] };
    let failing = Program::host(Arc::new(Failing), 0);
    let error = load(executor, &failing, &nothing)?.run();
    ensure!(
        error == Err(DeviceError::Run("as asked".into())),
        "errors-are-passed-on",
        "code that fails gives {error:?}"
    );
    let code = Code::Ptx { text: ".version 7.0".into(), entry: "none".into() };
    let launch = Step::Launch { code, grid: [1; 3], block: [1; 3], shared_bytes: 0, args: Vec::new() };
    let ptx = Program::new(vec![launch], 0);
    let refused = executor.prepare(&ptx, &nothing).and_then(|mut loaded| loaded.run());
    ensure!(refused.is_err(), "foreign-code-refused", "PTX ran on {}", executor.spec().id);
    Ok(())
}

/// Fails when it runs.
struct Failing;

impl HostCode for Failing {
    fn run(&self, _: &mut HostArgs<'_>) -> Result<(), DeviceError> {
        Err(DeviceError::Run("as asked".into()))
    }
}

/// Bytes of workspace that the probe asks for; no multiple of a cache line.
const PROBE_BYTES: u64 = 1000;

/// What the probe saw.
#[derive(Clone, Debug, PartialEq)]
struct Sight {
    len: usize,
    aligned: bool,
    filled: bool,
    scalars: Vec<f64>,
}

/// Looks at its workspace, then overwrites it.
struct Probe(Mutex<Vec<Sight>>);

impl HostCode for Probe {
    fn run(&self, args: &mut HostArgs<'_>) -> Result<(), DeviceError> {
        let bytes = args.workspace.bytes_mut();
        let ends = PROBE_BYTES as usize;
        let filled = bytes.len() >= ends
            && bytes[8..108].iter().all(|b| *b == 0x11)
            && bytes[..8].iter().chain(&bytes[108..ends]).all(|b| *b == 0x22);
        let aligned = bytes.as_ptr().addr().is_multiple_of(64);
        let sight = Sight { len: bytes.len(), aligned, filled, scalars: args.scalars.to_vec() };
        bytes.fill(0xee);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sight);
        Ok(())
    }
}

fn workspace(executor: &mut dyn Executor) -> Conformity {
    let probe = Arc::new(Probe(Mutex::new(Vec::new())));
    let fill = |offset, bytes, value| Step::FillWorkspace { offset, bytes, value };
    let mut program = Program::host(probe.clone(), PROBE_BYTES);
    // The second fill lies within the first, so that their order shows.
    program.steps.splice(0..0, [fill(0, PROBE_BYTES, 0x22), fill(8, 100, 0x11)]);
    let nothing = Workload { specs: Vec::new(), buffers: Vec::new(), scalars: vec![2.5] };
    let mut loaded = load(executor, &program, &nothing)?;
    for _ in 0..2 {
        loaded.run().map_err(|e| violation("runs", e))?;
    }
    let seen = probe.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    ensure!(seen.len() == 2, "runs-once", "two runs called the code {} times", seen.len());
    for sight in seen {
        ensure!(
            sight.len >= PROBE_BYTES as usize && sight.aligned,
            "workspace-is-there",
            "{PROBE_BYTES} bytes, 64-byte aligned, asked for: {sight:?}"
        );
        ensure!(sight.filled, "workspace-is-filled", "fills are missing or out of order on a run");
        ensure!(sight.scalars == [2.5], "scalars-are-passed", "scalars {:?} instead of [2.5]", sight.scalars);
    }
    let beyond = Program::new(vec![fill(PROBE_BYTES - 1, 2, 0)], PROBE_BYTES);
    let refused = executor.prepare(&beyond, &nothing).and_then(|mut loaded| loaded.run());
    ensure!(refused.is_err(), "fills-stay-inside", "a fill beyond the workspace was accepted");
    Ok(())
}
