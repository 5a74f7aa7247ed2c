//! Search guided by a surrogate: what is likely to be fast, or not known well, is measured next.

mod axes;
mod dot;
mod hyper;
mod kernel;
mod prior;
mod process;
mod progress;

use crate::experience::{Views, squash};
use crate::neighbourhood::{Neighbourhood, Reach};
use crate::stop::Tolerance;
use crate::strategy::listed::{Chooser, ListedHistory};
use axes::Axis;
use kernel::{Hyper, Kernel};
use prior::Prior;
use process::Process;
use progress::Progress;
pub(crate) use progress::caution;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeSet, HashMap};
use tilewright_core::space::Param;

/// Random points before the surrogate is asked.
const FIRST: usize = 4;
/// Points that other devices found fastest, before the surrogate is asked.
const FIRST_WARM: usize = 4;
/// Most points that the surrogate is fitted to.
const MOST: usize = 512;
/// Most points whose likelihood decides the hyperparameters.
const LIKELY: usize = 128;
/// Candidates of a pool that holds not all unknown points; a space of up to twice as many is held whole.
const POOL: usize = 3_000;
/// Deviations of the surrogate that count as one: fitted to few points, it is too sure of itself.
const WIDER: f32 = 1.4;
/// Best points whose neighbours are candidates.
const CENTRES: usize = 8;
/// Growth of the observations from one choice of hyperparameters to the next.
const GROWTH: f64 = 1.4;

/// Expected improvement over a Gaussian process on log costs.
pub(crate) struct Guided {
    axes: Vec<Axis>,
    hyper: Hyper,
    process: Option<Process>,
    /// Told points with their log cost, failures infinite.
    told: Vec<(u32, f64)>,
    /// Chosen and not told.
    pending: BTreeSet<u32>,
    /// When the hyperparameters are chosen next, in told points.
    next_fit: usize,
    best: f64,
    /// What other devices say.
    warm: Views,
    prior: Prior,
    /// Points in the order that the other devices say, the first one last; empty without any.
    predicted: Vec<u32>,
    progress: Progress,
    /// Whether the bound ends the search, and at what probability.
    ends_at: Option<f64>,
}

impl Guided {
    /// A search of a space of `size` points with these parameters; with `stops`, it ends when its bound falls below alpha.
    pub(crate) fn new((params, size): (&[Param], usize), warm: Views, tolerance: Tolerance, stops: bool) -> Self {
        let axes = axes::axes(params);
        let hyper = Hyper::new(axes.len());
        let prior = Prior::fit(&warm, &[], &[]);
        let predicted = predicted(&warm, &prior);
        Self {
            axes,
            hyper,
            process: None,
            told: Vec::new(),
            pending: BTreeSet::new(),
            next_fit: 0,
            best: f64::INFINITY,
            warm,
            prior,
            predicted,
            progress: Progress::new(size, tolerance.epsilon),
            ends_at: stops.then_some(tolerance.alpha),
        }
    }

    /// What the process sees of the told costs: how much slower than the best, with the slow ones drawn together, since
    /// only order matters there; failures count as slow.
    fn values(&self) -> Vec<f64> {
        let squashed = |cost: f64| squash(cost - self.best);
        let mut values: Vec<f64> = self.told.iter().map(|(_, c)| squashed(*c)).collect();
        let mut finite: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        finite.sort_unstable_by(f64::total_cmp);
        let slow = finite.get(finite.len() * 9 / 10).copied().unwrap_or(0.0);
        values.iter_mut().filter(|v| !v.is_finite()).for_each(|v| *v = slow);
        values
    }

    fn refit(&mut self, history: &mut ListedHistory, rng: &mut ChaCha8Rng) {
        let values = self.values();
        self.prior = Prior::fit(&self.warm, &self.told, &values);
        let rest = self.unexplained(&values);
        let (mean, spread) = moments(&rest);
        let mut order: Vec<usize> = (0..self.told.len()).collect();
        order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
        // The best third, and the rest evenly: what is fast must be told apart, what is slow must be known.
        let likely: Vec<usize> = if order.len() <= LIKELY {
            order.clone()
        } else {
            let (fast, slow) = order.split_at(LIKELY / 3);
            let rest = LIKELY - fast.len();
            fast.iter().copied().chain((0..rest).map(|i| slow[i * slow.len() / rest])).collect()
        };
        let points: Vec<&[u16]> = likely.iter().map(|&i| history.listing.indices(self.told[i].0)).collect();
        let scaled: Vec<f64> = likely.iter().map(|&i| (rest[i] - mean) / spread).collect();
        hyper::improve(&mut self.hyper, &self.axes, &points, &scaled);
        let mut process = Process::new(Kernel::new(&self.axes, &self.hyper), MOST);
        // The most recent and the best, where not all fit.
        let keep = order.iter().take(MOST - MOST / 4).copied();
        let mut kept: Vec<usize> = keep.collect();
        kept.sort_unstable();
        kept.iter().for_each(|&i| process.observe(&history.listing, self.told[i].0));
        self.pending.iter().for_each(|&p| process.observe(&history.listing, p));
        for candidate in self.candidates(history, &order, rng) {
            process.admit(&history.listing, candidate);
        }
        self.process = Some(process);
        self.next_fit = ((self.told.len() as f64 * GROWTH) as usize).max(self.told.len() + 4);
    }

