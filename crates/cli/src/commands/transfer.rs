//! `tilewright transfer`: choosing on a device that ran nothing, judged on recorded measurements.

use crate::args::{TransferArgs, TransferCommand, TransferDfs, TransferLearner};
use crate::commands::data::read_some;
use crate::failure::{Failure, Kind};
use crate::output::{Output, aligned, seconds};
use rayon::prelude::*;
use serde::Serialize;
use std::path::Path;
use std::time::Instant;
use tilewright_core::choice::{ChoiceSet, FitSelector};
use tilewright_core::feature::FeatureKind;
use tilewright_datasets::{Dataset, FeatureTable, SplitSpec};
use tilewright_mtl::baselines::{BestOnSources, Majority};
use tilewright_mtl::cvdfs::CvDfs;
use tilewright_mtl::device::DeviceTable;
use tilewright_mtl::forward::Forward;
use tilewright_mtl::profile::parse_profiles;
use tilewright_mtl::transfer::{Dfs, Profiles, Reason, tune_from_source};
use tilewright_mtl::{MtlError, Score, Source, Sources};
use tilewright_variant_select::forest::CostForest;
use tilewright_variant_select::guard::Guarded;
use tilewright_variant_select::metrics::Table1;
use tilewright_variant_select::svm::Svm;
use tilewright_variant_select::trees::BoostedTrees;

#[derive(Serialize)]
struct Answer {
    target: String,
    sources: Vec<String>,
    dfs: &'static str,
    learner: &'static str,
    #[serde(flatten)]
    scores: Table1,
    /// The same learner, trained on the target.
    native: f64,
    random: f64,
    majority: f64,
    /// The variant that was best on the sources.
    fixed_best: f64,
    /// The variant that is best on the target: no transfer can know it.
    fixed_best_of_target: f64,
    /// Features of devices, with how often they were chosen.
    features: Vec<String>,
    chosen: Vec<(String, usize)>,
    /// Building one model, the choice of features included.
    seconds: f64,
    repeats: u32,
    holdout: String,
    /// How the features of the last split were chosen.
    reason: Reason,
}

pub(crate) fn run(command: &TransferCommand, seed: u64, output: Output) -> Result<(), Failure> {
    let TransferCommand::Evaluate { dataset, with } = command;
    let answer = evaluate(dataset, with, seed)?;
    output.answer(&answer, || text(&answer))
}

/// The learner that `auto` stands for: a forest tells candidates apart by name, and configurations have no name that another input
/// or device knows.
fn meant(named: TransferLearner, table: &FeatureTable) -> TransferLearner {
    let configurations = table.schema().config.iter().any(|f| f.kind == FeatureKind::Size);
    match named {
        TransferLearner::Auto if configurations => TransferLearner::Trees,
        TransferLearner::Auto => TransferLearner::Forest,
        named => named,
    }
}

fn learner(of: TransferLearner) -> Box<dyn FitSelector> {
    match of {
        TransferLearner::Auto | TransferLearner::Forest => {
            Box::new(Guarded(CostForest { trees: 40, ..CostForest::default() }))
        }
        TransferLearner::Trees => Box::new(Guarded(BoostedTrees::default())),
        TransferLearner::Svm => Box::new(Guarded(Svm::default())),
    }
}

/// What stays the same over all splits.
struct Stage<'a> {
    dataset: Dataset,
    table: FeatureTable,
    devices: DeviceTable,
    target: &'a str,
    sources: Vec<String>,
    dfs: Dfs,
    learner: Box<dyn FitSelector>,
    meant: TransferLearner,
}

/// What one split gave.
struct Done {
    scores: Table1,
    native: f64,
    random: f64,
    majority: f64,
    fixed_best: f64,
    fixed_best_of_target: f64,
    features: Vec<String>,
    seconds: f64,
    reason: Reason,
}

