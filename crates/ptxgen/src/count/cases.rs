//! What depends on known data, in numbers.
//!
//! Blocks and iterations come in groups that have nothing to do with each other: the rows of an image, its columns, the steps of a
//! reduction. Of each group, what leaves every thread with the same answers and the same distances is one class, and only
//! combinations of classes are gone through. An answer that two groups give together, as a row and a tap do, is a table: rows with
//! equal lines of it are alike, and taps with equal columns.

use super::CountError;
use super::known::{Ask, Known, Source};
use super::lanes::{Condition, Lanes};
use super::warps::{Trait, WARP, most_frequent};
use crate::ir::{Index, Sym};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Values of a group of variables that are gone through.
const MOST: i64 = 1 << 22;

/// What is counted.
#[derive(Clone, Copy)]
pub(super) enum Of<'a> {
    Threads,
    Warps,
    /// Accesses by their step: bytes that threads differ in, and multiples of known numbers.
    Accesses(usize, &'a [(usize, i64)]),
}

/// Numbers that all threads share, and where they stand among all.
type Scalar = usize;

/// A condition, with its scalar.
type Level = (Option<Scalar>, usize, i64);

struct Question<'a> {
    ask: &'a Ask,
    source: &'a Source,
    x: Scalar,
    at: Scalar,
    /// What lines and columns of the table of answers are alike, by the two numbers; empty where the first is always the same.
    lines: HashMap<i64, i64>,
    columns: HashMap<i64, i64>,
}

/// A number that addresses differ by.
struct Term<'a> {
    times: i64,
    source: &'a Source,
    at: Scalar,
}

pub(super) struct Cases<'a> {
    /// The name of the entry.
    pub(super) entry: &'a str,
    pub(super) lanes: &'a Lanes,
    pub(super) known: &'a Known,
    /// Blocks and iterations, and how far they go.
    pub(super) vars: Vec<(Sym, Index)>,
}

/// Values of the scalars of a group.
struct Group {
    scalars: Vec<Scalar>,
    /// How often each combination of values comes.
    values: HashMap<Vec<i64>, i64>,
}

/// Values that are alike.
struct Class {
    values: Vec<i64>,
    times: i64,
    /// The lanes of each warp that pass what the group alone decides.
    masks: Vec<u32>,
}

impl Ask {
    fn holds(&self, x: i64, word: i64) -> bool {
        i64::from((x + self.times * word) as u32) < self.below
    }
}

impl<'a> Cases<'a> {
    fn fault<T>(&self, what: &'static str, index: &Index) -> Result<T, CountError> {
        Err(CountError::NotCountable { place: self.entry.to_owned(), what, index: index.to_string() })
    }

    /// How often, by traits; threads and warps are of any.
    pub(super) fn count(&self, conditions: &[Condition], of: Of<'_>) -> Result<BTreeMap<Trait, i64>, CountError> {
        let mut scalars: Vec<Index> = Vec::new();
        let mut scalar = |index: &Index| {
            scalars.iter().position(|s| s == index).unwrap_or_else(|| {
                scalars.push(index.clone());
                scalars.len() - 1
            })
        };
        let plain = conditions.iter().filter(|c| c.ask.is_none());
        let levels: Vec<Level> =
            plain.map(|c| (c.axis.map(|axis| scalar(&self.lanes.axes[axis])), c.values, c.more)).collect();
        let mut questions: Vec<Question<'a>> = Vec::new();
        for ask in conditions.iter().filter_map(|c| c.ask).map(|ask| &self.known.asks[ask]) {
            let source = &self.known.sources[ask.source];
            let (x, at) = (scalar(&ask.shared), scalar(&source.shared));
            questions.push(Question { ask, source, x, at, lines: HashMap::new(), columns: HashMap::new() });
        }
        let terms = if let Of::Accesses(_, terms) = of { terms } else { &[] };
        let term = |(source, times): &(usize, i64)| {
            let source = &self.known.sources[*source];
            Term { times: *times, source, at: scalar(&source.shared) }
        };
        let terms: Vec<Term<'a>> = terms.iter().map(term).collect();
        let (mut fixed, groups, rest) = self.groups(&scalars)?;
        for question in &mut questions {
            self.answers(question, &groups, &fixed)?;
        }
        let mut classes = Vec::new();
        for group in &groups {
            classes.push(self.classes(group, &levels, &questions, &terms, &fixed)?);
        }
        let mut out = BTreeMap::new();
        if classes.iter().any(Vec::is_empty) || rest == 0 {
            return Ok(out);
        }
        let always = self.masks(|t| {
            levels.iter().filter(|l| l.0.is_none_or(|s| !is_in(&groups, s))).all(|l| self.passes(l, &fixed, t))
        });
        let mut at = vec![0; groups.len()];
        loop {
            let (mut times, mut masks) = (rest, always.clone());
            for ((group, classes), i) in groups.iter().zip(&classes).zip(&at) {
                let class: &Class = &classes[*i];
                times *= class.times;
                masks.iter_mut().zip(&class.masks).for_each(|(mask, more)| *mask &= more);
                group.scalars.iter().zip(&class.values).for_each(|(s, v)| fixed[*s] = *v);
            }
            self.case(&questions, (of, &terms), &fixed, &masks, times, &mut out)?;
            let Some(next) = (0..at.len()).find(|g| at[*g] + 1 < classes[*g].len()) else { break };
            at[next] += 1;
            at[..next].fill(0);
        }
        out.retain(|_, count| *count != 0);
        Ok(out)
    }

