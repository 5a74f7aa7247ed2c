//! What a device knows that ran nothing: from records of others, of kernels and of their configurations.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tilewright::core::choice::{Case, ChoiceSet, Trial};
use tilewright::core::device::DeviceSpec;
use tilewright::core::feature::{Feature, FeatureSchema};
use tilewright::core::objective::Objective;
use tilewright::core::problem::{AnyKernel, Erased, Problem};
use tilewright::core::selector::{Candidate, Selector};
use tilewright::core::space::Config;
use tilewright::known::{Known, experience, record_cases, record_report, selector};
use tilewright::runtime::store::Home;
use tilewright::runtime::trainer::MlpTrainer;
use tilewright::runtime::tune::{Silent, TuneSettings, Tuner, chained};
use tilewright::search::{Options, exhaustive};
use tilewright_testkit::toy::{self, AnalyticMeasure, ScaleKernel};

fn kernel() -> Erased<ScaleKernel> {
    Erased::new(ScaleKernel::new())
}

/// Tunes on a device with so many registers and records what it measured; how much was new.
fn record(home: &Home, registers: i64, samples: u64) -> usize {
    let (kernel, device) = (kernel(), toy::device_with(registers));
    let budget = Duration::from_secs(60);
    let settings = TuneSettings { samples: Some(samples), budget, guided: 0.0, ..TuneSettings::default() };
    let mut measure = AnalyticMeasure::new(device.clone());
    let mut tuner = Tuner {
        kernels: vec![&kernel],
        devices: vec![&mut measure],
        sampler: chained,
        trainer: &MlpTrainer,
        observer: &mut Silent,
        settings,
    };
    let paths = tuner.paths(home);
    let report = tuner.run(&paths).unwrap();
    // The device that is asked about later must not find a profile of its own.
    std::fs::remove_file(&report.models().next().unwrap().profile).unwrap();
    record_report(home, &device, &[&kernel], &report, &Objective::default()).unwrap()
}

fn problem(device: &Arc<DeviceSpec>, n: i64) -> Box<dyn Problem> {
    kernel().problem(device, &Config(vec![("n".into(), n.into())])).unwrap()
}

/// How much slower than the best configuration the first choice of what is known is, and the default, on average.
fn losses(known: &Known<'_>, device: &Arc<DeviceSpec>) -> (f64, f64) {
    let (mut chosen, mut default) = (0.0, 0.0);
    let inputs = [3_000, 20_000, 150_000, 1_000_000, 7_000_000];
    for n in inputs {
        let problem = problem(device, n);
        let scorer = known.predictor.as_ref().unwrap().bind(&*problem).unwrap();
        let best = exhaustive(&*problem, &*scorer, &Options::top(1)).ranked.points.remove(0).0;
        let optimum = toy::optimum(&*problem).unwrap().1;
        chosen += toy::cost_s(&*problem, &best) / optimum / inputs.len() as f64;
        default += toy::cost_s(&*problem, &problem.default_point().unwrap()) / optimum / inputs.len() as f64;
    }
    (chosen, default)
}

fn find<'k>(home: &Home, kernel: &'k Erased<ScaleKernel>, device: &DeviceSpec) -> Known<'k> {
    Known::find(home, (None, None), kernel, device, &Config::parse("n=1000").unwrap()).unwrap()
}

#[test]
fn configurations_are_ranked_by_what_other_devices_measured() {
    let folder = tempfile::tempdir().unwrap();
    let (home, kernel, target) = (Home::at(folder.path()), kernel(), toy::device_with(16));
    let nothing = find(&home, &kernel, &target);
    assert_eq!((nothing.name(), nothing.predictor.is_none()), ("default", true));
    assert!(record(&home, 8, 300) >= 250);
    // A resumed campaign that had ended measures nothing anew.
    assert_eq!(record(&home, 8, 300), 0);
    let one = find(&home, &kernel, &target);
    assert_eq!(one.name(), "transfer");
    assert!(one.reason().contains("1 device (toy device with registers=8)"), "{}", one.reason());
    let alone = losses(&one, &target);
    assert!(record(&home, 32, 300) >= 250);
    let two = find(&home, &kernel, &target);
    assert!(two.reason().contains("2 devices"), "{}", two.reason());
    assert!(!two.predictor.as_ref().unwrap().is_calibrated());
    let both = losses(&two, &target);
    eprintln!("slower than the best, chosen and default: from one device {alone:?}, from two {both:?}");
    assert!(alone.0 < 0.9 * alone.1 && both.0 < 0.8 * both.1, "{alone:?} {both:?}");

    let begun = experience(&home, &*problem(&target, 20_000)).unwrap();
    let (best, on) = (begun.best(1).remove(0), problem(&target, 20_000));
    assert!(toy::cost_s(&*on, &best) < toy::cost_s(&*on, &on.default_point().unwrap()), "{best:?}");
}

