//! Copies panels of an operand into the order in which the generated code reads them: for each tile, step of
//! k after step of k, `width` neighbours each.
//!
//! Both layouts of the source are vectorised: neighbours contiguous (a copy), and k contiguous (a
//! transposition of 8 x 8 or 4 x 4 blocks).

/// A panel to copy: `valid` neighbours `along` elements apart, `depth` steps of k `step` elements apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel<T> {
    pub(crate) source: *const T,
    pub(crate) along: usize,
    pub(crate) step: usize,
    pub(crate) valid: usize,
    /// Neighbours per step in the copy; those from `valid` on become zero.
    pub(crate) width: usize,
    pub(crate) depth: usize,
}

/// Elements that [`pack`] may write behind the end of the last panel of a buffer.
pub(crate) const SLACK: usize = 16;

/// An element that can be packed.
pub(crate) trait Packed: Copy + Default + 'static {
    /// Rows of the block that is transposed at once.
    const BLOCK: usize;

    /// Copies one panel with the host's vector instructions.
    ///
    /// # Safety
    /// As for [`pack`]; the host must have AVX2.
    #[cfg(target_arch = "x86_64")]
    unsafe fn pack_avx2(panel: &Panel<Self>, to: *mut Self);
}

/// Copies one panel to `to`.
///
/// # Safety
/// All `valid * depth` elements of the source must be readable, `width * depth + SLACK` elements writable at
/// `to`, and the two must not overlap. `simd` may be set only on a host with AVX2.
pub(crate) unsafe fn pack<T: Packed>(panel: &Panel<T>, to: *mut T, simd: bool) {
    #[cfg(target_arch = "x86_64")]
    if simd {
        // SAFETY: the caller's contract.
        unsafe { T::pack_avx2(panel, to) };
        return;
    }
    let _ = simd;
    // SAFETY: the caller's contract.
    unsafe { pack_plain(panel, to, 0) };
}

