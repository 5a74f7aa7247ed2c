//! The parameter space of the direct convolution, and the rules that make a configuration legal.

use super::super::taps::Taps;
use super::features;
use std::sync::OnceLock;
use tilewright_core::device::DeviceSpec;
use tilewright_core::expr::{Val, Value};
use tilewright_core::space::{
    BoundSpace, Name, Param, ParamSpace, Point, RuleGroup, SpaceBuilder, SpaceError, Symbols, Values,
};
use tilewright_ops::conv::{ConvInput, Correlation, Layout};

/// Most channels of a group: the loop over them is short, and filters of all of them lie in shared memory.
pub(super) const MOST_CHANNELS: usize = 8;
/// Most columns of a filter: the loop over them is unrolled.
pub(super) const MOST_COLUMNS: usize = 32;

/// One value per parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Config {
    /// Outputs and columns of a thread.
    pub(super) k_s: u32,
    pub(super) q_s: u32,
    /// Threads of a block.
    pub(super) threads: u32,
    /// Whether filters lie in shared memory.
    pub(super) shared: bool,
    /// Whether neighbouring threads take neighbouring groups; else they take neighbouring strips.
    pub(super) along_groups: bool,
    /// Whether the loop over rows of taps is unrolled, so that loads of several rows are under way.
    pub(super) unrolled: bool,
}

/// Parameters whose values are sizes, in the order of [`Description::sizes`].
pub(super) const SIZES: [&str; 3] = ["k_s", "q_s", "threads"];
/// Parameters whose values are words, in the order of [`Description::words`].
const WORDS: [&str; 3] = ["filters", "scan", "taps"];

/// The space with the names that code reads, found once.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) space: ParamSpace,
    sizes: [Name; SIZES.len()],
    words: [Name; WORDS.len()],
    /// The need of registers, which a limit is made of.
    pub(super) registers: [Name; 1],
    /// What a model sees besides; see `features`.
    pub(super) features: [Name; features::DERIVED.len()],
}

impl Description {
    /// The one there is: the space is a constant of this crate, and a test builds it.
    pub(super) fn get() -> &'static Self {
        static DESCRIPTION: OnceLock<Description> = OnceLock::new();
        DESCRIPTION.get_or_init(|| {
            let space = space().unwrap_or_else(|e| unreachable!("the space of conv.direct: {e}"));
            let name = |n: &str| space.name(n).unwrap_or_else(|| unreachable!("conv.direct defines no {n}"));
            let (sizes, words, features) = (SIZES.map(name), WORDS.map(name), features::DERIVED.map(name));
            let registers = [name("registers_needed")];
            Self { space, sizes, words, registers, features }
        })
    }
}

impl Config {
    /// The parameters of a point; `None` for one of another space.
    pub(super) fn of(at: &Values<'_>) -> Option<Self> {
        let names = Description::get();
        let [k_s, q_s, threads] = at.ints(names.sizes)?;
        let [filters, scan, taps] = at.read(names.words)?;
        let (shared, along_groups) = (filters == Val::Str("shared"), scan == Val::Str("groups"));
        let unrolled = taps == Val::Str("unrolled");
        Some(Self { k_s, q_s, threads, shared, along_groups, unrolled })
    }
}

/// The facts of a device and an input by the names that rules use.
pub(super) fn symbols(device: &DeviceSpec, input: &ConvInput) -> Symbols {
    let mut symbols = input.symbols(device);
    let all = Correlation::all(input);
    let taps: Vec<Taps> = all.iter().map(Taps::of).collect();
    let most = |of: &dyn Fn(&Correlation) -> usize| all.iter().map(of).max().unwrap_or(0);
    let of_taps = |of: &dyn Fn(&Taps) -> usize| taps.iter().map(of).max().unwrap_or(0);
    let sizes = [
        ("outs", most(&|of| of.outs.count)),
        ("images", most(&|of| of.images.count)),
        ("grid_rows", most(&|of| of.grid[0])),
        ("grid_columns", most(&|of| of.grid[1])),
        ("channels", most(&|of| of.channels.count)),
        ("step_columns", most(&|of| of.step[1])),
        ("correlations", all.len()),
        ("tap_rows", of_taps(&|taps| taps.counts[0])),
        ("tap_columns", of_taps(&|taps| taps.counts[1])),
        ("reach", of_taps(&Taps::reach)),
    ];
    sizes.into_iter().for_each(|(name, size)| symbols.set(name, size));
    symbols.set("channels_first", input.layout == Layout::Nhwc);
    symbols
}

