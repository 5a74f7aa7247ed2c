//! The linear model of a device: `model fit|evaluate --model linear`, and what kernels of its library cost in `explain`.

use crate::args::{DeviceArgs, ExplainArgs, ModelArgs};
use crate::device::{expect_clock, isolated, named};
use crate::failure::{Failure, Kind};
use crate::fields;
use crate::output::{Output, aligned, expect_writable, seconds, write};
use crate::progress::Bar;
use crate::wiring::{Wiring, home};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Instant;
use tilewright_calibration::{
    Candidate, Columns, Fitted, LinearMeasure, Measured, PaperColumns, Verdicts, WeightStore, candidates, judge,
    launch_overhead,
};
use tilewright_charts::{Bar as CostBar, stacked_bars};
use tilewright_core::device::{Device, DeviceKind, DeviceSpec};
use tilewright_core::feature::FeatureSchema;
use tilewright_core::metrics::Scores;
use tilewright_core::problem::MeasureError;
use tilewright_core::program::Program;
use tilewright_core::text::counted;
use tilewright_core::training::TrainingSet;
use tilewright_cpu::CpuDevice;
use tilewright_loops::library::{Case, Scale, measurement_set, test_set};
use tilewright_loops::{Instance, LoopError, Sizes};
use tilewright_perfmodel_linear::{LinearFit, LinearModel, Share, Sharpness, Weight};
use tilewright_ptxgen::loops::program;
use tilewright_ptxgen::target::Target;

/// Pull of weights to zero unless `--ridge` says otherwise.
const RIDGE: f64 = 1e-6;

/// The same for the paper's form, whose loads and stores are hard to tell apart from their minimum.
const PAPER_RIDGE: f64 = 1e-9;

/// Makes a device's programs of instances.
type Lowers = Box<dyn Fn(&Instance) -> Result<Program, String>>;

/// A device with what its programs are made by and how they are timed.
struct Bench {
    device: Box<dyn Device>,
    spec: Arc<DeviceSpec>,
    lower: Lowers,
    scale: Scale,
    how: LinearMeasure,
}

impl Bench {
    fn open(args: &DeviceArgs) -> Result<Self, Failure> {
        let name = named(args)?;
        expect_clock(&name)?;
        if name.kind() != DeviceKind::Cpu {
            return Self::gpu(isolated(&name)?);
        }
        let cores = available_parallelism().map_or(1, usize::from);
        let threads = args.threads.map_or(cores, usize::from);
        let device = CpuDevice::new(threads)?;
        let spec = device.spec().clone();
        let lower: Lowers =
            Box::new(move |instance| tilewright_cpu::host_program(instance, threads).map_err(|e| e.to_string()));
        let (device, how) = (Box::new(device), LinearMeasure::default());
        Ok(Self { device, spec, lower, scale: Scale::Host, how })
    }

    /// A GPU behind a process of its own.
    fn gpu(device: Box<dyn Device>) -> Result<Self, Failure> {
        let spec = device.spec().clone();
        let target = spec.fact("sm").and_then(Target::of_sm);
        let target = target.ok_or_else(|| Failure::new(Kind::Usage, "device", "older than sm_50: it has no code"))?;
        let lower: Lowers =
            Box::new(move |instance| program(instance, target).map(|(_, p)| p).map_err(|e| e.to_string()));
        Ok(Self { device, spec, lower, scale: Scale::Gpu, how: LinearMeasure::of_gpu() })
    }

    fn columns(&self, model: &LinearModel, instance: &Instance) -> Result<Columns, Failure> {
        Columns::of(model, &self.spec, [instance]).map_err(|e| Failure::new(Kind::Other, "kernel", e))
    }

    /// The forms in the order in which the measurement kernels speak for them.
    fn forms(
        &self,
        with: &ModelArgs,
        (measured, launch_s): (&[Measured], f64),
        others: &[Measured],
    ) -> Result<Vec<Candidate>, Failure> {
        let found = candidates(&self.spec, measured, others, with.ridge.unwrap_or(RIDGE), launch_s);
        found.map_err(|e| bad(&e, "ridge"))
    }

