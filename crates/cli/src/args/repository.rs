//! The fields of `repository`.

use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum RepositoryCommand {
    /// What is there: sets of variants, devices, and how much of each was recorded.
    List {
        /// A folder, or `redis://HOST[:PORT][/DATABASE]`.
        store: String,
    },
    /// Record the times of a dataset, each device under its name. What is imported twice is there twice.
    Import {
        /// A folder, which is made if it is not there, or `redis://HOST[:PORT][/DATABASE]`.
        store: String,
        /// A CSV of named variants with its NAME.schema.json beside it.
        dataset: PathBuf,
        /// The set of variants; the name of the dataset unless given.
        #[arg(long, value_name = "NAME")]
        set: Option<String>,
        /// A CSV of device features, the device in its first column; published specifications of known GPUs unless given.
        #[arg(long, value_name = "FILE")]
        device_features: Option<PathBuf>,
    },
    /// Write what all devices recorded of a set of variants as a dataset.
    Export {
        /// A folder, or `redis://HOST[:PORT][/DATABASE]`.
        store: String,
        /// The set of variants.
        set: String,
        /// Where the CSV goes; its NAME.schema.json stands beside it.
        #[arg(long, value_name = "CSV")]
        out: PathBuf,
        /// Where the features of the devices go, as a CSV.
        #[arg(long, value_name = "FILE")]
        device_features: Option<PathBuf>,
    },
}
