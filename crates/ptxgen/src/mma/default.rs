//! What runs before anything is tuned: the tiles and slices of least estimated time.
//!
//! The estimate counts, in cycles of a multiprocessor, what its blocks multiply and what they bring in, stage after stage. Its constants
//! are of measurements on an H200 (ISAAC's Table 4 in f16, tf32 and f64): what it chooses there takes 1.03 times what the best of a
//! dozen candidates takes.

use super::variants::DEEP_F64;
use crate::gemm::default::raster;
use crate::gemm::space::SLICES;
use tilewright_core::expr::Value;
use tilewright_core::space::{BoundSpace, Point};

/// Preferred values per parameter, best first; see [`BoundSpace::preferred_point`].
pub(super) fn default_point(space: &BoundSpace) -> Option<Point> {
    let preferences = Preferences::of(space);
    space.preferred_point(|param| preferences.wanted(&param.name))
}

/// Tiles of a block and of its warps: rows, columns, rows and columns of a warp. The same with rows and columns exchanged are tried too.
const TILES: [[i64; 4]; 10] = [
    [128, 256, 64, 64],
    [128, 128, 64, 64],
    [128, 64, 64, 32],
    [64, 64, 32, 32],
    [128, 32, 32, 32],
    [64, 32, 32, 16],
    [128, 16, 32, 16],
    [64, 16, 16, 16],
    [32, 32, 16, 16],
    [16, 16, 16, 16],
];

/// Stages in shared memory.
const STAGES: i64 = 3;

/// Cycles of a launch, and of a second one that sums slices.
const LAUNCH: f64 = 3000.0;
const SECOND: f64 = 2000.0;
/// Cycles of a block before its first product and after its last.
const ENDS: f64 = 1200.0;
/// Cycles of a stage, however little it multiplies.
const LATENCY: f64 = 240.0;
/// Bytes of a cycle that the second-level cache gives a multiprocessor, and partial sums that it takes.
const CACHE: f64 = 30.0;
const SUMS: f64 = 15.0;
/// Elements of the tile of a block that has but one stage: small blocks hide each other's stores, which nothing else does.
const FLAT: i64 = 64 * 64;
/// Steps of the reduction by rows and columns that a multiprocessor multiplies in a cycle, of operands of 2 bytes; of other narrow
/// ones as many more as they are narrower.
const STEPS: f64 = 934.0;
/// The same of f64, from [`DEEP_F64`] on and before.
const STEPS_F64: [f64; 2] = [120.0, 60.0];

/// What the preferences depend on.
struct Preferences {
    sizes: [i64; 3],
    element: i64,
    /// Instructions for one product: three of f32 that is split.
    products: i64,
    sm: i64,
    multiprocessors: i64,
    /// Registers, bytes of shared memory and threads of a multiprocessor.
    holds: [i64; 3],
    /// Bytes of shared memory of a block.
    most_shared: i64,
    choice: Choice,
}

/// A tile, as in [`TILES`], and slices.
#[derive(Clone, Copy)]
struct Choice {
    tile: [i64; 4],
    k_g: i64,
}

impl Preferences {
    fn of(space: &BoundSpace) -> Self {
        let int = |name: &str| space.symbols().get(name).and_then(Value::as_int).unwrap_or(1);
        let mut preferences = Self {
            sizes: ["m", "n", "k"].map(int),
            element: int("element"),
            products: int("products"),
            sm: int("sm"),
            multiprocessors: (int("multiprocessors") / int("batch").max(1)).max(1),
            holds: ["registers_per_sm", "shared_per_sm", "threads_per_sm"].map(int),
            most_shared: int("shared_optin"),
            choice: Choice { tile: [16; 4], k_g: 1 },
        };
        let exchanged = TILES.into_iter().filter(|t| t[0] != t[1]).map(|[m_l, n_l, m_w, n_w]| [n_l, m_l, n_w, m_w]);
        let choices = TILES.into_iter().chain(exchanged).flat_map(|tile| SLICES.map(|k_g| Choice { tile, k_g }));
        let timed = choices.filter_map(|choice| Some((preferences.cycles(&choice)?, choice)));
        if let Some((_, choice)) = timed.min_by(|a, b| a.0.total_cmp(&b.0)) {
            preferences.choice = choice;
        }
        preferences
    }

    /// Steps of a stage: lines of both operands, of f64 two of them, so that there are steps beneath which the next stage is read; one
    /// step of the instruction where operands are split.
    fn steps(&self) -> i64 {
        match (self.element, self.products) {
            (_, 3) => 8,
            (8, _) => 32,
            (element, _) => 128 / element,
        }
    }

