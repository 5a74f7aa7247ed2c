//! Algorithms 2 and 3 of the paper as loops, apart from the crate's rules, with what a reader may doubt as parameters.

use std::collections::HashMap;
use std::sync::LazyLock;
use tilewright_core::dtype::DType;
use tilewright_sampler::bacugen::{Guidelines, Reading};

/// Five parameters that overlay their tiles, and the number of ways to load.
#[derive(Clone, Copy)]
pub(super) struct Five {
    pub(super) n_dim: i64,
    pub(super) m_dim: i64,
    pub(super) k: i64,
    pub(super) n: i64,
    pub(super) m: i64,
    pub(super) ways: u64,
}

impl Five {
    pub(super) fn threads(&self) -> i64 {
        self.m_dim * self.n_dim
    }

    /// Elements of a thread along m and n.
    pub(super) fn of_thread(&self) -> (i64, i64) {
        (self.m / self.m_dim, self.n / self.n_dim)
    }
}

/// How shared memory and registers are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resources {
    /// Whether the tiles of A and B are skewed by one element a line.
    pub(super) skewed: [bool; 2],
    /// 32-bit registers of an accumulator, an operand and a prefetched element, as functions of those of an element.
    pub(super) words: [Words; 3],
    /// Registers of a thread besides, for loops and addresses.
    pub(super) more: i64,
    /// Whether 63 registers of a thread, Fermi's limit, are one.
    pub(super) at_most_63: bool,
}

/// Registers counted for an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Words {
    None,
    One,
    Size,
}

impl From<Reading> for Resources {
    fn from(reading: Reading) -> Self {
        let prefetched = if reading == Reading::Printed { Words::Size } else { Words::One };
        Self { skewed: [true; 2], words: [Words::Size, Words::Size, prefetched], more: 0, at_most_63: false }
    }
}

/// All that Algorithm 2 reaches and the first block of Algorithm 3 leaves, with stripes that fit shared memory in some type.
pub(super) static FIVES: LazyLock<Vec<Five>> = LazyLock::new(|| {
    let mut ways = Ways::default();
    let mut out = Vec::new();
    for n_dim in 1..=256 {
        for m_dim in (1..=256).filter(|m| m * n_dim <= 1024 && m * n_dim % 32 == 0) {
            let threads: i64 = m_dim * n_dim;
            for k in 1..=64 {
                for n in (n_dim..=256).step_by(n_dim as usize).filter(|n| k * n % threads == 0) {
                    for m in (m_dim..=256).step_by(m_dim as usize).filter(|m| m * k % threads == 0) {
                        let ways = ways.of(m, k, threads) * ways.of(k, n, threads);
                        if ways > 0 && (m + n) * k * 4 <= 49_152 {
                            out.push(Five { n_dim, m_dim, k, n, m, ways });
                        }
                    }
                }
            }
        }
    }
    out
});

/// Grids of some threads that cover a tile.
#[derive(Default)]
struct Ways(HashMap<[i64; 3], u64>);

impl Ways {
    fn of(&mut self, a: i64, b: i64, threads: i64) -> u64 {
        let covers = |d: &i64| threads % d == 0 && a % d == 0 && b % (threads / d) == 0;
        *self.0.entry([a, b, threads]).or_insert_with(|| (1..=threads.min(a)).filter(covers).count() as u64)
    }
}

/// The second and third block of Algorithm 3: occupancy by shared memory and by registers.
pub(super) fn occupies(at: &Five, element: DType, resources: &Resources, guidelines: &Guidelines) -> bool {
    let size = element.size() as i64;
    let ((mt, nt), threads) = (at.of_thread(), at.threads());
    let fits = |available: i64, need: i64| {
        let warps_of_block = threads / 32;
        let blocks = (available / need).min(8);
        let blocks = (blocks * warps_of_block).min(48) / warps_of_block;
        blocks >= guidelines.min_blocks && threads * blocks >= guidelines.min_threads
    };
    let [skew_a, skew_b] = resources.skewed.map(i64::from);
    let [accumulator, operand, prefetched] = resources.words.map(|words| match words {
        Words::None => 0,
        Words::One => 1,
        Words::Size => size / 4,
    });
    let of_thread = mt * nt * accumulator + (mt + nt) * operand + resources.more;
    let registers = of_thread * threads + (at.m * at.k + at.k * at.n) * prefetched;
    fits(49_152, ((at.m + skew_a) * at.k + (at.k + skew_b) * at.n) * size)
        && fits(32_768, registers)
        && !(resources.at_most_63 && registers > 63 * threads)
}
