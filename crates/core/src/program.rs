//! What a plan generates: steps that a device can load and run.

mod takes;

pub use takes::{ScalarClass, ScalarSpec, check_buffers, check_scalars};

use crate::buffer::{Buffer, BufferSpec, View};
use crate::space::Config;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// What a device reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum DeviceError {
    /// There is no such device, or no driver for it.
    #[error("device {device:?} is not there: {why}")]
    Missing {
        /// As on the command line.
        device: String,
        /// What was tried.
        why: String,
    },
    /// Its driver is older than what is asked of it.
    #[error("device {device:?}: the driver is too old: it has {has}, at least {needs} is needed")]
    OldDriver {
        /// As on the command line.
        device: String,
        /// The oldest version that will do.
        needs: String,
        /// The installed version.
        has: String,
    },
    /// The device lacks something the program needs.
    #[error("device {device:?} lacks {feature}")]
    Unsupported {
        /// As on the command line.
        device: String,
        /// What is missing.
        feature: String,
    },
    /// Memory ran out.
    #[error("out of memory: {need} bytes needed{}", have.map_or(String::new(), |h| format!(", {h} available")))]
    OutOfMemory {
        /// Bytes asked for.
        need: u64,
        /// Bytes available, where known.
        have: Option<u64>,
    },
    /// Code could not be made loadable.
    #[error("loading code: {0}")]
    Load(String),
    /// Arguments do not fit the program.
    #[error("argument {name:?}: {message}")]
    Argument {
        /// Which.
        name: String,
        /// What is wrong.
        message: String,
    },
    /// A kernel did what the device does not allow, or its process died of it. Others may still run.
    #[error("a kernel faulted: {0}")]
    Fault(String),
    /// A program came to no result on these data, and said so: a solver that does not converge. Others may.
    #[error("no result: {0}")]
    NoResult(String),
    /// A kernel did not end in time.
    #[error("a kernel still ran after {after_ms} ms")]
    Hang {
        /// How long it was waited for, in milliseconds.
        after_ms: u64,
    },
    /// The run itself failed, and the next one would too.
    #[error("running: {0}")]
    Run(String),
}

/// Arguments of host code.
pub struct HostArgs<'a, 'v> {
    /// The buffers of the workload: whoever calls keeps them, and code borrows them while it runs.
    pub buffers: &'a mut [View<'v>],
    /// Its scalars.
    pub scalars: &'a [f64],
    /// Scratch memory, at least as long as the program asked for.
    pub workspace: &'a mut Buffer,
}

/// Code that runs on the host; made by `cpu`.
pub trait HostCode: Send + Sync {
    /// Runs once.
    ///
    /// # Errors
    /// Buffers that are not what the code was generated for.
    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError>;

    /// The generated code for people (assembly), where there is some.
    fn listing(&self) -> Option<String> {
        None
    }
}

/// A call of a routine that the device's maker provides, for comparison or as one implementation among others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LibraryCall {
    /// Which library: `cublas`.
    pub library: String,
    /// Which of its implementations for this input, from zero; see the device's own documentation.
    pub option: u32,
    /// The words of the input.
    pub input: Config,
}

/// Generated code.
#[derive(Clone)]
pub enum Code {
    /// PTX text and its entry.
    Ptx {
        /// The module.
        text: String,
        /// Name of the kernel in it.
        entry: String,
    },
    /// CUDA C, compiled at run time.
    CudaC {
        /// The source.
        text: String,
        /// Name of the kernel in it.
        entry: String,
    },
    /// A callable on the host.
    Host(Arc<dyn HostCode>),
    /// A routine of a library. Takes the buffers and scalars of the workload in their order; grid, block and arguments are
    /// ignored.
    Library(LibraryCall),
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ptx { entry, .. } => write!(f, "Ptx({entry})"),
            Self::CudaC { entry, .. } => write!(f, "CudaC({entry})"),
            Self::Host(_) => f.write_str("Host"),
            Self::Library(call) => write!(f, "Library({}:{})", call.library, call.option),
        }
    }
}

/// An argument of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Arg {
    /// Address of a workload buffer, with an offset in bytes.
    Buffer(usize, u64),
    /// Address within the workspace, in bytes.
    Workspace(u64),
    /// A scalar of the workload, in the element type of its buffers.
    Scalar(usize),
    /// A constant.
    U32(u32),
    /// A constant.
    U64(u64),
}

/// One step of a program.
#[derive(Clone, Debug)]
pub enum Step {
    /// Sets bytes of the workspace.
    FillWorkspace {
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u64,
        /// The value.
        value: u8,
    },
    /// Runs code. Host code takes all buffers and ignores grid, block and arguments.
    Launch {
        /// What to run.
        code: Code,
        /// Blocks.
        grid: [u32; 3],
        /// Threads of a block.
        block: [u32; 3],
        /// Dynamic shared memory of a block, in bytes.
        shared_bytes: u32,
        /// Arguments in order.
        args: Vec<Arg>,
    },
}

/// Everything a device needs to run a plan.
#[derive(Clone, Debug)]
pub struct Program {
    /// In order.
    pub steps: Vec<Step>,
    /// Scratch memory in bytes.
    pub workspace: u64,
    /// The buffers that it runs on, each at least so long; None where whoever made it did not say, so that nothing is checked.
    pub buffers: Option<Vec<BufferSpec>>,
    /// The scalars that it takes; None as for the buffers.
    pub scalars: Option<Vec<ScalarSpec>>,
}

impl Program {
    /// Steps in order, with so many bytes of scratch memory. What data they take is not said.
    pub fn new(steps: Vec<Step>, workspace: u64) -> Self {
        Self { steps, workspace, buffers: None, scalars: None }
    }

    /// A program of one host call.
    pub fn host(code: Arc<dyn HostCode>, workspace: u64) -> Self {
        let step =
            Step::Launch { code: Code::Host(code), grid: [1; 3], block: [1; 3], shared_bytes: 0, args: Vec::new() };
        Self::new(vec![step], workspace)
    }

    /// A program of one call of a library.
    pub fn library(call: LibraryCall) -> Self {
        let code = Code::Library(call);
        let step = Step::Launch { code, grid: [1; 3], block: [1; 3], shared_bytes: 0, args: Vec::new() };
        Self::new(vec![step], 0)
    }

    /// The same program, made for these scalars and no others.
    #[must_use]
    pub fn taking(mut self, scalars: Vec<ScalarSpec>) -> Self {
        self.scalars = Some(scalars);
        self
    }

    /// The same program, made for these buffers and no others.
    #[must_use]
    pub fn on(mut self, buffers: Vec<BufferSpec>) -> Self {
        self.buffers = Some(buffers);
        self
    }

    /// Refuses data that it was not made for. Whatever takes a program and a caller's data must ask.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] that names the buffer or the scalar. See [`check_scalars`].
    pub fn expect(&self, buffers: &[BufferSpec], scalars: &[f64]) -> Result<(), DeviceError> {
        if let Some(specs) = &self.buffers {
            takes::check_specs(specs, buffers)?;
        }
        self.scalars.as_ref().map_or(Ok(()), |specs| check_scalars(specs, scalars))
    }
}
