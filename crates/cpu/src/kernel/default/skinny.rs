//! Skinny products: a long operand beside one of few rows or columns.

use super::facts::{Facts, ROWS, SHORT};
use super::tiles::{best_tile, streaming_tile};
use super::{ALL, Choice, WIDE_COMPLEX, WOVEN};
use crate::LINE;
use crate::config::Axis;
use crate::kernel::SHARED_BY_FEW;
use crate::sets::PAGE;

/// Columns beside which a long operand of 16-bit numbers is widened for each tile rather than copied. In turn with a copy on a Zen 3, 2560 x 16 x 2560 nn took
/// 0.56 of the time in bf16 and 0.41 in f16, 32 columns 0.85 and 0.68, 64 as long and 0.76, 128 columns in bf16 1.09; nobody has measured vectors of a
/// line.
const WIDENED: usize = 64;

/// Steps from which on a panel of a near operand is long enough to be read to its end.
const LONG_PANEL: usize = 192;

impl Choice {
    /// The long operand is read along vectors, from where it lies or by copies of some lines of it, or along k and broadcast.
    pub(super) fn skinny(f: &Facts) -> Self {
        let tall = f.m >= f.n;
        let along_k = if tall { f.deep_a } else { f.deep_b };
        // The side that vectors run along is the long one, unless that is read along k.
        let axis = if tall != along_k { Axis::M } else { Axis::N };
        let short = f.m.min(f.n);
        let common = Self { axis, ..Self::large(f) };
        if along_k {
            // As few rows at once as a processor follows by itself, from end to end.
            let (_, rows) = f.side_by_side(axis, (1, ROWS));
            // The tile of rows that crowd sets is chosen as that of others and then cut, where they are complex: 2560 x 64 x 2560 tn in c64 took 0.9
            // of the time with this and the blocks of steps below.
            let balanced = if f.parts == 2 && f.halves_lines() { ROWS } else { rows };
            let (vectors, across) = best_tile(f, short, balanced);
            let tile = (vectors, across.min(rows));
            let pack_v = !f.is_loaded(axis) || f.copies_short(axis);
            // A processor runs ahead in long rows by itself.
            let prefetch = if f.k * f.es < PAGE / 2 { 8 } else { 0 };
            // The short operand is read for each few rows: as much of it at once as stays near.
            let stays = f.l3 <= SHARED_BY_FEW || short * f.k * f.es <= 3 * f.l2 / 4;
            let u = if stays { ALL } else { f.l2 / 2 / (short * f.es) };
            // All columns of some steps rather than some columns of all steps, where they are of 16-byte elements and copied: the rule
            // `packed_a_fits_l2` allows no larger block. 2604 x 64 x 2744 tn took 0.95 of the time.
            let is_capped = f.halves_lines() && f.es == 16 && pack_v;
            let u = if is_capped { u.min(2 * f.l2 / (short.next_power_of_two() * f.es)) } else { u };
            let by_rows = Self { tile, pack_v, pack_s: false, u, v_block: 256, k_s: 8, prefetch, ..common };
            // A panel of vectors of half a line that the first-level cache holds stays there while all rows go past it: random products of 9 to 70
            // columns on a Zen 3 took 0.94 of the time in the mean, 0.87 on two threads. In blocks of k, or past rows of more than 6 MB, 1.1 to 1.4
            // times as long.
            let is_near = f.m.max(f.n) * f.k * f.es <= 8 * f.l2;
            let fits = tile.0 * f.lanes * f.es * f.k.next_multiple_of(128) <= f.l1;
            let stays_first = f.halves_lines() && f.in_place && pack_v && is_near && fits;
            return if stays_first { Self { broadcast: false, prefetch: 0, ..by_rows } } else { by_rows };
        }
        if f.group > 1 && short > 6 {
            return common.woven(f, short);
        }
        // So few columns that a tile has all of them take wider tiles along vectors.
        let tile = streaming_tile(f, short);
        let plain = Self { tile, pack_s: true, broadcast: false, v_block: tile.0 * f.lanes, prefetch: 8, ..common };
        plain.streaming(f, short)
    }

    /// A long operand whose neighbours along k are woven into each other as it is packed: few steps of long columns at a time, and tiles that
    /// use what is packed at once. Where there is more to do with it, or C is transposed, that is more steps, which cost fewer passes over C.
    fn woven(self, f: &Facts, short: usize) -> Self {
        let packed = Self { pack_s: true, broadcast: true, s_block: 4096, prefetch: 8, ..self };
        if f.is_woven(self.axis) && short <= SHORT / 2 {
            // Not worth a copy: vectors are woven as they are loaded, some hundred steps of a few lines.
            return Self { tile: WOVEN, pack_v: false, broadcast: false, u: 256, v_block: WOVEN.0 * f.lanes, ..packed };
        }
        if self.axis == Axis::M && (f.group > 2 || short <= 2 * LINE / f.es) {
            return Self { tile: (4, 6), u: 32, v_block: 4096, ..packed };
        }
        Self { tile: (2, 12), u: 128, v_block: 1024, ..packed }
    }

