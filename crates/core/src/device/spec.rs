//! What a device is, apart from running anything on it.

use crate::expr::Value;
use crate::space::Symbols;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a device runs plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// The host CPU.
    Cpu,
    /// A CUDA device.
    Cuda,
    /// Runs programs exactly and counts, never times.
    Emulator,
    /// Recorded times.
    Replay,
}

/// The facts of a device that rules, features and fingerprints read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceSpec {
    /// As on the command line: `cpu`, `cuda:0`, `emulator:sm_80`.
    pub id: String,
    /// Model name as the hardware gives it.
    pub name: String,
    /// How it runs plans.
    pub kind: DeviceKind,
    /// Driver or instruction-set level; a change of it makes tuned results stale.
    pub driver: String,
    /// Stable facts that rules may name: cache sizes in bytes, counts, flags as 0 or 1.
    pub facts: BTreeMap<String, i64>,
    /// Measured rates (flop/s, byte/s). Not part of the fingerprint: they vary from run to run.
    pub measured: BTreeMap<String, f64>,
}

impl DeviceSpec {
    /// A fact by name.
    pub fn fact(&self, name: &str) -> Option<i64> {
        self.facts.get(name).copied()
    }

    /// The facts as symbols for rules.
    pub fn symbols(&self) -> Symbols {
        let mut out = Symbols::new();
        for (name, &value) in &self.facts {
            out.set(name, Value::Int(value));
        }
        out
    }

    /// A hash of everything that makes tuned results valid: name, kind, driver and facts. 32 hexadecimal digits.
    ///
    /// Of a CUDA device the facts that differ between machines of one model are left out or rounded: see [`NOT_ESSENTIAL`].
    pub fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for text in [&self.name, &self.driver, &format!("{:?}", self.kind)] {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        let is_cuda = self.kind == DeviceKind::Cuda;
        let facts = self.facts.iter();
        for (name, value) in facts.filter_map(|(n, v)| Some((n, if is_cuda { identifying(n, *v)? } else { *v }))) {
            hasher.update(name.as_bytes());
            hasher.update(&[0]);
            hasher.update(&value.to_le_bytes());
        }
        hasher.finalize().to_hex()[..32].to_owned()
    }
}

/// Facts of a CUDA device that a driver may refuse to tell, and that no rule needs.
pub const NOT_ESSENTIAL: [&str; 5] =
    ["clock_khz", "l2_bytes", "memory_bus_bits", "memory_clock_khz", "single_to_double"];

/// A fact of a CUDA device as its fingerprint takes it; none where it says nothing of the model. The memory is what the driver left of
/// it, which differs between machines and with error correction: it is rounded to the nearest eighth of the largest power of two in it, so
/// that 79.1 GiB and 79.6 GiB are both 80.
fn identifying(name: &str, value: i64) -> Option<i64> {
    if NOT_ESSENTIAL.contains(&name) {
        return None;
    }
    if name != "memory_bytes" {
        return Some(value);
    }
    let step = value.checked_ilog2().map_or(1, |log| 1i64 << log.saturating_sub(3));
    Some(value.saturating_add(step / 2) / step * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuda(facts: &[(&str, i64)]) -> String {
        let facts = facts.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let (name, driver) = ("NVIDIA H100 80GB HBM3".to_owned(), "CUDA 13.0".to_owned());
        DeviceSpec { id: "cuda:0".into(), name, kind: DeviceKind::Cuda, driver, facts, measured: BTreeMap::new() }
            .fingerprint()
    }

    #[test]
    fn machines_of_one_model_have_one_fingerprint() {
        let mib = |mib: i64| ("memory_bytes", mib << 20);
        let one = cuda(&[("sm", 90), mib(81_089), ("clock_khz", 1_980_000), ("l2_bytes", 50 << 20)]);
        assert_eq!(one, cuda(&[("sm", 90), mib(81_559), ("clock_khz", 1_755_000)]));
        assert_eq!(one, cuda(&[("sm", 90), mib(80_995)]));
        // Another size of memory, and another chip.
        assert_ne!(one, cuda(&[("sm", 90), mib(95_830)]));
        assert_ne!(one, cuda(&[("sm", 90), mib(40_536)]));
        assert_ne!(one, cuda(&[("sm", 80), mib(81_089)]));
        assert_ne!(one, cuda(&[("sm", 90), mib(81_089), ("multiprocessors", 114)]));
    }

    #[test]
    fn memory_is_rounded_to_what_was_sold() {
        let gib = |bytes: i64| identifying("memory_bytes", bytes).unwrap() >> 30;
        for (mib, sold) in [(16_151, 16), (24_218, 24), (40_536, 40), (81_089, 80), (143_156, 144), (182_642, 176)] {
            assert_eq!(gib(mib << 20), sold, "{mib} MiB");
        }
        assert_eq!(
            (identifying("memory_bytes", 0), identifying("memory_bytes", i64::MAX)),
            (Some(0), Some(i64::MAX >> 59 << 59))
        );
    }
}
