//! Recordings by Kernel Tuner: its cache files, and the T4 results format.
//!
//! Both hold one kernel on one device. Times are milliseconds; a configuration that failed has a name of a failure where
//! its time would stand, or a time of 1e20 in old files.

mod cache;
mod t4;

use crate::dataset::Dataset;
use crate::error::{DatasetError, Place};
use crate::record::Record;
use serde::de::IgnoredAny;
use serde_json::{Map, Value as Json};
use std::collections::HashMap;
use std::path::Path;
use tilewright_core::expr::Value;
use tilewright_core::measurement::{Failure, FailureKind, Measurement, Outcome};
use tilewright_core::space::Config;

/// Times from here on mark failures in old cache files.
const NEVER_MS: f64 = 1e19;

impl Dataset {
    /// A recording by Kernel Tuner, cache file or T4 results, from memory; `path` is its name in messages. The columns are
    /// those of [`Dataset::from_records`].
    ///
    /// # Errors
    /// Text that is no JSON (line and column) or neither format; an entry that lacks a parameter or has a value that is
    /// none of the parameter's, text for a time that names no failure, a time that is not positive, a configuration that
    /// stands there twice with different results.
    pub fn from_kernel_tuner(text: &[u8], path: &Path) -> Result<Self, DatasetError> {
        let message = "neither a Kernel Tuner cache (\"cache\") nor T4 results (\"results\")";
        let neither = || DatasetError::at(path, Place::File, message);
        let wrong = |e: serde_json::Error| DatasetError::json(path, &e);
        let keys: HashMap<String, IgnoredAny> =
            serde_json::from_slice(text).map_err(|e| if e.is_data() { neither() } else { wrong(e) })?;
        let reader = Reader { path };
        let records = if keys.contains_key("cache") {
            reader.cache(serde_json::from_slice(text).map_err(wrong)?)?
        } else if keys.contains_key("results") {
            reader.t4(&serde_json::from_slice(text).map_err(wrong)?)?
        } else {
            return Err(neither());
        };
        let mut dataset = Self::from_records(&reader.distinct(records)?)?;
        dataset.path = path.into();
        Ok(dataset)
    }
}

struct Reader<'a> {
    path: &'a Path,
}

impl Reader<'_> {
    fn fault(&self, entry: &str, field: &str, message: impl Into<String>) -> DatasetError {
        DatasetError::at(self.path, Place::Entry { entry: entry.into(), field: field.into() }, message)
    }

    fn object<'j>(&self, json: &'j Json, entry: &str) -> Result<&'j Map<String, Json>, DatasetError> {
        json.as_object().ok_or_else(|| self.fault(entry, "", "not an object"))
    }

    /// A number of milliseconds as seconds; 0 where the field is missing.
    fn milliseconds(&self, map: &Map<String, Json>, field: &str, entry: &str) -> Result<f64, DatasetError> {
        match map.get(field) {
            None | Some(Json::Null) => Ok(0.0),
            Some(value) => match value.as_f64().filter(|ms| *ms >= 0.0) {
                Some(ms) => Ok(ms / 1e3),
                None => Err(self.fault(entry, field, format!("{value} is not a time of 0 or more"))),
            },
        }
    }

    /// What a measured time, or what stands in its place, says.
    fn outcome(&self, time: &Json, unit_s: f64, entry: &str) -> Result<Outcome, DatasetError> {
        let failed = |kind, message: &str| Ok(Err(Failure { kind, message: message.into() }));
        if let Some(time) = time.as_f64() {
            return match time {
                t if t >= NEVER_MS => failed(FailureKind::Launch, "recorded as 1e20"),
                t if t > 0.0 => Ok(Ok(Measurement::recorded(t * unit_s))),
                t => Err(self.fault(entry, "time", format!("{t} is not a positive time"))),
            };
        }
        match time.as_str() {
            Some(name) if name.contains("InvalidConfig") => failed(FailureKind::Illegal, name),
            Some(name) if name.contains("CompilationFailed") => failed(FailureKind::Compile, name),
            Some(name) if name.contains("RuntimeFailed") => failed(FailureKind::Launch, name),
            Some(name) => Err(self.fault(entry, "time", format!("{name:?} is neither a number nor a known failure"))),
            None => Err(self.fault(entry, "time", format!("{time} is no time"))),
        }
    }

    /// The value of a parameter.
    fn value(&self, json: Option<&Json>, name: &str, entry: &str) -> Result<Value, DatasetError> {
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

    /// The records without those that say the same thing again.
    fn distinct(&self, records: Vec<(String, Record)>) -> Result<Vec<Record>, DatasetError> {
        let mut seen: HashMap<String, usize> = HashMap::with_capacity(records.len());
        let mut out: Vec<Record> = Vec::with_capacity(records.len());
        for (entry, record) in records {
            match seen.get(&record.config.to_string()).map(|&at| &out[at]) {
                None => {
                    seen.insert(record.config.to_string(), out.len());
                    out.push(record);
                }
                Some(first) if same(&first.outcome, &record.outcome) => {}
                Some(_) => {
                    let message = format!("{} was recorded before, with another result", record.config);
                    return Err(self.fault(&entry, "configuration", message));
                }
            }
        }
        Ok(out)
    }
}

fn same(a: &Outcome, b: &Outcome) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => a.time_s == b.time_s,
        (Err(a), Err(b)) => a.kind == b.kind,
        _ => false,
    }
}

fn record(device: &str, config: Vec<(String, Value)>, outcome: Outcome, clock_s: f64) -> Record {
    Record {
        device: device.to_owned(),
        variant: None,
        input: Config::default(),
        config: Config(config),
        outcome,
        clock_s: Some(clock_s),
    }
}