    fn fitted(&self, of: &Candidate, measured: &[Measured], launch_s: f64) -> Result<Fitted, Failure> {
        let fingerprint = self.spec.fingerprint();
        let fitted = tilewright_calibration::fit(measured, &of.columns, &of.fit, launch_s, &fingerprint);
        fitted.map_err(|e| bad(&e, "ridge"))
    }

    fn measure(&mut self, cases: &[Case], seed: u64, what: &'static str) -> Result<(f64, Vec<Measured>), Failure> {
        let how = LinearMeasure { seed, ..self.how.clone() };
        let lower = &*self.lower;
        let device = |e: MeasureError| match e {
            MeasureError::Device(e) => Failure::from(e),
            MeasureError::Failed(e) => Failure::new(Kind::Device, "device", e),
        };
        let launch_s = launch_overhead(&mut *self.device, lower, &how.policy).map_err(device)?;
        let bar = Bar::counting(what, (cases.len() * how.rounds as usize) as u64);
        let (measured, failures) =
            how.run(&mut *self.device, lower, cases, &mut |done, _| bar.set(done as u64)).map_err(device)?;
        bar.finish();
        failures.iter().for_each(|f| tracing::warn!("left out: {f}"));
        Ok((launch_s, measured))
    }
}

fn bad(e: &dyn std::error::Error, field: &str) -> Failure {
    Failure::new(Kind::Input, field, e.to_string())
}

fn set(of: Result<Vec<Case>, LoopError>) -> Result<Vec<Case>, Failure> {
    of.map_err(|e| Failure::new(Kind::Other, "library", e))
}

/// Scores of predicted logarithms, as every model has them; one group for each class of kernels.
fn scores(model: &LinearModel, columns: &Columns, measured: &[Measured]) -> Result<(Scores, f64), Failure> {
    let mut rows = TrainingSet::new(FeatureSchema { input: Vec::new(), config: Vec::new() });
    let mut classes: Vec<&str> = Vec::new();
    let mut predicted = Vec::new();
    let begun = Instant::now();
    for m in measured {
        let counts = columns.counts(&m.case.instance);
        let seconds = model.predict(&counts, columns.quantised(&m.case.instance)).seconds;
        predicted.push(seconds.max(f64::MIN_POSITIVE).ln() as f32);
        let class = classes.iter().position(|c| *c == m.case.class).unwrap_or_else(|| {
            classes.push(m.case.class);
            classes.len() - 1
        });
        rows.push(&[], m.time_s, u32::try_from(class).unwrap_or(0)).map_err(|e| bad(&e, "time_s"))?;
    }
    let rate = predicted.len() as f64 / begun.elapsed().as_secs_f64();
    let scores = Scores::new(&rows, &predicted);
    Ok((scores.ok_or_else(|| Failure::new(Kind::Nothing, "library", "no case could be measured"))?, rate))
}

/// A form, and how far off it is on measurement kernels that it was not fitted on.
#[derive(Clone, Serialize)]
struct Tried {
    form: &'static str,
    held_out_error: f64,
}

impl Tried {
    fn all(candidates: &[Candidate]) -> Vec<Self> {
        let tried = |c: &Candidate| Self { form: c.name, held_out_error: c.held_out.geomean_error };
        candidates.iter().map(tried).collect()
    }
}

#[derive(Serialize)]
struct FitAnswer {
    model: &'static str,
    /// The form that was chosen, and all that were tried.
    form: &'static str,
    forms: Vec<Tried>,
    #[serde(flatten)]
    scores: Scores,
    rows_per_second: f64,
    device: String,
    cases: usize,
    rejected: Vec<String>,
    launch_s: f64,
    condition: f64,
    sharpness: Sharpness,
    geomean_error: f64,
    weights: Vec<Weight>,
    measure_s: f64,
    seconds: f64,
    file: String,
}

fn nothing() -> Failure {
    Failure::new(Kind::Nothing, "device", "no form of the model is for it")
}

