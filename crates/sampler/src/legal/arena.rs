//! The constraints of linked parameters as one shared tree over columns of 64-bit words.
//!
//! A node is there only if its arithmetic was proven total: no overflow, no division by zero, one type. A quotient of integers by what
//! may be zero is made total: it counts as zero there, and whoever makes it gets the condition under which it has a value. What cannot
//! be proven stays an opaque constraint, evaluated point by point by core's own evaluator.

use std::collections::HashMap;
use std::sync::Arc;
use tilewright_core::expr::BinaryOp::{self, Add, Div, FloorDiv, Rem, Sub};
use tilewright_core::expr::CompareOp;

/// Position of a node.
pub(super) type Id = u32;

/// A set of the component's parameters.
pub(super) type Vars = u128;

/// Parameters that may hang together.
pub(super) const MAX_LINKED: usize = Vars::BITS as usize;

/// What the words of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Int,
    Float,
    /// 0 or 1.
    Bool,
}

/// Operations whose operands can be grouped at will.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Nary {
    Sum,
    Product,
    Min,
    Max,
    And,
    Or,
}

/// Operations of two operands, of integers or of floats (`Float`, `MinF`, `MaxF`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Two {
    FloorDiv,
    Rem,
    /// No power.
    Float(BinaryOp),
    MinF,
    MaxF,
}

/// Operations of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum One {
    Not,
    ToFloat,
    NegF,
    Abs,
    AbsF,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Op {
    Const(u64),
    /// A word by the position of the parameter's value.
    Table(u8, Arc<[u64]>),
    /// The position itself, for opaque constraints.
    Position(u8),
    Nary(Nary, Vec<Id>),
    Two(Two, Id, Id),
    One(One, Id),
    Compare(CompareOrder, Id, Id),
    Select(Id, Id, Id),
    /// A constraint by its number, over positions.
    Opaque(usize),
}

/// [`CompareOp`] as a key, with the kind of both operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CompareOrder {
    /// Less, equal, greater: which orders hold.
    pub(super) holds: [bool; 3],
    pub(super) float: bool,
}

impl CompareOrder {
    pub(super) fn new(op: CompareOp, float: bool) -> Self {
        let holds = match op {
            CompareOp::Eq => [false, true, false],
            CompareOp::Ne => [true, false, true],
            CompareOp::Lt => [true, false, false],
            CompareOp::Le => [true, true, false],
            CompareOp::Gt => [false, false, true],
            CompareOp::Ge => [false, true, true],
        };
        Self { holds, float }
    }
}

/// Bounds of a node's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Range {
    Int(i64, i64),
    Float(f64, f64),
}

impl Range {
    pub(super) fn ints(self) -> Option<(i64, i64)> {
        if let Self::Int(lo, hi) = self { Some((lo, hi)) } else { None }
    }

    pub(super) fn floats(self) -> (f64, f64) {
        match self {
            Self::Int(lo, hi) => (lo as f64, hi as f64),
            Self::Float(lo, hi) => (lo, hi),
        }
    }

    fn of(kind: Kind, words: &[u64]) -> Self {
        if kind == Kind::Float {
            let floats = || words.iter().map(|&w| f64::from_bits(w));
            Self::Float(floats().fold(f64::INFINITY, f64::min), floats().fold(f64::NEG_INFINITY, f64::max))
        } else {
            let ints = || words.iter().map(|&w| w as i64);
            Self::Int(ints().min().unwrap_or(0), ints().max().unwrap_or(0))
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) op: Op,
    pub(super) vars: Vars,
    pub(super) kind: Kind,
    pub(super) range: Range,
    /// The values that it can take, sorted, or more; none where they are many.
    pub(super) set: Option<Arc<[u64]>>,
    /// About how many values it takes.
    pub(super) distinct: f64,
}

/// More values than this are known by their bounds only.
const MAX_SET: usize = 256;
/// Combinations of two sets that are worth computing.
const MAX_PAIRS: usize = 64;

/// All nodes of one component; equal ones are one.
#[derive(Debug, Default)]
pub(super) struct Arena {
    nodes: Vec<Node>,
    /// By operation and what its words are: a 1 is a number or a truth, and a table of zeros one of integers or one of floats.
    known: HashMap<(Op, Kind), Id>,
}

impl Arena {
    pub(super) fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    pub(super) fn vars(&self, id: Id) -> Vars {
        self.node(id).vars
    }

