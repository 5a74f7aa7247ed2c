//! The datasets that lie beside the project, where they do. Skipped, with a message, where they do not.

use std::path::PathBuf;
use tilewright_core::measurement::Timing;
use tilewright_core::problem::{Measure, Problem};
use tilewright_datasets::{Dataset, RecordedKernel, Summary};

fn data(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    if !path.exists() {
        println!("skipped: {} is not there", path.display());
    }
    path.exists().then_some(path)
}

#[test]
fn every_dataset_is_read_and_learned_from() {
    let Some(folder) = data("") else { return };
    let files = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path());
    let sidecars: Vec<PathBuf> = files.filter(|p| p.to_string_lossy().ends_with(".schema.json")).collect();
    assert!(!sidecars.is_empty());
    for sidecar in sidecars {
        let table = sidecar.to_string_lossy().replace(".schema.json", ".csv");
        let d = Dataset::read(&table).unwrap();
        let found = d.describe();
        let set = d.training_set().unwrap();
        assert_eq!(set.len(), found.rows - found.failures, "{table}");
        assert!(found.rows > 4_000 && found.failures < found.rows / 2, "{table}: {found:?}");
        println!("{table}: {found:?}, {} + {} features", set.schema.input.len(), set.schema.config.len());
    }
}

/// Against the numbers that the data's own description states.
#[test]
fn counts_are_those_of_the_description() {
    for (name, rows, devices, inputs, configs) in [
        ("mm-a100.csv", 74_977, 1, Some(2_539), None),
        ("spmv-formats.csv", 30_168, 4, None, Some(5)),
        ("space-gemm-p100.csv", 17_956, 1, Some(1), Some(17_956)),
        ("space-convolution-p100.csv", 5_776, 1, Some(1), Some(5_776)),
        ("space-conv2-a4000.csv", 4_362, 1, Some(1), Some(4_362)),
    ] {
        let Some(path) = data(name) else { return };
        let found = Dataset::read(path).unwrap().describe();
        let inputs = inputs.unwrap_or(found.inputs);
        let configs = configs.unwrap_or(found.configs);
        assert_eq!(found, Summary { rows, devices, inputs, configs, ..found }, "{name}");
    }
}

#[test]
fn a_recorded_space_is_replayed() {
    let Some(path) = data("space-convolution-p100.csv") else { return };
    let kernel = RecordedKernel::read(path).unwrap();
    let problem = kernel.problems().unwrap().remove(0);
    assert_eq!(problem.space().count_legal(), 5_776);
    let mut device = problem.replay();
    let mut best = f64::INFINITY;
    problem.space().for_each_legal(|p| {
        let m = device.measure(&problem, &p.into(), &Timing::default()).expect("every configuration has a time");
        best = best.min(m.time_s);
        true
    });
    assert_eq!(Some(best), problem.optimum().map(|(_, seconds)| seconds));
}
