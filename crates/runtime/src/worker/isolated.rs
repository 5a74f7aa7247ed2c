//! The parent's side: a device in another process.

use super::message::{Reply, Request, WireData, buffers, frame};
use super::process::{Broken, Process};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tilewright_core::buffer::{Buffers, Workload};
use tilewright_core::data::Data;
use tilewright_core::device::{Device, DeviceSpec, Environment, classify};
use tilewright_core::measurement::{Measurement, Timing};
use tilewright_core::problem::MeasureError;
use tilewright_core::program::{DeviceError, Program, Step};

/// How children are started, and how long they are waited for.
#[derive(Clone, Debug)]
pub struct WorkerCommand {
    /// The program; usually this very binary.
    pub program: PathBuf,
    /// Its arguments, which make it [`serve`](super::serve).
    pub args: Vec<String>,
    /// Variables that are set for it.
    pub env: Vec<(String, String)>,
    /// Variables that are taken away from it. Those that were set are told in the device's environment.
    pub unset: Vec<String>,
    /// Until it must have opened its device.
    pub start: Duration,
    /// Until it must have answered a request: compilation, and a kernel as slow as any that is asked for.
    pub patience: Duration,
}

impl WorkerCommand {
    /// With the usual patience: a minute to start, 20 seconds to answer. A child that watches its device itself reports a
    /// hanging kernel earlier.
    pub fn new(program: PathBuf, args: Vec<String>) -> Self {
        let (start, patience) = (Duration::from_secs(60), Duration::from_secs(20));
        Self { program, args, env: Vec::new(), unset: Vec::new(), start, patience }
    }
}

/// Children that end without having answered anything, one after the other, before the device counts as lost.
const FAILED_STARTS_ALLOWED: u32 = 3;

/// A device in a process of its own, which is replaced when it is lost.
pub struct Isolated {
    command: WorkerCommand,
    spec: Arc<DeviceSpec>,
    ahead: usize,
    environment: Environment,
    process: Option<Process>,
    /// What is held, for the next process.
    data: Option<Data>,
    /// Whether the present process holds it.
    held: bool,
    /// Processes in a row that never answered.
    failed_starts: u32,
    restarts: u64,
}

impl Isolated {
    /// Starts the first process and asks it for its device.
    ///
    /// # Errors
    /// It cannot be started, or what it reports of its device.
    pub fn open(command: WorkerCommand) -> Result<Self, DeviceError> {
        let Started { process, spec, ahead, environment } = start(&command)?;
        let (spec, process) = (Arc::new(spec), Some(process));
        Ok(Self { command, spec, ahead, environment, process, data: None, held: false, failed_starts: 0, restarts: 0 })
    }

    /// Processes that had to be replaced.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// A process that answers, with the data that the caller put down.
    fn ready(&mut self) -> Result<(), DeviceError> {
        if self.process.is_none() {
            if self.failed_starts >= FAILED_STARTS_ALLOWED {
                return Err(DeviceError::Run(format!("{} processes in a row ended at once", self.failed_starts)));
            }
            self.restarts += 1;
            self.failed_starts += 1;
            let Started { process, spec, .. } = start(&self.command)?;
            if spec.fingerprint() != self.spec.fingerprint() {
                let (old, new) = (&self.spec.name, &spec.name);
                return Err(DeviceError::Run(format!("a new process found another device: {new}, was {old}")));
            }
            (self.process, self.held) = (Some(process), false);
        }
        Ok(())
    }

    /// Puts the data down where a new process lacks them.
    fn ready_with_data(&mut self) -> Result<(), DeviceError> {
        self.ready()?;
        if let (false, Some(data)) = (self.held, self.data.clone()) {
            self.send_data(&data)?;
        }
        Ok(())
    }

    fn send_data(&mut self, data: &Data) -> Result<(), DeviceError> {
        let (wire, parts) = WireData::new(data);
        self.upload_by(&Request::Upload(wire), parts)
    }

