//! Expressions over numbered slots: names are resolved once, evaluation allocates nothing.

use super::eval::{EvalError, binary, call, compare, negate};
use super::value::Val;
use super::{CompareOp, Expr, Tree};

/// A name that is none of the slots.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown name {0:?}")]
pub struct UnknownName(pub String);

/// An expression whose names are positions in a list of values.
#[derive(Clone, Debug)]
pub struct Compiled {
    root: Tree<usize>,
}

impl Compiled {
    pub(super) fn new(expr: &Expr, slots: &[&str]) -> Result<Self, UnknownName> {
        Ok(Self { root: over_slots(expr, slots)? })
    }

    /// The value at the given slots.
    ///
    /// # Errors
    /// A wrong type, a division by zero or an integer overflow.
    #[inline]
    pub fn eval<'a>(&'a self, slots: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
        self.root.eval(slots)
    }

    /// The truth at the given slots.
    ///
    /// # Errors
    /// As [`Compiled::eval`].
    #[inline]
    pub fn holds(&self, slots: &[Val<'_>]) -> Result<bool, EvalError> {
        self.root.eval(slots).map(Val::truthy)
    }
}

fn over_slots(e: &Expr, slots: &[&str]) -> Result<Tree<usize>, UnknownName> {
    let slot = |n: &String| slots.iter().position(|s| s == n).map(Tree::Name).ok_or_else(|| UnknownName(n.clone()));
    e.map(slot, |part| over_slots(part, slots))
}

impl Tree<usize> {
    fn eval<'a>(&'a self, slots: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
        Ok(match self {
            Self::Const(v) => v.as_val(),
            Self::Name(slot) => slots[*slot],
            Self::Neg(a) => negate(a.eval(slots)?)?,
            Self::Not(a) => Val::Bool(!a.eval(slots)?.truthy()),
            Self::Binary(op, ab) => binary(*op, ab[0].eval(slots)?, ab[1].eval(slots)?)?,
            Self::Compare(a, rest) => {
                let mut left = a.eval(slots)?;
                // Mostly there is one: no loop.
                if let [(op, b)] = rest.as_slice() {
                    return compare(*op, left, b.eval(slots)?).map(Val::Bool);
                }
                for (op, b) in rest {
                    let right = b.eval(slots)?;
                    if !compare(*op, left, right)? {
                        return Ok(Val::Bool(false));
                    }
                    left = right;
                }
                Val::Bool(true)
            }
            Self::In(a, list, negated) => {
                let a = a.eval(slots)?;
                let mut found = false;
                for b in list {
                    found |= compare(CompareOp::Eq, a, b.eval(slots)?)?;
                }
                Val::Bool(found != *negated)
            }
            // As in Python, the value is that of the operand that decided.
            Self::And(list) => decide(list, slots, false)?,
            Self::Or(list) => decide(list, slots, true)?,
            Self::Call(f, list) => match list.as_slice() {
                [a] => call(*f, &[a.eval(slots)?])?,
                [a, b] => call(*f, &[a.eval(slots)?, b.eval(slots)?])?,
                _ => {
                    let args: Result<Vec<_>, _> = list.iter().map(|e| e.eval(slots)).collect();
                    call(*f, &args?)?
                }
            },
            Self::If(parts) => {
                let [then, condition, otherwise] = &**parts;
                if condition.eval(slots)?.truthy() { then.eval(slots)? } else { otherwise.eval(slots)? }
            }
        })
    }
}

fn decide<'a>(list: &'a [Tree<usize>], slots: &[Val<'a>], stop_at: bool) -> Result<Val<'a>, EvalError> {
    let mut last = Val::Bool(!stop_at);
    for e in list {
        last = e.eval(slots)?;
        if last.truthy() == stop_at {
            break;
        }
    }
    Ok(last)
}