    fn add(&mut self, op: Op, vars: Vars, kind: Kind, facts: Facts) -> Id {
        // Bounds decide comparisons, and leave operations without parameters. No layer would ever look at those, since a
        // constraint is looked at where its last parameter is decided.
        if vars == 0
            && let Some(word) = self.folded(&op)
        {
            return self.constant(kind, word);
        }
        let key = (op, kind);
        if let Some(&id) = self.known.get(&key) {
            return id;
        }
        let id = self.nodes.len() as Id;
        let Facts { range, set, distinct } = facts;
        self.nodes.push(Node { op: key.0.clone(), vars, kind, range, set, distinct });
        self.known.insert(key, id);
        id
    }

    pub(super) fn constant(&mut self, kind: Kind, word: u64) -> Id {
        let facts = Facts::of_set(kind, vec![word]);
        self.add(Op::Const(word), 0, kind, facts)
    }

    pub(super) fn int(&mut self, value: i64) -> Id {
        self.constant(Kind::Int, value as u64)
    }

    /// The word of a node without parameters.
    pub(super) fn constant_of(&self, id: Id) -> Option<u64> {
        match &self.node(id).op {
            Op::Const(word) => Some(*word),
            _ => None,
        }
    }

    pub(super) fn table(&mut self, var: u8, kind: Kind, words: Vec<u64>) -> Id {
        let facts = Facts::of_set(kind, words.clone());
        self.add(Op::Table(var, words.into()), 1 << var, kind, facts)
    }

    pub(super) fn position(&mut self, var: u8, values: usize) -> Id {
        let range = Range::Int(0, values as i64);
        self.add(Op::Position(var), 1 << var, Kind::Int, Facts { range, set: None, distinct: values as f64 })
    }

    pub(super) fn opaque(&mut self, number: usize, vars: Vars) -> Id {
        self.add(Op::Opaque(number), vars, Kind::Bool, Facts::truth())
    }

    pub(super) fn is_opaque(&self, id: Id) -> bool {
        matches!(self.node(id).op, Op::Opaque(_))
    }

    pub(super) fn one(&mut self, op: One, a: Id) -> Option<Id> {
        let node = self.node(a);
        let (vars, (lo, hi)) = (node.vars, node.range.floats());
        let (kind, range) = match (op, node.range) {
            (One::Not, _) => (Kind::Bool, Range::Int(0, 1)),
            (One::ToFloat, _) => (Kind::Float, Range::Float(lo, hi)),
            (One::NegF, _) => (Kind::Float, Range::Float(-hi, -lo)),
            (One::AbsF, _) => (Kind::Float, Range::Float(0.0, lo.abs().max(hi.abs()))),
            (One::Abs, Range::Int(lo, hi)) => {
                let most = i64::try_from(lo.unsigned_abs().max(hi.unsigned_abs())).ok()?;
                (Kind::Int, Range::Int(0, most))
            }
            (One::Abs, Range::Float(..)) => return None,
        };
        let sets = node.set.as_ref().map(|a| a.iter().map(|&a| super::lanes::one(op, a)).collect());
        let distinct = node.distinct;
        Some(self.add(Op::One(op, a), vars, kind, Facts::new(kind, range, sets, distinct)))
    }

    pub(super) fn two(&mut self, op: Two, a: Id, b: Id) -> Option<Id> {
        let divides = matches!(op, Two::FloorDiv | Two::Rem | Two::Float(Div | FloorDiv | Rem));
        if divides && !self.node(b).is_never_zero() {
            return None;
        }
        self.total(op, a, b)
    }

