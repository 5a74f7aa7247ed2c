//! Kernels counted as the paper does, and what a GPU adds to that.

use std::collections::BTreeMap;
use tilewright_core::counts::{Counts, Evaluator, FloatOp, Op, Property as Counted, Space};
use tilewright_core::device::DeviceSpec;
use tilewright_loops::host::bytes_touched;
use tilewright_loops::{Instance, LoopKernel};
use tilewright_perfmodel_linear::{IN_CACHE, Part, Property, is_cached};
use tilewright_ptxgen::loops::{LoopCountError, count};
use tilewright_ptxgen::target::Target;

/// What kernels are counted for on a device that is no GPU: it only matters which instructions there are.
const TYPICAL: i64 = 80;

/// The properties of section 2, by the symbolic counts of the kernels' code.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperColumns {
    properties: Vec<Property>,
    spec: DeviceSpec,
    /// Whether accesses of kernels whose data fit into the last cache are properties of their own: a term beyond the paper.
    footprint: bool,
    /// Each kernel's, counted once for all of its sizes.
    counts: Vec<(LoopKernel, Counts)>,
}

impl PaperColumns {
    /// The properties that any of the instances has.
    ///
    /// # Errors
    /// A kernel that the counter has no form for.
    pub fn new<'a>(
        spec: &DeviceSpec,
        footprint: bool,
        instances: impl IntoIterator<Item = &'a Instance>,
    ) -> Result<Self, LoopCountError> {
        let mut columns = Self { properties: Vec::new(), spec: spec.clone(), footprint, counts: Vec::new() };
        let mut names: BTreeMap<String, Part> = BTreeMap::new();
        for instance in instances {
            if columns.known(instance.kernel()).is_none() {
                let counts = columns.count(instance.kernel())?;
                columns.counts.push((instance.kernel().clone(), counts));
            }
            names.extend(columns.named(instance).into_iter().map(|(name, (part, _))| (name, part)));
        }
        columns.properties = names.into_iter().map(|(name, part)| Property { name, part }).collect();
        Ok(columns)
    }

    /// The same kernels, counted by these properties.
    pub(super) fn with(self, properties: Vec<Property>) -> Self {
        Self { properties, ..self }
    }

    pub(super) fn properties(&self) -> &[Property] {
        &self.properties
    }

    /// Not a number where a kernel that was not there at first has no counts: a table refuses such a row by its name.
    pub(super) fn counts(&self, instance: &Instance) -> Vec<f64> {
        let found = self.named(instance);
        let nothing = if found.is_empty() { f64::NAN } else { 0.0 };
        self.properties.iter().map(|p| found.get(&p.name).map_or(nothing, |(_, n)| *n)).collect()
    }

    fn known(&self, kernel: &LoopKernel) -> Option<&Counts> {
        self.counts.iter().find(|(k, _)| k == kernel).map(|(_, counts)| counts)
    }

    fn count(&self, kernel: &LoopKernel) -> Result<Counts, LoopCountError> {
        let target = self.spec.fact("sm").and_then(Target::of_sm).or_else(|| Target::of_sm(TYPICAL));
        count(kernel, target.unwrap_or_else(|| unreachable!("sm_{TYPICAL} is a target")))
    }

    /// Numbers by name, with what their time overlaps with.
    fn named(&self, instance: &Instance) -> BTreeMap<String, (Part, f64)> {
        let new = || self.count(instance.kernel()).unwrap_or_default().evaluator();
        let mut evaluator = self.known(instance.kernel()).map_or_else(new, Counts::evaluator);
        let cached = self.footprint && is_cached(&self.spec, bytes_touched(instance));
        named(&mut evaluator, |size| instance.sizes().get(size).copied(), cached).unwrap_or_default()
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

/// Numbers that are not zero by name, with what their time overlaps with; None where a size is missing or too large.
fn named(
    evaluator: &mut Evaluator,
    size: impl Fn(&str) -> Option<i64>,
    cached: bool,
) -> Option<BTreeMap<String, (Part, f64)>> {
    let values = evaluator.eval_by(size).ok()?.to_vec();
    let named = |(property, value): (&Counted, i64)| {
        let part = part(property)?;
        let place = if cached && part == Part::Memory { IN_CACHE } else { "" };
        Some((format!("{property}{place}"), (part, value as f64)))
    };
    Some(evaluator.properties().iter().zip(values).filter(|(_, n)| *n != 0).filter_map(named).collect())
}

/// What a property of section 2 overlaps with; `None` for what the paper does not count. Beyond the paper, loads of shared memory
/// count by the passes that their strides over the banks take.
fn part(property: &Counted) -> Option<Part> {
    match property {
        Counted::Constant | Counted::Groups | Counted::Threads(Op::Barrier) => Some(Part::Overhead),
        Counted::Threads(Op::Float(FloatOp::Div | FloatOp::Special, _)) => Some(Part::Special),
        Counted::Threads(Op::Float(FloatOp::Add | FloatOp::Mul | FloatOp::Fma, _) | Op::Tensor(..)) => {
            Some(Part::Arithmetic)
        }
        Counted::Passes(Op::Load(Space::Shared, _) | Op::MatrixLoad(_)) => Some(Part::Local),
        Counted::Accesses(op, _) => {
            let global = matches!(op, Op::Load(Space::Global, _) | Op::Store(Space::Global, _));
            let global = global || matches!(op, Op::Atomic(Space::Global, _) | Op::AsyncCopy(_));
            global.then_some(Part::Memory)
        }
        Counted::Overlap(..) => Some(Part::Memory),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_loops::library;

    fn of(kernel: LoopKernel, sizes: &[(&'static str, i64)]) -> BTreeMap<String, f64> {
        let instance = Instance::new(kernel, &sizes.iter().copied().collect()).unwrap();
        let spec = Target::of_sm(TYPICAL).unwrap().spec();
        let columns = PaperColumns::new(&spec, false, [&instance]).unwrap();
        let names = columns.properties().iter().map(|p| p.name.clone());
        names.zip(columns.counts(&instance)).collect()
    }

    #[test]
    fn strides_are_amortised_by_what_is_used_between_them() {
        let filled = of(library::strided_sums(3, 128).unwrap(), &[("n", 256)]);
        assert_eq!(filled.get("load.global.32@3/3"), Some(&(3.0 * 256.0 * 8.0)), "{filled:?}");
        let gaps = of(library::scale_and_add(2, 128).unwrap(), &[("n", 256)]);
        assert_eq!(gaps.get("load.global.32@1/2"), Some(&16.0), "{gaps:?}");
        assert_eq!(gaps.get("store.global.32@1/2"), Some(&8.0));
        assert_eq!(gaps.get("overlap.global.32@1/2"), Some(&8.0));
        let far = of(library::uncoalesced(16, 128).unwrap(), &[("n", 128), ("k", 2)]);
        assert_eq!(far.get("load.global.32@1/>4"), Some(&8.0), "{far:?}");
    }

    #[test]
    fn a_tiled_product_counts_its_tiles() {
        let p = of(library::matmul((16, 16)).unwrap(), &[("n", 64), ("m", 32), ("l", 48)]);
        let products = 64.0 * 32.0 * 48.0;
        assert_eq!(p.get("fma.f32"), Some(&products), "{p:?}");
        assert_eq!(p.get("barrier"), Some(&(64.0 * 48.0 * 2.0 * 2.0)));
        assert_eq!(p.get("groups"), Some(&12.0));
        assert!(p.get("load.shared.32/passes").is_some_and(|n| *n >= 2.0 * products / 32.0));
    }
}