/// Measures, fits and saves.
pub(crate) fn fit(
    with: &ModelArgs,
    device: &DeviceArgs,
    out: Option<&PathBuf>,
    seed: u64,
    output: Output,
) -> Result<(), Failure> {
    let begun = Instant::now();
    // Minutes of measuring end in this file.
    let _weights = expect_writable("out", out)?;
    let mut bench = Bench::open(device)?;
    let (launch_s, measured) = bench.measure(&set(measurement_set(bench.scale))?, seed, "measured")?;
    let measure_s = begun.elapsed().as_secs_f64();
    let forms = bench.forms(with, (&measured, launch_s), &[])?;
    let chosen = forms.first().ok_or_else(nothing)?;
    let Fitted { model, rejected } = bench.fitted(chosen, &measured, launch_s)?;
    let file = WeightStore::new(&home()?).save(&model, &bench.spec, out.map(PathBuf::as_path))?;
    let (scores, rows_per_second) = scores(&model, &chosen.columns, &measured)?;
    let answer = FitAnswer {
        model: "linear",
        form: chosen.name,
        forms: Tried::all(&forms),
        scores,
        rows_per_second,
        device: bench.spec.name.clone(),
        cases: measured.len(),
        rejected: rejected.iter().map(ToString::to_string).collect(),
        launch_s,
        condition: model.report.condition,
        sharpness: model.sharpness,
        geomean_error: model.report.geomean_error,
        weights: model.weights,
        measure_s,
        seconds: begun.elapsed().as_secs_f64(),
        file: file.display().to_string(),
    };
    output.answer(&answer, || fit_text(&answer))
}

fn fit_text(a: &FitAnswer) -> String {
    let mut rows = vec![["property", "seconds each", "standard error"].map(String::from).to_vec()];
    for w in a.weights.iter().filter(|w| w.measured) {
        rows.push(vec![w.property.name.clone(), format!("{:.2e}", w.seconds), format!("{:.1e}", w.uncertainty)]);
    }
    let mut forms = vec![["form", "error on kernels left out"].map(String::from).to_vec()];
    forms.extend(a.forms.iter().map(|f| vec![f.form.to_owned(), percent(f.held_out_error)]));
    format!(
        "{} on {} of {} in {} ({} of it measuring): launch overhead {}, {} rejected\n{}chosen: {}\n\
         condition number {:.1e}, overlap exponents {:.2} and {:.2}, geometric mean of relative errors {}\n{}saved in {}",
        a.model,
        counted(a.cases, "kernel"),
        a.device,
        seconds(a.seconds),
        seconds(a.measure_s),
        seconds(a.launch_s),
        a.rejected.len(),
        aligned(&forms),
        a.form,
        a.condition,
        a.sharpness.core,
        a.sharpness.memory,
        percent(a.geomean_error),
        aligned(&rows),
        a.file
    )
}

fn percent(x: f64) -> String {
    format!("{:.1}%", 100.0 * x)
}

#[derive(Serialize)]
struct JudgedForm {
    form: &'static str,
    /// On measurement kernels that it was not fitted on.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_out_error: Option<f64>,
    #[serde(flatten)]
    verdicts: Verdicts,
}

#[derive(Serialize)]
struct EvaluateAnswer {
    model: &'static str,
    #[serde(flatten)]
    scores: Scores,
    rows_per_second: f64,
    device: String,
    cases: usize,
    launch_s: f64,
    /// The form that the measurement kernels speak for.
    form: &'static str,
    forms: Vec<JudgedForm>,
    seconds: f64,
}

