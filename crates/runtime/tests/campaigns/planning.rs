//! Whole decisions on the toy kernel.

use crate::support::{RowTrainer, device, kernel, words};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tilewright_core::buffer::Buffers;
use tilewright_core::data::Data;
use tilewright_core::device::{Device, DeviceSpec, HostDevice};
use tilewright_core::feature::FeatureSchema;
use tilewright_core::measurement::{Measurement, Timing};
use tilewright_core::predictor::{BindError, Coverage, Predictor, Scorer};
use tilewright_core::problem::{AnyKernel, Erased, Measure, MeasureError, Problem};
use tilewright_core::program::{DeviceError, Program};
use tilewright_core::space::{Point, Points};
use tilewright_runtime::RuntimeError;
use tilewright_runtime::plan::{Asked, PlanSettings, Planned, Planner, Ranking, Sampling};
use tilewright_runtime::plan_cache::PlanCache;
use tilewright_runtime::store::StoreErrorKind;
use tilewright_runtime::trainer::Trainer;
use tilewright_sampler::Uniform;
use tilewright_testkit::toy::{self, AnalyticMeasure, Formula, ScaleConfig, ScaleKernel};

fn model() -> Box<dyn Predictor> {
    let lengths = [64, 300, 1000, 5000, 20_000, 100_000, 1_000_000];
    RowTrainer.train(&toy::training_set(&lengths, 120, 1), 0).unwrap().predictor
}

fn settings() -> PlanSettings {
    PlanSettings { refine: Duration::from_millis(120), budget: Duration::from_secs(3), ..PlanSettings::default() }
}

struct Setup {
    kernel: Box<dyn AnyKernel>,
    device: Arc<DeviceSpec>,
    measure: Option<AnalyticMeasure>,
    model: Option<Box<dyn Predictor>>,
    cache: Option<PlanCache>,
    settings: PlanSettings,
}

impl Setup {
    fn new() -> Self {
        Self {
            kernel: Box::new(kernel()),
            device: device(),
            measure: Some(AnalyticMeasure::new(device()).checked_on(toy::host_device())),
            model: Some(model()),
            cache: None,
            settings: settings(),
        }
    }

    fn plan(&mut self, input: &str) -> Result<Planned, RuntimeError> {
        Planner {
            kernel: &*self.kernel,
            device: &self.device,
            measure: self.measure.as_mut().map(|m| m as &mut dyn Measure),
            predictor: self.model.as_deref(),
            sampler: &mut Uniform::new(100_000),
            cache: self.cache.as_ref(),
            settings: self.settings.clone(),
        }
        .plan(&words(input))
    }

    fn optimum(&self, input: &str) -> (Point, f64) {
        toy::optimum(&*self.kernel.problem(&self.device, &words(input)).unwrap()).unwrap()
    }
}

/// A model that takes its time.
struct Slow(Box<dyn Predictor>);

struct Tired<'a>(Box<dyn Scorer + 'a>);

impl Predictor for Slow {
    fn kind(&self) -> &str {
        "slow"
    }

    fn bind<'a>(&'a self, problem: &'a dyn Problem) -> Result<Box<dyn Scorer + 'a>, BindError> {
        Ok(Box::new(Tired(self.0.bind(problem)?)))
    }
}

impl Scorer for Tired<'_> {
    fn score(&self, points: Points<'_>, out: &mut [f32]) {
        std::thread::sleep(Duration::from_millis(2 * out.len() as u64));
        self.0.score(points, out);
    }
}

/// How many configurations a model was asked about: the first number of the reason. What is timed beyond that depends on the machine.
fn asked(planned: &Planned) -> u64 {
    let digits = planned.reason.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit);
    digits.collect::<String>().parse().unwrap()
}