#[test]
fn damaged_records_are_left_out_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let (home, kernel, target) = (Home::at(folder.path()), kernel(), toy::device_with(16));
    record(&home, 8, 100);
    record(&home, 32, 100);
    let segments = |set: &Path| -> Vec<_> {
        let devices = std::fs::read_dir(set).unwrap().map(|d| d.unwrap().path());
        devices.flat_map(|d| std::fs::read_dir(d).unwrap().map(|f| f.unwrap().path())).collect()
    };
    let set = std::fs::read_dir(home.repository()).unwrap().map(|e| e.unwrap().path()).find(|p| p.is_dir()).unwrap();
    let mut files = segments(&set);
    files.sort();
    let damage = |file: &Path| {
        let text = std::fs::read_to_string(file).unwrap();
        std::fs::write(file, text.replace("dtype", "a dtype")).unwrap();
    };
    damage(&files[0]);
    let known = find(&home, &kernel, &target);
    let name = files[0].file_name().unwrap().to_string_lossy().into_owned();
    assert!(known.name() == "transfer" && known.reason().contains("from 1 device"), "{}", known.reason());
    assert!(known.reason().contains(&name) && known.reason().contains("checksum"), "{}", known.reason());
    damage(&files[1]);
    let known = find(&home, &kernel, &target);
    assert!(known.name() == "default" && known.reason().contains(&name), "{}", known.reason());
    // A repository that another version made, and one that cannot be reached.
    std::fs::write(Path::new(&home.repository()).join("format"), "tilewright repository 9\n").unwrap();
    assert!(find(&home, &kernel, &target).reason().contains("version 9"));
}

#[test]
fn a_selector_is_learned_from_other_devices() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    let candidate = |name: &str| Candidate { variant: name.into(), features: Vec::new() };
    let schema = FeatureSchema { input: vec![Feature::size("n")], config: Vec::new() };
    let find = |schema: &FeatureSchema| selector(&home, "scale", &toy::device_with(16), schema);
    assert!(find(&schema).unwrap().is_none());
    for registers in [8, 32] {
        let mut cases = ChoiceSet::new(schema.clone());
        for n in 1..60u32 {
            let trial = |name: &str, cost: f64| Trial { candidate: candidate(name), cost: Some(cost) };
            let trials = vec![trial("flat", 30.0), trial("steep", f64::from(n))];
            cases.push(Case { features: vec![n as f32], trials, group: n }).unwrap();
        }
        let device = toy::device_with(registers);
        assert_eq!(record_cases(&home, &device, "scale", &cases).unwrap(), 59);
        assert_eq!(record_cases(&home, &device, "scale", &cases).unwrap(), 0);
    }
    let known = find(&schema).unwrap().unwrap();
    assert_eq!((known.inputs, &known.variants[..]), (118, &["flat".to_owned(), "steep".to_owned()][..]));
    assert!(known.reason.contains("2 devices"), "{}", known.reason);
    let mut order = Vec::new();
    for (n, first) in [(5.0, 1), (55.0, 0)] {
        known.selector.rank(&[n], &[candidate("flat"), candidate("steep")], &mut order);
        assert_eq!(order[0], first, "{n}");
    }
    let other = FeatureSchema { input: vec![Feature::size("rows")], config: Vec::new() };
    assert!(find(&other).err().unwrap().to_string().contains("schema"));
}

/// Others say that "flat" wins beyond n = 30; a few inputs timed here say that it never does.
#[test]
fn inputs_timed_on_this_device_correct_what_others_say() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    let candidate = |name: &str| Candidate { variant: name.into(), features: Vec::new() };
    let schema = FeatureSchema { input: vec![Feature::size("n")], config: Vec::new() };
    let record = |registers: i64, flat: f64, sizes: &[u32]| {
        let mut cases = ChoiceSet::new(schema.clone());
        for &n in sizes {
            let trial = |name: &str, cost: f64| Trial { candidate: candidate(name), cost: Some(cost) };
            let trials = vec![trial("flat", flat), trial("steep", f64::from(n))];
            cases.push(Case { features: vec![n as f32], trials, group: n }).unwrap();
        }
        record_cases(&home, &toy::device_with(registers), "scale", &cases).unwrap();
    };
    let all: Vec<u32> = (1..60).collect();
    record(8, 30.0, &all);
    record(32, 30.0, &all);
    let here = toy::device_with(16);
    let first = |n: f32| {
        let known = selector(&home, "scale", &here, &schema).unwrap().unwrap();
        let mut order = Vec::new();
        known.selector.rank(&[n], &[candidate("flat"), candidate("steep")], &mut order);
        (order[0], known)
    };
    let (at, known) = first(55.0);
    let loss = known.selector.expected_loss(&[55.0], &["flat", "steep"].map(candidate)).unwrap();
    assert!(at == 0 && (0.0..0.2).contains(&loss), "{at} {loss}");
    record(16, 300.0, &[20, 35, 45, 58]);
    let (at, known) = first(55.0);
    assert_eq!((at, known.shots.len(), known.inputs), (1, 4, 118));
    assert!(
        known.reason.contains("2 devices") && known.reason.ends_with("and 4 inputs timed here"),
        "{}",
        known.reason
    );
}
