//! Core's expressions to proven nodes, and what a constraint says before all its parameters have values.

use super::arena::{Arena, CompareOrder, Id, Kind, Nary, One, Op, Range, Two, Vars};
use tilewright_core::expr::{BinaryOp, CompareOp, Expr, Function, Val, Value};

/// A parameter of a component: its name and the values it may still take.
#[derive(Clone, Debug)]
pub(super) struct Domain<'a> {
    pub(super) name: &'a str,
    pub(super) values: Vec<Val<'a>>,
}

/// Integers up to here have a float of their own.
const EXACT: i64 = 1 << 53;

/// Translates constraints of one component.
pub(super) struct Lowering<'a> {
    pub(super) arena: &'a mut Arena,
    pub(super) domains: &'a [Domain<'a>],
    /// Whether a constraint without a value is an error, and not one that does not hold.
    pub(super) strict: bool,
    /// Where what was translated so far has a value, unless it has one everywhere. What a truth decided before is not evaluated,
    /// and need not have one.
    defined: Option<Id>,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(arena: &'a mut Arena, domains: &'a [Domain<'a>], strict: bool) -> Self {
        Self { arena, domains, strict, defined: None }
    }

    /// Where a constraint holds; none where that cannot be proven to be known everywhere.
    pub(super) fn constraint(&mut self, e: &Expr) -> Option<Id> {
        let truth = self.truth(e)?;
        match self.defined.take() {
            Some(defined) => self.arena.nary(Nary::And, &[defined, truth]),
            None => Some(truth),
        }
    }

    /// What has been translated has a value only where this holds, too.
    fn require(&mut self, condition: Option<Id>) -> Option<()> {
        let Some(condition) = condition else { return Some(()) };
        if self.strict {
            return None;
        }
        self.defined = match self.defined {
            Some(before) => Some(self.arena.nary(Nary::And, &[before, condition])?),
            None => Some(condition),
        };
        Some(())
    }

    /// A part that is not always evaluated, and where it has a value.
    fn part(&mut self, f: impl FnOnce(&mut Self) -> Option<Id>) -> Option<(Id, Option<Id>)> {
        let before = self.defined.take();
        let found = f(self);
        let defined = std::mem::replace(&mut self.defined, before);
        Some((found?, defined))
    }

    /// Truths one after the other, up to the one that decides: the first false one of `And`, the first true one of `Or`.
    fn in_turn(&mut self, op: Nary, parts: &[(Id, Option<Id>)]) -> Option<Id> {
        let mut defined = None;
        for &(truth, own) in parts.iter().rev() {
            let rest = match defined {
                Some(rest) => {
                    let decides = if op == Nary::And { self.not(truth)? } else { truth };
                    Some(self.arena.nary(Nary::Or, &[decides, rest])?)
                }
                None => None,
            };
            defined = match (own, rest) {
                (Some(own), Some(rest)) => Some(self.arena.nary(Nary::And, &[own, rest])?),
                (own, rest) => own.or(rest),
            };
        }
        self.require(defined)?;
        let truths: Vec<Id> = parts.iter().map(|(truth, _)| *truth).collect();
        self.arena.nary(op, &truths)
    }

    /// The truth of an expression where it has a value; none where that cannot be proven to be known.
    fn truth(&mut self, e: &Expr) -> Option<Id> {
        match e {
            Expr::And(list) => self.junction(Nary::And, list),
            Expr::Or(list) => self.junction(Nary::Or, list),
            Expr::Not(a) => {
                let a = self.truth(a)?;
                self.not(a)
            }
            _ => {
                let id = self.value(e)?;
                self.as_truth(id)
            }
        }
    }

    fn not(&mut self, a: Id) -> Option<Id> {
        match (self.arena.constant_of(a), &self.arena.node(a).op) {
            (Some(word), _) => Some(self.arena.constant(Kind::Bool, word ^ 1)),
            (None, Op::Compare(order, a, b)) => {
                let (order, a, b) = (*order, *a, *b);
                self.arena.ordered(CompareOrder { holds: order.holds.map(|h| !h), ..order }, a, b)
            }
            _ => self.arena.one(One::Not, a),
        }
    }

    fn as_truth(&mut self, id: Id) -> Option<Id> {
        let zero = match self.arena.node(id).kind {
            Kind::Bool => return Some(id),
            Kind::Int => self.arena.int(0),
            Kind::Float => self.arena.constant(Kind::Float, 0f64.to_bits()),
        };
        self.arena.compare(CompareOp::Ne, id, zero)
    }

    fn junction(&mut self, op: Nary, list: &[Expr]) -> Option<Id> {
        let parts: Option<Vec<_>> = list.iter().map(|e| self.part(|l| l.truth(e))).collect();
        self.in_turn(op, &parts?)
    }

    /// The parameters that an expression mentions; none where one is not of the component.
    fn mentioned(&self, e: &Expr) -> Option<Vars> {
        let mut found = Some(0);
        e.visit(&mut |e| {
            if let Expr::Name(n) = e {
                let at = self.domains.iter().position(|d| d.name == n);
                found = found.zip(at).map(|(vars, at): (Vars, usize)| vars | 1 << at);
            }
        });
        found
    }

    fn value(&mut self, e: &Expr) -> Option<Id> {
        let vars = self.mentioned(e)?;
        match vars.count_ones() {
            0 => {
                let value = e.eval_with(&|_| None).ok()?;
                let (kind, word) = word(value.as_val())?;
                Some(self.arena.constant(kind, word))
            }
            1 => self.tabulate(e, vars.trailing_zeros() as usize),
            _ => self.compound(e),
        }
    }

    /// An expression of one parameter, by its values; zero where it has none.
    fn tabulate(&mut self, e: &Expr, var: usize) -> Option<Id> {
        let domain = &self.domains[var];
        let mut words = Vec::with_capacity(domain.values.len());
        let mut kinds = Vec::with_capacity(domain.values.len());
        let compiled = e.compile(&[domain.name]).ok()?;
        let mut defined = Vec::with_capacity(domain.values.len());
        for value in &domain.values {
            let found = compiled.eval(std::slice::from_ref(value)).ok();
            defined.push(found.is_some().into());
            let Some(found) = found else {
                words.push(0);
                continue;
            };
            let (kind, word) = word(found)?;
            words.push(word);
            kinds.push(kind);
        }
        if defined.contains(&0) {
            let defined = self.arena.table(var as u8, Kind::Bool, defined);
            self.require(Some(defined))?;
        }
        let kind = *kinds.first()?;
        let kind = if kinds.iter().all(|k| *k == kind) {
            kind
        } else if kinds.contains(&Kind::Float) {
            return None;
        } else {
            Kind::Int
        };
        Some(self.arena.table(var as u8, kind, words))
    }

    fn compound(&mut self, e: &Expr) -> Option<Id> {
        match e {
            Expr::Const(_) | Expr::Name(_) => None,
            Expr::Neg(a) => {
                let a = self.value(a)?;
                self.negative(a)
            }
            Expr::Not(_) => self.truth(e),
            Expr::And(list) | Expr::Or(list) => {
                // The value is that of an operand: a truth only if all of them are.
                for part in list {
                    let (id, _) = self.part(|l| l.value(part))?;
                    if self.arena.node(id).kind != Kind::Bool {
                        return None;
                    }
                }
                self.truth(e)
            }
            Expr::Binary(op, ab) => {
                let (a, b) = (self.value(&ab[0])?, self.value(&ab[1])?);
                self.binary(*op, a, b)
            }
            Expr::Compare(first, rest) => self.chain(first, rest),
            Expr::In(a, list, negated) => self.member(a, list, *negated),
            Expr::Call(f, list) => self.call(*f, list),
            Expr::If(parts) => {
                let [a, c, b] = &**parts;
                let c = self.truth(c)?;
                self.choice(c, a, b)
            }
        }
    }

    /// One of two by a condition: the other is not evaluated.
    fn choice(&mut self, condition: Id, a: &Expr, b: &Expr) -> Option<Id> {
        let ((a, a_defined), (b, b_defined)) = (self.part(|l| l.value(a))?, self.part(|l| l.value(b))?);
        if let Some(holds) = self.arena.constant_of(condition) {
            let (chosen, defined) = if holds != 0 { (a, a_defined) } else { (b, b_defined) };
            self.require(defined)?;
            return Some(chosen);
        }
        let otherwise = self.not(condition)?;
        for (other, defined) in [(otherwise, a_defined), (condition, b_defined)] {
            if let Some(defined) = defined {
                let needed = self.arena.nary(Nary::Or, &[other, defined])?;
                self.require(Some(needed))?;
            }
        }
        self.arena.select(condition, a, b)
    }

    fn negative(&mut self, a: Id) -> Option<Id> {
        if self.arena.node(a).kind == Kind::Float {
            return self.arena.one(One::NegF, a);
        }
        let minus = self.arena.int(-1);
        self.arena.nary(Nary::Product, &[minus, a])
    }

    fn is_float(&self, id: Id) -> bool {
        self.arena.node(id).kind == Kind::Float
    }

    /// Whether all values of a node are floats, or integers with a float of their own.
    fn is_exact(&self, id: Id) -> bool {
        self.arena.node(id).range.ints().is_none_or(|(lo, hi)| lo >= -EXACT && hi <= EXACT)
    }

    fn float(&mut self, id: Id) -> Option<Id> {
        if self.is_float(id) { Some(id) } else { self.arena.one(One::ToFloat, id) }
    }

    fn binary(&mut self, op: BinaryOp, a: Id, b: Id) -> Option<Id> {
        if op == BinaryOp::Pow {
            return None;
        }
        let floats = self.is_float(a) || self.is_float(b);
        // A quotient of integers is rounded once, and not after they became floats.
        if op == BinaryOp::Div && !floats && (!self.is_exact(a) || !self.is_exact(b)) {
            return None;
        }
        if op == BinaryOp::Div || floats {
            let (a, b) = (self.float(a)?, self.float(b)?);
            return self.arena.two(Two::Float(op), a, b);
        }
        match op {
            BinaryOp::Add => self.arena.nary(Nary::Sum, &[a, b]),
            BinaryOp::Sub => {
                let b = self.negative(b)?;
                self.arena.nary(Nary::Sum, &[a, b])
            }
            BinaryOp::Mul => self.arena.nary(Nary::Product, &[a, b]),
            _ => {
                let op = if op == BinaryOp::FloorDiv { Two::FloorDiv } else { Two::Rem };
                let (id, defined) = self.arena.divided(op, a, b)?;
                self.require(defined)?;
                Some(id)
            }
        }
    }

    fn compare(&mut self, op: CompareOp, a: Id, b: Id) -> Option<Id> {
        if self.is_float(a) == self.is_float(b) {
            return self.arena.compare(op, a, b);
        }
        if !self.is_exact(a) || !self.is_exact(b) {
            return None;
        }
        let (a, b) = (self.float(a)?, self.float(b)?);
        self.arena.compare(op, a, b)
    }

    fn chain(&mut self, first: &Expr, rest: &[(CompareOp, Expr)]) -> Option<Id> {
        let mut left = self.value(first)?;
        let mut parts = Vec::with_capacity(rest.len());
        for (op, right) in rest {
            let (right, defined) = self.part(|l| l.value(right))?;
            parts.push((self.compare(*op, left, right)?, defined));
            left = right;
        }
        self.in_turn(Nary::And, &parts)
    }

    fn member(&mut self, a: &Expr, list: &[Expr], negated: bool) -> Option<Id> {
        let a = self.value(a)?;
        let mut parts = Vec::with_capacity(list.len());
        for b in list {
            let b = self.value(b)?;
            parts.push(self.compare(CompareOp::Eq, a, b)?);
        }
        let found =
            if parts.is_empty() { self.arena.constant(Kind::Bool, 0) } else { self.arena.nary(Nary::Or, &parts)? };
        if negated { self.not(found) } else { Some(found) }
    }

    fn call(&mut self, f: Function, list: &[Expr]) -> Option<Id> {
        let parts: Option<Vec<Id>> = list.iter().map(|e| self.value(e)).collect();
        let parts = parts?;
        let floats = parts.iter().filter(|&&p| self.is_float(p)).count();
        match (f, parts.as_slice()) {
            (Function::Min | Function::Max, _) if floats == 0 => {
                // The first of equal values may be a truth and not a number.
                let kind = self.arena.node(parts[0]).kind;
                if parts.iter().any(|&p| self.arena.node(p).kind != kind) || kind == Kind::Bool {
                    return None;
                }
                self.arena.nary(if f == Function::Min { Nary::Min } else { Nary::Max }, &parts)
            }
            (Function::Min | Function::Max, [first, rest @ ..]) if floats == parts.len() => {
                let op = if f == Function::Min { Two::MinF } else { Two::MaxF };
                rest.iter().try_fold(*first, |a, &b| self.arena.two(op, a, b))
            }
            (Function::Abs, &[a]) => self.arena.one(if floats == 0 { One::Abs } else { One::AbsF }, a),
            (Function::Ceil | Function::Floor | Function::Round | Function::Int, &[a]) if floats == 0 => {
                (self.arena.node(a).kind == Kind::Int).then_some(a)
            }
            (Function::Float, &[a]) => self.float(a),
            _ => None,
        }
    }
}

