//! Differences between two ways of doing something, and how sure they are.
//!
//! Two figures from the same splits, seeds or tasks are compared in pairs: what makes one split harder makes it harder for both, and
//! goes out of the difference. What is drawn anew from one observation to the next decides what counts as an observation: splits of
//! one set of data share most of it, and inputs of one device share the device.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::collections::BTreeMap;

/// A mean with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The mean of the observations.
    pub mean: f64,
    /// The lower end of 95%; negative infinity (`null` in JSON) where one observation tells nothing of its spread.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Observations.
    pub count: usize,
}

/// How sure an interval is.
const CONFIDENCE: f64 = 0.95;

impl Interval {
    /// Of observations that are independent of each other: devices, families, seeds of a search. None of none, and none where one
    /// is not finite.
    pub fn of(observations: &[f64]) -> Option<Self> {
        Self::with(observations, 0.0)
    }

    /// Of splits of one set of data, of which `held_out` is the share that each split holds out: splits overlap, and if they were
    /// taken to be independent, their interval would be too narrow (Nadeau and Bengio, Inference for the Generalization Error,
    /// 2003, equation 8). None is held out by drawing where all splits are the same: then they are one observation.
    pub fn of_splits(observations: &[f64], held_out: Option<f64>) -> Option<Self> {
        match held_out.map(|share| share.clamp(0.0, 0.99)) {
            Some(share) => Self::with(observations, share / (1.0 - share)),
            None => Self::of(&[observations.iter().sum::<f64>() / observations.len() as f64]),
        }
    }

    /// Of observations that come in units, devices or families: the mean of each unit is one observation, so that a unit that was
    /// looked at more often says no more.
    pub fn of_units<'a>(observations: impl IntoIterator<Item = (&'a str, f64)>) -> Option<Self> {
        let mut units: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
        for (unit, value) in observations {
            let sum = units.entry(unit).or_default();
            *sum = (sum.0 + value, sum.1 + 1);
        }
        Self::of(&units.values().map(|(sum, count)| sum / *count as f64).collect::<Vec<f64>>())
    }

    /// Of ratios that are independent of each other: the mean is the geometric one. None of none, and none where one is not above 0.
    pub fn of_ratios(ratios: &[f64]) -> Option<Self> {
        let of = Self::of(&ratios.iter().map(|ratio| ratio.ln()).collect::<Vec<f64>>())?;
        Some(Self { mean: of.mean.exp(), low: of.low.exp(), high: of.high.exp(), count: of.count })
    }

    /// Whether chance alone does not explain that a mean of ratios is not one.
    pub fn is_clear_ratio(&self) -> bool {
        self.count > 1 && (self.low > 1.0 || self.high < 1.0)
    }

    /// The variance of the mean is that of an observation by `1 / count + shared`.
    fn with(observations: &[f64], shared: f64) -> Option<Self> {
        let count = observations.len();
        if count == 0 || observations.iter().any(|x| !x.is_finite()) {
            return None;
        }
        let mean = observations.iter().sum::<f64>() / count as f64;
        let half = match StudentsT::new(0.0, 1.0, count as f64 - 1.0) {
            Ok(student) => {
                let variance = observations.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count as f64 - 1.0);
                student.inverse_cdf(0.5 + 0.5 * CONFIDENCE) * (variance * (1.0 / count as f64 + shared)).sqrt()
            }
            Err(_) => f64::INFINITY,
        };
        Some(Self { mean, low: mean - half, high: mean + half, count })
    }

    /// Whether chance alone does not explain that the mean is not zero.
    pub fn is_clear(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

impl std::fmt::Display for Interval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.low.is_finite() {
            write!(f, "{:+.4} ({:+.4} to {:+.4})", self.mean, self.low, self.high)
        } else {
            write!(f, "{:+.4}", self.mean)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-4
    }

    /// Against a table of Student's distribution: 2.7764 for 4 degrees of freedom.
    #[test]
    fn an_interval_is_that_of_the_textbook() {
        let found = Interval::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let half = 2.7764 * (2.5f64 / 5.0).sqrt();
        assert!(close(found.mean, 3.0) && close(found.low, 3.0 - half) && close(found.high, 3.0 + half), "{found:?}");
        assert!(found.is_clear() && !Interval::of(&[-1.0, 1.1]).unwrap().is_clear());
        let splits = Interval::of_splits(&[1.0, 2.0, 3.0, 4.0, 5.0], Some(1.0 / 3.0)).unwrap();
        assert!(close(splits.high - 3.0, 2.7764 * (2.5f64 * (0.2 + 0.5)).sqrt()), "{splits:?}");
        assert!(
            !Interval::of_splits(&[1.0, 2.0], None).unwrap().is_clear(),
            "two runs of one split are one observation"
        );
    }

    #[test]
    fn ratios_are_averaged_as_logarithms() {
        let found = Interval::of_ratios(&[0.5, 2.0]).unwrap();
        assert!(close(found.mean, 1.0) && close(found.low * found.high, 1.0) && !found.is_clear_ratio(), "{found:?}");
        assert!(Interval::of_ratios(&[1.1, 1.11, 1.12]).unwrap().is_clear_ratio());
        let one = Interval::of_ratios(&[3.0]).unwrap();
        assert!((one.low, one.high) == (0.0, f64::INFINITY) && !one.is_clear_ratio(), "{one:?}");
        assert_eq!(Interval::of_ratios(&[1.0, 0.0]), None);
    }

    #[test]
    fn units_weigh_the_same_however_often_they_were_looked_at() {
        let found = Interval::of_units([("a", 1.0), ("a", 3.0), ("a", 2.0), ("b", 6.0)]).unwrap();
        assert_eq!((found.mean, found.count), (4.0, 2));
    }

    #[test]
    fn too_few_observations_have_no_ends() {
        let one = Interval::of(&[0.5]).unwrap();
        assert!(one.low == f64::NEG_INFINITY && !one.is_clear());
        assert_eq!(one.to_string(), "+0.5000");
        assert_eq!(serde_json::to_value(one).unwrap()["low"], serde_json::Value::Null);
        assert_eq!((Interval::of(&[]), Interval::of(&[1.0, f64::NAN])), (None, None));
        let same = Interval::of(&[0.25, 0.25]).unwrap();
        assert_eq!((same.low, same.high), (0.25, 0.25));
    }

    /// Of many draws of few observations, 95 in 100 intervals hold the mean.
    #[test]
    fn intervals_hold_what_they_promise() {
        use rand::{Rng, SeedableRng};
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let mut uniform = || (0..6).map(|_| rng.random::<f64>()).collect::<Vec<f64>>();
        let held = (0..4000).filter(|_| Interval::of(&uniform()).is_some_and(|i| i.low < 0.5 && 0.5 < i.high)).count();
        assert!((0.935..0.965).contains(&(held as f64 / 4000.0)), "{held}");
    }
}
