//! The parameter space of the CPU GEMM, and the rules that make a configuration legal.
//!
//! Rules are grouped as BACUGen groups its constraints: *hardware* (registers, instruction set), *implementation* (what the
//! generator has code for) and *guideline* (legal to run, not worth measuring). Parameters that prune most come first.
//!
//! With `axis = n` the kernel solves the transposed problem `C' = op(B)' op(A)'`, and all other parameters are those of that
//! problem: `m_s`, `m_l`, `t_m` and `pack_a` always belong to the side that vectors run along.
//!
//! Of `t` threads, `t_m` divide the rows, `k_g` the reduction, and what is left the columns: as a parameter of its own the last
//! would be a value that only one point in many gets right.

use super::features;
use crate::codegen::vector::Width;
use crate::scalar::Kind;
use std::sync::OnceLock;
use tilewright_core::space::{Name, Param, ParamSpace, RuleGroup, SpaceBuilder, SpaceError};

/// What a configuration has of sizes, in the order of [`Description::sizes`]; all but `t_n` are parameters.
const SIZES: [&str; 15] =
    ["m_s", "n_s", "m_l", "n_l", "u", "k_s", "k_l", "k_g", "t", "t_m", "t_n", "pack_a", "pack_b", "vec", "prefetch"];
/// Parameters whose values are words, in the order of [`Description::words`].
const WORDS: [&str; 3] = ["axis", "order", "store"];

/// The space with the names that code reads, found once.
#[derive(Debug)]
pub(crate) struct Description {
    pub(crate) space: ParamSpace,
    pub(crate) sizes: [Name; SIZES.len()],
    pub(crate) words: [Name; WORDS.len()],
    /// Vectors of a register tile.
    pub(crate) vectors: Name,
    /// Whether vectors have instructions for narrow operands as they are, where a kernel has those.
    pub(crate) native: Option<Name>,
    /// What a model sees; see `features`.
    pub(super) features: [Name; features::NAMES.len()],
}

impl Description {
    /// The one of a kernel of this kind: the spaces are constants of this crate, and a test builds them.
    pub(crate) fn of(kind: Kind) -> &'static Self {
        static REAL: OnceLock<Description> = OnceLock::new();
        static COMPLEX: OnceLock<Description> = OnceLock::new();
        static THREE_M: OnceLock<Description> = OnceLock::new();
        static NARROW: OnceLock<Description> = OnceLock::new();
        let one = match kind {
            Kind::Real => &REAL,
            Kind::Complex => &COMPLEX,
            Kind::ThreeM => &THREE_M,
            Kind::Narrow => &NARROW,
        };
        one.get_or_init(|| {
            let space = space(kind).unwrap_or_else(|e| unreachable!("the space of gemm.cpu: {e}"));
            let name = |n: &str| space.name(n).unwrap_or_else(|| unreachable!("gemm.cpu defines no {n}"));
            let (sizes, words, vectors) = (SIZES.map(name), WORDS.map(name), name("vectors"));
            let features = features::NAMES.map(name);
            let native = (kind == Kind::Narrow).then(|| name("native"));
            Self { space, sizes, words, vectors, native, features }
        })
    }
}

/// Register tile along vectors, in elements; a rule asks for whole vectors.
const VECTOR_TILE: [i64; 10] = [2, 4, 6, 8, 12, 16, 24, 32, 48, 64];
/// The same in complex elements, of which a narrow vector holds one.
const COMPLEX_TILE: [i64; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
/// Register tile across vectors, in elements.
const BROADCAST_TILE: [i64; 14] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 20, 28];
/// Cache tiles, in elements: along vectors rounded down to whole register tiles, across them rounded up.
const BLOCK: [i64; 11] = [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192];
const DEPTH: [i64; 14] = [16, 32, 64, 96, 128, 192, 256, 320, 384, 512, 768, 1024, 2048, 4096];
const THREADS: [i64; 15] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192];

