//! From fragments to C, or to the workspace.

use super::blueprint::Blueprint;
use super::emit::Position;
use crate::gemm::frame::Params;
use crate::gemm::store::Column;
use crate::ir::{Builder, Reg, Type};

/// Stores a thread's fragments: all of them, or what lies inside of C. Of a fragment a lane holds two neighbouring rows of C in one
/// column of eight, or in two that lie eight apart.
pub(super) fn store(b: &mut Builder, bp: &Blueprint, params: &Params, at: &Position, acc: &[Reg]) {
    let (config, frame) = (&bp.config, bp.frame);
    let [height, width, _] = bp.kind.shape();
    let [(_, sums), ..] = bp.kind.registers();
    let column = b.div(at.lane, 4);
    let row = b.rem(at.lane, 4).map(|row| b.scale(row, 2));
    let [row, column] =
        [(row, config.m_w, at.warp[0], at.block.m0), (Some(column), config.n_w, at.warp[1], at.block.n0)].map(
            |(lane, side, warp, first)| {
                let first = b.scale_add(warp, side, first);
                b.scale_add(lane, 1, first)
            },
        );
    let elements = frame.stored();
    let mut pointer = elements.at(b, params.c, (Some(row), Some(column)), params.ldc);
    let left = frame.checked().then(|| (b.sub(Type::U32, params.m, row), b.sub(Type::U32, params.n, column)));
    let next = elements.columns(b, params.ldc, 8);
    let across = (config.m_w / width) as usize;
    for (block, first) in (0..config.n_w).step_by(8).enumerate() {
        if block > 0 {
            pointer = b.add(Type::U64, pointer, next);
        }
        let (fragment, half) = (first / height, (first % height / 8) as usize);
        // Every fragment of the row of fragments has two elements of the column.
        let fragments = acc[fragment as usize * across * sums..][..across * sums].chunks(sums);
        let sums: Vec<Reg> = fragments.flat_map(|f| f[2 * half..][..2].to_vec()).collect();
        let inside = left.map(|(rows, columns)| (rows, b.exceeds(columns, first, None)));
        Column { pointer, inside, sums: &sums, row: |i| i / 2 * width + i % 2, bias: None }.store(b, &frame, params);
    }
}