/// A value as a word.
fn word(value: Val<'_>) -> Option<(Kind, u64)> {
    match value {
        Val::Bool(b) => Some((Kind::Bool, b.into())),
        Val::Int(i) => Some((Kind::Int, i as u64)),
        Val::Float(x) => Some((Kind::Float, x.to_bits())),
        Val::Str(_) => None,
    }
}

/// A constraint's parts of which all must hold.
pub(super) fn conjuncts(e: &Expr, out: &mut Vec<Expr>) {
    match e {
        Expr::And(list) => list.iter().for_each(|e| conjuncts(e, out)),
        Expr::Not(inner) => match &**inner {
            Expr::Or(list) => list.iter().for_each(|e| conjuncts(&Expr::Not(e.clone().into()), out)),
            Expr::Not(twice) => conjuncts(twice, out),
            _ => out.push(e.clone()),
        },
        Expr::Compare(first, rest) if rest.len() > 1 => {
            let mut left = &**first;
            for (op, right) in rest {
                out.push(Expr::Compare(left.clone().into(), vec![(*op, right.clone())]));
                left = right;
            }
        }
        _ => out.push(e.clone()),
    }
}

/// Constants are expressions too.
pub(super) fn constant(value: Val<'_>) -> Expr {
    Expr::Const(Value::from(value))
}

