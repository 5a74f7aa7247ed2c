//! Any recording from a file: ours, or Kernel Tuner's, packed or not.

use crate::dataset::Dataset;
use crate::error::{DatasetError, Place};
use crate::schema::DatasetSchema;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Most bytes that a packed file may become: a small file must not fill the memory.
pub(crate) const MAX_BYTES: u64 = 4 << 30;

/// Reads a regular file of at most so many bytes. Devices and pipes may have no end, and a pipe nobody who writes.
///
/// # Errors
/// A file that cannot be read, that is no regular file, or that is longer.
pub fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no regular file"));
    }
    let mut out = Vec::new();
    let length = File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut out)?;
    if length as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("longer than {most} bytes")));
    }
    Ok(out)
}

impl Dataset {
    /// Reads a recording, whatever its format: a CSV with its sidecar, a Kernel Tuner cache, T4 results; the latter two
    /// also packed with gzip. The format is told from the contents.
    ///
    /// # Errors
    /// As [`Dataset::parse`] and [`Dataset::from_kernel_tuner`]; a packed file that is damaged or becomes too large.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DatasetError> {
        let path = path.as_ref();
        let bytes = read_file(path, MAX_BYTES).map_err(DatasetError::io(path))?;
        let bytes = if bytes.starts_with(&[0x1f, 0x8b]) { unpack(&bytes, path)? } else { bytes };
        if bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{') {
            return Self::from_kernel_tuner(&bytes, path);
        }
        let sidecar = DatasetSchema::path_for(path);
        let schema = read_file(&sidecar, MAX_BYTES).map_err(DatasetError::io(&sidecar))?;
        Self::parse(&bytes, &schema, path)
    }
}

fn unpack(bytes: &[u8], path: &Path) -> Result<Vec<u8>, DatasetError> {
    let mut out = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(MAX_BYTES + 1).read_to_end(&mut out);
    read.map_err(DatasetError::io(path))?;
    if out.len() as u64 > MAX_BYTES {
        return Err(DatasetError::at(path, Place::File, format!("unpacks to more than {MAX_BYTES} bytes")));
    }
    Ok(out)
}
