//! Programs over columns: one operation at a time on some hundred combinations of values.

use super::arena::{Arena, CompareOrder, Id, Nary, One, Op, Two, Vars};
use super::component::Component;
use std::cmp::Ordering;
use std::sync::Arc;
use tilewright_core::expr::{BinaryOp, Val};

/// Combinations that are evaluated together.
pub(super) const LANES: usize = 256;

pub(super) fn nary(op: Nary, a: u64, b: u64) -> u64 {
    let (x, y) = (a as i64, b as i64);
    match op {
        Nary::Sum => x.wrapping_add(y) as u64,
        Nary::Product => x.wrapping_mul(y) as u64,
        Nary::Min => x.min(y) as u64,
        Nary::Max => x.max(y) as u64,
        Nary::And => a & b,
        Nary::Or => a | b,
    }
}

#[inline]
pub(super) fn two(op: Two, a: u64, b: u64) -> u64 {
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    match op {
        Two::FloorDiv => floor_div(a as i64, b as i64) as u64,
        Two::Rem => rem(a as i64, b as i64) as u64,
        Two::Float(BinaryOp::Add) => (x + y).to_bits(),
        Two::Float(BinaryOp::Sub) => (x - y).to_bits(),
        Two::Float(BinaryOp::Mul) => (x * y).to_bits(),
        Two::Float(BinaryOp::Div) => (x / y).to_bits(),
        Two::Float(BinaryOp::Rem) => rem_float(x, y).to_bits(),
        Two::Float(op) => exactly(op, x, y).to_bits(),
        Two::MinF => x.min(y).to_bits(),
        Two::MaxF => x.max(y).to_bits(),
    }
}

fn rem(a: i64, b: i64) -> i64 {
    // Half of the values of a divider's time are its width.
    if let (Ok(a), Ok(b)) = (u32::try_from(a), u32::try_from(b)) {
        return i64::from(a.checked_rem(b).unwrap_or(0));
    }
    let r = a.checked_rem(b).unwrap_or(0);
    if r != 0 && (r < 0) != (b < 0) { r + b } else { r }
}

fn floor_div(a: i64, b: i64) -> i64 {
    let q = a.checked_div(b).unwrap_or(0);
    if rem(a, b) != 0 && ((a < 0) != (b < 0)) { q - 1 } else { q }
}

/// Python's remainder of floats; of whole ones, which constraints mostly have, that of integers.
fn rem_float(x: f64, y: f64) -> f64 {
    let (a, b) = (x as i32, y as i32);
    if f64::from(a) == x && f64::from(b) == y && a >= 0 && b > 0 {
        return f64::from(a % b);
    }
    exactly(BinaryOp::Rem, x, y)
}

/// Core's own arithmetic. What has no value was ruled out when the tree was made.
fn exactly(op: BinaryOp, x: f64, y: f64) -> f64 {
    op.apply(Val::Float(x), Val::Float(y)).ok().and_then(Val::as_f64).unwrap_or(f64::NAN)
}

pub(super) fn one(op: One, a: u64) -> u64 {
    match op {
        One::Not => a ^ 1,
        One::ToFloat => (a as i64 as f64).to_bits(),
        One::NegF => (-f64::from_bits(a)).to_bits(),
        One::Abs => (a as i64).wrapping_abs() as u64,
        One::AbsF => f64::from_bits(a).abs().to_bits(),
    }
}

pub(super) fn compare(order: CompareOrder, a: u64, b: u64) -> bool {
    let found =
        if order.float { f64::from_bits(a).partial_cmp(&f64::from_bits(b)) } else { Some((a as i64).cmp(&(b as i64))) };
    match found {
        Some(Ordering::Less) => order.holds[0],
        Some(Ordering::Equal) => order.holds[1],
        Some(Ordering::Greater) => order.holds[2],
        // Floats of proven nodes are numbers.
        None => false,
    }
}

impl Arena {
    /// The word of an operation on constants; none of what is a constant itself.
    pub(super) fn folded(&self, op: &Op) -> Option<u64> {
        let word = |id: &Id| self.constant_of(*id);
        match op {
            Op::Nary(op, operands) => {
                let words: Option<Vec<u64>> = operands.iter().map(word).collect();
                words?.into_iter().reduce(|a, b| nary(*op, a, b))
            }
            Op::Two(op, a, b) => Some(two(*op, word(a)?, word(b)?)),
            Op::One(op, a) => Some(one(*op, word(a)?)),
            Op::Compare(order, a, b) => Some(compare(*order, word(a)?, word(b)?).into()),
            Op::Select(condition, a, b) => word(if word(condition)? != 0 { a } else { b }),
            Op::Const(_) | Op::Table(..) | Op::Position(_) | Op::Opaque(_) => None,
        }
    }
}

/// A register: a column of words.
type Reg = usize;

