//! Datasets from measurements in memory.

use crate::dataset::{Dataset, FAILURES, OK_STATUS};
use crate::error::DatasetError;
use crate::schema::{Columns, Status, Time, TimeUnit};
use std::collections::BTreeSet;
use tilewright_core::expr::Value;
use tilewright_core::measurement::Outcome;
use tilewright_core::space::Config;

/// One measurement, or one failure.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The device that it was measured on.
    pub device: String,
    /// The variant of the computation, where there are several.
    pub variant: Option<String>,
    /// The fields of the input.
    pub input: Config,
    /// The configuration.
    pub config: Config,
    /// What came of it.
    pub outcome: Outcome,
    /// What evaluating it took in seconds, compilation included, where that is known.
    pub clock_s: Option<f64>,
}

const CLOCK: &str = "evaluation_s";

impl Dataset {
    /// A table of these records: columns `device`, `variant` (if any record has one), the words of the inputs, the
    /// parameters, `time_s`, `status` (`ok` or the kind of failure) and `evaluation_s` (if any record has it). Words that a record lacks are missing cells.
    ///
    /// # Errors
    /// A word and a parameter, or one of them and a column above, of the same name; a time that is not positive.
    pub fn from_records(records: &[Record]) -> Result<Self, DatasetError> {
        let clocked = records.iter().any(|r| r.clock_s.is_some());
        let variants = records.iter().any(|r| r.variant.is_some());
        let columns = Columns {
            device: Some("device".into()),
            input: names(records, |r| &r.input),
            config: names(records, |r| &r.config),
            variant: variants.then(|| "variant".into()),
            time: Time { column: "time_s".into(), unit: TimeUnit::Seconds },
            status: Some(Status { column: "status".into(), ok: Value::from(OK_STATUS) }),
            group: None,
            clock: clocked.then(|| Time { column: CLOCK.into(), unit: TimeUnit::Seconds }),
        };
        let wrong = |r: &Record| r.outcome.as_ref().is_ok_and(|m| !(m.time_s.is_finite() && m.time_s > 0.0));
        if let Some(record) = records.iter().position(wrong) {
            let message = format!("{} is not a positive time", time(&records[record]));
            return Err(DatasetError::Record { record, field: "time_s".into(), message });
        }
        let rows = records.iter().map(|r| (cells(r, &columns), time(r)));
        Self::made(columns.clone(), rows)
    }
}

fn time(record: &Record) -> f64 {
    record.outcome.as_ref().map_or(f64::NAN, |m| m.time_s)
}

/// The cells of a record in the order of the roles.
fn cells(record: &Record, columns: &Columns) -> Vec<Option<Value>> {
    let mut out = vec![Some(Value::from(record.device.as_str()))];
    out.extend(columns.input.iter().map(|n| record.input.get(n).cloned()));
    out.extend(columns.config.iter().map(|n| record.config.get(n).cloned()));
    out.extend(columns.variant.iter().map(|_| record.variant.as_deref().map(Value::from)));
    let status = match &record.outcome {
        Ok(_) => OK_STATUS,
        Err(failure) => FAILURES.iter().find(|(_, kind)| *kind == failure.kind).map_or("launch", |(name, _)| name),
    };
    out.push(record.outcome.as_ref().ok().map(|m| Value::Float(m.time_s)));
    out.push(Some(Value::from(status)));
    out.extend(columns.clock.iter().map(|_| record.clock_s.map(Value::Float)));
    out
}

/// All names, in order of appearance.
fn names(records: &[Record], of: impl Fn(&Record) -> &Config) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let all = records.iter().flat_map(|r| &of(r).0);
    all.filter(|(n, _)| seen.insert(n.clone())).map(|(n, _)| n.clone()).collect()
}
