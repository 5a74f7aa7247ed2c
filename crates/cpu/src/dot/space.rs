//! The parameter space of the kernel, and the rules that make a configuration legal.
//!
//! `m_s` by `n_s` elements of C are summed together, `k_s` vectors of k in a turn of the loop, in `k_l` independent sets. With
//! `order = row` the rows of A stay in the first-level cache while the columns of B stream past, with `column` the other way round.
//! Of `t` threads `t_m` divide the rows, the rest the columns. A block of `u` elements of k is gone through before the next. With
//! `prefetch` 1 a tile asks for what the next one reads of the operand that streams past, with 2 for its share of what stays next of the
//! other one. A block of an operand that lies across k is transposed before it is used.

use super::tile::free;
use crate::codegen::vector::Width;
use crate::described::Described;
use std::sync::OnceLock;
use tilewright_core::space::{Param, ParamSpace, RuleGroup, SpaceError, Values};

/// One value per parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Config {
    /// Bytes of a vector.
    pub(super) vec: usize,
    pub(super) m_s: usize,
    pub(super) n_s: usize,
    pub(super) k_s: usize,
    pub(super) k_l: usize,
    /// Elements of a block of k, whose operands stay in a cache.
    pub(super) u: usize,
    pub(super) t_m: usize,
    pub(super) t_n: usize,
    /// Whether the rows of A stay.
    pub(super) rows_stay: bool,
    pub(super) prefetch: Prefetch,
}

/// What a tile prefetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Prefetch {
    None,
    /// What the next tile reads of the operand that streams past.
    Streams,
    /// What stays next of the other one.
    Stays,
}

const SIZES: [&str; 10] = ["vec", "m_s", "n_s", "k_s", "k_l", "u", "t_m", "t_n", "rows_stay", "prefetch"];
/// What a model sees: sizes, and a flag.
const FEATURES: [&str; 15] = [
    "m_s",
    "n_s",
    "k_s",
    "k_l",
    "blocks",
    "t_m",
    "t_n",
    "lanes",
    "sums",
    "tiles_m",
    "tiles_n",
    "vectors",
    "thread_tiles",
    "prefetch",
    "rows_stay",
];

/// The space with the names that code reads.
pub(super) type Description = Described<{ SIZES.len() }, 0, { FEATURES.len() }>;

/// The one there is.
pub(super) fn description() -> &'static Description {
    static DESCRIPTION: OnceLock<Description> = OnceLock::new();
    DESCRIPTION.get_or_init(|| Described::new("gemm.cpu-dot", space(), SIZES, [], (FEATURES, 1)))
}

impl Config {
    /// The parameters of a point; `None` for one of another space.
    pub(super) fn of(at: &Values<'_>) -> Option<Self> {
        let values = description().sizes(at)?;
        let [vec, m_s, n_s, k_s, k_l, u, t_m, t_n, rows_stay, prefetch] = values;
        let prefetch = [Prefetch::None, Prefetch::Streams, Prefetch::Stays].get(prefetch).copied()?;
        Some(Self { vec, m_s, n_s, k_s, k_l, u, t_m, t_n, rows_stay: rows_stay == 1, prefetch })
    }
}

/// Blocks of k, in elements.
pub(super) const DEPTH: [i64; 10] = [128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];
const THREADS: [i64; 15] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192];

fn space() -> Result<ParamSpace, SpaceError> {
    use RuleGroup::{Guideline, Hardware, Implementation};
    let sums = |width: Width| width.registers() - free(width);
    let most = format!("{} if vec == 64 else {}", sums(Width::Z), sums(Width::Y));
    let held = format!("{} if vec == 64 else {}", free(Width::Z), free(Width::Y));
    ParamSpace::builder()
        .param(Param::ints("vec", [16, 32, 64]))
        .param(Param::ints("m_s", 1..=8))
        .param(Param::ints("n_s", 1..=8))
        .param(Param::ints("k_l", [1, 2, 4, 8]))
        .param(Param::ints("k_s", [1, 2, 4, 8]))
        .param(Param::ints("u", DEPTH))
        .param(Param::ints("t", THREADS))
        .param(Param::ints("t_m", THREADS))
        .param(Param::words("order", ["row", "column"]))
        .param(Param::ints("prefetch", [0, 1, 2]))
        .define("along_a", "transpose_a or (m == 1 and lda == 1)")
        .define("along_b", "not transpose_b or (n == 1 and ldb == 1)")
        .define("copied", "m if not along_a else (n if not along_b else 0)")
        .define("lanes", "vec // element")
        .define("most_sums", &most)
        .define("held", &held)
        .define("sums", "m_s * n_s * k_l")
        .define("tiles_m", "(m + m_s - 1) // m_s")
        .define("tiles_n", "(n + n_s - 1) // n_s")
        .define("vectors", "(k + lanes - 1) // lanes")
        .define("blocks", "max(1, (k + u - 1) // u)")
        .define("t_n", "t // t_m")
        .define("rows_stay", "1 if order == 'row' else 0")
        .define("thread_tiles", "((tiles_m + t_m - 1) // t_m) * ((tiles_n + t_n - 1) // t_n)")
        .rule("single_product", Implementation, "batch == 1", "there is no code for batches")
        .rule("vector_width", Hardware, "vec <= vec_max", "the host has no wider vectors")
        .rule(
            "widest_vectors",
            Guideline,
            "vec == vec_max or k * element < vec_max",
            "narrower vectors only pay where the widest would be mostly masked",
        )
        .rule("tile_covers_m", Guideline, "m_s <= max(m, 1)", "a tile beyond the matrix is a smaller tile")
        .rule("tile_covers_n", Guideline, "n_s <= max(n, 1)", "a tile beyond the matrix is a smaller tile")
        .rule("registers", Hardware, "sums <= most_sums", "sums live in registers")
        .rule("operands", Hardware, "min(m_s, n_s) + 1 <= held", "operands live in registers")
        .rule("unroll", Implementation, "k_s % k_l == 0", "a turn is whole sets of sums")
        .rule(
            "short_unroll",
            Guideline,
            "k_s == k_l or k_s * lanes <= k",
            "unrolling beyond the reduction does nothing",
        )
        .rule("short_sets", Guideline, "k_l == 1 or k_l * lanes <= k", "sets beyond the reduction stay empty")
        .rule("depth", Guideline, "u == 128 or u < 2 * k", "deeper blocks than the reduction are the same block")
        .rule("threads", Hardware, "t <= threads", "one thread a core")
        .rule("threads_m", Implementation, "t % t_m == 0", "the threads that m leaves divide n")
        .rule("idle_threads", Guideline, "t == 1 or m * n * k >= 100000", "only large products are worth more threads")
        .rule("split_m", Guideline, "t_m == 1 or t_m <= tiles_m", "every thread has a tile")
        .rule("split_n", Guideline, "t_n == 1 or t_n <= tiles_n", "every thread has a tile")
        .rule(
            "workspace",
            Hardware,
            "t * copied * min(u, k) * element <= memory_bytes // 2",
            "each thread copies in memory of its own",
        )
        .rule(
            "addresses",
            Implementation,
            "(16 if prefetch == 1 else 8) * max(lda, ldb, ldc) * element < 2 ** 31",
            "distances within a tile are 31-bit displacements",
        )
        .build()
}
