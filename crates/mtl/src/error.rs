//! What can be wrong with sources, devices and profiles.

use tilewright_core::choice::{ChoiceError, SelectError};
use tilewright_core::setting::SettingError;

/// Why a model for another device could not be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MtlError {
    /// A device that no table knows.
    #[error("device {device:?}: no features; there are those of {}", if known.is_empty() { "no device" } else { known })]
    UnknownDevice {
        /// The device.
        device: String,
        /// The devices that there are.
        known: String,
    },
    /// A device that lacks a feature which the model needs.
    #[error("device {device:?} has no {feature:?}")]
    MissingFeature {
        /// The device.
        device: String,
        /// The feature.
        feature: String,
    },
    /// Two devices that did not record the same variants.
    #[error("devices {one:?} and {other:?} have different variants: only one of them has {variant:?}")]
    Variants {
        /// A device.
        one: String,
        /// Another.
        other: String,
        /// A variant that only one of them has.
        variant: String,
    },
    /// Two devices whose inputs have different features.
    #[error(
        "devices {one:?} and {other:?} have different features of the input: schemas {one_schema} and {other_schema}"
    )]
    Schemas {
        /// A device.
        one: String,
        /// Its schema.
        one_schema: String,
        /// Another.
        other: String,
        /// Its schema.
        other_schema: String,
    },
    /// A device that stands twice among the sources.
    #[error("device {0:?} stands twice")]
    Twice(String),
    /// Too little to learn from.
    #[error("{found} {what}, at least {needed} are needed")]
    TooFew {
        /// Of what.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many are needed.
        needed: usize,
    },
    /// A table that cannot be read.
    #[error("{table}, line {line}: {message}")]
    Table {
        /// Which table.
        table: &'static str,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        message: String,
    },
    /// A number that makes no sense in a profile.
    #[error("{what}, metric {metric:?}: {value}; metrics are finite and not negative")]
    Metric {
        /// The kernel or the proxy.
        what: String,
        /// The metric.
        metric: String,
        /// Its value.
        value: f64,
    },
    /// A setting out of range.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// Rows that do not fit their schema.
    #[error("{device}: {message}")]
    Rows {
        /// The device.
        device: String,
        /// What is wrong.
        message: String,
    },
    /// Numbers that cannot be computed with.
    #[error("{0}")]
    Numeric(String),
    /// A case that cannot be learned from.
    #[error(transparent)]
    Case(#[from] ChoiceError),
    /// A selector that could not be fitted.
    #[error(transparent)]
    Select(#[from] SelectError),
}
