//! cuBLASLt, which tells its candidates.

use super::numbers::Numbers;
use super::{Handle, Status, fits, ok, operands, operations, parsed};
use crate::foreign::cuda::symbol;
use crate::kernel::CANDIDATES;
use libloading::os::unix::Library;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use tilewright_core::program::{DeviceError, LibraryCall};
use tilewright_ops::gemm::{ALPHA, BETA, GemmInput};
use tilewright_runtime::cuda::{DeviceLibrary, Stage};

const DESC_TRANSA: u32 = 3;
const DESC_TRANSB: u32 = 4;
const PREF_MAX_WORKSPACE_BYTES: u32 = 1;

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Candidate {
    algorithm: [u64; 8],
    workspace: usize,
    state: Status,
    waves: f32,
    reserved: [c_int; 4],
}

type MatmulFn = unsafe extern "C" fn(
    Handle,
    Handle,
    *const c_void,
    *const c_void,
    Handle,
    *const c_void,
    Handle,
    *const c_void,
    *const c_void,
    Handle,
    *mut c_void,
    Handle,
    *const [u64; 8],
    *mut c_void,
    usize,
    *mut c_void,
) -> Status;

type HeuristicFn = unsafe extern "C" fn(
    Handle,
    Handle,
    Handle,
    Handle,
    Handle,
    Handle,
    Handle,
    c_int,
    *mut Candidate,
    *mut c_int,
) -> Status;

/// cuBLASLt, which tells its candidates.
pub(super) struct Light {
    create: unsafe extern "C" fn(*mut Handle) -> Status,
    desc_create: unsafe extern "C" fn(*mut Handle, u32, u32) -> Status,
    desc_set: unsafe extern "C" fn(Handle, u32, *const c_void, usize) -> Status,
    layout_create: unsafe extern "C" fn(*mut Handle, u32, u64, u64, i64) -> Status,
    preference_create: unsafe extern "C" fn(*mut Handle) -> Status,
    preference_set: unsafe extern "C" fn(Handle, u32, *const c_void, usize) -> Status,
    heuristic: HeuristicFn,
    matmul: MatmulFn,
    handle: Option<Handle>,
    known: HashMap<String, Described>,
}

// SAFETY: as for `Plain`; descriptors are only read after they were made.
unsafe impl Send for Light {}

/// An input with its candidates. Descriptors are a few hundred bytes and are kept to the end.
struct Described {
    input: GemmInput,
    desc: Handle,
    /// Of A, B and C.
    layouts: [Handle; 3],
    candidates: Vec<Candidate>,
}

impl Light {
    /// The routines of an opened library.
    pub(super) fn of(light: &Library) -> Result<Self, String> {
        Ok(Self {
            create: symbol(light, "cublasLtCreate")?,
            desc_create: symbol(light, "cublasLtMatmulDescCreate")?,
            desc_set: symbol(light, "cublasLtMatmulDescSetAttribute")?,
            layout_create: symbol(light, "cublasLtMatrixLayoutCreate")?,
            preference_create: symbol(light, "cublasLtMatmulPreferenceCreate")?,
            preference_set: symbol(light, "cublasLtMatmulPreferenceSetAttribute")?,
            heuristic: symbol(light, "cublasLtMatmulAlgoGetHeuristic")?,
            matmul: symbol(light, "cublasLtMatmul")?,
            handle: None,
            known: HashMap::new(),
        })
    }

    fn described(&mut self, call: &LibraryCall, stage: &Stage<'_>) -> Result<&Described, DeviceError> {
        let fields = call.input.to_string();
        if !self.known.contains_key(&fields) {
            let described = self.describe(&call.clone(), stage)?;
            self.known.insert(fields.clone(), described);
        }
        self.known.get(&fields).ok_or_else(|| DeviceError::Load("the call was not described".into()))
    }