    /// One combination of classes.
    fn case(
        &self,
        questions: &[Question<'_>],
        (of, terms): (Of<'_>, &[Term<'_>]),
        fixed: &[i64],
        masks: &[u32],
        times: i64,
        out: &mut BTreeMap<Trait, i64>,
    ) -> Result<(), CountError> {
        for (first, mask) in (0..self.lanes.threads).step_by(WARP).zip(masks) {
            let mut lanes = *mask;
            for question in questions {
                let word = |t: usize| self.word(question.source, fixed[question.at], t);
                for lane in (0..WARP).filter(|lane| mask >> lane & 1 != 0) {
                    let x = fixed[question.x] + self.lanes.values(question.ask.values)[first + lane];
                    if !question.ask.holds(x, word(first + lane)?) {
                        lanes &= !(1 << lane);
                    }
                }
            }
            if lanes == 0 {
                continue;
            }
            let (what, count) = match of {
                Of::Threads => (Trait::Any, i64::from(lanes.count_ones())),
                Of::Warps => (Trait::Any, 1),
                Of::Accesses(values, _) => {
                    let mut addresses = [0i64; WARP];
                    for lane in (0..WARP).filter(|lane| lanes >> lane & 1 != 0) {
                        addresses[lane] = self.lanes.values(values)[first + lane];
                        for term in terms {
                            addresses[lane] += term.times * self.word(term.source, fixed[term.at], first + lane)?;
                        }
                    }
                    let steps = most_frequent(lanes, |lane| addresses[lane] - addresses[lane - 1], |step| *step);
                    (Trait::Step(vec![steps.first().map_or(0, |(step, _)| *step)]), 1)
                }
            };
            *out.entry(what).or_insert(0) += times * count;
        }
        Ok(())
    }

    fn word(&self, source: &Source, shared: i64, t: usize) -> Result<i64, CountError> {
        self.value(source, shared + self.lanes.values(source.values)[t])
    }

    fn value(&self, source: &Source, at: i64) -> Result<i64, CountError> {
        match source.function.at(at) {
            Some(value) => Ok(value),
            None => self.fault("a place beyond a table", &source.shared),
        }
    }

    fn passes(&self, (scalar, values, more): &Level, fixed: &[i64], t: usize) -> bool {
        scalar.map_or(0, |s| fixed[s]) + self.lanes.values(*values)[t] + more > 0
    }

    /// A bit for each lane of each warp.
    fn masks(&self, holds: impl Fn(usize) -> bool) -> Vec<u32> {
        let warp = |first: usize| {
            let last = self.lanes.threads.min(first + WARP);
            (first..last).filter(|t| holds(*t)).fold(0u32, |mask, t| mask | 1 << (t - first))
        };
        (0..self.lanes.threads).step_by(WARP).map(warp).collect()
    }

