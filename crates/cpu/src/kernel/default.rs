//! What runs before anything is tuned: a blocking for the shape and the caches at hand.
//!
//! Products fall into six families by what bounds them. A *large* one reads each panel many times: both operands are packed, a
//! block of the one that vectors run along stays in the second-level cache and a panel of the other in the first, or, where vectors are half
//! a line, a panel of vectors in the first and a block of the other beyond. Of a *skinny* one the
//! long operand is read a few times only, so that a copy seldom pays: it streams past the short one, mostly from where it lies. A *deep*
//! one has little of anything but its reduction, a *long* one not much of anything else and operands that can be read where they lie, a
//! *flat* one is bounded by the writing of C, and a *medium* one lies in the caches as it is, mostly.

mod facts;
mod flat;
mod skinny;
mod threads;
pub(super) mod three_m;
mod tiles;
mod wanted;

use crate::LINE;
use crate::config::Axis;
use crate::scalar::Kind;
use facts::{Facts, Family, SHORT};
use threads::Threads;
use tiles::{TALL, best_tile, sets};
use tilewright_core::device::DeviceSpec;
use tilewright_core::space::{BoundSpace, Point};
use tilewright_ops::gemm::GemmInput;

/// Preferred values per parameter, best first; the first combination that is legal is taken, depth first in the order of the space: where
/// a rule forbids a combination, its later parameters give way before its earlier ones.
pub(super) fn default_point(
    device: &DeviceSpec,
    (kind, input): (Kind, &GemmInput),
    space: &BoundSpace,
) -> Option<Point> {
    let facts = Facts::of(device, input);
    let choice = if kind == Kind::ThreeM { Choice::of_three_products(&facts) } else { Choice::of(&facts) };
    space.preferred_point(|param| choice.wanted(param))
}

/// The values that are wanted; of sizes the largest that is legal and not above.
#[derive(Clone, Debug)]
struct Choice {
    axis: Axis,
    /// Bytes of a vector.
    vec: usize,
    /// Bytes of an element.
    es: usize,
    /// Register tile: vectors, and elements across them.
    tile: (usize, usize),
    pack_v: bool,
    pack_s: bool,
    /// Whether the panel of the broadcast operand stays.
    broadcast: bool,
    /// Sets of accumulators, which take turns along k.
    k_l: usize,
    u: usize,
    v_block: usize,
    s_block: usize,
    k_s: usize,
    stream: bool,
    prefetch: usize,
    threads: Threads,
    /// Whether there is too little to do for the waking of threads, in multiply-adds of 32-bit numbers.
    is_little: bool,
}

/// Beyond all values of a parameter.
const ALL: usize = 1 << 20;

impl Choice {
    fn of(f: &Facts) -> Self {
        Self::blocked(f).divided(f)
    }

    /// The tile and the blocks of the family.
    fn blocked(f: &Facts) -> Self {
        match f.family() {
            Family::Large => Self::large(f).keeping_vectors(f),
            Family::Skinny => Self::skinny(f),
            Family::Deep => Self::deep(f),
            Family::Long => Self::long(f),
            Family::Medium => Self::medium(f),
            Family::Flat => Self::flat(f).past_few_vectors(f),
        }
    }

    /// The same with what follows from tile and blocks: vectors, sets of accumulators and threads.
    fn divided(self, f: &Facts) -> Self {
        let choice = self;
        let (v, s) = f.sides(choice.axis);
        let threads = f.divided(choice.axis, choice.tile);
        let stays = threads == Threads::Reduction && 4 * f.bytes() <= 3 * f.l2 * f.threads;
        // Slices that stay in each thread's second-level cache are not asked for, and are long.
        let choice = match f.family() {
            Family::Skinny if stays => Self { u: choice.u.max(256), prefetch: 0, ..choice },
            Family::Deep if stays => Self { prefetch: 0, ..choice },
            _ => choice,
        };
        // Lines are taken apart to be written to columns of two or three elements, which takes as long as what little is multiplied.
        let is_short = choice.axis == Axis::N && (2..=3).contains(&s) && v > f.lanes;
        let is_taken_apart = f.in_place && is_short && f.k < 16;
        let vec = if is_taken_apart { f.vec(v).min(LINE / 2) } else { f.vec(v) };
        let chains = (v * f.es).div_ceil(vec).min(choice.tile.0) * s.min(choice.tile.1) * f.parts;
        let pack_v = choice.pack_v || f.is_copied();
        Self { vec, k_l: sets(chains), threads, is_little: f.is_little(choice.axis, threads), pack_v, ..choice }
    }

