//! Calling decided plans with next to no cost.
//!
//! A [`PlanTable`] maps a caller's own typed input to whatever was prepared for it. A [`HostPlan`] is a program ready
//! to run on the caller's own slices.

use rustc_hash::FxHashMap;
use tilewright_core::buffer::{Buffer, BufferSpec, View};
use tilewright_core::device::HostProgram;
use tilewright_core::dtype::DType;
use tilewright_core::program::{DeviceError, Program};

/// Prepared plans by input: inputs are a few integers that no adversary chooses, and a lookup is to cost a few nanoseconds.
pub type PlanTable<K, P> = FxHashMap<K, P>;

/// A program of host code, ready to run on a caller's memory, with its workspace.
pub struct HostPlan {
    program: HostProgram,
    workspace: Buffer,
}

impl HostPlan {
    /// Takes a program over.
    ///
    /// # Errors
    /// Steps that are not for the host, or that reach beyond the workspace.
    pub fn new(program: &Program) -> Result<Self, DeviceError> {
        let program = HostProgram::new(program)?;
        let workspace = Buffer::zeroed(DType::I8, program.workspace());
        Ok(Self { program, workspace })
    }

    /// The buffers that a call takes, in order: names, element types, shortest lengths, and which of them it writes. None
    /// where whoever made the program did not say.
    pub fn buffers(&self) -> Option<&[BufferSpec]> {
        self.program.buffers()
    }

    /// Runs once, in place, on memory that the caller lends. Elements may lie at any address that suits their type.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] with the buffer that has another type, is too short, or is written and was lent to be read,
    /// or the scalar that the program was not made for: code for one value of a scalar has that value built in.
    #[inline]
    pub fn call(&mut self, buffers: &mut [View<'_>], scalars: &[f64]) -> Result<(), DeviceError> {
        self.program.run(buffers, scalars, &mut self.workspace)
    }

    /// Runs once on each of several sets of buffers with the same scalars: pointer arrays of a batch, say. Those before the first set
    /// that does not fit have run.
    ///
    /// # Errors
    /// As [`HostPlan::call`].
    pub fn call_each<'v, const N: usize>(
        &mut self,
        all: impl IntoIterator<Item = [View<'v>; N]>,
        scalars: &[f64],
    ) -> Result<(), DeviceError> {
        self.program.run_each(all, scalars, &mut self.workspace)
    }
}

#[cfg(test)]
mod tests;