    /// The scalars that are one number each (zero for the others), those that hang together by the variables that they depend on,
    /// and how often the other variables repeat all.
    fn groups(&self, scalars: &[Index]) -> Result<(Vec<i64>, Vec<Group>, i64), CountError> {
        let mut extents = Vec::new();
        for (_, extent) in &self.vars {
            let Some(extent) = extent.constant() else { return self.fault("known data beside sizes", extent) };
            extents.push(extent.max(0));
        }
        let mut fixed = Vec::new();
        let mut slopes = Vec::new();
        for scalar in scalars {
            let zero = scalar.map(&|_| Some(0.into()));
            let slope = |(sym, _): &(Sym, Index)| {
                let one = scalar.map(&|s| Some(i64::from(s == sym).into()));
                one.minus(&zero).constant().unwrap_or(0)
            };
            let slopes_of: Vec<i64> = self.vars.iter().map(slope).collect();
            let terms =
                self.vars.iter().zip(&slopes_of).map(|((sym, _), c)| Index::from(sym.clone()).times(&(*c).into()));
            let affine = terms.fold(zero.clone(), |sum, term| sum.plus(&term));
            let (Some(constant), true) = (zero.constant(), affine == *scalar) else {
                return self.fault("known data by a number that is no sum of blocks and iterations", scalar);
            };
            fixed.push(constant);
            slopes.push(slopes_of);
        }
        let mut parts: Vec<Vec<usize>> = (0..self.vars.len()).map(|v| vec![v]).collect();
        for slope in &slopes {
            let (tied, mut others): (Vec<_>, Vec<_>) =
                parts.into_iter().partition(|p| p.iter().any(|v| slope[*v] != 0));
            others.extend((!tied.is_empty()).then(|| tied.concat()));
            parts = others;
        }
        let (mut groups, mut rest) = (Vec::new(), 1i64);
        for part in parts {
            let mine: Vec<Scalar> = (0..scalars.len()).filter(|s| part.iter().any(|v| slopes[*s][*v] != 0)).collect();
            let cases = part.iter().fold(1i64, |n, v| n.saturating_mul(extents[*v]));
            if mine.is_empty() {
                rest = rest.saturating_mul(cases);
                continue;
            }
            if cases > MOST {
                let (place, what) = (self.entry.to_owned(), "blocks or iterations that look up known data");
                return Err(CountError::TooMany { place, what, cases: cases as u64, limit: MOST as u64 });
            }
            let mut values: HashMap<Vec<i64>, i64> = HashMap::new();
            for case in 0..cases {
                let mut left = case;
                let mut now: Vec<i64> = mine.iter().map(|s| fixed[*s]).collect();
                for v in &part {
                    let digit = left % extents[*v];
                    left /= extents[*v];
                    now.iter_mut().zip(&mine).for_each(|(x, s)| *x += digit * slopes[*s][*v]);
                }
                *values.entry(now).or_insert(0) += 1;
            }
            groups.push(Group { scalars: mine, values });
        }
        Ok((fixed, groups, rest))
    }

    /// Every value of a scalar.
    fn all(groups: &[Group], fixed: &[i64], scalar: Scalar) -> BTreeSet<i64> {
        let find = |g: &Group| {
            Some((g.scalars.iter().position(|s| *s == scalar)?, g.values.keys().cloned().collect::<Vec<_>>()))
        };
        match groups.iter().find_map(find) {
            Some((at, values)) => values.iter().map(|v| v[at]).collect(),
            None => [fixed[scalar]].into(),
        }
    }

    fn distinct(&self, values: usize) -> BTreeSet<i64> {
        self.lanes.values(values).iter().copied().collect()
    }

