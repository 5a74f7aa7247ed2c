//! The fitted model, as a [`Predictor`].

use std::sync::OnceLock;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use tilewright_core::feature::{FeatureSchema, SchemaMismatch};
use tilewright_core::predictor::{BindError, Coverage, Predictor, RowPredictor, Scorer, Screen};
use tilewright_core::problem::Problem;
use tilewright_core::setting::SettingError;
use tilewright_core::space::{BoundSpace, Points};

use crate::bound::{BoundEnsemble, BoundNetwork, fixing};
use crate::domain::Domain;
use crate::error::TrainError;
use crate::layout::Layout;
use crate::screen::{LEAST_SCREEN_POINTS, ScreenReport, ScreenSettings, distill};
use crate::train::{TrainReport, Trained};

/// Multi-layer perceptrons that predict the natural log of the cost (seconds) of feature rows: the mean of what each of them, fitted from
/// another start on another split of the same rows, expects. The fastest of very many configurations is often one that a single
/// network takes for too fast; the others seldom agree.
#[derive(Debug, Clone)]
pub struct Mlp {
    pub(crate) schema: FeatureSchema,
    /// At least one.
    pub(crate) members: Vec<Trained>,
    pub(crate) screen: Option<ScreenSettings>,
    /// The inputs that it was fitted on; none of a model that was stored without them.
    pub(crate) domain: Option<Domain>,
    /// The networks with no column fixed.
    free: BoundEnsemble,
}

impl Mlp {
    /// Of at least one network.
    pub(crate) fn new(schema: FeatureSchema, members: Vec<Trained>, screen: Option<ScreenSettings>) -> Self {
        let free = bind(&members, &[]);
        Self { schema, members, screen, domain: None, free }
    }

    /// With the inputs that it was fitted on, where they are known.
    pub(crate) fn with_domain(self, domain: Option<Domain>) -> Self {
        Self { domain, ..self }
    }

    /// How training of the first network went; the mean of several is closer than it.
    pub fn report(&self) -> &TrainReport {
        &self.members[0].report
    }

    /// Hidden layers of each network.
    pub fn layout(&self) -> Layout {
        self.members[0].network.layout()
    }

    /// Networks whose mean is taken.
    pub fn members(&self) -> usize {
        self.members.len()
    }

    /// Floating-point operations of scoring one full row: two for each weight.
    pub fn flops_per_row(&self) -> u64 {
        self.free.flops_per_row()
    }

    /// How searches are screened; `None` where they are not.
    pub fn screen_settings(&self) -> Option<&ScreenSettings> {
        self.screen.as_ref()
    }

    /// Replaces how searches are screened.
    ///
    /// # Errors
    /// A setting out of its range.
    pub fn set_screen(&mut self, settings: Option<ScreenSettings>) -> Result<(), SettingError> {
        settings.iter().try_for_each(ScreenSettings::check)?;
        self.screen = settings;
        Ok(())
    }

    /// The model of the rows without its last input columns, which have these values from now on: of a device, where it was fitted
    /// on several.
    ///
    /// # Errors
    /// More columns than the input has.
    pub fn fixing(&self, last: &[f32]) -> Result<Self, TrainError> {
        let mut schema = self.schema.clone();
        let (have, expected) = (last.len(), schema.input.len());
        let kept = expected.checked_sub(have).ok_or(TrainError::Length { field: "fixed columns", have, expected })?;
        schema.input.truncate(kept);
        let mut fixed = vec![None; kept];
        fixed.extend(last.iter().copied().map(Some));
        fixed.resize(self.schema.width(), None);
        let member = |member: &Trained| {
            let (network, encoding) = fixing(&member.network, &member.encoding, &fixed);
            Trained { network, encoding, ..member.clone() }
        };
        let domain = self.domain.as_ref().map(|domain| domain.truncated(kept));
        let members = self.members.iter().map(member).collect();
        Ok(Self::new(schema, members, self.screen.clone()).with_domain(domain))
    }

