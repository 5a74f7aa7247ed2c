//! Tokens to trees: precedence climbing, with a bound on nesting so that no text can overflow the stack.

use super::lex::{Token, lex};
use super::{BinaryOp, CompareOp, Expr, Function, brief};
use std::str::FromStr;

/// Where and why a text is no expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at position {position}: expected {expected}, found {found}")]
pub struct ParseError {
    /// Byte offset in the text.
    pub position: usize,
    /// What could have stood there.
    pub expected: String,
    /// What stood there.
    pub found: String,
}

impl ParseError {
    pub(super) fn new(position: usize, expected: &str, found: &str) -> Self {
        Self { position, expected: expected.to_owned(), found: found.to_owned() }
    }
}

/// Deeper nesting than any rule needs.
pub(super) const MAX_DEPTH: usize = 64;

/// More arithmetic operators than any rule has. A chain of them is a left-deep tree, and chains at different nesting can
/// stand on top of each other, so the number in the whole text bounds how deep printing and evaluating recurse.
const MAX_OPERATORS: usize = 512;

pub(super) struct Parser {
    tokens: Vec<(usize, Token)>,
    at: usize,
    depth: usize,
    operators: usize,
}

impl FromStr for Expr {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut parser = Parser::new(lex(text)?);
        let expr = parser.expression()?;
        parser.end()?;
        Ok(expr)
    }
}

impl Parser {
    pub(super) fn new(tokens: Vec<(usize, Token)>) -> Self {
        Self { tokens, at: 0, depth: 0, operators: 0 }
    }

    pub(super) fn end(&self) -> Result<(), ParseError> {
        match self.peek() {
            Token::End => Ok(()),
            _ => Err(self.error("an operator or the end")),
        }
    }

    pub(super) fn at_symbol(&self, symbol: &str) -> bool {
        matches!(self.peek(), Token::Symbol(s) if *s == symbol)
    }

    /// Whether a call of this name begins here.
    pub(super) fn at_call(&self, name: &str) -> bool {
        matches!(self.peek(), Token::Name(n) if n == name)
            && matches!(self.tokens.get(self.at + 1), Some((_, Token::Symbol("("))))
    }

    /// Goes on behind the parenthesis of a call.
    pub(super) fn skip_call(&mut self) {
        self.at += 2;
    }

    pub(super) fn name(&mut self) -> Result<String, ParseError> {
        let Token::Name(name) = self.peek().clone() else { return Err(self.error("a name")) };
        self.at += 1;
        Ok(name)
    }

