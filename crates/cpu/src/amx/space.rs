//! The parameter space of the kernel, and the rules that make a configuration legal.
//!
//! A block of sums is `m_s` by `n_s` tiles of 16 by 16. `u` tiles of the reduction are packed at once, for `m_l` rows and `n_l` columns of C.
//! `t` threads divide the longer side.

use super::tile::REGISTERS;
use crate::described::Described;
use std::sync::OnceLock;
use tilewright_core::expr::Value;
use tilewright_core::space::{BoundSpace, Param, ParamSpace, Point, RuleGroup, SpaceError, Values};

/// One value per parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Config {
    /// Tiles of a block.
    pub(super) m_s: usize,
    pub(super) n_s: usize,
    /// Rows and columns of a cache block.
    pub(super) m_l: usize,
    pub(super) n_l: usize,
    /// Tiles.
    pub(super) u: usize,
    pub(super) t: usize,
}

const SIZES: [&str; 6] = ["m_s", "n_s", "m_l", "n_l", "u", "t"];
/// What a model sees: all are sizes.
const FEATURES: [&str; 12] =
    ["m_s", "n_s", "m_l", "n_l", "u", "t", "tiles_m", "tiles_n", "tiles_k", "blocks", "panel_bytes", "block_bytes"];

/// The space with the names that code reads.
pub(super) type Description = Described<{ SIZES.len() }, 0, { FEATURES.len() }>;

/// The one there is.
pub(super) fn description() -> &'static Description {
    static DESCRIPTION: OnceLock<Description> = OnceLock::new();
    DESCRIPTION.get_or_init(|| Described::new("gemm.cpu-amx", space(), SIZES, [], (FEATURES, 0)))
}

impl Config {
    /// The parameters of a point; `None` for one of another space.
    pub(super) fn of(at: &Values<'_>) -> Option<Self> {
        let [m_s, n_s, m_l, n_l, u, t] = description().sizes(at)?;
        Some(Self { m_s, n_s, m_l, n_l, u, t })
    }
}

const BLOCK: [i64; 10] = [48, 96, 192, 384, 512, 768, 1024, 2048, 4096, 8192];
const DEPTH: [i64; 9] = [4, 8, 12, 16, 24, 32, 64, 128, 256];
const THREADS: [i64; 15] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192];

fn space() -> Result<ParamSpace, SpaceError> {
    use RuleGroup::{Guideline, Hardware, Implementation};
    ParamSpace::builder()
        .param(Param::ints("m_s", [1, 2, 3]))
        .param(Param::ints("n_s", [1, 2, 3]))
        .param(Param::ints("u", DEPTH))
        .param(Param::ints("m_l", BLOCK))
        .param(Param::ints("n_l", BLOCK))
        .param(Param::ints("t", THREADS))
        .define("tiles_m", "(m + 15) // 16")
        .define("tiles_n", "(n + 15) // 16")
        .define("tiles_k", "(k * element + 63) // 64")
        .define("blocks", "((tiles_m + m_s - 1) // m_s) * ((tiles_n + n_s - 1) // n_s)")
        .define("panel_bytes", "1024 * n_s * min(u, tiles_k)")
        .define("block_bytes", "64 * min(m_l, m) * min(u, tiles_k)")
        .rule("tiles", Hardware, "amx", "the host has no tile registers for these operands, or the system keeps them")
        .rule("single_product", Implementation, "batch == 1", "there is no code for batches")
        .rule(
            "registers",
            Hardware,
            &format!("m_s * n_s + m_s + n_s <= {REGISTERS}"),
            "sums and operands live in tile registers",
        )
        .rule("block_covers_m", Guideline, "m_s == 1 or m_s <= tiles_m", "a block beyond the matrix is a smaller block")
        .rule("block_covers_n", Guideline, "n_s == 1 or n_s <= tiles_n", "a block beyond the matrix is a smaller block")
        .rule("depth", Guideline, "u == 4 or u < 2 * tiles_k", "deeper blocks than the reduction are the same block")
        .rule("cache_covers_m", Guideline, "m_l == 48 or m_l < 2 * m", "larger cache blocks are the same block")
        .rule("cache_covers_n", Guideline, "n_l == 48 or n_l < 2 * n", "larger cache blocks are the same block")
        .rule("panel_fits_l2", Guideline, "u <= 16 or 2 * panel_bytes <= l2_bytes", "a panel is read again and again")
        .rule("threads", Hardware, "t <= threads", "one thread a core")
        .rule("idle_threads", Guideline, "t == 1 or m * n * k >= 1000000", "only large products are worth more threads")
        .rule("split", Implementation, "t == 1 or t * 48 <= max(m, n)", "every thread has a block")
        .rule("addresses", Implementation, "max(lda, ldb, ldc) * 4 < 2 ** 31", "distances within a block fit 31 bits")
        .build()
}

/// What runs before anything is tuned: the largest block, a panel of B in half of the first-level cache and a block of A in half of the
/// second.
pub(super) fn default_point(space: &BoundSpace) -> Option<Point> {
    let int = |name| space.symbols().get(name).and_then(Value::as_int).unwrap_or(1);
    let (m, n, l1, l2) = (int("m"), int("n"), int("l1d_bytes"), int("l2_bytes"));
    let (m_s, n_s) = match (m, n) {
        (_, ..=16) => (3, 1),
        (..=16, _) => (1, 3),
        _ => (2, 2),
    };
    let u = (3 * l1 / 4 / (n_s * 1024)).max(4);
    let depth = u.min((int("k") * int("element") + 63) / 64).max(1);
    let m_l = l2 / 2 / (64 * depth);
    let descending = |most: i64| (1..=most.max(1)).rev().map(Value::Int).collect::<Vec<_>>();
    let within = |values: &[i64], most: i64| -> Vec<Value> {
        values.iter().rev().filter(|&&x| x <= most).map(|&x| Value::Int(x)).collect()
    };
    space.preferred_point(|param| match &*param.name {
        "m_s" => descending(m_s),
        "n_s" => descending(n_s),
        "u" => within(&DEPTH, u),
        "m_l" => within(&BLOCK, m_l),
        "n_l" => within(&BLOCK, 4096),
        "t" => descending(int("threads")),
        _ => Vec::new(),
    })
}
