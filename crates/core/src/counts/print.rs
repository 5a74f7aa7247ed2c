//! Expressions as text.

use super::{Counts, Expr, Node};
use std::fmt::Write;

/// How tightly text binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Sum,
    Product,
    Whole,
}

impl Counts {
    pub(super) fn text(&self, expr: Expr) -> String {
        self.show(expr).0
    }

    fn show(&self, expr: Expr) -> (String, Level) {
        let whole = |text: String| (text, Level::Whole);
        match &self.nodes[expr.0 as usize] {
            Node::Size(i) => whole(self.sizes[*i as usize].clone()),
            Node::Sum(terms, constant) => self.sum(terms, *constant),
            Node::Product(factors) => {
                let shown: Vec<String> = factors.iter().map(|f| self.within(*f, Level::Product)).collect();
                (shown.join("*"), Level::Product)
            }
            Node::Floor(a, by) => whole(self.division(*a, *by)),
            Node::Mod(a, by) => whole(format!("mod({}, {by})", self.text(*a))),
            Node::Quotient(a, b) => {
                whole(format!("floor({}/{})", self.within(*a, Level::Product), self.within(*b, Level::Whole)))
            }
            Node::Min(a, b) => whole(format!("min({}, {})", self.text(*a), self.text(*b))),
            Node::Max(a, b) => whole(format!("max({}, {})", self.text(*a), self.text(*b))),
            Node::Positive(a) => whole(format!("[{} > 0]", self.text(*a))),
            Node::Zero(a) => whole(format!("[{} = 0]", self.text(*a))),
        }
    }

    fn within(&self, expr: Expr, at_least: Level) -> String {
        let (text, level) = self.show(expr);
        if level < at_least { format!("({text})") } else { text }
    }

    /// `floor((a + d - 1)/d)` is `ceil(a/d)`.
    fn division(&self, a: Expr, by: i64) -> String {
        let (word, (text, level)) = match &self.nodes[a.0 as usize] {
            Node::Sum(terms, constant) if *constant == by - 1 => ("ceil", self.sum(terms, 0)),
            _ => ("floor", self.show(a)),
        };
        if level == Level::Sum { format!("{word}(({text})/{by})") } else { format!("{word}({text}/{by})") }
    }

    fn sum(&self, terms: &[(Expr, i64)], constant: i64) -> (String, Level) {
        let mut out = String::new();
        // What is added first, so that few sums begin with a minus.
        let (plus, minus): (Vec<_>, Vec<_>) = terms.iter().partition(|(_, c)| *c > 0);
        let lead = constant > 0 && plus.is_empty() && !minus.is_empty();
        if lead {
            let _ = write!(out, "{constant}");
        }
        for (expr, c) in plus.iter().chain(&minus) {
            let sign = sign(&out, *c);
            let number = if c.unsigned_abs() == 1 { String::new() } else { format!("{}*", c.unsigned_abs()) };
            let _ = write!(out, "{sign}{number}{}", self.within(*expr, Level::Product));
        }
        if constant != 0 && !lead || terms.is_empty() {
            let sign = sign(&out, constant);
            let _ = write!(out, "{sign}{}", constant.unsigned_abs());
        }
        let single = terms.is_empty() && constant >= 0;
        let level = match terms {
            _ if single => Level::Whole,
            [(_, c)] if constant == 0 && *c > 0 => Level::Product,
            _ => Level::Sum,
        };
        (out, level)
    }
}

/// The sign of a number behind what stands there already.
fn sign(before: &str, number: i64) -> &'static str {
    match (before.is_empty(), number < 0) {
        (true, false) => "",
        (true, true) => "-",
        (false, false) => " + ",
        (false, true) => " - ",
    }
}
