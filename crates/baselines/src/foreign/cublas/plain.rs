//! cuBLAS, which chooses for the caller.

use super::numbers::Numbers;
use super::{Handle, Status, fits, ok, operands, operations, parsed};
use crate::foreign::cuda::symbol;
use libloading::os::unix::Library;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use tilewright_core::dtype::DType;
use tilewright_core::program::{DeviceError, LibraryCall};
use tilewright_ops::gemm::{ALPHA, Accuracy, BETA, GemmInput};
use tilewright_runtime::cuda::{DeviceLibrary, Stage};

/// `CUBLAS_GEMM_DEFAULT`: the library chooses.
const DEFAULT_ALGORITHM: c_int = -1;

type GemmFn<T> = unsafe extern "C" fn(
    Handle,
    u32,
    u32,
    c_int,
    c_int,
    c_int,
    *const T,
    *const T,
    c_int,
    *const T,
    c_int,
    *const T,
    *mut T,
    c_int,
) -> Status;

type GemmExFn = unsafe extern "C" fn(
    Handle,
    u32,
    u32,
    c_int,
    c_int,
    c_int,
    *const c_void,
    *const c_void,
    u32,
    c_int,
    *const c_void,
    u32,
    c_int,
    *const c_void,
    *mut c_void,
    u32,
    c_int,
    u32,
    c_int,
) -> Status;

/// cuBLAS: what a caller of `cublasSgemm` gets, or of `cublasGemmEx` for numbers that have no routine of their own.
pub(super) struct Plain {
    create: unsafe extern "C" fn(*mut Handle) -> Status,
    set_stream: unsafe extern "C" fn(Handle, *mut c_void) -> Status,
    set_workspace: unsafe extern "C" fn(Handle, *mut c_void, usize) -> Status,
    sgemm: GemmFn<f32>,
    dgemm: GemmFn<f64>,
    gemm_ex: GemmExFn,
    handle: Option<Handle>,
    inputs: HashMap<String, GemmInput>,
}

impl Plain {
    /// The routines of an opened library.
    pub(super) fn of(blas: &Library) -> Result<Self, String> {
        Ok(Self {
            create: symbol(blas, "cublasCreate_v2")?,
            set_stream: symbol(blas, "cublasSetStream_v2")?,
            set_workspace: symbol(blas, "cublasSetWorkspace_v2")?,
            sgemm: symbol(blas, "cublasSgemm_v2")?,
            dgemm: symbol(blas, "cublasDgemm_v2")?,
            gemm_ex: symbol(blas, "cublasGemmEx")?,
            handle: None,
            inputs: HashMap::new(),
        })
    }
}

// SAFETY: a handle may be used from any thread, by one at a time; `&mut self` sees to that.
unsafe impl Send for Plain {}

impl DeviceLibrary for Plain {
    fn name(&self) -> &str {
        "cublas"
    }

    fn prepare(&mut self, call: &LibraryCall, stage: &Stage<'_>) -> Result<(), DeviceError> {
        if call.option > 0 {
            return Err(DeviceError::Argument { name: "option".into(), message: "cublas has one".into() });
        }
        if self.handle.is_none() {
            let mut handle = std::ptr::null_mut();
            // SAFETY: a context is current; the place is ours.
            ok(unsafe { (self.create)(&raw mut handle) }, "cublasCreate")?;
            self.handle = Some(handle);
        }
        if let Some(handle) = self.handle {
            // SAFETY: the handle is alive; stream and workspace belong to its context. The workspace is set after the stream, which
            // would replace it, and for each call, since it may have been replaced by a larger one.
            unsafe {
                ok((self.set_stream)(handle, stage.stream), "cublasSetStream")?;
                let scratch = std::ptr::without_provenance_mut(stage.scratch as usize);
                ok((self.set_workspace)(handle, scratch, stage.scratch_bytes), "cublasSetWorkspace")?;
            }
        }
        self.inputs.insert(call.input.to_string(), parsed(call)?);
        Ok(())
    }

    fn enqueue(&mut self, call: &LibraryCall, stage: &Stage<'_>) -> Result<(), DeviceError> {
        let (Some(handle), Some(input)) = (self.handle, self.inputs.get(&call.input.to_string())) else {
            return Err(DeviceError::Load("the call was not prepared".into()));
        };
        fits(input, stage)?;
        let (alpha, beta) = (stage.scalars[ALPHA], stage.scalars[BETA]);
        let is_plain = input.accuracy != Accuracy::Tf32;
        let status = match input.types.uniform() {
            Some(DType::F32) if is_plain => {
                gemm(self.sgemm, handle, input, (alpha as f32, beta as f32), operands(stage))
            }
            Some(DType::F64) => gemm(self.dgemm, handle, input, (alpha, beta), operands(stage)),
            _ => gemm_ex(self.gemm_ex, handle, input, [alpha, beta], operands(stage)),
        };
        ok(status, "gemm")
    }
}

fn gemm<T>(f: GemmFn<T>, handle: Handle, input: &GemmInput, (alpha, beta): (T, T), operands: [usize; 3]) -> Status {
    let ([a, b, c], [op_a, op_b], [m, n, k]) = (operands, operations(input), [input.m, input.n, input.k].map(int));
    // SAFETY: the handle is alive; `fits` has compared the buffers' lengths with the input's, whose sizes are those that BLAS
    // takes; scalars are read before the call returns.
    unsafe {
        f(
            handle,
            op_a,
            op_b,
            m,
            n,
            k,
            &raw const alpha,
            std::ptr::without_provenance(a),
            int(input.lda),
            std::ptr::without_provenance(b),
            int(input.ldb),
            &raw const beta,
            std::ptr::without_provenance_mut(c),
            int(input.ldc),
        )
    }
}

/// The product of any numbers.
fn gemm_ex(f: GemmExFn, handle: Handle, input: &GemmInput, scalars: [f64; 2], operands: [usize; 3]) -> Status {
    let ([a, b, c], [op_a, op_b], [m, n, k]) = (operands, operations(input), [input.m, input.n, input.k].map(int));
    let numbers = Numbers::of(input);
    let [alpha, beta] = scalars.map(|scalar| numbers.scalar(scalar));
    // SAFETY: as for `gemm`; scalars are of the type that the compute type has.
    unsafe {
        f(
            handle,
            op_a,
            op_b,
            m,
            n,
            k,
            (&raw const alpha).cast(),
            std::ptr::without_provenance(a),
            numbers.operand,
            int(input.lda),
            std::ptr::without_provenance(b),
            numbers.operand,
            int(input.ldb),
            (&raw const beta).cast(),
            std::ptr::without_provenance_mut(c),
            numbers.output,
            int(input.ldc),
            numbers.compute,
            DEFAULT_ALGORITHM,
        )
    }
}

fn int(x: usize) -> c_int {
    c_int::try_from(x).unwrap_or(c_int::MAX)
}