    fn candidates(&self, history: &mut ListedHistory, order: &[usize], rng: &mut ChaCha8Rng) -> BTreeSet<u32> {
        let size = history.listing.len() as u32;
        if size as usize <= POOL * 2 {
            return (0..size).filter(|&n| !history.knows(n)).collect();
        }
        let mut out = BTreeSet::new();
        let around = Neighbourhood::of(&*history.listing);
        for &i in order.iter().take(CENTRES) {
            let near = around.within(history.listing.indices(self.told[i].0), Reach::Single);
            out.extend(near.into_iter().filter(|&n| !history.knows(n)));
        }
        out.extend(self.predicted.iter().rev().copied().filter(|&n| !history.knows(n)).take(POOL / 4));
        for _ in 0..POOL {
            let number = rng.random_range(0..size);
            if !history.knows(number) {
                out.insert(number);
            }
        }
        out
    }

    /// What the prior does not explain of the values.
    fn unexplained(&self, values: &[f64]) -> Vec<f64> {
        self.told.iter().zip(values).map(|((n, _), v)| v - self.prior.of(&self.warm, *n)).collect()
    }

    /// The candidate of which most improvement is expected. Points that are not told yet count as what is expected of them.
    fn improvement(&self) -> Option<u32> {
        let process = self.process.as_ref()?;
        let values = self.values();
        let rest = self.unexplained(&values);
        let (mean, spread) = moments(&rest);
        let by_number: HashMap<u32, f64> = self.told.iter().map(|t| t.0).zip(rest).collect();
        let seen = |n: &u32| by_number.get(n).map_or(0.0, |v| ((v - mean) / spread) as f32);
        let weights = process.weigh(&process.observed.iter().map(seen).collect::<Vec<f32>>());
        // The variance of the signal at its most likely.
        let scale = (weights.iter().map(|w| w * w).sum::<f32>() / weights.len().max(1) as f32).sqrt().max(1e-3);
        let best = values.iter().copied().fold(f64::INFINITY, f64::min);
        let mut found: Option<(f32, u32)> = None;
        for (at, &number) in process.pool.iter().enumerate() {
            let gap = (best - mean - self.prior.of(&self.warm, number)) / spread;
            let gap = gap as f32 - process.mean(at, &weights);
            let gain = expected_improvement(gap, WIDER * scale * process.variance[at].sqrt());
            if found.is_none_or(|(g, n)| gain > g || (gain == g && number < n)) {
                found = Some((gain, number));
            }
        }
        found.map(|(_, number)| number)
    }

    /// What is asked before there is a surrogate: what other devices found fastest, else anything.
    fn opening(&mut self, history: &mut ListedHistory, rng: &mut ChaCha8Rng) -> Option<u32> {
        while let Some(number) = self.predicted.pop() {
            if !history.knows(number) {
                return Some(number);
            }
        }
        history.unknown(rng)
    }
}

/// The points in the order of the prior, the best last.
fn predicted(warm: &Views, prior: &Prior) -> Vec<u32> {
    let count = warm.views.first().map_or(0, Vec::len) as u32;
    let expected: Vec<f64> = (0..count).map(|n| prior.of(warm, n)).collect();
    let mut order: Vec<u32> = (0..count).collect();
    order.sort_by(|&a, &b| expected[b as usize].total_cmp(&expected[a as usize]).then(b.cmp(&a)));
    order
}

fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let spread = (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n).sqrt();
    (mean, spread.max(1e-9))
}

/// What a normal variable is expected to fall below the best.
fn expected_improvement(gap: f32, deviation: f32) -> f32 {
    let z = gap / deviation;
    let density = (-0.5 * z * z).exp() * 0.398_942_3;
    deviation * (z * normal(z) + density)
}

/// The distribution function of the normal distribution, to 1e-4 (Hastings).
fn normal(z: f32) -> f32 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let series = t * (0.319_381_53 + t * (-0.356_563_78 + t * (1.781_477_9 + t * (-1.821_255_9 + t * 1.330_274_4))));
    let tail = 0.398_942_3 * (-0.5 * z * z).exp() * series;
    if z > 0.0 { 1.0 - tail } else { tail }
}

impl Chooser for Guided {
    fn choose(&mut self, history: &mut ListedHistory, rng: &mut ChaCha8Rng) -> Option<u32> {
        let first = if self.warm.is_empty() { FIRST } else { FIRST_WARM };
        if self.told.len() + self.pending.len() < first || self.axes.is_empty() || !self.best.is_finite() {
            let number = self.opening(history, rng)?;
            self.pending.insert(number);
            return Some(number);
        }
        let full = self.process.as_ref().is_none_or(|p| !p.has_room() || p.pool.is_empty());
        if full || self.told.len() >= self.next_fit {
            self.refit(history, rng);
        }
        let chosen = self.improvement().or_else(|| history.unknown(rng))?;
        if let Some(process) = &mut self.process {
            process.dismiss(|n| n == chosen);
            process.observe(&history.listing, chosen);
        }
        self.pending.insert(chosen);
        Some(chosen)
    }

    fn learn(&mut self, history: &ListedHistory, number: u32, cost: f64, _: &mut ChaCha8Rng) {
        let asked = self.pending.remove(&number);
        self.progress.see(cost);
        self.told.push((number, cost.ln()));
        let Some(process) = &mut self.process else {
            self.best = self.best.min(cost.ln());
            return;
        };
        if !asked && process.has_room() {
            process.dismiss(|n| n == number);
            process.observe(&history.listing, number);
        }
        if cost.ln() < self.best {
            self.best = cost.ln();
            for n in Neighbourhood::of(&*history.listing).within(history.listing.indices(number), Reach::Single) {
                if !history.knows(n) && !process.pool.contains(&n) {
                    process.admit(&history.listing, n);
                }
            }
        }
    }

    fn bound(&self, history: &ListedHistory) -> Option<f64> {
        Some(if self.told.len() >= history.listing.len() { 0.0 } else { self.progress.bound() })
    }

    fn done(&mut self, _: &ListedHistory) -> bool {
        self.ends_at.is_some_and(|alpha| self.progress.bound() < alpha)
    }
}