impl Arena {
    /// What a constraint says once the parameters in `set` have values, whatever the others are: true wherever the
    /// constraint can still hold. None where that is nothing.
    pub(super) fn relaxed(&mut self, id: Id, set: Vars) -> Option<Id> {
        if self.vars(id) & !set == 0 {
            return Some(id);
        }
        match self.node(id).op.clone() {
            Op::Nary(Nary::And, list) => {
                let parts: Vec<Id> = list.iter().filter_map(|&e| self.relaxed(e, set)).collect();
                self.nary(Nary::And, &parts)
            }
            Op::Nary(Nary::Or, list) => {
                let parts: Option<Vec<Id>> = list.iter().map(|&e| self.relaxed(e, set)).collect();
                self.nary(Nary::Or, &parts?)
            }
            Op::Compare(order, a, b) if !order.float => {
                let limit = match order.holds {
                    // Equal values are below as well as above; one direction is asked.
                    [_, equal, false] => self.possible([true, equal, false], a, b, set),
                    [false, ..] => self.possible([order.holds[2], order.holds[1], false], b, a, set),
                    _ => None,
                };
                let parts: Vec<Id> = [limit, self.divisible(order, a, b, set)].into_iter().flatten().collect();
                self.nary(Nary::And, &parts)
            }
            _ => None,
        }
    }

