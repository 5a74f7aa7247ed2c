//! Decisions among configurations that noise cannot tell apart.

use crate::support::{device, kernel, words};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tilewright_core::device::{Device, DeviceSpec, HostDevice};
use tilewright_core::measurement::{Measurement, Timing};
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::{AnyKernel, Measure, MeasureError, Problem};
use tilewright_core::space::Point;
use tilewright_runtime::paired::PairedSettings;
use tilewright_runtime::plan::{Asked, PlanSettings, Planned, Planner, TIE_ORDER};
use tilewright_runtime::plan_cache::PlanCache;
use tilewright_sampler::Uniform;
use tilewright_search::Strategy;
use tilewright_testkit::toy::{self, Formula};

/// Repeats of a decision, each with noise of its own.
const REPEATS: u64 = 50;

/// Relative standard deviation of a time.
const NOISE: f64 = 0.02;

const INPUT: &str = "n=10000";

fn problem() -> Box<dyn Problem> {
    AnyKernel::problem(&kernel(), &device(), &words(INPUT)).unwrap()
}

/// The nearest to the toy kernel's optimum, the best first.
fn nearest(count: usize) -> Vec<Point> {
    let problem = problem();
    let mut all: Vec<(f64, Point)> = Vec::new();
    problem.space().for_each_legal(|point| {
        all.push((toy::cost_s(&*problem, point), Point::from(point)));
        true
    });
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    all.into_iter().take(count).map(|(_, point)| point).collect()
}

/// Times points by a table, with normal noise; what is not in the table takes twice as long as the best.
struct Noisy {
    spec: Arc<DeviceSpec>,
    results: HostDevice<std::time::Instant>,
    times: HashMap<Point, f64>,
    noise: f64,
    state: u64,
    /// The least time of each point so far.
    least: HashMap<Point, f64>,
}

impl Noisy {
    fn new(times: &[(Point, f64)], noise: f64, seed: u64) -> Self {
        let (spec, results) = (device(), toy::host_device());
        let (times, least) = (times.iter().cloned().collect(), HashMap::new());
        Self { spec, results, times, noise, state: seed << 32, least }
    }

    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64 + f64::EPSILON
    }

    /// The point with the least time measured of all.
    fn fastest_measured(&self) -> Point {
        self.least.iter().min_by(|a, b| a.1.total_cmp(b.1)).unwrap().0.clone()
    }
}

impl Measure for Noisy {
    fn spec(&self) -> &Arc<DeviceSpec> {
        &self.spec
    }

