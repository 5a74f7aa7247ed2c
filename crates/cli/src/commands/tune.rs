//! `tilewright tune`: sample, measure, fit, save profiles and a selector; then a table of inputs that were never trained on.

use super::held_out::{HeldOut, held_out};
use crate::args::TuneArgs;
use crate::commands::contest::fixed;
use crate::device::Opened;
use crate::failure::{Failure, Kind};
use crate::interrupt::{Interrupt, goes_on, was_asked};
use crate::output::{Output, aligned, expect_writable, note, seconds};
use crate::progress::Bar;
use crate::wiring::{Wiring, home, measure};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tilewright::kernels::named as named_kernel;
use tilewright::known::{record_report, trainers};
use tilewright_core::id::KernelId;
use tilewright_core::objective::Objective;
use tilewright_core::problem::{AnyKernel, Measure};
use tilewright_core::space::Config;
use tilewright_core::text::counted;
use tilewright_files::Writable;
use tilewright_runtime::RuntimeError;
use tilewright_runtime::bystanders::Disturbance;
use tilewright_runtime::log::CampaignLog;
use tilewright_runtime::selection::{SelectorHeader, StoredIncumbent};
use tilewright_runtime::tune::{
    Fitted, KernelReport, Observer, Progress, TunePaths, TuneReport, TuneSettings, Tuner, chained,
};

#[derive(Serialize)]
struct Answer {
    device: String,
    /// The kernel, or the computation whose kernels these are.
    kernel: String,
    samples: u64,
    failed: u64,
    resumed: u64,
    inputs: u64,
    seconds: f64,
    /// Whether a signal ended the measuring; the same command goes on.
    interrupted: bool,
    /// What others did on this machine while it was measured.
    disturbance: Disturbance,
    fit_s: f64,
    /// Of the kernel with the most samples that has a model.
    cv_mse: Option<f64>,
    profile: Option<String>,
    log: String,
    kernels: Vec<OfKernel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    selector: Option<Selector>,
    /// Why files are not stored: the answer stands without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    unstored: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    held_out: Vec<HeldOut>,
}

#[derive(Serialize)]
struct OfKernel {
    kernel: String,
    samples: u64,
    failed: u64,
    inputs: u64,
    /// Accepted by drawn candidates.
    acceptance: f64,
    cv_mse: Option<f64>,
    profile: Option<String>,
    log: String,
    /// Why there is no model.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// What ranks the kernels.
#[derive(Serialize)]
struct Selector {
    file: String,
    method: String,
    inputs: u64,
    /// Best time over the chosen kernel's, mean over inputs that it was not fitted on.
    fraction_of_oracle: Option<f64>,
    /// The kernel that it leaves only where that is surely worth it; none where nobody asked for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    incumbent: Option<StoredIncumbent>,
}

/// Shows a campaign's progress.
struct Watch {
    bar: Bar,
    budget: Duration,
    interrupt: Interrupt,
}

impl Observer for Watch {
    fn sample(&mut self, p: &Progress<'_>) {
        let best = p.best.map_or(String::new(), |b| format!(", best {} for {}", seconds(b), shape(p.input)));
        let rate = p.samples as f64 / p.spent_s.max(1e-3);
        self.bar.note(format!("{}, {rate:.0}/s, {} failed or cut off{best}", counted(p.samples, "sample"), p.failed));
        self.bar.set_time(self.budget.mul_f64(p.done.clamp(0.0, 1.0)));
    }

    fn stop(&self) -> bool {
        self.interrupt.is_asked()
    }

