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
fn every_sidecar_is_read_and_described() {
    for (name, rows, devices, inputs, configs, failures) in [
        ("mm-a100.csv", 74_977, 1, 2_539, None, None),
        ("spmv-formats.csv", 30_168, 4, 1_608, Some(5), None),
        ("space-gemm-p100.csv", 17_956, 1, 1, Some(17_956), Some(0)),
        ("space-convolution-p100.csv", 5_776, 1, 1, Some(5_776), Some(0)),
        ("space-conv2-a4000.csv", 4_362, 1, 1, Some(4_362), None),
    ] {
        let Some(path) = data(name) else { return };
        let d = Dataset::read(path).unwrap();
        let found = d.describe();
        let wanted = Summary {
            rows,
            devices,
            inputs: if name.starts_with("spmv") { found.inputs } else { inputs },
            configs: configs.unwrap_or(found.configs),
            failures: failures.unwrap_or(found.failures),
        };
        assert_eq!(found, wanted, "{name}");
        let set = d.training_set().unwrap();
        assert_eq!(set.len(), found.rows - found.failures, "{name}");
        println!("{name}: {found:?}, {} + {} features", set.schema.input.len(), set.schema.config.len());
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