    /// Whether the lower bound of one side is below the upper bound of the other.
    fn possible(&mut self, holds: [bool; 3], a: Id, b: Id, set: Vars) -> Option<Id> {
        let (a, b) = (self.bound(a, false, set)?, self.bound(b, true, set)?);
        self.ordered(CompareOrder { holds, float: false }, a, b)
    }

    /// Of `a % (b * c) == 0`, `a % b == 0` remains when `c` has no value yet.
    fn divisible(&mut self, order: CompareOrder, a: Id, b: Id, set: Vars) -> Option<Id> {
        let Op::Two(Two::Rem, number, divisor) = self.node(a).op else { return None };
        let zero = self.constant_of(b) == Some(0) && order.holds == [false, true, false];
        if !zero || self.vars(number) & !set != 0 {
            return None;
        }
        let Op::Nary(Nary::Product, factors) = self.node(divisor).op.clone() else { return None };
        let given: Vec<Id> = factors.into_iter().filter(|&f| self.vars(f) & !set == 0).collect();
        let divisor = self.nary(Nary::Product, &given)?;
        let rest = self.two(Two::Rem, number, divisor)?;
        self.ordered(order, rest, b)
    }

    /// A bound of an integer node by what is known, the upper one or the lower one.
    fn bound(&mut self, id: Id, upper: bool, set: Vars) -> Option<Id> {
        let node = self.node(id);
        if node.vars & !set == 0 {
            return Some(id);
        }
        let (lo, hi) = match node.range {
            Range::Int(lo, hi) => (lo, hi),
            Range::Float(..) => return None,
        };
        if node.vars & set == 0 {
            return Some(self.int(if upper { hi } else { lo }));
        }
        match node.op.clone() {
            Op::Nary(op @ (Nary::Sum | Nary::Min | Nary::Max), list) => self.bounds(op, &list, upper, set),
            Op::Nary(Nary::Product, list) => {
                let positive = |&e: &Id| self.node(e).range.ints().is_some_and(|(lo, _)| lo >= 0);
                if list.iter().all(positive) { self.bounds(Nary::Product, &list, upper, set) } else { None }
            }
            _ => None,
        }
        .or_else(|| Some(self.int(if upper { hi } else { lo })))
    }

