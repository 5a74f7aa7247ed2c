//! Expressions over integer fields as C and as Rust, with Python's division and remainder, and without overflow.
//!
//! An expression without a value makes a condition false. In Rust each operation gives an `Option`; in C it sets a flag that the
//! condition looks at in the end. What is evaluated, and in which order, is the same in both as in `core::expr`.

use crate::domain::Domain;
use tilewright_core::expr::{BinaryOp, CompareOp, Expr, Function, Value};

/// The language of emitted code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    C,
    Rust,
}

/// What an emitted expression is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Integer,
    Truth,
}

/// An expression that has no integer code: floats, words in arithmetic, functions of reals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inexpressible;

type Emitted = Result<(String, Type), Inexpressible>;

/// The largest exponent that is written out as products.
const MOST_FACTORS: i64 = 16;

/// How fields and functions are called in the code.
pub(crate) struct Scope<'a> {
    pub(crate) language: Language,
    pub(crate) domain: &'a Domain,
    /// The code that reads a field, by its number.
    pub(crate) fields: &'a [String],
    /// What the names of functions begin with.
    pub(crate) prefix: &'a str,
}

/// Whether an expression can be written as integer code over the fields of a domain.
pub(crate) fn is_expressible(expr: &Expr, domain: &Domain) -> bool {
    let fields = vec![String::new(); domain.fields.len()];
    Scope { language: Language::C, domain, fields: &fields, prefix: "" }.truth(expr).is_ok()
}

