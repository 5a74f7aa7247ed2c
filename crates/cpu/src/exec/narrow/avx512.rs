//! Packing for vectors of 512 bits that multiply narrow numbers as they are: a number of 32 bits is a group of steps of one neighbour.

use super::OFFSET;
use crate::LINE;
use crate::exec::pack::Block;
use crate::exec::weave::{self, Rows, SIDE, Weave, transposed};
use crate::scalar::Stored;
use std::arch::x86_64::*;
use std::ops::Range;

/// Steps that are copied of all panels before the next steps: so few that what is read are some streams, which a processor follows.
const CHUNK: usize = 4;

/// Bytes that rows along k are asked for ahead of their use.
const AHEAD: usize = 256;

/// Bytes by which lines of steps that are apart are asked for ahead of their use, at least those of the next steps, and most lines of a
/// step: panels take turns in two, which a processor does not follow. It follows lines side by side and long steps by itself.
const AHEAD_ACROSS: usize = 4096;
const MOST_LINES: usize = 2;

/// What is copied beside the block: the steps of k that there are, bits to change, and numbers before the steps.
pub(super) struct Copy {
    pub(super) deep: usize,
    pub(super) flip: u32,
    pub(super) head: usize,
}

/// A panel to copy.
struct Panel {
    source: *const u8,
    to: *mut u32,
    valid: usize,
    width: usize,
    /// Numbers of the panel, those before its steps too.
    end: usize,
}

/// Whether there is code here for a block of such operands, and the host has what it takes.
pub(super) fn takes(block: &Block<'_>, stored: Stored) -> bool {
    let is_native = match stored {
        Stored::Bf16Pairs => true,
        Stored::I8Quads => is_x86_feature_detected!("avx512vnni"),
        _ => false,
    };
    is_native && (block.operand.along == 1 || block.operand.step == 1) && weave::is_there()
}

/// Packs a block.
///
/// # Safety
/// As for [`super::pack`], of a block that is taken.
pub(super) unsafe fn pack(block: &Block<'_>, copy: &Copy, stored: Stored, to: *mut u32) {
    // SAFETY: the caller's contract.
    unsafe {
        match (stored, block.operand.along == 1) {
            (Stored::I8Quads, true) => across::<4>(block, copy, to),
            (Stored::I8Quads, false) => along::<4>(block, copy, to),
            (_, true) => across::<2>(block, copy, to),
            (_, false) => along::<2>(block, copy, to),
        }
    }
}

impl Copy {
    /// Groups of `GROUP` steps, the last of which may have fewer.
    fn depth<const GROUP: usize>(&self) -> usize {
        self.deep.div_ceil(GROUP)
    }

    fn panel<const GROUP: usize>(&self, block: &Block<'_>, tile: usize, to: *mut u32) -> Panel {
        let at = block.split.start(tile);
        let width = block.split.start(tile + 1) - at;
        Panel {
            source: block.source.wrapping_add(at * block.operand.along * (4 / GROUP)),
            to: to.wrapping_add((at - block.split.start(block.tiles.start)) * (self.head + block.depth)),
            valid: block.split.size(tile),
            width,
            end: (self.head + self.depth::<GROUP>()) * width,
        }
    }
}

impl Panel {
    /// Stores the first `count` of 16 numbers; the others too where the panel goes on, in what is written later.
    ///
    /// # Safety
    /// The panel must be writable, and the host must have these vectors.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn store(&self, at: usize, count: usize, row: __m512i) {
        // SAFETY: the caller's contract.
        unsafe {
            if at + SIDE <= self.end {
                _mm512_storeu_si512(self.to.add(at).cast(), row);
            } else {
                _mm512_mask_storeu_epi32(self.to.add(at).cast(), u16::MAX >> (SIDE - count), row);
            }
        }
    }

    /// Takes from what sums begin with what the offset of the other operand's bytes will have added to them in these steps.
    ///
    /// # Safety
    /// The panel must hold these steps, behind one number for each neighbour, which is read unless the steps are the first.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    unsafe fn take_from_head(&self, steps: Range<usize>) {
        let offset = _mm512_set1_epi8(OFFSET as i8);
        for i in (0..self.width).step_by(SIDE) {
            let mask = u16::MAX >> (SIDE - (self.width - i).min(SIDE));
            let mut sums = _mm512_setzero_si512();
            // SAFETY: the caller's contract; what the mask leaves out is neither read nor written.
            unsafe {
                for p in steps.clone() {
                    let quads = _mm512_maskz_loadu_epi32(mask, self.to.add((1 + p) * self.width + i).cast());
                    sums = _mm512_dpbusd_epi32(sums, offset, quads);
                }
                let head: *mut i32 = self.to.add(i).cast();
                let is_first = steps.start == 0;
                let before = if is_first { _mm512_setzero_si512() } else { _mm512_maskz_loadu_epi32(mask, head) };
                _mm512_mask_storeu_epi32(head, mask, _mm512_sub_epi32(before, sums));
            }
        }
    }
}

