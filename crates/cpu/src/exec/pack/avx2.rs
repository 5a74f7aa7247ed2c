//! Panels copied by AVX2: rows that vectors cover, and transposed ones in squares.

use std::arch::x86_64::*;

use super::{Packed, Panel};

/// Bytes that a transposition prefetches ahead in each of its rows: more rows than a processor follows by itself.
const AHEAD: usize = 256;

/// Sign-bit masks of 32-bit lanes: 8 set, then 8 clear.
static LANES: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

/// Mask of the first `words` 32-bit lanes, at most 8.
#[target_feature(enable = "avx2")]
pub(crate) fn mask(words: usize) -> __m256i {
    debug_assert!(words <= 8);
    // SAFETY: 8 - words + 8 <= 16 entries.
    unsafe { _mm256_loadu_si256(LANES.as_ptr().add(8 - words.min(8)).cast()) }
}

/// Copies contiguous neighbours, all sizes in 32-bit words, so that it serves both element types.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    source: *const f32,
    step: usize,
    valid: usize,
    width: usize,
    depth: usize,
    room: usize,
}

impl Rows {
    /// Those of a panel whose neighbours are contiguous, with room for so many elements.
    pub(super) fn of<T>(panel: &Panel<T>, room: usize) -> Self {
        let words = size_of::<T>() / 4;
        Self {
            source: panel.source.cast(),
            step: panel.step * words,
            valid: panel.valid * words,
            width: panel.width * words,
            depth: panel.depth,
            room: room * words,
        }
    }

    /// Copies with the host's vector instructions, writing within the room.
    ///
    /// # Safety
    /// As for `Block::pack`, for this panel, on a host with AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn copy(&self, to: *mut f32) {
        // SAFETY: the caller's contract.
        unsafe {
            match self.width.div_ceil(8) {
                1 => self.copy_vectors::<1>(to),
                2 => self.copy_vectors::<2>(to),
                3 => self.copy_vectors::<3>(to),
                4 => self.copy_vectors::<4>(to),
                _ => self.copy_wide(to),
            }
        }
    }

    /// Rows of `N` vectors, the last of which may be partial.
    ///
    /// # Safety
    /// As for [`Rows::copy`].
    #[target_feature(enable = "avx2")]
    unsafe fn copy_vectors<const N: usize>(&self, to: *mut f32) {
        if self.valid.div_ceil(8) < N {
            // SAFETY: the caller's contract.
            unsafe { self.copy_wide(to) };
            return;
        }
        let reads = mask(self.valid - 8 * (N - 1));
        let writes = mask(self.width - 8 * (N - 1));
        for p in 0..self.depth {
            let exact = p * self.width + 8 * N > self.room;
            // SAFETY: reads are masked to `valid`, writes stay within the room. A prefetch may be anywhere.
            unsafe {
                let (from, to) = (self.source.add(p * self.step), to.add(p * self.width));
                _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(super::CHUNK * self.step).cast());
                for i in 0..N - 1 {
                    _mm256_storeu_ps(to.add(8 * i), _mm256_loadu_ps(from.add(8 * i)));
                }
                let value = _mm256_maskload_ps(from.add(8 * (N - 1)), reads);
                if exact {
                    _mm256_maskstore_ps(to.add(8 * (N - 1)), writes, value);
                } else {
                    _mm256_storeu_ps(to.add(8 * (N - 1)), value);
                }
            }
        }
    }

    /// Rows of any width.
    ///
    /// # Safety
    /// As for [`Rows::copy`].
    #[target_feature(enable = "avx2")]
    unsafe fn copy_wide(&self, to: *mut f32) {
        for p in 0..self.depth {
            for i in (0..self.width).step_by(8) {
                let (from, to) = (self.source.wrapping_add(p * self.step + i), to.wrapping_add(p * self.width + i));
                let (valid, width) = (self.valid.saturating_sub(i), self.width - i);
                // SAFETY: what is not within the row is masked. Masks are for the edge: AMD's processors take dozens of steps for a masked store.
                unsafe {
                    let value = if valid >= 8 { _mm256_loadu_ps(from) } else { _mm256_maskload_ps(from, mask(valid)) };
                    if width >= 8 { _mm256_storeu_ps(to, value) } else { _mm256_maskstore_ps(to, mask(width), value) }
                }
            }
        }
    }
}

