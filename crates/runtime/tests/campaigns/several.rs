//! Campaigns of several kernels, and on several devices.

use crate::support::{RowTrainer, device, paths, settings, tune_all};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use tilewright_core::device::DeviceSpec;
use tilewright_core::measurement::{Measurement, Timing};
use tilewright_core::problem::{AnyKernel, Erased, Measure, MeasureError, Problem};
use tilewright_core::program::DeviceError;
use tilewright_core::space::{Config, Point};
use tilewright_runtime::RuntimeError;
use tilewright_runtime::log::{CampaignLog, Sample};
use tilewright_runtime::tune::{Observer, Progress, Silent, TunePaths, TuneReport, TuneSettings, Tuner, chained};
use tilewright_testkit::toy::{AnalyticMeasure, ScaleKernel};

type Toy = Erased<ScaleKernel>;

/// All of the toy's space, and forward walks only.
fn two() -> [Toy; 2] {
    let forward = ScaleKernel::new().restricted("order == 'forward'").named("scale.forward.1");
    [Erased::new(ScaleKernel::new()), Erased::new(forward)]
}

fn files(dir: &Path, kernels: &[Toy]) -> Vec<TunePaths> {
    let of = |k: &Toy| TunePaths { log: dir.join(format!("{}.log", k.id())), ..paths(&dir.join(k.id().as_str())) };
    kernels.iter().map(|k| TunePaths { profile: dir.join(format!("{}.profile", k.id())), ..of(k) }).collect()
}

fn run<'a>(
    dir: &Path,
    kernels: &'a [Toy],
    settings: TuneSettings,
    devices: Vec<&'a mut dyn Measure>,
    observer: &'a mut dyn Observer,
) -> Result<TuneReport, RuntimeError> {
    let erased: Vec<&dyn AnyKernel> = kernels.iter().map(|k| k as &dyn AnyKernel).collect();
    tune_all(&erased, &files(dir, kernels), settings, devices, observer)
}

fn logged(dir: &Path, kernel: &Toy) -> Vec<Sample> {
    CampaignLog::read(&dir.join(format!("{}.log", kernel.id()))).unwrap().1
}

/// Inputs in the order of their first measurement.
fn inputs(samples: &[Sample]) -> Vec<Config> {
    let mut all: Vec<Config> = samples.iter().map(|s| s.input.clone()).collect();
    all.dedup();
    all
}

struct StopAfter(u64);

impl Observer for StopAfter {
    fn sample(&mut self, _: &Progress<'_>) {
        self.0 -= 1;
    }

    fn stop(&self) -> bool {
        self.0 == 0
    }
}

/// An instant device that keeps what it was asked, compiles ahead, and may break.
struct Watched {
    inner: AnalyticMeasure,
    ahead: usize,
    breaks_after: usize,
    /// Announced and measured configurations in their order, the latter `true`.
    asked: Vec<(bool, Config, Point)>,
}

impl Watched {
    fn new(ahead: usize, breaks_after: usize) -> Self {
        Self { inner: AnalyticMeasure::new(device()), ahead, breaks_after, asked: Vec::new() }
    }

    fn measured(&self) -> impl Iterator<Item = &Config> {
        self.asked.iter().filter(|a| a.0).map(|a| &a.1)
    }
}

impl Measure for Watched {
    fn spec(&self) -> &Arc<DeviceSpec> {
        self.inner.spec()
    }

    fn measure(&mut self, problem: &dyn Problem, at: &Point, timing: &Timing) -> Result<Measurement, MeasureError> {
        if self.measured().count() == self.breaks_after {
            return Err(DeviceError::Missing { device: "toy".into(), why: "it was taken away".into() }.into());
        }
        self.asked.push((true, problem.input(), at.clone()));
        // Long enough that devices take turns.
        std::thread::sleep(std::time::Duration::from_micros(50));
        self.inner.measure(problem, at, timing)
    }

    fn ahead(&self) -> usize {
        self.ahead
    }

    fn expect(&mut self, problem: &dyn Problem, points: &[Point]) {
        self.asked.extend(points.iter().map(|p| (false, problem.input(), p.clone())));
    }
}

