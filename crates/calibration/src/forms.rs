//! Which terms beyond the paper a device's model has, and which of them its measurement kernels speak for.

use super::columns::{HostTerms, is_traffic};
use super::{Columns, Measured, PaperColumns, Verdicts, held_out};
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_loops::Instance;
use tilewright_perfmodel_linear::{Form, IN_CACHE, LinearError, LinearFit, LinearModel};
use tilewright_ptxgen::loops::LoopCountError;

/// The properties of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Terms {
    /// Operations of a host.
    Host(HostTerms),
    /// The paper's; with a footprint, accesses of what a cache holds have weights of their own.
    Gpu { footprint: bool },
}

/// A form of the model of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DeviceForm {
    name: &'static str,
    terms: Terms,
    /// Whether what goes on side by side overlaps.
    overlap: bool,
}

const fn host(name: &'static str, footprint: bool, chains: bool, overlap: bool) -> DeviceForm {
    DeviceForm { name, terms: Terms::Host(HostTerms { footprint, chains }), overlap }
}

const fn gpu(name: &'static str, footprint: bool, overlap: bool) -> DeviceForm {
    DeviceForm { name, terms: Terms::Gpu { footprint }, overlap }
}

/// The forms, from the plainest on: each term added to the ones before, and then each of the last form taken away.
const HOST_FORMS: [DeviceForm; 6] = [
    host("operations", false, false, false),
    host("footprint", true, false, false),
    host("footprint, overlap", true, false, true),
    host("footprint, overlap, chains", true, true, true),
    host("overlap, chains", false, true, true),
    host("overlap", false, false, true),
];

/// The same for GPUs. None counts waves: kernels that are no kernels of loops do not tell how many of their groups fit.
const GPU_FORMS: [DeviceForm; 4] = [
    gpu("operations", false, false),
    gpu("footprint", true, false),
    gpu("footprint, overlap", true, true),
    gpu("overlap", false, true),
];

impl DeviceForm {
    fn columns<'a>(
        &self,
        spec: &DeviceSpec,
        instances: impl Iterator<Item = &'a Instance>,
    ) -> Result<Option<Columns>, LoopCountError> {
        match self.terms {
            Terms::Host(terms) => Ok(Columns::host(spec, terms)),
            Terms::Gpu { footprint } => Ok(Some(Columns::Paper(PaperColumns::new(spec, footprint, instances)?))),
        }
    }

    fn fit(&self, ridge: f64) -> LinearFit {
        let quantised = matches!(self.terms, Terms::Host(_));
        LinearFit { form: Form::NonNegative, ridge, overlap: self.overlap, quantised }
    }
}

impl HostTerms {
    /// The terms that a fitted model has columns for.
    pub fn of(model: &LinearModel) -> Self {
        let has = |wanted: fn(&str) -> bool| model.weights.iter().any(|w| wanted(&w.property.name));
        Self { footprint: has(is_traffic), chains: has(|name| name == "chain") }
    }
}

impl Columns {
    /// The columns of a fitted model, for kernels of these instances.
    ///
    /// # Errors
    /// A kernel that the counter has no form for.
    pub fn of<'a>(
        model: &LinearModel,
        spec: &DeviceSpec,
        instances: impl IntoIterator<Item = &'a Instance>,
    ) -> Result<Self, LoopCountError> {
        if let Some(columns) = Self::host(spec, HostTerms::of(model)) {
            return Ok(columns);
        }
        let footprint = model.weights.iter().any(|w| w.property.name.ends_with(IN_CACHE));
        let properties = model.weights.iter().map(|w| w.property.clone()).collect();
        Ok(Self::Paper(PaperColumns::new(spec, footprint, instances)?.with(properties)))
    }
}

/// What the measurement kernels say of a form.
#[derive(Debug)]
pub struct Candidate {
    /// Its name in tables.
    pub name: &'static str,
    /// What it counts.
    pub columns: Columns,
    /// How it is fitted.
    pub fit: LinearFit,
    /// Each kernel judged by a model that was fitted on all others.
    pub held_out: Verdicts,
}

/// Why there are no forms.
#[derive(Debug, thiserror::Error)]
pub enum FormError {
    /// The fit.
    #[error(transparent)]
    Fit(#[from] LinearError),
    /// A kernel that the counter has no form for.
    #[error(transparent)]
    Count(#[from] LoopCountError),
}

/// All forms of a device, judged by measurement kernels alone, the best first; `others` are kernels that will be predicted. Empty
/// on a device that is neither a host nor a GPU.
///
/// # Errors
/// See [`LinearFit::fit`]; a kernel that the counter has no form for.
pub fn candidates(
    spec: &DeviceSpec,
    measured: &[Measured],
    others: &[Measured],
    ridge: f64,
    launch_s: f64,
) -> Result<Vec<Candidate>, FormError> {
    let forms: &[DeviceForm] = match spec.kind {
        DeviceKind::Cpu => &HOST_FORMS,
        DeviceKind::Cuda | DeviceKind::Emulator => &GPU_FORMS,
        DeviceKind::Replay => &[],
    };
    let mut out = Vec::new();
    for form in forms {
        let instances = measured.iter().chain(others).map(|m| &m.case.instance);
        let Some(columns) = form.columns(spec, instances)? else { continue };
        let fit = form.fit(ridge);
        let held_out = held_out(measured, &columns, &fit, launch_s)?;
        out.push(Candidate { name: form.name, columns, fit, held_out });
    }
    out.sort_by(|a, b| a.held_out.geomean_error.total_cmp(&b.held_out.geomean_error));
    Ok(out)
}
