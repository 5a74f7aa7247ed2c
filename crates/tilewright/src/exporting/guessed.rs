//! What a model says of inputs that nobody timed: a tree grown on few inputs sees between them.

use super::{Candidate, Exporting};
use crate::error::Error;
use crate::known::Known;
use crate::planning::problem;
use tilewright_core::expr::Value;
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::Problem;
use tilewright_core::space::{Config, Point};
use tilewright_export::{Cell, Domain};

/// Inputs that a model is asked about, at most.
const MOST: usize = 240;

/// As many inputs as count half: of a candidate that was timed on fewer, less of how the model errs is believed.
const BELIEVED: f64 = 3.0;

/// Inputs, and what is expected of the candidates there.
pub(super) type Guessed = Vec<(Vec<i64>, Vec<Cell>)>;

/// What the model expects of the candidates on inputs, with what it erred by in the mean on those that were timed. Without a model of
/// this kernel, what was timed on the nearest inputs.
pub(super) fn guessed(
    of: &Exporting<'_>,
    (inputs, domain): (&[Config], &Domain),
    timed: &[(Config, Vec<Cell>)],
    candidates: &[Candidate],
) -> Result<Guessed, Error> {
    let Some(any) = inputs.first() else { return Ok(Vec::new()) };
    let known = Known::find(of.home, of.model, &**of.kernel, of.device, any)?;
    // Only what was fitted on this kernel and device is worth it.
    let Some(predictor) = known.predictor.as_deref().filter(|p| p.is_calibrated() && !p.is_costly()) else {
        return near(of, (inputs, domain), timed, candidates);
    };
    let errs = errors(of, predictor, timed, candidates)?;
    let mut out = Vec::new();
    for input in inputs.iter().take(MOST) {
        let problem = problem(&**of.kernel, of.device, input)?;
        let corrected =
            |(said, err): (Option<f64>, &f64)| said.map_or(Cell::Illegal, |log| Cell::Seconds((log + err).exp()));
        let row = said(&*problem, predictor, candidates)?.into_iter().zip(&errs).map(corrected).collect();
        out.extend(domain.numbers(input).ok().map(|numbers| (numbers, row)));
    }
    Ok(out)
}

/// The logarithms of what a model expects; none of what is not legal.
fn said(problem: &dyn Problem, predictor: &dyn Predictor, candidates: &[Candidate]) -> Result<Vec<Option<f64>>, Error> {
    let scorer = predictor.bind(problem).map_err(tilewright_runtime::RuntimeError::from)?;
    let legal: Vec<usize> =
        (0..candidates.len()).filter(|&at| problem.space().is_legal(&candidates[at].point)).collect();
    let points: Vec<Point> = legal.iter().map(|&at| candidates[at].point.clone()).collect();
    let mut out = vec![None; candidates.len()];
    for (&at, log) in legal.iter().zip(scorer.score_each(&points)) {
        out[at] = Some(f64::from(log)).filter(|log| log.is_finite());
    }
    Ok(out)
}

/// By what the model errs for each candidate beside the others, in the mean of logarithms.
fn errors(
    of: &Exporting<'_>,
    predictor: &dyn Predictor,
    timed: &[(Config, Vec<Cell>)],
    candidates: &[Candidate],
) -> Result<Vec<f64>, Error> {
    let mut sums = vec![(0.0, 0.0); candidates.len()];
    for (input, cells) in timed {
        let problem = problem(&**of.kernel, of.device, input)?;
        let pair = |(said, cell): (Option<f64>, &Cell)| match (said, cell) {
            (Some(log), Cell::Seconds(s)) => Some(s.ln() - log),
            _ => None,
        };
        let row: Vec<Option<f64>> = said(&*problem, predictor, candidates)?.into_iter().zip(cells).map(pair).collect();
        let known: Vec<f64> = row.iter().copied().flatten().collect();
        let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
        for (sum, err) in sums.iter_mut().zip(&row) {
            if let Some(err) = err {
                *sum = (sum.0 + err - mean, sum.1 + 1.0);
            }
        }
    }
    Ok(sums.into_iter().map(|(sum, count): (f64, f64)| sum / (count + BELIEVED)).collect())
}

/// Timed inputs that a guess is made from.
const NEAREST: usize = 3;

/// How far apart inputs are that differ in a word, in doublings of a size.
const WORD: f64 = 2.0;

/// What is expected of a configuration that was timed on no near input, as the logarithm of a factor.
const UNKNOWN: f64 = 1.0;

fn near(
    of: &Exporting<'_>,
    (inputs, domain): (&[Config], &Domain),
    timed: &[(Config, Vec<Cell>)],
    candidates: &[Candidate],
) -> Result<Guessed, Error> {
    let mut out = Vec::new();
    for input in inputs.iter().take(MOST) {
        let problem = problem(&**of.kernel, of.device, input)?;
        let mut order: Vec<(f64, &Vec<Cell>)> = timed.iter().map(|(other, row)| (apart(input, other), row)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let cell = |at: usize| match problem.space().is_legal(&candidates[at].point) {
            true => Cell::Seconds(regret(&order, at).exp()),
            false => Cell::Illegal,
        };
        out.extend(domain.numbers(input).ok().map(|numbers| (numbers, (0..candidates.len()).map(cell).collect())));
    }
    Ok(out)
}

/// How far apart two inputs are, in doublings of sizes.
fn apart(a: &Config, b: &Config) -> f64 {
    let one = |((_, a), (_, b)): (&(String, Value), &(String, Value))| match (a, b) {
        (Value::Int(a), Value::Int(b)) => {
            let log = |x: i64| (x.unsigned_abs() as f64 + 1.0).log2();
            (log(*a) - log(*b)).powi(2)
        }
        (a, b) if a == b => 0.0,
        _ => WORD * WORD,
    };
    a.0.iter().zip(&b.0).map(one).sum::<f64>()
}

/// The mean over the nearest inputs of the logarithm of a column's time over the best one's, the nearer ones counting more.
fn regret(order: &[(f64, &Vec<Cell>)], at: usize) -> f64 {
    let log = |cell: &Cell| if let Cell::Seconds(s) = cell { Some(s.ln()) } else { None };
    let best = |row: &[Cell]| row.iter().filter_map(log).fold(f64::INFINITY, f64::min);
    let known = order.iter().filter_map(|(apart, row)| Some((1.0 / (1.0 + apart), log(&row[at])? - best(row))));
    let (sum, weights) =
        known.take(NEAREST).fold((0.0, 0.0), |(sum, all), (weight, regret)| (sum + weight * regret, all + weight));
    // What is far away says little.
    const FAR: f64 = 0.05;
    (sum + FAR * UNKNOWN) / (weights + FAR)
}
