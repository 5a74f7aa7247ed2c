//! What runs before anything is tuned, and where this kernel leads.

use super::kernel::{is_thin, lies_along_k};
use super::space::DEPTH;
use crate::LINE;
use crate::kernel::SHARED_BY_FEW;
use crate::sets::{PAGE, is_half_line};
use crate::small::{SMALL_SIDE, SMALL_WORK};
use tilewright_core::device::DeviceSpec;
use tilewright_core::expr::Value;
use tilewright_core::space::{BoundSpace, Point};
use tilewright_ops::gemm::GemmInput;

/// Reductions for which no other kernel comes near, beside all of a long vector and a matrix: where C has a side that fills less than three
/// quarters of a vector, or where it is no more than so many elements either way and the reduction is very long. Where a vector is a line,
/// its lanes take so long to be summed that as many vectors of k are wanted as that side has elements beside its first, and half of one for
/// a side of one element.
const LONG: usize = 64;
const VERY_LONG: usize = 1000;
const LITTLE: usize = 32;

/// Sizes of the second-level cache beyond which operands come from far where the last-level cache takes as long as memory; where it does not,
/// those up to which they are near in any case.
const NEAR: usize = 3;

/// Elements of C up to which operands may also come from the last-level cache each time, where vectors are less than a line.
const FEW: usize = 512;

/// Multiply-adds of vectors that summing the lanes of a vector takes as long as, where a vector is a line.
const SUMMED: f64 = 6.0;

/// What this kernel takes beside multiplying where a core multiplies two vectors at a time, in multiply-adds of a vector for each that the
/// product needs: its tiles read nearly as many vectors as they multiply.
const READ_BY_TWO: f64 = 0.45;

/// What another kernel does beside multiplying whole vectors, in multiply-adds of a vector for each that a short side of one element would
/// need: it transposes the longer operand; and the same of a product that `gemm.cpu-small` takes, which transposes the cheaper one.
const TRANSPOSED: f64 = 7.0;
const TRANSPOSED_SMALL: f64 = 3.5;

/// The same that this kernel waits longer for far memory than one that reads rows of the longer operand from end to end; of elements of 8
/// bytes it always waits longer.
const WAITED: f64 = 3.0;

/// [`READ_BY_TWO`] where vectors are half a line, and the same where the longer operand comes from beyond the second-level cache, that is, takes
/// more than so many times its size: a part of what is more stays in it from one product to the next.
const READ_HALVES: f64 = 0.25;
const READ_HALVES_FAR: f64 = 0.35;
const FAR_HALVES: usize = 4;
/// [`TRANSPOSED`] where vectors are half a line.
const TRANSPOSED_HALVES: f64 = 1.0;
/// [`PACKED`] where vectors are half a line.
const PACKED_HALVES: f64 = 2.2;
/// [`READ_HALVES`] and [`SUMMED`] of a shorter side of four numbers of 8 bytes, all of which are [a side of a tile](tile): on a Zen 3 random
/// products of 4 x 60 to 4 x 2900 took 0.83 of the time in the mean that those kernels took which have vectors along four.
const READ_FOUR: f64 = 0.0;
const SUMMED_FOUR: f64 = 2.0;
/// Elements of the longer side from which on a copy of these four pays.
const COPIED_FOR_FOUR: usize = 200;
/// [`SUMMED`] of a shorter side of two numbers of 8 bytes, where vectors are half a line.
const SUMMED_TWO: f64 = 4.0;
/// Elements of the longer side from which on a shorter one of two takes a shorter reduction than others do, where vectors are half a line.
const MANY_PAIRS: usize = 80;
/// What `gemm.cpu-small` spares beside other kernels where vectors are half a line.
const AHEAD_SMALL: f64 = 0.1;

/// Bytes of a column of the shorter side up to which far memory is read no faster by another kernel.
const AS_FAST: usize = 12;
/// The same where vectors are half a line.
const AS_FAST_HALVES: usize = 16;

/// Multiply-adds of a vector that an element of the shorter operand takes to be transposed, of so many rows at a time; one of 8 bytes takes
/// twice as many where a core multiplies two vectors at a time.
const PACKED: f64 = 1.2;
const PACKED_ROWS: usize = 8;

/// Rows or columns of the longer operand from which on a copy of the shorter one pays where a core multiplies two vectors at a time.
const COPIED_FOR: usize = 100;
/// The same where vectors are half a line.
const COPIED_FOR_HALVES: usize = 40;
/// Steps of k up to which a copy of the shorter operand makes this kernel no faster than `gemm.cpu-small`, where vectors are half a line.
const BRIEF_COPY: usize = 47;

