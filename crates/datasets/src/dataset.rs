//! A dataset in memory.

use crate::column::{Column, ColumnBuilder};
use crate::error::{DatasetError, Place};
use crate::schema::{Columns, DatasetSchema};
use serde::Serialize;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use tilewright_core::expr::{Expr, Value};
use tilewright_core::measurement::{Failure, FailureKind, Measurement, Outcome};
use tilewright_core::space::Config;

/// Measurements with their schema, column by column.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    pub(crate) path: PathBuf,
    pub(crate) schema: DatasetSchema,
    pub(crate) columns: Vec<Column>,
    pub(crate) roles: Roles,
    /// Seconds; NaN where the row failed.
    pub(crate) seconds: Vec<f64>,
    pub(crate) derived: Vec<(String, Expr)>,
    /// What is known of each device, in the order of its column's levels; empty where nothing is.
    pub(crate) devices: Vec<Config>,
}

/// Positions of the columns by role.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Roles {
    pub(crate) device: Option<usize>,
    pub(crate) input: Vec<usize>,
    pub(crate) config: Vec<usize>,
    pub(crate) variant: Option<usize>,
    pub(crate) time: usize,
    pub(crate) status: Option<usize>,
    pub(crate) group: Option<usize>,
    pub(crate) clock: Option<usize>,
}

/// What a dataset holds, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Measurements, failures included.
    pub rows: usize,
    /// Distinct devices.
    pub devices: usize,
    /// Distinct inputs.
    pub inputs: usize,
    /// Distinct configurations, the variant included.
    pub configs: usize,
    /// Rows without a time.
    pub failures: usize,
}

impl Dataset {
    /// A table made in memory, of rows with the cells of these columns in the order of their roles, the group last, and with the
    /// measured seconds; NaN for a failure.
    ///
    /// # Errors
    /// Two columns of one name.
    pub(crate) fn made(
        columns: Columns,
        rows: impl IntoIterator<Item = (Vec<Option<Value>>, f64)>,
    ) -> Result<Self, DatasetError> {
        let schema = DatasetSchema::new(columns);
        let header: Vec<String> = schema
            .roles()
            .into_iter()
            .map(|(name, _)| name)
            .chain(schema.columns.group.as_deref())
            .map(String::from)
            .collect();
        let mut seen = BTreeSet::new();
        if let Some(field) = header.iter().find(|name| !seen.insert(name.as_str())) {
            let message = "two columns of this name: fields, parameters, or what every table of its kind has";
            return Err(DatasetError::Record { record: 0, field: field.clone(), message: message.into() });
        }
        let mut builders: Vec<ColumnBuilder> = header.iter().map(|n| ColumnBuilder::new(n)).collect();
        let mut seconds = Vec::new();
        for (cells, time_s) in rows {
            builders.iter_mut().zip(&cells).for_each(|(builder, value)| builder.push_value(value.as_ref()));
            seconds.push(time_s);
        }
        Ok(Self {
            path: PathBuf::new(),
            roles: Self::roles_of(&schema, &header, Path::new(""))?,
            columns: builders.into_iter().map(ColumnBuilder::finish).collect(),
            seconds,
            derived: Vec::new(),
            devices: Vec::new(),
            schema,
        })
    }

    /// The table's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the columns mean.
    pub fn schema(&self) -> &DatasetSchema {
        &self.schema
    }

