//! Trees to text that parses back to the same tree.

use super::{BinaryOp, Expr};
use std::fmt;

/// How tightly a node binds; a child that binds less tightly than its place needs parentheses.
fn level(e: &Expr) -> u8 {
    match e {
        Expr::If(..) => 0,
        Expr::Or(_) => 1,
        Expr::And(_) => 2,
        Expr::Not(_) => 3,
        Expr::Compare(..) | Expr::In(..) => 4,
        Expr::Binary(BinaryOp::Add | BinaryOp::Sub, ..) => 5,
        Expr::Binary(BinaryOp::Mul | BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Rem, ..) => 6,
        Expr::Neg(_) => 7,
        // A negative literal reads back as a negation.
        Expr::Const(v) if v.as_f64().is_some_and(|x| x.is_sign_negative()) => 7,
        Expr::Binary(BinaryOp::Pow, ..) => 8,
        Expr::Const(_) | Expr::Name(_) | Expr::Call(..) => 9,
    }
}

fn child(f: &mut fmt::Formatter<'_>, e: &Expr, at_least: u8) -> fmt::Result {
    if level(e) < at_least { write!(f, "({e})") } else { write!(f, "{e}") }
}

fn joined(f: &mut fmt::Formatter<'_>, list: &[Expr], with: &str, at_least: u8) -> fmt::Result {
    for (i, e) in list.iter().enumerate() {
        if i > 0 {
            f.write_str(with)?;
        }
        child(f, e, at_least)?;
    }
    Ok(())
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Const(v) => v.as_val().fmt(f),
            Self::Name(n) => f.write_str(n),
            Self::Neg(a) => {
                f.write_str("-")?;
                child(f, a, 7)
            }
            Self::Not(a) => {
                f.write_str("not ")?;
                child(f, a, 3)
            }
            Self::Binary(op, ab) => {
                let (left, right) = match level(self) {
                    8 => (9, 7),
                    own => (own, own + 1),
                };
                child(f, &ab[0], left)?;
                write!(f, " {op} ")?;
                child(f, &ab[1], right)
            }
            Self::Compare(a, rest) => {
                child(f, a, 5)?;
                for (op, b) in rest {
                    write!(f, " {op} ")?;
                    child(f, b, 5)?;
                }
                Ok(())
            }
            Self::In(a, list, negated) => {
                child(f, a, 5)?;
                f.write_str(if *negated { " not in [" } else { " in [" })?;
                joined(f, list, ", ", 0)?;
                f.write_str("]")
            }
            Self::And(list) => joined(f, list, " and ", 3),
            Self::Or(list) => joined(f, list, " or ", 2),
            Self::Call(function, list) => {
                write!(f, "{}(", function.name())?;
                joined(f, list, ", ", 0)?;
                f.write_str(")")
            }
            Self::If(parts) => {
                let [then, condition, otherwise] = &**parts;
                child(f, then, 1)?;
                f.write_str(" if ")?;
                child(f, condition, 1)?;
                f.write_str(" else ")?;
                child(f, otherwise, 0)
            }
        }
    }
}
