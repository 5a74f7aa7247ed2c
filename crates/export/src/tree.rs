//! A small decision tree over the numbers of an input.
//!
//! Tests are exact integer arithmetic: products saturate at the ends of 64 bits, in every language alike.

use serde::{Deserialize, Serialize};

/// A question about an input; fields are numbers of [`crate::Domain::fields`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Test {
    /// The product of one to three fields is at most this.
    Product {
        /// The fields, multiplied from the first on.
        of: Vec<usize>,
        /// The threshold.
        at_most: i64,
    },
    /// `left * by <= right * times`: how two sizes relate.
    Ratio {
        /// A field.
        left: usize,
        /// Its factor.
        by: i64,
        /// Another field.
        right: usize,
        /// Its factor.
        times: i64,
    },
    /// A field is a multiple of a number, which is positive.
    Multiple {
        /// The field.
        field: usize,
        /// Of what.
        of: i64,
    },
    /// A field of words is this one of them.
    Is {
        /// The field.
        field: usize,
        /// The number of the word.
        word: i64,
    },
}

impl Test {
    /// The answer for the numbers of an input.
    pub fn holds(&self, numbers: &[i64]) -> bool {
        match self {
            Self::Product { of, at_most } => product(of, numbers) <= *at_most,
            Self::Ratio { left, by, right, times } => {
                numbers[*left].saturating_mul(*by) <= numbers[*right].saturating_mul(*times)
            }
            Self::Multiple { field, of } => numbers[*field] % of == 0,
            Self::Is { field, word } => numbers[*field] == *word,
        }
    }

    /// The fields that it looks at.
    pub(crate) fn fields(&self) -> Vec<usize> {
        match self {
            Self::Product { of, .. } => of.clone(),
            Self::Ratio { left, right, .. } => vec![*left, *right],
            Self::Multiple { field, .. } | Self::Is { field, .. } => vec![*field],
        }
    }

    /// Whether it has an answer for all numbers.
    pub(crate) fn is_total(&self) -> bool {
        match self {
            Self::Product { of, .. } => (1..=3).contains(&of.len()),
            Self::Multiple { of, .. } => *of > 0,
            _ => true,
        }
    }
}

/// The product of fields, from the first on, saturating.
pub(crate) fn product(of: &[usize], numbers: &[i64]) -> i64 {
    of.iter().fold(1, |all: i64, &field| all.saturating_mul(numbers[field]))
}

/// A tree of tests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Tree {
    /// Configurations by number, the preferred first; the first legal one is chosen.
    Leaf(Vec<usize>),
    /// A question.
    Branch {
        /// What is asked.
        test: Test,
        /// Where it holds.
        yes: Box<Tree>,
        /// Where it does not.
        no: Box<Tree>,
    },
}

impl Tree {
    /// The configurations of the leaf that the numbers of an input lead to.
    pub fn leaf(&self, numbers: &[i64]) -> &[usize] {
        let mut at = self;
        loop {
            match at {
                Self::Leaf(order) => return order,
                Self::Branch { test, yes, no } => at = if test.holds(numbers) { yes } else { no },
            }
        }
    }

    /// How many leaves it has.
    pub fn leaves(&self) -> usize {
        match self {
            Self::Leaf(_) => 1,
            Self::Branch { yes, no, .. } => yes.leaves() + no.leaves(),
        }
    }

    /// The same tree with other numbers of configurations.
    pub(crate) fn renumbered(self, number: &dyn Fn(usize) -> usize) -> Self {
        match self {
            Self::Leaf(order) => Self::Leaf(order.into_iter().map(number).collect()),
            Self::Branch { test, yes, no } => {
                Self::Branch { test, yes: yes.renumbered(number).into(), no: no.renumbered(number).into() }
            }
        }
    }

    /// Calls `f` on every node, parents first.
    pub(crate) fn visit(&self, f: &mut impl FnMut(&Self)) {
        f(self);
        if let Self::Branch { yes, no, .. } = self {
            yes.visit(f);
            no.visit(f);
        }
    }
}
