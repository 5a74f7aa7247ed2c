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
    let out = out.map_or_else(|| beside(file), Path::to_path_buf);
    if out.extension().is_none_or(|e| e != "csv") {
        return Err(Failure::new(Kind::Usage, "out", format!("{} does not end in .csv", out.display())));
    }
    let _table = expect_writable("out", &out)?;
    let dataset = read(file)?;
    if dataset.is_empty() {
        return Err(Failure::of_file(Kind::Nothing, file, "no configuration was recorded"));
    }
    let same = std::fs::canonicalize(file).ok().zip(std::fs::canonicalize(&out).ok());
    if same.is_some_and(|(a, b)| a == b) {
        return Err(Failure::new(Kind::Usage, "out", "would replace the recording itself"));
    }
    dataset.write(&out).map_err(|e| Failure::of_file(Kind::Store, &out, e))?;
    let answer = Answer { summary: dataset.describe(), dataset: out.display().to_string() };
    output.answer(&answer, || format!("{}\n{}", answer.dataset, table(&answer.summary)))
}

/// The recording's name with `.csv`, in the working folder.
fn beside(file: &Path) -> PathBuf {
    let name = file.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    PathBuf::from(format!("{}.csv", name.strip_suffix(".json").unwrap_or(name)))
}
