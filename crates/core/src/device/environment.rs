//! What a device is used with.

use serde::{Deserialize, Serialize};

/// What a device is used with, for people and for records: none of it is a part of the device's fingerprint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// The driver with its build: `CUDA 13.0, driver 580.65.06`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// What makes machine code of kernels: `ptxas 13.0 (/usr/local/cuda/bin/ptxas)`, or `the driver`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assembler: Option<String>,
    /// Libraries of the device's maker that were found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub libraries: Vec<FoundLibrary>,
    /// Those that cannot be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingLibrary>,
    /// What else was done for the sake of right and comparable results, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A library of a device's maker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundLibrary {
    /// Short name: `cublas`.
    pub name: String,
    /// What the library says of itself.
    pub version: String,
    /// The file it was loaded from.
    pub path: String,
}

/// A library that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingLibrary {
    /// Short name: `cudnn`.
    pub name: String,
    /// Why: not found, or found but not usable.
    pub reason: String,
}

impl Environment {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// A line for each thing that is told.
    pub fn lines(&self) -> Vec<String> {
        let parts = [("driver", &self.driver), ("assembler", &self.assembler)];
        let parts = parts.into_iter().filter_map(|(name, said)| Some(format!("{name}: {}", said.as_ref()?)));
        let found = self.libraries.iter().map(|l| format!("library: {} {} ({})", l.name, l.version, l.path));
        let missing = self.missing.iter().map(|l| format!("no library {}: {}", l.name, l.reason));
        parts.chain(found).chain(missing).chain(self.notes.iter().cloned()).collect()
    }
}