/// Longest row in bytes that ends before a processor has run ahead in it.
const SHORT_ROW: usize = 2048;
/// The same of rows that come from memory, where vectors are half a line.
const SHORT_FAR_ROW: usize = 2 * PAGE;
/// The same of nearer rows beside a single one, where vectors are half a line.
const SHORT_ROW_HALVES: usize = 1280;
/// The same beside several: shorter rows end before the next one is needed, longer ones are run ahead in.
const SHORT_ROWS_HALVES: std::ops::RangeInclusive<usize> = 512..=2560;

/// What a choice depends on.
#[derive(Clone, Copy, Debug)]
struct Facts {
    m: usize,
    n: usize,
    k: usize,
    /// Bytes of an element, and elements of the widest vector.
    es: usize,
    lanes: usize,
    threads: usize,
    /// Whether C is a row.
    is_row: bool,
    /// Bytes from a row or column of the longer operand to the next.
    pitch: usize,
    /// Whether the shorter operand is copied, since it lies across k.
    packs: bool,
    l1: usize,
    l2: usize,
    l3: usize,
}

impl Facts {
    fn of(device: &DeviceSpec, input: &GemmInput) -> Self {
        let fact = |name, usual| device.fact(name).and_then(|x| usize::try_from(x).ok()).unwrap_or(usual);
        let es = input.dtype().size();
        Self {
            m: input.m.max(1),
            n: input.n.max(1),
            k: input.k,
            es,
            lanes: (fact("vec_max", 16) / es).max(1),
            threads: fact("threads", 1).max(1),
            is_row: input.m == 1,
            pitch: es * if input.m >= input.n { input.lda } else { input.ldb },
            packs: !lies_along_k(input),
            l1: fact("l1d_bytes", 32 << 10),
            l2: fact("l2_bytes", 512 << 10),
            l3: fact("l3_bytes", 0),
        }
    }

    fn short(&self) -> usize {
        self.m.min(self.n)
    }

    fn long(&self) -> usize {
        self.m.max(self.n)
    }

    /// Whether a vector is a line.
    fn is_line(&self) -> bool {
        self.lanes * self.es >= LINE
    }

    /// Whether a vector is half a line.
    fn is_half(&self) -> bool {
        is_half_line(self.lanes * self.es)
    }

    /// Bytes of so many rows of an operand.
    fn rows(&self, count: usize) -> usize {
        count.saturating_mul(self.k * self.es)
    }

    /// Whether `gemm.cpu-small` takes the product as well.
    fn is_small(&self) -> bool {
        let work = self.m.saturating_mul(self.n).saturating_mul(self.k);
        work <= SMALL_WORK && self.long().max(self.k) <= SMALL_SIDE
    }

    /// Whether the last-level cache takes about as long as memory.
    fn waits_for_l3(&self) -> bool {
        self.l3 > SHARED_BY_FEW
    }

    /// Whether operands come from memory, or from a cache that takes as long.
    fn is_far(&self) -> bool {
        let near = if self.waits_for_l3() { NEAR * self.l2 } else { (self.l3 / 2).max(NEAR * self.l2) };
        self.rows(self.short() + self.long()) > near
    }

    /// Whether other kernels read far memory better. Of a small C all read both operands from end to end where the last-level cache takes as
    /// long as memory.
    fn waits(&self) -> bool {
        self.is_far() && !(self.waits_for_l3() && self.long() <= LITTLE)
    }

    /// By how much whole vectors are more than a side, of the narrowest vectors that hold the whole side; of the widest where a core multiplies
    /// two of them in the time of two narrow ones.
    fn padded(&self, side: usize) -> f64 {
        let widths = [16, 32].map(|bytes| bytes / self.es);
        let narrow = widths.into_iter().find(|lanes| side <= *lanes && !self.waits_for_l3());
        let lanes = narrow.unwrap_or(self.lanes).min(self.lanes);
        (side.next_multiple_of(lanes.max(1)) - side) as f64 / side as f64
    }

