//! Python's ways to write a list of values: literals, `range`, comprehensions, and sums of them.

use super::eval::EvalError;
use super::lex::lex;
use super::parse::{ParseError, Parser};
use super::value::Value;
use super::{Expr, Function};
use std::str::FromStr;

/// A list as written, not evaluated yet.
#[derive(Clone, Debug, PartialEq)]
pub enum List {
    /// `[a, b, c]`, with square, round or curly brackets.
    Items(Vec<Expr>),
    /// `range(stop)`, `range(start, stop)` or `range(start, stop, step)`.
    Range(Vec<Expr>),
    /// `[element for name in list if condition]`, with any number of `for` and `if`.
    Comprehension(Box<Expr>, Vec<Clause>),
    /// `a + b`.
    Sum(Vec<List>),
}

/// What follows the element of a comprehension.
#[derive(Clone, Debug, PartialEq)]
pub enum Clause {
    /// `for name in list`.
    For(String, List),
    /// `if condition`.
    If(Expr),
}

/// Why a list has no values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// An element that cannot be evaluated.
    #[error("element {at}: {error}")]
    Element {
        /// Elements before it.
        at: usize,
        /// Why.
        error: EvalError,
    },
    /// A bound or a step of a range that is no integer, or a step of 0.
    #[error("range needs integers and a step other than 0")]
    Range,
    /// More elements than allowed.
    #[error("more than {0} elements")]
    TooLong(usize),
}

/// Brackets deeper than this open no further list.
const MAX_LISTS: usize = 16;

impl FromStr for List {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut parser = Parser::new(lex(text)?);
        let list = parser.list()?;
        parser.end()?;
        Ok(list)
    }
}

impl List {
    /// The values, in order. At most `limit` elements are computed, those that a condition drops included.
    ///
    /// # Errors
    /// An element without a value, an empty step, more than `limit` elements.
    pub fn values(&self, limit: usize) -> Result<Vec<Value>, ListError> {
        let mut out = Vec::new();
        let mut steps = Steps { taken: 0, limit };
        self.collect(&mut Vec::new(), &mut steps, &mut out)?;
        Ok(out)
    }

    fn collect(&self, names: &mut Names, steps: &mut Steps, out: &mut Vec<Value>) -> Result<(), ListError> {
        match self {
            Self::Items(items) => {
                for item in items {
                    steps.take()?;
                    out.push(evaluate(item, names, out.len())?);
                }
            }
            Self::Range(bounds) => range(bounds, names, steps, out)?,
            Self::Comprehension(element, clauses) => comprehend(element, clauses, names, steps, out)?,
            Self::Sum(lists) => lists.iter().try_for_each(|list| list.collect(names, steps, out))?,
        }
        Ok(())
    }
}

/// The names that comprehensions have bound so far.
type Names = Vec<(String, Value)>;

struct Steps {
    taken: usize,
    limit: usize,
}

impl Steps {
    fn take(&mut self) -> Result<(), ListError> {
        self.taken += 1;
        if self.taken > self.limit { Err(ListError::TooLong(self.limit)) } else { Ok(()) }
    }
}

fn evaluate(e: &Expr, names: &Names, at: usize) -> Result<Value, ListError> {
    // The innermost name of several equal ones is meant.
    let lookup = |name: &str| names.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v.clone());
    e.eval_with(&lookup).map_err(|error| ListError::Element { at, error })
}

fn range(bounds: &[Expr], names: &Names, steps: &mut Steps, out: &mut Vec<Value>) -> Result<(), ListError> {
    let mut given = [0, 0, 1];
    for (i, bound) in bounds.iter().enumerate() {
        // As in Python, a float is no bound even where it is whole.
        let value = evaluate(bound, names, out.len())?.as_val().as_integer().ok_or(ListError::Range)?;
        // A single bound is the end.
        given[if bounds.len() == 1 { 1 } else { i }] = value;
    }
    let [start, stop, step] = given;
    if step == 0 {
        return Err(ListError::Range);
    }
    let mut at = start;
    while if step > 0 { at < stop } else { at > stop } {
        steps.take()?;
        out.push(Value::Int(at));
        let Some(next) = at.checked_add(step) else { break };
        at = next;
    }
    Ok(())
}

