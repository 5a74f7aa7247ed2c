//! `tilewright transfer`: choosing on a device that ran nothing, judged on recorded measurements.

mod every;

use crate::args::{TransferArgs, TransferCommand, TransferDfs, TransferLearner, word};
use crate::commands::data::read_some;
use crate::failure::{Failure, Kind};
use crate::output::{Output, aligned, seconds};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
use tilewright_bench_suite::statistics::Interval;
use tilewright_core::choice::{ChoiceSet, FitSelector};
use tilewright_core::feature::FeatureKind;
use tilewright_core::text::counted;
use tilewright_datasets::{Dataset, FeatureTable, SplitSpec};
use tilewright_files::{MOST, read_file};
use tilewright_mtl::confidence::{ConfidenceScores, TIMED};
use tilewright_mtl::cvdfs::{CvDfs, Judge};
use tilewright_mtl::device::DeviceTable;
use tilewright_mtl::forward::Forward;
use tilewright_mtl::profile::parse_profiles;
use tilewright_mtl::protocol::{Protocol, TransferScores};
use tilewright_mtl::shots::ShotScores;
use tilewright_mtl::transfer::{Dfs, Profiles};
use tilewright_mtl::{MtlError, Source};
use tilewright_variant_select::extra::ExtraTrees;
use tilewright_variant_select::forest::CostForest;
use tilewright_variant_select::guard::Guarded;
use tilewright_variant_select::svm::Svm;
use tilewright_variant_select::trees::BoostedTrees;

#[derive(Serialize)]
struct Answer {
    target: String,
    sources: Vec<String>,
    dfs: String,
    learner: String,
    #[serde(flatten)]
    found: TransferScores,
    /// By how much more shots are above none, in fraction of the oracle, over the splits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shots_above_none: Vec<ShotsAbove>,
    /// By how much transfer is above each of what it is compared with, in fraction of the oracle, over the splits.
    above: Vec<Above>,
    repeats: u32,
    holdout: String,
}

/// What shots are worth.
#[derive(Serialize)]
struct ShotsAbove {
    shots: usize,
    #[serde(flatten)]
    by: Interval,
}

/// Paired by split, for each number of shots; what choosing without any gives stands first in every split.
fn shots_above(splits: &[TransferScores], held_out: Option<f64>) -> Vec<ShotsAbove> {
    let counts = splits.first().map_or(&[][..], |split| &split.shots);
    let above = |(i, count): (usize, &ShotScores)| {
        let gain = |s: &TransferScores| s.shots[i].scores.fraction_of_oracle - s.shots[0].scores.fraction_of_oracle;
        let gains: Vec<f64> = splits.iter().map(gain).collect();
        Some(ShotsAbove { shots: count.shots, by: Interval::of_splits(&gains, held_out)? })
    };
    counts.iter().enumerate().skip(1).filter_map(above).collect()
}

/// A paired difference.
#[derive(Serialize)]
struct Above {
    what: &'static str,
    #[serde(flatten)]
    by: Interval,
}

/// What a row of the table is compared by.
type Figure = fn(&TransferScores) -> f64;

/// What transfer is compared with, as the table names it.
const OTHERS: [(&str, Figure); 5] = [
    ("native", |s| s.native),
    ("majority", |s| s.majority),
    ("best fixed on the sources", |s| s.fixed_best),
    ("best fixed on the target", |s| s.fixed_best_of_target),
    ("random", |s| s.random),
];

/// Paired by split; what no split knows has no difference.
fn above(splits: &[TransferScores], held_out: Option<f64>) -> Vec<Above> {
    let by = |of: Figure| {
        let differences: Vec<f64> = splits.iter().map(|s| s.scores.fraction_of_oracle - of(s)).collect();
        Interval::of_splits(&differences, held_out)
    };
    OTHERS.iter().filter_map(|&(what, of)| Some(Above { what, by: by(of)? })).collect()
}

pub(crate) fn run(command: &TransferCommand, seed: u64, output: Output) -> Result<(), Failure> {
    let TransferCommand::Evaluate { dataset, with } = command;
    if let Some(target) = &with.target {
        let answer = evaluate(dataset, (target, with), seed)?;
        return output.answer(&answer, || text(&answer));
    }
    let every = every::evaluate(dataset, with, seed)?;
    output.answer(&every, || every.text())
}

/// The numbers of shots, ascending, with none at all before them to compare with.
fn shots(asked: &[usize]) -> Vec<usize> {
    let all: BTreeSet<usize> = asked.iter().copied().chain([0]).collect();
    if asked.is_empty() { Vec::new() } else { all.into_iter().collect() }
}

