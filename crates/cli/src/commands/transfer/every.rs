//! Every device as the target in turn.

use super::{Answer, OTHERS, known};
use crate::args::TransferArgs;
use crate::commands::data::read_some;
use crate::failure::Failure;
use crate::output::aligned;
use serde::Serialize;
use std::path::Path;
use tilewright_bench_suite::statistics::Interval;
use tilewright_core::text::counted;
use tilewright_mtl::confidence::ConfidenceScores;

/// What every device gave as the target, and the mean over the devices, each of which weighs the same.
#[derive(Serialize)]
pub(super) struct Every {
    devices: Vec<Answer>,
    /// In fraction of the oracle, by what chooses.
    means: Vec<Mean>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<ConfidenceScores>,
}

/// A way to choose, over the devices.
#[derive(Serialize)]
struct Mean {
    what: String,
    /// None where a device has nothing to compare with.
    mean: Option<f64>,
    /// With the first three timed on every input, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_top3: Option<f64>,
    /// The device on which it is least.
    worst: Option<f64>,
    /// By how much transfer without shots is above it; the devices are the observations.
    above: Option<Interval>,
}

/// A figure of a device's answer.
type Figure<'f> = &'f dyn Fn(&Answer) -> f64;

fn mean(devices: &[Answer], what: &str, of: Figure<'_>, top3: Option<Figure<'_>>) -> Mean {
    let all: Vec<f64> = devices.iter().map(of).collect();
    let average = |all: &[f64]| Some(all.iter().sum::<f64>() / all.len() as f64).filter(|mean| mean.is_finite());
    let above: Vec<f64> = devices.iter().zip(&all).map(|(device, figure)| blind(device) - figure).collect();
    Mean {
        what: what.to_owned(),
        mean: average(&all),
        mean_top3: top3.and_then(|top3| average(&devices.iter().map(top3).collect::<Vec<_>>())),
        worst: all.iter().copied().reduce(f64::min).filter(|worst| worst.is_finite()),
        above: Interval::of(&above).filter(|_| what != TRANSFER),
    }
}

const TRANSFER: &str = "transfer";

/// Of the choices without shots.
fn blind(answer: &Answer) -> f64 {
    answer.found.shots.first().map_or(answer.found.scores, |none| none.scores).fraction_of_oracle
}

pub(super) fn evaluate(path: &Path, args: &TransferArgs, seed: u64) -> Result<Every, Failure> {
    let mut targets = read_some(path)?.devices();
    if let Some(sources) = &args.sources {
        targets.retain(|target| !sources.contains(target));
    }
    let answer = |target: &String| super::evaluate(path, (target, args), seed);
    let devices = targets.iter().map(answer).collect::<Result<Vec<_>, _>>()?;
    let top3 = |a: &Answer| a.found.shots.first().map_or(a.found.scores, |none| none.scores).fraction_of_oracle_top3;
    let mut means = vec![mean(&devices, TRANSFER, &blind, Some(&top3))];
    let counts: Vec<usize> = devices.first().map_or_else(Vec::new, |d| d.found.shots.iter().map(|s| s.shots).collect());
    for (i, count) in counts.into_iter().enumerate().skip(1) {
        let of = |a: &Answer| a.found.shots[i].scores.fraction_of_oracle;
        let top3 = |a: &Answer| a.found.shots[i].scores.fraction_of_oracle_top3;
        means.push(mean(&devices, &format!("after {}", counted(count, "shot")), &of, Some(&top3)));
    }
    means.extend(OTHERS.iter().map(|(name, of)| mean(&devices, name, &|a: &Answer| of(&a.found), None)));
    let confidence: Vec<ConfidenceScores> = devices.iter().filter_map(|d| d.found.confidence).collect();
    Ok(Every { confidence: ConfidenceScores::mean(&confidence), means, devices })
}

impl Every {
    pub(super) fn text(&self) -> String {
        let shown = |fraction: Option<f64>| fraction.map_or("unknown".to_owned(), |f| format!("{f:.4}"));
        let titles = ["", "of oracle", "worst device", "top 3", "transfer is above it by (95%)"];
        let mut rows = vec![titles.map(str::to_owned).to_vec()];
        for m in &self.means {
            let top3 = m.mean_top3.map_or_else(String::new, |f| format!("{f:.4}"));
            let above = m.above.map_or_else(String::new, |by| by.to_string());
            rows.push(vec![m.what.clone(), shown(m.mean), shown(m.worst), top3, above]);
        }
        let names: Vec<&str> = self.devices.iter().map(|d| d.target.as_str()).collect();
        let repeats = self.devices.first().map_or(0, |d| d.repeats);
        let holdout = self.devices.first().map_or("", |d| &d.holdout);
        let confidence = self.confidence.as_ref().map_or_else(String::new, known);
        let table = aligned(&rows);
        format!("{} in turn, {} by {holdout}\n{table}{confidence}", names.join(" "), counted(repeats, "split"))
    }
}
