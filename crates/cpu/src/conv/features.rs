//! What a model sees of a configuration: the parameters, and what they come to for the input at hand.

use super::space::Description;
use tilewright_core::feature::Feature;
use tilewright_core::space::Values;

/// Sizes among [`NAMES`], which come first.
const SIZES: usize = 19;
/// Sizes beside them.
const DERIVED: [&str; 6] = ["reuse", "use_v", "use_s", "blocks_k", "blocks_positions", "tiles"];
const FLAGS: [&str; 6] = ["axis_q", "broadcasts", "slab", "stage", "prefetch_near", "prefetch_far"];

/// What features are made of, parameters and what the space derives.
pub(super) const NAMES: [&str; 24] = [
    "m_s",
    "n_s",
    "n_l",
    "u",
    "k_s",
    "k_l",
    "t",
    "t_m",
    "lanes",
    "vectors",
    "accumulators",
    "panel_bytes",
    "packed_bytes",
    "block_bytes",
    "v_len",
    "s_len",
    "out_count",
    "sum_length",
    "position_count",
    "axis_q",
    "broadcasts",
    "slab",
    "stage",
    "prefetch",
];

pub(super) fn names() -> Vec<Feature> {
    let sizes = NAMES.into_iter().take(SIZES).chain(DERIVED);
    sizes.map(Feature::size).chain(FLAGS.into_iter().map(Feature::flag)).collect()
}

/// NaN where a name has no value, which is nowhere at a legal point.
pub(super) fn features(at: &Values<'_>, out: &mut Vec<f32>) {
    match at.ints::<u64, _>(Description::get().features) {
        Some(values) => append(values, out),
        None => out.resize(out.len() + names().len(), f32::NAN),
    }
}

fn append(values: [u64; NAMES.len()], out: &mut Vec<f32>) {
    let [
        m_s,
        n_s,
        n_l,
        u,
        ..,
        lanes,
        vectors,
        _,
        _,
        _,
        _,
        v_len,
        s_len,
        _,
        sums,
        positions,
        axis_q,
        broadcasts,
        slab,
        stage,
        prefetch,
    ] = values;
    // A size of 0 is seen as 1.
    out.extend(values[..SIZES].iter().map(|&x| x.max(1) as f32));
    let (v_len, s_len) = (v_len.max(1), s_len.max(1));
    let share = |len: u64, tile: u64| len as f32 / len.next_multiple_of(tile.max(1)) as f32;
    out.extend([
        (vectors * n_s) as f32 / (vectors + n_s) as f32,
        share(v_len, lanes),
        share(s_len, n_s),
        sums.max(1).div_ceil(u) as f32,
        positions.max(1).div_ceil(n_l) as f32,
        (v_len.div_ceil(m_s) * s_len.div_ceil(n_s)) as f32,
    ]);
    let flags = [axis_q == 1, broadcasts == 1, slab == 1, stage == 1, (1..16).contains(&prefetch), prefetch >= 16];
    out.extend(flags.map(|b| f32::from(u8::from(b))));
}
