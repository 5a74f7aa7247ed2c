//! Expressions as straight code: all properties at new sizes in well under a microsecond.

use super::property::Property;
use super::{Counts, Node};
use crate::expr::floor_div;

/// Why counts have no values at some sizes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// A size is not there.
    #[error("size {0:?} is not given, or is no whole number")]
    Missing(String),
    /// A size is below zero.
    #[error("size {name:?} is negative: {value}")]
    Negative {
        /// The size.
        name: String,
        /// Its value.
        value: i64,
    },
    /// Another number of sizes than the counts have.
    #[error("{found} sizes where {expected} are expected")]
    Length {
        /// Sizes of the counts.
        expected: usize,
        /// Sizes that were given.
        found: usize,
    },
    /// A count, or a number on the way to it, is beyond 63 bits or a quotient by zero.
    #[error("the number of {property} {fault} at {sizes}")]
    NoValue {
        /// The first property of which that is so.
        property: Property,
        /// `overflows 63 bits` or `divides by zero`.
        fault: &'static str,
        /// The sizes as `name=value`.
        sizes: String,
    },
}

/// One step; results stand behind the sizes, one a step.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// `constant` and terms `from..to` of the table.
    Linear(u32, u32, i64),
    Mul(u32, u32),
    Floor(u32, i64),
    Shift(u32, u32),
    Mod(u32, i64),
    Mask(u32, i64),
    Quotient(u32, u32),
    Min(u32, u32),
    Max(u32, u32),
    Positive(u32),
    Zero(u32),
}

/// Evaluates all properties of [`Counts`].
#[derive(Clone, Debug)]
pub struct Evaluator {
    sizes: Vec<String>,
    properties: Vec<Property>,
    steps: Vec<Step>,
    /// By property, the steps before and including its own: those that no property before it needs.
    ends: Vec<usize>,
    terms: Vec<(u32, i64)>,
    outputs: Vec<u32>,
    registers: Vec<i64>,
    values: Vec<i64>,
}

impl Evaluator {
    pub(super) fn new(counts: &Counts) -> Self {
        let sizes = counts.sizes.len();
        let mut out = Self {
            sizes: counts.sizes.clone(),
            properties: counts.properties().collect(),
            steps: Vec::new(),
            ends: Vec::new(),
            terms: Vec::new(),
            outputs: Vec::new(),
            registers: Vec::new(),
            values: vec![0; counts.totals.len()],
        };
        let mut places: Vec<Option<u32>> = vec![None; counts.nodes.len()];
        for (_, expr) in &counts.totals {
            out.visit(counts, expr.0 as usize, &mut places);
            out.ends.push(out.steps.len());
        }
        let place = |expr: &super::Expr| places[expr.0 as usize].unwrap_or(0);
        out.outputs = counts.totals.iter().map(|(_, e)| place(e)).collect();
        out.registers = vec![0; sizes + out.steps.len()];
        out
    }

    /// Nodes name only earlier ones, so that the needed ones in order are code.
    fn visit(&mut self, counts: &Counts, root: usize, places: &mut [Option<u32>]) {
        let mut needed = vec![root];
        let mut marked = vec![false; root + 1];
        while let Some(at) = needed.pop() {
            if places[at].is_none() && !std::mem::replace(&mut marked[at], true) {
                counts.nodes[at].for_each_part(|e| needed.push(e.0 as usize));
            }
        }
        for at in (0..=root).filter(|at| marked[*at]) {
            let place = self.emit(&counts.nodes[at], places);
            places[at] = Some(place);
        }
    }

    fn push(&mut self, step: Step) -> u32 {
        self.steps.push(step);
        (self.sizes.len() + self.steps.len() - 1) as u32
    }

    fn emit(&mut self, node: &Node, places: &[Option<u32>]) -> u32 {
        let at = |e: &super::Expr| places[e.0 as usize].unwrap_or(0);
        let shift = |by: i64| (by > 0 && by.count_ones() == 1).then(|| by.trailing_zeros());
        match node {
            Node::Size(i) => *i,
            Node::Sum(terms, constant) => {
                let from = self.terms.len() as u32;
                self.terms.extend(terms.iter().map(|(e, c)| (at(e), *c)));
                self.push(Step::Linear(from, self.terms.len() as u32, *constant))
            }
            Node::Product(factors) => {
                let first = factors.first().map_or(0, at);
                factors[1..].iter().fold(first, |product, f| self.push(Step::Mul(product, at(f))))
            }
            Node::Floor(a, by) => match shift(*by) {
                Some(bits) => self.push(Step::Shift(at(a), bits)),
                None => self.push(Step::Floor(at(a), *by)),
            },
            Node::Mod(a, by) => match shift(*by) {
                Some(_) => self.push(Step::Mask(at(a), by - 1)),
                None => self.push(Step::Mod(at(a), *by)),
            },
            Node::Quotient(a, b) => self.push(Step::Quotient(at(a), at(b))),
            Node::Min(a, b) => self.push(Step::Min(at(a), at(b))),
            Node::Max(a, b) => self.push(Step::Max(at(a), at(b))),
            Node::Positive(a) => self.push(Step::Positive(at(a))),
            Node::Zero(a) => self.push(Step::Zero(at(a))),
        }
    }

