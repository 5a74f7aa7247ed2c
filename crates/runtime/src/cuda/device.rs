//! A CUDA device as core's device.

use super::code::{Compiler, key};
use super::driver::{Driver, Event, Memory, Module};
use super::facts;
use super::function::Shape;
use super::lane::{StreamLane, Tools};
use super::library::DeviceLibrary;
use super::program::{Ready, Referents, Session, argument, enqueue, library, parameters, stage};
use super::signature;
use super::spin::{self, Spin};
use super::tensor_map;
use super::timing::measure;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tilewright_core::buffer::{Buffer, BufferSpec, Buffers};
use tilewright_core::data::{Data, noise};
use tilewright_core::device::{Device, DeviceSpec, Environment, FoundLibrary, MissingLibrary, classify, no_data};
use tilewright_core::measurement::{CachePolicy, Failure, FailureKind, Measurement, Timing};
use tilewright_core::problem::MeasureError;
use tilewright_core::program::{Code, DeviceError, Launch, Program, Step};

/// Loaded modules that are kept.
const MODULES_KEPT: usize = 128;

/// How many times the second-level cache is overwritten to empty it.
const FLUSH_TIMES: usize = 2;

/// Until a run must have ended, unless [`CudaDevice::with_limit`] says otherwise.
const LIMIT: Duration = Duration::from_secs(5);

/// A CUDA device of this process, with its context.
pub struct CudaDevice {
    driver: Arc<Driver>,
    spec: Arc<DeviceSpec>,
    compiler: Arc<Compiler>,
    modules: VecDeque<([u8; 32], Arc<Module>)>,
    held: Option<Held>,
    workspace: Option<Memory>,
    flush: Option<Memory>,
    /// None where it could not be loaded.
    spin: Option<Spin>,
    /// For the libraries.
    scratch: Option<Memory>,
    libraries: Vec<Box<dyn DeviceLibrary>>,
    environment: Environment,
    limit: Duration,
    clock: Instant,
}

/// The data on the device.
#[derive(Default)]
pub(super) struct Held {
    specs: Vec<BufferSpec>,
    pub(super) scalars: Vec<f64>,
    memories: Vec<Memory>,
    pub(super) addresses: Vec<u64>,
    pub(super) lengths: Vec<usize>,
}

impl CudaDevice {
    /// Opens a device by its number.
    ///
    /// # Errors
    /// [`DeviceError::Missing`] without a driver or such a device, [`DeviceError::OldDriver`] with one that is too old.
    pub fn open(ordinal: usize) -> Result<Self, DeviceError> {
        let driver = Driver::open(ordinal)?;
        let spec = Arc::new(facts::spec(&driver)?);
        let compiler = Compiler::new(driver.clone(), spec.fact("sm").unwrap_or(0));
        let (said, assembler) = (facts::described(driver.version()), compiler.name());
        let mut environment = Environment { driver: Some(said), assembler: Some(assembler), ..Environment::default() };
        let spin = match &*compiler.image(spin::TEXT) {
            Ok(image) => Spin::load(&driver, image),
            Err(error) => Err(error.clone()),
        };
        if let Err(error) = &spin {
            environment.notes.push(format!("launching is timed with short kernels: {error}"));
        }
        Ok(Self {
            driver,
            spec,
            compiler,
            modules: VecDeque::new(),
            held: None,
            workspace: None,
            flush: None,
            spin: spin.ok(),
            scratch: None,
            libraries: Vec::new(),
            environment,
            limit: LIMIT,
            clock: Instant::now(),
        })
    }

    /// Replaces the time until a run must have ended.
    #[must_use]
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Adds a library whose routines programs may call.
    #[must_use]
    pub fn with_library(mut self, library: Box<dyn DeviceLibrary>) -> Self {
        self.libraries.push(library);
        self
    }

    /// Says which libraries were found, and why others cannot be used: programs that call one of these fail with that reason.
    #[must_use]
    pub fn with_inventory(mut self, found: Vec<FoundLibrary>, missing: Vec<MissingLibrary>) -> Self {
        (self.environment.libraries, self.environment.missing) = (found, missing);
        self
    }

    fn module(&mut self, text: &str) -> Result<Arc<Module>, DeviceError> {
        let key = key(text);
        if let Some((_, module)) = self.modules.iter().find(|(k, _)| *k == key) {
            return Ok(module.clone());
        }
        let image = self.compiler.image(text);
        let image = image.as_ref().as_ref().map_err(Clone::clone)?;
        let module = Arc::new(Module::load(&self.driver, image)?);
        if self.modules.len() >= MODULES_KEPT {
            self.modules.pop_front();
        }
        self.modules.push_back((key, module.clone()));
        Ok(module)
    }

