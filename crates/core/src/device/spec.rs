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
    pub fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for text in [&self.name, &self.driver, &format!("{:?}", self.kind)] {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        for (name, value) in &self.facts {
            hasher.update(name.as_bytes());
            hasher.update(&[0]);
            hasher.update(&value.to_le_bytes());
        }
        hasher.finalize().to_hex()[..32].to_owned()
    }
}
