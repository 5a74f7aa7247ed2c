//! The code of one block: tile coordinates, the loop over the reduction, and what is handed to the store of C.

use super::blueprint::Blueprint;
use super::frame::{Block, Params, Template};
use super::load::Side;
use super::straight::{OwnRows, Straight};
use super::{store, stream, ticket};
use crate::ir::{Builder, Entry, Module, Operand, Reg, Type};
use crate::simt::{Fragments, Load, Loader, Operands, Reduction};

/// Where a thread stands.
pub(crate) struct Position {
    pub(crate) block: Block,
    /// Index within the group, and the group; `None` where there is one.
    pub(crate) in_group: Reg,
    pub(crate) group: Option<Reg>,
    /// Which row and column of threads, `None` where there is one.
    pub(crate) t_m: Option<Reg>,
    pub(crate) t_n: Option<Reg>,
}

/// The module of a blueprint.
pub fn module(bp: &Blueprint) -> Module {
    module_of(bp, "gemm", |b, params, at| product(b, bp, params, at))
}

/// The module of a blueprint whose block multiplies as `product` says, which leaves the sums of a thread's tile. Its entry is called
/// by the family of kernels, the type and the layout.
pub(crate) fn module_of(
    bp: &Blueprint,
    family: &str,
    product: impl FnOnce(&mut Builder, &Params, &Position) -> Vec<Reg>,
) -> Module {
    let mut b = Builder::new();
    let letter = |transposed: bool, conjugated: bool| match (transposed, conjugated) {
        (false, _) => 'n',
        (true, false) => 't',
        (true, true) => 'c',
    };
    let [conj_a, conj_b] = bp.arithmetic.conjugates;
    let (a_letter, b_letter) = (letter(bp.a_transposed, conj_a), letter(bp.b_transposed, conj_b));
    let name = format!("{family}_{}_{a_letter}{b_letter}", bp.arithmetic.dtype);
    let mut params = b.block("parameters", |b| bp.frame().params(b));
    let frame = bp.frame();
    if frame.streams() {
        stream::segments(&mut b, bp, &params, product);
    } else {
        let at = b.block("position", |b| position(b, bp, &mut params));
        let acc = product(&mut b, &params, &at);
        match params.of_partial_sums() {
            Some(partial) => {
                b.block("store", |b| store::store(b, bp, &frame.partial(), &partial, &at, &acc));
                b.block("ticket", |b| ticket::finish(b, bp, &params, &at));
            }
            None => {
                frame.release(&mut b);
                b.block("store", |b| store::store(b, bp, &frame, &params, &at, &acc));
            }
        }
    }
    let entry = Entry {
        tickets: if frame.takes_tickets() { ticket::TILES } else { 0 },
        max_registers: Some(bp.registers_allowed()),
        shared_bytes: bp.shared_bytes,
        dynamic_shared: bp.dynamic_shared(),
        ..b.finish(&name, bp.threads)
    };
    Module { target: bp.target, entry }
}

fn position(b: &mut Builder, bp: &Blueprint, params: &mut Params) -> Position {
    let frame = bp.frame();
    let corner = frame.corner(b);
    let place = Place::new(b, bp, corner[0]);
    let block = frame.block(b, params, corner);
    place.within(block)
}

/// Where a thread stands within its block.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    in_group: Reg,
    group: Option<Reg>,
    t_m: Option<Reg>,
    t_n: Option<Reg>,
}

impl Place {
    pub(crate) fn new(b: &mut Builder, bp: &Blueprint, tid: Reg) -> Self {
        let tiles = bp.arrangement;
        let (group, in_group) = match bp.config.k_l {
            1 => (None, tid),
            _ => (Some(b.div(tid, tiles.group())), b.rem(tid, tiles.group()).unwrap_or(tid)),
        };
        let (t_m, t_n) = tiles.place(b, in_group);
        Self { in_group, group, t_m, t_n }
    }