fn comprehend(
    element: &Expr,
    clauses: &[Clause],
    names: &mut Names,
    steps: &mut Steps,
    out: &mut Vec<Value>,
) -> Result<(), ListError> {
    match clauses.split_first() {
        None => out.push(evaluate(element, names, out.len())?),
        Some((Clause::If(condition), rest)) => {
            if evaluate(condition, names, out.len())?.as_val().truthy() {
                comprehend(element, rest, names, steps, out)?;
            }
        }
        Some((Clause::For(name, list), rest)) => {
            let mut values = Vec::new();
            list.collect(names, steps, &mut values)?;
            for value in values {
                steps.take()?;
                names.push((name.clone(), value));
                let inner = comprehend(element, rest, names, steps, out);
                names.pop();
                inner?;
            }
        }
    }
    Ok(())
}

impl Parser {
    /// Whether a list can begin here with a word or a bracket that no number begins with.
    pub(super) fn at_list(&self) -> bool {
        self.at_symbol("[") || self.at_symbol("{") || ["range", "list", "tuple", "set"].iter().any(|n| self.at_call(n))
    }

    /// One list, or a sum of several.
    pub(super) fn list(&mut self) -> Result<List, ParseError> {
        self.nested_by(super::parse::MAX_DEPTH / MAX_LISTS, |p| p.joined("+", Self::one_list, List::Sum))
    }

    fn one_list(&mut self) -> Result<List, ParseError> {
        if let Some(name) = ["list", "tuple", "set"].into_iter().find(|n| self.at_call(n)) {
            self.skip_call();
            if self.take(")") {
                return Ok(List::Items(Vec::new()));
            }
            // `list(i for i in ...)` is a comprehension without brackets of its own.
            if !self.at_list() && !self.at_symbol("(") {
                let element = self.expression()?;
                return self.clauses(element, ")", name);
            }
            let inner = self.list()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.at_call("range") {
            self.skip_call();
            let bounds = self.items(")")?;
            return if (1..=3).contains(&bounds.len()) {
                Ok(List::Range(bounds))
            } else {
                Err(self.error_before("one to three bounds of range"))
            };
        }
        let close = match [("[", "]"), ("(", ")"), ("{", "}")].into_iter().find(|(open, _)| self.take(open)) {
            Some((_, close)) => close,
            None => return Err(self.error("a list: \"[\", \"(\" or range")),
        };
        if self.take(close) {
            return Ok(List::Items(Vec::new()));
        }
        let first = self.expression()?;
        if self.at_symbol("for") {
            return self.clauses(first, close, "the list");
        }
        let mut items = vec![first];
        if self.take(",") {
            items.extend(self.items(close)?);
        } else {
            self.expect(close)?;
        }
        Ok(List::Items(items))
    }

    fn clauses(&mut self, element: Expr, close: &str, of: &str) -> Result<List, ParseError> {
        let mut clauses = Vec::new();
        loop {
            if self.take("for") {
                let name = self.name()?;
                self.expect("in")?;
                clauses.push(Clause::For(name, self.list()?));
            } else if !clauses.is_empty() && self.take("if") {
                // No conditional expression here: its `if` would swallow the next clause.
                clauses.push(Clause::If(self.or()?));
            } else if clauses.is_empty() {
                return Err(self.error(&format!("\"for\" in {of}")));
            } else {
                self.expect(close)?;
                return Ok(List::Comprehension(element.into(), clauses));
            }
        }
    }

    /// The elements of a list in the place of an expression list: as written where they are, else computed.
    pub(super) fn list_items(&mut self) -> Result<Vec<Expr>, ParseError> {
        let list = self.list()?;
        self.as_items(list)
    }

    fn as_items(&mut self, list: List) -> Result<Vec<Expr>, ParseError> {
        match list {
            List::Items(items) => Ok(items),
            List::Sum(lists) => {
                let items: Result<Vec<_>, _> = lists.into_iter().map(|list| self.as_items(list)).collect();
                Ok(items?.into_iter().flatten().collect())
            }
            list => {
                let values =
                    list.values(MAX_IN).map_err(|e| self.error_before(&format!("a list of constants ({e})")))?;
                Ok(values.into_iter().map(Expr::Const).collect())
            }
        }
    }

    /// `len(list)`; the elements are not looked at.
    pub(super) fn length(&mut self) -> Result<Expr, ParseError> {
        let items = self.list_items()?;
        self.expect(")")?;
        Ok(Expr::Const(Value::from(items.len())))
    }

    /// The arguments of a function, which may be one list for `min` and `max`.
    pub(super) fn arguments(&mut self, function: Function) -> Result<Vec<Expr>, ParseError> {
        if matches!(function, Function::Min | Function::Max) && self.at_list() {
            let items = self.list_items()?;
            self.expect(")")?;
            return Ok(items);
        }
        self.items(")")
    }
}

/// More constants than any `in` needs.
const MAX_IN: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn ints(text: &str) -> Vec<i64> {
        let list: List = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        list.values(10_000).unwrap().iter().map(|v| v.as_int().unwrap()).collect()
    }