    /// A quotient or remainder of integers, and where it has a value, unless it has one everywhere. None for divisors of both signs.
    pub(super) fn divided(&mut self, op: Two, a: Id, b: Id) -> Option<(Id, Option<Id>)> {
        let (is_total, (least, _)) = (self.node(b).is_never_zero(), self.node(b).range.ints()?);
        if is_total || least < 0 {
            return Some((self.two(op, a, b)?, None));
        }
        let zero = self.int(0);
        let defined = self.compare(CompareOp::Ne, b, zero)?;
        Some((self.total(op, a, b)?, Some(defined)))
    }

    fn total(&mut self, op: Two, a: Id, b: Id) -> Option<Id> {
        let (left, right) = (self.node(a), self.node(b));
        let vars = left.vars | right.vars;
        let integers = matches!(op, Two::FloorDiv | Two::Rem);
        let range = if integers {
            two_ints(op, left.range.ints()?, right.range.ints()?)?
        } else {
            two_floats(op, left.range.floats(), right.range.floats())?
        };
        let kind = if integers { Kind::Int } else { Kind::Float };
        let set = pairs(left, right, |a, b| super::lanes::two(op, a, b));
        let distinct = left.distinct * right.distinct;
        Some(self.add(Op::Two(op, a, b), vars, kind, Facts::new(kind, range, set, distinct)))
    }

    pub(super) fn compare(&mut self, op: CompareOp, a: Id, b: Id) -> Option<Id> {
        let float = match (self.node(a).kind, self.node(b).kind) {
            (Kind::Float, Kind::Float) => true,
            (Kind::Float, _) | (_, Kind::Float) => return None,
            _ => false,
        };
        self.ordered(CompareOrder::new(op, float), a, b)
    }

    pub(super) fn ordered(&mut self, order: CompareOrder, a: Id, b: Id) -> Option<Id> {
        let vars = self.vars(a) | self.vars(b);
        if let Some(truth) = self.decided(order, a, b) {
            return Some(self.constant(Kind::Bool, u64::from(truth)));
        }
        Some(self.add(Op::Compare(order, a, b), vars, Kind::Bool, Facts::truth()))
    }

    /// What a comparison always is, by the bounds of both sides.
    fn decided(&self, order: CompareOrder, a: Id, b: Id) -> Option<bool> {
        let ((a_lo, a_hi), (b_lo, b_hi)) = (self.node(a).range.ints()?, self.node(b).range.ints()?);
        let possible: [bool; 3] = [a_lo < b_hi, a_lo <= b_hi && b_lo <= a_hi, a_hi > b_lo];
        let outcome = |wanted: bool| (0..3).all(|i| !possible[i] || order.holds[i] == wanted);
        if outcome(true) { Some(true) } else { outcome(false).then_some(false) }
    }

    pub(super) fn select(&mut self, condition: Id, a: Id, b: Id) -> Option<Id> {
        let (left, right) = (self.node(a), self.node(b));
        if left.kind != right.kind {
            return None;
        }
        let kind = left.kind;
        let vars = self.vars(condition) | left.vars | right.vars;
        let range = match (left.range, right.range) {
            (Range::Int(a, b), Range::Int(c, d)) => Range::Int(a.min(c), b.max(d)),
            (a, b) => Range::Float(a.floats().0.min(b.floats().0), a.floats().1.max(b.floats().1)),
        };
        let facts = Facts::new(kind, range, None, left.distinct + right.distinct);
        Some(self.add(Op::Select(condition, a, b), vars, kind, facts))
    }

    /// Any number of operands, at least one; nested ones of the same operation are taken apart, constants put together.
    pub(super) fn nary(&mut self, op: Nary, operands: &[Id]) -> Option<Id> {
        let mut flat = Vec::with_capacity(operands.len());
        let mut fixed: Option<u64> = None;
        for &id in operands {
            let parts = match &self.node(id).op {
                Op::Nary(inner, parts) if *inner == op => parts.clone(),
                _ => vec![id],
            };
            for part in parts {
                match self.constant_of(part) {
                    Some(word) => fixed = Some(fixed.map_or(Some(word), |f| checked(op, f, word))?),
                    None => flat.push(part),
                }
            }
        }
        let kind = if matches!(op, Nary::And | Nary::Or) { Kind::Bool } else { Kind::Int };
        if let Some(word) = fixed {
            match (op, word) {
                (Nary::And, 0) | (Nary::Or, 1) => return Some(self.constant(kind, word)),
                (Nary::And, _) | (Nary::Or, _) | (Nary::Sum, 0) | (Nary::Product, 1) if !flat.is_empty() => {}
                _ => flat.push(self.constant(kind, word)),
            }
        }
        flat.sort_unstable();
        if !matches!(op, Nary::Sum | Nary::Product) {
            flat.dedup();
        }
        match flat.as_slice() {
            [] => None,
            &[only] => Some(only),
            _ => self.grouped(op, kind, flat),
        }
    }

