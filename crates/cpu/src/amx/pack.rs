//! Operands as tiles read them.
//!
//! What lies side by side along the reduction is a copy for B, and what lies side by side across it is woven for A: in groups along the
//! reduction. The other two are these, transposed as squares of 32-bit numbers.

use super::{Operands, ROW, SIDE, TILE};

/// A tile, before and after: rows of 32-bit numbers.
type Square = [[u32; SIDE]; SIDE];

/// An operand in the caller's memory, distances in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub(super) base: *const u8,
    /// Between neighbours across the reduction, and between its steps.
    pub(super) along: usize,
    pub(super) step: usize,
    pub(super) operands: Operands,
}

/// Which operand of a product a tile is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A: a row for each group of steps of the reduction.
    Woven,
    /// B: a row for each column of C.
    Rows,
}

impl Source {
    /// Packs the tile of neighbours from `first` on, of which `count` are there, and of steps from `from` on, of which `deep` are; the rest
    /// is zero.
    ///
    /// # Safety
    /// These elements must be readable, and a tile writable at `to`, apart from them.
    pub(super) unsafe fn pack(
        &self,
        role: Role,
        (first, count): (usize, usize),
        (from, deep): (usize, usize),
        to: *mut u8,
    ) {
        let (count, deep) = (count.min(SIDE), deep.min(self.operands.steps()));
        let at = self.base.wrapping_add(first * self.along + from * self.step);
        #[cfg(target_arch = "x86_64")]
        if count == SIDE && deep == self.operands.steps() && self.along == self.operands.bytes() && has_avx2() {
            // SAFETY: the caller's contract; the host has AVX2.
            return unsafe { self.weave_whole(at, role, to) };
        }
        let mut square: Square = [[0; SIDE]; SIDE];
        let along_k = self.step == self.operands.bytes();
        // SAFETY: the caller's contract.
        unsafe {
            if along_k {
                self.copy(at, count, deep, &mut square);
            } else {
                self.weave(at, count, deep, &mut square);
            }
        }
        if along_k == (role == Role::Woven) {
            square = transposed(&square);
        }
        // SAFETY: the caller's contract; both are as large as a tile.
        unsafe { std::ptr::copy_nonoverlapping(square.as_ptr().cast::<u8>(), to, TILE) };
    }

    /// A row for each neighbour, whose steps lie side by side.
    ///
    /// # Safety
    /// As for [`Source::pack`].
    unsafe fn copy(&self, at: *const u8, count: usize, deep: usize, square: &mut Square) {
        let bytes = deep * self.operands.bytes();
        for (r, row) in square.iter_mut().enumerate().take(count) {
            let from = at.wrapping_add(r * self.along);
            // SAFETY: the caller's contract; a row has room for the steps of a tile.
            unsafe {
                if bytes == ROW {
                    // Of a size that is known this is a vector or two.
                    *row = from.cast::<[u32; SIDE]>().read_unaligned();
                } else {
                    std::ptr::copy_nonoverlapping(from, row.as_mut_ptr().cast::<u8>(), bytes);
                }
            }
        }
    }

    /// A row for each group of steps, in which neighbours lie side by side where they do in memory.
    ///
    /// # Safety
    /// As for [`Source::pack`].
    unsafe fn weave(&self, at: *const u8, count: usize, deep: usize, square: &mut Square) {
        let group = self.operands.group();
        for (r, row) in square.iter_mut().enumerate().take(deep.div_ceil(group)) {
            for part in 0..group.min(deep - r * group) {
                let from = at.wrapping_add((r * group + part) * self.step);
                // SAFETY: the caller's contract.
                let line = unsafe { self.line(from, count) };
                let shift = part * 8 * self.operands.bytes();
                row.iter_mut().zip(line).for_each(|(number, x)| *number |= x << shift);
            }
        }
    }

