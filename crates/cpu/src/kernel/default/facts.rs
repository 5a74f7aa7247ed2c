//! What a choice depends on, and the family of a product.

use super::ALL;
use super::tiles::{TALL, best_tile, tile_cycles};
use crate::LINE;
use crate::blueprint::FAR_BYTES;
use crate::config::Axis;
use crate::kernel::SHARED_BY_FEW;
use crate::scalar::{Kind, Numbers, Stored};
use crate::sets::{PAGE, is_about, is_half_line, is_one_set, off, share_a_set, side_by_side, ways};
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_ops::gemm::{GemmInput, ScalarClass};

/// What a choice depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) m: usize,
    pub(super) n: usize,
    /// Steps of the reduction as tiles take them.
    pub(super) k: usize,
    /// Products of a batch.
    pub(super) products: usize,
    /// Threads that there are.
    pub(super) threads: usize,
    /// Whether A lies contiguous along k, and B.
    pub(super) deep_a: bool,
    pub(super) deep_b: bool,
    /// Bytes of an element, and numbers that it is broadcast as.
    pub(super) es: usize,
    pub(super) parts: usize,
    /// Elements of the widest vector.
    pub(super) lanes: usize,
    pub(super) l1: usize,
    pub(super) l2: usize,
    pub(super) l3: usize,
    /// Whether C is written and not read, and whether whole vectors of it are aligned.
    pub(super) writes_only: bool,
    pub(super) aligned: bool,
    /// Whether operands begin with a line, and columns of C.
    pub(super) begins_lines: bool,
    pub(super) columns_are_lines: bool,
    /// Bytes from a row or column of A to the next, of B, and from a column of C to the next.
    pub(super) pitch_a: usize,
    pub(super) pitch_b: usize,
    pub(super) pitch_c: usize,
    /// Bytes of an element as operands store it, and as C does.
    pub(super) stored: usize,
    pub(super) out: usize,
    /// Whether operands can be read where they lie, whatever their layout: narrow ones are converted or woven when they are packed or loaded.
    pub(super) in_place: bool,
    /// Steps of the reduction that the instructions for narrow operands multiply at a time; 1 without them.
    pub(super) group: usize,
    /// Whether there is code that weaves vectors as it loads them, and all pairs of steps are there.
    weaves: bool,
    /// Whether there is code that widens vectors as it loads them. Of f16 it is used by vectors of half a line alone: nobody has measured others.
    widens: bool,
}

impl Facts {
    /// Three products of complex numbers have the facts of four.
    pub(super) fn of(device: &DeviceSpec, input: &GemmInput) -> Self {
        let kind = Kind::of(input.dtype());
        let fact = |name, usual| device.fact(name).and_then(|x| usize::try_from(x).ok()).unwrap_or(usual);
        let es = kind.element(input.dtype());
        let native = match input.dtype() {
            DType::I8 => fact("avx512_vnni", 0) == 1,
            DType::Bf16 => fact("avx512_bf16", 0) == 1,
            _ => false,
        };
        let l1 = fact("l1d_bytes", 32 << 10);
        let stored = Stored::of(input.dtype(), native);
        let out = input.types.output.size();
        let [pitch_a, pitch_b] = [input.lda, input.ldb].map(|ld| ld * input.dtype().size());
        Self {
            m: input.m.max(1),
            n: input.n.max(1),
            k: input.k.div_ceil(stored.group()).max(1),
            products: input.batch.count as usize,
            threads: fact("threads", 1).max(1),
            deep_a: input.layout.a_transposed(),
            deep_b: !input.layout.b_transposed(),
            es,
            parts: Numbers::of(input.dtype(), kind, native).parts(),
            lanes: (fact("vec_max", 16) / es).max(1),
            l1,
            l2: fact("l2_bytes", 512 << 10),
            l3: fact("l3_bytes", 8 << 20),
            writes_only: input.beta == ScalarClass::Zero,
            aligned: (input.ldc * out).is_multiple_of(fact("vec_max", 16))
                && input.operand_align() >= fact("vec_max", 16),
            begins_lines: input.operand_align() >= LINE,
            columns_are_lines: (input.ldc * out).is_multiple_of(LINE) && input.operand_align() >= LINE,
            pitch_a,
            pitch_b,
            pitch_c: out * input.ldc,
            stored: input.dtype().size(),
            out,
            in_place: kind != Kind::Narrow,
            group: if native { stored.group() } else { 1 },
            weaves: stored == Stored::Bf16Pairs && input.k.is_multiple_of(2),
            widens: stored == Stored::Bf16 || (stored == Stored::F16 && is_half_line(fact("vec_max", 16))),
        }
    }

