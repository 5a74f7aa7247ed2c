//! `tilewright data import`: recordings of others as datasets.

use crate::commands::data::{read, table};
use crate::failure::{Failure, Kind};
use crate::output::{Output, expect_writable};
use serde::Serialize;
use std::path::{Path, PathBuf};
use tilewright_datasets::Summary;

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    summary: Summary,
    dataset: String,
}

pub(crate) fn run(file: &Path, out: Option<&Path>, output: Output) -> Result<(), Failure> {
    let out = out.map_or_else(|| named_as(file, "csv"), Path::to_path_buf);
    if out.extension().is_none_or(|e| e != "csv") {
        return Err(Failure::new(Kind::Usage, "out", format!("{} does not end in .csv", out.display())));
    }
    let _table = expect_writable("out", &out)?;
    let dataset = read(file)?;
    if dataset.is_empty() {
        return Err(Failure::of_file(Kind::Nothing, file, "no configuration was recorded"));
    }
    expect_other(file, &out)?;
    dataset.write(&out).map_err(|e| Failure::of_file(Kind::Store, &out, e))?;
    let answer = Answer { summary: dataset.describe(), dataset: out.display().to_string() };
    output.answer(&answer, || format!("{}\n{}", answer.dataset, table(&answer.summary)))
}

/// The name of a recording or a dataset with another ending, in the working folder.
pub(super) fn named_as(file: &Path, ending: &str) -> PathBuf {
    let name = file.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let name = name.strip_suffix(".json").or(name.strip_suffix(".csv")).unwrap_or(name);
    PathBuf::from(format!("{}.{ending}", name.strip_suffix(".t4").unwrap_or(name)))
}

/// What is read is not written over.
pub(super) fn expect_other(file: &Path, out: &Path) -> Result<(), Failure> {
    let same = std::fs::canonicalize(file).ok().zip(std::fs::canonicalize(out).ok());
    if same.is_some_and(|(a, b)| a == b) {
        return Err(Failure::new(Kind::Usage, "out", "would replace the recording itself"));
    }
    Ok(())
}
