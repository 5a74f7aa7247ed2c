//! The mixed pool: generated kernels and the routines of a vendor's library as variants of one computation, and what a selector
//! among them comes to on tasks that it was not fitted on.
//!
//! A variant costs what its best configuration costs: of a generated kernel the best that was found for the task, of the library's
//! routine with several algorithms the fastest (`cublaslt-best`), or its own choice (`cublaslt`). The selector is the one that `tune` learns
//! ([`learn`]), on features of the input. Tasks of the same sizes, in all types and layouts, are held out together.

pub(super) mod stage;

use super::rows::{DEFAULTS, TaskRow};
use crate::report::geomean;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tilewright_core::choice::{Case, ChoiceError, ChoiceSet, SelectError, Trial};
use tilewright_core::device::DeviceSpec;
use tilewright_core::feature::FeatureSchema;
use tilewright_core::id::KernelId;
use tilewright_core::objective::Objective;
use tilewright_core::problem::AnyKernel;
use tilewright_core::selector::{Candidate, Selector, VariantOrder};
use tilewright_core::space::Config;
use tilewright_runtime::selection::{FLOOR, SelectionError, SelectorHeader, learn};
use tilewright_variant_select::evaluate::folds;

/// The fastest of all that a vendor's library has.
const BESTS: [&str; 2] = ["cublaslt-best", "cudnn-best"];

/// How often tasks are held out: the tasks of each size alone, as long as there are no more sizes.
const MOST_FOLDS: usize = 32;

/// What ways of choosing in a pool come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolReport {
    /// Tasks on which the vendor's default ran.
    pub tasks: usize,
    /// Different sizes among them.
    pub sizes: usize,
    /// What was chosen among.
    pub variants: Vec<String>,
    /// The ways.
    pub scores: Vec<PoolScore>,
    /// Task by task.
    pub choices: Vec<PoolChoice>,
}

/// What a way of choosing comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolScore {
    /// `generated`: the best of the generated kernels, always; `selector`: the variant that it expects to be the fastest; `first two
    /// timed`: the faster of its first two; `keeping V`: a selector that leaves the vendor's variant V only where that is surely
    /// worth it; `oracle`: the fastest of all.
    pub way: String,
    /// Tasks that it chose for: with `keeping V` those that V ran on.
    pub tasks: usize,
    /// The chosen variant's performance over that of the vendor's default.
    pub over_default: Ratios,
    /// The same over the fastest of all that the vendor's library has.
    pub over_best: Ratios,
}

/// Ratios of performances: above 1, the choice is faster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratios {
    /// Geometric mean.
    pub geomean: f64,
    /// The least.
    pub worst: f64,
    /// How many are below 0.97: what is closer to 1 is noise.
    pub below: usize,
}

/// The choices for a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolChoice {
    /// As in the task's row.
    pub stage: String,
    /// As in the task's row.
    pub name: String,
    /// As in the task's row.
    pub dtype: String,
    /// The variant that each way chose, with its performance over that of the vendor's default; in the order of the scores. None where
    /// the variant that is to be kept did not run.
    pub chosen: Vec<Option<(String, f64)>>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// Nothing to compare with.
    #[error("no default of a vendor's library ({}) took part in a task", DEFAULTS.join(", "))]
    NoVendor,
    /// Nothing is held out.
    #[error("{found} sizes of tasks are too few: a selector is judged on sizes that it was not fitted on")]
    TooFew {
        /// How many there are.
        found: usize,
    },
    /// The selector.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// Tasks that cannot be held out.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// Features or costs of a task that are none.
    #[error("tasks beside the vendor's default: {0}")]
    Row(#[from] ChoiceError),
    /// There was no time left.
    #[error("the time was up before all tasks were judged")]
    Stopped,
}

/// The place of a task, and of the variant that each way chose for it, in the order of [`ways`].
type Chosen = (usize, Vec<Option<usize>>);

/// A task of the pool.
struct Entry<'a> {
    row: &'a TaskRow,
    case: Case,
    /// The vendor's default, and its best, by their places among the trials.
    default: usize,
    best: usize,
}

