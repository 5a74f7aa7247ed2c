//! Panels and squares transposed by AVX2. Rows are loaded in halves of a vector, so that shuffles stay within halves: at most two thirds of those
//! that whole rows would take, and none across halves, of which a processor does one at a time.

use std::arch::x86_64::*;

use super::{Packed, Panel};
use crate::LINE;

/// Bytes of half a vector.
const HALF: usize = 16;

/// Bytes that are asked for ahead in each row: more rows than a processor follows by itself.
const AHEAD: usize = 256;

/// Two squares of `N` neighbours over `N` steps, of which half a vector holds a row.
#[derive(Clone, Copy)]
struct Pair<const N: usize> {
    /// The first element of either square, and bytes between neighbours.
    from: [*const u8; 2],
    pitch: usize,
    /// Where it goes, and bytes between steps.
    to: [*mut u8; 2],
    width: usize,
}

/// Transposing copy of a panel.
///
/// # Safety
/// As for `Block::pack`, for this panel; `step` must be 1, and the host must have AVX2.
pub(super) unsafe fn panel<T: Packed>(panel: &Panel<T>, to: *mut T) {
    // SAFETY: the caller's contract.
    unsafe {
        match HALF / size_of::<T>() {
            4 => panel_of::<4, T>(panel, to),
            2 => panel_of::<2, T>(panel, to),
            1 => panel_of::<1, T>(panel, to),
            _ => unreachable!("elements have 4, 8 or 16 bytes"),
        }
    }
}

/// Transposes a square of [`Packed::SQUARE`] rows, so many elements apart in either place.
///
/// # Safety
/// The square must be readable and writable, and the host must have AVX2.
pub(crate) unsafe fn square<T: Packed>(from: (*const T, usize), to: (*mut T, usize)) {
    // SAFETY: the caller's contract.
    unsafe {
        match HALF / size_of::<T>() {
            4 => square_of::<4, T>(from, to),
            2 => square_of::<2, T>(from, to),
            1 => square_of::<1, T>(from, to),
            _ => unreachable!("elements have 4, 8 or 16 bytes"),
        }
    }
}

/// # Safety
/// As for [`square`].
#[target_feature(enable = "avx2")]
unsafe fn square_of<const N: usize, T: Packed>((from, pitch): (*const T, usize), (to, width): (*mut T, usize)) {
    for p in (0..T::SQUARE).step_by(N) {
        let (from, to) = (from.wrapping_add(p), to.wrapping_add(p * width));
        let pair = Pair::<N> {
            from: [from.cast(), from.wrapping_add(N * pitch).cast()],
            pitch: pitch * size_of::<T>(),
            to: [to.cast(), to.wrapping_add(N).cast()],
            width: width * size_of::<T>(),
        };
        // SAFETY: the caller's contract; the squares go side by side.
        unsafe { pair.transpose::<true>(0, 0) };
    }
}

/// # Safety
/// As for [`panel`].
#[target_feature(enable = "avx2")]
unsafe fn panel_of<const N: usize, T: Packed>(panel: &Panel<T>, to: *mut T) {
    // SAFETY: the caller's contract.
    unsafe {
        if panel.valid < N || panel.depth < N {
            thin(panel, to);
        } else if panel.valid < 2 * N {
            lines::<N, false, T>(panel, to);
        } else {
            lines::<N, true, T>(panel, to);
        }
        if panel.valid < panel.width {
            (0..panel.depth)
                .for_each(|p| to.add(p * panel.width + panel.valid).write_bytes(0, panel.width - panel.valid));
        }
    }
}

/// A panel in which no square fits.
///
/// # Safety
/// As for [`panel`].
unsafe fn thin<T: Packed>(panel: &Panel<T>, to: *mut T) {
    for i in 0..panel.valid {
        for p in 0..panel.depth {
            // SAFETY: the caller's contract.
            unsafe { *to.add(p * panel.width + i) = panel.source.add(i * panel.along + p).read_unaligned() };
        }
    }
}

