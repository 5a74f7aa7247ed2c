//! What can be wrong with a repository.

use std::path::PathBuf;
use std::sync::Arc;

/// A store that cannot be used, or a record that may not be.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepositoryError {
    /// A name that is no key.
    #[error("{field} {name:?}: expected 1 to 100 characters, none of them a control character")]
    Name {
        /// The set or the device.
        field: &'static str,
        /// The name.
        name: String,
    },
    /// A record with numbers that no measurement gives.
    #[error("{place}: {field} is {value}, it must be {limit}")]
    Poisoned {
        /// The record.
        place: String,
        /// The number at fault.
        field: String,
        /// Its value.
        value: String,
        /// What is allowed.
        limit: &'static str,
    },
    /// A record that was changed after it was written, or is none.
    #[error("{place}: {message}")]
    Damaged {
        /// Where it stands.
        place: String,
        /// What is wrong.
        message: String,
    },
    /// A store of another version of this format.
    #[error("{place} has version {found} of the repository's format; this program knows version {known}")]
    Version {
        /// The folder or the server.
        place: String,
        /// Its version.
        found: String,
        /// The known one.
        known: u32,
    },
    /// A server that is too old.
    #[error("{place} runs Redis {found}; at least {needed} is needed")]
    Server {
        /// The server.
        place: String,
        /// Its version.
        found: String,
        /// The oldest that works.
        needed: &'static str,
    },
    /// A server that does not answer, also not after trying again.
    #[error("{place} cannot be reached after {attempts} attempts: {message}")]
    Unreachable {
        /// The server.
        place: String,
        /// How often it was tried.
        attempts: u32,
        /// The last failure.
        message: String,
    },
    /// A text that is no address of a server. A user and a password are not repeated.
    #[error("{address:?} is no address of a Redis server: {message}")]
    Address {
        /// The text, from the host on.
        address: String,
        /// What is wrong.
        message: &'static str,
    },
    /// A server that refuses a command.
    #[error("{place} refuses: {message}")]
    Refused {
        /// The server.
        place: String,
        /// Its words.
        message: String,
    },
    /// A file that cannot be read or written.
    #[error("{path}: {error}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: Arc<std::io::Error>,
    },
    /// Records of a kernel whose features were others.
    #[error("{key}: recorded with the feature schema {found}; the kernel has {expected}")]
    Schema {
        /// The kernel and the device.
        key: String,
        /// The schema of the records.
        found: String,
        /// The kernel's.
        expected: String,
    },
    /// Records of one set that do not belong together.
    #[error("{key}: {message}")]
    Inconsistent {
        /// The key.
        key: String,
        /// What differs.
        message: String,
    },
    /// Records that no model can be built from.
    #[error(transparent)]
    Mtl(#[from] tilewright_mtl::MtlError),
}

impl RepositoryError {
    pub(crate) fn io(path: &std::path::Path, error: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), error: Arc::new(error) }
    }
}