    /// A long operand whose steps of k lie one after the other, beside a short one that stays.
    fn streaming(self, f: &Facts, short: usize) -> Self {
        let (axis, tile, plain) = (self.axis, self.tile, self);
        let is_far = f.bytes() > f.l3.min(SHARED_BY_FEW) / 2;
        let is_narrow = f.is_narrow();
        let (long, _) = f.sides(axis);
        // Rows that begin less than a page apart: 30 x 400 x 6000 tt took 0.8 of the time that it took in blocks of 32 steps, and 16 x 300 x 8000 nt
        // in f64, from memory, 0.9.
        let ends_soon = f.waits_for_l3() && f.pitch_along(axis) < PAGE;
        let lies_in_pages = is_far && is_narrow && long * f.es <= 2 * PAGE;
        // In place C is read and written again for each few steps, which takes longer than a copy unless its columns are few: in place 512 x 32 x 8000
        // nt took 1.4 times as long as by copies, 512 x 12 x 20000 0.9. Copies of elements of 16 bytes take longer.
        let few = (if f.es == 16 { 4 } else { 2 }) * tile.1;
        let copies_halves = f.halves_lines() && f.in_place && short > few;
        if lies_in_pages && !copies_halves && !(f.is_widened(axis) && short > WIDENED) {
            // Steps of k follow each other within a page or two: some lines of each are a block that stays in the first-level cache, and a
            // processor runs ahead in all of them.
            return Self { pack_v: false, broadcast: true, u: 16, v_block: 8 * LINE / f.es, k_s: 4, ..plain };
        }
        if f.parts == 2 && !is_narrow && axis == Axis::M && short > 2 * tile.1 {
            // There is enough to do with a complex element to fetch it for each tile across, some pages of all steps at a time.
            return Self { tile: WIDE_COMPLEX, pack_v: false, u: 96, v_block: 256, k_s: 8, ..plain };
        }
        // Tiles across that make a copy pay: fewer where memory is far and vectors are half a line, whose tiles wait for both halves, while a
        // copy takes lines in order.
        let shares_lines = f.shares_lines(axis);
        let tiles = if is_far && is_narrow && (f.parts == 1 || (f.es == 8 && shares_lines)) { 2 } else { 3 };
        if short > tiles * tile.1 || (lies_in_pages && copies_halves) {
            return plain.copied(f, short, shares_lines);
        }
        if !is_far {
            return plain.read_nearby(f, short, ends_soon);
        }
        if f.halves_lines() && f.in_place && !f.reads_whole_lines(axis, short) {
            // On one thread and two of a Zen 3 random operands of 17 to 90 MB, of elements of all sizes, took 0.5 to 0.65 of the time in the mean
            // that they took by panels of 32 or 512 steps.
            return plain.by_pages();
        }
        plain.read_from_afar(f, short, ends_soon)
    }

    /// A long operand of which each row or column is on pages of its own, on vectors of half a line: of 16 side by side a processor fetches the next
    /// lines in time, of 32 it does not.
    fn by_pages(self) -> Self {
        Self { pack_v: false, broadcast: true, u: 16, v_block: 4096, k_s: 8, prefetch: 0, ..self }
    }

    /// A long operand on vectors of half a line: up to 512 steps of a panel are read before the next panel.
    fn panel_by_panel(self) -> Self {
        Self {
            pack_v: false,
            broadcast: false,
            u: 512,
            v_block: self.tile.0 * self.vec / self.es,
            k_s: 8,
            prefetch: 32,
            ..self
        }
    }

    /// A long operand that the last-level cache holds, read from where it lies.
    fn read_nearby(self, f: &Facts, short: usize, ends_soon: bool) -> Self {
        let axis = self.axis;
        // Rows in the last-level cache are read from end to end, some of them side by side: a processor runs ahead in each.
        // The longer a pass over C takes, the more steps are worth it: where vectors run along rows it is transposed.
        let steps = match axis {
            Axis::N => 128,
            Axis::M if short > 2 * ROWS => 64,
            Axis::M => 32,
        };
        let near = Self { pack_v: false, u: steps, v_block: 4096, k_s: 4, ..self };
        let (pitch, takes_a_third) = (f.pitch_along(axis), 3 * f.bytes() > f.l3);
        if f.halves_lines() && f.in_place && (pitch >= PAGE || (pitch >= PAGE / 2 && takes_a_third)) {
            // On a Zen 3 random operands of 1 to 16 MB beside 2 to 18 rows or columns took 0.58 to 0.93 of the time in the mean on one thread,
            // and 0.64 to 0.82 on two, that they took by more steps. The larger the operand, the larger the gain. Of steps that lie half a page to
            // a page apart those of 11 to 16 MB took 0.46 to 0.85 on one thread and 0.73 to 1.0 on two, smaller ones up to 1.6 times as long.
            return if f.k >= LONG_PANEL && f.reads_whole_lines(axis, short) {
                near.panel_by_panel()
            } else {
                near.by_pages()
            };
        }
        let thrashes = f.thrashes_tlb(axis);
        if f.waits_for_l3() && f.in_place && (short >= 8 || !thrashes) {
            // That cache takes about as long as memory: lines are prefetched, unless the few of the other side have to be copied for
            // each block. Fewer steps cost less than what leaves before its neighbours are read, even where C is transposed behind each
            // block of them; of rows shorter than a page the next step follows.
            let u = if axis == Axis::M || ends_soon { near.u } else { 32 };
            // What stays in the caches of several threads is fetched from there again rather than C.
            let broadcast = f.threads > 1 && 4 * f.bytes() <= 3 * f.l2 * f.threads;
            return Self { pack_s: thrashes, u, prefetch: 32, broadcast, ..near };
        }
        Self { broadcast: true, prefetch: 0, ..near }
    }

