//! What every repository must do.

use tilewright_core::choice::{Case, ChoiceSet, Trial};
use tilewright_core::expr::Value;
use tilewright_core::feature::{Feature, FeatureKind, FeatureSchema};
use tilewright_core::objective::Objective;
use tilewright_core::selector::Candidate;
use tilewright_core::space::Config;
use tilewright_mtl::profile::{OperationCounts, Profile, ProxyRun};
use tilewright_repository::{
    Fault, Key, Record, RecordedCase, RecordedFeature, RecordedOutcome, RecordedSamples, RecordedTime, RecordedTrial,
    Repository, append_new, sampled, training,
};

pub(crate) fn case(n: f32, times: &[(&str, Option<f64>)]) -> Record {
    Record::Case(RecordedCase {
        features: vec![RecordedFeature("n".into(), FeatureKind::Size, Some(n))],
        times: times.iter().map(|(v, t)| RecordedTime((*v).into(), *t)).collect(),
        group: n as u32,
    })
}

fn key(set: &str, device: &str) -> Key {
    Key::new(set, device).expect("a sound name")
}

/// `open` gives handles of one repository, which is empty at first.
pub(crate) fn keeps_what_it_is_given(open: &mut dyn FnMut() -> Box<dyn Repository>) {
    let (mut one, mut other) = (open(), open());
    assert_eq!(one.keys().unwrap(), []);
    let (here, there) = (key("sort / 64 bit", "GTX 480"), key("sort / 64 bit", "é"));
    let counts = OperationCounts { fp32: 3.0, loads: 1.0, ..OperationCounts::default() };
    let records = [
        Record::Device(Config::parse("cores=480,vendor=nvidia").unwrap()),
        case(10.0, &[("merge", Some(1e-3)), ("radix", None)]),
        Record::Profile(Profile {
            variant: "merge".into(),
            kernel: "merge pass".into(),
            input: "10".into(),
            metrics: counts.metrics(),
        }),
        Record::Proxy(ProxyRun { proxy: "ATOMIC".into(), intensity: 5, metrics: counts.metrics() }),
    ];
    let ids: Vec<_> = records.iter().map(|r| one.append(&here, r).unwrap()).collect();
    let read = other.read(&here).unwrap();
    assert_eq!(read.iter().map(|r| &r.1).collect::<Vec<_>>(), records.iter().collect::<Vec<_>>());
    assert_eq!(read.iter().map(|r| &r.0).collect::<Vec<_>>(), ids.iter().collect::<Vec<_>>());
    other.append(&there, &records[1]).unwrap();
    other.append(&here, &records[1]).unwrap();
    assert_eq!(one.keys().unwrap(), [here.clone(), there]);
    assert_eq!(one.read(&here).unwrap().len(), 5);
    assert_eq!(one.read(&key("sort", "none")).unwrap(), []);
}

pub(crate) fn refuses_poison(repository: &mut dyn Repository) {
    let here = key("poisoned", "here");
    let poisoned = [
        case(1.0, &[("a", Some(-1.0))]),
        case(1.0, &[("a", Some(0.0))]),
        case(1.0, &[("a", Some(f64::NAN))]),
        case(1.0, &[("a", Some(1.0)), ("a", Some(1.0))]),
        case(1.0, &[]),
        case(f32::INFINITY, &[("a", Some(1.0))]),
        Record::Proxy(ProxyRun { proxy: "ATOMIC".into(), intensity: 6, metrics: Default::default() }),
        Record::Device(Config(vec![("cores".into(), f64::NAN.into())])),
    ];
    for record in &poisoned {
        let refused = repository.append(&here, record);
        assert!(refused.as_ref().is_err_and(|e| e.fault == Fault::Poisoned), "{record:?}: {refused:?}");
    }
    assert_eq!(repository.read(&here).unwrap(), []);
}

/// From recorded cases to sources of a transfer, and devices that do not belong together.
pub(crate) fn gives_training_data(repository: &mut dyn Repository) {
    let schema = FeatureSchema { input: vec![Feature::size("n"), Feature::flag("odd")], config: Vec::new() };
    let mut cases = ChoiceSet::new(schema.clone());
    for n in 0..5u32 {
        let trial = |name: &str, cost| Trial { candidate: Candidate { variant: name.into(), features: vec![] }, cost };
        let trials = vec![trial("a", Some(1.0)), trial("b", None)];
        cases.push(Case { features: vec![n as f32, 1.0], trials, group: n }).unwrap();
    }
    for (device, cores) in [("one", "cores=1"), ("two", "cores=2")] {
        let here = key("set", device);
        repository.append(&here, &Record::Device(Config::parse("cores=9,l2=4").unwrap())).unwrap();
        repository.append(&here, &Record::Device(Config::parse(cores).unwrap())).unwrap();
        for case in cases.cases() {
            let record = Record::Case(RecordedCase::of(&schema, case).unwrap());
            repository.append(&here, &record).unwrap();
        }
    }
    repository.append(&key("set", "target"), &Record::Device(Config::parse("cores=3").unwrap())).unwrap();
    let all = training(repository, "set").unwrap();
    assert_eq!(all.sources.len(), 2);
    assert_eq!(all.sources[1].cases, cases);
    assert_eq!(all.sources[1].features, Config::parse("cores=2,l2=4").unwrap());
    assert_eq!(all.others, [("target".to_owned(), Config::parse("cores=3").unwrap())]);
    repository.append(&key("set", "two"), &case(1.0, &[("a", Some(1.0))])).unwrap();
    let mixed = training(repository, "set");
    assert!(mixed.as_ref().is_err_and(|e| e.fault == Fault::Inconsistent), "{mixed:?}");
}