/// Copies the steps from `from` on, element by element.
///
/// # Safety
/// As for [`pack`].
unsafe fn pack_plain<T: Packed>(panel: &Panel<T>, to: *mut T, from: usize) {
    for p in from..panel.depth {
        for i in 0..panel.width {
            // SAFETY: i < valid and p < depth index the source, i < width and p < depth the copy.
            unsafe {
                let value = if i < panel.valid {
                    *panel.source.add(i * panel.along + p * panel.step)
                } else {
                    T::default()
                };
                *to.add(p * panel.width + i) = value;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{Packed, Panel, pack_plain};

    /// Sign-bit masks of 32-bit lanes: 8 set, then 8 clear.
    static LANES: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

    /// Mask of the first `words` 32-bit lanes, at most 8.
    #[target_feature(enable = "avx2")]
    fn mask(words: usize) -> __m256i {
        assert!(words <= 8);
        // SAFETY: 8 - words + 8 <= 16 entries.
        unsafe { _mm256_loadu_si256(LANES.as_ptr().add(8 - words).cast()) }
    }

    /// Copies contiguous neighbours. Works on 32-bit words, so that it serves both element types.
    ///
    /// # Safety
    /// As for `pack`, with all sizes in words.
    #[target_feature(enable = "avx2")]
    unsafe fn copy_rows(source: *const f32, step: usize, valid: usize, width: usize, depth: usize, to: *mut f32) {
        let whole = valid / 8;
        let rest = mask(valid % 8);
        // Each step writes whole vectors; what runs over into the next step is overwritten by it, and behind
        // the last step there is slack.
        let vectors = width.div_ceil(8);
        // SAFETY: reads are masked to `valid`; writes end within 7 words of `width * depth`.
        unsafe {
            for p in 0..depth {
                let (from, to) = (source.add(p * step), to.add(p * width));
                for i in 0..whole {
                    _mm256_storeu_ps(to.add(8 * i), _mm256_loadu_ps(from.add(8 * i)));
                }
                for i in whole..vectors {
                    let value = if i == whole {
                        _mm256_maskload_ps(from.add(8 * i), rest)
                    } else {
                        _mm256_setzero_ps()
                    };
                    _mm256_storeu_ps(to.add(8 * i), value);
                }
            }
        }
    }

    #[target_feature(enable = "avx2")]
    fn transpose_f32(r: [__m256; 8]) -> [__m256; 8] {
        let lo = |a, b| _mm256_unpacklo_ps(a, b);
        let hi = |a, b| _mm256_unpackhi_ps(a, b);
        let t = [
            lo(r[0], r[1]), hi(r[0], r[1]), lo(r[2], r[3]), hi(r[2], r[3]),
            lo(r[4], r[5]), hi(r[4], r[5]), lo(r[6], r[7]), hi(r[6], r[7]),
        ];
        let u = [
            _mm256_shuffle_ps::<0x44>(t[0], t[2]), _mm256_shuffle_ps::<0xee>(t[0], t[2]),
            _mm256_shuffle_ps::<0x44>(t[1], t[3]), _mm256_shuffle_ps::<0xee>(t[1], t[3]),
            _mm256_shuffle_ps::<0x44>(t[4], t[6]), _mm256_shuffle_ps::<0xee>(t[4], t[6]),
            _mm256_shuffle_ps::<0x44>(t[5], t[7]), _mm256_shuffle_ps::<0xee>(t[5], t[7]),
        ];
        [
            _mm256_permute2f128_ps::<0x20>(u[0], u[4]), _mm256_permute2f128_ps::<0x20>(u[1], u[5]),
            _mm256_permute2f128_ps::<0x20>(u[2], u[6]), _mm256_permute2f128_ps::<0x20>(u[3], u[7]),
            _mm256_permute2f128_ps::<0x31>(u[0], u[4]), _mm256_permute2f128_ps::<0x31>(u[1], u[5]),
            _mm256_permute2f128_ps::<0x31>(u[2], u[6]), _mm256_permute2f128_ps::<0x31>(u[3], u[7]),
        ]
    }

    #[target_feature(enable = "avx2")]
    fn transpose_f64(r: [__m256d; 4]) -> [__m256d; 4] {
        let t = [
            _mm256_unpacklo_pd(r[0], r[1]), _mm256_unpackhi_pd(r[0], r[1]),
            _mm256_unpacklo_pd(r[2], r[3]), _mm256_unpackhi_pd(r[2], r[3]),
        ];
        [
            _mm256_permute2f128_pd::<0x20>(t[0], t[2]), _mm256_permute2f128_pd::<0x20>(t[1], t[3]),
            _mm256_permute2f128_pd::<0x31>(t[0], t[2]), _mm256_permute2f128_pd::<0x31>(t[1], t[3]),
        ]
    }

    /// Transposing copy of a k-contiguous panel. Blocks of a step are written from the last to the first: what
    /// a partial last block writes too much lies in the next step, and is overwritten by it.
    macro_rules! transposing {
        ($name:ident, $t:ty, $block:literal, $vector:ty, $load:ident, $zero:ident, $store:ident, $transpose:ident) => {
            /// # Safety
            /// As for `pack`; `step` must be 1.
            #[target_feature(enable = "avx2")]
            unsafe fn $name(panel: &Panel<$t>, to: *mut $t) {
                let blocks = panel.width.div_ceil($block);
                let whole_depth = panel.depth / $block * $block;
                let mut p = 0;
                while p < whole_depth {
                    for block in (0..blocks).rev() {
                        let first = block * $block;
                        let mut rows: [$vector; $block] = [$zero(); $block];
                        for (r, row) in rows.iter_mut().enumerate() {
                            if first + r < panel.valid {
                                // SAFETY: row first + r < valid, steps p .. p + block <= depth.
                                *row = unsafe { $load(panel.source.add((first + r) * panel.along + p)) };
                            }
                        }
                        for (q, column) in $transpose(rows).into_iter().enumerate() {
                            // SAFETY: ends within one block of width * depth, which the slack covers.
                            unsafe { $store(to.add((p + q) * panel.width + first), column) };
                        }
                    }
                    p += $block;
                }
                // SAFETY: the caller's contract.
                unsafe { pack_plain(panel, to, whole_depth) };
            }
        };
    }
    transposing!(transposing_f32, f32, 8, __m256, _mm256_loadu_ps, _mm256_setzero_ps, _mm256_storeu_ps, transpose_f32);
    transposing!(transposing_f64, f64, 4, __m256d, _mm256_loadu_pd, _mm256_setzero_pd, _mm256_storeu_pd, transpose_f64);

    impl Packed for f32 {
        const BLOCK: usize = 8;

        unsafe fn pack_avx2(panel: &Panel<f32>, to: *mut f32) {
            // SAFETY: the caller has AVX2 and hands over its contract.
            unsafe {
                match (panel.along, panel.step) {
                    (1, step) => copy_rows(panel.source, step, panel.valid, panel.width, panel.depth, to),
                    (_, 1) => transposing_f32(panel, to),
                    _ => pack_plain(panel, to, 0),
                }
            }
        }
    }

    impl Packed for f64 {
        const BLOCK: usize = 4;

        unsafe fn pack_avx2(panel: &Panel<f64>, to: *mut f64) {
            // SAFETY: the caller has AVX2 and hands over its contract; two words make one element.
            unsafe {
                match (panel.along, panel.step) {
                    (1, step) => copy_rows(
                        panel.source.cast(),
                        2 * step,
                        2 * panel.valid,
                        2 * panel.width,
                        panel.depth,
                        to.cast(),
                    ),
                    (_, 1) => transposing_f64(panel, to),
                    _ => pack_plain(panel, to, 0),
                }
            }
        }
    }
}
