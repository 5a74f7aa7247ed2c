//! The parameter space of the kernel, and the rules that make a configuration legal.
//!
//! A block of sums is `m_s` by `n_s` tiles of 16 by 16. `u` tiles of the reduction are packed at once, for `m_l` rows and `n_l` columns of C.
//! `t` threads divide the side that has more blocks. With `axis = n` the kernel solves the transposed problem, and all other parameters are those of that
//! problem: A is the operand that is woven, which is always packed, and B, with `pack_b = 0`, the one that is read in place.

use super::tile::REGISTERS;
use super::{ROW, SIDE};
use crate::config::Axis;
use crate::described::Described;
use std::sync::OnceLock;
use tilewright_core::expr::{Val, Value};
use tilewright_core::space::{BoundSpace, Param, ParamSpace, Point, RuleGroup, SpaceError, Values};

/// One value per parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Config {
    /// The side that is woven.
    pub(super) axis: Axis,
    /// Tiles of a block.
    pub(super) m_s: usize,
    pub(super) n_s: usize,
    /// Rows and columns of a cache block.
    pub(super) m_l: usize,
    pub(super) n_l: usize,
    /// Tiles.
    pub(super) u: usize,
    pub(super) t: usize,
    pub(super) pack_b: bool,
}

const SIZES: [&str; 7] = ["m_s", "n_s", "m_l", "n_l", "u", "t", "pack_b"];
const WORDS: [&str; 1] = ["axis"];
/// What a model sees: sizes, and flags at the end.
const FEATURES: [&str; 16] = [
    "m_s",
    "n_s",
    "m_l",
    "n_l",
    "u",
    "t",
    "tiles_m",
    "tiles_n",
    "tiles_k",
    "blocks",
    "panel_bytes",
    "block_bytes",
    "axis_n",
    "pack_b",
    "across_a",
    "along_b",
];
const FLAGS: usize = 4;

/// The space with the names that code reads.
pub(super) type Description = Described<{ SIZES.len() }, { WORDS.len() }, { FEATURES.len() }>;

/// The one there is.
pub(super) fn description() -> &'static Description {
    static DESCRIPTION: OnceLock<Description> = OnceLock::new();
    DESCRIPTION.get_or_init(|| Described::new("gemm.cpu-amx", space(), SIZES, WORDS, (FEATURES, FLAGS)))
}

impl Config {
    /// The parameters of a point; `None` for one of another space.
    pub(super) fn of(at: &Values<'_>) -> Option<Self> {
        let [m_s, n_s, m_l, n_l, u, t, pack_b] = description().sizes(at)?;
        let [axis] = description().words(at)?;
        let axis = if axis == Val::Str("n") { Axis::N } else { Axis::M };
        Some(Self { axis, m_s, n_s, m_l, n_l, u, t, pack_b: pack_b == 1 })
    }
}

const BLOCK: [i64; 10] = [48, 96, 192, 384, 512, 768, 1024, 2048, 4096, 8192];
const DEPTH: [i64; 9] = [4, 8, 12, 16, 24, 32, 64, 128, 256];
const THREADS: [i64; 15] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192];

