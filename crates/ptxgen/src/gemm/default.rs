//! What runs before anything is tuned: the tiles and slices of least estimated time.
//!
//! Nothing is measured here. The estimate counts what bounds a multiprocessor, in cycles: multiply-adds and passes over shared memory,
//! bytes, and above all whether enough of them are on their way, which is what a narrow product lacks where its tiles are few: stages
//! of a block follow each other, so that only more blocks, or larger stages, bring more in flight.

use tilewright_core::expr::Value;
use tilewright_core::space::{BoundSpace, Point};

/// Preferred values per parameter, best first; the first legal combination is taken, parameters in the order of the space, so
/// that a parameter gives way only to rules that earlier choices have not settled.
pub(super) fn default_point(space: &BoundSpace) -> Option<Point> {
    let int = |name| space.symbols().get(name).and_then(Value::as_int).unwrap_or(1);
    let sizes = [int("m"), int("n"), int("k")];
    let preferences = Preferences::new(Product::of(space, sizes, int("sum_bytes"), int("batch"), true));
    space.preferred_point(|param| preferences.wanted(&param.name))
}

/// What an estimate depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product {
    /// m, n and k.
    sizes: [i64; 3],
    /// Words of 4 bytes of a sum.
    words: i64,
    /// Neighbouring sums, and operands, that share a word in the main loop.
    lanes: i64,
    /// How many multiprocessors share its tiles.
    multiprocessors: i64,
    /// Registers, bytes of shared memory and threads of a multiprocessor.
    holds: [i64; 3],
    /// Whether the reduction may be split over the grid.
    sliced: bool,
}

/// Edges of tiles of blocks and of threads, steps of a stage, and slices, in the order in which they are tried.
const EDGES: [i64; 8] = [128, 64, 32, 16, 8, 4, 2, 1];
const STEPS: [i64; 3] = [16, 32, 8];
const SLICES: [i64; 17] = super::space::SLICES;

/// Cycles from the request of a stage to its use where memory is busy, and bytes that memory gives a multiprocessor in a cycle: together
/// the 20 KB in flight that keep memory busy.
const LATENCY: i64 = 1250;
const MEMORY: i64 = 16;
/// Bytes that the second-level cache gives a multiprocessor in a cycle.
const CACHE: i64 = 32;
/// Warps of a multiprocessor that keep its arithmetic busy: two of each of its four parts.
const WARPS: i64 = 8;

/// Multiply-adds of a stage that stay in the instruction cache: on an H200 twice as many take 1.15 to 1.5 times as long.
const LONGEST: i64 = 1024;

/// Tiles and slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Choice {
    block: [i64; 2],
    thread: [i64; 2],
    u: i64,
    k_g: i64,
}

/// What each parameter should be.
pub(crate) struct Preferences {
    product: Product,
    choice: Choice,
}

impl Preferences {
    /// Of the choice of least estimated time.
    pub(crate) fn new(product: Product) -> Self {
        let [m, n, k] = product.sizes;
        let edges = |size: i64| EDGES.into_iter().filter(move |e| *e < 2 * size.max(8) && (*e >= 16 || size <= 16));
        let threads = |edge: i64| EDGES.into_iter().filter(move |t| *t <= 8.min(edge));
        let rows = |edge: i64| threads(edge).filter(move |t| t % product.lanes == 0);
        let steps = || STEPS.into_iter().filter(|u| *u == 8 || u / 2 < k);
        let slices = || SLICES.into_iter().filter(|k_g| *k_g == 1 || (product.sliced && *k_g * 64 <= k));
        let mut best = (f64::INFINITY, Choice::default());
        for block in edges(m).flat_map(|m_l| edges(n).map(move |n_l| [m_l, n_l])) {
            let tiles = rows(block[0]).flat_map(|m_s| threads(block[1]).map(move |n_s| [m_s, n_s]));
            for thread in tiles.filter(|thread| is_block(block, *thread)) {
                let steps = steps().filter(|u| *u == 8 || u * thread[0] * thread[1] <= LONGEST * product.lanes);
                for (u, k_g) in steps.flat_map(|u| slices().map(move |k_g| (u, k_g))) {
                    let choice = Choice { block, thread, u, k_g };
                    if let Some(cycles) = product.cycles(&choice).filter(|cycles| *cycles < best.0) {
                        best = (cycles, choice);
                    }
                }
            }
        }
        Self { product, choice: best.1 }
    }

    /// Values of a parameter, best first; none where any will do.
    pub(crate) fn wanted(&self, name: &str) -> Vec<Value> {
        let list = |of: &[i64]| of.iter().map(|&i| Value::Int(i)).collect();
        // The nearest values where rules refuse the choice.
        let near = |of: &[i64], wanted: i64| {
            let mut sizes = of.to_vec();
            sizes.sort_by_key(|size| (size - wanted).abs());
            sizes.into_iter().map(Value::Int).collect()
        };
        let Choice { block, thread, u, k_g } = self.choice;
        const BLOCKS: [i64; 11] = [128, 96, 64, 48, 32, 24, 16, 8, 4, 2, 1];
        match name {
            "m_s" => near(&[8, 4, 2, 1], thread[0]),
            "n_s" => near(&[8, 4, 2, 1], thread[1]),
            "m_l" => near(&BLOCKS, block[0]),
            "n_l" => near(&BLOCKS, block[1]),
            "u" => near(&[16, 8, 32, 4, 64], u),
            "vec_a" | "vec_b" | "vec_c" => list(&[8, 4, 2, 1]),
            "stages" => list(&[2, 1, 3]),
            "occupancy" => list(&[2, 1]),
            "load" => ["nc", "global"].map(Value::from).into(),
            "k_g" if self.product.sliced => near(&SLICES, k_g),
            "raster" => raster([self.product.sizes[0], self.product.sizes[1]], block, self.product.multiprocessors),
            _ => Vec::new(),
        }
    }
}