    /// Whether neighbours of the operand that vectors run along lie side by side.
    fn is_contiguous(&self, axis: Axis) -> bool {
        if axis == Axis::M { !self.deep_a } else { !self.deep_b }
    }

    /// Whether the operand that vectors run along can be loaded as it is.
    pub(super) fn is_loaded(&self, axis: Axis) -> bool {
        self.in_place && self.is_contiguous(axis)
    }

    /// Whether vectors of that operand can be woven as they are loaded, of pairs of steps.
    pub(super) fn is_woven(&self, axis: Axis) -> bool {
        self.weaves && self.is_contiguous(axis)
    }

    /// Whether vectors of that operand can be widened as they are loaded.
    pub(super) fn is_widened(&self, axis: Axis) -> bool {
        self.widens && self.is_contiguous(axis)
    }

    /// Whether the operand that vectors run along is copied whatever else is chosen, to be converted.
    pub(super) fn is_copied(&self) -> bool {
        !(self.in_place || self.widens || self.weaves)
    }

    /// Bytes of the operands of a product.
    pub(super) fn bytes(&self) -> usize {
        (self.m * self.n + (self.m + self.n) * self.k) * self.es
    }

    /// Whether a good part of the operands stays in the second-level cache.
    pub(super) fn is_near(&self) -> bool {
        self.bytes() * self.parts <= 3 * self.l2
    }

    /// Whether C is written only, by vectors that are aligned and the widest there are.
    pub(super) fn writes_lines(&self, axis: Axis) -> bool {
        self.writes_only && self.aligned && axis == Axis::M && self.m >= self.lanes
    }

    /// What vectors run along, and what lies across them.
    pub(super) fn sides(&self, axis: Axis) -> (usize, usize) {
        if axis == Axis::M { (self.m, self.n) } else { (self.n, self.m) }
    }

    /// The axis that a rough account of a core's cycles finds cheapest for a product that is read once or twice: multiply-adds by whole
    /// vectors, transposing what vectors run along where it lies along k, and transposing tiles of C.
    pub(super) fn cheaper_axis(&self) -> Axis {
        let gathered = if self.is_narrow() { GATHERED_NARROW } else { GATHERED };
        let cycles = |axis: Axis| {
            let (v, s) = self.sides(axis);
            let multiplied = tile_cycles(self, v, s, best_tile(self, v, s)) * self.k as f64;
            // Of rows of less than a line; half of it where a vector takes a line at once, and nothing but the elements where they are
            // neighbours.
            let least = if self.is_narrow() { LINE } else { LINE / 2 };
            let pitch = self.pitch_along(axis);
            let read = if pitch == self.stored { self.es } else { (self.k * self.es).max(least) };
            let packed = if self.is_contiguous(axis) { 0.0 } else { gathered * (v * read) as f64 };
            let stored = if axis == Axis::M { 0.0 } else { self.transposed() * (v * s * self.es) as f64 };
            multiplied + packed + stored
        };
        if cycles(Axis::N) < cycles(Axis::M) { Axis::N } else { Axis::M }
    }

    /// Cycles of transposing a byte of C and writing it: some elements of each column at a time, which leave the first-level cache before the
    /// next ones where all columns fall into one set of it.
    pub(super) fn transposed(&self) -> f64 {
        match self.es {
            _ if !self.is_narrow() && self.columns_share_a_set() => TRANSPOSED_FAR,
            8 if self.parts == 1 && !self.is_narrow() && self.bytes() > self.l2 => TRANSPOSED_DOUBLE,
            _ => TRANSPOSED,
        }
    }