    /// Loads what a program runs and makes room for its workspace.
    fn ready(&mut self, program: &Program) -> Result<Vec<Ready>, DeviceError> {
        let held = self.held.as_ref().ok_or_else(no_data)?;
        program.expect(&held.specs, &held.scalars)?;
        self.driver.bind()?;
        let room = bytes(program.workspace)?;
        if room > self.workspace.as_ref().map_or(0, Memory::len) {
            // The old one goes first: both may not fit.
            self.workspace = None;
            self.workspace = Some(Memory::new(&self.driver, room)?);
        }
        self.ensure_scratch(&program.steps)?;
        program.steps.iter().map(|step| self.ready_step(step, program.workspace)).collect()
    }

    fn ready_step(&mut self, step: &Step, workspace: u64) -> Result<Ready, DeviceError> {
        match step {
            Step::Fill { offset, bytes: count, value } => {
                if offset.checked_add(*count).is_none_or(|end| end > workspace) {
                    return Err(argument("workspace", format!("filling {count} bytes at {offset} of {workspace}")));
                }
                Ok(Ready::Fill { offset: bytes(*offset)?, bytes: bytes(*count)?, value: *value })
            }
            Step::Library(call) => {
                let held = self.held.as_ref().ok_or_else(no_data)?;
                let stage = stage(self.driver.stream(), held, self.scratch.as_ref());
                library(&mut self.libraries, call)?.prepare(call, &stage)?;
                Ok(Ready::Library(call.clone()))
            }
            Step::Launch(launch) => self.ready_launch(launch),
            Step::Host(_) => Err(self.unsupported(step.kind())),
        }
    }

    fn ready_launch(&mut self, launch: &Launch) -> Result<Ready, DeviceError> {
        launch.check()?;
        let Code::Ptx { text, entry } = &launch.code else {
            return Err(self.unsupported(format!("{:?}", launch.code)));
        };
        let taken = signature::parameters(text, entry)?;
        let module = self.module(text)?;
        let function = module.function(entry, launch)?;
        let held = self.held.as_ref().ok_or_else(no_data)?;
        // Once for all runs: copies between them would be timed.
        for (name, number) in &launch.symbols {
            let missing = || argument(name, format!("the workload has no buffer number {number}"));
            module.set_variable(name, held.memories.get(*number).ok_or_else(missing)?)?;
        }
        let driver = &self.driver;
        let to = Referents {
            buffers: &held.addresses,
            lengths: &held.lengths,
            workspace: self.workspace.as_ref().map(Memory::address),
            scalars: &held.scalars,
            dtype: held.specs.first().map(|s| s.dtype),
            encode: &|map, address| tensor_map::encode(driver, map, address),
        };
        let params = parameters(entry, &taken, &launch.args, &to)?;
        let shape = Shape::of(launch);
        Ok(Ready::Kernel { function, shape, params })
    }

    fn unsupported(&self, what: String) -> DeviceError {
        DeviceError::Unsupported { device: self.spec.id.clone(), feature: format!("running {what}") }
    }

    /// Calls `f` with what puts the steps on the stream.
    fn on_stream<R>(
        &mut self,
        steps: &[Ready],
        f: impl FnOnce(&Arc<Driver>, Tools<'_>, &mut super::lane::Enqueue<'_>) -> Result<R, MeasureError>,
    ) -> Result<R, MeasureError> {
        let held = self.held.as_ref().ok_or_else(no_data)?;
        let mut session = Session {
            stream: self.driver.stream(),
            held,
            workspace: self.workspace.as_ref(),
            scratch: self.scratch.as_ref(),
            libraries: &mut self.libraries,
        };
        let mut once = || enqueue(steps, &mut session);
        f(&self.driver, Tools { flush: self.flush.as_ref(), spin: self.spin.as_ref(), limit: self.limit }, &mut once)
    }

    /// Makes room for what libraries need before any of them is told where it is.
    fn ensure_scratch(&mut self, steps: &[Step]) -> Result<(), DeviceError> {
        let mut most = 0;
        for step in steps {
            if let Step::Library(call) = step {
                self.expect_library(&call.library)?;
                most = most.max(library(&mut self.libraries, call)?.scratch_bytes(call)?);
            }
        }
        if most > self.scratch.as_ref().map_or(0, Memory::len) {
            // The old one goes first: both may not fit.
            self.scratch = None;
            self.scratch = Some(Memory::new(&self.driver, most)?);
        }
        Ok(())
    }

