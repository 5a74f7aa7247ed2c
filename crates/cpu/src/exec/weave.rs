//! Steps that are woven and squares that are turned, by vectors of 512 bits: what packing for instructions of narrow numbers is made of.

use std::arch::x86_64::*;

/// Numbers of 32 bits in a vector, and rows of a square.
pub(crate) const SIDE: usize = 16;

/// A square of such numbers in registers.
pub(crate) type Rows = [__m512i; SIDE];

/// Whether this host has the vectors.
pub(crate) fn is_there() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl")
}

/// Writes a tile with its rows as columns, `stride` numbers apart.
///
/// # Safety
/// The tile must be readable, its rows `from.1` numbers apart, and the columns writable; the host must have these vectors.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) unsafe fn turn(from: (*const i32, usize), to: (*mut i32, usize)) {
    // SAFETY: the caller's contract.
    unsafe {
        let rows = std::array::from_fn(|r| _mm512_loadu_si512(from.0.wrapping_add(r * from.1).cast()));
        for (r, row) in transposed(rows).into_iter().enumerate() {
            _mm512_storeu_si512(to.0.wrapping_add(r * to.1).cast(), row);
        }
    }
}

/// How groups of two or four steps are woven: what goes where, of 16-bit numbers or first of 32-bit ones and then of bytes. A compiler that
/// knew the numbers would make several instructions of one.
#[derive(Clone, Copy)]
pub(crate) struct Weave<const GROUP: usize> {
    order: __m512i,
    bytes: __m512i,
    /// Quarters of a vector but the first.
    quarters: [u16; 3],
}

impl<const GROUP: usize> Weave<GROUP> {
    /// Of two steps, or else of four.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub(crate) fn new() -> Self {
        // Neighbour by neighbour, one of each step.
        let pairs = _mm512_set_epi16(
            47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33,
            1, 32, 0,
        );
        // Four neighbours of each step in a quarter, and there one of each.
        let quarters = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        let bytes = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
        let order = if GROUP == 2 { pairs } else { quarters };
        std::hint::black_box(Self { order, bytes, quarters: [0xf0, 0xf00, 0xf000] })
    }

    /// A group of steps of 16 neighbours, which lie side by side at each step.
    ///
    /// # Safety
    /// All must be readable, on a host with these vectors.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub(crate) unsafe fn whole(self, at: *const u8, step: usize) -> __m512i {
        let from = |part: usize| at.wrapping_add(part * step);
        // SAFETY: the caller's contract.
        unsafe {
            if GROUP == 2 {
                self.pairs([_mm256_loadu_si256(from(0).cast()), _mm256_loadu_si256(from(1).cast())])
            } else {
                self.fours([0, 1, 2, 3].map(|part| _mm_loadu_si128(from(part).cast())))
            }
        }
    }

    /// The same of so many neighbours and steps; what is not there is zero.
    ///
    /// # Safety
    /// They must be readable, on a host with these vectors.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub(crate) unsafe fn part(self, at: *const u8, step: usize, count: usize, there: usize) -> __m512i {
        let from = |part: usize| at.wrapping_add(part * step);
        let mask = |part: usize| if part < there { u16::MAX >> (SIDE - count) } else { 0 };
        // SAFETY: the caller's contract; what the mask leaves out is not read.
        unsafe {
            if GROUP == 2 {
                self.pairs([0, 1].map(|part| _mm256_maskz_loadu_epi16(mask(part), from(part).cast())))
            } else {
                self.fours([0, 1, 2, 3].map(|part| _mm_maskz_loadu_epi8(mask(part), from(part).cast())))
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn pairs(self, [a, b]: [__m256i; 2]) -> __m512i {
        _mm512_permutex2var_epi16(_mm512_castsi256_si512(a), self.order, _mm512_castsi256_si512(b))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn fours(self, [a, b, c, d]: [__m128i; 4]) -> __m512i {
        // Blends, of which more go at a time than of what moves quarters.
        let mut rows = _mm512_castsi128_si512(a);
        for (mask, row) in self.quarters.into_iter().zip([b, c, d]) {
            rows = _mm512_mask_broadcast_i32x4(rows, mask, row);
        }
        _mm512_shuffle_epi8(_mm512_permutexvar_epi32(self.order, rows), self.bytes)
    }
}

/// A square of 32-bit numbers with rows as columns.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn transposed(r: Rows) -> Rows {
    // Pairs of rows, then fours: in each quarter a column of four rows.
    let pairs: Rows = std::array::from_fn(|i| {
        let (a, b) = (r[i & !1], r[i | 1]);
        if i % 2 == 0 { _mm512_unpacklo_epi32(a, b) } else { _mm512_unpackhi_epi32(a, b) }
    });
    let fours: Rows = std::array::from_fn(|i| {
        let first = i & !3;
        let (a, b) = (pairs[first + i % 4 / 2], pairs[first + 2 + i % 4 / 2]);
        if i % 2 == 0 { _mm512_unpacklo_epi64(a, b) } else { _mm512_unpackhi_epi64(a, b) }
    });
    // Quarters of four vectors: those of even number and those of odd number, then each.
    let eights: Rows = std::array::from_fn(|i| {
        let (a, b) = (fours[i / 8 * 8 + i % 4], fours[i / 8 * 8 + 4 + i % 4]);
        if i % 8 < 4 { _mm512_shuffle_i32x4(a, b, 0x88) } else { _mm512_shuffle_i32x4(a, b, 0xdd) }
    });
    std::array::from_fn(|i| {
        let (a, b) = (eights[i % 8], eights[8 + i % 8]);
        if i < 8 { _mm512_shuffle_i32x4(a, b, 0x88) } else { _mm512_shuffle_i32x4(a, b, 0xdd) }
    })
}