#[test]
fn a_slow_model_is_asked_about_a_sample() {
    let mut setup = Setup { model: Some(Box::new(Slow(model()))), ..Setup::new() };
    setup.settings.ranking = Ranking::Everything { within: Duration::from_millis(100) };
    let begun = Instant::now();
    let planned = setup.plan("n=10000").unwrap();
    let all = setup.kernel.problem(&setup.device, &words("n=10000")).unwrap().space().count_legal();
    assert!(asked(&planned) < all, "{} of {all}", planned.reason);
    assert!(planned.reason.contains("since all would have taken more than"), "{}", planned.reason);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn limits_that_are_none_are_refused() {
    for (field, wrong) in [("cut_off", f64::NAN), ("cut_off", -1.0), ("rough", f64::NAN), ("rough", 0.0)] {
        let mut setup = Setup::new();
        let limit = if field == "rough" { &mut setup.settings.rough } else { &mut setup.settings.cut_off };
        *limit = wrong;
        let refused = setup.plan("n=100").unwrap_err();
        assert_eq!(refused.field().as_deref(), Some(field), "{refused}");
    }
}

#[test]
fn model_search_and_timing_find_the_optimum() {
    let mut setup = Setup::new();
    for input in ["n=10000", "n=777", "n=123456,dtype=f64", "n=3", "n=0"] {
        let planned = setup.plan(input).unwrap();
        let (best, seconds) = setup.optimum(input);
        // The tie band is 1%.
        assert!(planned.measured_s.unwrap() <= seconds * 1.011, "{input}: {planned:?}");
        if input != "n=0" {
            assert_eq!(planned.point, best, "{input}");
        }
        assert!(planned.verified && !planned.cached);
        assert_eq!(planned.considered, setup.kernel.problem(&device(), &words(input)).unwrap().space().count_legal());
        assert_eq!(planned.decision.chosen, planned.decision.considered[0]);
        assert_eq!(planned.decision.reason, planned.reason);
        assert!(planned.reason.contains("model was searched") && planned.reason.contains("verified"), "{planned:?}");
    }
}

#[test]
fn without_a_model_the_input_is_tuned_and_the_answer_says_so() {
    let mut setup = Setup { model: None, ..Setup::new() };
    let planned = setup.plan("n=10000").unwrap();
    assert!(planned.reason.contains("no profile"), "{}", planned.reason);
    assert!(planned.measured_s.unwrap() <= setup.optimum("n=10000").1 * 1.011, "{planned:?}");
    assert_eq!(planned.predicted_s, None);
    assert!(planned.verified && planned.considered > 20);
}

#[test]
fn without_anything_to_time_on_the_model_is_believed() {
    let mut setup = Setup { settings: PlanSettings { top: 0, ..settings() }, ..Setup::new() };
    let planned = setup.plan("n=10000").unwrap();
    assert_eq!(setup.measure.as_ref().unwrap().calls, 0);
    assert!(planned.predicted_s.is_some() && planned.measured_s.is_none() && planned.verified);
    let mut bare = Setup { measure: None, model: None, ..Setup::new() };
    let planned = bare.plan("n=10000").unwrap();
    assert_eq!(Some(planned.point), bare.kernel.problem(&device(), &words("n=10000")).unwrap().default_point());
    assert!(!planned.verified && planned.reason.contains("not verified"), "{}", planned.reason);
}

/// Knows the order of costs, and hardly their size.
fn word(problem: &dyn Problem, point: &[u16]) -> f64 {
    let config = ScaleConfig::of(&problem.space().at(point).unwrap());
    let best = toy::target(problem.input().get("n").and_then(|n| n.as_int()).unwrap() as usize, 32);
    let apart = |a: usize, b: usize| (a as f64 / b as f64).log2().abs();
    1e-6 * (1.0 + apart(config.width, best.width) + apart(config.chunks, best.chunks))
}

/// Two networks whose mean is [`word`]: what they differ by, as a log.
struct Divided(fn(&dyn Problem, &[u16]) -> f32, Coverage);

struct OfTwo<'a> {
    problem: &'a dyn Problem,
    doubt: fn(&dyn Problem, &[u16]) -> f32,
    coverage: Coverage,
}

