//! What is known of the targets that code is generated for.
//!
//! Facts are those of NVIDIA's programming guide (table of compute capabilities) and of the PTX manual (release that brought a
//! target). `multiprocessors` and memory are those of one typical device, for devices that only exist on paper; a real
//! device tells its own.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use tilewright_core::device::{DeviceKind, DeviceSpec};

/// A version of the PTX language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u8, pub u8);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// Limits of one compute capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Facts {
    sm: u32,
    /// First version of PTX that knows it.
    version: Version,
    /// KiB of shared memory that one block may ask for.
    shared_optin: u32,
    /// KiB of shared memory of a multiprocessor.
    shared_per_sm: u32,
    threads_per_sm: u32,
    blocks_per_sm: u32,
    multiprocessors: u32,
    /// GiB of a typical device.
    memory: u32,
}

const fn facts(
    sm: u32,
    version: (u8, u8),
    shared: [u32; 2],
    [threads_per_sm, blocks_per_sm]: [u32; 2],
    [multiprocessors, memory]: [u32; 2],
) -> Facts {
    let [shared_optin, shared_per_sm] = shared;
    let version = Version(version.0, version.1);
    Facts { sm, version, shared_optin, shared_per_sm, threads_per_sm, blocks_per_sm, multiprocessors, memory }
}

const TABLE: [Facts; 15] = [
    facts(50, (4, 0), [48, 64], [2048, 32], [5, 2]),
    facts(52, (4, 1), [48, 96], [2048, 32], [22, 6]),
    facts(60, (5, 0), [48, 64], [2048, 32], [56, 16]),
    facts(61, (5, 0), [48, 96], [2048, 32], [20, 8]),
    facts(70, (6, 0), [96, 96], [2048, 32], [80, 16]),
    facts(72, (6, 1), [96, 96], [2048, 32], [8, 16]),
    facts(75, (6, 3), [64, 64], [1024, 16], [46, 8]),
    facts(80, (7, 0), [163, 164], [2048, 32], [108, 40]),
    facts(86, (7, 1), [99, 100], [1536, 16], [82, 24]),
    facts(87, (7, 4), [163, 164], [1536, 16], [16, 32]),
    facts(89, (7, 8), [99, 100], [1536, 24], [128, 24]),
    facts(90, (7, 8), [227, 228], [2048, 32], [132, 80]),
    facts(100, (8, 6), [227, 228], [2048, 32], [148, 180]),
    facts(120, (8, 7), [99, 100], [1536, 24], [170, 32]),
    facts(121, (8, 8), [99, 100], [1536, 24], [48, 128]),
];

/// A target: `sm_80` and the like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target(Facts);

/// A target that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown target {name:?}: {}", Target::names())]
pub struct UnknownTarget {
    /// What was asked for.
    pub name: String,
}

impl Target {
    /// The oldest one.
    pub const OLDEST: Self = Self(TABLE[0]);

    /// Every target.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.into_iter().map(Self)
    }

    fn names() -> String {
        Self::all().map(|t| t.to_string()).collect::<Vec<_>>().join(" ")
    }

    /// The newest target that code for compute capability `sm` can be generated for: code for an older one runs on it.
    pub fn of_sm(sm: i64) -> Option<Self> {
        TABLE.into_iter().rfind(|f| i64::from(f.sm) <= sm).map(Self)
    }

    /// The compute capability as in `sm_80`.
    pub const fn sm(self) -> u32 {
        self.0.sm
    }

    /// The first version of PTX that knows it.
    pub const fn version(self) -> Version {
        self.0.version
    }

    /// Bytes of shared memory that one block may ask for.
    pub const fn shared_optin(self) -> u32 {
        self.0.shared_optin << 10
    }

    /// The facts that rules and features read; a real device replaces what it knows better.
    pub fn facts(self) -> BTreeMap<String, i64> {
        let f = self.0;
        let pairs = [
            ("sm", f.sm.into()),
            ("warp", 32),
            ("threads_per_block", 1024),
            ("threads_per_sm", f.threads_per_sm.into()),
            ("blocks_per_sm", f.blocks_per_sm.into()),
            ("registers_per_thread", 255),
            ("registers_per_block", 65_536),
            ("registers_per_sm", 65_536),
            ("shared_static", 48 << 10),
            ("shared_optin", self.shared_optin().into()),
            ("shared_per_sm", i64::from(f.shared_per_sm) << 10),
            ("grid_x", i32::MAX.into()),
            ("grid_y", 65_535),
            ("grid_z", 65_535),
            ("multiprocessors", f.multiprocessors.into()),
            ("memory_bytes", i64::from(f.memory) << 30),
        ];
        pairs.into_iter().map(|(n, v)| (n.to_owned(), v)).collect()
    }

    /// A device of this target that only exists on paper: for the emulator, and for code that is generated ahead.
    pub fn spec(self) -> DeviceSpec {
        DeviceSpec {
            id: format!("emulator:{self}"),
            name: format!("typical {self}"),
            kind: DeviceKind::Emulator,
            driver: format!("ptx {}", self.version()),
            facts: self.facts(),
            measured: BTreeMap::new(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.0.sm)
    }
}

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(text: &str) -> Result<Self, UnknownTarget> {
        Self::all().find(|t| t.to_string() == text).ok_or_else(|| UnknownTarget { name: text.to_owned() })
    }
}