    fn upload_by(&mut self, request: &Request, parts: Vec<Vec<u8>>) -> Result<(), DeviceError> {
        let reply = self.exchange(request, parts, self.command.patience);
        reply.and_then(|(reply, _)| expect_done(reply)).map_err(plain)?;
        self.held = true;
        Ok(())
    }

    /// One request and its reply. A process that gives none is ended.
    fn exchange(
        &mut self,
        request: &Request,
        parts: Vec<Vec<u8>>,
        patience: Duration,
    ) -> Result<(Reply, Vec<Vec<u8>>), MeasureError> {
        let request =
            frame(request, parts).map_err(|e| DeviceError::Argument { name: "request".into(), message: e })?;
        let Some(process) = &mut self.process else {
            return Err(DeviceError::Run("there is no process to ask".into()).into());
        };
        let answer = process.ask(&request, patience).and_then(|frame| {
            let reply = serde_json::from_slice::<Reply>(&frame.json);
            reply.map(|r| (r, frame.parts)).map_err(|e| Broken::Died(format!("the process was ended: its answer: {e}")))
        });
        if answer.is_ok() {
            self.failed_starts = 0;
        }
        match answer {
            Ok((Reply::Error { error, lost: false }, _)) => Err(error.into()),
            Ok((Reply::Error { error, lost: true }, _)) => {
                self.process = None;
                Err(of_candidate(error).into())
            }
            Ok((Reply::Failed(failure), _)) => Err(failure.into()),
            Ok(answer) => Ok(answer),
            Err(broken) => {
                self.process = None;
                Err(of_broken(broken).into())
            }
        }
    }

    /// What data a program takes stays on this side, where the caller's are known too.
    fn expect_data(&self, program: &Program) -> Result<(), DeviceError> {
        self.data.as_ref().map_or(Ok(()), |data| program.expect(data.specs(), data.scalars()))
    }

    /// The program as it travels.
    ///
    /// # Errors
    /// Host code, which is a part of its process.
    fn wire(&self, program: &Program) -> Result<Program, DeviceError> {
        if program.steps.iter().any(|step| matches!(step, Step::Host(_))) {
            let feature = "code of another process".into();
            return Err(DeviceError::Unsupported { device: self.spec.id.clone(), feature });
        }
        Ok(program.clone())
    }
}

/// A process that has opened its device, and what it says of it.
struct Started {
    process: Process,
    spec: DeviceSpec,
    ahead: usize,
    environment: Environment,
}

fn start(command: &WorkerCommand) -> Result<Started, DeviceError> {
    let mut process = Process::start(command).map_err(|e| {
        let why = format!("{} cannot be started: {e}", command.program.display());
        DeviceError::Missing { device: command.args.last().cloned().unwrap_or_default(), why }
    })?;
    let request = frame(&Request::Hello, Vec::new()).map_err(DeviceError::Run)?;
    let answer = process.ask(&request, command.start).map_err(of_broken)?;
    match serde_json::from_slice(&answer.json) {
        Ok(Reply::Hello { spec, ahead, mut environment }) => {
            let set = command.unset.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
            let note = |(name, value): (&String, std::ffi::OsString)| {
                format!("unset for the device's process: {name}={}", value.display())
            };
            environment.notes.extend(set.map(note));
            Ok(Started { process, spec, ahead, environment })
        }
        Ok(Reply::Error { error, .. }) => Err(error),
        other => Err(DeviceError::Run(format!("the process answered {other:?} to the first question"))),
    }
}

/// Whether data are the very ones that were sent. What is kept here cannot have made room for others.
fn is_same(before: &Arc<Workload>, data: &Data) -> bool {
    matches!(data, Data::Given(work) if Arc::ptr_eq(before, work))
}

