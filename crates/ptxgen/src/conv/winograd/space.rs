//! The parameter space of Winograd's convolution. To the rules of the GEMM it adds how long the matrices are, and what transformations
//! need.

use crate::gemm::default::{Preferences, Product};
use crate::gemm::{self, BLOCK_TILE, THREAD_TILE};
use std::sync::OnceLock;
use tilewright_core::device::DeviceSpec;
use tilewright_core::expr::Value;
use tilewright_core::space::{
    BoundSpace, Name, Param, ParamSpace, Point, RuleGroup, SpaceBuilder, SpaceError, Symbols,
};
use tilewright_ops::conv::{ConvInput, Correlation, Layout, winograd};

/// What the space derives of the workspace: see `plan`.
pub(super) const SHAPE: [&str; 9] = [
    "side",
    "tile_rows",
    "tile_columns",
    "tile_count",
    "tile_pitch",
    "out_pitch",
    "filter_bytes",
    "input_bytes",
    "transformed_bytes",
];

/// What a model sees besides the product: see `features`.
pub(super) const DERIVED: [&str; 8] =
    ["side", "tile_count", "filter_bytes", "input_bytes", "product_bytes", "outputs", "m", "n"];

/// The space with the names that code reads, found once.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) space: ParamSpace,
    pub(super) product: gemm::Names,
    pub(super) shape: [Name; SHAPE.len()],
    pub(super) derived: [Name; DERIVED.len()],
    pub(super) batch: [Name; 1],
}

impl Description {
    /// The one there is: the space is a constant of this crate, and a test builds it.
    pub(super) fn get() -> &'static Self {
        static DESCRIPTION: OnceLock<Description> = OnceLock::new();
        DESCRIPTION.get_or_init(|| {
            let space = space().unwrap_or_else(|e| unreachable!("the space of conv.winograd: {e}"));
            let name = |n: &str| space.name(n).unwrap_or_else(|| unreachable!("conv.winograd defines no {n}"));
            let (product, shape, derived) = (gemm::Names::of(&space), SHAPE.map(name), DERIVED.map(name));
            let batch = [name("batch")];
            Self { space, product, shape, derived, batch }
        })
    }
}

/// The facts of a device and an input by the names that rules use.
pub(super) fn symbols(device: &DeviceSpec, input: &ConvInput) -> Symbols {
    let mut symbols = device.symbols();
    // An input that the kernel accepts is one correlation.
    let of = Correlation::all(input).into_iter().next();
    let size = |f: &dyn Fn(&Correlation) -> usize| of.as_ref().map_or(0, f);
    symbols.set("images", size(&|of| of.images.count));
    symbols.set("grid_rows", size(&|of| of.grid[0]));
    symbols.set("grid_columns", size(&|of| of.grid[1]));
    symbols.set("outs", size(&|of| of.outs.count));
    symbols.set("channels", size(&|of| of.channels.count));
    symbols.set("groups", input.groups);
    symbols.set("element", input.dtype().size());
    symbols.set("nhwc", input.layout == Layout::Nhwc);
    symbols
}

fn space() -> Result<ParamSpace, SpaceError> {
    let space = ParamSpace::builder()
        .param(Param::ints("side", [2, 4]))
        .param(Param::ints("m_s", THREAD_TILE))
        .param(Param::ints("n_s", THREAD_TILE))
        .param(Param::ints("m_l", BLOCK_TILE))
        .param(Param::ints("n_l", BLOCK_TILE))
        .param(Param::ints("k_l", [1, 2, 4]))
        .param(Param::ints("u", [4, 8, 16, 32]))
        .param(Param::ints("vec_a", [1, 2, 4]))
        .param(Param::ints("vec_b", [1, 2, 4]))
        .param(Param::ints("stages", [1, 2, 3, 4]))
        .param(Param::words("load", ["global", "nc", "async"]))
        .param(Param::ints("k_s", [1, 2]))
        .param(Param::ints("vec_c", [1, 2, 4]))
        .param(Param::words("raster", ["m", "n"]))
        .param(Param::words("bounds", ["checked", "whole"]));
    gemm::product(memory(matrices(space))).build()
}

