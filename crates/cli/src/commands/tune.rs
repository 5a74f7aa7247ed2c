//! `tilewright tune`: sample, measure, fit, save a profile; then a table of inputs that were never trained on.

use crate::args::TuneArgs;
use crate::device::Opened;
use crate::failure::{Failure, Kind};
use crate::output::{Output, aligned, seconds};
use crate::progress::Bar;
use crate::wiring::{Wiring, home};
use serde::Serialize;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::time::Duration;
use tilewright::tuner::campaign as recommended;
use tilewright_core::expr::Value;
use tilewright_core::problem::Measure;
use tilewright_core::space::Config;
use tilewright_runtime::RuntimeError;
use tilewright_runtime::log::CampaignLog;
use tilewright_runtime::tune::{Observer, Progress, TunePaths, TuneReport, TuneSettings, Tuner};
use tilewright_sampler::{Chained, Settings};

use super::held_out::{HeldOut, held_out};

#[derive(Serialize)]
struct Answer {
    device: String,
    kernel: String,
    samples: u64,
    failed: u64,
    resumed: u64,
    inputs: u64,
    seconds: f64,
    fit_s: f64,
    cv_mse: Option<f64>,
    /// Accepted by drawn candidates: of the sampler's uniform warm-up, and of its model after it.
    acceptance_uniform: f64,
    acceptance: f64,
    profile: String,
    log: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    held_out: Vec<HeldOut>,
}

/// Shows a campaign's progress.
struct Watch {
    bar: Bar,
    budget: Duration,
    fitting: RefCell<bool>,
}

impl Observer for Watch {
    fn sample(&mut self, p: &Progress<'_>) {
        let best = p.best.map_or(String::new(), |b| format!(", best {} for {}", seconds(b), shape(p.input)));
        let rate = p.samples as f64 / p.spent_s.max(1e-3);
        self.bar.note(format!("{} samples, {rate:.0}/s, {} failed{best}", p.samples, p.failed));
        self.bar.set_time(self.budget.mul_f64(p.done.clamp(0.0, 1.0)));
    }

    fn fitting(&mut self, rows: u64) {
        self.bar.note(format!("fitting on {rows} rows"));
        self.bar.set_time(self.budget);
        *self.fitting.borrow_mut() = true;
    }
}

/// The sizes of an input, for one line.
fn shape(input: &Config) -> String {
    let sizes = input.0.iter().filter(|(_, v)| v.as_int().is_some()).take(3);
    sizes.map(|(_, v)| v.to_string()).collect::<Vec<_>>().join("x")
}

/// Measures and fits within the budget, and stores the profile where later commands find it.
pub(super) fn campaign(
    args: &TuneArgs,
    wiring: &Wiring,
    device: &mut Opened,
    seed: u64,
) -> Result<(TuneReport, Chained), Failure> {
    let kernel = wiring.kernel(&args.kernel, &args.device)?;
    let mut sampler = Chained::new(kernel.space(), Settings::default());
    let mut watch = Watch { bar: Bar::timing("tune", args.budget), budget: args.budget, fitting: RefCell::new(false) };
    let mut settings = settings(args, seed);
    if let Some(dtype) = &args.dtype {
        settings.fixed.0.push(("dtype".into(), Value::parse(dtype)));
    }
    let trainers = wiring.trainers(&args.model, device.spec())?;
    let mut tuner = Tuner {
        kernel,
        measure: device,
        sampler: &mut sampler,
        trainer: trainers.get(&args.model).map_err(|e| Failure::new(Kind::Usage, "model", e))?,
        observer: &mut watch,
        settings,
    };
    let mut paths = tuner.paths(&home()?);
    if let Some(out) = &args.out {
        paths = TunePaths { log: out.with_extension("log"), profile: out.clone() };
        check_out(&paths)?;
    }
    if args.fresh {
        CampaignLog::clear(&paths.log).map_err(RuntimeError::from)?;
    }
    let report = tuner.run(&paths)?;
    watch.bar.finish();
    Ok((report, sampler))
}

