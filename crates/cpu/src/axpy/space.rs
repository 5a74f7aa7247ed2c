//! The parameter space of the kernel, and the rules that make a configuration legal.
//!
//! `m_s` vectors along the long side of C are computed in a turn of the loop, of `k_s` columns of the matrix, and `m_l` elements of that
//! side stay in the first-level cache while all columns pass. `prefetch` counts lines ahead within a column. `t` threads divide the
//! long side.

use super::tile::most;
use crate::LINE;
use crate::codegen::vector::Width;
use crate::described::Described;
use crate::kernel::SHARED_BY_FEW;
use crate::sets::{PAGE, is_half_line};
use std::sync::OnceLock;
use tilewright_core::expr::Value;
use tilewright_core::space::{BoundSpace, Param, ParamSpace, Point, RuleGroup, SpaceError, Values};

/// One value per parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Config {
    /// Bytes of a vector.
    pub(super) vec: usize,
    /// Vectors of a turn.
    pub(super) m_s: usize,
    /// Columns of a group.
    pub(super) k_s: usize,
    /// Vectors of a block.
    pub(super) block: usize,
    /// Lines.
    pub(super) prefetch: usize,
    pub(super) t: usize,
}

const SIZES: [&str; 6] = ["vec", "m_s", "k_s", "block", "prefetch", "t"];
/// What a model sees: all are sizes.
const FEATURES: [&str; 12] = [
    "m_s",
    "k_s",
    "prefetch",
    "t",
    "lanes",
    "across",
    "vectors",
    "block",
    "blocks",
    "groups",
    "registers",
    "block_bytes",
];

/// The space with the names that code reads.
pub(super) type Description = Described<{ SIZES.len() }, 0, { FEATURES.len() }>;

/// The one there is.
pub(super) fn description() -> &'static Description {
    static DESCRIPTION: OnceLock<Description> = OnceLock::new();
    DESCRIPTION.get_or_init(|| Described::new("gemm.cpu-axpy", space(), SIZES, [], (FEATURES, 0)))
}

impl Config {
    /// The parameters of a point; `None` for one of another space.
    pub(super) fn of(at: &Values<'_>) -> Option<Self> {
        let [vec, m_s, k_s, block, prefetch, t] = description().sizes(at)?;
        Some(Self { vec, m_s, k_s, block, prefetch, t })
    }
}

/// Columns of the matrix that are added together.
const GROUPS: [i64; 8] = [1, 2, 3, 4, 6, 8, 12, 16];
const BLOCKS: [i64; 12] = [128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072, 262_144];
const THREADS: [i64; 15] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192];

fn space() -> Result<ParamSpace, SpaceError> {
    use RuleGroup::{Guideline, Hardware, Implementation};
    let most = format!("{} if vec == 64 else {}", most(Width::Z), most(Width::Y));
    ParamSpace::builder()
        .param(Param::ints("vec", [16, 32, 64]))
        .param(Param::ints("k_s", GROUPS))
        .param(Param::ints("m_s", [1, 2, 3, 4, 5, 6, 7, 8, 12, 16]))
        .param(Param::ints("m_l", BLOCKS))
        .param(Param::ints("t", THREADS))
        .param(Param::ints("prefetch", [0, 4, 8, 16, 32, 64]))
        // C has no more columns than rows, or is a single row.
        .define("long", "max(m, n, 1)")
        .define("across", "max(min(m, n), 1)")
        .define("lanes", "vec // element")
        .define("most_registers", &most)
        .define("registers", "across * (m_s + k_s)")
        .define("vectors", "(long + lanes - 1) // lanes")
        .define("block", "m_l // lanes")
        .define("blocks", "(vectors + block - 1) // block")
        .define("groups", "(k + k_s - 1) // k_s")
        .define("block_bytes", "min(m_l, long) * across * element")
        .rule("single_product", Implementation, "batch == 1", "there is no code for batches")
        .rule("vector_width", Hardware, "vec <= vec_max", "the host has no wider vectors")
        .rule(
            "widest_vectors",
            Guideline,
            "vec == vec_max or long * element < vec_max",
            "narrower vectors only pay where the widest would be mostly masked",
        )
        .rule("short_groups", Guideline, "k_s <= max(k, 1)", "columns beyond the reduction are a smaller group")
        .rule("registers", Hardware, "registers <= most_registers", "sums and scalars live in registers")
        .rule("turn_covers", Guideline, "m_s <= vectors", "vectors beyond the matrix are a smaller turn")
        .rule("turns", Implementation, "m_s <= block", "a block has a turn")
        .rule("block_covers", Guideline, "m_l == 128 or m_l < 2 * long", "a block beyond the matrix is the same block")
        .rule("threads", Hardware, "t <= threads", "one thread a core")
        .rule(
            "idle_threads",
            Guideline,
            "t == 1 or m * n * k * element >= 400000",
            "only large products are worth more threads",
        )
        .rule("split", Implementation, "t == 1 or t <= vectors", "every thread has a vector")
        .rule(
            "addresses",
            Implementation,
            "max(k_s, 4) * max(lda, ldb, ldc) * element < 2 ** 30",
            "distances within a group are 31-bit displacements",
        )
        .build()
}

