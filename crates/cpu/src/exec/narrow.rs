//! Packing of operands of fewer bits than vectors compute with: what is copied becomes what the tile multiplies.
//!
//! 16-bit floating point becomes binary32, exactly. 8-bit integers become 16-bit ones, in pairs of neighbours along the reduction: one
//! number of 32 bits, of which an instruction multiplies both halves and adds the products. Where there are instructions for narrow
//! numbers as they are, as many neighbours along the reduction as fill 32 bits come together.

#[cfg(target_arch = "x86_64")]
mod avx512;

use super::pack::Block;
use crate::scalar::Stored;
use std::ops::Range;
use tilewright_core::element::{Bf16, F16};

/// What an operand's numbers are to the tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Loaded as vectors.
    Vectors,
    /// Broadcast across them.
    Across,
}

/// Steps that are copied of all panels before the next steps.
const CHUNK: usize = 32;

/// What is added to bytes of which an instruction ignores the sign.
const OFFSET: i32 = 128;

/// The bits by which that is added to four bytes.
pub(crate) const FLIP: u32 = u32::from_le_bytes([OFFSET as u8; 4]);

/// A panel to convert: as `pack::Panel`, with distances in bytes.
#[derive(Clone, Copy, Debug)]
struct Panel {
    source: *const u8,
    along: usize,
    step: usize,
    valid: usize,
    width: usize,
    /// Steps of k that the operand has, of which each step of the copy takes as many as the type is grouped by.
    deep: usize,
    /// Bits to change in what is copied.
    flip: u32,
}

impl Panel {
    /// Steps of the copy.
    fn depth(&self, stored: Stored) -> usize {
        self.deep.div_ceil(stored.group())
    }
}

/// Converts a block of an operand to `to`, panel behind panel; `deep` steps of k are there.
///
/// # Safety
/// As for [`Block::pack`] with a copy of 32-bit numbers, of which the block has `depth` a neighbour, and those of quads along vectors one
/// more. `simd` may be set only on a host with AVX2 and F16C.
pub(crate) unsafe fn pack(block: &Block<'_>, deep: usize, (stored, side): (Stored, Side), to: *mut u32, simd: bool) {
    let bytes = stored.bytes();
    let quads = stored == Stored::I8Quads;
    let head = usize::from(quads && side == Side::Vectors);
    let flip = if quads && side == Side::Across { FLIP } else { 0 };
    #[cfg(target_arch = "x86_64")]
    if simd && avx512::takes(block, stored) {
        // SAFETY: the caller's contract; the host has these vectors.
        return unsafe { avx512::pack(block, &avx512::Copy { deep, flip, head }, stored, to) };
    }
    let panel = |tile: usize| {
        let at = block.split.start(tile);
        let panel = Panel {
            source: block.source.wrapping_add(at * block.operand.along * bytes),
            along: block.operand.along * bytes,
            step: block.operand.step * bytes,
            valid: block.split.size(tile),
            width: block.split.start(tile + 1) - at,
            deep,
            flip,
        };
        (panel, to.wrapping_add((at - block.split.start(block.tiles.start)) * (head + block.depth)))
    };
    let depth = deep.div_ceil(stored.group());
    // Neighbours that lie side by side share lines with the next panel's, which must still be near when those are copied.
    let chunk = if block.operand.along == 1 { CHUNK } else { depth.max(1) };
    for first in (0..depth).step_by(chunk) {
        for tile in block.tiles.clone() {
            let (panel, to) = panel(tile);
            // SAFETY: the caller's contract.
            unsafe {
                pack_panel(
                    &panel,
                    first..(first + chunk).min(depth),
                    stored,
                    to.wrapping_add(head * panel.width),
                    simd,
                );
            }
        }
    }
    for (panel, to) in block.tiles.clone().filter(|_| head > 0).map(panel) {
        // SAFETY: the caller's contract; the panel behind it was written.
        unsafe { write_head(to, panel.width, depth, simd) };
    }
}

/// # Safety
/// As for [`pack`].
unsafe fn pack_panel(panel: &Panel, steps: Range<usize>, stored: Stored, to: *mut u32, simd: bool) {
    #[cfg(target_arch = "x86_64")]
    if simd && panel.along == stored.bytes() {
        // SAFETY: the caller's contract.
        return unsafe { avx2::copy(panel, steps, stored, to) };
    }
    #[cfg(target_arch = "x86_64")]
    if simd && panel.step == stored.bytes() {
        // SAFETY: the caller's contract.
        return unsafe { avx2::transpose(panel, steps, stored, to) };
    }
    let _ = simd;
    for (p, i) in steps.flat_map(|p| (0..panel.width).map(move |i| (p, i))) {
        // SAFETY: i < width and p < depth index the copy.
        unsafe { to.add(p * panel.width + i).write(number(panel, stored, p, i)) };
    }
}

