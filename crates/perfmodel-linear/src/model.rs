//! Weights, and what they predict.

use crate::table::{Part, Property};
use serde::{Deserialize, Serialize};

/// A fitted weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Weight {
    /// What is counted.
    #[serde(flatten)]
    pub property: Property,
    /// Seconds of one operation.
    pub seconds: f64,
    /// Standard error of it, in seconds.
    pub uncertainty: f64,
    /// Whether any row had a number here; otherwise the weight is zero and means nothing.
    pub measured: bool,
}

/// How well the rows were fitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Rows.
    pub rows: usize,
    /// Largest singular value of the row-scaled, column-normalised property matrix over the smallest that is not zero.
    pub condition: f64,
    /// Geometric mean of the relative errors of the rows.
    pub geomean_error: f64,
}

/// Run time from counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinearModel {
    /// Fingerprint of the device that was measured.
    pub device: String,
    /// One for each property.
    pub weights: Vec<Weight>,
    /// The exponents of the smooth maxima of what goes on side by side.
    pub sharpness: Sharpness,
    /// Whether the last wave of groups counts in full.
    pub quantised: bool,
    /// How it was fitted.
    pub report: Report,
}

/// A predicted time.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Seconds.
    pub seconds: f64,
    /// Properties that the kernel has and no row of the fit had.
    pub unmeasured: Vec<String>,
}

/// What a property costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The property.
    pub property: String,
    /// How many.
    pub count: f64,
    /// Its part of the predicted time; all parts add up to it.
    pub seconds: f64,
}

/// The exponents of the smooth maxima; 1 adds up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sharpness {
    /// Of what goes on side by side within a core.
    pub core: f64,
    /// Of cores and of what brings them their data.
    pub memory: f64,
}

impl Sharpness {
    /// No overlap.
    pub const SUM: Self = Self { core: 1.0, memory: 1.0 };
}

/// `(sum of x^q)^(1/q)`.
pub(crate) fn smooth_maximum(parts: &[f64], q: f64) -> f64 {
    if q == 1.0 {
        return parts.iter().sum();
    }
    let most = parts.iter().copied().fold(0.0, f64::max);
    let sum: f64 = parts.iter().map(|p| (p.max(0.0) / most.max(f64::MIN_POSITIVE)).powf(q)).sum();
    most * sum.powf(1.0 / q)
}

/// How much a smooth maximum grows with one of its parts.
fn slope(part: f64, maximum: f64, q: f64) -> f64 {
    if q == 1.0 || maximum <= 0.0 { 1.0 } else { (part.max(0.0) / maximum).powf(q - 1.0) }
}

/// Sums of weighted counts by part, and their smooth maxima.
pub(crate) struct Sums {
    pub(crate) overhead: f64,
    pub(crate) parts: [f64; Part::CORE.len()],
    /// Smooth maximum of the parts.
    pub(crate) core: f64,
    pub(crate) moves: f64,
    /// Smooth maximum of core and moves.
    pub(crate) body: f64,
}

impl Sums {
    pub(crate) fn of(weighted: impl Iterator<Item = (Part, f64)>, sharpness: Sharpness) -> Self {
        let (mut overhead, mut parts, mut moves) = (0.0, [0.0; Part::CORE.len()], 0.0);
        for (part, seconds) in weighted {
            match Part::CORE.iter().position(|p| *p == part) {
                Some(at) => parts[at] += seconds,
                None if part.moves() => moves += seconds,
                None => overhead += seconds,
            }
        }
        let core = smooth_maximum(&parts, sharpness.core);
        Self { overhead, parts, core, moves, body: smooth_maximum(&[core, moves], sharpness.memory) }
    }

    /// How much the body grows with its core.
    pub(crate) fn slope_of_core(&self, sharpness: Sharpness) -> f64 {
        slope(self.core, self.body, sharpness.memory)
    }

    /// How much the body grows with a part: 1 where parts add up.
    pub(crate) fn slope(&self, part: Part, sharpness: Sharpness) -> f64 {
        match Part::CORE.iter().position(|p| *p == part) {
            Some(at) => slope(self.parts[at], self.core, sharpness.core) * self.slope_of_core(sharpness),
            None if part.moves() => slope(self.moves, self.body, sharpness.memory),
            None => 1.0,
        }
    }
}

