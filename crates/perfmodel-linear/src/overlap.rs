//! Fitting a smooth maximum of partial sums.
//!
//! `t = overhead + M(M(arithmetic, special, latency, local), moves)` with `M(x, ...) = (x^q + ...)^(1/q)` and sums of weights times
//! counts in it, and a `q` for each of the two. What is minimised is the mean squared logarithm of
//! predicted over measured time (in proportion where it is large), over the logarithms of the weights and of both `q - 1`, with a little ridge around the start;
//! by argmin's trust region with Gauss and Newton's matrix.

use crate::error::LinearError;
use crate::model::{Sharpness, Sums};
use crate::table::{Part, Table};
use argmin::core::{CostFunction, Error, Executor, Gradient, Hessian, State};
use argmin::solver::trustregion::{Steihaug, TrustRegion};
use ndarray::{Array1, Array2};

/// Where the exponents begin.
const FIRST: Sharpness = Sharpness { core: 3.0, memory: 2.0 };
/// Pull of the logarithms towards where they began, against the mean of squared errors.
const RIDGE: f64 = 2e-5;
/// Errors beyond this count in proportion and not squared: a disturbed measurement must not bend the rest.
const STRAIGHT: f64 = 0.1;
const ITERATIONS: u64 = 300;

struct Overlap<'a> {
    table: &'a Table,
    quantised: bool,
    /// Columns that are fitted.
    columns: &'a [usize],
    start: Array1<f64>,
}

impl Overlap<'_> {
    /// Logarithm of predicted over measured time of a row, and its derivatives.
    fn residual(&self, theta: &Array1<f64>, row: usize, slopes: Option<&mut Array1<f64>>) -> f64 {
        let row = &self.table.rows()[row];
        let n = self.columns.len();
        let sharpness = exponents(theta, n);
        let part = |c: usize| self.table.properties[c].part;
        let seconds = |i: usize| theta[i].exp() * row.counts[self.columns[i]];
        let sums = Sums::of((0..n).map(|i| (part(self.columns[i]), seconds(i))), sharpness);
        let factor = if self.quantised { row.quantised } else { 1.0 };
        let time = (sums.overhead + factor * sums.body).max(f64::MIN_POSITIVE);
        if let Some(slopes) = slopes {
            for i in 0..n {
                let part = part(self.columns[i]);
                let factor = if part == Part::Overhead { 1.0 } else { factor };
                slopes[i] = seconds(i) * factor * sums.slope(part, sharpness) / time;
            }
            let core = sums.core * by_exponent(&sums.parts, sums.core, sharpness.core);
            let inner = core * sums.slope_of_core(sharpness);
            let outer = sums.body * by_exponent(&[sums.core, sums.moves], sums.body, sharpness.memory);
            slopes[n] = factor * inner * (sharpness.core - 1.0) / time;
            slopes[n + 1] = factor * outer * (sharpness.memory - 1.0) / time;
        }
        (time / row.time_s).ln()
    }
}

/// Nearly the square of small errors, in proportion to large ones.
fn loss(error: f64) -> f64 {
    2.0 * STRAIGHT * STRAIGHT * ((1.0 + (error / STRAIGHT).powi(2)).sqrt() - 1.0)
}

/// How much an error pulls, against its square.
fn weight(error: f64) -> f64 {
    1.0 / (1.0 + (error / STRAIGHT).powi(2)).sqrt()
}

fn exponents(theta: &Array1<f64>, n: usize) -> Sharpness {
    Sharpness { core: 1.0 + theta[n].exp(), memory: 1.0 + theta[n + 1].exp() }
}

/// Derivative of the logarithm of a smooth maximum by its exponent.
fn by_exponent(parts: &[f64], maximum: f64, q: f64) -> f64 {
    if maximum <= 0.0 {
        return 0.0;
    }
    // ln M = ln(sum p^q) / q; with r = p / M the sum of r^q is 1.
    let mixed = parts.iter().filter(|p| **p > 0.0).map(|p| (p / maximum).powf(q) * (p / maximum).ln());
    mixed.sum::<f64>() / q
}

impl CostFunction for Overlap<'_> {
    type Param = Array1<f64>;
    type Output = f64;

    fn cost(&self, theta: &Array1<f64>) -> Result<f64, Error> {
        let rows = self.table.rows().len();
        let sum: f64 = (0..rows).map(|r| loss(self.residual(theta, r, None))).sum();
        let away = theta - &self.start;
        Ok(sum / rows as f64 + RIDGE * away.dot(&away))
    }
}

impl Gradient for Overlap<'_> {
    type Param = Array1<f64>;
    type Gradient = Array1<f64>;

    fn gradient(&self, theta: &Array1<f64>) -> Result<Array1<f64>, Error> {
        let rows = self.table.rows().len();
        let mut slopes = Array1::zeros(theta.len());
        let mut out = (theta - &self.start) * (2.0 * RIDGE);
        for row in 0..rows {
            let residual = self.residual(theta, row, Some(&mut slopes));
            out.scaled_add(2.0 * residual * weight(residual) / rows as f64, &slopes);
        }
        Ok(out)
    }
}

