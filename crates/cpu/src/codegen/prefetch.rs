//! What a tile prefetches while it is computed.

use super::abi::at;
use super::emitter::{Emitter, LINE, mem, mem_index};
use super::tile::{AHEAD, ARGS, C, FAR, NEXT, S, SCRATCH, Tile, TileStore, V, WALK};
use iced_x86::Register;

/// The operand whose next panel is prefetched, from the caller's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Next {
    #[default]
    None,
    /// The panel of `v`, on and on over all tiles of the panel that stays.
    V(March),
    /// The same steps of k as those being computed.
    S,
}

/// A prefetch that goes on from tile to tile: spread over many, the misses fit the processor's miss buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct March {
    /// Steps of k per turn of the loop.
    pub(crate) columns: u32,
    /// Bytes between them.
    pub(crate) stride: i32,
    /// Cache lines of each.
    pub(crate) lines: u32,
}

/// A prefetch of memory that is packed later, into the second-level cache. It is spread evenly over the turns of the loop over k:
/// misses that come all at once take the miss buffers from the loads of the tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Walk {
    /// Places that a turn prefetches, and bytes between them.
    pub(crate) strips: u32,
    pub(crate) stride: i32,
    /// Cache lines of each.
    pub(crate) lines: u32,
    /// Bytes from turn to turn, and from the first turn of a tile to that of the next.
    pub(crate) turn: i32,
    pub(crate) tile: i32,
}

/// What is prefetched while a tile is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct TilePrefetch {
    /// `v` this many k-steps further in the same panel.
    pub(crate) v_steps: u32,
    /// The same steps of the panel that stays next.
    pub(crate) next: Next,
    /// The next block of k of the operand that streams past the panel that stays, from the caller's memory.
    pub(crate) far: Option<March>,
    /// What is packed later, from the caller's memory.
    pub(crate) walk: Option<Walk>,
    /// Broadcast operand contiguous along k: this many bytes further in each of its rows.
    pub(crate) s_bytes: u32,
    /// The C tile, at the start.
    pub(crate) c: bool,
}

impl Tile {
    pub(super) fn emit_prefetch_c(&self, e: &mut Emitter) {
        let es = self.vector.float.bytes() as i64;
        let (rows, stride, run) = match self.store {
            TileStore::Along { s_stride } => {
                let lanes = self.vecs * self.vector.lanes();
                (self.outs(), s_stride, lanes as i64 * es)
            }
            TileStore::Rounded { s_stride } => {
                let lanes = self.vecs * self.vector.lanes();
                (self.outs(), s_stride, lanes as i64 * es / 2)
            }
            TileStore::Across { v_stride } => {
                let rows = self.vecs * self.vector.lanes();
                (if self.tail == 0 { rows } else { 0 }, v_stride, self.s as i64 * es)
            }
        };
        for row in 0..rows as i64 {
            let mut byte = 0;
            while byte < run {
                e.prefetch_write(mem(C, row * i64::from(stride) + byte));
                byte += LINE;
            }
        }
    }

    pub(super) fn emit_prefetch_step(&self, e: &mut Emitter, kk: usize) {
        let p = self.prefetch;
        let v_at = kk as i64 * i64::from(self.v_k);
        let v_bytes = (self.vecs * self.vector.width.bytes()) as i64;
        if p.v_steps != 0 {
            for byte in (0..v_bytes).step_by(LINE as usize) {
                e.prefetch(mem(V, v_at + i64::from(p.v_steps) * i64::from(self.v_k) + byte));
            }
        }
        let es = self.vector.float.bytes() as i64;
        let rows_along_k = i64::from(self.s_k) == self.element() as i64;
        if p.next == Next::S && !rows_along_k {
            for byte in (0..self.s as i64 * es).step_by(LINE as usize) {
                e.prefetch(mem_index(S, AHEAD, kk as i64 * i64::from(self.s_k) + byte));
            }
        }
        if kk != 0 {
            return;
        }
        if let Next::V(march) = p.next {
            emit_march(e, march, NEXT, at::NEXT_LAST);
        }
        if let Some(march) = p.far {
            emit_march(e, march, FAR, at::FAR_LAST);
        }
        if let Some(walk) = p.walk {
            emit_walk(e, walk);
        }
        for j in 0..self.outs() as i64 {
            let row = j * i64::from(self.s_s);
            if p.next == Next::S && rows_along_k {
                e.prefetch(mem_index(S, AHEAD, row));
            }
            if p.s_bytes != 0 {
                e.prefetch(mem(S, row + i64::from(p.s_bytes)));
            }
        }
    }
}

/// Prefetches one turn's share and moves on.
fn emit_walk(e: &mut Emitter, walk: Walk) {
    for strip in 0..i64::from(walk.strips) {
        for line in 0..i64::from(walk.lines) {
            e.prefetch_l2(mem(WALK, strip * i64::from(walk.stride) + line * LINE));
        }
    }
    e.add_imm(WALK, walk.turn);
}

/// Prefetches one turn's share and moves on, not beyond the last step of k.
fn emit_march(e: &mut Emitter, march: March, pointer: Register, last: i64) {
    let stride = i64::from(march.stride);
    for column in 0..i64::from(march.columns) {
        for line in 0..i64::from(march.lines) {
            e.prefetch(mem(pointer, column * stride + line * LINE));
        }
    }
    e.advance_within(pointer, SCRATCH, i64::from(march.columns) * stride, mem(ARGS, last));
}