    /// Fills the table of answers.
    fn answers(&self, question: &mut Question<'_>, groups: &[Group], fixed: &[i64]) -> Result<(), CountError> {
        let (ask, source) = (question.ask, question.source);
        let sums = |scalar: Scalar, values: usize| -> BTreeSet<i64> {
            let own = self.distinct(values);
            Self::all(groups, fixed, scalar).iter().flat_map(|s| own.iter().map(move |v| s + v)).collect()
        };
        let lines = sums(question.x, ask.values);
        let mut words = BTreeSet::new();
        for at in sums(question.at, source.values) {
            words.insert(self.value(source, at)?);
        }
        if let Some(otherwise) = ask.otherwise
            && words.iter().any(|word| ask.holds(otherwise, *word))
        {
            return self.fault("a condition on known data that holds where it should not be asked", &ask.shared);
        }
        if lines.len() == 1 {
            return Ok(());
        }
        question.lines = alike(&lines, |x| words.iter().map(|word| ask.holds(x, *word)).collect());
        question.columns = alike(&words, |word| lines.iter().map(|x| ask.holds(*x, word)).collect());
        Ok(())
    }

    /// The values of a group by what every thread makes of them.
    fn classes(
        &self,
        group: &Group,
        levels: &[Level],
        questions: &[Question<'_>],
        terms: &[Term<'_>],
        fixed: &[i64],
    ) -> Result<Vec<Class>, CountError> {
        let mine = |scalar: Scalar| group.scalars.iter().position(|s| *s == scalar);
        let own = |l: &&Level| l.0.is_some_and(|s| mine(s).is_some());
        let levels: Vec<Level> = levels.iter().filter(own).copied().collect();
        // Thresholds of the levels: what matters is how many of them a number is above.
        let thresholds: Vec<(usize, Vec<i64>)> = levels
            .iter()
            .map(|(s, values, more)| {
                let least: BTreeSet<i64> = self.distinct(*values).iter().map(|v| -(v + more)).collect();
                (s.and_then(mine).unwrap_or(0), least.into_iter().collect())
            })
            .collect();
        let looks = |scalar: Scalar, values: usize| Some((mine(scalar)?, self.distinct(values)));
        let asks: Vec<_> =
            questions.iter().map(|q| (q, looks(q.x, q.ask.values), looks(q.at, q.source.values))).collect();
        let moves: Vec<_> = terms.iter().filter_map(|t| Some((t, looks(t.at, t.source.values)?))).collect();
        let mut classes: BTreeMap<Vec<i64>, Class> = BTreeMap::new();
        let mut sign = Vec::new();
        for (values, times) in &group.values {
            sign.clear();
            sign.extend(thresholds.iter().map(|(s, least)| least.partition_point(|h| *h < values[*s]) as i64));
            for (q, x, at) in &asks {
                if let Some((s, own)) = x {
                    sign.extend(own.iter().map(|v| q.lines.get(&(values[*s] + v)).copied().unwrap_or(0)));
                }
                if let Some((s, own)) = at {
                    for v in own {
                        let word = self.value(q.source, values[*s] + v)?;
                        let column = q.columns.get(&word).copied();
                        let only = || fixed[q.x] + self.lanes.values(q.ask.values)[0];
                        sign.push(column.unwrap_or_else(|| i64::from(q.ask.holds(only(), word))));
                    }
                }
            }
            for (term, (s, own)) in &moves {
                let mut first = None;
                for v in own {
                    let value = self.value(term.source, values[*s] + v)?;
                    sign.push(value - *first.get_or_insert(value));
                }
            }
            if let Some(class) = classes.get_mut(&sign) {
                class.times += times;
                continue;
            }
            let mut all = fixed.to_vec();
            group.scalars.iter().zip(values).for_each(|(s, v)| all[*s] = *v);
            let masks = self.masks(|t| levels.iter().all(|l| self.passes(l, &all, t)));
            classes.insert(sign.clone(), Class { values: values.clone(), times: *times, masks });
        }
        Ok(classes.into_values().collect())
    }
}

fn is_in(groups: &[Group], scalar: Scalar) -> bool {
    groups.iter().any(|g| g.scalars.contains(&scalar))
}

/// Numbers by the first of those with the same answers.
fn alike(all: &BTreeSet<i64>, answers: impl Fn(i64) -> Vec<bool>) -> HashMap<i64, i64> {
    let mut known: HashMap<Vec<bool>, i64> = HashMap::new();
    all.iter().map(|x| (*x, *known.entry(answers(*x)).or_insert(*x))).collect()
}
