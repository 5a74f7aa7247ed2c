//! `tilewright data export`: a dataset for another tuner.

use crate::args::{DataExportArgs, ExportFormat};
use crate::commands::data::read;
use crate::commands::import::{expect_other, named_as};
use crate::failure::{Failure, Kind};
use crate::output::{Output, aligned, expect_writable, write};
use serde::Serialize;
use std::path::Path;
use tilewright_core::space::Config;
use tilewright_datasets::{DatasetError, Export, ExportOf, Format};

#[derive(Serialize)]
struct Answer {
    /// Rows of the dataset that are of the device and the input.
    rows: usize,
    /// Configurations written, failures included.
    configs: usize,
    failures: usize,
    file: String,
}

pub(crate) fn run(args: &DataExportArgs, output: Output) -> Result<(), Failure> {
    let (format, ending) = match args.format {
        ExportFormat::KernelTuner => (Format::KernelTuner, "json"),
        ExportFormat::T4 => (Format::T4, "t4.json"),
    };
    let out = args.out.clone().unwrap_or_else(|| named_as(&args.dataset, ending));
    let input = args.input.as_deref().unwrap_or_default();
    let of = ExportOf {
        device: args.device.clone(),
        input: Config::parse(input).map_err(|e| Failure::new(Kind::Usage, "input", e))?,
        kernel: args.kernel.clone(),
        problem_size: args.problem_size.clone(),
    };
    let _file = expect_writable("out", &out)?;
    expect_other(&args.dataset, &out)?;
    let export = read(&args.dataset)?.export(&of).map_err(|e| failure(e, &args.dataset))?;
    let text = export.to_text(format).map_err(|e| Failure::of_file(Kind::Input, &args.dataset, e))?;
    write(&out, &text)?;
    let answer = answer(&export, &out);
    output.answer(&answer, || {
        let rows = [("rows", answer.rows), ("configs", answer.configs), ("failures", answer.failures)];
        format!("{}\n{}", answer.file, aligned(&rows.map(|(name, n)| vec![name.to_owned(), n.to_string()])))
    })
}

fn answer(export: &Export, out: &Path) -> Answer {
    Answer {
        rows: export.rows(),
        configs: export.configs(),
        failures: export.failures(),
        file: out.display().to_string(),
    }
}

/// What is to be chosen names the flag that chooses.
fn failure(error: DatasetError, dataset: &Path) -> Failure {
    match &error {
        DatasetError::Several { what, .. } => Failure::new(Kind::Usage, what, &error),
        DatasetError::NotRecorded { .. } => Failure::of_file(Kind::Nothing, dataset, &error),
        _ => Failure::of_file(Kind::Input, dataset, &error),
    }
}
