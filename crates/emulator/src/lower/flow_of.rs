//! Which registers instructions read and write, for values that nobody has written.

use super::flow::{block_starts, targets};
use crate::kernel::{ALWAYS, Address, Flow, Inst, Kernel, Reg, Run};
use crate::lanes::{LaneOp, Slots};

/// Registers of an operation on lanes. `select` operations have their predicate as the third source.
pub(super) fn of_lanes(op: &LaneOp, slots: &Slots, is_select: bool) -> Flow {
    let from = op.from.iter().zip(slots.from).map(|(ty, slot)| Reg::new(*ty, slot)).collect();
    Flow { to: vec![Reg::new(op.to, slots.d)], from, select: is_select.then_some(slots.from[2]), ..Flow::default() }
}

/// Registers of other instructions, as far as they matter; exchanges know their own.
pub(super) fn of_run(run: &Run) -> Flow {
    let address = |a: &Address| Reg::wide(a.slot, a.wide);
    match run {
        Run::Load(access) => Flow {
            to: access.data.iter().flatten().map(|d| Reg::of_data(*d)).collect(),
            must_have: vec![address(&access.address)],
            ..Flow::default()
        },
        Run::Store(access) => Flow { must_have: vec![address(&access.address)], ..Flow::default() },
        Run::Atomic(a) => {
            let wide = a.ty.bytes() == 8;
            Flow {
                to: a.to.iter().map(|to| Reg::wide(*to, wide)).collect(),
                must_have: vec![address(&a.address), Reg::wide(a.operand, wide), Reg::wide(a.swap, wide)],
                ..Flow::default()
            }
        }
        Run::Matrix(m) => {
            let registers: Vec<Reg> = m.registers.iter().map(|r| Reg::wide(*r, false)).collect();
            let (to, from) = if m.is_store { (Vec::new(), registers) } else { (registers, Vec::new()) };
            Flow { to, from, must_have: vec![address(&m.address)], ..Flow::default() }
        }
        Run::Multiply(m) => {
            let wide = m.sum == crate::types::Ty::F64;
            let regs = |slots: &[u16]| slots.iter().map(|s| Reg::wide(*s, wide)).collect::<Vec<_>>();
            let from = [regs(&m.a), regs(&m.b), regs(&m.c)].concat();
            Flow { to: regs(&m.to), from, is_wide: true, ..Flow::default() }
        }
        Run::Copy(c) => Flow { must_have: vec![address(&c.to), address(&c.from)], ..Flow::default() },
        Run::Table { index, .. } => Flow { must_have: vec![Reg::wide(*index, false)], ..Flow::default() },
        Run::Clock { to, wide, .. } => Flow { to: vec![Reg::wide(*to, *wide)], ..Flow::default() },
        Run::Barrier(b) => Flow { to: vec![Reg::wide(b.to, false), Reg::predicate(b.to)], ..Flow::default() },
        _ => Flow::default(),
    }
}

/// Words of all sets of registers together: larger kernels are not looked at.
const MOST: usize = 1 << 24;

/// The registers that may be read before anything is written to them, by an analysis of what is written on every way.
pub(super) fn without_value(kernel: &Kernel) -> Vec<Reg> {
    let sizes = [kernel.words, kernel.doubles, kernel.predicates];
    let number = |reg: Reg| sizes[..reg.kind()].iter().sum::<usize>() + reg.slot();
    let words = sizes.iter().sum::<usize>().div_ceil(64);
    let starts = block_starts(&kernel.code);
    if starts.len() * words > MOST {
        return Vec::new();
    }
    let end = |b: usize| starts.get(b + 1).copied().unwrap_or(kernel.code.len());
    let mut before = vec![vec![u64::MAX; words]; starts.len()];
    let mut entry = vec![0u64; words];
    let given = kernel.constants.iter().map(|(slot, wide, _)| (*slot, *wide));
    let given = given.chain(kernel.specials.iter().map(|(slot, wide, _)| (*slot, *wide)));
    for reg in given.map(|(slot, wide)| Reg::wide(slot, wide)).chain([0, 1].map(Reg::predicate)) {
        add(&mut entry, number(reg));
    }
    before.first_mut().into_iter().for_each(|first| first.clone_from(&entry));
    let mut open: Vec<usize> = (0..starts.len()).rev().collect();
    while let Some(b) = open.pop() {
        let mut known = before[b].clone();
        for pc in starts[b]..end(b) {
            writes(&kernel.code[pc], &kernel.flows[pc], |reg| add(&mut known, number(reg)));
        }
        for next in targets(&kernel.code, end(b) - 1).into_iter().flatten() {
            let next = starts.partition_point(|s| *s <= next) - 1;
            let mut changed = false;
            for (to, from) in before[next].iter_mut().zip(&known) {
                changed |= *to & !from != 0;
                *to &= from;
            }
            if changed && !open.contains(&next) {
                open.push(next);
            }
        }
    }
    let mut out = Vec::new();
    for (b, known) in before.iter_mut().enumerate() {
        for pc in starts[b]..end(b) {
            let (inst, flow) = (&kernel.code[pc], &kernel.flows[pc]);
            for reg in &reads(inst, flow) {
                let at = number(*reg);
                if known.get(at / 64).is_some_and(|w| w >> (at % 64) & 1 == 0) && !out.contains(reg) {
                    out.push(*reg);
                }
            }
            writes(inst, flow, |reg| add(known, number(reg)));
        }
    }
    out
}

/// The registers that an instruction reads.
fn reads(inst: &Inst, flow: &Flow) -> Vec<Reg> {
    let mut out = [&flow.from[..], &flow.must_have].concat();
    if let Run::Store(access) = &inst.run {
        out.extend(access.data.iter().flatten().map(|d| Reg::of_data(*d)));
    }
    if inst.guard != ALWAYS {
        out.push(Reg::predicate(inst.guard));
    }
    out
}

fn add(set: &mut [u64], at: usize) {
    if let Some(word) = set.get_mut(at / 64) {
        *word |= 1 << (at % 64);
    }
}

/// The registers that an instruction writes whatever its guard says.
fn writes(inst: &Inst, flow: &Flow, then: impl FnMut(Reg)) {
    if inst.guard == ALWAYS {
        flow.to.iter().copied().for_each(then);
    }
}