    /// Whether all columns of C fall into one set of the first-level cache, and are more than it holds.
    pub(super) fn columns_share_a_set(&self) -> bool {
        share_a_set(self.n, self.pitch_c, self.l1)
    }

    /// Whether steps of the operand across vectors lie an even number of pages apart, give or take a few bytes, and are read often enough
    /// for a copy. Such pages presumably share half of the sets of the first-level TLB: where a vector is a line, steps 8 KB apart were
    /// slower than a copy, steps 4 KB apart were not.
    pub(super) fn thrashes_tlb(&self, axis: Axis) -> bool {
        let pitch = self.pitch_across(axis);
        let in_step = pitch > PAGE && off(pitch, 2 * PAGE) < LINE / 4;
        !self.deep_across(axis) && in_step && !self.is_narrow() && self.k >= EVICTING && self.passes(axis) >= OFTEN
    }

    /// Whether steps of vectors that are loaded in place lie about a multiple of half a page apart, so that they crowd few sets of the first-level
    /// cache, and the other side is long enough for a copy. As measured along columns where a vector is a line. Where it is half a line, along
    /// either side and not of steps of exactly half a page. On a Zen 3 142 x 512 x 154 tt in f64 took 0.6 of the time with a copy, 33 x 512 x 200
    /// 0.75 and 90 x 1024 x 120 in f32 0.68. About half a page apart 255 x 257 x 129 in f64 took 0.8 and 75 x 513 x 82 in f32 0.92, but
    /// 41 x 514 x 82 1.1, and exactly that 150 x 512 x 150 1.02.
    pub(super) fn crowds_sets(&self, axis: Axis) -> bool {
        let (pitch, (_, across)) = (self.pitch_along(axis), self.sides(axis));
        if self.halves_lines() {
            let (is_page, is_half) = (is_about(pitch, PAGE), is_about(pitch, PAGE / 2) && pitch != PAGE / 2);
            // On one thread and two.
            let rows = across / self.threads.div_ceil(2);
            return self.k >= EVICTING && (is_page && rows >= SHORT / 4 || is_half && rows >= SHORT / 2);
        }
        let crowds = pitch > LINE && off(pitch, PAGE / 2) < LINE;
        axis == Axis::N && crowds && !self.is_narrow() && self.m.min(self.n) >= 2 * SHORT
    }

    /// Whether steps of the operand across vectors of half a line lie about a multiple of a page apart, so that they fall into a few sets of the
    /// first-level cache, and are read often enough for a copy. On a Zen 3 200 x 1024 x 100 tt in f32 took 0.55 of the time with one,
    /// 200 x 512 x 100 in f64 0.69, 60 x 512 x 80 0.82. About half a page apart 200 x 511 x 100 in f32 took 0.91, but 192 x 511 x 69 1.18.
    fn crowds_across(&self, axis: Axis) -> bool {
        let is_crowded = self.halves_lines() && self.in_place && is_about(self.pitch_across(axis), PAGE);
        is_crowded && !self.deep_across(axis) && self.k >= EVICTING && self.passes(axis) >= OFTEN
    }

    /// Whether steps of the operand across vectors evict each other from a cache or a TLB, and are read often enough for a copy.
    pub(super) fn evicts_across(&self, axis: Axis) -> bool {
        self.thrashes_tlb(axis) || self.crowds_across(axis)
    }

    /// Whether the operand across vectors lies contiguous along k.
    pub(super) fn deep_across(&self, axis: Axis) -> bool {
        if axis == Axis::M { self.deep_b } else { self.deep_a }
    }

    /// Vectors of the part of a thread past which the operand across them is read.
    pub(super) fn passes(&self, axis: Axis) -> usize {
        let (v, s) = self.sides(axis);
        let tile = best_tile(self, v, s);
        let is_whole = self.is_little(axis, self.divided(axis, tile)) || self.shortens_runs(axis);
        let along = if is_whole { 1 } else { self.along(axis, tile.1) };
        v / along / self.lanes
    }

