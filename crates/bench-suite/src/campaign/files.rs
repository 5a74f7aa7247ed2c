//! JSON files of a campaign's folder, each replaced as a whole.

use super::CampaignError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use tilewright_runtime::store::write_atomically;

/// A file that cannot be read, or not be made.
pub(super) fn damaged(path: &Path, why: impl ToString) -> CampaignError {
    CampaignError::Damaged { file: path.display().to_string(), message: why.to_string() }
}

/// What a file holds; none where there is none.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, CampaignError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).map_err(|e| damaged(path, e))?)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(damaged(path, e)),
    }
}

/// Replaces a file.
pub(super) fn write(path: &Path, contents: &impl Serialize) -> Result<(), CampaignError> {
    let json = serde_json::to_vec_pretty(contents).map_err(|e| damaged(path, e))?;
    Ok(write_atomically(path, &json)?)
}
