//! The code of one block: tile coordinates, the loop over the reduction, and what is handed to the store of C.

use super::blueprint::{Arrangement, Blueprint};
use super::config::{Load, Raster, Split};
use super::load::Side;
use super::{store, tree};
use crate::ir::{Arith, Axis, Builder, Compare, Entry, Index, Inst, Module, Operand, Reg, Space, Special, Sym, Type};
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
    let (t_m, t_n) = thread_tile(b, &tiles, in_group);
    let k0 = slices(b, bp, params);
    let (trips, first) = stages(b, bp, params, k0);
    Position { tid, in_group, group, t_m, t_n, m0, n0, k0, trips, first }
}

/// Row and column of threads of a thread.
fn thread_tile(b: &mut Builder, tiles: &Arrangement, t: Reg) -> (Option<Reg>, Option<Reg>) {
    let Some(warp_m) = tiles.warp_m else {
        return (b.rem(t, tiles.t_m), (tiles.t_n > 1).then(|| b.div(t, tiles.t_m)));
    };
    let warps_m = tiles.t_m / warp_m;
    let lane = if tiles.group() == 32 { t } else { b.rem(t, 32).unwrap_or(t) };
    let warp = (tiles.group() > 32).then(|| b.div(t, 32));
    let lane_m = b.rem(lane, warp_m);
    let lane_n = (warp_m < 32).then(|| b.div(lane, warp_m));
    let across = warp.and_then(|w| b.rem(w, warps_m));
    let down = warp.filter(|_| tiles.t_n > 32 / warp_m).map(|w| b.div(w, warps_m));
    let join = |b: &mut Builder, warp: Option<Reg>, by: u32, lane: Option<Reg>| match (warp, lane) {
        (None, lane) => lane,
        (warp, Some(lane)) => Some(b.scale_add(warp, by, lane)),
        (warp, None) => Some(b.scale_add(warp, by, 0u32)),
    };
    (join(b, across, warp_m, lane_m), join(b, down, 32 / warp_m, lane_n))
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
    let config = &bp.config;
    let shared = b.mov(Type::U32, Operand::Shared);
    let sides = b.block("addresses", |b| [true, false].map(|is_a| Side::new(b, bp, at, params, is_a, shared)));
    let read = b.block("fragments", |b| Fragments::new(b, bp, at, shared));
    let tile = (config.m_s * config.n_s) as usize;
    let acc: Vec<Reg> = (0..tile * config.k_s as usize).map(|_| bp.arithmetic.zero(b)).collect();
    match (config.load, config.stages) {
        (Load::Async, _) => asynchronous(b, bp, at, sides, &read, &acc),
        (_, 1) => single(b, bp, at, sides, &read, &acc),
        _ => double(b, bp, at, sides, &read, &acc),
    }
    let mut sums = acc[..tile].to_vec();
    for set in acc[tile..].chunks(tile) {
        sums = sums.iter().zip(set).map(|(x, y)| bp.arithmetic.add(b, *x, *y)).collect();
    }
    if config.k_l > 1 {
        sums = b.block("tree", |b| tree::tree(b, bp, at, shared, &sums));
    }
    sums
}

/// One stage in shared memory; the next waits in registers.
fn single(b: &mut Builder, bp: &Blueprint, at: &Position, mut sides: [Side; 2], read: &Fragments, acc: &[Reg]) {
    b.block("first stage", |b| sides.iter_mut().for_each(|side| side.load_first(b, bp)));
    sides.iter_mut().for_each(|side| side.carry(b));
    b.repeat("k", at.trips, |b, it| {
        sides.iter().for_each(|side| side.put(b, bp, None));
        b.barrier();
        sides.iter().for_each(|side| side.load_next(b, bp, it.left, 1));
        read.compute(b, bp, None, acc);
        b.barrier();
    });
}

/// Two stages in shared memory, filled through registers: one barrier a stage.
fn double(b: &mut Builder, bp: &Blueprint, at: &Position, mut sides: [Side; 2], read: &Fragments, acc: &[Reg]) {
    let step = bp.stage_bytes;
    b.block("first stage", |b| {
        sides.iter_mut().for_each(|side| side.load_first(b, bp));
        sides.iter().for_each(|side| side.put(b, bp, None));
        b.barrier();
    });
    sides.iter_mut().for_each(|side| side.carry(b));
    let current = b.carried(Type::U32, 0u32, Sym::Turn { count: 2, step }.into());
    b.repeat("k", at.trips, |b, it| {
        sides.iter().for_each(|side| side.load_next(b, bp, it.left, 1));
        read.compute(b, bp, Some(current), acc);
        let (a, op) = (step.into(), Arith::Sub);
        b.push(Inst::Arith { op, ty: Type::U32, dst: current, a, b: current.into() });
        sides.iter().for_each(|side| side.put(b, bp, Some(current)));
        b.barrier();
    });
}