/// Judges ways of choosing on these rows. `kernels` are those of the rows' computation; they say the features of inputs, and rows
/// whose input none of them takes are left out. Ends before it is done once `stop` says so.
///
/// # Errors
/// Too few tasks, or none in which the vendor's default took part; what [`learn`] refuses; the time was up.
pub fn judge(
    rows: &[TaskRow],
    kernels: &[&dyn AnyKernel],
    device: &Arc<DeviceSpec>,
    seed: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<PoolReport, PoolError> {
    let took_part = |name: &&str| rows.iter().any(|row| row.baselines.iter().any(|of| of.name == *name));
    let Some(default) = DEFAULTS.into_iter().find(took_part) else { return Err(PoolError::NoVendor) };
    let (data, entries) = entries(rows, kernels, device, default)?;
    let best = BESTS.into_iter().find(|name| entries.iter().any(|entry| entry.has(name)));
    let kept: Vec<&'static str> = [default].into_iter().chain(best).collect();
    let sizes = entries.iter().map(|entry| entry.case.group).collect::<BTreeSet<_>>().len();
    if sizes < 2 {
        return Err(PoolError::TooFew { found: sizes });
    }
    let header = SelectorHeader::new(kernels[0].computation(), device, Objective::default(), Config::default());
    let judge = Judge { entries: &entries, data: &data, header: SelectorHeader { seed, ..header }, kept: &kept };
    let fold = |held_out: &Vec<usize>| if stop() { Err(PoolError::Stopped) } else { judge.fold(held_out) };
    let judged: Result<Vec<_>, PoolError> = folds(&data, MOST_FOLDS, seed)?.par_iter().map(fold).collect();
    let mut chosen: Vec<Chosen> = judged?.into_iter().flatten().collect();
    chosen.sort_unstable();
    Ok(report(&entries, sizes, &kept, &chosen))
}

/// The tasks in which the vendor's default ran, also as the cases of a choice.
fn entries<'a>(
    rows: &'a [TaskRow],
    kernels: &[&dyn AnyKernel],
    device: &Arc<DeviceSpec>,
    default: &str,
) -> Result<(ChoiceSet, Vec<Entry<'a>>), ChoiceError> {
    let input = kernels.first().map(|kernel| kernel.schema().input).unwrap_or_default();
    let mut data = ChoiceSet::new(FeatureSchema { input, config: Vec::new() });
    let mut groups: BTreeMap<&str, u32> = BTreeMap::new();
    let mut entries = Vec::new();
    for row in rows {
        let Some(problem) = kernels.iter().find_map(|kernel| kernel.problem(device, &row.input).ok()) else { continue };
        let trials = trials(row);
        let Some(default) = trials.iter().position(|trial| trial.candidate.variant == default) else { continue };
        let generated = trials.len() - row.baselines.len();
        let cost = |at: &usize| trials[*at].cost.unwrap_or(f64::INFINITY);
        let best = (generated..trials.len()).min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap_or(default);
        let (sizes, next) = (row.shape.split(' ').next().unwrap_or_default(), groups.len() as u32);
        let group = *groups.entry(sizes).or_insert(next);
        let mut features = Vec::new();
        problem.input_features(&mut features);
        let case = Case { features, trials, group };
        data.push(case.clone())?;
        entries.push(Entry { row, case, default, best });
    }
    Ok((data, entries))
}

/// The variants of a row, the vendor's last.
fn trials(row: &TaskRow) -> Vec<Trial> {
    let ours = row.kernels.iter().map(|of| (of.kernel.as_str(), of.cost));
    // An older version noted the winner only, and one before it no kernel.
    let name = if row.kernel.is_empty() { "generated" } else { &row.kernel };
    let winner = row.kernels.is_empty().then_some((name, row.cost));
    let theirs = row.baselines.iter().map(|of| (of.name.as_str(), of.cost));
    let trial = |(variant, cost): (&str, f64)| Trial {
        candidate: Candidate { variant: variant.to_owned(), features: Vec::new() },
        cost: Some(cost),
    };
    ours.chain(winner).chain(theirs).map(trial).collect()
}

impl Entry<'_> {
    fn cost(&self, at: usize) -> f64 {
        self.case.trials[at].cost.unwrap_or(f64::INFINITY)
    }

    fn has(&self, variant: &str) -> bool {
        self.case.trials.iter().any(|trial| trial.candidate.variant == variant)
    }

    fn fastest(&self, of: impl Iterator<Item = usize>) -> Option<usize> {
        of.min_by(|a, b| self.cost(*a).total_cmp(&self.cost(*b)))
    }

    fn order(&self, selector: &dyn Selector) -> VariantOrder {
        let candidates: Vec<Candidate> = self.case.trials.iter().map(|trial| trial.candidate.clone()).collect();
        let mut order = VariantOrder::new();
        selector.rank(&self.case.features, &candidates, &mut order);
        order
    }

    /// The performance of a variant over that of another.
    fn over(&self, base: usize, at: usize) -> f64 {
        self.cost(base) / self.cost(at)
    }
}