    /// Goto's loops: a panel of B in three eighths of the first-level cache, a block of A in half of the second.
    fn large(f: &Facts) -> Self {
        let tile = if f.registers() > 16 { (2, 12 / f.parts) } else { (2, 6 / f.parts) };
        // A panel is read from where it lies by the first tile of a block, and a few times only; not where each of its steps, which lie
        // apart, takes more than a line, or than half a one past vectors of that: 192 x 192 x 192 nt in f64 took 0.83 of the time with a
        // copy, 220 0.87, 170 and 250 1.03.
        let most = if f.is_half() { LINE / 2 } else { LINE };
        let pack_s = !f.is_near() || f.evicts_across(Axis::M) || (!f.deep_b && tile.1 * f.es > most);
        let tile = if pack_s { tile } else { f.side_by_side(Axis::M, tile) };
        let u = 3 * f.l1 / 8 / (tile.1 * f.es);
        Self {
            axis: Axis::M,
            vec: f.lanes * f.es,
            es: f.es,
            tile,
            pack_v: true,
            pack_s,
            broadcast: true,
            k_l: 1,
            u,
            v_block: f.half_of_l2(u),
            s_block: 4096,
            k_s: 4,
            stream: false,
            prefetch: if f.is_near() { 0 } else { 8 },
            threads: Threads::Grid(1),
            is_little: false,
        }
    }

    /// The same loops the other way round where vectors are half a line and both operands are copied: a panel of vectors stays in three quarters
    /// of the first-level cache while those of the other operand stream past it, which are a half of what would stream past them in f64,
    /// and a quarter in f32. A processor fetches that ahead by itself. The block that streams is at most four times as large as the second-level
    /// cache: with all of B, 1000 x 4096 x 512 nt in c64 took 1.3 times as long. On a Zen 3, squares of 256 to 2048 took about 0.94 of the time in
    /// f64, 0.91 on two threads, complex ones 0.92, bfloat16 0.97, and in f32 0.96 from 1000 on, below as long; random rectangles on one thread
    /// took 0.99 in f64 and f32, 0.95 in c64.
    fn keeping_vectors(self, f: &Facts) -> Self {
        if !f.halves_lines() || !self.pack_s {
            return self;
        }
        // A C of two second-level caches or less goes past all of the first-level cache instead, in panels of two vectors, so that it is read and
        // written for half as many blocks of k: 256 x 256 x 60000 nt took 0.9 of the time, 400 x 400 x 400 and 1200 x 200 x 3000 0.96;
        // 600 x 600 x 4000, and numbers of 8 bytes, as long.
        let is_little = f.es == 4 && f.is_half() && f.m * f.n * f.es <= 2 * f.l2;
        // Products of narrow operands may take a register of their own.
        let tile = if f.in_place && !is_little { (3, 4 / f.parts) } else { self.tile };
        let share = if f.in_place && is_little { 4 } else { 3 };
        let u = share * f.l1 / 4 / (tile.0 * f.lanes * f.es);
        let v_block = f.half_of_l2(u);
        Self { tile, broadcast: false, u, v_block, s_block: 8 * v_block, k_s: 8, prefetch: 0, ..self }
    }