    #[test]
    fn lists_as_tuners_write_them() {
        assert_eq!(ints("[1, 2, 4,]"), [1, 2, 4]);
        assert_eq!(ints("(3,)"), [3]);
        assert_eq!(ints("{5, 6}"), [5, 6]);
        assert_eq!(ints("[]"), [0; 0]);
        assert_eq!(ints("range(4)"), [0, 1, 2, 3]);
        assert_eq!(ints("list(range(10, 0, -4))"), [10, 6, 2]);
        assert_eq!(ints("[1, 2] + list(range(32, 96+1, 32))"), [1, 2, 32, 64, 96]);
        assert_eq!(ints("[2**i for i in range(0, 6)]"), [1, 2, 4, 8, 16, 32]);
        assert_eq!(ints("[i*j for i in range(3) if i > 0 for j in (i, 10) if j % 2 == 0]"), [10, 4, 20]);
        assert_eq!(ints("list(i for i in range(3))"), [0, 1, 2]);
        assert_eq!(ints("[max(i, 2) if i != 1 else -1 for i in range(3)]"), [2, -1, 2]);
        let words: List = "['nn', \"tt\"]".parse().unwrap();
        assert_eq!(words.values(9).unwrap(), [Value::from("nn"), Value::from("tt")]);
        let halves: List = "[i / 2 for i in range(3)]".parse().unwrap();
        assert_eq!(halves.values(9).unwrap(), [0.0, 0.5, 1.0].map(Value::Float));
    }

    #[test]
    fn faults_say_where() {
        let position = |text: &str| text.parse::<List>().unwrap_err().position;
        assert_eq!(position("[1, 2"), 5);
        assert_eq!(position("5"), 0);
        assert_eq!(position("[i for 3 in range(2)]"), 7);
        assert_eq!(position("[i for i in 3]"), 12);
        assert_eq!(position("[1] + "), 6);
        assert_eq!(position("[1] 2"), 4);
        assert_eq!(position("range()"), 6);
        let fault = |text: &str| text.parse::<List>().unwrap().values(100).unwrap_err();
        assert_eq!(fault("[1, 1 // 0]"), ListError::Element { at: 1, error: EvalError::DivisionByZero });
        assert_eq!(fault("[x]"), ListError::Element { at: 0, error: EvalError::UnknownName("x".into()) });
        assert_eq!(fault("range(1, 2, 0)"), ListError::Range);
        assert_eq!(fault("range(2.0)"), ListError::Range);
        assert_eq!(fault("range(1000000000)"), ListError::TooLong(100));
        assert_eq!(fault("[1 for i in range(20) for j in range(20) if False]"), ListError::TooLong(100));
        assert!("[".repeat(100).parse::<List>().is_err());
    }

    #[test]
    fn lists_inside_expressions() {
        let value = |text: &str| text.parse::<Expr>().unwrap().eval_with(&|_| Some(Value::Int(4))).unwrap();
        assert_eq!(value("x in range(3, 6)"), Value::Bool(true));
        assert_eq!(value("x not in [2**i for i in range(4)]"), Value::Bool(false).clone());
        assert_eq!(value("x in (x + 1, 2) + (4,)"), Value::Bool(true));
        assert_eq!(value("max([1, x, 3]) + min({2, x}) + len([5, 6, 7])"), Value::Int(9));
        assert_eq!(value("x in {1, 2}"), Value::Bool(false));
        assert!("x in [y for y in range(z)]".parse::<Expr>().is_err());
    }
}
