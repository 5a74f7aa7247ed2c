//! The training loop: mini-batches, learning-rate schedule, early stopping.

use ndarray::{Array2, ArrayView2, Axis};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

use crate::adam::Adam;
use crate::bound::TargetScale;
use crate::encoding::Encoding;
use crate::error::TrainError;
use crate::gradient::Gradients;
use crate::network::Network;
use crate::packed::{PackedNetwork, PanelSource};
use crate::settings::{FeatureScale, Settings};
use crate::split::set_aside;

/// Fewest rows that are fitted: one would be left alone by any split.
pub const LEAST_ROWS: usize = 20;

/// Raw rows to learn from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Samples<'a> {
    /// `[row][column]`; cells that are not finite are missing.
    pub(crate) x: ArrayView2<'a, f32>,
    /// Natural log of the cost of each row.
    pub(crate) y: &'a [f32],
    pub(crate) groups: &'a [u32],
    /// Which columns are sizes, on a multiplicative scale.
    pub(crate) sizes: &'a [bool],
}

/// How training went. Errors are mean squared errors of the natural log of the cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainReport {
    /// Rows learned from.
    pub training_rows: usize,
    /// Rows set aside to decide when to stop.
    pub validation_rows: usize,
    /// Training error of each epoch, measured while it ran.
    pub training_mse: Vec<f64>,
    /// Validation error after each epoch.
    pub validation_mse: Vec<f64>,
    /// The epoch, from 0, whose weights were kept.
    pub best_epoch: usize,
    /// Validation error that chose no epoch: of each half of the validation inputs at the epoch that the other half would have chosen.
    /// None of a model that was stored without it.
    #[serde(default)]
    pub unseen_mse: Option<f64>,
    /// Variance of the log cost of the training rows: the error of a model that knows nothing.
    pub variance: f64,
}

impl TrainReport {
    /// Validation error of the weights that were kept. It chose the epoch, and is lower than that of other inputs:
    /// [`TrainReport::unseen_mse`] is not.
    pub fn best_mse(&self) -> f64 {
        self.validation_mse.get(self.best_epoch).copied().unwrap_or(f64::NAN)
    }
}

/// A fitted network with what goes before and after it.
#[derive(Debug, Clone)]
pub(crate) struct Trained {
    pub(crate) encoding: Encoding,
    pub(crate) network: Network,
    pub(crate) target: TargetScale,
    pub(crate) report: TrainReport,
}

/// Encoded rows and standardised targets of one side of the split.
struct Part {
    x: Array2<f32>,
    y: Vec<f32>,
    /// Which of two halves each row is in: inputs stay whole where there are several.
    halves: Vec<usize>,
}

impl Part {
    fn new(samples: Samples<'_>, rows: &[usize], encoding: &Encoding, target: TargetScale) -> Self {
        let x = encoding.encode(samples.x.select(Axis(0), rows).view());
        let y = rows.iter().map(|&row| (samples.y[row] - target.mean) / target.deviation).collect();
        let groups: BTreeSet<u32> = rows.iter().map(|&row| samples.groups[row]).collect();
        let groups: Vec<u32> = groups.into_iter().collect();
        let place = |at: usize, row: usize| {
            groups.binary_search(&samples.groups[row]).ok().filter(|_| groups.len() > 1).unwrap_or(at)
        };
        let halves = rows.iter().enumerate().map(|(at, &row)| place(at, row) % 2).collect();
        Self { x, y, halves }
    }

    /// Squared errors of all rows.
    fn errors(&self, network: &Network) -> Vec<f64> {
        const TASK_ROWS: usize = 1024;
        let mut predicted = vec![0.0; self.y.len()];
        PackedNetwork::new(network.views()).forward_all(TASK_ROWS, || EncodedRows(self.x.view()), &mut predicted);
        predicted.iter().zip(&self.y).map(|(&ours, &y)| f64::from(ours - y).powi(2)).collect()
    }

    /// Sums of squared errors by half.
    fn by_half(&self, errors: &[f64]) -> [f64; 2] {
        let mut sums = [0.0; 2];
        self.halves.iter().zip(errors).for_each(|(&half, error)| sums[half] += error);
        sums
    }

    /// The mean squared error where each half is taken at the epoch that was best for the other.
    fn unseen(&self, epochs: &[[f64; 2]]) -> Option<f64> {
        let best = |half: usize| epochs.iter().min_by(|a, b| a[half].total_cmp(&b[half]));
        Some((best(0)?[1] + best(1)?[0]) / self.y.len() as f64)
    }
}

