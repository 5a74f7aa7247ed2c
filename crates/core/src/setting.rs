//! Settings and their ranges.

use std::fmt::Display;

/// A setting outside its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value}, it must be {limit}")]
pub struct SettingError {
    /// Name of the setting.
    pub field: &'static str,
    /// What was given.
    pub value: String,
    /// What is allowed.
    pub limit: &'static str,
}

impl SettingError {
    /// A value that was given, and what is allowed.
    pub fn new(field: &'static str, value: impl Display, limit: &'static str) -> Self {
        Self { field, value: value.to_string(), limit }
    }

    /// Refuses a value that is not `good`.
    ///
    /// # Errors
    /// The setting with its limit.
    pub fn check(field: &'static str, value: impl Display, good: bool, limit: &'static str) -> Result<(), Self> {
        if good { Ok(()) } else { Err(Self::new(field, value, limit)) }
    }
}
