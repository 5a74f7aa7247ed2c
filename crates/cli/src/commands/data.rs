//! `tilewright data`: what a dataset holds.

use crate::args::DataCommand;
use crate::failure::{Failure, Kind};
use crate::output::{Output, aligned, seconds};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use tilewright_core::text::counted;
use tilewright_datasets::{ColumnSummary, Dataset, Fastest, Summary};

pub(crate) fn run(command: &DataCommand, output: Output) -> Result<(), Failure> {
    match command {
        DataCommand::Describe { dataset } => describe(dataset, output),
        DataCommand::Import { file, out } => super::import::run(file, out.as_deref(), output),
        DataCommand::Export(args) => super::data_export::run(args, output),
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

#[derive(Serialize)]
struct Described {
    #[serde(flatten)]
    summary: Summary,
    columns: Vec<ColumnSummary>,
    fastest: Option<Fastest>,
    slowest_s: Option<f64>,
    /// Rows without a time, by what is recorded of them.
    failed: BTreeMap<String, usize>,
}

fn describe(path: &Path, output: Output) -> Result<(), Failure> {
    let dataset = read(path)?;
    let described = Described {
        summary: dataset.describe(),
        columns: dataset.column_summaries(),
        fastest: dataset.fastest(),
        slowest_s: dataset.slowest_s(),
        failed: dataset.failures(),
    };
    output.answer(&described, || text(&described))
}

fn text(d: &Described) -> String {
    let mut out = table(&d.summary);
    let mut rows = vec![["column", "role", "distinct", "missing", "values"].map(String::from).to_vec()];
    for c in &d.columns {
        let values = match (c.values.as_slice(), c.least, c.greatest) {
            ([], Some(least), Some(greatest)) => format!("{least} to {greatest}"),
            (values, ..) => values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        };
        rows.push(vec![c.name.clone(), c.role.into(), c.distinct.to_string(), c.missing.to_string(), values]);
    }
    let _ = write!(out, "\n{}", aligned(&rows));
    if let (Some(f), Some(slowest)) = (&d.fastest, d.slowest_s) {
        let _ = writeln!(out, "\ntimes    {} to {}", seconds(f.time_s), seconds(slowest));
        let of = f.variant.iter().chain([&f.device]).filter(|name| !name.is_empty()).cloned().collect::<Vec<_>>();
        let fastest = format!("fastest  {} {} {}", f.input, f.config, of.join(" on "));
        let _ = writeln!(out, "{}", fastest.trim_end());
    }
    for (what, count) in &d.failed {
        let _ = writeln!(out, "{} failed, {what}", counted(count, "row"));
    }
    out
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
