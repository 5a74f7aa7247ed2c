//! Functions of compiled libraries as host code.

use crate::compilers::{Built, Compilers};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::collections::HashMap;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tilewright_core::buffer::Buffers;
use tilewright_core::data::Data;
use tilewright_core::device::{Device, DeviceSpec, classify};
use tilewright_core::measurement::{Measurement, Timing};
use tilewright_core::problem::MeasureError;
use tilewright_core::program::{Arg, Code, DeviceError, HostArgs, HostCode, Launch, Program, Step};

type Call = unsafe extern "C" fn(*mut *mut c_void);

/// A function of a library with its arguments.
struct Native {
    call: Call,
    args: Vec<Arg>,
    /// Kept open while the function may be called.
    _library: Arc<Library>,
}

/// The bytes of one argument: an address or a constant, where the function finds it.
type Slot = [u64; 8];

impl Native {
    /// What one argument is, in a place of its own.
    fn slot(arg: &Arg, args: &mut HostArgs<'_, '_>) -> Result<Slot, DeviceError> {
        let refuse = |name: &str, message: String| DeviceError::Argument { name: name.to_owned(), message };
        let mut slot = [0u64; 8];
        match arg {
            Arg::Buffer(i, offset) => {
                let given = args.buffers.len();
                let view = args.buffers.get_mut(*i);
                let view = view.ok_or_else(|| refuse("buffer", format!("number {i} of {given}")))?;
                let address = match view.bytes_mut() {
                    Some(bytes) => bytes.as_mut_ptr().cast_const(),
                    None => view.bytes().as_ptr(),
                };
                slot[0] = address as u64 + offset;
            }
            Arg::Workspace(offset) => slot[0] = args.workspace.bytes_mut().as_mut_ptr() as u64 + offset,
            Arg::Scalar(i) => {
                let value = args.scalars.get(*i);
                slot[0] = value.ok_or_else(|| refuse("scalar", format!("number {i} is not there")))?.to_bits();
            }
            constant => {
                let value = constant.by_value()?.ok_or_else(|| refuse("argument", "the host takes no such".into()))?;
                let room = std::mem::size_of::<Slot>();
                if value.bytes.len() > room {
                    return Err(refuse("argument", format!("{} bytes by value, at most {room}", value.bytes.len())));
                }
                for (i, byte) in value.bytes.iter().enumerate() {
                    slot[i / 8] |= u64::from(*byte) << (8 * (i % 8));
                }
            }
        }
        Ok(slot)
    }
}

impl HostCode for Native {
    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        let mut slots = self.args.iter().map(|arg| Self::slot(arg, args)).collect::<Result<Vec<Slot>, _>>()?;
        let mut places: Vec<*mut c_void> = slots.iter_mut().map(|slot| slot.as_mut_ptr().cast()).collect();
        // SAFETY: the function was compiled from a call with exactly these arguments, and the library is open. What the user's code
        // does beyond its buffers is the user's: devices that must survive it run it in a process of its own.
        unsafe { (self.call)(places.as_mut_ptr()) };
        Ok(())
    }
}

/// Libraries that stay open at most; older ones are closed when nothing of theirs is left.
const OPEN: usize = 512;

/// A device of host code that also takes functions of libraries.
pub struct NativeHost<D> {
    host: D,
    open: HashMap<(PathBuf, String), (Arc<Library>, Call)>,
}

/// A program of host sources as host code of this process, for calls on a caller's own memory. A crash of the user's code is one of the
/// process.
///
/// # Errors
/// A source that does not compile, or a library that does not open.
pub fn in_process(program: &Program, compilers: &Compilers) -> Result<Program, DeviceError> {
    let mut out = program.clone();
    for step in &mut out.steps {
        let Step::Launch(Launch { code: Code::Source(source), args, .. }) = step else { continue };
        let built = compilers.build(source, 0)?;
        let Built::Library { path, entry } = &*built else { continue };
        let (library, call) = opened(path, entry)?;
        *step = Step::Host(Arc::new(Native { call, args: args.clone(), _library: library }));
    }
    Ok(out)
}

fn opened(path: &Path, entry: &str) -> Result<(Arc<Library>, Call), DeviceError> {
    let failed = |e: libloading::Error| DeviceError::Load(format!("{}: {e}", path.display()));
    // SAFETY: whoever made the file compiled a user's kernel: its constructors are the user's code, as its functions are.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(failed)?;
    // SAFETY: the file was made with a function of this type under this name; the library stays open as long as it is held.
    let call = unsafe { library.get::<Call>(entry.as_bytes()).map(|symbol| *symbol) }.map_err(failed)?;
    Ok((Arc::new(library), call))
}

impl<D: Device> NativeHost<D> {
    /// On a device that runs host code.
    pub fn new(host: D) -> Self {
        Self { host, open: HashMap::new() }
    }

    fn function(&mut self, path: &Path, entry: &str) -> Result<(Arc<Library>, Call), DeviceError> {
        let key = (path.to_owned(), entry.to_owned());
        if let Some(known) = self.open.get(&key) {
            return Ok(known.clone());
        }
        if self.open.len() >= OPEN {
            self.open.clear();
        }
        let found = opened(path, entry)?;
        self.open.insert(key, found.clone());
        Ok(found)
    }

    /// The program with its launches of libraries as host code.
    fn lowered(&mut self, program: &Program) -> Result<Program, DeviceError> {
        let mut out = program.clone();
        for step in &mut out.steps {
            let Step::Launch(Launch { code: Code::Library { path, entry }, args, .. }) = step else { continue };
            let (library, call) = self.function(path, entry)?;
            *step = Step::Host(Arc::new(Native { call, args: args.clone(), _library: library }));
        }
        Ok(out)
    }
}

impl<D: Device> Device for NativeHost<D> {
    fn spec(&self) -> &Arc<DeviceSpec> {
        self.host.spec()
    }

    fn upload(&mut self, data: &Data) -> Result<(), DeviceError> {
        self.host.upload(data)
    }

    fn run(&mut self, program: &Program) -> Result<(), DeviceError> {
        let program = self.lowered(program)?;
        self.host.run(&program)
    }

    fn read(&mut self) -> Result<Buffers, DeviceError> {
        self.host.read()
    }

    fn time(&mut self, program: &Program, timing: &Timing) -> Result<Measurement, MeasureError> {
        let program = self.lowered(program).map_err(classify)?;
        self.host.time(&program, timing)
    }
}
