//! Samplers side by side on one space: what they accept, how fast they draw, how far from uniform their points are.

use crate::{Categorical, Chained, DrawError, LegalSet, Sampler, Settings, Uniform};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::time::Instant;
use tilewright_core::space::{BoundSpace, ParamSpace};

/// One sampler's record.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// `counted` (ours, by number), `uniform`, `categorical` (ISAAC's), `chained`.
    pub name: &'static str,
    /// Accepted candidates by drawn ones.
    pub acceptance: f64,
    /// Legal points a second, on one thread.
    pub per_second: f64,
    /// How far its points are from uniform ones.
    pub distance: Option<Distance>,
}

/// Total variation distance, 0 for equal and 1 for disjoint distributions. A finite sample of uniform points is not at 0
/// either: the record of `counted` says how far it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distance {
    /// Between the values of a parameter, the mean over parameters with a choice.
    pub marginal: f64,
    /// Between 256 ranges of the points' numbers: what single parameters do not show.
    pub joint: f64,
}

/// Draws `count` points by each sampler. The generative models learn from `learn` points first, which do not count. A
/// sampler that finds nothing legal keeps its acceptance and has no distance.
///
/// # Errors
/// A sampler that was made for other parameters.
pub fn judge(
    (space, bound): (&ParamSpace, &BoundSpace),
    set: &LegalSet,
    settings: Settings,
    (learn, count): (u64, u64),
    seed: u64,
) -> Result<Vec<Judged>, DrawError> {
    let mut out = vec![counted(set, count, seed)];
    // So many candidates that an acceptance of one in ten thousand is seen; a draw that fails ends the run.
    let attempts = (count * 4).clamp(10_000, 1_000_000);
    let settings = Settings { max_attempts: attempts, ..settings };
    let run = |name, sampler: &mut dyn Sampler, learn| record(name, sampler, bound, set, (learn, count), seed);
    out.push(run("uniform", &mut Uniform::new(attempts), 0)?);
    out.push(run("categorical", &mut Categorical::new(space, settings), settings.warmup + learn)?);
    out.push(run("chained", &mut Chained::new(space, settings), settings.warmup + learn)?);
    Ok(out)
}

fn counted(set: &LegalSet, count: u64, seed: u64) -> Judged {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let width = set.params().len();
    let mut rows = vec![0; width * count as usize];
    let start = Instant::now();
    let mut drawn = 0u64;
    for row in rows.chunks_exact_mut(width.max(1)) {
        drawn += u64::from(set.sample_into(&mut rng, row));
    }
    let per_second = drawn as f64 / start.elapsed().as_secs_f64().max(1e-9);
    let mut tally = Tally::new(set);
    rows.chunks_exact(width.max(1)).for_each(|row| tally.add(set, row));
    Judged { name: "counted", acceptance: 1.0, per_second, distance: tally.distance(set) }
}

fn record(
    name: &'static str,
    sampler: &mut dyn Sampler,
    bound: &BoundSpace,
    set: &LegalSet,
    (learn, count): (u64, u64),
    seed: u64,
) -> Result<Judged, DrawError> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = |sampler: &mut dyn Sampler, count: u64| {
        let mut points = Vec::with_capacity(count as usize);
        for _ in 0..count {
            match sampler.draw(bound, &mut rng) {
                Ok(draw) => points.push(draw.point),
                Err(DrawError::Exhausted { .. }) => break,
                Err(e) => return Err(e),
            }
        }
        Ok(points)
    };
    draw(sampler, learn)?;
    let (before, start) = (sampler.acceptance().clone(), Instant::now());
    let points = draw(sampler, count)?;
    let per_second = points.len() as f64 / start.elapsed().as_secs_f64().max(1e-9);
    let mut tally = Tally::new(set);
    points.iter().for_each(|p| tally.add(set, p));
    let acceptance = sampler.acceptance().since(&before).rate();
    Ok(Judged { name, acceptance, per_second, distance: tally.distance(set) })
}

/// Ranges of numbers that points are counted in.
const RANGES: u64 = 256;

