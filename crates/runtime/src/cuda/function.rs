//! Entries of loaded code, and their launches.

use super::driver::{Driver, Memory, Module};
use super::error::Asked;
use cudarc::driver::result;
use cudarc::driver::sys::{self, CUfunction_attribute as Attribute};
use std::ffi::{CString, c_void};
use std::sync::Arc;
use tilewright_core::program::{DeviceError, Launch};

/// The first driver that takes launches which overlap into graphs. Before it they follow each other, and nothing is waited for.
const OVERLAPPING_DRIVER: i32 = 12_030;

/// Shared memory in bytes that a kernel may have without being allowed more.
const COMMON_SHARED: i64 = 48 << 10;

/// Blocks, threads and shared memory of a launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    grid: [u32; 3],
    block: [u32; 3],
    cluster: Option<[u32; 3]>,
    shared_bytes: u32,
    overlaps: bool,
}

impl Shape {
    pub(super) fn of(launch: &Launch) -> Self {
        let Launch { grid, block, cluster, shared_bytes, ref attributes, .. } = *launch;
        Self { grid, block, cluster, shared_bytes, overlaps: attributes.overlaps }
    }

    /// Attributes for `cuLaunchKernelEx`; none where the plain `cuLaunchKernel` does.
    fn attributes(&self) -> Vec<sys::CUlaunchAttribute> {
        use sys::CUlaunchAttributeID as Id;
        let one = |id, value| sys::CUlaunchAttribute { id, pad: [0; 4], value };
        let cluster = self.cluster.map(|[x, y, z]| {
            let size = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
            one(Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, sys::CUlaunchAttributeValue { clusterDim: size })
        });
        let overlaps = self.overlaps.then(|| {
            let value = sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 };
            one(Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, value)
        });
        cluster.into_iter().chain(overlaps).collect()
    }
}

/// A part of a parameter: aligned as much as any parameter may be.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

/// The parameters of a launch, each at the beginning of a line.
#[derive(Default)]
pub(super) struct Params {
    lines: Vec<Line>,
    starts: Vec<usize>,
}

impl Params {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.starts.push(self.lines.len());
        self.lines.extend(bytes.chunks(64).map(|part| {
            let mut line = Line([0; 64]);
            line.0[..part.len()].copy_from_slice(part);
            line
        }));
    }

    /// The bytes of a parameter and what fills its last line.
    #[cfg(test)]
    pub(super) fn bytes(&self, i: usize) -> Vec<u8> {
        let end = self.starts.get(i + 1).copied().unwrap_or(self.lines.len());
        self.lines[self.starts[i]..end].iter().flat_map(|line| line.0).collect()
    }

    fn pointers(&self) -> Vec<*mut c_void> {
        self.starts.iter().map(|start| self.lines[*start..].as_ptr().cast_mut().cast()).collect()
    }
}

/// An entry of loaded code.
pub(super) struct Function {
    module: Arc<Module>,
    handle: sys::CUfunction,
}

// SAFETY: as for its module, which it keeps loaded.
unsafe impl Send for Function {}

impl Module {
    /// An entry, allowed what a launch of it needs.
    pub(super) fn function(self: &Arc<Self>, entry: &str, launch: &Launch) -> Result<Function, DeviceError> {
        let driver = self.driver();
        driver.bind()?;
        let load = |e| driver.error(e, Asked::Load);
        let name = CString::new(entry).map_err(|e| DeviceError::Load(e.to_string()))?;
        // SAFETY: the module is alive, and the function keeps it so.
        let handle = unsafe { result::module::get_function(self.handle(), name) };
        let handle = handle.map_err(|_| DeviceError::Load(format!("no kernel {entry:?} in the module")))?;
        // SAFETY: the function is alive.
        let fixed =
            unsafe { result::function::get_function_attribute(handle, Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) };
        let function = Function { module: self.clone(), handle };
        function.allow(launch, fixed.map_err(load)?)?;
        Ok(function)
    }
}

