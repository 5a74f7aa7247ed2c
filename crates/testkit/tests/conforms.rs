//! The suites pass on the toy.

use std::sync::Arc;
use tilewright_core::dtype::DType;
use tilewright_core::predictor::Predictor;
use tilewright_core::prior::WithPrior;
use tilewright_core::problem::Problem;
use tilewright_core::space::Point;
use tilewright_testkit::toy::{self, ScaleConfig, ScaleInput};
use tilewright_testkit::{self as testkit, Effort};

fn inputs() -> Vec<ScaleInput> {
    let lengths = [0usize, 1, 7, 64, 1000];
    lengths.into_iter().flat_map(|n| [DType::F32, DType::F64].map(|dtype| ScaleInput { n, dtype })).collect()
}

#[test]
fn the_toy_computation_conforms() {
    testkit::computation(&toy::Scale, &inputs()).unwrap();
}

#[test]
fn the_toy_kernel_conforms() {
    let mut executor = toy::host_device();
    testkit::kernel(&Arc::new(toy::ScaleKernel::new()), &mut executor, &inputs(), &Effort::default()).unwrap();
}

/// Expects wide steps to be fast.
fn wide(problem: &dyn Problem, point: &[u16]) -> f64 {
    let config = ScaleConfig::of(&problem.space().at(point).unwrap());
    1e-6 / (config.width * config.unroll) as f64
}

/// Twice as long as expected, whatever the point.
fn twice(_: &dyn Problem, _: &[u16]) -> f64 {
    2.0
}

#[test]
fn a_model_over_a_prior_conforms_and_adds_up() {
    let problem = toy::problem(1000);
    let prior = toy::Formula { kind: "wide", is_costly: true, seconds: wide };
    testkit::predictor(&prior, &problem).unwrap();
    let model = WithPrior::new(prior, toy::Formula { kind: "flat", is_costly: false, seconds: twice });
    assert!(model.kind() == "flat-over-wide" && model.is_costly());
    testkit::predictor(&model, &problem).unwrap();
    let points = [[1, 2, 0, 0, 0], [0, 0, 0, 0, 0]].map(|p| Point::from(&p[..]));
    let logs = model.bind(&problem).unwrap().score_each(&points);
    let expected = [2e-6f32 / 8.0, 2e-6].map(f32::ln);
    assert!(logs.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5), "{logs:?} {expected:?}");
}

#[test]
fn a_kernel_without_legal_points_conforms() {
    let kernel = Arc::new(toy::ScaleKernel::new().restricted("width > 16"));
    testkit::kernel(&kernel, &mut toy::host_device(), &inputs()[..2], &Effort::default()).unwrap();
}

#[test]
fn the_toy_executor_conforms() {
    testkit::device(&mut toy::host_device(), &toy::problem(1000)).unwrap();
    testkit::host_device(&mut toy::host_device()).unwrap();
}

#[test]
fn the_analytic_device_conforms() {
    let analytic = || toy::AnalyticMeasure::new(toy::device());
    testkit::measure(&mut analytic(), &toy::problem(1000)).unwrap();
    testkit::measure(&mut analytic().failing(|p| p[0] == 0), &toy::problem(1000)).unwrap();
}

#[test]
fn the_toy_model_conforms() {
    testkit::fit(&toy::LogLinearFit).unwrap();
}

#[test]
fn the_plain_search_conforms_and_finds_the_optimum() {
    testkit::search(&|problem, _| Box::new(toy::Sequential::new(problem.space()))).unwrap();
    let fraction =
        testkit::fraction_of_optimum(&|problem, _| Box::new(toy::Sequential::new(problem.space())), 500, 4000, 1);
    assert_eq!(fraction, 1.0);
}

#[test]
fn a_shuffled_walk_conforms_as_a_sampler() {
    testkit::sampler(&|space, seed| {
        let points = testkit::legal_points(space, 600, seed);
        // Small spaces are drawn from again and again.
        let draws = if points.len() < 600 { 1000 } else { 1 };
        Box::new(std::iter::repeat_n(points, draws).flatten().by_next())
    })
    .unwrap();
}

/// Turns an iterator into the closure that the suite draws with.
trait ByNext: Iterator + Sized {
    fn by_next(mut self) -> impl FnMut() -> Option<Self::Item> {
        move || self.next()
    }
}

impl<I: Iterator> ByNext for I {}

#[test]
#[should_panic(expected = "was checked in another space than that of scale.toy for n=1000")]
fn a_point_that_was_checked_for_another_input_is_noticed() {
    let (problem, other) = (toy::problem(1000), toy::problem(2000));
    problem.program(&other.space().check(&[0; 5]).unwrap());
}
