//! What a model sees of a configuration: the parameters, and what they come to for the input and the device at hand.

use super::config::{Bounds, GemmConfig, Raster, Split};
use super::registers;
use super::space::{Names, SIZES};
use crate::simt::Load;
use tilewright_core::feature::Feature;
use tilewright_core::space::{SpaceBuilder, Values};

/// Sizes besides the parameters.
const MORE: [&str; 15] = [
    "threads",
    "tile",
    "reuse",
    "block_reuse",
    "shared_bytes",
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
const FLAGS: [&str; 9] =
    ["load_nc", "load_async", "load_straight", "atomic", "ticket", "stream", "raster_n", "raster_grouped", "whole"];

/// What a model sees of a product.
pub(crate) fn names() -> Vec<Feature> {
    SIZES.into_iter().chain(MORE).map(Feature::size).chain(FLAGS.into_iter().map(Feature::flag)).collect()
}

/// What the space derives of a configuration and a model sees, and what it knows of the device: reading that from the device
/// for every row took longer than the row.
pub(super) const DERIVED: [&str; 18] = [
    "threads",
    "accumulators",
    "shared_bytes",
    "registers_needed",
    "register_cap",
    "scarce",
    "tiles_m",
    "tiles_n",
    "slice",
    "slices",
    "body",
    "stream_blocks",
    "device_sm",
    "device_multiprocessors",
    "device_registers",
    "device_shared",
    "device_threads",
    "device_blocks",
];

/// Names what a row needs of the device.
pub(crate) fn of_device(space: SpaceBuilder) -> SpaceBuilder {
    space
        .define("device_sm", "sm")
        .define("device_multiprocessors", "multiprocessors")
        .define("device_registers", "registers_per_sm")
        .define("device_shared", "shared_per_sm")
        .define("device_threads", "threads_per_sm")
        .define("device_blocks", "blocks_per_sm")
}

/// Of so many products of so many rows and columns. NaN where a name has no value, which is nowhere at a legal point.
pub(crate) fn features(sizes: [u32; 2], batch: u32, names: &Names, at: &Values<'_>, out: &mut Vec<f32>) {
    match (GemmConfig::of(names, at), at.ints(names.features)) {
        (Some(config), Some(derived)) => append(sizes, batch, &config, derived, out),
        _ => out.resize(out.len() + SIZES.len() + MORE.len() + FLAGS.len(), f32::NAN),
    }
}

fn append([m, n]: [u32; 2], batch: u32, c: &GemmConfig, derived: [u32; DERIVED.len()], out: &mut Vec<f32>) {
    let [
        threads,
        accumulators,
        shared,
        needed,
        cap,
        scarce,
        tiles_m,
        tiles_n,
        slice,
        slices,
        body,
        sharing,
        device @ ..,
    ] = derived;
    let [sm, multiprocessors, registers_per_sm, shared_per_sm, threads_per_sm, blocks_per_sm] = device;
    let registers = registers::predicted(needed, scarce == 1, c.bounds == Bounds::Checked, sm).min(cap);
    // A size of 0 is seen as 1.
    let (m, n, tiles_m, tiles_n) = (m.max(1), n.max(1), tiles_m.max(1), tiles_n.max(1));
    let (tiles, stages) = (f64::from(tiles_m) * f64::from(tiles_n), f64::from((slice / c.u).max(1)));
    let (blocks, trips) = match sharing {
        0 => (tiles * f64::from(slices) * f64::from(batch), stages),
        blocks => (f64::from(blocks), (tiles * stages / f64::from(blocks)).ceil()),
    };
    let by_registers = registers::blocks_of(registers_per_sm, registers, threads);
    let by_shared = shared_per_sm / shared.max(1);
    let by_threads = threads_per_sm / threads.max(1);
    let per_sm = by_registers.min(by_shared).min(by_threads).min(blocks_per_sm).max(1);
    let slots = f64::from(per_sm) * f64::from(multiprocessors);
    let waves = blocks / slots;
    let share = |size: u32, tiles: u32, tile: u32| size as f32 / (tiles as f32 * tile as f32);
    let f = |x: u32| x as f32;
    let pair = |a: u32, b: u32| f(a * b) / f(a + b);
    out.extend(
        [c.m_s, c.n_s, c.m_l, c.n_l, c.u, c.k_s, c.k_l, c.k_g, c.vec_a, c.vec_b, c.vec_c, c.stages, c.occupancy].map(f),
    );
    out.extend([
        f(threads),
        f(accumulators),
        pair(c.m_s, c.n_s),
        pair(c.m_l, c.n_l),
        f(shared),
        f(registers),
        blocks as f32,
        f(per_sm),
        waves as f32,
        trips as f32,
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
        c.load == Load::Straight,
        c.k_g > 1 && c.split == Split::Atomic,
        c.k_g > 1 && c.split == Split::Ticket,
        c.split == Split::Stream,
        c.raster == Raster::N,
        c.raster == Raster::Grouped,
        c.bounds == Bounds::Whole,
    ];
    out.extend(flags.map(|b| f32::from(u8::from(b))));
}