/// The learners that compete: `auto` stands for two where sources can play the target. Extremely randomised trees and forests tell candidates apart
/// by name, and configurations have no name that another input or device knows.
fn competing(args: &TransferArgs, table: &FeatureTable) -> Vec<TransferLearner> {
    let configurations = table.schema().config.iter().any(|f| f.kind == FeatureKind::Size);
    match args.learner {
        TransferLearner::Auto if configurations => vec![TransferLearner::Trees],
        TransferLearner::Auto if args.dfs == TransferDfs::Auto => {
            vec![TransferLearner::ExtraTrees, TransferLearner::Forest]
        }
        TransferLearner::Auto => vec![TransferLearner::ExtraTrees],
        named => vec![named],
    }
}

fn learner(of: TransferLearner, dfs: TransferDfs) -> Box<dyn FitSelector> {
    // Algorithm 2 fits a model for every subset of features: a search for its settings in each would take minutes.
    let many = matches!(dfs, TransferDfs::Cv | TransferDfs::CvAccuracy | TransferDfs::Forward);
    match of {
        TransferLearner::Svm if many => {
            Box::new(Guarded(Svm { widths: vec![2.0], penalties: vec![10.0], ..Svm::default() }))
        }
        TransferLearner::Auto | TransferLearner::ExtraTrees => Box::new(Guarded(ExtraTrees::default())),
        TransferLearner::Forest => Box::new(Guarded(CostForest { trees: 40, ..CostForest::default() })),
        TransferLearner::Trees => Box::new(Guarded(BoostedTrees::default())),
        TransferLearner::Svm => Box::new(Guarded(Svm::default())),
    }
}

/// The recorded choices, and who learns from whom.
struct Recorded<'a> {
    dataset: Dataset,
    table: FeatureTable,
    devices: DeviceTable,
    target: &'a str,
    sources: Vec<String>,
}

fn evaluate(path: &Path, (target, args): (&str, &TransferArgs), seed: u64) -> Result<Answer, Failure> {
    let devices = device_table(args.device_features.as_deref())?;
    let mut dataset = read_some(path)?;
    dataset.know_devices(|device| devices.of(device).ok().cloned());
    let spec = holdout(args.holdout.as_deref(), &dataset, "0.33")?;
    let table = dataset.features_on_any_device().map_err(|e| Failure::of_file(Kind::Input, path, e))?;
    let sources = sources(&dataset, (target, args))?;
    let dfs = dfs(args)?;
    let learners: Vec<(String, Box<dyn FitSelector>)> =
        competing(args, &table).into_iter().map(|of| (word(of), learner(of, args.dfs))).collect();
    let learners: Vec<(&str, &dyn FitSelector)> = learners.iter().map(|(name, of)| (name.as_str(), &**of)).collect();
    let recorded = Recorded { dataset, table, devices, target, sources };
    let features = recorded.devices.of(target).map_err(failure)?;
    let counts = shots(&args.shots);
    let protocol = Protocol { target, features, dfs: &dfs, learners: &learners, shots: &counts };
    let seeds: Vec<u64> = (0..u64::from(args.repeats)).map(|r| seed.wrapping_add(r)).collect();
    let splits = seeds.par_iter().map(|&seed| recorded.split(&protocol, &spec, seed)).collect::<Result<Vec<_>, _>>()?;
    let nothing = || Failure::new(Kind::Nothing, "holdout", "nothing that ran was held out");
    let found = TransferScores::mean(&splits).ok_or_else(nothing)?;
    Ok(Answer {
        target: target.to_owned(),
        dfs: word(args.dfs),
        learner: found.learned_by.first().map_or_else(String::new, |(name, _)| name.clone()),
        found,
        shots_above_none: shots_above(&splits, spec.drawn_share()),
        above: above(&splits, spec.drawn_share()),
        repeats: args.repeats,
        holdout: spec.to_string(),
        sources: recorded.sources,
    })
}

/// The split that was asked for; else this fraction of the groups, or of the inputs where there are none.
pub(super) fn holdout(named: Option<&str>, dataset: &Dataset, fraction: &str) -> Result<SplitSpec, Failure> {
    let unless = match dataset.schema().columns.group {
        Some(_) => format!("group:{fraction}"),
        None => format!("input:{fraction}"),
    };
    named.unwrap_or(&unless).parse().map_err(|e| Failure::new(Kind::Usage, "holdout", e))
}

/// The features of devices in a file, or published ones.
pub(super) fn device_table(file: Option<&Path>) -> Result<DeviceTable, Failure> {
    let Some(file) = file else { return Ok(DeviceTable::published()) };
    DeviceTable::parse(&bytes(file)?).map_err(|e| Failure::of_file(Kind::Input, file, e))
}

fn bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    read_file(file, MOST).map_err(|e| Failure::of_file(Kind::Input, file, e))
}