/// Several stages in shared memory, copied asynchronously: one barrier a stage.
fn asynchronous(b: &mut Builder, bp: &Blueprint, at: &Position, mut sides: [Side; 2], read: &Fragments, acc: &[Reg]) {
    let (stages, step) = (bp.config.stages, bp.stage_bytes);
    b.block("first stages", |b| {
        sides.iter_mut().for_each(|side| side.copy_first(b, bp));
        b.push(Inst::CpAsyncCommit);
        for stage in 1..stages - 1 {
            for side in &mut sides {
                side.copy_next(b, bp, (at.trips, stage), (stage * step).into());
                side.leave(b);
            }
            b.push(Inst::CpAsyncCommit);
        }
    });
    sides.iter_mut().for_each(|side| side.carry(b));
    let turn: Index = Sym::Turn { count: stages, step }.into();
    let current = b.carried(Type::U32, 0u32, turn.clone());
    let free = b.carried(Type::U32, (stages - 1) * step, turn);
    b.repeat("k", at.trips, |b, it| {
        b.push(Inst::CpAsyncWait { pending: stages - 2 });
        // Everybody's copies have arrived, and everybody has left the stage that is filled next.
        b.barrier();
        for side in &sides {
            side.copy_next(b, bp, (it.left, stages - 1), free.into());
            side.advance(b);
        }
        b.push(Inst::CpAsyncCommit);
        read.compute(b, bp, Some(current), acc);
        b.push(Inst::Mov { ty: Type::U32, dst: free, src: current.into() });
        rotate(b, current, stages, step);
    });
    if bp.config.k_l > 1 {
        b.barrier();
    }
}

/// Goes on to the next of several stages.
fn rotate(b: &mut Builder, current: Reg, stages: u32, step: u32) {
    if stages == 2 {
        let (a, op) = (step.into(), Arith::Sub);
        b.push(Inst::Arith { op, ty: Type::U32, dst: current, a, b: current.into() });
        return;
    }
    let next = b.arith(Arith::Add, Type::U32, current, step);
    let wraps = b.compare(Compare::Eq, next, stages * step, None);
    b.push(Inst::Selp { ty: Type::U32, dst: current, a: 0u32.into(), b: next.into(), pred: wraps });
}

/// Where a thread reads its rows of A and columns of B in shared memory.
struct Fragments {
    a: Reg,
    b: Reg,
}

impl Fragments {
    fn new(b: &mut Builder, bp: &Blueprint, at: &Position, shared: Reg) -> Self {
        let (tiles, bytes) = (bp.arrangement(), bp.arithmetic.bytes());
        let share = bp.config.u / bp.config.k_l;
        let mut side = |t: Option<Reg>, chunk: u32, pitch: u32, offset: u32| {
            let base = b.scale_add(t, chunk * bytes, shared);
            let base = match at.group {
                Some(group) => b.scale_add(Some(group), share * pitch * bytes, base),
                None => base,
            };
            b.add(Type::U32, base, offset)
        };
        let a = side(at.t_m, tiles.chunk_m, bp.loader_a.pitch, 0);
        let bb = side(at.t_n, tiles.chunk_n, bp.loader_b.pitch, bp.tile_a_bytes);
        Self { a, b: bb }
    }

    /// Multiplies and adds a stage, the operands of a step loaded one step ahead.
    fn compute(&self, b: &mut Builder, bp: &Blueprint, turn: Option<Reg>, acc: &[Reg]) {
        let (config, tiles) = (&bp.config, bp.arrangement());
        let shift = |b: &mut Builder, base: Reg| turn.map_or(base, |t| b.add(Type::U32, base, t));
        let (a, bb) = (shift(b, self.a), shift(b, self.b));
        let (pitch_a, pitch_b) = (bp.loader_a.pitch, bp.loader_b.pitch);
        let fetch = |b: &mut Builder, step: u32| {
            let x = fragment(b, bp, a, step * pitch_a, (config.m_s, tiles.chunk_m, tiles.t_m));
            let y = fragment(b, bp, bb, step * pitch_b, (config.n_s, tiles.chunk_n, tiles.t_n));
            (x, y)
        };
        let tile = (config.m_s * config.n_s) as usize;
        let steps = config.u / config.k_l;
        let mut next = fetch(b, 0);
        for step in 0..steps {
            let (x, y) = next;
            next = if step + 1 < steps { fetch(b, step + 1) } else { Default::default() };
            let set = &acc[(step % config.k_s) as usize * tile..][..tile];
            for (column, y) in set.chunks(config.m_s as usize).zip(&y) {
                for (acc, x) in column.iter().zip(&x) {
                    bp.arithmetic.multiply_add(b, *acc, *x, *y);
                }
            }
        }
    }
}

/// One step's elements of a thread.
fn fragment(
    b: &mut Builder,
    bp: &Blueprint,
    base: Reg,
    start: u32,
    (count, chunk, apart): (u32, u32, u32),
) -> Vec<Reg> {
    let (ty, bytes) = (bp.arithmetic.ty, bp.arithmetic.bytes());
    let load = |i: u32| b.load(Space::Shared, ty, chunk as usize, base, i64::from((start + i * chunk * apart) * bytes));
    (0..count / chunk).flat_map(load).collect()
}

/// Whether the store of C reads it.
pub(crate) fn reads_c(bp: &Blueprint) -> bool {
    bp.config.k_g == 1 && bp.beta != ScalarClass::Zero
}