/// The last request killed or silenced the process: that one has failed, the device has not.
fn of_broken(broken: Broken) -> DeviceError {
    match broken {
        Broken::Died(how) => DeviceError::Fault(how),
        Broken::Silent(after) => DeviceError::Hang { after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX) },
    }
}

/// What ends a process is a fault of what it ran; the next process has a device again.
fn of_candidate(error: DeviceError) -> DeviceError {
    match error {
        DeviceError::Run(message) => DeviceError::Fault(message),
        other => other,
    }
}

/// The error of a request that has no outcome of its own.
fn plain(error: MeasureError) -> DeviceError {
    match error {
        MeasureError::Device(error) => error,
        MeasureError::Failed(failure) => match failure.kind {
            tilewright_core::measurement::FailureKind::Compile => DeviceError::Load(failure.message),
            _ => DeviceError::Fault(failure.message),
        },
    }
}

fn expect_done(reply: Reply) -> Result<(), MeasureError> {
    match reply {
        Reply::Done => Ok(()),
        other => Err(unexpected(&other)),
    }
}

fn unexpected(reply: &Reply) -> MeasureError {
    DeviceError::Run(format!("the process answered something else: {reply:?}")).into()
}

impl Device for Isolated {
    fn spec(&self) -> &Arc<DeviceSpec> {
        &self.spec
    }

    fn environment(&self) -> Environment {
        self.environment.clone()
    }

    fn ahead(&self) -> usize {
        self.ahead
    }

    fn precompile(&mut self, programs: &[Program]) {
        let Ok(programs) = programs.iter().map(|p| self.wire(p)).collect::<Result<Vec<_>, _>>() else { return };
        // A hint: what is wrong with the process shows at the next request.
        if self.ready().is_ok() {
            let _ = self.exchange(&Request::Precompile(programs), Vec::new(), self.command.patience);
        }
    }

    fn abandon(&mut self) {
        // Nothing has been announced to a new process.
        if self.process.is_some() {
            let _ = self.exchange(&Request::Abandon, Vec::new(), self.command.patience);
        }
    }

    fn upload(&mut self, data: &Data) -> Result<(), DeviceError> {
        let (before, is_there) = (self.data.take(), self.held && self.process.is_some());
        self.held = false;
        self.ready()?;
        match before {
            // Candidates are checked on the same data one after the other: they travel once.
            Some(Data::Given(before)) if is_there && is_same(&before, data) => {
                self.upload_by(&Request::UploadAgain, Vec::new())?;
            }
            _ => self.send_data(data)?,
        }
        self.data = Some(data.clone());
        Ok(())
    }

    fn run(&mut self, program: &Program) -> Result<(), DeviceError> {
        self.expect_data(program)?;
        let program = self.wire(program)?;
        self.ready_with_data()?;
        let reply = self.exchange(&Request::Run(program), Vec::new(), self.command.patience);
        reply.and_then(|(reply, _)| expect_done(reply)).map_err(plain)
    }

    fn read(&mut self) -> Result<Buffers, DeviceError> {
        self.ready_with_data()?;
        match self.exchange(&Request::Read, Vec::new(), self.command.patience).map_err(plain)? {
            (Reply::Buffers(described), parts) => buffers(&described, &parts).map_err(DeviceError::Run),
            (other, _) => Err(plain(unexpected(&other))),
        }
    }

    fn time(&mut self, program: &Program, timing: &Timing) -> Result<Measurement, MeasureError> {
        self.expect_data(program).map_err(classify)?;
        let program = self.wire(program)?;
        self.ready_with_data()?;
        let patience = self.command.patience + timing.max_time;
        match self.exchange(&Request::Time(program, timing.clone()), Vec::new(), patience) {
            Ok((Reply::Time(measurement), _)) => Ok(measurement),
            Ok((other, _)) => Err(unexpected(&other)),
            Err(MeasureError::Device(error)) => Err(classify(error)),
            Err(failed) => Err(failed),
        }
    }
}