#[target_feature(enable = "avx2")]
pub(crate) fn transpose_f32(r: [__m256; 8]) -> [__m256; 8] {
    let lo = |a, b| _mm256_unpacklo_ps(a, b);
    let hi = |a, b| _mm256_unpackhi_ps(a, b);
    let t = [
        lo(r[0], r[1]),
        hi(r[0], r[1]),
        lo(r[2], r[3]),
        hi(r[2], r[3]),
        lo(r[4], r[5]),
        hi(r[4], r[5]),
        lo(r[6], r[7]),
        hi(r[6], r[7]),
    ];
    let u = [
        _mm256_shuffle_ps::<0x44>(t[0], t[2]),
        _mm256_shuffle_ps::<0xee>(t[0], t[2]),
        _mm256_shuffle_ps::<0x44>(t[1], t[3]),
        _mm256_shuffle_ps::<0xee>(t[1], t[3]),
        _mm256_shuffle_ps::<0x44>(t[4], t[6]),
        _mm256_shuffle_ps::<0xee>(t[4], t[6]),
        _mm256_shuffle_ps::<0x44>(t[5], t[7]),
        _mm256_shuffle_ps::<0xee>(t[5], t[7]),
    ];
    [
        _mm256_permute2f128_ps::<0x20>(u[0], u[4]),
        _mm256_permute2f128_ps::<0x20>(u[1], u[5]),
        _mm256_permute2f128_ps::<0x20>(u[2], u[6]),
        _mm256_permute2f128_ps::<0x20>(u[3], u[7]),
        _mm256_permute2f128_ps::<0x31>(u[0], u[4]),
        _mm256_permute2f128_ps::<0x31>(u[1], u[5]),
        _mm256_permute2f128_ps::<0x31>(u[2], u[6]),
        _mm256_permute2f128_ps::<0x31>(u[3], u[7]),
    ]
}

#[target_feature(enable = "avx2")]
fn transpose_f64(r: [__m256d; 4]) -> [__m256d; 4] {
    let t = [
        _mm256_unpacklo_pd(r[0], r[1]),
        _mm256_unpackhi_pd(r[0], r[1]),
        _mm256_unpacklo_pd(r[2], r[3]),
        _mm256_unpackhi_pd(r[2], r[3]),
    ];
    [
        _mm256_permute2f128_pd::<0x20>(t[0], t[2]),
        _mm256_permute2f128_pd::<0x20>(t[1], t[3]),
        _mm256_permute2f128_pd::<0x31>(t[0], t[2]),
        _mm256_permute2f128_pd::<0x31>(t[1], t[3]),
    ]
}

/// The elements under a mask, zeros for the others.
///
/// # Safety
/// Those under the mask must be readable.
#[target_feature(enable = "avx2")]
unsafe fn part_f32(from: *const f32, mask: __m256i) -> __m256 {
    // SAFETY: the caller's contract.
    unsafe { _mm256_maskload_ps(from, mask) }
}

/// As [`part_f32`].
///
/// # Safety
/// As for [`part_f32`].
#[target_feature(enable = "avx2")]
unsafe fn part_f64(from: *const f64, mask: __m256i) -> __m256d {
    // SAFETY: the caller's contract.
    unsafe { _mm256_maskload_pd(from, mask) }
}

#[target_feature(enable = "avx2")]
fn transpose_pairs(r: [__m256d; 2]) -> [__m256d; 2] {
    [_mm256_permute2f128_pd::<0x20>(r[0], r[1]), _mm256_permute2f128_pd::<0x31>(r[0], r[1])]
}

/// # Safety
/// Both pairs must be readable.
#[target_feature(enable = "avx2")]
unsafe fn load_pairs(from: *const [f64; 2]) -> __m256d {
    // SAFETY: the caller's contract.
    unsafe { _mm256_loadu_pd(from.cast()) }
}

/// As [`part_f32`].
///
/// # Safety
/// As for [`part_f32`].
#[target_feature(enable = "avx2")]
unsafe fn part_pairs(from: *const [f64; 2], mask: __m256i) -> __m256d {
    // SAFETY: the caller's contract.
    unsafe { _mm256_maskload_pd(from.cast(), mask) }
}

/// # Safety
/// Both pairs must be writable.
#[target_feature(enable = "avx2")]
unsafe fn store_pairs(to: *mut [f64; 2], value: __m256d) {
    // SAFETY: the caller's contract.
    unsafe { _mm256_storeu_pd(to.cast(), value) };
}

/// Bytes of a row that are read before the next rows: a line, which the rows of a panel may drive out of the first-level cache
/// before its second half is asked for, where they lie a power of two apart.
const LINE: usize = 64;

