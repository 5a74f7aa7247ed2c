//! Operands as tiles read them.
//!
//! What lies side by side along the reduction is a copy where a tile has a row for each neighbour, and what lies side by side across it is
//! woven where a tile has a row for each group of steps. The other two are these, transposed as squares of 32-bit numbers.

use super::{Operands, SIDE, TILE};
use crate::split::Split;
use std::ops::Range;

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
    /// A row for each group of steps of the reduction.
    Woven,
    /// A row for each neighbour.
    Rows,
}

/// What a tile holds of an operand: neighbours from `first` on, of which `count` are there, and steps from `from` on, of which `deep` are;
/// the rest is zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) first: usize,
    pub(super) count: usize,
    pub(super) from: usize,
    pub(super) deep: usize,
    pub(super) to: *mut u8,
}

/// Blocks of one side over a block of the reduction, packed one behind the other.
#[derive(Clone, Debug)]
pub(super) struct Panels<'a> {
    pub(super) split: &'a Split,
    pub(super) blocks: Range<usize>,
    /// First step of the reduction, its tiles, and where the operand ends.
    pub(super) from: usize,
    pub(super) depth: usize,
    pub(super) k: usize,
    pub(super) to: *mut u8,
}

impl Panels<'_> {
    /// Where the panel of a block begins.
    pub(super) fn at(&self, block: usize) -> *mut u8 {
        let before = (self.split.start(block) - self.split.start(self.blocks.start)) / SIDE;
        self.to.wrapping_add(before * self.depth * TILE)
    }

    pub(super) fn tiles(&self, block: usize) -> usize {
        self.split.big_units - usize::from(block >= self.split.big)
    }

    /// A tile of a block at a tile of the reduction.
    pub(super) fn piece(&self, operands: Operands, (block, tile): (usize, usize), p: usize) -> Piece {
        let (first, from) = (self.split.start(block) + tile * SIDE, self.from + p * operands.steps());
        Piece {
            first,
            count: (self.split.extent - first).min(SIDE),
            from,
            deep: (self.k - from).min(operands.steps()),
            to: self.at(block).wrapping_add((p * self.tiles(block) + tile) * TILE),
        }
    }
}

impl Source {
    /// Whether steps of the reduction lie side by side.
    pub(super) fn is_along_k(&self) -> bool {
        self.step == self.operands.bytes()
    }

    /// Where a step of a neighbour lies.
    pub(super) fn at(&self, neighbour: usize, step: usize) -> *const u8 {
        self.base.wrapping_add(neighbour * self.along + step * self.step)
    }

    /// Packs panels.
    ///
    /// # Safety
    /// What they hold of the operand must be readable, and the panels writable, apart from it.
    pub(super) unsafe fn pack_panels(&self, role: Role, panels: &Panels<'_>) {
        #[cfg(target_arch = "x86_64")]
        if super::wide::is_there() {
            // SAFETY: the caller's contract; the host has the vectors.
            return unsafe { super::wide::pack(self, role, panels) };
        }
        // SAFETY: the caller's contract.
        unsafe { self.pack_plainly(role, panels) };
    }

    /// The same in plain Rust.
    ///
    /// # Safety
    /// As for [`Source::pack_panels`].
    unsafe fn pack_plainly(&self, role: Role, panels: &Panels<'_>) {
        for (block, p) in panels.blocks.clone().flat_map(|block| (0..panels.depth).map(move |p| (block, p))) {
            for tile in 0..panels.tiles(block) {
                // SAFETY: the caller's contract.
                unsafe { self.pack(role, &panels.piece(self.operands, (block, tile), p)) };
            }
        }
    }

    /// Packs a tile in plain Rust.
    ///
    /// # Safety
    /// Its elements must be readable, and a tile writable at its place, apart from them.
    unsafe fn pack(&self, role: Role, piece: &Piece) {
        let at = self.at(piece.first, piece.from);
        let mut square: Square = [[0; SIDE]; SIDE];
        // SAFETY: the caller's contract.
        unsafe {
            if self.is_along_k() {
                self.copy(at, piece, &mut square);
            } else {
                self.weave(at, piece, &mut square);
            }
        }
        if self.is_along_k() == (role == Role::Woven) {
            square = std::array::from_fn(|r| std::array::from_fn(|c| square[c][r]));
        }
        // SAFETY: the caller's contract; both are as large as a tile.
        unsafe { std::ptr::copy_nonoverlapping(square.as_ptr().cast::<u8>(), piece.to, TILE) };
    }

