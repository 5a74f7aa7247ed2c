//! Partial evaluation: names with known values are replaced, and what has become constant is computed.

use super::Expr;
use super::eval::EvalError;
use super::value::Value;
use std::convert::Infallible;

impl Expr {
    /// Replaces the names that `known` gives a value and computes every part that has become constant. A part whose
    /// value cannot be computed (a division by zero in a branch that may not be taken) stays as it is.
    pub fn fold(&self, known: &dyn Fn(&str) -> Option<Value>) -> Expr {
        let list = |es: &[Expr]| es.iter().map(|e| e.fold(known)).collect::<Vec<_>>();
        let folded = match self {
            Self::Const(_) => return self.clone(),
            Self::Name(n) => return known(n).map_or_else(|| self.clone(), Self::Const),
            Self::And(es) => return decided(list(es), false),
            Self::Or(es) => return decided(list(es), true),
            Self::If(parts) => match parts[1].fold(known) {
                Self::Const(c) => return parts[if c.as_val().truthy() { 0 } else { 2 }].fold(known),
                condition => Self::If([parts[0].fold(known), condition, parts[2].fold(known)].into()),
            },
            _ => self.replaced(&|_| None, |e| e.fold(known)),
        };
        folded.constant().map_or(folded, Self::Const)
    }

    /// Replaces the names that `with` gives an expression.
    pub fn substitute(&self, with: &dyn Fn(&str) -> Option<Expr>) -> Expr {
        self.replaced(with, |e| e.substitute(with))
    }

    fn replaced(&self, with: &dyn Fn(&str) -> Option<Expr>, part: impl Fn(&Expr) -> Expr) -> Expr {
        let Ok(out) = self.map(|n| Ok::<_, Infallible>(with(n).unwrap_or_else(|| self.clone())), |e| Ok(part(e)));
        out
    }

    /// The value of an expression without names.
    fn constant(&self) -> Option<Value> {
        let value: Result<Value, EvalError> = self.eval_with(&|_| None);
        value.ok()
    }
}

/// `and` / `or` without the constant operands that cannot be its value, or the constant that decides it.
fn decided(list: Vec<Expr>, stop_at: bool) -> Expr {
    let mut rest = Vec::with_capacity(list.len());
    let last = list.len().saturating_sub(1);
    for (i, e) in list.into_iter().enumerate() {
        match e {
            Expr::Const(v) if v.as_val().truthy() == stop_at => {
                // What stands before could still fail to evaluate, so only a leading constant decides alone.
                rest.push(Expr::Const(v));
                break;
            }
            // The last operand is the value when none before it decides.
            Expr::Const(_) if i < last => {}
            other => rest.push(other),
        }
    }
    match rest.len() {
        0 => Expr::Const(Value::Bool(!stop_at)),
        1 => rest.remove(0),
        _ if stop_at => Expr::Or(rest),
        _ => Expr::And(rest),
    }
}
