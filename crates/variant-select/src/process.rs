//! A Gaussian process of what every variant costs, smooth in the logarithms of the input's features.
//!
//! Trees cut the features one by one; here inputs are alike by their distance, in which every feature counts by as much as the
//! data say. The covariance is the least smooth of Matern's, since the best variant changes from one input to the next.

mod lengths;

use crate::classes::{ClassSelector, Classes, lost_performance};
use crate::encode::Encoding;
use crate::evaluate::spread;
use crate::linear::{factor, products, solve};
use lengths::Lengths;
use tilewright_core::choice::{ChoiceSet, FitSelector, SelectError};
use tilewright_core::selector::Selector;
use tilewright_core::setting::SettingError;

/// Fits the process on the share of the best performance that every variant loses. One covariance serves all variants.
///
/// The length over which a feature matters, the variance and the noise are where the likelihood of the costs is highest, by
/// Rprop (Blum and Riedmiller 2013). A variant that failed loses as much as one `e^1.5` times slower than the best.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostProcess {
    /// Most cases that are kept: a fit takes their cube, a choice goes through all.
    pub cases: usize,
    /// Most cases that lengths are learned from: every step takes their cube.
    pub learned: usize,
    /// Steps of learning.
    pub steps: usize,
    /// Most variants; where there are more, those that win most often.
    pub classes: usize,
}

impl Default for CostProcess {
    fn default() -> Self {
        Self { cases: 1500, learned: 400, steps: 25, classes: 16 }
    }
}

/// Cases as the process sees them.
struct Samples {
    /// One encoded case a row.
    rows: Vec<f32>,
    width: usize,
    /// One row a case, one number a class, less the mean of the class.
    costs: Vec<f64>,
    means: Vec<f64>,
}

impl Samples {
    fn new(data: &ChoiceSet, encoding: &Encoding, classes: &Classes) -> Self {
        let n = classes.len();
        let row = |input: &[f32], row: &mut Vec<f32>| encoding.encode_features(input, row);
        let (rows, mut costs) = lost_performance(classes, data, row);
        let count = (costs.len() / n.max(1)) as f64;
        let mean = |class: usize| costs.iter().skip(class).step_by(n).sum::<f64>() / count;
        let means: Vec<f64> = (0..n).map(mean).collect();
        costs.iter_mut().enumerate().for_each(|(i, c)| *c -= means[i % n]);
        Self { rows, width: encoding.width() - 1, costs, means }
    }

    fn count(&self) -> usize {
        self.rows.len() / self.width
    }

    /// At most so many cases, evenly spread.
    fn some(&self, most: usize) -> Self {
        let kept = spread(self.count(), most);
        let n = self.means.len();
        let rows = kept.iter().flat_map(|&i| &self.rows[i * self.width..(i + 1) * self.width]).copied().collect();
        let costs = kept.iter().flat_map(|&i| &self.costs[i * n..(i + 1) * n]).copied().collect();
        Self { rows, width: self.width, costs, means: self.means.clone() }
    }
}

impl FitSelector for CostProcess {
    fn fit(&self, data: &ChoiceSet, _seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        Ok(Box::new(self.fit_process(data)?))
    }
}

impl CostProcess {
    /// By how much more or less than the average feature each counts in the distance of two inputs; 0 of one that does not vary.
    ///
    /// # Errors
    /// As [`FitSelector::fit`]'s.
    pub fn weights(&self, data: &ChoiceSet) -> Result<Vec<f64>, SelectError> {
        let classes = Classes::all(data, self.classes)?;
        let encoding = Encoding::logarithms(data)?;
        let samples = Samples::new(data, &encoding, &classes).some(self.learned);
        let lengths = Lengths::learn(&samples, self.steps);
        let mut out = vec![0.0; data.schema().input.len()];
        encoding.features().zip(lengths.weights()).for_each(|(feature, weight)| out[feature] = weight);
        Ok(out)
    }

    /// Fits, and keeps the concrete type.
    ///
    /// # Errors
    /// A setting out of range, no case with a variant that ran, no feature that varies.
    pub(crate) fn fit_process(&self, data: &ChoiceSet) -> Result<ClassSelector, SelectError> {
        let check = |field, value: usize, good, limit| SettingError::check(field, value, good, limit);
        check("cases", self.cases, (1..=10_000).contains(&self.cases), "1 to 10000")?;
        check("learned", self.learned, (1..=10_000).contains(&self.learned), "1 to 10000")?;
        let classes = Classes::all(data, self.classes)?;
        let encoding = Encoding::logarithms(data)?;
        let samples = Samples::new(data, &encoding, &classes).some(self.cases);
        let lengths = Lengths::learn(&samples.some(self.learned), self.steps);
        let n = samples.count();
        let places = lengths.scaled(&samples.rows);
        let mut covariance = lengths.covariance(&places);
        let fault = || SelectError::Numeric { method: "process", message: "the covariance is not positive".into() };
        factor(&mut covariance, n).ok_or_else(fault)?;
        let mut weights = Vec::with_capacity(samples.costs.len());
        for class in 0..classes.len() {
            let mut x: Vec<f64> = samples.costs.iter().skip(class).step_by(classes.len()).copied().collect();
            solve(&covariance, &mut x);
            weights.extend(x.iter().map(|x| (x * lengths.variance()) as f32));
        }
        let width = samples.width;
        let columns: Vec<f32> =
            (0..width).flat_map(|f| places.iter().skip(f).step_by(width).map(|&x| x as f32)).collect();
        let rates: Vec<f32> = lengths.rates().map(|r| r as f32).collect();
        let means: Vec<f32> = samples.means.iter().map(|&m| m as f32).collect();
        Ok(ClassSelector::of_losses(classes, move |input, row, scores| {
            encoding.encode(input, row);
            let mut near = vec![0.0f32; n];
            for ((x, rate), column) in row[1..].iter().zip(&rates).zip(columns.chunks_exact(n)) {
                let x = x * rate;
                near.iter_mut().zip(column).for_each(|(sum, y)| *sum += (x - y) * (x - y));
            }
            near.iter_mut().for_each(|d| *d = (-d.sqrt()).exp());
            products(&weights, &near, scores);
            scores.iter_mut().zip(&means).for_each(|(score, mean)| *score += mean);
        }))
    }
}
