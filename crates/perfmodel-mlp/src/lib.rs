#![doc = include_str!("../README.md")]
//!
//! # Where to look
//!
//! [`MlpFit`] fits an [`Mlp`]; [`Mlp::bind_features`] (or `bind`, with a problem) scores one input;
//! a scorer's `screen` is distilled for its input; [`Ablation`] is the paper's Table 2 and Figure 5.

mod ablation;
mod adam;
mod bound;
mod domain;
mod encoding;
mod error;
mod file;
mod fit;
mod gradient;
mod layout;
mod log2;
mod model;
mod network;
mod packed;
mod screen;
mod settings;
mod split;
mod train;

pub use ablation::{Ablation, AblationFit, AblationReport};
pub use error::TrainError;
pub use file::{FILE_VERSION, ModelFileError};
pub use fit::{CrossValidation, MlpFit, mse};
pub use layout::{Layout, MAX_DEPTH, MAX_WIDTH};
pub use model::{Mlp, MlpRows};
pub use screen::{LEAST_SCREEN_POINTS, ScreenReport, ScreenSettings};
pub use settings::{FeatureScale, Settings, SplitBy};
pub use train::{LEAST_ROWS, TrainReport};
