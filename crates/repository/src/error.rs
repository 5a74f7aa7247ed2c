//! What can be wrong with a repository.

use std::fmt::Display;
use std::io;
use std::path::Path;
use tilewright_core::expr::brief;

/// A store that cannot be used, or a record that may not be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct RepositoryError {
    /// Of what kind.
    pub fault: Fault,
    /// The record, file, folder, server or name at fault. Of addresses, users and passwords are not repeated.
    pub place: String,
    /// What is wrong, with what is expected.
    pub message: String,
}

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A name that is no key: of the `set` or the `device`.
    Name(&'static str),
    /// A record with numbers that no measurement gives.
    Poisoned,
    /// A record that was changed after it was written, or is none.
    Damaged,
    /// A store of another version of this format.
    Version,
    /// A server that is too old.
    Server,
    /// A server that does not answer, also not after trying again.
    Unreachable,
    /// A text that is no address of a server.
    Address,
    /// A server that refuses a command.
    Refused,
    /// A file that cannot be read or written.
    Io(io::ErrorKind),
    /// Records of a kernel whose features were others.
    Schema,
    /// Records of one set that do not belong together.
    Inconsistent,
    /// Records that no model can be built from.
    Mtl,
}

impl RepositoryError {
    /// A fault of something.
    pub fn new(fault: Fault, place: impl Display, message: impl Display) -> Self {
        Self { fault, place: place.to_string(), message: message.to_string() }
    }

    /// A store of another version than this program's.
    pub(crate) fn version(place: impl Display, found: &str, known: u32) -> Self {
        let found = brief(found);
        let message = format!("has version {found} of the repository's format; this program knows version {known}");
        Self::new(Fault::Version, place, message)
    }

    /// Records whose features are of another schema than the kernel's.
    pub fn schema(key: impl Display, found: &str, expected: &str) -> Self {
        let message = format!("recorded with the feature schema {found}; the kernel has {expected}");
        Self::new(Fault::Schema, key, message)
    }

    /// Whether stored records are at fault: they were changed, are of another version, or cannot be read. Without them others still
    /// speak.
    pub fn is_damage(&self) -> bool {
        matches!(self.fault, Fault::Damaged | Fault::Poisoned | Fault::Version | Fault::Io(_))
    }

    /// For results that name their file.
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self::new(Fault::Io(error.kind()), path.display(), error)
    }
}

impl From<tilewright_mtl::MtlError> for RepositoryError {
    fn from(error: tilewright_mtl::MtlError) -> Self {
        Self::new(Fault::Mtl, "the records", error)
    }
}
