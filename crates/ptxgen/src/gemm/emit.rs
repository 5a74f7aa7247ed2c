//! The code of one block: tile coordinates, the loop over the reduction, and what is handed to the store of C.

use super::blueprint::Blueprint;
use super::config::{Raster, Split};
use super::load::Side;
use super::store;
use crate::ir::{Arith, Axis, Builder, Entry, Module, Operand, Reg, Special, Type};
use crate::simt::{Fragments, Operands, Reduction};
use tilewright_ops::gemm::ScalarClass;

/// Registers that hold the parameters.
pub(crate) struct Params {
    pub(crate) a: Reg,
    pub(crate) b: Reg,
    pub(crate) c: Reg,
    pub(crate) m: Reg,
    pub(crate) n: Reg,
    pub(crate) k: Reg,
    pub(crate) lda: Reg,
    pub(crate) ldb: Reg,
    pub(crate) ldc: Reg,
    pub(crate) alpha: Reg,
    pub(crate) beta: Reg,
    /// Steps of a slice of the reduction.
    slice: Option<Reg>,
    /// Bytes from one product of a batch to the next, of A, B and C.
    strides: Option<[Reg; 3]>,
    /// Bytes of the partial sums of one slice.
    slab: Option<Reg>,
}

/// Where a thread stands.
pub(crate) struct Position {
    /// Index of the thread.
    pub(crate) tid: Reg,
    /// Index within the group, and the group; `None` where there is one.
    pub(crate) in_group: Reg,
    pub(crate) group: Option<Reg>,
    /// Which row and column of threads, `None` where there is one.
    pub(crate) t_m: Option<Reg>,
    pub(crate) t_n: Option<Reg>,
    /// First row and column of the block's tile.
    pub(crate) m0: Reg,
    pub(crate) n0: Reg,
    /// First step of the slice; `None` for the first.
    pub(crate) k0: Option<Reg>,
    /// Stages of the slice, at least one.
    pub(crate) trips: Reg,
    /// Steps of the first stage: the remainder comes first, so that all others are full. `None` where it is full too.
    pub(crate) first: Option<Reg>,
}

/// The module of a blueprint.
pub fn module(bp: &Blueprint) -> Module {
    let mut b = Builder::new();
    let (a_letter, b_letter) = (if bp.a_transposed { 't' } else { 'n' }, if bp.b_transposed { 't' } else { 'n' });
    let name = format!("gemm_{}_{a_letter}{b_letter}", bp.arithmetic.dtype);
    let mut params = b.block("parameters", |b| params(b, bp));
    let at = b.block("position", |b| position(b, bp, &mut params));
    let acc = product(&mut b, bp, &params, &at);
    b.block("store", |b| store::store(b, bp, &params, &at, &acc));
    let entry = Entry {
        max_registers: Some(bp.registers_allowed()),
        shared_bytes: bp.shared_bytes,
        dynamic_shared: bp.dynamic_shared(),
        ..b.finish(&name, bp.threads)
    };
    Module { target: bp.target, entry }
}

fn params(b: &mut Builder, bp: &Blueprint) -> Params {
    let (config, ty, bytes) = (&bp.config, bp.arithmetic.ty, bp.arithmetic.bytes());
    let (vec_a, vec_b, vec_c) = (config.vec_a, config.vec_b, config.vec_c);
    // A size that vectors lie along is a multiple of them; both may lie along k.
    let along_k = |yes: bool, vec: u32| if yes { vec } else { 1 };
    let k = along_k(bp.a_transposed, vec_a).max(along_k(!bp.b_transposed, vec_b));
    let partial = config.k_g > 1 && config.split == Split::Ordered;
    Params {
        a: b.buffer("a", vec_a * bytes),
        b: b.buffer("b", vec_b * bytes),
        c: b.buffer("c", vec_c * bytes),
        m: b.param("m", Type::U32, 1),
        n: b.param("n", Type::U32, 1),
        k: b.param("k", Type::U32, k),
        lda: b.param("lda", Type::U32, vec_a),
        ldb: b.param("ldb", Type::U32, vec_b),
        ldc: b.param("ldc", Type::U32, vec_c),
        alpha: b.param("alpha", ty, 1),
        beta: b.param("beta", ty, 1),
        slice: (config.k_g > 1).then(|| b.param("slice", Type::U32, 1 << config.u.trailing_zeros())),
        strides: bp.batched.then(|| {
            [("stride_a", vec_a), ("stride_b", vec_b), ("stride_c", vec_c)]
                .map(|(name, vec)| b.param(name, Type::U64, vec * bytes))
        }),
        slab: partial.then(|| b.param("slab", Type::U64, vec_c * bytes)),
    }
}