impl Predictor for Divided {
    fn bind<'a>(&'a self, problem: &'a dyn Problem) -> Result<Box<dyn Scorer + 'a>, BindError> {
        Ok(Box::new(OfTwo { problem, doubt: self.0, coverage: self.1 }))
    }
}

impl Scorer for OfTwo<'_> {
    fn score(&self, points: Points<'_>, out: &mut [f32]) {
        points.iter().zip(out).for_each(|(point, out)| *out = word(self.problem, point).ln() as f32);
    }

    fn opinions(&self, points: Points<'_>) -> Vec<Vec<f32>> {
        let one = |point: &[u16]| word(self.problem, point).ln() as f32;
        let all = |sign: f32| points.iter().map(|p| one(p) + sign * (self.doubt)(self.problem, p)).collect();
        vec![all(-1.0), all(1.0)]
    }

    fn coverage(&self) -> Coverage {
        self.coverage
    }
}

#[test]
fn where_nothing_is_timed_all_networks_expect_a_choice_to_be_ahead() {
    let plan_so = |doubt, coverage, worth_leaving| {
        let model: Option<Box<dyn Predictor>> = Some(Box::new(Divided(doubt, coverage)));
        let settings = PlanSettings { top: 0, worth_leaving, ..settings() };
        let mut setup = Setup { model, settings, ..Setup::new() };
        let planned = setup.plan("n=10000").unwrap();
        let problem = setup.kernel.problem(&setup.device, &words("n=10000")).unwrap();
        (word(&*problem, &planned.point), Some(planned.point) == problem.default_point(), planned.reason)
    };
    let plan = |doubt| plan_so(doubt, Coverage::Full, settings().worth_leaving);
    let (agreed, _, why) = plan(|_, _| 0.0);
    assert!(agreed < 1.001e-6 && why.contains("the model's first choice was taken"), "{why}");
    let (second, is_default, why) = plan(|problem, point| if word(problem, point) < 1.001e-6 { 3.0 } else { 0.0 });
    assert!(second > 1.001e-6 && !is_default && why.contains("all of the model's networks"), "{second}: {why}");
    let (_, is_default, why) =
        plan(|problem, point| if problem.default_point().is_some_and(|d| *d == *point) { 0.0 } else { 9.0 });
    assert!(is_default && why.contains("promises too little more"), "{why}");
    // Networks that saw little like the input have to expect as much twice over; unless the model alone is asked for.
    let setup = Setup::new();
    let problem = setup.kernel.problem(&setup.device, &words("n=10000")).unwrap();
    let even = (1e-6 / word(&*problem, &problem.default_point().unwrap())).sqrt();
    let kept = |coverage, worth_leaving| plan_so(|_, _| 0.0, coverage, worth_leaving);
    let (_, is_default, why) = kept(Coverage::Sparse, 0.98 * even);
    assert!(is_default && why.contains("too few inputs like this one"), "{why}");
    assert!(!kept(Coverage::Full, 0.98 * even).1 && !kept(Coverage::Sparse, 1.02 * even).1);
    let (_, is_default, why) = kept(Coverage::None, 1.02 * even);
    assert!(is_default && why.contains("no input like this one"), "{why}");
    let (agreed, _, _) = plan_so(|_, _| 0.0, Coverage::None, f64::INFINITY);
    assert!(agreed < 1.001e-6);
}

/// Takes as long for a word as a symbolic count does.
fn slow(problem: &dyn Problem, point: &[u16]) -> f64 {
    std::thread::sleep(Duration::from_millis(4));
    word(problem, point)
}

