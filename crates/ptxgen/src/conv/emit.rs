//! The code of one block: coordinates, and what the loop over stages is given.

use super::blueprint::Blueprint;
use super::gather::Side;
use super::store;
use crate::ir::{Arith, Axis, Builder, Entry, Module, Operand, Reg, Special, Type};
use crate::simt::{Fragments, Operands, Reduction};

/// Registers that hold the parameters. Strides and offsets are in elements, and wrap round.
pub(crate) struct Params {
    pub(crate) gathered: Reg,
    pub(crate) filter: Reg,
    pub(crate) table: Reg,
    pub(crate) result: Reg,
    /// A number per output, and a tensor like the result.
    pub(crate) bias: Option<Reg>,
    pub(crate) residual: Option<Reg>,
    /// Outputs; images, rows and columns of the grid of positions.
    pub(crate) outs: Reg,
    pub(crate) grid: [Reg; 3],
    /// Rows and columns of an image.
    pub(crate) extent: [Reg; 2],
    /// Rows and columns of an image from one position to the next, and those of the first tap of the first position.
    pub(crate) step: [Reg; 2],
    pub(crate) origin: [Reg; 2],
    /// From image to image, row to row and column to column of what is gathered.
    pub(crate) gathered_strides: [Reg; 3],
    /// From output to output of the filters.
    pub(crate) out_stride: Reg,
    /// From image to image, row to row, column to column and output to output of the result.
    pub(crate) result_strides: [Reg; 4],
    /// Tiles along the innermost positions, and along those next to them.
    tiles: [Reg; 2],
    /// Stages of a slice.
    stages: Reg,
    /// From group to group of what is gathered, of filters and of the result.
    groups: Option<[Reg; 3]>,
    /// Steps of a slice, and bytes of its partial sums.
    slice: Option<(Reg, Reg)>,
}

/// Where a thread stands.
pub(crate) struct Position {
    /// Index of the thread.
    pub(crate) tid: Reg,
    /// Index within the group of threads, and that group; `None` where there is one.
    pub(crate) in_group: Reg,
    pub(crate) my_group: Option<Reg>,
    /// Which of the threads along outputs, and along images, rows and columns.
    pub(crate) t_k: Option<Reg>,
    pub(crate) t_at: [Option<Reg>; 3],
    /// First output of the block's tile, and its first image, row and column.
    pub(crate) k0: Reg,
    pub(crate) first: [Reg; 3],
    /// First step of the slice; `None` for the first.
    pub(crate) step0: Option<Reg>,
    /// Where the group of channels begins in what is gathered, in the filters and in the result; and its number.
    pub(crate) starts: Option<[Reg; 3]>,
    pub(crate) group: Option<Reg>,
    /// Address of shared memory.
    pub(crate) shared: Reg,
}

/// The module of a blueprint.
pub fn module(bp: &Blueprint) -> Module {
    let mut b = Builder::new();
    let name = format!("conv_{}_{}", bp.arithmetic.dtype, bp.direction.name());
    let mut params = b.block("parameters", |b| params(b, bp));
    let at = b.block("position", |b| position(b, bp, &mut params));
    let sums = sums(&mut b, bp, &params, &at);
    b.block("store", |b| store::store(b, bp, &params, &at, &sums));
    let entry = Entry {
        max_registers: Some(bp.registers_allowed()),
        shared_bytes: bp.shared_bytes,
        dynamic_shared: bp.dynamic_shared(),
        ..b.finish(&name, bp.threads)
    };
    Module { target: bp.target, entry }
}