/// Fits every form on the measurement kernels, and judges each by the test kernels that none was fitted on.
pub(crate) fn evaluate(with: &ModelArgs, device: &DeviceArgs, seed: u64, output: Output) -> Result<(), Failure> {
    let begun = Instant::now();
    let mut bench = Bench::open(device)?;
    // All in turn: what disturbs the machine for a while then disturbs one visit of a case, and not all of a test kernel's.
    let (rows, tests) = (set(measurement_set(bench.scale))?, set(test_set(bench.scale))?);
    let (launch_s, timed) = bench.measure(&[rows, tests.clone()].concat(), seed, "measured")?;
    let is_test = |m: &Measured| tests.iter().any(|t| t.class == m.case.class);
    let (tests, measured): (Vec<Measured>, Vec<Measured>) = timed.into_iter().partition(is_test);
    let mut forms = vec![paper(with, &bench, (measured.as_slice(), launch_s), &tests)?];
    let candidates = bench.forms(with, (&measured, launch_s), &tests)?;
    let mut judged_by = None;
    for candidate in &candidates {
        let (fitted, columns) = (bench.fitted(candidate, &measured, launch_s)?, &candidate.columns);
        if judged_by.is_none() {
            judged_by = Some((candidate.name, scores(&fitted.model, columns, &tests)?));
        }
        let held_out_error = Some(candidate.held_out.geomean_error);
        let verdicts = judge(&fitted.model, columns, &tests);
        forms.push(JudgedForm { form: candidate.name, held_out_error, verdicts });
    }
    let (form, (scores, rows_per_second)) = judged_by.ok_or_else(nothing)?;
    let answer = EvaluateAnswer {
        model: "linear",
        scores,
        rows_per_second,
        device: bench.spec.name.clone(),
        cases: measured.len(),
        launch_s,
        form,
        forms,
        seconds: begun.elapsed().as_secs_f64(),
    };
    output.answer(&answer, || evaluate_text(&answer))
}

/// The paper's form: its properties, weights of either sign.
fn paper(
    with: &ModelArgs,
    bench: &Bench,
    (measured, launch_s): (&[Measured], f64),
    tests: &[Measured],
) -> Result<JudgedForm, Failure> {
    let instances = measured.iter().chain(tests).map(|m| &m.case.instance);
    let columns = PaperColumns::new(&bench.spec, false, instances);
    let columns = Columns::Paper(columns.map_err(|e| Failure::new(Kind::Other, "library", e))?);
    let how = LinearFit { ridge: with.ridge.unwrap_or(PAPER_RIDGE), ..LinearFit::default() };
    let fitted = tilewright_calibration::fit(measured, &columns, &how, launch_s, &bench.spec.fingerprint());
    let model = fitted.map_err(|e| bad(&e, "ridge"))?.model;
    Ok(JudgedForm { form: "the paper's", held_out_error: None, verdicts: judge(&model, &columns, tests) })
}

fn evaluate_text(a: &EvaluateAnswer) -> String {
    let kernels: Vec<String> =
        a.forms.first().map_or(Vec::new(), |f| f.verdicts.kernels.iter().map(|k| k.kernel.clone()).collect());
    let titles = ["form", "left out"].map(String::from);
    let mut rows = vec![[titles.to_vec(), kernels, vec!["all".to_owned()]].concat()];
    for f in &a.forms {
        let errors = f.verdicts.kernels.iter().map(|k| percent(k.geomean_error));
        let held_out = f.held_out_error.map_or_else(String::new, percent);
        rows.push(
            [f.form.to_owned(), held_out]
                .into_iter()
                .chain(errors)
                .chain([percent(f.verdicts.geomean_error)])
                .collect(),
        );
    }
    let mut cases = vec![["test kernel", "measured", "predicted", "error"].map(String::from).to_vec()];
    for f in a.forms.iter().filter(|f| f.form == a.form) {
        for c in &f.verdicts.cases {
            let name = format!("{} {}", c.kernel, c.case);
            cases.push(vec![name, seconds(c.measured_s), seconds(c.predicted_s), percent(c.relative_error)]);
        }
    }
    format!(
        "linear model of {}, fitted on {}, in {}\n\
         geometric means of relative errors, on measurement kernels that were left out in turn, and on the test kernels:\n{}\n\
         {}, which the kernels left out speak for:\n{}",
        a.device,
        counted(a.cases, "measurement kernel"),
        seconds(a.seconds),
        aligned(&rows),
        a.form,
        aligned(&cases)
    )
}

#[derive(Serialize)]
struct Explained {
    kernel: String,
    input: String,
    predicted_s: f64,
    costs: Vec<Share>,
    unmeasured: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    svg: Option<String>,
}

