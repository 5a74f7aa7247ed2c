//! Conformance of a [`Fit`] and of the [`Predictor`]s that it makes.

use crate::points::legal_points;
use crate::toy;
use crate::violation::{Conformity, Violation, ensure};
use tilewright_core::feature::Feature;
use tilewright_core::predictor::{BindError, Fit, Predictor, RowPredictor, Scorer};
use tilewright_core::problem::Problem;
use tilewright_core::space::{Point, Points};
use tilewright_core::training::TrainingSet;

const SUITE: &str = "predictor";

/// How far a bound score may be from the prediction of the whole row, in log-cost: rounding of another order of sums.
const SAME: f32 = 1e-3;

fn close(a: f32, b: f32) -> bool {
    (a - b).abs() <= SAME * (1.0 + b.abs())
}

/// Holds a way of fitting to its contract, on rows of the toy kernel.
///
/// Checked: the same rows and seed give the same predictions to the bit; a held-out length is predicted with less than
/// half the squared error of the mean; no rows give an error, one row or constant columns give an error or a model that
/// predicts finite numbers; every model passes [`row_predictor`].
///
/// # Errors
/// The first broken promise.
pub fn fit<F: Fit>(fit: &F) -> Conformity {
    let data = toy::training_set(&[100, 700, 3000, 20_000, 100_000, 600_000], 150, 1);
    let fitted = |data: &TrainingSet, seed| {
        let model = fit.fit(data, seed);
        model.map_err(|e| Violation { suite: SUITE, check: "toy-rows-fit", message: e.to_string() })
    };
    let model = fitted(&data, 7)?;
    let again = fitted(&data, 7)?;
    let rows = toy::training_set(&[300, 9000], 100, 2);
    ensure!(
        bits(&predict(&model, &rows.rows)) == bits(&predict(&again, &rows.rows)),
        "fit-repeats",
        "two fits on the same rows with the same seed predict differently"
    );
    row_predictor(&model, &toy::problem(9000))?;
    learns(&model, &rows)?;
    degenerate(fit, &data)
}

fn predict(model: &dyn RowPredictor, rows: &[f32]) -> Vec<f32> {
    let mut out = Vec::new();
    model.predict(rows, &mut out);
    out
}

fn bits(scores: &[f32]) -> Vec<u32> {
    scores.iter().map(|x| x.to_bits()).collect()
}