#[derive(Clone, Debug)]
enum Step {
    Slot(usize),
    Table(u8, Arc<[u64]>),
    Position(u8),
    Const(u64),
    Nary(Nary, Reg, Reg),
    Two(Two, Reg, Reg),
    One(One, Reg),
    Compare(CompareOrder, Reg, Reg),
    Select(Reg, Reg, Reg),
    Opaque(usize, Vec<Reg>),
}

/// Computes one node from the words known before and the value of a parameter.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    steps: Vec<Step>,
    /// What each step computes, so that equal parts are computed once.
    ids: Vec<Option<Id>>,
    pub(super) out: Reg,
}

/// What a program may read: the nodes known before, and the parameters whose values are at hand.
pub(super) struct Known<'a> {
    pub(super) slots: &'a [Id],
    pub(super) vars: Vars,
}

impl Program {
    /// None where the node cannot be computed from what is known.
    pub(super) fn new(arena: &Arena, node: Id, known: &Known<'_>) -> Option<Self> {
        let mut program = Self::default();
        program.out = program.emit(arena, node, known)?;
        Some(program)
    }

    /// The only slot that it reads.
    pub(super) fn only_slot(&self) -> Option<usize> {
        let mut slots = self.steps.iter().filter_map(|s| if let Step::Slot(slot) = s { Some(*slot) } else { None });
        let first = slots.next()?;
        slots.all(|s| s == first).then_some(first)
    }

    fn push(&mut self, step: Step, id: Option<Id>) -> Reg {
        self.steps.push(step);
        self.ids.push(id);
        self.steps.len() - 1
    }

    fn emit(&mut self, arena: &Arena, id: Id, known: &Known<'_>) -> Option<Reg> {
        if let Some(done) = self.ids.iter().position(|i| *i == Some(id)) {
            return Some(done);
        }
        if let Some(slot) = known.slots.iter().position(|s| *s == id) {
            return Some(self.push(Step::Slot(slot), Some(id)));
        }
        if let Some(word) = arena.constant_of(id) {
            return Some(self.push(Step::Const(word), Some(id)));
        }
        let at_hand = |var: u8| (known.vars >> var & 1 == 1).then_some(var);
        let step = match &arena.node(id).op {
            Op::Const(word) => Step::Const(*word),
            Op::Table(var, words) => Step::Table(at_hand(*var)?, words.clone()),
            Op::Position(var) => Step::Position(at_hand(*var)?),
            Op::Nary(op, operands) => return self.emit_nary(arena, id, (*op, operands), known),
            Op::Two(op, a, b) => Step::Two(*op, self.emit(arena, *a, known)?, self.emit(arena, *b, known)?),
            Op::One(op, a) => Step::One(*op, self.emit(arena, *a, known)?),
            Op::Compare(op, a, b) => Step::Compare(*op, self.emit(arena, *a, known)?, self.emit(arena, *b, known)?),
            Op::Select(c, a, b) => {
                let c = self.emit(arena, *c, known)?;
                Step::Select(c, self.emit(arena, *a, known)?, self.emit(arena, *b, known)?)
            }
            Op::Opaque(number) => Step::Opaque(*number, self.positions(arena, arena.node(id).vars, known)?),
        };
        Some(self.push(step, Some(id)))
    }

    /// The operands, those put together before taken as one.
    fn emit_nary(&mut self, arena: &Arena, id: Id, (op, operands): (Nary, &[Id]), known: &Known<'_>) -> Option<Reg> {
        let mut left = operands.to_vec();
        let mut parts = Vec::new();
        let groups = known.slots.iter().enumerate().filter_map(|(slot, s)| match &arena.node(*s).op {
            Op::Nary(same, group) if *same == op => Some((slot, group)),
            _ => None,
        });
        let mut groups: Vec<_> = groups.collect();
        // The largest first: one of them is all operands known before. Constants do not count, since they are always at hand: a
        // group with one could hide that which leaves nothing unknown.
        let unknown = |group: &[Id]| group.iter().filter(|&&g| arena.constant_of(g).is_none()).count();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(unknown(group)));
        for (slot, group) in groups {
            let mut rest = left.clone();
            let all_there = group.iter().all(|g| {
                let at = rest.iter().position(|r| r == g);
                at.map(|at| rest.remove(at)).is_some()
            });
            if all_there {
                left = rest;
                parts.push(self.push(Step::Slot(slot), Some(known.slots[slot])));
            }
        }
        for operand in left {
            parts.push(self.emit(arena, operand, known)?);
        }
        let (last, rest) = parts.split_last()?;
        let mut at = *last;
        for &part in rest {
            at = self.push(Step::Nary(op, at, part), None);
        }
        self.ids[at].get_or_insert(id);
        Some(at)
    }

    /// The registers of the positions of an opaque constraint's parameters, in order.
    fn positions(&mut self, arena: &Arena, vars: Vars, known: &Known<'_>) -> Option<Vec<Reg>> {
        let mut regs = Vec::new();
        for var in (0..Vars::BITS as u8).filter(|var| vars >> var & 1 == 1) {
            let is_it = |id: &Id| matches!(arena.node(*id).op, Op::Position(v) if v == var);
            match known.slots.iter().position(is_it) {
                Some(slot) => regs.push(self.push(Step::Slot(slot), None)),
                None if known.vars >> var & 1 == 1 => regs.push(self.push(Step::Position(var), None)),
                None => return None,
            }
        }
        Some(regs)
    }
}

