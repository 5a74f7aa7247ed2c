//! The emulator as a device: runs programs whose steps are launches of PTX.

use crate::behaviour::Behaviour;
use crate::finding::Finding;
use crate::launch::{Argument, Launch, LaunchError, Limits, Report, Sample};
use crate::memory::{BufferId, Memory, MemoryError};
use crate::module::Module;
use crate::rounding::{BFLOAT, HALF, Round, narrow};
use crate::sample::{Which, near};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tilewright_core::buffer::{Buffer, BufferSpec, Buffers, Role};
use tilewright_core::data::Data;
use tilewright_core::device::{Device, DeviceSpec, GridPart, no_data};
use tilewright_core::dtype::DType;
use tilewright_core::measurement::{Measurement, Timing};
use tilewright_core::problem::MeasureError;
use tilewright_core::program::{self, Arg, Code, DeviceError, Program, Step};

/// Reports of launches, in the order in which they ended. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<Report>>>);

impl Log {
    fn add(&self, report: Report) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(report);
    }

    /// Takes out what has been reported so far.
    pub fn take(&self) -> Vec<Report> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Blocks of a sample whose results count: more of small ones find no more, and the reference needs its blocks around each.
const MOST_CHECKED: u64 = 512;

/// Warp instructions of a block that is only counted.
const MOST_OF_A_BLOCK: u64 = 1 << 22;

/// An emulated GPU. It checks and counts, and never times.
#[derive(Debug)]
pub struct EmulatorDevice {
    settings: Settings,
    held: Option<Held>,
    /// What the last run ran, if it left blocks out.
    parts: Option<Vec<GridPart>>,
}

#[derive(Debug)]
struct Settings {
    spec: Arc<DeviceSpec>,
    limits: Limits,
    behaviour: Behaviour,
    sample: Option<Sample>,
    /// Whether launches are sampled whose results others need.
    counts_only: bool,
    log: Log,
    tolerant: bool,
}

impl EmulatorDevice {
    /// A device with these facts. Of them it reads `sm` (the compute capability as in `sm_80`: code for newer targets is
    /// refused) and `shared_optin` (bytes of shared memory that a block may have).
    ///
    /// # Errors
    /// The fact `sm` is missing.
    pub fn new(spec: Arc<DeviceSpec>) -> Result<Self, DeviceError> {
        if spec.fact("sm").is_none() {
            return Err(DeviceError::Missing { device: spec.id.clone(), why: "its fact `sm` is missing".into() });
        }
        let mut limits = Limits::default();
        if let Some(bytes) = spec.fact("shared_optin").and_then(|b| u64::try_from(b).ok()) {
            limits.shared_bytes = bytes;
        }
        let settings = Settings {
            spec,
            limits,
            behaviour: Behaviour::default(),
            sample: None,
            counts_only: false,
            log: Log::default(),
            tolerant: false,
        };
        Ok(Self { settings, held: None, parts: None })
    }

    /// Launches round and take turns like this; the device's name says so, as in `emulator:sm_80:mma=truncated`.
    #[must_use]
    pub fn with_behaviour(mut self, behaviour: Behaviour) -> Self {
        self.settings.behaviour = behaviour;
        if behaviour != Behaviour::default() {
            let id = format!("{}:{behaviour}", self.settings.spec.id);
            self.settings.spec = Arc::new(DeviceSpec { id, ..(*self.settings.spec).clone() });
        }
        self
    }

    /// Reports have the footprints of buffers.
    #[must_use]
    pub fn with_footprints(mut self) -> Self {
        self.settings.limits.footprints = true;
        self
    }

    /// Programs of exactly one launch run in part: the first block of the grid, the last, the other corners, and then
    /// blocks that the seed chooses, until about so many thread instructions were executed, or 512 blocks. Programs of several launches
    /// run whole, since each may need all of what the one before it wrote. [`Device::parts`] says which ran if blocks
    /// were left out. Blocks that wait for others may wait for one that does not run.
    #[must_use]
    pub fn sampling(mut self, most_thread_instructions: u64, seed: u64) -> Self {
        self.settings.sample =
            Some(Sample { thread_instructions: most_thread_instructions, blocks: MOST_CHECKED, seed, corners: true });
        self
    }

    /// For counts and not for results: of every launch a sample of blocks runs, those that the seed chooses, and findings fail none.
    /// [`properties`](crate::properties) says what all of them would count. A block that waits for one that does not run ends after
    /// some time, with a finding.
    #[must_use]
    pub fn counting(mut self, most_thread_instructions: u64, seed: u64) -> Self {
        self.settings.sample =
            Some(Sample { thread_instructions: most_thread_instructions, blocks: u64::MAX, seed, corners: false });
        self.settings.counts_only = true;
        self.settings.limits.block_instructions = MOST_OF_A_BLOCK;
        self.with_footprints().tolerant()
    }