    /// A tile with no more rows of an operand across vectors that lies along k than [the first-level cache holds](side_by_side) a line of each.
    pub(super) fn side_by_side(&self, axis: Axis, (vecs, across): (usize, usize)) -> (usize, usize) {
        let pitch = self.pitch_across(axis);
        if !self.deep_across(axis) || pitch < LINE {
            return (vecs, across);
        }
        (vecs, across.min(side_by_side(pitch, self.l1)))
    }

    /// Steps so many bytes apart of which [the first-level cache holds](side_by_side) a line each.
    pub(super) fn held(&self, pitch: usize) -> usize {
        if pitch < LINE { ALL } else { side_by_side(pitch, self.l1) }
    }

    /// Steps of a block of a deep product. Tiles of C are written once for each block, in which their panels fill the first-level cache twice
    /// over; all of a block stays in a quarter of the second-level one.
    pub(super) fn deep_steps(&self, axis: Axis, tile: (usize, usize), fits_l2: bool) -> usize {
        let (v, s) = self.sides(axis);
        let panels = tile.0 * self.lanes + tile.1.min(s);
        let u = (2 * self.l1 / (panels * self.es)).min(self.l2 / 4 / ((v + s) * self.es)).max(128);
        if fits_l2 || self.deep_across(axis) {
            return u;
        }
        // The next block of a side across that lies row by row is prefetched if it is not too large.
        u.min(FAR_BYTES / (LINE * ((s * self.es).div_ceil(LINE) + 1)))
    }

    /// Whether a deep product, whose vectors are less than a line and not copied, is best read some steps of both operands at a time: a real one
    /// that [is far](Self::is_far_across), a complex one of more than a vector and a few columns. Where panels share lines, steps are better read
    /// from end to end beside [few](Self::few) columns: 81 x 15 x 48623 nt took 1.45 times as long otherwise in f64, 20 x 91 x 20000 1.4,
    /// 118 x 17 x 32768 1.4 in f32, 74 x 23 x 20000 1.2 in c32; not in a complex product that takes one block of wide tiles.
    pub(super) fn is_deep_by_steps(&self, axis: Axis, tile: (usize, usize), shares_lines: bool) -> bool {
        let (v, s) = self.sides(axis);
        let from_end_to_end = shares_lines && self.in_place;
        let is_worth_it = match self.parts {
            1 => self.is_far_across(axis) && (!from_end_to_end || self.widens_tile((v, s), tile)),
            _ => self.halves_lines() && v > self.lanes && s >= 8 && (!from_end_to_end || s > self.few() || v <= 60),
        };
        is_worth_it && !self.deep_across(axis)
    }

    /// Whether the vectors of a deep product, which are loaded where they lie, are a [tall tile](TALL) or nearly so, past another side that
    /// lies along k; or nearly so past one of up to a line and a half.
    pub(super) fn fills_tall_tile(&self, axis: Axis) -> bool {
        let (v, s) = self.sides(axis);
        let (most, is_narrow) = (TALL.0 * self.lanes, 2 * s * self.es <= 3 * LINE && v < TALL.0 * self.lanes);
        let fits = v > most - self.lanes && v <= most;
        self.is_half() && self.in_place && fits && (self.deep_across(axis) || is_narrow)
    }

    /// Whether a product leaves the second-level caches and its steps across vectors are more than a line.
    pub(super) fn is_far_across(&self, axis: Axis) -> bool {
        self.bytes() > self.threads * self.l2 && self.sides(axis).1 * self.es > LINE
    }

    /// Columns beside which lines of a deep product that panels share had better be read from end to end.
    fn few(&self) -> usize {
        if self.es == 4 { 24 } else { 32 }
    }

