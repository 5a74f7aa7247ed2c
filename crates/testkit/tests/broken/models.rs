//! Every check of the predictor suite can fail: one deliberate fault each.

use crate::assert_breaks;
use std::sync::atomic::{AtomicU32, Ordering};
use tilewright_core::feature::{FeatureSchema, SchemaMismatch};
use tilewright_core::predictor::{BindError, Fit, Predictor, RowPredictor, Scorer, Screen};
use tilewright_core::problem::Problem;
use tilewright_core::space::Points;
use tilewright_core::training::TrainingSet;
use tilewright_testkit::fit;
use tilewright_testkit::toy::{LogLinear, LogLinearFit, NoRows};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    FitFails,
    IgnoresSeed,
    FitsNothing,
    LearnsNothing,
    NanFromOneRow,
    OtherSchema,
    RefusesOwnSchema,
    AcceptsAnySchema,
    SwapsHashes,
    Overwrites,
    NanPrediction,
    PredictsByBatch,
    ScoresByBatch,
    BoundDiffers,
    NegativeMargin,
    ScreenIsNan,
}

struct BrokenFit(Fault);

struct BrokenModel {
    inner: LogLinear,
    schema: FeatureSchema,
    fault: Fault,
    rows: usize,
    shift: f32,
}

struct BrokenScorer<'a> {
    inner: Box<dyn Scorer + 'a>,
    fault: Fault,
    screen: NanScorer,
}

struct NanScorer;

impl Scorer for NanScorer {
    fn score(&self, _: Points<'_>, out: &mut [f32]) {
        out.fill(f32::NAN);
    }
}

impl Fit for BrokenFit {
    type Model = BrokenModel;
    type Error = NoRows;

    fn fit(&self, data: &TrainingSet, seed: u64) -> Result<BrokenModel, NoRows> {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let mut schema = data.schema.clone();
        let inner = match self.0 {
            Fault::FitFails => return Err(NoRows),
            Fault::FitsNothing if data.is_empty() => {
                let mut one = TrainingSet::new(schema.clone());
                one.push(&vec![1.0; schema.width()], 1.0, 0).unwrap();
                LogLinearFit.fit(&one, seed)?
            }
            _ => LogLinearFit.fit(data, seed)?,
        };
        if self.0 == Fault::OtherSchema {
            schema.input.pop();
        }
        let call = CALLS.fetch_add(1, Ordering::Relaxed) as f32;
        let shift = if self.0 == Fault::IgnoresSeed { call * 1e-3 } else { 0.0 };
        Ok(BrokenModel { inner, schema, fault: self.0, rows: data.len(), shift })
    }
}

impl RowPredictor for BrokenModel {
    fn schema(&self) -> &FeatureSchema {
        &self.schema
    }

    fn predict(&self, rows: &[f32], out: &mut Vec<f32>) {
        if self.fault == Fault::Overwrites {
            out.clear();
        }
        let start = out.len();
        self.inner.predict(rows, out);
        let count = out.len() - start;
        for x in &mut out[start..] {
            match self.fault {
                Fault::LearnsNothing => *x = 0.0,
                Fault::NanFromOneRow if self.rows == 1 => *x = f32::NAN,
                Fault::NanPrediction => *x = f32::NAN,
                Fault::PredictsByBatch => *x += count as f32,
                _ => *x += self.shift,
            }
        }
    }
}

impl Predictor for BrokenModel {
    fn bind<'a>(&'a self, problem: &'a dyn Problem) -> Result<Box<dyn Scorer + 'a>, BindError> {
        let (model, rows) = (self.schema.hash(), problem.schema().hash());
        match self.fault {
            Fault::RefusesOwnSchema => return Err(SchemaMismatch { model, rows }.into()),
            Fault::AcceptsAnySchema if model != rows => return Ok(Box::new(NanScorer)),
            Fault::SwapsHashes if model != rows => return Err(SchemaMismatch { model: rows, rows: model }.into()),
            _ => {}
        }
        let inner = self.inner.bind(problem)?;
        Ok(Box::new(BrokenScorer { inner, fault: self.fault, screen: NanScorer }))
    }
}

impl Scorer for BrokenScorer<'_> {
    fn score(&self, points: Points<'_>, out: &mut [f32]) {
        self.inner.score(points, out);
        let count = out.len() as f32;
        for x in out {
            match self.fault {
                Fault::ScoresByBatch => *x += count * 1e-5,
                Fault::BoundDiffers => *x += 0.5,
                _ => {}
            }
        }
    }

    fn screen(&self) -> Option<Screen<'_>> {
        match self.fault {
            Fault::NegativeMargin => Some(Screen { scorer: &*self.inner, margin: -1.0 }),
            Fault::ScreenIsNan => Some(Screen { scorer: &self.screen, margin: 1.0 }),
            _ => None,
        }
    }
}

#[test]
fn the_wrapper_without_a_fault_conforms() {
    assert_eq!(fit(&BrokenFit(Fault::None)), Ok(()));
}

#[test]
fn every_fault_of_a_model_is_seen() {
    for (fault, check) in [
        (Fault::FitFails, "toy-rows-fit"),
        (Fault::IgnoresSeed, "fit-repeats"),
        (Fault::FitsNothing, "no-rows-refused"),
        (Fault::LearnsNothing, "bind-equals-predict"),
        (Fault::NanFromOneRow, "predictions-are-finite"),
        (Fault::OtherSchema, "schema-is-kept"),
        (Fault::RefusesOwnSchema, "problem-is-bound"),
        (Fault::AcceptsAnySchema, "other-schema-refused"),
        (Fault::SwapsHashes, "other-schema-refused"),
        (Fault::Overwrites, "one-number-a-row"),
        (Fault::NanPrediction, "predictions-are-finite"),
        (Fault::PredictsByBatch, "batches-agree"),
        (Fault::ScoresByBatch, "batches-agree"),
        (Fault::BoundDiffers, "bind-equals-predict"),
        (Fault::NegativeMargin, "screen-has-a-margin"),
        (Fault::ScreenIsNan, "predictions-are-finite"),
    ] {
        assert_breaks(fit(&BrokenFit(fault)), check);
    }
}

/// A model that is consistent and knows nothing.
struct Constant(FeatureSchema);

impl RowPredictor for Constant {
    fn schema(&self) -> &FeatureSchema {
        &self.0
    }

    fn predict(&self, rows: &[f32], out: &mut Vec<f32>) {
        out.extend(rows.chunks(self.0.width()).map(|_| 0.0));
    }
}

impl Predictor for Constant {
    fn bind<'a>(&'a self, problem: &'a dyn Problem) -> Result<Box<dyn Scorer + 'a>, BindError> {
        self.0.expect(problem.schema())?;
        Ok(Box::new(Zero))
    }
}

struct Zero;

impl Scorer for Zero {
    fn score(&self, _: Points<'_>, out: &mut [f32]) {
        out.fill(0.0);
    }
}

struct ConstantFit;

impl Fit for ConstantFit {
    type Model = Constant;
    type Error = NoRows;

    fn fit(&self, data: &TrainingSet, _: u64) -> Result<Constant, NoRows> {
        Ok(Constant(data.schema.clone()))
    }
}

#[test]
fn a_model_that_knows_nothing_is_seen() {
    assert_breaks(fit(&ConstantFit), "toy-is-learned");
}
