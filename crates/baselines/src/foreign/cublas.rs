//! cuBLAS and cuBLASLt on a CUDA device.
//!
//! Both are opened here, by the file that was found: loaders that go by name know only the releases of their own time, and one
//! process must not mix files of two releases. The prototypes are those of `cublas_v2.h` and `cublasLt.h`, unchanged from
//! release 11 to 13; statuses are plain numbers, since newer libraries have more of them.

use super::cuda::{Opened, first, symbol};
use crate::inventory::Identity;
use crate::kernel::CANDIDATES;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use tilewright_core::computation::Computation;
use tilewright_core::dtype::DType;
use tilewright_core::program::{DeviceError, LibraryCall};
use tilewright_ops::gemm::{A, ALPHA, B, BETA, C, Gemm, GemmInput};
use tilewright_runtime::cuda::{DeviceLibrary, Stage, level};

/// The file that is looked for.
pub(super) const STEM: &str = "libcublas.so";

type Handle = *mut c_void;
type Status = u32;

const COMPUTE_32F: u32 = 68;
const COMPUTE_64F: u32 = 70;
const R_32F: u32 = 0;
const R_64F: u32 = 1;
const DESC_TRANSA: u32 = 3;
const DESC_TRANSB: u32 = 4;
const PREF_MAX_WORKSPACE_BYTES: u32 = 1;

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

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Candidate {
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

/// The two files, of one folder.
struct Files {
    blas: Library,
    light: Library,
    path: PathBuf,
}

fn open_at(path: &Path) -> Result<Files, String> {
    let folder = path.parent().ok_or("a file without a folder")?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let light = folder.join(name.replacen("libcublas", "libcublasLt", 1));
    let failed = |e: libloading::Error| e.to_string();
    // SAFETY: the constructors of these libraries have no preconditions. The first is made global so that the second, which
    // needs it, takes it and no other file.
    unsafe {
        let light = Library::open(Some(&light), RTLD_NOW | RTLD_GLOBAL).map_err(failed)?;
        let blas = Library::open(Some(path), RTLD_NOW).map_err(failed)?;
        Ok(Files { blas, light, path: path.to_owned() })
    }
}

/// Major releases whose prototypes are those that are called here.
const RELEASES: std::ops::RangeInclusive<c_int> = 11..=13;

/// Major, minor and patch of what the library says of itself.
fn version(light: &Library) -> Result<[c_int; 3], String> {
    let property: unsafe extern "C" fn(u32, *mut c_int) -> Status = symbol(light, "cublasLtGetProperty")?;
    let mut parts = [0; 3];
    for (which, part) in (0..).zip(&mut parts) {
        // SAFETY: the place is ours; the function may be called at any time.
        let status = unsafe { property(which, part) };
        ok(status, "cublasLtGetProperty").map_err(|e| e.to_string())?;
    }
    Ok(parts)
}

/// Refuses a release whose functions may be others, and one that is newer than the driver, which no device would run.
fn expect_release(path: &Path, [major, minor, patch]: [c_int; 3], driver: Option<i32>) -> Result<(), String> {
    let (path, found) = (path.display(), format!("cuBLAS {major}.{minor}.{patch}"));
    if !RELEASES.contains(&major) {
        let (first, last) = (RELEASES.start(), RELEASES.end());
        return Err(format!("{path} is {found}; releases {first} to {last} are needed"));
    }
    match driver {
        Some(level) if level / 1000 < major => {
            let has = format!("CUDA {}.{}", level / 1000, level % 1000 / 10);
            Err(format!("{path} is {found} and needs a driver of CUDA {major}; the driver here is of {has}"))
        }
        _ => Ok(()),
    }
}

/// Both libraries, or why there is none. Nothing is asked of a device yet.
pub(super) fn open() -> Result<Opened, String> {
    let driver = level();
    let (files, [major, minor, patch]) = first(STEM, |path| {
        let files = open_at(path)?;
        let version = version(&files.light).map_err(|why| format!("{}: {why}", path.display()))?;
        expect_release(path, version, driver)?;
        Ok((files, version))
    })?;
    let plain = Plain {
        create: symbol(&files.blas, "cublasCreate_v2")?,
        set_stream: symbol(&files.blas, "cublasSetStream_v2")?,
        set_workspace: symbol(&files.blas, "cublasSetWorkspace_v2")?,
        sgemm: symbol(&files.blas, "cublasSgemm_v2")?,
        dgemm: symbol(&files.blas, "cublasDgemm_v2")?,
        handle: None,
        inputs: HashMap::new(),
    };
    let light = Light {
        create: symbol(&files.light, "cublasLtCreate")?,
        desc_create: symbol(&files.light, "cublasLtMatmulDescCreate")?,
        desc_set: symbol(&files.light, "cublasLtMatmulDescSetAttribute")?,
        layout_create: symbol(&files.light, "cublasLtMatrixLayoutCreate")?,
        preference_create: symbol(&files.light, "cublasLtMatmulPreferenceCreate")?,
        preference_set: symbol(&files.light, "cublasLtMatmulPreferenceSetAttribute")?,
        heuristic: symbol(&files.light, "cublasLtMatmulAlgoGetHeuristic")?,
        matmul: symbol(&files.light, "cublasLtMatmul")?,
        handle: None,
        known: HashMap::new(),
    };
    let version = format!("{major}.{minor}.{patch}");
    let identity = Identity { path: Some(files.path.clone()), ..Identity::built_in("cublas", &version) };
    // Never closed: code of theirs is loaded on the device.
    std::mem::forget(files);
    Ok((identity, vec![Box::new(plain), Box::new(light)]))
}

fn ok(status: Status, what: &str) -> Result<(), DeviceError> {
    match status {
        0 => Ok(()),
        3 => Err(DeviceError::OutOfMemory { need: 0, have: None }),
        // What is refused is wrong with the call, and no lack of the device.
        7 => {
            Err(DeviceError::Argument { name: "call".into(), message: format!("{what} refuses it (status {status})") })
        }
        15 => Err(DeviceError::Unsupported { device: "cuda".into(), feature: format!("{what} (status {status})") }),
        _ => Err(DeviceError::Load(format!("{what}: status {status}"))),
    }
}

fn parsed(call: &LibraryCall) -> Result<GemmInput, DeviceError> {
    let argument = |name: &str, message: String| DeviceError::Argument { name: name.to_owned(), message };
    let input = Gemm.parse(&call.input).map_err(|e| argument(&e.field, e.message.clone()))?;
    input.only(&GemmInput::PLAIN).map_err(|e| argument(&e.field, e.message.clone()))?;
    if input.batch.count > 1 {
        return Err(argument("batch", format!("{} products at once are not called yet", input.batch.count)));
    }
    Ok(input)
}

/// Checks that the buffers hold what the input needs.
fn fits(input: &GemmInput, stage: &Stage<'_>) -> Result<(), DeviceError> {
    let needs = input.lens().map(|len| len * input.dtype().size());
    let short = needs.iter().zip(stage.bytes).any(|(need, have)| need > have);
    if short || stage.bytes.len() < needs.len() || stage.scalars.len() < 2 {
        let message = format!("{:?} bytes where {needs:?} are needed", stage.bytes);
        return Err(DeviceError::Argument { name: "buffers".into(), message });
    }
    Ok(())
}

/// Matrices of the input's element type as addresses.
fn operands(stage: &Stage<'_>) -> [usize; 3] {
    [A, B, C].map(|i| stage.buffers[i] as usize)
}

/// cuBLAS: what a caller of `cublasSgemm` gets.
struct Plain {
    create: unsafe extern "C" fn(*mut Handle) -> Status,
    set_stream: unsafe extern "C" fn(Handle, *mut c_void) -> Status,
    set_workspace: unsafe extern "C" fn(Handle, *mut c_void, usize) -> Status,
    sgemm: GemmFn<f32>,
    dgemm: GemmFn<f64>,
    handle: Option<Handle>,
    inputs: HashMap<String, GemmInput>,
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
        let status = match input.dtype() {
            DType::F32 => {
                let scalars = (stage.scalars[ALPHA] as f32, stage.scalars[BETA] as f32);
                gemm(self.sgemm, handle, input, scalars, operands(stage))
            }
            _ => gemm(self.dgemm, handle, input, (stage.scalars[ALPHA], stage.scalars[BETA]), operands(stage)),
        };
        ok(status, "gemm")
    }
}