impl LinearModel {
    /// The time of a kernel from its counts, one for each weight, and how much longer its last wave makes it.
    pub fn predict(&self, counts: &[f64], quantised: f64) -> Prediction {
        let sums = self.sums(counts);
        let factor = if self.quantised { quantised } else { 1.0 };
        let missing = self.weights.iter().zip(counts).filter(|(w, c)| !w.measured && **c > 0.0);
        Prediction {
            seconds: sums.overhead + factor * sums.body,
            unmeasured: missing.map(|(w, _)| w.property.name.clone()).collect(),
        }
    }

    fn sums(&self, counts: &[f64]) -> Sums {
        let weighted = self.weights.iter().zip(counts).map(|(w, c)| (w.property.part, w.seconds * c));
        Sums::of(weighted, self.sharpness)
    }

    /// What each property costs, the largest first. Where parts overlap, a property costs what the time would change by if
    /// there were a little less of it, in proportion: the costs add up to the predicted time.
    pub fn breakdown(&self, counts: &[f64], quantised: f64) -> Vec<Share> {
        let sums = self.sums(counts);
        let factor = if self.quantised { quantised } else { 1.0 };
        let share = |(w, count): (&Weight, &f64)| {
            let factor = if w.property.part == Part::Overhead { 1.0 } else { factor };
            let seconds = w.seconds * count * factor * sums.slope(w.property.part, self.sharpness);
            Share { property: w.property.name.clone(), count: *count, seconds }
        };
        let mut shares: Vec<Share> = self.weights.iter().zip(counts).map(share).filter(|s| s.seconds != 0.0).collect();
        shares.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_core::operations::Operations;

    fn model(sharpness: f64) -> LinearModel {
        let sharpness = Sharpness { core: sharpness, memory: sharpness };
        let weight = |name: &str, part, seconds| {
            let property = Property { name: name.to_owned(), part };
            Weight { property, seconds, uncertainty: 0.0, measured: true }
        };
        LinearModel {
            device: String::new(),
            weights: vec![
                weight("constant", Part::Overhead, 1e-6),
                weight("fma", Part::Arithmetic, 2e-9),
                weight("load", Part::Memory, 1e-9),
            ],
            sharpness,
            quantised: true,
            report: Report::default(),
        }
    }

    #[test]
    fn shares_add_up_to_the_prediction() {
        for sharpness in [1.0, 1.7, 6.0] {
            let model = model(sharpness);
            let counts = [1.0, 3000.0, 5000.0];
            let seconds = model.predict(&counts, 1.25).seconds;
            let sum: f64 = model.breakdown(&counts, 1.25).iter().map(|s| s.seconds).sum();
            assert!((sum - seconds).abs() < 1e-12 * seconds, "{sharpness}: {sum} {seconds}");
        }
    }

    #[test]
    fn counts_are_found_by_name_and_phases_follow_one_another() {
        let phase = |of: [(&'static str, f64); 4]| of.into_iter().map(|(name, n)| (name.into(), n)).collect();
        let one = phase([("constant", 1.0), ("fma", 3000.0), ("load", 1.0), ("unknown", 9e9)]);
        let two = phase([("constant", 0.0), ("fma", 0.0), ("load", 5000.0), ("unknown", 0.0)]);
        let model = model(2.0);
        let of = |counts: &[f64]| model.predict(counts, 1.0).seconds;
        let operations = Operations { phases: vec![one, two] };
        assert_eq!(model.seconds(&operations, false), of(&[1.0, 3000.0, 1.0]) + of(&[0.0, 0.0, 5000.0]));
        assert_eq!(model.seconds(&operations, true), model.seconds(&operations, false), "no weights of a cache");
        assert!(model.seconds(&Operations::default(), false) > 0.0);
    }

    #[test]
    fn the_smooth_maximum_lies_between_maximum_and_sum() {
        let counts = [0.0, 3000.0, 5000.0];
        let times = [1.0, 2.0, 4.0, 50.0].map(|s| model(s).predict(&counts, 1.0).seconds);
        assert!(times.windows(2).all(|w| w[0] > w[1]), "{times:?}");
        assert!((times[0] - 11e-6).abs() < 1e-12 && (times[3] - 6e-6).abs() < 1e-8, "{times:?}");
    }
}