#[test]
fn a_dear_model_ranks_and_is_not_asked_again() {
    let model: Option<Box<dyn Predictor>> = Some(Box::new(Formula { kind: "slow", is_costly: true, seconds: slow }));
    let ranking = Ranking::Sample(Sampling { points: 40, climbs: 0, ..Sampling::default() });
    let settings = PlanSettings { ranking, top: 4, ..settings() };
    let mut setup = Setup { model, settings, ..Setup::new() };
    let planned = setup.plan("n=10000").unwrap();
    // A single proposal with the model's word on all neighbours would take longer than the whole refinement.
    assert!(planned.stats.timed > 40, "{planned:?}");
    // The choice is made from all that was timed, whatever the model was asked about.
    let stats = &planned.stats;
    assert!(planned.considered >= stats.configs && stats.timed + stats.failed >= stats.configs, "{planned:?}");
    let asked = planned.decision.considered.iter().filter(|a| a.predicted_s.is_some()).count();
    assert!(asked <= 5, "{planned:?}");
}

#[test]
fn a_costly_model_ranks_a_sample_and_its_plan_answers_for_others() {
    let dir = tempfile::tempdir().unwrap();
    let model = Formula { kind: "word", is_costly: true, seconds: word };
    let ranking = Ranking::Sample(Sampling { points: 200, ..Sampling::default() });
    let mut setup = Setup {
        model: Some(Box::new(model)),
        cache: Some(PlanCache::new(dir.path())),
        settings: PlanSettings { ranking, ..settings() },
        ..Setup::new()
    };
    let planned = setup.plan("n=10000").unwrap();
    assert!(planned.measured_s.unwrap() <= setup.optimum("n=10000").1 * 1.011, "{planned:?}");
    assert!(planned.reason.contains("The word model was asked about"), "{}", planned.reason);
    assert!(planned.verified && (200..1600).contains(&asked(&planned)), "{planned:?}");
    assert_eq!(planned.decision.model.as_deref(), Some("word"));
    let mut plain = Setup { cache: setup.cache.clone(), ..Setup::new() };
    let again = plain.plan("n=10000").unwrap();
    assert!(again.cached, "{again:?}");
    assert_eq!((again.point, again.decision.model), (planned.point, Some("word".to_owned())));
}

#[test]
fn a_decision_is_cached_and_a_stale_one_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = Setup { cache: Some(PlanCache::new(dir.path())), ..Setup::new() };
    let first = setup.plan("n=10000").unwrap();
    let calls = setup.measure.as_ref().unwrap().calls;
    let second = setup.plan("n=10000,dtype=f32").unwrap();
    assert!(second.cached && !first.cached);
    assert_eq!((&second.point, second.measured_s, second.verified), (&first.point, first.measured_s, true));
    assert_eq!(setup.measure.as_ref().unwrap().calls, calls, "an answer from the cache measures nothing");
    assert!(second.reason.contains("plan cache"));

    let other = toy::device_with(16);
    let mut elsewhere = Setup {
        device: other.clone(),
        measure: Some(AnalyticMeasure::new(other.clone()).checked_on(toy::host_device_with(other))),
        cache: setup.cache.clone(),
        ..Setup::new()
    };
    let anew = elsewhere.plan("n=10000").unwrap();
    assert!(!anew.cached && anew.reason.to_lowercase().contains("another state of the device"), "{}", anew.reason);
    setup.settings.ignore_cached = true;
    assert!(!setup.plan("n=10000").unwrap().cached);
}

