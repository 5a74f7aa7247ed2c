//! Counts operations of a kernel from its tree, as expressions in the sizes of its input.
//!
//! What is counted is what the emulator counts dynamically, by the same rules; tests compare the two. Threads of a block are
//! walked one by one, since there are at most 1024 of them and tiles are numbers; blocks, iterations and sizes stay
//! symbolic. The steps:
//!
//! | file | what |
//! |---|---|
//! | `walk`, `conditions` | goes through the tree: which operations run under which conditions, in which loops |
//! | `class` | what an instruction counts as |
//! | `lanes` | a condition or an address as a number for each thread and a part that all threads of a block share |
//! | `reach` | how often a place in the tree is reached |
//! | `warps` | how many warps have a thread left, and with which stride they access memory, for every level of the conditions |
//! | `density` | which share of an array accesses with a stride use, all instructions together |
//! | `domain` | how many blocks and iterations reach a level |
//! | `known`, `cases`, `classes` | data that are given, and what depends on them: gone through in numbers, what is alike once |
//! | `linear` | sums of such numbers over many thresholds, in closed form |
//! | `facts` | what is known to be positive: loops run at least once |
//!
//! Data-dependent control is refused by a [`CountError`] that names the statistics it would take. Who knows them gives their
//! names ([`Launch::statistics`]), and their values with the sizes. Who knows the data themselves, as a kernel does that looks up
//! where it reads in a table of its own making, gives them ([`Launch::tables`]); then parameters must be numbers.

mod cases;
mod class;
mod classes;
mod conditions;
mod density;
mod domain;
mod facts;
mod known;
mod lanes;
mod linear;
mod reach;
mod walk;
mod warps;

use crate::ir::{Index, Module};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tilewright_core::counts::{Counts, CountsBuilder, Expr, Property};

/// How a module is launched, in sizes of the input: parameters named as sizes in the expressions.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// Blocks along each axis.
    pub grid: [Index; 3],
    /// What parameters of the entry are. Those that are missing are sizes of their own name.
    pub params: BTreeMap<String, Index>,
    /// Buffers that are not dense, by the names of their parameters.
    pub arrays: BTreeMap<String, Array>,
    /// Statistics of data that are given, by the names that [`CountError::DataDependent`] asks for. They are sizes of the
    /// expressions like any other: `.trips` is how often a loop goes round each time that it is reached, `.threads` how many
    /// threads of a block meet a condition, and `.reading` how many copy. Where it matters which threads, they are the first
    /// of the block.
    pub statistics: BTreeSet<String>,
    /// What code divides the index of a block by, along each axis, one number after the other: how many values each digit has, from
    /// the fastest on. Their product is the number of blocks. Empty where the index is not taken apart.
    pub digits: [Vec<i64>; 3],
    /// Buffers whose data are known, by the names of their parameters: words of 4 bytes. Loads and conditions that depend on them
    /// are counted where all sizes around them are numbers.
    pub tables: BTreeMap<String, Arc<[u32]>>,
}

/// A buffer of rows (columns, where those are contiguous) that lie further apart than they are long.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Elements of a row that the kernel uses.
    pub used: Index,
    /// Elements from row to row.
    pub pitch: Index,
}

impl Launch {
    /// So many blocks; parameters are sizes of their own names, and buffers are dense.
    pub fn new(grid: [Index; 3]) -> Self {
        let (params, arrays, tables) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { grid, params, arrays, statistics: BTreeSet::new(), digits: [const { Vec::new() }; 3], tables }
    }
}

/// Why a kernel cannot be counted.
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CountError {
    /// Control depends on data.
    #[error("{place} depends on data ({what}); to count it, these statistics are needed: {}", statistics.join(", "))]
    DataDependent { place: String, what: String, statistics: Vec<String> },
    /// The counter has no form for it.
    #[error("{place}: {what} cannot be counted: {index}")]
    NotCountable { place: String, what: &'static str, index: String },
    /// More cases than the counter goes through.
    #[error("{place}: {cases} cases of {what}, where {limit} are gone through at most")]
    TooMany { place: String, what: &'static str, cases: u64, limit: u64 },
}

/// Counts launches of modules.
#[derive(Debug, Default)]
pub struct Counter {
    builder: CountsBuilder,
}

impl Counter {
    /// Nothing counted yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one launch.
    ///
    /// # Errors
    /// Control that depends on data, or in ways that the counter has no form for, with the place in the tree.
    pub fn launch(&mut self, module: &Module, launch: &Launch) -> Result<(), CountError> {
        let totals = walk::totals(&module.entry, launch)?;
        domain::express(&mut self.builder, launch, totals)?;
        let one = self.builder.constant(1);
        self.builder.count(Property::Launches, one);
        Ok(())
    }

    /// All that was counted.
    pub fn finish(mut self) -> Counts {
        let one = self.builder.constant(1);
        self.builder.count(Property::Constant, one);
        overlaps(&mut self.builder);
        self.builder.finish()
    }
}

/// Counts one launch of one module.
///
/// # Errors
/// As [`Counter::launch`].
pub fn count(module: &Module, launch: &Launch) -> Result<Counts, CountError> {
    let mut counter = Counter::new();
    counter.launch(module, launch)?;
    Ok(counter.finish())
}

/// The lesser of loads and stores of each width and step.
fn overlaps(builder: &mut CountsBuilder) {
    use tilewright_core::counts::{Op, Space};
    let some = |expr: &Expr| builder.value(*expr) != Some(0);
    let all: Vec<_> = builder.totals().filter(|(_, number)| some(number)).collect();
    for (property, loads) in &all {
        let Property::Accesses(Op::Load(Space::Global, bits), step) = *property else { continue };
        let store = Property::Accesses(Op::Store(Space::Global, bits), step);
        if let Some((_, stores)) = all.iter().find(|(p, _)| *p == store) {
            let both = builder.min(*loads, *stores);
            builder.count(Property::Overlap(bits, step), both);
        }
    }
}

#[cfg(test)]
mod tests;
