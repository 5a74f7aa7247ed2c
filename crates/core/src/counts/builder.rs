//! Builds expressions: every one is kept once, so that equal parts are one part.

use super::property::Property;
use super::{Counts, Node};
use std::collections::{BTreeMap, HashMap};

/// An expression of a [`CountsBuilder`] (or of the [`Counts`] that it became).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Expr(pub(super) u32);

/// The least and the greatest value, where they are known.
pub type Bounds = (Option<i64>, Option<i64>);

/// Builds [`Counts`]. Divisors must be positive.
#[derive(Clone, Debug, Default)]
pub struct CountsBuilder {
    pub(super) sizes: Vec<String>,
    nodes: Vec<Node>,
    /// The least and the greatest value of each node, as far as they are known.
    bounds: Vec<Bounds>,
    known: HashMap<Node, Expr>,
    totals: BTreeMap<Property, Expr>,
}

impl CountsBuilder {
    /// Nothing counted yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn node(&mut self, node: Node) -> Expr {
        if let Some(known) = self.known.get(&node) {
            return *known;
        }
        let expr = Expr(self.nodes.len() as u32);
        self.bounds.push(bounds(&node, &|e| self.bounds(e)));
        self.nodes.push(node.clone());
        self.known.insert(node, expr);
        expr
    }

    fn of(&self, expr: Expr) -> &Node {
        &self.nodes[expr.0 as usize]
    }

    /// The least and the greatest value that an expression can have; `None` where that is not known.
    pub fn bounds(&self, expr: Expr) -> Bounds {
        self.bounds[expr.0 as usize]
    }

    /// A size by name: a number of the input that is not negative.
    pub fn size(&mut self, name: &str) -> Expr {
        let at = self.sizes.iter().position(|s| s == name).unwrap_or_else(|| {
            self.sizes.push(name.to_owned());
            self.sizes.len() - 1
        });
        self.node(Node::Size(at as u32))
    }

    /// A number.
    pub fn constant(&mut self, value: i64) -> Expr {
        self.node(Node::Sum(Vec::new(), value))
    }

    /// The number that an expression is, if it depends on no size.
    pub fn value(&self, expr: Expr) -> Option<i64> {
        match self.of(expr) {
            Node::Sum(terms, constant) if terms.is_empty() => Some(*constant),
            _ => None,
        }
    }

    /// `sum of coefficient * expression + constant`. Sums of few terms become part of it.
    pub fn sum(&mut self, terms: impl IntoIterator<Item = (Expr, i64)>, constant: i64) -> Expr {
        let (mut all, mut constant) = (BTreeMap::<Expr, i64>::new(), constant);
        for (expr, c) in terms {
            match self.of(expr) {
                Node::Sum(inner, more) if inner.len() <= 2 => {
                    constant = constant.saturating_add(c.saturating_mul(*more));
                    for (e, d) in inner.clone() {
                        let to = all.entry(e).or_insert(0);
                        *to = to.saturating_add(c.saturating_mul(d));
                    }
                }
                _ => {
                    let to = all.entry(expr).or_insert(0);
                    *to = to.saturating_add(c);
                }
            }
        }
        let terms: Vec<(Expr, i64)> = all.into_iter().filter(|(_, c)| *c != 0).collect();
        match terms.as_slice() {
            [(expr, 1)] if constant == 0 => *expr,
            _ => self.node(Node::Sum(terms, constant)),
        }
    }

    /// `a + b`.
    pub fn add(&mut self, a: Expr, b: Expr) -> Expr {
        self.sum([(a, 1), (b, 1)], 0)
    }

    /// `a - b`.
    pub fn sub(&mut self, a: Expr, b: Expr) -> Expr {
        self.sum([(a, 1), (b, -1)], 0)
    }

    /// `a * constant`.
    pub fn scale(&mut self, a: Expr, by: i64) -> Expr {
        self.sum([(a, by)], 0)
    }

    /// `a + constant`.
    pub fn offset(&mut self, a: Expr, by: i64) -> Expr {
        self.sum([(a, 1)], by)
    }

    /// `a * b`.
    pub fn mul(&mut self, a: Expr, b: Expr) -> Expr {
        let mut factors = Vec::new();
        let mut coefficient = 1i64;
        for expr in [a, b] {
            match self.of(expr) {
                Node::Sum(terms, c) if terms.is_empty() => coefficient = coefficient.saturating_mul(*c),
                // The number in front goes in front of the product.
                Node::Sum(terms, 0) if terms.len() == 1 => {
                    coefficient = coefficient.saturating_mul(terms[0].1);
                    self.factors_of(terms[0].0, &mut factors);
                }
                _ => self.factors_of(expr, &mut factors),
            }
        }
        factors.sort_unstable();
        let product = match factors.as_slice() {
            [] => return self.constant(coefficient),
            [one] => *one,
            _ => self.node(Node::Product(factors)),
        };
        self.scale(product, coefficient)
    }

    fn factors_of(&self, expr: Expr, out: &mut Vec<Expr>) {
        match self.of(expr) {
            Node::Product(inner) => out.extend(inner),
            _ => out.push(expr),
        }
    }

    /// `a / by`, rounded down. Terms that the divisor divides leave it.
    pub fn floor(&mut self, a: Expr, by: i64) -> Expr {
        if by == 1 {
            return a;
        }
        let (whole, rest) = self.split(a, by);
        match (self.value(rest), self.of(rest).clone()) {
            (Some(c), _) => self.offset(whole, c.div_euclid(by)),
            (None, Node::Floor(inner, first)) if first.checked_mul(by).is_some() => {
                let floor = self.node(Node::Floor(inner, first * by));
                self.add(whole, floor)
            }
            _ => {
                let floor = self.node(Node::Floor(rest, by));
                self.add(whole, floor)
            }
        }
    }

    /// `a / by`, rounded up.
    pub fn ceil(&mut self, a: Expr, by: i64) -> Expr {
        let above = self.offset(a, by - 1);
        self.floor(above, by)
    }

    /// `a mod by`, from 0 to `by - 1`.
    pub fn rem(&mut self, a: Expr, by: i64) -> Expr {
        let (_, rest) = self.split(a, by);
        match (self.value(rest), self.bounds(rest)) {
            (Some(c), _) => self.constant(c.rem_euclid(by)),
            (None, (Some(0..), Some(most))) if most < by => rest,
            _ => self.node(Node::Mod(rest, by)),
        }
    }

    /// `(whole, rest)` with `a = by * whole + rest`, as far as coefficients tell.
    fn split(&mut self, a: Expr, by: i64) -> (Expr, Expr) {
        let (terms, constant) = match self.of(a) {
            Node::Sum(terms, constant) => (terms.clone(), *constant),
            _ => (vec![(a, 1)], 0),
        };
        let (out, stay): (Vec<_>, Vec<_>) = terms.into_iter().partition(|(_, c)| c % by == 0);
        let (q, r) = (constant.div_euclid(by), constant.rem_euclid(by));
        let whole = self.sum(out.into_iter().map(|(e, c)| (e, c / by)), q);
        (whole, self.sum(stay, r))
    }

    /// `a / b`, rounded down; `b` must be positive where it is evaluated.
    pub fn quotient(&mut self, a: Expr, b: Expr) -> Expr {
        match self.value(b) {
            Some(by) if by > 0 => self.floor(a, by),
            _ => self.node(Node::Quotient(a, b)),
        }
    }

    /// The smaller of two.
    pub fn min(&mut self, a: Expr, b: Expr) -> Expr {
        match self.sign_of_difference(a, b) {
            Some(above) => [a, b][usize::from(above)],
            None => self.node(Node::Min(a.min(b), a.max(b))),
        }
    }

    /// The larger of two.
    pub fn max(&mut self, a: Expr, b: Expr) -> Expr {
        match self.sign_of_difference(a, b) {
            Some(above) => [b, a][usize::from(above)],
            None => self.node(Node::Max(a.min(b), a.max(b))),
        }
    }

    /// Whether `a >= b` always (`Some(true)`), or `a <= b`.
    fn sign_of_difference(&mut self, a: Expr, b: Expr) -> Option<bool> {
        let difference = self.sub(a, b);
        match self.bounds(difference) {
            (Some(0..), _) => Some(true),
            (_, Some(..=0)) => Some(false),
            _ => None,
        }
    }

    /// `min(max(a, 0), most)`.
    pub fn clamp(&mut self, a: Expr, most: Expr) -> Expr {
        let zero = self.constant(0);
        let above = self.max(a, zero);
        self.min(above, most)
    }

    /// 1 where `a > 0`, else 0.
    pub fn positive(&mut self, a: Expr) -> Expr {
        match self.bounds(a) {
            (Some(1..), _) => self.constant(1),
            (_, Some(..=0)) => self.constant(0),
            _ => self.node(Node::Positive(a)),
        }
    }

    /// 1 where `a = 0`, else 0.
    pub fn zero(&mut self, a: Expr) -> Expr {
        match self.bounds(a) {
            (Some(0), Some(0)) => self.constant(1),
            (Some(1..), _) | (_, Some(..=-1)) => self.constant(0),
            _ => self.node(Node::Zero(a)),
        }
    }

    /// Adds to a property's number.
    pub fn count(&mut self, property: Property, number: Expr) {
        let before = self.totals.get(&property).copied();
        let sum = match before {
            Some(before) => self.add(before, number),
            None => number,
        };
        self.totals.insert(property, sum);
    }

    /// What has been counted so far.
    pub fn totals(&self) -> impl Iterator<Item = (Property, Expr)> + '_ {
        self.totals.iter().map(|(p, e)| (*p, *e))
    }

    /// What has been counted; properties that are always 0 are left out.
    pub fn finish(self) -> Counts {
        let totals = self.totals.iter().filter(|(_, e)| self.value(**e) != Some(0));
        let totals = totals.map(|(p, e)| (*p, *e)).collect();
        Counts { sizes: self.sizes, nodes: self.nodes, totals }
    }
}

