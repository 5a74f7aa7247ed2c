//! Conformance of a [`Device`].

use crate::points::legal_points;
use crate::results::{run, same_bytes};
use crate::violation::{Conformity, Violation, ensure};
use std::sync::{Arc, Mutex, PoisonError};
use tilewright_core::buffer::{Buffer, BufferSpec, Filling, Role, Workload};
use tilewright_core::data::Data;
use tilewright_core::device::Device;
use tilewright_core::dtype::DType;
use tilewright_core::problem::Problem;
use tilewright_core::program::{Code, DeviceError, HostArgs, HostCode, Launch, Program, ScalarClass, ScalarSpec, Step};

const SUITE: &str = "device";

fn violation(check: &'static str, message: impl ToString) -> Violation {
    Violation { suite: SUITE, check, message: message.to_string() }
}

/// Holds a device to its contract on a problem of it. The problem's kernel is taken to be right.
///
/// Checked: data read back as uploaded, before and after a run; a run gives the right result, again after the data were
/// uploaded anew; another program finds the data that the first left; noise is the same by its seed; contents that are not what
/// is specified are refused, and so are buffers and scalars that the program was not made for. How it times is the suite [`crate::measure`]'s
/// business.
///
/// # Errors
/// The first broken promise.
pub fn device(device: &mut dyn Device, problem: &dyn Problem) -> Conformity {
    let spec = device.spec().clone();
    ensure!(
        spec.fingerprint() == problem.device().fingerprint(),
        "same-device",
        "the problem is bound to {:?}, the device is {:?}",
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
    let works = [1, 2].map(|seed| Arc::new(problem.workload(Filling::Real, seed)));
    let early = device.run(&first);
    ensure!(early.is_err(), "data-are-needed", "a program ran before there were any data");
    memory(device, problem, &first, &works)?;
    data_stay(device, problem, [&first, &last], &works[0])?;
    noise(device, &works[0])?;
    for program in [&first, &last] {
        let outcome = run(device, problem, program, &works[0]).map_err(|e| violation("runs", e))?;
        ensure!(outcome.verdict.is_right(), "result-is-right", "{:?}", outcome.verdict.first);
    }
    buffers(device, &first, &works[0])?;
    scalars(device, &first, &works[0])?;
    ensure!(**device.spec() == *spec, "spec-is-stable", "the device's facts changed while it ran");
    Ok(())
}

fn upload(device: &mut dyn Device, data: &Data) -> Conformity {
    device.upload(data).map_err(|e| violation("data-read-back", e))
}

fn read(device: &mut dyn Device) -> Result<Vec<Buffer>, Violation> {
    device.read().map_err(|e| violation("data-read-back", e))
}

fn memory(device: &mut dyn Device, problem: &dyn Problem, program: &Program, works: &[Arc<Workload>; 2]) -> Conformity {
    for work in [&works[0], &works[1], &works[0]] {
        let data = Data::Given(work.clone());
        upload(device, &data)?;
        ensure!(
            same_bytes(&read(device)?, &work.buffers),
            "data-read-back",
            "buffers read before a run differ from what was uploaded"
        );
        let expected = problem.reference(&work.buffers, &work.scalars).map_err(|e| violation("reference", e))?;
        for _ in 0..2 {
            upload(device, &data)?;
            device.run(program).map_err(|e| violation("runs", e))?;
            let verdict = expected.compare(&read(device)?);
            ensure!(verdict.is_right(), "result-is-right", "after uploading anew: {:?}", verdict.first);
        }
    }
    let mut other = (*works[0]).clone();
    other.specs.iter_mut().for_each(|spec| spec.len += 1);
    let refused = device.upload(&Data::Given(Arc::new(other)));
    ensure!(refused.is_err(), "other-shapes-refused", "buffers shorter than specified were accepted");
    Ok(())
}

/// Programs come and go, the data stay.
fn data_stay(
    device: &mut dyn Device,
    problem: &dyn Problem,
    programs: [&Program; 2],
    work: &Arc<Workload>,
) -> Conformity {
    upload(device, &Data::Given(work.clone()))?;
    for program in programs {
        let before = read(device)?;
        device.run(program).map_err(|e| violation("runs", e))?;
        let expected = problem.reference(&before, &work.scalars).map_err(|e| violation("reference", e))?;
        let verdict = expected.compare(&read(device)?);
        ensure!(verdict.is_right(), "data-stay", "one of two programs on the same data is wrong: {:?}", verdict.first);
    }
    Ok(())
}

fn noise(device: &mut dyn Device, work: &Workload) -> Conformity {
    for seed in [1, 2, 1] {
        let data = Data::Noise { specs: work.specs.clone(), scalars: work.scalars.clone(), seed };
        upload(device, &data)?;
        let expected = data.buffers().map_err(|e| violation("noise-is-seeded", e))?;
        ensure!(same_bytes(&read(device)?, &expected), "noise-is-seeded", "noise of seed {seed} is another's");
    }
    Ok(())
}

/// Programs made for other buffers than those of this workload are refused: a longer one, one of another type, one more.
fn buffers(device: &mut dyn Device, program: &Program, work: &Arc<Workload>) -> Conformity {
    let with = |change: fn(&mut BufferSpec)| {
        let mut specs = work.specs.clone();
        specs.iter_mut().take(1).for_each(|spec| {
            spec.name = "probe";
            change(spec);
        });
        specs
    };
    let mut more = work.specs.clone();
    more.push(BufferSpec { name: "probe", dtype: DType::F32, len: 0, role: Role::In });
    let other = |spec: &mut BufferSpec| spec.dtype = if spec.dtype == DType::I8 { DType::F32 } else { DType::I8 };
    for (specs, name) in [(with(|spec| spec.len += 1), "probe"), (with(other), "probe"), (more, "buffers")] {
        upload(device, &Data::Given(work.clone()))?;
        let ran = device.run(&program.clone().on(specs.clone()));
        let refused = matches!(&ran, Err(DeviceError::Argument { name: n, .. }) if n == name);
        ensure!(refused, "other-buffers-refused", "a program on {specs:?} gives {ran:?} on {:?}", work.specs);
    }
    Ok(())
}

/// A program made for one value of its scalars, and one that takes another number of them, are refused on this workload.
fn scalars(device: &mut dyn Device, program: &Program, work: &Arc<Workload>) -> Conformity {
    let spec = |class| ScalarSpec { name: "probe", class };
    let given = work.scalars.iter().map(|value| spec(ScalarClass::Exactly(*value)));
    let others = work.scalars.iter().map(|value| spec(ScalarClass::AllBut(*value)));
    let more = given.clone().chain([spec(ScalarClass::Any)]);
    for (specs, fit) in [(given.collect(), true), (others.collect(), work.scalars.is_empty()), (more.collect(), false)]
    {
        let specs: Vec<ScalarSpec> = specs;
        let program = program.clone().taking(specs.clone());
        upload(device, &Data::Given(work.clone()))?;
        let ran = device.run(&program);
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

/// Holds a device of host code to the rest of its contract: workspace, fills, order of steps, errors of the code,
/// and code of other devices.
///
/// # Errors
/// The first broken promise.
pub fn host_device(device: &mut dyn Device) -> Conformity {
    workspace(device)?;
    upload(device, &nothing())?;
    let failing = Program::host(Arc::new(Failing), 0);
    let error = device.run(&failing);
    ensure!(
        error == Err(DeviceError::Run("as asked".into())),
        "errors-are-passed-on",
        "code that fails gives {error:?}"
    );
    let code = Code::Ptx { text: ".version 7.0".into(), entry: "none".into() };
    let refused = device.run(&Program::launch(Launch::new(code, [1; 3], [1; 3], Vec::new())));
    ensure!(refused.is_err(), "foreign-code-refused", "PTX ran on {}", device.spec().id);
    Ok(())
}

/// No buffers, and one scalar.
fn nothing() -> Data {
    Data::Given(Arc::new(Workload { specs: Vec::new(), buffers: Vec::new(), scalars: vec![2.5] }))
}

/// Fails when it runs.
struct Failing;

impl HostCode for Failing {
    fn run(&self, _: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
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
    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
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

fn workspace(device: &mut dyn Device) -> Conformity {
    let probe = Arc::new(Probe(Mutex::new(Vec::new())));
    let fill = |offset, bytes, value| Step::Fill { offset, bytes, value };
    let mut program = Program::host(probe.clone(), PROBE_BYTES);
    // The second fill lies within the first, so that their order shows.
    program.steps.splice(0..0, [fill(0, PROBE_BYTES, 0x22), fill(8, 100, 0x11)]);
    upload(device, &nothing())?;
    for _ in 0..2 {
        device.run(&program).map_err(|e| violation("runs", e))?;
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
    let refused = device.run(&Program::new(vec![fill(PROBE_BYTES - 1, 2, 0)], PROBE_BYTES));
    ensure!(refused.is_err(), "fills-stay-inside", "a fill beyond the workspace was accepted");
    Ok(())
}