    /// A whole tile of neighbours that lie side by side.
    ///
    /// # Safety
    /// As for [`Source::pack`], on a host with AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn weave_whole(&self, at: *const u8, role: Role, to: *mut u8) {
        use std::arch::x86_64::*;
        let mut square: Square = [[0; SIDE]; SIDE];
        let group = self.operands.group();
        let rows = if role == Role::Woven { to } else { square.as_mut_ptr().cast() };
        for r in 0..SIDE {
            let line = |part: usize| at.wrapping_add((r * group + part) * self.step);
            let out = rows.wrapping_add(r * ROW);
            // SAFETY: the caller's contract: a line has 16 neighbours, a row of a tile 64 bytes.
            unsafe {
                let load = |part: usize, half: usize| _mm_loadu_si128(line(part).wrapping_add(16 * half).cast());
                let store = |quarter: usize, x| _mm_storeu_si128(out.wrapping_add(16 * quarter).cast(), x);
                match self.operands {
                    Operands::Bf16 => (0..2).for_each(|half| {
                        let (a, b) = (load(0, half), load(1, half));
                        store(2 * half, _mm_unpacklo_epi16(a, b));
                        store(2 * half + 1, _mm_unpackhi_epi16(a, b));
                    }),
                    Operands::I8 => {
                        let [a, b, c, d] = [load(0, 0), load(1, 0), load(2, 0), load(3, 0)];
                        let low = (_mm_unpacklo_epi8(a, b), _mm_unpacklo_epi8(c, d));
                        let high = (_mm_unpackhi_epi8(a, b), _mm_unpackhi_epi8(c, d));
                        store(0, _mm_unpacklo_epi16(low.0, low.1));
                        store(1, _mm_unpackhi_epi16(low.0, low.1));
                        store(2, _mm_unpacklo_epi16(high.0, high.1));
                        store(3, _mm_unpackhi_epi16(high.0, high.1));
                    }
                }
            }
        }
        if role == Role::Rows {
            let square = transposed_avx2(&square);
            // SAFETY: the caller's contract; both are as large as a tile.
            unsafe { std::ptr::copy_nonoverlapping(square.as_ptr().cast::<u8>(), to, TILE) };
        }
    }

    /// Neighbours of a step, each in the low bits of a number.
    ///
    /// # Safety
    /// So many neighbours must be readable.
    unsafe fn line(&self, from: *const u8, count: usize) -> [u32; SIDE] {
        let mut out = [0; SIDE];
        // SAFETY: the caller's contract.
        unsafe {
            match self.operands {
                Operands::Bf16 if count == SIDE && self.along == 2 => {
                    let whole = from.cast::<[u16; SIDE]>().read_unaligned();
                    out.iter_mut().zip(whole).for_each(|(number, x)| *number = u32::from(x));
                }
                Operands::I8 if count == SIDE && self.along == 1 => {
                    let whole = from.cast::<[u8; SIDE]>().read_unaligned();
                    out.iter_mut().zip(whole).for_each(|(number, x)| *number = u32::from(x));
                }
                Operands::Bf16 => (0..count).for_each(|i| {
                    out[i] = u32::from(from.wrapping_add(i * self.along).cast::<u16>().read_unaligned());
                }),
                Operands::I8 => (0..count).for_each(|i| out[i] = u32::from(*from.wrapping_add(i * self.along))),
            }
        }
        out
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
}

fn transposed(square: &Square) -> Square {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the host has AVX2.
        return unsafe { transposed_avx2(square) };
    }
    std::array::from_fn(|r| std::array::from_fn(|c| square[c][r]))
}

/// By quarters, each in registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn transposed_avx2(square: &Square) -> Square {
    use crate::exec::pack::avx2::transpose_f32;
    use std::arch::x86_64::{__m256, _mm256_loadu_ps, _mm256_storeu_ps};
    const HALF: usize = SIDE / 2;
    let mut out: Square = [[0; SIDE]; SIDE];
    for (r, c) in [(0, 0), (0, HALF), (HALF, 0), (HALF, HALF)] {
        // SAFETY: half a row from the middle or the start of a row on.
        let rows: [__m256; HALF] =
            std::array::from_fn(|i| unsafe { _mm256_loadu_ps(square[r + i].as_ptr().add(c).cast()) });
        for (i, row) in transpose_f32(rows).into_iter().enumerate() {
            // SAFETY: as above.
            unsafe { _mm256_storeu_ps(out[c + i].as_mut_ptr().add(r).cast(), row) };
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a tile has of neighbour `i` and step `k`.
    fn element(tile: &[u8], operands: Operands, role: Role, i: usize, k: usize) -> u32 {
        let (bytes, group) = (operands.bytes(), operands.group());
        let at = match role {
            Role::Woven => k / group * ROW + i * 4 + k % group * bytes,
            Role::Rows => i * ROW + k * bytes,
        };
        (0..bytes).map(|b| u32::from(tile[at + b]) << (8 * b)).sum()
    }

    #[test]
    fn tiles_hold_each_element_where_it_is_read() {
        let data: Vec<u8> = (0..SIDE * 80 * 2).map(|x| (x * 37 % 251) as u8 + 1).collect();
        for operands in [Operands::Bf16, Operands::I8] {
            let (bytes, steps) = (operands.bytes(), operands.steps());
            for (along, step) in [(bytes, 20 * bytes), (70 * bytes, bytes)] {
                for (count, deep) in [(SIDE, steps), (5, 7), (SIDE, 3), (1, steps)] {
                    let last = (count - 1) * along + (deep - 1) * step + bytes;
                    let data = &data[..last.min(data.len())];
                    if last > data.len() {
                        continue;
                    }
                    let source = Source { base: data.as_ptr(), along, step, operands };
                    for role in [Role::Woven, Role::Rows] {
                        let mut tile = [0xffu8; TILE];
                        // SAFETY: the slice ends with the last element.
                        unsafe { source.pack(role, (0, count), (0, deep), tile.as_mut_ptr()) };
                        for (i, k) in (0..SIDE).flat_map(|i| (0..steps).map(move |k| (i, k))) {
                            let there = i < count && k < deep;
                            let at = i * along + k * step;
                            let want: u32 =
                                if there { (0..bytes).map(|b| u32::from(data[at + b]) << (8 * b)).sum() } else { 0 };
                            assert_eq!(element(&tile, operands, role, i, k), want, "{source:?} {role:?} {i} {k}");
                        }
                    }
                }
            }
        }
    }
}