    /// What this kernel spares, in multiply-adds of a vector for each that the product needs: other kernels have vectors along a side of C,
    /// multiply whole ones, and transpose an operand; this one sums lanes. As measured on a Zen 4, which multiplies one vector of a line
    /// at a time, and on a Xeon of 2 MB of second-level cache, which multiplies two.
    fn spared(&self) -> f64 {
        if !self.is_line() {
            return self.spared_of_halves();
        }
        let (short, long) = (self.short() as f64, self.long() as f64);
        // A shorter operand that lies across k is loaded as it is, which spares elements of 8 bytes half of their way.
        let others = if self.is_small() {
            self.padded(self.m).min(self.padded(self.n)) + TRANSPOSED_SMALL / short
        } else if self.waits() {
            self.padded(self.short()) - WAITED / short
        } else {
            let is_loaded = self.packs && self.es == 8 && self.waits_for_l3();
            self.padded(self.short()) + if is_loaded { TRANSPOSED / 2.0 } else { TRANSPOSED } / short
        };
        let rows = self.short().max(PACKED_ROWS) as f64 / short;
        let by_two = self.waits_for_l3();
        let packed = if by_two { PACKED * self.es as f64 / 4.0 } else { PACKED };
        let packed = if self.packs { packed * self.lanes as f64 * rows / long } else { 0.0 };
        let read = if by_two { READ_BY_TWO } else { 0.0 };
        others - packed - read - SUMMED * self.lanes as f64 / self.k.max(1) as f64
    }

    /// The same where vectors are half a line, as measured on a Zen 3.
    fn spared_of_halves(&self) -> f64 {
        let (short, long) = (self.short() as f64, self.long() as f64);
        let padded = (self.short().next_multiple_of(self.lanes) - self.short()) as f64 / short;
        let rows = self.short().max(PACKED_ROWS) as f64 / short;
        let packed = if self.packs { PACKED_HALVES * self.lanes as f64 * rows / long } else { 0.0 };
        let is_beyond_l2 = self.rows(self.long()) > FAR_HALVES * self.l2;
        let (read, summed) = match (self.fills_vector(), is_beyond_l2) {
            (true, _) => (READ_FOUR, SUMMED_FOUR),
            (false, true) => (READ_HALVES_FAR, SUMMED),
            (false, false) if self.has_many_pairs() && self.es == 8 => (READ_HALVES, SUMMED_TWO),
            (false, false) => (READ_HALVES, SUMMED),
        };
        let others = padded + TRANSPOSED_HALVES / short;
        let small = if self.is_small() { AHEAD_SMALL } else { 0.0 };
        others - read - packed - small - summed * self.lanes as f64 / self.k.max(1) as f64
    }

    /// Whether the shorter side has four elements, where vectors are half a line.
    fn is_four(&self) -> bool {
        self.is_half() && self.short() == 4
    }

    /// Whether four elements of a shorter side are a vector, beside rows that take a quarter of the last-level cache at most, and so many of them
    /// that a copy of the shorter operand pays.
    fn fills_vector(&self) -> bool {
        let is_worth_it = !self.packs || self.long() >= COPIED_FOR_FOUR;
        self.is_four() && self.lanes == 4 && is_worth_it && self.rows(self.long()) <= self.l3 / 4
    }

    /// Whether the shorter side has two elements beside many, of which this kernel takes shorter reductions than it does of others: on a Zen 3 random
    /// products of 80 to 6500 beside two, whose shorter operand lies along k, took 0.7 to 0.95 of the time in f64 from 14 steps on, and 0.85 to 0.93 in
    /// f32 from 25 on.
    fn has_many_pairs(&self) -> bool {
        self.is_half() && self.short() == 2 && self.long() >= MANY_PAIRS && !self.packs
    }

    /// Whether a vector of so few steps is left to `gemm.cpu`, where vectors are half a line: lanes are summed for each element, and the sums of a row
    /// written one by one. On a Zen 3 random rows of more than 512 took 0.56 to 0.92 of the time there up to 4 steps in f32 and 0.75 to 0.9 up to 3 in
    /// f64, columns 0.85 to 0.96 up to two steps in f32, and 0.6 of one in f64. Shorter ones are taken by `gemm.cpu-small` in any case.
    fn is_too_brief(&self) -> bool {
        let steps = match (self.is_row, self.es) {
            (true, 4) => 4,
            (true, _) => 3,
            (false, 4) => 2,
            (false, _) => 1,
        };
        self.is_half() && self.short() == 1 && self.k <= steps
    }