fn params(b: &mut Builder, bp: &Blueprint) -> Params {
    let (bytes, config) = (bp.arithmetic.bytes(), &bp.config);
    let (sum, result) = (bp.arithmetic.ty.bytes(), bp.arithmetic.result.bytes());
    let epilogue = !bp.partial();
    let pointer = |b: &mut Builder, name: &str, is_there: bool| (epilogue && is_there).then(|| b.buffer(name, result));
    let size = |b: &mut Builder, name: &str| b.param(name, Type::U32, 1);
    Params {
        gathered: b.buffer("gathered", config.vec_g * bytes),
        filter: b.buffer("filter", config.vec_f * bytes),
        table: b.buffer("table", super::table::ENTRY),
        result: b.buffer("result", if bp.partial() { sum } else { result }),
        bias: pointer(b, "bias", bp.epilogue.bias),
        residual: pointer(b, "residual", bp.epilogue.residual),
        outs: size(b, "outs"),
        grid: ["images", "grid_rows", "grid_columns"].map(|name| size(b, name)),
        extent: ["rows", "columns"].map(|name| size(b, name)),
        step: ["step_row", "step_column"].map(|name| size(b, name)),
        origin: ["origin_row", "origin_column"].map(|name| size(b, name)),
        gathered_strides: ["gathered_image", "gathered_row", "gathered_column"].map(|name| size(b, name)),
        out_stride: size(b, "filter_out"),
        result_strides: ["result_image", "result_row", "result_column", "result_out"].map(|name| size(b, name)),
        tiles: ["tiles_first", "tiles_second"].map(|name| size(b, name)),
        stages: size(b, "stages"),
        groups: bp.grouped.then(|| ["group_gathered", "group_filter", "group_result"].map(|name| size(b, name))),
        slice: bp.partial().then(|| (size(b, "slice"), b.param("slab", Type::U64, sum))),
    }
}

/// The digits of a number, from the lowest; the last one is what is left. `None` where it is always 0.
pub(crate) fn digits(b: &mut Builder, number: Option<Reg>, counts: [u32; 3]) -> [Option<Reg>; 3] {
    let [first, second, third] = counts;
    let Some(number) = number else { return [None; 3] };
    let rest = (second * third > 1).then(|| b.div(number, first));
    let low = if rest.is_some() { b.rem(number, first) } else { Some(number) };
    let Some(rest) = rest else { return [low, None, None] };
    if third == 1 {
        return [low, Some(rest), None];
    }
    let middle = b.rem(rest, second);
    [low, middle, Some(b.div(rest, second))]
}

fn position(b: &mut Builder, bp: &Blueprint, params: &mut Params) -> Position {
    let config = &bp.config;
    let tid = b.special(Special::Tid);
    let k0 = b.special(Special::Ctaid(Axis::Y));
    let k0 = b.scale(k0, config.k_l);
    let first = tile(b, bp, params);
    let tiles = bp.arrangement();
    let (my_group, in_group) = match config.c_l {
        1 => (None, tid),
        _ => (Some(b.div(tid, tiles.group())), b.rem(tid, tiles.group()).unwrap_or(tid)),
    };
    let (t_m, t_n) = tiles.place(b, in_group);
    let (t_k, t_place) = if bp.outs_first { (t_m, t_n) } else { (t_n, t_m) };
    let order = bp.order();
    let parts = digits(b, t_place, order.map(|d| bp.along[d]));
    let mut t_at = [None; 3];
    order.into_iter().zip(parts).for_each(|(d, part)| t_at[d] = part);
    let (step0, group, starts) = depth(b, bp, params);
    let shared = b.mov(Type::U32, Operand::Shared);
    Position { tid, in_group, my_group, t_k, t_at, k0, first, step0, starts, group, shared }
}

/// First image, row and column of the block's tile.
fn tile(b: &mut Builder, bp: &Blueprint, params: &Params) -> [Reg; 3] {
    let mut rest = b.special(Special::Ctaid(Axis::X));
    let mut parts = Vec::new();
    for tiles in params.tiles {
        parts.push(b.arith(Arith::Rem, Type::U32, rest, tiles));
        rest = b.arith(Arith::Div, Type::U32, rest, tiles);
    }
    parts.push(rest);
    let sizes = bp.config.block();
    let mut first = [rest; 3];
    for (d, part) in bp.order().into_iter().zip(parts) {
        first[d] = b.scale(part, sizes[d]);
    }
    first
}