/// The product in words of the GEMM. The places of a tile are its batch, of which there are enough to fill a device without slices.
fn matrices(space: SpaceBuilder) -> SpaceBuilder {
    space
        .define("tile_rows", "(grid_rows + side - 1) // side")
        .define("tile_columns", "(grid_columns + side - 1) // side")
        .define("tile_count", "images * tile_rows * tile_columns")
        .define("tile_pitch", "(tile_count + 3) // 4 * 4")
        .define("out_pitch", "(outs + 3) // 4 * 4")
        .define("m", "out_pitch if nhwc else tile_pitch")
        .define("n", "tile_pitch if nhwc else out_pitch")
        .define("k", "channels")
        .define("transpose_a", "False")
        .define("transpose_b", "not nhwc")
        .define("lda", "m")
        .define("ldb", "k if nhwc else n")
        .define("ldc", "m")
        .define("numbers", "(side + 2) * (side + 2)")
        .define("batch", "numbers * groups")
        .define("multiplies", "True")
        .define("k_g", "1")
        .define("split", "'ordered'")
        .define("occupancy", "1")
        .define("sum_bytes", "element")
        .define("result_bytes", "element")
        .define("complex", "False")
        .define("lanes", "1")
        .define("rounds_to_bf16", "False")
        .define("epilogue", "False")
        // Matrices of a batch are multiples of four elements apart.
        .define("align", "4 * element")
}

fn memory(space: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Hardware, Implementation};
    let errors = format!("side == 2 or channels >= {}", winograd::FEWEST_CHANNELS);
    space
        .define("filter_number", "groups * channels * out_pitch")
        .define("input_number", "groups * channels * tile_pitch")
        .define("product_number", "groups * out_pitch * tile_pitch")
        .define("filter_bytes", "(numbers * filter_number * element + 255) // 256 * 256")
        .define("input_bytes", "(numbers * input_number * element + 255) // 256 * 256")
        .define("product_bytes", "(numbers * product_number * element + 255) // 256 * 256")
        .define("transformed_bytes", "filter_bytes + input_bytes + product_bytes")
        .define("outputs", "images * grid_rows * grid_columns")
        .rule(
            "errors",
            Implementation,
            &errors,
            "the larger tile's errors are within the bound of sums that are not short",
        )
        .rule(
            "addresses",
            Implementation,
            "max(filter_number, input_number, product_number) < 2 ** 31",
            "a thread of a transformation is a 31-bit number",
        )
        .rule(
            "transformed",
            Hardware,
            "transformed_bytes <= memory_bytes // 4",
            "transformed numbers and products are held in device memory",
        )
}

/// What runs before anything is tuned: the larger tile where it is legal, and the GEMM's choice for products of that size.
pub(super) fn default_point(space: &BoundSpace) -> Option<Point> {
    let int = |name| space.symbols().get(name).and_then(Value::as_int).unwrap_or(1).max(1);
    let side = if int("channels") >= winograd::FEWEST_CHANNELS as i64 { 4 } else { 2 };
    let tiles = |name| (int(name) + side - 1) / side;
    let (tiles, outs) = (int("images") * tiles("grid_rows") * tiles("grid_columns"), int("outs"));
    let nhwc = space.symbols().get("nhwc") == Some(&Value::Bool(true));
    let (m, n) = if nhwc { (outs, tiles) } else { (tiles, outs) };
    let batch = (side + 2) * (side + 2) * int("groups");
    let preferences = Preferences::new(Product::of(space, [m, n, int("channels")], int("element"), batch, false));
    space.preferred_point(|param| match &*param.name {
        "side" => [side, 2].map(Value::Int).into(),
        name => preferences.wanted(name),
    })
}