fn gemm<T>(f: GemmFn<T>, handle: Handle, input: &GemmInput, (alpha, beta): (T, T), operands: [usize; 3]) -> Status {
    let int = |x: usize| c_int::try_from(x).unwrap_or(c_int::MAX);
    let [a, b, c] = operands;
    let (m, n, k) = (int(input.m), int(input.n), int(input.k));
    // SAFETY: the handle is alive; `fits` has compared the buffers' lengths with the input's, whose sizes are those that BLAS
    // takes; scalars are read before the call returns.
    unsafe {
        f(
            handle,
            input.layout.a_transposed().into(),
            input.layout.b_transposed().into(),
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

/// cuBLASLt, which tells its candidates.
struct Light {
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
        let (compute, scale) = if input.dtype() == DType::F32 { (COMPUTE_32F, R_32F) } else { (COMPUTE_64F, R_64F) };
        // SAFETY: plain numbers; the place is ours.
        let desc = made("desc", |place| unsafe { (self.desc_create)(place, compute, scale) })?;
        for (attribute, transposed) in
            [(DESC_TRANSA, input.layout.a_transposed()), (DESC_TRANSB, input.layout.b_transposed())]
        {
            let value = c_int::from(transposed);
            let (at, bytes) = ((&raw const value).cast(), size_of::<c_int>());
            // SAFETY: the attribute is an int of that size, read before the call returns.
            let status = unsafe { (self.desc_set)(desc, attribute, at, bytes) };
            ok(status, "transposition")?;
        }
        let stored = [(input.a_stored(), input.lda), (input.b_stored(), input.ldb), ((input.m, input.n), input.ldc)];
        let mut layouts = [std::ptr::null_mut(); 3];
        for (layout, ((rows, columns), ld)) in layouts.iter_mut().zip(stored) {
            // SAFETY: plain numbers; the place is ours.
            *layout = made("layout", |place| unsafe {
                (self.layout_create)(place, scale, rows as u64, columns as u64, ld as i64)
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
        let doubles = [stage.scalars[ALPHA], stage.scalars[BETA]];
        let singles = doubles.map(|x| x as f32);
        let scalar = |i: usize| match known.input.dtype() {
            DType::F32 => (&raw const singles[i]).cast::<c_void>(),
            _ => (&raw const doubles[i]).cast(),
        };
        let [a, b, c] = operands(stage);
        let [layout_a, layout_b, layout_c] = known.layouts;
        // SAFETY: handle and descriptors are alive; `fits` has compared the buffers' lengths with the layouts'; the workspace is
        // as long as it is said to be; scalars and algorithm are read before the call returns.
        let status = unsafe {
            (self.matmul)(
                handle,
                known.desc,
                scalar(0),
                std::ptr::without_provenance(a),
                layout_a,
                std::ptr::without_provenance(b),
                layout_b,
                scalar(1),
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

#[cfg(test)]
mod tests;