/// A complex element across vectors is broadcast as two numbers, each of which has accumulators. Of narrow operands,
/// products or bits to change may take a register, and vectors that are woven as they are loaded two. Three products have the sums of
/// parts across vectors from packing.
pub(super) fn space(kind: Kind) -> Result<ParamSpace, SpaceError> {
    use RuleGroup::{Guideline, Hardware, Implementation};
    let registers = format!("{} if vec == {} else {}", Width::Z.registers(), Width::Z.bytes(), Width::Y.registers());
    let (vector_tile, broadcasts, more) = match kind {
        Kind::Real => (VECTOR_TILE, "n_s", 1),
        Kind::Complex => (COMPLEX_TILE, "2 * n_s", 1),
        Kind::ThreeM => (COMPLEX_TILE, "n_s", 1),
        Kind::Narrow => (VECTOR_TILE, "n_s", 2),
    };
    // Of three products two vectors have a third of sums of their parts, which stay in registers beside them.
    let (sums, held) = match kind {
        Kind::ThreeM => ("vectors + (vectors + 1) // 2", "vectors + (vectors + 1) // 2".to_owned()),
        _ => ("vectors", format!("min(vectors, {broadcasts})")),
    };
    let packings_across = if kind == Kind::ThreeM { 1..=1 } else { 0..=1 };
    // So many multiply-adds are few; one of narrow operands takes several steps.
    let few = if kind == Kind::Narrow { "1000000 * group" } else { "1000000" };
    // Steps of the reduction that a block has.
    let steps = if kind == Kind::Narrow { "u * group" } else { "u" };
    // 16-bit results use partial sums even where the reduction is not divided. The rule does not know the type of results, and so holds for
    // all narrow operands.
    let undivided = if kind == Kind::Narrow { "" } else { "k_g == 1 or " };
    let builder = ParamSpace::builder()
        .param(Param::words("axis", ["m", "n"]))
        .param(Param::ints("vec", [16, 32, 64]))
        .param(Param::ints("m_s", vector_tile))
        .param(Param::ints("n_s", BROADCAST_TILE))
        .param(Param::ints("k_l", [1, 2, 4]))
        .param(Param::ints("t", THREADS))
        .param(Param::ints("t_m", THREADS))
        .param(Param::ints("k_g", THREADS))
        .param(Param::ints("pack_a", [0, 1]))
        .param(Param::ints("pack_b", packings_across))
        .param(Param::ints("u", DEPTH))
        .param(Param::words("store", ["normal", "stream"]))
        .param(Param::ints("m_l", BLOCK))
        .param(Param::ints("n_l", BLOCK))
        .param(Param::ints("k_s", [2, 4, 8]))
        .param(Param::words("order", ["vector", "broadcast"]))
        .param(Param::ints("prefetch", [0, 8, 32]))
        .define("axis_n", "1 if axis == 'n' else 0")
        .define("broadcasts", "1 if order == 'broadcast' else 0")
        .define("streams_c", "1 if store == 'stream' else 0")
        .define("rows", "m if axis == 'm' else n")
        .define("columns", "n if axis == 'm' else m")
        .define("contiguous_a", "not transpose_a if axis == 'm' else transpose_b")
        .define("streams_b", "not transpose_b if axis == 'm' else transpose_a")
        .define("lanes", "vec // element")
        .define("vectors", "m_s // lanes")
        .define("registers", &registers)
        .define("accumulators", &format!("({sums}) * {broadcasts} * k_l"))
        .define("t_n", "t // (t_m * k_g)");
    let builder = if kind == Kind::Narrow { narrow(builder) } else { builder };
    builder
        .rule("vector_width", Hardware, "vec <= vec_max", "the host has no wider vectors")
        .rule(
            "widest_vectors",
            Guideline,
            "vec == vec_max or min(m, n) * element < vec_max",
            "narrower vectors only pay where the widest would be mostly masked",
        )
        .rule("whole_vectors", Implementation, "m_s % lanes == 0", "the side along vectors takes whole vectors")
        .rule("vectors", Implementation, "vectors <= 4", "the generator has code for up to four vectors")
        .rule(
            "registers",
            Hardware,
            &format!("accumulators + max({held} + {more}, 4) <= registers"),
            "accumulators and operands live in registers",
        )
        .rule(
            "latency",
            Guideline,
            "accumulators >= 8 or (m_s >= rows and n_s >= columns) or m * n <= 64",
            "fewer chains of multiply-adds cannot hide their latency",
        )
        .rule(
            "tile_covers_rows",
            Guideline,
            "m_s < max(rows, 1) + lanes",
            "a tile beyond the matrix is a smaller tile under another name",
        )
        .rule("tile_covers_columns", Guideline, "n_s <= max(columns, 1)", "a tile beyond the matrix is a smaller tile")
        .rule("threads", Hardware, "t <= threads", "one thread a core")
        .rule("threads_m", Hardware, "t_m <= threads", "one thread a core")
        .rule("threads_k", Hardware, "k_g <= threads", "one thread a core")
        .rule(
            "idle_threads",
            Guideline,
            &format!("2 * t > threads or m * n * k <= {few}"),
            "only small inputs are better off on fewer threads",
        )
        .rule("grid_of_threads", Implementation, "t % (t_m * k_g) == 0", "the threads that m and k leave divide n")
        .rule("split_m", Guideline, "t_m == 1 or t_m * m_s <= rows", "every thread has a tile")
        .rule("split_n", Guideline, "t_n == 1 or t_n * n_s <= columns", "every thread has a tile")
        .rule(
            "split_k",
            Implementation,
            "k_g == 1 or (k >= 64 * k_g and multiplies)",
            "every slice of the reduction has several blocks' worth of steps",
        )
        .rule(
            "worth_splitting_k",
            Guideline,
            "k_g == 1 or 4 * m * n <= (m + n) * k",
            "the slices of C are summed through memory: too much for a large C",
        )
        .rule(
            "pack_a",
            Implementation,
            "pack_a == 1 or contiguous_a",
            "vectors are loaded from memory that is contiguous along them",
        )
        .rule(
            "depth",
            Guideline,
            &format!("u == 16 or {steps} < 2 * k"),
            "deeper blocks than the reduction are the same block",
        )
        .rule(
            "panels_fit_l1",
            Guideline,
            "(m_s + n_s) * u * element <= 2 * l1d_bytes or u <= 64 \
             or (streams_b and pack_b == 0 and order == 'broadcast')",
            "the panels of a register tile stay in the first-level cache, unless one of them is read along memory",
        )
        .rule(
            "stream",
            Implementation,
            &format!(
                "store == 'normal' or (axis == 'm' and beta_zero and {steps} >= k and k_g == 1 and align >= vec \
                 and ldc * element % vec == 0)"
            ),
            "stores around the caches write whole aligned vectors of C once",
        )
        .rule("block_m", Implementation, "m_l >= m_s", "a cache tile has at least one register tile")
        .rule("block_n", Implementation, "n_l >= n_s", "a cache tile has at least one register tile")
        .rule("block_covers_m", Guideline, "m_l < 2 * max(rows, m_s, 5)", "larger cache tiles are the same tile")
        .rule("block_covers_n", Guideline, "n_l < 2 * max(columns, n_s, 5)", "larger cache tiles are the same tile")
        .rule(
            "packed_a_fits_l2",
            Guideline,
            "pack_a == 0 or m_l * u * element <= 2 * l2_bytes",
            "the packed block that is used again and again stays in the second-level cache",
        )
        .rule(
            "packed_b_fits_l3",
            Guideline,
            "pack_b == 0 or n_l * u * element <= l3_bytes",
            "the other packed block stays in the last-level cache",
        )
        .rule("unroll", Implementation, "k_s % k_l == 0 and u % k_s == 0", "blocks of k are whole unrolled steps")
        .rule("short_unroll", Guideline, "k_s == 2 or k_s <= k", "unrolling beyond the reduction does nothing")
        .rule(
            "addresses",
            Implementation,
            "64 * max(lda, ldb, ldc) * element < 2 ** 31",
            "distances within a tile are 31-bit displacements",
        )
        .rule(
            "addresses_of_sums",
            Implementation,
            &format!("{undivided}64 * (rows + 64) * element < 2 ** 31"),
            "distances within a tile of partial sums, whose columns have all rows, are 31-bit displacements",
        )
        .build()
}

