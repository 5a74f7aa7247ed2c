//! Which blocks of a grid run, and in which order those of a sample.

use crate::launch::Sample;
use tilewright_core::device::GridPart;

/// Which blocks of a launch run.
pub(crate) enum Which {
    All,
    Sample(Sample),
    /// Linear numbers, rising.
    These(Vec<u64>),
}

impl Which {
    pub(crate) fn sample(&self) -> Option<Sample> {
        if let Self::Sample(sample) = self { Some(*sample) } else { None }
    }

    /// The parts of a grid that ran, where so many blocks were left out.
    pub(crate) fn parts(&self, grid: [u32; 3], left_out: u64) -> Vec<GridPart> {
        let part = |block: u64| GridPart::of_block(block, grid);
        match self {
            Self::All => vec![GridPart { from: [0.0; 3], to: [1.0; 3] }],
            Self::These(blocks) => blocks.iter().map(|block| part(*block)).collect(),
            Self::Sample(sample) => {
                let order = Order::new(grid, sample.seed, sample.corners);
                (0..order.blocks - left_out).map(|place| part(order.block(place))).collect()
            }
        }
    }
}

/// Grids with more blocks run whole: each block of them takes a place in a list here.
const MOST_BLOCKS: u64 = 1 << 24;

/// The blocks of a grid in parts or next to them, rising; `None` where that is most of them.
pub(crate) fn near(grid: [u32; 3], parts: &[GridPart], margin: f64) -> Option<Vec<u64>> {
    let [width, height, depth] = grid.map(u64::from);
    let blocks = width.saturating_mul(height).saturating_mul(depth);
    if blocks > MOST_BLOCKS {
        return None;
    }
    let mut chosen = vec![false; usize::try_from(blocks).ok()?];
    for part in parts {
        let [x, y, z] = part.blocks(grid, margin);
        for row in z.flat_map(|z| y.clone().map(move |y| z * height + y)) {
            chosen[(row * width + x.start) as usize..(row * width + x.end) as usize].fill(true);
        }
    }
    let numbers: Vec<u64> = (0u64..).zip(chosen).filter_map(|(at, is)| is.then_some(at)).collect();
    (4 * numbers.len() as u64 <= 3 * blocks).then_some(numbers)
}

/// A permutation of the blocks of a grid: the first, the last, the other corners if they are asked for, and then the others. Those follow a walk
/// around the grid with steps of one length, so that any number of them is spread over all of it.
pub(crate) struct Order {
    pub(crate) blocks: u64,
    /// Linear numbers.
    corners: Vec<u64>,
    start: u64,
    step: u64,
}

impl Order {
    pub(crate) fn new(grid: [u32; 3], seed: u64, with_corners: bool) -> Self {
        let [x, y, z] = grid.map(|n| u64::from(n.max(1)));
        let blocks = x * y * z;
        let mut corners = vec![0, blocks - 1];
        for corner in 1..7 {
            let at = |bit: u32, n: u64| if corner >> bit & 1 == 1 { n - 1 } else { 0 };
            corners.push((at(2, z) * y + at(1, y)) * x + at(0, x));
        }
        let mut distinct: Vec<u64> = Vec::new();
        corners.retain(|c| {
            let is_new = !distinct.contains(c);
            distinct.push(*c);
            is_new && with_corners
        });
        let mut state = seed;
        let start = mixed(&mut state) % blocks;
        let mut step = mixed(&mut state) % blocks;
        // A step that has no factor in common with the number of blocks comes to all of them.
        while common_factor(step, blocks) != 1 {
            step = (step + 1) % blocks;
        }
        Self { blocks, corners, start, step }
    }

    /// Blocks at the beginning of the order that are not chosen by the seed.
    pub(crate) fn corners(&self) -> u64 {
        self.corners.len() as u64
    }

    /// The linear number of the block at a place of the order.
    pub(crate) fn block(&self, place: u64) -> u64 {
        if let Some(corner) = usize::try_from(place).ok().and_then(|at| self.corners.get(at)) {
            return *corner;
        }
        // The walk comes to the corners too: places behind them move on.
        let walk = |at: u64| {
            let sum = u128::from(at) * u128::from(self.step) + u128::from(self.start);
            (sum % u128::from(self.blocks)) as u64
        };
        let mut skipped: Vec<u64> = self.corners.iter().map(|c| self.place_in_walk(*c)).collect();
        skipped.sort_unstable();
        let mut at = place - self.corners();
        for before in skipped {
            at += u64::from(before <= at);
        }
        walk(at)
    }

    /// Where the walk comes to a block.
    fn place_in_walk(&self, block: u64) -> u64 {
        let n = u128::from(self.blocks);
        let distance = (u128::from(block) + n - u128::from(self.start)) % n;
        (distance * u128::from(inverse(self.step, self.blocks)) % n) as u64
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) fn mixed(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

fn common_factor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The number whose product with `a` leaves 1 on division by `n`, by Euclid's extended algorithm; 0 for `n` = 1.
fn inverse(a: u64, n: u64) -> u64 {
    let (mut r, mut next_r) = (i128::from(n), i128::from(a % n));
    let (mut t, mut next_t) = (0i128, 1i128);
    while next_r != 0 {
        let quotient = r / next_r;
        (r, next_r) = (next_r, r - quotient * next_r);
        (t, next_t) = (next_t, t - quotient * next_t);
    }
    t.rem_euclid(i128::from(n)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_comes_once_and_corners_first() {
        for grid in [[1, 1, 1], [2, 1, 1], [7, 1, 1], [1, 1, 9], [6, 4, 1], [5, 3, 4], [64, 4, 1], [2, 2, 2]] {
            for seed in 0..20 {
                let order = Order::new(grid, seed, true);
                let mut all: Vec<u64> = (0..order.blocks).map(|at| order.block(at)).collect();
                assert_eq!(all[0], 0);
                assert_eq!(all.get(1).copied().unwrap_or(0), order.blocks - 1, "{grid:?}");
                all.sort_unstable();
                assert_eq!(all, (0..order.blocks).collect::<Vec<_>>(), "{grid:?}, seed {seed}");
            }
        }
        let order = Order::new([i32::MAX as u32, 65_535, 65_535], 1, true);
        assert!((8..100).all(|at| order.block(at) < order.blocks));
        assert_ne!(Order::new([1000, 1, 1], 1, true).block(5), Order::new([1000, 1, 1], 2, true).block(5));
    }
}