    /// Nothing is used often enough for a copy, where vectors can be loaded without one, unless its steps fall into few sets of a cache.
    fn deep(f: &Facts) -> Self {
        // Where one operand alone can be loaded without a copy, vectors run along it.
        let axis = match (f.deep_a, f.deep_b) {
            (true, false) => Axis::N,
            (false, true) => Axis::M,
            _ => f.cheaper_axis(),
        };
        let (v, s) = f.sides(axis);
        let tile = f.side_by_side(axis, best_tile(f, v, s));
        let fits_l2 = f.bytes() <= f.l2;
        let u = f.deep_steps(axis, tile, fits_l2);
        let prefetch = if fits_l2 { 0 } else { 32 };
        // Weaving takes registers that the widest tiles have not.
        let is_woven = f.is_woven(axis);
        let tile = if is_woven && tile.0 > 1 { (2, tile.1.min(WOVEN.1)) } else { tile };
        let pack_v = !(f.is_loaded(axis) || f.is_widened(axis) || is_woven);
        let (v_block, s_block) = (tile.0 * f.lanes, s.next_power_of_two());
        let common = Self { axis, tile, pack_v, pack_s: false, s_block, ..Self::large(f) };
        let deep = Self { broadcast: false, u, v_block, prefetch, ..common };
        let is_whole = (v_block * f.es).is_multiple_of(LINE) && f.pitch_along(axis).is_multiple_of(LINE);
        let shares_lines = !pack_v && v > v_block && !is_whole;
        if !pack_v && !is_woven && f.fills_tall_tile(axis) {
            return common.past_tall_tile(f);
        }
        if f.is_narrow() && !pack_v && f.is_deep_by_steps(axis, tile, shares_lines) {
            return deep.step_by_step(f, v, s);
        }
        let by_rows = f.halves_lines() && f.is_far_across(axis) && !f.deep_across(axis);
        if (axis == Axis::M || by_rows) && f.is_narrow() && f.in_place && shares_lines {
            // Panels would read parts of lines, the rest of which is the next panel's: steps are read from end to end instead, about as many as
            // the first-level cache holds. Prefetches pay where they come from memory, unless the other operand lies along k. What is
            // read again for each tile across is so less often by tiles of six numbers: 118 x 17 x 32768 nt in f32 took 0.95 of the time, 72 x 17 0.8.
            let u = (3 * f.l1 / 2 / (v * f.es)).min(96);
            let prefetch = if f.deep_across(axis) || f.bytes() <= 8 * f.l2 { 0 } else { 8 };
            let is_wide = f.halves_lines() && tile.0 == 3 && !f.deep_across(axis);
            let tile = if is_wide { (2, 6 / f.parts) } else { tile };
            return Self { tile, broadcast: true, u, v_block: ALL, prefetch, ..common };
        }
        if f.es == 8 && f.parts == 1 && !f.is_narrow() && !f.waits_for_l3() && shares_lines {
            // The same of numbers of 8 bytes where vectors are lines: all panels are read side by side, and shared lines are still near.
            return Self { broadcast: true, u, v_block: ALL, prefetch, ..common };
        }
        if f.parts == 2
            && !f.is_narrow()
            && axis == Axis::M
            && !pack_v
            && !f.deep_b
            && v > 2 * v_block
            && s >= SHORT / 4
        {
            // Both operands are read step by step, some lines of each at a time.
            return Self { tile: WIDE_COMPLEX, broadcast: false, u: 64, v_block: 64, k_s: 8, prefetch, ..common };
        }
        deep.running_ahead(f)
    }

    /// A deep product whose vectors are about [one tile](Facts::fills_tall_tile). On a Zen 3 random products of 25 to 31 rows in f32, and of 13 to
    /// 15 in f64, took 0.73 to 0.83 of the time in the mean where the other operand lies along k, 0.78 to 0.92 beside few columns; of 32 and
    /// 16 rows 0.83 to 0.9.
    fn past_tall_tile(self, f: &Facts) -> Self {
        let v_block = TALL.0 * f.lanes;
        Self { tile: TALL, broadcast: false, u: 256, v_block, k_s: 8, prefetch: 0, ..self }
    }

    /// A deep product of which the operand across vectors of half a line lies along k: a processor runs ahead in its rows, so that steps of
    /// what takes 16 second-level caches or less are not asked for. On a Zen 3 random products of 600 to 6000 steps took 0.9 to 0.96 of the
    /// time in the mean. Where the other one lies so too, and is copied, more steps are copied at a time and none asked for: 0.83 to 0.9.
    fn running_ahead(self, f: &Facts) -> Self {
        if !(f.is_half() && f.in_place && f.deep_across(self.axis) && self.prefetch > 0) {
            return self;
        }
        if self.pack_v {
            return Self { u: 512, k_s: 8, prefetch: 0, ..self };
        }
        let prefetch = if f.bytes() <= 16 * f.l2 { 0 } else { self.prefetch };
        Self { k_s: 8, prefetch, ..self }
    }

    /// Both operands of a deep product are [read step by step](Facts::is_deep_by_steps): few enough steps at a time that lines of the one are
    /// still in the first-level cache for the tile across that reads the rest of them (64 x 64 x 60000 nt took 0.8 of the time that it took in blocks of
    /// twice the steps), by wide tiles where they are not many more. On a Zen 3, with wide tiles of 64 steps 50 x 70 x 20000 nt took 0.76 of the
    /// time in f32 that 128 steps took, and 0.93 in f64; 100 x 100 x 3000 took 0.86 and 0.75 of what it took from end to end.
    fn step_by_step(self, f: &Facts, v: usize, s: usize) -> Self {
        if let Some(crowded) = self.past_crowded_sets(f) {
            return crowded;
        }
        let is_wide = f.widens_tile((v, s), self.tile);
        if is_wide || f.parts == 2 {
            let tile = if is_wide { (3, 4 / f.parts) } else { self.tile };
            return Self { tile, u: STEPS, v_block: 64, k_s: 8, ..self };
        }
        let panels = if v >= 4 * self.v_block { 2 } else { 1 };
        Self { u: 512 / f.es, v_block: panels * self.v_block, k_s: 8, ..self }
    }

