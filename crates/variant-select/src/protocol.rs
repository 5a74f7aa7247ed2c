//! How selectors are judged: fitted on one side of a split, scored and timed on the other, device by device.

use crate::evaluate::Auto;
use crate::guard::guarded;
use serde::Serialize;
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

impl Judged {
    /// Nanoseconds of one choice, features at hand: for each held-out case the best of seven, each a few choices long so that the
    /// clock is fine enough; the mean over cases. Whole passes would also time whatever else the machine does.
    pub fn choice_ns(&self) -> f64 {
        const CHOICES: u32 = 8;
        let candidates = |c: &Case| c.trials.iter().map(|t| t.candidate.clone()).collect::<Vec<Candidate>>();
        let mut order = VariantOrder::new();
        let mut once = |features: &[f32], candidates: &[Candidate]| {
            let start = Instant::now();
            for _ in 0..CHOICES {
                self.selector.rank(std::hint::black_box(features), candidates, &mut order);
                std::hint::black_box(&order);
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(CHOICES)
        };
        let mut best = |case: &Case| {
            let candidates = candidates(case);
            (0..7).map(|_| once(&case.features, &candidates)).fold(f64::INFINITY, f64::min)
        };
        self.held_out.cases().iter().map(&mut best).sum::<f64>() / self.held_out.len() as f64
    }
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
}

/// The mean over devices, each weighing the same.
#[derive(Clone, Debug, Serialize)]
pub struct Evaluation {
    /// The mean over devices.
    #[serde(flatten)]
    pub scores: ChoiceScores,
    /// One choice: ranking all candidates of an input whose features are at hand, mean over the held-out inputs.
    pub predict_ns: f64,
    /// Seconds of one fit.
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
            let predict_ns = own.last()?.choice_ns();
            Some(OfDevice { device: (*name).to_owned(), scores: ChoiceScores::mean(&scores)?, predict_ns })
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
        Some(Self {
            scores: ChoiceScores::mean(&scores)?,
            predict_ns: devices.iter().map(|d| d.predict_ns).sum::<f64>() / devices.len() as f64,
            fit_s: judged.iter().map(|j| j.fit_s).sum::<f64>() / judged.len() as f64,
            chosen,
            devices: if devices.len() > 1 { devices } else { Vec::new() },
        })
    }
}
