//! Recordings by other tuners, told apart by their contents; and what their readers share.

use crate::dataset::Dataset;
use crate::error::{DatasetError, Place};
use crate::record::Record;
use crate::schema::TimeUnit;
use serde::de::IgnoredAny;
use serde_json::{Map, Value as Json};
use std::collections::HashMap;
use std::path::Path;
use tilewright_core::expr::Value;
use tilewright_core::measurement::{Failure, FailureKind, Outcome};

/// Longest time in seconds that a file can mean: tuners mark what was never measured with the greatest number that they have.
const MEANT_S: f64 = 1e9;

impl Dataset {
    /// A recording by another tuner from memory, whatever the tuner: Kernel Tuner's cache, T4 results, KTT's results, a file of a
    /// CLBlast tuner or CLBlast's database. `path` is its name in messages.
    ///
    /// # Errors
    /// Text that is no JSON (line and column) or none of these formats; what [`Dataset::from_kernel_tuner`],
    /// [`Dataset::from_ktt`] and [`Dataset::from_clblast`] refuse.
    pub fn from_recording(text: &[u8], path: &Path) -> Result<Self, DatasetError> {
        let keys = Reader { path }.keys(text)?;
        let has = |key: &str| keys.contains_key(key);
        if has("Results") {
            Self::from_ktt(text, path)
        } else if has("sections") || (has("results") && has("kernel_family")) {
            Self::from_clblast(text, path)
        } else if has("cache") || has("results") {
            Self::from_kernel_tuner(text, path)
        } else {
            let message = "no recording: neither a Kernel Tuner cache (\"cache\"), T4 results (\"results\"), KTT's results \
                           (\"Results\"), nor CLBlast's (\"kernel_family\" or \"sections\")";
            Err(DatasetError::at(path, Place::File, message))
        }
    }
}

/// Reads fields, and names the entry and the field of what it cannot read.
pub(crate) struct Reader<'a> {
    pub(crate) path: &'a Path,
}

impl Reader<'_> {
    pub(crate) fn fault(&self, entry: &str, field: &str, message: impl Into<String>) -> DatasetError {
        DatasetError::at(self.path, Place::Entry { entry: entry.into(), field: field.into() }, message)
    }

    /// Text that is no JSON.
    pub(crate) fn json(&self, error: &serde_json::Error) -> DatasetError {
        DatasetError::json(self.path, error)
    }

    /// The keys of the outermost object.
    pub(crate) fn keys(&self, text: &[u8]) -> Result<HashMap<String, IgnoredAny>, DatasetError> {
        let no_object = || DatasetError::at(self.path, Place::File, "no recording: not an object");
        serde_json::from_slice(text).map_err(|e| if e.is_data() { no_object() } else { self.json(&e) })
    }

    pub(crate) fn object<'j>(&self, json: &'j Json, entry: &str) -> Result<&'j Map<String, Json>, DatasetError> {
        json.as_object().ok_or_else(|| self.fault(entry, "", "not an object"))
    }

    /// A list under this key.
    pub(crate) fn list<'j>(
        &self,
        map: &'j Map<String, Json>,
        field: &str,
        entry: &str,
    ) -> Result<&'j Vec<Json>, DatasetError> {
        map.get(field).and_then(Json::as_array).ok_or_else(|| self.fault(entry, field, "not a list"))
    }

    /// A unit of time by its name; milliseconds where none is given.
    pub(crate) fn unit(&self, name: Option<&str>, entry: &str, field: &str) -> Result<TimeUnit, DatasetError> {
        match name.map(str::to_lowercase).as_deref() {
            // Published T4 files have "miliseconds".
            None | Some("miliseconds" | "milliseconds" | "ms") => Ok(TimeUnit::Milliseconds),
            Some("nanoseconds" | "ns") => Ok(TimeUnit::Nanoseconds),
            Some("microseconds" | "us") => Ok(TimeUnit::Microseconds),
            Some("seconds" | "s") => Ok(TimeUnit::Seconds),
            Some(other) => Err(self.fault(entry, field, format!("{other:?} is no known unit"))),
        }
    }

    /// A duration as seconds; 0 where the field is missing, or holds what marks a duration that was never measured.
    pub(crate) fn duration(
        &self,
        map: &Map<String, Json>,
        field: &str,
        unit: TimeUnit,
        entry: &str,
    ) -> Result<f64, DatasetError> {
        match map.get(field) {
            None | Some(Json::Null) => Ok(0.0),
            Some(value) => match value.as_f64().filter(|t| *t >= 0.0) {
                Some(time) => Ok(Some(time / unit.per_second()).filter(|s| *s < MEANT_S).unwrap_or_default()),
                None => Err(self.fault(entry, field, format!("{value} is not a time of 0 or more"))),
            },
        }
    }

    /// The value of a parameter.
    pub(crate) fn value(&self, json: Option<&Json>, name: &str, entry: &str) -> Result<Value, DatasetError> {
        match json {
            Some(Json::Bool(b)) => Ok(Value::Bool(*b)),
            Some(Json::String(s)) => Ok(Value::Str(s.clone())),
            Some(Json::Number(n)) => match (n.as_i64(), n.as_f64()) {
                (Some(i), _) => Ok(Value::Int(i)),
                (None, Some(f)) => Ok(Value::Float(f)),
                (None, None) => Err(self.fault(entry, name, format!("{n} is too large"))),
            },
            Some(other) => Err(self.fault(entry, name, format!("{other} is no value of a parameter"))),
            None => Err(self.fault(entry, name, "the parameter is missing")),
        }
    }

    /// Every record of a variant has the parameters of its first.
    pub(crate) fn same_parameters(&self, records: &[(String, Record)]) -> Result<(), DatasetError> {
        let mut firsts: HashMap<Option<&str>, &Record> = HashMap::new();
        for (entry, record) in records {
            let first = firsts.entry(record.variant.as_deref()).or_insert(record);
            let missing = first.config.0.iter().find(|(name, _)| record.config.get(name).is_none());
            if let Some((name, _)) = missing {
                return Err(self.fault(entry, name, "the parameter is missing"));
            }
            if let Some((name, _)) = record.config.0.iter().find(|(name, _)| first.config.get(name).is_none()) {
                return Err(self.fault(entry, name, "a parameter that the first result lacks"));
            }
        }
        Ok(())
    }
}

/// A failure of this kind.
pub(crate) fn failed(kind: FailureKind, message: impl Into<String>) -> Outcome {
    Err(Failure { kind, message: message.into() })
}
