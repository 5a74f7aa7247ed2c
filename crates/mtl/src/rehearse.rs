//! Which view of devices transfers, by rehearsal: an improved Algorithm 2.
//!
//! Algorithm 2 counts which features are in the best subset of each source; with few sources most subsets tie, and their count says
//! little. Here a few views compete as wholes by their mean performance over all sources, and one that is simpler wins a tie.

use crate::error::MtlError;
use crate::score::Score;
use crate::sources::Sources;
use crate::view::{OnDevice, View};
use rayon::prelude::*;
use serde::Serialize;
use tilewright_core::choice::FitSelector;
use tilewright_core::space::Config;

/// What a view must gain over a simpler one, in fraction of the oracle.
const MARGIN: f64 = 0.002;

/// Most cases of a device that views are compared on.
const CASES: usize = 800;

/// How the views did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rehearsal {
    /// The chosen view.
    pub chosen: &'static str,
    /// Every view with its mean fraction of the oracle's performance over the sources as targets; empty where there was
    /// nothing to compare.
    pub views: Vec<(&'static str, f64)>,
}

/// The views, the simple ones first.
fn views(sources: &Sources, target: &Config, all: &[String]) -> Result<Vec<(&'static str, View)>, MtlError> {
    let named = View::concatenated(sources, all)?;
    Ok(vec![
        ("blind", View::blind()),
        ("ratios", View::blind().with_ratios(sources, target)),
        ("features", named.clone()),
        ("features and ratios", named.with_ratios(sources, target)),
    ])
}

/// The view for a target by rehearsals with each source in its place, and how all views did. Only features that the target has
/// and every source count.
///
/// # Errors
/// A target without a single feature that all sources have, a learner that fails.
pub fn rehearse(
    sources: &Sources,
    target: (&str, &Config),
    learner: &dyn FitSelector,
    seed: u64,
) -> Result<(View, Rehearsal), MtlError> {
    let everywhere = |name: &String| {
        target.1.get(name).is_some() && sources.all().iter().all(|s| s.features.get(name).is_some())
    };
    let all = sources.features();
    let shared: Vec<String> = all.iter().filter(|name| everywhere(name)).cloned().collect();
    if let (true, Some(first)) = (shared.is_empty(), all.first()) {
        return Err(MtlError::MissingFeature { device: target.0.to_owned(), feature: first.clone() });
    }
    let mut full = views(sources, target.1, &shared)?;
    let count = sources.all().len();
    if count < 2 {
        // One source: nothing tells how devices differ.
        let (chosen, view) = full.swap_remove(0);
        return Ok((view, Rehearsal { chosen, views: Vec::new() }));
    }
    let thinned = sources.thinned(CASES);
    let jobs: Vec<(usize, usize)> = (0..full.len()).flat_map(|v| (0..count).map(move |s| (v, s))).collect();
    let score = |&(view, at): &(usize, usize)| -> Result<f64, MtlError> {
        let (target, rest) = (&thinned.all()[at], thinned.without(at)?);
        let view = views(&rest, &target.features, &shared)?.swap_remove(view).1;
        let values = view.values(&target.device, &target.features)?;
        let selector = OnDevice { inner: learner.fit(&view.pool(&rest)?, seed)?, values };
        Ok(Score::of(&selector, &target.cases).fraction_of_oracle)
    };
    let scores = jobs.par_iter().map(score).collect::<Result<Vec<f64>, MtlError>>()?;
    let means: Vec<f64> = scores.chunks(count).map(|s| s.iter().sum::<f64>() / count as f64).collect();
    let mut best = 0;
    for (i, mean) in means.iter().enumerate() {
        if *mean > means[best] + MARGIN {
            best = i;
        }
    }
    let views = full.iter().map(|(name, _)| *name).zip(means).collect();
    let (chosen, view) = full.swap_remove(best);
    Ok((view, Rehearsal { chosen, views }))
}
