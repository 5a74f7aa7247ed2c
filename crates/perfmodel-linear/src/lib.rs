#![doc = include_str!("../README.md")]

mod counted;
mod error;
mod file;
mod fit;
mod model;
mod nonnegative;
mod overlap;
mod predictor;
mod singular;
mod table;

pub use counted::{IN_CACHE, is_cached};
pub use error::{LinearError, ModelFileError};
pub use fit::{Form, LinearFit};
pub use model::{LinearModel, Prediction, Report, Share, Sharpness, Weight};
pub use predictor::{LinearPredictor, PredictorFit};
pub use table::{Part, Property, Rejected, Row, Table};
