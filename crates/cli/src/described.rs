//! Kernels that a file describes, as commands name them: `tune stencil.json`.

use crate::args::{Command, DeviceArgs, KernelCommand};
use crate::device::{DeviceName, named, opened};
use crate::failure::{Failure, Kind};
use std::path::Path;
use std::sync::Arc;
use tilewright::device::{compilers, host};
use tilewright::{ByEmulator, UserError, UserKernel};
use tilewright_compile::CompileError;
use tilewright_core::computation::InputLimits;
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_core::problem::Problem;
use tilewright_core::program::{Code, Language, Launch, Program, Step};
use tilewright_core::space::{Config, Point};
use tilewright_emulator::Module;
use tilewright_user::OnDevice;

/// Configurations that are tried before a source counts as one that does not compile: some may be wrong for their own macros.
const TRIED: usize = 8;

/// Inputs drawn to compile for stay small.
const LIMITS: InputLimits = InputLimits { max_flops: 1e6, max_bytes: 1e6 };

/// Whether a name is that of a description.
pub(crate) fn is_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

/// The kernel that a command names, and its device.
fn asked(command: &mut Command) -> Option<(String, &mut DeviceArgs)> {
    match command {
        Command::Tune(args) => Some((args.kernel.clone(), &mut args.device)),
        Command::Plan(args) => Some((args.kernel.clone(), &mut args.device)),
        Command::Explain(args) => Some((args.plan.kernel.clone(), &mut args.plan.device)),
        Command::Run(args) => Some((args.kernel.clone(), &mut args.device)),
        Command::Bench(args) => Some((args.kernel.clone(), &mut args.device)),
        Command::Verify(args) => Some((args.kernel.clone(), &mut args.device)),
        Command::Space(args) => Some((args.kernel.clone()?, &mut args.device)),
        Command::Search(args) => Some((args.kernel.clone()?, &mut args.device)),
        Command::Export(args) => Some((args.kernel.clone(), &mut args.device)),
        Command::Kernel(KernelCommand::Check { file, device }) => Some((file.clone(), device)),
        _ => None,
    }
}

/// Reads the description that a command names, if it names one, and sees that its source compiles. Where no device is named, a kernel of the
/// host runs there.
///
/// # Errors
/// What is wrong with the description, with its place; see [`ready`].
pub(crate) fn find(command: &mut Command) -> Result<Option<(String, UserKernel)>, Failure> {
    if let Command::Campaign(args) = &*command {
        let first = args.device.split(',').next().map(str::to_owned);
        let kernel = || open(&args.kernel, &DeviceArgs { device: first, threads: None });
        return is_file(&args.kernel).then(|| Ok((args.kernel.clone(), kernel()?))).transpose();
    }
    // What runs nothing needs no compiler.
    let runs = !matches!(command, Command::Space(_) | Command::Explain(_) | Command::Kernel(_));
    let Some((name, device)) = asked(command).filter(|(name, _)| is_file(name)) else { return Ok(None) };
    let mut kernel = open(&name, device)?;
    let is_host = matches!(kernel.language(), Some(Language::C | Language::Cpp));
    if is_host && device.device.is_none() {
        device.device = Some("cpu".to_owned());
        kernel = open(&name, device)?;
    }
    let spec = match named(device)? {
        DeviceName::Cpu if is_host => Some(host(device.threads)?.spec().clone()),
        DeviceName::Emulator(target, _) if !is_host => Some(Arc::new(target.spec())),
        // Opened once, by the command itself.
        _ => None,
    };
    if let Some(spec) = spec.filter(|_| runs) {
        ready(&name, &kernel, &spec)?;
    }
    Ok(Some((name, kernel)))
}

fn open(name: &str, device: &DeviceArgs) -> Result<UserKernel, Failure> {
    let (on, threads) = (named(device)?, device.threads);
    let threads = threads.filter(|_| on.kind() == DeviceKind::Cpu);
    let referee = OnDevice::new(move || {
        opened(&on, threads).map_err(|e| tilewright_core::program::DeviceError::Run(e.to_string()))
    });
    let kernel = UserKernel::open(Path::new(name), Box::new(referee)).map_err(|e| refused(&e))?;
    Ok(kernel.counted_by(Box::<ByEmulator>::default()))
}

