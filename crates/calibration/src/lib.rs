#![doc = include_str!("../README.md")]
//!
//! Timing follows the paper's section 4.2: an empty kernel tells the launch overhead, what is not above it is rejected, first runs are
//! dropped, the least of what remains counts.

mod columns;
mod forms;
mod judge;
mod measure;
mod paper;
mod weights;

pub use columns::{Columns, HostTerms};
pub use forms::{Candidate, FormError, candidates};
pub use judge::{Judged, KernelScore, Verdicts, held_out, judge};
pub use measure::{LinearMeasure, Lower, Measured, launch_overhead};
pub use paper::PaperColumns;
pub use weights::{WeightStore, WeightsError, WeightsErrorKind, command};

use tilewright_loops::library::Case;
use tilewright_perfmodel_linear::{LinearError, LinearFit, LinearModel, Rejected, Table};

/// The class of kernels that measure launching.
const LAUNCHING: &str = "empty";

/// What was fitted, and what was left out.
#[derive(Debug)]
pub struct Fitted {
    /// The model.
    pub model: LinearModel,
    /// Rows that were not fitted on, with their reasons.
    pub rejected: Vec<Rejected>,
}

/// Fits a model on measured cases.
///
/// # Errors
/// See [`LinearFit::fit`].
pub fn fit(
    measured: &[Measured],
    columns: &Columns,
    how: &LinearFit,
    launch_s: f64,
    fingerprint: &str,
) -> Result<Fitted, LinearError> {
    let mut table = Table::new(columns.properties(), launch_s);
    let mut rejected = Vec::new();
    for m in measured {
        let row = columns.row(&m.case, m.time_s);
        let pushed = if m.case.class == LAUNCHING { table.push_launch(row) } else { table.push(row) };
        rejected.extend(pushed.err());
    }
    Ok(Fitted { model: how.fit(&table, fingerprint)?, rejected })
}

/// The name of a case for people.
pub fn case_name(case: &Case) -> String {
    format!("{} {}", case.class, case.name)
}
