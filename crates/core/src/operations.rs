//! How often a program does what takes time, as numbers: what a linear model multiplies with weights.

use crate::counts::Counts;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Numbers of operations by name.
pub type Amounts = BTreeMap<Cow<'static, str>, f64>;

/// The operations of one configuration, for one input on one device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operations {
    /// What follows one another: nothing of one phase overlaps anything of the next. What is not named is 0.
    pub phases: Vec<Amounts>,
}

impl Operations {
    /// The values of symbolic counts for sizes by name, in one phase. `None` where a size has no value or a number exceeds 63
    /// bits.
    pub fn of(counts: &Counts, size: impl Fn(&str) -> Option<i64>) -> Option<Self> {
        let mut evaluator = counts.evaluator();
        let values = evaluator.eval_by(size).ok()?.to_vec();
        let named = evaluator.properties().iter().zip(values).filter(|(_, n)| *n != 0);
        Some(Self { phases: vec![named.map(|(p, n)| (p.to_string().into(), n as f64)).collect()] })
    }
}
