//! Files that survive: written atomically, versioned, checksummed, and refused with a typed error that names them.

mod atomic;
pub mod envelope;
mod error;
mod home;
mod profile;

pub use atomic::{TEMPORARY, write_atomically};
pub use error::{OtherDevice, StoreError, StoreErrorKind};
pub use home::{Home, HomeError};
pub use profile::{DeviceRecord, Fitting, Profile, ProfileHeader, ProfileStore, TrainingStats};

pub(crate) use home::file_name;
pub(crate) use profile::{agrees, best_fit, stem};

use std::path::{Path, PathBuf};
pub use tilewright_files::is_absent;
use tilewright_files::{MOST, read_file};

/// Paths of what a directory holds, sorted; none where there is no such directory.
pub(crate) fn paths(directory: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let list = || std::fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    match list() {
        Ok(mut paths) => {
            paths.sort();
            Ok(paths)
        }
        Err(e) if is_absent(&e) => Ok(Vec::new()),
        Err(e) => Err(StoreError::io(directory, e)),
    }
}

/// Those of them with this extension.
pub(crate) fn files_with_extension(directory: &Path, extension: &str) -> Result<Vec<PathBuf>, StoreError> {
    let mut paths = paths(directory)?;
    paths.retain(|path| path.extension().is_some_and(|e| e == extension));
    Ok(paths)
}

/// A checksum of a file's contents, to tell one profile from the next.
///
/// # Errors
/// The file cannot be read.
pub fn checksum(path: &Path) -> Result<String, StoreError> {
    let bytes = read_file(path, MOST).map_err(|e| StoreError::io(path, e))?;
    Ok(blake3::hash(&bytes).to_hex()[..32].to_owned())
}

/// Seconds since 1970, or zero where the clock is before it.
pub(crate) fn unix_seconds() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs())
}
