//! Kernels of loops as machine code of the host, by Cranelift.
//!
//! The code is specialised to sizes. Groups are divided among the threads of the device; each thread has memory for the shared
//! arrays of one group and for the locals that outlive a region (see [`tilewright_loops::host`]). Code goes into the same
//! pages as all other generated code: never writable and executable at once.

mod lower;
mod region;
mod value;

use crate::exec::memory::executable;
use crate::exec::scratch;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{Context, ir};
use memmap2::Mmap;
use std::sync::Arc;
use tilewright_core::buffer::{BufferSpec, View};
use tilewright_core::program::{DeviceError, HostArgs, HostCode, Program, check_buffers};
use tilewright_loops::{Instance, LoopError};

/// Why there is no code.
#[derive(Debug, thiserror::Error)]
pub enum LowerError {
    /// The kernel asks for what has no code.
    #[error(transparent)]
    Kernel(#[from] LoopError),
    /// The generator refuses the host or the code.
    #[error("generating code: {0}")]
    Generator(String),
    /// The system gives no executable memory.
    #[error("executable memory: {0}")]
    Memory(#[from] std::io::Error),
}

/// Code of an instance: addresses of the arrays, memory of the thread, first group, and the one behind the last.
type Entry = unsafe extern "sysv64" fn(*const *mut u8, *mut u8, i64, i64);

/// Machine code of one instance.
pub struct HostLoops {
    code: Mmap,
    buffers: Vec<BufferSpec>,
    groups: usize,
    threads: usize,
    /// Bytes that each thread needs.
    memory: usize,
    /// The code once more, to be shown.
    text: Vec<u8>,
}

impl HostLoops {
    /// Generates code for so many threads.
    ///
    /// # Errors
    /// What has no code, or a host that Cranelift does not know.
    pub fn new(instance: &Instance, threads: usize) -> Result<Self, LowerError> {
        let isa = host_isa()?;
        let mut context = Context::new();
        context.func.signature = signature(&isa);
        let memory = lower::function(instance, &*isa, &mut context.func)?;
        let generator = |e: String| LowerError::Generator(e);
        let compiled = context
            .compile(&*isa, &mut ControlPlane::default())
            .map_err(|e| generator(format!("{}: {:?}", instance.kernel().name, e.inner)))?;
        if !compiled.buffer.relocs().is_empty() {
            return Err(generator(format!("{}: this host lacks an instruction that it needs", instance.kernel().name)));
        }
        let text = compiled.code_buffer().to_vec();
        let code = executable(&text)?;
        Ok(Self {
            code,
            buffers: instance.buffers(),
            groups: usize::try_from(instance.groups()).unwrap_or(0),
            threads: threads.max(1),
            memory: memory.next_multiple_of(64),
            text,
        })
    }
}

/// The program of an instance on the host, to be run on the buffers of [`Instance::buffers`].
///
/// # Errors
/// See [`HostLoops::new`].
pub fn host_program(instance: &Instance, threads: usize) -> Result<Program, LowerError> {
    Ok(Program::host(Arc::new(HostLoops::new(instance, threads)?), 0).on(instance.buffers()))
}

fn host_isa() -> Result<OwnedTargetIsa, LowerError> {
    let generator = |e: &dyn std::fmt::Display| LowerError::Generator(e.to_string());
    let mut flags = settings::builder();
    flags.set("opt_level", "speed").map_err(|e| generator(&e))?;
    flags.set("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }).map_err(|e| generator(&e))?;
    let builder = cranelift_native::builder().map_err(|e| generator(&e))?;
    builder.finish(settings::Flags::new(flags)).map_err(|e| generator(&e))
}

fn signature(isa: &OwnedTargetIsa) -> ir::Signature {
    let pointer = ir::AbiParam::new(isa.pointer_type());
    let mut signature = ir::Signature::new(CallConv::SystemV);
    signature.params = vec![pointer, pointer, ir::AbiParam::new(ir::types::I64), ir::AbiParam::new(ir::types::I64)];
    signature
}

impl HostCode for HostLoops {
    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        check_buffers(&self.buffers, args.buffers)?;
        let arrays: Vec<*mut u8> = args.buffers.iter_mut().map(address).collect();
        // SAFETY: the code was generated with this signature, and is never written again.
        let entry = unsafe { std::mem::transmute::<*const u8, Entry>(self.code.as_ptr()) };
        let threads = self.threads.min(self.groups).max(1);
        let run = |memory: *mut u8| {
            let job = Job { code: self, entry, arrays: arrays.as_ptr(), memory, threads };
            tilewright_threads::run(threads, &|thread| job.run(thread));
        };
        scratch::with(threads * self.memory, run)
            .map_err(|e| DeviceError::Run(format!("{} bytes for groups: {e}", threads * self.memory)))
    }

    fn listing(&self) -> Option<String> {
        Some(crate::codegen::listing(&self.text))
    }
}

/// Where an array lies. Code writes to those only whose role says so, and these were checked to be writable.
fn address(view: &mut View<'_>) -> *mut u8 {
    match view.bytes_mut() {
        Some(bytes) => bytes.as_mut_ptr(),
        None => view.bytes().as_ptr().cast_mut(),
    }
}

struct Job<'a> {
    code: &'a HostLoops,
    entry: Entry,
    arrays: *const *mut u8,
    memory: *mut u8,
    threads: usize,
}

// SAFETY: every thread uses its own part of the memory, and runs groups that are independent of each other; what two of them write
// they write at once.
unsafe impl Sync for Job<'_> {}

impl Job<'_> {
    fn run(&self, thread: usize) {
        let memory = self.memory.wrapping_add(thread * self.code.memory);
        let [first, end] = [thread, thread + 1].map(|t| (self.code.groups * t / self.threads) as i64);
        // SAFETY: `check_buffers` has established the lengths of the buffers and which may be written, the instance that every
        // access is inside of them; the memory is this thread's, long enough and aligned to 64 bytes.
        unsafe { (self.entry)(self.arrays, memory, first, end) };
    }
}
