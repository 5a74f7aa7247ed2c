//! What a model sees of a configuration: the parameters, and what they come to for the input and the device at hand.

use super::config::MmaConfig;
use super::registers;
use super::space::{Names, SIZES};
use crate::gemm::registers::blocks_of;
use crate::gemm::{Bounds, Raster, Split};
use crate::simt::Load;
use tilewright_core::feature::Feature;
use tilewright_core::space::{SpaceBuilder, Values};

/// Sizes besides the parameters.
const MORE: [&str; 16] = [
    "threads",
    "tile",
    "reuse",
    "block_reuse",
    "shared_bytes",
    "in_flight",
    "registers",
    "blocks",
    "blocks_per_sm",
    "waves",
    "trips",
    "use_m",
    "use_n",
    "resident",
    "body",
    "tail",
];
const FLAGS: [&str; 6] = ["load_nc", "load_async", "atomic", "raster_n", "raster_grouped", "whole"];

/// What a model sees of a product.
pub(super) fn names() -> Vec<Feature> {
    SIZES.into_iter().chain(MORE).map(Feature::size).chain(FLAGS.into_iter().map(Feature::flag)).collect()
}

/// What the space derives of a configuration and a model sees, and what it knows of the device.
pub(super) const DERIVED: [&str; 15] = [
    "threads",
    "accumulators",
    "shared_bytes",
    "stage_bytes",
    "registers_needed",
    "tiles_m",
    "tiles_n",
    "slice",
    "slices",
    "body",
    "device_multiprocessors",
    "device_registers",
    "device_shared",
    "device_threads",
    "device_blocks",
];

/// Names what a row needs of the device.
pub(super) fn of_device(space: SpaceBuilder) -> SpaceBuilder {
    space
        .define("device_multiprocessors", "multiprocessors")
        .define("device_registers", "registers_per_sm")
        .define("device_shared", "shared_per_sm")
        .define("device_threads", "threads_per_sm")
        .define("device_blocks", "blocks_per_sm")
}

/// Of so many products of so many rows and columns. NaN where a name has no value, which is nowhere at a legal point.
pub(super) fn features(sizes: [u32; 2], batch: u32, names: &Names, at: &Values<'_>, out: &mut Vec<f32>) {
    match (MmaConfig::of(names, at), at.ints(names.features)) {
        (Some(config), Some(derived)) => append(sizes, batch, &config, derived, out),
        _ => out.resize(out.len() + SIZES.len() + MORE.len() + FLAGS.len(), f32::NAN),
    }
}

fn append([m, n]: [u32; 2], batch: u32, c: &MmaConfig, derived: [u32; DERIVED.len()], out: &mut Vec<f32>) {
    let [threads, accumulators, shared, stage, needed, tiles_m, tiles_n, slice, slices, body, device @ ..] = derived;
    let [multiprocessors, registers_per_sm, shared_per_sm, threads_per_sm, blocks_per_sm] = device;
    let registers = registers::predicted(needed);
    // A size of 0 is seen as 1.
    let (m, n, tiles_m, tiles_n) = (m.max(1), n.max(1), tiles_m.max(1), tiles_n.max(1));
    let blocks = f64::from(tiles_m) * f64::from(tiles_n) * f64::from(slices) * f64::from(batch);
    let by_registers = blocks_of(registers_per_sm, registers, threads);
    let by_shared = shared_per_sm / shared.max(1);
    let per_sm = by_registers.min(by_shared).min(threads_per_sm / threads.max(1)).min(blocks_per_sm).max(1);
    let waves = blocks / (f64::from(per_sm) * f64::from(multiprocessors));
    let share = |size: u32, tiles: u32, tile: u32| size as f32 / (tiles as f32 * tile as f32);
    let f = |x: u32| x as f32;
    let pair = |a: u32, b: u32| f(a * b) / f(a + b);
    // Bytes that are on their way to a multiprocessor while it computes.
    let ahead = if c.load == Load::Async { c.stages - 1 } else { 1 };
    out.extend([c.m_w, c.n_w, c.m_l, c.n_l, c.u, c.k_g, c.vec_a, c.vec_b, c.vec_c, c.stages].map(f));
    out.extend([
        f(threads),
        f(accumulators),
        pair(c.m_w, c.n_w),
        pair(c.m_l, c.n_l),
        f(shared),
        f(per_sm * ahead * stage),
        f(registers),
        blocks as f32,
        f(per_sm),
        waves as f32,
        f((slice / c.u).max(1)),
        share(m, tiles_m, c.m_l),
        share(n, tiles_n, c.n_l),
        f(per_sm * threads),
        f(body),
        // What the last wave leaves idle.
        (waves.ceil() / waves) as f32,
    ]);
    let flags = [
        c.load == Load::Nc,
        c.load == Load::Async,
        c.k_g > 1 && c.split == Split::Atomic,
        c.raster == Raster::N,
        c.raster == Raster::Grouped,
        c.bounds == Bounds::Whole,
    ];
    out.extend(flags.map(|b| f32::from(u8::from(b))));
}
