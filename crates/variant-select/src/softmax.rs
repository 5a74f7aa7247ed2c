//! Cost minimisation (Vuduc, section 4.1): softmax weights that minimise equation 5, with relative costs in the place of times.

use crate::classes::{ClassSelector, Classes};
use crate::encode::{Encoding, FeatureMap};
use crate::linear::products;
use argmin::core::{CostFunction, Error, Executor, Gradient, Hessian, State};
use argmin::solver::trustregion::{Steihaug, TrustRegion};
use ndarray::{Array1, Array2, s};
use tilewright_core::choice::{ChoiceSet, FitSelector, SelectError};
use tilewright_core::selector::Selector;
use tilewright_core::setting::SettingError;

/// Fits softmax weights.
///
/// The loss is the mean over cases of the expected cost, plus a ridge. Vuduc's equation 5 sums the expected times themselves; here a
/// cost is the time over the best of the case less 1, so that short inputs count as much as long ones, and at most `e^1.5 - 1`. A
/// variant that failed costs that much, one that was not tried has no weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Softmax {
    /// What the weights see.
    pub map: FeatureMap,
    /// Penalty on the squared parameters.
    pub ridge: f64,
    /// Most variants, those that win most often.
    pub classes: usize,
    /// Most iterations of the trust region method.
    pub iterations: u64,
}

impl Default for Softmax {
    fn default() -> Self {
        Self { map: FeatureMap::Squares, ridge: 1e-4, classes: 12, iterations: 60 }
    }
}

/// Equation 5 with a ridge, as a mean over cases.
#[derive(Debug)]
pub(crate) struct ExpectedCost {
    /// One encoded case a row.
    pub(crate) rows: Array2<f64>,
    /// Cost of each class in each case; NaN where it was not tried.
    pub(crate) costs: Array2<f64>,
    pub(crate) ridge: f64,
}

impl ExpectedCost {
    fn classes(&self) -> usize {
        self.costs.ncols()
    }

    fn width(&self) -> usize {
        self.rows.ncols()
    }

    /// Weights of a case; their mean cost is returned.
    fn weights(&self, theta: &Array1<f64>, case: usize, w: &mut [f64]) -> f64 {
        let row = self.rows.row(case);
        let costs = self.costs.row(case);
        let width = self.width();
        for (a, w) in w.iter_mut().enumerate() {
            let tried = !costs[a].is_nan();
            *w = if tried { theta.slice(s![a * width..(a + 1) * width]).dot(&row) } else { f64::NEG_INFINITY };
        }
        let most = w.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        w.iter_mut().for_each(|w| *w = (*w - most).exp());
        let sum: f64 = w.iter().sum();
        w.iter_mut().for_each(|w| *w /= sum);
        w.iter().zip(costs).filter(|(w, _)| **w > 0.0).map(|(w, c)| w * c).sum()
    }

    /// Derivatives of a case's cost by the scores of the classes: w (T - C).
    fn slopes(&self, case: usize, w: &[f64], mean: f64, g: &mut [f64]) {
        for ((g, w), c) in g.iter_mut().zip(w).zip(self.costs.row(case)) {
            *g = if c.is_nan() { 0.0 } else { w * (c - mean) };
        }
    }

    fn cases(&self) -> f64 {
        self.rows.nrows() as f64
    }
}

impl CostFunction for ExpectedCost {
    type Param = Array1<f64>;
    type Output = f64;

    fn cost(&self, theta: &Array1<f64>) -> Result<f64, Error> {
        let mut w = vec![0.0; self.classes()];
        let sum: f64 = (0..self.rows.nrows()).map(|s| self.weights(theta, s, &mut w)).sum();
        Ok(sum / self.cases() + 0.5 * self.ridge * theta.dot(theta))
    }
}

impl Gradient for ExpectedCost {
    type Param = Array1<f64>;
    type Gradient = Array1<f64>;

    fn gradient(&self, theta: &Array1<f64>) -> Result<Array1<f64>, Error> {
        let width = self.width();
        let (mut w, mut g) = (vec![0.0; self.classes()], vec![0.0; self.classes()]);
        let mut out = theta * (self.ridge * self.cases());
        for case in 0..self.rows.nrows() {
            let mean = self.weights(theta, case, &mut w);
            self.slopes(case, &w, mean, &mut g);
            for (a, &g) in g.iter().enumerate().filter(|(_, g)| **g != 0.0) {
                out.slice_mut(s![a * width..(a + 1) * width]).scaled_add(g, &self.rows.row(case));
            }
        }
        Ok(out / self.cases())
    }
}

impl Hessian for ExpectedCost {
    type Param = Array1<f64>;
    type Hessian = Array2<f64>;

