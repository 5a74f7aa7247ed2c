//! Kernels counted as the paper does, and what a GPU adds to that.

use std::collections::BTreeSet;
use tilewright_core::device::DeviceSpec;
use tilewright_loops::Instance;
use tilewright_loops::host::bytes_touched;
use tilewright_loops::properties::{Properties, properties};
use tilewright_perfmodel_linear::{Part, Property};

/// The part of a second-level cache that data may take to be found there.
const CACHED: f64 = 0.5;

/// The properties of section 2.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperColumns {
    properties: Vec<Property>,
    spec: DeviceSpec,
    /// Whether accesses of kernels whose data fit into the last cache are properties of their own: a term beyond the paper.
    footprint: bool,
}

impl PaperColumns {
    /// The properties that any of the instances has.
    pub fn new<'a>(spec: &DeviceSpec, footprint: bool, instances: impl IntoIterator<Item = &'a Instance>) -> Self {
        let mut columns = Self { properties: Vec::new(), spec: spec.clone(), footprint };
        let names: BTreeSet<String> = instances.into_iter().flat_map(|i| columns.named(i).into_keys()).collect();
        let property = |name: String| {
            let part = part(&name);
            Property { name, part }
        };
        columns.properties = names.into_iter().map(property).collect();
        columns
    }

    pub(super) fn properties(&self) -> &[Property] {
        &self.properties
    }

    pub(super) fn counts(&self, instance: &Instance) -> Vec<f64> {
        let found = self.named(instance);
        self.properties.iter().map(|p| found.get(&p.name).copied().unwrap_or(0.0)).collect()
    }

    fn named(&self, instance: &Instance) -> Properties {
        let found = properties(instance);
        let l2 = self.spec.fact("l2_bytes").unwrap_or(0) as f64;
        if !self.footprint || bytes_touched(instance) > CACHED * l2 {
            return found;
        }
        let moved = |(name, n): (String, f64)| (if part(&name) == Part::Memory { name + " in cache" } else { name }, n);
        found.into_iter().map(moved).collect()
    }

    /// How much longer the last wave of groups makes a kernel: waves as they are counted over waves as they fill the device. 1
    /// where the device does not tell how many groups it runs at once.
    pub(super) fn quantised(&self, instance: &Instance) -> f64 {
        let fact = |name: &str| self.spec.fact(name).filter(|f| *f > 0);
        let (Some(multiprocessors), Some(threads), Some(blocks)) =
            (fact("multiprocessors"), fact("threads_per_sm"), fact("blocks_per_sm"))
        else {
            return 1.0;
        };
        let (shared, _) = instance.shared_layout();
        let by_shared = fact("shared_per_sm").filter(|_| shared > 0).map_or(blocks, |s| s / shared);
        let resident = (threads / instance.threads().max(1)).min(blocks).min(by_shared).max(1) * multiprocessors;
        let waves = instance.groups() as f64 / resident as f64;
        // Less than one wave is latency, which nothing here counts.
        if waves > 1.0 { waves.ceil() / waves } else { 1.0 }
    }
}

/// What a property overlaps with.
fn part(name: &str) -> Part {
    match name.split('.').next() {
        Some("constant" | "groups" | "barrier") => Part::Overhead,
        Some("div" | "special" | "exp") => Part::Special,
        Some("load") if name.starts_with("load.shared") => Part::Local,
        Some("load" | "store" | "overlap" | "atomic") => Part::Memory,
        _ => Part::Arithmetic,
    }
}
