//! From fragments to C, or to the workspace.

use super::blueprint::Blueprint;
use super::emit::Position;
use super::transpose::{WORDS, place_of_block, row_of_sum};
use crate::gemm::frame::Params;
use crate::gemm::store::{Added, Column};
use crate::ir::{Builder, Reg, Type};
use std::collections::BTreeMap;

/// Stores a thread's fragments: all of them, or what lies inside of C. Of a fragment a lane holds two neighbouring rows of C in one
/// column of eight, or in two that lie eight apart; where rows or columns were dealt in turns, see [`super::transpose`].
pub(super) fn store(b: &mut Builder, bp: &Blueprint, params: &Params, at: &Position, acc: &[Reg]) {
    let (config, frame, rows) = (&bp.config, bp.frame, Rows::new(bp));
    let [row, column] = first(b, bp, at);
    let elements = frame.stored();
    let mut pointer = elements.at(b, params.c, (Some(row), Some(column)), params.ldc);
    let left = frame.checked().then(|| (b.sub(Type::U32, params.m, row), b.sub(Type::U32, params.n, column)));
    let columns: Vec<u32> = (0..config.n_w / 8).map(|block| column_of_block(bp, block)).collect();
    let mut steps: BTreeMap<u32, Reg> = BTreeMap::new();
    for apart in columns.windows(2).map(|pair| pair[1] - pair[0]) {
        steps.entry(apart).or_insert_with(|| elements.columns(b, params.ldc, apart));
    }
    let all: Vec<u32> = (0..rows.count()).map(|sum| rows.of(sum).1).collect();
    let added = params.bias.map(|base| Added::new(b, &frame, base, [row, column], left, &all));
    for (block, place) in (0..).zip(&columns) {
        if let Some(step) = columns.get((block as usize).wrapping_sub(1)).and_then(|last| steps.get(&(place - last))) {
            pointer = b.add(Type::U64, pointer, *step);
        }
        let sums = rows.sums(acc, block);
        let inside = left.map(|(rows, columns)| (rows, b.exceeds(columns, *place, None)));
        let bias = added.as_ref().map(|added| added.of_column(b, &frame, *place, inside.map(|(_, column)| column)));
        Column { pointer, inside, sums: &sums, row: |sum| rows.of(sum).1, bias: bias.as_deref() }
            .store(b, &frame, params);
    }
}

/// The first row and column of C of a lane.
fn first(b: &mut Builder, bp: &Blueprint, at: &Position) -> [Reg; 2] {
    let config = &bp.config;
    let (dealt_rows, dealt_columns) = (bp.is_dealt(true), bp.is_dealt(false));
    let column = b.div(at.lane, 4);
    let column = b.scale(column, if dealt_columns { WORDS } else { 1 });
    // Two neighbours of each block.
    let row = b.rem(at.lane, 4).map(|row| b.scale(row, if dealt_rows { 2 * WORDS } else { 2 }));
    [(row, config.m_w, at.warp[0], at.block.m0), (Some(column), config.n_w, at.warp[1], at.block.n0)].map(
        |(lane, side, warp, first)| {
            let first = b.scale_add(warp, side, first);
            b.scale_add(lane, 1, first)
        },
    )
}

/// Columns from a lane's first one to that of a block.
fn column_of_block(bp: &Blueprint, block: u32) -> u32 {
    if bp.is_dealt(false) { place_of_block(block) } else { 8 * block }
}

/// The sums of a lane in one column, by their order in C.
struct Rows {
    /// Blocks of eight rows.
    blocks: u32,
    /// Columns of C and sums of a fragment.
    height: u32,
    sums: usize,
    is_dealt: bool,
}

impl Rows {
    fn new(bp: &Blueprint) -> Self {
        // All instructions have eight rows of C.
        let [height, width, _] = bp.kind.shape();
        let [(_, sums), ..] = bp.kind.registers();
        Self { blocks: bp.config.m_w / width, height, sums, is_dealt: bp.is_dealt(true) }
    }

    fn count(&self) -> u32 {
        2 * self.blocks
    }

    /// The block and which of its two sums, and rows from the lane's first one.
    fn of(&self, sum: u32) -> ((u32, u32), u32) {
        if self.is_dealt { row_of_sum(sum) } else { ((sum / 2, sum % 2), sum / 2 * 8 + sum % 2) }
    }

    /// Those of a block of columns.
    fn sums(&self, acc: &[Reg], block: u32) -> Vec<Reg> {
        let (fragment, half) = (8 * block / self.height, 8 * block % self.height / 8);
        let across = &acc[(fragment * self.blocks) as usize * self.sums..];
        let one = |sum| {
            let ((block, which), _) = self.of(sum);
            across[block as usize * self.sums + (2 * half + which) as usize]
        };
        (0..self.count()).map(one).collect()
    }
}
