//! The states of a component, parameter by parameter: prefixes that leave the same choice are one state.
//!
//! A prefix on which a constraint has no value is followed like one on which it holds, since a later constraint may still
//! exclude it; its state is another one than that of the same words without a fault. Whether a fault remains is then
//! known when the last parameter is decided, for as many combinations as the states stand for.

use super::LegalError;
use super::arena::{Id, Vars};
use super::component::{Component, Fault};
use super::intern::Interner;
use super::lanes::{Known, LANES, Lanes, NO_VALUE, Program, Registers};
use rayon::prelude::*;
use std::collections::HashMap;
use std::ops::Range;

/// The choices of one parameter, by state.
#[derive(Debug, Default)]
pub(super) struct Layer {
    /// The parameter, by its position in the component.
    pub(super) var: usize,
    /// `arcs[starts[s]..starts[s + 1]]` are those of state `s`.
    pub(super) starts: Vec<u32>,
    /// Position of the value and state of the next layer.
    pub(super) arcs: Vec<(u16, u32)>,
}

/// What one parameter decides.
struct Plan {
    var: usize,
    size: usize,
    /// Checks that look at one word of a state: what they leave of the values is remembered by the word.
    masked: Vec<(usize, Program)>,
    checks: Vec<Program>,
    /// Whether a check, masked or not, may be without a value that it needs.
    faulting: bool,
    /// The words of the next states.
    words: Vec<Program>,
}

/// All that is known of a component that some combination of values fulfils or has a fault at.
pub(super) struct Layers {
    pub(super) layers: Vec<Layer>,
    /// A source without a value where none is false.
    pub(super) fault: Option<Fault>,
}

/// Fewer values are looked at one by one.
const MANY_VALUES: usize = 24;

/// States that are expanded at a time.
const CHUNK: usize = 128;

/// Pairs of a state and a value beyond this are expanded by all threads.
const PARALLEL: usize = 1 << 15;

/// All layers of a component, in an order found for it; the last has one next state, 0, unless there is a fault. None
/// where every combination of values breaks a constraint.
pub(super) fn layers(component: &mut Component<'_>) -> Result<Option<Layers>, LegalError> {
    let order = component.order();
    let mut plans = Vec::with_capacity(order.len());
    let mut before: Vec<Id> = Vec::new();
    let mut set: Vars = 0;
    for &var in &order {
        let (plan, after) = plan(component, var, set, &before)?;
        plans.push(plan);
        before = after;
        set |= 1 << var;
    }
    let mut states = States { columns: Vec::new(), count: 1, faulty: Vec::new() };
    let mut out = Vec::with_capacity(plans.len());
    let mut scratch = Scratch::default();
    for plan in &plans {
        let (layer, next) = expand(component, plan, &states, &mut scratch)?;
        out.push(layer);
        states = next;
    }
    let end = states.faulty.iter().position(|&faulty| faulty);
    let fault = end.and_then(|end| component.fault_at(&path_to(&out, end)));
    Ok((states.count > 0).then_some(Layers { layers: out, fault }))
}

/// By parameter, the positions of values on the first way to a state behind the last layer.
fn path_to(layers: &[Layer], end: usize) -> Vec<u16> {
    let mut positions = vec![0; layers.len()];
    let mut state = end;
    for layer in layers.iter().rev() {
        // Every state was reached from one before.
        let Some(at) = layer.arcs.iter().position(|&(_, next)| next as usize == state) else { break };
        positions[layer.var] = layer.arcs[at].0;
        state = layer.starts.partition_point(|&start| start as usize <= at) - 1;
    }
    positions
}

fn plan(component: &mut Component<'_>, var: usize, set: Vars, before: &[Id]) -> Result<(Plan, Vec<Id>), LegalError> {
    let with = set | 1 << var;
    let known = Known { slots: before, vars: 1 << var };
    let (mut checks, mut opaque) = (Vec::new(), Vec::new());
    for i in 0..component.constraints.len() {
        let id = component.constraints[i];
        let vars = component.arena.vars(id);
        if vars >> var & 1 == 0 {
            continue;
        }
        if vars & !with == 0 {
            let program = Program::new(&component.arena, id, &known).ok_or(LegalError::Order)?;
            if component.arena.is_opaque(id) { opaque.push(program) } else { checks.push(program) }
        } else if let Some(early) = component.arena.relaxed(id, with)
            && component.arena.vars(early) >> var & 1 == 1
        {
            // Early checks save work and decide nothing: one that cannot be computed here is left out.
            checks.extend(Program::new(&component.arena, early, &known));
        }
    }
    let after = component.cut(with);
    let word = |&id: &Id| Program::new(&component.arena, id, &known).ok_or(LegalError::Order);
    let words = after.iter().map(word).collect::<Result<_, _>>()?;
    let size = component.domains[var].values.len();
    let faulting = component.strict && !opaque.is_empty();
    // Opaque checks come last: they are costly, and where another check is false their faults need not be followed.
    checks.append(&mut opaque);
    let mut masked = Vec::new();
    if size >= MANY_VALUES {
        checks.retain(|check| match check.only_slot() {
            Some(slot) => {
                masked.push((slot, check.clone()));
                false
            }
            None => true,
        });
    }
    Ok((Plan { var, size, masked, checks, faulting, words }, after))
}

