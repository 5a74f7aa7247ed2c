//! Datasets from measurements in memory.

use crate::column::ColumnBuilder;
use crate::dataset::{Dataset, FAILURES};
use crate::error::DatasetError;
use crate::schema::{Columns, DatasetSchema, Status, Time, TimeUnit};
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

const OK: &str = "ok";
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
            status: Some(Status { column: "status".into(), ok: Value::from(OK) }),
            group: None,
            clock: clocked.then(|| Time { column: CLOCK.into(), unit: TimeUnit::Seconds }),
        };
        let schema = DatasetSchema::new(columns);
        let header: Vec<String> = schema.roles().into_iter().map(|(name, _)| name.to_owned()).collect();
        clashes(records, &header)?;
        let mut builders: Vec<ColumnBuilder> = header.iter().map(|n| ColumnBuilder::new(n)).collect();
        for record in records {
            for (builder, value) in builders.iter_mut().zip(cells(record, &schema.columns)) {
                builder.push_value(value.as_ref());
            }
        }
        let time = |r: &Record| r.outcome.as_ref().map_or(f64::NAN, |m| m.time_s);
        if let Some(record) = records.iter().position(|r| matches!(&r.outcome, Ok(m) if !positive(m.time_s))) {
            let message = format!("{} is not a positive time", time(&records[record]));
            return Err(DatasetError::Record { record, field: "time_s".into(), message });
        }
        Ok(Self {
            path: std::path::PathBuf::new(),
            roles: Self::roles_of(&schema, &header, std::path::Path::new(""))?,
            columns: builders.into_iter().map(ColumnBuilder::finish).collect(),
            seconds: records.iter().map(time).collect(),
            derived: Vec::new(),
            devices: Vec::new(),
            schema,
        })
    }
}

/// The cells of a record in the order of [`DatasetSchema::roles`].
fn cells(record: &Record, columns: &Columns) -> Vec<Option<Value>> {
    let mut out = vec![Some(Value::from(record.device.as_str()))];
    out.extend(columns.input.iter().map(|n| record.input.get(n).cloned()));
    out.extend(columns.config.iter().map(|n| record.config.get(n).cloned()));
    out.extend(columns.variant.iter().map(|_| record.variant.as_deref().map(Value::from)));
    let status = match &record.outcome {
        Ok(_) => OK,
        Err(failure) => FAILURES.iter().find(|(_, kind)| *kind == failure.kind).map_or("launch", |(name, _)| name),
    };
    out.push(record.outcome.as_ref().ok().map(|m| Value::Float(m.time_s)));
    out.push(Some(Value::from(status)));
    out.extend(columns.clock.iter().map(|_| record.clock_s.map(Value::Float)));
    out
}

fn positive(seconds: f64) -> bool {
    seconds.is_finite() && seconds > 0.0
}

/// All names, in order of appearance.
fn names(records: &[Record], of: impl Fn(&Record) -> &Config) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let all = records.iter().flat_map(|r| &of(r).0);
    all.filter(|(n, _)| seen.insert(n.clone())).map(|(n, _)| n.clone()).collect()
}

fn clashes(records: &[Record], header: &[String]) -> Result<(), DatasetError> {
    let mut seen = BTreeSet::new();
    let Some(field) = header.iter().find(|n| !seen.insert(n.as_str())) else { return Ok(()) };
    let named = |r: &Record| r.input.get(field).is_some() || r.config.get(field).is_some();
    let record = records.iter().position(named).unwrap_or_default();
    let message =
        "two columns of this name: a word, a parameter, or one of device, variant, time_s, status, evaluation_s".into();
    Err(DatasetError::Record { record, field: field.clone(), message })
}
