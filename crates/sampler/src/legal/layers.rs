//! The states of a component, parameter by parameter: prefixes that leave the same choice are one state.

use super::LegalError;
use super::arena::{Id, Vars};
use super::component::Component;
use super::lanes::{Known, LANES, Lanes, Program, Registers};
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
    /// The words of the next states.
    words: Vec<Program>,
}

/// States of one parameter beyond this are given up: some hundred megabytes of them.
const MAX_STATES: usize = 1 << 22;

/// Fewer values are looked at one by one.
const MANY_VALUES: usize = 24;

/// States that are expanded at a time.
const CHUNK: usize = 128;

/// Pairs of a state and a value beyond this are expanded by all threads.
const PARALLEL: usize = 1 << 15;

/// All layers of a component, in an order found for it; the last has one next state, 0.
pub(super) fn layers(component: &mut Component<'_>) -> Result<Vec<Layer>, LegalError> {
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
    let mut states = States { columns: Vec::new(), count: 1 };
    let mut out = Vec::with_capacity(plans.len());
    let mut scratch = Scratch::default();
    for plan in &plans {
        let (layer, next) = expand(component, plan, &states, &mut scratch)?;
        out.push(layer);
        states = next;
    }
    Ok(out)
}

fn plan(component: &mut Component<'_>, var: usize, set: Vars, before: &[Id]) -> Result<(Plan, Vec<Id>), LegalError> {
    let with = set | 1 << var;
    let known = Known { slots: before, vars: 1 << var };
    let mut checks = Vec::new();
    for i in 0..component.constraints.len() {
        let id = component.constraints[i];
        let vars = component.arena.vars(id);
        if vars >> var & 1 == 0 {
            continue;
        }
        if vars & !with == 0 {
            let program = Program::new(&component.arena, id, &known).ok_or(LegalError::Order)?;
            checks.push(program);
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
    Ok((Plan { var, size, masked, checks, words }, after))
}

/// States by columns of words.
struct States {
    columns: Vec<Vec<u64>>,
    count: usize,
}

/// What became of some states: pairs that hold, with the words of the next state.
#[derive(Default)]
struct Found {
    states: Vec<u32>,
    values: Vec<u16>,
    columns: Vec<Vec<u64>>,
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
            let id = next.intern(&found.columns, i)?;
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
    Ok((layer, States { count: next.count, columns: next.columns }))
}

impl Found {
    fn clear(&mut self) {
        self.states.clear();
        self.values.clear();
        self.columns.iter_mut().for_each(Vec::clear);
    }
}

/// Pairs of a state and a value that are looked at together.
#[derive(Default)]
struct Scratch {
    registers: Registers,
    states: Vec<u32>,
    values: Vec<u16>,
    /// By masked check and word, the values that it leaves as bits.
    masks: HashMap<(usize, u64), Box<[u64]>>,
    left: Vec<u64>,
}

/// Remembered bits are dropped beyond as many.
const MAX_MASKS: usize = 1 << 14;

/// One word of a state, with some values.
struct OneWord<'s> {
    component: &'s Component<'s>,
    word: u64,
    values: &'s [u16],
}

impl Lanes for OneWord<'_> {
    fn slot(&self, _: usize, out: &mut [u64]) {
        out.fill(self.word);
    }

    fn positions(&self, _: u8) -> &[u16] {
        self.values
    }

    fn opaque(&self, number: usize, positions: &[u16]) -> bool {
        self.component.holds(number, positions)
    }
}

struct Pairs<'s> {
    component: &'s Component<'s>,
    columns: &'s [Vec<u64>],
    states: &'s [u32],
    values: &'s [u16],
}

