//! The linear model as a predictor of tunable kernels.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tilewright_calibration::Columns;
use tilewright_core::computation::Computation;
use tilewright_core::predictor::{BindError, Predictor};
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::space::Config;
use tilewright_loops::library::{Scale, test_set};
use tilewright_ops::conv::Conv;
use tilewright_ops::gemm::Gemm;
use tilewright_perfmodel_linear::{IN_CACHE, LinearModel, Part, Property, Report, Sharpness, Weight};
use tilewright_ptxgen::conv::SimtConv;
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

fn problem(words: &str) -> Bound<SimtGemm> {
    let input = Gemm.parse(&Config::parse(words).unwrap()).unwrap();
    let mut spec = Target::of_sm(90).unwrap().spec();
    // A target has no cache of its own.
    spec.facts.insert("l2_bytes".into(), 50 << 20);
    let spec = Arc::new(spec);
    Bound::new(Arc::new(SimtGemm::new()), spec, input).unwrap()
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

/// What a model expects of a problem's default.
fn expectation(problem: &dyn Problem, model: &LinearModel) -> f64 {
    f64::from(model.bind(problem).unwrap().score_each(&problem.default_point())[0]).exp()
}

#[test]
fn symbolic_counts_times_weights_are_the_word_on_a_gpu() {
    let model = model(&[
        ("constant", Part::Overhead, 1e-6),
        ("groups", Part::Overhead, 1e-9),
        ("fma.f32", Part::Arithmetic, 1e-12),
    ]);
    let problem = problem("m=300,n=200,k=100");
    let counts = counted(&problem);
    let expected = 1e-6 + 1e-9 * counts["groups"] + 1e-12 * counts["fma.f32"];
    let found = expectation(&problem, &model);
    assert!((found / expected - 1.0).abs() < 1e-5, "{found} {expected}");
    assert!(counts["fma.f32"] >= 300.0 * 200.0 * 100.0, "{counts:?}");
}

#[test]
fn convolutions_have_a_prediction_too() {
    let weights = [("launches", 1e-6), ("groups", 1e-9), ("fma.f32", 1e-12), ("load.global.32@1", 1e-10)];
    let model = model(&weights.map(|(name, seconds)| (name, Part::Overhead, seconds)));
    for words in [
        "n=4,c=8,h=14,k=16,r=3,pad=1",
        "n=2,c=6,h=9,k=5,r=3,stride=2,direction=data",
        "n=3,c=4,h=8,k=6,r=3,pad=1,direction=filter",
    ] {
        let input = Conv.parse(&Config::parse(words).unwrap()).unwrap();
        let spec = Arc::new(Target::of_sm(90).unwrap().spec());
        let problem = Bound::new(Arc::new(SimtConv::new()), spec, input).unwrap();
        let counts = counted(&problem);
        let expected: f64 = weights.iter().map(|(name, seconds)| counts.get(*name).unwrap_or(&0.0) * seconds).sum();
        let found = expectation(&problem, &model);
        assert!((found / expected - 1.0).abs() < 1e-5, "{words}: {found} {expected}");
        assert!(2.0 * counts["fma.f32"] >= problem.work().flops && counts["launches"] >= 2.0, "{words}: {counts:?}");
    }
}

#[test]
fn what_a_cache_holds_has_weights_of_its_own() {
    let stores = |words: &str| {
        let all = counted(&problem(words));
        let of_warps = |name: &String| name.starts_with("store.global") && name.ends_with("@1");
        all.into_iter().filter(|(name, _)| of_warps(name)).collect::<BTreeMap<String, f64>>()
    };
    let of_each = |words: &str| {
        let stores = stores(words);
        let cached: Vec<String> = stores.keys().map(|name| format!("{name}{}", IN_CACHE)).collect();
        let far = stores.keys().map(|name| (name.as_str(), Part::Memory, 1e-9));
        let near = cached.iter().map(|name| (name.as_str(), Part::Memory, 1e-12));
        let weights: Vec<(&str, Part, f64)> = far.chain(near).collect();
        expectation(&problem(words), &model(&weights)) / stores.values().sum::<f64>()
    };
    let (small, large) = (of_each("m=512,n=512,k=512"), of_each("m=16384,n=16384,k=512"));
    assert!((small / 1e-12 - 1.0).abs() < 1e-3 && (large / 1e-9 - 1.0).abs() < 1e-3, "{small} {large}");
}

#[test]
fn a_sample_is_ranked_by_it() {
    let model = model(&[("groups", Part::Overhead, 1e-6), ("barrier", Part::Overhead, 1e-12)]);
    let problem = problem("m=640,n=384,k=64");
    assert!(model.kind() == "linear" && model.is_costly());
    let scorer = model.bind(&problem).unwrap();
    // What is found depends on no clock.
    let how = Sampling { points: 8, climbs: 0, limit: Duration::MAX };
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

#[test]
fn kernels_of_a_cpu_count_in_phases_and_what_is_not_counted_says_so() {
    let model = model(&[("loads", Part::Local, 1e-10), ("f32 fma", Part::Arithmetic, 1e-10)]);
    let spec = tilewright_cpu::CpuDevice::new(1).unwrap().spec().clone();
    let input = Gemm.parse(&Config::parse("m=200,n=100,k=64").unwrap()).unwrap();
    let problem = Bound::new(Arc::new(tilewright_cpu::CpuGemm::new()), spec, input).unwrap();
    tilewright_testkit::predictor(&model, &problem).unwrap();
    let point = problem.default_point().unwrap();
    let counted = problem.operations(&problem.space().check(&point).unwrap()).unwrap();
    let phases: Vec<f64> = counted
        .phases
        .iter()
        .map(|p| 1e-10 * ["loads", "f32 fma"].map(|n| p.get(n).unwrap_or(&0.0)).iter().copied().sum::<f64>())
        .collect();
    let found = expectation(&problem, &model);
    assert!((found / phases.iter().sum::<f64>() - 1.0).abs() < 1e-5 && phases.len() == 2, "{found} {phases:?}");
    let error = model.bind(&tilewright_testkit::toy::problem(1000)).err();
    assert!(matches!(&error, Some(BindError::Uncounted { kernel, .. }) if kernel.as_str() == "scale.toy"), "{error:?}");
}