fn learns(model: &dyn RowPredictor, held_out: &TrainingSet) -> Conformity {
    let logs: Vec<f64> = held_out.costs.iter().map(|c| c.ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let spread: f64 = logs.iter().map(|y| (y - mean).powi(2)).sum();
    let predicted = predict(model, &held_out.rows);
    let error: f64 = logs.iter().zip(predicted).map(|(y, p)| (y - f64::from(p)).powi(2)).sum();
    ensure!(
        error < 0.5 * spread,
        "toy-is-learned",
        "the squared error on held-out rows is {:.3} of that of their mean",
        error / spread
    );
    Ok(())
}

/// Training sets that cannot be learned from: an error or a harmless model, no panic.
fn degenerate<F: Fit>(fit: &F, data: &TrainingSet) -> Conformity {
    let none = fit.fit(&TrainingSet::new(data.schema.clone()), 1);
    ensure!(none.is_err(), "no-rows-refused", "a model was fitted on no rows");
    let constant: Vec<usize> = vec![0; 40];
    for (name, indices) in [("one row", &constant[..1]), ("forty equal rows", &constant[..])] {
        if let Ok(model) = fit.fit(&data.subset(indices), 1) {
            let out = predict(&model, &data.rows);
            ensure!(
                out.iter().all(|x| x.is_finite()),
                "predictions-are-finite",
                "a model of {name} predicts {:?}",
                out.iter().find(|x| !x.is_finite())
            );
        }
    }
    Ok(())
}

/// Holds a predictor to its contract on a problem that it can bind to, with at least three legal points.
///
/// Checked: one finite number a point; results do not depend on how points are batched; a screen keeps to the same and has
/// a margin.
///
/// # Errors
/// The first broken promise.
pub fn predictor(model: &dyn Predictor, problem: &dyn Problem) -> Result<Vec<f32>, Violation> {
    let refused = |e: BindError| Violation { suite: SUITE, check: "problem-is-bound", message: e.to_string() };
    let scorer = model.bind(problem).map_err(refused)?;
    let points = points(problem);
    let scores = batches_agree(&*scorer, &points)?;
    if let Some(screen) = scorer.screen() {
        batches_agree(screen.scorer, &points)?;
        let margin = screen.margin;
        ensure!(margin >= 0.0, "screen-has-a-margin", "margin {margin}");
    }
    Ok(scores)
}

fn points(problem: &dyn Problem) -> Vec<Point> {
    legal_points(problem.space(), 67, 5)
}

/// Holds a row predictor to its contract on a problem of its schema, with at least three legal points.
///
/// Checked: one finite number a row, appended; the promises of a [`predictor`]; a bound score equals the prediction of the
/// whole row; problems of another schema are refused with both hashes.
///
/// # Errors
/// The first broken promise.
pub fn row_predictor(model: &dyn RowPredictor, problem: &dyn Problem) -> Conformity {
    ensure!(
        model.schema() == problem.schema(),
        "schema-is-kept",
        "the model's schema is {:?}, the rows' {:?}",
        model.schema(),
        problem.schema()
    );
    let mut rows = Vec::new();
    let points = points(problem);
    for point in &points {
        problem.input_features(&mut rows);
        problem.config_features(point, &mut rows);
    }
    let whole = rows_are_independent(model, &rows, points.len())?;
    let scores = predictor(model, problem)?;
    let apart = whole.iter().zip(&scores).find(|(w, s)| !close(**s, **w));
    ensure!(apart.is_none(), "bind-equals-predict", "prediction and bound score of a point: {apart:?}");
    refuses(model)
}

fn rows_are_independent(model: &dyn RowPredictor, rows: &[f32], count: usize) -> Result<Vec<f32>, Violation> {
    let mut out = vec![-1.0];
    model.predict(rows, &mut out);
    ensure!(
        out.len() == 1 + count && out[0] == -1.0,
        "one-number-a-row",
        "{count} rows gave {} numbers behind the first",
        out.len() - 1
    );
    ensure!(out.iter().all(|x| x.is_finite()), "predictions-are-finite", "{out:?}");
    let singly: Vec<f32> = rows.chunks(rows.len() / count).flat_map(|row| predict(model, row)).collect();
    let apart = singly.iter().zip(&out[1..]).find(|(a, b)| !close(**a, **b));
    ensure!(apart.is_none(), "batches-agree", "one row predicted alone and among others: {apart:?}");
    ensure!(predict(model, &[]).is_empty(), "one-number-a-row", "no rows gave a number");
    Ok(out.split_off(1))
}

fn batches_agree(scorer: &dyn Scorer, points: &[Point]) -> Result<Vec<f32>, Violation> {
    let count = points.len();
    let whole = scorer.score_each(points);
    ensure!(whole.iter().all(|x| x.is_finite()), "predictions-are-finite", "{whole:?}");
    let indices: Vec<u16> = points.iter().flat_map(|p| p.0.iter().copied()).collect();
    let all = Points::new(&indices, count);
    for batch in [1, 3, 16, 64] {
        let mut parts = vec![f32::NAN; count];
        for (i, out) in parts.chunks_mut(batch).enumerate() {
            scorer.score(all.part(i * batch, out.len()), out);
        }
        ensure!(
            bits(&parts) == bits(&whole),
            "batches-agree",
            "scores in batches of {batch} differ from those in one batch of {count}"
        );
    }
    Ok(whole)
}

fn refuses(model: &dyn RowPredictor) -> Conformity {
    // The toy problem under a schema with one more feature.
    let mut schema = model.schema().clone();
    schema.config.push(Feature::flag("foreign"));
    let (width, hash) = (schema.config.len(), schema.hash());
    let space = toy::problem(1000).space().clone();
    let foreign = toy::Guise::new(space, schema, move |_, out| out.resize(out.len() + width, 1.0));
    let refusal = model.bind(&foreign).err();
    let hashes = refusal.as_ref().and_then(|e| match e {
        BindError::Schema(e) => Some((e.model.clone(), e.rows.clone())),
        _ => None,
    });
    ensure!(
        hashes == Some((model.schema().hash(), hash)),
        "other-schema-refused",
        "a problem of another schema gives {refusal:?}"
    );
    Ok(())
}