fn refused(error: &UserError) -> Failure {
    let at = error.at.map_or(String::new(), |(line, column)| format!(":{line}:{column}"));
    let place = format!("{}{at}", error.file.display());
    if error.field.is_empty() {
        return Failure::new(Kind::Input, &place, &error.message);
    }
    Failure::new(Kind::Input, &error.field, format!("{place}: {}", error.message))
}

/// What was found of a kernel before it is used.
pub(crate) struct Ready {
    pub(crate) compiler: Option<String>,
    pub(crate) input: Config,
    pub(crate) problem: Box<dyn Problem>,
}

/// Compiles a small input's default configuration, or another where that one does not, and compares the arguments with the entry.
///
/// # Errors
/// No compiler, what it says of the source, an entry that is not there, arguments that do not fit.
pub(crate) fn ready(name: &str, kernel: &UserKernel, spec: &Arc<DeviceSpec>) -> Result<Ready, Failure> {
    let file = |message: String| Failure::new(Kind::Input, name, message);
    let compiler = kernel.language().map(|language| compilers().compiler(language)).transpose();
    let compiler =
        compiler.map_err(|e| Failure { detail: Some("no-compiler"), ..Failure::new(Kind::Device, "compiler", e) })?;
    // Places that fill the interval evenly.
    let mut place = 0.5;
    let mut uniform = || {
        place = (place + 0.618_034) % 1.0;
        place
    };
    let erased = kernel.erased();
    let input = erased.draw_awkward(&Config::default(), &LIMITS, &mut uniform);
    let input = input.map_err(|e| file(e.to_string()))?;
    let problem = erased.problem(spec, &input)?;
    let mut first = None;
    for point in candidates(&*problem) {
        let legal = problem.space().check(&point).map_err(|e| file(e.to_string()))?;
        match compiled(&problem.program(&legal), spec) {
            Ok(()) => return Ok(Ready { compiler, input, problem }),
            Err(message) => drop(first.get_or_insert(message)),
        }
    }
    Err(first.map_or_else(|| Failure::nothing_legal(problem.space()), file))
}

/// The default and a few more.
fn candidates(problem: &dyn Problem) -> Vec<Point> {
    let mut out: Vec<Point> = problem.default_point().into_iter().collect();
    problem.space().for_each_legal(|point| {
        out.push(Point::from(point));
        out.len() < TRIED
    });
    out
}

fn compiled(program: &Program, spec: &DeviceSpec) -> Result<(), String> {
    let capability = spec.fact("sm").and_then(|sm| u32::try_from(sm).ok()).unwrap_or(0);
    for step in &program.steps {
        let Step::Launch(launch) = step else { continue };
        let built = match &launch.code {
            Code::Source(source) => compilers().build(source, capability).map_err(|e: CompileError| e.to_string())?,
            Code::Ptx { text, entry } => {
                Arc::new(tilewright_compile::Built::Ptx { text: text.clone(), entry: entry.clone() })
            }
            Code::Library { .. } => continue,
        };
        if let tilewright_compile::Built::Ptx { text, entry } = &*built {
            fits(launch, text, entry)?;
        }
    }
    Ok(())
}

/// Compares the arguments of a launch with the parameters of its entry.
fn fits(launch: &Launch, text: &str, entry: &str) -> Result<(), String> {
    let module = Module::parse(text).map_err(|e| e.to_string())?;
    let parameters =
        module.parameters(entry).ok_or_else(|| format!("KernelName: there is no kernel {entry:?} in the source"))?;
    let (given, symbols) = (launch.args.len(), launch.symbols.len());
    if parameters.len() != given && parameters.len() + symbols != given {
        return Err(format!(
            "Arguments: {given} are described, of which {symbols} fill variables of the module; {entry} takes {}",
            parameters.len()
        ));
    }
    for ((name, bytes), arg) in parameters.iter().zip(&launch.args).filter(|_| parameters.len() == given) {
        let size = match arg.by_value().map_err(|e| e.to_string())? {
            Some(value) => value.bytes.len(),
            None => 8,
        };
        if size != *bytes {
            return Err(format!("Arguments: one of {size} bytes is described where {entry} takes {bytes} ({name})"));
        }
    }
    Ok(())
}
