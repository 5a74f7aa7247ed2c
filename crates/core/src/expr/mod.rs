//! One expression language for the legality rules of kernels, the constraints of users and derived features.
//!
//! The grammar is the arithmetic and Boolean part of Python's expressions, so that the constraint strings of existing
//! tuners parse as they are: integers, floats, strings, names, `+ - * / // % **`, chained comparisons, `in` lists,
//! `and or not`, conditional `a if c else b`, and the functions `min max abs ceil floor round log2 sqrt int float`, and
//! `len` of a list. Lists of values ([`List`]) are literals, `range`, comprehensions and sums of them.
//! Nothing is ever executed: text becomes an [`Expr`], an [`Expr`] is compiled to a [`Compiled`] over numbered slots.
//! Integer arithmetic is exact and checked; an overflow is an [`EvalError`], never a wrapped number.

mod compile;
mod eval;
mod fold;
mod lex;
mod list;
mod parse;
mod print;
mod value;

pub use compile::{Compiled, UnknownName};
pub use eval::EvalError;
pub(crate) use eval::floor_div;
pub use list::{Clause, List, ListError};
pub use parse::ParseError;
pub use value::{Val, Value};

use std::collections::BTreeSet;

/// A text as messages repeat it: whole where it is short.
pub fn brief(text: &str) -> String {
    within(text, 60)
}

/// The first so many characters of a text, and how long it is where it has more.
pub fn within(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}... ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

named! {
    /// A two-operand arithmetic operator.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum BinaryOp {
        /// Addition.
        Add = "+",
        /// Subtraction.
        Sub = "-",
        /// Multiplication.
        Mul = "*",
        /// True division: always a float.
        Div = "/",
        /// Floor division.
        FloorDiv = "//",
        /// Remainder, with the sign of the divisor as in Python.
        Rem = "%",
        /// Power.
        Pow = "**",
    }
}

impl BinaryOp {
    /// The value of two operands.
    ///
    /// # Errors
    /// As [`Compiled::eval`].
    pub fn apply<'a>(self, left: Val<'a>, right: Val<'a>) -> Result<Val<'a>, EvalError> {
        eval::binary(self, left, right)
    }
}

named! {
    /// A comparison.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CompareOp {
        /// Equal.
        Eq = "==",
        /// Not equal.
        Ne = "!=",
        /// Less.
        Lt = "<",
        /// Less or equal.
        Le = "<=",
        /// Greater.
        Gt = ">",
        /// Greater or equal.
        Ge = ">=",
    }
}

named! {
    /// A built-in function.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Function {
        /// Smallest of one or more.
        Min = "min",
        /// Largest of one or more.
        Max = "max",
        /// Absolute value.
        Abs = "abs",
        /// Smallest integer not below.
        Ceil = "ceil",
        /// Largest integer not above.
        Floor = "floor",
        /// Nearest integer, halves to even.
        Round = "round",
        /// Base-2 logarithm, a float.
        Log2 = "log2",
        /// Square root, a float.
        Sqrt = "sqrt",
        /// Truncation to an integer.
        Int = "int",
        /// Conversion to a float.
        Float = "float",
    }
}

impl Function {
    /// The value at these arguments, at least one.
    ///
    /// # Errors
    /// As [`Compiled::eval`].
    pub fn apply<'a>(self, arguments: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
        if self.arity_ok(arguments.len()) {
            eval::call(self, arguments)
        } else {
            Err(EvalError::NotANumber(self.name()))
        }
    }

    fn arity_ok(self, n: usize) -> bool {
        match self {
            Self::Min | Self::Max => n >= 1,
            _ => n == 1,
        }
    }
}

/// An expression tree over names of type `N`: words in an [`Expr`], positions of slots in a [`Compiled`].
#[derive(Clone, Debug, PartialEq)]
pub enum Tree<N> {
    /// A literal.
    Const(Value),
    /// A parameter, an input size or a device fact.
    Name(N),
    /// Arithmetic negation.
    Neg(Box<Self>),
    /// Boolean negation.
    Not(Box<Self>),
    /// Arithmetic.
    Binary(BinaryOp, Box<[Self; 2]>),
    /// `a < b <= c`: every neighbouring pair must hold.
    Compare(Box<Self>, Vec<(CompareOp, Self)>),
    /// `x in (a, b, c)`; the flag is true for `not in`.
    In(Box<Self>, Vec<Self>, bool),
    /// All must be true; evaluation stops at the first that is not.
    And(Vec<Self>),
    /// One must be true; evaluation stops at the first that is.
    Or(Vec<Self>),
    /// A built-in function.
    Call(Function, Vec<Self>),
    /// `then if condition else otherwise`, fields in that order.
    If(Box<[Self; 3]>),
}

