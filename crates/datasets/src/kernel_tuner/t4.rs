//! T4 results: a list of configurations with times and measurements.

use super::{Reader, record};
use crate::error::DatasetError;
use crate::record::Record;
use serde_json::{Map, Value as Json};
use tilewright_core::measurement::{Failure, FailureKind, Outcome};

impl Reader<'_> {
    pub(super) fn t4(&self, map: &Map<String, Json>) -> Result<Vec<(String, Record)>, DatasetError> {
        let metadata = map.get("metadata");
        let text = |field: &str| metadata.and_then(|m| m.get(field)).and_then(Json::as_str);
        // The format's own files write "miliseconds".
        let unit_s = match text("timeunit") {
            None | Some("miliseconds" | "milliseconds" | "ms") => 1e-3,
            Some("microseconds" | "us") => 1e-6,
            Some("seconds" | "s") => 1.0,
            Some(other) => return Err(self.fault("metadata", "timeunit", format!("{other:?} is no known unit"))),
        };
        let device = text("hardware").or(text("device_name")).unwrap_or_default();
        let results = map.get("results").and_then(Json::as_array);
        let results = results.ok_or_else(|| self.fault("the file", "results", "not a list"))?;
        let one = |(at, result): (usize, &Json)| -> Result<(String, Record), DatasetError> {
            let entry = format!("result {at}");
            let fields = self.object(result, &entry)?;
            let config = fields.get("configuration").unwrap_or(&Json::Null);
            let config = config.as_object().ok_or_else(|| self.fault(&entry, "configuration", "not an object"))?;
            let value =
                |(name, v): (&String, &Json)| self.value(Some(v), name, &entry).map(|value| (name.clone(), value));
            let config = config.iter().map(value).collect::<Result<Vec<_>, _>>()?;
            let outcome = self.verdict(fields, unit_s, &entry)?;
            let clock = self.clock(fields, unit_s, &entry)?;
            Ok((entry, record(device, config, outcome, clock)))
        };
        let out = results.iter().enumerate().map(one).collect::<Result<Vec<_>, _>>()?;
        self.same_parameters(&out)?;
        Ok(out)
    }

    /// What became of a configuration.
    fn verdict(&self, fields: &Map<String, Json>, unit_s: f64, entry: &str) -> Result<Outcome, DatasetError> {
        let failed = |kind, name: &str| Ok(Err(Failure { kind, message: format!("recorded as {name}") }));
        match fields.get("invalidity").and_then(Json::as_str) {
            None | Some("correct") => {}
            Some("timeout") => return failed(FailureKind::Timeout, "timeout"),
            Some("compile") => return failed(FailureKind::Compile, "compile"),
            Some("runtime") => return failed(FailureKind::Launch, "runtime"),
            Some("constraints") => return failed(FailureKind::Illegal, "constraints"),
            Some("correctness") => return failed(FailureKind::Wrong, "correctness"),
            Some(other) => return Err(self.fault(entry, "invalidity", format!("{other:?} is no known verdict"))),
        }
        let measurements = fields.get("measurements").and_then(Json::as_array);
        let measurements = measurements.ok_or_else(|| self.fault(entry, "measurements", "not a list"))?;
        let time = measurements.iter().find(|m| m.get("name").and_then(Json::as_str) == Some("time"));
        let time = time.and_then(|m| m.get("value")).ok_or_else(|| self.fault(entry, "time", "missing"))?;
        self.outcome(time, unit_s, entry)
    }

    /// What evaluating it took: everything under `times`, single runs added up.
    fn clock(&self, fields: &Map<String, Json>, unit_s: f64, entry: &str) -> Result<f64, DatasetError> {
        let Some(times) = fields.get("times").and_then(Json::as_object) else { return Ok(0.0) };
        let mut sum = 0.0;
        for field in ["compilation", "framework", "validation"] {
            sum += self.milliseconds(times, field, entry)? * 1e3 * unit_s;
        }
        for run in times.get("runtimes").and_then(Json::as_array).into_iter().flatten() {
            let run = run.as_f64().filter(|ms| *ms >= 0.0);
            sum += run.ok_or_else(|| self.fault(entry, "runtimes", "not a list of times"))? * unit_s;
        }
        Ok(sum)
    }

    /// Every result has the parameters of the first.
    fn same_parameters(&self, records: &[(String, Record)]) -> Result<(), DatasetError> {
        let Some((_, first)) = records.first() else { return Ok(()) };
        for (entry, record) in records {
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
