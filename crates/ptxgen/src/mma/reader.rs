//! How the lanes of a warp share the loads of one operand's fragments.

use super::blueprint::Blueprint;
use super::tile::First;
use super::transpose::{WORDS, row_of_word};
use super::variants::Fetch;
use crate::ir::{Builder, Operand as Value, Reg};

/// The loads of one operand by a warp.
pub(super) struct Reader {
    pub(super) fetch: Fetch,
    along_k: bool,
    /// Rows of A or columns of B of a warp, and of a fragment.
    rows: u32,
    height: u32,
    /// Registers of a fragment.
    each: u32,
    /// Steps of an instruction.
    pub(super) depth: u32,
    /// Elements of a piece.
    piece: u32,
    bytes: u32,
    /// Whether it is the first factor, whose fragments hold blocks of rows before blocks of steps.
    is_first: bool,
}

fn or_zero(reg: Option<Reg>) -> Value {
    reg.map_or(0u32.into(), Value::from)
}

impl Reader {
    pub(super) fn new(bp: &Blueprint, is_a: bool, each: u32) -> Self {
        let [height, width, depth] = bp.kind.shape();
        let (rows, height) = if is_a { (bp.config.m_w, width) } else { (bp.config.n_w, height) };
        let (fetch, bytes) = (bp.fetch(is_a), bp.frame.arithmetic.bytes());
        let along_k = bp.loaders[usize::from(!is_a)].along_k;
        Self { fetch, along_k, rows, height, each, depth, piece: fetch.grain() / bytes, bytes, is_first: !is_a }
    }

    /// Registers that one load fills.
    pub(super) fn at_once(&self) -> usize {
        if matches!(self.fetch, Fetch::Plain | Fetch::Bytes) { 1 } else { 4 }
    }

    /// Pieces that all warps begin at multiples of, but for low bits that no piece further on has.
    pub(super) fn apart(&self) -> u32 {
        // Along the reduction all warps begin with the first piece.
        if self.along_k { 1 << 16 } else { self.rows / self.piece }
    }

    /// Where a lane begins: once, or for each of the words that it transposes.
    pub(super) fn begins(&self, b: &mut Builder, lane: Reg, warp: Option<Reg>) -> Vec<First> {
        if self.fetch != Fetch::Bytes {
            return vec![self.begin(b, lane, warp)];
        }
        // Eight words side by side are a piece.
        let word = b.div(lane, 4);
        let within = Some(b.scale(word, 4));
        let piece = warp.map(|warp| b.scale(warp, self.rows / self.piece));
        (0..WORDS).map(|word| First { row: Some(row_of_word(b, lane, word)), piece, within }).collect()
    }

    fn begin(&self, b: &mut Builder, lane: Reg, warp: Option<Reg>) -> First {
        // Eight rows of a matrix, four matrices; or eight rows of a fragment, four lanes along the reduction.
        let ([row, step], within) = match self.fetch {
            Fetch::Plain => (self.of_plain(b, lane), true),
            _ => (self.of_matrix(b, lane), false),
        };
        let mut side = row;
        if self.along_k {
            if warp.is_some() {
                side = Some(b.scale_add(warp, self.rows, or_zero(side)));
            }
            // A step is a piece of a matrix, or an element.
            let within = step.filter(|_| within).map(|step| b.scale(step, self.bytes));
            return First { row: side, piece: step.filter(|_| within.is_none()), within };
        }
        let (mut piece, mut rest) = (side, None);
        if within {
            piece = side.filter(|_| self.piece < 8).map(|side| b.div(side, self.piece));
            rest = side.and_then(|side| b.rem(side, self.piece)).map(|rest| b.scale(rest, self.bytes));
        }
        if warp.is_some() {
            piece = Some(b.scale_add(warp, self.rows / self.piece, or_zero(piece)));
        }
        First { row: step, piece, within: rest }
    }

    /// The row and the step of a lane's element.
    fn of_plain(&self, b: &mut Builder, lane: Reg) -> [Option<Reg>; 2] {
        [Some(b.div(lane, 4)), b.rem(lane, 4)]
    }

    /// Of the row of a matrix whose address a lane gives: which row of A or column of B, or block of eight of them, and which
    /// step or block of steps; whichever memory is contiguous in goes by blocks.
    fn of_matrix(&self, b: &mut Builder, lane: Reg) -> [Option<Reg>; 2] {
        let (within, matrix) = (b.rem(lane, 8), b.div(lane, 8));
        let (low, high) = (b.rem(matrix, 2), b.div(matrix, 2));
        // Registers of the first factor are blocks of rows before blocks of steps; of the second, the other way round.
        let (rows, steps) = if self.is_first { (low, Some(high)) } else { (Some(high), low) };
        let down = |b: &mut Builder, block: Option<Reg>| Some(b.scale_add(block, 8, or_zero(within)));
        if self.along_k { [down(b, rows), steps] } else { [rows, down(b, steps)] }
    }

    /// The loads of a step: which of the beginnings, and rows and pieces to go from there.
    pub(super) fn places(&self, step: u32) -> Vec<(usize, u32, u32)> {
        let first = step * self.depth;
        let place = |side: u32, k: u32| match self.along_k {
            true => (0, side, k / self.piece),
            false => (0, k, side / self.piece),
        };
        match self.fetch {
            Fetch::Bytes => {
                // Piece by piece both halves of the steps, word by word.
                let halves =
                    |piece| (first..first + self.depth).step_by(self.depth as usize / 2).map(move |k| (piece, k));
                let words = |(piece, k)| (0..WORDS as usize).map(move |word| (word, k, piece));
                (0..self.rows / self.piece).flat_map(halves).flat_map(words).collect()
            }
            Fetch::Plain => {
                let blocks = self.height / 8;
                let register = |r: u32| {
                    let (row, k) = if self.is_first { (r % blocks, r / blocks) } else { (0, r) };
                    (8 * row, 4 * k)
                };
                let fragment =
                    |side: u32| (0..self.each).map(register).map(move |(row, k)| place(side + row, first + k));
                (0..self.rows).step_by(self.height as usize).flat_map(fragment).collect()
            }
            _ => (0..self.rows).step_by(16).map(|side| place(side, first)).collect(),
        }
    }
}
