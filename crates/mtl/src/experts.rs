//! Models of the sources that are asked together.

use tilewright_core::selector::{Candidate, Selector, VariantOrder};

/// What a place in the order of a model that only ranks counts as, in log cost.
const PLACE: f64 = 0.1;

/// Several selectors and how much each counts: what they expect is averaged.
pub struct Experts {
    models: Vec<(Box<dyn Selector>, f64)>,
}

/// What the experts expect of the candidates of one input: relative log costs, of which the mean over the candidates is 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    /// Their weighted mean.
    pub(crate) mean: Vec<f64>,
    /// By how much each expert differs from it: one row a candidate, one number an expert; 0 where an expert does not know it.
    pub(crate) apart: Vec<f64>,
    /// Which candidates anyone knows.
    pub(crate) known: Vec<bool>,
}

impl Experts {
    /// Models with their weights; those of weight 0 do not count before anything was seen of the target.
    pub fn new(models: Vec<(Box<dyn Selector>, f64)>) -> Self {
        Self { models }
    }

    /// One whose word stands alone, while others only tell in what ways it may be wrong.
    #[must_use]
    pub fn led_by(leader: Box<dyn Selector>, others: Self) -> Self {
        let others = others.models.into_iter().map(|(model, _)| (model, 0.0));
        Self { models: std::iter::once((leader, 1.0)).chain(others).collect() }
    }

    pub(crate) fn models(&self) -> impl Iterator<Item = &dyn Selector> {
        self.models.iter().map(|(model, _)| &**model)
    }

    pub(crate) fn len(&self) -> usize {
        self.models.len()
    }

    pub(crate) fn expect(&self, input: &[f32], candidates: &[Candidate]) -> Expected {
        let (count, n) = (self.models.len(), candidates.len());
        let mut apart = vec![f64::NAN; n * count];
        let mut sums = vec![(0.0, 0.0); n];
        for (e, (model, weight)) in self.models.iter().enumerate() {
            let costs = centred(&**model, input, candidates);
            for (i, cost) in costs.into_iter().enumerate().filter(|(_, c)| c.is_finite()) {
                apart[i * count + e] = cost;
                sums[i] = (sums[i].0 + weight * cost, sums[i].1 + weight);
            }
        }
        let known = apart.chunks(count.max(1)).map(|row| row.iter().any(|a| !a.is_nan())).collect();
        // What nobody knows is as good as the others on average: that somebody offers it says as much.
        let mean: Vec<f64> =
            sums.into_iter().map(|(sum, weight)| if weight > 0.0 { sum / weight } else { 0.0 }).collect();
        for (i, row) in apart.chunks_exact_mut(count.max(1)).enumerate() {
            row.iter_mut().for_each(|a| *a = if a.is_nan() { 0.0 } else { *a - mean[i] });
        }
        Expected { mean, apart, known }
    }
}

/// Relative log costs by a model, less their mean; NaN of what it does not know.
fn centred(model: &dyn Selector, input: &[f32], candidates: &[Candidate]) -> Vec<f64> {
    let mut costs = Vec::new();
    let mut of: Vec<f64> = if model.relative_costs(input, candidates, &mut costs) {
        costs.into_iter().map(f64::from).collect()
    } else {
        let mut order = VariantOrder::new();
        model.rank(input, candidates, &mut order);
        let mut places = vec![f64::NAN; candidates.len()];
        order.iter().enumerate().for_each(|(place, &i)| places[i] = PLACE * place as f64);
        places
    };
    let known = of.iter().filter(|c| c.is_finite());
    let mean = known.clone().sum::<f64>() / known.count().max(1) as f64;
    of.iter_mut().for_each(|c| *c -= mean);
    of
}

impl Selector for Experts {
    fn rank(&self, input: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        order(&self.expect(input, candidates).mean, out);
    }

    fn relative_costs(&self, input: &[f32], candidates: &[Candidate], out: &mut Vec<f32>) -> bool {
        out.clear();
        let Expected { mean, known, .. } = self.expect(input, candidates);
        out.extend(mean.into_iter().zip(known).map(|(cost, known)| if known { cost as f32 } else { f32::NAN }));
        true
    }
}

/// By ascending cost.
pub(crate) fn order(costs: &[f64], out: &mut VariantOrder) {
    out.clear();
    out.extend(0..costs.len());
    out.sort_by(|&a, &b| costs[a].total_cmp(&costs[b]));
}
