//! The facts of a small imaginary device.

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use tilewright_emulator::Limits;

/// Its name.
pub(crate) const NAME: &str = "Fake sm_80";
/// What it has for allocations.
pub(crate) const MEMORY_BYTES: u64 = 1 << 30;
/// Level of the driver.
pub(crate) const DRIVER: i32 = 12_090;
pub(crate) const MULTIPROCESSORS: i32 = 4;
pub(crate) const THREADS_PER_BLOCK: u64 = 1024;
/// Most shared memory of a block.
pub(crate) const SHARED_BYTES: u64 = 164 << 10;
/// Most shared memory of a block without asking.
pub(crate) const STATIC_SHARED: u64 = 48 << 10;

/// Sets how many warp instructions of a launch are run: what goes beyond is left undone, and only its time is made up. For trying
/// what is timed and not checked.
pub(crate) const INSTRUCTIONS: &str = "FAKE_CUDA_INSTRUCTIONS";

/// Warp instructions of one block after which it counts as hung: seconds of the host.
const BLOCK_INSTRUCTIONS: u64 = 1 << 24;

/// Whether launches are cut short.
pub(crate) fn cuts_short() -> bool {
    std::env::var_os(INSTRUCTIONS).is_some()
}

pub(crate) fn limits() -> Limits {
    let most = std::env::var(INSTRUCTIONS).ok().and_then(|n| n.parse().ok()).unwrap_or(u64::MAX);
    Limits { launch_instructions: most, block_instructions: BLOCK_INSTRUCTIONS, ..Limits::default() }
}

/// The value of an attribute; those that nobody asked for yet are zero.
pub(crate) fn value(attribute: Attribute) -> i32 {
    match attribute {
        Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => 8,
        Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT => MULTIPROCESSORS,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR => 32,
        Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE => 1_400_000,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X => i32::MAX,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y | Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z => 65_535,
        Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE => 256 << 10,
        Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH => 256,
        Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE => 1_200_000,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK
        | Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR => 65_536,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        | Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR => SHARED_BYTES as i32,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK => STATIC_SHARED as i32,
        Attribute::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO => 2,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK => THREADS_PER_BLOCK as i32,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR => 2048,
        Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE => 32,
        _ => 0,
    }
}