    /// Estimated cycles; `None` where the tile is far larger than the matrix, or a slice no part of the reduction.
    fn cycles(&self, &Choice { tile: [m_l, n_l, m_w, n_w], k_g }: &Choice) -> Option<f64> {
        let ([m, n, k], f) = (self.sizes.map(|size| size.max(1)), |x: i64| x as f64);
        let up = |a: i64, b: i64| a / b + i64::from(a % b > 0);
        let is_wide = self.element == 8;
        let narrow = m_l < 2 * m.max(16) && n_l < 2 * n.max(16);
        // Accumulators of f64 take twice the registers, and fragments as long as a line more than that.
        let is_flat = k <= self.steps() && m_l * n_l > FLAT;
        if !narrow || is_flat || (is_wide && m_w * n_w > 1024) || (k_g > 1 && k / k_g < 2 * self.steps()) {
            return None;
        }
        let stage = (m_l + n_l) * self.steps() * self.element;
        let threads = m_l / m_w * (n_l / n_w) * 32;
        let words = self.element.max(4) / 4;
        let registers = m_w * n_w / 32 * words + (m_w + n_w) / if is_wide { 1 } else { 2 } + 40;
        let [all_registers, all_shared, all_threads] = self.holds;
        let slice = up(up(k, k_g), self.steps());
        // Slices are whole stages: there may be fewer than are asked for, and far fewer are refused.
        let slices = up(k, slice * self.steps());
        let filled = STAGES.min(slice + 1) * stage;
        let rooms = [all_registers / (registers * threads), all_shared / filled, all_threads / threads];
        let room = rooms.into_iter().min().filter(|room| *room > 0 && filled <= self.most_shared)?;
        if k_g > 1 && 4 * slices <= 3 * k_g {
            return None;
        }
        let trips = f(slice);
        let steps = match (is_wide, self.sm < i64::from(DEEP_F64)) {
            (true, is_old) => STEPS_F64[usize::from(is_old)],
            (false, _) => STEPS * 2.0 / f(self.element * self.products),
        };
        // So many blocks of a multiprocessor at once.
        let wave = |blocks: i64| {
            let multiplied = LATENCY + f(blocks * m_l * n_l * self.steps()) / steps;
            trips * multiplied.max(f(blocks * stage) / CACHE) + ENDS
        };
        let blocks = f(up(m, m_l)) * f(up(n, n_l)) * f(slices);
        let each = (blocks / f(self.multiprocessors)).ceil();
        let rest = each % f(room);
        let waves = (each / f(room)).floor() * wave(room) + if rest > 0.0 { wave(rest as i64) } else { 0.0 };
        let sums = f(2 * slices * words * 4) * f(m) * f(n) / (SUMS * f(self.multiprocessors));
        Some(LAUNCH + waves + if k_g > 1 { SECOND + sums } else { 0.0 })
    }

    /// Values of a parameter, best first; none where any will do.
    fn wanted(&self, name: &str) -> Vec<Value> {
        let Choice { tile: [m_l, n_l, m_w, n_w], k_g } = self.choice;
        let list = |of: &[i64]| of.iter().map(|&i| Value::Int(i)).collect();
        let near = |wanted: i64, of: &[i64]| {
            let mut sizes = of.to_vec();
            sizes.sort_by_key(|s| (s - wanted).abs());
            sizes.into_iter().map(Value::Int).collect()
        };
        match name {
            "m_w" => near(m_w, &[16, 32, 48, 64]),
            "n_w" => near(n_w, &[16, 32, 48, 64]),
            "m_l" => near(m_l, &[16, 32, 48, 64, 96, 128, 256]),
            "n_l" => near(n_l, &[16, 32, 48, 64, 96, 128, 256]),
            "u" => near(self.steps(), &[8, 16, 32, 64, 128]),
            "vec_a" | "vec_b" => list(&[16, 8, 4, 2, 1]),
            "vec_c" => list(&[2, 1]),
            "stages" => list(&[STAGES, 4, 2]),
            "raster" => raster([self.sizes[0], self.sizes[1]], [m_l, n_l], self.multiprocessors),
            "load" => ["async", "nc"].map(Value::from).into(),
            "bounds" => ["whole", "checked"].map(Value::from).into(),
            "k_g" => near(k_g, &SLICES),
            _ => Vec::new(),
        }
    }
}
