//! How the threads of a block share the loads of one operand's tile.

use tilewright_core::space::{RuleGroup, SpaceBuilder};

/// What the space derives of a loader, each for both operands.
pub(crate) const NAMES: [&str; 6] = ["along", "down", "passes_along", "passes_down", "loads", "pitch"];

/// Adds what a loader is, all but its pitch, with the rules that make it one. `along_k` says whether memory is contiguous along
/// the reduction, `tile` is the length of the tile's rows, and `aligned` says where vectors may be loaded.
pub(crate) fn rules(space: SpaceBuilder, side: &str, along_k: &str, tile: &str, aligned: &str) -> SpaceBuilder {
    use RuleGroup::{Guideline, Hardware, Implementation};
    let vec = format!("vec_{side}");
    let (contiguous, other) = (format!("contiguous_{side}"), format!("other_{side}"));
    let (along, down) = (format!("along_{side}"), format!("down_{side}"));
    let shared_out = format!(
        "{contiguous} % {vec} == 0 and threads % {along} == 0 and ({contiguous} // {vec}) % {along} == 0 \
         and {other} % {down} == 0"
    );
    let idle = format!("4 * {contiguous} * {other} >= {vec} * threads or {vec} == 1");
    let transposed = format!("load != 'async' or {vec} == 1 or not ({along_k})");
    let narrow = format!("load != 'async' or {vec} * element >= 4");
    let unaligned = "vectors lie at multiples of their size, and none lies across the end";
    let many = "a thread that loads so much computes on too little";
    let (loads, name) = (format!("loads_{side}"), |rule: &str| format!("{rule}_{side}"));
    space
        .define(&contiguous, &format!("(u if {along_k} else {tile})"))
        .define(&other, &format!("({tile} if {along_k} else u)"))
        .define(&along, &format!("min({contiguous} // {vec}, threads)"))
        .define(&down, &format!("min(threads // {along}, {other})"))
        .rule(&name("width"), Hardware, &format!("{vec} * element <= 16"), "no load is wider than 16 bytes")
        .rule(&name("narrow_copy"), Hardware, &narrow, "an asynchronous copy has 4 bytes at least")
        .rule(&name("aligned"), Hardware, aligned, unaligned)
        .rule(&name("shared_out"), Implementation, &shared_out, "every thread makes as many loads")
        .define(&format!("passes_along_{side}"), &format!("{contiguous} // {vec} // {along}"))
        .define(&format!("passes_down_{side}"), &format!("{other} // {down}"))
        .define(&loads, &format!("passes_along_{side} * passes_down_{side}"))
        .define(&format!("edges_{side}"), &format!("(passes_down_{side} if {along_k} else passes_along_{side})"))
        .rule(&name("many_loads"), Guideline, &format!("{loads} <= 16"), many)
        .rule(&name("transposed_copy"), Hardware, &transposed, "an asynchronous copy does not transpose")
        .rule(&name("idle_loaders"), Guideline, &idle, "narrower loads keep more threads busy")
}

/// `along` threads stand side by side in the contiguous direction of memory, `down` across it; they take several passes in
/// both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loader {
    /// Whether memory is contiguous along the reduction: the tile is then transposed on its way.
    pub(crate) along_k: bool,
    /// Elements of one load.
    pub(crate) vec: u32,
    /// Threads side by side.
    pub(crate) along: u32,
    /// Threads across.
    pub(crate) down: u32,
    /// Passes side by side.
    pub(crate) passes_along: u32,
    /// Passes across.
    pub(crate) passes_down: u32,
    /// Loads of a thread per stage.
    pub(crate) loads: u32,
    /// Elements from one step of the reduction to the next in shared memory.
    pub(crate) pitch: u32,
}

/// One load of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Position among the thread's loads of a stage.
    pub(crate) number: usize,
    /// Which pass across.
    pub(crate) down: usize,
    /// Elements beyond the address of the pass across.
    pub(crate) offset: u32,
    /// Elements beyond the thread's place in shared memory.
    pub(crate) to: u32,
    /// Which pass in the direction of the tile's rows (columns for B).
    pub(crate) edge: usize,
    /// Steps of the reduction beyond the thread's first.
    pub(crate) step: u32,
}

impl Loader {
    /// Of an operand, by its values of [`NAMES`].
    pub(crate) fn new(along_k: bool, vec: u32, values: [u32; NAMES.len()]) -> Self {
        let [along, down, passes_along, passes_down, loads, pitch] = values;
        Self { along_k, vec, along, down, passes_along, passes_down, loads, pitch }
    }

    /// Threads that load.
    pub(crate) fn active(&self) -> u32 {
        self.along * self.down
    }

    /// Elements from pass to pass in the direction of the tile's rows, and the number of those passes.
    pub(crate) fn edges(&self) -> (u32, u32) {
        if self.along_k { (self.down, self.passes_down) } else { (self.along * self.vec, self.passes_along) }
    }

    /// The loads of a thread, in order.
    pub(crate) fn slots(&self) -> Vec<Slot> {
        let slot = |down: u32, along: u32| {
            let (x, y) = (along * self.along * self.vec, down * self.down);
            let (row, step, edge) = if self.along_k { (y, x, down) } else { (x, y, along) };
            let number = (down * self.passes_along + along) as usize;
            Slot { number, down: down as usize, offset: x, to: step * self.pitch + row, edge: edge as usize, step }
        };
        (0..self.passes_down).flat_map(|down| (0..self.passes_along).map(move |along| slot(down, along))).collect()
    }
}