impl Lanes for Pairs<'_> {
    fn slot(&self, slot: usize, out: &mut [u64]) {
        let column = &self.columns[slot];
        for (o, &s) in out.iter_mut().zip(self.states) {
            *o = column[s as usize];
        }
    }

    fn positions(&self, _: u8) -> &[u16] {
        self.values
    }

    fn opaque(&self, number: usize, positions: &[u16]) -> bool {
        self.component.holds(number, positions)
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
        self.states.clear();
        self.values.clear();
        for state in range {
            self.mask(component, plan, states, state);
            for at in 0..self.left.len() {
                let mut bits = self.left[at];
                while bits != 0 {
                    if self.states.len() == LANES {
                        self.flush(component, plan, states, found);
                    }
                    self.states.push(state as u32);
                    self.values.push((at * 64) as u16 + bits.trailing_zeros() as u16);
                    bits &= bits - 1;
                }
            }
        }
        self.flush(component, plan, states, found);
    }

    fn flush(&mut self, component: &Component<'_>, plan: &Plan, states: &States, found: &mut Found) {
        self.filter(component, plan, states);
        self.emit(component, plan, states, found);
        self.states.clear();
        self.values.clear();
    }

    /// The values that masked checks leave to a state.
    fn mask(&mut self, component: &Component<'_>, plan: &Plan, states: &States, state: usize) {
        self.left.clear();
        self.left.resize(plan.size.div_ceil(64), u64::MAX);
        if let (Some(last), 1..) = (self.left.last_mut(), plan.size % 64) {
            *last = (1 << (plan.size % 64)) - 1;
        }
        if self.masks.len() > MAX_MASKS {
            self.masks.clear();
        }
        for (number, (slot, check)) in plan.masked.iter().enumerate() {
            let word = states.columns[*slot][state];
            let registers = &mut self.registers;
            let bits = self.masks.entry((number, word)).or_insert_with(|| {
                let mut bits = vec![0u64; plan.size.div_ceil(64)];
                for start in (0..plan.size).step_by(LANES) {
                    let values: Vec<u16> = (start..(start + LANES).min(plan.size)).map(|v| v as u16).collect();
                    let lanes = OneWord { component, word, values: &values };
                    let holds = registers.run(check, values.len(), &lanes);
                    for (&value, &holds) in values.iter().zip(holds) {
                        bits[usize::from(value) / 64] |= u64::from(holds != 0) << (value % 64);
                    }
                }
                bits.into()
            });
            for (left, bits) in self.left.iter_mut().zip(bits.iter()) {
                *left &= bits;
            }
        }
    }

    fn filter(&mut self, component: &Component<'_>, plan: &Plan, states: &States) {
        for check in &plan.checks {
            let pairs = Pairs { component, columns: &states.columns, states: &self.states, values: &self.values };
            let holds = self.registers.run(check, self.states.len(), &pairs);
            let mut kept = 0;
            for (i, &holds) in holds.iter().enumerate() {
                self.states[kept] = self.states[i];
                self.values[kept] = self.values[i];
                kept += usize::from(holds != 0);
            }
            self.states.truncate(kept);
            self.values.truncate(kept);
            if kept == 0 {
                break;
            }
        }
    }

    fn emit(&mut self, component: &Component<'_>, plan: &Plan, states: &States, found: &mut Found) {
        if self.states.is_empty() {
            return;
        }
        for (program, column) in plan.words.iter().zip(&mut found.columns) {
            let pairs = Pairs { component, columns: &states.columns, states: &self.states, values: &self.values };
            column.extend_from_slice(self.registers.run(program, self.states.len(), &pairs));
        }
        found.states.extend_from_slice(&self.states);
        found.values.extend_from_slice(&self.values);
    }
}

/// Numbers rows of words, equal ones alike.
struct Interner {
    columns: Vec<Vec<u64>>,
    count: usize,
    /// Number of a row plus one, and some bits of its hash.
    table: Vec<(u32, u32)>,
}

impl Interner {
    fn new(columns: usize) -> Self {
        Self { columns: vec![Vec::new(); columns], count: 0, table: vec![(0, 0); 64] }
    }

    fn intern(&mut self, rows: &[Vec<u64>], at: usize) -> Result<u32, LegalError> {
        let hash = hash(rows.iter().map(|column| column[at]));
        let tag = (hash >> 32) as u32;
        let mask = self.table.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let (number, known) = self.table[place];
            if number == 0 {
                break;
            }
            let row = number as usize - 1;
            if known == tag && rows.iter().zip(&self.columns).all(|(new, old)| new[at] == old[row]) {
                return Ok(number - 1);
            }
            place = (place + 1) & mask;
        }
        if self.count == MAX_STATES {
            return Err(LegalError::TooWide { limit: MAX_STATES });
        }
        for (column, row) in self.columns.iter_mut().zip(rows) {
            column.push(row[at]);
        }
        self.count += 1;
        self.table[place] = (self.count as u32, tag);
        if self.count * 2 > self.table.len() {
            self.grow();
        }
        Ok(self.count as u32 - 1)
    }

    fn grow(&mut self) {
        let size = self.table.len() * 4;
        self.table = vec![(0, 0); size];
        for row in 0..self.count {
            let hash = hash(self.columns.iter().map(|column| column[row]));
            let mut place = hash as usize & (size - 1);
            while self.table[place].0 != 0 {
                place = (place + 1) & (size - 1);
            }
            self.table[place] = (row as u32 + 1, (hash >> 32) as u32);
        }
    }
}

/// A hash of words whose low bits are as good as its high ones.
pub(super) fn hash(words: impl Iterator<Item = u64>) -> u64 {
    let mixed = words.fold(0x243f_6a88_85a3_08d3_u64, |hash, word| {
        let wide = u128::from(hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        (wide ^ wide >> 64) as u64
    });
    mixed ^ mixed >> 29
}