    /// Whether a tile's next rows are asked for, where vectors are half a line: of rows in memory up to two pages, which took 0.85 of the time
    /// in the mean on a Zen 3, beside one to four of the shorter side; of nearer ones that leave half of the second-level cache where they
    /// are neither so long that a processor runs ahead by itself nor the shorter side cut: 0.7 to 1.0 of the time. Longer ones took up to 1.5
    /// times as long, and so did those of exactly 2 KB beside one row.
    fn asks_for_halves(&self, is_cut: bool) -> bool {
        let column = self.rows(1);
        if self.is_far() && !self.waits_for_l3() {
            return column <= SHORT_FAR_ROW;
        }
        let is_short = match self.short() {
            // Less than a line apart the next ones are fetched with it: asked for, they took up to 1.25 times as long. From memory that was not measured.
            1 => column <= SHORT_ROW_HALVES && self.pitch >= LINE,
            _ => !is_cut && SHORT_ROWS_HALVES.contains(&column),
        };
        is_short && self.rows(self.long()) > self.l2 / 2
    }

    /// Whether what this kernel spares is known: of far memory only where it was measured, and of no vectors of less than half a line.
    fn may_lead(&self) -> bool {
        if self.is_line() {
            return !self.waits() || (!self.waits_for_l3() && self.es <= 4);
        }
        self.is_half() && self.may_lead_by_halves()
    }

    /// The same where vectors are half a line: not of few rows, nor of rows that all fit the first-level cache, nor of far memory but a few columns
    /// that other kernels read no faster, nor of short rows of which `gemm.cpu-small` is ahead.
    fn may_lead_by_halves(&self) -> bool {
        let is_as_fast = self.short() * self.es <= AS_FAST_HALVES && !self.waits_for_l3();
        let least = if self.packs { COPIED_FOR_HALVES } else { LITTLE };
        let brief = if self.has_many_pairs() { 3 * self.lanes } else { 2 * self.lanes * self.short() };
        let brief = brief.max(if self.packs { BRIEF_COPY } else { 0 });
        let is_brief = self.is_small() && self.k <= brief;
        let is_near = !self.is_far() || is_as_fast;
        let leaves_l1 = self.rows(self.long()) > self.l1 || self.has_many_pairs();
        is_near && self.long() >= least && !is_brief && leaves_l1
    }

    /// Whether the shorter operand is copied for a longer one that is near and long enough to make it pay, on a core that multiplies two vectors
    /// of a line at a time: 4 x 3000 x 128 nn in f32 took half of the time that `gemm.cpu` took, and 4 x 500 x 128 of the time that
    /// `gemm.cpu-small` took.
    fn is_copied_for_long(&self) -> bool {
        self.is_line() && self.waits_for_l3() && !self.is_far() && self.long() >= COPIED_FOR
    }

    /// Whether other kernels come nowhere near.
    fn is_made_for(&self) -> bool {
        let (short, long) = (self.short(), self.long());
        let is_very_long = long <= LITTLE && self.k >= VERY_LONG;
        let is_as_fast = short == 1 || short * self.es <= AS_FAST;
        let is_in_memory = self.is_far() && !self.waits_for_l3();
        if self.packs && !self.is_copied_for_long() {
            return self.is_line() && is_in_memory && is_as_fast;
        }
        if !self.is_line() {
            let bytes = self.rows(short + long);
            let is_near = bytes <= NEAR * self.l2 || (short * long <= FEW && bytes <= self.l3 / 2);
            let few =
                (short <= 1 && long > LITTLE && !self.is_too_brief()) || (is_thin(short, self.lanes) && self.k >= LONG);
            return few || (is_very_long && is_near);
        }
        let is_enough = self.k >= (self.lanes / 2).max(self.lanes * (short - 1));
        let few = is_thin(short, self.lanes) && is_enough && (long > LITTLE || self.k >= LONG);
        if is_in_memory { few && is_as_fast } else { few || (is_very_long && !self.is_far()) }
    }
}

/// Above all others, whatever was learned of them; and above other defaults only.
const MADE_FOR: f64 = 2.0;
const AHEAD: f64 = 1.5;

/// How well this kernel suits an input: vectors times matrices, dot products, and sides that would fill vectors along C badly.
pub(super) fn suits(device: &DeviceSpec, input: &GemmInput) -> f64 {
    let f = Facts::of(device, input);
    match f.spared() {
        _ if f.is_made_for() => MADE_FOR,
        spared if spared >= 0.5 && f.may_lead() => MADE_FOR,
        spared if spared >= 0.0 && f.may_lead() => AHEAD,
        _ => 0.0,
    }
}