/// Line by line of the source, since rows of a panel that lie a power of two apart drive each other out of the first-level cache. At an end
/// squares go over what others have copied.
///
/// # Safety
/// As for [`panel`]; a square must fit in, and two side by side if they are `BESIDE` each other.
#[target_feature(enable = "avx2")]
unsafe fn lines<const N: usize, const BESIDE: bool, T: Packed>(panel: &Panel<T>, to: *mut T) {
    let steps = LINE / size_of::<T>();
    for line in (0..panel.depth).step_by(steps) {
        for first in (0..panel.valid).step_by(2 * N) {
            let pair = Pair::<N>::of(panel, to, first);
            pair.ask(line * size_of::<T>());
            // SAFETY: the caller's contract.
            unsafe {
                if line + steps <= panel.depth {
                    (0..steps).step_by(N).for_each(|p| pair.transpose::<BESIDE>(line + p, size_of::<T>()));
                } else {
                    let last = panel.depth - N;
                    (line..panel.depth).step_by(N).for_each(|p| pair.transpose::<BESIDE>(p.min(last), size_of::<T>()));
                }
            }
        }
    }
}

impl<const N: usize> Pair<N> {
    /// The squares from a neighbour on, or from so many before it that they fit in.
    fn of<T>(panel: &Panel<T>, to: *mut T, first: usize) -> Self {
        let end = (first + 2 * N).min(panel.valid);
        let [a, b] = [end.saturating_sub(2 * N), end - N];
        Self {
            from: [a, b].map(|at| panel.source.wrapping_add(at * panel.along).cast()),
            pitch: panel.along * size_of::<T>(),
            to: [a, b].map(|at| to.wrapping_add(at).cast()),
            width: panel.width * size_of::<T>(),
        }
    }

    /// Asks for what comes some bytes behind a byte of each row.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn ask(&self, byte: usize) {
        for from in self.from {
            for j in 0..N {
                _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(byte + AHEAD + j * self.pitch).cast());
            }
        }
    }

    /// Transposes the squares at a step of so many bytes. Those `BESIDE` each other are stored together.
    ///
    /// # Safety
    /// They must be readable and writable.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn transpose<const BESIDE: bool>(&self, step: usize, bytes: usize) {
        let [a, b] = self.from.map(|from| from.wrapping_add(step * bytes));
        let mut rows = [_mm256_setzero_si256(); N];
        for (j, row) in rows.iter_mut().enumerate() {
            // SAFETY: the caller's contract.
            *row = unsafe {
                let [a, b] = [a, b].map(|from| _mm_loadu_si128(from.wrapping_add(j * self.pitch).cast()));
                _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(a), b)
            };
        }
        let [a, b] = self.to.map(|to| to.wrapping_add(step * self.width));
        for (q, column) in in_halves(rows).into_iter().enumerate() {
            // SAFETY: the caller's contract.
            unsafe {
                if BESIDE {
                    _mm256_storeu_si256(a.add(q * self.width).cast(), column);
                } else {
                    _mm_storeu_si128(a.add(q * self.width).cast(), _mm256_castsi256_si128(column));
                    _mm_storeu_si128(b.add(q * self.width).cast(), _mm256_extracti128_si256::<1>(column));
                }
            }
        }
    }
}

/// The square in either half, transposed.
#[inline]
#[target_feature(enable = "avx2")]
fn in_halves<const N: usize>(mut rows: [__m256i; N]) -> [__m256i; N] {
    match N {
        4 => {
            let (a, b) = (_mm256_unpacklo_epi32(rows[0], rows[1]), _mm256_unpackhi_epi32(rows[0], rows[1]));
            let (c, d) = (_mm256_unpacklo_epi32(rows[2], rows[3]), _mm256_unpackhi_epi32(rows[2], rows[3]));
            (rows[0], rows[1]) = (_mm256_unpacklo_epi64(a, c), _mm256_unpackhi_epi64(a, c));
            (rows[2], rows[3]) = (_mm256_unpacklo_epi64(b, d), _mm256_unpackhi_epi64(b, d));
        }
        2 => (rows[0], rows[1]) = (_mm256_unpacklo_epi64(rows[0], rows[1]), _mm256_unpackhi_epi64(rows[0], rows[1])),
        _ => {}
    }
    rows
}
