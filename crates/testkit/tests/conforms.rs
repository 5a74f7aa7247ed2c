//! The suites pass on the toy.

use std::sync::Arc;
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::hint::{Hint, HintAlone, Hinted};
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::{Bound, Problem};
use tilewright_testkit::toy::{self, ScaleConfig, ScaleInput};
use tilewright_testkit::{self as testkit, Effort};

fn inputs() -> Vec<ScaleInput> {
    let lengths = [0usize, 1, 7, 64, 1000];
    lengths.into_iter().flat_map(|n| [DType::F32, DType::F64].map(|dtype| ScaleInput { n, dtype })).collect()
}

#[test]
fn the_toy_computation_conforms() {
    testkit::computation(&toy::Scale, &inputs());
}

#[test]
fn the_toy_kernel_conforms() {
    let mut executor = toy::host_device();
    testkit::kernel(&Arc::new(toy::ScaleKernel::new()), &mut executor, &inputs(), &Effort::default());
}

/// Expects wide steps to be fast.
struct Width;

impl Hint<toy::ScaleKernel> for Width {
    fn name(&self) -> &str {
        "width.seconds"
    }

    fn seconds(&self, _: &toy::ScaleKernel, _: &DeviceSpec, _: &ScaleInput, config: &ScaleConfig) -> f64 {
        1e-6 / (config.width * config.unroll) as f64
    }
}

#[test]
fn a_hinted_kernel_conforms() {
    let kernel = Arc::new(Hinted::new(toy::ScaleKernel::new(), Width));
    testkit::kernel(&kernel, &mut toy::host_device(), &inputs()[..4], &Effort::default());
}

#[test]
fn a_hint_alone_is_the_logarithm_of_the_last_feature() {
    let plain = toy::problem(1000);
    let hinted = Arc::new(Hinted::new(toy::ScaleKernel::new(), Width));
    let problem = Bound::new(hinted, toy::device(), ScaleInput { n: 1000, dtype: DType::F32 }).unwrap();
    assert_eq!(problem.schema().width(), plain.schema().width() + 1);
    let alone = HintAlone::new(problem.schema().clone()).unwrap();
    assert!(alone.bind(&plain).is_err(), "features without the hint are refused");
    let scorer = alone.bind(&problem).unwrap();
    let (mut row, mut out) = (Vec::new(), [0.0; 2]);
    for point in [[1, 2, 0, 0, 0], [0, 0, 0, 0, 0]] {
        problem.config_features(&point, &mut row);
    }
    scorer.score(&row, &mut out);
    let expected = [1e-6f32 / 8.0, 1e-6].map(f32::ln);
    assert!(out.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5), "{out:?} {expected:?}");
    let mut rows = Vec::new();
    problem.input_features(&mut rows);
    problem.config_features(&[1, 2, 0, 0, 0], &mut rows);
    let mut predicted = Vec::new();
    alone.predict(&rows, &mut predicted);
    assert_eq!(predicted, out[..1]);
}

#[test]
fn a_kernel_without_legal_points_conforms() {
    let kernel = Arc::new(toy::ScaleKernel::new().restricted("width > 16"));
    testkit::kernel(&kernel, &mut toy::host_device(), &inputs()[..2], &Effort::default());
}

#[test]
fn the_toy_executor_conforms() {
    testkit::device(&mut toy::host_device(), &toy::problem(1000));
    testkit::host_device(&mut toy::host_device());
}

#[test]
fn the_analytic_device_conforms() {
    let analytic = || toy::AnalyticMeasure::new(toy::device());
    testkit::measure(&mut analytic(), &toy::problem(1000));
    testkit::measure(&mut analytic().failing(|p| p[0] == 0), &toy::problem(1000));
}

#[test]
fn the_toy_model_conforms() {
    testkit::fit(&toy::LogLinearFit);
}

#[test]
fn the_plain_search_conforms_and_finds_the_optimum() {
    testkit::search(&|problem, _| Box::new(toy::Sequential::new(problem.space())));
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
    });
}

/// Turns an iterator into the closure that the suite draws with.
trait ByNext: Iterator + Sized {
    fn by_next(mut self) -> impl FnMut() -> Option<Self::Item> {
        move || self.next()
    }
}

impl<I: Iterator> ByNext for I {}
