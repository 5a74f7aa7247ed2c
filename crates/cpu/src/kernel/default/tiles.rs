//! Register tiles, and what a step of the reduction takes with each.

use super::{ALL, Facts};

/// Register tiles that are tried: vectors, and most elements across them.
const TILES: [(usize, usize); 19] = [
    (2, 12),
    (2, 10),
    (2, 9),
    (2, 8),
    (2, 7),
    (2, 14),
    (2, 6),
    (2, 5),
    (3, 9),
    (3, 8),
    (3, 6),
    (3, 4),
    (4, 6),
    (4, 5),
    (1, 28),
    (1, 20),
    (1, 14),
    (1, 12),
    (1, 10),
];

/// Beside two or three elements, where vectors are half a line. On a Zen 3 random products of two rows took 0.85 to 0.9 of the time that
/// two sets of tiles of two vectors took in f32 and f64, of three 0.95 to 0.98. Beside 6, 9 and 15 elements tiles of two vectors were
/// faster, and so were they beside two that come from memory.
pub(super) const TALL: (usize, usize) = (4, 3);

/// [`TILES`] of complex elements, each of which is broadcast as two numbers.
const COMPLEX_TILES: [(usize, usize); 16] = [
    (2, 6),
    (2, 5),
    (2, 4),
    (2, 7),
    (2, 3),
    (2, 2),
    (3, 4),
    (3, 3),
    (3, 2),
    (4, 3),
    (4, 2),
    (1, 14),
    (1, 10),
    (1, 7),
    (1, 6),
    (1, 5),
];

/// The register tile that takes the fewest cycles a step of k over `v` by `s` elements, tiles of an edge balanced.
pub(super) fn best_tile(f: &Facts, v: usize, s: usize) -> (usize, usize) {
    cheapest(f, s, |tile| tile_cycles(f, v, s, tile))
}

/// The same beside a long operand that is read from memory once for each tile across the short side.
pub(super) fn streaming_tile(f: &Facts, short: usize) -> (usize, usize) {
    let units = ALL / f.lanes;
    cheapest(f, short, |tile| tile_cycles(f, ALL, short, tile) + FETCHED * (units * short.div_ceil(tile.1)) as f64)
}

/// The tile of the least cycles, for so many elements across vectors.
fn cheapest(f: &Facts, s: usize, cycles: impl Fn((usize, usize)) -> f64) -> (usize, usize) {
    // Of narrow operands, products or bits to change may take a register.
    let more = if f.in_place { 1 } else { 2 };
    let fits = |&&(vecs, n_s): &&(usize, usize)| {
        let numbers = n_s * f.parts;
        vecs * numbers + (vecs.min(numbers) + more).max(4) <= f.registers()
    };
    let tiles = if f.parts == 1 { &TILES[..] } else { &COMPLEX_TILES };
    let is_from_memory = s == 2 && 2 * f.bytes() > f.l3;
    let is_tall = f.is_half() && f.in_place && (2..=TALL.1).contains(&s) && !is_from_memory;
    let few: &[(usize, usize)] = if is_tall { &[TALL] } else { &[] };
    let best = tiles.iter().chain(few).filter(fits).min_by(|a, b| cycles(**a).total_cmp(&cycles(**b)));
    best.copied().unwrap_or((1, 6 / f.parts))
}

/// Cycles of a step of k over `v` by `s` elements: of two units for multiply-adds, of two for loads, and never under the latency of a
/// chain, which sets of accumulators share.
pub(super) fn tile_cycles(f: &Facts, v: usize, s: usize, (vecs, n_s): (usize, usize)) -> f64 {
    let units = v.div_ceil(f.lanes);
    let (along, across) = (units.div_ceil(vecs), s.div_ceil(n_s));
    let (vecs, n_s) = (units as f64 / along as f64, (s * f.parts) as f64 / across as f64);
    // Sets take turns in a reduction that is long beside adding them up.
    let latency = if f.k >= 64 { LATENCY / sets((vecs * n_s).ceil() as usize) as f64 } else { LATENCY };
    let step = (vecs * n_s / 2.0).max((vecs + n_s) / 2.0).max(latency) + 0.5;
    along as f64 * across as f64 * step
}

/// Sets of accumulators that keep two units busy with so many chains in each.
pub(super) fn sets(chains: usize) -> usize {
    [4, 2].into_iter().find(|sets| sets * chains <= CHAINS).unwrap_or(1)
}

/// Chains of multiply-adds that keep two units busy.
const CHAINS: usize = 8;

/// Cycles of a vector that comes from further than the first-level cache.
const FETCHED: f64 = 0.25;

/// Cycles from a multiply-add to the next of its chain.
const LATENCY: f64 = 4.0;
