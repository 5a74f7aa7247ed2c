//! Results of KTT, the Kernel Tuning Toolkit, in its JSON format, as its `JsonSerializer` writes them (versions 2.0 to 2.2).
//!
//! One file holds the results of one tuner on one device. Durations have the unit that the metadata name. A kernel is run for the sum
//! of its computations and of what its launcher adds (`TotalDuration`).

use crate::dataset::Dataset;
use crate::error::DatasetError;
use crate::foreign::{Reader, failed};
use crate::record::Record;
use crate::schema::TimeUnit;
use serde_json::{Map, Value as Json};
use std::path::Path;
use tilewright_core::measurement::{FailureKind, Measurement, Outcome};
use tilewright_core::space::Config;

impl Dataset {
    /// KTT's results from memory; `path` is their name in messages. The columns are those of [`Dataset::from_records`]; kernels are
    /// variants where the file has several. A configuration that was run several times (a profile takes several runs) has a row for
    /// each; replayed, the fastest counts. What is recorded of its evaluation is `TotalDuration` and `TotalOverhead`.
    ///
    /// # Errors
    /// Text that is no JSON (line and column); metadata without a unit of time; a result without a known status, without a
    /// configuration, with other parameters than the first of its kernel, or marked as good without a positive time.
    pub fn from_ktt(text: &[u8], path: &Path) -> Result<Self, DatasetError> {
        let reader = Reader { path };
        let file: Map<String, Json> = serde_json::from_slice(text).map_err(|e| reader.json(&e))?;
        let mut records = reader.ktt(&file)?;
        if records.iter().all(|(_, r)| r.variant == records[0].1.variant) {
            records.iter_mut().for_each(|(_, r)| r.variant = None);
        }
        reader.same_parameters(&records)?;
        let records: Vec<Record> = records.into_iter().map(|(_, record)| record).collect();
        let mut dataset = Self::from_records(&records)?;
        dataset.path = path.into();
        Ok(dataset)
    }
}

impl Reader<'_> {
    fn ktt(&self, file: &Map<String, Json>) -> Result<Vec<(String, Record)>, DatasetError> {
        let metadata = |field: &str| file.get("Metadata").and_then(|m| m.get(field)).and_then(Json::as_str);
        let unit = metadata("TimeUnit").ok_or_else(|| self.fault("Metadata", "TimeUnit", "missing"))?;
        let unit = self.unit(Some(unit), "Metadata", "TimeUnit")?;
        let device = metadata("Device").unwrap_or_default();
        let one = |(at, result): (usize, &Json)| {
            let entry = format!("result {at}");
            let fields = self.object(result, &entry)?;
            let record = Record {
                device: device.to_owned(),
                variant: Some(fields.get("KernelName").and_then(Json::as_str).unwrap_or_default().to_owned()),
                input: Config::default(),
                config: self.pairs(fields, &entry)?,
                outcome: self.status(fields, unit, &entry)?,
                clock_s: Some(
                    self.duration(fields, "TotalDuration", unit, &entry)?
                        + self.duration(fields, "TotalOverhead", unit, &entry)?,
                ),
            };
            Ok((entry, record))
        };
        self.list(file, "Results", "the file")?.iter().enumerate().map(one).collect()
    }

    /// The configuration: a list of pairs of a name and a value.
    fn pairs(&self, fields: &Map<String, Json>, entry: &str) -> Result<Config, DatasetError> {
        let mut config = Config::default();
        for pair in self.list(fields, "Configuration", entry)? {
            let name = pair.get("Name").and_then(Json::as_str);
            let name = name.ok_or_else(|| self.fault(entry, "Configuration", "a parameter without a name"))?;
            if config.get(name).is_some() {
                return Err(self.fault(entry, name, "the parameter stands twice"));
            }
            config.0.push((name.to_owned(), self.value(pair.get("Value"), name, entry)?));
        }
        Ok(config)
    }

    /// What became of a configuration.
    fn status(&self, fields: &Map<String, Json>, unit: TimeUnit, entry: &str) -> Result<Outcome, DatasetError> {
        let status = fields.get("Status").and_then(Json::as_str);
        let kind = match status.ok_or_else(|| self.fault(entry, "Status", "missing"))? {
            "Ok" => {
                return match self.duration(fields, "TotalDuration", unit, entry)? {
                    seconds if seconds > 0.0 => Ok(Ok(Measurement::recorded(seconds))),
                    _ => Err(self.fault(entry, "TotalDuration", "no positive time, and the status is Ok")),
                };
            }
            "ComputationFailed" => FailureKind::Launch,
            "ValidationFailed" => FailureKind::Wrong,
            "CompilationFailed" => FailureKind::Compile,
            "DeviceLimitsExceeded" => FailureKind::Illegal,
            other => return Err(self.fault(entry, "Status", format!("{other:?} is no known status"))),
        };
        Ok(failed(kind, status.unwrap_or_default()))
    }
}