#[test]
fn kernels_are_measured_for_the_same_inputs() {
    let dir = tempfile::tempdir().unwrap();
    let kernels = two();
    let mut device = Watched::new(1, usize::MAX);
    let settings = TuneSettings { guided: 0.0, ..settings(200) };
    let report = run(dir.path(), &kernels, settings.clone(), vec![&mut device], &mut Silent).unwrap();
    assert_eq!(report.samples, 200);
    let logs = kernels.each_ref().map(|k| logged(dir.path(), k));
    let [all, forward] = logs.each_ref().map(|log| inputs(log));
    assert!(all.len() > 8);
    assert_eq!(all[..forward.len()], forward);
    // Whoever makes the data of an input makes them once.
    let mut order: Vec<&Config> = device.measured().collect();
    order.dedup();
    assert_eq!(order, all.iter().collect::<Vec<_>>());
    assert!(logs[1].iter().all(|s| s.config.get("order").unwrap().as_str() == Some("forward")));
    assert!(report.models().count() == 2 && report.models().all(|m| m.profile.exists()));

    // The first kernel alone is measured as it is beside others.
    let alone = tempfile::tempdir().unwrap();
    let mut device = AnalyticMeasure::new(crate::support::device());
    run(alone.path(), &kernels[..1], settings, vec![&mut device], &mut Silent).unwrap();
    let what = |s: &Sample| (s.draw, s.input.clone(), s.config.clone(), s.outcome.clone());
    let single: Vec<_> = logged(alone.path(), &kernels[0]).iter().map(what).collect();
    let beside: Vec<_> = logs[0].iter().map(what).collect();
    let both = single.len().min(beside.len());
    assert!(both > 80);
    assert_eq!(single[..both], beside[..both]);
}

#[test]
fn a_campaign_that_stops_between_kernels_goes_on_with_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let kernels = two();
    let settings = TuneSettings { fixed: Config::parse("dtype=f64").unwrap(), seed: 3, ..settings(200) };
    let whole = tempfile::tempdir().unwrap();
    let mut device = AnalyticMeasure::new(crate::support::device());
    run(whole.path(), &kernels, settings.clone(), vec![&mut device], &mut Silent).unwrap();
    let first = |kernel: &Toy| {
        let log = logged(whole.path(), kernel);
        log.iter().filter(|s| s.draw == 0).count()
    };
    // In the middle of the second kernel's share of the first input.
    let stop = first(&kernels[0]) + first(&kernels[1]) / 2;
    let mut device = AnalyticMeasure::new(crate::support::device());
    run(dir.path(), &kernels, settings.clone(), vec![&mut device], &mut StopAfter(stop as u64)).unwrap_err_or_models();
    assert!(logged(dir.path(), &kernels[1]).len() < first(&kernels[1]));
    run(dir.path(), &kernels, settings, vec![&mut device], &mut Silent).unwrap();
    for kernel in &kernels {
        let (resumed, at_once) = (logged(dir.path(), kernel), logged(whole.path(), kernel));
        let of_first = |log: &[Sample]| log.iter().filter(|s| s.draw == 0).count();
        assert_eq!(of_first(&resumed), of_first(&at_once), "{}", kernel.id());
        let both = inputs(&resumed).len().min(inputs(&at_once).len());
        assert_eq!(inputs(&resumed)[..both], inputs(&at_once)[..both]);
        let distinct: BTreeSet<_> = resumed.iter().map(|s| format!("{} {}", s.input, s.config)).collect();
        assert_eq!(distinct.len(), resumed.len(), "nothing is measured twice");
    }
}

/// A campaign that was stopped early may have too little for a model.
trait Stopped {
    fn unwrap_err_or_models(self);
}

impl Stopped for Result<TuneReport, RuntimeError> {
    fn unwrap_err_or_models(self) {
        if let Ok(report) = self {
            assert!(report.kernels.iter().any(|k| k.model.is_err()), "it was stopped before there was enough");
        }
    }
}

