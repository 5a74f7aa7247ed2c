//! The datasets that this project recorded.

use std::path::PathBuf;
use tilewright_datasets::{Dataset, RecordedKernel, Summary};
use tilewright_testkit::recorded;

#[test]
fn every_dataset_is_read_and_learned_from() {
    let files = std::fs::read_dir(recorded("")).unwrap().map(|f| f.unwrap().path());
    let sidecars: Vec<PathBuf> = files.filter(|p| p.to_string_lossy().ends_with(".schema.json")).collect();
    assert!(sidecars.len() >= 7, "{sidecars:?}");
    for sidecar in sidecars {
        let table = sidecar.to_string_lossy().replace(".schema.json", ".csv");
        let d = Dataset::open(&table).unwrap();
        let found = d.describe();
        let set = d.training_set().unwrap();
        assert_eq!(set.len(), found.rows - found.failures, "{table}");
        assert!(found.rows > 1_500 && found.failures < found.rows / 2, "{table}: {found:?}");
    }
}

/// Against the numbers that the data's own description states.
#[test]
fn counts_are_those_of_the_description() {
    for (name, rows, devices) in [("spmv.csv", 8_748, 6), ("sort.csv", 3_780, 6), ("multiply.csv", 1_800, 1)] {
        let found = Dataset::open(recorded(name)).unwrap().describe();
        assert_eq!(found, Summary { rows, devices, ..found }, "{name}");
    }
}

#[test]
fn recorded_problems_know_their_optimum() {
    let kernel = RecordedKernel::read(recorded("multiply.csv")).unwrap();
    let problems = kernel.problems().unwrap();
    assert!(problems.len() > 500, "{}", problems.len());
    for problem in &problems {
        let times = problem.recorded().filter_map(|(_, outcome)| outcome.as_ref().ok().map(|m| m.time_s));
        let best = times.fold(f64::INFINITY, f64::min);
        assert_eq!(problem.optimum().map(|(_, seconds)| seconds), Some(best));
    }
}