    /// A row for each neighbour, whose steps lie side by side.
    ///
    /// # Safety
    /// As for [`Source::pack`].
    unsafe fn copy(&self, at: *const u8, piece: &Piece, square: &mut Square) {
        let bytes = piece.deep * self.operands.bytes();
        for (r, row) in square.iter_mut().enumerate().take(piece.count) {
            let from = at.wrapping_add(r * self.along);
            // SAFETY: the caller's contract; a row has room for the steps of a tile.
            unsafe { std::ptr::copy_nonoverlapping(from, row.as_mut_ptr().cast::<u8>(), bytes) };
        }
    }

    /// A row for each group of steps, in which neighbours lie side by side.
    ///
    /// # Safety
    /// As for [`Source::pack`].
    unsafe fn weave(&self, at: *const u8, piece: &Piece, square: &mut Square) {
        let (bytes, group) = (self.operands.bytes(), self.operands.group());
        for (k, i) in (0..piece.deep).flat_map(|k| (0..piece.count).map(move |i| (k, i))) {
            let from = at.wrapping_add(k * self.step + i * self.along);
            let mut number = [0; 4];
            // SAFETY: the caller's contract.
            unsafe { std::ptr::copy_nonoverlapping(from, number.as_mut_ptr(), bytes) };
            square[k / group][i] |= u32::from_le_bytes(number) << (k % group * bytes * 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ROW;
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
    fn panels_are_the_same_by_vectors_and_plainly() {
        // Blocks of three tiles and of two, the last of which is not whole, as is the last tile of the reduction.
        let (split, k) = (Split::new(5 * SIDE - 7, SIDE, 3), 150);
        for operands in [Operands::Bf16, Operands::I8] {
            let (bytes, steps) = (operands.bytes(), operands.steps());
            let data: Vec<u8> = (0..split.extent * (k + 3) * bytes).map(|x| (x * 89 % 253) as u8).collect();
            for (along, step) in [(bytes, split.extent * bytes), ((k + 3) * bytes, bytes)] {
                let source = Source { base: data.as_ptr(), along, step, operands };
                for (role, first) in [Role::Woven, Role::Rows].into_iter().flat_map(|role| [(role, 0), (role, 1)]) {
                    let depth = k.div_ceil(steps) - 1;
                    let mut tiles = [(); 2].map(|()| vec![0xffu8; 5 * depth * TILE]);
                    let [ours, plain] = tiles.each_mut().map(|tiles| Panels {
                        split: &split,
                        blocks: first..split.tiles(),
                        from: steps,
                        depth,
                        k,
                        to: tiles.as_mut_ptr(),
                    });
                    // SAFETY: the data are all neighbours and steps, and there is room for five tiles' panels.
                    unsafe {
                        source.pack_panels(role, &ours);
                        source.pack_plainly(role, &plain);
                    }
                    assert!(tiles[0] == tiles[1], "{operands:?} {role:?} {along} {step} {first}");
                }
            }
        }
    }

    #[test]
    fn tiles_hold_each_element_where_it_is_read() {
        let data: Vec<u8> = (0..SIDE * 80 * 2).map(|x| (x * 37 % 251) as u8 + 1).collect();
        for operands in [Operands::Bf16, Operands::I8] {
            let (bytes, steps) = (operands.bytes(), operands.steps());
            for (along, step) in [(bytes, 20 * bytes), (70 * bytes, bytes)] {
                for (count, deep) in [(SIDE, steps), (5, 7), (SIDE, 3), (1, steps)] {
                    let last = (count - 1) * along + (deep - 1) * step + bytes;
                    let data = &data[..last];
                    let source = Source { base: data.as_ptr(), along, step, operands };
                    let split = Split::new(count, SIDE, 1);
                    for (role, plainly) in
                        [Role::Woven, Role::Rows].into_iter().flat_map(|role| [(role, false), (role, true)])
                    {
                        let mut tile = [0xffu8; TILE];
                        let (blocks, to) = (0..1, tile.as_mut_ptr());
                        let panels = Panels { split: &split, blocks, from: 0, depth: 1, k: deep, to };
                        // SAFETY: the slice ends with the last element.
                        unsafe {
                            if plainly {
                                source.pack(role, &panels.piece(operands, (0, 0), 0));
                            } else {
                                source.pack_panels(role, &panels);
                            }
                        }
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
