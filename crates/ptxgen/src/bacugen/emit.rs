//! Skewed tiles in shared memory: how they are filled, and how threads read them.

use super::blueprint::Blueprint;
use crate::gemm::emit::{Position, module_of, reduction};
use crate::gemm::frame::Params;
use crate::gemm::load::Side;
use crate::gemm::source::{Share, Source};
use crate::gemm::{self, Template};
use crate::ir::{Builder, Module, Operand, Reg, Type};
use crate::simt::{Fragments, Loader, Mover, Operands, Slot, Targets};

/// The module of a blueprint.
pub(super) fn module(bp: &Blueprint) -> Module {
    let bp = &bp.product;
    module_of(bp, "gemm_bacugen", |b, params, at| product(b, bp, params, at))
}

/// The sums of a thread's tile.
fn product(b: &mut Builder, bp: &gemm::Blueprint, params: &Params, at: &Position) -> Vec<Reg> {
    let shared = b.mov(Type::U32, Operand::Shared);
    let sides = b.block("addresses", |b| [true, false].map(|is_a| side(b, bp, at, params, is_a, shared)));
    let mut read = b.block("fragments", |b| fragments(b, bp, at, shared));
    reduction(bp, at, shared).sums(b, sides, &mut read)
}

/// How a thread brings in its part of A, or of B.
fn side(b: &mut Builder, bp: &gemm::Blueprint, at: &Position, params: &Params, is_a: bool, shared: Reg) -> Side {
    let loader = if is_a { bp.loader_a } else { bp.loader_b };
    let (frame, block, bytes) = (bp.frame(), (&at.block, params), bp.arithmetic.bytes());
    let share = Share::new(b, &loader, at.block.tid, bp.threads);
    let mut source = Source::new(b, &frame, block, (loader, is_a), &share, true);
    source.steps(b, &frame, block, is_a);
    let (line, within) = if is_a { (share.k, share.row) } else { (share.row, share.k) };
    let target = b.scale_add(within, bytes, shared);
    let target = b.scale_add(line, loader.pitch * bytes, target);
    let target = b.add(Type::U32, target, if is_a { 0 } else { bp.tile_a_bytes });
    let spots = loader.slots().iter().map(|slot| (0, place(&loader, slot, is_a) * bytes)).collect();
    let targets = Targets::new(vec![target], spots);
    let mover = Mover::to(b, (bp.arithmetic, bp.config.load), loader, (share.active, targets), source.is_partial());
    Side::of(source, mover)
}

/// Elements from the place of a thread's first load to that of another one.
fn place(loader: &Loader, slot: &Slot, is_a: bool) -> u32 {
    let row = if loader.along_k { slot.down as u32 * loader.down } else { slot.offset };
    if is_a { slot.step * loader.pitch + row } else { row * loader.pitch + slot.step }
}

/// Where a thread reads its rows of A and columns of B, one by one.
fn fragments(b: &mut Builder, bp: &gemm::Blueprint, at: &Position, shared: Reg) -> Fragments {
    let (config, threads, bytes) = (&bp.config, bp.arrangement, bp.arithmetic.bytes());
    let [pitch_a, pitch_b] = [bp.loader_a.pitch, bp.loader_b.pitch];
    let a = b.scale_add(at.t_m, bytes, shared);
    let rows = (0..config.m_s).map(|i| i * threads.t_m).collect();
    let columns_from = b.scale_add(at.t_n, pitch_b * bytes, shared);
    let columns_from = b.add(Type::U32, columns_from, bp.tile_a_bytes);
    let columns = (0..config.n_s).map(|j| j * threads.t_n * pitch_b).collect();
    let sides = [Operands::new(a, pitch_a, 1, rows), Operands::new(columns_from, 1, 1, columns)];
    Fragments { arithmetic: bp.arithmetic, sides, steps: config.u }
}