/// Fits a network. The same samples, settings and seed give the same bytes on any number of threads.
pub(crate) fn train(samples: Samples<'_>, settings: &Settings, seed: u64) -> Result<Trained, TrainError> {
    settings.check()?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (kept, aside) = set_aside(samples.groups, settings.split_by, settings.validation, &mut rng);
    if kept.is_empty() || aside.is_empty() {
        return Err(TrainError::TooFewRows { rows: samples.y.len(), needed: LEAST_ROWS });
    }
    let log2: Vec<bool> = samples.sizes.iter().map(|&size| size && settings.features == FeatureScale::Log2).collect();
    let encoding = Encoding::learn(samples.x.select(Axis(0), &kept).view(), &log2)?;
    let target = target_scale(kept.iter().map(|&row| samples.y[row]));
    let training = Part::new(samples, &kept, &encoding, target);
    let validation = Part::new(samples, &aside, &encoding, target);
    let network = Network::random(&settings.layout, encoding.width(), &mut rng);
    let (network, mut report) = descend(network, &training, &validation, settings, &mut rng)?;
    let variance = f64::from(target.deviation).powi(2);
    let errors = report.training_mse.iter_mut().chain(&mut report.validation_mse).chain(&mut report.unseen_mse);
    errors.for_each(|mse| *mse *= variance);
    report.variance = variance;
    Ok(Trained { encoding, network, target, report })
}

/// Mean and deviation; a constant target keeps a deviation of about its rounding, so that it is predicted as its mean
/// whatever the network says.
fn target_scale(values: impl Iterator<Item = f32> + Clone) -> TargetScale {
    let count = values.clone().count() as f64;
    let mean = values.clone().map(f64::from).sum::<f64>() / count;
    let deviation = (values.map(|value| (f64::from(value) - mean).powi(2)).sum::<f64>() / count).sqrt();
    TargetScale { mean: mean as f32, deviation: deviation.max(1e-6) as f32 }
}

/// Runs epochs until the schedule or the patience ends, and restores the best weights.
fn descend(
    mut network: Network,
    training: &Part,
    validation: &Part,
    settings: &Settings,
    rng: &mut impl Rng,
) -> Result<(Network, TrainReport), TrainError> {
    let rows = training.y.len();
    let mut order: Vec<usize> = (0..rows).collect();
    let batch = settings.batch_for(rows);
    let schedule = Schedule::new(settings, rows.div_ceil(batch));
    let mut gradients = Gradients::new(&network, batch);
    let mut adam = Adam::new(&network, settings.weight_decay);
    let mut best = (f64::INFINITY, network.clone());
    let mut report = TrainReport {
        training_rows: rows,
        validation_rows: validation.y.len(),
        training_mse: Vec::new(),
        validation_mse: Vec::new(),
        best_epoch: 0,
        unseen_mse: None,
        variance: 0.0,
    };
    let (mut step, mut halves) = (0, Vec::new());
    for epoch in 0..settings.epochs {
        order.shuffle(rng);
        let mut squared_error = 0.0;
        for batch in order.chunks(batch) {
            let (error, gradient) = gradients.of_batch(&network, training.x.view(), &training.y, batch);
            squared_error += error;
            adam.step(&mut network, gradient, schedule.rate(step));
            step += 1;
        }
        let errors = validation.errors(&network);
        let mse = errors.iter().sum::<f64>() / errors.len() as f64;
        if !(mse.is_finite() && squared_error.is_finite()) {
            return Err(TrainError::Diverged { epoch, learning_rate: settings.learning_rate });
        }
        report.training_mse.push(squared_error / rows as f64);
        report.validation_mse.push(mse);
        halves.push(validation.by_half(&errors));
        if mse < best.0 {
            best = (mse, network.clone());
            report.best_epoch = epoch;
        } else if epoch - report.best_epoch >= settings.patience {
            break;
        }
    }
    report.unseen_mse = validation.unseen(&halves);
    Ok((best.1, report))
}

/// Linear warm-up over the first epoch, then half a cosine down to zero.
#[derive(Debug)]
struct Schedule {
    highest: f32,
    warm_up: usize,
    steps: usize,
}

impl Schedule {
    fn new(settings: &Settings, warm_up: usize) -> Self {
        Self { highest: settings.learning_rate, warm_up, steps: warm_up * settings.epochs }
    }

    fn rate(&self, step: usize) -> f32 {
        let warm = ((step + 1) as f32 / self.warm_up as f32).min(1.0);
        let progress = step as f32 / self.steps as f32;
        self.highest * warm * 0.5 * (1.0 + (std::f32::consts::PI * progress).cos())
    }
}

/// Rows that are encoded already.
struct EncodedRows<'a>(ArrayView2<'a, f32>);

impl PanelSource for EncodedRows<'_> {
    #[inline(always)]
    fn fill(&mut self, first: usize, rows: usize, width: usize, panel: &mut [f32]) {
        for (index, lanes) in panel.chunks_exact_mut(width).enumerate() {
            lanes[rows..].fill(0.0);
            for (at, lane) in lanes[..rows].iter_mut().enumerate() {
                *lane = self.0[[first + at, index]];
            }
        }
    }
}
