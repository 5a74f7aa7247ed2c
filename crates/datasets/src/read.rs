//! Tables and sidecars from files and from memory.

use crate::column::{Column, ColumnBuilder, cell};
use crate::dataset::{Dataset, Roles};
use crate::error::{DatasetError, Place};
use crate::open::MAX_BYTES;
use crate::schema::DatasetSchema;
use csv::{ByteRecord, ErrorKind, ReaderBuilder};
use std::collections::HashSet;
use std::fmt::Display;
use std::path::Path;
use tilewright_core::expr::{Value, brief};
use tilewright_core::text::counted;
use tilewright_files::read_file;

impl Dataset {
    /// Reads `NAME.csv` with its sidecar `NAME.schema.json`.
    ///
    /// # Errors
    /// A file that cannot be read, or anything that [`Dataset::parse`] refuses.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, DatasetError> {
        let path = path.as_ref();
        let bytes = |p: &Path| read_file(p, MAX_BYTES).map_err(DatasetError::io(p));
        let table = bytes(path)?;
        let sidecar = bytes(&DatasetSchema::path_for(path))?;
        Self::parse(&table, &sidecar, path)
    }

    /// Reads a table and its sidecar from memory; `path` is the table's name in messages.
    ///
    /// # Errors
    /// Names the file and the field, or the line and the column, that cannot be read: bytes that are no CSV, lines of
    /// different length, text that is not UTF-8, a column that is missing or stands twice, a time that is not a positive
    /// number, a row marked as good without a time.
    pub fn parse(table: &[u8], sidecar: &[u8], path: &Path) -> Result<Self, DatasetError> {
        let sidecar_path = DatasetSchema::path_for(path);
        let schema = DatasetSchema::parse(sidecar, &sidecar_path)?;
        let (columns, lines) = Table { path }.read(table)?;
        let header: Vec<String> = columns.iter().map(|c| c.name().to_owned()).collect();
        let roles = Self::roles_of(&schema, &header, &sidecar_path)?;
        let derived = schema.derived_features(&sidecar_path)?;
        check_derived(&derived, &header, &schema.device_features, &roles, &sidecar_path)?;
        let seconds = seconds(&schema, &columns, &roles, &lines).map_err(|(row, message)| {
            let (line, column) = (lines[row], &header[roles.time]);
            fault(path, (line, column), &text_of(table, line, roles.time), message)
        })?;
        Ok(Self { path: path.into(), schema, columns, roles, seconds, derived, devices: Vec::new() })
    }
}

/// Most columns of a table: each holds its distinct values.
const MAX_COLUMNS: usize = 10_000;

struct Table<'a> {
    path: &'a Path,
}

impl Table<'_> {
    fn csv(&self, error: &csv::Error) -> DatasetError {
        let line = error.position().map_or(0, csv::Position::line);
        let message = match error.kind() {
            ErrorKind::UnequalLengths { expected_len, len, .. } => {
                format!("{}, the header has {expected_len}", counted(len, "cell"))
            }
            _ => error.to_string(),
        };
        DatasetError::at(self.path, Place::Line(line), message)
    }

    /// The columns, and the line of every row.
    fn read(&self, bytes: &[u8]) -> Result<(Vec<Column>, Vec<u64>), DatasetError> {
        let mut reader = ReaderBuilder::new().has_headers(false).from_reader(bytes);
        let mut record = ByteRecord::new();
        if !reader.read_byte_record(&mut record).map_err(|e| self.csv(&e))? {
            return Err(DatasetError::at(self.path, Place::Line(1), "no header"));
        }
        let names = self.names(&record)?;
        let mut builders: Vec<ColumnBuilder> = names.iter().map(|n| ColumnBuilder::new(n)).collect();
        let mut lines = Vec::new();
        while reader.read_byte_record(&mut record).map_err(|e| self.csv(&e))? {
            let line = record.position().map_or(0, csv::Position::line);
            for ((builder, bytes), name) in builders.iter_mut().zip(&record).zip(&names) {
                let text = std::str::from_utf8(bytes);
                builder.push(text.map_err(|e| fault(self.path, (line, name), &String::from_utf8_lossy(bytes), e))?);
            }
            lines.push(line);
            if lines.len() >= u32::MAX as usize {
                let message = format!("at most {} rows are read", u32::MAX - 1);
                return Err(DatasetError::at(self.path, Place::Line(line), message));
            }
        }
        Ok((builders.into_iter().map(ColumnBuilder::finish).collect(), lines))
    }

    /// The names of the columns, each once.
    fn names(&self, header: &ByteRecord) -> Result<Vec<String>, DatasetError> {
        let fault = |message| DatasetError::at(self.path, Place::Line(1), message);
        if header.len() > MAX_COLUMNS {
            return Err(fault(format!("{} columns; at most {MAX_COLUMNS} are read", header.len())));
        }
        let mut names: Vec<String> = Vec::with_capacity(header.len());
        let mut known = HashSet::with_capacity(header.len());
        for bytes in header {
            let name = std::str::from_utf8(bytes).map_err(|e| fault(format!("a column's name: {e}")))?.trim();
            if !known.insert(name) {
                return Err(fault(format!("the column {name:?} stands twice")));
            }
            names.push(name.to_owned());
        }
        Ok(names)
    }
}

