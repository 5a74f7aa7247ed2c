//! Devices that take source text.

use crate::compilers::{Built, CompileError, Compilers};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use std::sync::Arc;
use tilewright_core::buffer::{Buffers, Workload};
use tilewright_core::data::Data;
use tilewright_core::device::{Device, DeviceSpec, Environment, GridPart, classify};
use tilewright_core::measurement::{Measurement, Timing};
use tilewright_core::problem::MeasureError;
use tilewright_core::program::{Arg, Code, DeviceError, Language, Launch, Program, Step};

/// Opens the device that runs functions of the host: this process, or one of its own.
pub type OpenNatives = Box<dyn FnMut() -> Result<Box<dyn Device>, DeviceError> + Send>;

/// Announced sources for each core: enough that none runs dry, few enough that plans can change.
const AHEAD_PER_CORE: usize = 4;

/// A device that compiles the source text in programs before it runs them.
pub struct Compiling<D> {
    inner: D,
    compilers: Arc<Compilers>,
    open: Option<OpenNatives>,
    natives: Option<Box<dyn Device>>,
    /// What was put down last; whoever runs next gets it if it has not.
    data: Option<Data>,
    /// Which of the two holds the data with what runs made of them.
    holds: Holds,
    /// Whether a source was seen: others gain nothing by being announced here.
    compiles: bool,
}

/// Where the data are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Inner,
    Natives,
}

impl<D: Device> Compiling<D> {
    /// On a device that runs what comes out.
    pub fn new(inner: D, compilers: Arc<Compilers>) -> Self {
        Self { inner, compilers, open: None, natives: None, data: None, holds: Holds::Inner, compiles: false }
    }

    /// With a device for functions of the host, opened when the first is to be run.
    #[must_use]
    pub fn with_natives(mut self, open: OpenNatives) -> Self {
        self.open = Some(open);
        self
    }

    /// The device that runs what comes out.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// The compute capability that code is made for.
    fn capability(&self) -> u32 {
        self.inner.spec().fact("sm").and_then(|sm| u32::try_from(sm).ok()).unwrap_or(0)
    }

    /// The program that a device can load, and whether it is one of the host's functions.
    fn lowered(&self, program: &Program) -> Result<(Program, bool), CompileError> {
        let mut out = program.clone();
        let mut native = false;
        for step in &mut out.steps {
            let Step::Launch(launch) = step else { continue };
            if let Code::Source(source) = &launch.code {
                let built = self.compilers.build(source, self.capability())?;
                let on_gpu = source.language == Language::Cuda;
                launch.code = code(&built);
                if on_gpu {
                    drop_symbols(launch);
                }
            }
            native |= matches!(launch.code, Code::Library { .. });
        }
        Ok((out, native))
    }

    /// The device that runs a program, with the data.
    fn target(&mut self, native: bool) -> Result<&mut dyn Device, DeviceError> {
        let wanted = if native { Holds::Natives } else { Holds::Inner };
        if native && self.natives.is_none() {
            let missing = || DeviceError::Unsupported {
                device: self.inner.spec().id.clone(),
                feature: "running functions of the host".to_owned(),
            };
            let open = self.open.as_mut().ok_or_else(missing)?;
            self.natives = Some(open()?);
        }
        if wanted != self.holds {
            if let Some(data) = self.data.clone() {
                let held = self.held()?.read()?;
                let specs = data.specs().to_vec();
                let work = Workload { specs, buffers: held, scalars: data.scalars().to_vec() };
                self.holds = wanted;
                self.held()?.upload(&Data::Given(Arc::new(work)))?;
            }
            self.holds = wanted;
        }
        self.held()
    }

    /// The device that holds the data.
    fn held(&mut self) -> Result<&mut dyn Device, DeviceError> {
        match (self.holds, &mut self.natives) {
            (Holds::Natives, Some(natives)) => Ok(&mut **natives),
            (Holds::Natives, None) => Err(DeviceError::Run("the device of the host's functions is gone".into())),
            (Holds::Inner, _) => Ok(&mut self.inner),
        }
    }
}

fn is_source(program: &Program) -> bool {
    program.steps.iter().any(|step| matches!(step, Step::Launch(Launch { code: Code::Source(_), .. })))
}

