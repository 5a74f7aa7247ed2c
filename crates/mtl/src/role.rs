//! What a device feature is about, told from its name: tables of different people name the same facts differently.

use serde::Serialize;

/// The part of a device that a feature describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Bytes a second from memory.
    Bandwidth,
    /// Clock of the memory.
    MemoryClock,
    /// Bits of the memory's bus.
    BusWidth,
    /// Bytes of the last cache before memory.
    Cache,
    /// Bytes of memory.
    Memory,
    /// Scratchpad of a block of threads: its size or its bandwidth.
    Shared,
    /// Cost or rate of atomic operations.
    Atomic,
    /// Single-precision operations a second.
    Flops32,
    /// Double-precision operations a second.
    Flops64,
    /// Clock of the cores.
    Clock,
    /// Lanes, or cores.
    Cores,
    /// What runs blocks of threads: multiprocessors, compute units, cores of a CPU.
    Multiprocessors,
    /// What no rule recognises, and what does not make a device faster: years, names, copy engines.
    Other,
}

impl Role {
    /// The role of a feature of this name.
    pub fn of(name: &str) -> Self {
        let name = name.to_lowercase();
        let words: Vec<&str> = name.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
        let has = |parts: &[&str]| parts.iter().any(|p| name.contains(p));
        let word = |all: &[&str]| words.iter().any(|w| all.contains(w));
        let memory = has(&["mem", "dram", "hbm"]);
        let shared = has(&["shared", "scratch"]) || word(&["lds", "smem"]);
        match () {
            () if has(&["atomic"]) => Self::Atomic,
            () if shared => Self::Shared,
            () if has(&["flop"]) && (has(&["64", "double"]) || word(&["dp"])) => Self::Flops64,
            () if has(&["flop"]) => Self::Flops32,
            () if has(&["cache"]) || word(&["l2", "l3", "llc"]) => Self::Cache,
            () if has(&["bandwidth", "gbps", "gb_s", "bytes_per_s"]) || word(&["bw", "stream"]) => Self::Bandwidth,
            () if has(&["bus"]) => Self::BusWidth,
            () if memory && has(&["clock", "speed", "mhz"]) => Self::MemoryClock,
            () if memory => Self::Memory,
            () if has(&["clock", "mhz", "ghz", "frequency"]) => Self::Clock,
            () if has(&["multiproc", "compute_unit"]) || word(&["sm", "sms", "cu", "cus", "threads"]) => {
                Self::Multiprocessors
            }
            () if has(&["core", "lanes", "simd", "vec"]) => Self::Cores,
            () => Self::Other,
        }
    }

    /// Whether inputs can be measured by it: a size over it is a time, a number of rounds, or a share of what fits.
    pub fn measures_inputs(self) -> bool {
        matches!(self, Self::Bandwidth | Self::Cache | Self::Cores | Self::Multiprocessors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_the_paper_and_of_others_are_recognised() {
        for (name, role) in [
            ("global_mem", Role::Memory),
            ("cuda_cores", Role::Cores),
            ("clock_rate", Role::Clock),
            ("mem_clock_rate", Role::MemoryClock),
            ("mem_bus_width", Role::BusWidth),
            ("l2_cache_size", Role::Cache),
            ("shared_mem_per_block", Role::Shared),
            ("peak_gbps", Role::Bandwidth),
            ("peak_gflops_sp", Role::Flops32),
            ("peak_gflops_dp", Role::Flops64),
            ("shared_atomic", Role::Atomic),
            ("global_atomic", Role::Atomic),
            ("multiprocessors", Role::Multiprocessors),
            ("mem_bandwidth_gbps", Role::Bandwidth),
            ("mem_bus_bits", Role::BusWidth),
            ("l2_kib", Role::Cache),
            ("peak_gflops_f64", Role::Flops64),
            ("clock_mhz", Role::Clock),
            ("memory_bytes_per_s", Role::Bandwidth),
            ("memory_bytes", Role::Memory),
            ("l3_bytes", Role::Cache),
            ("year", Role::Other),
            ("copy_engines", Role::Other),
        ] {
            assert_eq!(Role::of(name), role, "{name}");
        }
    }
}