/// States by columns of words.
struct States {
    columns: Vec<Vec<u64>>,
    count: usize,
    /// Those behind a fault, by state; shorter where the others are none.
    faulty: Vec<bool>,
}

/// What became of some states: pairs that hold, with the words of the next state.
#[derive(Default)]
struct Found {
    states: Vec<u32>,
    values: Vec<u16>,
    columns: Vec<Vec<u64>>,
    /// Whether a check had no value, by pair; shorter where none may have none.
    faulty: Vec<bool>,
}

/// A flag of a list that leaves out what is false at its end.
fn flag(flags: &[bool], at: usize) -> bool {
    flags.get(at).copied().unwrap_or(false)
}

fn expand(
    component: &Component<'_>,
    plan: &Plan,
    states: &States,
    scratch: &mut Scratch,
) -> Result<(Layer, States), LegalError> {
    let mut layer = Layer { var: plan.var, starts: vec![0; states.count + 1], arcs: Vec::new() };
    let mut next = Interner::new(plan.words.len());
    scratch.masks.clear();
    let mut take = |found: &Found| -> Result<(), LegalError> {
        for (i, (&state, &value)) in found.states.iter().zip(&found.values).enumerate() {
            let faulty = flag(&found.faulty, i) || flag(&states.faulty, state as usize);
            let id = next.intern(&found.columns, i, faulty)?;
            layer.arcs.push((value, id));
            layer.starts[state as usize + 1] += 1;
        }
        Ok(())
    };
    if states.count.saturating_mul(plan.size) > PARALLEL {
        // In rounds, so that what waits to be interned stays small.
        let round = CHUNK * 256;
        for start in (0..states.count).step_by(round) {
            let end = (start + round).min(states.count);
            let chunks: Vec<usize> = (start..end).step_by(CHUNK).collect();
            let work = |scratch: &mut Scratch, &at: &usize| {
                let mut found = Found { columns: vec![Vec::new(); plan.words.len()], ..Found::default() };
                scratch.expand(component, plan, states, at..(at + CHUNK).min(end), &mut found);
                found
            };
            let found: Vec<Found> = chunks.par_iter().map_init(Scratch::default, work).collect();
            found.iter().try_for_each(&mut take)?;
        }
    } else {
        let mut found = Found { columns: vec![Vec::new(); plan.words.len()], ..Found::default() };
        for at in (0..states.count).step_by(CHUNK) {
            found.clear();
            scratch.expand(component, plan, states, at..(at + CHUNK).min(states.count), &mut found);
            take(&found)?;
        }
    }
    for i in 1..layer.starts.len() {
        layer.starts[i] += layer.starts[i - 1];
    }
    Ok((layer, States { count: next.numbers.count, columns: next.columns, faulty: next.faulty }))
}

impl Found {
    fn clear(&mut self) {
        self.states.clear();
        self.values.clear();
        self.columns.iter_mut().for_each(Vec::clear);
        self.faulty.clear();
    }
}

/// Pairs of a state and a value that are looked at together.
#[derive(Default)]
struct Scratch {
    registers: Registers,
    states: Vec<u32>,
    values: Vec<u16>,
    /// By pair, whether a check has no value; nothing where none may have none.
    faulty: Vec<bool>,
    /// By masked check and word, the values that it leaves.
    masks: HashMap<(usize, u64), Mask>,
    /// The values that masked checks leave to a state, as bits, and those of them at which one has no value.
    left: Vec<u64>,
    without: Vec<u64>,
}

/// Values as bits.
struct Mask {
    /// Those at which a check is not false.
    left: Box<[u64]>,
    /// Those at which it has no value; empty where there are none.
    without: Box<[u64]>,
}

/// Remembered bits are dropped beyond as many.
const MAX_MASKS: usize = 1 << 14;

/// The words of some states in a column.
fn gather(column: &[u64], states: &[u32], out: &mut [u64]) {
    for (o, &s) in out.iter_mut().zip(states) {
        *o = column[s as usize];
    }
}