    /// A long operand that comes from memory, read from where it lies.
    fn read_from_afar(self, f: &Facts, short: usize, ends_soon: bool) -> Self {
        let far = Self { pack_v: false, prefetch: 32, ..self };
        if f.is_half() && f.in_place {
            // These [are whole lines](Facts::reads_whole_lines).
            return far.panel_by_panel();
        }
        // Few steps of k at once: each is on a page of its own, and a processor knows some 64 by heart. Where C is transposed at the end of
        // a block of k, that costs more than some pages, unless there is little of it; more so for short vectors, and less where each step
        // begins elsewhere in a line, so that panels share lines.
        let rows_share_lines = !f.pitch_b.is_multiple_of(LINE);
        let most = if f.is_narrow() {
            512
        } else if rows_share_lines {
            32
        } else {
            64
        };
        let u = match self.axis {
            Axis::N if short > 4 && ends_soon => 128,
            Axis::N if short > 4 => most,
            _ => 32,
        };
        Self { u, k_s: 2, ..far }
    }

    /// A long operand that is used often enough for a copy, which the first tile of each panel makes on its way where a block is one panel.
    /// Elements of 16 bytes whose vectors cross lines are few in a line, which takes long to come for what is done with it: some lines that follow
    /// each other are copied at a time.
    fn copied(self, f: &Facts, short: usize, shares_lines: bool) -> Self {
        let pack_v = !(f.is_widened(self.axis) && short <= WIDENED);
        let begins_anywhere = f.waits_for_l3() && f.in_place && !f.pitch_along(self.axis).is_multiple_of(LINE);
        let copied = Self { u: 256, pack_v, ..self };
        match f.es {
            16 if f.copies_panels() => copied.panel_of_three(f),
            16 => Self { broadcast: true, v_block: 16 * LINE / f.es, ..copied },
            // Two lines of each step, which begins elsewhere in a line, lie in three: 5001 x 64 x 500 nn took 0.9 to 0.95 of the time.
            4 if begins_anywhere => Self { v_block: 8 * LINE / f.es, ..copied },
            // A panel is as wide as a line, but parts of two, which it shares with its neighbours, so that lines come twice: eight lines of each
            // step are copied at once, of as many steps as fill half of the first-level cache or all of it. On a Zen 3 2561 x 16 x 2561 nn
            // took 0.76 of the time in f32 and 0.8 in f64, 5003 x 32 x 1001 0.66 and 0.64, 1203 x 32 x 3001 in c32 0.72.
            _ if shares_lines => Self { u: 32 * f.es, v_block: 8 * LINE / f.es, k_s: 8, prefetch: 0, ..copied },
            _ => copied,
        }
    }

    /// A long operand of elements of 16 bytes, of which the first tile of each panel of three vectors of half a line copies the panel on its way: its lines
    /// are asked for while the panel before is multiplied. Steps an eighth of the second-level cache apart, a way of it on a Zen 3, fall into few of its sets,
    /// so that fewer are taken at a time. There 2560 x 16 x 2560 nn took 0.86 of the time that it took by copies of sixteen lines at once,
    /// 2560 x 32 x 2560 0.93, 2560 x 64 x 2560 0.98, and random products on two threads 0.96 in the mean.
    fn panel_of_three(self, f: &Facts) -> Self {
        let (u, prefetch) = if f.pitch_along(self.axis).is_multiple_of(f.l2 / 8) { (128, 32) } else { (256, 8) };
        Self { tile: (3, 2), pack_v: true, broadcast: false, u, v_block: 4 * f.lanes, k_s: 8, prefetch, ..self }
    }
}

impl Facts {
    /// Whether a long operand is better read [panel by panel](Choice::panel_by_panel) than [by pages](Choice::by_pages): beside more than eight real
    /// numbers, where steps begin with a line, but not so many pages apart that they fall into few sets of the second-level cache. On a Zen 3 such
    /// operands of 17 to 60 MB took 0.7 to 0.85 of the time in the mean, those of 1 to 16 MB 0.85 to 0.95; beside fewer numbers they took 1.1 to 1.4
    /// times as long, other steps 1.5 times.
    fn reads_whole_lines(&self, axis: Axis, short: usize) -> bool {
        let pitch = self.pitch_along(axis);
        let is_aligned = self.begins_lines && pitch.is_multiple_of(LINE) && !pitch.is_multiple_of(2 * PAGE);
        self.is_half() && short > 8 && is_aligned
    }
}
