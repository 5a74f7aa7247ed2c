//! What constraints of one parameter leave of its values.

use super::LegalError;
use super::build::Part;
use super::description::{Description, Test};
use super::lower::constant;
use tilewright_core::expr::{Compiled, EvalError, Val};
use tilewright_core::space::{Config, Param};

/// Applies the parts that mention one parameter or none until nothing changes. Those that say no more are dropped; a part
/// that has no value at a value that is left stays, since others may exclude that value together with others. Gives the
/// parts without parameters that have no value, or none if nothing is left.
pub(super) fn narrow(
    params: &[Param],
    parts: &mut Vec<Part>,
    kept: &mut [Vec<u16>],
    strict: bool,
) -> Option<Vec<Undefined>> {
    let mut faults = Vec::new();
    loop {
        for part in parts.iter_mut() {
            fix(params, kept, part);
        }
        let mut changed = false;
        for param in 0..params.len() {
            let before = kept[param].len();
            narrow_one(params, parts, kept, (param, strict));
            // A parameter down to one value is a constant for the others.
            changed |= kept[param].len() < before && kept[param].len() <= 1;
        }
        for part in parts.iter().filter(|p| p.scope.is_empty()) {
            match single(part, params).holds(0, |_| Val::Int(0)) {
                Ok(true) => {}
                Err(error) if strict => faults.push(Undefined::new(part, kept, |_| None, error)),
                _ => return None,
            }
        }
        parts.retain(|p| !p.scope.is_empty());
        if kept.iter().any(Vec::is_empty) {
            return None;
        }
        if !changed {
            return Some(faults);
        }
    }
}

/// Applies the parts that mention one parameter only.
fn narrow_one(params: &[Param], parts: &mut Vec<Part>, kept: &mut [Vec<u16>], (param, strict): (usize, bool)) {
    let is_own = |part: &Part| part.scope == [param];
    let tests: Vec<_> = parts.iter().filter(|p| is_own(p)).map(|part| single(part, params)).collect();
    if tests.is_empty() {
        return;
    }
    let mut faulty = vec![false; tests.len()];
    kept[param].retain(|&i| {
        let value = params[param].values[usize::from(i)].as_val();
        let outcomes: Vec<Result<bool, EvalError>> = tests.iter().map(|t| t.holds(1, |_| value)).collect();
        let excluded = outcomes.iter().any(|o| *o == Ok(false) || o.is_err() && !strict);
        if !excluded {
            faulty.iter_mut().zip(&outcomes).for_each(|(faulty, o)| *faulty |= o.is_err());
        }
        !excluded
    });
    let mut faulty = faulty.into_iter();
    parts.retain(|part| !is_own(part) || faulty.next().unwrap_or(false));
}

/// The test of a part of at most one parameter, whose names were checked.
fn single(part: &Part, params: &[Param]) -> Test<Compiled, usize> {
    match &part.test {
        Test::Expr(e) => {
            let names: Vec<&str> = part.scope.iter().map(|&p| params[p].name.as_str()).collect();
            Test::Expr(e.compile(&names).expect("names are those of parameters"))
        }
        Test::Closure(holds, arguments) => Test::Closure(holds.clone(), arguments.clone()),
    }
}

/// A constraint without a value, by positions.
pub(super) struct Undefined {
    pub(super) origin: usize,
    /// Parameters and indices of their values.
    at: Vec<(usize, u16)>,
    error: EvalError,
}

impl Undefined {
    /// A part without a value at some values of its parameters; those that values were put in for have one left.
    pub(super) fn new(part: &Part, kept: &[Vec<u16>], at: impl Fn(usize) -> Option<u16>, error: EvalError) -> Self {
        let value = |&p: &usize| Some((p, at(p).or_else(|| kept[p].first().copied())?));
        Self { origin: part.origin, at: part.params.iter().filter_map(value).collect(), error }
    }

    pub(super) fn of(self, description: &Description) -> LegalError {
        let value = |(p, i): (usize, u16)| {
            let param = &description.params[p];
            (param.name.clone(), param.values[usize::from(i)].clone())
        };
        let constraint = description.constraints.get(self.origin).map_or(String::new(), |c| c.name.clone());
        LegalError::Undefined { constraint, at: Config(self.at.into_iter().map(value).collect()), error: self.error }
    }
}

/// Replaces parameters of a single value by it. Closures keep theirs.
fn fix(params: &[Param], kept: &[Vec<u16>], part: &mut Part) {
    let Test::Expr(e) = &mut part.test else { return };
    let single = |p: &usize| matches!(kept[*p].as_slice(), [_]);
    if !part.scope.iter().any(single) {
        return;
    }
    *e = e.substitute(&|name| {
        let at = part.scope.iter().copied().find(|&p| params[p].name == name)?;
        match kept[at].as_slice() {
            [only] => Some(constant(params[at].values[usize::from(*only)].as_val())),
            _ => None,
        }
    });
    part.scope.retain(|p| !single(p));
}