/// An expression as written.
pub type Expr = Tree<String>;

impl<N> Tree<N> {
    /// The same node over other parts: a name is replaced by what `name` gives, every node below by what `part` gives.
    fn map<M, E>(
        &self,
        name: impl FnOnce(&N) -> Result<Tree<M>, E>,
        mut part: impl FnMut(&Self) -> Result<Tree<M>, E>,
    ) -> Result<Tree<M>, E> {
        Ok(match self {
            Self::Const(v) => Tree::Const(v.clone()),
            Self::Name(n) => name(n)?,
            Self::Neg(a) => Tree::Neg(part(a)?.into()),
            Self::Not(a) => Tree::Not(part(a)?.into()),
            Self::Binary(op, ab) => Tree::Binary(*op, [part(&ab[0])?, part(&ab[1])?].into()),
            Self::Compare(a, rest) => {
                let a = part(a)?;
                let rest = rest.iter().map(|(op, b)| Ok((*op, part(b)?)));
                Tree::Compare(a.into(), rest.collect::<Result<_, E>>()?)
            }
            Self::In(a, es, negated) => {
                let a = part(a)?;
                Tree::In(a.into(), es.iter().map(part).collect::<Result<_, E>>()?, *negated)
            }
            Self::And(es) => Tree::And(es.iter().map(part).collect::<Result<_, E>>()?),
            Self::Or(es) => Tree::Or(es.iter().map(part).collect::<Result<_, E>>()?),
            Self::Call(f, es) => Tree::Call(*f, es.iter().map(part).collect::<Result<_, E>>()?),
            Self::If(acb) => Tree::If([part(&acb[0])?, part(&acb[1])?, part(&acb[2])?].into()),
        })
    }
}

impl Expr {
    /// Every name that the expression mentions, sorted.
    pub fn names(&self) -> BTreeSet<String> {
        let mut out = BTreeSet::new();
        self.visit(&mut |e| {
            if let Self::Name(n) = e {
                out.insert(n.clone());
            }
        });
        out
    }

    /// Calls `f` on this node and every node below it, parents first.
    pub fn visit(&self, f: &mut impl FnMut(&Expr)) {
        f(self);
        match self {
            Self::Const(_) | Self::Name(_) => {}
            Self::Neg(a) | Self::Not(a) => a.visit(f),
            Self::Binary(_, ab) => ab.iter().for_each(|e| e.visit(f)),
            Self::Compare(a, rest) => {
                a.visit(f);
                rest.iter().for_each(|(_, e)| e.visit(f));
            }
            Self::In(a, list, _) => {
                a.visit(f);
                list.iter().for_each(|e| e.visit(f));
            }
            Self::And(list) | Self::Or(list) | Self::Call(_, list) => list.iter().for_each(|e| e.visit(f)),
            Self::If(acb) => acb.iter().for_each(|e| e.visit(f)),
        }
    }

    /// Compiles the expression over `slots`: the position of a name in that list is where its value stands at evaluation.
    ///
    /// # Errors
    /// The first name that is not among the slots.
    pub fn compile(&self, slots: &[&str]) -> Result<Compiled, UnknownName> {
        Compiled::new(self, slots)
    }

    /// Evaluates with a lookup of names; for rare use. Hot paths use [`Expr::compile`].
    ///
    /// # Errors
    /// An unknown name, a wrong type, a division by zero or an integer overflow.
    pub fn eval_with(&self, lookup: &dyn Fn(&str) -> Option<Value>) -> Result<Value, EvalError> {
        let names = self.names();
        let mut values = Vec::with_capacity(names.len());
        for name in &names {
            values.push(lookup(name).ok_or_else(|| EvalError::UnknownName(name.clone()))?);
        }
        let slots: Vec<&str> = names.iter().map(String::as_str).collect();
        let compiled = self.compile(&slots).map_err(|e| EvalError::UnknownName(e.0))?;
        let vals: Vec<Val<'_>> = values.iter().map(Value::as_val).collect();
        compiled.eval(&vals).map(Value::from)
    }
}