/// What is asked for of neighbours that lie side by side: behind the last step of a block lies the next block.
struct Ahead {
    at: *const u8,
    step: usize,
    lines: usize,
}

impl Ahead {
    fn of(block: &Block<'_>, step: usize, bytes: usize) -> Self {
        let start = |tile: usize| block.split.start(tile).min(block.split.extent);
        let (first, end) = (start(block.tiles.start), start(block.tiles.end));
        let lines = ((end - first) * bytes).div_ceil(LINE);
        let is_asked_for = step > LINE && lines <= MOST_LINES;
        let lines = if is_asked_for { lines } else { 0 };
        Self {
            at: block.source.wrapping_add(first * bytes + (AHEAD_ACROSS / step.max(1)).max(CHUNK * (4 / bytes)) * step),
            step,
            lines,
        }
    }

    /// Out of the way of the loop that copies, whose registers are few.
    #[inline(never)]
    fn ask(&self, steps: Range<usize>) {
        for p in steps {
            for line in 0..self.lines {
                let at = self.at.wrapping_add(p * self.step + line * LINE);
                // SAFETY: a prefetch is no access.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
            }
        }
    }
}

/// Neighbours that lie side by side: some steps of all panels, then the next.
///
/// # Safety
/// As for [`pack`], with `along` = 1 and as many steps in a number as its bits have room for.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn across<const GROUP: usize>(block: &Block<'_>, copy: &Copy, to: *mut u32) {
    let (depth, step) = (copy.depth::<GROUP>(), block.operand.step * (4 / GROUP));
    let weave = Weave::<GROUP>::new();
    let ahead = Ahead::of(block, step, 4 / GROUP);
    for first in (0..depth).step_by(CHUNK) {
        let steps = first..(first + CHUNK).min(depth);
        if ahead.lines > 0 {
            ahead.ask(first * GROUP..(first + CHUNK) * GROUP);
        }
        // Steps that are all there, in groups that are all there.
        let is_whole = steps.len() == CHUNK && steps.end * GROUP <= copy.deep;
        for tile in block.tiles.clone() {
            let panel = copy.panel::<GROUP>(block, tile, to);
            let is_whole = is_whole && panel.valid == panel.width;
            let has_vectors = panel.width.is_multiple_of(SIDE);
            // SAFETY: the caller's contract: only quads have something before their steps, and those have the instructions.
            unsafe {
                match copy.head {
                    0 if is_whole && has_vectors => chunk_across(&panel, copy.flip, first, (weave, step)),
                    0 if is_whole && panel.width < SIDE => thin_across(&panel, copy.flip, first, (weave, step)),
                    1 if is_whole && has_vectors => chunk_behind_head(&panel, first, (weave, step)),
                    head => {
                        steps.clone().for_each(|p| step_across(&panel, copy, p, (weave, step)));
                        if head > 0 {
                            panel.take_from_head(steps.clone());
                        }
                    }
                }
            }
        }
    }
}

/// Some steps of a panel of whole vectors.
///
/// # Safety
/// As for [`across`]; all must be there.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn chunk_across<const GROUP: usize>(
    panel: &Panel,
    flip: u32,
    first: usize,
    (weave, step): (Weave<GROUP>, usize),
) {
    let flip = _mm512_set1_epi32(flip.cast_signed());
    let mut from = panel.source.wrapping_add(first * GROUP * step);
    let mut to = panel.to.wrapping_add(first * panel.width);
    for _ in 0..panel.width / SIDE {
        for p in 0..CHUNK {
            // SAFETY: the caller's contract.
            unsafe {
                let row = _mm512_xor_si512(weave.whole(from.wrapping_add(p * GROUP * step), step), flip);
                _mm512_storeu_si512(to.wrapping_add(p * panel.width).cast(), row);
            }
        }
        (from, to) = (from.wrapping_add(SIDE * 4 / GROUP), to.wrapping_add(SIDE));
    }
}

/// The same of a panel of less than a vector.
///
/// # Safety
/// As for [`chunk_across`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn thin_across<const GROUP: usize>(
    panel: &Panel,
    flip: u32,
    first: usize,
    (weave, step): (Weave<GROUP>, usize),
) {
    let flip = _mm512_set1_epi32(flip.cast_signed());
    for p in first..first + CHUNK {
        let from = panel.source.wrapping_add(p * GROUP * step);
        // SAFETY: the caller's contract.
        unsafe {
            let row = _mm512_xor_si512(weave.part(from, step, panel.width, GROUP), flip);
            panel.store(p * panel.width, panel.width, row);
        }
    }
}

