//! What a plan does, counted as kernels of loops are on a host: for a linear model that was fitted on those.

use super::GemmPlan;
use crate::LINE;
use crate::blueprint::Blueprint;
use crate::scalar::Float;
use tilewright_core::operations::Operations as Phases;
use tilewright_loops::host::{Caches, Operations, Reference, add_traffic};
use tilewright_ops::gemm::ScalarClass;

/// Multiply-adds that must be under way to keep the units of a core busy: latency times throughput.
const IN_FLIGHT: f64 = 8.0;

/// Counts the operations of the thread with most work: instructions by kind, turns of loops, and the lines that caches of these
/// sizes move. Chains of multiply-adds that are too short to hide their latency count as what they last. Packing and the product
/// are phases: one waits for the other, and nothing of them overlaps.
pub(super) fn of(plan: &GemmPlan, caches: &Caches) -> Phases {
    // A batch is one product after the other.
    let products = f64::from(plan.blueprint.input.batch.count);
    let named = |counted: Operations| counted.into_iter().map(|(name, n)| (name.into(), n * products)).collect();
    Phases { phases: operations(&plan.blueprint, caches).map(named).into() }
}

fn operations(b: &Blueprint, caches: &Caches) -> [Operations; 2] {
    let nest = Nest::of(b);
    let (mut packing, mut product) = (packing(&nest), product(&nest));
    let (apart, together) = references(&nest);
    let all = [apart.as_slice(), &together].concat();
    add_traffic(&mut packing, &apart, &all, caches);
    add_traffic(&mut product, &together, &all, caches);
    [packing, product]
}

fn product(nest: &Nest<'_>) -> Operations {
    let &Nest { b, threads, vectors, columns, k, v_tiles, s_tiles, v_blocks, s_blocks, k_blocks, .. } = nest;
    let mut out = Operations::from([("constant", 1.0), ("groups", threads)]);
    let mut add = |name: &'static str, amount: f64| *out.entry(name).or_insert(0.0) += amount;
    let double = b.vector.float == Float::F64;
    let tile = vectors / v_tiles * (columns / s_tiles);
    let stalled = (IN_FLIGHT / (tile * f64::from(b.config.k_l))).max(1.0);
    add(if double { "f64 fma" } else { "f32 fma" }, vectors * columns * k * stalled);
    // Each tile loads its vectors and its columns in every step; a broadcast from memory is no costlier than a load.
    let crossed = |packed: bool, stride: usize| if packed { 1.0 } else { 1.0 + crossings(b, stride) };
    add("loads", vectors * s_tiles * k * crossed(b.pack_v, b.frame.v.step));
    add("loads", columns * v_tiles * k);
    add("iterations", v_tiles * s_tiles * k / f64::from(b.config.k_s));
    add("lane steps", v_tiles * s_tiles * k_blocks);
    add("regions", k_blocks * v_blocks * s_blocks);
    let reads_c = if b.input.beta == ScalarClass::Zero { k_blocks - 1.0 } else { k_blocks };
    let c_moves = vectors * columns * crossed(false, if b.frame.c_v == 1 { b.frame.c_s } else { b.frame.c_v });
    add("loads", c_moves * reads_c);
    add("stores", c_moves * k_blocks);
    if b.reduces() {
        let slices = f64::from(b.config.k_g);
        add("loads", c_moves * slices / threads);
        add("stores", c_moves / threads);
    }
    if b.pack_v && b.copies_v() {
        // The vectors are loaded anyway.
        add("stores", vectors * k * s_blocks);
    }
    out
}

fn packing(nest: &Nest<'_>) -> Operations {
    let b = nest.b;
    let lanes = b.vector.lanes() as f64;
    let mut out = Operations::new();
    let mut add = |name: &'static str, amount: f64| *out.entry(name).or_insert(0.0) += amount;
    if b.pack_v && !b.copies_v() {
        pack(&mut add, nest.vectors * lanes * nest.k * nest.s_blocks, lanes, b.frame.v.along == 1);
    }
    if b.pack_s {
        pack(&mut add, nest.columns * nest.k, lanes, b.frame.s.along == 1);
    }
    out
}

