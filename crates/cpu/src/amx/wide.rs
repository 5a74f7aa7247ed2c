//! Tiles by vectors of 512 bits, which every host with tile registers has: packed operands, and sums that are turned.

use super::driver::Sums;
use super::pack::{Panels, Piece, Role, Source};
use super::{Operands, ROW, SIDE, TILE};
use std::arch::x86_64::*;
use tilewright_ops::gemm::ScalarClass;

/// A tile in registers.
type Rows = [__m512i; SIDE];

/// Whether this host has the vectors.
pub(super) fn is_there() -> bool {
    is_x86_feature_detected!("avx512bf16")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
}

/// Packs panels.
///
/// # Safety
/// As for [`Source::pack_panels`], on a host with these vectors.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) unsafe fn pack(source: &Source, role: Role, panels: &Panels<'_>) {
    // SAFETY: the caller's contract.
    unsafe {
        match (source.is_along_k(), source.operands) {
            (true, _) => along(source, role, panels),
            (false, Operands::Bf16) => across::<2>(source, role, panels),
            (false, Operands::I8) => across::<4>(source, role, panels),
        }
    }
}

/// Operands whose steps lie side by side: neighbours are read from end to end, 16 at a time.
///
/// # Safety
/// As for [`pack`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn along(source: &Source, role: Role, panels: &Panels<'_>) {
    for block in panels.blocks.clone() {
        for tile in 0..panels.tiles(block) {
            for p in 0..panels.depth {
                let piece = panels.piece(source.operands, (block, tile), p);
                // SAFETY: the caller's contract.
                unsafe {
                    let rows = std::array::from_fn(|r| line(source, &piece, r));
                    store_all(piece.to, if role == Role::Rows { rows } else { transposed(rows) });
                }
            }
        }
    }
}

/// Operands whose neighbours lie side by side, `GROUP` of whose steps are woven: steps are read from end to end, one group at a time.
///
/// # Safety
/// As for [`pack`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn across<const GROUP: usize>(source: &Source, role: Role, panels: &Panels<'_>) {
    let ahead = ahead(source, panels);
    for p in 0..panels.depth {
        let from = panels.from + p * source.operands.steps();
        for r in 0..SIDE {
            // SAFETY: the caller's contract.
            unsafe { groups::<GROUP>(source, panels, (p, r), from + r * GROUP, ahead) };
        }
        if role == Role::Rows {
            for block in panels.blocks.clone() {
                for tile in 0..panels.tiles(block) {
                    let at = panels.piece(source.operands, (block, tile), p).to.cast::<i32>();
                    // SAFETY: the caller's contract: the tile has just been written, and is read before it is written again.
                    unsafe { turn((at.cast_const(), SIDE), (at, SIDE)) };
                }
            }
        }
    }
}

/// Row `r` of all tiles at tile `p` of the reduction: the group of steps from `k` on.
///
/// # Safety
/// As for [`pack`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn groups<const GROUP: usize>(
    source: &Source,
    panels: &Panels<'_>,
    (p, r): (usize, usize),
    k: usize,
    ahead: usize,
) {
    let bytes = 4 / GROUP;
    let there = panels.k.saturating_sub(k).min(GROUP);
    let (mut first, mut panel) = (panels.split.start(panels.blocks.start), panels.to);
    for block in panels.blocks.clone() {
        let tiles = panels.tiles(block);
        let (at, to) = (source.at(first, k), panel.wrapping_add(p * tiles * TILE + r * ROW));
        let left = panels.split.extent - first;
        (first, panel) = (first + tiles * SIDE, panel.wrapping_add(panels.depth * tiles * TILE));
        for tile in 0..tiles {
            let count = (left - tile * SIDE).min(SIDE);
            let at = at.wrapping_add(tile * SIDE * bytes);
            // SAFETY: the caller's contract; a prefetch is no access.
            unsafe {
                if tile == 0 && ahead > 0 {
                    for part in 0..GROUP {
                        _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(part * source.step + ahead).cast());
                    }
                }
                let row = if count == SIDE && there == GROUP {
                    whole_group::<GROUP>(at, source.step)
                } else {
                    group::<GROUP>(at, source.step, count, there)
                };
                _mm512_storeu_si512(to.wrapping_add(tile * TILE).cast(), row);
            }
        }
    }
}

/// Bytes that memory is asked for ahead of where it is read, along the reduction: some kilobytes, in whole groups of steps. None where the
/// operand stays in the caches.
fn ahead(source: &Source, panels: &Panels<'_>) -> usize {
    const BYTES: usize = 4 << 10;
    const NEAR: usize = 128 << 10;
    let operands = source.operands;
    let row = (panels.split.start(panels.blocks.end) - panels.split.start(panels.blocks.start)) * operands.bytes();
    if panels.k * source.step < NEAR {
        return 0;
    }
    (BYTES / row).next_multiple_of(operands.group()).max(operands.group()) * source.step
}

/// Writes a tile with its rows as columns, `stride` numbers apart.
///
/// # Safety
/// The tile must be readable, its rows `from.1` numbers apart, and the columns writable; the host must have these vectors.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) unsafe fn turn(from: (*const i32, usize), to: (*mut i32, usize)) {
    // SAFETY: the caller's contract.
    unsafe {
        let rows = std::array::from_fn(|r| _mm512_loadu_si512(from.0.wrapping_add(r * from.1).cast()));
        for (r, row) in transposed(rows).into_iter().enumerate() {
            _mm512_storeu_si512(to.0.wrapping_add(r * to.1).cast(), row);
        }
    }
}

