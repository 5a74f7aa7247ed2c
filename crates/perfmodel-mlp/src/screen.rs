//! A cheaper network that imitates the full one for one input, and how far it may be trusted.
//!
//! An exhaustive search scores every point with the screen, and only the promising ones with the full network. The
//! screen is distilled when a search begins: a small network is fitted to the full one's predictions on random points
//! of the very input that is searched, which cost little to label. One network for all inputs, distilled at fitting
//! time, was tried first: on the host's GEMM space it kept a third of the points and more.

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};
use tilewright_core::setting::SettingError;

use crate::bound::{BoundEnsemble, BoundNetwork};
use crate::error::TrainError;
use crate::layout::Layout;
use crate::settings::{FeatureScale, Settings, SplitBy};
use crate::train::{Samples, train};

/// How screens are distilled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScreenSettings {
    /// Hidden layers.
    pub layout: Layout,
    /// Random points of the input's space that the full network labels.
    pub points: usize,
    /// Passes over those that the screen learns from.
    pub epochs: usize,
    /// Share of the points that the margin is measured on, and that the screen does not learn from.
    pub calibration: f64,
    /// What the widest excess seen in calibration is multiplied by.
    pub safety: f32,
    /// Share of the calibration points that the margin keeps at least, however well the screen does on their best.
    #[serde(default = "least_kept")]
    pub least_kept: f64,
    /// Spaces of fewer points, legal or not, are not screened: distilling would take longer than it saves.
    pub least_space: u64,
}

impl Default for ScreenSettings {
    fn default() -> Self {
        Self {
            layout: Layout::new(vec![64, 32]).expect("the layout is in range"),
            points: 16_384,
            epochs: 15,
            calibration: 0.25,
            safety: 1.5,
            least_kept: least_kept(),
            least_space: 200_000,
        }
    }
}

/// A sample's best points are few, and the best of the whole space lies further out: now and then they agree with the
/// screen by chance, and the margin that they ask for is too narrow. Without a least share the best of 2 inputs in 87
/// was lost on the host's GEMM space; 0.02 was enough for both. There, it is about half as much of the whole space.
fn least_kept() -> f64 {
    0.03
}

/// Fewest points that a screen is distilled on.
pub const LEAST_SCREEN_POINTS: usize = 256;

/// Best points of the calibration whose excess counts: more than the one that must survive, since the best of a whole
/// space lies further out than the best of a sample.
const CALIBRATED_POINTS: usize = 8;

impl ScreenSettings {
    /// The settings, if each is in its range.
    ///
    /// # Errors
    /// The first setting that is not, with its limit.
    pub fn check(&self) -> Result<(), SettingError> {
        let (points, epochs) = (self.points, self.epochs);
        SettingError::check("points", points, (LEAST_SCREEN_POINTS..=1 << 22).contains(&points), "256 to 4194304")?;
        SettingError::check("epochs", epochs, (1..=10_000).contains(&epochs), "1 to 10000")?;
        let share = self.calibration;
        SettingError::check("calibration", share, (0.05..=0.9).contains(&share), "0.05 to 0.9")?;
        let good = self.safety.is_finite() && self.safety >= 1.0;
        SettingError::check("safety", self.safety, good, "finite and at least 1")?;
        let good = (0.0..1.0).contains(&self.least_kept);
        SettingError::check("least_kept", self.least_kept, good, "0 to 1, not 1 itself")
    }
}

/// What calibration saw. A screen's scores are log-costs, those far above the best compressed.
#[derive(Debug, Clone, PartialEq)]
pub struct ScreenReport {
    /// Points that the margin was measured on.
    pub points: usize,
    /// Largest amount by which the screen's score of one of the full model's best points exceeded the best score.
    pub widest_excess: f32,
    /// The margin: the widest excess with the safety factor, or what keeps the least share of the points.
    pub margin: f32,
    /// Share of the points within the margin, which the full network has to score.
    pub kept: f64,
}

/// Distils `dense`, an input's full network, on rows `[point][config feature]`; `sizes` says which features take the
/// logarithm.
pub(crate) fn distill(
    dense: &BoundEnsemble,
    rows: &[f32],
    sizes: &[bool],
    settings: &ScreenSettings,
    seed: u64,
) -> Result<(BoundNetwork, ScreenReport), TrainError> {
    settings.check()?;
    let columns = sizes.len();
    let points = rows.len() / columns.max(1);
    if points < LEAST_SCREEN_POINTS {
        return Err(TrainError::TooFewRows { rows: points, needed: LEAST_SCREEN_POINTS });
    }
    let mut costs = vec![0.0; points];
    dense.score_rows(rows, &mut costs);
    let calibrated = (points as f64 * settings.calibration) as usize;
    let (calibration, learning) = rows.split_at(calibrated * columns);
    let (calibration_costs, learning_costs) = costs.split_at(calibrated);
    let x = ArrayView2::from_shape((points - calibrated, columns), learning).map_err(|_| TrainError::Length {
        field: "config rows",
        have: rows.len(),
        expected: points * columns,
    })?;
    let screen = imitate(x, learning_costs, sizes, settings, seed)?;
    let mut cheap = vec![0.0; calibrated];
    screen.score_rows(calibration, &mut cheap);
    let report = calibrate(&cheap, calibration_costs, settings);
    Ok((screen, report))
}

fn imitate(
    x: ArrayView2<'_, f32>,
    costs: &[f32],
    sizes: &[bool],
    settings: &ScreenSettings,
    seed: u64,
) -> Result<BoundNetwork, TrainError> {
    let y = compress(costs);
    let groups = vec![0; y.len()];
    let samples = Samples { x: x.view(), y: &y, groups: &groups, sizes };
    let settings = Settings {
        layout: settings.layout.clone(),
        members: 1,
        features: FeatureScale::Log2,
        epochs: settings.epochs,
        patience: settings.epochs,
        batch: 256,
        learning_rate: 1e-2,
        weight_decay: 0.0,
        validation: 0.05,
        split_by: SplitBy::Row,
    };
    let trained = train(samples, &settings, seed)?;
    Ok(BoundNetwork::new(&trained.network, &trained.encoding, trained.target, &vec![None; sizes.len()]))
}

/// Log-costs far above the best are compressed: how bad a bad point is does not matter, that it is bad does.
fn compress(costs: &[f32]) -> Vec<f32> {
    let mut sorted = costs.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    let knee = sorted[sorted.len() / 4];
    let reach = (knee - sorted[0]).max(1e-3);
    costs
        .iter()
        .map(|cost| {
            let above = (cost - knee) / reach;
            // Slope 1 below the knee; above it a logarithm, with the same slope where they meet.
            if above > 0.0 { knee + reach * above.ln_1p() } else { *cost }
        })
        .collect()
}

/// Measures by how much the screen misjudges the full model's best points.
fn calibrate(cheap: &[f32], costs: &[f32], settings: &ScreenSettings) -> ScreenReport {
    let mut sorted = cheap.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    let least = sorted[0];
    let mut order: Vec<usize> = (0..cheap.len()).collect();
    order.sort_unstable_by(|&a, &b| costs[a].total_cmp(&costs[b]));
    let widest_excess = order.iter().take(CALIBRATED_POINTS).map(|&at| cheap[at] - least).fold(0.0, f32::max);
    let floor = sorted[(settings.least_kept * sorted.len() as f64) as usize] - least;
    let margin = (settings.safety * widest_excess).max(floor);
    let kept = cheap.iter().filter(|&&score| score <= least + margin).count() as f64 / cheap.len() as f64;
    ScreenReport { points: cheap.len(), widest_excess, margin, kept }
}
