//! From device memory to shared memory, rows of the tile being steps of the reduction.

use super::blueprint::Blueprint;
use super::emit::Position;
use super::frame::{Params, Template};
use super::source::{Share, Source};
use crate::ir::{Builder, Operand, Reg, Type};
use crate::simt::{self, Mover};

/// How a thread brings in its part of one operand's tiles.
pub(crate) struct Side {
    source: Source,
    mover: Mover,
}

impl Side {
    /// Of A, or of B.
    pub(crate) fn new(
        b: &mut Builder,
        bp: &Blueprint,
        at: &Position,
        params: &Params,
        is_a: bool,
        shared: Reg,
    ) -> Self {
        let loader = if is_a { bp.loader_a } else { bp.loader_b };
        let (frame, block, bytes) = (bp.frame(), (&at.block, params), bp.arithmetic.bytes());
        let share = Share::new(b, &loader, at.block.tid, bp.threads);
        let mut source = Source::new(b, &frame, block, (loader, is_a), &share, !bp.is_async());
        let target = loader.place(b, (share.row, share.k), bytes, shared);
        let target = b.add(Type::U32, target, if is_a { 0 } else { bp.tile_a_bytes });
        source.steps(b, &frame, block, is_a);
        let place = (share.active, target);
        let mover = Mover::new(b, (bp.arithmetic, bp.config.load), loader, place, source.is_partial());
        Self { source, mover }
    }

    /// Of a source, and what moves its loads to their places.
    pub(crate) fn of(source: Source, mover: Mover) -> Self {
        Self { source, mover }
    }
}

impl simt::Side for Side {
    fn load_first(&mut self, b: &mut Builder) {
        self.source.walk(b, |b, slot, from| {
            let pred = self.source.in_first(b, slot);
            self.mover.load(b, slot, from, pred);
        });
        self.source.leave_first(b);
    }

    fn copy_first(&mut self, b: &mut Builder) {
        self.source.walk(b, |b, slot, from| {
            let happens = (self.mover.active, self.source.in_first(b, slot));
            self.mover.copy(b, slot, from, happens, &self.mover.first());
        });
        self.source.leave_first(b);
    }

    fn leave(&mut self, b: &mut Builder) {
        self.source.leave(b);
    }

    fn carry(&mut self, b: &mut Builder) {
        self.source.carry(b);
    }

    fn advance(&self, b: &mut Builder) {
        self.source.advance(b);
    }

    fn load_next(&self, b: &mut Builder, left: Reg, ahead: u32) {
        let edges = &self.source.edges;
        let mut preds = vec![None; edges.len()];
        self.source.walk(b, |b, slot, from| {
            let pred = *preds[slot.edge].get_or_insert_with(|| b.exceeds(left, ahead, edges[slot.edge]));
            self.mover.load(b, slot, from, Some(pred));
        });
        self.source.advance(b);
    }

    fn copy_next(&self, b: &mut Builder, (left, ahead): (Reg, u32), to: Operand) {
        let more = b.exceeds(left, ahead, self.mover.active);
        let to = self.mover.stage(b, to);
        self.source.walk(b, |b, slot, from| {
            let happens = (Some(more), self.source.edges[slot.edge]);
            self.mover.copy(b, slot, from, happens, &to);
        });
    }

    fn put(&self, b: &mut Builder, turn: Option<Reg>) {
        self.mover.put(b, turn);
    }
}
