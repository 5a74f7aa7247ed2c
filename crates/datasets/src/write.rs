//! Datasets to files, so that a crash leaves the old file or the new one.

use crate::dataset::Dataset;
use crate::error::DatasetError;
use crate::schema::DatasetSchema;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use tilewright_core::expr::Value;

impl Dataset {
    /// Writes the table to `path` (ending in `.csv`) and the sidecar beside it. Each of the two is written to a temporary
    /// file, synced and renamed; the table first, so that a new table never stands without its sidecar unnoticed.
    ///
    /// # Errors
    /// What the system reports; the old files stay as they were.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), DatasetError> {
        let path = path.as_ref();
        let sidecar = DatasetSchema::path_for(path);
        self.to_csv().and_then(|table| replace(path, &table)).map_err(DatasetError::io(path))?;
        self.to_sidecar().and_then(|schema| replace(&sidecar, &schema)).map_err(DatasetError::io(&sidecar))
    }

    /// The table as text.
    ///
    /// # Errors
    /// None in practice: memory does not fail to be written.
    pub fn to_csv(&self) -> io::Result<Vec<u8>> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.columns().iter().map(|c| c.name()))?;
        for row in 0..self.len() {
            let cells = self.columns().iter().map(|c| c.get(row).map_or_else(String::new, Value::to_string));
            writer.write_record(cells)?;
        }
        writer.into_inner().map_err(|e| e.into_error())
    }

    /// The sidecar as text.
    ///
    /// # Errors
    /// A constant that JSON cannot hold.
    pub fn to_sidecar(&self) -> io::Result<Vec<u8>> {
        let mut text = serde_json::to_vec_pretty(self.schema())?;
        text.push(b'\n');
        Ok(text)
    }
}

/// Replaces the contents of a file: temporary file in the same folder, fsync, rename, fsync of the folder.
fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let temporary = temporary(path)?;
    let written = write_synced(&temporary, contents).and_then(|()| std::fs::rename(&temporary, path));
    if let Err(error) = written {
        // The first error says more than a failure to clean up.
        let _ = std::fs::remove_file(&temporary);
        return Err(error);
    }
    match path.parent().filter(|p| !p.as_os_str().is_empty()) {
        Some(folder) => File::open(folder)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

fn write_synced(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(contents)?;
    file.sync_all()
}

/// A name beside the file that no other process or thread uses.
fn temporary(path: &Path) -> io::Result<PathBuf> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"))?;
    let unique = format!(".tmp-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(unique);
    Ok(path.with_file_name(hidden))
}
