//! Why a space is empty.

use super::{Constraint, Description, LegalError, LegalSet};
use std::collections::BTreeMap;
use std::fmt;

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
        let mut rest = description.clone();
        let mut at = 0;
        while at < rest.constraints.len() {
            if !among(&rest.constraints[at]) {
                at += 1;
                continue;
            }
            let mut without = rest.clone();
            without.constraints.remove(at);
            let empty = match LegalSet::new(&without) {
                Ok(set) => set.is_empty(),
                // Too much without it: then it is needed for what was found empty with it. A fault that it had kept
                // from points is no point either.
                Err(LegalError::TooMany | LegalError::TooWide { .. } | LegalError::Undefined { .. }) => false,
                Err(e) => return Err(e),
            };
            if empty {
                rest = without;
            } else {
                at += 1;
            }
        }
        Ok(Some(Self { constraints: rest.constraints.into_iter().filter(among).map(|c| c.name).collect() }))
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
