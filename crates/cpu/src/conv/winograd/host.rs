//! A plan as code that the host runs.

use super::super::driver::Call;
use super::super::host::operands;
use super::driver::Compiled;
use super::kernel::WinogradPlan;
use crate::device::vec_max;
use crate::exec::scratch;
use tilewright_core::buffer::BufferSpec;
use tilewright_core::computation::Computation;
use tilewright_core::program::{DeviceError, HostArgs, HostCode, check_buffers};
use tilewright_ops::conv::{Conv, ConvInput};

/// Generated code of one plan, ready to be called.
pub(super) struct HostWinograd {
    input: ConvInput,
    buffers: Vec<BufferSpec>,
    scratch: usize,
    vec: usize,
    /// None where there is no output; or why there is none: executable memory was refused.
    compiled: Result<Option<Compiled>, String>,
}

impl HostWinograd {
    pub(super) fn new(plan: &WinogradPlan) -> Self {
        Self {
            input: plan.input.clone(),
            buffers: Conv.buffers(&plan.input),
            scratch: plan.blueprint.as_ref().map_or(0, super::blueprint::Blueprint::workspace),
            vec: plan.blueprint.as_ref().map_or(0, |b| b.config.vec),
            compiled: plan.blueprint.clone().map(Compiled::new).transpose(),
        }
    }
}

impl HostCode for HostWinograd {
    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        check_buffers(&self.buffers, args.buffers)?;
        if self.vec as i64 > vec_max() {
            let feature = format!("vectors of {} bytes", self.vec);
            return Err(DeviceError::Unsupported { device: "cpu".into(), feature });
        }
        let Some(compiled) = self.compiled.as_ref().map_err(|e| DeviceError::Load(e.clone()))? else {
            return Ok(());
        };
        scratch::with(self.scratch, |workspace| {
            let (gathered, filter, result, finish) = operands(&self.input, args.buffers);
            let call = Call { gathered, filter, result, workspace, finish };
            // SAFETY: the lengths of the tensors, that the result may be written, and that the host has the vectors were
            // established above; tensors are aligned as their elements are; the result is borrowed mutably for the whole call,
            // and the scratch memory is this call's.
            unsafe { compiled.run(&call) };
        })
        .map_err(|e| DeviceError::Run(format!("{} bytes for transformed filters and tiles: {e}", self.scratch)))
    }
}
