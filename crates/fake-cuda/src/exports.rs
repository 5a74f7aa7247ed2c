//! The entry points, with the types of the driver's header.

use crate::attributes;
use crate::state::{Answer, State, Work};
use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction, CUfunction_attribute, CUgraph,
    CUgraphExec, CUjit_option, CUjitInputType, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchConfig, CUlinkState,
    CUmodule, CUresult, CUstream, CUstreamCaptureMode,
};
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_ulonglong, c_void};
use std::ptr::without_provenance_mut;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

static STATE: LazyLock<Mutex<State>> = LazyLock::new(Mutex::default);

/// The context of the only device.
const CONTEXT: usize = 0xc0;

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn code(answer: Answer<()>) -> CUresult {
    answer.err().unwrap_or(CUresult::CUDA_SUCCESS)
}

/// Whether the thread has a context, which nearly every call wants.
fn bound() -> Answer<()> {
    if CURRENT.get() == CONTEXT { Ok(()) } else { Err(CUresult::CUDA_ERROR_INVALID_CONTEXT) }
}

/// Does something in a context.
fn within(f: impl FnOnce(&mut State) -> Answer<()>) -> CUresult {
    code(bound().and_then(|()| f(&mut state())))
}

/// Writes a result to where the caller wants it.
///
/// # Safety
/// `to` must be null or writable.
unsafe fn put<T>(to: *mut T, value: T) -> Answer<()> {
    if to.is_null() {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    // SAFETY: by the caller.
    unsafe { to.write(value) };
    Ok(())
}

/// Makes something in a context and writes its handle.
///
/// # Safety
/// `to` must be null or writable.
unsafe fn made<T>(to: *mut *mut T, f: impl FnOnce(&mut State) -> Answer<u64>) -> CUresult {
    within(|state| {
        let handle = f(state)?;
        // SAFETY: by the caller.
        unsafe { put(to, without_provenance_mut(handle as usize)) }
    })
}

fn number<T>(handle: *mut T) -> u64 {
    handle.addr() as u64
}

#[unsafe(no_mangle)]
extern "C" fn cuInit(_flags: c_uint) -> CUresult {
    CUresult::CUDA_SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> CUresult {
    // SAFETY: the caller's place.
    code(unsafe { put(version, attributes::DRIVER) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> CUresult {
    // SAFETY: the caller's place.
    code(unsafe { put(count, 1) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int) -> CUresult {
    if ordinal != 0 {
        return CUresult::CUDA_ERROR_INVALID_DEVICE;
    }
    // SAFETY: the caller's place.
    code(unsafe { put(device, 0) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, length: c_int, _device: CUdevice) -> CUresult {
    let said: Vec<u8> = attributes::NAME.bytes().chain([0]).collect();
    if name.is_null() || usize::try_from(length).is_ok_and(|l| l < said.len()) {
        return CUresult::CUDA_ERROR_INVALID_VALUE;
    }
    // SAFETY: the caller's array has `length` bytes, which are enough.
    unsafe { name.cast::<u8>().copy_from_nonoverlapping(said.as_ptr(), said.len()) };
    CUresult::CUDA_SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, of: CUdevice_attribute, _device: CUdevice) -> CUresult {
    // SAFETY: the caller's place.
    code(unsafe { put(value, attributes::value(of)) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, _device: CUdevice) -> CUresult {
    // SAFETY: the caller's place.
    code(unsafe { put(bytes, attributes::MEMORY_BYTES as usize) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut CUcontext, _device: CUdevice) -> CUresult {
    // SAFETY: the caller's place.
    code(unsafe { put(context, without_provenance_mut(CONTEXT)) })
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(_device: CUdevice) -> CUresult {
    CUresult::CUDA_SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetCurrent(context: *mut CUcontext) -> CUresult {
    // SAFETY: the caller's place.
    code(unsafe { put(context, without_provenance_mut(CURRENT.get())) })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(context: CUcontext) -> CUresult {
    CURRENT.set(context.addr());
    CUresult::CUDA_SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAlloc_v2(at: *mut CUdeviceptr, bytes: usize) -> CUresult {
    within(|state| {
        let address = state.allocate(bytes)?;
        // SAFETY: the caller's place.
        unsafe { put(at, address) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFree_v2(at: CUdeviceptr) -> CUresult {
    within(|state| state.free(at))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD8Async(at: CUdeviceptr, value: c_uchar, bytes: usize, stream: CUstream) -> CUresult {
    within(|state| state.enqueue(number(stream), Work::Set { at, value, bytes: bytes as u64 }))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream) -> CUresult {
    within(|state| state.enqueue(number(stream), Work::Copy { to, from, bytes: bytes as u64 }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoDAsync_v2(
    to: CUdeviceptr,
    from: *const c_void,
    bytes: usize,
    stream: CUstream,
) -> CUresult {
    within(|state| {
        state.synchronize(number(stream))?;
        // SAFETY: the caller's memory has so many bytes.
        state.upload(to, unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoHAsync_v2(
    to: *mut c_void,
    from: CUdeviceptr,
    bytes: usize,
    stream: CUstream,
) -> CUresult {
    within(|state| {
        state.synchronize(number(stream))?;
        // SAFETY: the caller's memory has so many bytes.
        state.download(from, unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), bytes) })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreate(stream: *mut CUstream, _flags: c_uint) -> CUresult {
    // SAFETY: the caller's place.
    unsafe { made(stream, |state| Ok(state.stream())) }
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamDestroy_v2(stream: CUstream) -> CUresult {
    within(|state| state.destroy_stream(number(stream)))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamSynchronize(stream: CUstream) -> CUresult {
    within(|state| state.synchronize(number(stream)))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamBeginCapture_v2(stream: CUstream, _mode: CUstreamCaptureMode) -> CUresult {
    within(|state| state.begin_capture(number(stream)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph) -> CUresult {
    // SAFETY: the caller's place.
    unsafe { made(graph, |state| state.end_capture(number(stream))) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphInstantiateWithFlags(
    exec: *mut CUgraphExec,
    graph: CUgraph,
    _flags: c_ulonglong,
) -> CUresult {
    // SAFETY: the caller's place.
    unsafe { made(exec, |state| state.instantiate(number(graph))) }
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphLaunch(exec: CUgraphExec, stream: CUstream) -> CUresult {
    within(|state| state.launch_graph(number(exec), number(stream)))
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphExecDestroy(exec: CUgraphExec) -> CUresult {
    within(|state| state.destroy_graph(number(exec)))
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphDestroy(graph: CUgraph) -> CUresult {
    within(|state| state.destroy_graph(number(graph)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventCreate(event: *mut CUevent, _flags: c_uint) -> CUresult {
    // SAFETY: the caller's place.
    unsafe { made(event, |state| Ok(state.event())) }
}

#[unsafe(no_mangle)]
extern "C" fn cuEventDestroy_v2(event: CUevent) -> CUresult {
    within(|state| state.destroy_event(number(event)))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventRecord(event: CUevent, stream: CUstream) -> CUresult {
    within(|state| state.record(number(event), number(stream)))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventQuery(event: CUevent) -> CUresult {
    within(|state| state.query(number(event)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventElapsedTime(ms: *mut f32, from: CUevent, to: CUevent) -> CUresult {
    within(|state| {
        let elapsed = state.elapsed_ms(number(from), number(to))?;
        // SAFETY: the caller's place.
        unsafe { put(ms, elapsed) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLinkCreate_v2(
    count: c_uint,
    options: *mut CUjit_option,
    values: *mut *mut c_void,
    link: *mut CUlinkState,
) -> CUresult {
    // SAFETY: the caller's place, and its options.
    unsafe { made(link, |state| Ok(state.link(log_of(count, options, values)))) }
}

/// Where the caller wants the log of errors, and how long it may be.
///
/// # Safety
/// Both arrays have so many entries.
unsafe fn log_of(count: c_uint, options: *mut CUjit_option, values: *mut *mut c_void) -> (usize, usize) {
    let mut log = (0, 0);
    for i in 0..count as usize {
        // SAFETY: by the caller.
        let (option, value) = unsafe { (*options.add(i), *values.add(i)) };
        match option {
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER => log.0 = value.expose_provenance(),
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES => log.1 = value.addr(),
            _ => {}
        }
    }
    log
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLinkAddData_v2(
    link: CUlinkState,
    _input: CUjitInputType,
    data: *mut c_void,
    size: usize,
    _name: *const c_char,
    _count: c_uint,
    _options: *mut CUjit_option,
    _values: *mut *mut c_void,
) -> CUresult {
    within(|state| {
        // SAFETY: the caller's text has so many bytes.
        let text = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) };
        state.add(number(link), text).map_err(|(code, (at, room), said)| {
            let said: Vec<u8> = said.bytes().take(room.saturating_sub(1)).chain([0]).collect();
            if at != 0 && room > 0 {
                // SAFETY: the log was given with the link, has so much room, and outlives it.
                unsafe {
                    std::ptr::with_exposed_provenance_mut::<u8>(at).copy_from_nonoverlapping(said.as_ptr(), said.len());
                }
            }
            code
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLinkComplete(link: CUlinkState, image: *mut *mut c_void, size: *mut usize) -> CUresult {
    within(|state| {
        let text = state.complete(number(link))?;
        // SAFETY: the caller's places.
        unsafe {
            put(image, text.as_ptr().cast_mut().cast())?;
            put(size, text.len())
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuLinkDestroy(link: CUlinkState) -> CUresult {
    within(|state| state.destroy_link(number(link)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut CUmodule,
    image: *const c_void,
    _count: c_uint,
    _options: *mut CUjit_option,
    _values: *mut *mut c_void,
) -> CUresult {
    // SAFETY: an image of ours ends with a NUL; one of ptxas begins with that of an ELF file, and has one soon.
    let text = unsafe { CStr::from_ptr(image.cast()) };
    let load = |state: &mut State| state.load(text.to_str().map_err(|_| CUresult::CUDA_ERROR_INVALID_IMAGE)?);
    // SAFETY: the caller's place.
    unsafe { made(module, load) }
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleUnload(module: CUmodule) -> CUresult {
    within(|state| state.unload(number(module)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char) -> CUresult {
    // SAFETY: the caller's string.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    // SAFETY: the caller's place.
    unsafe { made(function, |state| state.function(number(module), &name)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuFuncGetAttribute(value: *mut c_int, of: CUfunction_attribute, function: CUfunction) -> CUresult {
    within(|state| {
        let found = match of {
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES => state.static_shared(number(function))?,
            _ => 0,
        };
        // SAFETY: the caller's place.
        unsafe { put(value, found) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuFuncSetAttribute(function: CUfunction, of: CUfunction_attribute, value: c_int) -> CUresult {
    within(|state| match (of, u64::try_from(value)) {
        (CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, Ok(bytes)) => {
            state.allow_dynamic(number(function), bytes)
        }
        // A wish, which changes no result.
        (CUfunction_attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, Ok(0..=100)) => Ok(()),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernel(
    function: CUfunction,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared_bytes: c_uint,
    stream: CUstream,
    params: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> CUresult {
    within(|state| {
        let function = number(function);
        let lengths = state.parameters(function)?;
        let param = |(i, bytes): (usize, usize)| {
            // SAFETY: the caller gives as many pointers as the kernel has parameters, each to as many bytes.
            unsafe { std::slice::from_raw_parts((*params.add(i)).cast::<u8>(), bytes) }.to_vec()
        };
        let params = lengths.into_iter().enumerate().map(param).collect();
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        state.enqueue(number(stream), Work::Kernel { function, grid, block, shared_bytes, params })
    })
}

/// Clusters of one block are blocks; the emulator knows no others.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernelEx(
    config: *const CUlaunchConfig,
    function: CUfunction,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CUresult {
    // SAFETY: the caller gives a configuration with as many attributes as it says.
    let (c, attributes) =
        unsafe { (&*config, std::slice::from_raw_parts((*config).attrs, (*config).numAttrs as usize)) };
    let is_plain = |a: &CUlaunchAttribute| {
        // SAFETY: the attribute says which of the values it holds.
        let size = unsafe { a.value.clusterDim };
        a.id == CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && (size.x, size.y, size.z) == (1, 1, 1)
    };
    if !attributes.iter().all(is_plain) {
        return CUresult::CUDA_ERROR_NOT_SUPPORTED;
    }
    let ([gx, gy, gz], [bx, by, bz]) = ([c.gridDimX, c.gridDimY, c.gridDimZ], [c.blockDimX, c.blockDimY, c.blockDimZ]);
    // SAFETY: the caller's contract.
    unsafe { cuLaunchKernel(function, gx, gy, gz, bx, by, bz, c.sharedMemBytes, c.hStream, params, extra) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(error: CUresult, name: *mut *const c_char) -> CUresult {
    let said = match error {
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS => c"CUDA_ERROR_ILLEGAL_ADDRESS",
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => c"CUDA_ERROR_OUT_OF_MEMORY",
        CUresult::CUDA_ERROR_INVALID_VALUE => c"CUDA_ERROR_INVALID_VALUE",
        CUresult::CUDA_ERROR_INVALID_PTX => c"CUDA_ERROR_INVALID_PTX",
        CUresult::CUDA_ERROR_INVALID_CONTEXT => c"CUDA_ERROR_INVALID_CONTEXT",
        CUresult::CUDA_ERROR_INVALID_HANDLE => c"CUDA_ERROR_INVALID_HANDLE",
        CUresult::CUDA_ERROR_LAUNCH_FAILED => c"CUDA_ERROR_LAUNCH_FAILED",
        _ => c"another error of the fake driver",
    };
    // SAFETY: the caller's place.
    code(unsafe { put(name, said.as_ptr()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(_error: CUresult, text: *mut *const c_char) -> CUresult {
    // SAFETY: the caller's place.
    code(unsafe { put(text, c"said by the fake driver".as_ptr()) })
}
