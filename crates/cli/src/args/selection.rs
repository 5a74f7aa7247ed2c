//! The words of `select` and `transfer`.

use super::numbers::whole;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use tilewright_mtl::shots::MOST;

/// How to choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SelectMethod {
    /// The best of the others by cross-validation.
    Auto,
    /// Softmax weights that minimise the expected relative time.
    Softmax,
    /// A regression of the time of each variant.
    Regression,
    /// Support vectors, one against one.
    Svm,
    /// Boosted trees on the relative time of every candidate.
    Trees,
    /// A few trees over features of the input: the fastest choice.
    Forest,
    /// Extremely randomised trees of what every variant costs.
    ExtraTrees,
    /// A Gaussian process of what every variant costs.
    Process,
    /// Boosted trees, a thorough forest and a Gaussian process together.
    Blend,
    /// The multi-layer perceptron on the relative time of every candidate.
    Mlp,
    /// The same variant for every input.
    Fixed,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct SelectArgs {
    /// How to choose.
    #[arg(long, value_enum, default_value_t = SelectMethod::Auto)]
    pub method: SelectMethod,
    /// column:FRACTION or m+n+k:FRACTION for several together, row:FRACTION, column=VALUE, or a file of row numbers; a quarter of the groups unless given.
    #[arg(long, value_name = "SPEC")]
    pub holdout: Option<String>,
    /// Mean over this many splits.
    #[arg(long, value_name = "R", default_value_t = 1, allow_negative_numbers = true, value_parser = whole::<u32>(1, 10_000))]
    pub repeats: u32,
    /// A CSV of device features, the device in its first column, for derived features that name them; published specifications
    /// of known GPUs unless given.
    #[arg(long, value_name = "FILE")]
    pub device_features: Option<PathBuf>,
    /// Draw where which variant is fastest and where it is chosen, for the held-out inputs of the last split, as an SVG.
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
    /// The features of the input that the map is drawn over; the first two sizes unless given.
    #[arg(long, value_name = "X,Y", value_delimiter = ',', requires = "map")]
    pub axes: Option<Vec<String>>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SelectCommand {
    /// Choose for held-out inputs and compare with the best choice, for each device by what is known of it.
    Evaluate {
        /// A CSV with its NAME.schema.json beside it.
        dataset: PathBuf,
        #[command(flatten)]
        with: SelectArgs,
    },
}

/// Which features of devices a model sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TransferDfs {
    /// All of them.
    Full,
    /// Those that profiles of the variants point to.
    P,
    /// Those that predict one source from the others, by the performance of their choices.
    Cv,
    /// The same by how many choices are fastest, which is the accuracy of Nitro's Algorithm 2; with `--learner svm` it is as the paper
    /// wrote it.
    CvAccuracy,
    /// The same improved: one by one, while they predict unseen inputs of the sources better by more than chance; it may be none.
    Forward,
    /// What does best when sources play the target: what the project recommends.
    Auto,
}

/// What is fitted on all sources together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TransferLearner {
    /// The better of extremely randomised trees and a forest where candidates are named variants, by how they do where sources play the target;
    /// boosted trees where they are configurations.
    Auto,
    /// Extremely randomised trees of what every variant costs.
    ExtraTrees,
    /// A forest on the relative times of all variants.
    Forest,
    /// Boosted trees on the relative time of every candidate.
    Trees,
    /// Support vectors on the fastest variants, as in the paper. Their width and penalty are searched for, but where `--dfs` fits a
    /// model for every subset of features: there they are fixed.
    Svm,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct TransferArgs {
    /// The device to choose for; nothing that it ran is learned from. Each device in turn unless given.
    #[arg(long, value_name = "DEVICE")]
    pub target: Option<String>,
    /// The devices to learn from, separated by commas; all others unless given.
    #[arg(long, value_name = "D1,D2", value_delimiter = ',')]
    pub sources: Option<Vec<String>>,
    /// A CSV of device features, the device in its first column; published specifications of known GPUs unless given.
    #[arg(long, value_name = "FILE")]
    pub device_features: Option<PathBuf>,
    /// How features of devices are selected.
    #[arg(long, value_enum, default_value_t = TransferDfs::Auto)]
    pub dfs: TransferDfs,
    /// What is fitted.
    #[arg(long, value_enum, default_value_t = TransferLearner::Auto)]
    pub learner: TransferLearner,
    /// Profiles of the variants, one metric a line: variant, kernel, input, metric, value, or what ncu --csv writes.
    #[arg(long, value_name = "FILE")]
    pub profiles: Option<PathBuf>,
    /// column:FRACTION or m+n+k:FRACTION for several together, row:FRACTION, column=VALUE, or a file of row numbers; a third of the groups unless given.
    #[arg(long, value_name = "SPEC")]
    pub holdout: Option<String>,
    /// Time all variants of so many training inputs of the target, at most 250, the most informative first: a number, or several separated by commas.
    #[arg(long, value_name = "K", value_delimiter = ',', allow_negative_numbers = true, value_parser = whole::<usize>(0, MOST as u64))]
    pub shots: Vec<usize>,
    /// Mean over this many splits.
    #[arg(long, value_name = "R", default_value_t = 1, allow_negative_numbers = true, value_parser = whole::<u32>(1, 10_000))]
    pub repeats: u32,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TransferCommand {
    /// Choose for held-out inputs on a held-out device, beside what its own measurements would have taught.
    Evaluate {
        /// A CSV with its NAME.schema.json beside it.
        dataset: PathBuf,
        #[command(flatten)]
        with: TransferArgs,
    },
}
