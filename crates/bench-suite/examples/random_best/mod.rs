//! The best few of a long random search: what a choice is compared with.

pub(crate) mod outcome;

use outcome::outcome;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;
use std::error::Error;
use std::time::Duration;
use tilewright_core::measurement::Timing;
use tilewright_core::problem::{Measure, Problem};
use tilewright_core::space::Point;
use tilewright_runtime::plan::PlanSettings;
use tilewright_sampler::{Exact, Sampler};

/// How many meet the choice again: the first by one noisy time need not be the best.
const FINALISTS: usize = 8;

/// Draws legal points uniformly, times them as a plan times its candidates, and gives the best few with their times in seconds,
/// best first.
pub(crate) fn random_best(
    problem: &dyn Problem,
    measure: &mut dyn Measure,
    samples: usize,
    seed: u64,
) -> Result<Vec<(f64, Point)>, Box<dyn Error>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut sampler = Exact::new();
    let (mut best, mut known) = (Vec::<(f64, Point)>::new(), HashSet::new());
    for _ in 0..samples {
        let point = sampler.draw(problem.space(), &mut rng)?.point;
        // Small spaces are drawn from many times over.
        if !known.insert(point.clone()) {
            continue;
        }
        let least = best.first().map(|b| Duration::from_secs_f64(b.0));
        let settings = PlanSettings::default();
        let policy = Timing {
            cut_off: least.map(|t| t.mul_f64(settings.cut_off)),
            rough_beyond: least.map(|t| t.mul_f64(settings.rough)),
            ..settings.timing
        };
        if let Ok(measurement) = outcome(measure, problem, &point, &policy)? {
            best.push((measurement.time_s, point));
            best.sort_by(|a, b| a.0.total_cmp(&b.0));
            best.dedup_by(|a, b| a.1 == b.1);
            best.truncate(FINALISTS);
        }
    }
    Ok(best)
}
