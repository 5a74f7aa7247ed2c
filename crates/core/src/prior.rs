//! A model of one kind on top of another: the prior says what is expected, the model by how much that is off.

use crate::predictor::{BindError, Coverage, Predictor, Scorer};
use crate::problem::Problem;
use crate::space::Points;

/// Two predictors whose log-costs add up. The second is fitted on costs over what the first expects of them.
pub struct WithPrior<P, M> {
    kind: String,
    prior: P,
    model: M,
}

impl<P: Predictor, M: Predictor> WithPrior<P, M> {
    /// A model that was fitted on the ratios of costs to what the prior expects.
    pub fn new(prior: P, model: M) -> Self {
        Self { kind: format!("{}-over-{}", model.kind(), prior.kind()), prior, model }
    }
}

impl<P: Predictor, M: Predictor> Predictor for WithPrior<P, M> {
    /// Of `mlp` and `linear`, `mlp-over-linear`.
    fn kind(&self) -> &str {
        &self.kind
    }

    fn is_costly(&self) -> bool {
        self.prior.is_costly() || self.model.is_costly()
    }

    fn bind<'a>(&'a self, problem: &'a dyn Problem) -> Result<Box<dyn Scorer + 'a>, BindError> {
        Ok(Box::new(Sum { prior: self.prior.bind(problem)?, model: self.model.bind(problem)? }))
    }
}

struct Sum<'a> {
    prior: Box<dyn Scorer + 'a>,
    model: Box<dyn Scorer + 'a>,
}

impl Scorer for Sum<'_> {
    fn score(&self, points: Points<'_>, out: &mut [f32]) {
        self.model.score(points, out);
        let mut expected = vec![0.0; out.len()];
        self.prior.score(points, &mut expected);
        out.iter_mut().zip(expected).for_each(|(out, expected)| *out += expected);
    }

    fn coverage(&self) -> Coverage {
        self.prior.coverage().min(self.model.coverage())
    }

    fn opinions(&self, points: Points<'_>) -> Vec<Vec<f32>> {
        let mut expected = vec![0.0; points.len()];
        self.prior.score(points, &mut expected);
        let mut all = self.model.opinions(points);
        all.iter_mut().for_each(|one| one.iter_mut().zip(&expected).for_each(|(out, expected)| *out += expected));
        all
    }
}
