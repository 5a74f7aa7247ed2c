//! The parameter space of the kernel, and the rules that make a configuration legal.
//!
//! `m_s` is the side of a tile along vectors and `q_s` the other one: columns of outputs where vectors lie along channels, else rows.
//! `p_l` rows of outputs are computed from one bringing together of their images' rows, and `t` threads divide images, planes and rows.

use crate::described::Described;
use std::sync::OnceLock;
use tilewright_core::device::DeviceSpec;
use tilewright_core::expr::Value;
use tilewright_core::space::{BoundSpace, Param, ParamSpace, Point, RuleGroup, SpaceError, Symbols, Values};
use tilewright_ops::conv::{ConvInput, Correlation, Layout};

/// One value per parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Config {
    /// Vectors that are computed together.
    pub(super) vectors: usize,
    /// Outputs that each vector is computed of together.
    pub(super) lines: usize,
    pub(super) p_l: usize,
    pub(super) t: usize,
    /// Bytes of a vector.
    pub(super) vec: usize,
}

const SIZES: [&str; 5] = ["vectors", "q_s", "p_l", "t", "vec"];
/// What a model sees: sizes, and a flag.
const FEATURES: [&str; 13] = [
    "m_s",
    "q_s",
    "p_l",
    "t",
    "lanes",
    "vectors",
    "v_len",
    "line_count",
    "chunks",
    "tap_count",
    "staged_bytes",
    "plane_count",
    "along_channels",
];

/// The space with the names that code reads.
pub(super) type Description = Described<{ SIZES.len() }, 0, { FEATURES.len() }>;

/// The one there is.
pub(super) fn description() -> &'static Description {
    static DESCRIPTION: OnceLock<Description> = OnceLock::new();
    DESCRIPTION.get_or_init(|| Described::new("conv.cpu-depthwise", space(), SIZES, [], (FEATURES, 1)))
}

impl Config {
    /// The parameters of a point; `None` for one of another space.
    pub(super) fn of(at: &Values<'_>) -> Option<Self> {
        let [vectors, lines, p_l, t, vec] = description().sizes(at)?;
        Some(Self { vectors, lines, p_l, t, vec })
    }
}

/// The facts of a device and an input by the names that rules use.
pub(super) fn symbols(device: &DeviceSpec, input: &ConvInput) -> Symbols {
    let mut symbols = input.symbols(device);
    let all = Correlation::all(input);
    let most = |of: &dyn Fn(&Correlation) -> usize| all.iter().map(of).max().unwrap_or(0);
    let channels_first = input.layout == Layout::Nhwc;
    symbols.set("channels_first", channels_first);
    symbols.set("extent", if channels_first { input.groups } else { most(&|of| of.grid[1]) });
    symbols.set("most_columns", most(&|of| of.grid[1]));
    symbols.set("grid_h", most(&|of| of.grid[0]));
    symbols.set("images", most(&|of| of.images.count));
    symbols.set("taps", most(&|of| of.taps.len()));
    // Columns of an image that a row of outputs sees, and rows that so many rows of outputs see: `reach + (p_l - 1) * apart`.
    symbols.set("seen", most(&|of| of.grid[1].saturating_sub(1) * of.step[1] + of.reach()[1] + 1));
    symbols.set("reach", most(&|of| of.reach()[0] + 1));
    symbols.set("apart", most(&|of| of.step[0]));
    symbols
}

fn space() -> Result<ParamSpace, SpaceError> {
    use RuleGroup::{Guideline, Hardware, Implementation};
    ParamSpace::builder()
        .param(Param::ints("vec", [16, 32, 64]))
        .param(Param::ints("m_s", [2, 4, 8, 16, 32, 64]))
        .param(Param::ints("q_s", [1, 2, 4, 8]))
        .param(Param::ints("p_l", [1, 2, 4, 8, 16, 32, 64, 128, 256]))
        .param(Param::ints("t", super::super::space::THREADS))
        .define("lanes", "vec // element")
        .define("vectors", "m_s // lanes")
        .define("v_len", "extent")
        .define("line_count", "most_columns if channels_first else p_l")
        .define("along_channels", "1 if channels_first else 0")
        .define("tap_count", "taps")
        .define("chunks", "(extent + m_s - 1) // m_s")
        .define("plane_count", "images * (1 if channels_first else groups)")
        .define("staged_bytes", "0 if channels_first else (reach + (p_l - 1) * apart) * (seen + 2 * m_s) * element")
        .rule("vector_width", Hardware, "vec <= vec_max", "the host has no wider vectors")
        .rule("whole_vectors", Implementation, "m_s % lanes == 0", "the side along vectors takes whole vectors")
        .rule("vectors", Implementation, "vectors >= 1 and vectors <= 4", "there is code for up to four vectors")
        .rule("registers", Implementation, "vectors * q_s <= (16 if vec == 64 else 8)", "sums stay in registers")
        .rule("extent", Guideline, "m_s < max(extent, 1) + lanes", "vectors beyond what there is are fewer vectors")
        .rule("lines", Guideline, "q_s == 1 or q_s <= line_count", "there are as many columns, or rows of a block")
        .rule("rows", Guideline, "p_l == 1 or p_l < 2 * grid_h", "more rows than there are are the same block")
        .rule(
            "rows_in_place",
            Guideline,
            "p_l == 1 or not channels_first",
            "where channels are neighbours nothing is brought together",
        )
        .rule(
            "rows_fit",
            Guideline,
            "p_l == 1 or staged_bytes <= l2_bytes",
            "rows are read again for every tap, from a cache",
        )
        .rule("threads", Hardware, "t <= threads", "one thread a core")
        .rule("idle_threads", Guideline, "2 * t > threads", "there is work for all")
        .rule(
            "workspace",
            Hardware,
            "2 * t * (staged_bytes + (taps + 1) * (groups + lanes if channels_first else 1) * element) <= memory_bytes",
            "rows and filters are held in memory",
        )
        .build()
}

/// What runs before anything is tuned.
pub(super) fn default_point(space: &BoundSpace) -> Option<Point> {
    let int = |name| space.symbols().get(name).and_then(Value::as_int);
    let lanes = int("vec_max").unwrap_or(16) / int("element").unwrap_or(4);
    let ints = |list: &[i64]| list.iter().map(|&i| Value::Int(i)).collect::<Vec<_>>();
    space.preferred_point(|param| match &*param.name {
        "vec" => ints(&[64, 32, 16]),
        "m_s" => [2, 1].map(|vectors| Value::Int(vectors * lanes)).into(),
        "q_s" => ints(&[4, 2, 1]),
        "p_l" => ints(&[16, 8, 4, 2, 1]),
        "t" => ints(&[int("threads").unwrap_or(1), 64, 32, 16, 8, 4, 2, 1]),
        _ => Vec::new(),
    })
}
