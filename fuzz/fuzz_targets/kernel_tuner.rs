//! Recordings by Kernel Tuner, cache files and T4 results: any bytes are read or refused, and what is read can be replayed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use std::sync::Arc;
use tilewright_datasets::{Dataset, RecordedKernel};

fuzz_target!(|bytes: &[u8]| {
    let Ok(dataset) = Dataset::from_kernel_tuner(bytes, Path::new("fuzz.json")) else { return };
    let csv = dataset.to_csv().expect("memory can be written");
    let sidecar = dataset.to_sidecar().expect("memory can be written");
    if let Ok(again) = Dataset::parse(&csv, &sidecar, Path::new("fuzz.csv")) {
        assert_eq!(again.len(), dataset.len());
    }
    let Ok(kernel) = RecordedKernel::new(Arc::new(dataset)) else { return };
    for problem in kernel.problems().expect("a recording is a space") {
        assert!(problem.recorded().all(|(point, _)| problem.look_up(point).is_some()));
    }
});
