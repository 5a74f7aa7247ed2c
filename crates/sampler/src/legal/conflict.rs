//! Why a space is empty.

use super::{Constraint, Description, LegalError, LegalSet};
use crate::{Chained, Sampler, Settings};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::fmt;

/// Candidates drawn before a space is built to see whether it is empty.
const PROBES: u64 = 64;

/// Constraints that cannot hold together, of which none can be left out: without any one of them, something is legal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Their names, in the order of the description.
    pub constraints: Vec<String>,
}

impl Conflict {
    /// A minimal set of conflicting constraints of a space without legal points; none if it has some.
    ///
    /// # Errors
    /// As [`LegalSet::new`].
    pub fn find(description: &Description) -> Result<Option<Self>, LegalError> {
        Self::find_among(description, |_| true)
    }

    /// The same among some constraints only, the others taken as given. Empty where those alone conflict.
    ///
    /// # Errors
    /// As [`LegalSet::new`].
    pub fn find_among(
        description: &Description,
        among: impl Fn(&Constraint) -> bool,
    ) -> Result<Option<Self>, LegalError> {
        if !LegalSet::new(description)?.is_empty() {
            return Ok(None);
        }
        let given = with(description, |c| !among(c));
        if nothing_legal(&given)? {
            return Ok(Some(Self { constraints: Vec::new() }));
        }
        // Most often one of them is to blame, and its space is the smallest to look at.
        for (at, constraint) in description.constraints.iter().enumerate().filter(|(_, c)| among(c)) {
            let mut alone = given.clone();
            let before = description.constraints[..at].iter().filter(|c| !among(c)).count();
            alone.constraints.insert(before, constraint.clone());
            if nothing_legal(&alone)? {
                return Ok(Some(Self { constraints: vec![constraint.name.clone()] }));
            }
        }
        let mut rest = description.clone();
        let mut at = 0;
        while at < rest.constraints.len() {
            let mut without = rest.clone();
            let constraint = without.constraints.remove(at);
            if among(&constraint) && nothing_legal(&without)? {
                rest = without;
            } else {
                at += 1;
            }
        }
        Ok(Some(Self { constraints: rest.constraints.into_iter().filter(among).map(|c| c.name).collect() }))
    }
}

/// The description with some of its constraints.
fn with(description: &Description, kept: impl Fn(&Constraint) -> bool) -> Description {
    let mut out = description.clone();
    out.constraints.retain(kept);
    out
}

/// Whether a part of the constraints of an empty space leaves nothing either.
fn nothing_legal(part: &Description) -> Result<bool, LegalError> {
    if part.listed.is_none()
        && let Ok((space, bound)) = part.to_core()
    {
        let settings = Settings { warmup: 0, max_attempts: PROBES, ..Settings::default() };
        if Chained::new(&space, settings).draw(&bound, &mut ChaCha8Rng::seed_from_u64(0)).is_ok() {
            return Ok(false);
        }
    }
    match LegalSet::new(part) {
        Ok(set) => Ok(set.is_empty()),
        // Too much to be built is not nothing: what was left out is needed for what was found empty with it. A fault that
        // it had kept from points is no point either.
        Err(LegalError::TooMany | LegalError::TooWide { .. } | LegalError::Undefined { .. }) => Ok(false),
        Err(e) => Err(e),
    }
}

impl Description {
    /// Points, legal or not, by the first constraint in the order of the description that they break.
    ///
    /// # Errors
    /// As [`LegalSet::new`]; more than 2^64 points under the first constraints alone.
    pub fn rejected_by(&self) -> Result<BTreeMap<String, u64>, LegalError> {
        let mut out = BTreeMap::new();
        let mut some = Self { constraints: Vec::new(), lenient: true, ..self.clone() };
        let mut before = LegalSet::new(&some)?.count();
        for constraint in &self.constraints {
            some.constraints.push(constraint.clone());
            let left = LegalSet::new(&some)?.count();
            if before > left {
                *out.entry(constraint.name.clone()).or_default() += before - left;
            }
            before = left;
        }
        Ok(out)
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.constraints.as_slice() {
            [] => f.write_str("what else is given leaves nothing"),
            [only] => write!(f, "nothing fulfils {only:?}"),
            many => {
                let names: Vec<String> = many.iter().map(|c| format!("{c:?}")).collect();
                write!(f, "nothing fulfils all of {}", names.join(", "))
            }
        }
    }
}
