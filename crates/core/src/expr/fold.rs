//! Partial evaluation: names with known values are replaced, and what has become constant is computed.

use super::Expr;
use super::eval::EvalError;
use super::value::Value;

impl Expr {
    /// Replaces the names that `known` gives a value and computes every part that has become constant. A part whose
    /// value cannot be computed (a division by zero in a branch that may not be taken) stays as it is.
    pub fn fold(&self, known: &dyn Fn(&str) -> Option<Value>) -> Expr {
        let fold = |e: &Expr| e.fold(known);
        let boxed = |e: &Expr| Box::new(e.fold(known));
        let list = |es: &[Expr]| es.iter().map(fold).collect::<Vec<_>>();
        let folded = match self {
            Self::Const(_) => return self.clone(),
            Self::Name(n) => return known(n).map_or_else(|| self.clone(), Self::Const),
            Self::Neg(a) => Self::Neg(boxed(a)),
            Self::Not(a) => Self::Not(boxed(a)),
            Self::Binary(op, a, b) => Self::Binary(*op, boxed(a), boxed(b)),
            Self::Compare(a, rest) => Self::Compare(boxed(a), rest.iter().map(|(op, e)| (*op, fold(e))).collect()),
            Self::In(a, es, negated) => Self::In(boxed(a), list(es), *negated),
            Self::And(es) => return decided(list(es), false),
            Self::Or(es) => return decided(list(es), true),
            Self::Call(f, es) => Self::Call(*f, list(es)),
            Self::If(a, c, b) => match fold(c) {
                Self::Const(c) => return if c.as_val().truthy() { fold(a) } else { fold(b) },
                c => Self::If(boxed(a), c.into(), boxed(b)),
            },
        };
        folded.constant().map_or(folded, Self::Const)
    }

    /// Replaces the names that `with` gives an expression.
    pub fn substitute(&self, with: &dyn Fn(&str) -> Option<Expr>) -> Expr {
        let sub = |e: &Expr| e.substitute(with);
        let boxed = |e: &Expr| Box::new(e.substitute(with));
        let list = |es: &[Expr]| es.iter().map(sub).collect::<Vec<_>>();
        match self {
            Self::Const(_) => self.clone(),
            Self::Name(n) => with(n).unwrap_or_else(|| self.clone()),
            Self::Neg(a) => Self::Neg(boxed(a)),
            Self::Not(a) => Self::Not(boxed(a)),
            Self::Binary(op, a, b) => Self::Binary(*op, boxed(a), boxed(b)),
            Self::Compare(a, rest) => Self::Compare(boxed(a), rest.iter().map(|(op, e)| (*op, sub(e))).collect()),
            Self::In(a, es, negated) => Self::In(boxed(a), list(es), *negated),
            Self::And(es) => Self::And(list(es)),
            Self::Or(es) => Self::Or(list(es)),
            Self::Call(f, es) => Self::Call(*f, list(es)),
            Self::If(a, c, b) => Self::If(boxed(a), boxed(c), boxed(b)),
        }
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
