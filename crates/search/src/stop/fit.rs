//! Learns from recorded spaces what a suspicion is worth.

use super::learned::{Tail, suspicion};
use super::sample::Sample;
use crate::strategy::FEWEST;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Random searches of each space.
const SEARCHES: u64 = 200;
/// The chances of a miss for which a suspicion is learned.
const CHANCES: [f64; 7] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5];
/// Least deviation between spaces, in chances of a miss, whatever the spaces at hand say.
const UNLIKE: f64 = 0.5;
/// Points with a cost that a space needs.
const POINTS: usize = 100;

/// Nothing to learn from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a tail needs at least {need} spaces of {points} points or more with a cost, {have} were given")]
pub struct FitTailError {
    /// Spaces that are needed.
    pub need: usize,
    /// Points that a space needs.
    pub points: usize,
    /// Spaces that were usable.
    pub have: usize,
}

/// Fits a tail on the costs of other spaces, infinite for failures: every space counts the same, whatever its size.
///
/// Random searches of every space are gone through as a searcher would. A search that ends at a suspicion has missed if it
/// was as little suspicious before it came within `epsilon` of the optimum; so one number a search, the least suspicion
/// before that, says at which suspicions it misses. A chance of a miss is granted at the highest suspicion at which the mean
/// share of missing searches, over spaces that are draws from what there is, lies below it with 95% confidence (Student).
///
/// # Errors
/// Fewer than 2 spaces with 100 points of finite cost.
pub fn fit_tail(spaces: &[Vec<f64>], epsilon: f64, seed: u64) -> Result<Tail, FitTailError> {
    let usable: Vec<&Vec<f64>> =
        spaces.iter().filter(|s| s.iter().filter(|c| c.is_finite()).count() >= POINTS).collect();
    if usable.len() < 2 {
        return Err(FitTailError { need: 2, points: POINTS, have: usable.len() });
    }
    let of_space = |(i, costs): (usize, &&Vec<f64>)| -> Vec<f64> {
        let mut least: Vec<f64> =
            (0..SEARCHES).map(|s| least_suspicion(costs, epsilon, seed ^ (i as u64) << 32 ^ s)).collect();
        least.sort_unstable_by(f64::total_cmp);
        least
    };
    let least: Vec<Vec<f64>> = usable.par_iter().enumerate().map(of_space).collect();
    let mut chances: Vec<(f64, f64)> = Vec::new();
    for chance in CHANCES {
        // Equal suspicions are worth the greater chance.
        match granted(&least, chance) {
            Some(s) if chances.last().is_none_or(|(_, before)| s > *before) => chances.push((chance, s)),
            Some(_) => chances.last_mut().into_iter().for_each(|last| last.0 = chance),
            None => {}
        }
    }
    Ok(Tail { epsilon, chances })
}

/// The least suspicion that one random search had before it came within epsilon of the optimum; infinite if it did so at
/// once.
fn least_suspicion(costs: &[f64], epsilon: f64, seed: u64) -> f64 {
    let optimum = costs.iter().copied().fold(f64::INFINITY, f64::min).ln();
    let mut order: Vec<f64> = costs.to_vec();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let mut sample = Sample::new(costs.len(), epsilon);
    let mut least = f64::INFINITY;
    for cost in order {
        sample.see(cost);
        if sample.best() - optimum <= sample.width() {
            break;
        }
        if sample.best().is_finite() && sample.seen() >= FEWEST {
            least = least.min(suspicion(&sample));
        }
    }
    least
}

/// The highest suspicion up to which searches miss no more often than a chance says; none if there is none.
fn granted(least: &[Vec<f64>], chance: f64) -> Option<f64> {
    let mut candidates: Vec<f64> = least.iter().flatten().copied().filter(|s| s.is_finite()).collect();
    candidates.sort_unstable_by(f64::total_cmp);
    candidates.dedup();
    let kept = |suspicion: f64| {
        let missed = |s: &Vec<f64>| s.partition_point(|l| *l < suspicion) as f64 / s.len() as f64;
        confident(&least.iter().map(missed).collect::<Vec<f64>>(), UNLIKE * chance) <= chance
    };
    // Nobody misses at the first, and shares grow from there.
    let broken = candidates.partition_point(|s| kept(*s));
    broken.checked_sub(1).map(|last| candidates[last])
}