/// What only operands of fewer bits than vectors compute with have: instructions for them as they are, steps of the reduction that are
/// multiplied at a time, and when the caller's memory has those side by side.
fn narrow(builder: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Hardware, Implementation};
    builder
        .define("native", "1 if vec == 64 and (i8 and avx512_vnni or bf16 and avx512_bf16) else 0")
        .define("group", "(4 if i8 else 2) if native else 2 if i8 else 1")
        .rule(
            "integer_products",
            Hardware,
            "vec < 64 or not i8 or native",
            "the widest vectors multiply integers where the host has AVX512-VNNI",
        )
        .rule(
            "narrow_in_place",
            Implementation,
            "pack_b == 1 or (native and streams_b and k % group == 0)",
            "steps that are multiplied at a time are neighbours in memory, and k is a multiple of them",
        )
        .rule(
            "converted_in_place",
            Implementation,
            "pack_a == 1 or (not i8 and (not native or k % group == 0))",
            "vectors of 16-bit numbers are widened as they are loaded, or woven of whole pairs of steps",
        )
        .rule(
            "registers_woven",
            Hardware,
            "pack_a == 1 or not native or accumulators + max(min(vectors, n_s) + 3, 4) <= registers",
            "what weaves and the second of two steps live in registers too",
        )
}
