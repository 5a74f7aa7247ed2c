//! The inputs that an artefact speaks of: which fields tell them apart, and which all of them share.

use serde::{Deserialize, Serialize};
use tilewright_core::expr::{Val, Value};
use tilewright_core::space::Config;

/// The most different words of a field. A field with more, a name of a file say, is no class of inputs.
const MOST_WORDS: usize = 64;

/// A field of the input that a choice may depend on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// The values of a field that holds words (or words and numbers), in the order of their numbers; empty for an integer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<Value>,
}

impl Field {
    /// Whether it holds integers.
    pub fn is_integer(&self) -> bool {
        self.words.is_empty()
    }
}

/// The inputs that an artefact speaks of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Domain {
    /// The fields that differ among inputs, in the order of the input.
    pub fields: Vec<Field>,
    /// The fields that all inputs share.
    pub fixed: Config,
    /// The names of all fields, in the order of the input.
    pub order: Vec<String>,
}

/// An input that an artefact does not speak of.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OutsideError {
    /// A field that decides has no value.
    #[error("{0}: missing, and the choice depends on it")]
    Missing(String),
    /// A field that the artefact does not know.
    #[error("{0}: the artefact knows no such field")]
    Unknown(String),
    /// Another value than all inputs of the artefact have.
    #[error("{field}: {found} is not among what the artefact was made for: {known}")]
    Value {
        /// The field.
        field: String,
        /// Its value.
        found: String,
        /// What it may be.
        known: String,
    },
}

impl OutsideError {
    /// The field.
    pub fn field(&self) -> &str {
        match self {
            Self::Missing(field) | Self::Unknown(field) | Self::Value { field, .. } => field,
        }
    }
}

/// Inputs that are no domain.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DomainError {
    /// No inputs at all.
    #[error("there are no inputs")]
    Empty,
    /// A field with too many words.
    #[error("{0}: has more than {MOST_WORDS} different words; fix it, or leave some out")]
    TooManyWords(String),
}

impl Domain {
    /// The domain of inputs, complete ones. Inputs whose fields have other names than those of the first are not part of it.
    ///
    /// # Errors
    /// No inputs, or a field with too many words.
    pub fn of(inputs: &[Config]) -> Result<Self, DomainError> {
        let first = inputs.first().ok_or(DomainError::Empty)?;
        let same: Vec<&Config> = inputs.iter().filter(|input| is_alike(first, input)).collect();
        let order = first.0.iter().map(|(name, _)| name.clone()).collect();
        let mut domain = Self { order, ..Self::default() };
        for (at, (name, value)) in first.0.iter().enumerate() {
            let mut values: Vec<&Value> = Vec::new();
            let mut is_integer = true;
            for (_, value) in same.iter().map(|input| &input.0[at]) {
                is_integer &= matches!(value, Value::Int(_));
                if values.len() <= MOST_WORDS && !values.contains(&value) {
                    values.push(value);
                }
            }
            if values.len() == 1 {
                domain.fixed.0.push((name.clone(), value.clone()));
                continue;
            }
            if !is_integer && values.len() > MOST_WORDS {
                return Err(DomainError::TooManyWords(name.clone()));
            }
            values.sort_by_key(|value| value.to_string());
            let words = if is_integer { Vec::new() } else { values.into_iter().cloned().collect() };
            domain.fields.push(Field { name: name.clone(), words });
        }
        Ok(domain)
    }

    /// The numbers that a choice is made from: integers, and the numbers of words. Fields that all inputs share may be left out.
    ///
    /// # Errors
    /// A field that is missing, unknown, or has another value than the artefact's inputs.
    pub fn numbers(&self, input: &Config) -> Result<Vec<i64>, OutsideError> {
        for (name, value) in &input.0 {
            match self.fixed.get(name) {
                Some(known) if known == value => {}
                Some(known) => return Err(outside(name, value, known.to_string())),
                None if self.fields.iter().any(|field| field.name == *name) => {}
                None => return Err(OutsideError::Unknown(name.clone())),
            }
        }
        let number = |field: &Field| {
            let value = input.get(&field.name).ok_or_else(|| OutsideError::Missing(field.name.clone()))?;
            match value {
                Value::Int(i) if field.is_integer() => Ok(*i),
                _ if field.is_integer() => Err(outside(&field.name, value, "integers".into())),
                _ => match field.words.iter().position(|word| word == value) {
                    Some(at) => Ok(at as i64),
                    None => Err(outside(&field.name, value, listed(&field.words))),
                },
            }
        };
        self.fields.iter().map(number).collect()
    }

    /// The inputs among these that it speaks of.
    pub fn within<'a>(&self, inputs: &'a [Config]) -> Vec<&'a Config> {
        inputs.iter().filter(|input| self.numbers(input).is_ok()).collect()
    }

    /// The same numbers as values that expressions are evaluated with.
    pub(crate) fn slots<'a>(&'a self, numbers: &[i64]) -> Vec<Val<'a>> {
        let slot = |(field, &number): (&'a Field, &i64)| {
            let word = usize::try_from(number).ok().and_then(|at| field.words.get(at));
            word.map_or(Val::Int(number), Value::as_val)
        };
        self.fields.iter().zip(numbers).map(slot).collect()
    }

    /// The names of the fields that differ.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.fields.iter().map(|field| field.name.as_str()).collect()
    }

    /// The number of a field that differs among inputs.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }
}

fn is_alike(a: &Config, b: &Config) -> bool {
    a.0.len() == b.0.len() && a.0.iter().zip(&b.0).all(|((a, _), (b, _))| a == b)
}

fn outside(field: &str, found: &Value, known: String) -> OutsideError {
    OutsideError::Value { field: field.to_owned(), found: found.to_string(), known }
}

fn listed(words: &[Value]) -> String {
    words.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
}
