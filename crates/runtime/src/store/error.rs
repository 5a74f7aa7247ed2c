//! What can go wrong with a stored file. Every error names the file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use tilewright_files::is_absent;

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {kind}", path.display())]
pub struct StoreError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub kind: StoreErrorKind,
}

/// What is wrong with a stored file.
#[derive(Debug, thiserror::Error)]
pub enum StoreErrorKind {
    /// It is not a file of this kind at all.
    #[error("not a {expected} file")]
    NotOurs {
        /// The kind that was asked for.
        expected: &'static str,
    },
    /// It ends early.
    #[error("truncated: {}; delete it to have it made anew", left(*found, *expected))]
    Truncated {
        /// Bytes found after the first two lines.
        found: u64,
        /// Bytes that the file says it has; 0 if it ends before it says so.
        expected: u64,
    },
    /// Its bytes do not match their checksum, or cannot be read although they do.
    #[error("corrupt: {0}; delete it to have it made anew")]
    Corrupt(String),
    /// What was to be written is nothing that could be read back.
    #[error("cannot be written: {0}")]
    Unwritable(String),
    /// Another version of Tilewright wrote it.
    #[error("format version {found}, and this program reads version {known}")]
    ForeignVersion {
        /// The file's version.
        found: u32,
        /// The version that is understood.
        known: u32,
    },
    /// It was made for another feature schema.
    #[error("feature schema {found}, and this kernel has {expected}: tune anew")]
    SchemaMismatch {
        /// The file's schema hash.
        found: String,
        /// The kernel's.
        expected: String,
    },
    /// It was made for another device.
    #[error("{0}")]
    OtherDevice(Box<OtherDevice>),
    /// It was made for another kernel.
    #[error("made for kernel {found:?}, not {expected:?}")]
    OtherKernel {
        /// The file's kernel.
        found: String,
        /// The kernel that was asked for.
        expected: String,
    },
    /// Another process is writing it.
    #[error(
        "locked by another process that is tuning the same kernel on this device; wait for it or choose another directory"
    )]
    Locked,
    /// The disk, or the quota, is full.
    #[error("no space left on the device; what was there before is kept")]
    DiskFull,
    /// Anything else that the operating system reports.
    #[error("{0}")]
    Io(io::Error),
}

fn left(found: u64, expected: u64) -> String {
    match expected {
        0 => "it ends within its first two lines".to_owned(),
        expected => format!("{found} of {expected} bytes are there"),
    }
}

/// Two devices where there should be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherDevice {
    /// Fingerprint in the file.
    pub found: String,
    /// Name of the file's device.
    pub found_name: String,
    /// Fingerprint of this device.
    pub expected: String,
    /// Name of this device.
    pub expected_name: String,
    /// Facts of the file's device that this one lacks or has less of, as `name: had 8, has 4`.
    pub lacking: Vec<String>,
}

impl fmt::Display for OtherDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { found, found_name, expected, expected_name, lacking } = self;
        write!(f, "made for device {found_name:?} ({found}), and this one is {expected_name:?} ({expected})")?;
        if !lacking.is_empty() {
            write!(f, ", which lacks {}", lacking.join("; "))?;
        }
        f.write_str(": tune anew")
    }
}

impl StoreError {
    /// An error of a file.
    pub fn new(path: &Path, kind: StoreErrorKind) -> Self {
        Self { path: path.to_owned(), kind }
    }

    /// What the operating system reports about a file; a full disk becomes [`StoreErrorKind::DiskFull`].
    pub fn io(path: &Path, error: io::Error) -> Self {
        Self::new(path, StoreErrorKind::from(error))
    }

    /// Whether the file does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(&self.kind, StoreErrorKind::Io(e) if is_absent(e))
    }

    /// Whether the place is at fault, where another would do: a full disk, a folder that nobody may write to.
    pub fn is_of_place(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Io(_) | StoreErrorKind::DiskFull)
    }
}

impl From<io::Error> for StoreErrorKind {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => Self::DiskFull,
            _ => Self::Io(error),
        }
    }
}