    /// Says why a library is missing, where it is.
    fn expect_library(&self, name: &str) -> Result<(), DeviceError> {
        if self.libraries.iter().any(|library| library.name() == name) {
            return Ok(());
        }
        // Several routines may be of one library, whose name theirs begin with.
        let missing = self.environment.missing.iter().find(|missing| name.starts_with(&missing.name));
        let why = missing.map_or_else(String::new, |missing| format!(": {}", missing.reason));
        Err(DeviceError::Unsupported { device: self.spec.id.clone(), feature: format!("the library {name}{why}") })
    }

    fn ensure_flush(&mut self) -> Result<(), DeviceError> {
        if self.flush.is_none() {
            let cache = self.spec.fact("l2_bytes").and_then(|b| usize::try_from(b).ok()).unwrap_or(64 << 20);
            self.flush = Some(Memory::new(&self.driver, cache.saturating_mul(FLUSH_TIMES))?);
        }
        Ok(())
    }
}

fn bytes(x: u64) -> Result<usize, DeviceError> {
    usize::try_from(x).map_err(|_| DeviceError::OutOfMemory { need: x, have: None })
}

impl Device for CudaDevice {
    fn spec(&self) -> &Arc<DeviceSpec> {
        &self.spec
    }

    fn environment(&self) -> Environment {
        self.environment.clone()
    }

    fn ahead(&self) -> usize {
        self.compiler.ahead()
    }

    fn precompile(&mut self, programs: &[Program]) {
        for step in programs.iter().flat_map(|p| &p.steps) {
            if let Step::Launch(Launch { code: Code::Ptx { text, .. }, .. }) = step {
                self.compiler.expect(text);
            }
        }
    }

    fn abandon(&mut self) {
        self.compiler.abandon();
    }

    fn upload(&mut self, data: &Data) -> Result<(), DeviceError> {
        data.check()?;
        self.held = None;
        self.driver.bind()?;
        let mut memories = Vec::new();
        for (i, spec) in data.specs().iter().enumerate() {
            let length = bytes(spec.len as u64 * spec.dtype.size() as u64)?;
            let memory = Memory::new(&self.driver, length)?;
            match data {
                Data::Given(work) => memory.upload(work.buffers[i].bytes())?,
                Data::Noise { seed, .. } => {
                    let first = noise(spec.dtype, spec.len, *seed);
                    memory.upload(first.bytes())?;
                    memory.repeat_first(first.bytes().len())?;
                }
            }
            memories.push(memory);
        }
        let addresses = memories.iter().map(Memory::address).collect();
        let lengths = memories.iter().map(Memory::len).collect();
        let (specs, scalars) = (data.specs().to_vec(), data.scalars().to_vec());
        self.held = Some(Held { specs, scalars, memories, addresses, lengths });
        Ok(())
    }

    fn run(&mut self, program: &Program) -> Result<(), DeviceError> {
        let steps = self.ready(program)?;
        let end = Event::create(&self.driver)?;
        let ran = self.on_stream(&steps, |driver, tools, once| {
            once()?;
            end.record()?;
            Ok(driver.wait(&end, tools.limit)?)
        });
        ran.map_err(|error| match error {
            MeasureError::Device(error) => error,
            MeasureError::Failed(failure) => DeviceError::Run(failure.to_string()),
        })
    }

    fn read(&mut self) -> Result<Buffers, DeviceError> {
        let held = self.held.as_ref().ok_or_else(no_data)?;
        let read = |(spec, memory): (&BufferSpec, &Memory)| {
            let mut buffer = Buffer::zeroed(spec.dtype, spec.len);
            memory.download(buffer.bytes_mut())?;
            Ok(buffer)
        };
        held.specs.iter().zip(&held.memories).map(read).collect()
    }

    fn time(&mut self, program: &Program, policy: &Timing) -> Result<Measurement, MeasureError> {
        // Code that the driver is too old for says nothing of other code.
        let steps = self.ready(program).map_err(|error| match error {
            DeviceError::OldDriver { .. } => Failure { kind: FailureKind::Compile, message: error.to_string() }.into(),
            other => classify(other),
        })?;
        if policy.cache == CachePolicy::Cold {
            self.ensure_flush().map_err(classify)?;
        }
        let clock = self.clock;
        let timed = self.on_stream(&steps, |driver, tools, once| {
            let mut again = || once();
            measure(&mut StreamLane::new(driver, &mut again, tools)?, &clock, policy)
        });
        // Faults and hangs stay what they are: whoever owns this process decides whether the device is lost with it.
        timed.map_err(|error| match error {
            MeasureError::Device(e @ (DeviceError::Fault(_) | DeviceError::Hang { .. })) => MeasureError::Device(e),
            MeasureError::Device(e) => classify(e),
            failed @ MeasureError::Failed(_) => failed,
        })
    }
}