fn code(built: &Built) -> Code {
    match built {
        Built::Ptx { text, entry } => Code::Ptx { text: text.clone(), entry: entry.clone() },
        Built::Library { path, entry } => Code::Library { path: path.clone(), entry: entry.clone() },
    }
}

/// Buffers that fill variables of the module are arguments too, unless the kernel has no parameters for them: Kernel Tuner's hub has
/// kernels of both kinds.
fn drop_symbols(launch: &mut Launch) {
    let Code::Ptx { text, entry } = &launch.code else { return };
    let params = parameters(text, entry);
    if params + launch.symbols.len() == launch.args.len() {
        let symbols = &launch.symbols;
        launch.args.retain(|arg| !matches!(arg, Arg::Buffer(i, _) if symbols.iter().any(|(_, symbol)| symbol == i)));
    }
}

/// How many parameters a kernel of a module has.
fn parameters(text: &str, entry: &str) -> usize {
    let head = text
        .split(".entry ")
        .skip(1)
        .find(|rest| rest.strip_prefix(entry).is_some_and(|rest| rest.starts_with(['(', ' ', '\n', '\r', '{', '.'])));
    let until = |head: &str| head.split(['{', ')']).next().map_or(0, |list| list.matches(".param ").count());
    head.map_or(0, until)
}

impl<D: Device> Device for Compiling<D> {
    fn spec(&self) -> &Arc<DeviceSpec> {
        self.inner.spec()
    }

    fn environment(&self) -> Environment {
        self.inner.environment()
    }

    fn ahead(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if self.compiles { self.inner.ahead().max(AHEAD_PER_CORE * cores) } else { self.inner.ahead() }
    }

    fn abandon(&mut self) {
        self.inner.abandon();
    }

    fn precompile(&mut self, programs: &[Program]) {
        if !programs.iter().any(is_source) {
            return self.inner.precompile(programs);
        }
        self.compiles = true;
        let this = &*self;
        let (capability, compilers) = (this.capability(), &this.compilers);
        let sources = programs.iter().flat_map(|program| &program.steps).filter_map(|step| match step {
            Step::Launch(Launch { code: Code::Source(source), .. }) => Some(source),
            _ => None,
        });
        // What does not compile is reported by the run.
        sources.collect::<Vec<_>>().par_iter().for_each(|source| drop(compilers.build(source, capability)));
        let ready: Vec<(Program, bool)> = programs.iter().filter_map(|program| this.lowered(program).ok()).collect();
        let ready: Vec<Program> = ready.into_iter().filter(|(_, native)| !native).map(|(program, _)| program).collect();
        if !ready.is_empty() {
            self.inner.precompile(&ready);
        }
    }

    fn upload(&mut self, data: &Data) -> Result<(), DeviceError> {
        self.data = None;
        self.held()?.upload(data)?;
        self.data = Some(data.clone());
        Ok(())
    }

    fn run(&mut self, program: &Program) -> Result<(), DeviceError> {
        self.compiles |= is_source(program);
        let (program, native) = self.lowered(program)?;
        self.target(native)?.run(&program)
    }

    fn read(&mut self) -> Result<Buffers, DeviceError> {
        self.held()?.read()
    }

    fn run_near(&mut self, program: &Program, parts: &[GridPart], margin: f64) -> Result<(), DeviceError> {
        self.compiles |= is_source(program);
        let (program, native) = self.lowered(program)?;
        self.target(native)?.run_near(&program, parts, margin)
    }

    fn parts(&self) -> Option<Vec<GridPart>> {
        if self.holds == Holds::Inner { self.inner.parts() } else { None }
    }

    fn time(&mut self, program: &Program, timing: &Timing) -> Result<Measurement, MeasureError> {
        self.compiles |= is_source(program);
        let (program, native) = self.lowered(program).map_err(|e| classify(e.into()))?;
        self.target(native).map_err(classify)?.time(&program, timing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_counted() {
        let text = ".visible .entry f(\n .param .u64 a,\n .param .u32 b\n)\n{ }\n.entry g()\n{ ld.param.u64 x; }";
        assert_eq!((parameters(text, "f"), parameters(text, "g"), parameters(text, "h")), (2, 0, 0));
    }
}
