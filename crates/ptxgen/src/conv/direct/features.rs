//! What a model sees of a configuration.

use super::space::{Config, Description, SIZES};
use crate::gemm::registers::blocks_of;
use tilewright_core::feature::Feature;
use tilewright_core::space::{SpaceBuilder, Values};

/// Sizes besides the parameters.
const MORE: [&str; 13] = [
    "tile",
    "reuse",
    "seen",
    "body",
    "trips",
    "shared_bytes",
    "registers",
    "blocks",
    "waves",
    "use_k",
    "use_q",
    "launches",
    "tail",
];
const FLAGS: [&str; 3] = ["filters_shared", "scan_groups", "taps_unrolled"];

/// What the space derives of a configuration and a model sees, and what it knows of the device.
pub(super) const DERIVED: [&str; 20] = [
    "accumulators",
    "seen",
    "row",
    "row_loads",
    "body",
    "trips",
    "shared_bytes",
    "registers_needed",
    "blocks_first",
    "tiles_k",
    "in_grid",
    "result_outs",
    "result_columns",
    "strips_row",
    "launches",
    "device_multiprocessors",
    "device_registers",
    "device_shared",
    "device_threads",
    "device_blocks",
];

pub(super) fn names() -> Vec<Feature> {
    SIZES.into_iter().chain(MORE).map(Feature::size).chain(FLAGS.into_iter().map(Feature::flag)).collect()
}

/// Names what a row needs of the input and the device.
pub(super) fn of_device(space: SpaceBuilder) -> SpaceBuilder {
    space
        .define("trips", "channels * tap_rows")
        .define("result_outs", "max(outs, 1)")
        .define("result_columns", "max(grid_columns, 1)")
        .define("strips_row", "(result_columns + q_s - 1) // q_s")
        .define("launches", "correlations")
        .define("device_multiprocessors", "multiprocessors")
        .define("device_registers", "registers_per_sm")
        .define("device_shared", "shared_per_sm")
        .define("device_threads", "threads_per_sm")
        .define("device_blocks", "blocks_per_sm")
}

/// NaN where a name has no value, which is nowhere at a legal point.
pub(super) fn features(at: &Values<'_>, out: &mut Vec<f32>) {
    match (Config::of(at), at.ints(Description::get().features)) {
        (Some(config), Some(derived)) => append(&config, derived, out),
        _ => out.resize(out.len() + SIZES.len() + MORE.len() + FLAGS.len(), f32::NAN),
    }
}

fn append(c: &Config, derived: [u32; DERIVED.len()], out: &mut Vec<f32>) {
    let [accumulators, seen, row, row_loads, body, trips, shared, registers, blocks, tiles_k, in_grid, rest @ ..] =
        derived;
    let [outs, columns, strips_row, launches, device @ ..] = rest;
    let [multiprocessors, registers_per_sm, shared_per_sm, threads_per_sm, blocks_per_sm] = device;
    // A size of 0 is seen as 1.
    let f = |x: u32| x.max(1) as f32;
    let blocks = f64::from(blocks.max(1)) * f64::from(tiles_k.max(1)) * f64::from(in_grid.max(1));
    let by_registers = blocks_of(registers_per_sm, registers, c.threads);
    let by_shared = shared_per_sm / shared.max(1);
    let per_sm = by_registers.min(by_shared).min(threads_per_sm / c.threads).min(blocks_per_sm).max(1);
    let waves = blocks / (f64::from(per_sm) * f64::from(multiprocessors));
    out.extend([c.k_s, c.q_s, c.threads].map(f));
    out.extend([
        f(accumulators),
        // Multiply-adds of a row of taps per number that is loaded.
        f(row) / f(row_loads),
        f(seen),
        f(body),
        f(trips),
        f(shared),
        f(registers),
        blocks as f32,
        waves as f32,
        f(outs) / (f(tiles_k) * f(c.k_s)),
        f(columns) / (f(strips_row) * f(c.q_s)),
        f(launches),
        // What the last wave leaves idle.
        (waves.ceil() / waves) as f32,
    ]);
    out.extend([c.shared, c.along_groups, c.unrolled].map(|b| f32::from(u8::from(b))));
}