impl Scope<'_> {
    /// The code of the truth of an expression.
    pub(crate) fn truth(&self, expr: &Expr) -> Result<String, Inexpressible> {
        // Only the truth of the operands counts here, whichever of them is the value.
        if let Expr::And(list) | Expr::Or(list) = expr {
            let by = if matches!(expr, Expr::And(_)) { " && " } else { " || " };
            let parts: Vec<String> = list.iter().map(|part| self.truth(part)).collect::<Result<_, _>>()?;
            return Ok(format!("({})", parts.join(by)));
        }
        Ok(match self.any(expr)? {
            (code, Type::Truth) => code,
            (code, Type::Integer) => format!("({code} != 0)"),
        })
    }

    fn integer(&self, expr: &Expr) -> Result<String, Inexpressible> {
        Ok(match (self.any(expr)?, self.language) {
            ((code, Type::Integer), _) => code,
            ((code, Type::Truth), Language::C) => format!("(int64_t){code}"),
            ((code, Type::Truth), Language::Rust) => format!("i64::from({code})"),
        })
    }

    fn any(&self, expr: &Expr) -> Emitted {
        Ok(match expr {
            Expr::Const(Value::Int(i)) => (self.literal(*i), Type::Integer),
            Expr::Const(Value::Bool(b)) => (self.constant(*b), Type::Truth),
            Expr::Name(name) => (self.field(name)?, Type::Integer),
            Expr::Neg(a) => (self.call("neg", &[self.integer(a)?]), Type::Integer),
            Expr::Not(a) => (format!("!{}", self.truth(a)?), Type::Truth),
            Expr::Binary(op, ab) => (self.binary(*op, &ab[0], &ab[1])?, Type::Integer),
            Expr::Compare(first, rest) => (self.chain(first, rest)?, Type::Truth),
            Expr::In(a, list, is_negated) => (self.within(a, list, *is_negated)?, Type::Truth),
            // The value is an operand: where all are truths, it is their truth.
            Expr::And(list) | Expr::Or(list) => {
                let is_truth = |part: &Expr| matches!(self.any(part), Ok((_, Type::Truth)));
                match list.iter().all(is_truth) {
                    true => (self.truth(expr)?, Type::Truth),
                    false => return Err(Inexpressible),
                }
            }
            Expr::Call(function, list) => (self.function(*function, list)?, Type::Integer),
            Expr::If(parts) => self.conditional(&parts[0], &parts[1], &parts[2])?,
            Expr::Const(Value::Float(_) | Value::Str(_)) => return Err(Inexpressible),
        })
    }

    fn literal(&self, i: i64) -> String {
        match (self.language, i) {
            (Language::Rust, i) => format!("({i}_i64)"),
            // No literal of C is as large as its magnitude.
            (Language::C, i64::MIN) => format!("(-INT64_C({}) - 1)", i64::MAX),
            (Language::C, i) => format!("INT64_C({i})").replace("INT64_C(-", "-INT64_C("),
        }
    }

    fn constant(&self, truth: bool) -> String {
        match self.language {
            Language::C => i32::from(truth).to_string(),
            Language::Rust => truth.to_string(),
        }
    }

    /// The code of an integer field.
    fn field(&self, name: &str) -> Result<String, Inexpressible> {
        let at = self.domain.position(name).ok_or(Inexpressible)?;
        if self.domain.fields[at].is_integer() { Ok(self.fields[at].clone()) } else { Err(Inexpressible) }
    }

    /// A call of a function that may have no value.
    fn call(&self, name: &str, arguments: &[String]) -> String {
        let (prefix, list) = (self.prefix, arguments.join(", "));
        match self.language {
            Language::C => format!("{prefix}{name}({list}, bad)"),
            Language::Rust => format!("{prefix}{name}({list})?"),
        }
    }

    fn binary(&self, op: BinaryOp, a: &Expr, b: &Expr) -> Result<String, Inexpressible> {
        let name = match op {
            BinaryOp::Add => "add",
            BinaryOp::Sub => "sub",
            BinaryOp::Mul => "mul",
            BinaryOp::FloorDiv => "div",
            BinaryOp::Rem => "rem",
            BinaryOp::Pow => return self.power(a, b),
            BinaryOp::Div => return Err(Inexpressible),
        };
        Ok(self.call(name, &[self.integer(a)?, self.integer(b)?]))
    }

    /// A field to a small constant: a product overflows where the power does.
    fn power(&self, a: &Expr, b: &Expr) -> Result<String, Inexpressible> {
        match (a, b) {
            (Expr::Name(_), Expr::Const(Value::Int(exponent @ 1..=MOST_FACTORS))) => {
                let base = self.integer(a)?;
                Ok((1..*exponent).fold(base.clone(), |all, _| self.call("mul", &[all, base.clone()])))
            }
            _ => Err(Inexpressible),
        }
    }

    fn chain(&self, first: &Expr, rest: &[(CompareOp, Expr)]) -> Result<String, Inexpressible> {
        let lefts = std::iter::once(first).chain(rest.iter().map(|(_, right)| right));
        let pairs = lefts.zip(rest).map(|(left, (op, right))| self.compared(*op, left, right));
        Ok(format!("({})", pairs.collect::<Result<Vec<_>, _>>()?.join(" && ")))
    }

    fn compared(&self, op: CompareOp, left: &Expr, right: &Expr) -> Result<String, Inexpressible> {
        if let Some(equal) = self.word_equals(left, right) {
            return match op {
                CompareOp::Eq => Ok(equal),
                CompareOp::Ne => Ok(format!("!{equal}")),
                _ => Err(Inexpressible),
            };
        }
        Ok(format!("({} {} {})", self.integer(left)?, op.name(), self.integer(right)?))
    }

    /// Whether a field of words is a constant.
    fn word_equals(&self, left: &Expr, right: &Expr) -> Option<String> {
        let (Expr::Name(name), Expr::Const(value)) = (left, right) else {
            return match (left, right) {
                (Expr::Const(_), Expr::Name(_)) => self.word_equals(right, left),
                _ => None,
            };
        };
        let at = self.domain.position(name).filter(|&at| !self.domain.fields[at].is_integer())?;
        let is_equal = |word: &Value| word.as_val().order(value.as_val()) == Some(std::cmp::Ordering::Equal);
        let equal = self.domain.fields[at].words.iter().enumerate().filter(|(_, word)| is_equal(word));
        let parts: Vec<String> = equal.map(|(word, _)| format!("{} == {word}", self.fields[at])).collect();
        Some(if parts.is_empty() { self.constant(false) } else { format!("({})", parts.join(" || ")) })
    }

    /// All elements are evaluated, as the evaluator does.
    fn within(&self, a: &Expr, list: &[Expr], is_negated: bool) -> Result<String, Inexpressible> {
        let parts: Vec<String> =
            list.iter().map(|b| self.compared(CompareOp::Eq, a, b)).collect::<Result<_, Inexpressible>>()?;
        let any = if parts.is_empty() { self.constant(false) } else { format!("({})", parts.join(" | ")) };
        // Of nothing, the left side is still evaluated: only a name cannot fail.
        match (parts.is_empty(), a) {
            (true, Expr::Name(_)) | (false, _) => Ok(if is_negated { format!("!{any}") } else { any }),
            _ => Err(Inexpressible),
        }
    }

    fn function(&self, function: Function, list: &[Expr]) -> Result<String, Inexpressible> {
        let arguments: Vec<String> = list.iter().map(|part| self.integer(part)).collect::<Result<_, _>>()?;
        match (function, &arguments[..]) {
            (Function::Min | Function::Max, [first, rest @ ..]) => {
                let name = format!("{}{}", self.prefix, function.name());
                Ok(rest.iter().fold(first.clone(), |all, one| format!("{name}({all}, {one})")))
            }
            (Function::Abs, [a]) => Ok(self.call("abs", std::slice::from_ref(a))),
            (Function::Ceil | Function::Floor | Function::Round | Function::Int, [a]) => Ok(a.clone()),
            _ => Err(Inexpressible),
        }
    }

    fn conditional(&self, then: &Expr, condition: &Expr, otherwise: &Expr) -> Emitted {
        let condition = self.truth(condition)?;
        let (then, otherwise, kind) = match (self.any(then)?, self.any(otherwise)?) {
            ((then, Type::Truth), (otherwise, Type::Truth)) => (then, otherwise, Type::Truth),
            _ => (self.integer(then)?, self.integer(otherwise)?, Type::Integer),
        };
        Ok(match self.language {
            Language::C => (format!("({condition} ? {then} : {otherwise})"), kind),
            Language::Rust => (format!("(if {condition} {{ {then} }} else {{ {otherwise} }})"), kind),
        })
    }
}