    fn describe(&mut self, call: &LibraryCall, stage: &Stage<'_>) -> Result<Described, DeviceError> {
        let input = parsed(call)?;
        let handle = match self.handle {
            Some(handle) => handle,
            None => {
                let create = self.create;
                // SAFETY: a context is current.
                *self.handle.insert(made("cublasLtCreate", |place| unsafe { create(place) })?)
            }
        };
        let numbers = Numbers::of(&input);
        // SAFETY: plain numbers; the place is ours.
        let desc = made("desc", |place| unsafe { (self.desc_create)(place, numbers.compute, numbers.scale()) })?;
        for (attribute, value) in [DESC_TRANSA, DESC_TRANSB].into_iter().zip(operations(&input)) {
            let (at, bytes) = ((&raw const value).cast(), size_of::<u32>());
            // SAFETY: the attribute is an int of that size, read before the call returns.
            let status = unsafe { (self.desc_set)(desc, attribute, at, bytes) };
            ok(status, "transposition")?;
        }
        let Numbers { operand, output, .. } = numbers;
        let stored = [
            (operand, input.a_stored(), input.lda),
            (operand, input.b_stored(), input.ldb),
            (output, (input.m, input.n), input.ldc),
        ];
        let mut layouts = [std::ptr::null_mut(); 3];
        for (layout, (data, (rows, columns), ld)) in layouts.iter_mut().zip(stored) {
            // SAFETY: plain numbers; the place is ours.
            *layout = made("layout", |place| unsafe {
                (self.layout_create)(place, data, rows as u64, columns as u64, ld as i64)
            })?;
        }
        let candidates = self.candidates(handle, desc, layouts, stage.scratch_bytes)?;
        Ok(Described { input, desc, layouts, candidates })
    }

    fn candidates(
        &self,
        handle: Handle,
        desc: Handle,
        [a, b, c]: [Handle; 3],
        scratch: usize,
    ) -> Result<Vec<Candidate>, DeviceError> {
        // SAFETY: the place is ours.
        let preference = made("preference", |place| unsafe { (self.preference_create)(place) })?;
        let most = scratch as u64;
        let mut found = vec![Candidate::default(); CANDIDATES as usize];
        let mut count = 0;
        // SAFETY: everything was made above and is alive; the attribute is a 64-bit number; the results have room for as many
        // as are asked for.
        unsafe {
            let (attribute, value) = (PREF_MAX_WORKSPACE_BYTES, (&raw const most).cast());
            ok((self.preference_set)(preference, attribute, value, size_of::<u64>()), "workspace")?;
            let (asked, results) = (CANDIDATES as c_int, found.as_mut_ptr());
            let status = (self.heuristic)(handle, desc, a, b, c, c, preference, asked, results, &raw mut count);
            ok(status, "cublasLtMatmulAlgoGetHeuristic")?;
        }
        found.truncate(usize::try_from(count).unwrap_or(0));
        found.retain(|c| c.state == 0 && c.workspace <= scratch);
        Ok(found)
    }
}

fn made(what: &str, make: impl FnOnce(*mut Handle) -> Status) -> Result<Handle, DeviceError> {
    let mut handle = std::ptr::null_mut();
    ok(make(&raw mut handle), what).map(|()| handle)
}

impl DeviceLibrary for Light {
    fn name(&self) -> &str {
        "cublaslt"
    }

    fn prepare(&mut self, call: &LibraryCall, stage: &Stage<'_>) -> Result<(), DeviceError> {
        let have = self.described(call, stage)?.candidates.len();
        if call.option as usize >= have {
            let message = format!("{} of {have} candidates", call.option);
            return Err(DeviceError::Argument { name: "option".into(), message });
        }
        Ok(())
    }

    fn enqueue(&mut self, call: &LibraryCall, stage: &Stage<'_>) -> Result<(), DeviceError> {
        let unprepared = || DeviceError::Load("the call was not prepared".into());
        let handle = self.handle.ok_or_else(unprepared)?;
        let known = self.known.get(&call.input.to_string()).ok_or_else(unprepared)?;
        let candidate = known.candidates.get(call.option as usize).ok_or_else(unprepared)?;
        fits(&known.input, stage)?;
        let numbers = Numbers::of(&known.input);
        let [alpha, beta] = [ALPHA, BETA].map(|scalar| numbers.scalar(stage.scalars[scalar]));
        let [a, b, c] = operands(stage);
        let [layout_a, layout_b, layout_c] = known.layouts;
        // SAFETY: handle and descriptors are alive; `fits` has compared the buffers' lengths with the layouts'; the workspace is
        // as long as it is said to be; scalars and algorithm are read before the call returns.
        let status = unsafe {
            (self.matmul)(
                handle,
                known.desc,
                (&raw const alpha).cast(),
                std::ptr::without_provenance(a),
                layout_a,
                std::ptr::without_provenance(b),
                layout_b,
                (&raw const beta).cast(),
                std::ptr::without_provenance(c),
                layout_c,
                std::ptr::without_provenance_mut(c),
                layout_c,
                &raw const candidate.algorithm,
                std::ptr::without_provenance_mut(stage.scratch as usize),
                stage.scratch_bytes,
                stage.stream,
            )
        };
        ok(status, "cublasLtMatmul")
    }
}
