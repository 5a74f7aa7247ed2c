//! What a model sees of a configuration: the parameters, and what they come to for the input at hand.
//!
//! Rows and columns are those of the problem that the kernel solves, so that a feature means the same for both axes.

use super::space::Description;
use crate::blueprint::edge::share_of_edge;
use crate::scalar::Kind;
use tilewright_core::feature::Feature;
use tilewright_core::space::Values;
use tilewright_ops::gemm::GemmInput;

/// Sizes beside the first ones of [`NAMES`].
const DERIVED: [&str; 15] = [
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
    let sizes = NAMES.into_iter().take(13).chain(DERIVED);
    sizes.map(Feature::size).chain(FLAGS.into_iter().map(Feature::flag)).collect()
}

/// What features are made of, parameters and what the space derives.
pub(super) const NAMES: [&str; 21] = [
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
    "rows",
    "columns",
    "axis_n",
    "pack_a",
    "pack_b",
    "broadcasts",
    "streams_c",
    "prefetch",
];

/// NaN where a name has no value, which is nowhere at a legal point.
pub(super) fn features(kind: Kind, input: &GemmInput, at: &Values<'_>, out: &mut Vec<f32>) {
    match at.ints(Description::of(kind).features) {
        Some(values) => append(kind, input, values, out),
        None => out.resize(out.len() + names().len(), f32::NAN),
    }
}

fn append(kind: Kind, input: &GemmInput, values: [u32; NAMES.len()], out: &mut Vec<f32>) {
    let [m_s, n_s, m_l, n_l, u, k_s, k_l, k_g, t_m, t_n, lanes, vectors, accumulators, rows, columns, flags @ ..] =
        values;
    let [axis_n, pack_a, pack_b, broadcasts, streams_c, prefetch] = flags;
    // A size of 0 is seen as 1.
    let (m, n, k) = (rows.max(1), columns.max(1), input.k.max(1) as u32);
    let m_l = whole(m_l, m_s).min(m.next_multiple_of(m_s));
    let n_l = n_l.next_multiple_of(n_s).min(n.next_multiple_of(n_s));
    let u = u.min(k);
    let (tiles_m, tiles_n) = (m.div_ceil(m_s), n.div_ceil(n_s));
    // Along vectors an edge costs a vector, or a part of it; across them tiles are balanced, so the smallest tile tells the loss.
    let (along_m, along_n) = (!input.layout.a_transposed(), input.layout.b_transposed());
    let (along_v, along_s) = if axis_n == 1 { (along_n, along_m) } else { (along_m, along_n) };
    let copies_on_the_way = pack_a == 1 && broadcasts == 0 && m_l == m_s && along_v;
    let turns = kind == Kind::Real && (along_s || pack_b == 1) && !copies_on_the_way;
    let width = n.div_ceil(tiles_n) as usize;
    let edge = if turns { share_of_edge(m as usize, lanes as usize, (width, input.k)) } else { 1.0 };
    let vectors_m = f64::from(m / lanes) + if m.is_multiple_of(lanes) { 0.0 } else { edge };
    let use_m = f64::from(m) / (vectors_m * f64::from(lanes));
    let use_n = f64::from(n) / f64::from(tiles_n * n_s);
    let share = |tiles: u32, threads: u32| tiles.div_ceil(threads) as f32 * threads as f32 / tiles as f32;
    let balance = share(tiles_m, t_m) * share(tiles_n, t_n);
    let f = |x: u32| x as f32;
    let element = input.dtype().size() as f32;
    let bytes = |a: u32, b: u32| a as f32 * b as f32 * element;
    out.extend([m_s, n_s, m_l, n_l, u, k_s, k_l, k_g, t_m, t_n, lanes, vectors, accumulators].map(f));
    out.extend([
        f(vectors * n_s) / f(vectors + n_s),
        f(tiles_m),
        f(tiles_n),
        f(m.div_ceil(m_l)),
        f(n.div_ceil(n_l)),
        f(k.div_ceil(u)),
        use_m as f32,
        use_n as f32,
        bytes(m_s, u),
        bytes(n_s, u),
        bytes(m_l, u),
        bytes(n_l, u),
        balance,
        f(m),
        f(n),
    ]);
    let flags = [
        axis_n == 1,
        pack_a == 1,
        pack_b == 1,
        broadcasts == 1,
        streams_c == 1,
        (1..16).contains(&prefetch),
        prefetch >= 16,
    ];
    out.extend(flags.map(|b| f32::from(u8::from(b))));
}

/// A cache tile rounded down to whole register tiles.
fn whole(block: u32, tile: u32) -> u32 {
    (block / tile).max(1) * tile
}