fn samples(n: i64, costs: &[RecordedOutcome]) -> RecordedSamples {
    let trial = |(i, &outcome): (usize, &RecordedOutcome)| {
        RecordedTrial(vec![Value::Int(i as i64), "up".into()], vec![Some(i as f32), None], outcome)
    };
    RecordedSamples {
        schema: kernel_schema().hash(),
        objective: Objective::default(),
        input: Config(vec![("n".into(), Value::Int(n))]),
        features: vec![Some(n as f32)],
        params: vec!["tile".into(), "order".into()],
        trials: costs.iter().enumerate().map(trial).collect(),
    }
}

fn kernel_schema() -> FeatureSchema {
    FeatureSchema { input: vec![Feature::size("n")], config: vec![Feature::size("tile"), Feature::flag("odd")] }
}

/// Configurations of a kernel: what is recorded again is there once, what cannot be used is left out by name.
pub(crate) fn gives_configurations(open: &mut dyn FnMut() -> Box<dyn Repository>) {
    use RecordedOutcome::{AtLeast, Cost, Failed};
    let mut repository = open();
    let here = key("kernel.1", "here");
    let features = || Record::Device(Config::parse("cores=4").unwrap());
    let first = samples(8, &[Cost(1.0), AtLeast(3.0)]);
    let before = repository.state(&here).unwrap();
    assert_eq!(append_new(&mut *repository, &here, [features(), Record::Samples(first)]).unwrap(), 3);
    let state = repository.state(&here).unwrap();
    assert_ne!(before, state);
    // The campaign went on: two configurations of the first input and another input are new.
    let longer = || {
        let first = samples(8, &[Cost(1.0), AtLeast(3.0), Failed, Cost(2.0)]);
        [features(), Record::Samples(first), Record::Samples(samples(9, &[Cost(4.0)]))]
    };
    let mut other = open();
    assert_eq!(append_new(&mut *other, &here, longer()).unwrap(), 3);
    assert_ne!(other.state(&here).unwrap(), state);
    let state = other.state(&here).unwrap();
    assert_eq!(append_new(&mut *other, &here, longer()).unwrap(), 0);
    assert_eq!(repository.state(&here).unwrap(), state);

    let emulated = Objective { metric: "emulated".into(), ..Objective::default() };
    let foreign = RecordedSamples { objective: emulated, ..samples(8, &[Cost(5.0)]) };
    other.append(&key("kernel.1", "emulator"), &Record::Samples(foreign)).unwrap();
    let older = RecordedSamples { schema: "older".into(), ..samples(8, &[Cost(5.0)]) };
    other.append(&key("kernel.1", "old"), &Record::Samples(older)).unwrap();
    other.append(&key("kernel.2", "old"), &Record::Samples(samples(8, &[Cost(5.0)]))).unwrap();
    let schema = kernel_schema();
    let (devices, left_out) = sampled(&mut *repository, "kernel.1", (&schema.hash(), &Objective::default())).unwrap();
    assert!(
        matches!(&left_out[..], [e] if e.fault == Fault::Schema && e.place.contains("old") && e.message.contains("older"))
    );
    assert_eq!((devices.len(), devices[0].device.as_str()), (1, "here"));
    let rows = devices[0].rows(&schema).unwrap();
    // Of several writers, who comes first is not said.
    let mut found: Vec<(u32, f64)> = rows.groups.iter().copied().zip(rows.costs.iter().copied()).collect();
    found.sort_by(|a, b| a.partial_cmp(b).unwrap());
    assert_eq!(found, [(0, 1.0), (0, 2.0), (0, 3.0), (1, 4.0)]);
    let first = rows.rows.chunks(schema.width()).zip(&rows.costs).find(|(_, cost)| **cost == 1.0).unwrap().0;
    assert!(first[..2] == [8.0, 0.0] && first[2].is_nan());
    let mut costs = devices[0].inputs[0].costs();
    assert!(costs.any(|found| found == (Config::parse("tile=3,order=up").unwrap(), 2.0)));
    let poisoned = [samples(1, &[Cost(0.0)]), samples(1, &[AtLeast(f64::NAN)]), samples(1, &[])];
    for samples in poisoned {
        let refused = repository.append(&here, &Record::Samples(samples));
        assert!(refused.as_ref().is_err_and(|e| e.fault == Fault::Poisoned), "{refused:?}");
    }
}