    /// Fixes the input by its features, for rows of config features: [`Predictor::bind`] without a problem at hand, and
    /// without a screen until [`MlpRows::set_sample`] gives it rows to be distilled on.
    ///
    /// # Errors
    /// Features of another number than the schema has.
    pub fn bind_features(&self, input: &[f32]) -> Result<MlpRows<'_>, TrainError> {
        let expected = self.schema.input.len();
        if input.len() != expected {
            return Err(TrainError::Length { field: "input features", have: input.len(), expected });
        }
        let network = bind(&self.members, input);
        let coverage = self.domain.as_ref().map_or(Coverage::Full, |domain| domain.coverage(input));
        Ok(MlpRows { model: self, network, coverage, sample: Vec::new(), screen: OnceLock::new() })
    }
}

/// Networks of which the first columns, the input's, are fixed.
fn bind(members: &[Trained], input: &[f32]) -> BoundEnsemble {
    let mut fixed: Vec<Option<f32>> = input.iter().copied().map(Some).collect();
    let member = |member: &Trained| {
        fixed.resize(member.encoding.columns.len(), None);
        BoundNetwork::new(&member.network, &member.encoding, member.target, &fixed)
    };
    BoundEnsemble::new(members.iter().map(member).collect())
}

impl RowPredictor for Mlp {
    fn schema(&self) -> &FeatureSchema {
        &self.schema
    }

    fn predict(&self, rows: &[f32], out: &mut Vec<f32>) {
        let start = out.len();
        out.resize(start + rows.len() / self.schema.width().max(1), 0.0);
        self.free.score_rows(rows, &mut out[start..]);
    }
}

impl Predictor for Mlp {
    fn kind(&self) -> &str {
        "mlp"
    }

    fn bind<'a>(&'a self, problem: &'a dyn Problem) -> Result<Box<dyn Scorer + 'a>, BindError> {
        self.schema.expect(problem.schema())?;
        let mut input = Vec::with_capacity(self.schema.input.len());
        problem.input_features(&mut input);
        let Ok(mut rows) = self.bind_features(&input) else {
            // The problem breaks its own schema.
            let rows = format!("{} input features instead of {}", input.len(), self.schema.input.len());
            return Err(SchemaMismatch { model: self.schema.hash(), rows }.into());
        };
        if let Some(settings) = &self.screen
            && problem.space().cartesian() >= u128::from(settings.least_space)
        {
            rows.sample = sample(problem, settings.points);
        }
        Ok(Box::new(MlpScorer { rows, problem, screen: OnceLock::new() }))
    }
}

/// Points that a thread draws at a time, each with a generator of its own: the sample is the same on any number.
const DRAWN_TOGETHER: usize = 256;

/// Config features of random legal points; fewer than asked for where most draws end in a dead end.
fn sample(problem: &dyn Problem, points: usize) -> Vec<f32> {
    let space = problem.space();
    (0..points.div_ceil(DRAWN_TOGETHER) as u64)
        .into_par_iter()
        .flat_map_iter(|chunk| {
            let mut rng = ChaCha8Rng::seed_from_u64(chunk);
            let mut rows = Vec::new();
            // Dead ends cost little; four times the draws make up for most of them.
            let points = (0..4 * DRAWN_TOGETHER).filter_map(|_| descend(space, &mut rng));
            points.take(DRAWN_TOGETHER).for_each(|point| problem.config_features(&point, &mut rows));
            rows
        })
        .collect()
}

/// A legal point, one parameter after the other at random among the values that are left to it. Not uniform over the
/// points, which a screen does not need.
fn descend(space: &BoundSpace, rng: &mut impl Rng) -> Option<Vec<u16>> {
    let mut point = Vec::with_capacity(space.params().len());
    let mut values = Vec::new();
    while point.len() < space.params().len() {
        space.next_values(&point, &mut values);
        if values.is_empty() {
            return None;
        }
        point.push(values[rng.random_range(0..values.len())]);
    }
    Some(point)
}

