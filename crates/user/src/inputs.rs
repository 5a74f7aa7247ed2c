//! What a caller gives: the sizes and words that one description serves.

use crate::error::Fault;
use serde_json::Value as Json;
use std::ops::RangeInclusive;
use tilewright_core::computation::InputError;
use tilewright_core::expr::Value;
use tilewright_core::space::{Config, written_values};

/// The values of an input, in the order of its description.
pub(crate) type Given = Vec<Value>;

/// The largest size of an input.
const MOST: u64 = 1 << 40;

/// Shares of drawn sizes that are one short of what was drawn, and that are the least that there is.
const ONE_SHORT: f64 = 0.25;
const LEAST: f64 = 0.15;

/// One input.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) values: Values,
}

/// The values that campaigns draw; callers may give any size, and any of listed words.
#[derive(Clone, Debug)]
pub(crate) enum Values {
    Range(RangeInclusive<u64>),
    List(Vec<Value>),
}

impl Input {
    /// `64..4096`, or a list as parameters have it.
    pub(crate) fn read(name: &str, values: &Json, field: &str) -> Result<Self, Fault> {
        let fault = |message: String| Fault::at(format!("{field}.Values"), message);
        if let Some((least, most)) = values.as_str().and_then(|text| text.split_once("..")) {
            let number = |text: &str| {
                let text = text.trim().trim_start_matches('=');
                text.parse::<u64>().ok().filter(|n| *n <= MOST)
            };
            let range = number(least).zip(number(most)).filter(|(a, b)| a <= b);
            let (least, most) =
                range.ok_or_else(|| fault(format!("{values} is no range of sizes up to {MOST}: write 64..4096")))?;
            return Ok(Self { name: name.to_owned(), values: Values::Range(least..=most) });
        }
        let list = written_values(values).map_err(fault)?;
        let fault = |message: String| Fault::at(format!("{field}.Values"), message);
        if list.is_empty() {
            return Err(fault("no value".into()));
        }
        let words = list.iter().filter(|v| v.as_str().is_some()).count();
        if words != 0 && words != list.len() {
            return Err(fault("words and numbers are mixed".into()));
        }
        if words == 0 && list.iter().any(|v| v.as_int().is_none_or(|i| i < 0)) {
            return Err(fault("sizes are integers of 0 or more".into()));
        }
        Ok(Self { name: name.to_owned(), values: Values::List(list) })
    }

    /// Whether its values are words.
    pub(crate) fn has_words(&self) -> bool {
        matches!(&self.values, Values::List(list) if list.iter().any(|v| v.as_str().is_some()))
    }

    /// The value that a caller gives.
    pub(crate) fn parse(&self, fields: &Config) -> Result<Value, InputError> {
        let wanted = match &self.values {
            Values::List(list) if self.has_words() => {
                let words: Vec<String> = list.iter().map(Value::to_string).collect();
                format!("one of {}", words.join(" "))
            }
            _ => format!("an integer within 0..={MOST}"),
        };
        let Some(value) = fields.get(&self.name) else {
            // What has one value alone need not be said.
            if let Values::List(list) = &self.values
                && let [only] = list.as_slice()
            {
                return Ok(only.clone());
            }
            return Err(InputError::new(&self.name, format!("missing: write {}=VALUE, {wanted}", self.name)));
        };
        let fits = match (&self.values, value) {
            (Values::List(list), word) if self.has_words() => list.contains(word),
            (_, Value::Int(i)) => u64::try_from(*i).is_ok_and(|i| i <= MOST),
            _ => false,
        };
        if fits { Ok(value.clone()) } else { Err(InputError::not(&self.name, value, &wanted)) }
    }

    /// A value for training: sizes on a logarithmic scale.
    pub(crate) fn drawn(&self, uniform: &mut dyn FnMut() -> f64) -> Value {
        match &self.values {
            Values::List(list) => list[((uniform() * list.len() as f64) as usize).min(list.len() - 1)].clone(),
            Values::Range(range) => {
                let (least, most) = (*range.start(), *range.end());
                let (low, high) = ((least.max(1) as f64).ln(), (most.max(1) as f64).ln());
                let drawn = (low + (high - low) * uniform()).exp().round() as u64;
                let short = u64::from(uniform() < ONE_SHORT);
                Value::Int(drawn.saturating_sub(short).clamp(least, most) as i64)
            }
        }
    }

    /// A value for checks: now and then the least, and small odd ones.
    pub(crate) fn awkward(&self, uniform: &mut dyn FnMut() -> f64) -> Value {
        match &self.values {
            Values::Range(range) if uniform() < LEAST => Value::Int(*range.start() as i64),
            _ => self.drawn(uniform),
        }
    }

    /// The next smaller value, for inputs that must become smaller.
    pub(crate) fn smaller(&self, value: &Value) -> Option<Value> {
        let now = value.as_int()?;
        match &self.values {
            Values::Range(range) => {
                let least = *range.start() as i64;
                (now > least).then(|| Value::Int((now / 2).max(least)))
            }
            Values::List(list) => {
                list.iter().filter(|v| v.as_int().is_some_and(|i| i < now)).max_by_key(|v| v.as_int()).cloned()
            }
        }
    }
}
