//! Stream-K: a fixed number of blocks share the stages of all tiles evenly (Osama et al., PPoPP 2023).
//!
//! Where each tile has a block of its own, and the last round of blocks fills part of the device, the rest of it waits. Here there are as
//! many blocks as run at a time. The stages of all tiles, tile after tile, are one sequence, and each block has an equal part of it:
//! the end of a tile, some whole tiles, and the beginning of another. What a block has of one tile is a *segment*. The sums of a whole
//! tile go to C at once. The others go to the workspace, and the last of a tile's blocks adds them in the order of the reduction, as
//! with tickets: the bytes depend on how the sequence is divided, and not on which block is last.
//!
//! The counter has no form for segments: their number and their lengths differ from block to block.

use super::blueprint::Blueprint;
use super::config::Raster;
use super::emit::{Place, Position};
use super::frame::{Block, Frame, Params, Template};
use super::store;
use super::ticket::{self, Slices};
use crate::ir::{Arith, Axis, Builder, Compare, Form, Iteration, Operand, Reg, Special, Type};

/// The code of a block: all its segments, the sums of which `product` leaves.
pub(super) fn segments(
    b: &mut Builder,
    bp: &Blueprint,
    params: &Params,
    product: impl FnOnce(&mut Builder, &Params, &Position) -> Vec<Reg>,
) {
    let frame = bp.frame();
    let (share, place) = b.block("share", |b| {
        let share = Share::new(b, &frame, params);
        let place = Place::new(b, bp, share.tid);
        (share, place)
    });
    b.repeat("segments", share.segments, |b, it| {
        let Segment { block, tile, base } = b.block("position", |b| share.segment(b, &frame, it));
        let at = place.within(block);
        let acc = product(b, params, &at);
        let [whole, partial] = [Compare::Eq, Compare::Ne].map(|is| b.compare(is, at.block.trips, share.stages, None));
        b.when(whole, Form::Branch, |b| {
            b.block("store", |b| store::store(b, bp, &frame.whole(), params, &at, &acc));
        });
        b.when(partial, Form::Branch, |b| {
            let slices = b.block("slices", |b| share.slices(b, tile, base));
            if let Some(partial) = params.of_slice(b, slices.own).of_partial_sums() {
                b.block("store", |b| store::store(b, bp, &frame.partial(), &partial, &at, &acc));
            }
            let tickets = b.mov(Type::U64, Operand::Tickets);
            b.block("ticket", |b| ticket::finish_tile(b, bp, params, &at, (&slices, tickets)));
        });
        // Nobody reads shared memory any more when the next segment fills it.
        b.barrier();
    });
}

/// A block's part of the stages of all tiles. Stages are numbered tile after tile.
struct Share {
    tid: Reg,
    /// The number of the block.
    me: Reg,
    /// Stages of a tile.
    stages: Reg,
    /// Tiles along the axis on which neighbours lie.
    across: Reg,
    /// Stages of a block; as many of the first blocks as the latter says have one more.
    each: Reg,
    more: Reg,
    /// The block's first stage, and the one after its last.
    begin: Reg,
    end: Reg,
    /// Its first tile, and how many it has a part of.
    first: Reg,
    segments: Reg,
    /// Steps of the first stage of a tile, and how many fewer than others it has; `None` where it is full.
    remainder: Option<[Reg; 2]>,
}

/// What a block has of a tile.
struct Segment {
    block: Block,
    tile: Reg,
    /// The tile's first stage.
    base: Reg,
}

