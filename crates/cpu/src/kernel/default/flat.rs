//! Flat products: few steps of k, so that most of what there is to do is to write C.

use super::facts::{Facts, OFTEN, SHORT};
use super::tiles::{TALL, best_tile};
use super::{ALL, Choice};
use crate::LINE;
use crate::config::Axis;
use crate::sets::{PAGE, side_by_side};

/// A tile of three vectors of half a line.
const THREE: (usize, usize) = (3, 4);

/// Places in memory from which a processor fetches ahead at a time, about.
pub(super) const STREAMS: usize = 32;

/// Steps up to which a flat product of a C in memory reads B in place, where vectors are half a line.
const UNCOPIED_STEPS: usize = 12;

impl Choice {
    /// C is written once: column by column unless there are few steps and it stays near, and around the caches where it does not fit them
    /// (see [`Self::around_caches`] for a slow one) and [whole lines of it are only written](Facts::writes_lines): halves of lines, in columns
    /// that lie pages apart, leave a processor's buffers before the other half comes. Where the widest vectors are half a line, [whole lines of
    /// a C in the last-level cache](Facts::streams_narrow) are written so, and a C beyond it by the loops of a large product, or [past few
    /// vectors](Self::past_few_vectors).
    pub(super) fn flat(f: &Facts) -> Self {
        let axis = if f.has_two_rows() { Axis::N } else { f.cheaper_axis() };
        let common = Self { axis, u: f.k.next_power_of_two(), k_s: 8, prefetch: 0, ..Self::large(f) };
        if axis == Axis::N && f.transposes_many_rows() {
            let tile = (2, 6);
            let copied =
                Self { axis: Axis::M, tile, pack_v: true, pack_s: false, v_block: 4 * tile.0 * f.lanes, ..common };
            return Self { broadcast: false, s_block: 4096, k_s: 4, ..copied };
        }
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
            let tile = TALL;
            let (v_block, pack_s) = (tile.0 * f.lanes, f.steps_of_b_crowd_l1());
            return Self { tile, pack_v: true, pack_s, broadcast: false, v_block, ..common };
        }
        common.by_columns(f)
    }

    /// Columns go past few vectors of half a line, rather than those past each few columns: a loop of a few short tiles takes most of its
    /// time to begin and end. Real numbers take tiles of four vectors, of three along rows of C, unless those are more than an eighth more
    /// vectors; else of three where these are fewer, as they are of exactly three.
    pub(super) fn past_few_vectors(self, f: &Facts) -> Self {
        let (v, _) = f.sides(self.axis);
        // Two tiles of two vectors go past all columns already, and are one of three or four vectors.
        let is_tile = f.parts == 1 && self.axis == Axis::M && v <= TALL.0 * f.lanes && !self.stream;
        if !((self.broadcast || is_tile) && f.goes_past_vectors(self.axis)) {
            return self;
        }
        // Tiles of three columns would be transposed by twos and ones.
        let wide = if self.axis == Axis::M { TALL } else { THREE };
        let vectors = |tile: (usize, usize)| v.div_ceil(tile.0 * f.lanes) * tile.0;
        let is_wide = 8 * vectors(wide) <= 9 * vectors(self.tile);
        let tile = match f.parts {
            1 if v.div_ceil(f.lanes) == THREE.0 => THREE,
            1 if is_wide => wide,
            1 if vectors(THREE) < vectors(self.tile) => THREE,
            _ => self.tile,
        };
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
        let few_columns = match f.registers() > 16 {
            true => (4, 6 / f.parts),
            false if best_tile(f, v, s) == TALL => TALL,
            false => (2, 6 / f.parts),
        };
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
        // What vectors are loaded from stays in the first-level cache while some columns are written. Where vectors are half a line it stays in the
        // second-level one, so that columns are written in longer runs: random products of a Zen 3 took 0.87 to 0.9 of the time in the mean, complex
        // ones too, on one thread and two.
        let stays_in_l2 = f.halves_lines() && f.in_place;
        let near = if stays_in_l2 { f.l2 } else { f.l1 };
        let v_block = (near / 2 / (f.k * f.es)).max(4 * f.lanes);
        let v_block = if f.copies_all(self.axis) || (stays_in_l2 && v <= v_block) { ALL } else { v_block };
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

impl Facts {
    /// Whether columns of a flat product go [past few vectors](Choice::past_few_vectors). On a Zen 3, of up to 16 vectors 63 x 725 x 32 nn
    /// took 0.7 of the time in f32 and 59 x 3392 x 3 0.4, 31 x 725 x 32 in f64 0.7, 25 x 1649 x 1 in c32 0.25 and 27 x 10079 x 4 tn in c64
    /// 0.5. Of 17 to 32 vectors and a C of up to 4 MB 230 x 3912 x 6 nt took 0.73 in f32, and 103 x 4046 x 10 in c32 0.62; of few columns
    /// for each of two threads 147 x 360 x 5 1.8 times.
    fn goes_past_vectors(&self, axis: Axis) -> bool {
        let ((v, s), bytes) = (self.sides(axis), self.m * self.n * self.out);
        let most = if bytes > 8 * self.l2 { 16 } else { 32 };
        let are_few = v <= most * self.lanes && s >= 2 * self.threads * v;
        self.halves_lines() && self.in_place && (are_few || (axis == Axis::M && self.goes_past_many()))
    }

    /// The same of more vectors, of real numbers along columns. On a Zen 3 of 512 KB of second-level cache random products with a C of up to
    /// 4 MB took 0.81 to 0.92 of the time in the mean, on one thread and two. Beside a B that lies along k, those of 4 to 8 MB took 0.9 to
    /// 0.93, of up to 40 vectors and 4 to 16 MB 0.69 to 0.83, and of up to 40 MB 0.85 to 0.92; beside any other B, of up to 40 vectors and 4
    /// to 8 MB 0.71 to 0.81. More vectors, or a larger C, took up to 1.5 times as long.
    fn goes_past_many(&self) -> bool {
        let bytes = self.m * self.n * self.out;
        let vectors = match (self.deep_b, bytes.div_ceil(self.l2)) {
            (true, ..=16) | (false, ..=8) => 160,
            (true, ..=80) | (false, ..=16) => 40,
            _ => return false,
        };
        let columns = if self.deep_b { 2 * self.n } else { self.n };
        let is_long = columns >= self.threads * self.m;
        // Of so few steps the next columns are written before a store that waits for its set is done: 1000 x 900 x 2 with ldc 1024 took 1.5 times as
        // long, of five steps 0.9.
        let waits = self.k < 5 && self.columns_share_a_set();
        self.is_half() && self.m > 16 * self.lanes && self.m <= vectors * self.lanes && is_long && !waits
    }

    /// Whether vectors of half a line run along a C of two rows, however few steps there are: on a Zen 3 random products that would have had vectors of
    /// two elements along its columns took 0.78 of the time in f64 on one thread and two, and 0.87 of a single step in f32.
    fn has_two_rows(&self) -> bool {
        self.is_half() && self.in_place && self.m == 2 && !self.deep_b
    }

    /// Whether an A that lies along k is copied, although vectors along rows of C need no copy. On one thread of a Zen 3 49 to 125 rows and as
    /// many columns or more took 0.66 to 0.9 of the time in f32, and 33 to 48 rows as long either way; in f64 they took 0.8 to 1.2.
    fn transposes_many_rows(&self) -> bool {
        let is_turned = self.deep_a && !self.deep_b && self.in_place;
        self.is_half()
            && self.es == 4
            && self.threads == 1
            && is_turned
            && self.m > 6 * self.lanes
            && self.n > 6 * self.lanes
            && self.m <= SHORT
    }

    /// Elements along vectors of a block of a flat product. A copy that few tiles read stays in the first-level cache beside what it is made
    /// from. Vectors that are read for each of several tiles across come from far once, a block at a time; what comes from the second-level
    /// cache is read again, rather than columns of C written in parts.
    fn flat_block(&self, axis: Axis, tile: (usize, usize), pack_v: bool) -> usize {
        let ((v, s), step) = (self.sides(axis), self.k * self.es);
        let least = tile.0 * self.lanes;
        if self.copies_all(axis) && s > 2 * tile.1 {
            return ALL;
        }
        if pack_v {
            return if s <= 2 * tile.1 { (self.l1 / 3 / step).max(least).min(256) } else { 256 };
        }
        // Columns of C lie along vectors of the one axis, and across those of the other.
        let is_far = v * step / self.threads > if axis == Axis::M { self.l2 / 2 } else { self.l2 / 4 };
        if s > tile.1 && is_far && !self.is_narrow() { (self.l2 / 32 / step).max(least) } else { ALL }
    }

    /// Whether vectors of a flat product come from beyond the second-level cache, from more places at once than a processor foresees, each step
    /// of k from another page. Half of the steps at a time are faster then, although C is written twice: 9 x 6000 x 60 nt in f64 took
    /// 0.6 of the time on an Intel Xeon. Not where vectors run along rows and are read for several tiles, a block at a time.
    fn outruns_prefetch(&self, axis: Axis, tile: (usize, usize)) -> bool {
        let ((v, s), pitch) = (self.sides(axis), self.pitch_along(axis));
        let is_far = v * self.k * self.es > self.l2 * self.threads;
        let takes_turns = axis == Axis::N && s > tile.1;
        2 * self.k >= 3 * STREAMS && pitch >= PAGE && is_far && !takes_turns && self.waits_for_l3()
    }

    /// Whether a flat product on vectors of half a line leaves the second-level cache and writes columns of whole lines: around the caches,
    /// 896 x 896 x 32 took 0.85 of the time in f32, 448 x 448 x 64 in f64 too. It took longer where columns of C share a set of the first-level
    /// cache, and where a copy of A is read for few columns. Tiles of two lines that do not divide a column become smaller and share lines with
    /// their neighbours, which takes longer unless the column is long.
    pub(super) fn streams_narrow(&self, axis: Axis) -> bool {
        let is_far = 4 * self.bytes() / self.threads > 5 * self.l2;
        let column = self.m * self.out;
        let is_whole = self.columns_are_lines && (column.is_multiple_of(2 * LINE) || column >= 16 * LINE);
        let is_written = self.in_place && self.writes_lines(axis) && is_whole && !self.columns_share_a_set();
        let is_worth_it = self.k >= 16 && self.n >= SHORT / 2;
        self.is_half() && is_far && is_written && is_worth_it
    }

    /// Whether all of B goes past a copy of some vectors of A in a flat product, where vectors are half a line: tiles in place would read parts
    /// of lines, or lines that evict each other from the first-level cache. 1024 x 80 x 64 took 0.6 of the time, 3000 x 80 x 40 0.75,
    /// 300 x 200 x 64 0.87; 1000 x 20 x 64 and 1500 x 40 x 16 took longer, and so did 4096 x 16 x 16, and 1377 x 81 x 32 on two threads.
    pub(super) fn copies_narrow(&self, axis: Axis) -> bool {
        let is_flat = axis == Axis::M && self.in_place && self.is_half();
        let evicts = !self.deep_a && self.k > side_by_side(self.pitch_a, self.l1);
        // What is copied in any case pays sooner.
        let columns = if self.deep_a { 30 } else { 48 * self.threads };
        let pays = match evicts {
            true => self.k >= 16 && self.n >= OFTEN && self.n * self.k >= 512,
            false => self.k >= 24 && self.n >= columns,
        };
        is_flat && self.m > 8 * self.lanes && pays
    }

    /// Whether all of an A that lies along k is copied at once for a flat product, where vectors are half a line. In blocks of rows that stay in
    /// the first-level cache each column of C would be written in as many parts: 1000 x 200 x 14 tt took 0.75 of the time, 2049 x 96 x 16 0.87,
    /// 6000 x 50 x 10 in f64 0.81.
    pub(super) fn copies_all(&self, axis: Axis) -> bool {
        self.is_half() && self.in_place && axis == Axis::M && self.deep_a && self.n > OFTEN
    }

    /// Whether tiles of four columns write such a C faster than those of six, which leave a processor more columns to follow: not of few steps, for
    /// which vectors of A are loaded too often, nor of short columns, nor of many steps where two threads read A.
    fn writes_four_columns(&self) -> bool {
        self.m > 256 && (8..if self.threads == 1 { 24 } else { 16 }).contains(&self.k)
    }

    /// Whether steps of B, which lie apart, are more than [the first-level cache holds](side_by_side) a line of each.
    fn steps_of_b_crowd_l1(&self) -> bool {
        !self.deep_b && self.k > side_by_side(self.pitch_b, self.l1)
    }
}