    /// Whether a product that is read step by step by vectors of half a line takes tiles of three vectors by four numbers: not beside
    /// [few](Self::few) columns of real numbers nor of two vectors of complex ones, and not where they are many more than tiles of this size. Their
    /// panels share lines, which a block of steps keeps near.
    pub(super) fn widens_tile(&self, (v, s): (usize, usize), tile: (usize, usize)) -> bool {
        let tiles = |(vecs, across): (usize, usize)| v.div_ceil(vecs * self.lanes) * s.div_ceil(across);
        let is_long = if self.parts == 2 { v > 2 * self.lanes } else { s > self.few() };
        self.in_place && self.halves_lines() && is_long && 10 * tiles((3, 4 / self.parts)) <= 11 * tiles(tile)
    }

    /// Elements along vectors of a block of so many steps that fills half of the second-level cache.
    pub(super) fn half_of_l2(&self, u: usize) -> usize {
        let depth = self.k.div_ceil(self.k.div_ceil(u.max(1)));
        self.l2 / 2 / (depth * self.es)
    }

    pub(super) fn registers(&self) -> usize {
        if self.is_narrow() { 16 } else { 32 }
    }

    /// Bytes from a row or column to the next of the operand that vectors run along.
    pub(super) fn pitch_along(&self, axis: Axis) -> usize {
        if axis == Axis::M { self.pitch_a } else { self.pitch_b }
    }

    /// Bytes from a row or column to the next of the operand across vectors.
    pub(super) fn pitch_across(&self, axis: Axis) -> usize {
        if axis == Axis::M { self.pitch_b } else { self.pitch_a }
    }

    /// Whether panels of vectors of half a line share lines, because steps begin anywhere in one, in a product that is far larger than the
    /// second-level caches: on a Zen 3 of 512 KB each, larger blocks took up to 1.3 times as long for products of up to 5 MB in f32
    /// (591 x 21 x 500 nn), and up to 1.2 times for products of up to 3 MB of larger elements.
    pub(super) fn shares_lines(&self, axis: Axis) -> bool {
        let caches = if self.es == 4 { 12 } else { 6 };
        let is_out = self.bytes() > caches * self.l2 * self.threads;
        self.halves_lines() && self.in_place && !self.pitch_along(axis).is_multiple_of(LINE) && is_out
    }

    /// Whether a long operand of elements of 16 bytes is copied by the first tile of each panel on its way, by vectors of half a line: where it does
    /// not lie along k, and vectors do not cross lines.
    pub(super) fn copies_panels(&self) -> bool {
        let axis = self.long_axis();
        let is_aligned = self.begins_lines && self.pitch_along(axis).is_multiple_of(LINE / 2);
        self.es == 16 && self.halves_lines() && self.is_contiguous(axis) && is_aligned
    }

    /// The axis along the longer side.
    pub(super) fn long_axis(&self) -> Axis {
        if self.m >= self.n { Axis::M } else { Axis::N }
    }

    /// Whether the short operand of a skinny product whose long one lies along k, all of which goes past each few rows of that, is copied although its
    /// vectors of half a line can be loaded where they lie: unless steps share a line or are one, and where each thread has some rows. On a Zen 3
    /// 64 x 500 x 5000 nn took 0.34 of the time with lda 1024, of which steps fall into few sets of a cache; 60 x 500 x 2000 and 100 x 500 x 2000,
    /// of which they begin anywhere in a line, 0.6 to 0.8; 32 x 500 x 5000, of which they are two lines, 0.93 to 1.03.
    pub(super) fn copies_short(&self, axis: Axis) -> bool {
        let (_, rows) = self.sides(axis);
        self.halves_lines() && !LINE.is_multiple_of(self.pitch_along(axis)) && rows >= OFTEN * self.threads
    }

    /// Whether vectors are half a line, and of real numbers: as measured on a Zen 3.
    pub(super) fn is_half(&self) -> bool {
        self.halves_lines() && self.parts == 1
    }

    /// Whether vectors are half a line.
    pub(super) fn halves_lines(&self) -> bool {
        is_half_line(self.lanes * self.es)
    }