impl Module {
    /// Copies a buffer to the beginning of a variable, on the stream.
    ///
    /// # Errors
    /// There is no such variable, or it is shorter.
    pub(super) fn set_variable(&self, name: &str, from: &Memory) -> Result<(), DeviceError> {
        let driver = self.driver();
        driver.bind()?;
        let wrong = |message: String| DeviceError::Argument { name: name.to_owned(), message };
        let text = CString::new(name).map_err(|e| wrong(e.to_string()))?;
        // SAFETY: the module is alive.
        let found = unsafe { result::module::get_global(self.handle(), text) };
        let (at, have) = found.map_err(|_| wrong(format!("no variable {name:?} in the module")))?;
        if from.len() > have {
            return Err(wrong(format!("a buffer of {} bytes for a variable of {have}", from.len())));
        }
        if from.len() == 0 {
            return Ok(());
        }
        // SAFETY: both ranges are alive until the stream has been waited for, and long enough.
        let copied = unsafe { result::memcpy_dtod_async(at, from.address(), from.len(), driver.stream().cast()) };
        copied.map_err(|e| driver.error(e, Asked::Run))
    }
}

impl Function {
    /// Allows the kernel, which declares so many bytes of shared memory, what a launch needs.
    fn allow(&self, launch: &Launch, fixed: i32) -> Result<(), DeviceError> {
        let most = launch.attributes.max_shared_bytes.unwrap_or(launch.shared_bytes);
        if i64::from(fixed) + i64::from(most) > COMMON_SHARED {
            let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            let what = || ("shared_bytes", format!("{most} bytes of dynamic shared memory"));
            self.set(attribute, i32::try_from(most).unwrap_or(i32::MAX), what)?;
        }
        if let Some(percent) = launch.attributes.shared_carveout {
            let attribute = Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
            self.set(attribute, percent.into(), || ("shared_carveout", format!("{percent} percent")))?;
        }
        if launch.attributes.large_clusters && launch.is_clustered() {
            let attribute = Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
            self.set(attribute, 1, || ("large_clusters", "clusters of more than eight blocks".to_owned()))?;
        }
        Ok(())
    }

    fn set(&self, name: Attribute, value: i32, what: impl Fn() -> (&'static str, String)) -> Result<(), DeviceError> {
        // SAFETY: the function is alive; the driver refuses what the device does not have.
        unsafe { result::function::set_function_attribute(self.handle, name, value) }.map_err(|e| {
            let (name, what) = what();
            DeviceError::Argument { name: name.into(), message: format!("{what}: {e}") }
        })
    }

    /// Puts a launch on the stream. There must be a parameter of the right length for each that the entry takes: see
    /// `signature`.
    pub(super) fn launch(&self, shape: &Shape, params: &Params) -> Result<(), DeviceError> {
        let driver = self.module.driver();
        let mut pointers = params.pointers();
        let overlaps = shape.overlaps && driver.version() >= OVERLAPPING_DRIVER;
        let mut attributes = Shape { overlaps, ..*shape }.attributes();
        let launched = match &mut attributes[..] {
            [] => self.launch_alone(driver, shape, &mut pointers),
            some => self.launch_with(driver, shape, some, &mut pointers),
        };
        launched.map_err(|e| driver.error(e, Asked::Launch))
    }

    fn launch_alone(
        &self,
        driver: &Driver,
        shape: &Shape,
        pointers: &mut [*mut c_void],
    ) -> Result<(), result::DriverError> {
        let ([gx, gy, gz], [bx, by, bz]) = (shape.grid, shape.block);
        // SAFETY: the module is loaded; the driver copies the parameters before it returns; their number and lengths were
        // compared with the entry's. What the kernel does to the device's memory is contained by the process.
        unsafe {
            let (grid, block) = ((gx, gy, gz), (bx, by, bz));
            result::launch_kernel(self.handle, grid, block, shape.shared_bytes, driver.stream().cast(), pointers)
        }
    }

    fn launch_with(
        &self,
        driver: &Driver,
        shape: &Shape,
        attributes: &mut [sys::CUlaunchAttribute],
        pointers: &mut [*mut c_void],
    ) -> Result<(), result::DriverError> {
        let config = sys::CUlaunchConfig {
            gridDimX: shape.grid[0],
            gridDimY: shape.grid[1],
            gridDimZ: shape.grid[2],
            blockDimX: shape.block[0],
            blockDimY: shape.block[1],
            blockDimZ: shape.block[2],
            sharedMemBytes: shape.shared_bytes,
            hStream: driver.stream().cast(),
            attrs: attributes.as_mut_ptr(),
            numAttrs: u32::try_from(attributes.len()).unwrap_or(u32::MAX),
        };
        // SAFETY: as for a launch without attributes; the configuration and its attributes live until the driver returns. Every
        // driver that is not too old has this function.
        unsafe {
            sys::cuLaunchKernelEx(&raw const config, self.handle, pointers.as_mut_ptr(), std::ptr::null_mut()).result()
        }
    }
}
