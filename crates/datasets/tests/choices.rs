//! Cases of choice from rows.

use std::path::Path;
use tilewright_core::choice::{Case, ChoiceSet, Trial};
use tilewright_core::feature::{Feature, FeatureSchema};
use tilewright_core::selector::Candidate;
use tilewright_datasets::{Dataset, DatasetError, Place};

const SIDECAR: &[u8] = br#"{
    "format": "tilewright-dataset", "version": 1,
    "columns": {
        "device": "gpu", "input": ["n"], "config": ["tile"], "variant": "kind",
        "time": {"column": "ms", "unit": "ms"}, "status": {"column": "ok", "ok": 1}, "group": "family"
    }
}"#;

fn parsed(table: &str) -> Result<Dataset, DatasetError> {
    Dataset::parse(table.as_bytes(), SIDECAR, Path::new("made.csv"))
}

const TABLE: &str = "gpu,family,n,kind,tile,ms,ok\n\
    A,x,100,tiled,8,0.5,1\n\
    A,x,100,tiled,16,,0\n\
    A,x,100,library,,0.25,1\n\
    A,y,200,tiled,8,2,1\n\
    A,y,200,library,,1,1\n\
    A,y,200,tiled,8,3,1\n\
    A,y,200,library,,4,1\n";

#[test]
fn rows_of_an_input_are_one_case() {
    let set = parsed(TABLE).unwrap().choices().unwrap();
    let first = &set.cases()[0];
    let names: Vec<&str> = first.trials.iter().map(|t| t.candidate.variant.as_str()).collect();
    assert_eq!(names, ["tiled[tile=8]", "tiled[tile=16]", "library"]);
    assert_eq!(first.trials.iter().map(|t| t.cost).collect::<Vec<_>>(), [Some(0.0005), None, Some(0.00025)]);
    assert_eq!(first.features, [100.0]);
    assert_eq!(first.best(), Some(0.00025));
    assert!(first.trials[2].candidate.features.last().is_some_and(|f| f.is_nan()), "a library has no tile");
}

#[test]
fn repeated_measurements_are_cases_of_their_own() {
    let set = parsed(TABLE).unwrap().choices().unwrap();
    let bests: Vec<Option<f64>> = set.cases().iter().map(|c| c.best()).collect();
    assert_eq!(bests, [Some(0.00025), Some(0.001), Some(0.003)]);
    assert_eq!(set.cases()[1].group, set.cases()[2].group);
    assert_ne!(set.cases()[0].group, set.cases()[1].group);
}

/// An input that is held out of one device's training is not learned from another's.
#[test]
fn without_a_group_an_input_is_one_on_all_devices() {
    let sidecar = String::from_utf8_lossy(SIDECAR).replace(r#", "group": "family""#, "");
    let table = "gpu,family,n,kind,tile,ms,ok\nA,x,100,a,8,1,1\nB,x,100,a,8,1,1\nB,x,200,a,8,1,1\nA,x,200,a,8,1,1\n";
    let set = Dataset::parse(table.as_bytes(), sidecar.as_bytes(), Path::new("made.csv")).unwrap().choices().unwrap();
    assert_eq!(set.cases().iter().map(|c| c.group).collect::<Vec<_>>(), [0, 0, 1, 1]);
}

/// Nothing lies between variants 1 and 2.
#[test]
fn names_in_digits_are_names() {
    let set = parsed(&TABLE.replace("tiled", "1").replace("library", "2")).unwrap().choices().unwrap();
    let names: Vec<&str> = set.schema().config.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["kind=1", "kind=2", "tile"]);
}

#[test]
fn parts_have_the_schema_of_the_whole() {
    let data = parsed(TABLE).unwrap();
    let part = data.choices_of(&[3, 4]).unwrap();
    assert_eq!((part.len(), part.schema()), (1, data.choices().unwrap().schema()));
}

#[test]
fn a_negative_time_is_refused() {
    let poisoned = parsed(&TABLE.replace("0.25", "-0.25")).and_then(|d| d.choices().map(|_| ()));
    let place = Place::Cell { line: 4, column: "ms".into() };
    assert!(matches!(&poisoned, Err(DatasetError::Invalid { place: p, .. }) if *p == place), "{poisoned:?}");
}

/// Two inputs of named variants; a feature is unknown once, and a variant failed.
fn named(features: &[&str]) -> ChoiceSet {
    let input = features.iter().map(|n| Feature::size(n)).collect();
    let mut set = ChoiceSet::new(FeatureSchema { input, config: Vec::new() });
    for (i, cost) in [Some(0.5), None].into_iter().enumerate() {
        let trial =
            |name: &str, cost| Trial { candidate: Candidate { variant: name.into(), features: Vec::new() }, cost };
        let features = features.iter().map(|_| if i == 0 { 0.1 } else { f32::NAN }).collect();
        let trials = vec![trial("a", cost), trial("b", Some(2.0))];
        set.push(Case { features, trials, group: 7 + i as u32 }).unwrap();
    }
    set
}

#[test]
fn cases_come_back_from_their_table() {
    let set = named(&["n", "k"]);
    let written = Dataset::from_choices(&[("x", &set), ("y", &set)]).unwrap();
    let (table, sidecar) = (written.to_csv().unwrap(), written.to_sidecar().unwrap());
    let read = Dataset::parse(&table, &sidecar, Path::new("made.csv")).unwrap();
    let of_x: Vec<usize> = (0..read.len()).filter(|&r| read.device(r) == "x").collect();
    let back = read.choices_from(&read.features_on_any_device().unwrap(), &of_x).unwrap();
    assert_eq!((read.len(), back.len()), (8, 2));
    for (a, b) in back.cases().iter().zip(set.cases()) {
        let costs = |c: &Case| c.trials.iter().map(|t| (t.candidate.variant.clone(), t.cost)).collect::<Vec<_>>();
        assert_eq!(costs(a), costs(b));
        assert!(a.features.iter().zip(&b.features).all(|(a, b)| a == b || (a.is_nan() && b.is_nan())));
    }
    assert_ne!(back.cases()[0].group, back.cases()[1].group);
}

#[test]
fn cases_that_fit_no_table_are_refused() {
    let fails = |sets: &[(&str, &ChoiceSet)]| Dataset::from_choices(sets).unwrap_err().to_string();
    assert!(fails(&[("x", &named(&["n", "group"]))]).contains("group"));
    assert!(fails(&[("x", &named(&["n"])), ("y", &named(&["n", "k"]))]).contains("the input of y"));
    assert!(fails(&[("x", &named(&["n"])), ("y", &named(&["k"]))]).contains("\"k\""));
}