    /// The same where steps of both operands fall into few sets of the first-level cache, so that lines of the one across vectors of half a line leave it
    /// before the next tile reads the rest of them: fewer steps at a time, or copies of them. On one thread of a Zen 3 64 x 64 x 60000 nt took 0.85 of the
    /// time with copies in c64, 128 x 128 x 20000 0.75, in f64 and c32 0.86; with fewer steps 32 x 32 x 60000 in c64 0.93,
    /// 64 x 64 x 60000 in f64 and c32 0.91, 128 x 128 x 20000 in f32 0.89. Random complex products took 0.87 to 0.93 of the time on one thread and 0.93 to
    /// 0.97 on two; real ones only on one, of 64 rows and columns or more whose steps are alike, by tiles of two vectors.
    fn past_crowded_sets(&self, f: &Facts) -> Option<Self> {
        let (along, across) = (f.held(f.pitch_along(self.axis)), f.held(f.pitch_across(self.axis)));
        let is_even = f.threads == 1 && along == across && f.m.min(f.n) >= 64;
        // Fewer steps than two blocks of these are little to do.
        let applies = f.halves_lines() && f.in_place && f.k > 2 * STEPS && along <= STEPS;
        if !((f.parts == 2 || is_even) && applies) {
            return None;
        }
        let choice = self.clone();
        if across <= STEPS / 2 {
            return Some(Self { tile: (2, 6 / f.parts), pack_s: true, u: 2048 / f.es, v_block: 64, k_s: 4, ..choice });
        }
        let tile = if f.parts == 2 { (3, 2) } else { (2, 4) };
        (across <= STEPS).then_some(Self { tile, u: STEPS / 2, v_block: 64, k_s: 8, ..choice })
    }

    /// Some hundred steps of the vectors of a tile stay near, while rows of the other operand go past them a few at a time from where they lie: 256 x 256 x 8192 nn took 0.87 of the time that Goto's loops took, and 160 x 200 x 5000 on two threads 0.8.
    fn long(f: &Facts) -> Self {
        let axis = if f.deep_a { Axis::N } else { Axis::M };
        let tile = (4, 6);
        let v_block = tile.0 * f.lanes;
        let large = Self::large(f);
        let placed = Self { axis, tile, pack_v: false, pack_s: false, broadcast: false, v_block, ..large };
        Self { u: 1024 / f.es, k_s: 8, prefetch: 32, ..placed }
    }

    /// Packing would take longer than reading a few lines twice, unless their pages evict each other from the TLB, or the lines
    /// each other from the first-level cache.
    fn medium(f: &Facts) -> Self {
        let axis = f.cheaper_axis();
        let pack_v = !f.is_loaded(axis) || f.crowds_sets(axis);
        let (v, s) = f.sides(axis);
        let tile = f.side_by_side(axis, best_tile(f, v, s));
        // What one tile covers stays, however long the other side is.
        let broadcast = pack_v && v > tile.0 * f.lanes;
        let pack_s = f.evicts_across(axis);
        let common = Self { axis, tile, prefetch: 0, ..Self::large(f) };
        // A panel that is read along memory may be two thirds longer: that took less time than a second pass over C.
        let is_whole = !pack_s && f.deep_across(axis) && 3 * f.k <= 5 * common.u;
        let u = if is_whole { common.u.max(3 * f.k / 2) } else { common.u };
        let medium = Self { pack_v, pack_s, broadcast, u, v_block: ALL, ..common };
        // Pages of a long operand fall where they will, so that a good part of the second-level cache does not hold all of it.
        if f.waits_for_l3() && !pack_v && s <= SHORT && 3 * v * f.k * f.es > 2 * f.l2 {
            return Self { u: 96, prefetch: 8, ..medium };
        }
        medium
    }
}

/// The register tile of complex elements whose vectors and broadcasts are fewest for what it multiplies, where vectors are lines.
const WIDE_COMPLEX: (usize, usize) = (3, 4);

/// Steps of a block of a deep product whose operands are both read step by step, by wide tiles.
const STEPS: usize = 64;

/// The tile whose vectors are woven as they are loaded, and the most that a deep product's may be.
const WOVEN: (usize, usize) = (2, 12);

#[cfg(test)]
mod tests;
