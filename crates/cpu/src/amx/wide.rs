//! Tiles by vectors of 512 bits, which every host with tile registers has: packed operands, and sums that are turned.

use super::driver::Sums;
use super::pack::{Panels, Piece, Role, Source};
use super::{Operands, ROW, SIDE, TILE};
use crate::exec::weave::{self, Rows, Weave, transposed, turn};
use std::arch::x86_64::*;
use tilewright_ops::gemm::ScalarClass;

/// Whether this host has the vectors.
pub(super) fn is_there() -> bool {
    is_x86_feature_detected!("avx512bf16") && weave::is_there()
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
    let (ahead, weave) = (ahead(source, panels), Weave::<GROUP>::new());
    for p in 0..panels.depth {
        let from = panels.from + p * source.operands.steps();
        for r in 0..SIDE {
            // SAFETY: the caller's contract.
            unsafe { groups(source, panels, (p, r), from + r * GROUP, (weave, ahead)) };
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
    (weave, ahead): (Weave<GROUP>, usize),
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
                    weave.whole(at, source.step)
                } else {
                    weave.part(at, source.step, count, there)
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
