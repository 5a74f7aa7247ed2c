//! Parts of a grid of blocks, as shares of it, so that a grid of other blocks has them too.

use std::ops::Range;

/// A box within a grid of blocks: from where to where on each axis, in shares of the grid from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridPart {
    /// Where it begins.
    pub from: [f64; 3],
    /// Where it ends.
    pub to: [f64; 3],
}

impl GridPart {
    /// The box of one block, by its linear number (x runs fastest).
    pub fn of_block(number: u64, grid: [u32; 3]) -> Self {
        let [x, y, z] = grid.map(|n| u64::from(n.max(1)));
        let at = [number % x, number / x % y, number / (x * y) % z];
        let share = |i: usize, plus: u64| (at[i] + plus) as f64 / [x, y, z][i] as f64;
        Self { from: [0, 1, 2].map(|i| share(i, 0)), to: [0, 1, 2].map(|i| share(i, 1)) }
    }

    /// The blocks of another grid over the same problem that may touch what the box does, by axis. Both grids cover the problem, and go
    /// beyond its end by less than a block, so that what lies at a share of one lies a little before or behind that share of the other. The
    /// box grows by `margin` times its own size, and with a margin by one block, on every side.
    ///
    /// The box must be that of one block of its grid.
    pub fn blocks(&self, grid: [u32; 3], margin: f64) -> [Range<u64>; 3] {
        [0, 1, 2].map(|i| {
            let blocks = f64::from(grid[i].max(1));
            let share = self.to[i] - self.from[i];
            let (wider, next) = (margin * share, f64::from(u8::from(margin > 0.0)));
            // The last block of the box's own grid may lie almost all beyond the end.
            let beyond = if share < 0.999 { 1.0 / (1.0 - share) } else { f64::INFINITY };
            let from = ((self.from[i] - wider) * (blocks - 1.0) + ROUNDING).floor() - next;
            let to = ((self.to[i] + wider) * beyond * blocks - ROUNDING).ceil() + next;
            from.max(0.0) as u64..to.min(blocks) as u64
        })
    }
}

/// What shares of a grid may be off by, in blocks.
const ROUNDING: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    /// What a block of so many elements touches of a problem, and the blocks of others that touch the same.
    #[test]
    fn blocks_near_touch_all_that_a_block_does() {
        for (size, tile, other) in
            [(4096u64, 192u64, 16u64), (4096, 16, 192), (100, 7, 13), (100, 100, 9), (5, 2, 100), (64, 8, 8)]
        {
            let (grid, others) = (size.div_ceil(tile), size.div_ceil(other));
            for block in 0..grid {
                let part = GridPart::of_block(block, [grid as u32, 1, 1]);
                let [near, y, z] = part.blocks([others as u32, 1, 1], 0.0);
                let elements = block * tile..((block + 1) * tile).min(size);
                let needed = elements.start / other..(elements.end - 1) / other + 1;
                assert!(
                    near.start <= needed.start && near.end >= needed.end,
                    "{size} {tile} {other}: {near:?} {needed:?}"
                );
                assert!(near.end <= others && (y, z) == (0..1, 0..1));
            }
        }
    }

    #[test]
    fn blocks_are_numbered_with_x_fastest() {
        let part = GridPart::of_block(1 + 7 * (2 + 5), [7, 5, 3]);
        assert_eq!(part.from, [1.0 / 7.0, 2.0 / 5.0, 1.0 / 3.0]);
        assert_eq!(GridPart::of_block(50, [100, 1, 1]).blocks([100, 1, 1], 1.0), [47..54, 0..1, 0..1]);
    }
}
