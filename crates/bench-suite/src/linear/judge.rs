//! Predicted against measured times of the test kernels.

use super::{Columns, Measured};
use serde::Serialize;
use tilewright_perfmodel_linear::LinearModel;

/// Relative errors below this count as this in geometric means: a lucky hit must not hide the rest.
const LEAST_ERROR: f64 = 1e-3;

/// One case.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// The test kernel.
    pub kernel: String,
    /// Size and group.
    pub case: String,
    /// Measured seconds.
    pub measured_s: f64,
    /// Predicted seconds.
    pub predicted_s: f64,
    /// `|predicted - measured| / measured`.
    pub relative_error: f64,
}

/// One test kernel over its sizes.
#[derive(Clone, Debug, Serialize)]
pub struct KernelScore {
    /// The test kernel.
    pub kernel: String,
    /// Geometric mean of the relative errors.
    pub geomean_error: f64,
}

/// The paper's Table I for one device and one form of the model.
#[derive(Clone, Debug, Serialize)]
pub struct Verdicts {
    /// Case by case.
    pub cases: Vec<Judged>,
    /// By test kernel.
    pub kernels: Vec<KernelScore>,
    /// Geometric mean of the relative errors of all cases.
    pub geomean_error: f64,
}

/// Judges a model by measured cases that it was not fitted on.
pub fn judge(model: &LinearModel, columns: &Columns, measured: &[Measured]) -> Verdicts {
    let mut cases = Vec::new();
    for m in measured {
        let row = columns.row(&m.case, m.time_s);
        let predicted_s = model.predict(&row.counts, row.quantised).seconds;
        let relative_error = (predicted_s - m.time_s).abs() / m.time_s;
        let (kernel, case) = (m.case.class.to_owned(), m.case.name.clone());
        cases.push(Judged { kernel, case, measured_s: m.time_s, predicted_s, relative_error });
    }
    let mut names: Vec<&str> = cases.iter().map(|c| c.kernel.as_str()).collect();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    let of = |kernel: &str| geomean(cases.iter().filter(|c| c.kernel == kernel).map(|c| c.relative_error));
    let kernels =
        names.iter().map(|k| KernelScore { kernel: (*k).to_owned(), geomean_error: of(k) }).collect::<Vec<_>>();
    let geomean_error = geomean(cases.iter().map(|c| c.relative_error));
    Verdicts { kernels, geomean_error, cases }
}

fn geomean(errors: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = errors.fold((0.0, 0.0), |(sum, n), e| (sum + e.max(LEAST_ERROR).ln(), n + 1.0));
    if n == 0.0 { f64::NAN } else { f64::exp(sum / n) }
}
