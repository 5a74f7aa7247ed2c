//! What a dataset holds: its columns with their ranges, the fastest row, the failures by kind.

use crate::column::Column;
use crate::dataset::Dataset;
use serde::Serialize;
use std::collections::BTreeMap;
use tilewright_core::expr::Value;
use tilewright_core::space::Config;

/// Distinct values that are listed.
const LISTED: usize = 8;

/// One column of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnSummary {
    /// The name in the header.
    pub name: String,
    /// `device`, `input`, `variant`, `config`, `group`, `time`, `clock` or `status`; empty for a column that nothing reads.
    pub role: &'static str,
    /// Distinct values.
    pub distinct: usize,
    /// Rows without a value.
    pub missing: usize,
    /// The least number, where there are numbers.
    pub least: Option<f64>,
    /// The greatest number, where there are numbers.
    pub greatest: Option<f64>,
    /// The distinct values, numbers in order of size before words; empty where they are many.
    pub values: Vec<Value>,
}

/// The row with the least time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fastest {
    /// Its seconds.
    pub time_s: f64,
    /// Its device; empty where none is recorded.
    pub device: String,
    /// Its variant, where there are variants.
    pub variant: Option<String>,
    /// Its input.
    pub input: Config,
    /// Its configuration.
    pub config: Config,
}

impl Dataset {
    /// Every column, in the order of the table.
    pub fn column_summaries(&self) -> Vec<ColumnSummary> {
        self.columns.iter().enumerate().map(|(at, column)| summary(column, self.role(at))).collect()
    }

    fn role(&self, at: usize) -> &'static str {
        let roles = &self.roles;
        let one = |column: Option<usize>| column == Some(at);
        match at {
            _ if one(roles.device) => "device",
            _ if roles.input.contains(&at) => "input",
            _ if one(roles.variant) => "variant",
            _ if roles.config.contains(&at) => "config",
            _ if roles.time == at => "time",
            _ if one(roles.clock) => "clock",
            _ if one(roles.status) => "status",
            _ if one(roles.group) => "group",
            _ => "",
        }
    }

    /// The row with the least time; none where every row failed.
    pub fn fastest(&self) -> Option<Fastest> {
        let timed = (0..self.len()).filter_map(|row| Some((row, self.time_s(row)?)));
        let (row, time_s) = timed.min_by(|a, b| a.1.total_cmp(&b.1))?;
        let (device, variant) = (self.device(row), self.variant(row));
        Some(Fastest { time_s, device, variant, input: self.input(row), config: self.config(row) })
    }

    /// The greatest time; none where every row failed.
    pub fn slowest_s(&self) -> Option<f64> {
        (0..self.len()).filter_map(|row| self.time_s(row)).max_by(f64::total_cmp)
    }

    /// Rows without a time, by what is recorded of them.
    pub fn failures(&self) -> BTreeMap<String, usize> {
        let mut out = BTreeMap::new();
        for failure in (0..self.len()).filter_map(|row| self.outcome(row).err()) {
            *out.entry(failure.message).or_default() += 1;
        }
        out
    }
}

fn summary(column: &Column, role: &'static str) -> ColumnSummary {
    let values = column.sorted_levels();
    let numbers = || values.iter().filter_map(Value::as_f64);
    ColumnSummary {
        name: column.name().to_owned(),
        role,
        distinct: values.len(),
        missing: (0..column.len()).filter(|&row| column.code(row).is_none()).count(),
        least: numbers().min_by(f64::total_cmp),
        greatest: numbers().max_by(f64::total_cmp),
        values: if values.len() <= LISTED { values } else { Vec::new() },
    }
}
