//! Tokens to trees: precedence climbing, with a bound on nesting so that no text can overflow the stack.

use super::lex::{Token, lex};
use super::{BinaryOp, CompareOp, Expr, Function};
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
const MAX_DEPTH: usize = 64;

/// More arithmetic operators than any rule has. A chain of them is a left-deep tree, and chains at different nesting can
/// stand on top of each other, so the number in the whole text bounds how deep printing and evaluating recurse.
const MAX_OPERATORS: usize = 512;

struct Parser {
    tokens: Vec<(usize, Token)>,
    at: usize,
    depth: usize,
    operators: usize,
}

impl FromStr for Expr {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut parser = Parser { tokens: lex(text)?, at: 0, depth: 0, operators: 0 };
        let expr = parser.expression()?;
        match parser.peek() {
            Token::End => Ok(expr),
            _ => Err(parser.error("an operator or the end")),
        }
    }
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].1
    }

    fn take(&mut self, symbol: &str) -> bool {
        let hit = matches!(self.peek(), Token::Symbol(s) if *s == symbol);
        self.at += usize::from(hit);
        hit
    }

    fn expect(&mut self, symbol: &str) -> Result<(), ParseError> {
        if self.take(symbol) { Ok(()) } else { Err(self.error(&format!("{symbol:?}"))) }
    }

    fn error(&self, expected: &str) -> ParseError {
        let (position, token) = &self.tokens[self.at];
        let found = match token {
            Token::Literal(v) => format!("{}", v.as_val()),
            Token::Name(n) => format!("{n:?}"),
            Token::Symbol(s) => format!("{s:?}"),
            Token::End => "the end".to_owned(),
        };
        ParseError::new(*position, expected, &found)
    }

    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T, ParseError>) -> Result<T, ParseError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("an expression nested at most 64 deep"));
        }
        let out = f(self);
        self.depth -= 1;
        out
    }

    fn expression(&mut self) -> Result<Expr, ParseError> {
        self.nested(|p| {
            let then = p.or()?;
            if !p.take("if") {
                return Ok(then);
            }
            let condition = p.or()?;
            p.expect("else")?;
            let otherwise = p.expression()?;
            Ok(Expr::If(then.into(), condition.into(), otherwise.into()))
        })
    }

    fn or(&mut self) -> Result<Expr, ParseError> {
        let mut list = vec![self.and()?];
        while self.take("or") {
            list.push(self.and()?);
        }
        Ok(if list.len() == 1 { list.remove(0) } else { Expr::Or(list) })
    }

    fn and(&mut self) -> Result<Expr, ParseError> {
        let mut list = vec![self.not()?];
        while self.take("and") {
            list.push(self.not()?);
        }
        Ok(if list.len() == 1 { list.remove(0) } else { Expr::And(list) })
    }

    fn not(&mut self) -> Result<Expr, ParseError> {
        if self.take("not") {
            return self.nested(|p| Ok(Expr::Not(p.not()?.into())));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Expr, ParseError> {
        const OPS: [(&str, CompareOp); 6] = [
            ("==", CompareOp::Eq),
            ("!=", CompareOp::Ne),
            ("<=", CompareOp::Le),
            (">=", CompareOp::Ge),
            ("<", CompareOp::Lt),
            (">", CompareOp::Gt),
        ];
        let first = self.sum()?;
        if self.take("in") {
            return Ok(Expr::In(first.into(), self.list()?, false));
        }
        if matches!(self.peek(), Token::Symbol("not")) {
            self.at += 1;
            self.expect("in")?;
            return Ok(Expr::In(first.into(), self.list()?, true));
        }
        let mut rest = Vec::new();
        while let Some((_, op)) = OPS.iter().find(|(s, _)| self.take(s)) {
            rest.push((*op, self.sum()?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Compare(first.into(), rest) })
    }

    fn list(&mut self) -> Result<Vec<Expr>, ParseError> {
        let close = if self.take("(") {
            ")"
        } else {
            self.expect("[")?;
            "]"
        };
        self.items(close)
    }

    fn items(&mut self, close: &str) -> Result<Vec<Expr>, ParseError> {
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
        const OPS: [(&str, BinaryOp); 2] = [("+", BinaryOp::Add), ("-", BinaryOp::Sub)];
        self.left_associative(&OPS, Self::product)
    }

    fn product(&mut self) -> Result<Expr, ParseError> {
        const OPS: [(&str, BinaryOp); 4] =
            [("*", BinaryOp::Mul), ("//", BinaryOp::FloorDiv), ("/", BinaryOp::Div), ("%", BinaryOp::Rem)];
        self.left_associative(&OPS, Self::unary)
    }

    fn left_associative(
        &mut self,
        ops: &[(&str, BinaryOp)],
        operand: fn(&mut Self) -> Result<Expr, ParseError>,
    ) -> Result<Expr, ParseError> {
        let mut left = operand(self)?;
        while let Some((_, op)) = ops.iter().find(|(s, _)| self.take(s)) {
            self.operators += 1;
            if self.operators > MAX_OPERATORS {
                return Err(self.error("at most 512 arithmetic operators"));
            }
            left = Expr::Binary(*op, left.into(), operand(self)?.into());
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, ParseError> {
        if self.take("-") {
            return self.nested(|p| Ok(Expr::Neg(p.unary()?.into())));
        }
        if self.take("+") {
            return self.nested(Self::unary);
        }
        let base = self.atom()?;
        if self.take("**") {
            // Right-associative, and tighter than a minus on its left but not on its right.
            let exponent = self.nested(Self::unary)?;
            return Ok(Expr::Binary(BinaryOp::Pow, base.into(), exponent.into()));
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
        let function = Function::by_name(name).ok_or_else(|| {
            self.at -= 2;
            self.error("one of the functions min, max, abs, ceil, floor, round, log2, sqrt, int, float")
        })?;
        let arguments = self.items(")")?;
        if !function.arity_ok(arguments.len()) {
            self.at -= 1;
            return Err(self.error(&format!("another number of arguments of {name}")));
        }
        Ok(Expr::Call(function, arguments))
    }
}
