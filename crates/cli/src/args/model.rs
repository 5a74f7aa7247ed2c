//! Fitting and judging models.

use super::DeviceArgs;
use super::numbers::{ridge, whole};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Which predictor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelKind {
    /// The multi-layer perceptron on log features.
    Mlp,
    /// Operation counts times weights of a device, fitted on measurement kernels instead of a dataset.
    Linear,
}

impl ModelKind {
    /// The word on the command line, and what predictors call themselves.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mlp => "mlp",
            Self::Linear => "linear",
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Fit a predictor on a dataset and save it; or the linear model of a device, by measuring.
    Fit {
        /// A CSV with its NAME.schema.json beside it; none for the linear model.
        dataset: Option<PathBuf>,
        #[command(flatten)]
        with: ModelArgs,
        #[command(flatten)]
        device: DeviceArgs,
        /// Where the model goes.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Score a predictor on held-out rows of a dataset; or the linear model of a device on the paper's four test kernels.
    Evaluate {
        /// A CSV with its NAME.schema.json beside it; none for the linear model.
        dataset: Option<PathBuf>,
        #[command(flatten)]
        with: ModelArgs,
        #[command(flatten)]
        device: DeviceArgs,
        /// column:FRACTION, row:FRACTION, column=VALUE, or a file of row numbers.
        #[arg(long, value_name = "SPEC", default_value = "row:0.2")]
        holdout: String,
    },
    /// ISAAC's ablation: log features against raw, layouts of Table 2, error against the size of the training set.
    Ablation {
        /// A CSV with its NAME.schema.json beside it.
        dataset: PathBuf,
        /// Most rows to train on.
        #[arg(long, value_name = "N", default_value_t = 20_000, allow_negative_numbers = true, value_parser = whole::<usize>(0, u32::MAX.into()))]
        rows: usize,
    },
}

/// What is fitted.
#[derive(Clone, Debug, Args)]
pub(crate) struct ModelArgs {
    /// The predictor.
    #[arg(long, value_enum, default_value_t = ModelKind::Mlp)]
    pub model: ModelKind,
    /// Hidden layers, for example 64,128,64.
    #[arg(long, value_name = "SIZES", value_delimiter = ',', allow_negative_numbers = true, value_parser = whole::<usize>(0, u32::MAX.into()))]
    pub layers: Option<Vec<usize>>,
    /// Pull of the linear model's weights to zero; 0 refuses a singular property matrix and names its properties.
    #[arg(long, value_name = "R", value_parser = ridge, allow_hyphen_values = true)]
    pub ridge: Option<f64>,
}