/// Sums that hide the latency of their chains, and vectors of a turn that need no more.
const SUMS: i64 = 4;
/// Columns of a group beyond which streams get in each other's way.
const COLUMNS: usize = 8;

/// Bytes from a column to the next up to which lines are asked for a page ahead, behind the end of the column, where vectors are half a line: by the
/// last columns of a group, in the next group. On a Zen 3 random matrices of such columns from beyond the second-level cache took 0.85 to 0.95 of
/// the time in the mean, those from memory 0.7 beside two columns of C.
const SHORT_COLUMN: i64 = 2048;

/// As many columns of a group as registers hold the scalars of beside enough sums, of the widest vectors in bytes: a value of `k_s`.
pub(super) fn most_columns(across: usize, vector: usize) -> usize {
    let registers = most(if vector >= 64 { Width::Z } else { Width::Y }) / across.max(1);
    let columns = registers.saturating_sub((SUMS as usize).div_ceil(across.max(1))).clamp(1, COLUMNS);
    GROUPS.into_iter().rev().map(|group| group as usize).find(|group| *group <= columns).unwrap_or(1)
}

/// What runs before anything is tuned: as many columns a group as registers hold the scalars of beside enough sums. While the matrix
/// stays in the second-level cache, half of the first one is for a block of C, or a quarter where vectors are lines and a block has
/// several columns. For a matrix from beyond the product waits anyway: a small part of the second cache keeps C, so that runs are long, and
/// lines are asked for early.
pub(super) fn default_point(space: &BoundSpace) -> Option<Point> {
    let int = |name| space.symbols().get(name).and_then(Value::as_int).unwrap_or(1);
    let (across, es) = (int("m").min(int("n")).max(1), int("element"));
    let columns = most_columns(across as usize, int("vec_max") as usize) as i64;
    let (threads, matrix) = (int("threads").max(1), int("m").max(int("n")).saturating_mul(int("k") * es));
    // Columns of C that share lines where one thread ends and the next one begins go back and forth between these, for each group.
    let shares_lines = across > 1 && int("ldc") * es % LINE as i64 != 0;
    let is_short = int("m").max(int("n")) * es < PAGE as i64 || matrix <= int("l2_bytes") / 4;
    let threads = if shares_lines && is_short { 1 } else { threads };
    // Of half as much again as the second-level cache holds most stays there beside a slow last-level cache: near blocks took down to 0.7 of the
    // time.
    let reach = if int("l3_bytes") > SHARED_BY_FEW as i64 && int("vec_max") >= LINE as i64 { 3 } else { 2 };
    let far = 2 * (matrix / threads) > reach * int("l2_bytes");
    let near = int("l1d_bytes") / if across > 1 && int("vec_max") >= 64 { 4 } else { 2 };
    let kept = if far { int("l2_bytes") / 8 } else { near } / (across * es);
    let pitch = es * if int("m") == 1 { int("ldb") } else { int("lda") };
    let ends_soon = is_half_line(int("vec_max") as usize) && pitch <= SHORT_COLUMN;
    let ahead = if ends_soon { 64 } else { 8 };
    let descending = |most: i64| (1..=most.max(1)).rev().map(Value::Int).collect::<Vec<_>>();
    let blocks = BLOCKS.iter().rev().filter(|&&block| block <= kept);
    space.preferred_point(|param| match &*param.name {
        "vec" => [64, 32, 16].map(Value::Int).to_vec(),
        "k_s" => descending(columns),
        "m_s" => descending(SUMS),
        "m_l" => blocks.clone().map(|&block| Value::Int(block)).collect(),
        "t" => descending(threads),
        "prefetch" => vec![Value::Int(if far { ahead } else { 0 })],
        _ => Vec::new(),
    })
}
