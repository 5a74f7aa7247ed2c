//! Which terms beyond the paper a host's model has, and which of them its measurement kernels speak for.

use super::{Columns, HostTerms, Measured, Verdicts, held_out};
use tilewright_core::device::DeviceSpec;
use tilewright_perfmodel_linear::{Form, LinearError, LinearFit, LinearModel};

/// A form of the model of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostForm {
    /// Its name in tables.
    pub name: &'static str,
    /// Its columns.
    pub terms: HostTerms,
    /// Whether what goes on side by side overlaps.
    pub overlap: bool,
}

const fn form(name: &'static str, footprint: bool, chains: bool, overlap: bool) -> HostForm {
    HostForm { name, terms: HostTerms { footprint, chains }, overlap }
}

/// The forms, from the plainest on: each term added to the ones before, and then each of the last form taken away.
pub const HOST_FORMS: [HostForm; 6] = [
    form("operations", false, false, false),
    form("footprint", true, false, false),
    form("footprint, overlap", true, false, true),
    form("footprint, overlap, chains", true, true, true),
    form("overlap, chains", false, true, true),
    form("overlap", false, false, true),
];

impl HostForm {
    /// How it is fitted.
    pub fn fit(&self, ridge: f64) -> LinearFit {
        LinearFit { form: Form::NonNegative, ridge, overlap: self.overlap, quantised: true }
    }
}

impl HostTerms {
    /// The terms that a fitted model has columns for.
    pub fn of(model: &LinearModel) -> Self {
        let has = |wanted: fn(&str) -> bool| model.weights.iter().any(|w| wanted(&w.property.name));
        Self { footprint: has(super::columns::is_traffic), chains: has(|name| name == "chain") }
    }
}

/// What the measurement kernels say of a form.
#[derive(Debug)]
pub struct Candidate {
    /// The form.
    pub form: HostForm,
    /// Each kernel judged by a model that was fitted on all others.
    pub held_out: Verdicts,
}

/// All forms, judged by measurement kernels alone, the best first. Empty on a device that is no host.
///
/// # Errors
/// See [`LinearFit::fit`].
pub fn candidates(
    spec: &DeviceSpec,
    measured: &[Measured],
    ridge: f64,
    launch_s: f64,
) -> Result<Vec<Candidate>, LinearError> {
    let mut out = Vec::new();
    for form in HOST_FORMS {
        let Some(columns) = Columns::host(spec, form.terms) else { continue };
        out.push(Candidate { form, held_out: held_out(measured, &columns, &form.fit(ridge), launch_s)? });
    }
    out.sort_by(|a, b| a.held_out.geomean_error.total_cmp(&b.held_out.geomean_error));
    Ok(out)
}
