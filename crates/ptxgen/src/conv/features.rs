//! What a model sees of a configuration: the parameters, and what they come to for the input and the device at hand.

use super::config::{ConvConfig, Scan};
use super::space::{Description, SIZES};
use crate::gemm::registers::blocks_of;
use crate::simt::Load;
use tilewright_core::feature::Feature;
use tilewright_core::space::{SpaceBuilder, Values};

/// Sizes besides the parameters.
const MORE: [&str; 17] = [
    "threads",
    "tile",
    "reuse",
    "block_reuse",
    "places",
    "shared_bytes",
    "registers",
    "blocks",
    "blocks_per_sm",
    "waves",
    "trips",
    "use_k",
    "use_at",
    "resident",
    "body",
    "launches",
    "tail",
];
const FLAGS: [&str; 3] = ["load_nc", "load_async", "scan_steps"];

pub(super) fn names() -> Vec<Feature> {
    SIZES.into_iter().chain(MORE).map(Feature::size).chain(FLAGS.into_iter().map(Feature::flag)).collect()
}

/// What the space derives of a configuration and a model sees, and what it knows of the device.
pub(super) const DERIVED: [&str; 19] = [
    "threads",
    "accumulators",
    "shared_bytes",
    "registers_needed",
    "places",
    "places_s",
    "tiles_k",
    "slice",
    "body",
    "result_outs",
    "result_places",
    "result_groups",
    "launches",
    "tiles_at",
    "device_multiprocessors",
    "device_registers",
    "device_shared",
    "device_threads",
    "device_blocks",
];

/// Names what a row needs of the input and the device.
pub(super) fn of_device(space: SpaceBuilder) -> SpaceBuilder {
    space
        .define("result_outs", "max(outs, 1)")
        .define("result_places", "max(images * grid_rows * grid_columns, 1)")
        .define("result_groups", "groups")
        .define("launches", "correlations")
        .define("device_multiprocessors", "multiprocessors")
        .define("device_registers", "registers_per_sm")
        .define("device_shared", "shared_per_sm")
        .define("device_threads", "threads_per_sm")
        .define("device_blocks", "blocks_per_sm")
}

/// NaN where a name has no value, which is nowhere at a legal point.
pub(super) fn features(at: &Values<'_>, out: &mut Vec<f32>) {
    let names = Description::get();
    match (ConvConfig::of(at), at.ints(names.features)) {
        (Some(config), Some(derived)) => append(&config, derived, out),
        _ => out.resize(out.len() + SIZES.len() + MORE.len() + FLAGS.len(), f32::NAN),
    }
}

fn append(c: &ConvConfig, derived: [u32; DERIVED.len()], out: &mut Vec<f32>) {
    let [threads, accumulators, shared, registers, places, places_s, tiles_k, slice, body, rest @ ..] = derived;
    let [outs, result_places, groups, launches, tiles_at, device @ ..] = rest;
    let [multiprocessors, registers_per_sm, shared_per_sm, threads_per_sm, blocks_per_sm] = device;
    let (tiles_k, tiles_at) = (f64::from(tiles_k.max(1)), f64::from(tiles_at.max(1)));
    let blocks = tiles_k * tiles_at * f64::from(groups) * f64::from(c.c_g);
    let by_registers = blocks_of(registers_per_sm, registers, threads);
    let by_shared = shared_per_sm / shared.max(1);
    let by_threads = threads_per_sm / threads.max(1);
    let per_sm = by_registers.min(by_shared).min(by_threads).min(blocks_per_sm).max(1);
    let waves = blocks / (f64::from(per_sm) * f64::from(multiprocessors));
    let share = |size: u32, tiles: f64, tile: u32| (f64::from(size) / (tiles * f64::from(tile))) as f32;
    let f = |x: u32| x as f32;
    let pair = |a: u32, b: u32| f(a * b) / f(a + b);
    let sizes = [c.k_s, c.n_s, c.p_s, c.q_s, c.k_l, c.n_l, c.p_l, c.q_l, c.u, c.c_s, c.c_l, c.c_g];
    out.extend(sizes.into_iter().chain([c.vec_f, c.vec_g, c.stages]).map(f));
    out.extend([
        f(threads),
        f(accumulators),
        pair(c.k_s, places_s),
        pair(c.k_l, places),
        f(places),
        f(shared),
        f(registers),
        blocks as f32,
        f(per_sm),
        waves as f32,
        f((slice / c.u).max(1)),
        share(outs, tiles_k, c.k_l),
        share(result_places, tiles_at, places),
        f(per_sm * threads),
        f(body),
        f(launches.max(1)),
        // What the last wave leaves idle.
        (waves.ceil() / waves) as f32,
    ]);
    let flags = [c.load == Load::Nc, c.load == Load::Async, c.scan == Scan::Steps];
    out.extend(flags.map(|b| f32::from(u8::from(b))));
}