/// What a kernel of the library costs; for all other kernels why a configuration is chosen.
pub(crate) fn explain(args: &ExplainArgs, wiring: &Wiring, seed: u64, output: Output) -> Result<(), Failure> {
    let library = [set(test_set(Scale::Host))?, set(measurement_set(Scale::Host))?].concat();
    let names: BTreeSet<String> = library.iter().map(|c| c.instance.kernel().name.clone()).collect();
    let Some(case) = library.into_iter().find(|c| c.instance.kernel().name == args.plan.kernel) else {
        if let Some(svg) = &args.svg {
            let message = format!("{} has no costs by operation: only kernels of the library do", args.plan.kernel);
            return Err(Failure::of_file(Kind::Usage, svg, message));
        }
        return super::plan::explain(&args.plan, wiring, seed, output).map_err(|e| also_of_library(e, &names));
    };
    let _bars = expect_writable("svg", &args.svg)?;
    let bench = Bench::open(&args.plan.device)?;
    let instance = sized(&case.instance, &args.plan.input)?;
    let model = WeightStore::new(&home()?).load(&bench.spec, args.plan.profile.as_deref())?;
    let columns = bench.columns(&model, &instance)?;
    let (counts, quantised) = (columns.counts(&instance), columns.quantised(&instance));
    let prediction = model.predict(&counts, quantised);
    let costs = model.breakdown(&counts, quantised);
    let words: Vec<String> = instance.sizes().iter().map(|(n, v)| format!("{n}={v}")).collect();
    let (kernel, input) = (args.plan.kernel.clone(), words.join(" "));
    if let Some(file) = &args.svg {
        let title = format!("{kernel} on {}", bench.spec.name);
        let parts: Vec<(String, f64)> = costs.iter().map(|c| (c.property.clone(), c.seconds)).collect();
        // Weights may have either sign: the bar shows the share of what costs time.
        let whole: f64 = parts.iter().map(|(_, seconds)| seconds.max(0.0)).sum();
        let bar = CostBar { name: input.clone(), whole: format!("{whole:.3e} s"), parts };
        let svg = stacked_bars(&title, &[bar]).map_err(|e| Failure::new(Kind::Other, "svg", e))?;
        write(file, &svg)?;
    }
    let (predicted_s, unmeasured) = (prediction.seconds, prediction.unmeasured);
    let svg = args.svg.as_ref().map(|f| f.display().to_string());
    let explained = Explained { kernel, input, predicted_s, costs, unmeasured, svg };
    output.answer(&explained, || explain_text(&explained))
}

/// Names the kernels of the library too where a name is that of none.
fn also_of_library(mut failure: Failure, names: &BTreeSet<String>) -> Failure {
    if failure.field == "kernel" {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        failure.message += &format!("; of the linear model's library {}", names.join(", "));
    }
    failure
}

/// The kernel with the sizes of the command line; those that are not named stay.
fn sized(instance: &Instance, given: &[String]) -> Result<Instance, Failure> {
    let mut sizes: Sizes = instance.sizes().clone();
    for (name, value) in &fields::parse(given)?.0 {
        let known = sizes.iter_mut().find(|(n, _)| **n == name.as_str());
        let (Some((_, size)), Some(value)) = (known, value.as_int()) else {
            let known: Vec<&str> = instance.sizes().keys().copied().collect();
            let (of, known) = (&instance.kernel().name, known.join(", "));
            let message = match value.as_int() {
                Some(_) => format!("no size of {of}; there are {known}"),
                None => format!("{value} is no integer"),
            };
            return Err(Failure::new(Kind::Input, name, message));
        };
        *size = value;
    }
    Instance::new(instance.kernel().clone(), &sizes).map_err(|e| bad(&e, "input"))
}

fn explain_text(e: &Explained) -> String {
    let mut rows = vec![["operation", "count", "cost", "share"].map(String::from).to_vec()];
    for c in &e.costs {
        let share = 100.0 * c.seconds / e.predicted_s;
        rows.push(vec![c.property.clone(), format!("{:.0}", c.count), seconds(c.seconds), format!("{share:.1}%")]);
    }
    let missing = match e.unmeasured[..] {
        [] => String::new(),
        _ => format!("never measured, and counted as free: {}\n", e.unmeasured.join(", ")),
    };
    format!("{} {}: {} predicted\n{}{missing}", e.kernel, e.input, seconds(e.predicted_s), aligned(&rows))
}