/// First step of the block's slice, its group of channels, and where that begins. Moves the result to the slice's partial sums.
fn depth(b: &mut Builder, bp: &Blueprint, params: &mut Params) -> (Option<Reg>, Option<Reg>, Option<[Reg; 3]>) {
    if !bp.grouped && !bp.partial() {
        return (None, None, None);
    }
    let z = b.special(Special::Ctaid(Axis::Z));
    let (slice, group) = match (bp.partial(), bp.grouped) {
        (true, true) => (b.rem(z, bp.config.c_g), Some(b.div(z, bp.config.c_g))),
        (true, false) => (Some(z), None),
        (false, _) => (None, Some(z)),
    };
    let step0 = slice.zip(params.slice).map(|(slice, (steps, slab))| {
        let wide = b.widen(slice);
        let offset = b.arith(Arith::Mul, Type::U64, wide, slab);
        params.result = b.add(Type::U64, params.result, offset);
        b.arith(Arith::Mul, Type::U32, slice, steps)
    });
    let starts = group.zip(params.groups);
    let starts = starts.map(|(group, strides)| strides.map(|stride| b.arith(Arith::Mul, Type::U32, group, stride)));
    (step0, group, starts)
}

/// The sums of a thread's tile over the block's slice; those of a position lie together.
fn sums(b: &mut Builder, bp: &Blueprint, params: &Params, at: &Position) -> Vec<Reg> {
    let config = &bp.config;
    let sides = b.block("addresses", |b| [true, false].map(|filter| Side::new(b, bp, at, params, filter)));
    let mut read = b.block("fragments", |b| fragments(b, bp, at));
    let places: u32 = config.thread().iter().product();
    let reduction = Reduction {
        arithmetic: bp.arithmetic,
        load: config.load,
        stages: config.stages,
        step: bp.stage_bytes,
        trips: params.stages,
        tile: (config.k_s * places) as usize,
        sets: config.c_s,
        group: bp.arrangement().group(),
        groups: config.c_l,
        in_group: at.in_group,
        my_group: at.my_group,
        shared: at.shared,
    };
    reduction.sums(b, sides, &mut read)
}

/// Where a thread reads its outputs of the filters and its positions in shared memory.
fn fragments(b: &mut Builder, bp: &Blueprint, at: &Position) -> Fragments {
    let (config, bytes) = (&bp.config, bp.arithmetic.bytes());
    let [chunk_k, chunk_at] = bp.chunks();
    let share = config.u / config.c_l;
    let shared = |b: &mut Builder, pitch: u32, offset: u32| {
        let base = b.add(Type::U32, at.shared, offset);
        at.my_group.map_or(base, |group| b.scale_add(Some(group), share * pitch * bytes, base))
    };
    let base = shared(b, bp.loader_f.pitch, 0);
    let base = b.scale_add(at.t_k, chunk_k * bytes, base);
    let pieces = (0..config.k_s / chunk_k).map(|i| i * chunk_k * bp.along_k).collect();
    let filter = Operands::new(base, bp.loader_f.pitch, chunk_k, pieces);
    let mut base = shared(b, bp.loader_g.pitch, bp.tile_f_bytes);
    let mut apart = chunk_at;
    for d in bp.order() {
        base = b.scale_add(at.t_at[d], apart * bytes, base);
        apart = if d == bp.order()[0] { config.block()[d] } else { apart * config.block()[d] };
    }
    let pieces = places(bp).into_iter().step_by(chunk_at as usize).map(|place| place.1).collect();
    let gathered = Operands::new(base, bp.loader_g.pitch, chunk_at, pieces);
    Fragments { arithmetic: bp.arithmetic, sides: [filter, gathered], steps: share }
}

/// The positions of a thread, in the order of its sums: images, rows and columns beyond the thread's first, and elements of the tile.
pub(crate) fn places(bp: &Blueprint) -> Vec<([u32; 3], u32)> {
    let (order, thread, block) = (bp.order(), bp.config.thread(), bp.config.block());
    let [inner, middle, outer] = order;
    let chunk = bp.chunks()[1];
    let mut places = Vec::new();
    for z in 0..thread[outer] {
        for y in 0..thread[middle] {
            for x in 0..thread[inner] {
                let mut beyond = [0; 3];
                beyond[inner] = x / chunk * chunk * bp.along[inner] + x % chunk;
                beyond[middle] = y * bp.along[middle];
                beyond[outer] = z * bp.along[outer];
                let at = beyond[inner] + block[inner] * (beyond[middle] + block[middle] * beyond[outer]);
                places.push((beyond, at));
            }
        }
    }
    places
}