pub(crate) fn run(args: &TuneArgs, wiring: &Wiring, seed: u64, output: Output) -> Result<(), Failure> {
    let kernel = wiring.kernel(&args.kernel, &args.device)?;
    let mut device = wiring.measure(&args.device)?;
    let (report, sampler) = campaign(args, wiring, &mut device, seed)?;
    let is_gemm = kernel.computation().as_str() == "gemm";
    let held_out = if args.no_table || !is_gemm {
        Vec::new()
    } else {
        held_out(wiring, &mut device, kernel, args, &report, seed)?
    };
    let answer = Answer {
        device: report.device.clone(),
        kernel: report.kernel.to_string(),
        samples: report.samples,
        failed: report.failed,
        resumed: report.resumed,
        inputs: report.inputs,
        seconds: report.seconds,
        fit_s: report.fit_s,
        cv_mse: report.cv_mse,
        acceptance_uniform: sampler.warmup_acceptance().rate(),
        acceptance: sampler.model_acceptance().rate(),
        profile: report.profile.display().to_string(),
        log: report.log.display().to_string(),
        held_out,
    };
    output.answer(&answer, || text(&answer, &report))
}

/// Refuses, before anything is measured, a place where no profile can be written.
fn check_out(paths: &TunePaths) -> Result<(), Failure> {
    let bad = |why: &str| Err(Failure::new(Kind::Usage, "out", format!("{}: {why}", paths.profile.display())));
    if paths.log == paths.profile {
        return bad("the campaign's log goes there; choose another name");
    }
    if paths.profile.is_dir() { bad("is a directory") } else { Ok(()) }
}

fn settings(args: &TuneArgs, seed: u64) -> TuneSettings {
    TuneSettings { samples: args.samples, seed, ..recommended(args.budget) }
}

fn text(a: &Answer, report: &TuneReport) -> String {
    let resumed = if a.resumed > 0 { format!(" ({} of them from an earlier run)", a.resumed) } else { String::new() };
    let mut out = format!(
        "{} on {}: {} samples of {} inputs{resumed}, {} failed, in {} ({} of it fitting)\n",
        a.kernel,
        a.device,
        a.samples,
        a.inputs,
        a.failed,
        seconds(a.seconds),
        seconds(a.fit_s)
    );
    if let Some(mse) = a.cv_mse {
        let _ = writeln!(
            out,
            "error of the log time on unseen inputs: {mse:.4} (mean square), so times within a factor of {:.2}",
            mse.sqrt().exp()
        );
    }
    let _ = writeln!(out, "the sampler accepted {}", accepted(a));
    let _ = writeln!(out, "profile {}\nlog     {}", report.profile.display(), report.log.display());
    if !a.held_out.is_empty() {
        let _ = write!(
            out,
            "\ninputs that the model never saw, its choice timed beside the alternatives:\n{}",
            table(&a.held_out)
        );
        let _ = writeln!(out, "\nnext: tilewright plan gemm m=2560 n=16 k=2560");
    }
    out
}

/// Rates of the sampler; a short or resumed run may not have come beyond drawing uniformly, or not drawn at all.
fn accepted(a: &Answer) -> String {
    match (a.acceptance, a.acceptance_uniform) {
        (0.0, 0.0) => "nothing, it was not asked".to_owned(),
        (0.0, uniform) => format!("{:.2}% of what it drew, all of it uniformly", 100.0 * uniform),
        (model, 0.0) => format!("{:.1}% of what it drew", 100.0 * model),
        (model, uniform) => {
            format!("{:.1}% of what it drew, {:.2}% while it drew uniformly", 100.0 * model, 100.0 * uniform)
        }
    }
}

fn table(rows: &[HeldOut]) -> String {
    let number = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.1}"));
    let mut table =
        vec![["input", "GFLOP/s", "untuned", "best baseline", "ratio", "config"].map(String::from).to_vec()];
    for r in rows {
        table.push(vec![
            r.input_text.clone(),
            number(Some(r.gflops)),
            number(r.untuned_gflops),
            r.best_baseline.clone().map_or("-".to_owned(), |n| format!("{n} {}", number(r.best_baseline_gflops))),
            r.ratio.map_or("-".to_owned(), |x| format!("{x:.2}")),
            r.config.to_string(),
        ]);
    }
    aligned(&table)
}
