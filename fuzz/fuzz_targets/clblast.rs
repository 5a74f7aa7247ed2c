//! Files of CLBlast's tuners and its database: any bytes are read or refused, and what is read can be replayed and exported.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use std::sync::Arc;
use tilewright_datasets::{Dataset, ExportOf, Format, RecordedKernel};

fuzz_target!(|bytes: &[u8]| {
    let Ok(dataset) = Dataset::from_clblast(bytes, Path::new("fuzz.json")) else { return };
    if let Ok(export) = dataset.export(&ExportOf::default()) {
        let _ = (export.to_text(Format::KernelTuner), export.to_text(Format::T4));
    }
    let Ok(kernel) = RecordedKernel::new(Arc::new(dataset)) else { return };
    for problem in kernel.problems().expect("a recording is a space") {
        assert!(problem.recorded().all(|(point, _)| problem.look_up(point).is_some()));
    }
});
