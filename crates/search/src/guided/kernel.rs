//! The covariance of log costs: a product over the parameters of what two values have in common.

use super::axes::Axis;

/// Hyperparameters, all free of constraints.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hyper {
    /// Log of the inverse length by axis: how fast the cost changes along it.
    pub(crate) rate: Vec<f32>,
    /// Logit of the share, by axis, of the variance that depends on the value: the rest is common to all values, so that
    /// effects of single parameters and of pairs are learned from few points.
    pub(crate) share: Vec<f32>,
    /// Log of the variance that no parameter explains, relative to the rest.
    pub(crate) noise: f32,
}

/// Where the hyperparameters begin, and what the prior holds likely.
pub(crate) const RATE: f32 = 0.0;
pub(crate) const SHARE: f32 = 0.0;
pub(crate) const NOISE: f32 = -6.0;

impl Hyper {
    pub(crate) fn new(axes: usize) -> Self {
        Self { rate: vec![RATE; axes], share: vec![SHARE; axes], noise: NOISE }
    }
}

/// The factors of the product by axis and pair of values.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    tables: Vec<(usize, usize, Vec<f32>)>,
    /// The variance that no parameter explains.
    pub(crate) noise: f32,
}

impl Kernel {
    pub(crate) fn new(axes: &[Axis], hyper: &Hyper) -> Self {
        let table = |(i, axis): (usize, &Axis)| (axis.param, axis.count, factors(axis, hyper.rate[i], hyper.share[i]));
        Self { tables: axes.iter().enumerate().map(table).collect(), noise: hyper.noise.exp() }
    }

    /// The covariance of two points, 1 for a point with itself.
    pub(crate) fn of(&self, a: &[u16], b: &[u16]) -> f32 {
        let factor = |(param, count, table): &(usize, usize, Vec<f32>)| {
            table[usize::from(a[*param]) * count + usize::from(b[*param])]
        };
        self.tables.iter().map(factor).product()
    }
}

/// The factors of one axis: a Matern covariance (5/2) over a constant.
pub(crate) fn factors(axis: &Axis, rate: f32, share: f32) -> Vec<f32> {
    let (rate, share) = (rate.exp() * 5.0_f32.sqrt(), 1.0 / (1.0 + (-share).exp()));
    let matern = |d: f32| (1.0 + d + d * d / 3.0) * (-d).exp();
    axis.distance.iter().map(|d| 1.0 - share + share * matern(rate * d)).collect()
}
