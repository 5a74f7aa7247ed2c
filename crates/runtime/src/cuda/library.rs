//! Routines of the vendor's libraries as steps of programs, so that they are run, checked and timed like any other.

use std::ffi::c_void;
use tilewright_core::program::{DeviceError, LibraryCall};

/// Where a routine works.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'a> {
    /// The stream, a `CUstream`. Everything the routine does goes there, and nothing waits for it.
    pub stream: *mut c_void,
    /// Addresses in device memory of the workload's buffers, in order.
    pub buffers: &'a [u64],
    /// Their lengths in bytes.
    pub bytes: &'a [usize],
    /// The workload's scalars.
    pub scalars: &'a [f64],
    /// Address of memory that the library may use.
    pub scratch: u64,
    /// Its length in bytes.
    pub scratch_bytes: usize,
}

/// A library on one device. Its context is current whenever something is called here.
pub trait DeviceLibrary: Send {
    /// The name in [`LibraryCall::library`].
    fn name(&self) -> &str;

    /// Bytes of memory that a call may use; what is there when it is made ready is at least as long. Twice what cuBLAS recommends for
    /// the newest devices, unless a library knows better.
    ///
    /// # Errors
    /// Fields that describe no input of it, or an option that it does not have.
    fn scratch_bytes(&mut self, call: &LibraryCall) -> Result<usize, DeviceError> {
        let _ = call;
        Ok(64 << 20)
    }

    /// Makes a call ready, so that [`DeviceLibrary::enqueue`] does nothing but put work on the stream.
    ///
    /// # Errors
    /// Fields that describe no input of it, or an option that it does not have.
    fn prepare(&mut self, call: &LibraryCall, stage: &Stage<'_>) -> Result<(), DeviceError>;

    /// Puts a call that was made ready on the stream. May be recorded into a graph.
    ///
    /// # Errors
    /// What the library reports, or buffers too short for the input.
    fn enqueue(&mut self, call: &LibraryCall, stage: &Stage<'_>) -> Result<(), DeviceError>;
}