/// What follows from the parts of a node.
fn bounds(node: &Node, of: &dyn Fn(Expr) -> Bounds) -> Bounds {
    match node {
        Node::Size(_) => (Some(0), None),
        Node::Sum(terms, constant) => terms.iter().fold((Some(*constant), Some(*constant)), |sum, (e, c)| {
            let (low, high) = of(*e);
            let (low, high) = if *c < 0 { (high, low) } else { (low, high) };
            let end = |sum: Option<i64>, end: Option<i64>| sum?.checked_add(end?.checked_mul(*c)?);
            (end(sum.0, low), end(sum.1, high))
        }),
        Node::Product(factors) => factors.iter().map(|e| of(*e)).fold((Some(1), Some(1)), |a, b| match (a, b) {
            ((Some(low @ 0..), high), (Some(other @ 0..), most)) => {
                let end = |a: Option<i64>, b: Option<i64>| a?.checked_mul(b?);
                (end(Some(low), Some(other)), end(high, most))
            }
            _ => (None, None),
        }),
        Node::Floor(a, by) => {
            let (low, high) = of(*a);
            (low.map(|x| x.div_euclid(*by)), high.map(|x| x.div_euclid(*by)))
        }
        Node::Mod(_, by) => (Some(0), Some(by - 1)),
        Node::Quotient(a, b) => match (of(*a), of(*b)) {
            ((Some(0..), high), (Some(0..), _)) => (Some(0), high),
            _ => (None, None),
        },
        Node::Min(a, b) => {
            let (a, b) = (of(*a), of(*b));
            (a.0.zip(b.0).map(|(x, y)| x.min(y)), lesser(a.1, b.1))
        }
        Node::Max(a, b) => {
            let (a, b) = (of(*a), of(*b));
            (lesser(a.0.map(|x| -x), b.0.map(|x| -x)).map(|x| -x), a.1.zip(b.1).map(|(x, y)| x.max(y)))
        }
        Node::Positive(_) | Node::Zero(_) => (Some(0), Some(1)),
    }
}

/// The smaller of those that are there.
fn lesser(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    a.into_iter().chain(b).min()
}
