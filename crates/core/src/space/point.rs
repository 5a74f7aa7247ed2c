//! Points and configurations.

use super::Param;
use crate::expr::Value;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;

/// A configuration as one index per parameter, in the order of the space.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Point(pub Vec<u16>);

impl Deref for Point {
    type Target = [u16];

    fn deref(&self) -> &[u16] {
        &self.0
    }
}

impl From<&[u16]> for Point {
    fn from(indices: &[u16]) -> Self {
        Self(indices.to_vec())
    }
}

/// Points one after the other in one slice, so that a search over millions holds none of them by itself.
#[derive(Clone, Copy, Debug)]
pub struct Points<'a> {
    indices: &'a [u16],
    width: usize,
    len: usize,
}

impl<'a> Points<'a> {
    /// So many points of equal width, the indices of one behind those of another.
    ///
    /// # Panics
    /// The indices are no multiple of the number of points.
    pub fn new(indices: &'a [u16], len: usize) -> Self {
        let width = indices.len() / len.max(1);
        assert_eq!(width * len, indices.len(), "{len} points of equal width");
        Self { indices, width, len }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// One of them.
    ///
    /// # Panics
    /// There are not so many.
    #[inline]
    pub fn get(&self, at: usize) -> &'a [u16] {
        &self.indices[at * self.width..(at + 1) * self.width]
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u16]> + use<'a> {
        let all = *self;
        (0..self.len).map(move |at| all.get(at))
    }

    /// `len` of them from `first` on.
    ///
    /// # Panics
    /// There are not so many.
    pub fn part(&self, first: usize, len: usize) -> Self {
        Self { indices: &self.indices[first * self.width..(first + len) * self.width], len, ..*self }
    }
}

/// A configuration by name: what files and people read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Config(#[serde(with = "pairs")] pub Vec<(String, Value)>);

/// A JSON object that keeps the order of the parameters.
mod pairs {
    use crate::expr::Value;
    use serde::de::{MapAccess, Visitor};
    use serde::{Deserializer, Serializer};
    use std::fmt;

    pub(super) fn serialize<S: Serializer>(pairs: &[(String, Value)], to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(pairs.iter().map(|(name, value)| (name, value)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, Value)>, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Vec<(String, Value)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of parameter values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut out = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    out.push(entry);
                }
                Ok(out)
            }
        }
        from.deserialize_map(Pairs)
    }
}

impl Config {
    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    /// The values that are others than in another configuration, or not in it: what a table shows beside a default.
    pub fn differing(&self, from: &Self) -> Self {
        Self(self.0.iter().filter(|(name, value)| from.get(name) != Some(value)).cloned().collect())
    }

    /// The same with the values of another one in place of its own, and behind them those that it has not.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let own = self.0.iter().map(|(name, value)| (name.clone(), other.get(name).unwrap_or(value).clone()));
        let more = other.0.iter().filter(|(name, _)| self.get(name).is_none()).cloned();
        Self(own.chain(more).collect())
    }

    /// Reads `k=v,k=v` as the command line writes it; empty parts do not count.
    ///
    /// # Errors
    /// As [`Config::from_fields`].
    pub fn parse(text: &str) -> Result<Self, PointError> {
        Self::from_fields(text.split(',').filter(|p| !p.trim().is_empty()))
    }

    /// Reads one `k=v` a word.
    ///
    /// # Errors
    /// A word without a name or an equals sign, or a name that stands there twice.
    pub fn from_fields<'w>(words: impl IntoIterator<Item = &'w str>) -> Result<Self, PointError> {
        let mut out: Vec<(String, Value)> = Vec::new();
        for word in words {
            let pair = word.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
            let Some((name, value)) = pair.filter(|(name, _)| !name.is_empty()) else {
                return Err(PointError::NotAPair(word.to_owned()));
            };
            if out.iter().any(|(n, _)| n == name) {
                return Err(PointError::Twice(name.to_owned()));
            }
            out.push((name.to_owned(), Value::parse(value)));
        }
        Ok(Self(out))
    }

    /// The point with these values, parameters that are not named taken from `base`.
    ///
    /// # Errors
    /// A name that is no parameter, a value that the parameter does not take, a parameter without either.
    pub fn to_point(&self, params: &[Param], base: Option<&[u16]>) -> Result<Point, PointError> {
        if let Some((name, _)) = self.0.iter().find(|(n, _)| params.iter().all(|p| p.name != *n)) {
            let known = params.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(" ");
            return Err(PointError::UnknownParameter { name: name.clone(), known });
        }
        let index = |(i, p): (usize, &Param)| match self.get(&p.name) {
            Some(value) => p.index_of(value).ok_or_else(|| PointError::NotAValue {
                name: p.name.clone(),
                value: value.to_string(),
                values: p.values.iter().map(Value::to_string).collect::<Vec<_>>().join(" "),
            }),
            None => base.and_then(|b| b.get(i).copied()).ok_or_else(|| PointError::MissingParameter(p.name.clone())),
        };
        params.iter().enumerate().map(index).collect::<Result<_, _>>().map(Point)
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.0.iter().enumerate() {
            write!(f, "{}{name}={value}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// Why a text or a configuration is no point of a space.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PointError {
    /// A word without a name or an equals sign.
    #[error("{0:?} is not of the form name=value")]
    NotAPair(String),
    /// A name given twice.
    #[error("{0:?} is given twice")]
    Twice(String),
    /// No such parameter.
    #[error("unknown parameter {name:?}: expected one of {known}")]
    UnknownParameter {
        /// What was written.
        name: String,
        /// The parameters there are.
        known: String,
    },
    /// Not one of the parameter's values.
    #[error("parameter {name:?} cannot be {value}: its values are {values}")]
    NotAValue {
        /// The parameter.
        name: String,
        /// What was asked for.
        value: String,
        /// The values there are.
        values: String,
    },
    /// Neither given nor defaulted.
    #[error("parameter {0:?} has no value")]
    MissingParameter(String),
}

impl PointError {
    /// The word or the parameter at fault.
    pub fn name(&self) -> &str {
        match self {
            Self::NotAPair(name) | Self::Twice(name) | Self::MissingParameter(name) => name,
            Self::UnknownParameter { name, .. } | Self::NotAValue { name, .. } => name,
        }
    }
}
