//! Positions in blocks, and a block's positions as runs of neighbours.

use crate::split::pieces;
use std::ops::Range;
use tilewright_ops::conv::{Correlation, Strides};

/// Images, and rows of their grids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) images: Range<usize>,
    pub(crate) rows: Range<usize>,
}

/// A dimension of positions: how many, and elements from one to the next in what is gathered and in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) count: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// Strides of what is gathered: image, channel, row, column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct From {
    pub(crate) image: usize,
    pub(crate) channel: usize,
    pub(crate) row: usize,
    pub(crate) column: usize,
}

/// The positions of a block: runs of `inner`, as many as the outer ones say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Runs {
    pub(crate) outer: [Side; 2],
    pub(crate) inner: Side,
}

/// Blocks of at most so many positions, at least so many blocks as far as there are rows: whole images, or rows of one.
pub(crate) fn blocks(of: &Correlation, positions: usize, least: usize) -> Vec<Block> {
    let ([rows, columns], images) = (of.grid, of.images.count);
    let each = rows * columns;
    if each == 0 || images == 0 {
        return Vec::new();
    }
    let whole = (positions / each).max(1);
    if positions >= each && images.div_ceil(whole) >= least {
        let parts = images.div_ceil(whole).next_multiple_of(least).min(images);
        let block = |images: Range<usize>| Block { images, rows: 0..rows };
        return pieces(0..images, images.div_ceil(parts)).map(block).collect();
    }
    let most = (positions / columns).clamp(1, rows);
    let parts = rows.div_ceil(most).max(least.div_ceil(images)).min(rows);
    let block =
        |image: usize| pieces(0..rows, rows.div_ceil(parts)).map(move |rows| Block { images: image..image + 1, rows });
    (0..images).flat_map(block).collect()
}

/// The dimension of positions that tiles run along: neighbours in memory of the result go in one store, unless its outputs are
/// neighbours. The usual order decides if several are, or none is.
pub(crate) fn innermost(of: &Correlation, to: Strides) -> usize {
    let sides = [(of.images.count, to.image), (of.grid[0], to.row), (of.grid[1], to.column)];
    let fits = |&at: &usize| sides[at].0 > 1 && (to.out == 1 || sides[at].1 == 1);
    (0..3).rev().find(fits).unwrap_or(2)
}

/// Whether results are staged: neither neighbouring outputs nor neighbouring positions are neighbours in memory.
pub(crate) fn is_staged(of: &Correlation) -> bool {
    let r = of.result;
    let sides = [(of.images.count, r.image), (of.grid[0], r.row), (of.grid[1], r.column)];
    let (count, stride) = sides[innermost(of, r)];
    r.out != 1 && !(count > 1 && stride == 1) && of.images.count * of.positions() > 1
}

/// How many neighbours tiles run along, and whether all of them lie together in what is gathered, as it is and copied.
pub(crate) fn along(of: &Correlation) -> (usize, [bool; 2]) {
    let counts = [of.images.count, of.grid[0], of.grid[1]];
    let at =
        if is_staged(of) { (0..3).rev().find(|&at| counts[at] > 1).unwrap_or(2) } else { innermost(of, of.result) };
    // Rows of a copy lie further apart than those of the image; of one tap, it has the places that are met.
    let copied = if of.reach()[1] == 0 { 1 } else { of.step[1] };
    let together =
        |step: usize| [of.images.stride == 1 && of.columns.stride != 1, false, step * of.columns.stride == 1];
    (counts[at], [together(of.step[1])[at], together(copied)[at]])
}

impl Runs {
    /// Of a block: positions are so many places of what is gathered apart, and neighbours in the result lie so far apart.
    pub(crate) fn new(of: &Correlation, block: &Block, (from, step): (From, [usize; 2]), to: Strides) -> Self {
        let side = |count: usize, from: usize, to: usize| Side { count, from, to };
        let sides = [
            side(block.images.len(), from.image, to.image),
            side(block.rows.len(), step[0] * from.row, to.row),
            side(of.grid[1], step[1] * from.column, to.column),
        ];
        let inner = innermost(of, to);
        let mut left: Vec<Side> = (0..3).filter(|&at| at != inner).map(|at| sides[at]).collect();
        left.retain(|side| side.count > 1);
        left.push(sides[inner]);
        let mut merged: Vec<Side> = Vec::new();
        for side in left {
            match merged.last_mut().filter(|o| o.from == side.count * side.from && o.to == side.count * side.to) {
                Some(outer) => *outer = Side { count: outer.count * side.count, ..side },
                None => merged.push(side),
            }
        }
        let one = Side { count: 1, from: 0, to: 0 };
        let mut last = || merged.pop().unwrap_or(one);
        let (inner, second, first) = (last(), last(), last());
        Self { outer: [first, second], inner }
    }

    /// Where each run begins, in what is gathered and in the result.
    pub(crate) fn starts(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let [first, second] = self.outer;
        let start = move |a: usize, b: usize| (a * first.from + b * second.from, a * first.to + b * second.to);
        (0..first.count).flat_map(move |a| (0..second.count).map(move |b| start(a, b)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_core::computation::Computation;
    use tilewright_core::space::Config;
    use tilewright_ops::conv::Conv;

    fn correlation(text: &str) -> Correlation {
        Correlation::all(&Conv.parse(&Config::parse(text).unwrap()).unwrap()).remove(0)
    }

    #[test]
    fn blocks_cover_all_positions_once() {
        let of = correlation("n=3,c=2,h=9,w=5,k=4,r=3,pad=1");
        for (positions, least) in [(1, 1), (7, 2), (45, 1), (45, 4), (100, 1), (1000, 2), (1000, 9)] {
            let mut seen = [0; 27];
            let all = blocks(&of, positions, least);
            for block in &all {
                assert!(block.images.len() == 1 || block.rows == (0..9));
                for (i, r) in block.images.clone().flat_map(|i| block.rows.clone().map(move |r| (i, r))) {
                    seen[i * 9 + r] += 1;
                }
            }
            assert!(seen.iter().all(|&n| n == 1) && all.len() >= least, "{positions} {least}: {all:?}");
        }
    }

    #[test]
    fn what_follows_each_other_is_one_run() {
        let runs = |text: &str| {
            let of = correlation(text);
            let from = From {
                image: of.images.stride,
                channel: of.channels.stride,
                row: of.rows.stride,
                column: of.columns.stride,
            };
            let block = Block { images: 0..of.images.count, rows: 0..of.grid[0] };
            Runs::new(&of, &block, (from, of.step), of.result)
        };
        assert_eq!(runs("n=2,c=3,h=4,w=5,k=6,r=1").inner, Side { count: 20, from: 1, to: 1 });
        assert_eq!(runs("n=2,c=3,h=4,w=5,k=6,r=1,layout=nhwc").inner, Side { count: 40, from: 3, to: 6 });
        assert_eq!(runs("n=2,c=3,h=4,w=5,k=6,r=3").inner, Side { count: 3, from: 1, to: 1 });
        assert_eq!(runs("n=2,c=3,h=4,w=5,k=6,r=1,direction=filter").inner, Side { count: 3, from: 20, to: 1 });
        assert_eq!(runs("n=2,c=3,h=9,w=9,k=6,r=3,direction=filter,layout=nhwc").inner.count, 9);
    }
}
