//! Cases of choice from rows.

use std::path::Path;
use tilewright_datasets::{Dataset, DatasetError};

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

#[test]
fn parts_have_the_schema_of_the_whole() {
    let data = parsed(TABLE).unwrap();
    let part = data.choices_of(&[3, 4]).unwrap();
    assert_eq!((part.len(), part.schema()), (1, data.choices().unwrap().schema()));
}

#[test]
fn a_negative_time_is_refused() {
    let poisoned = parsed(&TABLE.replace("0.25", "-0.25")).and_then(|d| d.choices().map(|_| ()));
    assert!(matches!(poisoned, Err(DatasetError::Cell { line: 4, .. } | DatasetError::Choice(_))), "{poisoned:?}");
}
