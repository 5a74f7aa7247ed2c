//! A plan as code that the host runs.

use super::driver::{Call, Compiled};
use super::finish::Finish;
use super::kernel::ConvPlan;
use crate::device::vec_max;
use crate::exec::scratch;
use tilewright_core::buffer::{BufferSpec, View};
use tilewright_core::computation::Computation;
use tilewright_core::program::{DeviceError, HostArgs, HostCode, check_buffers};
use tilewright_ops::conv::Correlation;
use tilewright_ops::conv::{Activation, BIAS, Conv, ConvInput};

/// Generated code of one plan, ready to be called.
pub(crate) struct HostConv {
    input: ConvInput,
    buffers: Vec<BufferSpec>,
    /// Correlations that sum nothing.
    empty: Vec<Correlation>,
    /// Bytes for packed filters, slabs and staged outputs.
    scratch: usize,
    /// Vector width in bytes that the code was generated for; 0 where there is none.
    vec: usize,
    /// Or why there is none: executable memory was refused.
    compiled: Result<Vec<Compiled>, String>,
}

impl HostConv {
    pub(crate) fn new(plan: &ConvPlan) -> Self {
        Self {
            input: plan.input.clone(),
            buffers: Conv.buffers(&plan.input),
            empty: plan.empty.clone(),
            scratch: plan.blueprints.iter().map(super::blueprint::Blueprint::workspace).max().unwrap_or(0),
            vec: plan.blueprints.iter().map(|b| b.config.vec).max().unwrap_or(0),
            compiled: plan.blueprints.iter().cloned().map(Compiled::new).collect(),
        }
    }

    fn check(&self, args: &HostArgs<'_, '_>) -> Result<(), DeviceError> {
        check_buffers(&self.buffers, args.buffers)?;
        if self.vec as i64 > vec_max() {
            let feature = format!("vectors of {} bytes", self.vec);
            return Err(DeviceError::Unsupported { device: "cpu".into(), feature });
        }
        Ok(())
    }
}

/// The epilogue of outputs without sums.
pub(super) fn finish_empty(input: &ConvInput, of: &Correlation, views: &mut [View<'_>]) {
    let written = input.written();
    let (r, epilogue) = (of.result, input.epilogue);
    for (number, group) in of.groups.iter().enumerate() {
        for (image, row) in (0..of.images.count).flat_map(|i| (0..of.grid[0]).map(move |r| (i, r))) {
            for (column, out) in (0..of.grid[1]).flat_map(|c| (0..of.outs.count).map(move |o| (c, o))) {
                let at = group.result + image * r.image + row * r.row + column * r.column + out * r.out;
                let channel = number * of.outs.count + out;
                let bias = if epilogue.bias { views[BIAS].get_f64(channel) } else { 0.0 };
                let residual = input.residual().map_or(0.0, |buffer| views[buffer].get_f64(at));
                views[written].set_f64(at, epilogue.activation.of(bias + residual));
            }
        }
    }
}

/// The addresses of what is gathered, of the filters, of the result, and what the epilogue needs.
pub(super) fn operands(input: &ConvInput, views: &mut [View<'_>]) -> (*const u8, *const u8, *mut u8, Finish) {
    let written = input.written();
    let at = |views: &[View<'_>], buffer: usize| views[buffer].bytes().as_ptr();
    let null = std::ptr::null();
    let finish = Finish {
        bias: if input.epilogue.bias { at(views, BIAS) } else { null },
        residual: input.residual().map_or(null, |buffer| at(views, buffer)),
        relu: input.epilogue.activation == Activation::Relu,
        simd: crate::device::generates(),
    };
    let (gathered, filter) = (at(views, input.gathered()), at(views, 3 - written - input.gathered()));
    let result = views[written].bytes_mut().map_or(std::ptr::null_mut(), <[u8]>::as_mut_ptr);
    (gathered, filter, result, finish)
}

impl HostCode for HostConv {
    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        self.check(args)?;
        self.empty.iter().for_each(|of| finish_empty(&self.input, of, args.buffers));
        let compiled = self.compiled.as_ref().map_err(|e| DeviceError::Load(e.clone()))?;
        if compiled.is_empty() {
            return Ok(());
        }
        scratch::with(self.scratch, |workspace| {
            let (gathered, filter, result, finish) = operands(&self.input, args.buffers);
            let call = Call { gathered, filter, result, workspace, finish };
            for one in compiled {
                // SAFETY: `check` has established the lengths of the tensors, that the result may be written, and that the
                // host has the vectors; tensors are aligned as their elements are; the result is borrowed mutably for the
                // whole call, and the scratch memory is this call's.
                unsafe { one.run(&call) };
            }
        })
        .map_err(|e| DeviceError::Run(format!("{} bytes for packed filters and slabs: {e}", self.scratch)))
    }
}
