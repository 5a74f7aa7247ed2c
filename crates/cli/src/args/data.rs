//! The fields of `data`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Summarise a dataset.
    Describe {
        /// A CSV with its NAME.schema.json beside it, or a recording of another tuner: a Kernel Tuner cache, results in the T4
        /// format, KTT's results as JSON, a file of a CLBlast tuner or CLBlast's database.
        dataset: PathBuf,
    },
    /// Turn a recording of another tuner, packed with gzip or not, into a CSV with its NAME.schema.json.
    Import {
        /// The recording: a Kernel Tuner cache, results in the T4 format, KTT's results as JSON, a file of a CLBlast tuner or
        /// CLBlast's database.
        file: PathBuf,
        /// Where the CSV goes; the recording's name with .csv in the working folder unless given.
        #[arg(long, value_name = "CSV")]
        out: Option<PathBuf>,
    },
    /// Write one device and one input of a dataset for another tuner. Times are milliseconds.
    Export(DataExportArgs),
}

/// What `data export` writes.
#[derive(Debug, Args)]
pub(crate) struct DataExportArgs {
    /// A dataset or a recording, as `data describe` reads them.
    pub dataset: PathBuf,
    /// The format.
    #[arg(long)]
    pub format: ExportFormat,
    /// The device, by its name in the dataset; the only one unless given.
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// The input: as many of its fields as tell it from the others; the only one unless given.
    #[arg(long, value_name = "K=V,...")]
    pub input: Option<String>,
    /// The kernel's name, which Kernel Tuner compares with that of the kernel it tunes; the dataset's name unless given.
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// Kernel Tuner's problem size, which it compares too; the input where that is one to three whole numbers, else 1, unless given.
    #[arg(long, value_name = "N,...", value_delimiter = ',', num_args = 1..=3)]
    pub problem_size: Vec<u64>,
    /// Where the file goes; the dataset's name with .json or .t4.json in the working folder unless given.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A cache file of Kernel Tuner 1.5, for its simulation mode or to go on tuning.
    KernelTuner,
    /// Results in the T4 format, version 1.0.0.
    T4,
}
