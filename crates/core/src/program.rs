//! What a plan generates: steps that a device can load and run.

mod arg;
mod step;
mod takes;
mod tensor_map;

pub use arg::{Arg, ByValue, MAX_ALIGN, MAX_STRUCT};
pub use step::{Attributes, Code, Language, Launch, LibraryCall, Source, Step};
pub use takes::{ScalarClass, ScalarSpec, check_buffers};
pub(crate) use takes::{Scalars, buffers_fit};
pub use tensor_map::{Interleave, Swizzle, TensorMap};

use crate::buffer::{Buffer, BufferSpec, View};
use crate::size::Bytes;
use serde::{Deserialize, Serialize};
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
    #[error("out of memory: {} needed{}", Bytes(*need), have.map_or(String::new(), |h| format!(", {} available", Bytes(h))))]
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

    /// Whether [`HostCode::run`] itself refuses buffers that the program was not made for, so that whoever calls it need not ask
    /// before: where a run lasts nanoseconds, asking twice shows.
    fn checks_buffers(&self) -> bool {
        false
    }

    /// Whether threads of its own may spin on after a run, in the hope of another, and so take time from whatever runs next.
    fn leaves_threads_spinning(&self) -> bool {
        false
    }

    /// The generated code for people (assembly), where there is some.
    fn listing(&self) -> Option<String> {
        None
    }
}

/// Everything a device needs to run a plan. As text it does not hold the data that it takes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Program {
    /// In order.
    pub steps: Vec<Step>,
    /// Scratch memory in bytes.
    pub workspace: u64,
    /// The buffers that it runs on, each at least so long; None where whoever made it did not say, so that nothing is checked.
    #[serde(skip)]
    pub buffers: Option<Vec<BufferSpec>>,
    /// The scalars that it takes; None as for the buffers.
    #[serde(skip)]
    pub scalars: Option<Vec<ScalarSpec>>,
}

impl Program {
    /// Steps in order, with so many bytes of scratch memory. What data they take is not said.
    pub fn new(steps: Vec<Step>, workspace: u64) -> Self {
        Self { steps, workspace, buffers: None, scalars: None }
    }

    /// A program of one host call.
    pub fn host(code: Arc<dyn HostCode>, workspace: u64) -> Self {
        Self::new(vec![Step::Host(code)], workspace)
    }

    /// A program of one launch.
    pub fn launch(launch: Launch) -> Self {
        Self::new(vec![Step::Launch(launch)], 0)
    }

    /// A program of one call of a library.
    pub fn library(call: LibraryCall) -> Self {
        Self::new(vec![Step::Library(call)], 0)
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
    /// [`DeviceError::Argument`] that names the buffer or the scalar. See [`check_buffers`].
    pub fn expect(&self, buffers: &[BufferSpec], scalars: &[f64]) -> Result<(), DeviceError> {
        if let Some(specs) = &self.buffers {
            takes::check_specs(specs, buffers)?;
        }
        self.scalars.as_ref().map_or(Ok(()), |specs| takes::check_scalars(specs, scalars))
    }
}
