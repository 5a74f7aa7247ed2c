//! What runs before anything is tuned: a blocking for the shape and the caches at hand.
//!
//! Products fall into six families by what bounds them. A *large* one reads each panel many times: both operands are packed, a
//! block of the one that vectors run along stays in the second-level cache and a panel of the other in the first, or, where vectors are half
//! a line, a panel of vectors in the first and a block of the other beyond. Of a *skinny* one the
//! long operand is read a few times only, so that a copy seldom pays: it streams past the short one, mostly from where it lies. A *deep*
//! one has little of anything but its reduction, a *long* one not much of anything else and operands that can be read where they lie, a
//! *flat* one is bounded by the writing of C, and a *medium* one lies in the caches as it is, mostly.

mod facts;
mod skinny;
mod threads;
mod tiles;
mod wanted;

use crate::LINE;
use crate::config::Axis;
use crate::sets::PAGE;
use facts::{Facts, Family, OFTEN, SHORT, STREAMS};
use threads::Threads;
use tiles::{best_tile, sets};
use tilewright_core::device::DeviceSpec;
use tilewright_core::space::{BoundSpace, Point};
use tilewright_ops::gemm::GemmInput;

/// Preferred values per parameter, best first; the first combination that is legal is taken, depth first in the order of the space: where
/// a rule forbids a combination, its later parameters give way before its earlier ones.
pub(super) fn default_point(device: &DeviceSpec, input: &GemmInput, space: &BoundSpace) -> Option<Point> {
    let choice = Choice::of(&Facts::of(device, input));
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
        let choice = match f.family() {
            Family::Large => Self::large(f).keeping_vectors(f),
            Family::Skinny => Self::skinny(f),
            Family::Deep => Self::deep(f),
            Family::Long => Self::long(f),
            Family::Medium => Self::medium(f),
            Family::Flat => Self::flat(f).past_few_vectors(f),
        };
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
        Self { vec, k_l: sets(chains), threads, is_little: f.is_little(choice.axis), ..choice }
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

    /// Nothing is used often enough for a copy, where vectors can be loaded without one.
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
        deep
    }

    /// Both operands of a deep product are [read step by step](Facts::is_deep_by_steps): few enough steps at a time that lines of the one are
    /// still in the first-level cache for the tile across that reads the rest of them (64 x 64 x 60000 nt took 0.8 of the time that it took in blocks of
    /// twice the steps), by wide tiles where they are not many more. On a Zen 3, with wide tiles of 64 steps 50 x 70 x 20000 nt took 0.76 of the
    /// time in f32 that 128 steps took, and 0.93 in f64; 100 x 100 x 3000 took 0.86 and 0.75 of what it took from end to end.
    fn step_by_step(self, f: &Facts, v: usize, s: usize) -> Self {
        let is_wide = f.widens_tile((v, s), self.tile);
        if is_wide || f.parts == 2 {
            let tile = if is_wide { (3, 4 / f.parts) } else { self.tile };
            return Self { tile, u: 64, v_block: 64, k_s: 8, ..self };
        }
        let panels = if v >= 4 * self.v_block { 2 } else { 1 };
        Self { u: 512 / f.es, v_block: panels * self.v_block, k_s: 8, ..self }
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

    /// C is written once: column by column unless there are few steps and it stays near, and around the caches where it does not fit them
    /// (see [`Self::around_caches`] for a slow one) and [whole lines of it are only written](Facts::writes_lines): halves of lines, in columns
    /// that lie pages apart, leave a processor's buffers before the other half comes. Where the widest vectors are half a line, [whole lines of
    /// a C in the last-level cache](Facts::streams_narrow) are written so, and a C beyond it by the loops of a large product, or [past few
    /// vectors](Self::past_few_vectors).
    fn flat(f: &Facts) -> Self {
        let axis = f.cheaper_axis();
        let common = Self { axis, u: f.k.next_power_of_two(), k_s: 8, prefetch: 0, ..Self::large(f) };
        let is_far = f.m * f.n * f.out > f.l3.min(8 * f.l2 / f.parts);
        if is_far && axis == Axis::M && f.is_narrow() {
            // Vectors of half a line read few steps of B in place sooner than copied: on a Zen 3 random products of up to 12 steps took 0.9 to 0.94
            // of the time in the mean. Steps that crowd few sets take 1.1 to 1.2 times as long in place, from nine on.
            let large = Self::large(f);
            let few = f.halves_lines() && f.in_place && f.k <= UNCOPIED_STEPS && !f.steps_of_b_crowd_l1();
            let large = Self { pack_s: large.pack_s && !few, ..large };
            // With a panel of vectors that stays, each tile is in other columns of C, which takes some steps to hide: of complex elements
            // 3456 x 3456 x 32 nt took 0.95 of the time, 2787 x 1070 x 19 nt 1.2; of real ones 4096 x 4096 x 32 nt took 1.08 in f64.
            return if f.parts == 2 && f.k >= 24 { large.keeping_vectors(f) } else { large };
        }
        if is_far && f.writes_lines(axis) {
            let (tile, v_block) = ((2, if f.parts == 1 { 7 } else { 6 }), 2 * f.lanes);
            return Self { tile, pack_s: true, stream: true, broadcast: false, v_block, s_block: 1024, ..common };
        }
        if f.streams_narrow(axis) {
            return common.whole_lines(f);
        }
        if f.copies_narrow(axis) {
            let tile = (4, 3);
            let (v_block, pack_s) = (tile.0 * f.lanes, f.steps_of_b_crowd_l1());
            return Self { tile, pack_v: true, pack_s, broadcast: false, v_block, ..common };
        }
        common.by_columns(f)
    }

    /// Columns go past few vectors of half a line, rather than those past each few columns: a loop of a few short tiles takes most of its time to
    /// begin and end. Real numbers take tiles of four vectors, of three along rows of C, unless those are more than an eighth more vectors.
    ///
    /// On a Zen 3, of up to 16 vectors 63 x 725 x 32 nn took 0.7 of the time in f32 and 59 x 3392 x 3 0.4, 31 x 725 x 32 in f64 0.7,
    /// 25 x 1649 x 1 in c32 0.25 and 27 x 10079 x 4 tn in c64 0.5. Of 17 to 32 vectors and a C of up to 4 MB 230 x 3912 x 6 nt took 0.73 in f32, and
    /// 103 x 4046 x 10 in c32 0.62. Of more vectors and a larger C 369 x 22195 x 8 in f32 took 1.5 times as long, and of few columns for each of
    /// two threads 147 x 360 x 5 1.8 times.
    fn past_few_vectors(self, f: &Facts) -> Self {
        let (v, s) = f.sides(self.axis);
        let most = if f.m * f.n * f.out > 8 * f.l2 { 16 } else { 32 };
        let is_long = s >= 2 * f.threads * v;
        if !(f.halves_lines() && f.in_place && self.broadcast && v <= most * f.lanes && is_long) {
            return self;
        }
        // Tiles of three columns would be transposed by twos and ones.
        let wide = if self.axis == Axis::M { (4, 3) } else { (3, 4) };
        let vectors = |tile: (usize, usize)| v.div_ceil(tile.0 * f.lanes) * tile.0;
        let is_wide = f.parts == 1 && 8 * vectors(wide) <= 9 * vectors(self.tile);
        let tile = if is_wide { wide } else { self.tile };
        // Few steps of B are read too seldom for a copy: 60 x 30000 x 3 nn in f32 took 0.5 of the time in place, 64 x 40000 x 20 tn 0.76,
        // 50 x 20000 x 60 nt in f64 1.7 times as long.
        let is_copied = self.pack_s && f.k > 40;
        let prefetch = if is_copied { self.prefetch } else { 0 };
        Self { tile, broadcast: false, pack_s: is_copied, s_block: 4096, prefetch, ..self }
    }

    /// A flat product that is neither written as whole lines nor past a copy of some rows of A: a tile after the other down some columns, or all
    /// columns of a few vectors.
    fn by_columns(self, f: &Facts) -> Self {
        let (axis, (v, s)) = (self.axis, f.sides(self.axis));
        let pack_v = !f.is_loaded(axis);
        let common = Self { pack_v, pack_s: f.thrashes_tlb(axis), k_s: 4, ..self }.around_caches(f);
        // Few columns at once, where all that is done is to write them.
        let only_writes = f.k < 16 && axis == Axis::M && v > f.lanes;
        let few_columns = if f.registers() > 16 { (4, 6 / f.parts) } else { (2, 6 / f.parts) };
        let tile = match (only_writes, f.copies_all(axis)) {
            (_, true) if f.writes_four_columns() => (2, 4),
            (true, _) => few_columns,
            (false, _) => best_tile(f, v, s),
        };
        if v <= 2 * tile.0 * f.lanes {
            // What so many tiles read is copied, so that no vector lies in two lines or is masked.
            let pack_v = pack_v || (s >= OFTEN * tile.1 && f.registers() > 16);
            return Self { tile, pack_v, broadcast: false, v_block: ALL, ..common };
        }
        if only_writes {
            return Self { tile, ..common }.written_only(f);
        }
        let flat = Self { tile, v_block: f.flat_block(axis, tile, pack_v), ..common };
        if !pack_v && f.outruns_prefetch(axis, tile) {
            return Self { u: STREAMS, stream: false, pack_s: f.thrashes_tlb(axis), ..flat };
        }
        flat
    }

    /// So few steps that all there is to do is to write C, along whose columns vectors run, and that it matters how many tiles follow each other:
    /// a panel of vectors stays past many columns, unless these are written from end to end. Where memory is slow, that pays for some steps of short columns that stay in the
    /// second-level cache: of 140 to 300 rows in f32 it took 0.69 to 0.97 of the time, of 1001 rows, or of 200 in f64 beyond that cache, up to
    /// twice as long.
    fn written_only(self, f: &Facts) -> Self {
        let (v, bytes) = (f.m, f.m * f.n * f.out);
        // What vectors are loaded from stays in the first-level cache while some columns are written.
        let v_block = if f.copies_all(self.axis) { ALL } else { (f.l1 / 2 / (f.k * f.es)).max(4 * f.lanes) };
        let stays = 4 * bytes / f.threads <= 5 * f.l2;
        let ends_soon = v * f.out <= 3 * PAGE / 8 && f.k >= 6 && stays;
        let waits = f.waits_for_l3() && !ends_soon;
        let broadcast = f.is_narrow() || waits || f.columns_share_a_set() || 4 * bytes > f.l3;
        let s_block = match broadcast {
            false => 1024,
            true if v > v_block => 64,
            true => 512,
        };
        Self { v_block, s_block, broadcast, ..self }
    }

    /// A flat product [written around the caches](Facts::streams_narrow) by vectors of half a line: a tile fills two lines of each of two columns,
    /// from a copy of A that stays while all of B goes past it. Steps of B that fall into few sets of the first-level cache are copied
    /// where more than two tiles of vectors read them: 1792 x 256 x 64 nt took 0.8 of the time, 64 x 8191 x 17 in f32 twice as long.
    fn whole_lines(self, f: &Facts) -> Self {
        let tile = (2 * LINE / (f.lanes * f.es), 2);
        let pack_s = f.steps_of_b_crowd_l1() && f.m > 2 * tile.0 * f.lanes;
        let v_block = 2 * tile.0 * f.lanes;
        Self { tile, pack_v: true, pack_s, broadcast: false, stream: true, v_block, k_s: 2, ..self }
    }

    /// A flat product that takes more than the second-level cache, where the next one is as slow as memory: non-temporal stores of C leave
    /// the second-level cache to what is multiplied. That pays from some steps of k on where vectors are copied anyway, or where C is wide and
    /// so is written from its beginning to its end; in a tall C each tile goes on elsewhere, which takes more steps to hide. Steps count by
    /// their bytes: elements of twice the size fill C with half the multiply-adds of a vector.
    fn around_caches(self, f: &Facts) -> Self {
        let (v, s) = f.sides(self.axis);
        let is_worth_it = f.k * f.es >= if self.pack_v || v <= s { 96 } else { 256 };
        let is_written = f.in_place && f.writes_lines(self.axis);
        if !(is_written && is_worth_it && f.waits_for_l3() && 4 * f.bytes() / f.threads > 5 * f.l2) {
            return self;
        }
        // The lines that C no longer takes hold a copy of B, which has to be read more often than one that thrashes the TLB.
        Self { stream: true, pack_s: self.pack_s || (!f.deep_b && f.passes(Axis::M) >= 2 * OFTEN), ..self }
    }
}

/// Steps up to which a flat product of a C in memory reads B in place, where vectors are half a line.
const UNCOPIED_STEPS: usize = 12;

/// The register tile of complex elements whose vectors and broadcasts are fewest for what it multiplies, where vectors are lines.
const WIDE_COMPLEX: (usize, usize) = (3, 4);

/// The tile whose vectors are woven as they are loaded, and the most that a deep product's may be.
const WOVEN: (usize, usize) = (2, 12);

#[cfg(test)]
mod tests;
