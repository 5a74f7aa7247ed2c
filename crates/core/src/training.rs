//! Rows to fit a predictor on.

use crate::feature::FeatureSchema;

/// Feature rows with measured costs.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingSet {
    /// What the columns are.
    pub schema: FeatureSchema,
    /// Row-major, `schema.width()` numbers a row.
    pub rows: Vec<f32>,
    /// Measured cost of each row (seconds, or the objective's cost), positive.
    pub costs: Vec<f64>,
    /// Rows of one group (one input) stay on one side of a split. Same length as `costs`.
    pub groups: Vec<u32>,
}

/// A row that cannot be fitted on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("row {row} has {message}")]
pub struct TrainingError {
    /// Which row.
    pub row: usize,
    /// What it has, and what is expected.
    pub message: String,
}

impl TrainingSet {
    /// An empty set.
    pub fn new(schema: FeatureSchema) -> Self {
        Self { schema, rows: Vec::new(), costs: Vec::new(), groups: Vec::new() }
    }

    /// Appends a row.
    ///
    /// # Errors
    /// A row of the wrong width, or a cost that is not positive and finite.
    pub fn push(&mut self, row: &[f32], cost: f64, group: u32) -> Result<(), TrainingError> {
        let (found, expected) = (row.len(), self.schema.width());
        let refuse = |message| Err(TrainingError { row: self.len(), message });
        if found != expected {
            return refuse(format!("{found} features, the schema has {expected}"));
        }
        if !(cost.is_finite() && cost > 0.0) {
            return refuse(format!("cost {cost}; costs are positive and finite"));
        }
        self.rows.extend_from_slice(row);
        self.costs.push(cost);
        self.groups.push(group);
        Ok(())
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.costs.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.costs.is_empty()
    }

    /// One row.
    pub fn row(&self, i: usize) -> &[f32] {
        let w = self.schema.width();
        &self.rows[i * w..(i + 1) * w]
    }

    /// The set of the given rows, in that order.
    #[must_use]
    pub fn subset(&self, indices: &[usize]) -> Self {
        let mut out = Self::new(self.schema.clone());
        for &i in indices {
            out.rows.extend_from_slice(self.row(i));
            out.costs.push(self.costs[i]);
            out.groups.push(self.groups[i]);
        }
        out
    }
}
