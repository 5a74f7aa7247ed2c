//! What a campaign could not store, and whether that ends it.

use super::settings::TuneSettings;
use crate::store::StoreError;

/// What could not be stored.
#[derive(Debug)]
pub(super) struct Unstored {
    goes_on: bool,
    reasons: Vec<String>,
}

impl Unstored {
    pub(super) fn new(settings: &TuneSettings) -> Self {
        Self { goes_on: settings.without_files, reasons: Vec::new() }
    }

    /// What was stored; none where the place is at fault and the campaign goes on without.
    pub(super) fn judge<T>(&mut self, stored: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
        match stored {
            Ok(stored) => Ok(Some(stored)),
            Err(error) if self.goes_on && error.is_of_place() => {
                tracing::warn!(%error, "the campaign goes on without it");
                self.reasons.push(error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Why, each place once.
    pub(super) fn reasons(self) -> Vec<String> {
        self.reasons
    }
}
