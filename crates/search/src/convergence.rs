//! How repeated runs come closer to the optimum.

use crate::drive::Trace;

/// Places of a curve at most.
const PLACES: u32 = 120;

/// What repeated runs have found after so many evaluations, as fractions of the optimum: its cost over the best found, 0 where
/// nothing was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Convergence {
    /// Evaluations of each run.
    pub evaluations: u64,
    /// The mean over runs.
    pub mean: f64,
    /// The 10th percentile.
    pub low: f64,
    /// The 90th percentile.
    pub high: f64,
}

/// The curve of these runs at numbers of evaluations that are even on a logarithmic scale. Empty without runs.
pub fn convergence(traces: &[Trace], optimum: f64) -> Vec<Convergence> {
    let Some(longest) = traces.iter().map(|t| t.evaluations).max() else { return Vec::new() };
    let longest = longest.max(2) as f64;
    let place = |step: u32| longest.powf(f64::from(step) / f64::from(PLACES)).round() as u64;
    let mut places: Vec<u64> = (0..=PLACES).map(place).collect();
    places.dedup();
    let at = |evaluations: u64| {
        let fraction = |t: &Trace| t.best_after(evaluations).map_or(0.0, |cost| optimum / cost);
        let mut all: Vec<f64> = traces.iter().map(fraction).collect();
        all.sort_by(f64::total_cmp);
        let quantile = |share: f64| all[((all.len() - 1) as f64 * share).round() as usize];
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        Convergence { evaluations, mean, low: quantile(0.1), high: quantile(0.9) }
    };
    places.into_iter().map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::Step;

    fn trace(steps: &[(u64, f64)], evaluations: u64) -> Trace {
        let steps = steps.iter().map(|&(evaluations, cost)| Step { evaluations, seconds: 0.0, cost }).collect();
        Trace { steps, evaluations, ..Trace::empty() }
    }

    #[test]
    fn curves_rise_from_nothing_to_what_was_found() {
        let traces = [trace(&[(1, 4.0), (50, 2.0)], 100), trace(&[(10, 2.5)], 100)];
        let curve = convergence(&traces, 2.0);
        let (first, last) = (curve[0], curve[curve.len() - 1]);
        assert_eq!((first.evaluations, first.mean, first.low, first.high), (1, 0.25, 0.0, 0.5));
        assert_eq!((last.evaluations, last.mean, last.low, last.high), (100, 0.9, 0.8, 1.0));
        assert!(curve.is_sorted_by(|a, b| a.evaluations < b.evaluations && a.mean <= b.mean));
        assert!(convergence(&[], 1.0).is_empty());
    }
}
