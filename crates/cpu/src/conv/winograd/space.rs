//! The parameter space of the kernel, and the rules that make a configuration legal.
//!
//! `m` is the side of a tile of outputs; the products of matrices that tiles become have outputs along vectors (`m_s`) and tiles across
//! them (`n_s`), `n_l` tiles of a block.

use super::super::space::{BROADCAST_TILE, VECTOR_TILE};
use crate::codegen::vector::Width;
use crate::described::Described;
use std::sync::OnceLock;
use tilewright_core::device::DeviceSpec;
use tilewright_core::expr::{Val, Value};
use tilewright_core::space::{BoundSpace, Param, ParamSpace, Point, RuleGroup, SpaceError, Symbols, Values};
use tilewright_ops::conv::{ConvInput, Correlation, winograd};

/// One value per parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Config {
    /// Outputs along a tile.
    pub(super) m: usize,
    pub(super) v_s: usize,
    pub(super) s_s: usize,
    /// Tiles of a block.
    pub(super) tiles: usize,
    pub(super) k_s: usize,
    pub(super) t: usize,
    pub(super) vec: usize,
    pub(super) prefetch: u32,
    /// Whether a panel of filters stays while tiles stream.
    pub(super) keeps_v: bool,
}

const SIZES: [&str; 8] = ["m", "m_s", "n_s", "n_l", "k_s", "t", "vec", "prefetch"];
/// What a model sees: sizes, and a flag.
const FEATURES: [&str; 12] = [
    "m",
    "m_s",
    "n_s",
    "n_l",
    "k_s",
    "t",
    "prefetch",
    "tile_count",
    "block_bytes",
    "filter_bytes",
    "accumulators",
    "broadcasts",
];

/// The space with the names that code reads.
pub(super) type Description = Described<{ SIZES.len() }, 1, { FEATURES.len() }>;

/// The one there is.
pub(super) fn description() -> &'static Description {
    static DESCRIPTION: OnceLock<Description> = OnceLock::new();
    DESCRIPTION.get_or_init(|| Described::new("conv.cpu-winograd", space(), SIZES, ["order"], (FEATURES, 1)))
}

impl Config {
    /// The parameters of a point; `None` for one of another space.
    pub(super) fn of(at: &Values<'_>) -> Option<Self> {
        let names = description();
        let [m, v_s, s_s, tiles, k_s, t, vec, prefetch] = names.sizes(at)?;
        let [order] = names.words(at)?;
        let keeps_v = order == Val::Str("vector");
        Some(Self { m, v_s, s_s, tiles, k_s, t, vec, prefetch: prefetch as u32, keeps_v })
    }
}

/// The facts of a device and an input by the names that rules use.
pub(super) fn symbols(device: &DeviceSpec, input: &ConvInput) -> Symbols {
    let mut symbols = input.symbols(device);
    let of = Correlation::all(input).into_iter().next();
    let size = |f: &dyn Fn(&Correlation) -> usize| of.as_ref().map_or(0, f);
    symbols.set("images", size(&|of| of.images.count));
    symbols.set("grid_h", size(&|of| of.grid[0]));
    symbols.set("grid_w", size(&|of| of.grid[1]));
    symbols.set("outs", size(&|of| of.outs.count));
    symbols.set("channels", size(&|of| of.channels.count));
    symbols
}

