//! Whole campaigns on the toy kernel: what they leave, and what survives an interruption.

use crate::support::{RowTrainer, device, kernel, paths, settings, tune, words};
use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::Duration;
use tilewright_core::problem::AnyKernel;
use tilewright_core::space::Config;
use tilewright_runtime::RuntimeError;
use tilewright_runtime::log::CampaignLog;
use tilewright_runtime::store::envelope::{Format, read, write};
use tilewright_runtime::store::{Profile, StoreErrorKind};
use tilewright_runtime::trainer::Trainer;
use tilewright_runtime::tune::{KernelReport, Observer, Progress, Silent, TuneSettings};
use tilewright_testkit::toy::{self, AnalyticMeasure, cost_s};

/// Stops after some samples, and keeps what it heard.
#[derive(Default)]
struct StopAfter {
    limit: Option<u64>,
    heard: u64,
    done: Vec<f64>,
    fitted: u64,
}

impl Observer for StopAfter {
    fn sample(&mut self, progress: &Progress<'_>) {
        self.heard += 1;
        self.done.push(progress.done);
    }

    fn fitting(&mut self, rows: u64) {
        self.fitted = rows;
    }

    fn stop(&self) -> bool {
        self.limit.is_some_and(|l| self.heard >= l)
    }
}

/// The inputs of which something was measured, in the order of drawing, each with its least time.
fn by_input(of: &KernelReport) -> Vec<(Config, f64)> {
    let mut out: Vec<(Config, f64)> = Vec::new();
    for (sample, measured) in of.measured.iter().filter_map(|s| Some((s, s.outcome.as_ref().ok()?))) {
        match out.iter_mut().find(|(input, _)| *input == sample.input) {
            Some((_, best)) => *best = best.min(measured.time_s),
            None => out.push((sample.input.clone(), measured.time_s)),
        }
    }
    out
}

#[test]
fn a_campaign_leaves_a_log_and_a_profile() {
    let dir = tempfile::tempdir().unwrap();
    let mut measure = AnalyticMeasure::new(device());
    let mut observer = StopAfter::default();
    let report = tune(dir.path(), settings(200), &mut measure, &mut observer).unwrap();
    assert_eq!((report.samples, report.resumed), (200, 0));
    assert_eq!(report.failed + 200, measure.calls);
    assert_eq!(observer.heard, measure.calls);
    assert_eq!(observer.done.last(), Some(&1.0));
    assert!(observer.done.is_sorted());
    assert!(observer.fitted >= 200, "configurations that were cut off teach too");
    let [of] = &report.kernels[..] else { panic!("one kernel") };
    let model = of.model.as_ref().unwrap();
    assert!(of.acceptance.accepted > 0 && of.acceptance.accepted <= of.acceptance.drawn);
    assert_eq!(of.inputs as usize, by_input(of).len());

    let profile = Profile::read(&model.profile).unwrap();
    profile.expect(&model.profile, &kernel().id(), &device(), &kernel().schema()).unwrap();
    assert_eq!(profile.header.stats.samples, 200);
    assert_eq!(profile.header.model_kind, "log-linear");
    let read = RowTrainer.load(&profile.model, &kernel().schema()).unwrap();
    // The stored model predicts what the fitted one does.
    let problem = kernel().problem(&device(), &words("n=5000")).unwrap();
    let [a, b] = [&read, &model.predictor].map(|model| {
        let scorer = model.bind(&*problem).unwrap();
        scorer.score_each(&problem.default_point())
    });
    assert!((a[0] - b[0]).abs() < 1e-5);
    assert!((f64::from(a[0]) - cost_s(&*problem, &problem.default_point().unwrap()).ln()).abs() < 1.0);
}

/// The mean, over large inputs, of the optimum by the best of 60 measured configurations.
fn share_of_optimum(neighbours: f64) -> f64 {
    let lengths = [5000, 20_000, 77_777, 100_000, 500_001, 1_000_000];
    let share = |n: &usize| {
        let dir = tempfile::tempdir().unwrap();
        let fixed = words(&format!("n={n}"));
        let settings = TuneSettings { configs_per_input: 60, neighbours, fixed, ..settings(60) };
        let report = tune(dir.path(), settings, &mut AnalyticMeasure::new(device()), &mut Silent).unwrap();
        let (_, samples) = CampaignLog::read(&report.kernels[0].log).unwrap();
        let distinct: BTreeSet<_> = samples.iter().map(|s| s.config.to_string()).collect();
        assert_eq!(distinct.len(), samples.len(), "no configuration is measured twice for one input");
        toy::optimum(&toy::problem(*n)).unwrap().1 / by_input(&report.kernels[0])[0].1
    };
    lengths.iter().map(share).sum::<f64>() / lengths.len() as f64
}

