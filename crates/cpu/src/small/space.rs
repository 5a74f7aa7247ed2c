//! The parameter space of the kernel, and the rules that make a configuration legal.
//!
//! Names and groups are those of `gemm.cpu`: with `axis = n` the kernel solves the transposed problem, and `m_s` and `pack_a` always
//! belong to the side that vectors run along.

use crate::codegen::vector::Width;
use crate::config::Axis;
use crate::described::Described;
use std::sync::OnceLock;
use tilewright_core::expr::Val;
use tilewright_core::space::{Param, ParamSpace, RuleGroup, SpaceError, Values};

/// One value per parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Config {
    /// The dimension that vectors run along.
    pub(super) axis: Axis,
    /// Bytes of the widest vectors.
    pub(super) vec: usize,
    /// Vectors of a register tile.
    pub(super) vectors: usize,
    /// Register tile across vectors, in elements.
    pub(super) n_s: usize,
    /// Accumulator sets that k is dealt to.
    pub(super) k_l: usize,
    /// Steps of k that follow each other without a jump.
    pub(super) k_s: usize,
    /// Whether the side along vectors is transposed into a panel first.
    pub(super) packs: bool,
    /// Whether tiles of one kind are one piece of code, in a loop.
    pub(super) loops: bool,
    /// Whether a tile across vectors stays while those along them go by.
    pub(super) broadcast: bool,
    /// Whether the next product of a batch is fetched meanwhile, or of a single product the next tile of C.
    pub(super) prefetch: bool,
    /// Threads, among which the products of a batch are divided.
    pub(super) t: usize,
}

const SIZES: [&str; 10] = ["vec", "vectors", "n_s", "k_l", "k_s", "pack_a", "loops", "broadcast", "prefetch", "t"];

/// What a model sees: sizes, then flags.
const FEATURES: [&str; 19] = [
    "m_s",
    "n_s",
    "k_l",
    "k_s",
    "t",
    "lanes",
    "vectors",
    "accumulators",
    "rows",
    "columns",
    "tiles_m",
    "tiles_n",
    "instructions",
    "products",
    "axis_n",
    "pack_a",
    "loops",
    "broadcast",
    "prefetch",
];
const FLAGS: usize = 5;

/// The space with the names that code reads.
pub(super) type Description = Described<{ SIZES.len() }, 1, { FEATURES.len() }>;

/// The one there is.
pub(super) fn description() -> &'static Description {
    static DESCRIPTION: OnceLock<Description> = OnceLock::new();
    DESCRIPTION.get_or_init(|| Described::new("gemm.cpu-small", space(), SIZES, ["axis"], (FEATURES, FLAGS)))
}

impl Config {
    /// The parameters of a point; `None` for one of another space.
    pub(super) fn of(at: &Values<'_>) -> Option<Self> {
        let names = description();
        let [vec, vectors, n_s, k_l, k_s, packs, loops, broadcast, prefetch, t] = names.sizes(at)?;
        let [axis] = names.words(at)?;
        let axis = if axis == Val::Str("n") { Axis::N } else { Axis::M };
        let [packs, loops, broadcast, prefetch] = [packs, loops, broadcast, prefetch].map(|flag| flag == 1);
        Some(Self { axis, vec, vectors, n_s, k_l, k_s, packs, loops, broadcast, prefetch, t })
    }
}

/// Largest products, in multiply-adds, and longest sides.
pub(crate) const SMALL_WORK: usize = 1 << 21;
pub(crate) const SMALL_SIDE: usize = 512;

/// Register tile along vectors, in elements; a rule asks for whole vectors.
pub(super) const VECTOR_TILE: [i64; 10] = [2, 4, 6, 8, 12, 16, 24, 32, 48, 64];
/// Register tile across vectors, in elements.
pub(super) const BROADCAST_TILE: [i64; 20] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 20, 22, 24, 28];
const THREADS: [i64; 15] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192];

