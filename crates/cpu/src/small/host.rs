//! A plan as code that the host runs: a check of the buffers, and a jump.

use super::blueprint::Blueprint;
use super::code::{Code, Operands};
use super::routine::Constants;
use crate::device::{scale, vec_max};
use crate::scalar::Float;
use crate::split::share;
use tilewright_core::buffer::{BufferSpec, View};
use tilewright_core::computation::Computation;
use tilewright_core::dtype::DType;
use tilewright_core::program::{DeviceError, HostArgs, HostCode, check_buffers};
use tilewright_ops::gemm::{A, ALPHA, B, BETA, C, Gemm, ScalarClass};

/// A plan, ready to be called.
pub(super) struct HostSmall {
    blueprint: Blueprint,
    /// The operands.
    buffers: Vec<BufferSpec>,
    /// Their element type, and their lengths: what stands before every call.
    dtype: DType,
    lens: [usize; 3],
    /// Whether there is something to multiply.
    multiplies: bool,
    /// Whether nothing stands between the check and the jump.
    is_plain: bool,
    /// Bytes for panels.
    workspace: usize,
    /// Or why there is none: executable memory was refused, or the host lacks the instructions.
    code: Result<Code, DeviceError>,
    /// Without the scalars of a call.
    constants: Constants,
}

impl HostSmall {
    pub(super) fn new(blueprint: &Blueprint) -> Self {
        let code = if blueprint.needs() > vec_max() {
            let feature = format!("the instructions of vectors of {} bytes", blueprint.needs());
            Err(DeviceError::Unsupported { device: "cpu".into(), feature })
        } else {
            Code::new(blueprint).map_err(DeviceError::Load)
        };
        let (input, workspace) = (&blueprint.input, blueprint.workspace());
        let multiplies = input.m > 0 && input.n > 0 && input.multiplies();
        Self {
            buffers: Gemm.buffers(&blueprint.input),
            dtype: blueprint.input.dtype(),
            lens: blueprint.input.lens(),
            multiplies,
            is_plain: multiplies && workspace == 0 && blueprint.config.t == 1 && !blueprint.reads_scalars(),
            workspace,
            code,
            constants: constants(blueprint),
            blueprint: blueprint.clone(),
        }
    }