    /// Whether a vector is less than a line.
    pub(super) fn is_narrow(&self) -> bool {
        self.lanes * self.es < LINE
    }

    /// Bytes of the narrowest vector that holds so many elements, of the widest where none does.
    pub(super) fn vec(&self, elements: usize) -> usize {
        let widest = self.lanes * self.es;
        if self.group > 1 {
            // Only the widest multiply neighbours along the reduction.
            return widest;
        }
        [16, 32].into_iter().find(|vec| elements * self.es <= *vec && *vec < widest).unwrap_or(widest)
    }

    /// Whether the last-level cache takes about as long as memory, on a core whose vectors are lines.
    pub(super) fn waits_for_l3(&self) -> bool {
        self.l3 > SHARED_BY_FEW && !self.is_narrow()
    }

    /// Whether C stays in a third of the second-level cache, of that of two threads where there are so many, past a reduction that is long beside
    /// its sides, and one operand can be loaded where it lies, by steps that do not fall into one set of the first-level cache, while the other
    /// is read along the reduction. As measured where a vector is a line, and memory is waited for.
    fn is_long(&self) -> bool {
        let (short, long) = (self.m.min(self.n), self.m.max(self.n));
        let is_placed = self.in_place && self.parts == 1 && self.deep_a != self.deep_b;
        is_placed
            && short > SHORT
            && self.k >= 4 * long
            && 3 * self.m * self.n * self.es <= self.l2 * self.threads.min(2)
            && self.waits_for_l3()
            && !is_one_set(if self.deep_a { self.pitch_b } else { self.pitch_a }, ways(self.l1))
    }

    /// Whether a long operand streams past so many rows or columns. On one thread of a Zen 3 products of 65 to 128 in c64 took 0.95 of the time that
    /// they took as large ones where [panels are copied on the way](Self::copies_panels), on two up to 1.16 times.
    fn is_short(&self, short: usize) -> bool {
        short <= SHORT / self.parts || (short <= SHORT && self.threads == 1 && self.copies_panels())
    }

    pub(super) fn family(&self) -> Family {
        let (short, long) = (self.m.min(self.n), self.m.max(self.n));
        if self.k <= 64 && long > 64 {
            Family::Flat
        } else if long <= SHORT && self.k > 4 * long {
            Family::Deep
        } else if self.bytes() <= self.l2 || (self.deep_a && !self.deep_b && self.is_near()) {
            Family::Medium
        } else if self.is_long() {
            Family::Long
        } else if long > 2 * short && self.is_short(short) {
            Family::Skinny
        } else {
            Family::Large
        }
    }
}

/// Longest side of the operand that a skinny or deep product has little of, in numbers: a complex element of a skinny one is
/// multiplied twice as often as a number is for its bytes, which pays for a copy, but [not everywhere](Facts::is_short).
pub(super) const SHORT: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Large,
    Skinny,
    Deep,
    Long,
    Medium,
    Flat,
}

/// Rows in memory that are read side by side: more fall into the same sets of a cache, and no processor foresees them.
pub(super) const ROWS: usize = 12;

/// Steps of one operand that evict each other from some sets of a cache, or from a TLB.
const EVICTING: usize = 32;

/// Vectors of one side from which on a copy of the other side's operand pays.
pub(super) const OFTEN: usize = 12;

/// Cycles of transposing a byte of a tile of C.
const TRANSPOSED: f64 = 0.07;
/// The same of numbers of 64 bits beyond the second-level cache, where a vector is a line: so that 17 x 6000 x 31 nt has vectors along rows,
/// which were up to 1.3 times as fast on an Intel Xeon.
const TRANSPOSED_DOUBLE: f64 = 0.12;
/// The same where its columns share a set of the cache, as measured where a vector is a line.
const TRANSPOSED_FAR: f64 = 0.5;
/// Cycles of transposing a byte of an operand whose rows lie apart; the latter where vectors are less than a line.
const GATHERED: f64 = 0.15;
const GATHERED_NARROW: f64 = 0.2;