impl Mask {
    /// By the words of a check for some values each.
    fn new(size: usize, mut words: impl FnMut(&[u16], &mut [u64])) -> Self {
        let (mut left, mut without) = (vec![0u64; size.div_ceil(64)], Vec::new());
        for start in (0..size).step_by(LANES) {
            let values: Vec<u16> = (start..(start + LANES).min(size)).map(|v| v as u16).collect();
            let mut found = [0; LANES];
            words(&values, &mut found[..values.len()]);
            for (&value, &word) in values.iter().zip(&found) {
                let (at, bit) = (usize::from(value) / 64, 1u64 << (value % 64));
                left[at] |= if word != 0 { bit } else { 0 };
                if word == NO_VALUE {
                    without.resize(left.len(), 0);
                    without[at] |= bit;
                }
            }
        }
        Self { left: left.into(), without: without.into() }
    }
}

impl Scratch {
    /// Adds what holds of a few states with all values.
    fn expand(
        &mut self,
        component: &Component<'_>,
        plan: &Plan,
        states: &States,
        range: Range<usize>,
        found: &mut Found,
    ) {
        self.reset();
        for state in range {
            self.mask(component, plan, states, state);
            for at in 0..self.left.len() {
                let mut bits = self.left[at];
                while bits != 0 {
                    if self.states.len() == LANES {
                        self.flush(component, plan, states, found);
                    }
                    let bit = bits.trailing_zeros();
                    self.states.push(state as u32);
                    self.values.push((at * 64) as u16 + bit as u16);
                    if plan.faulting {
                        self.faulty.push(self.without[at] >> bit & 1 == 1);
                    }
                    bits &= bits - 1;
                }
            }
        }
        self.flush(component, plan, states, found);
    }

    fn flush(&mut self, component: &Component<'_>, plan: &Plan, states: &States, found: &mut Found) {
        self.filter(component, plan, states);
        self.emit(component, plan, states, found);
        self.reset();
    }

    fn reset(&mut self) {
        self.states.clear();
        self.values.clear();
        self.faulty.clear();
    }

    /// The values that masked checks leave to a state.
    fn mask(&mut self, component: &Component<'_>, plan: &Plan, states: &States, state: usize) {
        let words = plan.size.div_ceil(64);
        self.left.clear();
        self.left.resize(words, u64::MAX);
        self.without.clear();
        self.without.resize(words, 0);
        if let (Some(last), 1..) = (self.left.last_mut(), plan.size % 64) {
            *last = (1 << (plan.size % 64)) - 1;
        }
        if self.masks.len() > MAX_MASKS {
            self.masks.clear();
        }
        for (number, (slot, check)) in plan.masked.iter().enumerate() {
            let word = states.columns[*slot][state];
            let registers = &mut self.registers;
            let mask = self.masks.entry((number, word)).or_insert_with(|| {
                Mask::new(plan.size, |values, out| {
                    let lanes = Lanes { component, slot: &|_, out| out.fill(word), positions: &|_| values };
                    out.copy_from_slice(registers.run(check, values.len(), &lanes));
                })
            });
            self.left.iter_mut().zip(&mask.left).for_each(|(left, bits)| *left &= bits);
            self.without.iter_mut().zip(&mask.without).for_each(|(without, bits)| *without |= bits);
        }
    }

    fn filter(&mut self, component: &Component<'_>, plan: &Plan, states: &States) {
        for check in &plan.checks {
            let slot = |slot: usize, out: &mut [u64]| gather(&states.columns[slot], &self.states, out);
            let lanes = Lanes { component, slot: &slot, positions: &|_| &self.values };
            let words = self.registers.run(check, self.states.len(), &lanes);
            let mut kept = 0;
            // Two loops, since the first is most of the time of spaces that have no faults.
            if !plan.faulting {
                for (i, &word) in words.iter().enumerate() {
                    self.states[kept] = self.states[i];
                    self.values[kept] = self.values[i];
                    kept += usize::from(word != 0);
                }
            } else {
                for (i, &word) in words.iter().enumerate() {
                    self.states[kept] = self.states[i];
                    self.values[kept] = self.values[i];
                    self.faulty[kept] = self.faulty[i] || word == NO_VALUE;
                    kept += usize::from(word != 0);
                }
            }
            self.states.truncate(kept);
            self.values.truncate(kept);
            self.faulty.truncate(kept);
            if kept == 0 {
                break;
            }
        }
    }

    fn emit(&mut self, component: &Component<'_>, plan: &Plan, states: &States, found: &mut Found) {
        if self.states.is_empty() {
            return;
        }
        let slot = |slot: usize, out: &mut [u64]| gather(&states.columns[slot], &self.states, out);
        let lanes = Lanes { component, slot: &slot, positions: &|_| &self.values };
        for (program, column) in plan.words.iter().zip(&mut found.columns) {
            column.extend_from_slice(self.registers.run(program, self.states.len(), &lanes));
        }
        found.faulty.extend_from_slice(&self.faulty);
        found.states.extend_from_slice(&self.states);
        found.values.extend_from_slice(&self.values);
    }
}