#[test]
fn neighbours_of_the_best_bring_an_input_closer_to_its_optimum() {
    let (mixture, drawn) = (share_of_optimum(0.4), share_of_optimum(0.0));
    assert!(mixture > drawn + 0.02, "{mixture} with neighbours, {drawn} without");
}

#[test]
fn an_interrupted_campaign_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = AnalyticMeasure::new(device());
    let mut stop = StopAfter { limit: Some(73), ..StopAfter::default() };
    tune(dir.path(), settings(200), &mut first, &mut stop).unwrap();
    let mut second = AnalyticMeasure::new(device());
    let report = tune(dir.path(), settings(200), &mut second, &mut Silent).unwrap();
    assert_eq!((report.samples, report.resumed), (200, 73));
    assert_eq!(first.calls, 73);
    assert_eq!(first.calls + second.calls, 200 + report.failed);

    let whole = tempfile::tempdir().unwrap();
    let whole = tune(whole.path(), settings(200), &mut AnalyticMeasure::new(device()), &mut Silent).unwrap();
    let inputs = |of: &KernelReport| by_input(of).into_iter().take(15).map(|(input, _)| input).collect::<Vec<_>>();
    assert_eq!(inputs(&report.kernels[0]), inputs(&whole.kernels[0]), "the same inputs as without the interruption");

    // Enough samples are there: nothing more is measured.
    let mut third = AnalyticMeasure::new(device());
    tune(dir.path(), settings(200), &mut third, &mut Silent).unwrap();
    assert_eq!(third.calls, 0);
}

#[test]
fn the_same_seed_gives_the_same_samples() {
    let run = |seed| {
        let dir = tempfile::tempdir().unwrap();
        let settings = TuneSettings { seed, ..settings(60) };
        let report = tune(dir.path(), settings, &mut AnalyticMeasure::new(device()), &mut Silent).unwrap();
        let (_, samples) = CampaignLog::read(&report.kernels[0].log).unwrap();
        samples.into_iter().map(|s| (s.input, s.config, s.outcome)).collect::<Vec<_>>()
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn failures_are_counted_and_too_few_samples_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut measure = AnalyticMeasure::new(device()).failing(|p| p[0] == 0);
    let report = tune(dir.path(), settings(60), &mut measure, &mut Silent).unwrap();
    assert!(report.failed > 0);
    let dir = tempfile::tempdir().unwrap();
    let mut stop = StopAfter { limit: Some(5), ..StopAfter::default() };
    let error = tune(dir.path(), settings(60), &mut AnalyticMeasure::new(device()), &mut stop).err().unwrap();
    assert!(matches!(error, RuntimeError::TooFewSamples { need: 20, interrupted: true, .. }), "{error}");
    let said = error.to_string();
    assert!(said.contains("interrupted after 5 samples (0 configurations failed)"), "{said}");
    // One that was let run to its end has too little time, or too few samples.
    let dir = tempfile::tempdir().unwrap();
    let error = tune(dir.path(), settings(5), &mut AnalyticMeasure::new(device()), &mut Silent).err().unwrap();
    assert!(error.to_string().contains("raise the budget"), "{error}");
}

#[test]
fn what_is_interrupted_before_anything_is_measured_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let mut stop = StopAfter { limit: Some(0), ..StopAfter::default() };
    let error = tune(dir.path(), settings(60), &mut AnalyticMeasure::new(device()), &mut stop).err().unwrap();
    assert_eq!(error.to_string(), "interrupted before anything was measured");
}

#[test]
fn settings_and_words_out_of_range_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let field = |settings: TuneSettings| {
        let error = tune(dir.path(), settings, &mut AnalyticMeasure::new(device()), &mut Silent).err().unwrap();
        error.field().unwrap()
    };
    assert_eq!(field(TuneSettings { cut_off: f64::NAN, ..settings(60) }), "cut_off");
    assert_eq!(field(TuneSettings { neighbours: 1.5, ..settings(60) }), "neighbours");
    assert_eq!(field(TuneSettings { incumbent: Some("scale.gone.1".to_owned().into()), ..settings(60) }), "incumbent");
    assert_eq!(field(TuneSettings { configs_per_input: 0, ..settings(60) }), "configs_per_input");
    assert_eq!(field(TuneSettings { fixed: words("dtype=f8"), ..settings(60) }), "dtype");
}

/// What the killed writer writes.
const FORMAT: Format = Format { name: "test", version: 1 };

/// Set for the child of a test that is killed; names its directory.
const CHILD: &str = "TILEWRIGHT_TEST_CHILD";

/// Slows an observer down enough that a kill finds the campaign at work.
struct Dawdling;

