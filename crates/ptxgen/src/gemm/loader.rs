//! How the threads of a block share the loads of one operand's tile.

/// What the space derives of a loader, each for both operands.
pub(super) const NAMES: [&str; 6] = ["along", "down", "passes_along", "passes_down", "loads", "pitch"];

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