    /// In a block that stands somewhere.
    pub(crate) fn within(self, block: Block) -> Position {
        let Self { in_group, group, t_m, t_n } = self;
        Position { block, in_group, group, t_m, t_n }
    }
}

/// The sums of a thread's tile over the block's slice, in column-major order.
fn product(b: &mut Builder, bp: &Blueprint, params: &Params, at: &Position) -> Vec<Reg> {
    let shared = b.mov(Type::U32, Operand::Shared);
    let reduction = reduction(bp, at, shared);
    if bp.config.load == Load::Straight {
        let side = b.block("addresses", |b| Side::new(b, bp, at, params, false, shared));
        let columns = b.block("fragments", |b| columns(b, bp, at, shared));
        let rows = b.block("rows", |b| OwnRows::new(b, bp, at, params));
        return reduction.sums(b, [side], &mut Straight { rows, columns });
    }
    let sides = b.block("addresses", |b| [true, false].map(|is_a| Side::new(b, bp, at, params, is_a, shared)));
    let mut read = b.block("fragments", |b| Fragments {
        arithmetic: bp.arithmetic,
        sides: [rows(b, bp, at, shared), columns(b, bp, at, shared)],
        steps: bp.config.u / bp.config.k_l,
    });
    reduction.sums(b, sides, &mut read)
}

/// The loop over the stages of a block, whose shared memory begins at an address.
pub(crate) fn reduction(bp: &Blueprint, at: &Position, shared: Reg) -> Reduction {
    let config = &bp.config;
    Reduction {
        arithmetic: bp.arithmetic,
        load: config.load,
        stages: config.stages,
        step: bp.stage_bytes,
        trips: at.block.trips,
        tile: (config.m_s * config.n_s) as usize * bp.arithmetic.parts(),
        sets: config.k_s,
        group: bp.arrangement.group(),
        groups: config.k_l,
        in_group: at.in_group,
        my_group: at.group,
        shared,
    }
}

/// Where a thread reads its rows of A in shared memory.
fn rows(b: &mut Builder, bp: &Blueprint, at: &Position, shared: Reg) -> Operands {
    let tiles = bp.arrangement;
    let place = |i| tiles.row(i);
    operands(b, bp, (at.group, shared), (at.t_m, bp.config.m_s, tiles.chunk_m), (&bp.loader_a, &place))
}

/// Where a thread reads its columns of B in shared memory.
fn columns(b: &mut Builder, bp: &Blueprint, at: &Position, shared: Reg) -> Operands {
    let tiles = bp.arrangement;
    let shared = b.add(Type::U32, shared, bp.tile_a_bytes);
    let place = |j| tiles.column(j);
    operands(b, bp, (at.group, shared), (at.t_n, bp.config.n_s, tiles.chunk_n), (&bp.loader_b, &place))
}

/// Where a thread, by its place along an edge of the block, reads so many elements of a tile, of which `chunk` are neighbours; `place`
/// is how far one lies from the first.
fn operands(
    b: &mut Builder,
    bp: &Blueprint,
    (group, tile): (Option<Reg>, Reg),
    (t, count, chunk): (Option<Reg>, u32, u32),
    (loader, place): (&Loader, &dyn Fn(u32) -> u32),
) -> Operands {
    let (pitch, bytes, share) = (loader.pitch, bp.arithmetic.bytes(), bp.config.u / bp.config.k_l);
    // From thread to thread, and from step to step.
    let (thread, step) = if loader.rows.is_some() { (pitch, 1) } else { (chunk, pitch) };
    let base = b.scale_add(t, thread * bytes, tile);
    let base = match group {
        Some(group) => b.scale_add(Some(group), share * step * bytes, base),
        None => base,
    };
    match loader.rows {
        Some(rows) => Operands::deep(base, pitch, (0..count).map(|i| rows.place(place(i))).collect()),
        None => Operands::new(base, pitch, chunk, (0..count / chunk).map(|i| place(i * chunk)).collect()),
    }
}
