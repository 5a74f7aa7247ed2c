//! Fragments of bytes that lie across the reduction in shared memory.
//!
//! A register of a fragment holds four successive steps of one row (column for B), and no instruction reads bytes so from memory that
//! is contiguous along rows. So a lane reads a word of four rows at each of four successive steps, and exchanges rows and steps of these
//! 4 x 4 bytes in its registers: of eight [`Inst::Prmt`] come four registers. The lane's word of a piece of 32 rows is that of its
//! number in the fragment, so row `4 r + b` of the piece is row `r` of block `b` of eight, which is undone where results are stored
//! ([`place_of_block`], [`row_of_sum`]).
//!
//! The four lanes that share a word's place read successive steps, and a tile's rows are permuted so that successive ones meet in no
//! bank. Lane `t` of them has the steps `4 t..4 t + 4`: were each to read them in order, all four would be at steps that are 4 apart. So
//! lane `t` begins with its step `t` and turns round, and the last exchange puts bytes in order by a selector that depends on the lane.

use crate::ir::{Arith, Builder, Inst, Reg, Type};

/// Words that a lane exchanges bytes of: successive steps.
pub(super) const WORDS: u32 = 4;

/// Rows of a piece: four bytes of each of eight lanes.
const PIECE: u32 = 32;

/// Which bytes of two words stand side by side after the first exchange: those of the lower two rows, and of the higher two.
const PAIRS: [u32; 2] = [0x5140, 0x7362];

/// Digits that take the bytes of the lower row of two such pairs, in the order of their words, twice in a row; and of the higher row.
const JOINED: [u32; 2] = [0x5410_5410, 0x7632_7632];

/// The step, from the instruction's first or middle one on, that a lane's word is at.
pub(super) fn row_of_word(b: &mut Builder, lane: Reg, word: u32) -> Reg {
    let Some(of_four) = b.rem(lane, WORDS) else { return lane };
    let turned = b.add(Type::U32, of_four, word);
    let step = b.rem(turned, WORDS).unwrap_or(turned);
    b.scale_add(Some(of_four), WORDS, step)
}

/// Where a block of eight rows (columns) of fragments lies: the row of its first, rows of one block being [`WORDS`] apart.
pub(super) fn place_of_block(block: u32) -> u32 {
    let blocks = PIECE / 8;
    block / blocks * PIECE + block % blocks
}

/// Of the sums of a lane in rows of several blocks: the block and which of its two sums, by their order in C; and the row.
pub(super) fn row_of_sum(sum: u32) -> ((u32, u32), u32) {
    let (piece, within) = (sum / 8, sum % 8);
    ((piece * 4 + within % 4, within / 4), piece * PIECE + within)
}

/// The exchange of a lane.
pub(super) struct Transposition {
    selectors: [Reg; 2],
}

impl Transposition {
    /// With the lane's selectors: digits turned by as many as its words are.
    pub(super) fn new(b: &mut Builder, lane: Reg) -> Self {
        let of_four = b.rem(lane, WORDS).unwrap_or(lane);
        let digits = b.scale(of_four, 4);
        let by = b.sub(Type::U32, 16u32, digits);
        let selectors = JOINED.map(|joined| {
            let twice = b.mov(Type::U32, joined);
            b.arith(Arith::Shr, Type::U32, twice, by)
        });
        Self { selectors }
    }

    /// The fragments, of so many registers each, of words piece after piece: four of the first half of the steps, and four of the
    /// second.
    pub(super) fn fragments(&self, b: &mut Builder, words: &[Reg], each: usize) -> Vec<Reg> {
        let mut all = Vec::with_capacity(words.len());
        for halves in words.chunks(2 * WORDS as usize) {
            let (early, late) = halves.split_at(WORDS as usize);
            let [early, late] = [early, late].map(|words| self.exchanged(b, words));
            // A fragment's registers are its blocks of rows, first of the early steps and then of the late ones.
            let blocks = each / 2;
            for (early, late) in early.chunks(blocks).zip(late.chunks(blocks)) {
                all.extend(early.iter().chain(late));
            }
        }
        all
    }

    /// The bytes of four words, row after row.
    fn exchanged(&self, b: &mut Builder, words: &[Reg]) -> Vec<Reg> {
        let mut exchange = |a: Reg, c: Reg, select: crate::ir::Operand| {
            let dst = b.reg(Type::B32);
            b.push(Inst::Prmt { dst, a, b: c, select });
            dst
        };
        let mut rows = Vec::with_capacity(words.len());
        for pair in PAIRS {
            let [x, y] = [[words[0], words[1]], [words[2], words[3]]].map(|[a, c]| exchange(a, c, pair.into()));
            rows.extend(self.selectors.map(|select| exchange(x, y, select.into())));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn permuted(a: u32, b: u32, select: u32) -> u32 {
        let bytes = [a.to_le_bytes(), b.to_le_bytes()].concat();
        u32::from_le_bytes([0, 4, 8, 12].map(|at| bytes[(select >> at & 7) as usize]))
    }

    #[test]
    fn bytes_of_successive_steps_come_together_in_every_lane() {
        for lane in 0..4u32 {
            // The word of a step has the step in its high digit and the row in the low one.
            let words: Vec<u32> = (0..4).map(|w| 0x0302_0100 + (lane + w) % 4 * 0x1010_1010).collect();
            let mut rows = Vec::new();
            for pair in PAIRS {
                let [x, y] = [(0, 1), (2, 3)].map(|(a, b)| permuted(words[a], words[b], pair));
                rows.extend(JOINED.map(|joined| permuted(x, y, joined >> (16 - 4 * lane))));
            }
            let expected: Vec<u32> = (0..4).map(|row| 0x3020_1000 + row * 0x0101_0101).collect();
            assert_eq!(rows, expected, "lane {lane}");
        }
    }

    #[test]
    fn rows_of_sums_are_the_rows_of_their_blocks() {
        let mut seen = BTreeSet::new();
        // Of lanes 0..4 the rows begin 8 apart, and sum e of a block is row 2 t + e of the block.
        for (t, sum) in (0..4).flat_map(|t| (0..16).map(move |sum| (t, sum))) {
            let ((block, e), row) = row_of_sum(sum);
            assert_eq!(8 * t + row, place_of_block(block) + WORDS * (2 * t + e));
            seen.insert(8 * t + row);
        }
        assert_eq!(seen.len(), 64);
    }
}
