//! What is known of the targets that code is generated for.
//!
//! Facts are those of NVIDIA's programming guide (table of compute capabilities) and of the PTX manual (release that brought a
//! target). `multiprocessors` and memory are those of one typical device, for devices that only exist on paper; a real
//! device tells its own.

use std::cmp::Ordering;
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

/// Which features beyond those of all later devices code for a target may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Features {
    /// None: the code runs on every later device too.
    Common,
    /// Those of its family (`f`): the code runs on later devices of the family.
    Family,
    /// Those of its architecture (`a`): the code runs on no other.
    Architecture,
}

impl Features {
    const ALL: [Self; 3] = [Self::Common, Self::Family, Self::Architecture];

    const fn suffix(self) -> &'static str {
        match self {
            Self::Common => "",
            Self::Family => "f",
            Self::Architecture => "a",
        }
    }

    /// The first version of PTX that knows them on a target, where it has them (PTX manual, `.target`).
    const fn version(self, facts: &Facts) -> Option<Version> {
        match self {
            Self::Common => Some(facts.version),
            Self::Architecture if facts.sm == 90 => Some(Version(8, 0)),
            Self::Architecture if facts.sm >= 100 => Some(facts.version),
            Self::Family if facts.sm >= 100 => Some(Version(8, 8)),
            _ => None,
        }
    }
}

/// A target: `sm_80`, `sm_90a` and the like. Ordered by compute capability, then by features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    facts: Facts,
    features: Features,
}

impl Ord for Target {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.sm(), self.features).cmp(&(other.sm(), other.features))
    }
}

impl PartialOrd for Target {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A target that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown target {name:?}: it is one of {}", Target::names())]
pub struct UnknownTarget {
    /// What was asked for.
    pub name: String,
}

impl Target {
    /// The oldest one.
    pub const OLDEST: Self = Self::common(TABLE[0]);

    const fn common(facts: Facts) -> Self {
        Self { facts, features: Features::Common }
    }

    /// Every target whose code runs on all later devices.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.into_iter().map(Self::common)
    }

    /// The same with more features, where it has them.
    #[must_use]
    pub fn with(self, features: Features) -> Option<Self> {
        features.version(&self.facts).map(|_| Self { features, ..self })
    }

    /// What code for it may use beyond the common.
    pub const fn features(self) -> Features {
        self.features
    }

    /// Whether a device of compute capability `sm` runs code for it.
    pub const fn runs_on(self, sm: u32) -> bool {
        match self.features {
            Features::Common => self.facts.sm <= sm,
            Features::Family => self.facts.sm <= sm && self.facts.sm / 10 == sm / 10,
            Features::Architecture => self.facts.sm == sm,
        }
    }

    fn names() -> String {
        Self::all().map(|t| t.to_string()).collect::<Vec<_>>().join(" ")
    }

    /// The newest target that code for compute capability `sm` can be generated for: code for an older one runs on it.
    pub fn of_sm(sm: i64) -> Option<Self> {
        TABLE.into_iter().rfind(|f| i64::from(f.sm) <= sm).map(Self::common)
    }

    /// What code for a device is made for. The rule `target` of every kernel lets no older device pass.
    pub(crate) fn of(device: &DeviceSpec) -> Self {
        device.fact("sm").and_then(Self::of_sm).unwrap_or(Self::OLDEST)
    }

    /// The compute capability as in `sm_80`.
    pub const fn sm(self) -> u32 {
        self.facts.sm
    }

    /// The first version of PTX that knows it.
    pub fn version(self) -> Version {
        self.features.version(&self.facts).unwrap_or(self.facts.version)
    }

    /// Bytes of shared memory that one block may ask for.
    pub const fn shared_optin(self) -> u32 {
        self.facts.shared_optin << 10
    }

    /// The facts that rules and features read; a real device replaces what it knows better.
    pub fn facts(self) -> BTreeMap<String, i64> {
        let f = self.facts;
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
        write!(f, "sm_{}{}", self.facts.sm, self.features.suffix())
    }
}

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(text: &str) -> Result<Self, UnknownTarget> {
        let all = Self::all().flat_map(|t| Features::ALL.into_iter().filter_map(move |f| t.with(f)));
        all.into_iter().find(|t| t.to_string() == text).ok_or_else(|| UnknownTarget { name: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_a_part_of_the_name() {
        let of = |text: &str| text.parse::<Target>();
        for name in ["sm_80", "sm_90", "sm_90a", "sm_100", "sm_100f", "sm_100a", "sm_120f", "sm_121a"] {
            assert_eq!(of(name).unwrap().to_string(), name);
        }
        for name in ["sm_80a", "sm_90f", "sm_91", "sm_90b", "sm_90aa", "90a", "sm_"] {
            assert_eq!(of(name), Err(UnknownTarget { name: name.to_owned() }));
        }
        let (plain, own) = (of("sm_90").unwrap(), of("sm_90a").unwrap());
        assert!(plain < own && own < of("sm_100").unwrap() && of("sm_100f").unwrap() < of("sm_100a").unwrap());
        assert_eq!((plain.version(), own.version()), (Version(7, 8), Version(8, 0)));
        assert_eq!(plain.facts(), own.facts());
        assert_eq!(plain.with(own.features()), Some(own));
        assert!(plain.runs_on(100) && !own.runs_on(100) && own.runs_on(90));
        let family = of("sm_100f").unwrap();
        assert!(family.runs_on(103) && !family.runs_on(120) && !family.runs_on(90));
    }
}