    fn bounds(&mut self, op: Nary, list: &[Id], upper: bool, set: Vars) -> Option<Id> {
        let parts: Option<Vec<Id>> = list.iter().map(|&e| self.bound(e, upper, set)).collect();
        self.nary(op, &parts?)
    }

    /// The largest nodes of a constraint that the given parameters decide: all that the others need to know of them.
    pub(super) fn cut(&mut self, id: Id, set: Vars, out: &mut Vec<Id>) {
        let vars = self.vars(id);
        if vars & set == 0 {
            return;
        }
        if vars & !set == 0 {
            if !out.contains(&id) {
                out.push(id);
            }
            return;
        }
        match self.node(id).op.clone() {
            Op::Nary(op, list) => {
                let decided = |&&e: &&Id| self.vars(e) != 0 && self.vars(e) & !set == 0;
                let group: Vec<Id> = list.iter().filter(decided).copied().collect();
                match self.nary(op, &group) {
                    Some(whole) => self.cut(whole, set, out),
                    None => group.iter().for_each(|&e| self.cut(e, set, out)),
                }
                list.iter().filter(|e| !group.contains(e)).for_each(|&e| self.cut(e, set, out));
            }
            Op::Two(_, a, b) | Op::Compare(_, a, b) => {
                self.cut(a, set, out);
                self.cut(b, set, out);
            }
            Op::One(_, a) => self.cut(a, set, out),
            Op::Select(c, a, b) => [c, a, b].into_iter().for_each(|e| self.cut(e, set, out)),
            Op::Opaque(_) => {
                for var in (0..Vars::BITS as u8).filter(|v| vars & set & (1 << v) != 0) {
                    // Its size does not matter here: the node is known from the constraint's translation.
                    let position = self.position(var, 0);
                    self.cut(position, set, out);
                }
            }
            Op::Const(_) | Op::Table(..) | Op::Position(_) => {}
        }
    }
}