fn space() -> Result<ParamSpace, SpaceError> {
    use RuleGroup::{Guideline, Hardware, Implementation};
    ParamSpace::builder()
        .param(Param::words("axis", ["m", "n"]))
        .param(Param::ints("pack_b", [0, 1]))
        .param(Param::ints("m_s", [1, 2, 3]))
        .param(Param::ints("n_s", [1, 2, 3]))
        .param(Param::ints("u", DEPTH))
        .param(Param::ints("m_l", BLOCK))
        .param(Param::ints("n_l", BLOCK))
        .param(Param::ints("t", THREADS))
        .define("axis_n", "1 if axis == 'n' else 0")
        .define("rows", "m if axis == 'm' else n")
        .define("columns", "n if axis == 'm' else m")
        .define("across_a", "not transpose_a if axis == 'm' else transpose_b")
        .define("along_b", "not transpose_b if axis == 'm' else transpose_a")
        .define("tiles_m", "(rows + 15) // 16")
        .define("tiles_n", "(columns + 15) // 16")
        .define("tiles_k", "(k * element + 63) // 64")
        .define("blocks", "((tiles_m + m_s - 1) // m_s) * ((tiles_n + n_s - 1) // n_s)")
        .define("panel_bytes", "1024 * n_s * min(u, tiles_k)")
        .define("block_bytes", "64 * min(m_l, rows) * min(u, tiles_k)")
        .rule("tiles", Hardware, "amx", "the host has no tile registers for these operands, or the system keeps them")
        .rule("single_product", Implementation, "batch == 1", "there is no code for batches")
        .rule(
            "registers",
            Hardware,
            &format!("m_s * n_s + m_s + n_s <= {REGISTERS}"),
            "sums and operands live in tile registers",
        )
        .rule(
            "pack_b",
            Implementation,
            "pack_b == 1 or (along_b and k * element % 64 == 0)",
            "tiles are read in place where their rows lie along the reduction, and are whole",
        )
        .rule("block_covers_m", Guideline, "m_s == 1 or m_s <= tiles_m", "a block beyond the matrix is a smaller block")
        .rule("block_covers_n", Guideline, "n_s == 1 or n_s <= tiles_n", "a block beyond the matrix is a smaller block")
        .rule("depth", Guideline, "u == 4 or u < 2 * tiles_k", "deeper blocks than the reduction are the same block")
        .rule("cache_covers_m", Guideline, "m_l == 48 or m_l < 2 * rows", "larger cache blocks are the same block")
        .rule("cache_covers_n", Guideline, "n_l == 48 or n_l < 2 * columns", "larger cache blocks are the same block")
        .rule("panel_fits_l2", Guideline, "u <= 16 or 2 * panel_bytes <= l2_bytes", "a panel is read again and again")
        .rule("threads", Hardware, "t <= threads", "one thread a core")
        .rule("idle_threads", Guideline, "t == 1 or m * n * k >= 1000000", "only large products are worth more threads")
        .rule("split", Implementation, "t == 1 or t * 48 <= max(m, n)", "every thread has a block")
        .rule(
            "workspace",
            Hardware,
            "t * (block_bytes + min(n_l, columns) * (64 * min(u, tiles_k) + 4 * rows)) <= memory_bytes // 2",
            "threads pack operands, and keep sums, in memory of their own",
        )
        .build()
}

/// What the default depends on: tiles along each side, bytes of caches.
struct Facts {
    tiles: [i64; 3],
    transposed: [bool; 2],
    caches: [i64; 2],
    whole: bool,
}

impl Facts {
    fn of(space: &BoundSpace) -> Self {
        let int = |name| space.symbols().get(name).and_then(Value::as_int).unwrap_or(1);
        let bytes = int("k") * int("element");
        let tiles = |extent: i64, of: i64| (extent + of - 1).div_euclid(of).max(1);
        Self {
            tiles: [tiles(int("m"), SIDE as i64), tiles(int("n"), SIDE as i64), tiles(bytes, ROW as i64)],
            transposed: ["transpose_a", "transpose_b"].map(|name| int(name) == 1),
            caches: ["l1d_bytes", "l2_bytes"].map(int),
            whole: bytes % ROW as i64 == 0,
        }
    }

    /// Whether tiles of an operand whose rows lie along the reduction are read in place: by few blocks, or by more where the operand is long.
    fn is_in_place(&self, (rows, columns): (i64, i64), along: bool) -> bool {
        along && self.whole && (rows <= 8 || rows <= 32 && columns >= 4 * rows)
    }

    /// The axis by which a long operand is read in place, or whose packing is cheaper, in cycles of a tile as they were measured on a Xeon
    /// with AMX: woven or copied as it lies, with a transposition, and with both; tiles of sums are turned where B is woven.
    fn axis(&self) -> Axis {
        const PLAIN: i64 = 24;
        const TRANSPOSED: i64 = 80;
        const BOTH: i64 = 110;
        const TURNED: i64 = 320;
        let ([m, n, k], [a, b]) = (self.tiles, self.transposed);
        if self.is_in_place((n, m), a) {
            return Axis::N;
        }
        if self.is_in_place((m, n), !b) {
            return Axis::M;
        }
        let woven = |along: bool| if along { TRANSPOSED } else { PLAIN };
        let rows = |along: bool| if along { PLAIN } else { BOTH };
        let by_m = k * (m * woven(a) + n * rows(!b));
        let by_n = k * (n * woven(!b) + m * rows(a)) + m * n * TURNED;
        if by_n < by_m { Axis::N } else { Axis::M }
    }
}

/// How a block of the reduction is cut by default: tiles, rows, and whether B is read in place.
fn cut(facts: &Facts, (rows, columns): (i64, i64), along: bool, n_s: i64) -> (i64, i64, bool) {
    let [l1, l2] = facts.caches;
    let block = |bytes: i64, u: i64| (bytes / (64 * u.min(facts.tiles[2]))).max(BLOCK[0]);
    if facts.is_in_place((rows, columns), along) {
        // All of A, as deep as fits.
        let u = (l2 / (rows * 1024)).max(4);
        return (u, (2 * SIDE as i64 * rows - 1).max(BLOCK[0]), true);
    }
    if rows.max(columns) <= 4 {
        // The sums stay in few blocks: seldom written, and memory is read in long runs.
        return (64, block(l2 / 2, 64), false);
    }
    if columns <= 8 {
        // A passes by once: it is multiplied soon after it was packed.
        return (8, block(4 * l1, 8), false);
    }
    let u = (3 * l1 / 4 / (n_s * 1024)).max(4);
    (u, block(l2 / 2, u), false)
}

