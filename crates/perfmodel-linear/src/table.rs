//! Rows to fit on: counts and times.

use crate::error::LinearError;
use serde::{Deserialize, Serialize};

/// What the time of a property overlaps with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Nothing: launches, groups, barriers.
    Overhead,
    /// What cores issue.
    Arithmetic,
    /// What units of their own do: quotients and roots.
    Special,
    /// What waits for its own results.
    Latency,
    /// What the memory of groups, or the first cache, gives.
    Local,
    /// What the caches behind the first give.
    Cache,
    /// What device memory gives.
    Memory,
}

impl Part {
    /// What goes on side by side within a core.
    pub(crate) const CORE: [Self; 4] = [Self::Arithmetic, Self::Special, Self::Latency, Self::Local];

    /// Whether data come from outside of a core.
    pub(crate) fn moves(self) -> bool {
        matches!(self, Self::Cache | Self::Memory)
    }
}

/// A property: what is counted, and what its time overlaps with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Property {
    /// Its name.
    pub name: String,
    /// What its time overlaps with.
    pub part: Part,
}

/// One kernel with its sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What it is, for reports.
    pub name: String,
    /// One number for each property.
    pub counts: Vec<f64>,
    /// What everything but overhead takes longer because the last wave of groups does not fill the device: at least 1.
    pub quantised: f64,
    /// Measured seconds of one run.
    pub time_s: f64,
}

/// A row that cannot be fitted on.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Rejected {
    /// Its time is mostly that of launching.
    #[error(
        "{name}: {time_s:.3e} s is at or below the launch overhead of {launch_s:.3e} s: it tells nothing of its operations"
    )]
    BelowLaunch {
        /// The row.
        name: String,
        /// Its time.
        time_s: f64,
        /// The overhead.
        launch_s: f64,
    },
    /// Its numbers are not what they must be.
    #[error(transparent)]
    Invalid(#[from] LinearError),
}

/// Rows with the same properties.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The columns.
    pub properties: Vec<Property>,
    rows: Vec<Row>,
    launch_s: f64,
}

impl Table {
    /// No rows yet. `launch_s` is the time of an empty kernel of one group.
    pub fn new(properties: Vec<Property>, launch_s: f64) -> Self {
        Self { properties, rows: Vec::new(), launch_s }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// A time at or below the launch overhead; counts of the wrong number, negative or not finite.
    pub fn push(&mut self, row: Row) -> Result<(), Rejected> {
        self.check(&row)?;
        if row.time_s <= self.launch_s {
            let (name, time_s, launch_s) = (row.name, row.time_s, self.launch_s);
            return Err(Rejected::BelowLaunch { name, time_s, launch_s });
        }
        self.rows.push(row);
        Ok(())
    }

    /// Adds a row that measures launching itself, whatever its time.
    ///
    /// # Errors
    /// Counts of the wrong number, negative or not finite.
    pub fn push_launch(&mut self, row: Row) -> Result<(), Rejected> {
        self.check(&row)?;
        self.rows.push(row);
        Ok(())
    }

    fn check(&self, row: &Row) -> Result<(), LinearError> {
        let (found, expected) = (row.counts.len(), self.properties.len());
        if found != expected {
            return Err(LinearError::Width { row: row.name.clone(), found, expected });
        }
        let bad = |property: &str, value: f64| {
            let (row, property, value) = (row.name.clone(), property.to_owned(), value.to_string());
            Err(LinearError::Value { row, property, value })
        };
        for (property, count) in self.properties.iter().zip(&row.counts) {
            if !(count.is_finite() && *count >= 0.0) {
                return bad(&property.name, *count);
            }
        }
        if !(row.time_s.is_finite() && row.time_s > 0.0) {
            return bad("time_s", row.time_s);
        }
        if !(row.quantised.is_finite() && row.quantised >= 1.0) {
            return bad("quantised", row.quantised);
        }
        Ok(())
    }

    /// The rows.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }
}
