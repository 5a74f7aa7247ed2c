//! The entry points, with the prototypes of `cublas_v2.h` and `cublasLt.h`.

use crate::handles::{self, Description, Layout, Object, Workspace, make};
use crate::launch::enqueue;
use crate::numbers::{Data, Numbers};
use crate::product::{Answer, Product, Status, refused};
use std::ffi::{c_int, c_void};
use std::ptr::without_provenance_mut;

type Handle = *mut c_void;

/// Exchanges two arguments of every product.
const SWAP: &str = "FAKE_CUBLAS_SWAP";

/// What the library says of itself: `12.9.1`.
const VERSION: &str = "FAKE_CUBLAS_VERSION";

/// Marks an algorithm of [`cublasLtMatmulAlgoGetHeuristic`].
const MARK: u64 = 0x7157_0000;

/// Threads of a block, by the candidate.
const CANDIDATES: [u32; 3] = [128, 64, 256];

/// `CUBLAS_GEMM_DEFAULT`.
const DEFAULT_ALGORITHM: c_int = -1;

/// Threads of a block where nobody chooses.
const THREADS: u32 = 128;

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Candidate {
    algorithm: [u64; 8],
    workspace: usize,
    state: Status,
    waves: f32,
    reserved: [c_int; 4],
}

fn status(answer: Answer<()>) -> Status {
    answer.err().unwrap_or(Status::Success)
}

fn number<T>(handle: *const T) -> u64 {
    handle.expose_provenance() as u64
}

/// Major, minor and patch.
fn version() -> [usize; 3] {
    let said = std::env::var(VERSION).unwrap_or_default();
    let mut parts = said.split('.').map(|part| part.parse().unwrap_or(0));
    let major = parts.next().filter(|major| *major > 0);
    major.map_or([12, 9, 1], |major| [major, parts.next().unwrap_or(0), parts.next().unwrap_or(0)])
}

/// Makes an object and writes its handle.
///
/// # Safety
/// The place is null, or writable.
unsafe fn made(place: *mut Handle, object: Answer<Object>) -> Status {
    let object = match object {
        Ok(object) if !place.is_null() => object,
        Ok(_) => return Status::InvalidValue,
        Err(status) => return status,
    };
    // SAFETY: not null, and writable by the caller's contract.
    unsafe { place.write(without_provenance_mut(make(object) as usize)) };
    Status::Success
}

