//! T4 results: a list of configurations with times and measurements.

use super::record;
use crate::error::DatasetError;
use crate::foreign::{Reader, failed};
use crate::record::Record;
use crate::schema::TimeUnit;
use serde_json::{Map, Value as Json};
use tilewright_core::measurement::{FailureKind, Outcome};

impl Reader<'_> {
    pub(super) fn t4(&self, map: &Map<String, Json>) -> Result<Vec<(String, Record)>, DatasetError> {
        let metadata = map.get("metadata");
        let text = |field: &str| metadata.and_then(|m| m.get(field)).and_then(Json::as_str);
        let unit = self.unit(text("timeunit"), "metadata", "timeunit")?;
        let device = text("hardware").or(text("device_name")).or(text("device")).unwrap_or_default();
        let results = self.list(map, "results", "the file")?;
        let one = |(at, result): (usize, &Json)| -> Result<(String, Record), DatasetError> {
            let entry = format!("result {at}");
            let fields = self.object(result, &entry)?;
            let config = fields.get("configuration").unwrap_or(&Json::Null);
            let config = config.as_object().ok_or_else(|| self.fault(&entry, "configuration", "not an object"))?;
            let value =
                |(name, v): (&String, &Json)| self.value(Some(v), name, &entry).map(|value| (name.clone(), value));
            let config = config.iter().map(value).collect::<Result<Vec<_>, _>>()?;
            let outcome = self.verdict(fields, unit, &entry)?;
            let clock = self.clock(fields, unit, &entry)?;
            Ok((entry, record(device, config, outcome, clock)))
        };
        let out = results.iter().enumerate().map(one).collect::<Result<Vec<_>, _>>()?;
        self.same_parameters(&out)?;
        Ok(out)
    }

    /// What became of a configuration.
    fn verdict(&self, fields: &Map<String, Json>, unit: TimeUnit, entry: &str) -> Result<Outcome, DatasetError> {
        let failed = |kind, name: &str| Ok(failed(kind, format!("recorded as {name}")));
        match fields.get("invalidity").and_then(Json::as_str) {
            None | Some("correct") => {}
            Some("timeout") => return failed(FailureKind::Timeout, "timeout"),
            Some("compile") => return failed(FailureKind::Compile, "compile"),
            Some("runtime") => return failed(FailureKind::Launch, "runtime"),
            Some("constraints") => return failed(FailureKind::Illegal, "constraints"),
            Some("correctness") => return failed(FailureKind::Wrong, "correctness"),
            Some(other) => return Err(self.fault(entry, "invalidity", format!("{other:?} is no known verdict"))),
        }
        let measurements = self.list(fields, "measurements", entry)?;
        let time = measurements.iter().find(|m| m.get("name").and_then(Json::as_str) == Some("time"));
        let time = time.and_then(|m| m.get("value")).ok_or_else(|| self.fault(entry, "time", "missing"))?;
        self.outcome(time, unit, entry)
    }

    /// What evaluating it took: the parts under `times` without the search itself. Where the benchmark is not among them, the
    /// single runs stand for it.
    fn clock(&self, fields: &Map<String, Json>, unit: TimeUnit, entry: &str) -> Result<f64, DatasetError> {
        let Some(times) = fields.get("times").and_then(Json::as_object) else { return Ok(0.0) };
        let mut sum = 0.0;
        // Kernel Tuner writes "compilation"; the schema, and KTT, "compilation_time".
        for field in ["compilation", "compilation_time", "framework", "validation"] {
            sum += self.duration(times, field, unit, entry)?;
        }
        let mut runs_s = 0.0;
        for run in times.get("runtimes").and_then(Json::as_array).into_iter().flatten() {
            let run = run.as_f64().filter(|time| *time >= 0.0);
            runs_s += run.ok_or_else(|| self.fault(entry, "runtimes", "not a list of times"))? / unit.per_second();
        }
        let benchmark_s = self.duration(times, "benchmark", unit, entry)?;
        Ok(sum + if benchmark_s > 0.0 { benchmark_s } else { runs_s })
    }
}
