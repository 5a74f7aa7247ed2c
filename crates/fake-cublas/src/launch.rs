//! Products on the driver that the process has: its device memory is the caller's.

use crate::handles::Workspace;
use crate::kernel::{COLUMNS, ENTRY, kernel};
use crate::numbers::{Numbers, Sum};
use crate::product::{Answer, Product, Status};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::sync::{LazyLock, Mutex, PoisonError};

/// Bytes at either end of a workspace that are written by each call, as a library would.
const TOUCHED: u64 = 64;

/// Numbers, and which operands are conjugated.
type Kind = (Numbers, [bool; 2]);

/// A kernel's entry, as the number of its address: one for each kind, loaded once.
static LOADED: LazyLock<Mutex<HashMap<Kind, usize>>> = LazyLock::new(Mutex::default);

fn failed(error: DriverError) -> Status {
    eprintln!("fake cuBLAS: the driver says {error:?}");
    Status::ExecutionFailed
}

fn function(kind: Kind) -> Answer<sys::CUfunction> {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = loaded.get(&kind) {
        return Ok(std::ptr::with_exposed_provenance_mut(*known));
    }
    let text = CString::new(kernel(kind.0, kind.1)).map_err(|_| Status::ExecutionFailed)?;
    // SAFETY: the text ends with a NUL; the module is never unloaded, so its entry stays.
    let function = unsafe {
        let mut module = std::ptr::null_mut();
        let (none, no_values) = (std::ptr::null_mut(), std::ptr::null_mut());
        let loaded = sys::cuModuleLoadDataEx(&raw mut module, text.as_ptr().cast(), 0, none, no_values);
        loaded.result().map_err(failed)?;
        let entry = CString::new(ENTRY).map_err(|_| Status::ExecutionFailed)?;
        result::module::get_function(module, entry).map_err(failed)?
    };
    loaded.insert(kind, function.expose_provenance());
    Ok(function)
}

/// Writes to both ends of a workspace: the driver refuses what is no memory.
fn touch(workspace: Workspace, stream: sys::CUstream) -> Answer<()> {
    let Workspace { at, bytes } = workspace;
    let part = bytes.min(TOUCHED);
    for at in [at, at + bytes - part] {
        if part > 0 {
            // SAFETY: the caller's workspace has so many bytes.
            unsafe { result::memset_d8_async(at, 0x5a, part as usize, stream) }.map_err(failed)?;
        }
    }
    Ok(())
}

/// Puts a product that was checked on a stream, in blocks of so many threads.
pub(crate) fn enqueue(product: &Product, threads: u32, stream: u64, workspace: Workspace) -> Answer<()> {
    let function = function((product.numbers, product.conjugated()))?;
    let stream: sys::CUstream = std::ptr::with_exposed_provenance_mut(stream as usize);
    touch(workspace, stream)?;
    let [m, n, k] = product.sizes.map(|size| size as u32);
    let (at, strides, ldc) = (product.at, product.strides(), product.ld[2] as u64);
    let singles = product.scalars.map(|x| x as f32);
    let integers = product.scalars.map(|x| x as i32);
    let scalar = |i: usize| match product.numbers.sum {
        Sum::F32 => (&raw const singles[i]).cast::<c_void>(),
        Sum::F64 => (&raw const product.scalars[i]).cast(),
        Sum::S32 => (&raw const integers[i]).cast(),
    };
    let sizes = [m, n, k];
    let mut params: Vec<*mut c_void> = Vec::new();
    params.extend(at.iter().map(|x| (&raw const *x).cast::<c_void>().cast_mut()));
    params.extend(sizes.iter().map(|x| (&raw const *x).cast::<c_void>().cast_mut()));
    params.extend(strides.iter().map(|x| (&raw const *x).cast::<c_void>().cast_mut()));
    params.push((&raw const ldc).cast::<c_void>().cast_mut());
    params.extend([scalar(0).cast_mut(), scalar(1).cast_mut()]);
    let grid = (m.div_ceil(threads), n.min(COLUMNS), n.div_ceil(COLUMNS));
    // SAFETY: as many parameters as the kernel has, each of its type, alive until the call returns, which copies them.
    unsafe { result::launch_kernel(function, grid, (threads, 1, 1), 0, stream, &mut params) }.map_err(failed)
}
