//! The fitted model, as a [`Predictor`].

use tilewright_core::feature::{FeatureSchema, SchemaMismatch};
use tilewright_core::predictor::{Predictor, Scorer, Screen};
use tilewright_core::problem::Problem;

use crate::bound::BoundNetwork;
use crate::error::TrainError;
use crate::layout::Layout;
use crate::pool::PoolInput;
use crate::screen::{ScreenModel, ScreenReport, ScreenSettings, bind, distill};
use crate::train::{TrainReport, Trained};

/// A multi-layer perceptron that predicts the natural log of the cost (seconds) of feature rows.
#[derive(Debug, Clone)]
pub struct Mlp {
    pub(crate) schema: FeatureSchema,
    pub(crate) trained: Trained,
    pub(crate) screen: Option<ScreenModel>,
    /// The network with no column fixed.
    free: BoundNetwork,
}

impl Mlp {
    pub(crate) fn new(schema: FeatureSchema, trained: Trained) -> Self {
        let free = bind(&trained, &[]);
        Self { schema, trained, screen: None, free }
    }

    /// How training went.
    pub fn report(&self) -> &TrainReport {
        &self.trained.report
    }

    /// Hidden layers.
    pub fn layout(&self) -> Layout {
        self.trained.network.layout()
    }

    /// Floating-point operations of scoring one full row: two for each weight.
    pub fn flops_per_row(&self) -> u64 {
        self.free.flops_per_row()
    }

    /// What is known of the screen, if there is one.
    pub fn screen_report(&self) -> Option<&ScreenReport> {
        self.screen.as_ref().map(|screen| &screen.report)
    }

    /// Fits (or replaces) the cheaper network that a search screens with, on feature rows of the real space: for each
    /// of some dozens of random inputs, about a thousand random legal configurations.
    ///
    /// # Errors
    /// A pool of too few inputs, or of rows of another width; a setting out of range.
    pub fn distill(
        &mut self,
        pool: &[PoolInput],
        settings: &ScreenSettings,
        seed: u64,
    ) -> Result<&ScreenReport, TrainError> {
        let screen = distill(&self.trained, self.schema.input.len(), pool, settings, seed)?;
        Ok(&self.screen.insert(screen).report)
    }

    /// Fixes the input by its features: [`Predictor::bind`] without a problem at hand.
    ///
    /// # Errors
    /// Features of another number than the schema has.
    pub fn bind_features(&self, input: &[f32]) -> Result<MlpScorer, TrainError> {
        let expected = self.schema.input.len();
        if input.len() != expected {
            return Err(TrainError::Length { field: "input features", have: input.len(), expected });
        }
        let screen = self
            .screen
            .as_ref()
            .map(|screen| (MlpScorer { network: bind(&screen.trained, input), screen: None }, screen.report.margin));
        Ok(MlpScorer { network: bind(&self.trained, input), screen: screen.map(Box::new) })
    }
}

impl Predictor for Mlp {
    fn schema(&self) -> &FeatureSchema {
        &self.schema
    }

    fn predict(&self, rows: &[f32], out: &mut Vec<f32>) {
        let start = out.len();
        out.resize(start + rows.len() / self.schema.width().max(1), 0.0);
        self.free.score_into(rows, &mut out[start..]);
    }

    fn bind(&self, problem: &dyn Problem) -> Result<Box<dyn Scorer + '_>, SchemaMismatch> {
        self.schema.expect(problem.schema())?;
        let mut input = Vec::with_capacity(self.schema.input.len());
        problem.input_features(&mut input);
        match self.bind_features(&input) {
            Ok(scorer) => Ok(Box::new(scorer)),
            // The problem breaks its own schema.
            Err(_) => Err(SchemaMismatch {
                model: self.schema.hash(),
                rows: format!("{} input features instead of {}", input.len(), self.schema.input.len()),
            }),
        }
    }
}

/// An [`Mlp`] with the input fixed: its share of the first layer is part of that layer's bias.
#[derive(Debug, Clone)]
pub struct MlpScorer {
    network: BoundNetwork,
    screen: Option<Box<(MlpScorer, f32)>>,
}

impl MlpScorer {
    /// Floating-point operations of scoring one row of config features: two for each weight.
    pub fn flops_per_row(&self) -> u64 {
        self.network.flops_per_row()
    }
}

impl Scorer for MlpScorer {
    fn score(&self, config_rows: &[f32], out: &mut [f32]) {
        self.network.score_into(config_rows, out);
    }

    fn screen(&self) -> Option<Screen<'_>> {
        self.screen.as_deref().map(|(scorer, margin)| Screen { scorer, margin: *margin })
    }
}
