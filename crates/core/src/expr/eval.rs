//! The arithmetic of expressions.

use super::value::{LIMIT, Val};
use super::{BinaryOp, CompareOp, Function};
use std::cmp::Ordering;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// Division or remainder by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// An integer beyond 64 bits, or a float that is not finite.
    #[error("overflow in {0}")]
    Overflow(&'static str),
    /// A word where a number is needed, or an order between the two.
    #[error("{0} needs numbers")]
    NotANumber(&'static str),
    /// A name without a value.
    #[error("unknown name {0:?}")]
    UnknownName(String),
}

/// Integers where both are (Booleans count), floats otherwise.
enum Pair {
    Int(i64, i64),
    Float(f64, f64),
}

fn pair(a: Val<'_>, b: Val<'_>, what: &'static str) -> Result<Pair, EvalError> {
    if let (Some(a), Some(b)) = (a.as_integer(), b.as_integer()) {
        return Ok(Pair::Int(a, b));
    }
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => Ok(Pair::Float(a, b)),
        _ => Err(EvalError::NotANumber(what)),
    }
}

fn finite<'a>(x: f64, what: &'static str) -> Result<Val<'a>, EvalError> {
    if x.is_finite() { Ok(Val::Float(x)) } else { Err(EvalError::Overflow(what)) }
}

fn int<'a>(x: Option<i64>, what: &'static str) -> Result<Val<'a>, EvalError> {
    x.map(Val::Int).ok_or(EvalError::Overflow(what))
}

pub(super) fn binary<'a>(op: BinaryOp, a: Val<'a>, b: Val<'a>) -> Result<Val<'a>, EvalError> {
    match op {
        BinaryOp::Add => match pair(a, b, "+")? {
            Pair::Int(a, b) => int(a.checked_add(b), "+"),
            Pair::Float(a, b) => finite(a + b, "+"),
        },
        BinaryOp::Sub => match pair(a, b, "-")? {
            Pair::Int(a, b) => int(a.checked_sub(b), "-"),
            Pair::Float(a, b) => finite(a - b, "-"),
        },
        BinaryOp::Mul => match pair(a, b, "*")? {
            Pair::Int(a, b) => int(a.checked_mul(b), "*"),
            Pair::Float(a, b) => finite(a * b, "*"),
        },
        BinaryOp::Div => match pair(a, b, "/")? {
            Pair::Int(_, 0) | Pair::Float(_, 0.0) => Err(EvalError::DivisionByZero),
            Pair::Int(a, b) => Ok(Val::Float(quotient(a, b))),
            Pair::Float(a, b) => finite(a / b, "/"),
        },
        BinaryOp::FloorDiv => match pair(a, b, "//")? {
            Pair::Int(_, 0) | Pair::Float(_, 0.0) => Err(EvalError::DivisionByZero),
            Pair::Int(a, b) => int(floor_div(a, b), "//"),
            Pair::Float(a, b) => finite(float_divmod(a, b).0, "//"),
        },
        BinaryOp::Rem => match pair(a, b, "%")? {
            Pair::Int(_, 0) | Pair::Float(_, 0.0) => Err(EvalError::DivisionByZero),
            // No remainder is too large, though the quotient of the least integer by -1 is: it wraps, and the remainder is 0.
            Pair::Int(a, b) => Ok(Val::Int(a.wrapping_sub(floor_div(a, b).unwrap_or(a).wrapping_mul(b)))),
            Pair::Float(a, b) => finite(float_divmod(a, b).1, "%"),
        },
        BinaryOp::Pow => match pair(a, b, "**")? {
            Pair::Int(a, b) if b >= 0 => int(int_pow(a, b), "**"),
            Pair::Int(0, _) => Err(EvalError::DivisionByZero),
            Pair::Float(0.0, b) if b < 0.0 => Err(EvalError::DivisionByZero),
            Pair::Int(a, b) => finite((a as f64).powf(b as f64), "**"),
            Pair::Float(a, b) => finite(a.powf(b), "**"),
        },
    }
}

