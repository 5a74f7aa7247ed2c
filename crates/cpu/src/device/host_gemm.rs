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

/// What every GEMM of the host asks of a call.
pub(crate) struct GemmCheck {
    input: GemmInput,
    /// The operands.
    buffers: Vec<BufferSpec>,
    /// Vector width in bytes that the code was generated for.
    vec: usize,
}

impl GemmCheck {
    pub(crate) fn new(input: &GemmInput, vec: usize) -> Self {
        Self { input: input.clone(), buffers: Gemm.buffers(input), vec }
    }

    /// The call, without a workspace, if there is a product to compute. Where it contributes nothing, C is scaled.
    ///
    /// # Errors
    /// Operands that are missing, too short, of another type or that may not be written, and vectors that the host has not.
    #[inline]
    pub(crate) fn call(&self, args: &mut HostArgs<'_, '_>) -> Result<Option<Call>, DeviceError> {
        check_buffers(&self.buffers, args.buffers)?;
        // Their classes are the program's to check; without them all there is nothing to pass on.
        let Some(&[alpha, beta]) = args.scalars.get(ALPHA..=BETA) else {
            let missing = ["alpha, beta", "beta"][args.scalars.len().min(1)];
            let message = format!("missing: {} scalars given: alpha and beta are needed", args.scalars.len());
            return Err(DeviceError::Argument { name: missing.into(), message });
        };
        if self.vec as i64 > vec_max() {
            let feature = format!("vectors of {} bytes", self.vec);
            return Err(DeviceError::Unsupported { device: "cpu".into(), feature });
        }
        if self.input.m == 0 || self.input.n == 0 {
            return Ok(None);
        }
        if !self.input.multiplies() {
            scale(&self.input, &mut args.buffers[C], beta);
            return Ok(None);
        }
        let (a, b) = (args.buffers[A].bytes().as_ptr(), args.buffers[B].bytes().as_ptr());
        let c = args.buffers[C].bytes_mut().map_or(std::ptr::null_mut(), <[u8]>::as_mut_ptr);
        Ok(Some(Call { a, b, c, workspace: std::ptr::null_mut(), alpha, beta }))
    }

    /// Bytes before the operands of a product.
    fn offsets(&self, product: u32) -> [usize; 3] {
        let types = self.input.operand_types();
        [A, B, C].map(|at| (self.input.batch.strides[at] * u64::from(product)) as usize * types[at].size())
    }
}

/// `C = beta * C`, of all products: where these contribute nothing.
#[cold]
pub(crate) fn scale(input: &GemmInput, c: &mut View<'_>, beta: f64) {
    if input.m == 0 {
        return;
    }
    for product in 0..input.batch.count {
        let first = (input.batch.strides[C] * u64::from(product)) as usize;
        for column in 0..input.n {
            for row in 0..input.m {
                let at = first + row + column * input.ldc;
                let value = if beta == 0.0 { None } else { c.get(at) };
                let (re, im) = value.map_or((0.0, 0.0), |(re, im)| (beta * re, beta * im));
                // There is such an element: lengths have been checked.
                let _ = c.set(at, (re, im));
            }
        }
    }
}

/// Generated code of one plan, ready to be called.
pub(crate) struct HostGemm {
    check: GemmCheck,
    /// Bytes for packed panels and partial sums.
    scratch: usize,
    /// Or why there is none: executable memory was refused.
    compiled: Result<Compiled, String>,
    /// The same with plain stores, made for the first C that is not aligned as stores around the caches need it.
    plain: OnceLock<Result<Compiled, String>>,
}

impl HostGemm {
    pub(crate) fn new(plan: &GemmPlan) -> Self {
        Self {
            check: GemmCheck::new(&plan.blueprint.input, plan.blueprint.config.vec as usize),
            scratch: plan.blueprint.workspace(),
            compiled: Compiled::new(plan.blueprint.clone()),
            plain: OnceLock::new(),
        }
    }

    /// The code for a C at this address. Only stores around the caches need more than the alignment of elements, and a caller's
    /// slice is promised no more.
    #[inline]
    fn compiled(&self, c: *const u8) -> Result<&Compiled, DeviceError> {
        let compiled = match &self.compiled {
            Ok(code) if code.blueprint.config.store == Store::Stream && !c.addr().is_multiple_of(self.check.vec) => {
                self.plain.get_or_init(|| plain(&code.blueprint))
            }
            compiled => compiled,
        };
        compiled.as_ref().map_err(|e| DeviceError::Load(e.clone()))
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
        let Some(call) = self.check.call(args)? else { return Ok(()) };
        // Where the first is aligned all are: the strides have a part in what the plan knows of alignment.
        let compiled = self.compiled(call.c)?;
        scratch::with(self.scratch, |workspace| {
            let first = Call { workspace, ..call };
            let of_product = |product| first.moved(self.check.offsets(product));
            // SAFETY: the check has established the lengths of the operands of all products, that C may be written, and that the host has
            // the vectors; operands are aligned as their elements are, and C as this code stores it; C is borrowed mutably for the whole
            // call, and the scratch memory is this call's.
            unsafe { compiled.run_all(self.check.input.batch.count, &of_product) };
        })
        .map_err(|e| DeviceError::Run(format!("{} bytes for packed panels: {e}", self.scratch)))
    }

    fn listing(&self) -> Option<String> {
        self.compiled.as_ref().ok()?.listing()
    }
}
