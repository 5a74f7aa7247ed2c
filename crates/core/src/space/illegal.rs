//! Why a point is not legal.

use super::RuleGroup;
use crate::expr::Value;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A rule that does not hold, with the numbers that break it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Illegal {
    /// Name of the rule.
    pub rule: String,
    /// Where the rule comes from.
    pub group: RuleGroup,
    /// The rule as written.
    pub text: String,
    /// The values of the names that the rule mentions.
    pub numbers: Vec<(String, Value)>,
    /// Why the rule is there, or why it could not be evaluated.
    pub why: String,
}

impl Illegal {
    /// A configuration that is no point of the space at all.
    pub fn value(why: &str) -> Self {
        Self {
            rule: "value".into(),
            group: RuleGroup::Implementation,
            text: "every parameter has one of its values".into(),
            numbers: Vec::new(),
            why: why.to_owned(),
        }
    }
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {:?} does not hold: {}", self.rule, self.text)?;
        for (i, (name, value)) in self.numbers.iter().enumerate() {
            f.write_str(if i == 0 { " with " } else { ", " })?;
            write!(f, "{name} = {value}")?;
        }
        if self.why.is_empty() { Ok(()) } else { write!(f, " ({})", self.why) }
    }
}

impl std::error::Error for Illegal {}