    /// The operands; none where a buffer is not one.
    #[inline]
    fn operands(&self, buffers: &mut [View<'_>]) -> Option<Operands> {
        let [a, b, c] = buffers else { return None };
        let fits = |view: &View<'_>, at: usize| (view.dtype() == self.dtype) & (view.len() >= self.lens[at]);
        if !(fits(a, A) & fits(b, B) & fits(c, C)) {
            return None;
        }
        let panel = std::ptr::null_mut();
        Some(Operands { a: a.bytes().as_ptr(), b: b.bytes().as_ptr(), c: c.bytes_mut()?.as_mut_ptr(), panel })
    }

    #[cold]
    fn refusal(&self, buffers: &[View<'_>]) -> DeviceError {
        check_buffers(&self.buffers, buffers).err().unwrap_or_else(|| DeviceError::Run("buffers do not fit".to_owned()))
    }

    /// `C = beta * C`, when the products contribute nothing.
    #[cold]
    fn scale(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        let (input, beta, c) = (&self.blueprint.input, args.scalars.get(BETA), &mut args.buffers[C]);
        let beta = if input.beta == ScalarClass::Zero { 0.0 } else { *beta.unwrap_or(&1.0) };
        scale(input, c, beta);
        Ok(())
    }

    fn scaled(&self, scalars: &[f64]) -> Result<Constants, DeviceError> {
        let &[alpha, beta] = scalars else {
            let message = format!("{} scalars are given, 2 are needed: alpha, beta", scalars.len());
            return Err(DeviceError::Argument { name: "scalars".into(), message });
        };
        debug_assert_eq!((ALPHA, BETA), (0, 1));
        let float = self.blueprint.isa.float;
        Ok(Constants { alpha: bits(float, alpha), beta: bits(float, beta), ..self.constants })
    }

    /// Divides the products among threads.
    ///
    /// # Safety
    /// As for [`Code::run`], the panel over those of all threads.
    unsafe fn divide(&self, code: &Code, operands: &Operands, constants: &Constants) {
        let (b, threads) = (&self.blueprint, self.blueprint.config.t);
        tilewright_threads::run(threads, &|thread| {
            let part = share(&(0..b.input.batch.count as usize), thread, threads);
            let at = b.input.batch.strides.map(|stride| stride as usize * part.start * b.isa.float.bytes());
            let Operands { a, b: second, c, panel } = *operands;
            let from = Operands {
                a: a.wrapping_add(at[A]),
                b: second.wrapping_add(at[B]),
                c: c.wrapping_add(at[C]),
                panel: panel.wrapping_add(thread * b.panel()),
            };
            // SAFETY: the caller's contract: these products are this thread's, and so is this part of the panel.
            unsafe { code.run(b, from, part.len(), constants) };
        });
    }

    /// All but the shortest way: scalars, panels, threads, nothing to multiply, no code.
    #[inline(never)]
    fn run_other(&self, args: &mut HostArgs<'_, '_>, mut operands: Operands) -> Result<(), DeviceError> {
        let code = self.code.as_ref().map_err(Clone::clone)?;
        let b = &self.blueprint;
        let constants = if b.reads_scalars() { self.scaled(args.scalars)? } else { self.constants };
        if !self.multiplies {
            return self.scale(args);
        }
        if self.workspace > 0 {
            operands.panel = self.panel(args)?;
        }
        // SAFETY: as for the shortest way; the panel is borrowed mutably for the whole call.
        unsafe {
            if b.config.t == 1 {
                code.run(b, operands, b.input.batch.count as usize, &constants);
            } else {
                self.divide(code, &operands, &constants);
            }
        }
        Ok(())
    }
}

/// A scalar as routines read it.
pub(super) fn bits(float: Float, value: f64) -> u64 {
    match float {
        Float::F32 => u64::from((value as f32).to_bits()),
        Float::F64 => value.to_bits(),
    }
}

/// The mask of AVX's encodings.
pub(super) fn constants(blueprint: &Blueprint) -> Constants {
    let (lanes, words) = (blueprint.masked(), blueprint.isa.float.bytes() / size_of::<u32>());
    let mask = std::array::from_fn(|i| if i < lanes * words { u32::MAX } else { 0 });
    Constants { mask, ..Constants::default() }
}

impl HostCode for HostSmall {
    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        let Some(operands) = self.operands(args.buffers) else { return Err(self.refusal(args.buffers)) };
        match &self.code {
            Ok(code) if self.is_plain => {
                let count = self.blueprint.input.batch.count as usize;
                // SAFETY: the lengths of the operands, their type and that C may be written are established above, and a plan has
                // code only where the host has its instructions; operands are aligned as their elements are; C is borrowed
                // mutably for the whole call.
                unsafe { code.run(&self.blueprint, operands, count, &self.constants) };
                Ok(())
            }
            _ => self.run_other(args, operands),
        }
    }

    fn checks_buffers(&self) -> bool {
        true
    }

    fn leaves_threads_spinning(&self) -> bool {
        self.blueprint.config.t > 1
    }

    fn listing(&self) -> Option<String> {
        match self.code.as_ref().ok()? {
            #[cfg(target_arch = "x86_64")]
            Code::Native(_) => {
                super::routine::assemble(&self.blueprint).ok().map(|code| crate::codegen::listing(&code))
            }
            Code::Portable => None,
        }
    }
}

impl HostSmall {
    /// Where panels begin in the workspace.
    #[inline]
    fn panel(&self, args: &mut HostArgs<'_, '_>) -> Result<*mut u8, DeviceError> {
        let workspace = args.workspace.bytes_mut();
        if workspace.len() < self.workspace {
            let message = format!("{} bytes are needed, {} are there", self.workspace, workspace.len());
            return Err(DeviceError::Argument { name: "workspace".into(), message });
        }
        let start = workspace.as_mut_ptr();
        Ok(start.wrapping_add(start.align_offset(64)))
    }
}