/// What the mean is below, with 95% confidence, if the values deviate by `least` or more.
fn confident(values: &[f64], least: f64) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
    mean + student(values.len() - 1) * variance.sqrt().max(least) / n.sqrt()
}

/// The quantile at 95% of Student's distribution: from tables, and beyond by its expansion, right to 1%.
fn student(freedom: usize) -> f64 {
    match freedom {
        0 => f64::INFINITY,
        1 => 6.314,
        2 => 2.920,
        3 => 2.353,
        _ => {
            let (z, n) = (1.6449_f64, freedom as f64);
            let (z3, z5) = (z.powi(3), z.powi(5));
            z + (z3 + z) / (4.0 * n) + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * n * n)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Costs whose counts grow with a power of the distance to the optimum.
    fn space(count: u32, power: f64) -> Vec<f64> {
        (0..count).map(|i| 1.0 + 0.5 * ((f64::from(i) + 0.5) / f64::from(count)).powf(1.0 / power)).collect()
    }

    fn searches(tail: &Tail, costs: &[f64], alpha: f64) -> (f64, f64) {
        let (mut missed, mut looked) = (0.0, 0.0);
        for seed in 0..100 {
            let mut order = costs.to_vec();
            order.shuffle(&mut ChaCha8Rng::seed_from_u64(1000 + seed));
            let mut sample = Sample::new(order.len(), 0.05);
            for cost in order {
                sample.see(cost);
                if tail.miss(&sample) < alpha {
                    break;
                }
            }
            missed += f64::from(u8::from(sample.best() - costs[0].ln() > sample.width())) / 100.0;
            looked += sample.share() / 100.0;
        }
        (missed, looked)
    }

    #[test]
    fn a_tail_learned_elsewhere_keeps_its_promise_on_spaces_of_the_kind() {
        let train: Vec<Vec<f64>> = [1.5, 2.0, 2.5, 3.0].map(|p| space(2000, p)).to_vec();
        let tail = fit_tail(&train, 0.05, 1).unwrap();
        let (missed, looked) = searches(&tail, &space(3000, 2.2), 0.1);
        assert!(missed <= 0.2, "{missed} missed");
        assert!(looked < 0.5, "{looked} looked at");
        // More is asked for a firmer promise, and less where more is as good as the best.
        let (_, firmer) = searches(&tail, &space(3000, 2.2), 0.02);
        let (_, flat) = searches(&tail, &space(3000, 1.2), 0.1);
        assert!(firmer > looked && flat < looked, "{firmer} {looked} {flat}");
    }

    #[test]
    fn lone_optima_elsewhere_make_it_careful() {
        let smooth: Vec<Vec<f64>> = [1.5, 2.0, 2.5, 3.0].map(|p| space(1000, p)).to_vec();
        let mut lone = smooth.clone();
        lone.iter_mut().take(2).for_each(|s| s[0] *= 0.9);
        let looked = |train: &[Vec<f64>]| searches(&fit_tail(train, 0.05, 1).unwrap(), &space(1000, 2.2), 0.1).1;
        assert!(looked(&lone) > looked(&smooth) + 0.1);
    }

    #[test]
    fn too_few_spaces_are_refused() {
        let error = fit_tail(&[space(200, 2.0), vec![f64::INFINITY; 500]], 0.05, 1).unwrap_err();
        assert_eq!(error.have, 1);
    }

    #[test]
    fn quantiles_are_those_of_tables() {
        for (freedom, expected) in [(1, 6.314), (4, 2.132), (10, 1.812), (30, 1.697), (1000, 1.646)] {
            assert!((student(freedom) / expected - 1.0).abs() < 0.01, "{freedom}");
        }
    }
}