/// What runs before anything is tuned: the largest block, a panel of B in most of the first-level cache and a block of A in half of the
/// second, but for thin and for small products.
pub(super) fn default_point(space: &BoundSpace) -> Option<Point> {
    let facts = Facts::of(space);
    let (axis, [m, n, _]) = (facts.axis(), facts.tiles);
    let (rows, columns, along) =
        if axis == Axis::M { (m, n, !facts.transposed[1]) } else { (n, m, facts.transposed[0]) };
    let (m_s, n_s) = match (rows, columns) {
        (_, 1) => (3, 1),
        (1, _) => (1, 3),
        _ => (2, 2),
    };
    let (u, m_l, in_place) = cut(&facts, (rows, columns), along, n_s);
    let descending = |most: i64| (1..=most.max(1)).rev().map(Value::Int).collect::<Vec<_>>();
    let within = |values: &[i64], most: i64| -> Vec<Value> {
        values.iter().rev().filter(|&&x| x <= most).map(|&x| Value::Int(x)).collect()
    };
    let threads = space.symbols().get("threads").and_then(Value::as_int).unwrap_or(1);
    space.preferred_point(|param| match &*param.name {
        "axis" => vec![if axis == Axis::M { "m".into() } else { "n".into() }],
        "pack_b" => vec![Value::Int(i64::from(!in_place))],
        "m_s" => descending(m_s),
        "n_s" => descending(n_s),
        "u" => within(&DEPTH, u),
        "m_l" => within(&BLOCK, m_l),
        "n_l" => within(&BLOCK, 4096),
        "t" => descending(threads),
        _ => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::CpuAmx;
    use super::*;
    use crate::proofs::device;
    use std::sync::Arc;
    use tilewright_core::dtype::DType;
    use tilewright_core::element::ElementTypes;
    use tilewright_core::problem::{Bound, Problem};
    use tilewright_ops::gemm::{GemmInput, Layout};

    fn default(m: usize, n: usize, k: usize, layout: usize) -> Config {
        let mut device = device(64, 1);
        device
            .facts
            .extend([("amx_bf16", 1), ("l1d_bytes", 48 << 10), ("l2_bytes", 2 << 20)].map(|(n, x)| (n.into(), x)));
        let input = GemmInput::new(m, n, k, ElementTypes::all(DType::Bf16), Layout::ALL[layout]);
        let problem = Bound::new(Arc::new(CpuAmx::new()), Arc::new(device), input).unwrap();
        let point = problem.default_point().unwrap();
        problem.plan(&problem.space().check(&point).unwrap()).blueprint.config
    }

    const NN: usize = 0;
    const NT: usize = 1;
    const TN: usize = 2;
    const TT: usize = 3;

    #[test]
    fn the_operand_that_is_cheap_to_weave_is_woven() {
        assert_eq!(default(2000, 2000, 2000, NN).axis, Axis::M);
        // Where both would have to be transposed, unless there is so much of C that turning it costs more.
        assert_eq!((default(200, 200, 4000, TT).axis, default(2000, 2000, 2000, TT).axis), (Axis::N, Axis::M));
        // Of two that lie alike, the smaller one is transposed.
        assert_eq!((default(2560, 32, 2560, TN).axis, default(32, 2560, 2560, TN).axis), (Axis::N, Axis::M));
        assert_eq!((default(2560, 32, 2560, NT).axis, default(32, 2560, 2560, NT).axis), (Axis::M, Axis::N));
    }

    #[test]
    fn rows_are_read_in_place_by_few_blocks_and_where_they_are_whole() {
        let thin = default(2560, 32, 2560, TN);
        assert!(!thin.pack_b && thin.u == 128 && thin.m_l == 48, "{thin:?}");
        assert!(default(2560, 32, 2559, TN).pack_b);
        assert!(!default(2560, 320, 2560, TN).pack_b && default(2560, 640, 2560, TN).pack_b);
    }

    #[test]
    fn blocks_of_the_reduction_follow_the_shape() {
        let [large, thin, deep] =
            [default(2048, 2048, 2048, NT), default(2560, 64, 2560, NN), default(64, 64, 60000, NT)];
        assert_eq!((large.u, large.m_l), (16, 768));
        assert_eq!((thin.u, thin.m_l), (8, 384));
        assert_eq!(deep.u, 64);
    }
}
