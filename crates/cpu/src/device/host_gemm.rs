//! A plan as code that the host runs.

use super::spec::vec_max;
use crate::exec::driver::{Call, Compiled};
use crate::exec::scratch;
use crate::kernel::GemmPlan;
use tilewright_core::buffer::Buffer;
use tilewright_core::program::{DeviceError, HostArgs, HostCode};
use tilewright_ops::gemm::{A, ALPHA, B, BETA, C, GemmInput};

/// Generated code of one plan, ready to be called.
pub(crate) struct HostGemm {
    input: GemmInput,
    /// Bytes for packed panels and partial sums.
    scratch: usize,
    /// Vector width in bytes that the code was generated for.
    vec: u32,
    /// Or why there is none: executable memory was refused.
    compiled: Result<Compiled, String>,
}

impl HostGemm {
    pub(crate) fn new(plan: &GemmPlan) -> Self {
        Self {
            input: plan.input.clone(),
            scratch: plan.blueprint.workspace(),
            vec: plan.blueprint.config.vec,
            compiled: Compiled::new(plan.blueprint.clone()).map_err(|e| e.to_string()),
        }
    }

    fn check(&self, args: &HostArgs<'_>) -> Result<(), DeviceError> {
        let refuse = |name: &str, message: String| Err(DeviceError::Argument { name: name.into(), message });
        if args.buffers.len() < 3 {
            return refuse("buffers", format!("{} given: a, b and c are needed", args.buffers.len()));
        }
        // Their classes are the program's to check; without them all there is nothing to pass on.
        if args.scalars.len() < 2 {
            let missing = ["alpha, beta", "beta"][args.scalars.len()];
            return refuse(
                missing,
                format!("missing: {} scalars given: alpha and beta are needed", args.scalars.len()),
            );
        }
        for ((name, buffer), need) in [("a", A), ("b", B), ("c", C)].iter().zip(self.input.lens()) {
            let (have, dtype) = (args.buffers[*buffer].len(), args.buffers[*buffer].dtype());
            if have < need {
                return refuse(name, format!("has {have} elements, {need} are needed"));
            }
            if dtype != self.input.dtype {
                return refuse(name, format!("is of {dtype}, the plan of {}", self.input.dtype));
            }
        }
        if i64::from(self.vec) > vec_max() {
            let feature = format!("vectors of {} bytes", self.vec);
            return Err(DeviceError::Unsupported { device: "cpu".into(), feature });
        }
        Ok(())
    }

    /// `C = beta * C`, when the product contributes nothing.
    fn scale(&self, c: &mut Buffer, beta: f64) {
        for column in 0..self.input.n {
            for row in 0..self.input.m {
                let at = row + column * self.input.ldc;
                let value = if beta == 0.0 { 0.0 } else { beta * c.get_f64(at) };
                c.set_f64(at, value);
            }
        }
    }
}

impl HostCode for HostGemm {
    fn run(&self, args: &mut HostArgs<'_>) -> Result<(), DeviceError> {
        self.check(args)?;
        let (alpha, beta) = (args.scalars[ALPHA], args.scalars[BETA]);
        if self.input.m == 0 || self.input.n == 0 {
            return Ok(());
        }
        if !self.input.multiplies() {
            self.scale(&mut args.buffers[C], beta);
            return Ok(());
        }
        let compiled = self.compiled.as_ref().map_err(|e| DeviceError::Load(e.clone()))?;
        let (a, b) = (args.buffers[A].bytes().as_ptr(), args.buffers[B].bytes().as_ptr());
        let c = args.buffers[C].bytes_mut().as_mut_ptr();
        scratch::with(self.scratch, |workspace| {
            let call = Call { a, b, c, workspace, alpha, beta };
            // SAFETY: `check` has established the lengths of the operands, and that the host has the vectors; buffers are
            // aligned to 64 bytes; C is borrowed mutably for the whole call, and the scratch memory is this call's.
            unsafe { compiled.run(&call) };
        })
        .map_err(|e| DeviceError::Run(format!("{} bytes for packed panels: {e}", self.scratch)))
    }

    fn listing(&self) -> Option<String> {
        self.compiled.as_ref().ok()?.listing()
    }
}
