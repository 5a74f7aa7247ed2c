//! How selectors are judged: fitted on one side of a split, scored and timed on the other, device by device.

use crate::evaluate::{Auto, spread};
use crate::guard::guarded;
use serde::Serialize;
use std::hint::black_box;
use std::time::Instant;
use tilewright_core::choice::{Case, ChoiceSet, FitSelector, SelectError};
use tilewright_core::metrics::ChoiceScores;
use tilewright_core::selector::{Candidate, Selector, VariantOrder};

/// What is fitted.
pub enum Method {
    /// The best of the recommended ones by cross-validation.
    Auto(Auto),
    /// One by its name.
    Named(String, Box<dyn FitSelector>),
}

impl Method {
    /// The fitted selector, behind a guard that puts last what failed on inputs alike, and what it is: what `auto` took.
    ///
    /// # Errors
    /// As the method's.
    pub fn fit(&self, data: &ChoiceSet, seed: u64) -> Result<(String, Box<dyn Selector>), SelectError> {
        let (name, selector) = match self {
            Self::Auto(auto) => auto.choose(data, seed)?,
            Self::Named(name, fit) => (name.clone(), fit.fit(data, seed)?),
        };
        Ok((name, guarded(selector, data, seed)))
    }
}

/// One device's share of a split, judged.
pub struct Judged {
    /// The device.
    pub device: String,
    /// Scores on what was held out.
    pub scores: ChoiceScores,
    /// What was fitted.
    pub chosen: String,
    /// Seconds of fitting.
    pub fit_s: f64,
    /// The selector.
    pub selector: Box<dyn Selector>,
    /// What was held out.
    pub held_out: ChoiceSet,
}

/// Fits on `train` and scores on `held_out`; none where nothing of it ran.
///
/// # Errors
/// As the method's.
pub fn judge(
    method: &Method,
    device: &str,
    (train, held_out): (&ChoiceSet, ChoiceSet),
    seed: u64,
) -> Result<Option<Judged>, SelectError> {
    let start = Instant::now();
    let (chosen, selector) = method.fit(train, seed)?;
    let fit_s = start.elapsed().as_secs_f64();
    let scores = ChoiceScores::of(&*selector, &held_out);
    Ok(scores.map(|scores| Judged { device: device.to_owned(), scores, chosen, fit_s, selector, held_out }))
}

/// Passes over the held-out inputs, and how many of these in a row are timed together: of each such run the fastest pass counts,
/// whatever else the machine does meanwhile.
const PASSES: usize = 7;
const UNDISTURBED: usize = 32;

/// Inputs that are chosen for with cold caches.
const COLD: usize = 100;

/// More than the caches of a core hold.
const EVICTED: usize = 16 << 20;

impl Judged {
    /// Nanoseconds of one choice, features at hand, where another input was chosen for just before: all held-out inputs in turn.
    pub fn choice_ns(&self) -> f64 {
        let inputs: Vec<(&Case, Vec<Candidate>)> = self.held_out.cases().iter().map(with_candidates).collect();
        let mut order = VariantOrder::new();
        let mut pass = |some: &[(&Case, Vec<Candidate>)]| {
            let start = Instant::now();
            for (case, candidates) in some {
                self.selector.rank(black_box(&case.features), candidates, &mut order);
                black_box(&order);
            }
            start.elapsed().as_secs_f64()
        };
        let mut fastest = vec![f64::INFINITY; inputs.len().div_ceil(UNDISTURBED)];
        for _ in 0..PASSES {
            let some = inputs.chunks(UNDISTURBED);
            fastest.iter_mut().zip(some).for_each(|(least, some)| *least = least.min(pass(some)));
        }
        1e9 * fastest.iter().sum::<f64>() / inputs.len().max(1) as f64
    }

    /// The same where the program did other work since: other memory was written before each choice. The median of some inputs.
    pub fn cold_choice_ns(&self) -> f64 {
        let cases = self.held_out.cases();
        let some = spread(cases.len(), COLD).into_iter().map(|i| with_candidates(&cases[i]));
        let (mut order, mut other) = (VariantOrder::new(), vec![0u8; EVICTED]);
        let mut times: Vec<f64> = some
            .map(|(case, candidates)| {
                other.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(1));
                black_box(&other);
                let start = Instant::now();
                self.selector.rank(black_box(&case.features), &candidates, &mut order);
                black_box(&order);
                start.elapsed().as_secs_f64() * 1e9
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

fn with_candidates(case: &Case) -> (&Case, Vec<Candidate>) {
    (case, case.trials.iter().map(|trial| trial.candidate.clone()).collect())
}

/// Scores of one device.
#[derive(Clone, Debug, Serialize)]
pub struct OfDevice {
    /// The device.
    pub device: String,
    /// The mean over its splits.
    #[serde(flatten)]
    pub scores: ChoiceScores,
    /// Nanoseconds of one choice, by the last split.
    pub predict_ns: f64,
    /// The same with cold caches.
    pub predict_cold_ns: f64,
}

/// The mean over devices, each weighing the same.
#[derive(Clone, Debug, Serialize)]
pub struct Evaluation {
    /// The mean over devices.
    #[serde(flatten)]
    pub scores: ChoiceScores,
    /// One choice: ranking all candidates of an input whose features are at hand, the held-out inputs in turn.
    pub predict_ns: f64,
    /// The same where other memory was written before each choice.
    pub predict_cold_ns: f64,
    /// Seconds of the first fit, which is to be alone: fits that share the machine take longer.
    pub fit_s: f64,
    /// What was fitted, with how often.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chosen: Vec<(String, usize)>,
    /// By device, in the order of their names; empty where there is only one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<OfDevice>,
}

impl Evaluation {
    /// Sums up judged splits, and times choices: alone and after all fits, so that nothing disturbs the clock. None of none.
    pub fn of(judged: &[Judged]) -> Option<Self> {
        let mut names: Vec<&str> = judged.iter().map(|j| j.device.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let of_device = |name: &&str| {
            let own: Vec<&Judged> = judged.iter().filter(|j| j.device == **name).collect();
            let scores: Vec<ChoiceScores> = own.iter().map(|j| j.scores).collect();
            let (predict_ns, predict_cold_ns) = (own.last()?.choice_ns(), own.last()?.cold_choice_ns());
            let scores = ChoiceScores::mean(&scores)?;
            Some(OfDevice { device: (*name).to_owned(), scores, predict_ns, predict_cold_ns })
        };
        let devices: Vec<OfDevice> = names.iter().filter_map(of_device).collect();
        let mut chosen: Vec<(String, usize)> = Vec::new();
        for j in judged {
            match chosen.iter_mut().find(|(name, _)| *name == j.chosen) {
                Some((_, times)) => *times += 1,
                None => chosen.push((j.chosen.clone(), 1)),
            }
        }
        let scores: Vec<ChoiceScores> = devices.iter().map(|d| d.scores).collect();
        let mean = |of: &dyn Fn(&OfDevice) -> f64| devices.iter().map(of).sum::<f64>() / devices.len() as f64;
        Some(Self {
            scores: ChoiceScores::mean(&scores)?,
            predict_ns: mean(&|d| d.predict_ns),
            predict_cold_ns: mean(&|d| d.predict_cold_ns),
            fit_s: judged.first()?.fit_s,
            chosen,
            devices: if devices.len() > 1 { devices } else { Vec::new() },
        })
    }
}
