//! `tilewright export`: the tuned answer as an artefact without Tilewright.

use crate::args::{ExportArgs, ModelKind};
use crate::device::watched;
use crate::failure::{Failure, Kind};
use crate::fields;
use crate::output::{Output, aligned, expect_writable, note, seconds, write};
use crate::progress::Bar;
use crate::wiring::{Wiring, measure};
use serde::Serialize;
use std::fmt::Write as _;
use std::time::Instant;
use tilewright::export::{Choice, Loss, Regret, Target, emit};
use tilewright::exporting::{ExportSettings, Exported, Exporting, HeldOut, Phase};
use tilewright_core::problem::Measure;
use tilewright_core::space::Config;
use tilewright_core::text::counted;

/// Held-out inputs, for each that the tree is grown on.
const HELD_OUT: f64 = 1.0 / 3.0;

#[derive(Serialize)]
struct Answer {
    kernel: String,
    format: String,
    /// How many inputs the tree was grown on.
    inputs: usize,
    /// By what share choices take longer than planned ones, in the mean over held-out inputs.
    regret: Option<f64>,
    regrets: Regret,
    device: String,
    fingerprint: String,
    file: Option<String>,
    leaves: usize,
    configurations: usize,
    /// Configurations that were timed on all inputs.
    candidates: usize,
    /// What is taken where guidelines speak against every configuration of a leaf.
    fallback: Option<Config>,
    /// Whether some configuration is found for every input that the kernel computes.
    guaranteed: bool,
    /// Drawn inputs for which none is legal by all guidelines too, of how many.
    uncovered: [usize; 2],
    /// The fields that all inputs of the artefact share.
    fixed: Config,
    /// The fields that it asks about.
    asks: Vec<String>,
    held_out: Vec<Row>,
    notes: Vec<String>,
    seconds: f64,
    /// The artefact, where no file takes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Serialize)]
struct Row {
    input: Config,
    config: Config,
    planned: Config,
    /// Of the artefact's choice and of the plan's; null where they are the same.
    seconds: Option<[f64; 2]>,
    regret: f64,
}

pub(crate) fn run(args: &ExportArgs, wiring: &Wiring, seed: u64, output: Output) -> Result<(), Failure> {
    let (clock, fixed) = (Instant::now(), fields::parse(&args.fixed)?);
    let target = Target::ALL.into_iter().find(|target| target.name() == args.format);
    let target =
        target.ok_or_else(|| Failure::new(Kind::Usage, "format", format!("{:?} is no format", args.format)))?;
    let _writable = expect_writable("out", &args.out)?;
    let mut device = measure(&args.device)?;
    let (spec, home) = (device.spec().clone(), wiring.home()?);
    let kernel = wiring.kernels.variant(&args.kernel, None, spec.kind)?.clone();
    let bar = Bar::timing("export", args.budget);
    let mut told = |phase: Phase, done: usize, of: usize| {
        let doing = match phase {
            Phase::Planning => "inputs planned",
            Phase::Timing => "inputs on which all candidates were timed",
            Phase::Judging => "held-out inputs judged",
        };
        bar.note(format!("{done} of {of} {doing}"));
        bar.set_time(clock.elapsed().min(args.budget));
    };
    let exporting = Exporting {
        home: &home,
        kernel: &kernel,
        device: &spec,
        fixed: &fixed,
        model: (args.model.map(ModelKind::name), args.profile.as_deref()),
        settings: settings(args, seed),
        told: &mut told,
    };
    let exported = watched(&spec, || exporting.run(&mut device));
    bar.finish();
    let exported = exported?;
    let text = emit(&exported.artefact, target).map_err(|e| Failure::new(Kind::Other, "format", e))?;
    if let Some(path) = &args.out {
        write(path, &text)?;
    }
    let answer = answer(args, exported, text, clock.elapsed().as_secs_f64());
    answer.notes.iter().for_each(|one| note(format_args!("note: {one}")));
    if let (Some(text), false) = (&answer.text, output.json) {
        // What is piped into a file is the artefact alone.
        note(summary(&answer).trim_end());
        return output.answer(&answer, || text.clone());
    }
    output.answer(&answer, || summary(&answer))
}

fn settings(args: &ExportArgs, seed: u64) -> ExportSettings {
    let (inputs, leaves, budget) = (args.inputs as usize, args.leaves as usize, args.budget);
    let held_out = (inputs as f64 * HELD_OUT).ceil() as usize;
    ExportSettings { inputs, held_out, leaves, budget, seed, ..ExportSettings::default() }
}

fn answer(args: &ExportArgs, exported: Exported, text: String, seconds: f64) -> Answer {
    let Exported { artefact, held_out, candidates, uncovered, notes } = exported;
    let contents = artefact.contents();
    let last: Option<&Choice> = contents.last.map(|at| &contents.choices[at]);
    Answer {
        kernel: contents.kernel.clone(),
        format: args.format.clone(),
        inputs: contents.inputs.len(),
        regret: contents.regret.held_out.map(|loss| loss.mean),
        regrets: contents.regret,
        device: contents.device.name.clone(),
        fingerprint: contents.device.fingerprint.clone(),
        file: args.out.as_ref().map(|path| path.display().to_string()),
        leaves: contents.tree.leaves(),
        configurations: contents.choices.len(),
        candidates,
        fallback: last.map(|choice| choice.config.clone()),
        guaranteed: artefact.is_guaranteed(),
        uncovered: [uncovered.0, uncovered.1],
        fixed: contents.domain.fixed.clone(),
        asks: contents.domain.fields.iter().map(|field| field.name.clone()).collect(),
        held_out: held_out.into_iter().map(row).collect(),
        notes,
        seconds,
        text: args.out.is_none().then_some(text),
    }
}

fn row(of: HeldOut) -> Row {
    Row { input: of.input, config: of.chosen, planned: of.planned, seconds: of.seconds, regret: of.loss.exp_m1() }
}

fn summary(a: &Answer) -> String {
    let mut out = format!("{} on {} as {}, in {}\n", a.kernel, a.device, a.format, seconds(a.seconds));
    let loss = |loss: Option<Loss>| match loss {
        None => "nothing to judge it by".to_owned(),
        Some(Loss { mean, worst, inputs }) => {
            format!("{:.2}% in the mean, {:.1}% at worst, on {}", 100.0 * mean, 100.0 * worst, counted(inputs, "input"))
        }
    };
    let Regret { training, cross_validated, held_out } = a.regrets;
    let rows = [
        ("tree", format!("leaves: {}, with {}", a.leaves, counted(a.configurations, "configuration"))),
        ("asks", if a.asks.is_empty() { "nothing".to_owned() } else { a.asks.join(" ") }),
        ("regret", format!("held out: {}", loss(held_out))),
        ("", format!("cross-validated: {}; training: {}", loss(cross_validated), loss(training))),
        ("fallback", a.fallback.as_ref().map_or("none".to_owned(), ToString::to_string)),
        ("holds for", a.fixed.to_string()),
        ("file", a.file.clone().unwrap_or_else(|| "standard output".to_owned())),
    ];
    for (name, value) in rows {
        let _ = writeln!(out, "  {name:<9} {value}");
    }
    if !a.held_out.is_empty() {
        let mut table = vec![["held-out input", "chosen", "planned", "regret"].map(String::from).to_vec()];
        for row in &a.held_out {
            let [own, best] = row.seconds.map_or(["-".into(), "-".into()], |pair| pair.map(seconds));
            table.push(vec![sizes(&row.input, a), own, best, format!("{:.1}%", 100.0 * row.regret)]);
        }
        out.push_str(&aligned(&table));
    }
    out
}

/// The fields of an input that the artefact asks about.
fn sizes(input: &Config, a: &Answer) -> String {
    let asked = input.0.iter().filter(|(name, _)| a.asks.contains(name));
    asked.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}
