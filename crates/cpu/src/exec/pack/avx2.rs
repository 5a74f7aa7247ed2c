//! Panels copied by AVX2: rows that vectors cover.

use std::arch::x86_64::*;

use super::Panel;

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
