//! The facts of a small imaginary device.

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use tilewright_emulator::Limits;

/// Its name.
pub(crate) const NAME: &str = "Fake sm_80";
/// What it has for allocations.
pub(crate) const MEMORY_BYTES: u64 = 1 << 30;
/// Level of the driver, unless [`LEVEL`] says otherwise.
const DRIVER: i32 = 12_090;
pub(crate) const MULTIPROCESSORS: i32 = 4;
pub(crate) const THREADS_PER_BLOCK: u64 = 1024;
/// Most shared memory of a block.
pub(crate) const SHARED_BYTES: u64 = 164 << 10;
/// Most shared memory of a block without asking.
pub(crate) const STATIC_SHARED: u64 = 48 << 10;

/// Sets how many warp instructions of a launch are run: what goes beyond is left undone, and only its time is made up. For trying
/// what is timed and not checked.
pub(crate) const INSTRUCTIONS: &str = "FAKE_CUDA_INSTRUCTIONS";

/// Sets the level of the driver, as `cuDriverGetVersion` counts: `12000`.
const LEVEL: &str = "FAKE_CUDA_LEVEL";

/// Sets the compute capability: `90`. Kernels of any capability that the emulator knows run all the same.
const CAPABILITY: &str = "FAKE_CUDA_SM";

/// Where it is set, this is another machine of the same model: a little less memory is left of it, and the driver does not tell clocks.
const SISTER: &str = "FAKE_CUDA_SISTER";

/// Where it is set, every kernel faults: a device that nothing can be proved on.
const FAULTS: &str = "FAKE_CUDA_FAULTS";

/// Whether every kernel faults.
pub(crate) fn faults() -> bool {
    std::env::var_os(FAULTS).is_some()
}

fn number(variable: &str) -> Option<i32> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

/// Level of the driver.
pub(crate) fn level() -> i32 {
    number(LEVEL).unwrap_or(DRIVER)
}

/// What the device says it has for allocations.
pub(crate) fn memory_bytes() -> u64 {
    if std::env::var_os(SISTER).is_some() { MEMORY_BYTES - (12 << 20) } else { MEMORY_BYTES }
}

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

/// The value of an attribute; none where the driver does not tell. Those that nobody asked for yet are zero.
pub(crate) fn value(attribute: Attribute) -> Option<i32> {
    let is_clock = matches!(
        attribute,
        Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE | Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE
    );
    if is_clock && std::env::var_os(SISTER).is_some() {
        return None;
    }
    let capability = number(CAPABILITY).unwrap_or(80);
    Some(match attribute {
        Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => capability / 10,
        Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => capability % 10,
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
    })
}
