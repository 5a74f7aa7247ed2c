//! From shared memory to registers, and the multiply-adds.

use super::Arithmetic;
use super::loader::DEPTH;
use super::stages::Multiply;
use crate::ir::{Builder, Reg, Space, Type};

/// One operand's tile as a thread reads it.
pub(crate) struct Operands {
    /// Address of the thread's first element.
    base: Reg,
    /// Elements from one step of the reduction to the next, or from row to row.
    pitch: u32,
    /// Elements of one load, of a step each.
    chunk: u32,
    /// Where loads begin: elements beyond the first, or rows.
    pieces: Vec<u32>,
    /// Steps that are loaded at once, of one row each: 1 where rows are not contiguous along the reduction.
    depth: u32,
}

impl Operands {
    /// From the address of the thread's first element in the tile of the block's first group.
    pub(crate) fn new(base: Reg, pitch: u32, chunk: u32, pieces: Vec<u32>) -> Self {
        Self { base, pitch, chunk, pieces, depth: 1 }
    }

    /// The same of a tile that stays contiguous along the reduction, and of rows beyond the first.
    pub(crate) fn deep(base: Reg, pitch: u32, rows: Vec<u32>) -> Self {
        Self { base, pitch, chunk: 1, pieces: rows, depth: DEPTH }
    }

    /// Where the stage begins whose turn it is.
    pub(crate) fn stage(&self, b: &mut Builder, turn: Option<Reg>) -> Reg {
        turn.map_or(self.base, |turn| b.add(Type::U32, self.base, turn))
    }

    /// What is loaded from a step on, as it lies in memory; nothing where it was loaded with a step before.
    pub(crate) fn fetch(&self, b: &mut Builder, of: Arithmetic, base: Reg, step: u32) -> Option<Vec<Reg>> {
        let (ty, count) = of.fetched(self.chunk.max(self.depth));
        let place = |at: u32| if self.depth > 1 { at * self.pitch + step } else { step * self.pitch + at };
        let load = |at: &u32| b.load(Space::Shared, ty, count, base, i64::from(place(*at) * of.bytes()));
        step.is_multiple_of(self.depth).then(|| self.pieces.iter().flat_map(load).collect())
    }

    /// One step's elements of what is loaded.
    pub(crate) fn of_step(&self, loaded: &[Reg], step: u32) -> Vec<Reg> {
        loaded.iter().skip((step % self.depth) as usize).step_by(self.depth as usize).copied().collect()
    }
}

/// Where a thread reads both operands in shared memory.
pub(crate) struct Fragments {
    pub(crate) arithmetic: Arithmetic,
    pub(crate) sides: [Operands; 2],
    /// Steps of a stage that the thread's group takes.
    pub(crate) steps: u32,
}

impl Multiply for Fragments {
    /// The operands of a step are loaded one step ahead. Steps are dealt to sets of accumulators.
    fn compute(&self, b: &mut Builder, turn: Option<Reg>, _left: Reg, acc: &[Reg]) {
        let [left, right] = &self.sides;
        let (x_base, y_base) = (left.stage(b, turn), right.stage(b, turn));
        let fetch = |b: &mut Builder, step: u32| {
            let x = left.fetch(b, self.arithmetic, x_base, step);
            (x, right.fetch(b, self.arithmetic, y_base, step))
        };
        let (mut x_held, mut y_held) = (Vec::new(), Vec::new());
        let mut next = fetch(b, 0);
        for step in 0..self.steps {
            x_held = next.0.unwrap_or(x_held);
            y_held = next.1.unwrap_or(y_held);
            let (x, y) = (left.of_step(&x_held, step), right.of_step(&y_held, step));
            let (x, y) = (self.arithmetic.rows(b, &x), self.arithmetic.columns(b, &y));
            next = if step + 1 < self.steps { fetch(b, step + 1) } else { Default::default() };
            add_products(b, self.arithmetic, (acc, step), &x, &y);
        }
    }
}

/// Adds the products of a step to the set of accumulators whose turn it is.
pub(crate) fn add_products(b: &mut Builder, of: Arithmetic, (acc, step): (&[Reg], u32), x: &[Reg], y: &[Reg]) {
    let tile = x.len() * y.len() / of.parts();
    let set = step as usize % (acc.len() / tile);
    let set = &acc[set * tile..][..tile];
    match of {
        Arithmetic { complex: true, .. } => complex(b, of, set, x, y),
        Arithmetic { paired: true, .. } => pairs(b, of, set, x, y),
        _ => real(b, of, set, (x, y), step),
    }
}

/// The products of real numbers, those of one element of the first operand together, to and fro along the second operand, and along the first
/// from step to step. Neighbours within a step share an operand. Of the orders that were tried (by either operand, straight, shifted or to and fro,
/// by pairs and by squares) the assembler makes fewest conflicts of registers' banks of this one.
fn real(b: &mut Builder, of: Arithmetic, set: &[Reg], (x, y): (&[Reg], &[Reg]), step: u32) {
    let (rows, columns) = (x.len(), y.len());
    let turned = |back: bool, at: usize, count: usize| if back { count - 1 - at } else { at };
    for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
        let (i, j) = (turned(!step.is_multiple_of(2), i, rows), turned(i % 2 == 1, j, columns));
        let at = j * rows + i;
        of.multiply_add(b, &set[at..=at], &[x[i]], &[y[j]]);
    }
}

/// The products of pairs of rows, those of one element of the second operand together, of which the assembler makes fewer conflicts.
fn pairs(b: &mut Builder, of: Arithmetic, set: &[Reg], x: &[Reg], y: &[Reg]) {
    for (column, y) in set.chunks(x.len()).zip(y) {
        for (acc, x) in column.iter().zip(x) {
            of.multiply_add(b, &[*acc], &[*x], &[*y]);
        }
    }
}

/// The products of complex numbers, those of one element of the second operand together, whose factors are then held alone.
fn complex(b: &mut Builder, of: Arithmetic, set: &[Reg], x: &[Reg], y: &[Reg]) {
    let parts = of.parts();
    for (column, y) in set.chunks(x.len()).zip(y.chunks(parts)) {
        let y = of.factor(b, y);
        for (acc, x) in column.chunks(parts).zip(x.chunks(parts)) {
            of.multiply_add(b, acc, x, &y);
        }
    }
}