impl Share {
    fn new(b: &mut Builder, frame: &Frame, params: &Params) -> Self {
        let [tid, me, blocks] =
            [Special::Tid, Special::Ctaid(Axis::X), Special::Nctaid(Axis::X)].map(|special| b.special(special));
        let up = |b: &mut Builder, size: Reg, by: u32| {
            let more = b.add(Type::U32, size, by - 1);
            b.div(more, by)
        };
        let [rows, columns] = [(params.m, frame.tile[0]), (params.n, frame.tile[1])].map(|(size, by)| up(b, size, by));
        let across = if frame.raster == Raster::M { rows } else { columns };
        let stages = up(b, params.k, frame.u);
        let remainder = frame.checked().then(|| {
            let full = b.scale(stages, frame.u);
            let missing = b.sub(Type::U32, full, params.k);
            [b.sub(Type::U32, frame.u, missing), missing]
        });
        let tiles = b.arith(Arith::Mul, Type::U32, rows, columns);
        let all = b.arith(Arith::Mul, Type::U32, tiles, stages);
        let each = b.arith(Arith::Div, Type::U32, all, blocks);
        let shared = b.arith(Arith::Mul, Type::U32, each, blocks);
        let more = b.sub(Type::U32, all, shared);
        let begins = |b: &mut Builder, block: Reg| {
            let before = b.arith(Arith::Mul, Type::U32, block, each);
            let extra = b.arith(Arith::Min, Type::U32, block, more);
            b.add(Type::U32, before, extra)
        };
        let begin = begins(b, me);
        let next = b.add(Type::U32, me, 1u32);
        let end = begins(b, next);
        let first = b.arith(Arith::Div, Type::U32, begin, stages);
        let final_stage = b.sub(Type::U32, end, 1u32);
        let last = b.arith(Arith::Div, Type::U32, final_stage, stages);
        let after = b.add(Type::U32, last, 1u32);
        let segments = b.sub(Type::U32, after, first);
        Self { tid, me, stages, across, each, more, begin, end, first, segments, remainder }
    }

    /// The segment of an iteration.
    fn segment(&self, b: &mut Builder, frame: &Frame, it: Iteration) -> Segment {
        let after = b.add(Type::U32, self.first, self.segments);
        let tile = b.sub(Type::U32, after, it.left);
        let base = b.arith(Arith::Mul, Type::U32, tile, self.stages);
        let next = b.add(Type::U32, base, self.stages);
        let from = b.arith(Arith::Max, Type::U32, self.begin, base);
        let to = b.arith(Arith::Min, Type::U32, self.end, next);
        let trips = b.sub(Type::U32, to, from);
        let from = b.sub(Type::U32, from, base);
        let line = b.arith(Arith::Div, Type::U32, tile, self.across);
        let lines = b.arith(Arith::Mul, Type::U32, line, self.across);
        let along = b.sub(Type::U32, tile, lines);
        let [row, column] = if frame.raster == Raster::M { [along, line] } else { [line, along] };
        let (m0, n0) = (b.scale(row, frame.tile[0]), b.scale(column, frame.tile[1]));
        let full = b.scale(from, frame.u);
        // The first stage of a tile has the remainder of the reduction: all that follow it begin so much earlier.
        let (k0, first) = match self.remainder {
            None => (full, None),
            Some([remainder, missing]) => {
                let follows = b.arith(Arith::Min, Type::U32, from, 1u32);
                let earlier = b.arith(Arith::Mul, Type::U32, missing, follows);
                (b.sub(Type::U32, full, earlier), Some(b.add(Type::U32, remainder, earlier)))
            }
        };
        let block = Block { tid: self.tid, m0, n0, slice: None, k0: Some(k0), trips, first };
        Segment { block, tile, base }
    }

    /// The blocks of a tile that begins at a stage, which has more than one: each has a slice of its reduction.
    fn slices(&self, b: &mut Builder, tile: Reg, base: Reg) -> Slices {
        let first = self.owner(b, base);
        let last = b.add(Type::U32, base, self.stages);
        let last = b.sub(Type::U32, last, 1u32);
        let last = self.owner(b, last);
        let own = b.sub(Type::U32, self.me, first);
        let others = b.sub(Type::U32, last, first);
        Slices { tile, own, count: b.add(Type::U32, others, 1u32).into(), ticket: self.me }
    }

    /// The block that has a stage: `max(stage / (each + 1), (stage - more) / each)`. The first is right for blocks that have one more,
    /// and at most right for the others; the second the other way round.
    fn owner(&self, b: &mut Builder, stage: Reg) -> Reg {
        let longer = b.add(Type::U32, self.each, 1u32);
        let early = b.arith(Arith::Div, Type::U32, stage, longer);
        let beyond = b.arith(Arith::Max, Type::U32, stage, self.more);
        let beyond = b.sub(Type::U32, beyond, self.more);
        let late = b.arith(Arith::Div, Type::U32, beyond, self.each);
        b.arith(Arith::Max, Type::U32, early, late)
    }
}
