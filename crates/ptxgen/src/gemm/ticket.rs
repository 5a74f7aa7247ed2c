//! The sum over the slices of a split reduction in the launch of the product itself.
//!
//! Every block leaves its partial sums in the workspace, makes them visible to the device, and takes a ticket of its tile. The block that
//! takes the last one finds the partial sums of all others there, and adds them in the order of the slices: the bytes are those of a sum
//! by a kernel of its own, whichever block is last, and the second launch is saved. The last block gives the tickets back, so that the
//! next launch begins with none taken.

use super::blueprint::Blueprint;
use super::emit::Position;
use super::frame::{Frame, Params, Template, Work};
use super::store::{Columns, Tile};
use crate::ir::{Address, Arith, Builder, Compare, Form, Inst, Operand, Reg, Space, Type};
use std::ops::Range;

/// Tiles that there are tickets for.
pub(crate) const TILES: u32 = 4096;

/// The slices of a tile.
pub(crate) struct Slices {
    /// The number of the tile.
    pub(crate) tile: Reg,
    /// The block's own slice, and how many there are.
    pub(crate) own: Reg,
    pub(crate) count: Operand,
    /// What the ticket that a block takes is counted as.
    pub(crate) ticket: Reg,
}

/// What a block does after it has stored the partial sums of its slice, of as many as the grid has for each tile.
pub(crate) fn finish(b: &mut Builder, bp: &Blueprint, params: &Params, at: &Position) {
    let Some(own) = at.block.slice else { return };
    let frame = bp.frame();
    let tickets = b.mov(Type::U64, Operand::Tickets);
    let slices = Slices { tile: frame.tile_number(b), own, count: frame.k_g.into(), ticket: own };
    finish_tile(b, bp, params, at, (&slices, tickets));
}

/// What a block does after it has stored the partial sums of its slice of a tile.
pub(crate) fn finish_tile(
    b: &mut Builder,
    bp: &Blueprint,
    params: &Params,
    at: &Position,
    (slices, tickets): (&Slices, Reg),
) {
    let (frame, tid) = (bp.frame(), at.block.tid);
    let mine = b.mad_wide(slices.tile, 4u32, tickets);
    let shared = b.mov(Type::U32, Operand::Shared);
    // Before sm_70 a fence was only promised to be one for the accesses of its own thread.
    if bp.target.sm() < 70 {
        b.fence(bp.target);
    }
    // All threads have stored, and nobody reads tiles in shared memory any more.
    b.barrier();
    let leads = b.compare(Compare::Eq, tid, 0u32, None);
    b.when(leads, Form::Branch, |b| {
        b.fence(bp.target);
        let ticket = b.add_atomically(mine, 1u32);
        // What others stored before they took theirs is seen from here on.
        b.fence(bp.target);
        b.store(Space::Shared, Type::U32, &[ticket], shared, 0);
    });
    b.barrier();
    // One block of a tile is last. Which one makes no difference to what is counted: the last slice stands for it.
    let ticket = b.read_as(Space::Shared, shared, b.meaning(slices.ticket));
    let [all_others, given_back] = match slices.count {
        Operand::Int(count) => [(count - 1).into(), (-count).into()],
        count => [b.sub(Type::U32, count, 1u32).into(), b.sub(Type::U32, 0u32, count).into()],
    };
    let last = b.compare(Compare::Ge, ticket, all_others, None);
    b.when(last, Form::Branch, |b| {
        b.when(leads, Form::Branch, |b| {
            b.push(Inst::Red { ty: Type::S32, addr: Address { base: mine, offset: 0 }, src: given_back });
        });
        match at.group {
            None => sum_and_store(b, bp, (&frame, slices.count), params, at),
            Some(group) => {
                let first = b.compare(Compare::Eq, group, 0u32, None);
                b.when(first, Form::Branch, |b| sum_and_store(b, bp, (&frame, slices.count), params, at));
            }
        }
    });
}