impl Observer for Dawdling {
    fn sample(&mut self, _: &Progress<'_>) {
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn child(test: &str, dir: &std::path::Path) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("tuning::{test}"), "--nocapture"])
        .env(CHILD, dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn as_child() -> Option<std::path::PathBuf> {
    std::env::var_os(CHILD).map(Into::into)
}

#[test]
fn a_killed_campaign_loses_at_most_the_sample_at_hand() {
    if let Some(dir) = as_child() {
        let _ = tune(&dir, settings(1_000_000), &mut AnalyticMeasure::new(device()), &mut Dawdling);
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let log = paths(dir.path()).log;
    let mut seen = Vec::new();
    for kill in 0..6u64 {
        let mut running = child("a_killed_campaign_loses_at_most_the_sample_at_hand", dir.path());
        let before = std::fs::metadata(&log).map_or(0, |m| m.len());
        // Wait for it to write, then kill it at some moment.
        for _ in 0..500 {
            std::thread::sleep(Duration::from_millis(10));
            if std::fs::metadata(&log).is_ok_and(|m| m.len() > before + 2000) {
                break;
            }
        }
        std::thread::sleep(Duration::from_micros(700 * kill));
        running.kill().unwrap();
        running.wait().unwrap();
        let (_, samples) = CampaignLog::read(&log).unwrap();
        assert!(samples.len() > seen.len(), "nothing was added before kill {kill}");
        assert_eq!(samples[..seen.len()], seen, "something was lost by kill {kill}");
        seen = samples;
    }
    let count = seen.iter().filter(|s| s.outcome.is_ok()).count() as u64;
    let report = tune(dir.path(), settings(count + 20), &mut AnalyticMeasure::new(device()), &mut Silent).unwrap();
    assert_eq!((report.resumed, report.samples), (seen.len() as u64, count + 20));
}

#[test]
fn a_kill_while_files_are_replaced_leaves_whole_files() {
    let name = "a_kill_while_files_are_replaced_leaves_whole_files";
    if let Some(dir) = as_child() {
        // Contents that differ in length, so that a mixture would show.
        for turn in 0u64.. {
            let body: Vec<u64> = (0..500 + turn % 1000).collect();
            let _ = write(&dir.join("file"), FORMAT, &turn, &body);
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    for kill in 0..8u64 {
        let mut running = child(name, dir.path());
        let before = std::fs::metadata(&path).and_then(|m| m.modified()).ok();
        for _ in 0..500 {
            std::thread::sleep(Duration::from_millis(5));
            if std::fs::metadata(&path).and_then(|m| m.modified()).ok() != before {
                break;
            }
        }
        std::thread::sleep(Duration::from_micros(500 * kill));
        running.kill().unwrap();
        running.wait().unwrap();
        let (turn, body): (u64, Vec<u64>) = read(&path, FORMAT).unwrap();
        assert_eq!(body.len() as u64, 500 + turn % 1000);
    }
}

#[test]
fn a_model_on_the_way_leads_to_better_configurations() {
    let mean = |guided: f64| {
        let dir = tempfile::tempdir().unwrap();
        let settings = TuneSettings { guided, neighbours: 0.0, carried: 0.0, guide_at: vec![0.4], ..settings(600) };
        let report = tune(dir.path(), settings, &mut AnalyticMeasure::new(device()), &mut Silent).unwrap();
        // The later half, which the model guides; small inputs have few configurations and no room.
        let all = by_input(&report.kernels[0]);
        let later = &all[all.len() / 2..];
        let share = |(input, best): &(Config, f64)| {
            let problem = kernel().problem(&device(), input).unwrap();
            toy::optimum(&*problem).unwrap().1 / best
        };
        later.iter().map(share).sum::<f64>() / later.len() as f64
    };
    let (guided, drawn) = (mean(0.5), mean(0.0));
    assert!(guided > drawn + 0.02, "{guided} of the optimum with a guide, {drawn} without");
}

#[test]
fn two_processes_that_tune_at_once_do_not_mix() {
    if let Some(dir) = as_child() {
        let _ = tune(&dir, settings(1_000_000), &mut AnalyticMeasure::new(device()), &mut Dawdling);
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut running = child("two_processes_that_tune_at_once_do_not_mix", dir.path());
    let log = paths(dir.path()).log;
    for _ in 0..500 {
        std::thread::sleep(Duration::from_millis(10));
        if std::fs::metadata(&log).is_ok_and(|m| m.len() > 2000) {
            break;
        }
    }
    let error = tune(dir.path(), settings(60), &mut AnalyticMeasure::new(device()), &mut Silent).err().unwrap();
    running.kill().unwrap();
    running.wait().unwrap();
    let RuntimeError::Store(error) = error else { panic!("{error}") };
    assert!(matches!(error.kind, StoreErrorKind::Locked), "{error}");
    assert_eq!(error.path, log);
    // The lock went with the process.
    tune(dir.path(), settings(60), &mut AnalyticMeasure::new(device()), &mut Silent).unwrap();
}