fn space() -> Result<ParamSpace, SpaceError> {
    use RuleGroup::{Guideline, Hardware, Implementation};
    // AVX-512's encodings reach 32 registers at every width.
    let registers =
        format!("{} if vec_max == {} else {}", Width::Z.registers(), Width::Z.bytes(), Width::Y.registers());
    ParamSpace::builder()
        .param(Param::words("axis", ["m", "n"]))
        .param(Param::ints("vec", [16, 32, 64]))
        .param(Param::ints("m_s", VECTOR_TILE))
        .param(Param::ints("n_s", BROADCAST_TILE))
        .param(Param::ints("k_l", [1, 2, 4]))
        .param(Param::ints("pack_a", [0, 1]))
        .param(Param::ints("k_s", [1, 2, 4, 8, 16, 32, 64]))
        .param(Param::ints("loops", [0, 1]))
        .param(Param::words("order", ["vector", "broadcast"]))
        .param(Param::ints("prefetch", [0, 1]))
        .param(Param::ints("t", THREADS))
        .define("broadcast", "1 if order == 'broadcast' else 0")
        .define("axis_n", "1 if axis == 'n' else 0")
        .define("rows", "m if axis == 'm' else n")
        .define("columns", "n if axis == 'm' else m")
        // The neighbours of a single step touch, whichever way it is stored.
        .define("tight_a", "k == 1 and lda == 1")
        .define("tight_b", "k == 1 and ldb == 1")
        .define("contiguous_a", "not transpose_a or tight_a if axis == 'm' else transpose_b or tight_b")
        .define("lanes", "vec // element")
        .define("vectors", "m_s // lanes")
        .define("registers", &registers)
        .define("accumulators", "vectors * n_s * k_l")
        .define("products", "batch")
        .define("tiles_m", "(rows + m_s - 1) // m_s")
        .define("tiles_n", "(columns + n_s - 1) // n_s")
        .define("kinds", "min(tiles_m, 3) * min(tiles_n, 2) if loops == 1 else tiles_m * tiles_n")
        .define("steps", "k if k < 2 * k_s else k_s + k % k_s")
        .define("instructions", "kinds * (steps * (vectors * n_s + vectors + n_s) + 3 * vectors * n_s)")
        .rule(
            "small",
            Guideline,
            &format!("m * n * k <= {SMALL_WORK} and max(m, n, k) <= {SMALL_SIDE}"),
            "operands of larger products are worth packing, and more than one thread",
        )
        .rule("vector_width", Hardware, "vec <= vec_max", "the host has no wider vectors")
        .rule("whole_vectors", Implementation, "m_s % lanes == 0", "the side along vectors takes whole vectors")
        .rule("vectors", Implementation, "vectors <= 4", "there is code for up to four vectors")
        .rule(
            "registers",
            Hardware,
            "accumulators + max(min(vectors, n_s) + 1, 4) <= registers",
            "accumulators and operands live in registers",
        )
        .rule(
            "tile_covers_rows",
            Guideline,
            "m_s < max(rows, 1) + lanes",
            "a tile beyond the matrix is a smaller tile under another name",
        )
        .rule("tile_covers_columns", Guideline, "n_s <= max(columns, 1)", "a tile beyond the matrix is a smaller tile")
        .rule("sets", Implementation, "k_l == 1 or k_l <= k", "a set of accumulators has a step of its own")
        .rule(
            "pack_a",
            Implementation,
            "pack_a == 1 or contiguous_a",
            "vectors are loaded from memory that is contiguous along them",
        )
        .rule("copy", Implementation, "pack_a == 0 or not contiguous_a", "only what is transposed is copied")
        .rule(
            "unroll",
            Implementation,
            "k_s % k_l == 0 or k_s >= k",
            "a turn deals whole rounds to the accumulator sets",
        )
        .rule(
            "short_unroll",
            Guideline,
            "k_s == 1 or k_s < 2 * max(k, 1)",
            "unrolling beyond the reduction does nothing",
        )
        .rule("loops", Guideline, "loops == 0 or tiles_m > 1 or tiles_n > 1", "there are tiles to loop over")
        .rule("code", Guideline, "instructions <= 4096", "the code stays in the first caches of instructions")
        .rule(
            "panel_stays",
            Implementation,
            "broadcast == 0 or pack_a == 0",
            "a panel of the side along vectors is transposed once",
        )
        .rule(
            "order",
            Guideline,
            "broadcast == 0 or (tiles_m > 1 and tiles_n > 1)",
            "the order of a single row or column of tiles makes no difference",
        )
        .rule("next", Guideline, "prefetch == 0 or batch > 1 or tiles_n > 1", "there is a next product, or tile of C")
        .rule(
            "next_addresses",
            Implementation,
            "prefetch == 0 or max(stride_a, stride_b, stride_c) * element < 2 ** 30",
            "the next product is at a 31-bit displacement",
        )
        .rule("threads", Hardware, "t <= threads", "one thread a core")
        .rule("split_batch", Implementation, "t <= batch", "every thread has a product")
        .rule(
            "idle_threads",
            Guideline,
            "t == 1 or m * n * k * batch >= 200000 * t",
            "every thread has work that is worth waking it",
        )
        .rule(
            "addresses",
            Implementation,
            "max(m, n, k) * max(lda, ldb, ldc) * element < 2 ** 30",
            "distances within a product are 31-bit displacements",
        )
        .build()
}
