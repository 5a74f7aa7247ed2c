//! What every repository must do.

use tilewright_core::choice::{Case, ChoiceSet, Trial};
use tilewright_core::feature::{Feature, FeatureKind, FeatureSchema};
use tilewright_core::selector::Candidate;
use tilewright_core::space::Config;
use tilewright_mtl::profile::{OperationCounts, Profile, ProxyRun};
use tilewright_repository::{
    Key, Record, RecordedCase, RecordedFeature, RecordedTime, Repository, RepositoryError, training,
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
        assert!(matches!(refused, Err(RepositoryError::Poisoned { .. })), "{record:?}: {refused:?}");
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
    assert!(matches!(mixed, Err(RepositoryError::Inconsistent { .. })), "{mixed:?}");
}