/// A cell that its column cannot hold.
fn fault(path: &Path, (line, column): (u64, &str), value: &str, message: impl Display) -> DatasetError {
    let place = Place::Cell { line, column: column.to_owned() };
    DatasetError::at(path, place, format!("{:?} {message}", brief(value)))
}

/// Derived features name columns that exist, and not the time: a feature that knows the answer is none.
pub(crate) fn check_derived(
    derived: &[(String, tilewright_core::expr::Expr)],
    header: &[String],
    of_devices: &[String],
    roles: &Roles,
    sidecar: &Path,
) -> Result<(), DatasetError> {
    for (name, expr) in derived {
        for used in expr.names() {
            let message = match header.iter().position(|h| *h == used) {
                None if of_devices.contains(&used) => continue,
                None => format!("{used:?} is neither a column nor a constant"),
                Some(c) if c == roles.time || Some(c) == roles.status => format!("{used:?} is what is to be predicted"),
                Some(_) => continue,
            };
            return Err(DatasetError::at(sidecar, Place::Field(format!("derived.{name}")), message));
        }
    }
    Ok(())
}

/// What stands in a cell, as it stands there: a column keeps values, and of a missing one nothing.
fn text_of(table: &[u8], line: u64, column: usize) -> String {
    let mut reader = ReaderBuilder::new().has_headers(false).from_reader(table);
    let at_line = |r: &ByteRecord| r.position().is_some_and(|p| p.line() == line);
    let record = reader.byte_records().filter_map(Result::ok).find(at_line);
    let cell = record.and_then(|r| r.get(column).map(<[u8]>::to_vec)).unwrap_or_default();
    String::from_utf8_lossy(&cell).trim().to_owned()
}

/// The time of every row; NaN for a failure. Of a time that is none, the row and what is wrong.
fn seconds(
    schema: &DatasetSchema,
    columns: &[Column],
    roles: &Roles,
    lines: &[u64],
) -> Result<Vec<f64>, (usize, String)> {
    let time = &columns[roles.time];
    let per_second = schema.columns.time.unit.per_second();
    let status = roles.status.zip(schema.columns.status.as_ref());
    // The value in the sidecar is compared as a cell would be read.
    let ok = status.and_then(|(c, s)| cell(&s.ok.to_string()).and_then(|ok| columns[c].code_of(&ok)));
    let failed = match status {
        Some((c, s)) => {
            format!("a configuration that failed has another value than {} in column {:?}", s.ok, columns[c].name())
        }
        None => "a configuration that failed has an empty cell".to_owned(),
    };
    let one = |row: usize| {
        let good = status.is_none_or(|(c, _)| ok.is_some() && columns[c].code(row) == ok);
        let fault = |what: &str| (row, format!("{what}: a time is a number above 0, and {failed}"));
        let value = time.get(row);
        if !good || (value.is_none() && status.is_none()) {
            return Ok(f64::NAN);
        }
        let seconds = value.and_then(Value::as_f64).map(|t| t / per_second);
        match seconds {
            Some(s) if s.is_finite() && s > 0.0 => Ok(s),
            Some(_) => Err(fault("is not a positive time")),
            None if value.is_none() => Err(fault("is no time, and the row is marked as good")),
            None => Err(fault("is not a number")),
        }
    };
    (0..lines.len()).map(one).collect()
}
