//! A cheaper network that imitates the full one, and how far it may be trusted.
//!
//! An exhaustive search scores every point with the screen, and only the promising ones with the full network. The
//! screen is distilled: a small network of the same features is fitted to the full one's predictions on random points
//! of random inputs, which cost nothing to label. Its margin is measured on inputs that were kept out of that fit.

use ndarray::Array2;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::bound::BoundNetwork;
use crate::error::TrainError;
use crate::layout::Layout;
use crate::pool::PoolInput;
use crate::settings::{FeatureScale, Settings, SplitBy};
use crate::train::{Samples, Trained, train};

/// How a screen is distilled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScreenSettings {
    /// Hidden layers.
    pub layout: Layout,
    /// Passes over the pool.
    pub epochs: usize,
    /// Inputs of a pool that is made of training rows.
    pub pool_inputs: usize,
    /// Configurations of each of its inputs.
    pub pool_configs: usize,
    /// Share of the pool's inputs that the margin is measured on, and that the screen does not learn from.
    pub calibration: f64,
    /// What the widest excess seen in calibration is multiplied by.
    pub safety: f32,
}

impl Default for ScreenSettings {
    fn default() -> Self {
        Self {
            layout: Layout::new(vec![64, 32]).expect("the layout is in range"),
            epochs: 15,
            pool_inputs: 192,
            pool_configs: 1024,
            calibration: 1.0 / 3.0,
            safety: 1.5,
        }
    }
}

impl ScreenSettings {
    fn check(&self) -> Result<(), TrainError> {
        let error = |field, value: String, limit| Err(TrainError::Setting { field, value, limit });
        if !(self.calibration > 0.0 && self.calibration < 1.0) {
            return error("calibration", self.calibration.to_string(), "between 0 and 1");
        }
        if !(self.safety.is_finite() && self.safety >= 1.0) {
            return error("safety", self.safety.to_string(), "finite and at least 1");
        }
        Ok(())
    }
}

/// What calibration saw. Log-costs are natural logs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScreenReport {
    /// Inputs that the margin was measured on.
    pub inputs: usize,
    /// Largest amount by which the screen's score of the full model's best point exceeded the screen's best score.
    pub widest_excess: f32,
    /// The margin: the widest excess with the safety factor.
    pub margin: f32,
    /// Mean share of the points within the margin, which the full network has to score.
    pub kept: f64,
}

/// The small network and its margin.
#[derive(Debug, Clone)]
pub(crate) struct ScreenModel {
    pub(crate) trained: Trained,
    pub(crate) report: ScreenReport,
}

/// A pool input with the full model's log-costs of its configurations.
struct Labelled<'a> {
    input: &'a PoolInput,
    costs: Vec<f32>,
}

/// Best points of an input whose excess counts in calibration: more than the one that must survive, so that a few
/// dozen inputs say something about the tail.
const CALIBRATED_POINTS: usize = 4;

/// Fewest inputs of a pool: some to learn from, some to calibrate on.
pub const LEAST_POOL_INPUTS: usize = 6;

/// Distils the full network `teacher` on the pool.
pub(crate) fn distill(
    teacher: &Trained,
    input_columns: usize,
    pool: &[PoolInput],
    settings: &ScreenSettings,
    seed: u64,
) -> Result<ScreenModel, TrainError> {
    settings.check()?;
    check_pool(pool, input_columns, teacher.encoding.columns.len() - input_columns)?;
    let mut order: Vec<&PoolInput> = pool.iter().collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let labelled: Vec<Labelled<'_>> = order.into_iter().map(|input| label(teacher, input)).collect();
    let calibrated = ((pool.len() as f64 * settings.calibration).round() as usize).clamp(2, pool.len() - 4);
    let (calibration, learning) = labelled.split_at(calibrated);
    let trained = imitate(teacher, learning, settings, seed)?;
    let report = calibrate(&trained, calibration, settings.safety);
    Ok(ScreenModel { trained, report })
}

fn check_pool(pool: &[PoolInput], inputs: usize, configs: usize) -> Result<(), TrainError> {
    if pool.len() < LEAST_POOL_INPUTS {
        return Err(TrainError::TooFewRows { rows: pool.len(), needed: LEAST_POOL_INPUTS });
    }
    for entry in pool {
        if entry.input.len() != inputs {
            return Err(TrainError::Length { field: "pool input", have: entry.input.len(), expected: inputs });
        }
        if entry.configs.is_empty() || !entry.configs.len().is_multiple_of(configs.max(1)) {
            let (have, expected) = (entry.configs.len(), configs);
            return Err(TrainError::Length { field: "pool configs", have, expected });
        }
    }
    Ok(())
}

