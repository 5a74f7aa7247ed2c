//! What a plan does, counted as kernels of loops are on a host: for a linear model that was fitted on those.

use super::{CpuGemm, GemmPlan, geometry};
use crate::blueprint::Blueprint;
use crate::config::GemmConfig;
use crate::scalar::{Factor, Float};
use tilewright_core::device::DeviceSpec;
use tilewright_core::hint::Hint;
use tilewright_loops::host::{Caches, Operations, Reference, add_traffic};
use tilewright_ops::gemm::GemmInput;

/// Multiply-adds that must be under way to keep the units of a core busy: latency times throughput.
const IN_FLIGHT: f64 = 8.0;

impl GemmPlan {
    /// Counts the operations of the thread with most work: instructions by kind, turns of loops, and the lines that caches of
    /// these sizes move. Chains of multiply-adds that are too short to hide their latency count as what they last. Packing and the
    /// product are counted apart: one waits for the other, and nothing of them overlaps.
    pub fn operations(&self, caches: &Caches) -> [Operations; 2] {
        operations(&self.blueprint, caches)
    }
}

impl CpuGemm {
    /// The same for a configuration that is known to be legal: a search counts thousands, and checks none of them again.
    pub fn operations(&self, input: &GemmInput, config: &GemmConfig, caches: &Caches) -> [Operations; 2] {
        operations(&Blueprint::new(geometry(input), config), caches)
    }
}

/// A hint from counts: what a model of a host's operations makes of those of a configuration.
pub struct CountedHint<F> {
    /// Sizes of a core's caches.
    pub caches: Caches,
    /// Seconds of operations that may overlap.
    pub seconds: F,
}

impl<F: Fn(&Operations) -> f64 + Send + Sync + 'static> Hint<CpuGemm> for CountedHint<F> {
    fn name(&self) -> &str {
        "linear.seconds"
    }

    fn seconds(&self, kernel: &CpuGemm, _: &DeviceSpec, input: &GemmInput, config: &GemmConfig) -> f64 {
        kernel.operations(input, config, &self.caches).iter().map(&self.seconds).sum()
    }
}

fn operations(b: &Blueprint, caches: &Caches) -> [Operations; 2] {
    let shape = Shape::of(b);
    let (mut packing, mut product) = (packing(b, &shape), product(b, &shape));
    let (apart, together) = references(b, &shape);
    let all = [apart.as_slice(), &together].concat();
    add_traffic(&mut packing, &apart, &all, caches);
    add_traffic(&mut product, &together, &all, caches);
    [packing, product]
}

fn product(b: &Blueprint, shape: &Shape) -> Operations {
    let mut out = Operations::from([("constant", 1.0), ("groups", shape.threads)]);
    let mut add = |name: &'static str, amount: f64| *out.entry(name).or_insert(0.0) += amount;
    let double = b.geometry.float == Float::F64;
    let Shape { vectors, columns, k, v_tiles, s_tiles, k_blocks, .. } = *shape;
    let tile = vectors / v_tiles * (columns / s_tiles);
    let stalled = (IN_FLIGHT / (tile * f64::from(b.config.k_l))).max(1.0);
    add(if double { "f64 fma" } else { "f32 fma" }, vectors * columns * k * stalled);
    // Each tile loads its vectors and its columns in every step; a broadcast from memory is no dearer than a load.
    let crossed = |packed: bool, stride: usize| if packed { 1.0 } else { 1.0 + crossings(b, stride) };
    add("loads", vectors * s_tiles * k * crossed(b.pack_v, b.frame.v.step));
    add("loads", columns * v_tiles * k);
    add("iterations", v_tiles * s_tiles * k / f64::from(b.config.k_s));
    add("lane steps", v_tiles * s_tiles * k_blocks);
    add("regions", k_blocks * shape.v_blocks * shape.s_blocks);
    let reads_c = if b.geometry.beta == Factor::Zero { k_blocks - 1.0 } else { k_blocks };
    let c_moves = vectors * columns * crossed(false, if b.frame.c_v == 1 { b.frame.c_s } else { b.frame.c_v });
    add("loads", c_moves * reads_c);
    add("stores", c_moves * k_blocks);
    if b.reduces() {
        let slices = f64::from(b.config.k_g);
        add("loads", c_moves * slices / shape.threads);
        add("stores", c_moves / shape.threads);
    }
    if b.pack_v && b.copies_v() {
        // The vectors are loaded anyway.
        let elements = vectors * b.vector.lanes() as f64 * k * shape.s_blocks;
        add("stores", elements / b.vector.lanes() as f64);
    }
    out
}

