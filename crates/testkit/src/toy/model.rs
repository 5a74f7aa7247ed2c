//! A model small enough to check by hand: least squares on log features and their squares.

use super::cost::cost_s;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use tilewright_core::feature::{FeatureKind, FeatureSchema};
use tilewright_core::predictor::{BindError, Fit, Predictor, RowPredictor, Scorer, bind_rows};
use tilewright_core::problem::Problem;
use tilewright_core::space::Points;
use tilewright_core::training::TrainingSet;

/// Rows of the toy kernel for several inputs, `per_input` legal points each, costs by formula; one group an input.
pub fn training_set(lengths: &[usize], per_input: usize, seed: u64) -> TrainingSet {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut set = TrainingSet::new(super::problem(1).schema().clone());
    for (group, &n) in lengths.iter().enumerate() {
        let problem = super::problem(n);
        let mut points = Vec::new();
        problem.space().for_each_legal(|p| {
            points.push(p.to_vec());
            true
        });
        points.shuffle(&mut rng);
        for point in points.iter().take(per_input) {
            let mut row = Vec::new();
            problem.input_features(&mut row);
            problem.config_features(point, &mut row);
            set.push(&row, cost_s(&problem, point), group as u32).expect("toy rows fit the toy schema");
        }
    }
    set
}

/// Fits [`LogLinear`].
#[derive(Clone, Copy, Debug, Default)]
pub struct LogLinearFit;

/// There is nothing to fit on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a model needs at least one row")]
pub struct NoRows;

/// Log-cost as a weighted sum of the log features and their squares.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLinear {
    schema: FeatureSchema,
    /// A constant, then two weights a feature.
    weights: Vec<f64>,
}

impl LogLinear {
    fn term(kind: FeatureKind, x: f32) -> [f64; 2] {
        let x = f64::from(x);
        let t = if kind == FeatureKind::Size { x.max(0.5).log2() } else { x };
        [t, t * t]
    }

    fn log_cost(&self, row: &[f32]) -> f64 {
        let terms = self.schema.iter().zip(row).map(|(f, &x)| Self::term(f.kind, x));
        let weighed = terms.zip(self.weights[1..].chunks(2)).map(|([x, xx], w)| w[0] * x + w[1] * xx);
        self.weights[0] + weighed.sum::<f64>()
    }
}

impl Fit for LogLinearFit {
    type Model = LogLinear;
    type Error = NoRows;

    fn fit(&self, data: &TrainingSet, _seed: u64) -> Result<LogLinear, NoRows> {
        if data.is_empty() {
            return Err(NoRows);
        }
        let kinds: Vec<FeatureKind> = data.schema.iter().map(|f| f.kind).collect();
        let terms = |i: usize| {
            let row = data.row(i).iter().zip(&kinds);
            std::iter::once(1.0).chain(row.flat_map(|(&x, &kind)| LogLinear::term(kind, x))).collect::<Vec<f64>>()
        };
        let size = 1 + 2 * kinds.len();
        let mut normal = vec![vec![0.0; size + 1]; size];
        for (i, cost) in data.costs.iter().enumerate() {
            let t = terms(i);
            for (a, line) in normal.iter_mut().enumerate() {
                t.iter().chain([&cost.ln()]).zip(line).for_each(|(b, sum)| *sum += t[a] * b);
            }
        }
        Ok(LogLinear { schema: data.schema.clone(), weights: solve(normal) })
    }
}

/// Solves the normal equations (last column: right-hand side) with a ridge that keeps constant features at zero.
fn solve(mut m: Vec<Vec<f64>>) -> Vec<f64> {
    let size = m.len();
    for (i, line) in m.iter_mut().enumerate() {
        line[i] += 1e-6;
    }
    for i in 0..size {
        let pivot = m[i].clone();
        for line in m.iter_mut().skip(i + 1) {
            let factor = line[i] / pivot[i];
            line.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
        }
    }
    let mut x = vec![0.0; size];
    for i in (0..size).rev() {
        let known: f64 = (i + 1..size).map(|j| m[i][j] * x[j]).sum();
        x[i] = (m[i][size] - known) / m[i][i];
    }
    x
}

impl RowPredictor for LogLinear {
    fn schema(&self) -> &FeatureSchema {
        &self.schema
    }

    fn predict(&self, rows: &[f32], out: &mut Vec<f32>) {
        out.extend(rows.chunks(self.schema.width()).map(|row| self.log_cost(row) as f32));
    }
}

impl Predictor for LogLinear {
    fn bind<'a>(&'a self, problem: &'a dyn Problem) -> Result<Box<dyn Scorer + 'a>, BindError> {
        bind_rows(self, problem)
    }
}

/// A model by formula: the seconds of a point of a problem.
#[derive(Clone, Copy, Debug)]
pub struct Formula<F> {
    /// Its word for itself.
    pub kind: &'static str,
    /// Whether it says that its word costs much.
    pub is_costly: bool,
    /// The seconds.
    pub seconds: F,
}

impl<F: Fn(&dyn Problem, &[u16]) -> f64 + Send + Sync> Predictor for Formula<F> {
    fn kind(&self) -> &str {
        self.kind
    }

    fn is_costly(&self) -> bool {
        self.is_costly
    }

    fn bind<'a>(&'a self, problem: &'a dyn Problem) -> Result<Box<dyn Scorer + 'a>, BindError> {
        Ok(Box::new(OfProblem { formula: &self.seconds, problem }))
    }
}

struct OfProblem<'a, F> {
    formula: &'a F,
    problem: &'a dyn Problem,
}

impl<F: Fn(&dyn Problem, &[u16]) -> f64 + Send + Sync> Scorer for OfProblem<'_, F> {
    fn score(&self, points: Points<'_>, out: &mut [f32]) {
        for (point, out) in points.iter().zip(out) {
            *out = (self.formula)(self.problem, point).ln() as f32;
        }
    }
}