    /// All columns, in the order of the header.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// A column by name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name() == name)
    }

    /// Number of rows, failures included.
    pub fn len(&self) -> usize {
        self.seconds.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.seconds.is_empty()
    }

    /// The measured time of a row in seconds; none if it failed.
    ///
    /// # Panics
    /// Beyond the last row, as all accessors of rows.
    pub fn time_s(&self, row: usize) -> Option<f64> {
        Some(self.seconds[row]).filter(|s| !s.is_nan())
    }

    /// What evaluating a row took in seconds, compilation and failure included: what a clock column says, else the
    /// measured time, and nothing for a failure.
    pub fn clock_s(&self, row: usize) -> f64 {
        let recorded = self
            .roles
            .clock
            .zip(self.schema.columns.clock.as_ref())
            .and_then(|(c, time)| Some(self.columns[c].get(row)?.as_f64()? / time.unit.per_second()));
        recorded.filter(|s| s.is_finite() && *s >= 0.0).or(self.time_s(row)).unwrap_or_default()
    }

    /// The measurement of a row, or why there is none: the kind of failure where the status names one, else a launch
    /// failure.
    pub fn outcome(&self, row: usize) -> Outcome {
        match self.time_s(row) {
            Some(seconds) => Ok(Measurement::recorded(seconds)),
            None => Err(self.failure(row)),
        }
    }

    fn failure(&self, row: usize) -> Failure {
        let status = self.roles.status.and_then(|c| self.columns[c].get(row)).map(Value::to_string);
        let named = status.as_deref().and_then(failure_kind);
        let message = match status {
            Some(status) => format!("recorded as {status}"),
            None => "recorded without a time".into(),
        };
        Failure { kind: named.unwrap_or(FailureKind::Launch), message }
    }

    /// The device of a row; an empty name where none is recorded.
    pub fn device(&self, row: usize) -> String {
        let value = self.roles.device.and_then(|c| self.columns[c].get(row));
        value.map_or_else(String::new, Value::to_string)
    }

    /// The variant of a row, where the dataset has variants.
    pub fn variant(&self, row: usize) -> Option<String> {
        self.roles.variant.and_then(|c| self.columns[c].get(row)).map(Value::to_string)
    }

    /// The words of a row's input; missing ones are left out.
    pub fn input(&self, row: usize) -> Config {
        self.words(&self.roles.input, row)
    }

    /// The configuration of a row; missing values are left out.
    pub fn config(&self, row: usize) -> Config {
        self.words(&self.roles.config, row)
    }

    fn words(&self, columns: &[usize], row: usize) -> Config {
        let columns = columns.iter().map(|&c| &self.columns[c]);
        Config(columns.filter_map(|c| Some((c.name().to_owned(), c.get(row)?.clone()))).collect())
    }

    /// Numbers of rows, devices, inputs, configurations, failures.
    pub fn describe(&self) -> Summary {
        let count = |columns: &[usize]| self.tuples(columns).1;
        let configs: Vec<usize> = self.roles.variant.iter().chain(&self.roles.config).copied().collect();
        Summary {
            rows: self.len(),
            devices: count(self.roles.device.as_slice()),
            inputs: count(&self.roles.input),
            configs: count(&configs),
            failures: self.seconds.iter().filter(|s| s.is_nan()).count(),
        }
    }

    /// For every row a number that is the same exactly where the cells of these columns are, counted from 0 in order of
    /// appearance; and how many there are.
    pub(crate) fn tuples(&self, columns: &[usize]) -> (Vec<u32>, usize) {
        let mut numbers: HashMap<Vec<u32>, u32> = HashMap::new();
        let mut key = Vec::with_capacity(columns.len());
        let number = |row: usize| {
            key.clear();
            key.extend(columns.iter().map(|&c| self.columns[c].raw_code(row)));
            if let Some(&known) = numbers.get(key.as_slice()) {
                return known;
            }
            let next = numbers.len() as u32;
            numbers.insert(key.clone(), next);
            next
        };
        let all = (0..self.len()).map(number).collect();
        (all, numbers.len())
    }

    /// [`Dataset::tuples`] of device and input: what one search is about.
    pub(crate) fn problems(&self) -> (Vec<u32>, usize) {
        let columns: Vec<usize> = self.roles.device.iter().chain(&self.roles.input).copied().collect();
        self.tuples(&columns)
    }

    /// Finds the columns of the schema in the header.
    pub(crate) fn roles_of(schema: &DatasetSchema, header: &[String], sidecar: &Path) -> Result<Roles, DatasetError> {
        let c = &schema.columns;
        let place = |name: &str| header.iter().position(|h| h == name);
        let group = c.group.as_deref().map(|name| (name, "columns.group".to_owned()));
        for (name, field) in schema.roles().into_iter().chain(group) {
            if place(name).is_none() {
                let message = format!("the table has no column {name:?}");
                return Err(DatasetError::at(sidecar, Place::Field(field), message));
            }
        }
        Ok(Roles {
            device: c.device.as_deref().and_then(place),
            input: c.input.iter().filter_map(|n| place(n)).collect(),
            config: c.config.iter().filter_map(|n| place(n)).collect(),
            variant: c.variant.as_deref().and_then(place),
            time: place(&c.time.column).unwrap_or_default(),
            status: c.status.as_ref().and_then(|s| place(&s.column)),
            group: c.group.as_deref().and_then(place),
            clock: c.clock.as_ref().and_then(|t| place(&t.column)),
        })
    }
}

/// What a status column that this project writes says of a row that did not fail.
pub(crate) const OK_STATUS: &str = "ok";

/// The names of failures in a status column.
pub(crate) const FAILURES: [(&str, FailureKind); 6] = [
    ("illegal", FailureKind::Illegal),
    ("compile", FailureKind::Compile),
    ("launch", FailureKind::Launch),
    ("timeout", FailureKind::Timeout),
    ("cut-off", FailureKind::CutOff),
    ("wrong", FailureKind::Wrong),
];

fn failure_kind(name: &str) -> Option<FailureKind> {
    FAILURES.iter().find(|(n, _)| *n == name).map(|(_, kind)| *kind)
}