    /// With g = w (T - C): the block of classes a and b sums (g_a [a = b] - w_b g_a - w_a g_b) x x'.
    fn hessian(&self, theta: &Array1<f64>) -> Result<Array2<f64>, Error> {
        let (classes, width) = (self.classes(), self.width());
        let cases = self.rows.nrows();
        let mut weights = Array2::<f64>::zeros((cases, classes));
        let mut slopes = Array2::<f64>::zeros((cases, classes));
        let (mut w, mut g) = (vec![0.0; classes], vec![0.0; classes]);
        for case in 0..cases {
            let mean = self.weights(theta, case, &mut w);
            self.slopes(case, &w, mean, &mut g);
            weights.row_mut(case).assign(&Array1::from(w.clone()));
            slopes.row_mut(case).assign(&Array1::from(g.clone()));
        }
        let mut out = Array2::<f64>::zeros((classes * width, classes * width));
        for a in 0..classes {
            for b in 0..=a {
                let cross = &weights.column(b) * &slopes.column(a) + &weights.column(a) * &slopes.column(b);
                let curve = if a == b { slopes.column(a).to_owned() - cross } else { -cross };
                let scaled = &self.rows * &curve.insert_axis(ndarray::Axis(1));
                let block = self.rows.t().dot(&scaled) / self.cases();
                out.slice_mut(s![a * width..(a + 1) * width, b * width..(b + 1) * width]).assign(&block);
                out.slice_mut(s![b * width..(b + 1) * width, a * width..(a + 1) * width]).assign(&block);
            }
        }
        out.diag_mut().mapv_inplace(|d| d + self.ridge);
        Ok(out)
    }
}

impl FitSelector for Softmax {
    fn fit(&self, data: &ChoiceSet, _seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        SettingError::check("ridge", self.ridge, self.ridge.is_finite() && self.ridge > 0.0, "positive")?;
        let classes = Classes::winners(data, self.classes)?;
        let encoding = Encoding::fit(data, self.map)?;
        let (rows, costs) = classes.table(data, |input, row| encoding.encode(input, row), f64::exp_m1);
        let (width, count) = (encoding.width(), classes.len());
        let cases = rows.len() / width;
        let rows = Array2::from_shape_fn((cases, width), |(i, j)| f64::from(rows[i * width + j]));
        let costs = Array2::from_shape_fn((cases, count), |(i, j)| costs[i * count + j]);
        let problem = ExpectedCost { rows, costs, ridge: self.ridge };
        let start = Array1::zeros(count * width);
        let fault = |message: String| SelectError::Numeric { method: "softmax", message };
        let steps = Steihaug::new().with_max_iters(40);
        let result = Executor::new(problem, TrustRegion::new(steps))
            .configure(|state| state.param(start).max_iters(self.iterations))
            .run()
            .map_err(|e| fault(e.to_string()))?;
        let best = result.state.get_best_param().ok_or_else(|| fault("no finite cost was met".into()))?;
        // Negated, one row a class: the lowest score has the highest weight.
        let theta: Vec<f32> = best.iter().map(|&t| -t as f32).collect();
        Ok(Box::new(ClassSelector::new(classes, move |input, row, scores| {
            encoding.encode(input, row);
            products(&theta, row, scores);
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Random cases, classes that were not tried somewhere, and a point away from symmetry; the first class always was.
    fn problems() -> impl Strategy<Value = (ExpectedCost, Array1<f64>)> {
        let (cases, classes, width) = (6, 3, 3);
        let numbers = |n| proptest::collection::vec(-2.0f64..2.0, n);
        let tried = proptest::collection::vec(any::<bool>(), cases * classes);
        (numbers(cases * width), numbers(cases * classes), tried, numbers(classes * width), 0.0f64..0.1).prop_map(
            move |(rows, costs, tried, theta, ridge)| {
                let rows =
                    Array2::from_shape_fn((cases, width), |(i, j)| if j == 0 { 1.0 } else { rows[i * width + j] });
                let cost = |(i, j): (usize, usize)| {
                    if j == 0 || tried[i * classes + j] { costs[i * classes + j].abs() } else { f64::NAN }
                };
                let costs = Array2::from_shape_fn((cases, classes), cost);
                (ExpectedCost { rows, costs, ridge }, Array1::from(theta))
            },
        )
    }

    proptest! {
        #[test]
        fn derivatives_are_those_of_the_cost((problem, theta) in problems()) {
            let (gradient, hessian) = (problem.gradient(&theta).unwrap(), problem.hessian(&theta).unwrap());
            let step = 1e-5;
            for i in 0..theta.len() {
                let at = |by: f64| {
                    let mut moved = theta.clone();
                    moved[i] += by;
                    moved
                };
                let slope = (problem.cost(&at(step)).unwrap() - problem.cost(&at(-step)).unwrap()) / (2.0 * step);
                prop_assert!((slope - gradient[i]).abs() < 1e-7, "{i}: {slope} {}", gradient[i]);
                let curve =
                    (problem.gradient(&at(step)).unwrap() - problem.gradient(&at(-step)).unwrap()) / (2.0 * step);
                for j in 0..theta.len() {
                    prop_assert!((curve[j] - hessian[(i, j)]).abs() < 1e-7, "{i} {j}: {} {}", curve[j], hessian[(i, j)]);
                }
            }
        }
    }
}
