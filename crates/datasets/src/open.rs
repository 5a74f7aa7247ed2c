//! Any recording from a file: ours, or another tuner's, packed or not.

use crate::dataset::Dataset;
use crate::error::{DatasetError, Place};
use crate::schema::DatasetSchema;
use flate2::read::MultiGzDecoder;
use std::io::Read;
use std::path::Path;
use tilewright_files::read_file;

/// Most bytes that a packed file may become: a small file must not fill the memory.
pub(crate) const MAX_BYTES: u64 = 4 << 30;

impl Dataset {
    /// Reads a recording, whatever its format: a CSV with its sidecar, a Kernel Tuner cache, T4 results, KTT's results, CLBlast's; all
    /// but the first also packed with gzip. The format is told from the contents.
    ///
    /// # Errors
    /// As [`Dataset::parse`] and [`Dataset::from_recording`]; a packed file that is damaged or becomes too large.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DatasetError> {
        let path = path.as_ref();
        let bytes = read_file(path, MAX_BYTES).map_err(DatasetError::io(path))?;
        let bytes = if bytes.starts_with(&[0x1f, 0x8b]) { unpack(&bytes, path)? } else { bytes };
        // What some editors put in front of a text says nothing.
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").map(<[u8]>::to_vec).unwrap_or(bytes);
        if bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{') {
            return Self::from_recording(&bytes, path);
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
