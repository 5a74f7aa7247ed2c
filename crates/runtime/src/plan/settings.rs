//! How a plan is decided.

use super::asked::Asked;
use crate::error::RuntimeError;
use crate::knowledge::Ranking;
use crate::paired::PairedSettings;
use crate::verify::VerifySettings;
use std::sync::Arc;
use std::time::Duration;
use tilewright_core::measurement::Timing;
use tilewright_core::objective::Objective;
use tilewright_search::stop::Tolerance;
use tilewright_search::{Choice, Experience, Strategy};

/// How a plan is decided.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanSettings {
    /// What the model is asked about.
    pub ranking: Ranking,
    /// What the model came from, for the answer; the kind of the model says it unless given.
    pub knowledge: Option<&'static str>,
    /// What is known, as part of a sentence of the reason; empty to say nothing of it.
    pub known: String,
    /// How many of the model's best are timed. Zero times nothing: the model's first choice is taken, or the default.
    pub top: usize,
    /// Of two configurations that nobody timed, the model's is taken where it expects less than this share of the default's time: the
    /// first of very many is more often one that the model takes for too fast than the default is. Less than its square where the model was
    /// fitted on too few inputs like this one, and never where it was fitted on none.
    pub worth_leaving: f64,
    /// What searches by measuring, beginning from the model's best or, without a model, from the default.
    pub strategy: Choice,
    /// Ends a strategy that makes a promise once its bound on the probability of a miss is no more than alpha.
    pub tolerance: Option<Tolerance>,
    /// What earlier searches and other devices say of this space.
    pub warm: Arc<Experience>,
    /// Time that the strategy has beside a model; zero to leave it.
    pub refine: Duration,
    /// Time that the strategy has where there is no model.
    pub budget: Duration,
    /// How a configuration is timed.
    pub timing: Timing,
    /// How the best are compared with each other, and which of them count as equal. Among equals [`super::TIE_ORDER`] chooses, and
    /// among kernels [`super::KERNEL_TIE_ORDER`]; see the module.
    pub paired: PairedSettings,
    /// Configurations that run this many times longer than the best so far are cut off.
    pub cut_off: f64,
    /// Configurations that run this many times longer than the best so far are run once only.
    pub rough: f64,
    /// What results are checked on.
    pub verify: VerifySettings,
    /// What is optimised.
    pub objective: Objective,
    /// Seed of everything that is drawn.
    pub seed: u64,
    /// What an answer of the cache must live up to; one that does not is looked for again, the remembered configuration among
    /// the candidates.
    pub asked: Asked,
    /// Plan anew even if the cache has an answer, and replace it.
    pub ignore_cached: bool,
    /// Whether an answer is remembered.
    pub remember: bool,
}

impl Default for PlanSettings {
    fn default() -> Self {
        Self {
            ranking: Ranking::default(),
            knowledge: None,
            known: String::new(),
            top: 20,
            worth_leaving: 0.9,
            strategy: Strategy::Refine.into(),
            tolerance: None,
            warm: Arc::default(),
            refine: Duration::from_millis(500),
            budget: Duration::from_secs(10),
            timing: Timing {
                min_repeats: 1,
                max_repeats: 10,
                max_time: Duration::from_millis(30),
                ..Timing::default()
            },
            paired: PairedSettings::default(),
            cut_off: 3.0,
            rough: 1.05,
            verify: VerifySettings::default(),
            objective: Objective::default(),
            seed: 0,
            asked: Asked::default(),
            ignore_cached: false,
            remember: true,
        }
    }
}

impl PlanSettings {
    /// Refuses limits that are none, and a tolerance that the strategy does not promise to keep.
    pub(super) fn check(&self) -> Result<(), RuntimeError> {
        for (field, limit) in [("cut_off", self.cut_off), ("rough", self.rough)] {
            if limit.is_nan() || limit <= 0.0 {
                let message = format!("{limit} is no multiple of the best time; it is above 0, infinite for no limit");
                return Err(RuntimeError::Setting { field, message });
            }
        }
        if self.tolerance.is_none() || self.strategy.known().is_none_or(Strategy::promises) {
            return Ok(());
        }
        let name = self.strategy.name();
        let known: Vec<&str> = Strategy::ALL.into_iter().filter(|s| s.promises()).map(Strategy::name).collect();
        let message = format!("strategy {name} makes no promise that it could end by; {} do", known.join(", "));
        Err(RuntimeError::Setting { field: "epsilon", message })
    }
}
