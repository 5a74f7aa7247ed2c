//! The parameter space of the kernel, and the rules that make a configuration legal.
//!
//! `m_s` by `n_s` elements of C are summed together, `k_s` vectors of k in a turn of the loop, in `k_l` independent sets. With
//! `order = row` the rows of A stay in the first-level cache while the columns of B stream past, with `column` the other way round.
//! Of `t` threads `t_m` divide the rows, the rest the columns. With `prefetch` a tile asks for what the next one reads of the operand
//! that streams past.

use super::tile::free;
use crate::LINE;
use crate::codegen::vector::Width;
use crate::described::Described;
use std::sync::OnceLock;
use tilewright_core::expr::Value;
use tilewright_core::space::{BoundSpace, Param, ParamSpace, Point, RuleGroup, SpaceError, Values};

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
    /// Whether what the next tile reads of the operand that streams is prefetched.
    pub(super) prefetch: bool,
}

const SIZES: [&str; 10] = ["vec", "m_s", "n_s", "k_s", "k_l", "u", "t_m", "t_n", "rows_stay", "prefetch"];
/// What a model sees: sizes, and two flags.
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
    "rows_stay",
    "prefetch",
];

/// The space with the names that code reads.
pub(super) type Description = Described<{ SIZES.len() }, 0, { FEATURES.len() }>;

/// The one there is.
pub(super) fn description() -> &'static Description {
    static DESCRIPTION: OnceLock<Description> = OnceLock::new();
    DESCRIPTION.get_or_init(|| Described::new("gemm.cpu-dot", space(), SIZES, [], (FEATURES, 2)))
}

impl Config {
    /// The parameters of a point; `None` for one of another space.
    pub(super) fn of(at: &Values<'_>) -> Option<Self> {
        let values = description().sizes(at)?;
        let [vec, m_s, n_s, k_s, k_l, u, t_m, t_n, rows_stay, prefetch] = values;
        Some(Self { vec, m_s, n_s, k_s, k_l, u, t_m, t_n, rows_stay: rows_stay == 1, prefetch: prefetch == 1 })
    }
}

/// Blocks of k, in elements.
const DEPTH: [i64; 10] = [128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];
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
        .param(Param::ints("prefetch", [0, 1]))
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
            "addresses",
            Implementation,
            "8 * max(lda, ldb, ldc) * element < 2 ** 31",
            "distances within a tile are 31-bit displacements",
        )
        .build()
}

/// What runs before anything is tuned: a tile that is as square as C allows, enough sets of sums to hide the latency of their chains,
/// and the side stays of which the other is then read least.
pub(super) fn default_point(space: &BoundSpace) -> Option<Point> {
    let size = |name, usual| space.symbols().get(name).and_then(Value::as_int).unwrap_or(usual);
    let int = |name| size(name, 1);
    let (m, n) = (int("m").max(1), int("n").max(1));
    let sums = if int("vec_max") >= 64 { 24 } else { 11 };
    let reduction = int("k").saturating_mul(int("element"));
    let (l1, l2) = (size("l1d_bytes", 32 << 10), size("l2_bytes", 512 << 10));
    // Half-cycles of reading a vector of the longer side once more, where a tile has so many of its columns or rows. Where vectors are less
    // than a line there are sums for less than half as much, and nobody has measured what that trades for.
    let is_line = int("vec_max") >= LINE as i64;
    let again = |rows: i64| {
        let is_within = |rows: i64, bytes: i64| rows.saturating_mul(reduction) <= bytes;
        if !is_line || is_within(rows + m.min(n), l1) {
            0
        } else if is_within(m.max(n), l2) {
            1
        } else {
            4
        }
    };
    let (m_s, n_s) = square(m, n, sums, again);
    let sets = (8 / (m_s * n_s)).max(1);
    let descending = |most: i64| (1..=most.max(1)).rev().map(Value::Int).collect::<Vec<_>>();
    let (t, rows) = (int("threads"), m >= n);
    let (tiles_m, tiles_n) = ((m + m_s - 1) / m_s, (n + n_s - 1) / n_s);
    let is_cut = if rows { tiles_n > 1 } else { tiles_m > 1 };
    let near = l2 / 2;
    // The longer side is read once, and in one run where all of the other is a tile; but where neither side stays near, as little is read as
    // can be.
    let rows_stay = match tiles_m > 1 && tiles_n > 1 && m.min(n) * reduction > near {
        true => tiles_m * n + m <= tiles_n * m + n,
        false => rows == is_cut,
    };
    let line = LINE as i64;
    // The narrowest vector that holds a column of k; of lines the narrowest of all, whose lanes are summed soonest.
    let fits = |vec: &i64| reduction <= *vec || (int("vec_max") >= line && reduction < line);
    let narrow = [16, 32].into_iter().filter(fits);
    // The largest block of which the shorter side stays near, else the smallest.
    let stays = |u: &i64| u.saturating_mul(m.min(n) * int("element")) <= near;
    let depth: Vec<Value> = DEPTH.into_iter().rev().filter(stays).chain(DEPTH).map(Value::Int).collect();
    // A processor runs ahead in long rows by itself; and where C has two rows and columns or more, asking for the next tile was slower.
    let prefetch = i64::from(m.min(n) == 1 && reduction <= SHORT_ROW);
    space.preferred_point(|param| match &*param.name {
        "vec" => narrow.clone().chain([64, 32, 16]).map(Value::Int).collect(),
        "m_s" => descending(m_s),
        "n_s" => descending(n_s),
        "k_l" => descending(sets),
        "k_s" => descending(sets.max(2)),
        "u" => depth.clone(),
        "t" => descending(t),
        "t_m" => descending(if rows { t } else { 1 }),
        "order" => vec![Value::from(if rows_stay { "row" } else { "column" })],
        "prefetch" => vec![Value::from(prefetch)],
        _ => Vec::new(),
    })
}

