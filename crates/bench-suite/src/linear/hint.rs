//! The linear model's word for configurations of tunable kernels: what ranks them where nothing was measured of their kernel.

use super::{Columns, HostTerms, paper};
use tilewright_core::computation::Computation;
use tilewright_core::device::DeviceSpec;
use tilewright_core::hint::Hint;
use tilewright_core::kernel::{InputOf, Kernel};
use tilewright_core::space::Values;
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
    fn seconds(&self, kernel: &K, device: &DeviceSpec, input: &InputOf<K>, at: &Values<'_>) -> f64 {
        let legal = at.space().check(at.point()).ok();
        let Some(counts) = legal.and_then(|at| kernel.counts(&kernel.plan(device, input, &at))) else {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use tilewright_core::hint::{HintAlone, Hinted};
    use tilewright_core::predictor::Predictor;
    use tilewright_core::problem::{Bound, Problem};
    use tilewright_core::space::Config;
    use tilewright_loops::library::{Scale, test_set};
    use tilewright_ops::gemm::Gemm;
    use tilewright_perfmodel_linear::{Part, Property, Report, Sharpness, Weight};
    use tilewright_ptxgen::gemm::SimtGemm;
    use tilewright_ptxgen::target::Target;
    use tilewright_sampler::Exact;
    use tilewright_search::{Sampling, sampled};

    fn model(weights: &[(&str, Part, f64)]) -> LinearModel {
        let weight = |&(name, part, seconds): &(&str, Part, f64)| {
            let property = Property { name: name.to_owned(), part };
            Weight { property, seconds, uncertainty: 0.0, measured: true }
        };
        let weights = weights.iter().map(weight).collect();
        LinearModel {
            device: String::new(),
            weights,
            sharpness: Sharpness::SUM,
            quantised: false,
            report: Report::default(),
        }
    }

    fn problem(words: &str, model: LinearModel) -> Bound<Hinted<SimtGemm, SymbolicHint>> {
        let input = Gemm.parse(&Config::parse(words).unwrap()).unwrap();
        let mut spec = Target::of_sm(90).unwrap().spec();
        // A target has no cache of its own.
        spec.facts.insert("l2_bytes".into(), 50 << 20);
        let spec = Arc::new(spec);
        Bound::new(Arc::new(Hinted::new(SimtGemm::new(), SymbolicHint::new(model))), spec, input).unwrap()
    }

    /// Values of the counts of a problem's default.
    fn counted(problem: &dyn Problem) -> BTreeMap<String, f64> {
        counted_at(problem, &problem.default_point().unwrap())
    }

    fn counted_at(problem: &dyn Problem, point: &[u16]) -> BTreeMap<String, f64> {
        let counts = problem.counts(&problem.space().check(point).unwrap()).unwrap();
        let (input, mut evaluator) = (problem.input(), counts.evaluator());
        let names: Vec<String> = evaluator.properties().iter().map(ToString::to_string).collect();
        let values = evaluator.eval_by(|name| input.get(name)?.as_int()).unwrap();
        names.into_iter().zip(values.iter().map(|v| *v as f64)).collect()
    }

    fn hinted(problem: &dyn Problem) -> f64 {
        let mut row = Vec::new();
        problem.config_features(&problem.default_point().unwrap(), &mut row);
        f64::from(*row.last().unwrap())
    }

    #[test]
    fn symbolic_counts_times_weights_are_the_word_on_a_gpu() {
        let model = model(&[
            ("constant", Part::Overhead, 1e-6),
            ("groups", Part::Overhead, 1e-9),
            ("fma.f32", Part::Arithmetic, 1e-12),
        ]);
        let problem = problem("m=300,n=200,k=100", model);
        let counts = counted(&problem);
        let expected = 1e-6 + 1e-9 * counts["groups"] + 1e-12 * counts["fma.f32"];
        assert!((hinted(&problem) / expected - 1.0).abs() < 1e-5, "{} {expected}", hinted(&problem));
        assert!(counts["fma.f32"] >= 300.0 * 200.0 * 100.0, "{counts:?}");
    }

    #[test]
    fn what_a_cache_holds_has_weights_of_its_own() {
        let stores = |words: &str| {
            let all = counted(&problem(words, model(&[])));
            let of_warps = |name: &String| name.starts_with("store.global") && name.ends_with("@1");
            all.into_iter().filter(|(name, _)| of_warps(name)).collect::<BTreeMap<String, f64>>()
        };
        let of_each = |words: &str| {
            let stores = stores(words);
            let cached: Vec<String> = stores.keys().map(|name| format!("{name}{}", paper::IN_CACHE)).collect();
            let far = stores.keys().map(|name| (name.as_str(), Part::Memory, 1e-9));
            let near = cached.iter().map(|name| (name.as_str(), Part::Memory, 1e-12));
            let weights: Vec<(&str, Part, f64)> = far.chain(near).collect();
            hinted(&problem(words, model(&weights))) / stores.values().sum::<f64>()
        };
        let (small, large) = (of_each("m=512,n=512,k=512"), of_each("m=16384,n=16384,k=512"));
        assert!((small / 1e-12 - 1.0).abs() < 1e-3 && (large / 1e-9 - 1.0).abs() < 1e-3, "{small} {large}");
    }

    #[test]
    fn a_sample_is_ranked_by_it() {
        let model = model(&[("groups", Part::Overhead, 1e-6), ("barrier", Part::Overhead, 1e-12)]);
        let problem = problem("m=640,n=384,k=64", model);
        let alone = HintAlone::new(problem.schema().clone()).unwrap();
        assert_eq!(alone.kind(), "linear");
        let scorer = alone.bind(&problem).unwrap();
        let how = Sampling { points: 8, climbs: 0, ..Sampling::default() };
        let found = sampled(&problem, &*scorer, &mut Exact::new(), 3, &how, 1).unwrap().ranked;
        let all: Vec<f64> = found.points.iter().map(|(p, _)| counted_at(&problem, p)["groups"]).collect();
        assert!(all.is_sorted() && found.points[0].1 < 1e-3, "{all:?} {:?}", found.points);
    }

    #[test]
    fn columns_of_a_stored_model_are_its_own() {
        let model = model(&[("fma.f32", Part::Arithmetic, 1e-12), ("groups", Part::Overhead, 1e-9)]);
        let cases = test_set(Scale::Tiny).unwrap();
        let spec = Target::of_sm(90).unwrap().spec();
        let columns = Columns::of(&model, &spec, [&cases[0].instance]).unwrap();
        assert_eq!(columns.properties(), model.weights.iter().map(|w| w.property.clone()).collect::<Vec<_>>());
        let counts = columns.counts(&cases[0].instance);
        assert!(counts[1] >= 1.0 && counts.len() == 2, "{counts:?}");
    }
}