/// The float nearest to a quotient of integers. Dividing the floats nearest to them would round three times.
fn quotient(a: i64, b: i64) -> f64 {
    const EXACT: u64 = 1 << 53;
    let (x, y) = (a.unsigned_abs(), b.unsigned_abs());
    if x <= EXACT && y <= EXACT {
        return a as f64 / b as f64;
    }
    if x == 0 {
        return 0.0;
    }
    // At least 64 digits of the quotient, and whether any others follow: enough to round once.
    let shift = u128::from(x).leading_zeros();
    let (wide, y) = (u128::from(x) << shift, u128::from(y));
    let digits = (wide / y) | u128::from(wide % y != 0);
    let magnitude = digits as f64 / (1u128 << shift) as f64;
    if (a < 0) == (b < 0) { magnitude } else { -magnitude }
}

/// The quotient rounded down; none by zero, or beyond 64 bits.
pub(crate) fn floor_div(a: i64, b: i64) -> Option<i64> {
    let q = a.checked_div(b)?;
    Some(if a % b != 0 && ((a < 0) != (b < 0)) { q - 1 } else { q })
}

fn int_pow(a: i64, b: i64) -> Option<i64> {
    match (a, b % 2) {
        // The only bases whose powers stay small for any exponent.
        (0 | 1, _) if b > 0 => Some(a),
        (-1, odd) => Some(if odd == 0 { 1 } else { -1 }),
        _ => a.checked_pow(u32::try_from(b).ok()?),
    }
}

/// Python's floor division and remainder of floats: the exact remainder first, so that `1.0 // 0.1` is 9 and not 10.
fn float_divmod(a: f64, b: f64) -> (f64, f64) {
    let mut remainder = a % b;
    let mut quotient = (a - remainder) / b;
    if remainder == 0.0 {
        remainder = 0f64.copysign(b);
    } else if (remainder < 0.0) != (b < 0.0) {
        remainder += b;
        quotient -= 1.0;
    }
    let floor = quotient.floor();
    (if quotient - floor > 0.5 { floor + 1.0 } else { floor }, remainder)
}

pub(super) fn negate(a: Val<'_>) -> Result<Val<'_>, EvalError> {
    match (a.as_integer(), a.as_f64()) {
        (Some(i), _) => int(i.checked_neg(), "-"),
        (None, Some(x)) => Ok(Val::Float(-x)),
        _ => Err(EvalError::NotANumber("-")),
    }
}

pub(super) fn compare(op: CompareOp, a: Val<'_>, b: Val<'_>) -> Result<bool, EvalError> {
    let order = a.order(b);
    match op {
        CompareOp::Eq => Ok(order == Some(Ordering::Equal)),
        CompareOp::Ne => Ok(order != Some(Ordering::Equal)),
        _ => {
            let order = order.ok_or(EvalError::NotANumber("an order"))?;
            Ok(match op {
                CompareOp::Lt => order.is_lt(),
                CompareOp::Le => order.is_le(),
                CompareOp::Gt => order.is_gt(),
                _ => order.is_ge(),
            })
        }
    }
}

pub(super) fn call<'a>(f: Function, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    let first = args[0];
    let number = || first.as_f64().ok_or(EvalError::NotANumber(f.name()));
    let to_int = |x: f64| {
        if (-LIMIT..LIMIT).contains(&x) { Ok(Val::Int(x as i64)) } else { Err(EvalError::Overflow(f.name())) }
    };
    match f {
        Function::Min | Function::Max => {
            let wanted = if f == Function::Min { Ordering::Less } else { Ordering::Greater };
            let mut best = first;
            for &v in &args[1..] {
                let order = v.order(best).ok_or(EvalError::NotANumber(f.name()))?;
                if order == wanted {
                    best = v;
                }
            }
            Ok(best)
        }
        Function::Abs => match first.as_integer() {
            Some(i) => int(i.checked_abs(), "abs"),
            None => Ok(Val::Float(number()?.abs())),
        },
        Function::Ceil | Function::Floor | Function::Round | Function::Int if first.as_integer().is_some() => {
            Ok(Val::Int(first.as_integer().unwrap_or_default()))
        }
        Function::Ceil => to_int(number()?.ceil()),
        Function::Floor => to_int(number()?.floor()),
        Function::Round => to_int(number()?.round_ties_even()),
        Function::Int => to_int(number()?.trunc()),
        Function::Float => Ok(Val::Float(number()?)),
        Function::Log2 => finite(number()?.log2(), "log2"),
        Function::Sqrt => finite(number()?.sqrt(), "sqrt"),
    }
}