fn space() -> Result<ParamSpace, SpaceError> {
    let space = ParamSpace::builder()
        .param(Param::ints("k_s", [1, 2, 4, 8]))
        .param(Param::ints("q_s", [1, 2, 4, 8]))
        .param(Param::ints("threads", [32, 64, 128, 256]))
        .param(Param::words("scan", ["strips", "groups"]))
        .param(Param::words("filters", ["shared", "global"]))
        .param(Param::words("taps", ["loop", "unrolled"]));
    features::of_device(grid(strips(space))).build()
}

fn strips(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Guideline, Hardware, Implementation};
    space
        .define("words", "element // 4")
        .define("accumulators", "k_s * q_s")
        // Columns of a row that a strip sees.
        .define("seen", "min(q_s * tap_columns, (q_s - 1) * step_columns + reach + 1)")
        // Multiply-adds of a row of taps, and the numbers that it loads.
        .define("row", "tap_columns * accumulators")
        .define("row_loads", "seen + tap_columns * k_s")
        .define("body", "row * (tap_rows if taps == 'unrolled' else 1)")
        // Sums, columns with their places, the filters of a column of taps and of the next one, and coordinates.
        .define("registers_needed", "words * (accumulators + seen + 2 * k_s) + seen + 2 * k_s + 32")
        .define("filter_elements", "k_s * channels * tap_rows * tap_columns")
        // Every thread brings as many.
        .define("passes", "(filter_elements + threads - 1) // threads if filters == 'shared' else 0")
        .define("shared_bytes", "passes * threads * element")
        .rule("target", Hardware, "sm >= 50", "there is no code for older devices")
        .rule("strip_beyond_outputs", Guideline, "k_s < 2 * max(outs, 1)", "outputs that there are not are computed")
        .rule(
            "strip_beyond_columns",
            Guideline,
            "q_s < 2 * max(grid_columns, 1)",
            "columns that there are not are computed",
        )
        .rule(
            "registers",
            Hardware,
            "registers_needed <= min(registers_per_thread, 128)",
            "what does not fit is spilled to memory, and few threads hide no latency",
        )
        .rule("body", Guideline, "body <= 1024", "longer loop bodies do not stay in the instruction cache")
        .rule("taps", Guideline, "taps == 'loop' or tap_rows > 1", "there is nothing to unroll")
        .rule(
            "scan",
            Implementation,
            "scan == 'strips' or (groups > 1 and filters == 'global')",
            "threads of several groups share no filters",
        )
        .rule(
            "near",
            Guideline,
            "scan == 'groups' or not channels_first or groups * channels <= 16",
            "neighbouring threads read neighbours",
        )
        .rule("passes", Implementation, "passes <= 16", "the loads of filters are unrolled")
        .rule("shared_memory", Hardware, "shared_bytes <= 49152", "more shared memory is not declared in the code")
}

fn grid(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Hardware, Implementation};
    space
        .define("strips", "images * grid_rows * ((grid_columns + q_s - 1) // q_s)")
        .define("units", "strips * (groups if scan == 'groups' else 1)")
        .define("blocks_first", "(units + threads - 1) // threads")
        .define("tiles_k", "(outs + k_s - 1) // k_s")
        .define("in_grid", "1 if scan == 'groups' else groups")
        .rule("numbers", Implementation, "units < 2 ** 31 - 256", "a thread is a 31-bit number")
        .rule("grid_first", Hardware, "blocks_first <= grid_x", "strips lie along the first dimension of a grid")
        .rule("grid_second", Hardware, "tiles_k <= grid_y", "outputs lie along the second dimension of a grid")
        .rule("grid_third", Hardware, "in_grid <= grid_z", "groups lie along the third dimension of a grid")
}

/// What runs before anything is tuned: strips of a few columns and outputs.
pub(super) fn default_point(space: &BoundSpace) -> Option<Point> {
    let ints = |list: &[i64]| list.iter().map(|&i| Value::Int(i)).collect::<Vec<_>>();
    let words = |list: &[&str]| list.iter().map(|&word| Value::from(word)).collect::<Vec<_>>();
    space.preferred_point(|param| match &*param.name {
        "k_s" => ints(&[4, 2, 1, 8]),
        "q_s" => ints(&[4, 2, 1, 8]),
        "threads" => ints(&[128, 64, 256, 32]),
        // Neighbouring groups where rules say that strips are far apart.
        "scan" => words(&["strips", "groups"]),
        "filters" => words(&["shared", "global"]),
        "taps" => words(&["unrolled", "loop"]),
        _ => Vec::new(),
    })
}
