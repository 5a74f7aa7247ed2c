//! What rules and code need to know of an input: the correlations it comes to, and which of their elements are neighbours.

use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::space::Symbols;
use tilewright_ops::conv::{ConvInput, Correlation};

/// What the correlations of an input have in common, and the largest of their sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Outputs of a group.
    pub(crate) outs: usize,
    /// Images, rows and columns of the largest grid.
    pub(crate) images: usize,
    pub(crate) grid: [usize; 2],
    /// Length of the longest sums.
    pub(crate) sums: usize,
    /// How many correlations sum anything.
    pub(crate) count: usize,
    /// Most elements of a load that are neighbours along the reduction, of what is gathered.
    pub(crate) steps: usize,
    /// The same along positions.
    pub(crate) places: usize,
    /// Most elements of a load of the filters.
    pub(crate) filter: usize,
    /// Whether images are the positions that are neighbours in memory; else columns are as near as positions get.
    pub(crate) images_first: bool,
    /// Whether the filters are read along the reduction; else their outputs are neighbours.
    pub(crate) filter_along: bool,
    /// Whether a tap may fall beyond the columns of an image.
    pub(crate) columns_checked: bool,
    /// Whether outputs are neighbours in the result.
    pub(crate) outs_first: bool,
    /// Elements of the result.
    pub(crate) result: usize,
}

/// Most elements of a load, of any type.
const WIDEST: usize = 8;

/// The widest load that begins at multiples of all of these only.
fn width(of: impl IntoIterator<Item = usize>) -> usize {
    let zeros = of.into_iter().map(|x| if x == 0 { usize::BITS } else { x.trailing_zeros() }).min();
    1 << zeros.unwrap_or(usize::BITS).min(WIDEST.trailing_zeros())
}

impl Facts {
    pub(crate) fn of(input: &ConvInput) -> Self {
        let all = Correlation::all(input);
        let most = |of: &dyn Fn(&Correlation) -> usize| all.iter().map(of).max().unwrap_or(0);
        let least = |of: &dyn Fn(&Correlation) -> usize| all.iter().map(of).min().unwrap_or(1);
        let any = |of: &dyn Fn(&Correlation) -> bool| all.iter().any(of);
        Self {
            outs: most(&|of| of.outs.count),
            images: most(&|of| of.images.count),
            grid: [0, 1].map(|d| most(&|of| of.grid[d])),
            sums: most(&Correlation::depth),
            count: all.iter().filter(|of| of.depth() > 0).count(),
            steps: least(&along_steps),
            places: least(&along_places),
            filter: least(&of_filter),
            images_first: any(&|of| of.images.stride == 1),
            filter_along: !any(&|of| of.outs.stride == 1),
            columns_checked: any(&|of| !columns_inside(of)),
            outs_first: any(&|of| of.result.out == 1),
            result: input.tensors().lens()[input.written()],
        }
    }
}

/// Whether the channel is what changes from step to step of the reduction; else it is the tap.
pub(crate) fn channels_first(of: &Correlation) -> bool {
    of.channels.stride == 1
}

fn columns_inside(of: &Correlation) -> bool {
    let last = of.origin[1] + ((of.grid[1].max(1) - 1) * of.step[1] + of.reach()[1]) as isize;
    of.origin[1] >= 0 && last < of.columns.count as isize
}

fn along_steps(of: &Correlation) -> usize {
    let groups = of.groups.iter().map(|group| group.gathered);
    let strides = [of.channels.count, of.rows.stride, of.columns.stride, of.images.stride];
    if channels_first(of) { width(strides.into_iter().chain(groups)) } else { 1 }
}

fn along_places(of: &Correlation) -> usize {
    let groups = of.groups.iter().map(|group| group.gathered);
    let strides = [of.channels.stride, of.rows.stride];
    let all = strides.into_iter().chain(groups);
    if of.images.stride == 1 {
        return width(all.chain([of.images.count, of.columns.stride]));
    }
    if of.columns.stride * of.step[1] != 1 || !columns_inside(of) {
        return 1;
    }
    // Every column of a vector exists, and none but the first is looked at.
    let columns = of.taps.iter().map(|tap| tap.at[1]).chain([of.origin[1].unsigned_abs(), of.grid[1]]);
    width(all.chain(columns).chain([of.images.stride]))
}

fn of_filter(of: &Correlation) -> usize {
    let groups = || of.groups.iter().map(|group| group.filter);
    let taps = || of.taps.iter().map(|tap| tap.filter);
    if of.outs.stride == 1 {
        return width(groups().chain(taps()).chain([of.outs.count, of.filter_channel]));
    }
    let outs = groups().chain([of.outs.stride]);
    let one_channel = of.channels.count == 1;
    if channels_first(of) {
        let near = one_channel || of.filter_channel == 1;
        return if near { width(outs.chain(taps()).chain([of.channels.count])) } else { 1 };
    }
    let first = of.taps.first().map_or(0, |tap| tap.filter);
    if !taps().enumerate().all(|(i, tap)| tap == first + i) {
        return 1;
    }
    let whole = one_channel || of.filter_channel == of.taps.len();
    let across = width([of.taps.len(), of.filter_channel]);
    let along = if whole { width([of.depth()]) } else { 1 };
    width(outs.chain([first])).min(across.max(along))
}

/// The facts of a device and an input by the names that rules use.
pub(super) fn symbols(device: &DeviceSpec, input: &ConvInput) -> Symbols {
    let mut symbols = input.symbols(device);
    let facts = Facts::of(input);
    let sizes = [
        ("outs", facts.outs),
        ("images", facts.images),
        ("grid_rows", facts.grid[0]),
        ("grid_columns", facts.grid[1]),
        ("sums", facts.sums),
        ("correlations", facts.count),
        ("near_steps", facts.steps),
        ("near_places", facts.places),
        ("near_filter", facts.filter),
        ("result_elements", facts.result),
        // Bytes of a sum, where `element` is those of an operand.
        ("sum_bytes", input.types.accumulator.size()),
    ];
    sizes.into_iter().for_each(|(name, size)| symbols.set(name, size));
    let flags = [
        ("images_first", facts.images_first),
        ("filter_along", facts.filter_along),
        ("columns_checked", facts.columns_checked),
        ("rounds_to_bf16", input.types.output == DType::Bf16),
    ];
    flags.into_iter().for_each(|(name, flag)| symbols.set(name, flag));
    symbols
}