struct Tally {
    points: u64,
    values: Vec<Vec<u64>>,
    ranges: Vec<u64>,
}

impl Tally {
    fn new(set: &LegalSet) -> Self {
        let values = set.params().iter().map(|p| vec![0; p.values.len()]).collect();
        Self { points: 0, values, ranges: vec![0; RANGES.min(set.count()) as usize] }
    }

    fn add(&mut self, set: &LegalSet, point: &[u16]) {
        let Some(number) = set.index_of(point) else { return };
        self.points += 1;
        for (counts, &i) in self.values.iter_mut().zip(point) {
            counts[usize::from(i)] += 1;
        }
        let ranges = self.ranges.len() as u128;
        self.ranges[(u128::from(number) * ranges / u128::from(set.count())) as usize] += 1;
    }

    fn distance(&self, set: &LegalSet) -> Option<Distance> {
        if self.points == 0 {
            return None;
        }
        let share = |n: u64| n as f64 / self.points as f64;
        let marginals = set.marginals();
        let of_param = |(counts, exact): (&Vec<u64>, &Vec<(u16, u64)>)| {
            let gaps =
                exact.iter().map(|&(v, n)| (share(counts[usize::from(v)]) - n as f64 / set.count() as f64).abs());
            gaps.sum::<f64>() / 2.0
        };
        let open: Vec<f64> = self.values.iter().zip(&marginals).filter(|(_, m)| m.len() > 1).map(of_param).collect();
        let ranges = self.ranges.len() as u64;
        let bound = |i: u64| (u128::from(i) * u128::from(set.count())).div_ceil(u128::from(ranges));
        let joint = self.ranges.iter().zip(0..ranges).map(|(&n, i)| {
            let exact = (bound(i + 1) - bound(i)) as f64 / set.count() as f64;
            (share(n) - exact).abs()
        });
        let mean = open.iter().sum::<f64>() / open.len().max(1) as f64;
        Some(Distance { marginal: mean, joint: joint.sum::<f64>() / 2.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Description;
    use tilewright_core::space::Param;

    #[test]
    fn uniform_points_are_nearer_than_the_model_s() {
        let powers = || [1, 2, 4, 8, 16, 32];
        let mut description = Description::new();
        for name in ["a", "b", "c", "d"] {
            description = description.param(Param::ints(name, powers()));
        }
        let description = description.constraint("a * b == c * d and a * c <= 64").unwrap();
        let set = LegalSet::new(&description).unwrap();
        let (space, bound) = description.to_core().unwrap();
        let found = judge((&space, &bound), &set, Settings::default(), (2_000, 20_000), 1).unwrap();
        let by_name = |name: &str| found.iter().find(|j| j.name == name).unwrap().clone();
        let [counted, uniform, chained] = ["counted", "uniform", "chained"].map(by_name);
        assert_eq!(counted.acceptance, 1.0);
        assert!((uniform.acceptance - set.count() as f64 / 1296.0).abs() < 0.01);
        let joint = |j: &Judged| j.distance.unwrap().joint;
        // About sqrt(points / samples) / 2, the noise of a sample.
        assert!(joint(&counted) < 0.06 && joint(&uniform) < 0.06, "{} {}", joint(&counted), joint(&uniform));
        assert!(joint(&chained) > 2.0 * joint(&counted));
        assert!(counted.distance.unwrap().marginal < 0.02);
    }

    #[test]
    fn a_sampler_that_finds_nothing_says_so() {
        let names = ["a", "b", "c"];
        let mut description = Description::new();
        for name in names {
            description = description.param(Param::ints(name, 0..60));
        }
        let description = description.constraint("a * b * c == 59 * 53 * 47").unwrap();
        let set = LegalSet::new(&description).unwrap();
        assert_eq!(set.count(), 6);
        let (space, bound) = description.to_core().unwrap();
        let settings = Settings { warmup_candidates: 1_000, ..Settings::default() };
        let found = judge((&space, &bound), &set, settings, (0, 100), 1).unwrap();
        assert_eq!((found[1].name, found[1].distance), ("uniform", None));
        assert_eq!(found[0].acceptance, 1.0);
    }
}
