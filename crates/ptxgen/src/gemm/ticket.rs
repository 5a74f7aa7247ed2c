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
use crate::ir::{Address, Builder, Compare, Form, Inst, Operand, Reg, Space, Type};
use std::ops::Range;

/// Tiles that there are tickets for.
pub(crate) const TILES: u32 = 4096;

/// What a block does after it has stored its partial sums.
pub(crate) fn finish(b: &mut Builder, bp: &Blueprint, params: &Params, at: &Position) {
    let Some(z) = at.block.slice else { return };
    let (frame, tid) = (bp.frame(), at.block.tid);
    let tickets = b.mov(Type::U64, Operand::Tickets);
    let tile = frame.tile_number(b);
    let mine = b.mad_wide(tile, 4u32, tickets);
    let shared = b.mov(Type::U32, Operand::Shared);
    // All threads have stored, and nobody reads tiles in shared memory any more.
    b.barrier();
    let leads = b.compare(Compare::Eq, tid, 0u32, None);
    b.when(leads, Form::Branch, |b| {
        b.fence(bp.target);
        let ticket = b.take(mine, 1u32);
        // What others stored before they took theirs is seen from here on.
        b.fence(bp.target);
        b.store(Space::Shared, Type::U32, &[ticket], shared, 0);
    });
    b.barrier();
    // One block of a tile is last. Which one makes no difference to what is counted: the last slice stands for it.
    let ticket = b.read_as(Space::Shared, shared, b.meaning(z));
    let last = b.compare(Compare::Ge, ticket, frame.k_g - 1, None);
    b.when(last, Form::Branch, |b| {
        b.when(leads, Form::Branch, |b| {
            let (ty, src) = (Type::S32, Operand::Int(-i64::from(frame.k_g)));
            b.push(Inst::Red { ty, addr: Address { base: mine, offset: 0 }, src });
        });
        match at.group {
            None => sum_and_store(b, bp, &frame, params, at),
            Some(group) => {
                let first = b.compare(Compare::Eq, group, 0u32, None);
                b.when(first, Form::Branch, |b| sum_and_store(b, bp, &frame, params, at));
            }
        }
    });
}

/// Sums some columns of a thread's tile over all slices, and stores them, until there are none left.
fn sum_and_store(b: &mut Builder, bp: &Blueprint, frame: &Frame, params: &Params, at: &Position) {
    let Some(work) = params.work else { return };
    let columns = Columns::new(b, bp, at, frame.sums(), params, params.m);
    let mut tile = Tile::new(b, bp, &frame.whole(), params, at);
    let mut from = columns.first(b, work.first);
    // What is loaded is as much as what it is added to: together they take the registers of the sums of the loop before.
    let together = (bp.config.n_s / (2 * bp.arithmetic.lanes() as u32)).max(1);
    for first in (0..bp.config.n_s).step_by(together as usize) {
        let some = first..bp.config.n_s.min(first + together);
        from = columns.next(b, from, first);
        let sums = sums(b, bp, frame, &columns, (from, work), some.clone());
        sums.chunks(bp.column()).for_each(|sums| tile.column(b, sums));
        from = some.skip(1).fold(from, |from, j| columns.next(b, from, j));
    }
}

/// The sums of some columns over all slices, from where the first of them begins in the first slice. What lies outside of C is zero.
fn sums(
    b: &mut Builder,
    bp: &Blueprint,
    frame: &Frame,
    columns: &Columns,
    (start, work): (Reg, Work),
    some: Range<u32>,
) -> Vec<Reg> {
    let (numbers, bytes, vec) = (bp.arithmetic, frame.sums().bytes, frame.vec[2]);
    let total: Vec<Reg> = (0..some.len() * bp.column()).map(|_| numbers.zero(b)).collect();
    let each = vec as usize * numbers.parts();
    let pointer = b.walking(Type::U64, start, work.slab);
    b.repeat("slices", frame.k_g, |b, _| {
        let mut from = pointer;
        for (j, column) in some.clone().zip(total.chunks(bp.column())) {
            from = if j == some.start { from } else { columns.next(b, from, j) };
            let inside = columns.inside(b, j);
            for (i, piece) in (0..).zip(column.chunks(each)) {
                let row = columns.row(i * vec);
                let pred = inside.map(|(rows, column)| b.exceeds(rows, row, Some(column)));
                b.predicated(pred, |b| {
                    let loaded = b.load(Space::Global, numbers.ty, each, from, i64::from(row * bytes));
                    piece.iter().zip(loaded).for_each(|(sum, x)| b.advance(numbers.ty, *sum, x));
                });
            }
        }
        b.advance(Type::U64, pointer, work.slab);
    });
    total
}