fn position(b: &mut Builder, bp: &Blueprint, params: &mut Params) -> Position {
    let (config, tiles) = (&bp.config, bp.arrangement());
    let tid = b.special(Special::Tid);
    let (axis_m, axis_n) = if config.raster == Raster::M { (Axis::X, Axis::Y) } else { (Axis::Y, Axis::X) };
    let (block_m, block_n) = (b.special(Special::Ctaid(axis_m)), b.special(Special::Ctaid(axis_n)));
    let (m0, n0) = (b.scale(block_m, config.m_l), b.scale(block_n, config.n_l));
    let (group, in_group) = match config.k_l {
        1 => (None, tid),
        _ => (Some(b.div(tid, tiles.group())), b.rem(tid, tiles.group()).unwrap_or(tid)),
    };
    let (t_m, t_n) = tiles.place(b, in_group);
    let k0 = slices(b, bp, params);
    let (trips, first) = stages(b, bp, params, k0);
    Position { tid, in_group, group, t_m, t_n, m0, n0, k0, trips, first }
}

/// Moves operands to the block's product of the batch and its slice of the reduction; returns the slice's first step.
fn slices(b: &mut Builder, bp: &Blueprint, params: &mut Params) -> Option<Reg> {
    let k_g = bp.config.k_g;
    if k_g == 1 && !bp.batched {
        return None;
    }
    let z = b.special(Special::Ctaid(Axis::Z));
    if let Some([a, bb, c]) = params.strides {
        let batch = b.div(z, k_g);
        let mut advance = |base: Reg, stride: Reg| {
            let batch = b.widen(batch);
            let offset = b.arith(Arith::Mul, Type::U64, batch, stride);
            b.add(Type::U64, base, offset)
        };
        (params.a, params.b) = (advance(params.a, a), advance(params.b, bb));
        if params.slab.is_none() {
            params.c = advance(params.c, c);
        }
    }
    if let Some(slab) = params.slab {
        // Partial sums lie slice after slice, product after product.
        let z = b.widen(z);
        let offset = b.arith(Arith::Mul, Type::U64, z, slab);
        params.c = b.add(Type::U64, params.c, offset);
    }
    let slice = params.slice?;
    let index = if bp.batched { b.rem(z, k_g).unwrap_or(z) } else { z };
    Some(b.arith(Arith::Mul, Type::U32, index, slice))
}

/// Number of stages of the slice, and steps of the first one.
fn stages(b: &mut Builder, bp: &Blueprint, params: &Params, k0: Option<Reg>) -> (Reg, Option<Reg>) {
    let u = bp.config.u;
    let len = match (k0, params.slice) {
        (Some(k0), Some(slice)) => {
            let rest = b.sub(Type::U32, params.k, k0);
            b.arith(Arith::Min, Type::U32, rest, slice)
        }
        _ => params.k,
    };
    if !bp.checked() {
        return (b.div(len, u), None);
    }
    let more = b.add(Type::U32, len, u - 1);
    let trips = b.div(more, u);
    let full = b.scale(trips, u);
    let above = b.add(Type::U32, len, u);
    (trips, Some(b.sub(Type::U32, above, full)))
}

/// The sums of a thread's tile over the block's slice, in column-major order.
fn product(b: &mut Builder, bp: &Blueprint, params: &Params, at: &Position) -> Vec<Reg> {
    let (config, tiles) = (&bp.config, bp.arrangement());
    let shared = b.mov(Type::U32, Operand::Shared);
    let sides = b.block("addresses", |b| [true, false].map(|is_a| Side::new(b, bp, at, params, is_a, shared)));
    let read = b.block("fragments", |b| fragments(b, bp, at, shared));
    let reduction = Reduction {
        arithmetic: bp.arithmetic,
        load: config.load,
        stages: config.stages,
        step: bp.stage_bytes,
        trips: at.trips,
        tile: (config.m_s * config.n_s) as usize,
        sets: config.k_s,
        group: tiles.group(),
        groups: config.k_l,
        in_group: at.in_group,
        my_group: at.group,
        shared,
    };
    reduction.sums(b, sides, &read)
}

/// Where a thread reads its rows of A and columns of B in shared memory.
fn fragments(b: &mut Builder, bp: &Blueprint, at: &Position, shared: Reg) -> Fragments {
    let (config, tiles, bytes) = (&bp.config, bp.arrangement(), bp.arithmetic.bytes());
    let share = config.u / config.k_l;
    let mut side = |t: Option<Reg>, (count, chunk, apart): (u32, u32, u32), pitch: u32, offset: u32| {
        let base = b.scale_add(t, chunk * bytes, shared);
        let base = match at.group {
            Some(group) => b.scale_add(Some(group), share * pitch * bytes, base),
            None => base,
        };
        let base = b.add(Type::U32, base, offset);
        Operands::new(base, pitch, chunk, (0..count / chunk).map(|i| i * chunk * apart).collect())
    };
    let a = side(at.t_m, (config.m_s, tiles.chunk_m, tiles.t_m), bp.loader_a.pitch, 0);
    let bb = side(at.t_n, (config.n_s, tiles.chunk_n, tiles.t_n), bp.loader_b.pitch, bp.tile_a_bytes);
    Fragments { arithmetic: bp.arithmetic, sides: [a, bb], steps: share }
}

/// Whether the store of C reads it.
pub(crate) fn reads_c(bp: &Blueprint) -> bool {
    bp.config.k_g == 1 && bp.beta != ScalarClass::Zero
}
