//! Extents as expressions in named sizes.

use crate::error::LoopError;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, Div, Mul};

/// An integer expression in sizes. Quotients are exact: binding sizes that leave a remainder is an error.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Size {
    /// A number.
    Const(i64),
    /// A size by name.
    Named(&'static str),
    /// A sum.
    Sum(Box<Size>, Box<Size>),
    /// A product.
    Product(Box<Size>, Box<Size>),
    /// An exact quotient by a positive number.
    Quotient(Box<Size>, i64),
}

/// Values of sizes.
pub type Sizes = BTreeMap<&'static str, i64>;

impl From<i64> for Size {
    fn from(value: i64) -> Self {
        Self::Const(value)
    }
}

impl From<&'static str> for Size {
    fn from(name: &'static str) -> Self {
        Self::Named(name)
    }
}

/// A size by name, for expressions.
pub fn size(name: &'static str) -> Size {
    Size::Named(name)
}

impl<T: Into<Size>> Add<T> for Size {
    type Output = Self;
    fn add(self, other: T) -> Self {
        match (self, other.into()) {
            (Self::Const(a), Self::Const(b)) => Self::Const(a.wrapping_add(b)),
            (Self::Const(0), x) | (x, Self::Const(0)) => x,
            (a, b) => Self::Sum(Box::new(a), Box::new(b)),
        }
    }
}

impl<T: Into<Size>> Mul<T> for Size {
    type Output = Self;
    fn mul(self, other: T) -> Self {
        match (self, other.into()) {
            (Self::Const(a), Self::Const(b)) => Self::Const(a.wrapping_mul(b)),
            (Self::Const(0), _) | (_, Self::Const(0)) => Self::Const(0),
            (Self::Const(1), x) | (x, Self::Const(1)) => x,
            (a, b) => Self::Product(Box::new(a), Box::new(b)),
        }
    }
}

impl Div<i64> for Size {
    type Output = Self;
    fn div(self, by: i64) -> Self {
        match (self, by) {
            (x, 1) => x,
            (Self::Const(a), by) if by > 0 && a % by == 0 => Self::Const(a / by),
            (x, by) => Self::Quotient(Box::new(x), by),
        }
    }
}

impl Size {
    /// The value, if it names no size.
    pub fn constant(&self) -> Option<i64> {
        match self {
            Self::Const(c) => Some(*c),
            _ => None,
        }
    }

    /// Calls `f` on every name.
    pub fn visit(&self, f: &mut impl FnMut(&'static str)) {
        match self {
            Self::Const(_) => {}
            Self::Named(name) => f(name),
            Self::Sum(a, b) | Self::Product(a, b) => {
                a.visit(f);
                b.visit(f);
            }
            Self::Quotient(a, _) => a.visit(f),
        }
    }

    /// The value at given sizes; `of` names what it is the size of.
    ///
    /// # Errors
    /// A size that is not given, a quotient with a remainder, an overflow.
    pub fn eval(&self, of: &str, sizes: &Sizes) -> Result<i64, LoopError> {
        let overflow = || LoopError::overflow(of);
        match self {
            Self::Const(c) => Ok(*c),
            Self::Named(name) => sizes.get(name).copied().ok_or_else(|| LoopError::Unknown {
                kernel: of.to_owned(),
                what: "size",
                name: (*name).to_owned(),
            }),
            Self::Sum(a, b) => a.eval(of, sizes)?.checked_add(b.eval(of, sizes)?).ok_or_else(overflow),
            Self::Product(a, b) => a.eval(of, sizes)?.checked_mul(b.eval(of, sizes)?).ok_or_else(overflow),
            Self::Quotient(a, by) => match a.eval(of, sizes)? {
                value if *by > 0 && value % by == 0 => Ok(value / by),
                value => Err(LoopError::Indivisible { of: of.to_owned(), value, by: *by }),
            },
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Const(c) => write!(f, "{c}"),
            Self::Named(name) => f.write_str(name),
            Self::Sum(a, b) => write!(f, "({a} + {b})"),
            Self::Product(a, b) => write!(f, "{a} * {b}"),
            Self::Quotient(a, by) => write!(f, "{a} / {by}"),
        }
    }
}