#[test]
fn an_answer_is_looked_for_again_when_more_is_asked_than_it_had() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = Setup { model: None, cache: Some(PlanCache::new(dir.path())), ..Setup::new() };
    let ask = |setup: &mut Setup, budget: Option<u64>, profile: Option<&str>| {
        let budget = budget.map(Duration::from_secs);
        let asked = Asked { budget, profile: profile.map(String::from), ..Asked::default() };
        setup.settings = PlanSettings { asked, budget: budget.unwrap_or_default(), ..settings() };
        setup.plan("n=10000").unwrap()
    };
    let hasty = ask(&mut setup, Some(0), None);
    assert!(!hasty.cached && ask(&mut setup, None, None).cached && ask(&mut setup, Some(0), None).cached);
    let thorough = ask(&mut setup, Some(2), None);
    assert!(!thorough.cached && thorough.measured_s < hasty.measured_s, "{thorough:?}");
    let why = thorough.looked_again.as_deref().unwrap();
    assert!(why.contains("0 s were given to measuring, and 2 s are asked for"), "{why}");
    assert!(thorough.reason.to_lowercase().contains(why), "{}", thorough.reason);
    // Less than it had, or nothing at all, is answered from the cache.
    assert!(ask(&mut setup, Some(1), None).cached && ask(&mut setup, None, None).cached);
    // A profile that was not there.
    setup.model = Some(model());
    assert!(!ask(&mut setup, None, Some("new")).cached);
    assert!(ask(&mut setup, None, Some("new")).cached && ask(&mut setup, None, None).cached);
    assert!(!ask(&mut setup, None, Some("newer")).cached);
}

#[test]
fn looking_again_never_loses_a_better_answer() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = Setup { cache: Some(PlanCache::new(dir.path())), ..Setup::new() };
    let best = setup.plan("n=10000").unwrap();
    assert_eq!(best.point, setup.optimum("n=10000").0);
    let again = |setup: &mut Setup, profile: &str| {
        setup.settings.asked = Asked { profile: Some(profile.into()), ..Asked::default() };
        let found = setup.plan("n=10000").unwrap();
        assert!(!found.cached && found.point == best.point, "{found:?}");
        // Without a device nothing is checked.
        assert_eq!(found.verified, setup.measure.is_some(), "{found:?}");
        found
    };
    // Looks that would find next to nothing by themselves: no time and no model, one candidate, nothing to time on.
    setup.model = None;
    setup.settings.budget = Duration::ZERO;
    let found = again(&mut setup, "no model");
    assert!(found.reason.contains("the remembered configuration is still the best"), "{}", found.reason);
    setup.model = Some(model());
    (setup.settings.top, setup.settings.refine) = (1, Duration::ZERO);
    again(&mut setup, "one candidate");
    setup.measure = None;
    let found = again(&mut setup, "no clock");
    assert!(found.reason.contains("the remembered configuration was kept"), "{}", found.reason);
    // Planning afresh is asked for by those who do not trust what is remembered.
    setup.settings.ignore_cached = true;
    setup.model = None;
    assert_ne!(setup.plan("n=10000").unwrap().point, best.point);
}

/// Cuts everything off, as a deadline does that has passed.
struct Late(AnalyticMeasure);

impl Measure for Late {
    fn spec(&self) -> &Arc<DeviceSpec> {
        self.0.spec()
    }

    fn measure(&mut self, problem: &dyn Problem, at: &Point, policy: &Timing) -> Result<Measurement, MeasureError> {
        self.0.measure(problem, at, &Timing { cut_off: Some(Duration::ZERO), ..policy.clone() })
    }

    fn device(&mut self) -> Option<&mut dyn Device> {
        self.0.device()
    }
}

#[test]
fn where_everything_is_cut_off_there_is_an_answer_without_a_time() {
    for model in [Some(model()), None] {
        let mut late = Late(AnalyticMeasure::new(device()).checked_on(toy::host_device()));
        let planned = Planner {
            kernel: &kernel(),
            device: &device(),
            measure: Some(&mut late),
            predictor: model.as_deref(),
            sampler: &mut Uniform::new(100_000),
            cache: None,
            settings: settings(),
        }
        .plan(&words("n=10000"))
        .unwrap();
        assert!(planned.verified && planned.measured_s.is_none(), "{planned:?}");
        assert!(planned.reason.contains("the time was too short to measure any"), "{}", planned.reason);
    }
}