/// How many of the vectors at multiples of so many elements lie in two lines, each half of which is loaded.
fn crossings(b: &Blueprint, stride: usize) -> f64 {
    let (es, width) = (b.es(), b.vector.lanes() * b.es());
    let places = LINE / es;
    let crossed = (0..places).filter(|i| i * stride % places * es + width > LINE).count();
    crossed as f64 / places as f64
}

/// Copies of a panel, a vector at a time. Where neighbours do not lie together it is transposed in registers: as many shuffles.
fn pack(add: &mut impl FnMut(&'static str, f64), elements: f64, lanes: f64, contiguous: bool) {
    add("loads", elements / lanes);
    add("stores", elements / lanes);
    if !contiguous {
        add("single loads", elements / lanes);
    }
}

/// What packing touches, and what the product does.
fn references(nest: &Nest<'_>) -> (Vec<Reference>, Vec<Reference>) {
    let b = nest.b;
    let (mut apart, mut product) = (Vec::new(), Vec::new());
    let v = Side { packed: b.pack_v, strides: (b.frame.v.along, b.frame.v.step), tile: nest.v_tile, tiles: nest.v_in };
    let s = Side { packed: b.pack_s, strides: (b.frame.s.along, b.frame.s.step), tile: nest.s_tile, tiles: nest.s_in };
    // A panel of vectors is packed again in every block of columns; one of columns once for all blocks of vectors.
    let steps_v = |block: f64, tile: f64, depth: f64| [0.0, depth, block, tile, 0.0];
    let steps_s = |block: f64, tile: f64, depth: f64| [block, depth, 0.0, 0.0, tile];
    product.push(nest.used(&v, &steps_v));
    product.push(nest.used(&s, &steps_s));
    if v.packed {
        let part = if b.copies_v() { &mut product } else { &mut apart };
        part.extend(nest.packed(&v, &steps_v, &[]));
    }
    if s.packed {
        apart.extend(nest.packed(&s, &steps_s, &["v block"]));
    }
    let (c_v, c_s) = (b.frame.c_v as f64 * nest.es, b.frame.c_s as f64 * nest.es);
    let (v_tile, s_tile) = (nest.v_tile * c_v, nest.s_tile * c_s);
    let inner = [("column", nest.s_tile, c_s), ("lane", nest.v_tile, c_v)];
    let around = nest.loops([s_tile * nest.s_in, 0.0, v_tile * nest.v_in, v_tile, s_tile], inner);
    product.push(Reference::new(nest.es, around, true, f64::INFINITY));
    (apart, product)
}

type Loops = Vec<(&'static str, f64, f64)>;

/// Bytes from one block of columns, of k, of vectors, and from one tile of each side to the next, from those of a block, a tile and
/// a block of k of an operand.
type Steps<'a> = dyn Fn(f64, f64, f64) -> [f64; 5] + 'a;

/// An operand.
struct Side {
    packed: bool,
    /// Elements from one neighbour, and from one step of k, to the next.
    strides: (usize, usize),
    /// Elements of a tile.
    tile: f64,
    /// Tiles of a block.
    tiles: f64,
}

/// The loops of the driver (blocks of columns, of k, of vectors; the panel that stays, the one that streams) over the part of the
/// thread with most work.
struct Nest<'a> {
    b: &'a Blueprint,
    threads: f64,
    /// Vectors along the first side, edges in full unless they are turned.
    vectors: f64,
    columns: f64,
    k: f64,
    v_tiles: f64,
    s_tiles: f64,
    v_blocks: f64,
    s_blocks: f64,
    k_blocks: f64,
    /// Bytes of an element.
    es: f64,
    /// Steps of a block of k.
    depth: f64,
    /// Elements of a tile along each side, and tiles of a block.
    v_tile: f64,
    s_tile: f64,
    v_in: f64,
    s_in: f64,
}

impl<'a> Nest<'a> {
    fn of(b: &'a Blueprint) -> Self {
        let part = b.part(0);
        let f = |x: usize| x.max(1) as f64;
        let lanes = b.vector.lanes();
        let v = b.v.start(part.v.end) - b.v.start(part.v.start);
        // A turned edge takes a part of a vector, and of a tile.
        let spared = if b.v.apart && part.v.end == b.v.tiles() { 1.0 - b.edge_share() } else { 0.0 };
        let s = b.s.start(part.s.end) - b.s.start(part.s.start);
        let k = b.k.start(part.k.end).min(b.input.k) - b.k.start(part.k.start).min(b.input.k);
        let (vectors, columns, k) = (f(v.div_ceil(lanes)) - spared, f(s), f(k));
        let (v_tiles, s_tiles, k_blocks) = (f(part.v.len()) - spared, f(part.s.len()), f(part.k.len()));
        let (v_blocks, s_blocks) = (f(part.v.len().div_ceil(b.v_block)), f(part.s.len().div_ceil(b.s_block)));
        Self {
            b,
            threads: f(b.threads()),
            vectors,
            columns,
            k,
            v_tiles,
            s_tiles,
            v_blocks,
            s_blocks,
            k_blocks,
            es: b.es() as f64,
            depth: k / k_blocks,
            v_tile: vectors / v_tiles * lanes as f64,
            s_tile: columns / s_tiles,
            v_in: v_tiles / v_blocks,
            s_in: s_tiles / s_blocks,
        }
    }

    fn loops(&self, [s_block, k_block, v_block, v, s]: [f64; 5], inner: [(&'static str, f64, f64); 2]) -> Loops {
        let (v, s) = (("v tile", self.v_in, v), ("s tile", self.s_in, s));
        let (stays, streams) = if self.b.keeps_v() { (v, s) } else { (s, v) };
        let outer = [
            ("s block", self.s_blocks, s_block),
            ("k block", self.k_blocks, k_block),
            ("v block", self.v_blocks, v_block),
        ];
        [&outer[..], &[stays, streams], &inner].concat()
    }

    /// What tiles read of an operand, where it lies or where it was packed to.
    fn used(&self, side: &Side, steps: &Steps<'_>) -> Reference {
        let es = self.es;
        if side.packed {
            let inner = [("step", self.depth, side.tile * es), ("neighbour", side.tile, es)];
            let around = self.loops(steps(0.0, self.depth * side.tile * es, 0.0), inner);
            return Reference::new(es, around, false, f64::INFINITY);
        }
        let (along, step) = (side.strides.0 as f64 * es, side.strides.1 as f64 * es);
        let inner = [("step", self.depth, step), ("neighbour", side.tile, along)];
        let tile = side.tile * along;
        let around = self.loops(steps(tile * side.tiles, tile, self.depth * step), inner);
        Reference::new(es, around, false, self.run(side, side.tile))
    }

    /// What packing a block reads and writes, before its tiles; loops that it stands outside of are named.
    fn packed(&self, side: &Side, steps: &Steps<'_>, outside: &[&str]) -> [Reference; 2] {
        let (es, many) = (self.es, side.tile * side.tiles);
        let without = |mut loops: Loops| {
            loops.retain(|(name, ..)| !matches!(*name, "v tile" | "s tile") && !outside.contains(name));
            loops
        };
        let (along, step) = (side.strides.0 as f64 * es, side.strides.1 as f64 * es);
        let inner = [("pack step", self.depth, step), ("pack neighbour", many, along)];
        let read = without(self.loops(steps(many * along, 0.0, self.depth * step), inner));
        let inner = [("pack step", self.depth, many * es), ("pack neighbour", many, es)];
        let written = without(self.loops(steps(0.0, 0.0, 0.0), inner));
        [Reference::new(es, read, false, self.run(side, many)), Reference::new(es, written, true, f64::INFINITY)]
    }

    /// Bytes one after the other in the caller's memory: too short a run is foreseen by nobody, unless it is prefetched.
    fn run(&self, side: &Side, neighbours: f64) -> f64 {
        match self.b.config.prefetch {
            0 => self.es * if side.strides.0 == 1 { neighbours } else { self.depth },
            _ => f64::INFINITY,
        }
    }
}