/// Writes a block of sums to C, rounded to bfloat16. Where nothing is added to them, less than normal numbers become zeros, as they do in
/// sums of tiles.
///
/// # Safety
/// As for [`super::finish::write`], on a host with these vectors.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) unsafe fn write_rounded(sums: (*const f32, usize), c: *mut u16, to: &Sums) {
    let (alpha, beta) = (_mm512_set1_ps(to.factors[0]), _mm512_set1_ps(to.factors[1]));
    // Plain loops: what iterators return is not inlined here, and goes through memory.
    for j in 0..to.columns {
        let (from, at) = (sums.0.wrapping_add(j * sums.1), c.wrapping_add(j * to.ldc));
        let mut i = 0;
        while i < to.rows {
            let mask = u16::MAX >> (SIDE - (to.rows - i).min(SIDE));
            let (from, at) = (from.wrapping_add(i), at.wrapping_add(i));
            // SAFETY: the caller's contract; what the mask leaves out is neither read nor written.
            unsafe {
                let sum = _mm512_mul_ps(alpha, _mm512_maskz_loadu_ps(mask, from));
                let rounded: __m256i = if to.beta == ScalarClass::Zero {
                    std::mem::transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(sum))
                } else {
                    let old = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, at.cast()));
                    let old = _mm512_castsi512_ps(_mm512_slli_epi32(old, 16));
                    rounded(_mm512_add_ps(_mm512_mul_ps(beta, old), sum))
                };
                if mask == u16::MAX {
                    _mm256_storeu_si256(at.cast(), rounded);
                } else {
                    _mm256_mask_storeu_epi16(at.cast(), mask, rounded);
                }
            }
            i += SIDE;
        }
    }
}

/// To even, as [`tilewright_core::element::Bf16::from_f32`] does; what is no number stays none.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn rounded(x: __m512) -> __m256i {
    let bits = _mm512_castps_si512(x);
    let high = _mm512_srli_epi32(bits, 16);
    let last = _mm512_and_si512(high, _mm512_set1_epi32(1));
    let even = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), last);
    let none = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
    let quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
    _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(none, _mm512_srli_epi32(even, 16), quiet))
}

/// # Safety
/// A tile must be writable.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn store_all(to: *mut u8, rows: Rows) {
    // SAFETY: the caller's contract.
    rows.into_iter()
        .enumerate()
        .for_each(|(r, row)| unsafe { _mm512_storeu_si512(to.wrapping_add(r * ROW).cast(), row) });
}

/// The steps of a neighbour, which lie side by side.
///
/// # Safety
/// As for [`Source::pack`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn line(source: &Source, piece: &Piece, r: usize) -> __m512i {
    if r >= piece.count {
        return _mm512_setzero_si512();
    }
    let mask = u64::MAX >> (ROW - piece.deep * source.operands.bytes());
    // SAFETY: the caller's contract; what the mask leaves out is not read.
    unsafe { _mm512_maskz_loadu_epi8(mask, source.at(piece.first + r, piece.from).cast()) }
}

/// A group of steps of 16 neighbours, which lie side by side at each step.
///
/// # Safety
/// All must be readable, on a host with these vectors.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn whole_group<const GROUP: usize>(at: *const u8, step: usize) -> __m512i {
    let from = |part: usize| at.wrapping_add(part * step);
    // SAFETY: the caller's contract.
    unsafe {
        if GROUP == 2 {
            woven_pairs([_mm256_loadu_si256(from(0).cast()), _mm256_loadu_si256(from(1).cast())])
        } else {
            woven_fours([0, 1, 2, 3].map(|part| _mm_loadu_si128(from(part).cast())))
        }
    }
}

/// The same of so many neighbours and steps; what is not there is zero.
///
/// # Safety
/// They must be readable, on a host with these vectors.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn group<const GROUP: usize>(at: *const u8, step: usize, count: usize, there: usize) -> __m512i {
    let from = |part: usize| at.wrapping_add(part * step);
    let mask = |part: usize| if part < there { u16::MAX >> (SIDE - count) } else { 0 };
    // SAFETY: the caller's contract; what the mask leaves out is not read.
    unsafe {
        if GROUP == 2 {
            woven_pairs([0, 1].map(|part| _mm256_maskz_loadu_epi16(mask(part), from(part).cast())))
        } else {
            woven_fours([0, 1, 2, 3].map(|part| _mm_maskz_loadu_epi8(mask(part), from(part).cast())))
        }
    }
}

/// Neighbour by neighbour, one of each step.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn woven_pairs([a, b]: [__m256i; 2]) -> __m512i {
    let turns = _mm512_set_epi16(
        47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1,
        32, 0,
    );
    _mm512_permutex2var_epi16(_mm512_castsi256_si512(a), turns, _mm512_castsi256_si512(b))
}

/// The same of four steps.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn woven_fours([a, b, c, d]: [__m128i; 4]) -> __m512i {
    let rows = _mm512_inserti32x4(_mm512_castsi128_si512(a), b, 1);
    let rows = _mm512_inserti32x4(_mm512_inserti32x4(rows, c, 2), d, 3);
    // Four neighbours of each step in a quarter, and there one of each.
    let quarters = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    let turns = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    _mm512_shuffle_epi8(_mm512_permutexvar_epi32(quarters, rows), turns)
}

/// A square of 32-bit numbers with rows as columns.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn transposed(r: Rows) -> Rows {
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
