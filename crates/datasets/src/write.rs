//! Datasets to files, so that a crash leaves the old file or the new one.

use crate::dataset::Dataset;
use crate::error::DatasetError;
use crate::schema::DatasetSchema;
use std::io;
use std::path::Path;
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
        let replace = |path: &Path, text: &[u8]| tilewright_files::replace(path, &mut |file| file.write_all(text));
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
