//! Handles of the driver with their lifetimes.
//!
//! Everything on the device happens on one stream, in order, so memory may be freed and code unloaded once the stream has been
//! waited for. A device on which a kernel hangs is *lost*: freeing would wait for that kernel, so handles of a lost device
//! are left to the end of the process.

use super::error::{self, Asked};
use cudarc::driver::CudaContext;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUjit_option as Jit};
use std::ffi::{CStr, CString, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tilewright_core::program::DeviceError;

/// The oldest driver that has every function that is called here, as `cuDriverGetVersion` counts.
const OLDEST_DRIVER: i32 = 12_000;

/// Bytes of the log of a compilation.
const LOG_BYTES: usize = 16 << 10;

/// How long an event is polled without pause; shorter work must not pay for waking up.
const SPIN: Duration = Duration::from_micros(500);

/// How long to sleep between looks at an event after that.
const NAP: Duration = Duration::from_micros(50);

/// Number of CUDA devices.
///
/// # Errors
/// There is no driver, it is too old, or it finds no device.
pub fn count() -> Result<usize, DeviceError> {
    initialised("cuda")?;
    let count = result::device::get_count().map_err(|e| error::of(e, Asked::Open, "cuda"))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// The level of the driver as it counts it (13000 is that of CUDA 13.0), without asking a device anything; none without a driver.
pub fn level() -> Option<i32> {
    // SAFETY: opens shared libraries by the driver's names, whose initialisers have no preconditions.
    if !unsafe { sys::is_culib_present() } {
        return None;
    }
    let mut version = 0;
    // SAFETY: the only argument is a place for the result; allowed before cuInit.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().ok().map(|()| version)
}

/// Finds and starts the driver; its version.
fn initialised(device: &str) -> Result<i32, DeviceError> {
    // SAFETY: opens shared libraries by the driver's names, whose initialisers have no preconditions.
    if !unsafe { sys::is_culib_present() } {
        let why = "no CUDA driver: libcuda.so.1 was not found".into();
        return Err(DeviceError::Missing { device: device.to_owned(), why });
    }
    let open = |e| error::of(e, Asked::Open, device);
    let mut version = 0;
    // SAFETY: the only argument is a place for the result; allowed before cuInit.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().map_err(open)?;
    if version < OLDEST_DRIVER {
        let (device, needs, has) = (device.to_owned(), shown(OLDEST_DRIVER), shown(version));
        return Err(DeviceError::OldDriver { device, needs, has });
    }
    result::init().map_err(open)?;
    Ok(version)
}

/// `CUDA 12.9` of 12090.
pub(super) fn shown(version: i32) -> String {
    format!("CUDA {}.{}", version / 1000, version % 1000 / 10)
}

/// A device with its context and its stream.
pub(super) struct Driver {
    id: String,
    context: Arc<CudaContext>,
    stream: sys::CUstream,
    version: i32,
    lost: AtomicBool,
}

// SAFETY: handles of contexts and streams may be used from any thread on which the context is current; every function here
// makes it current first.
unsafe impl Send for Driver {}
// SAFETY: as above; the driver locks what it shares.
unsafe impl Sync for Driver {}

impl Driver {
    pub(super) fn open(ordinal: usize) -> Result<Arc<Self>, DeviceError> {
        let id = format!("cuda:{ordinal}");
        let version = initialised(&id)?;
        let have = count()?;
        if ordinal >= have {
            let why = format!("there are {have} devices, numbered from 0");
            return Err(DeviceError::Missing { device: id, why });
        }
        let open = |e| error::of(e, Asked::Open, &id);
        let context = CudaContext::new(ordinal).map_err(open)?;
        context.bind_to_thread().map_err(open)?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking).map_err(open)?;
        Ok(Arc::new(Self { id, context, stream, version, lost: AtomicBool::new(false) }))
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn version(&self) -> i32 {
        self.version
    }

    /// The stream, for libraries.
    pub(super) fn stream(&self) -> *mut c_void {
        self.stream.cast()
    }

    pub(super) fn name(&self) -> Result<String, DeviceError> {
        self.context.name().map_err(|e| self.error(e, Asked::Run))
    }

    pub(super) fn attribute(&self, attribute: Attribute) -> Result<i32, DeviceError> {
        self.context.attribute(attribute).map_err(|e| self.error(e, Asked::Run))
    }

    pub(super) fn memory_bytes(&self) -> Result<u64, DeviceError> {
        Ok(self.context.total_mem().map_err(|e| self.error(e, Asked::Run))? as u64)
    }

    /// Makes the context current on this thread.
    pub(super) fn bind(&self) -> Result<(), DeviceError> {
        self.context.bind_to_thread().map_err(|e| self.error(e, Asked::Run))
    }

    pub(super) fn error(&self, error: DriverError, asked: Asked) -> DeviceError {
        error::of(error, asked, &self.id)
    }

    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Whether a handle may be given back: the device answers, and its context is current.
    fn releases(&self) -> bool {
        !self.is_lost() && self.bind().is_ok()
    }

    /// Waits until an event has happened.
    pub(super) fn wait(&self, event: &Event, limit: Duration) -> Result<(), DeviceError> {
        let began = Instant::now();
        loop {
            // SAFETY: the event is alive and was recorded on a stream of this context.
            match unsafe { result::event::query(event.handle) } {
                Ok(()) => return Ok(()),
                Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => {}
                Err(e) => return Err(self.error(e, Asked::Run)),
            }
            let waited = began.elapsed();
            if waited >= limit {
                self.lost.store(true, Ordering::Relaxed);
                return Err(DeviceError::Hang { after_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX) });
            }
            if waited > SPIN { std::thread::sleep(NAP) } else { std::hint::spin_loop() }
        }
    }

    /// Machine code of PTX text by the driver's own compiler. May be called from any thread.
    ///
    /// # Errors
    /// The compiler's log.
    pub(super) fn assemble(&self, text: &str) -> Result<Vec<u8>, String> {
        self.bind().map_err(|e| e.to_string())?;
        let text = CString::new(text).map_err(|e| e.to_string())?;
        let mut log = Log::new();
        let (mut options, mut values) = log.options();
        let mut state = std::ptr::null_mut();
        // SAFETY: as many options as values; the log outlives the link, which is destroyed below.
        unsafe { sys::cuLinkCreate_v2(2, options.as_mut_ptr(), values.as_mut_ptr(), &raw mut state) }
            .result()
            .map_err(|e| e.to_string())?;
        let link = Link(state);
        let bytes = text.as_bytes_with_nul();
        // SAFETY: the state is alive; the text ends with a NUL that is counted, and is only read.
        let added = unsafe {
            let (input, name) = (sys::CUjitInputType::CU_JIT_INPUT_PTX, c"kernel".as_ptr());
            let (none, no_values) = (std::ptr::null_mut(), std::ptr::null_mut());
            sys::cuLinkAddData_v2(
                link.0,
                input,
                bytes.as_ptr().cast_mut().cast(),
                bytes.len(),
                name,
                0,
                none,
                no_values,
            )
        };
        added.result().map_err(|e| log.with(&e))?;
        let (mut image, mut length) = (std::ptr::null_mut(), 0);
        // SAFETY: the state is alive; both places are written on success.
        unsafe { sys::cuLinkComplete(link.0, &raw mut image, &raw mut length) }.result().map_err(|e| log.with(&e))?;
        // SAFETY: the image has that length and belongs to the link, which is alive.
        Ok(unsafe { std::slice::from_raw_parts(image.cast::<u8>(), length) }.to_vec())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if self.releases() {
            // SAFETY: made by `open`, not destroyed before. Work on it ends first.
            let _ = unsafe { result::stream::destroy(self.stream) };
        }
    }
}

struct Link(sys::CUlinkState);

impl Drop for Link {
    fn drop(&mut self) {
        // SAFETY: made by cuLinkCreate, not destroyed before.
        let _ = unsafe { sys::cuLinkDestroy(self.0) }.result();
    }
}

/// What a compiler of the driver says.
struct Log(Vec<u8>);

impl Log {
    fn new() -> Self {
        Self(vec![0; LOG_BYTES])
    }

    /// The options that make the driver write to it. It must live, unmoved, as long as they are used.
    fn options(&mut self) -> ([Jit; 2], [*mut c_void; 2]) {
        let names = [Jit::CU_JIT_ERROR_LOG_BUFFER, Jit::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        // The size travels in the pointer itself.
        (names, [self.0.as_mut_ptr().cast(), std::ptr::without_provenance_mut(self.0.len())])
    }

    fn with(&self, error: &DriverError) -> String {
        let said = CStr::from_bytes_until_nul(&self.0).map(|c| c.to_string_lossy().into_owned()).unwrap_or_default();
        if said.trim().is_empty() { error.to_string() } else { format!("{error}: {}", said.trim()) }
    }
}

/// A handle of the driver that is given back when nobody has it any more, unless the device is lost.
pub(super) struct Owned<H: Copy> {
    driver: Arc<Driver>,
    handle: H,
    give_back: unsafe fn(H) -> Result<(), DriverError>,
}

// SAFETY: only handles of the driver are kept so, which may be used from any thread on which their context is current.
unsafe impl<H: Copy> Send for Owned<H> {}

impl<H: Copy> Owned<H> {
    fn new(driver: &Arc<Driver>, handle: H, give_back: unsafe fn(H) -> Result<(), DriverError>) -> Self {
        Self { driver: driver.clone(), handle, give_back }
    }

    pub(super) fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    pub(super) fn handle(&self) -> H {
        self.handle
    }
}

impl<H: Copy> Drop for Owned<H> {
    fn drop(&mut self) {
        if self.driver.releases() {
            // SAFETY: whoever made it gave the function that destroys it, which is called nowhere else; the driver waits for work that
            // uses memory, and whoever drops code has waited for its kernels.
            let _ = unsafe { (self.give_back)(self.handle) };
        }
    }
}

/// A part of the device's memory, with a fence behind it.
pub(super) struct Memory {
    owned: Owned<sys::CUdeviceptr>,
    bytes: usize,
}

/// Bytes behind a buffer that nobody may write.
const FENCE: usize = 256;
const FENCE_BYTE: u8 = 0xa5;

impl Memory {
    pub(super) fn new(driver: &Arc<Driver>, bytes: usize) -> Result<Self, DeviceError> {
        driver.bind()?;
        let with_fence = bytes.saturating_add(FENCE);
        // SAFETY: returns memory of at least that length, or an error.
        let at = unsafe { result::malloc_sync(with_fence) }
            .map_err(|e| driver.error(e, Asked::Memory(with_fence as u64)))?;
        let memory = Self { owned: Owned::new(driver, at, result::free_sync), bytes };
        memory.set(bytes..with_fence, FENCE_BYTE)?;
        Ok(memory)
    }

    pub(super) fn address(&self) -> u64 {
        self.owned.handle
    }

    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// Puts the filling of a range on the stream. The fence counts as inside.
    pub(super) fn set(&self, range: std::ops::Range<usize>, value: u8) -> Result<(), DeviceError> {
        if range.is_empty() {
            return Ok(());
        }
        let (driver, with_fence) = (&self.owned.driver, self.bytes + FENCE);
        if range.end > with_fence {
            let message = format!("filling {range:?} of {}", self.bytes);
            return Err(DeviceError::Argument { name: "memory".into(), message });
        }
        driver.bind()?;
        // SAFETY: within this allocation, which lives until the stream has been waited for.
        unsafe { result::memset_d8_async(self.owned.handle + range.start as u64, value, range.len(), driver.stream) }
            .map_err(|e| driver.error(e, Asked::Launch))
    }

    /// Copies to its beginning, and waits.
    pub(super) fn upload(&self, bytes: &[u8]) -> Result<(), DeviceError> {
        let driver = &self.owned.driver;
        if bytes.len() > self.bytes {
            let message = format!("{} bytes for {}", bytes.len(), self.bytes);
            return Err(DeviceError::Argument { name: "memory".into(), message });
        }
        if bytes.is_empty() {
            return Ok(());
        }
        driver.bind()?;
        // SAFETY: within this allocation; the source is borrowed until the stream has been waited for. The copies that wait by
        // themselves do not order themselves with this stream.
        let copied = unsafe {
            result::memcpy_htod_async(self.owned.handle, bytes, driver.stream)
                .and_then(|()| result::stream::synchronize(driver.stream))
        };
        copied.map_err(|e| driver.error(e, Asked::Run))
    }

    /// Repeats its first bytes over all of it, on the stream.
    pub(super) fn repeat_first(&self, period: usize) -> Result<(), DeviceError> {
        let driver = &self.owned.driver;
        driver.bind()?;
        let mut have = period;
        while have > 0 && have < self.bytes {
            let step = have.min(self.bytes - have);
            // SAFETY: both ranges lie within this allocation and do not overlap, since the step is at most `have`.
            unsafe {
                result::memcpy_dtod_async(self.owned.handle + have as u64, self.owned.handle, step, driver.stream)
            }
            .map_err(|e| driver.error(e, Asked::Run))?;
            have += step;
        }
        Ok(())
    }

    /// Copies out, after everything on the stream.
    ///
    /// # Errors
    /// A kernel wrote behind the end.
    pub(super) fn download(&self, to: &mut [u8]) -> Result<(), DeviceError> {
        let driver = &self.owned.driver;
        let bytes = to.len().min(self.bytes);
        let mut fence = [0u8; FENCE];
        driver.bind()?;
        // SAFETY: both ranges lie within this allocation; the destinations are borrowed until the stream has been waited for.
        let copied = unsafe {
            let stream = driver.stream;
            let body = match bytes {
                0 => Ok(()),
                _ => result::memcpy_dtoh_async(&mut to[..bytes], self.owned.handle, stream),
            };
            body.and_then(|()| result::memcpy_dtoh_async(&mut fence, self.owned.handle + self.bytes as u64, stream))
                .and_then(|()| result::stream::synchronize(stream))
        };
        copied.map_err(|e| driver.error(e, Asked::Run))?;
        match fence.iter().position(|b| *b != FENCE_BYTE) {
            Some(at) => Err(DeviceError::Fault(format!("a kernel wrote {at} bytes behind a buffer of {}", self.bytes))),
            None => Ok(()),
        }
    }
}

/// A moment on the stream.
pub(super) type Event = Owned<sys::CUevent>;

impl Event {
    pub(super) fn create(driver: &Arc<Driver>) -> Result<Self, DeviceError> {
        driver.bind()?;
        let handle = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT);
        let handle = handle.map_err(|e| driver.error(e, Asked::Run))?;
        Ok(Self::new(driver, handle, result::event::destroy))
    }

    /// Happens when everything that is on the stream now is done.
    pub(super) fn record(&self) -> Result<(), DeviceError> {
        // SAFETY: event and stream are alive and of one context.
        unsafe { result::event::record(self.handle, self.driver.stream) }.map_err(|e| self.driver.error(e, Asked::Run))
    }

    /// Seconds from this to a later one. Both must have happened.
    pub(super) fn until(&self, later: &Self) -> Result<f64, DeviceError> {
        // SAFETY: both are alive, were recorded, and have happened.
        let ms = unsafe { result::event::elapsed(self.handle, later.handle) };
        Ok(f64::from(ms.map_err(|e| self.driver.error(e, Asked::Run))?) * 1e-3)
    }
}

/// Loaded code.
pub(super) type Module = Owned<sys::CUmodule>;

// SAFETY: a module may be used from any thread on which its context is current, and nothing here changes it.
unsafe impl Sync for Module {}

impl Module {
    /// Loads machine code.
    pub(super) fn load(driver: &Arc<Driver>, image: &[u8]) -> Result<Self, DeviceError> {
        driver.bind()?;
        let mut log = Log::new();
        let (mut options, mut values) = log.options();
        let mut handle = std::ptr::null_mut();
        // SAFETY: the image is a whole ELF file, which tells its own length; as many options as values; the log outlives the
        // call.
        let loaded = unsafe {
            let (image, place) = (image.as_ptr().cast(), &raw mut handle);
            sys::cuModuleLoadDataEx(place, image, 2, options.as_mut_ptr(), values.as_mut_ptr())
        };
        match loaded.result() {
            Ok(()) => Ok(Self::new(driver, handle, result::module::unload)),
            Err(e) => Err(match driver.error(e, Asked::Load) {
                DeviceError::Load(_) => DeviceError::Load(log.with(&e)),
                other => other,
            }),
        }
    }
}

/// Work that was recorded once and is put on the stream as a whole.
pub(super) struct Graph {
    // Destroyed before what it was made from.
    exec: Owned<sys::CUgraphExec>,
    _graph: Owned<sys::CUgraph>,
}

impl Graph {
    /// Records what `enqueue` puts on the stream, instead of doing it.
    pub(super) fn record(
        driver: &Arc<Driver>,
        enqueue: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<Self, DeviceError> {
        driver.bind()?;
        let run = |e| driver.error(e, Asked::Run);
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is alive and not recording.
        unsafe { result::stream::begin_capture(driver.stream, mode) }.map_err(run)?;
        let enqueued = enqueue();
        // SAFETY: begun above, on this thread. Must be ended whatever happened in between.
        let graph = unsafe { result::stream::end_capture(driver.stream) };
        if let Err(error) = enqueued {
            // SAFETY: where there is a graph, it is whole and nobody else has it.
            let _ = graph.map(|g| if g.is_null() { Ok(()) } else { unsafe { result::graph::destroy(g) } });
            return Err(error);
        }
        let graph = Owned::new(driver, graph.map_err(run)?, result::graph::destroy);
        // SAFETY: the graph is whole.
        let exec =
            unsafe { result::graph::instantiate(graph.handle, sys::CUgraphInstantiate_flags(0)) }.map_err(run)?;
        Ok(Self { exec: Owned::new(driver, exec, result::graph::exec_destroy), _graph: graph })
    }

    /// Puts all of it on the stream.
    pub(super) fn launch(&self) -> Result<(), DeviceError> {
        let driver = self.exec.driver();
        // SAFETY: graph and stream are alive and of one context; what it uses is kept by whoever holds it.
        unsafe { result::graph::launch(self.exec.handle, driver.stream) }.map_err(|e| driver.error(e, Asked::Launch))
    }
}
