//! Parameter spaces: parameters, rules as expressions, points, and the streaming walk over the legal set.

mod bound;
mod derived;
mod domains;
mod illegal;
mod listed;
mod memory;
mod point;
mod preferred;
mod values;
mod walk;
mod written;

pub use bound::{BoundSpace, Shard};
pub use illegal::Illegal;
pub use point::{Config, Point, PointError, Points};
pub use values::{Legal, Name, Values};
pub use walk::{Census, Walk};
pub use written::written_values;

use crate::expr::{Expr, ParseError, Value, brief};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One tuning parameter: a name and the values it may take, in the order that indices count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Param {
    /// The name used in rules, files and on the command line.
    pub name: String,
    /// The values, at least one.
    pub values: Vec<Value>,
}

impl Param {
    /// A parameter with integer values.
    pub fn ints(name: &str, values: impl IntoIterator<Item = i64>) -> Self {
        Self { name: name.into(), values: values.into_iter().map(Value::Int).collect() }
    }

    /// A parameter whose values are words.
    pub fn words<'a>(name: &str, values: impl IntoIterator<Item = &'a str>) -> Self {
        Self { name: name.into(), values: values.into_iter().map(Value::from).collect() }
    }

    /// Refuses parameters that no space can have.
    ///
    /// # Errors
    /// One without values or with too many, two of one name.
    pub fn check(params: &[Self]) -> Result<(), SpaceError> {
        for (i, p) in params.iter().enumerate() {
            if p.values.is_empty() {
                return Err(SpaceError::NoValues(p.name.clone()));
            }
            if p.values.len() > usize::from(u16::MAX) {
                return Err(SpaceError::TooManyValues { name: p.name.clone(), count: p.values.len() });
            }
            if params[..i].iter().any(|other| other.name == p.name) {
                return Err(SpaceError::Duplicate(p.name.clone()));
            }
        }
        Ok(())
    }

    /// The index of a value, numbers compared as numbers.
    pub fn index_of(&self, value: &Value) -> Option<u16> {
        let same = |v: &Value| v == value || (v.as_f64().is_some() && v.as_f64() == value.as_f64());
        self.values.iter().position(same).and_then(|i| u16::try_from(i).ok())
    }
}

/// Where a rule comes from, as BACUGen groups its constraints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleGroup {
    /// A limit of the device; breaking it cannot run.
    Hardware,
    /// A limit of the generator; breaking it has no code.
    Implementation,
    /// A performance guideline; breaking it runs, but is not worth measuring.
    Guideline,
    /// A constraint that a user added.
    User,
}

/// A rule that a legal point obeys.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Short name, for `rejected_by` counts.
    pub name: String,
    /// Where it comes from.
    pub group: RuleGroup,
    /// Must be true.
    pub expr: Expr,
    /// Why it is there, one sentence.
    pub why: String,
}

/// Names and values that are fixed for one device and one input: sizes, cache sizes, register counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Symbols(BTreeMap<String, Value>);

impl Symbols {
    /// No names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a name.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// Adds or replaces a name.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// All names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v))
    }
}

/// What is wrong with the description of a space.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SpaceError {
    /// A parameter without values.
    #[error("parameter {0:?} has no values")]
    NoValues(String),
    /// More values than an index counts.
    #[error("parameter {name:?} has {count} values; at most 65535 are allowed")]
    TooManyValues {
        /// The parameter.
        name: String,
        /// Its number of values.
        count: usize,
    },
    /// More derived names than there is room for.
    #[error("{0} derived names; at most {max} are allowed", max = derived::MAX_NAMES)]
    TooManyNames(usize),
    /// Two parameters of one name, or a parameter named as a derived value.
    #[error("the name {0:?} is defined twice")]
    Duplicate(String),
    /// A listed point that is none of the parameters'.
    #[error("the indices {0:?} are no point of the parameters")]
    Outside(Point),
    /// A rule that does not parse.
    #[error("rule {:?}: {error}", brief(rule))]
    Parse {
        /// The rule.
        rule: String,
        /// Position and expectation.
        error: ParseError,
    },
    /// A rule that mentions an unknown name.
    #[error("rule {:?} mentions {:?}, which is neither a parameter nor a known symbol", brief(rule), brief(name))]
    UnknownName {
        /// The rule.
        rule: String,
        /// The name.
        name: String,
    },
}

/// Parameters and rules, before the device and the input are known.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamSpace {
    params: Vec<Param>,
    /// Derived names, as written: they mention parameters, symbols, and the names before them.
    names: Vec<(String, Expr)>,
    rules: Vec<Rule>,
}

