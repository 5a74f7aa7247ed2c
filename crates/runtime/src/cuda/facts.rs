//! The facts of a device, by the names that rules and features read.

use super::driver::{Driver, shown};
use cudarc::driver::sys::CUdevice_attribute as Attribute;
use std::collections::BTreeMap;
use tilewright_core::device::{DeviceKind, DeviceSpec, NOT_ESSENTIAL};
use tilewright_core::program::DeviceError;

/// Facts that the driver tells as they are. Those that are not essential are left out where it does not.
const PLAIN: [(&str, Attribute); 18] = [
    ("blocks_per_sm", Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
    ("clock_khz", Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
    ("grid_x", Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
    ("grid_y", Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
    ("grid_z", Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z),
    ("l2_bytes", Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
    ("memory_bus_bits", Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
    ("memory_clock_khz", Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
    ("multiprocessors", Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
    ("registers_per_block", Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
    ("registers_per_sm", Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
    ("shared_optin", Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    ("shared_per_sm", Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    ("shared_static", Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
    ("single_to_double", Attribute::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO),
    ("threads_per_block", Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
    ("threads_per_sm", Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
    ("warp", Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE),
];

/// Facts that are found otherwise.
const OTHERS: [&str; 3] = ["memory_bytes", "registers_per_thread", "sm"];

/// Names of the facts of every CUDA device.
pub fn fact_names() -> impl Iterator<Item = &'static str> {
    PLAIN.iter().map(|(name, _)| *name).chain(OTHERS)
}

/// Registers that one thread can have on every device since sm_35; the driver does not tell.
const REGISTERS_PER_THREAD: i64 = 255;

pub(super) fn spec(driver: &Driver) -> Result<DeviceSpec, DeviceError> {
    let mut facts = BTreeMap::new();
    for (name, attribute) in PLAIN {
        match driver.attribute(attribute) {
            Ok(value) => drop(facts.insert(name.to_owned(), i64::from(value))),
            Err(error) if NOT_ESSENTIAL.contains(&name) => {
                tracing::warn!(name, %error, "a fact that the driver does not tell")
            }
            Err(error) => return Err(error),
        }
    }
    let major = driver.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = driver.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    facts.insert("sm".into(), i64::from(major) * 10 + i64::from(minor));
    facts.insert("registers_per_thread".into(), REGISTERS_PER_THREAD);
    facts.insert("memory_bytes".into(), i64::try_from(driver.memory_bytes()?).unwrap_or(i64::MAX));
    Ok(DeviceSpec {
        id: driver.id().to_owned(),
        name: driver.name()?,
        kind: DeviceKind::Cuda,
        driver: shown(driver.version()),
        facts,
        measured: BTreeMap::new(),
    })
}

/// The driver's level and its build, where the system tells it. The build is no part of a device's facts: it would make results stale
/// for nothing, and machines of one model differ in it.
pub(super) fn described(version: i32) -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let build = build(&read("/sys/module/nvidia/version")).or_else(|| build(&read("/proc/driver/nvidia/version")));
    build.map_or_else(|| shown(version), |build| format!("{}, driver {build}", shown(version)))
}

/// `580.65.06` of what the system says of its module.
fn build(said: &str) -> Option<String> {
    let is_build = |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok());
    said.split_whitespace().find(is_build).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_shown_by_their_release() {
        assert_eq!(shown(12_090), "CUDA 12.9");
        assert!(described(13_000).starts_with("CUDA 13.0"));
        let said = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 07:22:09 UTC 2025";
        assert_eq!(build(said).as_deref(), Some("580.65.06"));
        assert_eq!((build("580.65.06\n").as_deref(), build("none here.")), (Some("580.65.06"), None));
    }
}
