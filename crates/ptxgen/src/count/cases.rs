//! What depends on known data, in numbers: combinations of classes of blocks and iterations (`classes`), gone through warp by warp.

use super::CountError;
use super::classes::{Class, Found, Inquiry, Level, Memory, Question, Term};
use super::known::{Known, Source};
use super::lanes::{Condition, Lanes};
use super::warps::{Trait, WARP, most_frequent};
use crate::ir::{Index, Sym};
use std::collections::BTreeMap;

/// What is counted.
#[derive(Clone, Copy)]
pub(super) enum Of<'a> {
    Threads,
    Warps,
    /// Accesses by their step: bytes that threads differ in, and multiples of known numbers.
    Accesses(usize, &'a [(usize, i64)]),
}

pub(super) struct Cases<'a> {
    /// The name of the entry.
    pub(super) entry: &'a str,
    pub(super) lanes: &'a Lanes,
    pub(super) known: &'a Known,
    /// Blocks and iterations, and how far they go; and the number of the nest of loops.
    pub(super) vars: Vec<(Sym, Index)>,
    pub(super) nest: usize,
    pub(super) memory: &'a Memory,
}

impl<'a> Cases<'a> {
    pub(super) fn fault<T>(&self, what: &'static str, index: &Index) -> Result<T, CountError> {
        Err(CountError::NotCountable { place: self.entry.to_owned(), what, index: index.to_string() })
    }

    /// How often, by traits; threads and warps are of any.
    pub(super) fn count(&self, conditions: &[Condition], of: Of<'_>) -> Result<BTreeMap<Trait, i64>, CountError> {
        let (scalars, mut inquiry) = self.inquiry(conditions, of);
        let found = self.found(&scalars)?;
        for question in &mut inquiry.questions {
            self.answers(question, &found)?;
        }
        let mut classes = Vec::new();
        for group in &found.groups {
            classes.push(self.classes(group, &inquiry, &found.fixed)?);
        }
        self.combine(&inquiry, of, &found, &classes)
    }

    /// What is asked, by numbers that all threads share.
    fn inquiry(&self, conditions: &[Condition], of: Of<'_>) -> (Vec<Index>, Inquiry<'a>) {
        let mut scalars: Vec<Index> = Vec::new();
        let mut scalar = |index: &Index| {
            scalars.iter().position(|s| s == index).unwrap_or_else(|| {
                scalars.push(index.clone());
                scalars.len() - 1
            })
        };
        let mut inquiry = Inquiry::default();
        for condition in conditions {
            let Some(ask) = condition.ask.map(|ask| &self.known.asks[ask]) else {
                let axis = condition.axis.map(|axis| scalar(&self.lanes.axes[axis]));
                inquiry.levels.push(Level { axis, values: condition.values, more: condition.more });
                continue;
            };
            let source = &self.known.sources[ask.source];
            let (x, at) = (scalar(&ask.shared), scalar(&source.shared));
            inquiry.questions.push(Question::new(ask, source, [x, at]));
        }
        if let Of::Accesses(_, terms) = of {
            for (source, times) in terms {
                let source = &self.known.sources[*source];
                inquiry.terms.push(Term { times: *times, source, at: scalar(&source.shared) });
            }
        }
        (scalars, inquiry)
    }

    /// Goes through all combinations.
    fn combine(
        &self,
        inquiry: &Inquiry<'_>,
        of: Of<'_>,
        found: &Found,
        classes: &[Vec<Class>],
    ) -> Result<BTreeMap<Trait, i64>, CountError> {
        let mut out = BTreeMap::new();
        if classes.iter().any(Vec::is_empty) || found.rest == 0 {
            return Ok(out);
        }
        let mut fixed = found.fixed.clone();
        let is_fixed = |level: &&Level| level.axis.is_none_or(|s| found.groups.iter().all(|g| !g.scalars.contains(&s)));
        let always = self.masks(|t| inquiry.levels.iter().filter(is_fixed).all(|l| self.passes(l, &fixed, t)));
        let mut at = vec![0; classes.len()];
        loop {
            let (mut times, mut masks) = (found.rest, always.clone());
            for ((group, classes), i) in found.groups.iter().zip(classes).zip(&at) {
                let class = &classes[*i];
                times *= class.times;
                masks.iter_mut().zip(&class.masks).for_each(|(mask, more)| *mask &= more);
                group.scalars.iter().zip(&class.values).for_each(|(s, v)| fixed[*s] = *v);
            }
            for (warp, mask) in masks.into_iter().enumerate() {
                if let Some((what, count)) = self.warp(inquiry, of, &fixed, (warp, mask))? {
                    *out.entry(what).or_insert(0) += times * count;
                }
            }
            let Some(next) = (0..at.len()).find(|g| at[*g] + 1 < classes[*g].len()) else { return Ok(out) };
            at[next] += 1;
            at[..next].fill(0);
        }
    }

    /// What a warp of one combination has, of the lanes that are left by what needs no data.
    fn warp(
        &self,
        inquiry: &Inquiry<'_>,
        of: Of<'_>,
        fixed: &[i64],
        (warp, mask): (usize, u32),
    ) -> Result<Option<(Trait, i64)>, CountError> {
        let (first, mut lanes) = (warp * WARP, mask);
        for Question { ask, source, x, at, .. } in &inquiry.questions {
            for lane in in_mask(mask) {
                let x = fixed[*x] + self.lanes.values(ask.values)[first + lane];
                if !ask.holds(x, self.word(source, fixed[*at], first + lane)?) {
                    lanes &= !(1 << lane);
                }
            }
        }
        if lanes == 0 {
            return Ok(None);
        }
        let values = match of {
            Of::Threads => return Ok(Some((Trait::Any, i64::from(lanes.count_ones())))),
            Of::Warps => return Ok(Some((Trait::Any, 1))),
            Of::Accesses(values, _) => self.lanes.values(values),
        };
        let mut addresses = [0i64; WARP];
        for lane in in_mask(lanes) {
            addresses[lane] = values[first + lane];
            for term in &inquiry.terms {
                addresses[lane] += term.times * self.word(term.source, fixed[term.at], first + lane)?;
            }
        }
        let steps = most_frequent(lanes, |lane| addresses[lane] - addresses[lane - 1], |step| *step);
        Ok(Some((Trait::Step(vec![steps.first().map_or(0, |(step, _)| *step)]), 1)))
    }

    fn word(&self, source: &Source, shared: i64, t: usize) -> Result<i64, CountError> {
        self.value(source, shared + self.lanes.values(source.values)[t])
    }

    pub(super) fn value(&self, source: &Source, at: i64) -> Result<i64, CountError> {
        match source.function.at(at) {
            Some(value) => Ok(value),
            None => self.fault("a place beyond a table", &source.shared),
        }
    }

    pub(super) fn passes(&self, level: &Level, fixed: &[i64], t: usize) -> bool {
        level.axis.map_or(0, |s| fixed[s]) + self.lanes.values(level.values)[t] + level.more > 0
    }

    /// A bit for each lane of each warp.
    pub(super) fn masks(&self, holds: impl Fn(usize) -> bool) -> Vec<u32> {
        let warp = |first: usize| {
            let last = self.lanes.threads.min(first + WARP);
            (first..last).filter(|t| holds(*t)).fold(0u32, |mask, t| mask | 1 << (t - first))
        };
        (0..self.lanes.threads).step_by(WARP).map(warp).collect()
    }
}

fn in_mask(mask: u32) -> impl Iterator<Item = usize> {
    (0..WARP).filter(move |lane| mask >> lane & 1 != 0)
}