    /// Findings do not fail a run; they are in the log alone.
    #[must_use]
    pub fn tolerant(mut self) -> Self {
        self.settings.tolerant = true;
        self
    }

    fn run_blocks(&mut self, program: &Program, which: Which) -> Result<(), DeviceError> {
        let held = self.held.as_mut().ok_or_else(no_data)?;
        held.load(program, &self.settings)?;
        self.parts = None;
        self.parts = held.run(program, &self.settings, &which)?;
        Ok(())
    }

    /// What launches have reported.
    pub fn log(&self) -> Log {
        self.settings.log.clone()
    }
}

/// Data in the device's memory, with what programs on them have needed.
#[derive(Debug)]
struct Held {
    /// By their text.
    modules: HashMap<String, Module>,
    workspace: Option<BufferId>,
    memory: Memory,
    ids: Vec<BufferId>,
    specs: Vec<BufferSpec>,
    scalars: Vec<f64>,
}

impl Device for EmulatorDevice {
    fn spec(&self) -> &Arc<DeviceSpec> {
        &self.settings.spec
    }

    fn upload(&mut self, data: &Data) -> Result<(), DeviceError> {
        self.held = None;
        let mut memory = Memory::new();
        let buffers = data.buffers()?;
        let specs = data.specs().to_vec();
        let ids = specs.iter().zip(&buffers).map(|(spec, buffer)| memory.add(spec.name, buffer.bytes()));
        let ids: Vec<BufferId> = ids.collect::<Result<_, _>>()?;
        // What stands in output buffers before a run must not matter.
        for (_, id) in specs.iter().zip(&ids).filter(|(spec, _)| spec.role == Role::Out) {
            memory.forget(*id);
        }
        let scalars = data.scalars().to_vec();
        self.held = Some(Held { modules: HashMap::new(), workspace: None, memory, ids, specs, scalars });
        Ok(())
    }

    fn run(&mut self, program: &Program) -> Result<(), DeviceError> {
        let sample = self.settings.sample.map_or(Which::All, Which::Sample);
        self.run_blocks(program, sample)
    }

    fn run_near(&mut self, program: &Program, parts: &[GridPart], margin: f64) -> Result<(), DeviceError> {
        let launches = program.steps.iter().filter_map(|step| match step {
            Step::Launch(launch) => Some(launch.grid),
            _ => None,
        });
        let grids: Vec<[u32; 3]> = launches.collect();
        let near = if let [grid] = grids[..] { near(grid, parts, margin) } else { None };
        self.run_blocks(program, near.map_or(Which::All, Which::These))
    }

    fn parts(&self) -> Option<Vec<GridPart>> {
        self.parts.clone()
    }

    fn read(&mut self) -> Result<Buffers, DeviceError> {
        let held = self.held.as_ref().ok_or_else(no_data)?;
        let buffer = |(spec, id): (&BufferSpec, &BufferId)| {
            let mut buffer = Buffer::zeroed(spec.dtype, spec.len);
            buffer.bytes_mut().copy_from_slice(&held.memory.read(*id));
            buffer
        };
        Ok(held.specs.iter().zip(&held.ids).map(buffer).collect())
    }

    fn time(&mut self, _: &Program, _: &Timing) -> Result<Measurement, MeasureError> {
        let feature = "a clock: it never times".to_owned();
        Err(DeviceError::Unsupported { device: self.settings.spec.id.clone(), feature }.into())
    }
}

impl Held {
    /// Parses what the program runs and makes room for its workspace.
    fn load(&mut self, program: &Program, device: &Settings) -> Result<(), DeviceError> {
        program.expect(&self.specs, &self.scalars)?;
        for step in &program.steps {
            match step {
                Step::Fill { offset, bytes, .. } => {
                    if offset.checked_add(*bytes).is_none_or(|end| end > program.workspace) {
                        let message = format!("filling {bytes} bytes at {offset} of {}", program.workspace);
                        return Err(DeviceError::Argument { name: "workspace".into(), message });
                    }
                }
                Step::Launch(launch) => self.load_launch(launch, device)?,
                Step::Host(_) | Step::Library(_) => {
                    return Err(unsupported(device, format!("running {}", step.kind())));
                }
            }
        }
        let have = self.workspace.map_or(0, |id| self.memory.len(id));
        if program.workspace > have {
            let need = program.workspace;
            let bytes = usize::try_from(need).map_err(|_| DeviceError::OutOfMemory { need, have: None })?;
            self.workspace = Some(self.memory.add_unwritten("workspace", bytes)?);
        }
        Ok(())
    }

