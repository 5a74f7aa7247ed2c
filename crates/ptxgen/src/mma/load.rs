//! From device memory to shared memory: rows of the tile are rows as they lie in device memory, with their pieces permuted.

use super::blueprint::Blueprint;
use super::emit::Position;
use super::tile::{First, Places};
use crate::gemm::frame::Params;
use crate::gemm::load::Side;
use crate::gemm::source::{Share, Source};
use crate::ir::{Builder, Reg, Type};
use crate::simt::{Loader, Mover, Targets};

/// How a thread brings in its part of A, or of B.
pub(super) fn side(b: &mut Builder, bp: &Blueprint, at: &Position, params: &Params, is_a: bool, shared: Reg) -> Side {
    let loader = bp.loaders[usize::from(!is_a)];
    let (frame, block) = (bp.frame, (&at.block, params));
    let share = Share::new(b, &loader, at.block.tid, bp.threads);
    let mut source = Source::new(b, &frame, block, (loader, is_a), &share, !bp.is_async());
    source.steps(b, &frame, block, is_a);
    let targets = targets(b, bp, &loader, is_a, (&share, shared));
    let numbers = (bp.frame.arithmetic, bp.config.load);
    let mover = Mover::to(b, numbers, loader, (share.active, targets), source.is_partial());
    Side::of(source, mover)
}

/// Where a thread puts its loads.
fn targets(b: &mut Builder, bp: &Blueprint, loader: &Loader, is_a: bool, (share, shared): (&Share, Reg)) -> Targets {
    let (tile, bytes) = (bp.tile(is_a), bp.frame.arithmetic.bytes());
    let (row, along) = if loader.along_k { (share.row, share.k) } else { (share.k, share.row) };
    let elements = tile.grain / bytes;
    let piece = along.filter(|_| loader.along * loader.vec > elements).map(|along| b.div(along, elements));
    // By threads and not by elements, so that a bound follows that is exact.
    let within = along.filter(|_| loader.vec < elements).and_then(|along| {
        let thread = b.div(along, loader.vec);
        b.rem(thread, elements / loader.vec)
    });
    let within = within.map(|within| b.scale(within, loader.vec * bytes));
    let base = b.add(Type::U32, shared, if is_a { 0 } else { bp.tile_a_bytes });
    // Threads side by side fill a power of two of pieces, and further passes begin at multiples of it.
    let mut places = Places::new(b, tile, base, First { row, piece, within }, tile.pitch / tile.grain);
    let slots = loader.slots();
    let spots = slots.iter().map(|slot| {
        let along = (slot.number as u32 % loader.passes_along) * loader.along * loader.vec;
        let rows = slot.down as u32 * loader.down;
        places.at(b, rows, along / elements)
    });
    let spots = spots.collect();
    Targets::new(places.registers(), spots)
}
