//! Exact dynamic counts. What is counted is written down in the crate's documentation.

use crate::text::Place;
use serde::Serialize;
use std::collections::BTreeMap;
pub use tilewright_core::counts::{FloatOp, Op as Class, Precision, Stride};

/// How often something was executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Times that a warp came to the instruction with at least one lane, whatever its guard said.
    pub issued: u64,
    /// Lanes that executed it.
    pub threads: u64,
    /// Lanes that came to it and whose guard did not hold.
    pub predicated_off: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.issued += other.issued;
        self.threads += other.threads;
        self.predicated_off += other.predicated_off;
    }
}

/// How the warps of a memory instruction touched memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Warp accesses by [`Stride`], in the order of [`Stride::ALL`]. Their sum is the number of warp accesses with at
    /// least one executing lane.
    pub strides: [u64; 6],
    /// Warp accesses whose lanes do not all have the same step; their stride class is that of the most frequent one.
    pub irregular: u64,
    /// Bytes that executing lanes read or wrote.
    pub bytes: u64,
    /// Global and constant memory: distinct 32-byte sectors of each warp access. Shared memory: passes over the 32 banks.
    pub transactions: u64,
    /// Distinct bytes of each warp access, added up. Over 32 times the transactions this is how well accesses to global
    /// memory use their sectors.
    pub distinct_bytes: u64,
}

impl Traffic {
    fn add(&mut self, other: &Self) {
        for (to, from) in self.strides.iter_mut().zip(other.strides) {
            *to += from;
        }
        self.irregular += other.irregular;
        self.bytes += other.bytes;
        self.transactions += other.transactions;
        self.distinct_bytes += other.distinct_bytes;
    }

    /// Warp accesses with at least one executing lane.
    pub fn accesses(&self) -> u64 {
        self.strides.iter().sum()
    }

    /// Warp accesses of a class.
    pub fn stride(&self, class: Stride) -> u64 {
        self.strides[class as usize]
    }
}

/// The counts of one instruction of the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Site {
    /// Where it stands.
    pub place: Place,
    /// Its name.
    pub opcode: String,
    /// What it counts as.
    pub class: Class,
    /// How often it was executed.
    pub tally: Tally,
    /// What it moved, for loads, stores, atomics and copies.
    pub traffic: Option<Traffic>,
}

/// The bytes of one buffer that were touched over a launch: by one instruction, or by all that load or all that store.
/// What they are exactly is written in the crate's documentation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Footprint {
    /// The instruction, as its place in [`Counts::sites`]; `None` for all instructions of that direction.
    pub site: Option<usize>,
    /// The buffer's name.
    pub buffer: String,
    /// Stores and atomics, or loads and copies.
    pub is_store: bool,
    /// Bytes that lanes touched, each counted once.
    pub used: u64,
    /// The same with the gaps that strides leave.
    pub spanned: u64,
}

impl Footprint {
    /// The data utilisation ratio, at most 1.
    pub fn utilisation(&self) -> f64 {
        if self.spanned == 0 { 1.0 } else { self.used as f64 / self.spanned as f64 }
    }

    /// The amortised stride fraction of an access with that stride: `(0, 1)` and `(1, 1)` for uniform and unit strides,
    /// whatever is used; else the stride, at most 4, below the ratio in as many steps, rounded up.
    pub fn amortised(&self, stride: Stride) -> (u64, u64) {
        let below = match (stride, stride.steps()) {
            (Stride::Uniform, _) => return (0, 1),
            (_, 0) => return (1, 1),
            (_, steps) => u64::from(steps),
        };
        let above = (u128::from(self.used) * u128::from(below)).div_ceil(u128::from(self.spanned.max(1)));
        (above.clamp(1, u128::from(below)) as u64, below)
    }
}

/// The counts of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Every instruction of the kernel in the order of the text, executed or not.
    pub sites: Vec<Site>,
}

impl Counts {
    /// Sums by class; classes that were never issued are left out.
    pub fn by_class(&self) -> BTreeMap<Class, Tally> {
        let mut out: BTreeMap<Class, Tally> = BTreeMap::new();
        for site in self.sites.iter().filter(|s| s.tally.issued > 0) {
            out.entry(site.class).or_default().add(site.tally);
        }
        out
    }

    /// Sums of the memory traffic by class.
    pub fn traffic_by_class(&self) -> BTreeMap<Class, Traffic> {
        let mut out: BTreeMap<Class, Traffic> = BTreeMap::new();
        for site in &self.sites {
            if let Some(traffic) = site.traffic.filter(|t| t.accesses() > 0) {
                out.entry(site.class).or_default().add(&traffic);
            }
        }
        out
    }

    /// The sum of all instructions.
    pub fn total(&self) -> Tally {
        let mut out = Tally::default();
        for site in &self.sites {
            out.add(site.tally);
        }
        out
    }
}

/// What a worker counts at one instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counter {
    pub(crate) tally: Tally,
    pub(crate) traffic: Traffic,
}

impl Counter {
    pub(crate) fn add(&mut self, other: &Self) {
        self.tally.add(other.tally);
        self.traffic.add(&other.traffic);
    }
}