struct Judge<'a> {
    entries: &'a [Entry<'a>],
    data: &'a ChoiceSet,
    header: SelectorHeader,
    kept: &'a [&'static str],
}

impl Judge<'_> {
    /// What each way chooses for the tasks that are held out.
    fn fold(&self, held_out: &[usize]) -> Result<Vec<Chosen>, PoolError> {
        let out: BTreeSet<usize> = held_out.iter().copied().collect();
        let rest: Vec<usize> = (0..self.data.len()).filter(|at| !out.contains(at)).collect();
        let learned = learn(self.header.clone(), self.data.subset(&rest), None)?;
        let plain = learned.fit()?;
        let kept = self.kept.iter().map(|name| learned.clone().keeping(&KernelId::new(name))?.fit());
        let kept: Vec<Box<dyn Selector>> = kept.collect::<Result<_, SelectionError>>()?;
        let of = |at: &usize| {
            let entry = &self.entries[*at];
            let (all, order) = (0..entry.case.trials.len(), entry.order(&*plain));
            let generated = all.len() - entry.row.baselines.len();
            let timed = entry.fastest(order.iter().take(2).copied());
            let mut chosen = vec![entry.fastest(0..generated), order.first().copied(), timed];
            for (name, selector) in self.kept.iter().zip(&kept) {
                chosen.push(entry.order(&**selector).first().copied().filter(|_| entry.has(name)));
            }
            chosen.push(entry.fastest(all));
            (*at, chosen)
        };
        Ok(held_out.iter().map(of).collect())
    }
}

/// The names of the ways.
fn ways(kept: &[&str]) -> Vec<String> {
    let kept = kept.iter().map(|name| format!("keeping {name}"));
    let first = ["generated", "selector", "first two timed"].map(str::to_owned);
    first.into_iter().chain(kept).chain(["oracle".to_owned()]).collect()
}

fn report(entries: &[Entry<'_>], sizes: usize, kept: &[&str], chosen: &[Chosen]) -> PoolReport {
    let score = |(way, name): (usize, String)| {
        let ratios = |base: fn(&Entry<'_>) -> usize| {
            let one = |(at, of): &Chosen| Some(entries[*at].over(base(&entries[*at]), of[way]?));
            let all: Vec<f64> = chosen.iter().filter_map(one).collect();
            Ratios {
                geomean: geomean(&all).unwrap_or(0.0),
                worst: all.iter().copied().min_by(f64::total_cmp).unwrap_or(0.0),
                below: all.iter().filter(|ratio| **ratio < FLOOR).count(),
            }
        };
        let tasks = chosen.iter().filter(|(_, of)| of[way].is_some()).count();
        let (over_default, over_best) = (ratios(|entry| entry.default), ratios(|entry| entry.best));
        PoolScore { way: name, tasks, over_default, over_best }
    };
    let choice = |(at, of): &Chosen| {
        let entry = &entries[*at];
        let TaskRow { stage, name, dtype, .. } = entry.row;
        let one = |at: &usize| (entry.case.trials[*at].candidate.variant.clone(), entry.over(entry.default, *at));
        let (stage, name, dtype) = (stage.clone(), name.clone(), dtype.clone());
        PoolChoice { stage, name, dtype, chosen: of.iter().map(|at| at.as_ref().map(one)).collect() }
    };
    let variants = entries.iter().flat_map(|entry| &entry.case.trials).map(|trial| trial.candidate.variant.clone());
    PoolReport {
        tasks: entries.len(),
        sizes,
        variants: variants.collect::<BTreeSet<_>>().into_iter().collect(),
        scores: ways(kept).into_iter().enumerate().map(score).collect(),
        choices: chosen.iter().map(choice).collect(),
    }
}

impl PoolReport {
    /// As a table in Markdown.
    pub fn text(&self) -> String {
        let mut out = format!(
            "{} tasks of {} different sizes, each chosen for by selectors that were fitted on other sizes; variants: {}.\n\n\
             | choice | tasks | over the vendor's default | worst | below {FLOOR} | over its best | worst | below {FLOOR} |\n\
             |---|---:|---:|---:|---:|---:|---:|---:|\n",
            self.tasks,
            self.sizes,
            self.variants.join(", ")
        );
        for PoolScore { way, tasks, over_default: default, over_best: best } in &self.scores {
            let cells = |of: &Ratios| format!("{:.3} | {:.3} | {}", of.geomean, of.worst, of.below);
            out += &format!("| {way} | {tasks} | {} | {} |\n", cells(default), cells(best));
        }
        out
    }
}
