//! The parameter space of the convolution, and the rules that make a configuration legal.
//!
//! With `axis = k` vectors run along the outputs of the filters and neighbouring positions are broadcast, with `axis = q` it is the
//! other way round. `m_s` is the side along vectors, `n_s` the other, `u` a block of the reduction, `n_l` positions of a block. Of
//! `t` threads, `t_m` divide the outputs, and what is left the positions.

use super::blocks::along;
use super::features;
use crate::codegen::vector::Width;
use std::sync::OnceLock;
use tilewright_core::device::DeviceSpec;
use tilewright_core::space::{Name, Param, ParamSpace, RuleGroup, SpaceBuilder, SpaceError, Symbols};
use tilewright_ops::conv::ConvInput;
use tilewright_ops::conv::Correlation;

/// What a configuration has of sizes, in the order of [`Description::sizes`].
const SIZES: [&str; 12] = ["m_s", "n_s", "n_l", "u", "k_s", "k_l", "t", "t_m", "vec", "prefetch", "slab", "stage"];
/// Parameters whose values are words, in the order of [`Description::words`].
const WORDS: [&str; 2] = ["axis", "order"];

/// The space with the names that code reads, found once.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) space: ParamSpace,
    pub(super) sizes: [Name; SIZES.len()],
    pub(super) words: [Name; WORDS.len()],
    /// What a model sees; see `features`.
    pub(super) features: [Name; features::NAMES.len()],
}

impl Description {
    /// The one there is: the space is a constant of this crate, and a test builds it.
    pub(super) fn get() -> &'static Self {
        static DESCRIPTION: OnceLock<Description> = OnceLock::new();
        DESCRIPTION.get_or_init(|| {
            let space = space().unwrap_or_else(|e| unreachable!("the space of conv.cpu: {e}"));
            let name = |n: &str| space.name(n).unwrap_or_else(|| unreachable!("conv.cpu defines no {n}"));
            let (sizes, words, features) = (SIZES.map(name), WORDS.map(name), features::NAMES.map(name));
            Self { space, sizes, words, features }
        })
    }
}

/// Vectors of a register tile.
pub(super) const VECTORS: [i64; 4] = [1, 2, 3, 4];
pub(super) const VECTOR_TILE: [i64; 10] = [2, 4, 6, 8, 12, 16, 24, 32, 48, 64];
pub(super) const BROADCAST_TILE: [i64; 14] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 20, 28];
const BLOCK: [i64; 11] = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384];
const DEPTH: [i64; 13] = [16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096];
pub(super) const THREADS: [i64; 15] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192];

/// The facts of a device and an input by the names that rules use.
pub(super) fn symbols(device: &DeviceSpec, input: &ConvInput) -> Symbols {
    let mut symbols = input.symbols(device);
    let all = Correlation::all(input);
    let most = |of: &dyn Fn(&Correlation) -> usize| all.iter().map(of).max().unwrap_or(0);
    symbols.set("outs", most(&|of| of.outs.count));
    symbols.set("sums", most(&Correlation::depth));
    symbols.set("taps", most(&|of| of.taps.len()));
    symbols.set("positions", most(&|of| of.images.count * of.positions()));
    symbols.set("along", most(&|of| along(of).0));
    symbols.set("contiguous", all.iter().all(|of| along(of).1[0]));
    symbols.set("contiguous_copied", all.iter().all(|of| along(of).1[1]));
    symbols.set("neighbours", all.iter().all(|of| of.result.out == 1));
    symbols.set("inside", all.iter().all(Correlation::is_inside));
    let strides = |of: &Correlation| of.result.out.max(of.result.column).max(of.result.row).max(of.result.image);
    symbols.set("distance", most(&strides).max(most(&|of| of.images.stride)));
    symbols
}

/// How these names follow from the fields, as far as the forward direction goes: the others have several correlations, or their taps
/// and outputs exchanged.
pub(super) fn derivations() -> Vec<(&'static str, String)> {
    let [p, q] = ConvInput::output_texts();
    // The dimension that tiles run along: the last one that has more than one position, see `along`.
    let is_row = format!("({q} > 1 or ({p} == 1 and n <= 1))");
    let together = |step: &str| format!("{is_row} and {step} * (1 if layout == 'nchw' else c) == 1");
    let forward = [
        ("outs", "k // groups".to_owned()),
        ("sums", "c // groups * (r * s)".to_owned()),
        ("taps", "r * s".to_owned()),
        ("positions", format!("n * ({p} * {q})")),
        ("along", format!("{q} if {q} > 1 else {p} if {p} > 1 else max(n, 1)")),
        ("contiguous", together("stride_w")),
        ("contiguous_copied", together("(1 if s == 1 else stride_w)")),
        ("neighbours", format!("layout == 'nhwc' or {p} * {q} == 1")),
        ("inside", "pad_h == 0 and pad_w == 0".to_owned()),
        ("distance", format!("max(k * {p} * {q}, c * h * w, {p} * {q} if layout == 'nchw' else k * {q}, 1)")),
    ];
    let forward = forward.into_iter().map(|(name, text)| (name, ConvInput::forward_only(&text)));
    ConvInput::derivations().into_iter().chain(forward).collect()
}

