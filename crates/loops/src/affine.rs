//! Affine indices.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, Mul, Sub};

/// A sum of loop indices with integer factors, and a constant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Affine {
    terms: BTreeMap<&'static str, i64>,
    /// The constant.
    pub constant: i64,
}

/// A loop index, for expressions.
pub fn idx(name: &'static str) -> Affine {
    Affine { terms: BTreeMap::from([(name, 1)]), constant: 0 }
}

impl From<i64> for Affine {
    fn from(constant: i64) -> Self {
        Self { terms: BTreeMap::new(), constant }
    }
}

impl From<&'static str> for Affine {
    fn from(name: &'static str) -> Self {
        idx(name)
    }
}

impl Affine {
    /// Indices and their factors, none of them zero.
    pub fn terms(&self) -> impl Iterator<Item = (&'static str, i64)> {
        self.terms.iter().map(|(name, factor)| (*name, *factor))
    }

    /// The factor of an index.
    pub fn factor(&self, index: &str) -> i64 {
        self.terms.get(index).copied().unwrap_or(0)
    }

    /// The same with an index replaced.
    #[must_use]
    pub fn substitute(&self, index: &str, by: &Self) -> Self {
        let mut rest = self.clone();
        match rest.terms.remove(index) {
            Some(factor) => rest + by.clone() * factor,
            None => rest,
        }
    }

    /// The terms that `keep` keeps, with the constant.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(&str) -> bool) -> Self {
        let terms = self.terms.iter().filter(|(name, _)| keep(name)).map(|(name, factor)| (*name, *factor));
        Self { terms: terms.collect(), constant: self.constant }
    }

    /// The least and the largest value where indices run from 0 to below `extent`.
    pub fn range(&self, extent: impl Fn(&str) -> i64) -> (i64, i64) {
        self.terms.iter().fold((self.constant, self.constant), |(low, high), (name, factor)| {
            let last = factor.saturating_mul(extent(name) - 1);
            (low.saturating_add(last.min(0)), high.saturating_add(last.max(0)))
        })
    }

    /// The value of it.
    pub fn eval(&self, value: impl Fn(&str) -> i64) -> i64 {
        self.terms.iter().map(|(name, factor)| factor * value(name)).sum::<i64>() + self.constant
    }
}

impl<T: Into<Affine>> Add<T> for Affine {
    type Output = Self;
    fn add(mut self, other: T) -> Self {
        let other = other.into();
        for (name, factor) in other.terms {
            let sum = self.terms.get(name).copied().unwrap_or(0) + factor;
            if sum == 0 {
                self.terms.remove(name);
            } else {
                self.terms.insert(name, sum);
            }
        }
        self.constant += other.constant;
        self
    }
}

impl<T: Into<Affine>> Sub<T> for Affine {
    type Output = Self;
    fn sub(self, other: T) -> Self {
        self + other.into() * -1
    }
}

impl Mul<i64> for Affine {
    type Output = Self;
    fn mul(mut self, by: i64) -> Self {
        if by == 0 {
            return Self::from(0);
        }
        self.terms.values_mut().for_each(|factor| *factor *= by);
        self.constant *= by;
        self
    }
}

impl fmt::Display for Affine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, factor)) in self.terms.iter().enumerate() {
            let plus = if i > 0 { " + " } else { "" };
            match factor {
                1 => write!(f, "{plus}{name}")?,
                _ => write!(f, "{plus}{factor} {name}")?,
            }
        }
        match (self.terms.is_empty(), self.constant) {
            (true, c) => write!(f, "{c}"),
            (false, 0) => Ok(()),
            (false, c) => write!(f, " + {c}"),
        }
    }
}
