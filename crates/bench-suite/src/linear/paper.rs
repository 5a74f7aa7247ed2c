//! Kernels counted as the paper does: from their PTX.

use tilewright_core::counts::{Op, Property as Counted, Space};
use tilewright_core::device::DeviceSpec;
use tilewright_loops::Instance;
use tilewright_loops::host::bytes_touched;
use tilewright_perfmodel_linear::{Part, Property};
use tilewright_ptxgen::loops::count;
use tilewright_ptxgen::target::Target;

/// What is counted beyond the paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PaperTerms {
    /// Passes over the banks of shared memory, instead of loads.
    pub banks: bool,
    /// Accesses of kernels whose data fit into the last cache are properties of their own.
    pub footprint: bool,
}

/// The properties of section 2 on some device.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperColumns {
    target: Target,
    spec: DeviceSpec,
    terms: PaperTerms,
    properties: Vec<Property>,
}

impl PaperColumns {
    /// The properties that any of the instances has. What cannot be counted has none.
    pub fn new<'a>(
        target: Target,
        spec: &DeviceSpec,
        terms: PaperTerms,
        instances: impl IntoIterator<Item = &'a Instance>,
    ) -> Self {
        let mut columns = Self { target, spec: spec.clone(), terms, properties: Vec::new() };
        for instance in instances {
            for (property, _) in columns.named(instance).unwrap_or_default() {
                if !columns.properties.contains(&property) {
                    columns.properties.push(property);
                }
            }
        }
        columns.properties.sort_by(|a, b| (a.part, &a.name).cmp(&(b.part, &b.name)));
        columns
    }

    pub(super) fn properties(&self) -> &[Property] {
        &self.properties
    }

    /// One number for each property; None where the kernel cannot be counted.
    pub(super) fn counts(&self, instance: &Instance) -> Option<Vec<f64>> {
        let named = self.named(instance)?;
        let of = |p: &Property| named.iter().filter(|(n, _)| n == p).map(|(_, c)| c).sum();
        Some(self.properties.iter().map(of).collect())
    }

    fn named(&self, instance: &Instance) -> Option<Vec<(Property, f64)>> {
        let counts = count(instance.kernel(), self.target).ok()?;
        let mut evaluator = counts.evaluator();
        let found: Vec<Counted> = evaluator.properties().to_vec();
        let values = evaluator.eval_by(|name| instance.sizes().get(name).copied()).ok()?;
        let cached = self.terms.footprint
            && self.spec.fact("l2_bytes").is_some_and(|l2| bytes_touched(instance) <= 0.5 * l2 as f64);
        let named = found.iter().zip(values).filter_map(|(p, value)| {
            let part = self.part(p)?;
            let moved = part == Part::Memory && cached;
            let name = if moved { format!("{p} in cache") } else { p.to_string() };
            Some((Property { name, part: if moved { Part::Cache } else { part } }, *value as f64))
        });
        Some(named.collect())
    }

    /// What a property overlaps with; None for what the paper leaves out.
    fn part(&self, p: &Counted) -> Option<Part> {
        match p {
            Counted::Groups | Counted::Constant => Some(Part::Overhead),
            Counted::Threads(Op::Float(..) | Op::Tensor(..)) => Some(Part::Arithmetic),
            Counted::Threads(Op::Barrier) => Some(Part::Local),
            Counted::Threads(Op::Load(Space::Shared, _)) if !self.terms.banks => Some(Part::Local),
            Counted::Passes(_) if self.terms.banks => Some(Part::Local),
            Counted::Threads(Op::Atomic(Space::Global, _)) => Some(Part::Memory),
            Counted::Accesses(Op::Load(Space::Global, _) | Op::Store(Space::Global, _), _) => Some(Part::Memory),
            Counted::Overlap(..) => Some(Part::Memory),
            _ => None,
        }
    }

    /// How much longer the last wave of groups makes a kernel: waves as they are counted over waves as they fill the device.
    pub(super) fn quantised(&self, instance: &Instance) -> f64 {
        let fact = |name: &str| self.spec.fact(name).filter(|f| *f > 0);
        let (Some(multiprocessors), Some(threads), Some(blocks)) =
            (fact("multiprocessors"), fact("threads_per_sm"), fact("blocks_per_sm"))
        else {
            return 1.0;
        };
        let (shared, _) = instance.shared_layout();
        let by_shared = fact("shared_per_sm").filter(|_| shared > 0).map_or(blocks, |s| s / shared.max(1));
        let resident = (threads / instance.threads().max(1)).min(blocks).min(by_shared).max(1) * multiprocessors;
        let waves = instance.groups() as f64 / resident as f64;
        // Less than one wave is latency, which nothing here counts.
        if waves > 1.0 { waves.ceil() / waves } else { 1.0 }
    }
}
