//! How many warps have a thread left, and what their accesses look like, for every level of the conditions.
//!
//! A condition lets more lanes through the larger its axis is. Lanes with the same number go together, so that a warp has few
//! levels, and between two levels nothing changes. What is a function `f` of the levels of several conditions is the sum
//! over all cells of `f` times the product of (this level is reached) - (the next one is).

use super::lanes::{Condition, Lanes};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

pub(super) const WARP: usize = 32;

/// What a warp has, at some levels of its conditions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Trait {
    /// A thread at all.
    Any,
    /// An access whose most frequent step from lane to lane is this: bytes, and multiples of factors.
    Step(Vec<i64>),
    /// An access whose step depends on which of several sizes is larger.
    Undecided,
    /// A pass over the banks.
    Pass,
}

/// Thresholds, one a condition that has an axis: its values at which it is just reached. And how often.
pub(super) type Terms = Vec<(Vec<i64>, i64)>;

/// How the lanes of an access lie, apart from where it begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Pattern {
    /// Bytes from the first thread.
    pub(super) values: usize,
    /// Multiples of factors.
    pub(super) factors: Vec<usize>,
    pub(super) bytes: u32,
    /// Lanes of a warp that give addresses.
    pub(super) lanes: usize,
    /// Whether passes over banks are asked, and where in a word the first thread begins.
    pub(super) banks: Option<i64>,
    /// Multiples of known numbers; see `known`.
    pub(super) known: Vec<(usize, i64)>,
}

/// What warps have in common that are alike: lanes, thresholds and addresses relative to the first lane's.
type Like = (u32, Vec<Vec<i64>>, Option<Shape>);
type Cells = Rc<Vec<(Trait, Vec<i64>, i64)>>;

/// Warps that are alike are looked at once.
#[derive(Debug, Default)]
pub(super) struct Warps {
    known: HashMap<Like, Cells>,
    threads: HashMap<Vec<Condition>, Rc<Terms>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Shape {
    /// For each lane, the first column bytes and the others multiples of factors.
    columns: Vec<Vec<i64>>,
    bytes: u32,
    banks: bool,
}

fn has_axis(c: &&Condition) -> bool {
    c.axis.is_some()
}

impl Warps {
    /// Threads by their values.
    pub(super) fn threads(&mut self, lanes: &Lanes, conditions: &[Condition]) -> Rc<Terms> {
        let key: Vec<Condition> =
            conditions.iter().map(|c| Condition { more: if c.axis.is_some() { 0 } else { c.more }, ..*c }).collect();
        let count = || {
            let mut terms: BTreeMap<Vec<i64>, i64> = BTreeMap::new();
            let columns: Vec<_> = conditions.iter().filter(has_axis).map(|c| lanes.values(c.values)).collect();
            for t in (0..lanes.threads).filter(|t| runs(lanes, conditions, *t)) {
                *terms.entry(columns.iter().map(|v| v[t]).collect()).or_insert(0) += 1;
            }
            Rc::new(terms.into_iter().collect())
        };
        self.threads.entry(key).or_insert_with(count).clone()
    }

