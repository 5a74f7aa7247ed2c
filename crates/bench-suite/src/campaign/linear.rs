//! The linear model of a GPU: measurement kernels and test kernels timed, weights fitted, the paper's Table I for this device.

use super::stages::Progress;
use super::state::State;
use super::{Campaign, CampaignError, Deadline, files, micro};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use tilewright_calibration::{
    Columns, LinearMeasure, Measured, PaperColumns, Verdicts, case_name, fit, judge, launch_overhead,
};
use tilewright_core::device::DeviceKind;
use tilewright_core::measurement::Timing;
use tilewright_core::problem::MeasureError;
use tilewright_loops::Instance;
use tilewright_loops::library::{Case, measurement_set, test_set};
use tilewright_perfmodel_linear::{Form, LinearFit, Sharpness, Weight};
use tilewright_ptxgen::loops::program;
use tilewright_ptxgen::target::Target;

/// The file of this stage.
pub(super) const FILE: &str = "linear.json";

/// Cases that are timed before what was found is written: a run that is killed loses no more.
const BATCH: usize = 64;

/// What was measured and what came of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Record {
    launch_s: f64,
    /// Least cost of each case by its name.
    times: BTreeMap<String, f64>,
    #[serde(skip_deserializing)]
    forms: Vec<JudgedForm>,
}

#[derive(Clone, Debug, Serialize)]
struct JudgedForm {
    form: &'static str,
    condition: f64,
    sharpness: Sharpness,
    weights: Vec<Weight>,
    verdicts: Verdicts,
}

/// Times what is not timed yet, fits, judges.
pub(super) fn run(campaign: &Campaign<'_>, _: &mut State, deadline: Deadline<'_>) -> Result<Progress, CampaignError> {
    let Some((target, _)) = micro::gpu(campaign)? else {
        return Ok(Progress { done: true, note: "no GPU: no kernels of loops".into() });
    };
    let how_much = &campaign.settings.scale;
    let (scale, most) = (how_much.linear, how_much.linear_cases);
    let library = |set: Result<Vec<Case>, tilewright_loops::LoopError>| {
        set.unwrap_or_default().into_iter().take(most).collect::<Vec<_>>()
    };
    let (rows, tests) = (library(measurement_set(scale)), library(test_set(scale)));
    let file = campaign.settings.out.join(FILE);
    let mut record: Record =
        std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let left: Vec<Case> =
        rows.iter().chain(&tests).filter(|c| !record.times.contains_key(&case_name(c))).cloned().collect();
    let mut failures = Vec::new();
    for batch in left.chunks(BATCH).take_while(|_| !deadline.over()) {
        failures.extend(time(campaign, target, batch, deadline, &mut record)?);
        files::write(&file, &record)?;
    }
    let timed = |cases: &[Case]| -> Vec<Measured> {
        let found = cases.iter().filter_map(|c| record.times.get(&case_name(c)).map(|t| (c, *t)));
        found.map(|(case, time_s)| Measured { case: case.clone(), time_s }).collect()
    };
    let (measured, tested) = (timed(&rows), timed(&tests));
    let done = measured.len() + tested.len() + failures.len() >= rows.len() + tests.len();
    let mut notes = failures;
    if done {
        record.forms = forms(campaign, &measured, &tested, record.launch_s, &mut notes);
    }
    files::write(&file, &record)?;
    let found = record.forms.iter().map(|f| format!("{} {:.1}%", f.form, 100.0 * f.verdicts.geomean_error));
    notes.splice(0..0, found);
    Ok(Progress { done, note: notes.join("; ") })
}

fn time(
    campaign: &Campaign<'_>,
    target: Target,
    cases: &[Case],
    deadline: Deadline<'_>,
    record: &mut Record,
) -> Result<Vec<String>, CampaignError> {
    let lower = |instance: &Instance| program(instance, target).map(|(_, p)| p).map_err(|e| e.to_string());
    let limit = Duration::from_secs_f64(0.9 * deadline.left_s());
    let mut how = LinearMeasure { seed: campaign.settings.seed, limit, ..LinearMeasure::of_gpu() };
    how.policy = campaign.settings.scale.timing(how.policy);
    if campaign.spec().kind != DeviceKind::Cuda {
        // An emulator's cost is the same every time.
        how.policy = Timing { warmup: 0, min_repeats: 1, max_repeats: 1, ..how.policy };
    }
    let device = &mut *campaign.device();
    if record.launch_s == 0.0 {
        match launch_overhead(device, &lower, &how.policy) {
            Ok(seconds) => record.launch_s = seconds,
            Err(MeasureError::Failed(failure)) => return Ok(vec![failure.to_string()]),
            Err(MeasureError::Device(error)) => return Err(error.into()),
        }
    }
    match how.run(device, &lower, cases, &mut |_, _| {}) {
        Ok((measured, failures)) => {
            record.times.extend(measured.iter().map(|m| (case_name(&m.case), m.time_s)));
            Ok(failures)
        }
        Err(MeasureError::Failed(failure)) => Ok(vec![failure.to_string()]),
        Err(MeasureError::Device(error)) => Err(error.into()),
    }
}

/// The paper's form, and each term beyond it on its own and with all others.
fn forms(
    campaign: &Campaign<'_>,
    measured: &[Measured],
    tested: &[Measured],
    launch_s: f64,
    notes: &mut Vec<String>,
) -> Vec<JudgedForm> {
    let spec = campaign.spec();
    let plain = LinearFit { ridge: 1e-9, ..LinearFit::default() };
    let sum = LinearFit { form: Form::NonNegative, ridge: 1e-6, ..plain };
    let overlap = LinearFit { overlap: true, ..sum };
    let mut out = Vec::new();
    for (form, footprint, how) in [
        ("paper", false, plain),
        ("not negative", false, sum),
        ("with footprint", true, sum),
        ("with waves", false, LinearFit { quantised: true, ..sum }),
        ("with overlap", false, overlap),
        ("extended", true, LinearFit { quantised: true, ..overlap }),
    ] {
        let instances = measured.iter().chain(tested).map(|m| &m.case.instance);
        let columns = match PaperColumns::new(&spec, footprint, instances) {
            Ok(columns) => Columns::Paper(columns),
            Err(error) => {
                notes.push(format!("{form}: {error}"));
                continue;
            }
        };
        match fit(measured, &columns, &how, launch_s, &spec.fingerprint()) {
            Err(error) => notes.push(format!("{form}: {error}")),
            Ok(fitted) => {
                let verdicts = judge(&fitted.model, &columns, tested);
                let (condition, sharpness) = (fitted.model.report.condition, fitted.model.sharpness);
                out.push(JudgedForm { form, condition, sharpness, weights: fitted.model.weights, verdicts });
            }
        }
    }
    out
}