#[test]
fn kernels_with_few_points_or_none_do_not_end_it() {
    let dir = tempfile::tempdir().unwrap();
    let single = "width == 1 and unroll == 1 and chunks == 1 and prefetch == 1 and order == 'forward'";
    let restricted = |rule: &str, name| Erased::new(ScaleKernel::new().restricted(rule).named(name));
    let kernels = [
        restricted("n < 0", "scale.never.1"),
        Erased::new(ScaleKernel::new()),
        restricted(single, "scale.single.1"),
        restricted("n > 1000", "scale.long.1"),
    ];
    let mut device = AnalyticMeasure::new(crate::support::device());
    let report = run(dir.path(), &kernels, settings(120), vec![&mut device], &mut Silent).unwrap();
    let [never, all, single, long] = &report.kernels[..] else { panic!() };
    assert_eq!((never.samples, never.failed), (0, 0));
    assert_eq!(single.samples, single.inputs, "one measurement for each input");
    assert!(all.model.is_ok() && long.inputs < all.inputs);
    let why = |report: &tilewright_runtime::tune::KernelReport| report.model.as_ref().err().unwrap().clone();
    assert!(why(never).contains("0 samples") && why(single).contains("at least 20"), "{}", why(single));

    // Where nothing at all is legal, that is the answer.
    let mut device = AnalyticMeasure::new(crate::support::device());
    let error = run(dir.path(), &kernels[..1], settings(120), vec![&mut device], &mut Silent).err().unwrap();
    assert!(matches!(error, RuntimeError::NothingLegal { .. }), "{error}");
}

#[test]
fn devices_of_one_model_share_a_campaign() {
    let dir = tempfile::tempdir().unwrap();
    let kernels = two();
    let mut devices = [Watched::new(1, usize::MAX), Watched::new(1, usize::MAX)];
    let [a, b] = &mut devices;
    let report = run(dir.path(), &kernels, settings(400), vec![a, b], &mut Silent).unwrap();
    assert!((400..=402).contains(&report.samples), "{}", report.samples);
    let counts = devices.each_ref().map(|d| d.measured().count());
    assert!(counts.iter().all(|&c| c > 40), "{counts:?}");
    assert_eq!(counts.iter().sum::<usize>() as u64, report.samples + report.failed);

    // One of them is lost: the campaign ends, and what was measured is there.
    let mut devices = [Watched::new(1, usize::MAX), Watched::new(1, 30)];
    let [a, b] = &mut devices;
    let error = run(dir.path(), &kernels, settings(4000), vec![a, b], &mut Silent).err().unwrap();
    assert!(matches!(error, RuntimeError::Device(DeviceError::Missing { .. })), "{error}");
    let kept: usize = kernels.iter().map(|k| logged(dir.path(), k).len()).sum();
    let new: usize = devices.iter().map(|d| d.measured().count()).sum();
    assert_eq!(kept as u64, report.samples + report.failed + new as u64);
}

#[test]
fn the_next_input_is_announced_before_this_one_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let kernels = two();
    let mut device = Watched::new(64, usize::MAX);
    let settings = settings(200).whole_inputs(10);
    run(dir.path(), &kernels, settings, vec![&mut device], &mut Silent).unwrap();
    let asked = &device.asked;
    let first_of = |measured: bool, input: &Config| asked.iter().position(|a| a.0 == measured && a.1 == *input);
    let mut order: Vec<&Config> = device.measured().collect();
    order.dedup();
    assert!(order.len() > 5);
    for pair in order.windows(2) {
        assert!(first_of(false, pair[1]) < first_of(true, pair[0]), "{} before {}", pair[1], pair[0]);
    }
    let unannounced = |(i, a): (usize, &(bool, Config, Point))| {
        a.0 && !asked[..i].iter().any(|b| !b.0 && (&b.1, &b.2) == (&a.1, &a.2))
    };
    assert!(!asked.iter().enumerate().any(unannounced));
}

#[test]
fn what_cannot_be_tuned_together_is_refused() {
    let kernels = two();
    let dir = tempfile::tempdir().unwrap();
    let mut other = AnalyticMeasure::new(tilewright_testkit::toy::device_with(17));
    let mut device = AnalyticMeasure::new(crate::support::device());
    let error = run(dir.path(), &kernels, settings(60), vec![&mut device, &mut other], &mut Silent).err().unwrap();
    assert_eq!(error.field().as_deref(), Some("devices"), "{error}");
    let mut nothing = Tuner {
        kernels: Vec::new(),
        devices: vec![&mut device],
        sampler: chained,
        trainer: &RowTrainer,
        observer: &mut Silent,
        settings: settings(60),
    };
    assert_eq!(nothing.run(&[]).err().unwrap().field().as_deref(), Some("kernels"));
}