/// Some steps of a panel of whole vectors: bytes with a sign, behind what sums begin with.
///
/// # Safety
/// As for [`chunk_across`] and [`Panel::take_from_head`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn chunk_behind_head<const GROUP: usize>(panel: &Panel, first: usize, (weave, step): (Weave<GROUP>, usize)) {
    let offset = _mm512_set1_epi8(OFFSET as i8);
    let mut from = panel.source.wrapping_add(first * GROUP * step);
    let (mut head, mut to) = (panel.to, panel.to.wrapping_add((1 + first) * panel.width));
    for _ in 0..panel.width / SIDE {
        let mut sums = _mm512_setzero_si512();
        // SAFETY: the caller's contract.
        unsafe {
            for p in 0..CHUNK {
                let row = weave.whole(from.wrapping_add(p * GROUP * step), step);
                _mm512_storeu_si512(to.wrapping_add(p * panel.width).cast(), row);
                sums = _mm512_dpbusd_epi32(sums, offset, row);
            }
            let before = if first == 0 { _mm512_setzero_si512() } else { _mm512_loadu_si512(head.cast()) };
            _mm512_storeu_si512(head.cast(), _mm512_sub_epi32(before, sums));
        }
        (from, head, to) = (from.wrapping_add(SIDE * 4 / GROUP), head.wrapping_add(SIDE), to.wrapping_add(SIDE));
    }
}

/// A group of steps of a panel, `step` bytes apart.
///
/// # Safety
/// As for [`across`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn step_across<const GROUP: usize>(panel: &Panel, copy: &Copy, p: usize, (weave, step): (Weave<GROUP>, usize)) {
    let flip = _mm512_set1_epi32(copy.flip.cast_signed());
    let from = panel.source.wrapping_add(p * GROUP * step);
    let there = (copy.deep - p * GROUP).min(GROUP);
    let at = (copy.head + p) * panel.width;
    // SAFETY: the caller's contract: so many neighbours and steps are there.
    unsafe {
        for i in (0..panel.width).step_by(SIDE) {
            let (count, wide) = (panel.valid.saturating_sub(i).min(SIDE), (panel.width - i).min(SIDE));
            let from = from.wrapping_add(i * (4 / GROUP));
            let row = match count {
                0 => _mm512_setzero_si512(),
                SIDE if there == GROUP => weave.whole(from, step),
                _ => weave.part(from, step, count, there),
            };
            panel.store(at + i, wide, _mm512_xor_si512(row, flip));
        }
    }
}

/// Steps that lie side by side: squares are turned, of the last neighbours first, since what is written too much of them lies in the next
/// step.
///
/// # Safety
/// As for [`pack`], with `step` = 1 and as many steps in a number as its bits have room for.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn along<const GROUP: usize>(block: &Block<'_>, copy: &Copy, to: *mut u32) {
    let (depth, pitch) = (copy.depth::<GROUP>(), block.operand.along * (4 / GROUP));
    for tile in block.tiles.clone() {
        let panel = copy.panel::<GROUP>(block, tile, to);
        for p in (0..depth).step_by(SIDE) {
            let steps = p..(p + SIDE).min(depth);
            for first in (0..panel.width.div_ceil(SIDE)).rev().map(|square| square * SIDE) {
                let count = panel.valid.saturating_sub(first).min(SIDE);
                let from = panel.source.wrapping_add(first * pitch + p * 4);
                // SAFETY: the caller's contract: so many neighbours are there, and steps.
                let rows = transposed(unsafe { square::<GROUP>(copy, from, pitch, (count, p)) });
                let (at, wide) = ((copy.head + p) * panel.width + first, (panel.width - first).min(SIDE));
                // A plain loop: what iterators return is not inlined here, and goes through memory.
                let mut q = 0;
                while q < steps.len() {
                    // SAFETY: the caller's contract.
                    unsafe { panel.store(at + q * panel.width, wide, rows[q]) };
                    q += 1;
                }
            }
            if copy.head > 0 {
                // SAFETY: as in [`across`].
                unsafe { panel.take_from_head(steps) };
            }
        }
    }
}

/// So many neighbours with 16 groups of steps each from group `p` on; what is not there is zero.
///
/// # Safety
/// They must be readable, on a host with these vectors.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn square<const GROUP: usize>(copy: &Copy, from: *const u8, pitch: usize, (count, p): (usize, usize)) -> Rows {
    const ROW: usize = size_of::<__m512i>();
    let flip = _mm512_set1_epi32(copy.flip.cast_signed());
    let bytes = ((copy.deep - p * GROUP) * (4 / GROUP)).min(ROW);
    let mask = u64::MAX >> (ROW - bytes);
    let mut rows = [_mm512_setzero_si512(); SIDE];
    let mut r = 0;
    while r < SIDE {
        if r < count {
            let row = from.wrapping_add(r * pitch);
            // SAFETY: the caller's contract; what the mask leaves out is not read, and a prefetch is no access.
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(row.wrapping_add(AHEAD).cast());
                rows[r] = _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, row.cast()), flip);
            }
        }
        r += 1;
    }
    rows
}
