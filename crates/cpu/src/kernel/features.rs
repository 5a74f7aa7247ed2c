//! What a model sees of a configuration: the parameters, and what they come to for the input at hand.
//!
//! Rows and columns are those of the problem that the kernel solves, so that a feature means the same for both axes.

use crate::config::{Axis, GemmConfig, Order, Store};
use tilewright_core::device::DeviceSpec;
use tilewright_core::feature::Feature;
use tilewright_ops::gemm::GemmInput;

const SIZES: [&str; 28] = [
    "m_s",
    "n_s",
    "m_l",
    "n_l",
    "u",
    "k_s",
    "k_l",
    "k_g",
    "t_m",
    "t_n",
    "lanes",
    "vectors",
    "accumulators",
    "reuse",
    "tiles_m",
    "tiles_n",
    "blocks_m",
    "blocks_n",
    "blocks_k",
    "use_m",
    "use_n",
    "panel_a_bytes",
    "panel_b_bytes",
    "block_a_bytes",
    "block_b_bytes",
    "thread_balance",
    "rows",
    "columns",
];
const FLAGS: [&str; 7] = ["axis_n", "pack_a", "pack_b", "order_broadcast", "stream", "prefetch_near", "prefetch_far"];

pub(super) fn names() -> Vec<Feature> {
    SIZES.into_iter().map(Feature::size).chain(FLAGS.into_iter().map(Feature::flag)).collect()
}

pub(super) fn features(_device: &DeviceSpec, input: &GemmInput, config: &GemmConfig, out: &mut Vec<f32>) {
    let element = input.dtype.size() as u32;
    let (m, n, k) = (input.m.max(1) as u32, input.n.max(1) as u32, input.k.max(1) as u32);
    let transposed = config.axis == Axis::N;
    let (c, m, n) = if transposed { (&config.transposed(), n, m) } else { (config, m, n) };
    let lanes = (c.vec / element).max(1);
    let vectors = (c.m_s / lanes).max(1);
    let m_l = whole(c.m_l, c.m_s).min(m.next_multiple_of(c.m_s));
    let n_l = c.n_l.next_multiple_of(c.n_s).min(n.next_multiple_of(c.n_s));
    let u = c.u.min(k);
    let (tiles_m, tiles_n) = (m.div_ceil(c.m_s), n.div_ceil(c.n_s));
    // Along vectors an edge costs whole vectors; across them tiles are balanced, so the smallest tile tells the loss.
    let use_m = f64::from(m) / f64::from(m.next_multiple_of(lanes));
    let use_n = f64::from(n) / f64::from(tiles_n * c.n_s);
    let share = |tiles: u32, threads: u32| tiles.div_ceil(threads) as f32 * threads as f32 / tiles as f32;
    let balance = share(tiles_m, c.t_m) * share(tiles_n, c.t_n);
    let f = |x: u32| x as f32;
    let bytes = |a: u32, b: u32| a as f32 * b as f32 * element as f32;
    out.extend([
        f(c.m_s),
        f(c.n_s),
        f(m_l),
        f(n_l),
        f(u),
        f(c.k_s),
        f(c.k_l),
        f(c.k_g),
        f(c.t_m),
        f(c.t_n),
        f(lanes),
        f(vectors),
        f(vectors * c.n_s * c.k_l),
        f(vectors * c.n_s) / f(vectors + c.n_s),
        f(tiles_m),
        f(tiles_n),
        f(m.div_ceil(m_l)),
        f(n.div_ceil(n_l)),
        f(k.div_ceil(u)),
        use_m as f32,
        use_n as f32,
        bytes(c.m_s, u),
        bytes(c.n_s, u),
        bytes(m_l, u),
        bytes(n_l, u),
        balance,
        f(m),
        f(n),
    ]);
    let flags = [
        c.axis == Axis::N,
        c.pack_a,
        c.pack_b,
        c.order == Order::Broadcast,
        c.store == Store::Stream,
        (1..16).contains(&c.prefetch),
        c.prefetch >= 16,
    ];
    out.extend(flags.map(|b| f32::from(u8::from(b))));
}

/// A cache tile rounded down to whole register tiles.
fn whole(block: u32, tile: u32) -> u32 {
    (block / tile).max(1) * tile
}
