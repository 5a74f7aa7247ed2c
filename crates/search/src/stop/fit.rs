//! Learns the tail relation from recorded spaces.

use super::learned::{FEATURES, Tail, features};
use super::sample::Sample;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Random searches of each space.
const SEARCHES: u64 = 60;
/// Moments of a search that are learned from, evenly in log odds of having looked.
const MOMENTS: usize = 24;
/// Share of the space at the first moment.
const FIRST: f64 = 0.002;
/// How firmly the prior of each weight is held, in moments; one space weighs as much as `MOMENTS` of them. What the counts
/// say differs most between spaces, and is believed least.
const FIRMNESS: [f64; FEATURES] = [4.0, 1.0, 100.0, 100.0, 100.0, 100.0];
/// Newton's method is done in far fewer.
const STEPS: usize = 50;
/// How many standard deviations harder than the mean a space may be for the bound to hold: one in six is harder.
const CAUTION: f64 = 1.0;
/// Halvings of a step that does not help.
const HALVINGS: i32 = 30;
/// The weights that know nothing of the tail: the odds are those of not having looked.
const UNINFORMED: [f64; FEATURES] = [0.0, 1.0, 0.0, 0.0, 0.0, 0.0];

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

struct Moment {
    features: [f64; FEATURES],
    missed: bool,
    weight: f64,
}

impl Moment {
    /// Log odds of a miss.
    fn odds(&self, weights: &[f64; FEATURES]) -> f64 {
        weights.iter().zip(&self.features).map(|(w, x)| w * x).sum()
    }
}

/// Fits a tail on the costs of other spaces, infinite for failures: every space counts the same, whatever its size.
///
/// # Errors
/// Fewer than 2 spaces with 100 points of finite cost.
pub fn fit_tail(spaces: &[Vec<f64>], epsilon: f64, seed: u64) -> Result<Tail, FitTailError> {
    const POINTS: usize = 100;
    let usable: Vec<&Vec<f64>> =
        spaces.iter().filter(|s| s.iter().filter(|c| c.is_finite()).count() >= POINTS).collect();
    if usable.len() < 2 {
        return Err(FitTailError { need: 2, points: POINTS, have: usable.len() });
    }
    let of_space = |(i, costs): (usize, &&Vec<f64>)| -> Vec<Moment> {
        (0..SEARCHES).flat_map(|s| moments(costs, epsilon, seed ^ (i as u64) << 32 ^ s)).collect()
    };
    let by_space: Vec<Vec<Moment>> = usable.par_iter().enumerate().map(of_space).collect();
    let all: Vec<&Moment> = by_space.iter().flatten().collect();
    let mut weights = regress(&all);
    // A promise is kept to the space at hand and not to the average one.
    weights[0] += CAUTION * spread(&by_space, &weights);
    Ok(Tail { weights })
}

/// How much harder or easier single spaces are than the weights say: the standard deviation of the constant that would suit
/// each of them.
fn spread(by_space: &[Vec<Moment>], weights: &[f64; FEATURES]) -> f64 {
    let constant = |moments: &Vec<Moment>| {
        let mut shifted = *weights;
        for _ in 0..STEPS {
            let (mut gradient, mut curvature) = (weights[0] - shifted[0], 1.0);
            for m in moments {
                let p = 1.0 / (1.0 + (-m.odds(&shifted)).exp());
                gradient += m.weight * (f64::from(u8::from(m.missed)) - p);
                curvature += m.weight * p * (1.0 - p);
            }
            shifted[0] += (gradient / curvature).clamp(-1.0, 1.0);
        }
        shifted[0] - weights[0]
    };
    let shifts: Vec<f64> = by_space.iter().map(constant).collect();
    (shifts.iter().map(|s| s * s).sum::<f64>() / shifts.len() as f64).sqrt()
}

/// The moments of one random search.
fn moments(costs: &[f64], epsilon: f64, seed: u64) -> Vec<Moment> {
    let optimum = costs.iter().copied().fold(f64::INFINITY, f64::min).ln();
    let mut order: Vec<f64> = costs.to_vec();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let (low, high) = (logit(FIRST), -logit(FIRST));
    let moment = |i: usize| {
        let share = 1.0 / (1.0 + (-(low + (high - low) * i as f64 / (MOMENTS - 1) as f64)).exp());
        ((share * costs.len() as f64) as usize).clamp(1, costs.len() - 1)
    };
    let mut sample = Sample::new(costs.len(), epsilon);
    let (mut out, mut next) = (Vec::with_capacity(MOMENTS), 0);
    for cost in order {
        sample.see(cost);
        while next < MOMENTS && moment(next) <= sample.seen() {
            next += 1;
            if sample.best().is_finite() && moment(next - 1) == sample.seen() {
                let missed = sample.best() - optimum > sample.width();
                let weight = 1.0 / SEARCHES as f64;
                out.push(Moment { features: features(&sample), missed, weight });
            }
        }
    }
    out
}