/// The devices to learn from: those that were named, or all but the target.
fn sources(dataset: &Dataset, (target, args): (&str, &TransferArgs)) -> Result<Vec<String>, Failure> {
    let known = dataset.devices();
    let check = |field: &str, name: &str| match known.iter().any(|k| k == name) {
        true => Ok(()),
        false => {
            let all = if known.iter().all(String::is_empty) {
                "none: it has no column of devices".to_owned()
            } else {
                known.join(" ")
            };
            Err(Failure::new(Kind::Input, field, format!("the dataset has no device {name:?}; there are {all}")))
        }
    };
    check("target", target)?;
    let named = args.sources.clone().unwrap_or_else(|| known.iter().filter(|n| *n != target).cloned().collect());
    named.iter().try_for_each(|name| check("sources", name))?;
    if named.iter().any(|name| name == target) {
        return Err(Failure::new(Kind::Input, "sources", format!("{target:?} is the target")));
    }
    Ok(named)
}

fn dfs(args: &TransferArgs) -> Result<Dfs, Failure> {
    let profiles = match &args.profiles {
        None => None,
        Some(file) => {
            let fault = |e: MtlError| Failure::of_file(Kind::Input, file, e);
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
        (TransferDfs::CvAccuracy, profiles) => {
            Dfs::CrossValidated(CvDfs { judge: Judge::Labels, ..CvDfs::default() }, profiles)
        }
        (TransferDfs::Forward, _) => Dfs::Forward(Forward::default()),
        (TransferDfs::Auto, _) => Dfs::LeaveOneOut,
    })
}

impl Recorded<'_> {
    fn choices(&self, rows: &[usize], device: &str) -> Result<ChoiceSet, Failure> {
        let own = self.dataset.rows_of(device, rows);
        self.dataset.choices_from(&self.table, &own).map_err(|e| Failure::new(Kind::Input, "dataset", e))
    }

    fn split(&self, protocol: &Protocol<'_>, spec: &SplitSpec, seed: u64) -> Result<TransferScores, Failure> {
        let split = self.dataset.split(spec, seed).map_err(|e| Failure::new(Kind::Input, "holdout", e))?;
        let source = |device: &String| -> Result<Source, Failure> {
            let features = self.devices.of(device).map_err(failure)?.clone();
            Ok(Source { device: device.clone(), features, cases: self.choices(&split.train, device)? })
        };
        let sources = self.sources.iter().map(source).collect::<Result<Vec<_>, _>>()?;
        let (own, held_out) = (self.choices(&split.train, self.target)?, self.choices(&split.held_out, self.target)?);
        let nothing = || Failure::new(Kind::Nothing, "holdout", "nothing that ran on the target was held out");
        protocol.split(sources, own, &held_out, seed).map_err(failure)?.ok_or_else(nothing)
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

fn text(a: &Answer) -> String {
    // Where the target keeps nothing to learn from, nothing of its own can be compared with.
    let shown = |fraction: f64| if fraction.is_nan() { "unknown".to_owned() } else { format!("{fraction:.4}") };
    let above = |name: &str| a.above.iter().find(|above| above.what == name).map(|above| above.by.to_string());
    let row = |name: &str, fraction: f64| vec![name.to_owned(), shown(fraction), above(name).unwrap_or_default()];
    let mut rows = vec![["", "of oracle", "transfer is above it by (95%)"].map(str::to_owned).to_vec()];
    rows.push(row("transfer", a.found.scores.fraction_of_oracle));
    let after = |s: &ShotScores| row(&format!("after {}", counted(s.timed, "shot")), s.scores.fraction_of_oracle);
    rows.extend(a.found.shots.iter().map(after));
    rows.extend(OTHERS.iter().map(|(name, of)| row(name, of(&a.found))));
    let features = if a.found.features.is_empty() { "none".to_owned() } else { a.found.features.join(" ") };
    let confidence = a.found.confidence.as_ref().map_or_else(String::new, known);
    format!(
        "{} from {}, {} by {}, {} a model\n{}features of devices: {features}\n{confidence}",
        a.target,
        a.sources.join(" "),
        counted(a.repeats, "split"),
        a.holdout,
        seconds(a.found.seconds),
        aligned(&rows)
    )
}

/// What the model knows of its choices before any shot.
fn known(c: &ConfidenceScores) -> String {
    let percent = |share: f64| format!("{:.1}%", 100.0 * share);
    let of = |fraction: f64| if fraction.is_nan() { "-".to_owned() } else { format!("{fraction:.4}") };
    format!(
        "choices are expected to lose {} and lose {}; sure of {} of the inputs ({} of oracle), unsure of the others ({}); {} where the \
         first {TIMED} are timed of these\n",
        percent(c.expected_loss),
        percent(c.loss),
        percent(c.sure),
        of(c.sure_of_oracle),
        of(c.unsure_of_oracle),
        of(c.timed_of_oracle)
    )
}