/// Puts a product on a stream, unless it is refused or empty.
fn multiply(mut product: Product, threads: u32, stream: u64, workspace: Workspace) -> Answer<()> {
    if let Ok(which) = std::env::var(SWAP) {
        product.swap(&which);
    }
    if product.check()? { enqueue(&product, threads, stream, workspace) } else { Ok(()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasCreate_v2(handle: *mut Handle) -> Status {
    // SAFETY: the caller's place.
    unsafe { made(handle, Ok(Object::Blas { stream: 0, workspace: Workspace::default() })) }
}

#[unsafe(no_mangle)]
extern "C" fn cublasSetStream_v2(handle: Handle, to: *mut c_void) -> Status {
    status(handles::change(number(handle), |object| match object {
        Object::Blas { stream, workspace } => {
            // Back to the library's own workspace, as the library does.
            (*stream, *workspace) = (number(to), Workspace::default());
            Ok(())
        }
        _ => Err(Status::NotInitialized),
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cublasSetWorkspace_v2(handle: Handle, at: *mut c_void, bytes: usize) -> Status {
    let given = Workspace { at: number(at), bytes: bytes as u64 }.check(256);
    status(given.and_then(|given| {
        handles::change(number(handle), |object| match object {
            Object::Blas { workspace, .. } => {
                *workspace = given;
                Ok(())
            }
            _ => Err(Status::NotInitialized),
        })
    }))
}

/// `cublasSgemm` and `cublasDgemm`.
macro_rules! gemm {
    ($name:ident, $ty:ty, $real:expr) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            handle: Handle,
            transa: u32,
            transb: u32,
            m: c_int,
            n: c_int,
            k: c_int,
            alpha: *const $ty,
            a: *const $ty,
            lda: c_int,
            b: *const $ty,
            ldb: c_int,
            beta: *const $ty,
            c: *mut $ty,
            ldc: c_int,
        ) -> Status {
            let Ok(Object::Blas { stream, workspace }) = handles::get(number(handle)) else {
                return Status::NotInitialized;
            };
            if alpha.is_null() || beta.is_null() {
                return status(refused("a scalar is null"));
            }
            // SAFETY: not null; the caller's scalars are in its memory, as the pointer mode says that is never changed.
            let scalars = unsafe { [f64::from(*alpha), f64::from(*beta)] };
            let (sizes, ld) = ([m, n, k].map(i64::from), [lda, ldb, ldc].map(i64::from));
            let at = [number(a), number(b), number(c.cast_const())];
            let product = Product { numbers: Numbers::plain($real), trans: [transa, transb], sizes, scalars, at, ld };
            status(multiply(product, THREADS, stream, workspace))
        }
    };
}

gemm!(cublasSgemm_v2, f32, Data::F32);
gemm!(cublasDgemm_v2, f64, Data::F64);

/// Scalars of a type as the caller has them.
///
/// # Safety
/// Each is null, or has the bytes of the type.
unsafe fn scalars(of: Data, at: [*const c_void; 2]) -> Answer<[f64; 2]> {
    if at.iter().any(|at| at.is_null()) {
        return refused("a scalar is null");
    }
    // SAFETY: not null, and of the type by the caller's contract.
    let read = |at: *const c_void| unsafe {
        match of {
            Data::F16 => [half(at.cast::<u16>().read_unaligned()), 0.0],
            Data::I32 => [f64::from(at.cast::<i32>().read_unaligned()), 0.0],
            Data::F64 => [at.cast::<f64>().read_unaligned(), 0.0],
            Data::C32 => at.cast::<[f32; 2]>().read_unaligned().map(f64::from),
            Data::C64 => at.cast::<[f64; 2]>().read_unaligned(),
            _ => [f64::from(at.cast::<f32>().read_unaligned()), 0.0],
        }
    };
    let found = at.map(read);
    // The kernel scales by real numbers: nobody here calls with others.
    if found.iter().any(|[_, im]| *im != 0.0) {
        return refused(&format!("scalars {found:?} are not real"));
    }
    Ok(found.map(|[re, _]| re))
}

/// A binary16, by its bits; not for infinities.
fn half(bits: u16) -> f64 {
    let (sign, exponent, fraction) = (bits >> 15, i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if sign == 1 { -size } else { size }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasGemmEx(
    handle: Handle,
    transa: u32,
    transb: u32,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: *const c_void,
    a: *const c_void,
    type_a: u32,
    lda: c_int,
    b: *const c_void,
    type_b: u32,
    ldb: c_int,
    beta: *const c_void,
    c: *mut c_void,
    type_c: u32,
    ldc: c_int,
    compute: u32,
    algorithm: c_int,
) -> Status {
    let called = || {
        let Ok(Object::Blas { stream, workspace }) = handles::get(number(handle)) else {
            return Err(Status::NotInitialized);
        };
        if algorithm != DEFAULT_ALGORITHM {
            return refused(&format!("algorithm {algorithm}"));
        }
        let [of_a, of_b, of_c] = [Data::of(type_a)?, Data::of(type_b)?, Data::of(type_c)?];
        let scale = Numbers::scale(compute, of_a);
        let numbers = Numbers::of(compute, scale, [of_a, of_b, of_c, of_c])?;
        // SAFETY: the caller's scalars are of the type that goes with the others.
        let scalars = unsafe { scalars(scale, [alpha, beta])? };
        let (sizes, ld) = ([m, n, k].map(i64::from), [lda, ldb, ldc].map(i64::from));
        let at = [number(a), number(b), number(c.cast_const())];
        let product = Product { numbers, trans: [transa, transb], sizes, scalars, at, ld };
        multiply(product, THREADS, stream, workspace)
    };
    status(called())
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtGetVersion() -> usize {
    let [major, minor, patch] = version();
    major * 10_000 + minor * 100 + patch
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtGetProperty(which: u32, value: *mut c_int) -> Status {
    let Some(part) = version().get(which as usize).and_then(|part| c_int::try_from(*part).ok()) else {
        return Status::InvalidValue;
    };
    if value.is_null() {
        return Status::InvalidValue;
    }
    // SAFETY: not null; the caller's place.
    unsafe { value.write(part) };
    Status::Success
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtCreate(handle: *mut Handle) -> Status {
    // SAFETY: the caller's place.
    unsafe { made(handle, Ok(Object::Light)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulDescCreate(desc: *mut Handle, compute: u32, scale: u32) -> Status {
    // SAFETY: the caller's place.
    unsafe { made(desc, Ok(Object::Description(Description { compute, scale, trans: [0; 2] }))) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulDescSetAttribute(
    desc: Handle,
    attribute: u32,
    value: *const c_void,
    bytes: usize,
) -> Status {
    const TRANSA: u32 = 3;
    let which = attribute.wrapping_sub(TRANSA) as usize;
    if which > 1 || bytes != size_of::<u32>() || value.is_null() {
        return status(refused(&format!("attribute {attribute} of {bytes} bytes")));
    }
    // SAFETY: the caller's value has so many bytes.
    let value = unsafe { value.cast::<u32>().read_unaligned() };
    status(handles::change(number(desc), |object| match object {
        Object::Description(description) => {
            description.trans[which] = value;
            Ok(())
        }
        _ => Err(Status::InvalidValue),
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatrixLayoutCreate(
    layout: *mut Handle,
    ty: u32,
    rows: u64,
    columns: u64,
    ld: i64,
) -> Status {
    let known = || {
        let (rows, columns) = (rows as i64, columns as i64);
        if ld < rows.max(1) {
            return refused(&format!("a leading dimension of {ld} for {rows} rows"));
        }
        Ok(Object::Layout(Layout { data: Data::of(ty)?, rows, columns, ld }))
    };
    // SAFETY: the caller's place.
    unsafe { made(layout, known()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulPreferenceCreate(preference: *mut Handle) -> Status {
    // SAFETY: the caller's place.
    unsafe { made(preference, Ok(Object::Preference(0))) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulPreferenceSetAttribute(
    preference: Handle,
    attribute: u32,
    value: *const c_void,
    bytes: usize,
) -> Status {
    const MAX_WORKSPACE_BYTES: u32 = 1;
    if attribute != MAX_WORKSPACE_BYTES || bytes != size_of::<u64>() || value.is_null() {
        return status(refused(&format!("preference {attribute} of {bytes} bytes")));
    }
    // SAFETY: the caller's value has so many bytes.
    let value = unsafe { value.cast::<u64>().read_unaligned() };
    status(handles::change(number(preference), |object| match object {
        Object::Preference(most) => {
            *most = value;
            Ok(())
        }
        _ => Err(Status::InvalidValue),
    }))
}

/// The product of a description and the layouts of A, B, C and D, checked as far as it has no addresses.
fn described(light: Handle, desc: Handle, layouts: [Handle; 4]) -> Answer<Product> {
    let Ok(Object::Light) = handles::get(number(light)) else { return Err(Status::NotInitialized) };
    let mut found = layouts.map(|layout| handles::layout(number(layout))).into_iter();
    let mut next = || found.next().unwrap_or(Err(Status::InvalidValue));
    let layouts = [next()?, next()?, next()?, next()?];
    handles::described(handles::description(number(desc))?, layouts)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulAlgoGetHeuristic(
    light: Handle,
    desc: Handle,
    a: Handle,
    b: Handle,
    c: Handle,
    d: Handle,
    preference: Handle,
    asked: c_int,
    results: *mut Candidate,
    count: *mut c_int,
) -> Status {
    if let Err(status) = described(light, desc, [a, b, c, d]) {
        return status;
    }
    let Ok(Object::Preference(_)) = handles::get(number(preference)) else { return Status::InvalidValue };
    if asked < 1 || results.is_null() || count.is_null() {
        return status(refused("no room for candidates"));
    }
    let have = CANDIDATES.len().min(asked as usize);
    for index in 0..have {
        let mut algorithm = [0; 8];
        algorithm[0] = MARK + index as u64;
        let (workspace, state, waves, reserved) = (0, Status::Success, 1.0, [0; 4]);
        // SAFETY: the caller's results have room for as many as are asked for.
        unsafe { results.add(index).write(Candidate { algorithm, workspace, state, waves, reserved }) };
    }
    // SAFETY: not null; the caller's place.
    unsafe { count.write(have as c_int) };
    Status::Success
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmul(
    light: Handle,
    desc: Handle,
    alpha: *const c_void,
    a: *const c_void,
    layout_a: Handle,
    b: *const c_void,
    layout_b: Handle,
    beta: *const c_void,
    c: *const c_void,
    layout_c: Handle,
    d: *mut c_void,
    layout_d: Handle,
    algorithm: *const [u64; 8],
    workspace: *mut c_void,
    workspace_bytes: usize,
    stream: *mut c_void,
) -> Status {
    let called = || {
        let described = described(light, desc, [layout_a, layout_b, layout_c, layout_d])?;
        if algorithm.is_null() {
            return refused("the algorithm is null");
        }
        if c != d.cast_const() {
            return refused("C and D are not one matrix");
        }
        let scale = Data::of(handles::description(number(desc))?.scale)?;
        // SAFETY: scalars are of the scale type.
        let scalars = unsafe { scalars(scale, [alpha, beta])? };
        // SAFETY: not null; an algorithm has so many bytes.
        let index = unsafe { (*algorithm)[0] }.wrapping_sub(MARK) as usize;
        let Some(threads) = CANDIDATES.get(index) else { return refused("no algorithm of this library") };
        let given = Workspace { at: number(workspace.cast_const()), bytes: workspace_bytes as u64 }.check(16)?;
        let product = Product { scalars, at: [number(a), number(b), number(c)], ..described };
        multiply(product, *threads, number(stream.cast_const()), given)
    };
    status(called())
}