    /// What the values are of, in order.
    pub fn properties(&self) -> &[Property] {
        &self.properties
    }

    /// Names of the sizes, in order.
    pub fn sizes(&self) -> &[String] {
        &self.sizes
    }

    /// Steps that an evaluation takes.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// The value of every property, in the order of [`Evaluator::properties`], for sizes in the order of
    /// [`Evaluator::sizes`].
    ///
    /// # Errors
    /// Another number of sizes, or a number beyond 63 bits, which names the property.
    pub fn eval(&mut self, sizes: &[i64]) -> Result<&[i64], EvalError> {
        let expected = self.sizes.len();
        if sizes.len() != expected {
            return Err(EvalError::Length { expected, found: sizes.len() });
        }
        if let Some((name, value)) = self.sizes.iter().zip(sizes).find(|(_, s)| **s < 0) {
            return Err(EvalError::Negative { name: name.clone(), value: *value });
        }
        self.registers[..expected].copy_from_slice(sizes);
        if self.run() {
            return Err(self.failure(sizes));
        }
        for (value, from) in self.values.iter_mut().zip(&self.outputs) {
            *value = self.registers[*from as usize];
        }
        Ok(&self.values)
    }

    /// [`Evaluator::eval`] for sizes by name.
    ///
    /// # Errors
    /// A size without a value, and as [`Evaluator::eval`].
    pub fn eval_by(&mut self, size: impl Fn(&str) -> Option<i64>) -> Result<&[i64], EvalError> {
        let sizes = self.sizes.iter().map(|name| size(name).ok_or_else(|| EvalError::Missing(name.clone())));
        let sizes = sizes.collect::<Result<Vec<i64>, _>>()?;
        self.eval(&sizes)
    }

    /// Runs the code; whether anything went wrong.
    fn run(&mut self) -> bool {
        let first = self.sizes.len();
        let (steps, terms, r) = (&self.steps, &self.terms, &mut self.registers[..]);
        let mut bad = false;
        for (i, step) in steps.iter().enumerate() {
            let (value, over) = one(*step, terms, r);
            r[first + i] = value;
            bad |= over;
        }
        bad
    }

    /// What went wrong in the last run: its first step that did is of the first property without a value.
    fn failure(&self, sizes: &[i64]) -> EvalError {
        let r = &self.registers;
        let step = self.steps.iter().position(|step| one(*step, &self.terms, r).1).unwrap_or_default();
        let property = self.properties[self.ends.partition_point(|end| *end <= step)];
        let sizes = self.sizes.iter().zip(sizes).map(|(n, s)| format!("{n}={s}")).collect::<Vec<_>>().join(" ");
        let by_zero = matches!(self.steps[step], Step::Quotient(_, b) if r[b as usize] == 0);
        EvalError::NoValue { property, fault: if by_zero { "divides by zero" } else { "overflows 63 bits" }, sizes }
    }
}

#[inline(always)]
fn one(step: Step, terms: &[(u32, i64)], r: &[i64]) -> (i64, bool) {
    let at = |a: u32| r[a as usize];
    match step {
        Step::Linear(from, to, constant) => {
            let (mut sum, mut bad) = (constant, false);
            for (a, c) in &terms[from as usize..to as usize] {
                let (term, over) = at(*a).overflowing_mul(*c);
                let (next, over_too) = sum.overflowing_add(term);
                sum = next;
                bad |= over | over_too;
            }
            (sum, bad)
        }
        Step::Mul(a, b) => at(a).overflowing_mul(at(b)),
        Step::Floor(a, by) => (at(a).div_euclid(by), false),
        Step::Shift(a, bits) => (at(a) >> bits, false),
        Step::Mod(a, by) => (at(a).rem_euclid(by), false),
        Step::Mask(a, mask) => (at(a) & mask, false),
        Step::Quotient(a, b) => floor_div(at(a), at(b)).map_or((0, true), |q| (q, false)),
        Step::Min(a, b) => (at(a).min(at(b)), false),
        Step::Max(a, b) => (at(a).max(at(b)), false),
        Step::Positive(a) => (i64::from(at(a) > 0), false),
        Step::Zero(a) => (i64::from(at(a) == 0), false),
    }
}
