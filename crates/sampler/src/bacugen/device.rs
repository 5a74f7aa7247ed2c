//! What a generator must know of a device, as data.

use serde::{Deserialize, Serialize};
use tilewright_core::space::Symbols;

/// Limits of a device: the first five can be queried, the others follow from the compute capability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceConstants {
    /// Name, `sm_90` or that of a board.
    pub name: String,
    /// Compute capability, as in `9.0`.
    pub compute_capability: String,
    /// Threads of a warp.
    pub warp_size: u32,
    /// Threads of a block.
    pub max_threads_per_block: u32,
    /// 32-bit registers of a block.
    pub max_registers_per_block: u32,
    /// Bytes of shared memory of a block, by opting in where that gives more.
    pub max_shared_per_block: u32,
    /// Warps resident on a multiprocessor.
    pub max_warps_per_sm: u32,
    /// Blocks resident on a multiprocessor.
    pub max_blocks_per_sm: u32,
    /// 32-bit registers of a multiprocessor.
    pub registers_per_sm: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_per_sm: u32,
}

/// Why a text describes no device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// No JSON of a device.
    #[error("no device constants: {0}")]
    Json(String),
    /// A limit that must not be 0.
    #[error("{0} is 0")]
    Zero(&'static str),
}

/// Compute capability, threads of a block, warps and blocks of a multiprocessor, thousands (1,024) of registers of a
/// multiprocessor and of a block, KiB of shared memory of a multiprocessor and of a block: "Technical Specifications per
/// Compute Capability" of the CUDA programming guide, in its editions from 3.2 to 13.
#[rustfmt::skip]
const CAPABILITIES: [(&str, [u32; 7]); 32] = [
    ("1.0", [512, 24, 8, 8, 8, 16, 16]), ("1.1", [512, 24, 8, 8, 8, 16, 16]),
    ("1.2", [512, 32, 8, 16, 16, 16, 16]), ("1.3", [512, 32, 8, 16, 16, 16, 16]),
    ("2.0", [1024, 48, 8, 32, 32, 48, 48]), ("2.1", [1024, 48, 8, 32, 32, 48, 48]),
    ("3.0", [1024, 64, 16, 64, 64, 48, 48]), ("3.2", [1024, 64, 16, 64, 32, 48, 48]),
    ("3.5", [1024, 64, 16, 64, 64, 48, 48]), ("3.7", [1024, 64, 16, 128, 64, 112, 48]),
    ("5.0", [1024, 64, 32, 64, 64, 64, 48]), ("5.2", [1024, 64, 32, 64, 64, 96, 48]),
    ("5.3", [1024, 64, 32, 64, 32, 64, 48]), ("6.0", [1024, 64, 32, 64, 64, 64, 48]),
    ("6.1", [1024, 64, 32, 64, 64, 96, 48]), ("6.2", [1024, 64, 32, 64, 32, 64, 48]),
    ("7.0", [1024, 64, 32, 64, 64, 96, 96]), ("7.2", [1024, 64, 32, 64, 64, 96, 96]),
    ("7.5", [1024, 32, 16, 64, 64, 64, 64]), ("8.0", [1024, 64, 32, 64, 64, 164, 163]),
    ("8.6", [1024, 48, 16, 64, 64, 100, 99]), ("8.7", [1024, 48, 16, 64, 64, 164, 163]),
    ("8.8", [1024, 48, 16, 64, 64, 164, 163]), ("8.9", [1024, 48, 24, 64, 64, 100, 99]),
    ("9.0", [1024, 64, 32, 64, 64, 228, 227]), ("10.0", [1024, 64, 32, 64, 64, 228, 227]),
    // Thor: 10.1 until CUDA 12.9, 11.0 since.
    ("10.1", [1024, 48, 24, 64, 64, 228, 227]), ("10.3", [1024, 64, 32, 64, 64, 228, 227]),
    ("11.0", [1024, 48, 24, 64, 64, 228, 227]), ("12.0", [1024, 48, 24, 64, 64, 100, 99]),
    ("12.1", [1024, 48, 24, 64, 64, 100, 99]),
    // The paper's device, by its name.
    ("fermi-s2050", [1024, 48, 8, 32, 32, 48, 48]),
];

/// Every device whose constants are known: one for each compute capability from 1.0 to 12.1, and the paper's.
pub fn known_devices() -> Vec<DeviceConstants> {
    let device = |row: &(&str, [u32; 7])| {
        let &(name, [threads, warps, blocks, registers, registers_of_block, shared, shared_of_block]) = row;
        let board = name.starts_with("fermi");
        DeviceConstants {
            name: if board { name.to_owned() } else { format!("sm_{}", name.replace('.', "")) },
            compute_capability: if board { "2.0".to_owned() } else { name.to_owned() },
            warp_size: 32,
            max_threads_per_block: threads,
            max_registers_per_block: registers_of_block * 1024,
            max_shared_per_block: shared_of_block * 1024,
            max_warps_per_sm: warps,
            max_blocks_per_sm: blocks,
            registers_per_sm: registers * 1024,
            shared_per_sm: shared * 1024,
        }
    };
    CAPABILITIES.iter().map(device).collect()
}

impl DeviceConstants {
    /// A known device by its name (`sm_90`, `fermi-s2050`) or its compute capability (`9.0`).
    pub fn known(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        known_devices().into_iter().find(|d| d.name == name || d.compute_capability == name)
    }

    /// Reads the JSON of a device: an object of these fields.
    ///
    /// # Errors
    /// No such object, or a limit of 0.
    pub fn from_json(text: &str) -> Result<Self, DeviceError> {
        let device: Self = serde_json::from_str(text).map_err(|e| DeviceError::Json(e.to_string()))?;
        let limits = [("warp_size", device.warp_size), ("max_warps_per_sm", device.max_warps_per_sm)];
        match limits.into_iter().find(|(_, limit)| *limit == 0) {
            Some((name, _)) => Err(DeviceError::Zero(name)),
            None => Ok(device),
        }
    }

    pub(super) fn symbols(&self) -> Symbols {
        Symbols::new()
            .with("warp_size", i64::from(self.warp_size))
            .with("max_threads_per_block", i64::from(self.max_threads_per_block))
            .with("max_registers_per_block", i64::from(self.max_registers_per_block))
            .with("max_shared_per_block", i64::from(self.max_shared_per_block))
            .with("max_warps_per_sm", i64::from(self.max_warps_per_sm))
            .with("max_blocks_per_sm", i64::from(self.max_blocks_per_sm))
            .with("registers_per_sm", i64::from(self.registers_per_sm))
            .with("shared_per_sm", i64::from(self.shared_per_sm))
    }
}
