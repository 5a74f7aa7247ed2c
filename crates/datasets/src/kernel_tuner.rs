//! Recordings by Kernel Tuner: its cache files, and the T4 results format.
//!
//! Both hold one kernel on one device. Times of a cache are milliseconds; a configuration that failed has the name of a failure under
//! `__error__`, in older files where its time would stand, in the oldest a time of 1e20.

mod cache;
mod t4;
mod write;

use crate::dataset::Dataset;
use crate::error::{DatasetError, Place};
use crate::foreign::{Reader, failed};
use crate::record::Record;
use crate::schema::TimeUnit;
use serde_json::Value as Json;
use std::collections::HashMap;
use std::path::Path;
use tilewright_core::expr::Value;
use tilewright_core::measurement::{FailureKind, Measurement, Outcome};
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
        let reader = Reader { path };
        let keys = reader.keys(text)?;
        let records = if keys.contains_key("cache") {
            reader.cache(serde_json::from_slice(text).map_err(|e| reader.json(&e))?)?
        } else if keys.contains_key("results") {
            reader.t4(&serde_json::from_slice(text).map_err(|e| reader.json(&e))?)?
        } else {
            let message = "neither a Kernel Tuner cache (\"cache\") nor T4 results (\"results\")";
            return Err(DatasetError::at(path, Place::File, message));
        };
        let mut dataset = Self::from_records(&reader.distinct(records)?)?;
        dataset.path = path.into();
        Ok(dataset)
    }
}

impl Reader<'_> {
    /// What a measured time, or what stands in its place, says.
    fn outcome(&self, time: &Json, unit: TimeUnit, entry: &str) -> Result<Outcome, DatasetError> {
        if let Some(time) = time.as_f64() {
            return match time {
                t if t >= NEVER_MS => Ok(failed(FailureKind::Launch, "recorded as 1e20")),
                t if t > 0.0 => Ok(Ok(Measurement::recorded(t / unit.per_second()))),
                t => Err(self.fault(entry, "time", format!("{t} is not a positive time"))),
            };
        }
        match time.as_str() {
            Some(name) if name.contains("InvalidConfig") => Ok(failed(FailureKind::Illegal, name)),
            Some(name) if name.contains("CompilationFailed") => Ok(failed(FailureKind::Compile, name)),
            Some(name) if name.contains("RuntimeFailed") => Ok(failed(FailureKind::Launch, name)),
            Some(name) => Err(self.fault(entry, "time", format!("{name:?} is neither a number nor a known failure"))),
            None => Err(self.fault(entry, "time", format!("{time} is no time"))),
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
