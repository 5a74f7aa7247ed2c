//! How good predictions and choices are: errors, order, and what following them costs.

mod choice;

pub use choice::ChoiceScores;

use crate::training::TrainingSet;
use serde::Serialize;
use std::collections::BTreeMap;

/// Scores of predicted log-costs against measured costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scores {
    /// Mean squared error of the natural log of the cost.
    pub mse_log: f64,
    /// One minus the error over the variance of the log cost; 0 where all costs are equal.
    pub r2: f64,
    /// Spearman's rank correlation of predicted and measured cost, mean over the groups of at least two rows, weighted by
    /// rows: how well the configurations of one input are put in order.
    pub rank_correlation: f64,
    /// Mean over groups of (cost of the row predicted best / best cost) - 1: what following the model costs.
    pub top1_regret: f64,
}

impl Scores {
    /// Scores one prediction a row; none for an empty set or another number of predictions.
    pub fn new(data: &TrainingSet, predicted: &[f32]) -> Option<Self> {
        if data.is_empty() || predicted.len() != data.len() {
            return None;
        }
        let n = data.len() as f64;
        let logs: Vec<f64> = data.costs.iter().map(|c| c.ln()).collect();
        let mean = logs.iter().sum::<f64>() / n;
        let variance = logs.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / n;
        let mse_log = logs.iter().zip(predicted).map(|(y, &p)| (y - f64::from(p)).powi(2)).sum::<f64>() / n;
        let mut groups: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (row, &group) in data.groups.iter().enumerate() {
            groups.entry(group).or_default().push(row);
        }
        let r2 = if variance > 0.0 { 1.0 - mse_log / variance } else { 0.0 };
        let rank_correlation = weighted_correlation(&groups, &data.costs, predicted);
        let top1_regret = regret(&groups, &data.costs, predicted);
        Some(Self { mse_log, r2, rank_correlation, top1_regret })
    }
}

fn weighted_correlation(groups: &BTreeMap<u32, Vec<usize>>, costs: &[f64], predicted: &[f32]) -> f64 {
    let (mut sum, mut weight) = (0.0, 0.0);
    for rows in groups.values().filter(|rows| rows.len() > 1) {
        let measured: Vec<f64> = rows.iter().map(|&r| costs[r]).collect();
        let ours: Vec<f64> = rows.iter().map(|&r| f64::from(predicted[r])).collect();
        sum += spearman(&measured, &ours) * rows.len() as f64;
        weight += rows.len() as f64;
    }
    if weight > 0.0 { sum / weight } else { 0.0 }
}

fn regret(groups: &BTreeMap<u32, Vec<usize>>, costs: &[f64], predicted: &[f32]) -> f64 {
    let of_group = |rows: &Vec<usize>| {
        let chosen = rows.iter().min_by(|&&a, &&b| predicted[a].total_cmp(&predicted[b]));
        let best = rows.iter().map(|&r| costs[r]).fold(f64::INFINITY, f64::min);
        chosen.map_or(0.0, |&r| costs[r] / best - 1.0)
    };
    groups.values().map(of_group).sum::<f64>() / groups.len() as f64
}

/// Spearman's rank correlation: Pearson's of the ranks, ties given their mean rank. 0 where either side is constant.
pub fn spearman(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(&b) {
        ab += (x - mean) * (y - mean);
        aa += (x - mean).powi(2);
        bb += (y - mean).powi(2);
    }
    if aa > 0.0 && bb > 0.0 { ab / (aa * bb).sqrt() } else { 0.0 }
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut out = vec![0.0; values.len()];
    let mut first = 0;
    for tied in order.chunk_by(|&i, &j| values[i] == values[j]) {
        let rank = first as f64 + (tied.len() as f64 - 1.0) / 2.0;
        tied.iter().for_each(|&i| out[i] = rank);
        first += tied.len();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::FeatureSchema;

    #[test]
    fn ties_share_their_mean_rank() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [2.5, 0.0, 2.5, 1.0]);
        assert!((spearman(&[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0]) - 1.0).abs() < 1e-12);
        assert!((spearman(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]) + 1.0).abs() < 1e-12);
        assert_eq!(spearman(&[1.0, 1.0], &[1.0, 2.0]), 0.0);
    }

    #[test]
    fn regret_is_what_the_choice_costs() {
        let mut data = TrainingSet::new(FeatureSchema { input: Vec::new(), config: Vec::new() });
        for (cost, group) in [(1.0, 0), (2.0, 0), (3.0, 1), (6.0, 1)] {
            data.push(&[], cost, group).unwrap();
        }
        // Right in the first group, wrong by a factor of two in the second.
        let scores = Scores::new(&data, &[0.0, 1.0, 1.0, 0.0]).unwrap();
        assert!((scores.top1_regret - 0.5).abs() < 1e-12);
        assert!(scores.rank_correlation.abs() < 1e-12);
        let exact: Vec<f32> = data.costs.iter().map(|c| c.ln() as f32).collect();
        let scores = Scores::new(&data, &exact).unwrap();
        assert!(scores.mse_log < 1e-12 && scores.r2 > 0.999_999 && scores.top1_regret == 0.0);
        assert_eq!(Scores::new(&data, &[0.0]), None);
    }
}
