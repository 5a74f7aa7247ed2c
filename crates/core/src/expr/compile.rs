//! Expressions over numbered slots: names are resolved once, evaluation allocates nothing.

use super::eval::{EvalError, binary, call, compare, negate};
use super::value::{Val, Value};
use super::{BinaryOp, CompareOp, Expr, Function};

/// A name that is none of the slots.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown name {0:?}")]
pub struct UnknownName(pub String);

/// An expression whose names are positions in a list of values.
#[derive(Clone, Debug)]
pub struct Compiled {
    root: Node,
}

#[derive(Clone, Debug)]
enum Node {
    Const(Value),
    Slot(usize),
    Neg(Box<Node>),
    Not(Box<Node>),
    Binary(BinaryOp, Box<(Node, Node)>),
    /// The ordinary comparison of two; chains take the general form.
    Compare(CompareOp, Box<(Node, Node)>),
    Chain(Box<Node>, Vec<(CompareOp, Node)>),
    In(Box<Node>, Vec<Node>, bool),
    And(Vec<Node>),
    Or(Vec<Node>),
    Call(Function, Vec<Node>),
    If(Box<(Node, Node, Node)>),
}

impl Compiled {
    pub(super) fn new(expr: &Expr, slots: &[&str]) -> Result<Self, UnknownName> {
        Ok(Self { root: node(expr, slots)? })
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

fn nodes(list: &[Expr], slots: &[&str]) -> Result<Vec<Node>, UnknownName> {
    list.iter().map(|e| node(e, slots)).collect()
}

fn node(e: &Expr, slots: &[&str]) -> Result<Node, UnknownName> {
    Ok(match e {
        Expr::Const(v) => Node::Const(v.clone()),
        Expr::Name(n) => Node::Slot(slots.iter().position(|s| s == n).ok_or_else(|| UnknownName(n.clone()))?),
        Expr::Neg(a) => Node::Neg(node(a, slots)?.into()),
        Expr::Not(a) => Node::Not(node(a, slots)?.into()),
        Expr::Binary(op, a, b) => Node::Binary(*op, (node(a, slots)?, node(b, slots)?).into()),
        Expr::Compare(a, rest) => match rest.as_slice() {
            [(op, b)] => Node::Compare(*op, (node(a, slots)?, node(b, slots)?).into()),
            _ => {
                let rest: Result<_, _> = rest.iter().map(|(op, b)| Ok((*op, node(b, slots)?))).collect();
                Node::Chain(node(a, slots)?.into(), rest?)
            }
        },
        Expr::In(a, list, negated) => Node::In(node(a, slots)?.into(), nodes(list, slots)?, *negated),
        Expr::And(list) => Node::And(nodes(list, slots)?),
        Expr::Or(list) => Node::Or(nodes(list, slots)?),
        Expr::Call(f, list) => Node::Call(*f, nodes(list, slots)?),
        Expr::If(a, c, b) => Node::If((node(a, slots)?, node(c, slots)?, node(b, slots)?).into()),
    })
}

impl Node {
    fn eval<'a>(&'a self, slots: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
        Ok(match self {
            Self::Const(v) => v.as_val(),
            Self::Slot(i) => slots[*i],
            Self::Neg(a) => negate(a.eval(slots)?)?,
            Self::Not(a) => Val::Bool(!a.eval(slots)?.truthy()),
            Self::Binary(op, ab) => binary(*op, ab.0.eval(slots)?, ab.1.eval(slots)?)?,
            Self::Compare(op, ab) => Val::Bool(compare(*op, ab.0.eval(slots)?, ab.1.eval(slots)?)?),
            Self::Chain(a, rest) => {
                let mut left = a.eval(slots)?;
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
                let (then, condition, otherwise) = &**parts;
                if condition.eval(slots)?.truthy() { then.eval(slots)? } else { otherwise.eval(slots)? }
            }
        })
    }
}

fn decide<'a>(list: &'a [Node], slots: &[Val<'a>], stop_at: bool) -> Result<Val<'a>, EvalError> {
    let mut last = Val::Bool(!stop_at);
    for e in list {
        last = e.eval(slots)?;
        if last.truthy() == stop_at {
            break;
        }
    }
    Ok(last)
}