impl ParamSpace {
    /// Starts an empty description.
    pub fn builder() -> SpaceBuilder {
        SpaceBuilder::default()
    }

    /// The parameters, in index order.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// The rules.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The derived names with their definitions, in the order in which they were defined.
    pub fn names(&self) -> &[(String, Expr)] {
        &self.names
    }

    /// A parameter or a derived name, for reading its value at points of this space. See [`Values::read`].
    pub fn name(&self, name: &str) -> Option<Name> {
        let all = self.params.iter().map(|p| &p.name).chain(self.names.iter().map(|(n, _)| n));
        all.into_iter().position(|n| n == name).map(|i| Name(i as u16))
    }

    /// The same space with one more rule.
    ///
    /// # Errors
    /// A text that does not parse.
    pub fn with_rule(mut self, name: &str, group: RuleGroup, text: &str, why: &str) -> Result<Self, SpaceError> {
        self.rules.push(parse_rule(name, group, text, why)?);
        Ok(self)
    }

    /// Fixes the symbols of one device and one input.
    ///
    /// # Errors
    /// A rule that mentions a name that is neither a parameter nor a symbol.
    pub fn bind(&self, symbols: &Symbols) -> Result<BoundSpace, SpaceError> {
        BoundSpace::new(self, symbols)
    }
}

fn parse_rule(name: &str, group: RuleGroup, text: &str, why: &str) -> Result<Rule, SpaceError> {
    let expr = text.parse().map_err(|error| SpaceError::Parse { rule: name.into(), error })?;
    Ok(Rule { name: name.into(), group, expr, why: why.into() })
}

/// Builds a [`ParamSpace`]; faults are reported by [`SpaceBuilder::build`].
#[derive(Clone, Debug, Default)]
pub struct SpaceBuilder {
    params: Vec<Param>,
    /// Derived names, as written.
    names: Vec<(String, Expr)>,
    /// The same with the names before them put in: what rules are made of.
    lets: Vec<(String, Expr)>,
    rules: Vec<Rule>,
    fault: Option<SpaceError>,
}

impl SpaceBuilder {
    /// Adds a parameter.
    #[must_use]
    pub fn param(mut self, param: Param) -> Self {
        self.params.push(param);
        self
    }

    /// Adds parameters.
    #[must_use]
    pub fn params(mut self, params: impl IntoIterator<Item = Param>) -> Self {
        self.params.extend(params);
        self
    }

    /// Names a sub-expression for the definitions and rules that follow, so that a fact is written once. Code reads it at a point
    /// by [`Values::get`].
    #[must_use]
    pub fn define(mut self, name: &str, text: &str) -> Self {
        match parse_rule(name, RuleGroup::Implementation, text, "") {
            Ok(_) if self.lets.iter().any(|(n, _)| n == name) => {
                self.fault = self.fault.or(Some(SpaceError::Duplicate(name.into())));
            }
            Ok(rule) => {
                let expr = self.inline(&rule.expr);
                self.lets.push((name.into(), expr));
                self.names.push((name.into(), rule.expr));
            }
            Err(e) => self.fault = self.fault.or(Some(e)),
        }
        self
    }

    /// Adds a rule.
    #[must_use]
    pub fn rule(mut self, name: &str, group: RuleGroup, text: &str, why: &str) -> Self {
        match parse_rule(name, group, text, why) {
            Ok(rule) => {
                let expr = self.inline(&rule.expr);
                self.rules.push(Rule { expr, ..rule });
            }
            Err(e) => self.fault = self.fault.or(Some(e)),
        }
        self
    }

    fn inline(&self, expr: &Expr) -> Expr {
        expr.substitute(&|n| self.lets.iter().find(|(name, _)| name == n).map(|(_, e)| e.clone()))
    }

    /// The finished description.
    ///
    /// # Errors
    /// The first fault found: an empty parameter, a duplicate name, a text that does not parse.
    pub fn build(self) -> Result<ParamSpace, SpaceError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        Param::check(&self.params)?;
        if let Some(p) = self.params.iter().find(|p| self.lets.iter().any(|(name, _)| *name == p.name)) {
            return Err(SpaceError::Duplicate(p.name.clone()));
        }
        if self.names.len() > derived::MAX_NAMES {
            return Err(SpaceError::TooManyNames(self.names.len()));
        }
        Ok(ParamSpace { params: self.params, names: self.names, rules: self.rules })
    }
}
