//! A plan as code that the host runs.

use super::spec::vec_max;
use crate::blueprint::Blueprint;
use crate::config::Store;
use crate::exec::driver::{Call, Compiled};
use crate::exec::scratch;
use crate::kernel::GemmPlan;
use std::sync::OnceLock;
use tilewright_core::buffer::{BufferSpec, View};
use tilewright_core::computation::Computation;
use tilewright_core::program::{DeviceError, HostArgs, HostCode, check_buffers};
use tilewright_ops::gemm::{A, ALPHA, B, BETA, C, Gemm, GemmInput};

/// Generated code of one plan, ready to be called.
pub(crate) struct HostGemm {
    input: GemmInput,
    /// The operands.
    buffers: Vec<BufferSpec>,
    /// Bytes for packed panels and partial sums.
    scratch: usize,
    /// Vector width in bytes that the code was generated for.
    vec: u32,
    /// Or why there is none: executable memory was refused.
    compiled: Result<Compiled, String>,
    /// The same with plain stores, made for the first C that is not aligned as stores around the caches need it.
    plain: OnceLock<Result<Compiled, String>>,
}

impl HostGemm {
    pub(crate) fn new(plan: &GemmPlan) -> Self {
        Self {
            input: plan.blueprint.input.clone(),
            buffers: Gemm.buffers(&plan.blueprint.input),
            scratch: plan.blueprint.workspace(),
            vec: plan.blueprint.config.vec,
            compiled: Compiled::new(plan.blueprint.clone()),
            plain: OnceLock::new(),
        }
    }

    fn check(&self, args: &HostArgs<'_, '_>) -> Result<(), DeviceError> {
        check_buffers(&self.buffers, args.buffers)?;
        // Their classes are the program's to check; without them all there is nothing to pass on.
        if args.scalars.len() < 2 {
            let missing = ["alpha, beta", "beta"][args.scalars.len()];
            let message = format!("missing: {} scalars given: alpha and beta are needed", args.scalars.len());
            return Err(DeviceError::Argument { name: missing.into(), message });
        }
        if i64::from(self.vec) > vec_max() {
            let feature = format!("vectors of {} bytes", self.vec);
            return Err(DeviceError::Unsupported { device: "cpu".into(), feature });
        }
        Ok(())
    }

    /// The code for a C at this address. Only stores around the caches need more than the alignment of elements, and a caller's
    /// slice is promised no more.
    #[inline]
    fn compiled(&self, c: *const u8) -> Result<&Compiled, DeviceError> {
        let compiled = match &self.compiled {
            Ok(code) if code.blueprint.config.store == Store::Stream && !c.addr().is_multiple_of(self.vec as usize) => {
                self.plain.get_or_init(|| plain(&code.blueprint))
            }
            compiled => compiled,
        };
        compiled.as_ref().map_err(|e| DeviceError::Load(e.clone()))
    }

    /// `C = beta * C`, when the products contribute nothing.
    fn scale(&self, c: &mut View<'_>, beta: f64) {
        for product in 0..self.input.batch.count {
            let first = (self.input.batch.strides[C] * u64::from(product)) as usize;
            for column in 0..self.input.n {
                for row in 0..self.input.m {
                    let at = first + row + column * self.input.ldc;
                    let value = if beta == 0.0 { 0.0 } else { beta * c.get_f64(at) };
                    c.set_f64(at, value);
                }
            }
        }
    }

    /// Bytes before the operands of a product.
    fn offsets(&self, product: u32) -> [usize; 3] {
        let element = self.input.dtype().size() as u64;
        self.input.batch.strides.map(|stride| (stride * u64::from(product) * element) as usize)
    }
}

/// Code that stores through the caches.
fn plain(blueprint: &Blueprint) -> Result<Compiled, String> {
    let mut blueprint = blueprint.clone();
    blueprint.config.store = Store::Normal;
    Compiled::new(blueprint)
}

impl HostCode for HostGemm {
    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        self.check(args)?;
        let (alpha, beta) = (args.scalars[ALPHA], args.scalars[BETA]);
        if self.input.m == 0 || self.input.n == 0 {
            return Ok(());
        }
        if !self.input.multiplies() {
            self.scale(&mut args.buffers[C], beta);
            return Ok(());
        }
        let (a, b) = (args.buffers[A].bytes().as_ptr(), args.buffers[B].bytes().as_ptr());
        let c = args.buffers[C].bytes_mut().map_or(std::ptr::null_mut(), <[u8]>::as_mut_ptr);
        // Where the first is aligned all are: the strides have a part in what the plan knows of alignment.
        let compiled = self.compiled(c)?;
        scratch::with(self.scratch, |workspace| {
            for product in 0..self.input.batch.count {
                let at = self.offsets(product);
                let (a, b, c) = (a.wrapping_add(at[A]), b.wrapping_add(at[B]), c.wrapping_add(at[C]));
                let call = Call { a, b, c, workspace, alpha, beta };
                // SAFETY: `check` has established the lengths of the operands of all products, that C may be written, and that the
                // host has the vectors; operands are aligned as their elements are, and C as this code stores it; C is borrowed
                // mutably for the whole call, and the scratch memory is this call's.
                unsafe { compiled.run(&call) };
            }
        })
        .map_err(|e| DeviceError::Run(format!("{} bytes for packed panels: {e}", self.scratch)))
    }

    fn listing(&self) -> Option<String> {
        self.compiled.as_ref().ok()?.listing()
    }
}