    fn grouped(&mut self, op: Nary, kind: Kind, operands: Vec<Id>) -> Option<Id> {
        let known = self.known.get(&(Op::Nary(op, operands.clone()), kind));
        if let Some(&id) = known {
            return Some(id);
        }
        let vars = operands.iter().fold(0, |vars, &id| vars | self.vars(id));
        let mut ranges = Vec::with_capacity(operands.len());
        for &id in &operands {
            ranges.push(self.node(id).range.ints()?);
        }
        let range = nary_range(op, &ranges)?;
        let product: f64 = operands.iter().map(|&id| self.node(id).distinct).product();
        let mut facts = Facts::new(kind, range, None, product);
        if let ([a, b], Kind::Int) = (operands.as_slice(), kind) {
            let set = pairs(self.node(*a), self.node(*b), |a, b| super::lanes::nary(op, a, b));
            facts = Facts::new(kind, range, set, product);
        }
        Some(self.add(Op::Nary(op, operands), vars, kind, facts))
    }
}

fn checked(op: Nary, a: u64, b: u64) -> Option<u64> {
    let (x, y) = (a as i64, b as i64);
    match op {
        Nary::Sum => x.checked_add(y).map(|v| v as u64),
        Nary::Product => x.checked_mul(y).map(|v| v as u64),
        _ => Some(super::lanes::nary(op, a, b)),
    }
}

/// The words of all pairs, where they are few.
fn pairs(left: &Node, right: &Node, f: impl Fn(u64, u64) -> u64) -> Option<Vec<u64>> {
    let (a, b) = (left.set.as_ref()?, right.set.as_ref()?);
    if a.len() * b.len() > MAX_PAIRS {
        return None;
    }
    Some(a.iter().flat_map(|&x| b.iter().map(move |&y| (x, y))).map(|(x, y)| f(x, y)).collect())
}

impl Node {
    fn is_never_zero(&self) -> bool {
        match (&self.set, self.range) {
            (Some(set), Range::Int(..)) => !set.contains(&0),
            (Some(set), Range::Float(..)) => set.iter().all(|&w| f64::from_bits(w) != 0.0),
            (None, Range::Int(lo, hi)) => lo > 0 || hi < 0,
            (None, Range::Float(lo, hi)) => lo > 0.0 || hi < 0.0,
        }
    }
}

struct Facts {
    range: Range,
    set: Option<Arc<[u64]>>,
    distinct: f64,
}

impl Facts {
    fn of_set(kind: Kind, mut words: Vec<u64>) -> Self {
        words.sort_unstable();
        words.dedup();
        let (range, distinct) = (Range::of(kind, &words), words.len() as f64);
        let set = (words.len() <= MAX_SET).then(|| words.into());
        Self { range, set, distinct }
    }

    fn new(kind: Kind, range: Range, set: Option<Vec<u64>>, most: f64) -> Self {
        match set {
            Some(words) => Self::of_set(kind, words),
            None => {
                let span = range.ints().map_or(f64::INFINITY, |(lo, hi)| (hi as f64 - lo as f64) + 1.0);
                Self { range, set: None, distinct: most.min(span) }
            }
        }
    }