/// A network of which the input columns are fixed.
pub(crate) fn bind(trained: &Trained, input: &[f32]) -> BoundNetwork {
    let mut fixed: Vec<Option<f32>> = input.iter().copied().map(Some).collect();
    fixed.resize(trained.encoding.columns.len(), None);
    BoundNetwork::new(&trained.network, &trained.encoding, trained.target, &fixed)
}

fn score(trained: &Trained, input: &PoolInput) -> Vec<f32> {
    let bound = bind(trained, &input.input);
    let mut out = vec![0.0; input.configs.len() / bound.width().max(1)];
    bound.score_into(&input.configs, &mut out);
    out
}

fn label<'a>(teacher: &Trained, input: &'a PoolInput) -> Labelled<'a> {
    Labelled { input, costs: score(teacher, input) }
}

/// Fits the small network to what the teacher says of each input *relative to the input's best point*: a search
/// compares points of one input only, so the screen need not spend its few weights on how inputs differ.
fn imitate(
    teacher: &Trained,
    learning: &[Labelled<'_>],
    settings: &ScreenSettings,
    seed: u64,
) -> Result<Trained, TrainError> {
    let columns = teacher.encoding.columns.len();
    let mut rows = Vec::new();
    let mut y = Vec::new();
    let mut groups = Vec::new();
    for (group, Labelled { input, costs }) in learning.iter().enumerate() {
        for config in input.configs.chunks_exact(columns - input.input.len()) {
            rows.extend_from_slice(&input.input);
            rows.extend_from_slice(config);
        }
        y.extend(relative(costs));
        groups.extend(std::iter::repeat_n(group as u32, costs.len()));
    }
    let x = Array2::from_shape_vec((y.len(), columns), rows).expect("every row has every column");
    let sizes: Vec<bool> = teacher.encoding.columns.iter().map(|column| column.log2).collect();
    let samples = Samples { x: x.view(), y: &y, groups: &groups, sizes: &sizes };
    let settings = Settings {
        layout: settings.layout.clone(),
        features: FeatureScale::Log2,
        epochs: settings.epochs,
        patience: settings.epochs,
        batch: 512,
        learning_rate: 1e-2,
        weight_decay: 0.0,
        validation: 0.1,
        split_by: SplitBy::Group,
    };
    train(samples, &settings, seed)
}

/// Log-costs above the input's median are compressed: how bad a bad point is does not matter, that it is bad does.
fn relative(costs: &[f32]) -> impl Iterator<Item = f32> {
    const COMPRESSION: f32 = 0.25;
    let mut sorted = costs.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    let median = sorted[sorted.len() / 2];
    costs.iter().map(move |cost| {
        let above = cost - median;
        if above > 0.0 { COMPRESSION * above } else { above }
    })
}

/// Measures by how much the screen misjudges the full model's best points.
fn calibrate(screen: &Trained, calibration: &[Labelled<'_>], safety: f32) -> ScreenReport {
    let scored: Vec<(f32, Vec<f32>)> = calibration
        .par_iter()
        .map(|labelled| {
            let cheap = score(screen, labelled.input);
            let least = cheap.iter().copied().fold(f32::INFINITY, f32::min);
            let mut order: Vec<usize> = (0..cheap.len()).collect();
            order.sort_unstable_by(|&a, &b| labelled.costs[a].total_cmp(&labelled.costs[b]));
            let excess = order.iter().take(CALIBRATED_POINTS).map(|&at| cheap[at] - least).fold(0.0, f32::max);
            (excess, cheap.into_iter().map(|score| score - least).collect())
        })
        .collect();
    let widest_excess = scored.iter().map(|(excess, _)| *excess).fold(0.0, f32::max);
    let margin = safety * widest_excess;
    let kept = scored
        .iter()
        .map(|(_, above)| above.iter().filter(|&&above| above <= margin).count() as f64 / above.len() as f64);
    let kept = kept.sum::<f64>() / scored.len() as f64;
    ScreenReport { inputs: scored.len(), widest_excess, margin, kept }
}