    /// Blocks of a cluster and tensor maps need what the emulator does not have.
    fn load_launch(&mut self, launch: &program::Launch, device: &Settings) -> Result<(), DeviceError> {
        launch.check()?;
        if launch.is_clustered() {
            return Err(unsupported(device, "clusters of blocks".to_owned()));
        }
        if launch.args.iter().any(|arg| matches!(arg, Arg::TensorMap(_))) {
            return Err(unsupported(device, "tensor maps".to_owned()));
        }
        match &launch.code {
            Code::Ptx { text, entry } => self.load_module(text, entry, device),
            Code::Source(_) | Code::Library { .. } => Err(unsupported(device, format!("running {:?}", launch.code))),
        }
    }

    fn load_module(&mut self, text: &str, entry: &str, device: &Settings) -> Result<(), DeviceError> {
        if !self.modules.contains_key(text) {
            let module = Module::parse(text).map_err(|e| DeviceError::Load(e.to_string()))?;
            self.modules.insert(text.to_owned(), module);
        }
        let module = &self.modules[text];
        if !runs(module.target(), device.spec.fact("sm").unwrap_or(0)) {
            return Err(unsupported(device, format!("code for {}", module.target())));
        }
        match (module.parameters(entry), module.check(entry)) {
            (_, Some(error)) => Err(DeviceError::Load(error.to_string())),
            (None, None) => Err(DeviceError::Load(format!("no kernel {entry:?} in the module"))),
            (Some(_), None) => Ok(()),
        }
    }

    fn argument(&self, arg: &Arg, bytes: usize) -> Result<Argument, DeviceError> {
        let missing = |name: &str, i: usize| DeviceError::Argument {
            name: name.into(),
            message: format!("number {i} is not there"),
        };
        Ok(match arg {
            &Arg::Buffer(i, offset) => Argument::Buffer(*self.ids.get(i).ok_or_else(|| missing("buffer", i))?, offset),
            &Arg::Workspace(offset) => Argument::Buffer(self.workspace.ok_or_else(|| missing("workspace", 0))?, offset),
            &Arg::Scalar(i) => {
                let value = *self.scalars.get(i).ok_or_else(|| missing("scalar", i))?;
                scalar(value, self.specs.first().map(|s| s.dtype), bytes)
            }
            given => Argument::Bytes(given.by_value()?.map(|value| value.bytes).unwrap_or_default()),
        })
    }

    /// Runs a program; the parts that ran, where blocks were left out.
    fn run(
        &mut self,
        program: &Program,
        device: &Settings,
        which: &Which,
    ) -> Result<Option<Vec<GridPart>>, DeviceError> {
        let launches = program.steps.iter().filter(|step| matches!(step, Step::Launch(_))).count();
        let adds_up = program.steps.iter().any(|step| match step {
            Step::Launch(program::Launch { code: Code::Ptx { text, .. }, .. }) => accumulates(text),
            _ => false,
        });
        let which = if device.counts_only || launches == 1 && !adds_up { which } else { &Which::All };
        let mut parts = None;
        // What an earlier run left in the workspace must not matter.
        if let Some(id) = self.workspace {
            self.memory.forget(id);
        }
        for step in &program.steps {
            match (step, self.workspace) {
                (Step::Fill { offset, bytes, value }, Some(id)) => {
                    self.memory.fill(id, *offset, *bytes, *value);
                }
                (Step::Launch(launch), _) => parts = self.launch(launch, device, which)?.or(parts),
                (Step::Fill { .. } | Step::Host(_) | Step::Library(_), _) => {}
            }
        }
        Ok(parts)
    }

    /// Copies buffers of the workload to the beginnings of variables of the module.
    fn set_symbols(&mut self, step: &program::Launch) -> Result<(), DeviceError> {
        let Code::Ptx { text, .. } = &step.code else { return Ok(()) };
        for (name, number) in &step.symbols {
            let wrong = |message: String| DeviceError::Argument { name: name.clone(), message };
            let Some(module) = self.modules.get(text) else { continue };
            let Some(id) = self.ids.get(*number) else {
                return Err(wrong(format!("the workload has no buffer number {number}")));
            };
            let variable = match self.memory.variable(module, name) {
                Err(error @ MemoryError::NoVariable(_)) => return Err(wrong(error.to_string())),
                other => other?,
            };
            let (need, have) = (self.memory.len(*id), self.memory.len(variable));
            if need > have {
                return Err(wrong(format!("a buffer of {need} bytes for a variable of {have}")));
            }
            let contents = self.memory.read(*id);
            self.memory.write_part(variable, 0, &contents);
        }
        Ok(())
    }