impl Hessian for Overlap<'_> {
    type Param = Array1<f64>;
    type Hessian = Array2<f64>;

    fn hessian(&self, theta: &Array1<f64>) -> Result<Array2<f64>, Error> {
        let rows = self.table.rows().len();
        let mut slopes = Array1::zeros(theta.len());
        let mut out = Array2::<f64>::eye(theta.len()) * (2.0 * RIDGE);
        for row in 0..rows {
            let weight = weight(self.residual(theta, row, Some(&mut slopes)));
            for i in 0..theta.len() {
                for j in 0..theta.len() {
                    out[(i, j)] += 2.0 * weight * slopes[i] * slopes[j] / rows as f64;
                }
            }
        }
        Ok(out)
    }
}

/// Parts of the time of the row that has most of it at which a weight begins that is zero in a sum: what hides behind something
/// else costs nothing there, but is not free.
const BEGINNINGS: [f64; 3] = [0.01, 0.1, 0.5];

/// Weights of the columns and the exponents, from weights to begin with: the best of several beginnings, since there are several
/// minima.
pub(crate) fn fit(
    table: &Table,
    columns: &[usize],
    first: &Array1<f64>,
    quantised: bool,
) -> Result<(Array1<f64>, Sharpness), LinearError> {
    let mut best: Option<(f64, Array1<f64>)> = None;
    for part in BEGINNINGS {
        let (cost, theta) = from(begin(table, columns, first, part), table, columns, quantised)?;
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, theta));
        }
    }
    let (_, theta) = best.ok_or_else(no_value)?;
    let n = columns.len();
    Ok((theta.iter().take(n).map(|t| t.exp()).collect(), exponents(&theta, n)))
}

fn no_value() -> LinearError {
    LinearError::Numeric("no finite value was met".into())
}

/// Logarithms of weights to begin with, and of both exponents less one.
fn begin(table: &Table, columns: &[usize], first: &Array1<f64>, part: f64) -> Array1<f64> {
    let little = |column: usize| {
        let rows = table.rows().iter().filter(|r| r.counts[column] > 0.0);
        part * rows.map(|r| r.time_s / r.counts[column]).fold(f64::INFINITY, f64::min)
    };
    let logs = columns.iter().zip(first).map(|(c, w)| w.max(little(*c)).max(1e-30).ln());
    logs.chain([FIRST.core, FIRST.memory].map(|q| (q - 1.0).ln())).collect()
}

/// The least cost that is met from a beginning, and where.
fn from(
    start: Array1<f64>,
    table: &Table,
    columns: &[usize],
    quantised: bool,
) -> Result<(f64, Array1<f64>), LinearError> {
    let problem = Overlap { table, quantised, columns, start: start.clone() };
    let steps = Steihaug::new().with_max_iters(100);
    let result = Executor::new(problem, TrustRegion::new(steps))
        .configure(|state| state.param(start).max_iters(ITERATIONS))
        .run()
        .map_err(|e| LinearError::Numeric(e.to_string()))?;
    let best = result.state.get_best_param().ok_or_else(no_value)?;
    Ok((result.state.get_best_cost(), best.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Property, Row};

    #[test]
    fn derivatives_are_those_of_the_cost() {
        let property = |name: &str, part| Property { name: name.to_owned(), part };
        let properties = [("c", Part::Overhead), ("f", Part::Arithmetic), ("l", Part::Local), ("m", Part::Memory)];
        let properties = properties.map(|(n, p)| property(n, p)).to_vec();
        let mut table = Table::new(properties, 0.0);
        for i in 1..6 {
            let counts = vec![1.0, f64::from(i), f64::from(i * i) / 3.0, f64::from(7 - i)];
            table.push(Row { name: i.to_string(), counts, quantised: 1.1, time_s: f64::from(i) * 0.8 }).unwrap();
        }
        let start = Array1::from(vec![0.1, -0.2, 0.3, 0.1, 0.0, 0.2]);
        let problem = Overlap { table: &table, quantised: true, columns: &[0, 1, 2, 3], start: start.clone() };
        let theta = Array1::from(vec![0.2, -0.4, 0.1, 0.3, 0.5, -0.3]);
        let gradient = problem.gradient(&theta).unwrap();
        for i in 0..theta.len() {
            let at = |by: f64| {
                let mut moved = theta.clone();
                moved[i] += by;
                problem.cost(&moved).unwrap()
            };
            let slope = (at(1e-6) - at(-1e-6)) / 2e-6;
            assert!((slope - gradient[i]).abs() < 1e-7, "{i}: {slope} {}", gradient[i]);
        }
    }
}