pub(super) fn space() -> Result<ParamSpace, SpaceError> {
    use RuleGroup::{Guideline, Hardware, Implementation};
    let registers = format!("{} if vec == {} else {}", Width::Z.registers(), Width::Z.bytes(), Width::Y.registers());
    ParamSpace::builder()
        .param(Param::ints("m", [2, 4]))
        .param(Param::ints("vec", [16, 32, 64]))
        .param(Param::ints("m_s", VECTOR_TILE))
        .param(Param::ints("n_s", BROADCAST_TILE))
        .param(Param::ints("t", super::super::space::THREADS))
        .param(Param::ints("n_l", [8, 16, 32, 64, 128, 256, 512, 1024]))
        .param(Param::ints("k_s", [2, 4, 8]))
        .param(Param::words("order", ["vector", "broadcast"]))
        .param(Param::ints("prefetch", [0, 8, 32]))
        .define("lanes", "vec // element")
        .define("vectors", "m_s // lanes")
        .define("registers", &registers)
        .define("accumulators", "vectors * n_s")
        .define("broadcasts", "1 if order == 'broadcast' else 0")
        .define("tile_count", "images * ((grid_h + m - 1) // m) * ((grid_w + m - 1) // m)")
        .define("block_bytes", "(m + 2) * (m + 2) * n_l * (channels + outs) * element")
        .define("filter_bytes", "(m + 2) * (m + 2) * channels * outs * groups * element")
        .rule("vector_width", Hardware, "vec <= vec_max", "the host has no wider vectors")
        .rule("widest_vectors", Guideline, "vec == vec_max", "transformations are made of whole vectors")
        .rule("whole_vectors", Implementation, "m_s % lanes == 0", "the side along vectors takes whole vectors")
        .rule(
            "vectors",
            Implementation,
            "vectors >= 1 and vectors <= 4",
            "the generator has code for up to four vectors",
        )
        .rule(
            "registers",
            Hardware,
            "accumulators + max(min(vectors, n_s) + 1, 4) <= registers",
            "accumulators and operands live in registers",
        )
        .rule(
            "errors",
            Implementation,
            &format!("m == 2 or channels >= {}", winograd::FEWEST_CHANNELS),
            "the larger tile's errors are within the bound of sums that are not short",
        )
        .rule("latency", Guideline, "accumulators >= 8 or n_s >= tile_count", "few chains cannot hide their latency")
        .rule(
            "tile_covers_outs",
            Guideline,
            "m_s < max(outs, 1) + lanes",
            "a tile beyond the outputs is a smaller tile",
        )
        .rule(
            "tile_covers_tiles",
            Guideline,
            "n_s <= max(tile_count, 1)",
            "a tile beyond what there is is a smaller tile",
        )
        .rule("block", Guideline, "n_l == 8 or n_l < 2 * tile_count", "larger blocks are the same block")
        .rule(
            "block_fits",
            Guideline,
            "n_l <= 16 or block_bytes <= l3_bytes",
            "transformed inputs and products stay in a cache",
        )
        .rule("threads", Hardware, "t <= threads", "one thread a core")
        .rule("idle_threads", Guideline, "2 * t > threads", "there is work for all")
        .rule("short_unroll", Guideline, "k_s == 2 or k_s <= channels", "unrolling beyond the channels does nothing")
        .rule(
            "addresses",
            Implementation,
            "64 * max(channels + 64, outs + 64) * element < 2 ** 31",
            "distances within a tile are 31-bit displacements",
        )
        .rule(
            "workspace",
            Hardware,
            "2 * (filter_bytes + t * block_bytes) <= memory_bytes",
            "transformed filters are held in memory",
        )
        .build()
}

/// What runs before anything is tuned.
pub(super) fn default_point(space: &BoundSpace) -> Option<Point> {
    let int = |name| space.symbols().get(name).and_then(Value::as_int);
    let vec = int("vec_max").unwrap_or(16);
    let lanes = vec / int("element").unwrap_or(4);
    let ints = |list: &[i64]| list.iter().map(|&i| Value::Int(i)).collect::<Vec<_>>();
    space.preferred_point(|param| match &*param.name {
        "m" => ints(&[4, 2]),
        "vec" => ints(&[64, 32, 16]),
        "m_s" => [2, 1, 3, 4].map(|vectors| Value::Int(vectors * lanes)).into(),
        "n_s" => ints(if vec == 64 { &[12, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1] } else { &[5, 6, 4, 3, 2, 1] }),
        "t" => ints(&[int("threads").unwrap_or(1), 64, 32, 16, 8, 4, 2, 1]),
        "n_l" => ints(&[64, 128, 32, 16, 8]),
        "k_s" => ints(&[4, 2]),
        "order" => vec![Value::from("vector")],
        "prefetch" => ints(&[8]),
        _ => Vec::new(),
    })
}