/// Sums some columns of a thread's tile over all slices, and stores them, until there are none left.
fn sum_and_store(b: &mut Builder, bp: &Blueprint, (frame, slices): (&Frame, Operand), params: &Params, at: &Position) {
    let Some(work) = params.work else { return };
    let columns = Columns::new(b, bp, at, frame.sums(), params, params.m);
    let mut tile = Tile::new(b, bp, &frame.whole(), params, at);
    let mut from = columns.first(b, work.first);
    let (together, at_once) = shares(bp, slices);
    let rounds = match slices {
        Operand::Int(count) => (count / i64::from(at_once)).into(),
        count => count,
    };
    for first in (0..bp.config.n_s).step_by(together as usize) {
        let some = first..bp.config.n_s.min(first + together);
        from = columns.next(b, from, first);
        let sums = sums(b, bp, frame, &columns, (from, work, (rounds, at_once)), some.clone());
        sums.chunks(bp.column()).for_each(|sums| tile.column(b, sums));
        from = some.skip(1).fold(from, |from, j| columns.next(b, from, j));
    }
}

/// Columns that are summed together, and slices of them that are loaded at once: with what it is added to, what is loaded takes no more
/// registers than the sums of the loop before, unless those were few.
fn shares(bp: &Blueprint, slices: Operand) -> (u32, u32) {
    let (m_s, n_s, lanes) = (bp.config.m_s, bp.config.n_s, bp.arithmetic.lanes() as u32);
    let together = (n_s / (2 * lanes)).max(1);
    // In registers of 32 bits.
    let words = bp.arithmetic.sum_bytes() / 4;
    let room = (m_s * n_s * words / lanes).max(16);
    let whole = |n: u32| matches!(slices, Operand::Int(count) if count % i64::from(n) == 0);
    let fits = |n: &u32| whole(*n) && (1 + n) * together * m_s * words <= room;
    (together, [8, 6, 5, 4, 3, 2].into_iter().find(fits).unwrap_or(1))
}

/// The sums of some columns over all slices, from where the first of them begins in the first slice. What lies outside of C is zero.
fn sums(
    b: &mut Builder,
    bp: &Blueprint,
    frame: &Frame,
    columns: &Columns,
    (start, work, (rounds, at_once)): (Reg, Work, (Operand, u32)),
    some: Range<u32>,
) -> Vec<Reg> {
    let total: Vec<Reg> = (0..some.len() * bp.column()).map(|_| bp.arithmetic.zero(b)).collect();
    let step = b.meaning(work.slab).times(&i64::from(at_once).into()).times(&b.next_loop().into());
    let meaning = b.meaning(start).plus(&step);
    let pointer = b.carried(Type::U64, start, meaning);
    b.repeat("slices", rounds, |b, _| {
        let mut slice = pointer;
        for i in 0..at_once {
            slice = if i == 0 { pointer } else { b.add(Type::U64, slice, work.slab) };
            add(b, bp, frame, columns, slice, (some.clone(), &total));
        }
        let (op, ty, dst) = (Arith::Add, Type::U64, pointer);
        b.push(Inst::Arith { op, ty, dst, a: slice.into(), b: work.slab.into() });
    });
    total
}

/// Adds what some columns are in one slice.
fn add(
    b: &mut Builder,
    bp: &Blueprint,
    frame: &Frame,
    columns: &Columns,
    slice: Reg,
    (some, total): (Range<u32>, &[Reg]),
) {
    let (numbers, bytes, vec) = (bp.arithmetic, frame.sums().bytes, frame.vec[2]);
    let mut from = slice;
    for (j, column) in some.clone().zip(total.chunks(bp.column())) {
        from = if j == some.start { from } else { columns.next(b, from, j) };
        let inside = columns.inside(b, j);
        for (i, piece) in (0..).zip(column.chunks(vec as usize * numbers.parts())) {
            let row = columns.row(i * vec);
            let pred = inside.map(|(rows, column)| b.exceeds(rows, row, Some(column)));
            // To the assembler, what is written under a predicate alone is held throughout the loop around it.
            let loaded = match pred {
                Some(_) if frame.streams() => (0..piece.len()).map(|_| numbers.zero(b)).collect(),
                _ => b.regs(numbers.ty, piece.len()),
            };
            b.predicated(pred, |b| {
                // What a first level of caches holds of these lines may be older.
                b.load_coherent(numbers.ty, &loaded, from, i64::from(row * bytes));
                piece.iter().zip(&loaded).for_each(|(sum, x)| b.advance(numbers.ty, *sum, *x));
            });
        }
    }
}
