//! The linear model's word for configurations of tunable kernels: what ranks them where nothing was measured of their kernel.

use super::{Columns, HostTerms, paper};
use tilewright_core::computation::Computation;
use tilewright_core::device::DeviceSpec;
use tilewright_core::hint::Hint;
use tilewright_core::kernel::{InputOf, Kernel};
use tilewright_loops::host::{Caches, Operations};
use tilewright_perfmodel_linear::LinearModel;

/// No prediction is below this: weights of either sign can add up to nothing.
const LEAST_SECONDS: f64 = 1e-9;

/// What kernels of a host count their operations with, and the seconds that its model makes of them; None for other devices.
pub fn host_hint(
    model: &LinearModel,
    spec: &DeviceSpec,
) -> Option<(Caches, impl Fn(&Operations) -> f64 + Send + Sync + use<>)> {
    let Columns::Host { caches, .. } = Columns::host(spec, HostTerms::of(model))? else { return None };
    let model = model.clone();
    Some((caches, move |found: &Operations| model.predict_by(|n| found.get(n).copied().unwrap_or(0.0)).seconds))
}

/// A hint for every kernel with symbolic counts, by a model of their properties: for GPUs.
///
/// The last wave of groups counts as if it were full, whatever the model says of others: what a group takes of a
/// multiprocessor is not among the counts.
#[derive(Clone, Debug)]
pub struct SymbolicHint {
    model: LinearModel,
    /// Whether accesses of small problems have weights of their own.
    footprint: bool,
}

impl SymbolicHint {
    /// A hint by this model.
    pub fn new(model: LinearModel) -> Self {
        let footprint = model.weights.iter().any(|w| w.property.name.ends_with(paper::IN_CACHE));
        Self { model, footprint }
    }
}

impl<K: Kernel> Hint<K> for SymbolicHint {
    fn name(&self) -> &str {
        "linear.seconds"
    }

    /// Endless for what has no counts.
    fn seconds(&self, kernel: &K, device: &DeviceSpec, input: &InputOf<K>, config: &K::Config) -> f64 {
        let Some(counts) = kernel.plan(device, input, config).ok().and_then(|plan| kernel.counts(&plan)) else {
            return f64::MAX;
        };
        let words = kernel.computation().words(input);
        let bytes = kernel.computation().work(input).bytes;
        let cached = self.footprint && paper::is_cached(device, bytes);
        let mut evaluator = counts.evaluator();
        let Some(found) = paper::named(&mut evaluator, |size| words.get(size)?.as_int(), cached) else {
            return f64::MAX;
        };
        self.model.predict_by(|name| found.get(name).map_or(0.0, |(_, n)| *n)).seconds.max(LEAST_SECONDS)
    }
}