    fn fitting(&mut self, rows: u64) {
        self.bar.note(format!("fitting on {}", counted(rows, "row")));
        self.bar.set_time(self.budget);
    }
}

/// The sizes of an input, for one line.
fn shape(input: &Config) -> String {
    let sizes = input.0.iter().filter(|(_, v)| v.as_int().is_some()).take(3);
    sizes.map(|(_, v)| v.to_string()).collect::<Vec<_>>().join("x")
}

/// The kernel that plans shall keep.
fn incumbent(args: &TuneArgs, kernels: &[Arc<dyn AnyKernel>]) -> Result<Option<KernelId>, Failure> {
    let Some(name) = &args.incumbent else { return Ok(None) };
    let hint = if args.with_libraries { "" } else { "; routines of libraries take part with --with-libraries" };
    let refused = |e| Failure::new(Kind::Usage, "incumbent", format!("{e}{hint}"));
    named_kernel(kernels, name).map(|kernel| Some(kernel.id())).map_err(refused)
}

/// Measures and fits within the budget, and stores the profiles where later commands find them.
pub(super) fn campaign(
    args: &TuneArgs,
    wiring: &Wiring,
    kernels: &[Arc<dyn AnyKernel>],
    device: &mut Opened,
    seed: u64,
) -> Result<TuneReport, Failure> {
    let mut watch =
        Watch { bar: Bar::timing("tune", args.budget), budget: args.budget, interrupt: Interrupt::listen() };
    let fixed = fixed(args.dtype.as_ref(), &args.fields)?;
    let incumbent = incumbent(args, kernels)?;
    let (spec, trainers) = (device.spec().clone(), trainers(&home()?, &args.model, device.spec())?);
    let mut tuner = Tuner {
        kernels: kernels.iter().map(|kernel| &**kernel).collect(),
        devices: vec![device],
        sampler: chained,
        trainer: trainers.get(&args.model).map_err(|e| Failure::new(Kind::Usage, "model", e))?,
        observer: &mut watch,
        settings: TuneSettings {
            fixed,
            budget: args.budget,
            samples: args.samples,
            incumbent,
            seed,
            without_files: true,
            ..TuneSettings::default()
        },
    };
    let (paths, _profiles) = match &args.out {
        Some(out) => named(out, kernels)?,
        None => (tuner.paths(&home()?), Vec::new()),
    };
    if args.fresh {
        paths.iter().try_for_each(|of| forget(&of.log))?;
    }
    let report = tuner.run(&paths);
    watch.bar.finish();
    let is_kept = report.as_ref().map_or(true, |report| report.unstored.is_empty());
    if watch.interrupt.is_asked() && is_kept && !is_nothing(report.as_ref().err()) {
        note(format_args!("interrupted: {}", goes_on(args.fresh)));
    }
    drop(watch);
    let report = report?;
    warn(&report);
    let kernels: Vec<&dyn AnyKernel> = kernels.iter().map(|kernel| &**kernel).collect();
    wiring.record(|home| record_report(home, &spec, &kernels, &report, &Objective::default()));
    Ok(report)
}

/// Whether a signal came before anything was measured: the error says so.
fn is_nothing(error: Option<&RuntimeError>) -> bool {
    matches!(error, Some(RuntimeError::TooFewSamples { samples: 0, failed: 0, .. }))
}

/// What else is to be known of an answer.
fn warn(report: &TuneReport) {
    if let Some(why) = unstored(report) {
        note(format_args!("warning: not everything is stored: {why}"));
    }
    if report.disturbance.is_serious() {
        note(format_args!("warning: {}", report.disturbance.sentence()));
    }
}

/// Why files are not stored, in one line.
fn unstored(report: &TuneReport) -> Option<String> {
    Some(report.unstored.join("; ")).filter(|why| !why.is_empty())
}

/// Empties a log. One that cannot be written will not be read either.
fn forget(log: &Path) -> Result<(), Failure> {
    match CampaignLog::clear(log) {
        Err(error) if !error.is_of_place() => Err(RuntimeError::from(error).into()),
        _ => Ok(()),
    }
}

/// The files of the kernels where `--out` names the profile: that of the first kernel, and beside it, with their names in its own, those of
/// the others. Refuses, before anything is measured, a place where no profile can be written.
fn named(out: &Path, kernels: &[Arc<dyn AnyKernel>]) -> Result<(Vec<TunePaths>, Vec<Writable>), Failure> {
    let stem = out.file_stem().unwrap_or_default().to_string_lossy();
    let ending = out.extension().map_or(String::new(), |e| format!(".{}", e.to_string_lossy()));
    let special = std::fs::metadata(out).is_ok_and(|m| !m.is_file() && !m.is_dir());
    if kernels.len() > 1 && special {
        let message = format!("{}: is no file, and {} kernels have a profile each", out.display(), kernels.len());
        return Err(Failure::new(Kind::Usage, "out", message));
    }
    let (home, mut places) = (home()?, (Vec::new(), Vec::new()));
    for (at, kernel) in kernels.iter().enumerate() {
        let profile = match at {
            0 => out.to_path_buf(),
            _ => out.with_file_name(format!("{stem}-{}{ending}", kernel.id())),
        };
        places.1.extend(expect_writable("out", &profile)?);
        places.0.push(TunePaths::to(&home, &**kernel, &profile));
    }
    Ok(places)
}

pub(crate) fn run(args: &TuneArgs, wiring: &Wiring, seed: u64, output: Output) -> Result<(), Failure> {
    let mut device = measure(&args.device)?;
    let kernels = wiring.kernels.competing(&args.kernel, device.spec(), args.with_libraries)?;
    let report = campaign(args, wiring, &kernels, &mut device, seed)?;
    if let (Some(kernel), Err(why)) = (&args.incumbent, &report.selector) {
        note(format_args!("this campaign learned no selector that keeps {kernel}: {why}"));
    }
    if let Some(never) = report.selector.as_ref().ok().and_then(|(_, stored)| never_ran(&stored.header)) {
        note(format_args!("nothing keeps {never}: it did not run on inputs that others ran on"));
    }
    let main = main(&report).map(|(kernel, model)| (kernel.kernel.clone(), model));
    let table = main.as_ref().filter(|_| !args.no_table && !was_asked());
    let held_out = match table.and_then(|(id, model)| Some((kernels.iter().find(|k| k.id() == *id)?, model))) {
        Some((kernel, model)) => held_out(wiring, &mut device, kernel, args, model, seed)?,
        None => Vec::new(),
    };
    let answer = answer(&kernels, &report, held_out);
    output.answer(&answer, || text(&answer, &args.kernel))
}

/// An incumbent that the selector knows nothing of.
fn never_ran(header: &SelectorHeader) -> Option<&KernelId> {
    let kernel = &header.incumbent.as_ref()?.kernel;
    (!header.variants.contains(kernel)).then_some(kernel)
}

/// The kernel with the most samples that has a model.
fn main(report: &TuneReport) -> Option<(&KernelReport, &Fitted)> {
    let fitted = report.kernels.iter().filter_map(|k| Some((k, k.model.as_ref().ok()?)));
    fitted.max_by_key(|(k, _)| k.samples)
}

fn answer(kernels: &[Arc<dyn AnyKernel>], report: &TuneReport, held_out: Vec<HeldOut>) -> Answer {
    let model = main(report).map(|(_, model)| model);
    let profile = |model: &Fitted| model.is_stored.then(|| model.profile.display().to_string());
    let of_kernel = |k: &KernelReport| OfKernel {
        kernel: k.kernel.to_string(),
        samples: k.samples,
        failed: k.failed,
        inputs: k.inputs,
        acceptance: k.acceptance.rate(),
        cv_mse: k.model.as_ref().ok().and_then(|m| m.cv_mse),
        profile: k.model.as_ref().ok().and_then(profile),
        log: k.log.display().to_string(),
        reason: match &k.model {
            Ok(model) => (!model.is_stored).then(|| "it is not stored".to_owned()),
            Err(why) => Some(why.clone()),
        },
    };
    let selector = report.selector.as_ref().ok().map(|(file, stored)| Selector {
        file: file.display().to_string(),
        method: stored.header.method.clone(),
        inputs: stored.header.stats.inputs,
        fraction_of_oracle: match &stored.header.incumbent {
            Some(incumbent) => incumbent.fraction_of_oracle,
            None => stored.header.stats.fraction_of_oracle,
        },
        incumbent: stored.header.incumbent.clone(),
    });
    let rows: Vec<OfKernel> = report.kernels.iter().map(of_kernel).collect();
    Answer {
        device: report.device.clone(),
        kernel: if rows.len() == 1 { rows[0].kernel.clone() } else { kernels[0].computation().to_string() },
        samples: report.samples,
        failed: report.failed,
        resumed: report.resumed,
        inputs: rows.iter().map(|k| k.inputs).max().unwrap_or(0),
        seconds: report.seconds,
        interrupted: report.interrupted,
        disturbance: report.disturbance,
        fit_s: report.models().map(|m| m.fit_s).fold(0.0, std::ops::Add::add),
        cv_mse: model.and_then(|m| m.cv_mse),
        profile: model.and_then(profile),
        log: rows[0].log.clone(),
        kernels: rows,
        selector,
        unstored: unstored(report),
        held_out,
    }
}

fn text(a: &Answer, asked: &str) -> String {
    let resumed = match a.resumed {
        0 => String::new(),
        count => format!("; of an earlier run: {}, those that failed included", counted(count, "measurement")),
    };
    let (took, fit) = (seconds(a.seconds), seconds(a.fit_s));
    let mut out = format!(
        "{} on {}: {} in {took} ({fit} of it fitting), {} more failed or cut off{resumed}\n",
        a.kernel,
        a.device,
        samples(a.samples, a.inputs),
        a.failed
    );
    for k in &a.kernels {
        of_kernel(k, a.kernels.len() > 1, &mut out);
    }
    if let Some(s) = &a.selector {
        let score =
            s.fraction_of_oracle.map_or(String::new(), |f| format!(", on unseen inputs {f:.3} of the best kernel"));
        let _ = writeln!(
            out,
            "\nthe kernels are ranked by {}, learned on {}{score}{}\nselector {}",
            s.method,
            counted(s.inputs, "input"),
            s.incumbent.as_ref().map_or(String::new(), |of| format!("; {of}")),
            s.file
        );
    }
    if !a.held_out.is_empty() {
        let _ = write!(
            out,
            "\ninputs that the model never saw, its choice timed beside the alternatives:\n{}",
            table(&a.held_out)
        );
        let _ = writeln!(out, "\nnext: tilewright plan {} {}", asked, words(&a.held_out[0].input));
    }
    out
}

/// What became of one kernel.
fn of_kernel(k: &OfKernel, is_one_of_several: bool, out: &mut String) {
    if is_one_of_several {
        let _ = writeln!(out, "\n{}: {}, {} more failed or cut off", k.kernel, samples(k.samples, k.inputs), k.failed);
    }
    if let Some(mse) = k.cv_mse {
        let _ = writeln!(
            out,
            "error of the log time on inputs that chose nothing: {mse:.4} (mean square), so times within a factor of {:.2}",
            mse.sqrt().exp()
        );
    }
    let _ = writeln!(out, "the sampler accepted {:.1}% of what it drew", 100.0 * k.acceptance);
    match (&k.profile, &k.reason) {
        (Some(profile), _) => out.extend(["profile ", profile, "\n"]),
        (None, reason) => out.extend(["no profile: ", reason.as_deref().unwrap_or_default(), "\n"]),
    }
    let _ = writeln!(out, "log     {}", k.log);
}

fn samples(samples: u64, inputs: u64) -> String {
    format!("{} of {}", counted(samples, "sample"), counted(inputs, "input"))
}

/// An input as it is written behind a command.
fn words(input: &Config) -> String {
    input.0.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

fn table(rows: &[HeldOut]) -> String {
    let number = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.1}"));
    // Who does not say what work there is gets times.
    let is_rated = rows.iter().any(|r| r.gflops > 0.0);
    let ours = if is_rated { "GFLOP/s" } else { "time" };
    let mut table =
        vec![["input", ours, "untuned", "best baseline", "ratio", "where not untuned"].map(String::from).to_vec()];
    for r in rows {
        table.push(vec![
            r.input_text.clone(),
            if is_rated { number(Some(r.gflops)) } else { seconds(r.measured_s) },
            if is_rated { number(r.untuned_gflops) } else { r.untuned_s.map_or("-".to_owned(), seconds) },
            r.best_baseline.clone().map_or("-".to_owned(), |n| format!("{n} {}", number(r.best_baseline_gflops))),
            r.ratio.map_or("-".to_owned(), |x| format!("{x:.2}")),
            r.changed.to_string(),
        ]);
    }
    aligned(&table)
}