fn evaluate(path: &Path, args: &TransferArgs, seed: u64) -> Result<Answer, Failure> {
    let devices = device_table(args.device_features.as_deref())?;
    let mut dataset = read_some(path)?;
    dataset.know_devices(|device| devices.of(device).ok().cloned());
    let spec = args.holdout.as_deref().unwrap_or(match dataset.schema().columns.group {
        Some(_) => "group:0.33",
        None => "input:0.33",
    });
    let spec: SplitSpec = spec.parse().map_err(|e| Failure::new(Kind::Usage, "holdout", e))?;
    let table =
        dataset.features_on_any_device().map_err(|e| Failure::new(Kind::Input, &path.display().to_string(), e))?;
    let sources = sources(&dataset, args)?;
    let dfs = dfs(args)?;
    let meant = meant(args.learner, &table);
    let stage = Stage { dataset, table, devices, target: &args.target, sources, dfs, learner: learner(meant), meant };
    let splits: Vec<u64> = (0..u64::from(args.repeats)).map(|r| seed.wrapping_add(r)).collect();
    let done = splits.par_iter().map(|&seed| stage.split(&spec, seed)).collect::<Result<Vec<_>, _>>()?;
    summary(&stage, &done, args, &spec)
}

/// The features of devices in a file, or published ones.
pub(super) fn device_table(file: Option<&Path>) -> Result<DeviceTable, Failure> {
    let Some(file) = file else { return Ok(DeviceTable::published()) };
    DeviceTable::parse(&bytes(file)?).map_err(|e| Failure::new(Kind::Input, &file.display().to_string(), e))
}

fn bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(|e| Failure::new(Kind::Input, &file.display().to_string(), e))
}

/// The devices to learn from: those that were named, or all but the target.
fn sources(dataset: &Dataset, args: &TransferArgs) -> Result<Vec<String>, Failure> {
    let mut known: Vec<String> = (0..dataset.len()).map(|r| dataset.device(r)).collect();
    known.sort();
    known.dedup();
    let check = |field: &str, name: &String| match known.contains(name) {
        true => Ok(()),
        false => Err(Failure::new(Kind::Input, field, format!("no device {name:?}; there are {}", known.join(" ")))),
    };
    check("target", &args.target)?;
    let named = args.sources.clone().unwrap_or_else(|| known.iter().filter(|n| **n != args.target).cloned().collect());
    named.iter().try_for_each(|name| check("sources", name))?;
    if named.contains(&args.target) {
        return Err(Failure::new(Kind::Input, "sources", format!("{:?} is the target", args.target)));
    }
    Ok(named)
}

fn dfs(args: &TransferArgs) -> Result<Dfs, Failure> {
    let profiles = match &args.profiles {
        None => None,
        Some(file) => {
            let fault = |e: MtlError| Failure::new(Kind::Input, &file.display().to_string(), e);
            Some(Profiles { variants: parse_profiles(&bytes(file)?).map_err(fault)?, proxies: Vec::new() })
        }
    };
    Ok(match (args.dfs, profiles) {
        (TransferDfs::Full, _) => Dfs::Full,
        (TransferDfs::P, Some(profiles)) => Dfs::Profiled(profiles),
        (TransferDfs::P, None) => {
            return Err(Failure::new(
                Kind::Usage,
                "profiles",
                "--dfs p needs profiles of the variants: --profiles FILE",
            ));
        }
        (TransferDfs::Cv, profiles) => Dfs::CrossValidated(CvDfs::default(), profiles),
        (TransferDfs::Forward, _) => Dfs::Forward(Forward::default()),
        (TransferDfs::Auto, _) => Dfs::Rehearsed,
    })
}