    /// An error at what was read last.
    pub(super) fn error_before(&mut self, expected: &str) -> ParseError {
        self.at = self.at.saturating_sub(1);
        self.error(expected)
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.at].1
    }

    pub(super) fn take(&mut self, symbol: &str) -> bool {
        let hit = self.at_symbol(symbol);
        self.at += usize::from(hit);
        hit
    }

    pub(super) fn expect(&mut self, symbol: &str) -> Result<(), ParseError> {
        if self.take(symbol) { Ok(()) } else { Err(self.error(&format!("{symbol:?}"))) }
    }

    pub(super) fn error(&self, expected: &str) -> ParseError {
        let (position, token) = &self.tokens[self.at];
        let found = match token {
            Token::Literal(v) => brief(&v.as_val().to_string()),
            Token::Name(n) => format!("{:?}", brief(n)),
            Token::Symbol(s) => format!("{s:?}"),
            Token::End => "the end".to_owned(),
        };
        ParseError::new(*position, expected, &found)
    }

    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T, ParseError>) -> Result<T, ParseError> {
        self.nested_by(1, f)
    }

    /// Counts as this many levels of nesting.
    pub(super) fn nested_by<T>(
        &mut self,
        levels: usize,
        f: impl FnOnce(&mut Self) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        self.depth += levels;
        if self.depth > MAX_DEPTH {
            return Err(self.error("an expression nested at most 64 deep"));
        }
        let out = f(self);
        self.depth -= levels;
        out
    }

    pub(super) fn expression(&mut self) -> Result<Expr, ParseError> {
        self.nested(|p| {
            let then = p.or()?;
            if !p.take("if") {
                return Ok(then);
            }
            let condition = p.or()?;
            p.expect("else")?;
            let otherwise = p.expression()?;
            Ok(Expr::If([then, condition, otherwise].into()))
        })
    }

    pub(super) fn or(&mut self) -> Result<Expr, ParseError> {
        self.joined("or", Self::and, Expr::Or)
    }

    fn and(&mut self) -> Result<Expr, ParseError> {
        self.joined("and", Self::not, Expr::And)
    }

    /// One, or several with a word between them.
    pub(super) fn joined<T>(
        &mut self,
        by: &str,
        one: fn(&mut Self) -> Result<T, ParseError>,
        several: fn(Vec<T>) -> T,
    ) -> Result<T, ParseError> {
        let mut list = vec![one(self)?];
        while self.take(by) {
            list.push(one(self)?);
        }
        Ok(if list.len() == 1 { list.remove(0) } else { several(list) })
    }

    fn not(&mut self) -> Result<Expr, ParseError> {
        if self.take("not") {
            return self.nested(|p| Ok(Expr::Not(p.not()?.into())));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Expr, ParseError> {
        let first = self.sum()?;
        if self.take("in") {
            return Ok(Expr::In(first.into(), self.list_items()?, false));
        }
        if matches!(self.peek(), Token::Symbol("not")) {
            self.at += 1;
            self.expect("in")?;
            return Ok(Expr::In(first.into(), self.list_items()?, true));
        }
        let mut rest = Vec::new();
        while let Some(op) = CompareOp::ALL.into_iter().find(|op| self.take(op.name())) {
            rest.push((op, self.sum()?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Compare(first.into(), rest) })
    }

    pub(super) fn items(&mut self, close: &str) -> Result<Vec<Expr>, ParseError> {
        let mut out = Vec::new();
        while !self.take(close) {
            out.push(self.expression()?);
            if !self.take(",") {
                self.expect(close)?;
                break;
            }
        }
        Ok(out)
    }

    fn sum(&mut self) -> Result<Expr, ParseError> {
        self.left_associative(&[BinaryOp::Add, BinaryOp::Sub], Self::product)
    }

    fn product(&mut self) -> Result<Expr, ParseError> {
        self.left_associative(&[BinaryOp::Mul, BinaryOp::FloorDiv, BinaryOp::Div, BinaryOp::Rem], Self::unary)
    }

    fn left_associative(
        &mut self,
        ops: &[BinaryOp],
        operand: fn(&mut Self) -> Result<Expr, ParseError>,
    ) -> Result<Expr, ParseError> {
        let mut left = operand(self)?;
        while let Some(op) = ops.iter().find(|op| self.take(op.name())) {
            self.operators += 1;
            if self.operators > MAX_OPERATORS {
                return Err(self.error("at most 512 arithmetic operators"));
            }
            left = Expr::Binary(*op, [left, operand(self)?].into());
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, ParseError> {
        if self.take("-") {
            return self.nested(|p| Ok(Expr::Neg(p.unary()?.into())));
        }
        if self.take("+") {
            // A word has no sign: a sum says so, and changes no number.
            return self.nested(|p| Ok(Expr::Binary(BinaryOp::Add, [Expr::Const(0.into()), p.unary()?].into())));
        }
        let base = self.atom()?;
        if self.take("**") {
            // Right-associative, and tighter than a minus on its left but not on its right.
            let exponent = self.nested(Self::unary)?;
            return Ok(Expr::Binary(BinaryOp::Pow, [base, exponent].into()));
        }
        Ok(base)
    }

    fn atom(&mut self) -> Result<Expr, ParseError> {
        match self.peek().clone() {
            Token::Literal(v) => {
                self.at += 1;
                Ok(Expr::Const(v))
            }
            Token::Name(name) => {
                self.at += 1;
                if self.take("(") { self.call(&name) } else { Ok(Expr::Name(name)) }
            }
            Token::Symbol("(") => {
                self.at += 1;
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            _ => Err(self.error("a name, a number or a parenthesis")),
        }
    }

    fn call(&mut self, name: &str) -> Result<Expr, ParseError> {
        if name == "len" {
            return self.length();
        }
        let function = Function::by_name(name).ok_or_else(|| {
            self.at -= 2;
            self.error("one of the functions min, max, abs, ceil, floor, round, log2, sqrt, int, float, len")
        })?;
        let arguments = self.arguments(function)?;
        if !function.arity_ok(arguments.len()) {
            self.at -= 1;
            return Err(self.error(&format!("another number of arguments of {name}")));
        }
        Ok(Expr::Call(function, arguments))
    }
}