pub(super) fn space() -> Result<ParamSpace, SpaceError> {
    let space = ParamSpace::builder()
        .param(Param::words("axis", ["k", "q"]))
        .param(Param::ints("vec", [16, 32, 64]))
        .param(Param::ints("m_s", VECTOR_TILE))
        .param(Param::ints("n_s", BROADCAST_TILE))
        .param(Param::ints("k_l", [1, 2, 4]))
        .param(Param::ints("t", THREADS))
        .param(Param::ints("t_m", THREADS))
        .param(Param::ints("slab", [0, 1]))
        .param(Param::ints("u", DEPTH))
        .param(Param::ints("stage", [0, 1]))
        .param(Param::ints("n_l", BLOCK))
        .param(Param::ints("k_s", [2, 4, 8]))
        .param(Param::words("order", ["vector", "broadcast"]))
        .param(Param::ints("prefetch", [0, 8, 32]));
    blocks(threads(tiles(space))).build()
}

fn tiles(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Guideline, Hardware, Implementation};
    let registers = format!("{} if vec == {} else {}", Width::Z.registers(), Width::Z.bytes(), Width::Y.registers());
    space
        .define("out_count", "outs")
        .define("sum_length", "sums")
        .define("position_count", "positions")
        .define("axis_q", "1 if axis == 'q' else 0")
        .define("broadcasts", "1 if order == 'broadcast' else 0")
        .define("v_len", "outs if axis == 'k' else along")
        .define("s_len", "along if axis == 'k' else outs")
        .define("lanes", "vec // element")
        .define("vectors", "m_s // lanes")
        .define("registers", &registers)
        .define("accumulators", "vectors * n_s * k_l")
        .rule("vector_width", Hardware, "vec <= vec_max", "the host has no wider vectors")
        .rule(
            "widest_vectors",
            Guideline,
            "vec == vec_max or v_len * element < vec_max",
            "narrower vectors only pay where the widest would be mostly masked",
        )
        .rule("whole_vectors", Implementation, "m_s % lanes == 0", "the side along vectors takes whole vectors")
        .rule("vectors", Implementation, "vectors <= 4", "the generator has code for up to four vectors")
        .rule(
            "contiguous",
            Implementation,
            "axis == 'k' or (contiguous_copied if slab == 1 else contiguous)",
            "vectors are loaded from neighbouring positions that are neighbours in memory",
        )
        .rule(
            "registers",
            Hardware,
            "accumulators + max(min(vectors, n_s) + 1, 4) <= registers",
            "accumulators and operands live in registers",
        )
        .rule(
            "latency",
            Guideline,
            "accumulators >= 8 or (m_s >= v_len and n_s >= s_len) or s_len < 8",
            "fewer chains of multiply-adds cannot hide their latency",
        )
        .rule(
            "tile_covers_vectors",
            Guideline,
            "m_s < max(v_len, 1) + lanes",
            "a tile beyond the outputs, or beyond a row, is a smaller tile under another name",
        )
        .rule("tile_covers_others", Guideline, "n_s <= max(s_len, 1)", "a tile beyond what there is is a smaller tile")
        .rule("unroll", Implementation, "k_s % k_l == 0 and u % k_s == 0", "blocks are whole unrolled steps")
        .rule("short_unroll", Guideline, "k_s == 2 or k_s <= sums", "unrolling beyond the reduction does nothing")
        .rule("sets", Guideline, "k_l == 1 or vectors * n_s <= 12", "larger tiles have independent operations enough")
        .rule(
            "addresses",
            Implementation,
            "64 * distance * element < 2 ** 31",
            "distances within a tile are 31-bit displacements",
        )
}

fn threads(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Guideline, Hardware, Implementation};
    space
        .rule("threads", Hardware, "t <= threads", "one thread a core")
        .rule("threads_m", Implementation, "t % t_m == 0", "the threads that outputs leave divide the positions")
        .rule(
            "idle_threads",
            Guideline,
            "2 * t > threads or positions * outs * sums <= 1000000",
            "only small inputs are better off on fewer threads",
        )
        .rule(
            "split_outs",
            Guideline,
            "t_m == 1 or t_m * (m_s if axis == 'k' else n_s) <= outs",
            "every thread has a tile",
        )
}

fn blocks(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Guideline, Hardware, Implementation};
    space
        .rule("slab", Implementation, "slab == 1 or inside", "only a slab has the zeros of the padding")
        .rule(
            "stage",
            Implementation,
            "stage == 0 or axis == 'k'",
            "sums are kept with outputs side by side, as vectors have them",
        )
        .rule(
            "worth_staging",
            Guideline,
            "stage == 0 or (u < sums and not neighbours)",
            "sums that are stored once, or lie so already, go to their places at once",
        )
        .rule("depth", Guideline, "u == 16 or u < 2 * sums", "deeper blocks than the reduction are the same block")
        .rule("block", Guideline, "n_l == 16 or n_l < 2 * positions", "larger blocks are the same block")
        .define("panel_bytes", "(m_s if axis == 'k' else n_s) * min(u, max(sums, 1)) * element")
        .define("packed_bytes", "outs * min(u, max(sums, 1)) * element")
        // Channels of a block of the reduction, times the places of a block of positions.
        .define("block_bytes", "((u + taps - 1) // max(taps, 1) + 1) * n_l * stride_h * stride_w * element")
        .rule(
            "panel_fits",
            Guideline,
            "2 * panel_bytes <= l2_bytes or u <= 64",
            "the panel of a register tile stays in a near cache",
        )
        .rule(
            "block_fits",
            Guideline,
            "n_l <= 64 or u <= 64 or block_bytes <= 4 * l2_bytes or taps > u",
            "what is gathered stays in a cache while all outputs of it are computed",
        )
        .rule(
            "workspace",
            Hardware,
            "outs * sums * groups * element * 2 <= memory_bytes",
            "packed filters are held in memory",
        )
}
