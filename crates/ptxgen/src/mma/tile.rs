//! Where the elements of a tile lie in shared memory.
//!
//! A tile is rows as they lie in device memory, without padding. Shared memory has 32 banks of 4 bytes, so that 128 bytes make a
//! line, and pieces that are read at once must lie at different places of their lines. A fragment wants one piece of each of
//! several successive rows: unpermuted, pieces of rows whose length is a multiple of a line would lie in the same banks. So in
//! row `r` piece `i` lies where piece `i xor f(r)` would. With `g` pieces of a line that a row's length is a multiple of, and
//! `p` rows for each line of them, `f(r) = (r / p) mod g`: of successive rows, `p` fill a line side by side, and `f` exchanges what lies
//! in the lines that follow.

use crate::ir::{Arith, Builder, Operand, Reg, Type};
use std::collections::BTreeMap;

/// Bytes of all banks.
const LINE: u32 = 128;

/// A tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    /// Bytes of a row: a multiple of 32.
    pub(super) pitch: u32,
    /// Bytes of a piece, which stay together.
    pub(super) grain: u32,
}

impl Tile {
    /// Pieces that are exchanged among each other.
    fn group(self) -> u32 {
        1 << (self.pitch / self.grain).trailing_zeros().min((LINE / self.grain).trailing_zeros())
    }

    /// Successive rows whose pieces lie side by side.
    fn side_by_side(self) -> u32 {
        LINE / self.grain / self.group()
    }

    /// `f` of a row that is a number.
    fn exchange(self, row: u32) -> u32 {
        row / self.side_by_side() % self.group()
    }
}

/// The places in a tile that a thread goes to, relative to its first one: rows and pieces further on are numbers, and what
/// cannot be added to an address is a register of its own.
///
/// Rows further on are multiples of those after which the permutation repeats, or the thread's first row has no bits in
/// common with them.
pub(super) struct Places {
    tile: Tile,
    /// The address of the beginning of the thread's first row, with the thread's bytes within a piece.
    row: Reg,
    /// The thread's first piece, and what it is exchanged by.
    piece: Option<Reg>,
    exchanged: Option<Reg>,
    /// Whether the thread's first piece has no low bits in common with pieces further on.
    whole: bool,
    registers: Vec<Reg>,
    known: BTreeMap<(u32, u32), usize>,
}

/// Where a thread begins.
#[derive(Clone, Copy, Default)]
pub(super) struct First {
    pub(super) row: Option<Reg>,
    pub(super) piece: Option<Reg>,
    /// Bytes within a piece.
    pub(super) within: Option<Reg>,
}

impl Places {
    /// In the tile at an address. `apart` is the greatest number of pieces that all first pieces are multiples of, but for bits
    /// that no piece further on has.
    pub(super) fn new(b: &mut Builder, tile: Tile, base: Reg, first: First, apart: u32) -> Self {
        let row = b.scale_add(first.row, tile.pitch, base);
        let row = b.scale_add(first.within, 1, row);
        let exchanged = first.row.and_then(|r| {
            let lines = b.div(r, tile.side_by_side());
            b.rem(lines, tile.group())
        });
        let whole = apart.is_multiple_of(tile.group());
        let (piece, registers, known) = (first.piece, Vec::new(), BTreeMap::new());
        Self { tile, row, piece, exchanged, whole, registers, known }
    }

    /// Which register, and bytes beyond it, for a place so many rows and pieces further on.
    pub(super) fn at(&mut self, b: &mut Builder, rows: u32, pieces: u32) -> (usize, u32) {
        let group = self.tile.group();
        let low = if self.whole { pieces % group } else { pieces };
        let key = (low, self.tile.exchange(rows));
        let register = match self.known.get(&key) {
            Some(known) => *known,
            None => {
                let register = self.register(b, key);
                self.registers.push(register);
                self.known.insert(key, self.registers.len() - 1);
                self.registers.len() - 1
            }
        };
        (register, rows * self.tile.pitch + (pieces - low) * self.tile.grain)
    }

    fn register(&self, b: &mut Builder, (pieces, exchange): (u32, u32)) -> Reg {
        let mut piece: Operand = match self.piece {
            Some(piece) => b.add(Type::U32, piece, pieces).into(),
            None => pieces.into(),
        };
        let exchanges = [self.exchanged.map(Operand::from), (exchange > 0).then(|| exchange.into())];
        for by in exchanges.into_iter().flatten() {
            piece = match (piece, by) {
                (Operand::Int(0), by) => by,
                (Operand::Int(piece), Operand::Int(by)) => Operand::Int(piece ^ by),
                (Operand::Int(_), by) => b.arith(Arith::Xor, Type::U32, by, piece).into(),
                (piece, by) => b.arith(Arith::Xor, Type::U32, piece, by).into(),
            };
        }
        match piece {
            Operand::Reg(piece) => b.scale_add(Some(piece), self.tile.grain, self.row),
            Operand::Int(piece) => b.add(Type::U32, self.row, piece * i64::from(self.tile.grain)),
            _ => self.row,
        }
    }

    /// The registers that places are told by.
    pub(super) fn registers(self) -> Vec<Reg> {
        self.registers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(tile: Tile, row: u32, piece: u32) -> u32 {
        row * tile.pitch / tile.grain + (piece ^ tile.exchange(row))
    }

    #[test]
    fn every_piece_has_a_place_of_its_own() {
        for pitch in (32..=640).step_by(32) {
            for grain in [16, 32] {
                let tile = Tile { pitch, grain };
                let mut places: Vec<u32> =
                    (0..24).flat_map(|r| (0..pitch / grain).map(move |p| place(tile, r, p))).collect();
                places.sort_unstable();
                assert!(places.iter().zip(0..).all(|(a, b)| *a == b), "{tile:?}");
            }
        }
    }

    #[test]
    fn pieces_of_successive_rows_fill_a_line() {
        for pitch in (32..=640).step_by(32) {
            for grain in [16, 32] {
                let (tile, line) = (Tile { pitch, grain }, LINE / grain);
                for piece in 0..pitch / grain {
                    let mut banks: Vec<u32> = (0..line).map(|r| place(tile, r, piece) % line).collect();
                    banks.sort_unstable();
                    assert!(banks.iter().zip(0..).all(|(a, b)| *a == b), "{tile:?}, piece {piece}: {banks:?}");
                }
            }
        }
    }
}