impl Stage<'_> {
    fn choices(&self, rows: &[usize], device: &str) -> Result<ChoiceSet, Failure> {
        let own: Vec<usize> = rows.iter().copied().filter(|&r| self.dataset.device(r) == device).collect();
        self.dataset.choices_from(&self.table, &own).map_err(|e| Failure::new(Kind::Input, "dataset", e))
    }

    fn split(&self, spec: &SplitSpec, seed: u64) -> Result<Done, Failure> {
        let split = self.dataset.split(spec, seed).map_err(|e| Failure::new(Kind::Input, "holdout", e))?;
        let held_out = self.choices(&split.held_out, self.target)?;
        let source = |device: &String| -> Result<Source, Failure> {
            let features = self.devices.of(device).map_err(failure)?.clone();
            Ok(Source { device: device.clone(), features, cases: self.choices(&split.train, device)? })
        };
        let sources = self.sources.iter().map(source).collect::<Result<Vec<_>, _>>()?;
        let sources = Sources::overlapping(sources).map_err(failure)?;
        let target = self.devices.of(self.target).map_err(failure)?;
        let start = Instant::now();
        let tuned =
            tune_from_source(&sources, (self.target, target), &self.dfs, &*self.learner, seed).map_err(failure)?;
        let seconds = start.elapsed().as_secs_f64();
        let nothing = || Failure::new(Kind::Nothing, "holdout", "nothing that ran on the target was held out");
        let scores = Table1::of(&tuned, &held_out).ok_or_else(nothing)?;
        let own = self.choices(&split.train, self.target)?;
        // Without a case of its own the target has no native model.
        let native = self.learner.fit(&own, seed).map(|s| Score::of(&*s, &held_out).fraction_of_oracle);
        let majority = Majority::fit(&sources, &*self.learner, seed).map_err(failure)?;
        let fraction =
            |selector: &dyn tilewright_core::selector::Selector| Score::of(selector, &held_out).fraction_of_oracle;
        let best_of_target =
            Sources::overlapping(vec![Source { device: self.target.to_owned(), features: target.clone(), cases: own }]);
        let best_of_target = best_of_target.ok().map(|own| own.that_ran()).filter(|own| !own.all().is_empty());
        Ok(Done {
            scores,
            native: native.unwrap_or(f64::NAN),
            random: Score::of_lot(&held_out).fraction_of_oracle,
            majority: fraction(&majority),
            fixed_best: fraction(&BestOnSources::fit(&sources)),
            fixed_best_of_target: best_of_target.map_or(f64::NAN, |s| fraction(&BestOnSources::fit(&s))),
            features: tuned.features.clone(),
            seconds,
            reason: tuned.reason,
        })
    }
}

/// Faults of devices and of settings are the caller's.
fn failure(error: MtlError) -> Failure {
    let field = match &error {
        MtlError::UnknownDevice { .. } | MtlError::MissingFeature { .. } => "device-features",
        MtlError::TooFew { .. } | MtlError::Twice(_) => "sources",
        _ => "dataset",
    };
    Failure::new(Kind::Input, field, error)
}

fn summary(stage: &Stage<'_>, done: &[Done], args: &TransferArgs, spec: &SplitSpec) -> Result<Answer, Failure> {
    let mean = |of: fn(&Done) -> f64| done.iter().map(of).sum::<f64>() / done.len() as f64;
    let scores: Vec<Table1> = done.iter().map(|d| d.scores).collect();
    let nothing = || Failure::new(Kind::Nothing, "holdout", "nothing that ran was held out");
    let mut chosen: Vec<(String, usize)> = Vec::new();
    for feature in done.iter().flat_map(|d| &d.features) {
        match chosen.iter_mut().find(|(name, _)| name == feature) {
            Some((_, times)) => *times += 1,
            None => chosen.push((feature.clone(), 1)),
        }
    }
    chosen.sort_by_key(|c| std::cmp::Reverse(c.1));
    let last = done.last().ok_or_else(nothing)?;
    Ok(Answer {
        target: stage.target.to_owned(),
        sources: stage.sources.clone(),
        dfs: args.dfs.name(),
        learner: stage.meant.name(),
        scores: Table1::mean(&scores).ok_or_else(nothing)?,
        native: mean(|d| d.native),
        random: mean(|d| d.random),
        majority: mean(|d| d.majority),
        fixed_best: mean(|d| d.fixed_best),
        fixed_best_of_target: mean(|d| d.fixed_best_of_target),
        features: chosen.iter().map(|(name, _)| name.clone()).collect(),
        chosen,
        seconds: mean(|d| d.seconds),
        repeats: args.repeats,
        holdout: spec.to_string(),
        reason: last.reason.clone(),
    })
}

fn text(a: &Answer) -> String {
    // Where the target keeps nothing to learn from, nothing of its own can be compared with.
    let shown = |fraction: f64| if fraction.is_nan() { "unknown".to_owned() } else { format!("{fraction:.4}") };
    let row = |name: &str, fraction: f64| vec![name.to_owned(), shown(fraction)];
    let rows = [
        row("transfer", a.scores.fraction_of_oracle),
        row("native", a.native),
        row("majority", a.majority),
        row("best fixed on the sources", a.fixed_best),
        row("best fixed on the target", a.fixed_best_of_target),
        row("random", a.random),
    ];
    let features = if a.features.is_empty() { "none".to_owned() } else { a.features.join(" ") };
    format!(
        "{} from {}, {} splits by {}, {} a model\n{}features of devices: {features}\n",
        a.target,
        a.sources.join(" "),
        a.repeats,
        a.holdout,
        seconds(a.seconds),
        aligned(&rows)
    )
}