/// Transposing copy of a k-contiguous panel, line by line. Blocks of a line are written from the last to the first: what
/// a partial last block writes too much lies in the next step, and is overwritten by it.
macro_rules! transposing {
    ($name:ident, $square:ident, $t:ty, $block:literal, $vector:ty, $load:ident, $part:ident, $zero:ident, $store:ident, $transpose:ident) => {
        /// # Safety
        /// As for `Packed::transpose_square_avx2`.
        #[target_feature(enable = "avx2")]
        unsafe fn $square(from: (*const $t, usize), to: (*mut $t, usize)) {
            let mut rows: [$vector; $block] = [$zero(); $block];
            for (r, row) in rows.iter_mut().enumerate() {
                // SAFETY: the caller's contract.
                *row = unsafe { $load(from.0.add(r * from.1)) };
            }
            for (r, row) in $transpose(rows).into_iter().enumerate() {
                // SAFETY: the caller's contract.
                unsafe { $store(to.0.add(r * to.1), row) };
            }
        }

        /// # Safety
        /// As for `pack`; `step` must be 1.
        #[target_feature(enable = "avx2")]
        unsafe fn $name(panel: &Panel<$t>, to: *mut $t) {
            let (blocks, words) = (panel.width.div_ceil($block), size_of::<$t>() / 4);
            for line in (0..panel.depth).step_by(LINE / size_of::<$t>()) {
                let end = (line + LINE / size_of::<$t>()).min(panel.depth);
                for block in (0..blocks).rev() {
                    let first = block * $block;
                    for p in (line..end).step_by($block) {
                        let steps = $block.min(panel.depth - p);
                        let mut rows: [$vector; $block] = [$zero(); $block];
                        for (r, row) in rows.iter_mut().enumerate() {
                            if first + r < panel.valid {
                                // SAFETY: row first + r < valid, steps p .. p + steps <= depth. A prefetch may be anywhere.
                                *row = unsafe {
                                    let from = panel.source.add((first + r) * panel.along + p);
                                    if p == line {
                                        _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(AHEAD / size_of::<$t>()).cast());
                                    }
                                    if steps == $block { $load(from) } else { $part(from, mask(steps * words)) }
                                };
                            }
                        }
                        for (q, column) in $transpose(rows).into_iter().enumerate().take(steps) {
                            // SAFETY: ends within one block of width * depth, which the slack covers.
                            unsafe { $store(to.add((p + q) * panel.width + first), column) };
                        }
                    }
                }
            }
        }
    };
}
transposing!(
    transposing_f32,
    square_f32,
    f32,
    8,
    __m256,
    _mm256_loadu_ps,
    part_f32,
    _mm256_setzero_ps,
    _mm256_storeu_ps,
    transpose_f32
);
transposing!(
    transposing_f64,
    square_f64,
    f64,
    4,
    __m256d,
    _mm256_loadu_pd,
    part_f64,
    _mm256_setzero_pd,
    _mm256_storeu_pd,
    transpose_f64
);

transposing!(
    transposing_pairs,
    square_pairs,
    [f64; 2],
    2,
    __m256d,
    load_pairs,
    part_pairs,
    _mm256_setzero_pd,
    store_pairs,
    transpose_pairs
);

impl Packed for [f64; 2] {
    unsafe fn transpose_avx2(panel: &Panel<[f64; 2]>, to: *mut [f64; 2]) {
        // SAFETY: the caller has AVX2 and hands over its contract.
        unsafe { transposing_pairs(panel, to) };
    }

    const SQUARE: usize = 2;

    unsafe fn transpose_square_avx2(from: (*const [f64; 2], usize), to: (*mut [f64; 2], usize)) {
        // SAFETY: the caller has AVX2 and hands over its contract.
        unsafe { square_pairs(from, to) };
    }
}

impl Packed for f32 {
    unsafe fn transpose_avx2(panel: &Panel<f32>, to: *mut f32) {
        // SAFETY: the caller has AVX2 and hands over its contract.
        unsafe { transposing_f32(panel, to) };
    }

    const SQUARE: usize = 8;

    unsafe fn transpose_square_avx2(from: (*const f32, usize), to: (*mut f32, usize)) {
        // SAFETY: the caller has AVX2 and hands over its contract.
        unsafe { square_f32(from, to) };
    }
}

impl Packed for f64 {
    unsafe fn transpose_avx2(panel: &Panel<f64>, to: *mut f64) {
        // SAFETY: the caller has AVX2 and hands over its contract.
        unsafe { transposing_f64(panel, to) };
    }

    const SQUARE: usize = 4;

    unsafe fn transpose_square_avx2(from: (*const f64, usize), to: (*mut f64, usize)) {
        // SAFETY: the caller has AVX2 and hands over its contract.
        unsafe { square_f64(from, to) };
    }
}