/// An [`Mlp`] with the input fixed: its share of the first layers is part of their biases. Scores rows of config features.
#[derive(Debug)]
pub struct MlpRows<'a> {
    model: &'a Mlp,
    network: BoundEnsemble,
    coverage: Coverage,
    sample: Vec<f32>,
    screen: OnceLock<Option<(BoundNetwork, ScreenReport)>>,
}

impl MlpRows<'_> {
    /// Full where the model was fitted on this input, or on four near it: each size within a factor of four, each other value within a quarter of
    /// its range. Full of a model that was stored without its inputs, too.
    pub fn coverage(&self) -> Coverage {
        self.coverage
    }

    /// Floating-point operations of scoring one row of config features: two for each weight.
    pub fn flops_per_row(&self) -> u64 {
        self.network.flops_per_row()
    }

    /// Log-costs of rows of config features, row-major, one result per element of `out`.
    pub fn score(&self, config_rows: &[f32], out: &mut [f32]) {
        self.network.score_rows(config_rows, out);
    }

    /// The same by the screen; nothing is written, and the answer is no, where there is none.
    pub fn score_screen(&self, config_rows: &[f32], out: &mut [f32]) -> bool {
        let Some((network, _)) = self.distilled() else { return false };
        network.score_rows(config_rows, out);
        true
    }

    /// Config features of random legal points of the input, for the screen to be distilled on. A bound problem brings
    /// its own.
    pub fn set_sample(&mut self, config_rows: Vec<f32>) {
        self.sample = config_rows;
        self.screen = OnceLock::new();
    }

    /// What calibration says of the screen; distils it if that has not happened yet.
    pub fn screen_report(&self) -> Option<&ScreenReport> {
        self.distilled().map(|(_, report)| report)
    }

    fn distilled(&self) -> Option<&(BoundNetwork, ScreenReport)> {
        let distilled = self.screen.get_or_init(|| {
            let settings = self.model.screen.as_ref()?;
            let columns = &self.model.members[0].encoding.columns[self.model.schema.input.len()..];
            let sizes: Vec<bool> = columns.iter().map(|column| column.log2).collect();
            if self.sample.len() < LEAST_SCREEN_POINTS * sizes.len() {
                return None;
            }
            // A sample that nothing can be learned from means a search without a screen.
            distill(&self.network, &self.sample, &sizes, settings, 0).ok()
        });
        distilled.as_ref()
    }
}

/// The same for points of a problem, whose rows are computed where the network reads them.
struct MlpScorer<'a> {
    rows: MlpRows<'a>,
    problem: &'a dyn Problem,
    screen: OnceLock<Option<(OnPoints<'a>, f32)>>,
}

impl Scorer for MlpScorer<'_> {
    fn score(&self, points: Points<'_>, out: &mut [f32]) {
        self.rows.network.score_points(self.problem, points, out);
    }

    fn screen(&self) -> Option<Screen<'_>> {
        let screen = self.screen.get_or_init(|| {
            let (network, report) = self.rows.distilled()?;
            Some((OnPoints { network: network.clone(), problem: self.problem }, report.margin))
        });
        screen.as_ref().map(|(scorer, margin)| Screen { scorer, margin: *margin })
    }

    fn coverage(&self) -> Coverage {
        self.rows.coverage
    }

    fn opinions(&self, points: Points<'_>) -> Vec<Vec<f32>> {
        self.rows.network.each(self.problem, points)
    }
}

/// A network without a screen of its own.
struct OnPoints<'a> {
    network: BoundNetwork,
    problem: &'a dyn Problem,
}

impl Scorer for OnPoints<'_> {
    fn score(&self, points: Points<'_>, out: &mut [f32]) {
        self.network.score_points(self.problem, points, out);
    }
}