#[test]
fn a_damaged_cache_entry_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let cache = PlanCache::new(dir.path());
    let mut setup = Setup { cache: Some(cache.clone()), ..Setup::new() };
    setup.plan("n=10000").unwrap();
    let (path, _) = cache.entries().unwrap().remove(0);
    std::fs::write(&path, b"tilewright plan 1\ngarbage\n").unwrap();
    let RuntimeError::Store(error) = setup.plan("n=10000").unwrap_err() else { panic!("another error") };
    assert!(matches!(error.kind, StoreErrorKind::Corrupt(_)) && error.path == path, "{error}");
    assert!(cache.entries().unwrap()[0].1.is_err());
}

/// Runs nothing for some calls: the outputs keep their poison.
struct Lazy {
    inner: HostDevice<Instant>,
    /// Calls that are skipped.
    skip: u32,
}

impl Device for Lazy {
    fn spec(&self) -> &Arc<DeviceSpec> {
        self.inner.spec()
    }

    fn upload(&mut self, data: &Data) -> Result<(), DeviceError> {
        self.inner.upload(data)
    }

    fn run(&mut self, program: &Program) -> Result<(), DeviceError> {
        if self.skip == 0 {
            return self.inner.run(program);
        }
        self.skip -= 1;
        Ok(())
    }

    fn read(&mut self) -> Result<Buffers, DeviceError> {
        self.inner.read()
    }

    fn time(&mut self, program: &Program, timing: &Timing) -> Result<Measurement, MeasureError> {
        self.inner.time(program, timing)
    }
}

#[test]
fn a_wrong_result_is_never_chosen_nor_cached() {
    let dir = tempfile::tempdir().unwrap();
    let cache = PlanCache::new(dir.path());
    let lazy = |skip| Some(AnalyticMeasure::new(device()).checked_on(Lazy { inner: toy::host_device(), skip }));
    let mut setup = Setup { measure: lazy(2), cache: Some(cache.clone()), ..Setup::new() };
    let planned = setup.plan("n=10000").unwrap();
    assert_ne!(planned.point, setup.optimum("n=10000").0, "the two fastest were wrong");
    assert_eq!(planned.stats.wrong, 2);
    assert!(planned.verified && planned.reason.contains("was wrong"), "{}", planned.reason);

    let mut setup = Setup { measure: lazy(u32::MAX), cache: Some(cache.clone()), ..Setup::new() };
    let error = setup.plan("n=5000").unwrap_err();
    assert!(matches!(error, RuntimeError::NothingRight { .. }), "{error}");
    assert_eq!(cache.entries().unwrap().len(), 1, "only the verified plan is kept");
}

#[test]
fn failures_are_typed() {
    let restricted = Erased::new(ScaleKernel::new().restricted("width > 16"));
    let mut nothing = Setup { kernel: Box::new(restricted), ..Setup::new() };
    for with_model in [true, false] {
        if !with_model {
            nothing.model = None;
        }
        let error = nothing.plan("n=1000").unwrap_err();
        assert_eq!((error.kind(), error.field().as_deref()), ("nothing-legal", Some("restricted")), "{error}");
    }
    let mut failing = Setup { measure: Some(AnalyticMeasure::new(device()).failing(|_| true)), ..Setup::new() };
    assert_eq!(failing.plan("n=1000").unwrap_err().kind(), "nothing-runs");
    let error = Setup::new().plan("dtype=f32").unwrap_err();
    assert_eq!((error.kind(), error.field().as_deref()), ("input", Some("n")));

    let wrong: FeatureSchema = FeatureSchema { input: vec![], ..kernel().schema() };
    let data =
        tilewright_core::training::TrainingSet { schema: wrong, rows: vec![1.0; 5], costs: vec![1.0], groups: vec![0] };
    let mut foreign = Setup { model: Some(RowTrainer.train(&data, 0).unwrap().predictor), ..Setup::new() };
    assert_eq!(foreign.plan("n=1000").unwrap_err().kind(), "schema-mismatch");
}
