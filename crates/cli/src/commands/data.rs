//! `tilewright data`: what a dataset holds.

use crate::args::DataCommand;
use crate::failure::{Failure, Kind};
use crate::output::{Output, aligned};
use std::path::Path;
use tilewright_datasets::{Dataset, Summary};

pub(crate) fn run(command: &DataCommand, output: Output) -> Result<(), Failure> {
    match command {
        DataCommand::Describe { dataset } => describe(dataset, output),
        DataCommand::Import { file, out } => super::import::run(file, out.as_deref(), output),
    }
}

/// Reads a dataset; the error names the file.
pub(crate) fn read(path: &Path) -> Result<Dataset, Failure> {
    Dataset::open(path).map_err(|e| Failure::of_file(Kind::Input, path, e))
}

/// Reads a dataset that has rows.
pub(crate) fn read_some(path: &Path) -> Result<Dataset, Failure> {
    let dataset = read(path)?;
    if dataset.is_empty() {
        return Err(Failure::of_file(Kind::Input, path, "the table has no rows"));
    }
    Ok(dataset)
}

fn describe(path: &Path, output: Output) -> Result<(), Failure> {
    let summary = read(path)?.describe();
    output.answer(&summary, || table(&summary))
}

/// A summary for people.
pub(super) fn table(summary: &Summary) -> String {
    let rows = [
        ("rows", summary.rows),
        ("devices", summary.devices),
        ("inputs", summary.inputs),
        ("configs", summary.configs),
        ("failures", summary.failures),
    ];
    aligned(&rows.map(|(name, n)| vec![name.to_owned(), n.to_string()]))
}