    /// Runs a launch; the parts that ran, where blocks were left out.
    fn launch(
        &mut self,
        step: &program::Launch,
        device: &Settings,
        which: &Which,
    ) -> Result<Option<Vec<GridPart>>, DeviceError> {
        let Code::Ptx { text, entry } = &step.code else { return Ok(None) };
        self.set_symbols(step)?;
        let Some(module) = self.modules.get(text) else { return Err(DeviceError::Load("not loaded".into())) };
        let parameters = module.parameters(entry).unwrap_or_default();
        let bytes = |i: usize| parameters.get(i).map_or(8, |(_, bytes)| *bytes);
        let args = step.args.iter().enumerate().map(|(i, arg)| self.argument(arg, bytes(i)));
        let args = args.collect::<Result<Vec<_>, _>>()?;
        let launch = Launch {
            entry,
            grid: step.grid,
            block: step.block,
            shared_bytes: step.shared_bytes,
            args: &args,
            overlaps: step.attributes.overlaps,
            limits: Limits { sample: which.sample(), ..device.limits },
            behaviour: device.behaviour,
            only: if let Which::These(blocks) = which { Some(blocks) } else { None },
        };
        let report = module.launch(&launch, &mut self.memory).map_err(|error| refused(error, device))?;
        let left_out = report.left_out;
        let message = report.findings.first().map(|first| failure(first, report.findings.len()));
        device.log.add(report);
        match message {
            Some(message) if !device.tolerant => Err(DeviceError::Run(message)),
            _ => Ok((left_out > 0).then(|| which.parts(step.grid, left_out))),
        }
    }
}

/// Whether blocks of a module add to what others added to in global memory: then a part of them gives no result.
fn accumulates(text: &str) -> bool {
    let opcodes =
        text.split(char::is_whitespace).filter_map(|word| word.strip_prefix("atom.").or(word.strip_prefix("red.")));
    opcodes.into_iter().any(|rest| !rest.split('.').any(|part| part.starts_with("shared")))
}

fn unsupported(device: &Settings, feature: String) -> DeviceError {
    DeviceError::Unsupported { device: device.spec.id.clone(), feature }
}

/// Whether a device of compute capability `sm` runs code for a target: features of one architecture are its own, those of a
/// family are had by its later members too (PTX manual, `.target`).
fn runs(target: &str, sm: i64) -> bool {
    let name = target.trim_start_matches("sm_");
    let needs = name.trim_end_matches(['a', 'f']).parse::<i64>().unwrap_or(0);
    match name.as_bytes().last() {
        Some(b'a') => needs == sm,
        Some(b'f') => needs <= sm && needs / 10 == sm / 10,
        _ => needs <= sm,
    }
}

fn failure(first: &Finding, count: usize) -> String {
    if count > 1 { format!("{first} (and {} more findings)", count - 1) } else { first.to_string() }
}

fn refused(error: LaunchError, device: &Settings) -> DeviceError {
    match error {
        // Another configuration may run.
        LaunchError::SharedMemory { .. } | LaunchError::Block { .. } | LaunchError::Grid { .. } => {
            unsupported(device, error.to_string())
        }
        LaunchError::ArgumentSize { ref name, .. } => {
            DeviceError::Argument { name: name.clone(), message: error.to_string() }
        }
        LaunchError::ArgumentCount { ref kernel, .. } => {
            DeviceError::Argument { name: kernel.clone(), message: error.to_string() }
        }
        other => DeviceError::Run(other.to_string()),
    }
}

impl From<MemoryError> for DeviceError {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::TooLong { need, have } => Self::OutOfMemory { need, have: Some(have) },
            other => Self::Run(other.to_string()),
        }
    }
}

/// A scalar in the element type of the buffers; kernels on 16-bit types may take theirs in binary32.
fn scalar(value: f64, dtype: Option<DType>, bytes: usize) -> Argument {
    match (dtype, bytes) {
        (Some(DType::I8 | DType::I32), 4) => Argument::U32(value as i32 as u32),
        (Some(DType::F16), 2) => Argument::Bytes((narrow(value, HALF, Round::Nearest) as u16).to_le_bytes().to_vec()),
        (Some(DType::Bf16), 2) => {
            Argument::Bytes((narrow(value, BFLOAT, Round::Nearest) as u16).to_le_bytes().to_vec())
        }
        (_, 4) => Argument::F32(value as f32),
        _ => Argument::F64(value),
    }
}