    fn measure(&mut self, _: &dyn Problem, at: &Point, _: &Timing) -> Result<Measurement, MeasureError> {
        let normal = (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos();
        let time_s = 1e-5 * self.times.get(at).copied().unwrap_or(2.0) * (self.noise * normal).exp();
        let least = self.least.entry(at.clone()).or_insert(time_s);
        *least = least.min(time_s);
        Ok(Measurement::recorded(time_s))
    }

    fn device(&mut self) -> Option<&mut dyn Device> {
        Some(&mut self.results)
    }
}

type Seconds = fn(&dyn Problem, &[u16]) -> f64;

/// Expects the toy kernel's cost, in which the device of these tests does not believe.
fn model() -> Formula<Seconds> {
    Formula { kind: "formula", is_costly: false, seconds: toy::cost_s }
}

/// Candidates by a model alone, so that all repeats have the same.
fn by_model() -> PlanSettings {
    PlanSettings { refine: Duration::ZERO, ..PlanSettings::default() }
}

fn plan(
    measure: &mut Noisy,
    settings: &PlanSettings,
    model: Option<&dyn Predictor>,
    at: Option<&PlanCache>,
) -> Planned {
    let (kernel, device) = (kernel(), device());
    let (sampler, settings) = (&mut Uniform::new(100_000), settings.clone());
    Planner { kernel: &kernel, device: &device, measure: Some(measure), predictor: model, sampler, cache: at, settings }
        .plan(&words(INPUT))
        .unwrap()
}

/// How often each was chosen, the most frequent first, and of how many the fastest measured one is one.
fn repeated(
    times: &[(Point, f64)],
    settings: &PlanSettings,
    model: Option<&dyn Predictor>,
) -> (Vec<(Point, u64)>, usize) {
    let (mut chosen, mut fastest) = (HashMap::<Point, u64>::new(), HashSet::new());
    for seed in 0..REPEATS {
        let mut measure = Noisy::new(times, NOISE, seed);
        *chosen.entry(plan(&mut measure, settings, model, None).point).or_default() += 1;
        fastest.insert(measure.fastest_measured());
    }
    let mut chosen: Vec<(Point, u64)> = chosen.into_iter().collect();
    chosen.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    (chosen, fastest.len())
}

/// The best measured one of each comparison, whatever the noise.
fn best_measured() -> PlanSettings {
    let paired = PairedSettings { tie_band: 0.0, tie_most: 0.0, most_rounds: 0, ..PairedSettings::default() };
    PlanSettings { paired, ..by_model() }
}

/// Six of the model's best with times within half a percent, the model's first one not the fastest of them.
fn close() -> Vec<(Point, f64)> {
    let times = [1.003, 1.005, 1.0, 1.002, 1.004, 1.001];
    nearest(6).into_iter().zip(times).collect()
}

#[test]
fn noise_does_not_choose_among_equals() {
    let (times, model) = (close(), model());
    let (chosen, _) = repeated(&times, &by_model(), Some(&model));
    let (without, fastest) = repeated(&times, &best_measured(), Some(&model));
    let paired = PairedSettings { tie_most: 0.01, most_rounds: 0, ..PairedSettings::default() };
    let (margin, _) = repeated(&times, &PlanSettings { paired, ..by_model() }, Some(&model));
    println!(
        "{} of {REPEATS} choose the same, within a margin that knows no noise {}, by the best measured {}",
        chosen[0].1, margin[0].1, without[0].1
    );
    assert!(chosen[0].1 * 100 >= REPEATS * 95, "{chosen:?}");
    assert_eq!(chosen[0].0, times[0].0, "the one that the model ranks first");
    assert!(without[0].1 * 2 < REPEATS && fastest >= 5, "the noise is too small for a test: {without:?}, {fastest}");
}

#[test]
fn without_a_model_the_order_of_the_space_chooses() {
    let times = close();
    let strategy = Strategy::Exhaustive.into();
    let settings = PlanSettings { strategy, budget: Duration::from_secs(60), ..PlanSettings::default() };
    let (chosen, _) = repeated(&times, &settings, None);
    let first = times.iter().map(|(point, _)| point).min().unwrap();
    assert!(chosen[0].0 == *first && chosen[0].1 * 100 >= REPEATS * 95, "{chosen:?}, not {first:?}");
}

#[test]
fn a_clearly_faster_one_always_wins() {
    let mut times = close();
    let last = times.len() - 1;
    times[last].1 = 1.0 / 1.05;
    let (chosen, _) = repeated(&times, &by_model(), Some(&model()));
    assert_eq!(chosen, [(times[last].0.clone(), REPEATS)]);
}

#[test]
fn the_remembered_one_wins_and_then_the_default() {
    let (times, model) = (close(), model());
    let dir = tempfile::tempdir().unwrap();
    let cache = PlanCache::new(dir.path());
    // When it is remembered, the last one is the best by far.
    let alone = [(times[5].0.clone(), 1.0)];
    let first = plan(&mut Noisy::new(&alone, NOISE, 0), &by_model(), Some(&model), Some(&cache));
    assert_eq!(first.point, times[5].0);
    for seed in 0..REPEATS / 5 {
        let asked = Asked { profile: Some(format!("profile {seed}")), ..Asked::default() };
        let again = PlanSettings { asked, ..by_model() };
        let planned = plan(&mut Noisy::new(&times, NOISE, seed), &again, Some(&model), Some(&cache));
        assert_eq!((planned.cached, &planned.point), (false, &times[5].0), "{}", planned.reason);
        let tie = planned.decision.tie.unwrap();
        assert_eq!(tie.why, "it is the remembered one");
    }
    let default = problem().default_point().unwrap();
    let with_default = [times, vec![(default.clone(), 1.004)]].concat();
    let planned = plan(&mut Noisy::new(&with_default, 0.001, 0), &by_model(), Some(&model), None);
    assert_eq!((planned.point, planned.decision.tie.unwrap().why.as_str()), (default, "it is the default"));
}

#[test]
fn the_answer_shows_the_band_and_what_the_choice_may_lose() {
    let times = close();
    let planned = plan(&mut Noisy::new(&times, 0.001, 3), &by_model(), Some(&model()), None);
    let tie = planned.decision.tie.as_ref().unwrap();
    assert_eq!((tie.members.len(), tie.within, tie.order.as_str()), (6, 0.01, TIE_ORDER));
    let space = problem();
    let expected: Vec<_> = times.iter().map(|(point, _)| space.space().config(point)).collect();
    assert!(tie.members.iter().map(|m| &m.config).eq(&expected), "{tie:?}");
    assert_eq!((&tie.members[0].config, tie.members[0].measured_s), (&planned.config, planned.measured_s));
    assert!(tie.members.iter().all(|m| (1.0..=1.0 + tie.within).contains(&m.relative)), "{tie:?}");
    let said = "6 configurations within 1.0% of the best count as equal: the model expects the least of it";
    assert!(planned.reason.contains(said), "{}", planned.reason);
}

#[test]
fn equal_times_are_no_chance() {
    let times: Vec<(Point, f64)> = nearest(40).into_iter().map(|point| (point, 1.0)).collect();
    let plans: Vec<Planned> =
        (0..3).map(|seed| plan(&mut Noisy::new(&times, 0.0, seed), &by_model(), Some(&model()), None)).collect();
    let ties: Vec<_> = plans.iter().map(|planned| planned.decision.tie.clone().unwrap()).collect();
    assert!(ties[0].members.len() > 8 && ties.iter().all(|tie| *tie == ties[0]), "all members are kept: {ties:?}");
    assert!(plans.iter().all(|planned| planned.point == times[0].0));
}