/// Longest row in bytes that ends before a processor has run ahead in it.
const SHORT_ROW: i64 = 2048;

/// Sides of the tile that takes the fewest cycles a vector of k: of two units for multiply-adds, of two for loads, one for what each tile
/// costs beside, and `again` for each further time that a vector of the longer side comes from beyond the first-level cache. Of equals the
/// larger.
fn square(m: i64, n: i64, sums: i64, again: impl Fn(i64) -> i64) -> (i64, i64) {
    let sides = (1..=m.min(8)).flat_map(|m_s| (1..=n.min(8)).map(move |n_s| (m_s, n_s)));
    let fits = |&(m_s, n_s): &(i64, i64)| m_s * n_s <= sums && m_s.min(n_s) <= 4;
    let half_cycles = |&(m_s, n_s): &(i64, i64)| {
        let (along, across) = ((m + m_s - 1) / m_s, (n + n_s - 1) / n_s);
        let each = (m * n).max(along * across).max(m * across + n * along);
        let (long, times, rows) = if m >= n { (m, across, m_s) } else { (n, along, n_s) };
        (each + 2 * along * across + (times - 1) * long * again(rows), -(m_s * n_s))
    };
    sides.filter(fits).min_by_key(half_cycles).unwrap_or((1, 1))
}

#[cfg(test)]
mod tests {
    use crate::CpuDot;
    use crate::proofs::device;
    use std::sync::Arc;
    use tilewright_core::dtype::DType;
    use tilewright_core::problem::{Bound, Problem};
    use tilewright_ops::gemm::{GemmInput, Layout};

    /// Of a default: the sides of the tile and the order.
    fn chosen(m: usize, n: usize, k: usize) -> [String; 3] {
        let input = GemmInput::new(m, n, k, DType::F32, Layout::Tn);
        let problem = Bound::new(Arc::new(CpuDot::new()), Arc::new(device(64, 1)), input).unwrap();
        let config = problem.space().config(&problem.default_point().unwrap());
        ["m_s", "n_s", "order"].map(|name| config.get(name).unwrap().to_string())
    }

    #[test]
    fn a_side_from_beyond_the_first_level_cache_is_read_once_where_a_tile_may_have_all_of_the_other() {
        let tile = |m, n, k| chosen(m, n, k)[..2].join(" ");
        assert_eq!([tile(7, 756, 6144), tile(756, 7, 6144)], ["7 3", "3 7"]);
        assert_eq!([tile(192, 5, 1130), tile(192, 5, 200)], ["4 5", "8 3"]);
        // Where it takes two tiles, no more than these.
        assert_eq!(tile(9, 500, 3000), "6 4");
    }

    #[test]
    fn what_stays_near_is_read_least() {
        let order = |m, n, k| chosen(m, n, k)[2].clone();
        // Three tiles along one side and five along the other: what streams past is read three times.
        assert_eq!((order(17, 19, 32_769), order(19, 17, 32_769)), ("row".into(), "column".into()));
        // Both sides in the second-level cache: the longer side is read once.
        assert_eq!((order(17, 19, 1000), order(19, 17, 1000)), ("column".into(), "row".into()));
    }
}