    fn truth() -> Self {
        Self { range: Range::Int(0, 1), set: None, distinct: 2.0 }
    }
}

/// Bounds of any grouping of the operands; none where one could overflow.
fn nary_range(op: Nary, ranges: &[(i64, i64)]) -> Option<Range> {
    let magnitude = |&(lo, hi): &(i64, i64)| lo.unsigned_abs().max(hi.unsigned_abs());
    let fits = |bound: Option<u64>| bound.is_some_and(|b| i64::try_from(b).is_ok());
    let fold = |f: fn(i64, i64) -> i64| {
        let lows = ranges.iter().map(|r| r.0).reduce(f)?;
        Some(Range::Int(lows, ranges.iter().map(|r| r.1).reduce(f)?))
    };
    match op {
        Nary::Sum => {
            let most = ranges.iter().map(magnitude).try_fold(0u64, u64::checked_add);
            let sums = || (ranges.iter().map(|r| r.0).sum(), ranges.iter().map(|r| r.1).sum());
            fits(most).then(sums).map(|(lo, hi)| Range::Int(lo, hi))
        }
        Nary::Product => {
            let most = ranges.iter().map(|r| magnitude(r).max(1)).try_fold(1u64, u64::checked_mul);
            if !fits(most) {
                return None;
            }
            let corners = |(a, b): (i64, i64), &(c, d): &(i64, i64)| {
                let all = [a * c, a * d, b * c, b * d];
                (all.iter().copied().min().unwrap_or(0), all.iter().copied().max().unwrap_or(0))
            };
            let (lo, hi) = ranges[1..].iter().fold(ranges[0], corners);
            Some(Range::Int(lo, hi))
        }
        Nary::Min => fold(i64::min),
        Nary::Max => fold(i64::max),
        Nary::And | Nary::Or => Some(Range::Int(0, 1)),
    }
}

fn two_ints(op: Two, (a_lo, a_hi): (i64, i64), (b_lo, b_hi): (i64, i64)) -> Option<Range> {
    let most = i64::try_from(a_lo.unsigned_abs().max(a_hi.unsigned_abs())).ok()?;
    Some(match op {
        Two::FloorDiv if a_lo >= 0 && b_lo > 0 => Range::Int(a_lo / b_hi, a_hi / b_lo),
        // By zero it is zero.
        Two::FloorDiv if a_lo >= 0 && b_lo == 0 => Range::Int(0, a_hi),
        // Rounded away from zero, one more at most.
        Two::FloorDiv => Range::Int(-most.checked_add(1)?, most),
        _ if a_lo >= 0 && b_lo >= 0 => Range::Int(0, a_hi.min((b_hi - 1).max(0))),
        _ => Range::Int(b_lo.min(0), b_hi.max(0)),
    })
}

/// Floats beyond this may overflow in a few steps more.
const MAX_FLOAT: f64 = 1e100;

fn two_floats(op: Two, (a_lo, a_hi): (f64, f64), (b_lo, b_hi): (f64, f64)) -> Option<Range> {
    let magnitude = a_lo.abs().max(a_hi.abs());
    let widest = |most: f64| Some(Range::Float(-most, most));
    let range = match op {
        Two::Float(Add) => Range::Float(a_lo + b_lo, a_hi + b_hi),
        Two::Float(Sub) => Range::Float(a_lo - b_hi, a_hi - b_lo),
        Two::MinF => Range::Float(a_lo.min(b_lo), a_hi.min(b_hi)),
        Two::MaxF => Range::Float(a_lo.max(b_lo), a_hi.max(b_hi)),
        Two::Float(Div) if b_lo > 0.0 && a_lo >= 0.0 => Range::Float(a_lo / b_hi, a_hi / b_lo),
        Two::Float(Rem) if b_lo > 0.0 => Range::Float(0.0, b_hi),
        Two::Float(Rem) => widest(b_lo.abs().max(b_hi.abs()))?,
        // Values apart from zero by less are not proven.
        Two::Float(Div | FloorDiv) => widest((magnitude / 1e-9).max(1.0))?,
        _ => widest(magnitude * b_lo.abs().max(b_hi.abs()))?,
    };
    let divisor = b_lo.abs().min(b_hi.abs());
    let near_zero = (b_lo < 0.0) != (b_hi < 0.0) || divisor < 1e-9;
    let divides = matches!(op, Two::Float(Div | FloorDiv));
    let (lo, hi) = range.floats();
    (!(divides && near_zero) && lo >= -MAX_FLOAT && hi <= MAX_FLOAT).then_some(range)
}