/// Where the words of lanes come from.
pub(super) struct Lanes<'s> {
    /// Evaluates opaque constraints.
    pub(super) component: &'s Component<'s>,
    /// Fills in the words of a slot.
    pub(super) slot: &'s dyn Fn(usize, &mut [u64]),
    /// The position of a parameter's value in each lane.
    pub(super) positions: &'s dyn Fn(u8) -> &'s [u16],
}

/// The word of an opaque constraint without a value, where that is not the same as one that does not hold.
pub(super) const NO_VALUE: u64 = 2;

/// Registers, kept from call to call.
#[derive(Debug, Default)]
pub(super) struct Registers(Vec<[u64; LANES]>);

impl Registers {
    /// Runs a program on the first `count` lanes, at most [`LANES`].
    pub(super) fn run(&mut self, program: &Program, count: usize, lanes: &Lanes<'_>) -> &[u64] {
        if self.0.len() < program.steps.len() {
            self.0.resize(program.steps.len(), [0; LANES]);
        }
        for (i, step) in program.steps.iter().enumerate() {
            let (before, rest) = self.0.split_at_mut(i);
            run_step(step, before, &mut rest[0][..count], lanes);
        }
        &self.0[program.out][..count]
    }
}

fn run_step(step: &Step, regs: &[[u64; LANES]], out: &mut [u64], lanes: &Lanes<'_>) {
    let count = out.len();
    let reg = |r: Reg| &regs[r][..count];
    match step {
        Step::Slot(slot) => (lanes.slot)(*slot, out),
        Step::Table(var, words) => {
            for (o, &p) in out.iter_mut().zip((lanes.positions)(*var)) {
                *o = words[usize::from(p)];
            }
        }
        Step::Position(var) => {
            for (o, &p) in out.iter_mut().zip((lanes.positions)(*var)) {
                *o = p.into();
            }
        }
        Step::Const(word) => out.fill(*word),
        // One loop for each operation: the compiler makes vectors of them.
        Step::Nary(op, a, b) => match op {
            Nary::Sum => pairwise(out, reg(*a), reg(*b), |a, b| nary(Nary::Sum, a, b)),
            Nary::Product => pairwise(out, reg(*a), reg(*b), |a, b| nary(Nary::Product, a, b)),
            Nary::Min => pairwise(out, reg(*a), reg(*b), |a, b| nary(Nary::Min, a, b)),
            Nary::Max => pairwise(out, reg(*a), reg(*b), |a, b| nary(Nary::Max, a, b)),
            Nary::And => pairwise(out, reg(*a), reg(*b), |a, b| a & b),
            Nary::Or => pairwise(out, reg(*a), reg(*b), |a, b| a | b),
        },
        Step::Two(op, a, b) => match op {
            Two::Rem => pairwise(out, reg(*a), reg(*b), |a, b| two(Two::Rem, a, b)),
            Two::Float(BinaryOp::Rem) => pairwise(out, reg(*a), reg(*b), |a, b| two(Two::Float(BinaryOp::Rem), a, b)),
            Two::Float(BinaryOp::Div) => pairwise(out, reg(*a), reg(*b), |a, b| two(Two::Float(BinaryOp::Div), a, b)),
            _ => pairwise(out, reg(*a), reg(*b), |a, b| two(*op, a, b)),
        },
        Step::One(op, a) => {
            for (o, &a) in out.iter_mut().zip(reg(*a)) {
                *o = one(*op, a);
            }
        }
        Step::Compare(order, a, b) if order.float => {
            pairwise(out, reg(*a), reg(*b), |a, b| compare(*order, a, b).into());
        }
        Step::Compare(order, a, b) => {
            let [less, equal, greater] = order.holds;
            pairwise(out, reg(*a), reg(*b), |a, b| {
                let (a, b) = (a as i64, b as i64);
                ((a < b) & less | (a == b) & equal | (a > b) & greater).into()
            });
        }
        Step::Select(c, a, b) => {
            let (a, b) = (reg(*a), reg(*b));
            for (i, (o, &c)) in out.iter_mut().zip(reg(*c)).enumerate() {
                *o = if c != 0 { a[i] } else { b[i] };
            }
        }
        Step::Opaque(number, positions) => {
            let mut at = vec![0; positions.len()];
            for (i, o) in out.iter_mut().enumerate() {
                for (p, &r) in at.iter_mut().zip(positions) {
                    *p = regs[r][i] as u16;
                }
                *o = lanes.component.holds(*number, &at);
            }
        }
    }
}

#[inline(always)]
fn pairwise(out: &mut [u64], a: &[u64], b: &[u64], f: impl Fn(u64, u64) -> u64) {
    for ((o, &a), &b) in out.iter_mut().zip(a).zip(b) {
        *o = f(a, b);
    }
}