fn packing(b: &Blueprint, shape: &Shape) -> Operations {
    let lanes = b.vector.lanes() as f64;
    let mut out = Operations::new();
    let mut add = |name: &'static str, amount: f64| *out.entry(name).or_insert(0.0) += amount;
    if b.pack_v && !b.copies_v() {
        pack(&mut add, shape.vectors * lanes * shape.k * shape.s_blocks, lanes, b.frame.v.along == 1);
    }
    if b.pack_s {
        pack(&mut add, shape.columns * shape.k, lanes, b.frame.s.along == 1);
    }
    out
}

/// How many of the vectors at multiples of so many elements lie in two lines, each half of which is loaded.
fn crossings(b: &Blueprint, stride: usize) -> f64 {
    const LINE: usize = 64;
    let (es, width) = (b.geometry.float.bytes(), b.vector.lanes() * b.geometry.float.bytes());
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

/// The part of the thread with most work.
struct Shape {
    threads: f64,
    /// Vectors along the first side, edges in full.
    vectors: f64,
    columns: f64,
    k: f64,
    v_tiles: f64,
    s_tiles: f64,
    v_blocks: f64,
    s_blocks: f64,
    k_blocks: f64,
}

impl Shape {
    fn of(b: &Blueprint) -> Self {
        let part = b.part(0);
        let f = |x: usize| x.max(1) as f64;
        let lanes = b.vector.lanes();
        let v = b.v.start(part.v.end) - b.v.start(part.v.start);
        let s = b.s.start(part.s.end) - b.s.start(part.s.start);
        let k = b.k.start(part.k.end).min(b.geometry.k) - b.k.start(part.k.start).min(b.geometry.k);
        Self {
            threads: f(b.threads()),
            vectors: f(v.div_ceil(lanes)),
            columns: f(s),
            k: f(k),
            v_tiles: f(part.v.len()),
            s_tiles: f(part.s.len()),
            v_blocks: f(part.v.len().div_ceil(b.v_block)),
            s_blocks: f(part.s.len().div_ceil(b.s_block)),
            k_blocks: f(part.k.len()),
        }
    }
}

/// What packing reads, and what the product does. The loops of a block are those of the driver: blocks of columns, of k, of
/// vectors; the panel that stays, the one that streams.
fn references(b: &Blueprint, shape: &Shape) -> (Vec<Reference>, Vec<Reference>) {
    let es = b.geometry.float.bytes() as f64;
    let lanes = b.vector.lanes() as f64;
    let depth = shape.k / shape.k_blocks;
    let (v_tile, s_tile) = (shape.vectors / shape.v_tiles * lanes, shape.columns / shape.s_tiles);
    let (v_in, s_in) = (shape.v_tiles / shape.v_blocks, shape.s_tiles / shape.s_blocks);
    let keeps_v = b.keeps_v();
    // Bytes from one tile, block or step to the next, for an operand as it lies or as it was packed.
    let loops = |sb: f64, kb: f64, vb: f64, v: f64, s: f64, inner: [(&'static str, f64, f64); 2]| {
        let (v, s) = (("v tile", v_in, v), ("s tile", s_in, s));
        let (stays, streams) = if keeps_v { (v, s) } else { (s, v) };
        let outer = [("s block", shape.s_blocks, sb), ("k block", shape.k_blocks, kb), ("v block", shape.v_blocks, vb)];
        [&outer[..], &[stays, streams], &inner].concat()
    };
    let (mut apart, mut out) = (Vec::new(), Vec::new());
    let f = |x: usize| x as f64;
    let (v, s) = (b.frame.v, b.frame.s);
    // Bytes one after the other in the caller's memory: too short a run is foreseen by nobody, unless it is prefetched.
    let run = |along: usize, neighbours: f64| match b.config.prefetch {
        0 => es * if along == 1 { neighbours } else { depth },
        _ => f64::INFINITY,
    };
    if b.pack_v {
        let inner = [("step", depth, v_tile * es), ("lane", v_tile, es)];
        out.push(Reference::new(es, loops(0.0, 0.0, 0.0, depth * v_tile * es, 0.0, inner), false, f64::INFINITY));
        let inner = [("pack step", depth, f(v.step) * es), ("pack lane", v_tile * v_in, f(v.along) * es)];
        let around = loops(0.0, depth * f(v.step) * es, v_tile * v_in * f(v.along) * es, 0.0, 0.0, inner);
        let read = Reference::new(es, without_tiles(around), false, run(v.along, v_tile * v_in));
        let panel = [("pack step", depth, v_tile * v_in * es), ("pack lane", v_tile * v_in, es)];
        let panel = without_tiles(loops(0.0, 0.0, 0.0, 0.0, 0.0, panel));
        let part = if b.copies_v() { &mut out } else { &mut apart };
        part.extend([read, Reference::new(es, panel, true, f64::INFINITY)]);
    } else {
        let inner = [("step", depth, f(v.step) * es), ("lane", v_tile, f(v.along) * es)];
        let tile = v_tile * f(v.along) * es;
        let around = loops(0.0, depth * f(v.step) * es, tile * v_in, tile, 0.0, inner);
        out.push(Reference::new(es, around, false, run(v.along, v_tile)));
    }
    if b.pack_s {
        let inner = [("step", depth, s_tile * es), ("column", s_tile, es)];
        out.push(Reference::new(es, loops(0.0, 0.0, 0.0, 0.0, depth * s_tile * es, inner), false, f64::INFINITY));
        let inner = [("pack step", depth, f(s.step) * es), ("pack column", s_tile * s_in, f(s.along) * es)];
        let block = s_tile * s_in * f(s.along) * es;
        let mut around = without_tiles(loops(block, depth * f(s.step) * es, 0.0, 0.0, 0.0, inner));
        // It is packed once for all blocks of vectors.
        around.retain(|(name, ..)| *name != "v block");
        apart.push(Reference::new(es, around, false, run(s.along, s_tile * s_in)));
        let panel = [("pack step", depth, s_tile * s_in * es), ("pack column", s_tile * s_in, es)];
        let mut panel = without_tiles(loops(0.0, 0.0, 0.0, 0.0, 0.0, panel));
        panel.retain(|(name, ..)| *name != "v block");
        apart.push(Reference::new(es, panel, true, f64::INFINITY));
    } else {
        let inner = [("step", depth, f(s.step) * es), ("column", s_tile, f(s.along) * es)];
        let tile = s_tile * f(s.along) * es;
        let around = loops(tile * s_in, depth * f(s.step) * es, 0.0, 0.0, tile, inner);
        out.push(Reference::new(es, around, false, run(s.along, s_tile)));
    }
    let (c_v, c_s) = (f(b.frame.c_v) * es, f(b.frame.c_s) * es);
    let inner = [("column", s_tile, c_s), ("lane", v_tile, c_v)];
    let around = loops(s_tile * s_in * c_s, 0.0, v_tile * v_in * c_v, v_tile * c_v, s_tile * c_s, inner);
    out.push(Reference::new(es, around, true, f64::INFINITY));
    (apart, out)
}

/// Packing is done before the tiles of a block.
fn without_tiles(mut loops: Vec<(&'static str, f64, f64)>) -> Vec<(&'static str, f64, f64)> {
    loops.retain(|(name, ..)| !matches!(*name, "v tile" | "s tile"));
    loops
}
