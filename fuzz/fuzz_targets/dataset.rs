//! Any table with any sidecar (separated by the first zero byte): reading, learning from, splitting and replaying do not
//! panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use tilewright_datasets::{Dataset, RecordedKernel, SplitSpec};

/// A sidecar for the common case, so that tables are reached without inventing JSON first.
const SIDECAR: &[u8] = br#"{"format":"tilewright-dataset","version":1,"columns":{"device":"d","input":["n"],
"config":["c"],"variant":null,"time":{"column":"t","unit":"ms"},"status":{"column":"ok","ok":1}},
"derived":{"x":"ceil(n / c)"}}"#;

fuzz_target!(|bytes: &[u8]| {
    let (table, sidecar) = match bytes.iter().position(|b| *b == 0) {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, SIDECAR),
    };
    let Ok(dataset) = Dataset::parse(table, sidecar, Path::new("fuzz.csv")) else { return };
    let _ = (dataset.describe(), dataset.training_set(), dataset.to_csv());
    for spec in [SplitSpec::Rows(0.5), SplitSpec::Column("n".into(), 0.5), SplitSpec::Value("c".into(), "1".into())] {
        let _ = dataset.split(&spec, 1);
    }
    if let Ok(kernel) = RecordedKernel::new(dataset.into()) {
        let _ = kernel.problems();
    }
});