/// Writes what sums begin with: what the offset of the other operand's bytes will have added to them.
///
/// # Safety
/// `width` numbers must be writable, and as many readable at each of `depth` steps behind them.
unsafe fn write_head(to: *mut u32, width: usize, depth: usize, simd: bool) {
    #[cfg(target_arch = "x86_64")]
    if simd {
        // SAFETY: the caller's contract.
        return unsafe { avx2::write_head(to, width, depth) };
    }
    let _ = simd;
    for i in 0..width {
        // SAFETY: the caller's contract.
        let quad = |p: usize| unsafe { to.add((1 + p) * width + i).read() }.to_le_bytes();
        let sum: i32 = (0..depth).map(|p| quad(p).into_iter().map(|byte| i32::from(byte as i8)).sum::<i32>()).sum();
        // SAFETY: as above.
        unsafe { to.add(i).write((-OFFSET * sum) as u32) };
    }
}

/// What the copy has at a step and a neighbour.
///
/// # Safety
/// The panel's elements must be readable.
unsafe fn number(panel: &Panel, stored: Stored, p: usize, i: usize) -> u32 {
    if i >= panel.valid {
        return 0;
    }
    let at = |k: usize| panel.source.wrapping_add(i * panel.along + k * panel.step);
    // SAFETY: the caller's contract: i < valid, and k < deep.
    let read16 = |k: usize| if k < panel.deep { unsafe { at(k).cast::<u16>().read_unaligned() } } else { 0 };
    // SAFETY: as above.
    let read8 = |k: usize| if k < panel.deep { unsafe { at(k).cast::<i8>().read() } } else { 0 };
    match stored {
        Stored::Bf16 => (Bf16(read16(p)).to_f64() as f32).to_bits(),
        Stored::F16 => (F16(read16(p)).to_f64() as f32).to_bits(),
        Stored::I8 => {
            let [low, high] = [0, 1].map(|half| u32::from(i16::from(read8(2 * p + half)) as u16));
            low | high << 16
        }
        Stored::I8Quads => u32::from_le_bytes([0, 1, 2, 3].map(|k| read8(4 * p + k) as u8)) ^ panel.flip,
        Stored::Bf16Pairs => u32::from(read16(2 * p)) | u32::from(read16(2 * p + 1)) << 16,
        // SAFETY: as above.
        Stored::Same => unsafe { at(p).cast::<u32>().read_unaligned() },
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{OFFSET, Panel, Stored};
    use crate::exec::pack::avx2::{mask, transpose_f32};
    use std::arch::x86_64::*;
    use std::ops::Range;

    /// Numbers of a vector.
    const LANES: usize = 8;

    /// What an operand lies in memory as, as a type: code that is made for each.
    trait Kind {
        const STORED: Stored;
    }

    macro_rules! kinds {
        ($($name:ident),*) => {
            $(
                struct $name;

                impl Kind for $name {
                    const STORED: Stored = Stored::$name;
                }
            )*

            /// Neighbours that lie side by side.
            ///
            /// # Safety
            /// As for `pack_panel`, with `along` the size of an element, on a host with AVX2, and F16C where elements are binary16.
            #[target_feature(enable = "avx2")]
            pub(super) unsafe fn copy(panel: &Panel, steps: Range<usize>, stored: Stored, to: *mut u32) {
                // SAFETY: the caller's contract.
                unsafe {
                    match stored {
                        $(Stored::$name => copy_as::<$name>(panel, steps, to),)*
                        Stored::Same => {}
                    }
                }
            }

            /// Elements that lie side by side along k.
            ///
            /// # Safety
            /// As for [`copy`], with `step` the size of an element.
            #[target_feature(enable = "avx2")]
            pub(super) unsafe fn transpose(panel: &Panel, steps: Range<usize>, stored: Stored, to: *mut u32) {
                // SAFETY: the caller's contract.
                unsafe {
                    match stored {
                        $(Stored::$name => transpose_as::<$name>(panel, steps, to),)*
                        Stored::Same => {}
                    }
                }
            }
        };
    }
    kinds!(Bf16, F16, I8, I8Quads, Bf16Pairs);

    /// `bytes` bytes, zeros behind them, at most 16. Of a number of bytes that no register has two parts are read that overlap: a copy
    /// through memory would have to wait for its parts.
    ///
    /// # Safety
    /// So many bytes must be readable.
    #[target_feature(enable = "avx2")]
    unsafe fn load(from: *const u8, bytes: usize) -> __m128i {
        // SAFETY: the caller's contract: each part ends where the bytes end, or before.
        unsafe {
            match bytes {
                16.. => _mm_loadu_si128(from.cast()),
                9..16 => {
                    let (low, high) = (read::<u64>(from), read::<u64>(from.add(bytes - 8)));
                    _mm_set_epi64x((high >> (8 * (16 - bytes))).cast_signed(), low.cast_signed())
                }
                8 => _mm_loadl_epi64(from.cast()),
                4..8 => {
                    let (low, high) = (read::<u32>(from), read::<u32>(from.add(bytes - 4)));
                    _mm_cvtsi64_si128((u64::from(low) | u64::from(high) << (8 * (bytes - 4))).cast_signed())
                }
                0 => _mm_setzero_si128(),
                _ => {
                    let byte = |at: usize| i32::from(read::<u8>(from.add(at))) << (8 * at);
                    _mm_cvtsi32_si128(byte(0) | byte(bytes / 2) | byte(bytes - 1))
                }
            }
        }
    }

    /// # Safety
    /// A number must be readable.
    unsafe fn read<T: Copy>(from: *const u8) -> T {
        // SAFETY: the caller's contract.
        unsafe { from.cast::<T>().read_unaligned() }
    }

    /// Eight 16-bit numbers of floating point as binary32.
    #[target_feature(enable = "avx2")]
    fn widen_bf16(x: __m128i) -> __m256 {
        _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(x)))
    }

    #[target_feature(enable = "avx2,f16c")]
    fn widen_f16(x: __m128i) -> __m256 {
        _mm256_cvtph_ps(x)
    }

    /// Eight numbers of a step from neighbours that lie side by side, `count` of which are there.
    ///
    /// # Safety
    /// Those neighbours must be readable at the steps of k that the panel has; the host must have F16C where they are binary16.
    #[target_feature(enable = "avx2")]
    unsafe fn across<K: Kind>(panel: &Panel, p: usize, i: usize, count: usize) -> __m256 {
        let stored = K::STORED;
        let row = |k: usize| panel.source.wrapping_add(i * stored.bytes() + k * panel.step);
        let bytes = count * stored.bytes();
        // SAFETY: the caller's contract.
        let there = |k: usize| unsafe { load(row(k), if k < panel.deep { bytes } else { 0 }) };
        // SAFETY: the caller's contract.
        unsafe {
            match stored {
                Stored::I8Quads => {
                    let [a, b] = [
                        _mm_unpacklo_epi8(there(4 * p), there(4 * p + 1)),
                        _mm_unpacklo_epi8(there(4 * p + 2), there(4 * p + 3)),
                    ];
                    let quads = _mm256_set_m128i(_mm_unpackhi_epi16(a, b), _mm_unpacklo_epi16(a, b));
                    _mm256_castsi256_ps(_mm256_xor_si256(quads, _mm256_set1_epi32(panel.flip as i32)))
                }
                Stored::Bf16Pairs => {
                    let (low, high) = (there(2 * p), there(2 * p + 1));
                    _mm256_castsi256_ps(_mm256_set_m128i(_mm_unpackhi_epi16(low, high), _mm_unpacklo_epi16(low, high)))
                }
                Stored::Bf16 => widen_bf16(load(row(p), bytes)),
                Stored::F16 => widen_f16(load(row(p), bytes)),
                _ => {
                    let (low, high) = (_mm_cvtepi8_epi16(there(2 * p)), _mm_cvtepi8_epi16(there(2 * p + 1)));
                    let halves = (_mm_unpacklo_epi16(low, high), _mm_unpackhi_epi16(low, high));
                    _mm256_castsi256_ps(_mm256_set_m128i(halves.1, halves.0))
                }
            }
        }
    }

    /// Eight steps of a neighbour whose elements lie side by side along k, as many as are there.
    ///
    /// # Safety
    /// As for [`across`].
    #[target_feature(enable = "avx2")]
    unsafe fn along<K: Kind>(panel: &Panel, p: usize, i: usize) -> __m256 {
        let stored = K::STORED;
        let first = p * stored.group();
        let count = (panel.deep - first).min(LANES * stored.group());
        let row = panel.source.wrapping_add(i * panel.along + first * stored.bytes());
        // SAFETY: the caller's contract.
        unsafe {
            let bytes = count * stored.bytes();
            let x = load(row, bytes.min(16));
            match stored {
                Stored::I8Quads | Stored::Bf16Pairs => {
                    let all = _mm256_set_m128i(load(row.wrapping_add(16), bytes.saturating_sub(16)), x);
                    _mm256_castsi256_ps(_mm256_xor_si256(all, _mm256_set1_epi32(panel.flip as i32)))
                }
                Stored::Bf16 => widen_bf16(x),
                Stored::F16 => widen_f16(x),
                _ => _mm256_castsi256_ps(_mm256_cvtepi8_epi16(x)),
            }
        }
    }

    /// Stores the first `count` of eight numbers; the others too, unless the store must be exact.
    ///
    /// # Safety
    /// Those that are stored must be writable.
    #[target_feature(enable = "avx2")]
    unsafe fn store(to: *mut u32, value: __m256, count: usize, exact: bool) {
        // SAFETY: the caller's contract.
        unsafe {
            if count >= LANES || !exact {
                _mm256_storeu_ps(to.cast(), value);
            } else {
                _mm256_maskstore_ps(to.cast(), mask(count), value);
            }
        }
    }

    /// What sums begin with.
    ///
    /// # Safety
    /// As for the plain function, on a host with AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn write_head(to: *mut u32, width: usize, depth: usize) {
        let ones = (_mm256_set1_epi8(1), _mm256_set1_epi16(1));
        for i in (0..width).step_by(LANES) {
            let count = (width - i).min(LANES);
            let mut sums = _mm256_setzero_si256();
            for p in 0..depth {
                let at = to.wrapping_add((1 + p) * width + i);
                // SAFETY: the caller's contract: `count` numbers are there.
                let quads = unsafe { _mm256_maskload_epi32(at.cast(), mask(count)) };
                // Bytes without a sign times those with one; two of them are far from what 16 bits hold.
                let pairs = _mm256_maddubs_epi16(ones.0, quads);
                sums = _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, ones.1));
            }
            let head = _mm256_mullo_epi32(sums, _mm256_set1_epi32(-OFFSET));
            // SAFETY: the caller's contract.
            unsafe { store(to.add(i), _mm256_castsi256_ps(head), width - i, true) };
        }
    }

    /// # Safety
    /// As for [`copy`].
    #[target_feature(enable = "avx2")]
    unsafe fn copy_as<K: Kind>(panel: &Panel, steps: Range<usize>, to: *mut u32) {
        let end = panel.depth(K::STORED) * panel.width;
        for p in steps {
            for i in (0..panel.width).step_by(LANES) {
                let (there, wide) = (panel.valid.saturating_sub(i).min(LANES), panel.width - i);
                let at = p * panel.width + i;
                // SAFETY: the caller's contract; what is written too much lies in the next steps, which are written later.
                unsafe {
                    let value = if there == 0 { _mm256_setzero_ps() } else { across::<K>(panel, p, i, there) };
                    store(to.add(at), value, wide, at + LANES > end);
                }
            }
        }
    }

    /// The last neighbours first: what is written too much of them lies in the next step, and is written over.
    ///
    /// # Safety
    /// As for [`transpose`].
    #[target_feature(enable = "avx2")]
    unsafe fn transpose_as<K: Kind>(panel: &Panel, steps: Range<usize>, to: *mut u32) {
        let end = panel.depth(K::STORED) * panel.width;
        for p in steps.clone().step_by(LANES) {
            for first in (0..panel.width.div_ceil(LANES)).rev().map(|block| block * LANES) {
                let mut rows = [_mm256_setzero_ps(); LANES];
                for (r, row) in rows.iter_mut().enumerate().take(panel.valid.saturating_sub(first)) {
                    // SAFETY: the caller's contract: first + r < valid.
                    *row = unsafe { along::<K>(panel, p, first + r) };
                }
                for (q, column) in transpose_f32(rows).into_iter().enumerate().take(steps.end - p) {
                    let (at, wide) = ((p + q) * panel.width + first, panel.width - first);
                    // SAFETY: the caller's contract: p + q < depth.
                    unsafe { store(to.add(at), column, wide, at + LANES > end) };
                }
            }
        }
    }
}
