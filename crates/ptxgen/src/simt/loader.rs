//! How the threads of a block share the loads of one operand's tile.

use crate::ir::{Builder, Reg};
use tilewright_core::space::{RuleGroup, SpaceBuilder};

/// What the space derives of a loader, each for both operands.
pub(crate) const NAMES: [&str; 6] = ["along", "down", "passes_along", "passes_down", "loads", "pitch"];

/// Steps of the reduction that a thread reads at once from a tile that stays contiguous along it.
pub(crate) const DEPTH: u32 = 4;

/// Says which tiles stay contiguous along the reduction (`deep_a`, `deep_b`): asynchronous copies of several elements do not transpose.
/// A thread has rows of `chunk` neighbours.
fn stays(space: SpaceBuilder, side: &str, along_k: &str, chunk: &str) -> SpaceBuilder {
    use RuleGroup::Implementation;
    let (deep, name) = (format!("deep_{side}"), |rule: &str| format!("{rule}_{side}"));
    let steps = format!("{deep} == 0 or (element == {DEPTH} and lanes == 1 and u % ({DEPTH} * k_l) == 0)");
    let rows = format!("{deep} == 0 or down_{side} % {chunk} == 0");
    space
        .define(&deep, &format!("1 if load == 'async' and vec_{side} > 1 and ({along_k}) else 0"))
        .rule(&name("deep_steps"), Implementation, &steps, "four steps of 4 bytes are read at once")
        .rule(&name("deep_rows"), Implementation, &rows, "the rows of a pass have their places by one of them")
}

/// Where the tile's rows lie that stays contiguous along the reduction: so many, of which a thread has `chunk` neighbours. Those are put
/// apart, so that rows lie side by side that threads read at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) count: u32,
    pub(crate) chunk: u32,
}

impl Rows {
    /// Where a row lies, in rows.
    pub(crate) fn place(&self, row: u32) -> u32 {
        row % self.chunk * (self.count / self.chunk) + row / self.chunk
    }

    /// The same of a row that is known when the code runs.
    fn place_of(&self, b: &mut Builder, row: Option<Reg>) -> Option<Reg> {
        let row = row.filter(|_| self.chunk > 1)?;
        let (within, high) = (b.rem(row, self.chunk), b.div(row, self.chunk));
        Some(b.scale_add(within, self.count / self.chunk, high))
    }
}

/// Adds what a loader is, all but its pitch, with the rules that make it one. `along_k` says whether memory is contiguous along
/// the reduction, `tile` is the length of the tile's rows, and `aligned` says where vectors may be loaded. Where copies transpose no
/// vectors, `deep` may say what becomes of the tile; it is refused otherwise. Where `straight` holds, nothing is brought in.
pub(crate) fn rules(
    space: SpaceBuilder,
    (side, along_k, tile): (&str, &str, &str),
    aligned: &str,
    deep: Option<&str>,
    straight: Option<&str>,
) -> SpaceBuilder {
    use RuleGroup::{Guideline, Hardware, Implementation};
    let vec = format!("vec_{side}");
    let (contiguous, other) = (format!("contiguous_{side}"), format!("other_{side}"));
    let (along, down) = (format!("along_{side}"), format!("down_{side}"));
    let unless = straight.map_or(String::new(), |straight| format!("{straight} or "));
    let shared_out = format!(
        "{unless}({contiguous} % {vec} == 0 and threads % {along} == 0 and ({contiguous} // {vec}) % {along} == 0 \
         and {other} % {down} == 0)"
    );
    let idle = format!("{unless}4 * {contiguous} * {other} >= {vec} * threads or {vec} == 1");
    let narrow = format!("load != 'async' or {vec} * element >= 4");
    let unaligned = "vectors lie at multiples of their size, and none lies across the end";
    let many = "a thread that loads so much computes on too little";
    let (loads, name) = (format!("loads_{side}"), |rule: &str| format!("{rule}_{side}"));
    let space = space
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
        .rule(&name("many_loads"), Guideline, &format!("{unless}{loads} <= 16"), many)
        .rule(&name("idle_loaders"), Guideline, &idle, "narrower loads keep more threads busy");
    match deep {
        Some(chunk) => stays(space, side, along_k, chunk),
        None => {
            let transposed = format!("load != 'async' or {vec} == 1 or not ({along_k})");
            space.rule(&name("transposed_copy"), Hardware, &transposed, "an asynchronous copy does not transpose")
        }
    }
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
    /// Elements from one step of the reduction to the next in shared memory, or from row to row of a tile that is contiguous along it.
    pub(crate) pitch: u32,
    /// Where rows lie of a tile that stays contiguous along the reduction.
    pub(crate) rows: Option<Rows>,
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
        Self { along_k, vec, along, down, passes_along, passes_down, loads, pitch, rows: None }
    }

    /// The same to a tile that stays contiguous along the reduction.
    pub(crate) fn keeping(self, rows: Option<Rows>) -> Self {
        Self { rows, ..self }
    }

    /// Address of a row and a step in shared memory, from that of the tile and bytes of an element.
    pub(crate) fn place(&self, b: &mut Builder, (row, k): (Option<Reg>, Option<Reg>), bytes: u32, tile: Reg) -> Reg {
        let (down, along) = match self.rows {
            Some(rows) => (rows.place_of(b, row).or(row), k),
            None => (k, row),
        };
        let in_row = b.scale_add(along, bytes, tile);
        b.scale_add(down, self.pitch * bytes, in_row)
    }

    /// Threads that load.
    pub(crate) fn active(&self) -> u32 {
        self.along * self.down
    }

    /// Elements that the threads load side by side.
    pub(crate) fn run(&self) -> u32 {
        self.along * self.passes_along * self.vec
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
            let to = match self.rows {
                // Passes are whole chunks apart.
                Some(rows) => row / rows.chunk * self.pitch + step,
                None => step * self.pitch + row,
            };
            Slot { number, down: down as usize, offset: x, to, edge: edge as usize, step }
        };
        (0..self.passes_down).flat_map(|down| (0..self.passes_along).map(move |along| slot(down, along))).collect()
    }
}
