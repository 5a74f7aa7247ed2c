//! What runs before anything is tuned: the paper's fastest tiles (Table 2), or smaller ones where the matrix has few of them.

use tilewright_core::expr::Value;
use tilewright_core::space::{BoundSpace, Point};

/// A block: `m_blk n_blk k_blk m_dim n_dim`.
type Block = [i64; 5];

/// Blocks for elements of 4, 8 and 16 bytes, largest first; the first is Table 2's.
const BLOCKS: [[Block; 3]; 3] = [
    [[96, 96, 16, 16, 16], [64, 64, 16, 16, 16], [32, 32, 16, 8, 8]],
    [[64, 64, 16, 16, 16], [32, 32, 16, 8, 8], [16, 16, 8, 8, 4]],
    [[24, 16, 8, 8, 8], [16, 16, 8, 8, 4], [16, 8, 8, 8, 4]],
];

/// The point nearest to the preferences; see [`BoundSpace::preferred_point`].
pub(super) fn default_point(space: &BoundSpace) -> Option<Point> {
    let int = |name: &str| space.symbols().get(name).and_then(Value::as_int).unwrap_or(1);
    let [m_blk, n_blk, k_blk, m_dim, n_dim] = block([int("m"), int("n")], int("element"), int("multiprocessors"));
    space.preferred_point(|param| match param.name.as_str() {
        "m_dim" => vec![m_dim.into()],
        "n_dim" => vec![n_dim.into()],
        "k_blk" => vec![k_blk.into()],
        "m_blk" => vec![m_blk.into()],
        "n_blk" => vec![n_blk.into()],
        // Neighbouring threads read neighbouring elements: 32 of them, or as many as the tile has.
        "m_dim_a" | "m_dim_b" => [32, 16, 64, 8, 24, 4].map(Value::Int).into(),
        _ => Vec::new(),
    })
}

/// The largest block of which there is one for every multiprocessor, else the smallest.
fn block([m, n]: [i64; 2], element: i64, multiprocessors: i64) -> Block {
    let blocks = &BLOCKS[match element {
        4 => 0,
        8 => 1,
        _ => 2,
    }];
    let fills = |b: &&Block| ((m + b[0] - 1) / b[0]).saturating_mul((n + b[1] - 1) / b[1]) >= multiprocessors;
    *blocks.iter().find(fills).unwrap_or(&blocks[blocks.len() - 1])
}