/// Which way blocks lie, best first: in groups where there are so many that those which run at once would read far more of one operand
/// than of the other.
pub(crate) fn raster(sizes: [i64; 2], tile: [i64; 2], multiprocessors: i64) -> Vec<Value> {
    /// Blocks for each multiprocessor. On an H200, 8192 x 8192 in f64 by tiles of 64 x 64 takes 0.86 of the time in groups, and 4096 x 4096
    /// the same; f16 by tiles of 128 x 256 takes 0.95 to 0.98, and bf16 in one layout 1.02.
    const MANY: i64 = 14;
    let [rows, columns] = [0, 1].map(|side| sizes[side].max(1).saturating_add(tile[side] - 1) / tile[side]);
    let many = rows.saturating_mul(columns) >= MANY.saturating_mul(multiprocessors);
    let order = if many { ["grouped", "m", "n"] } else { ["m", "n", "grouped"] };
    order.map(Value::from).into()
}

/// Whether tiles make whole warps that are worth a try: rules of the space say the same of the threads and of flat tiles.
fn is_block([m_l, n_l]: [i64; 2], [m_s, n_s]: [i64; 2]) -> bool {
    let threads = m_l / m_s * (n_l / n_s);
    let flat = m_s.max(n_s) > 4 * m_s.min(n_s) && m_s * n_s > 4;
    (32..=512).contains(&threads) && threads % 32 == 0 && !flat
}

impl Product {
    /// So many products of a size, on the device of a space.
    pub(crate) fn of(space: &BoundSpace, sizes: [i64; 3], sum_bytes: i64, batch: i64, sliced: bool) -> Self {
        let int = |name: &str| space.symbols().get(name).and_then(Value::as_int).unwrap_or(1);
        let holds = ["registers_per_sm", "shared_per_sm", "threads_per_sm"].map(int);
        let multiprocessors = (int("multiprocessors") / batch.max(1)).max(1);
        Self { sizes, words: (sum_bytes / 4).max(1), lanes: int("lanes"), multiprocessors, holds, sliced }
    }

    /// Estimated cycles of what [`is_block`]; `None` where a multiprocessor has no room, or a slice no part of the reduction.
    fn cycles(&self, choice: &Choice) -> Option<f64> {
        let (words, lanes) = (self.words, self.lanes);
        let Choice { block: [m_l, n_l], thread: [m_s, n_s], u, k_g } = *choice;
        let threads = m_l / m_s * (n_l / n_s);
        let stage = (m_l + n_l) * u * 4 * words / lanes;
        let registers = (m_s * n_s + 2 * (m_s + n_s)) * words / lanes + stage / 4 / threads + 22;
        let [all_registers, all_shared, all_threads] = self.holds;
        // Told to, the assembler does with a little less: see `occupancy`.
        let limits = [all_registers * 13 / 12 / (registers * threads), all_shared / (2 * stage), all_threads / threads];
        let limit = limits.into_iter().min().filter(|limit| *limit > 0 && registers <= 224)?;
        // Sizes are a user's: their products may be large.
        let [m, n, k] = self.sizes.map(|size| size.max(1) as f64);
        let f = |x: i64| x as f64;
        let slice = ((k / f(k_g)).ceil() / f(u)).ceil();
        // Slices are whole stages: there may be fewer than are asked for, and far fewer are refused.
        let slices = (k / (slice * f(u))).ceil();
        if k_g > 1 && (slice < 2.0 || 4.0 * slices <= f(3 * k_g)) {
            return None;
        }
        let blocks = (m / f(m_l)).ceil() * (n / f(n_l)).ceil() * slices;
        let each = (blocks / f(self.multiprocessors)).ceil();
        let stages = each * slice;
        let memory = |elements: f64| elements * f(4 * words) / f(self.multiprocessors * MEMORY);
        // Of a warp and a step: a multiply-add takes a fourth of a cycle, a word of fragments half a pass, half of which is hidden.
        let step = (m_s * n_s + m_s + n_s) * words / lanes;
        let at_once = each.min(f(limit));
        let busy = (at_once * f(threads) / f(32 * WARPS)).min(1.0);
        let multiplies = stages * f(u * threads / 32 * step) / 4.0 / busy;
        let arrivals = stages * f(LATENCY) / at_once;
        let cache = stages * f(stage) / f(CACHE);
        let bounds = [multiplies, arrivals, cache, memory((m + n) * k) / f(lanes)];
        // What bounds least costs too: a fourth of it is not hidden.
        let bound = bounds.into_iter().fold(0.0, f64::max) * 0.75 + bounds.into_iter().sum::<f64>() * 0.25;
        // A second launch, and partial sums that are written and read.
        let sums = if k_g == 1 { 0.0 } else { f(3 * LATENCY) + memory(2.0 * slices * m * n) };
        Some(bound + 2.0 * (each / f(limit)).ceil() * f(LATENCY) + sums)
    }
}