fn logit(p: f64) -> f64 {
    (p / (1.0 - p)).ln()
}

/// Logistic regression by Newton's method with halved steps, with a Gaussian prior around the formula that knows nothing of
/// the tail.
fn regress(moments: &[&Moment]) -> [f64; FEATURES] {
    let mut weights = UNINFORMED;
    let mut best = loss(moments, &weights);
    for _ in 0..STEPS {
        let mut gradient: [f64; FEATURES] = std::array::from_fn(|i| FIRMNESS[i] * (UNINFORMED[i] - weights[i]));
        let mut hessian = [[0.0; FEATURES]; FEATURES];
        (0..FEATURES).for_each(|i| hessian[i][i] = FIRMNESS[i]);
        for m in moments {
            let p = 1.0 / (1.0 + (-m.odds(&weights)).exp());
            for i in 0..FEATURES {
                gradient[i] += m.weight * (f64::from(u8::from(m.missed)) - p) * m.features[i];
                let scale = m.weight * p * (1.0 - p) * m.features[i];
                hessian[i].iter_mut().zip(m.features).for_each(|(h, x)| *h += scale * x);
            }
        }
        let step = solve(hessian, gradient);
        let better = (0..HALVINGS).find_map(|halving| {
            let length = 0.5_f64.powi(halving);
            let there: [f64; FEATURES] = std::array::from_fn(|i| weights[i] + length * step[i]);
            let found = loss(moments, &there);
            (found < best - 1e-10 * best.abs()).then_some((there, found))
        });
        let Some((there, found)) = better else { break };
        (weights, best) = (there, found);
    }
    weights
}

/// What the regression minimises: the negative log posterior.
fn loss(moments: &[&Moment], weights: &[f64; FEATURES]) -> f64 {
    let prior: f64 = (0..FEATURES).map(|i| 0.5 * FIRMNESS[i] * (weights[i] - UNINFORMED[i]).powi(2)).sum();
    let likelihood = moments.iter().map(|m| {
        let odds = if m.missed { -m.odds(weights) } else { m.odds(weights) };
        // ln(1 + e^odds) without overflow.
        m.weight * (odds.max(0.0) + (-odds.abs()).exp().ln_1p())
    });
    prior + likelihood.sum::<f64>()
}

/// Solves a positive definite system by elimination.
fn solve(mut a: [[f64; FEATURES]; FEATURES], mut b: [f64; FEATURES]) -> [f64; FEATURES] {
    for i in 0..FEATURES {
        for j in i + 1..FEATURES {
            let (factor, pivot) = (a[j][i] / a[i][i], a[i]);
            a[j].iter_mut().zip(pivot).skip(i).for_each(|(x, p)| *x -= factor * p);
            b[j] -= factor * b[i];
        }
    }
    for i in (0..FEATURES).rev() {
        let known: f64 = (i + 1..FEATURES).map(|k| a[i][k] * b[k]).sum();
        b[i] = (b[i] - known) / a[i][i];
    }
    b
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Costs whose counts grow with a power of the distance to the optimum.
    fn space(count: u32, power: f64) -> Vec<f64> {
        (0..count).map(|i| 1.0 + 0.5 * ((f64::from(i) + 0.5) / f64::from(count)).powf(1.0 / power)).collect()
    }

    #[test]
    fn a_tail_learned_elsewhere_keeps_its_promise_on_spaces_of_the_kind() {
        let train: Vec<Vec<f64>> = [1.5, 2.0, 2.5, 3.0].map(|p| space(2000, p)).to_vec();
        let tail = fit_tail(&train, 0.05, 1).unwrap();
        let costs = space(3000, 2.2);
        let (mut missed, mut looked) = (0.0, 0.0);
        for seed in 0..100 {
            let mut order = costs.clone();
            order.shuffle(&mut ChaCha8Rng::seed_from_u64(1000 + seed));
            let mut sample = Sample::new(order.len(), 0.05);
            for cost in order {
                sample.see(cost);
                if tail.miss(&sample) < 0.1 {
                    break;
                }
            }
            missed += f64::from(u8::from(sample.best() - costs[0].ln() > sample.width()));
            looked += sample.share();
        }
        assert!(missed <= 20.0, "{missed} of 100 missed");
        assert!(looked < 80.0, "{looked}% looked at");
    }

    #[test]
    fn too_few_spaces_are_refused() {
        let error = fit_tail(&[space(200, 2.0), vec![f64::INFINITY; 500]], 0.05, 1).unwrap_err();
        assert_eq!(error.have, 1);
    }
}
