//! Values of expressions and of parameters.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// An owned value: of a parameter, of a constant in an expression, of a cell in a dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// True or false; counts as 1 or 0 in arithmetic.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A word, for parameters whose values are names.
    Str(String),
}

impl Value {
    /// The borrowed form that evaluation works on.
    #[inline]
    pub fn as_val(&self) -> Val<'_> {
        match self {
            Self::Bool(b) => Val::Bool(*b),
            Self::Int(i) => Val::Int(*i),
            Self::Float(f) => Val::Float(*f),
            Self::Str(s) => Val::Str(s),
        }
    }

    /// The value as a number; words have none.
    pub fn as_f64(&self) -> Option<f64> {
        self.as_val().as_f64()
    }

    /// The value as an integer, if it is one exactly.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Float(f) if f.fract() == 0.0 && f.abs() < 9e15 => Some(*f as i64),
            other => other.as_val().as_integer(),
        }
    }

    /// The word, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(s) => Some(s),
            _ => None,
        }
    }

    /// Reads a value as the command line and CSV cells write it: integer, float, `true`/`false`, else a word.
    pub fn parse(text: &str) -> Self {
        if let Ok(i) = text.parse() {
            return Self::Int(i);
        }
        match text {
            "true" | "True" => return Self::Bool(true),
            "false" | "False" => return Self::Bool(false),
            _ => {}
        }
        // "inf" and "nan" parse as floats in Rust but are words in a parameter list.
        match text.parse::<f64>() {
            Ok(f) if f.is_finite() => Self::Float(f),
            _ => Self::Str(text.to_owned()),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Str(s) => f.write_str(s),
            other => other.as_val().fmt(f),
        }
    }
}

macro_rules! from {
    ($($from:ty => $variant:ident),*) => {
        $(impl From<$from> for Value {
            fn from(value: $from) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}

from!(i64 => Int, i32 => Int, f64 => Float, bool => Bool, &str => Str);

impl From<usize> for Value {
    /// Sizes beyond `i64` do not occur in memory; they become floats rather than wrap.
    fn from(i: usize) -> Self {
        i64::try_from(i).map_or(Self::Float(i as f64), Self::Int)
    }
}
impl From<Val<'_>> for Value {
    fn from(v: Val<'_>) -> Self {
        match v {
            Val::Bool(b) => Self::Bool(b),
            Val::Int(i) => Self::Int(i),
            Val::Float(f) => Self::Float(f),
            Val::Str(s) => Self::Str(s.to_owned()),
        }
    }
}

/// A borrowed value; what compiled expressions compute with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Val<'a> {
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A word.
    Str(&'a str),
}

impl Val<'_> {
    /// The value as a number; words have none.
    #[inline]
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Self::Bool(b) => Some(f64::from(u8::from(b))),
            Self::Int(i) => Some(i as f64),
            Self::Float(f) => Some(f),
            Self::Str(_) => None,
        }
    }

    /// An integer, or a truth as 1 or 0; no float is one, however whole.
    #[inline]
    pub fn as_integer(self) -> Option<i64> {
        match self {
            Self::Int(i) => Some(i),
            Self::Bool(b) => Some(i64::from(b)),
            Self::Float(_) | Self::Str(_) => None,
        }
    }

    /// Python's truth: non-zero, non-empty.
    #[inline]
    pub fn truthy(self) -> bool {
        match self {
            Self::Bool(b) => b,
            Self::Int(i) => i != 0,
            Self::Float(f) => f != 0.0,
            Self::Str(s) => !s.is_empty(),
        }
    }

    /// Order of two values: numbers by size, words by text; nothing between the two kinds, nor with NaN.
    #[inline]
    pub fn order(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Val::Int(a), Val::Int(b)) => Some(a.cmp(&b)),
            (Val::Str(a), Val::Str(b)) => Some(a.cmp(b)),
            (Val::Int(a), Val::Float(b)) => int_to_float(a, b),
            (Val::Float(a), Val::Int(b)) => int_to_float(b, a).map(Ordering::reverse),
            (a, b) => a.as_f64()?.partial_cmp(&b.as_f64()?),
        }
    }
}

/// 2^63, the first float above every integer. Floats from its negative to below it fit into 64 bits.
pub(super) const LIMIT: f64 = 9_223_372_036_854_775_808.0;

/// Exact order of an integer and a float: an integer beyond 2^53 has no float of its own.
fn int_to_float(a: i64, b: f64) -> Option<Ordering> {
    match b {
        _ if b.is_nan() => None,
        _ if b >= LIMIT => Some(Ordering::Less),
        _ if b < -LIMIT => Some(Ordering::Greater),
        _ => Some(a.cmp(&(b.trunc() as i64)).then(0.0.partial_cmp(&b.fract())?)),
    }
}

impl fmt::Display for Val<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(b) => f.write_str(if *b { "True" } else { "False" }),
            // No literal is as large as its magnitude.
            Self::Int(i64::MIN) => write!(f, "(-{} - 1)", i64::MAX),
            Self::Int(i) => i.fmt(f),
            // `{:?}` keeps the `.0` that tells a float from an integer when read back.
            Self::Float(x) => write!(f, "{x:?}"),
            Self::Str(s) => write!(f, "'{}'", s.replace('\\', "\\\\").replace('\'', "\\'")),
        }
    }
}
