//! What kernels are counted as.

use super::paper::PaperColumns;
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_loops::Instance;
use tilewright_loops::host::{Caches, OPERATIONS, operations};
use tilewright_loops::library::Case;
use tilewright_perfmodel_linear::{Part, Property, Row};

/// Which of a host's columns are used: each is a term beyond the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostTerms {
    /// Lines that caches move, by working sets.
    pub footprint: bool,
    /// Chains of operations that wait for each other. Nothing to add up: they only show where parts overlap.
    pub chains: bool,
}

/// The columns of a device.
#[derive(Clone, Debug, PartialEq)]
pub enum Columns {
    /// Operations of a host with its caches.
    Host {
        /// Sizes of the caches.
        caches: Caches,
        /// Threads of the device.
        threads: f64,
        /// Which columns.
        terms: HostTerms,
    },
    /// Properties of the paper, whatever the device.
    Paper(PaperColumns),
}

impl Columns {
    /// The columns of a host, from the facts of its device; None for other devices.
    pub fn host(spec: &DeviceSpec, terms: HostTerms) -> Option<Self> {
        if spec.kind != DeviceKind::Cpu {
            return None;
        }
        let threads = spec.fact("threads").unwrap_or(1).max(1) as f64;
        Some(Self::Host { caches: Caches::of(spec), threads, terms })
    }

    /// The properties, in the order of rows.
    pub fn properties(&self) -> Vec<Property> {
        match self {
            Self::Host { terms, .. } => names(*terms).map(|n| Property { name: n.to_owned(), part: part(n) }).collect(),
            Self::Paper(columns) => columns.properties().to_vec(),
        }
    }

    /// The counts of an instance.
    pub fn counts(&self, instance: &Instance) -> Vec<f64> {
        match self {
            Self::Paper(columns) => columns.counts(instance),
            Self::Host { caches, threads, terms } => {
                let found = operations(instance, caches);
                // The thread with most groups is waited for; launching is nobody's share.
                let share = (instance.groups() as f64 / threads).ceil() / instance.groups() as f64;
                let count = |n: &'static str| {
                    let count = found.get(n).copied().unwrap_or(0.0);
                    if n == "constant" { count } else { count * share }
                };
                names(*terms).map(count).collect()
            }
        }
    }

    /// How much longer its last wave of groups makes an instance.
    pub fn quantised(&self, instance: &Instance) -> f64 {
        match self {
            // The share of the busiest thread is in the counts.
            Self::Host { .. } => 1.0,
            Self::Paper(columns) => columns.quantised(instance),
        }
    }

    /// The row of a measured case.
    pub fn row(&self, case: &Case, time_s: f64) -> Row {
        let (name, quantised) = (super::case_name(case), self.quantised(&case.instance));
        Row { name, counts: self.counts(&case.instance), quantised, time_s }
    }
}

fn names(terms: HostTerms) -> impl Iterator<Item = &'static str> {
    let wanted = move |n: &&str| (terms.footprint || !is_traffic(n)) && (terms.chains || *n != "chain");
    OPERATIONS.into_iter().filter(wanted)
}

pub(super) fn is_traffic(name: &str) -> bool {
    ["L2 ", "L3 ", "memory "].iter().any(|level| name.starts_with(level))
}

fn part(name: &str) -> Part {
    match name {
        "constant" | "groups" | "regions" | "lane steps" => Part::Overhead,
        // A turn of a loop waits for what it carries on to the next.
        "chain" | "iterations" => Part::Latency,
        n if n.ends_with(" div") || n.ends_with(" sqrt") => Part::Special,
        "loads" | "broadcasts" | "single loads" | "stores" | "single stores" | "atomics" => Part::Local,
        n if is_traffic(n) => Part::Memory,
        _ => Part::Arithmetic,
    }
}