/// A tile that is as square as C allows, enough sets of sums to hide the latency of their chains, and a block of which the shorter side stays
/// near.
pub(super) fn default_point(device: &DeviceSpec, input: &GemmInput, space: &BoundSpace) -> Option<Point> {
    let f = Facts::of(device, input);
    let (m_s, n_s) = tile(&f);
    let sets = (8 / (m_s * n_s)).max(1);
    let descending = |most: usize| (1..=most.max(1)).rev().map(Value::from).collect::<Vec<_>>();
    let rows = f.m >= f.n;
    // Whether the shorter side is more than one tile.
    let is_cut = f.short() > if rows { n_s } else { m_s };
    // The longer side is read once, and in one run where all of the other is a tile.
    let rows_stay = rows == is_cut;
    let column = f.rows(1);
    // The narrowest vector that holds a column of k; of lines the narrowest of all, whose lanes are summed soonest.
    let fits = |vec: &usize| column <= *vec || (f.is_line() && column < LINE);
    let widths = [16, 32].into_iter().filter(fits).chain([64, 32, 16]);
    let is_far = f.is_far() && !f.waits_for_l3();
    // The largest block of which the shorter side stays near, else the smallest.
    let stays = |u: &i64| (*u as usize).saturating_mul(f.short() * f.es) <= f.l2 / 2;
    let depth = DEPTH.into_iter().rev().filter(stays).chain(DEPTH);
    // A processor runs ahead in long rows by itself; where C has two rows and columns or more, asking for the next tile was slower in near
    // memory.
    let prefetch = match (is_cut, f.short()) {
        _ if f.is_half() => usize::from(f.asks_for_halves(is_cut)),
        (true, _) if is_far && f.is_line() => 2,
        (false, 2..) if is_far && f.is_line() => 1,
        (_, 1) if column <= SHORT_ROW => 1,
        _ => 0,
    };
    space.preferred_point(|param| match &*param.name {
        "vec" => widths.clone().map(Value::from).collect(),
        "m_s" => descending(m_s),
        "n_s" => descending(n_s),
        "k_l" => descending(sets),
        "k_s" => descending(if f.is_four() { 8 } else { sets.max(2) }),
        "u" => depth.clone().map(Value::Int).collect(),
        "t" => descending(f.threads),
        "t_m" => descending(if rows { f.threads } else { 1 }),
        "order" => vec![Value::from(if rows_stay { "row" } else { "column" })],
        "prefetch" => vec![Value::from(prefetch)],
        _ => Vec::new(),
    })
}

/// Sides of the default's tile. All four elements of a shorter side beside two of the other read each vector once: on a Zen 3, of vectors of half
/// a line, 0.7 to 0.95 of the time that two of them beside five took, whether rows come from a cache or from memory.
fn tile(f: &Facts) -> (usize, usize) {
    if f.is_four() {
        return if f.m >= f.n { (2, 4) } else { (4, 2) };
    }
    // Half-cycles of reading a vector of the longer side once more, where a tile has so many of its columns or rows. Where vectors are less
    // than a line there are sums for less than half as much, and nobody has measured what that trades for.
    let again = |rows: usize| {
        if !f.is_line() || f.rows(rows + f.short()) <= f.l1 {
            0
        } else if f.rows(f.long()) <= f.l2 {
            1
        } else {
            4
        }
    };
    square(f.m, f.n, if f.is_line() { 24 } else { 11 }, again)
}

/// Sides of the tile that takes the fewest cycles a vector of k: of two units for multiply-adds, of two for loads, one for what each tile
/// costs beside, and `again` for each further time that a vector of the longer side comes from beyond the first-level cache. Of equals
/// those that read the longer side fewer times, and of these the larger.
fn square(m: usize, n: usize, sums: usize, again: impl Fn(usize) -> usize) -> (usize, usize) {
    let sides = (1..=m.min(8)).flat_map(|m_s| (1..=n.min(8)).map(move |n_s| (m_s, n_s)));
    let fits = |&(m_s, n_s): &(usize, usize)| m_s * n_s <= sums && m_s.min(n_s) <= 4;
    let half_cycles = |&(m_s, n_s): &(usize, usize)| {
        let (along, across) = (m.div_ceil(m_s), n.div_ceil(n_s));
        let each = (m * n).max(along * across).max(m * across + n * along);
        let (long, times, rows) = if m >= n { (m, across, m_s) } else { (n, along, n_s) };
        (each + 2 * along * across + (times - 1) * long * again(rows), times, std::cmp::Reverse(m_s * n_s))
    };
    sides.filter(fits).min_by_key(half_cycles).unwrap_or((1, 1))
}

#[cfg(test)]
mod tests;
