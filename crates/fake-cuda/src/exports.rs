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

/// Where the caller wants a result: null or writable, which is for those who call a driver to see to. Nothing here makes one.
#[repr(transparent)]
#[derive(Clone, Copy)]
struct Place<T>(*mut T);

impl<T> Place<T> {
    fn put(self, value: T) -> Answer<()> {
        if self.0.is_null() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: by the contract of the type.
        unsafe { self.0.write(value) };
        Ok(())
    }
}

/// Makes something in a context and writes its handle.
fn made<T>(to: Place<*mut T>, f: impl FnOnce(&mut State) -> Answer<u64>) -> CUresult {
    within(|state| to.put(without_provenance_mut(f(state)? as usize)))
}

fn number<T>(handle: *mut T) -> u64 {
    handle.addr() as u64
}

/// Entry points and what they answer.
macro_rules! entry_points {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) => $answer:expr;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: $ty),*) -> CUresult {
            $answer
        }
    )*};
}

entry_points! {
    fn cuInit(_flags: c_uint) => CUresult::CUDA_SUCCESS;
    fn cuDriverGetVersion(version: Place<c_int>) => code(version.put(attributes::level()));
    fn cuGetErrorString(_error: CUresult, text: Place<*const c_char>) => code(text.put(c"said by the fake driver".as_ptr()));

    fn cuDeviceGetCount(count: Place<c_int>) => code(count.put(1));
    fn cuDeviceGet(device: Place<CUdevice>, ordinal: c_int) => {
        if ordinal == 0 { code(device.put(0)) } else { CUresult::CUDA_ERROR_INVALID_DEVICE }
    };
    fn cuDeviceGetAttribute(value: Place<c_int>, of: CUdevice_attribute, _device: CUdevice) => {
        match attributes::value(of) {
            Some(known) => code(value.put(known)),
            None => CUresult::CUDA_ERROR_NOT_SUPPORTED,
        }
    };
    fn cuDeviceTotalMem_v2(bytes: Place<usize>, _device: CUdevice) => code(bytes.put(attributes::memory_bytes() as usize));
    fn cuDevicePrimaryCtxRetain(context: Place<CUcontext>, _device: CUdevice) => {
        code(context.put(without_provenance_mut(CONTEXT)))
    };
    fn cuDevicePrimaryCtxRelease_v2(_device: CUdevice) => CUresult::CUDA_SUCCESS;
    fn cuCtxGetCurrent(context: Place<CUcontext>) => code(context.put(without_provenance_mut(CURRENT.get())));
    fn cuCtxSetCurrent(context: CUcontext) => {
        CURRENT.set(context.addr());
        CUresult::CUDA_SUCCESS
    };

    fn cuMemAlloc_v2(at: Place<CUdeviceptr>, bytes: usize) => within(|state| at.put(state.allocate(bytes)?));
    fn cuMemFree_v2(at: CUdeviceptr) => within(|state| state.free(at));
    fn cuMemsetD8Async(at: CUdeviceptr, value: c_uchar, bytes: usize, stream: CUstream) => {
        within(|state| state.enqueue(number(stream), Work::Set { at, value, bytes: bytes as u64 }))
    };
    fn cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream) => {
        within(|state| state.enqueue(number(stream), Work::Copy { to, from, bytes: bytes as u64 }))
    };

    fn cuStreamCreate(stream: Place<CUstream>, _flags: c_uint) => made(stream, |state| Ok(state.stream()));
    fn cuStreamDestroy_v2(stream: CUstream) => within(|state| state.destroy_stream(number(stream)));
    fn cuStreamSynchronize(stream: CUstream) => within(|state| state.synchronize(number(stream)));
    fn cuStreamBeginCapture_v2(stream: CUstream, _mode: CUstreamCaptureMode) => {
        within(|state| state.begin_capture(number(stream)))
    };
    fn cuStreamEndCapture(stream: CUstream, graph: Place<CUgraph>) => {
        made(graph, |state| state.end_capture(number(stream)))
    };
    fn cuGraphInstantiateWithFlags(exec: Place<CUgraphExec>, graph: CUgraph, _flags: c_ulonglong) => {
        made(exec, |state| state.instantiate(number(graph)))
    };
    fn cuGraphLaunch(exec: CUgraphExec, stream: CUstream) => {
        within(|state| state.launch_graph(number(exec), number(stream)))
    };
    fn cuGraphExecDestroy(exec: CUgraphExec) => within(|state| state.destroy_graph(number(exec)));
    fn cuGraphDestroy(graph: CUgraph) => within(|state| state.destroy_graph(number(graph)));

    fn cuEventCreate(event: Place<CUevent>, _flags: c_uint) => made(event, |state| Ok(state.event()));
    fn cuEventDestroy_v2(event: CUevent) => within(|state| state.destroy_event(number(event)));
    fn cuEventRecord(event: CUevent, stream: CUstream) => within(|state| state.record(number(event), number(stream)));
    fn cuEventQuery(event: CUevent) => within(|state| state.query(number(event)));
    fn cuEventElapsedTime(ms: Place<f32>, from: CUevent, to: CUevent) => {
        within(|state| ms.put(state.elapsed_ms(number(from), number(to))?))
    };

    fn cuLinkComplete(link: CUlinkState, image: Place<*mut c_void>, size: Place<usize>) => within(|state| {
        let text = state.complete(number(link))?;
        image.put(text.as_ptr().cast_mut().cast())?;
        size.put(text.len())
    });
    fn cuLinkDestroy(link: CUlinkState) => within(|state| state.destroy_link(number(link)));
    fn cuModuleUnload(module: CUmodule) => within(|state| state.unload(number(module)));
    fn cuFuncGetAttribute(value: Place<c_int>, of: CUfunction_attribute, function: CUfunction) => {
        within(|state| value.put(match of {
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES => state.static_shared(number(function))?,
            _ => 0,
        }))
    };
    fn cuFuncSetAttribute(function: CUfunction, of: CUfunction_attribute, value: c_int) => {
        within(|state| match (of, u64::try_from(value)) {
            (CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, Ok(bytes)) => {
                state.allow_dynamic(number(function), bytes)
            }
            // A wish, which changes no result.
            (CUfunction_attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, Ok(0..=100)) => Ok(()),
            _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        })
    };
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
unsafe extern "C" fn cuLinkCreate_v2(
    count: c_uint,
    options: *mut CUjit_option,
    values: *mut *mut c_void,
    link: Place<CUlinkState>,
) -> CUresult {
    // SAFETY: the caller's options.
    let log = unsafe { log_of(count, options, values) };
    made(link, |state| Ok(state.link(log)))
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
unsafe extern "C" fn cuModuleLoadDataEx(
    module: Place<CUmodule>,
    image: *const c_void,
    _count: c_uint,
    _options: *mut CUjit_option,
    _values: *mut *mut c_void,
) -> CUresult {
    // SAFETY: an image of ours ends with a NUL; one of ptxas begins with that of an ELF file, and has one soon.
    let text = unsafe { CStr::from_ptr(image.cast()) };
    made(module, |state| state.load(text.to_str().map_err(|_| CUresult::CUDA_ERROR_INVALID_IMAGE)?))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetFunction(
    function: Place<CUfunction>,
    module: CUmodule,
    name: *const c_char,
) -> CUresult {
    // SAFETY: the caller's string.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    made(function, |state| state.function(number(module), &name))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetGlobal_v2(
    at: Place<CUdeviceptr>,
    bytes: Place<usize>,
    module: CUmodule,
    name: *const c_char,
) -> CUresult {
    // SAFETY: the caller's string.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    within(|state| {
        let (address, length) = state.variable(number(module), &name)?;
        at.put(address)?;
        bytes.put(length as usize)
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
    let is_plain = |a: &CUlaunchAttribute| match a.id {
        CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION => {
            // SAFETY: the attribute says which of the values it holds.
            let size = unsafe { a.value.clusterDim };
            (size.x, size.y, size.z) == (1, 1, 1)
        }
        // Here launches follow each other.
        CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION => true,
        _ => false,
    };
    if !attributes.iter().all(is_plain) {
        return CUresult::CUDA_ERROR_NOT_SUPPORTED;
    }
    let ([gx, gy, gz], [bx, by, bz]) = ([c.gridDimX, c.gridDimY, c.gridDimZ], [c.blockDimX, c.blockDimY, c.blockDimZ]);
    // SAFETY: the caller's contract.
    unsafe { cuLaunchKernel(function, gx, gy, gz, bx, by, bz, c.sharedMemBytes, c.hStream, params, extra) }
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorName(error: CUresult, name: Place<*const c_char>) -> CUresult {
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
    code(name.put(said.as_ptr()))
}
