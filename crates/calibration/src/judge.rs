//! Predicted against measured times of the test kernels.

use super::{Columns, LAUNCHING, Measured};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use tilewright_perfmodel_linear::{LinearError, LinearFit, LinearModel};

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
    verdicts(measured.iter().map(|m| judged(model, columns, m, m.case.class)).collect())
}

fn judged(model: &LinearModel, columns: &Columns, m: &Measured, kernel: &str) -> Judged {
    let row = columns.row(&m.case, m.time_s);
    let predicted_s = model.predict(&row.counts, row.quantised).seconds;
    let relative_error = (predicted_s - m.time_s).abs() / m.time_s;
    let (kernel, case) = (kernel.to_owned(), m.case.name.clone());
    Judged { kernel, case, measured_s: m.time_s, predicted_s, relative_error }
}

fn verdicts(cases: Vec<Judged>) -> Verdicts {
    let names: BTreeSet<&str> = cases.iter().map(|c| c.kernel.as_str()).collect();
    let of = |kernel: &str| geomean(cases.iter().filter(|c| c.kernel == kernel).map(|c| c.relative_error));
    let kernels =
        names.iter().map(|k| KernelScore { kernel: (*k).to_owned(), geomean_error: of(k) }).collect::<Vec<_>>();
    let geomean_error = geomean(cases.iter().map(|c| c.relative_error));
    Verdicts { kernels, geomean_error, cases }
}

/// Parts that measurement kernels are left out in.
const FOLDS: usize = 10;

/// Judges a form of the model by the measurement kernels alone: a tenth of them at a time, by a model that was fitted on all others.
/// What only those kernels themselves could have told, operations that no other has, is not judged.
///
/// # Errors
/// See [`LinearFit::fit`].
pub fn held_out(
    measured: &[Measured],
    columns: &Columns,
    how: &LinearFit,
    launch_s: f64,
) -> Result<Verdicts, LinearError> {
    let name = |m: &Measured| m.case.instance.kernel().name.clone();
    let names: BTreeSet<String> = measured.iter().filter(|m| m.case.class != LAUNCHING).map(name).collect();
    let fold: BTreeMap<String, usize> = names.into_iter().enumerate().map(|(i, name)| (name, i % FOLDS)).collect();
    let judge = |out: usize| {
        let (out, rest): (Vec<Measured>, Vec<Measured>) =
            measured.iter().cloned().partition(|m| fold.get(&name(m)) == Some(&out));
        let model = super::fit(&rest, columns, how, launch_s, "")?.model;
        let told = |m: &&Measured| {
            let row = columns.row(&m.case, m.time_s);
            m.time_s > launch_s && model.predict(&row.counts, row.quantised).unmeasured.is_empty()
        };
        Ok(out.iter().filter(told).map(|m| judged(&model, columns, m, &name(m))).collect())
    };
    let cases: Vec<Vec<Judged>> = (0..FOLDS).into_par_iter().map(judge).collect::<Result<_, LinearError>>()?;
    Ok(verdicts(cases.concat()))
}

fn geomean(errors: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = errors.fold((0.0, 0.0), |(sum, n), e| (sum + e.max(LEAST_ERROR).ln(), n + 1.0));
    if n == 0.0 { f64::NAN } else { f64::exp(sum / n) }
}
