//! Symbolic operation counts: how often a kernel does what takes time, as a function of its input's sizes.
//!
//! [`Counts`] maps a [`Property`] to an expression: a piecewise quasi-polynomial in the sizes, made of sums, products, floors,
//! remainders, minima, maxima and conditions `[x > 0]`, `[x = 0]` that are 1 or 0. A kernel's generator makes them
//! ([`crate::kernel::Kernel::counts`]); a linear model multiplies their values with weights. They hold for every input for
//! which the same code is generated.
//!
//! ```
//! use tilewright_core::counts::{CountsBuilder, FloatOp, Op, Precision, Property};
//!
//! let mut b = CountsBuilder::new();
//! let (m, n) = (b.size("m"), b.size("n"));
//! let blocks = b.ceil(m, 64);
//! let groups = b.mul(blocks, n);
//! b.count(Property::Groups, groups);
//! let fma = Property::Threads(Op::Float(FloatOp::Fma, Precision::Single));
//! let number = b.scale(groups, 64);
//! b.count(fma, number);
//! let counts = b.finish();
//! assert_eq!(counts.expression(fma).unwrap(), "64*n*ceil(m/64)");
//! // For new sizes: compile once, evaluate in nanoseconds.
//! let mut evaluator = counts.evaluator();
//! let values = evaluator.eval(&[100, 3])?.to_vec();
//! assert_eq!(evaluator.sizes(), ["m", "n"]);
//! assert_eq!(evaluator.properties().iter().zip(values).collect::<Vec<_>>(), [(&fma, 384), (&Property::Groups, 6)]);
//! assert_eq!(fma.to_string(), "fma.f32");
//! # Ok::<(), tilewright_core::counts::EvalError>(())
//! ```

mod builder;
mod evaluator;
mod print;
mod property;

pub use builder::{Bounds, CountsBuilder, Expr};
pub use evaluator::{EvalError, Evaluator};
pub use property::{FloatOp, Op, Precision, Property, Space, Step, Stride, UnknownProperty};

/// A part of an expression. Parts stand before what is made of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Node {
    Size(u32),
    /// Terms with their coefficients, and a number.
    Sum(Vec<(Expr, i64)>, i64),
    Product(Vec<Expr>),
    Floor(Expr, i64),
    Mod(Expr, i64),
    Quotient(Expr, Expr),
    Min(Expr, Expr),
    Max(Expr, Expr),
    Positive(Expr),
    Zero(Expr),
}

impl Node {
    fn for_each_part(&self, mut f: impl FnMut(Expr)) {
        match self {
            Self::Size(_) => {}
            Self::Sum(terms, _) => terms.iter().for_each(|(e, _)| f(*e)),
            Self::Product(factors) => factors.iter().for_each(|e| f(*e)),
            Self::Floor(a, _) | Self::Mod(a, _) | Self::Positive(a) | Self::Zero(a) => f(*a),
            Self::Quotient(a, b) | Self::Min(a, b) | Self::Max(a, b) => {
                f(*a);
                f(*b);
            }
        }
    }
}

/// Numbers of properties as expressions in sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    sizes: Vec<String>,
    nodes: Vec<Node>,
    /// In the order of properties.
    totals: Vec<(Property, Expr)>,
}

impl Counts {
    /// Names of the sizes that expressions may use.
    pub fn sizes(&self) -> &[String] {
        &self.sizes
    }

    /// What is counted, in order. What is not among them is 0.
    pub fn properties(&self) -> impl Iterator<Item = Property> + '_ {
        self.totals.iter().map(|(p, _)| *p)
    }

    /// A property's expression as text; `None` where it is 0.
    pub fn expression(&self, property: Property) -> Option<String> {
        self.totals.iter().find(|(p, _)| *p == property).map(|(_, e)| self.text(*e))
    }

    /// Compiles the expressions.
    pub fn evaluator(&self) -> Evaluator {
        Evaluator::new(self)
    }
}

#[cfg(test)]
mod tests;