    /// Warps by what they have.
    pub(super) fn warps(
        &mut self,
        lanes: &Lanes,
        conditions: &[Condition],
        pattern: Option<&Pattern>,
    ) -> BTreeMap<Trait, Terms> {
        let mut out: BTreeMap<Trait, BTreeMap<Vec<i64>, i64>> = BTreeMap::new();
        let columns: Vec<_> = conditions.iter().filter(has_axis).map(|c| lanes.values(c.values)).collect();
        for first in (0..lanes.threads).step_by(WARP) {
            let last = lanes.threads.min(first + pattern.map_or(WARP, |p| p.lanes));
            let mask =
                (first..last).filter(|t| runs(lanes, conditions, *t)).fold(0u32, |mask, t| mask | 1 << (t - first));
            if mask == 0 {
                continue;
            }
            let lead = first + mask.trailing_zeros() as usize;
            let relative = |values: &[i64]| -> Vec<i64> {
                (first..first + WARP).map(|t| values.get(t).map_or(0, |v| v.wrapping_sub(values[lead]))).collect()
            };
            let thresholds: Vec<Vec<i64>> = columns.iter().map(|v| relative(v)).collect();
            let shape = pattern.map(|p| {
                let mut columns = vec![relative(lanes.values(p.values))];
                if let Some(phase) = p.banks {
                    let phase = (lanes.values(p.values)[lead] + phase).rem_euclid(4);
                    columns[0].iter_mut().for_each(|v| *v += phase);
                }
                columns.extend(p.factors.iter().map(|f| relative(lanes.values(*f))));
                Shape { columns, bytes: p.bytes, banks: p.banks.is_some() }
            });
            let key = (mask, thresholds, shape);
            let cells = match self.known.get(&key) {
                Some(cells) => cells.clone(),
                None => {
                    let cells = Rc::new(cells(key.0, &key.1, key.2.as_ref()));
                    self.known.insert(key, cells.clone());
                    cells
                }
            };
            for (what, values, count) in cells.iter() {
                let values = values.iter().zip(&columns).map(|(v, column)| v + column[lead]).collect();
                *out.entry(what.clone()).or_default().entry(values).or_insert(0) += count;
            }
        }
        let terms = |terms: BTreeMap<Vec<i64>, i64>| terms.into_iter().filter(|(_, c)| *c != 0).collect();
        out.into_iter().map(|(what, all)| (what, terms(all))).collect()
    }
}

/// Whether the conditions without an axis hold.
fn runs(lanes: &Lanes, conditions: &[Condition], t: usize) -> bool {
    conditions.iter().filter(|c| c.axis.is_none()).all(|c| lanes.values(c.values)[t] + c.more > 0)
}

/// All cells of a warp's levels.
fn cells(mask: u32, thresholds: &[Vec<i64>], shape: Option<&Shape>) -> Vec<(Trait, Vec<i64>, i64)> {
    let in_mask = |lane: &usize| mask >> lane & 1 != 0;
    // For each condition its levels, the easiest first, and the lanes that each lets through.
    let levels: Vec<Vec<(i64, u32)>> = thresholds
        .iter()
        .map(|values| {
            let mut distinct: Vec<i64> = (0..WARP).filter(in_mask).map(|l| values[l]).collect();
            distinct.sort_unstable_by(|a, b| b.cmp(a));
            distinct.dedup();
            let through = |at: i64| (0..WARP).filter(|l| values[*l] >= at).fold(0u32, |m, l| m | 1 << l);
            distinct.into_iter().map(|at| (at, through(at))).collect()
        })
        .collect();
    let mut out: HashMap<(Trait, Vec<i64>), i64> = HashMap::new();
    let mut at = vec![0usize; levels.len()];
    loop {
        let lanes = at.iter().zip(&levels).fold(mask, |m, (i, levels)| m & levels[*i].1);
        if lanes != 0 {
            for (what, count) in traits(lanes, shape) {
                differences(&levels, &at, |values, sign| {
                    *out.entry((what.clone(), values)).or_insert(0) += sign * count;
                });
            }
        }
        // The next cell.
        let Some(axis) = (0..at.len()).find(|a| at[*a] + 1 < levels[*a].len()) else { break };
        at[axis] += 1;
        at[..axis].fill(0);
    }
    out.into_iter().filter(|(_, c)| *c != 0).map(|((what, values), c)| (what, values, c)).collect()
}

/// The product over all conditions of (level reached) - (next level reached), term by term.
fn differences(levels: &[Vec<(i64, u32)>], at: &[usize], mut f: impl FnMut(Vec<i64>, i64)) {
    for subset in 0..1u32 << at.len() {
        let next = |axis: usize| (subset >> axis & 1) as usize;
        if (0..at.len()).all(|a| at[a] + next(a) < levels[a].len()) {
            let values = (0..at.len()).map(|a| levels[a][at[a] + next(a)].0).collect();
            f(values, if subset.count_ones() % 2 == 0 { 1 } else { -1 });
        }
    }
}

/// What a warp with these lanes has.
fn traits(lanes: u32, shape: Option<&Shape>) -> Vec<(Trait, i64)> {
    let Some(shape) = shape else { return vec![(Trait::Any, 1)] };
    let mut out = vec![(step(lanes, &shape.columns), 1)];
    if shape.banks {
        out.push((Trait::Pass, passes(lanes, &shape.columns[0], shape.bytes)));
    }
    out
}

/// The steps between neighbouring lanes with how often they come: the most frequent one first, the smaller magnitude of two.
pub(super) fn most_frequent<S: PartialEq>(
    lanes: u32,
    step: impl Fn(usize) -> S,
    bytes: impl Fn(&S) -> i64,
) -> Vec<(S, u32)> {
    let mut steps: Vec<(S, u32)> = Vec::new();
    for step in (1..WARP).filter(|l| lanes >> (l - 1) & 3 == 3).map(step) {
        match steps.iter_mut().find(|(s, _)| *s == step) {
            Some((_, count)) => *count += 1,
            None => steps.push((step, 1)),
        }
    }
    let best = |i: &usize| (u32::MAX - steps[*i].1, bytes(&steps[*i].0).unsigned_abs(), bytes(&steps[*i].0));
    if let Some(best) = (0..steps.len()).min_by_key(best) {
        steps.swap(0, best);
    }
    steps
}

/// The most frequent step between neighbouring lanes; zero where there are no neighbours.
fn step(lanes: u32, columns: &[Vec<i64>]) -> Trait {
    let between = |lane: usize| columns.iter().map(|c| c[lane] - c[lane - 1]).collect::<Vec<i64>>();
    let steps = most_frequent(lanes, between, |step| step[0]);
    let Some((best, count)) = steps.first() else { return Trait::Step(vec![0; columns.len()]) };
    // Steps that depend on sizes may be equal for some of them; of those that do so in one way, no two are.
    let mut ways: BTreeMap<&[i64], u32> = BTreeMap::new();
    for (step, count) in &steps[1..] {
        let most = ways.entry(&step[1..]).or_insert(0);
        *most = (*most).max(*count);
    }
    let numbers = steps.iter().all(|(step, _)| step[1..].iter().all(|c| *c == 0));
    let (single, together) = (ways.values().max().copied().unwrap_or(0), ways.values().sum::<u32>());
    // Where several ways together come as often, they are equal only if a column is shorter than the rows of a thread.
    if numbers || *count > together || (*count == together && *count > single) {
        Trait::Step(best.clone())
    } else {
        Trait::Undecided
    }
}

/// Passes over the 32 banks: accesses of 8 bytes go by half warps, of 16 bytes by quarters, and a word that several lanes
/// want costs one.
fn passes(lanes: u32, at: &[i64], bytes: u32) -> i64 {
    let parts = (bytes as usize / 4).clamp(1, 4);
    let each = WARP / parts;
    let mut total = 0;
    for part in 0..parts {
        let mut words: Vec<i64> = (part * each..(part + 1) * each)
            .filter(|l| lanes >> l & 1 != 0)
            .flat_map(|l| at[l].div_euclid(4)..=(at[l] + i64::from(bytes) - 1).div_euclid(4))
            .collect();
        words.sort_unstable();
        words.dedup();
        let mut banks = [0i64; 32];
        words.iter().for_each(|word| banks[word.rem_euclid(32) as usize] += 1);
        total += banks.into_iter().max().unwrap_or(0);
    }
    // All lanes at one address: one pass, however wide.
    let uniform = lanes == u32::MAX && at.windows(2).all(|w| w[0] == w[1]);
    if uniform { 1 } else { total.max(1) }
}
