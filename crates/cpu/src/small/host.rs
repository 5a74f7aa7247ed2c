//! A plan as code that the host runs: a check of the buffers, and a jump.

use super::blueprint::Blueprint;
use super::code::{Code, Operands};
use super::routine::Constants;
use crate::device::vec_max;
use crate::scalar::Float;
use crate::split::share;
use tilewright_core::buffer::{BufferSpec, View};
use tilewright_core::computation::Computation;
use tilewright_core::program::{DeviceError, HostArgs, HostCode, check_buffers};
use tilewright_ops::gemm::{A, ALPHA, B, BETA, C, Gemm};

/// A plan, ready to be called.
pub(super) struct HostSmall {
    blueprint: Blueprint,
    /// The operands.
    buffers: Vec<BufferSpec>,
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
        Self {
            buffers: Gemm.buffers(&blueprint.input),
            code,
            constants: constants(blueprint),
            blueprint: blueprint.clone(),
        }
    }

    /// `C = beta * C`, when the products contribute nothing.
    #[cold]
    fn scale(&self, c: &mut View<'_>, beta: f64) {
        let input = &self.blueprint.input;
        for product in 0..input.batch.count {
            let first = (input.batch.strides[C] * u64::from(product)) as usize;
            for column in 0..input.n {
                for row in 0..input.m {
                    let at = first + row + column * input.ldc;
                    let value = if beta == 0.0 { 0.0 } else { beta * c.get_f64(at) };
                    c.set_f64(at, value);
                }
            }
        }
    }

    fn scaled(&self, scalars: &[f64]) -> Result<Constants, DeviceError> {
        let &[alpha, beta] = scalars else {
            let message = format!("{} scalars are given, 2 are needed: alpha, beta", scalars.len());
            return Err(DeviceError::Argument { name: "scalars".into(), message });
        };
        let bits = |value: f64| match self.blueprint.isa.float {
            Float::F32 => u64::from((value as f32).to_bits()),
            Float::F64 => value.to_bits(),
        };
        debug_assert_eq!((ALPHA, BETA), (0, 1));
        Ok(Constants { alpha: bits(alpha), beta: bits(beta), ..self.constants })
    }

    /// Divides the products among threads.
    ///
    /// # Safety
    /// As for [`Code::run`], the panel over the plan's workspace.
    unsafe fn divide(&self, code: &Code, operands: &Operands, constants: &Constants, panel: *mut u8) {
        let (b, threads) = (&self.blueprint, self.blueprint.config.t);
        let panel = panel.addr();
        tilewright_threads::run(threads, &|thread| {
            let part = share(&(0..b.input.batch.count as usize), thread, threads);
            let at = |stride: u64| (stride as usize * part.start * b.isa.float.bytes()) as isize;
            let [a, bb, c] = b.input.batch.strides.map(at);
            let Operands { a: first_a, b: first_b, c: first_c } = *operands;
            let from = Operands {
                a: first_a.wrapping_offset(a),
                b: first_b.wrapping_offset(bb),
                c: first_c.wrapping_offset(c),
            };
            let panel = std::ptr::with_exposed_provenance_mut::<u8>(panel + thread * b.panel());
            // SAFETY: the caller's contract: these products are this thread's, and so is this part of the panel.
            unsafe { code.run(b, from, part.len(), constants, panel) };
        });
    }
}

/// The mask of AVX's encodings.
fn constants(blueprint: &Blueprint) -> Constants {
    let (lanes, words) = (blueprint.masked(), blueprint.isa.float.bytes() / size_of::<u32>());
    let mask = std::array::from_fn(|i| if i < lanes * words { u32::MAX } else { 0 });
    Constants { mask, ..Constants::default() }
}

impl HostCode for HostSmall {
    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        check_buffers(&self.buffers, args.buffers)?;
        let b = &self.blueprint;
        let code = self.code.as_ref().map_err(Clone::clone)?;
        if b.input.m == 0 || b.input.n == 0 {
            return Ok(());
        }
        let given;
        let constants = if b.reads_scalars() {
            given = self.scaled(args.scalars)?;
            &given
        } else {
            &self.constants
        };
        if !b.input.multiplies() {
            self.scale(&mut args.buffers[C], args.scalars[BETA]);
            return Ok(());
        }
        let panel = self.panel(args)?;
        let operands = Operands {
            a: args.buffers[A].bytes().as_ptr(),
            b: args.buffers[B].bytes().as_ptr(),
            c: args.buffers[C].bytes_mut().map_or(std::ptr::null_mut(), <[u8]>::as_mut_ptr),
        };
        // SAFETY: the check has established the lengths of the operands and that C may be written, and a plan has code only where
        // the host has its instructions; operands are aligned as their elements are; C is borrowed mutably for the whole call, and
        // so is the panel.
        unsafe {
            if b.config.t == 1 {
                code.run(b, operands, b.input.batch.count as usize, constants, panel);
            } else {
                self.divide(code, &operands, constants, panel);
            }
        }
        Ok(())
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
    /// Where panels begin in the workspace; anywhere where there are none.
    #[inline]
    fn panel(&self, args: &mut HostArgs<'_, '_>) -> Result<*mut u8, DeviceError> {
        let need = self.blueprint.workspace();
        if need == 0 {
            return Ok(std::ptr::null_mut());
        }
        let workspace = args.workspace.bytes_mut();
        if workspace.len() < need {
            let message = format!("{need} bytes are needed, {} are there", workspace.len());
            return Err(DeviceError::Argument { name: "workspace".into(), message });
        }
        let start = workspace.as_mut_ptr();
        Ok(start.wrapping_add(start.align_offset(64)))
    }
}
