//! Blocks and iterations that known data treat alike.
//!
//! Blocks and iterations come in groups that have nothing to do with each other: the rows of an image, its columns, the steps of a
//! reduction. Of each group, what leaves every thread with the same answers and the same distances is one class. An answer that
//! two groups give together, as a row and a tap do, is an entry of a table: rows with equal lines of it are alike, and taps with
//! equal columns.

use super::CountError;
use super::cases::Cases;
use super::known::{Ask, Source};
use crate::ir::{Index, Sym};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// Values of a group of variables that are gone through.
const MOST: i64 = 1 << 22;

/// Numbers that all threads share, and where they stand among all.
pub(super) type Scalar = usize;

/// `axis + values[t] + more > 0`.
pub(super) struct Level {
    pub(super) axis: Option<Scalar>,
    pub(super) values: usize,
    pub(super) more: i64,
}

/// All that is asked of a warp: conditions, and what its addresses differ by.
#[derive(Default)]
pub(super) struct Inquiry<'a> {
    pub(super) levels: Vec<Level>,
    pub(super) questions: Vec<Question<'a>>,
    pub(super) terms: Vec<Term<'a>>,
}

/// A condition on known data.
pub(super) struct Question<'a> {
    pub(super) ask: &'a Ask,
    pub(super) source: &'a Source,
    pub(super) x: Scalar,
    pub(super) at: Scalar,
    /// What lines and columns of the table of answers are alike, by the two numbers; empty where the first is always the same.
    lines: Alike,
    columns: Alike,
}

/// A number that addresses differ by.
pub(super) struct Term<'a> {
    pub(super) times: i64,
    pub(super) source: &'a Source,
    pub(super) at: Scalar,
}

impl<'a> Question<'a> {
    pub(super) fn new(ask: &'a Ask, source: &'a Source, [x, at]: [Scalar; 2]) -> Self {
        Self { ask, source, x, at, lines: Alike::default(), columns: Alike::default() }
    }
}

/// Values of the scalars of a group.
pub(super) struct Group {
    pub(super) scalars: Vec<Scalar>,
    /// How often each combination of values comes.
    values: Vec<(Vec<i64>, i64)>,
}

/// What scalars come to.
pub(super) struct Found {
    /// Those that are one number each; zero for the others.
    pub(super) fixed: Vec<i64>,
    /// Those that hang together by the variables that they depend on.
    pub(super) groups: Vec<Group>,
    /// How often the other variables repeat all.
    pub(super) rest: i64,
}

/// What scalars have come to, by the variables.
pub(super) type Memory = RefCell<HashMap<(usize, Vec<Index>), Rc<Found>>>;

/// Numbers in order, each with the first of those with the same answers.
#[derive(Default)]
struct Alike(Vec<(i64, i64)>);

impl Alike {
    fn get(&self, x: i64) -> Option<i64> {
        self.0.binary_search_by_key(&x, |(x, _)| *x).ok().map(|at| self.0[at].1)
    }
}

/// Values that are alike.
pub(super) struct Class {
    pub(super) values: Vec<i64>,
    pub(super) times: i64,
    /// The lanes of each warp that pass what the group alone decides.
    pub(super) masks: Vec<u32>,
}

impl Ask {
    pub(super) fn holds(&self, x: i64, word: i64) -> bool {
        i64::from((x + self.times * word) as u32) < self.below
    }
}

impl Cases<'_> {
    /// What scalars come to; those of one nest are found once.
    pub(super) fn found(&self, scalars: &[Index]) -> Result<Rc<Found>, CountError> {
        let key = (self.nest, scalars.to_vec());
        if let Some(found) = self.memory.borrow().get(&key) {
            return Ok(found.clone());
        }
        let found = Rc::new(self.groups(scalars)?);
        self.memory.borrow_mut().insert(key, found.clone());
        Ok(found)
    }

    fn groups(&self, scalars: &[Index]) -> Result<Found, CountError> {
        let mut extents = Vec::new();
        for (_, extent) in &self.vars {
            let Some(extent) = extent.constant() else { return self.fault("known data beside sizes", extent) };
            extents.push(extent.max(0));
        }
        let (mut fixed, mut slopes) = (Vec::new(), Vec::new());
        for scalar in scalars {
            let (constant, slope) = self.affine(scalar)?;
            fixed.push(constant);
            slopes.push(slope);
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
            let values =
                combinations(&mine, &fixed, &part.iter().map(|v| (extents[*v], *v)).collect::<Vec<_>>(), &slopes);
            groups.push(Group { scalars: mine, values });
        }
        Ok(Found { fixed, groups, rest })
    }

    /// A scalar as a constant and multiples of the variables.
    fn affine(&self, scalar: &Index) -> Result<(i64, Vec<i64>), CountError> {
        let zero = scalar.map(&|_| Some(0.into()));
        let slope = |(sym, _): &(Sym, Index)| {
            let one = scalar.map(&|s| Some(i64::from(s == sym).into()));
            one.minus(&zero).constant().unwrap_or(0)
        };
        let slopes: Vec<i64> = self.vars.iter().map(slope).collect();
        let terms = self.vars.iter().zip(&slopes).map(|((sym, _), c)| Index::from(sym.clone()).times(&(*c).into()));
        match (zero.constant(), terms.fold(zero, |sum, term| sum.plus(&term)) == *scalar) {
            (Some(constant), true) => Ok((constant, slopes)),
            _ => self.fault("known data by a number that is no sum of blocks and iterations", scalar),
        }
    }

    fn distinct(&self, values: usize) -> BTreeSet<i64> {
        self.lanes.values(values).iter().copied().collect()
    }

    /// Calls `each` on every value of a scalar with every one of some numbers of threads added.
    fn sums(
        &self,
        found: &Found,
        (scalar, values): (Scalar, usize),
        mut each: impl FnMut(i64) -> Result<(), CountError>,
    ) -> Result<(), CountError> {
        let own = self.distinct(values);
        let mut add = |x: i64| own.iter().try_for_each(|v| each(x + v));
        match found.groups.iter().find_map(|g| Some((g, g.scalars.iter().position(|s| *s == scalar)?))) {
            Some((group, at)) => group.values.iter().try_for_each(|(values, _)| add(values[at])),
            None => add(found.fixed[scalar]),
        }
    }

    /// Fills the table of answers.
    pub(super) fn answers(&self, question: &mut Question<'_>, found: &Found) -> Result<(), CountError> {
        let (ask, source) = (question.ask, question.source);
        let (mut lines, mut words) = (BTreeSet::new(), BTreeSet::new());
        self.sums(found, (question.x, ask.values), |x| {
            lines.insert(x);
            Ok(())
        })?;
        if lines.len() == 1 && ask.otherwise.is_none() {
            return Ok(());
        }
        let mut last = None;
        self.sums(found, (question.at, source.values), |at| {
            let word = self.value(source, at)?;
            // Most have the row of the one before.
            if last.replace(word) != Some(word) {
                words.insert(word);
            }
            Ok(())
        })?;
        if let Some(otherwise) = ask.otherwise
            && words.iter().any(|word| ask.holds(otherwise, *word))
        {
            return self.fault("a condition on known data that holds where it should not be asked", &ask.shared);
        }
        if lines.len() > 1 {
            question.lines = alike(&lines, |x| words.iter().map(|word| ask.holds(x, *word)).collect());
            question.columns = alike(&words, |word| lines.iter().map(|x| ask.holds(*x, word)).collect());
        }
        Ok(())
    }

    /// The values of a group by what every thread makes of them.
    pub(super) fn classes(&self, group: &Group, of: &Inquiry<'_>, fixed: &[i64]) -> Result<Vec<Class>, CountError> {
        let own = Own::of(self, group, of);
        let mut classes: BTreeMap<Vec<i64>, Class> = BTreeMap::new();
        let mut signs = Vec::new();
        for (values, times) in &group.values {
            signs.clear();
            own.signs(self, values, fixed, &mut signs)?;
            if let Some(class) = classes.get_mut(&signs) {
                class.times += times;
                continue;
            }
            let mut all = fixed.to_vec();
            group.scalars.iter().zip(values).for_each(|(s, v)| all[*s] = *v);
            let masks = self.masks(|t| own.levels.iter().all(|(level, ..)| self.passes(level, &all, t)));
            classes.insert(signs.clone(), Class { values: values.clone(), times: *times, masks });
        }
        Ok(classes.into_values().collect())
    }
}

/// A scalar's place in a group, and what threads add to it.
type Look = (usize, Vec<i64>);

/// What a group has a part in.
struct Own<'a> {
    /// With their thresholds: what matters is how many of them a number is above.
    levels: Vec<(&'a Level, Look)>,
    questions: Vec<(&'a Question<'a>, [Option<Look>; 2])>,
    terms: Vec<(&'a Term<'a>, Look)>,
}

impl<'a> Own<'a> {
    fn of(cases: &Cases<'_>, group: &Group, of: &'a Inquiry<'a>) -> Self {
        let place = |scalar: Scalar| group.scalars.iter().position(|s| *s == scalar);
        let look = |scalar: Scalar, values: usize| Some((place(scalar)?, Vec::from_iter(cases.distinct(values))));
        let level = |level: &'a Level| {
            let values = cases.distinct(level.values);
            Some((level, (place(level.axis?)?, values.iter().rev().map(|v| -(v + level.more)).collect())))
        };
        let question = |q: &'a Question<'a>| (q, [look(q.x, q.ask.values), look(q.at, q.source.values)]);
        Self {
            levels: of.levels.iter().filter_map(level).collect(),
            questions: of.questions.iter().map(question).collect(),
            terms: of.terms.iter().filter_map(|t| Some((t, look(t.at, t.source.values)?))).collect(),
        }
    }

    /// All that threads make of values: equal signs, equal answers and distances.
    fn signs(&self, cases: &Cases<'_>, values: &[i64], fixed: &[i64], out: &mut Vec<i64>) -> Result<(), CountError> {
        for (_, (s, thresholds)) in &self.levels {
            out.push(thresholds.partition_point(|h| *h < values[*s]) as i64);
        }
        for (q, [x, at]) in &self.questions {
            if let Some((s, own)) = x {
                out.extend(own.iter().map(|v| q.lines.get(values[*s] + v).unwrap_or(0)));
            }
            let Some((s, own)) = at else { continue };
            for v in own {
                let word = cases.value(q.source, values[*s] + v)?;
                let only = || fixed[q.x] + cases.lanes.values(q.ask.values)[0];
                out.push(q.columns.get(word).unwrap_or_else(|| i64::from(q.ask.holds(only(), word))));
            }
        }
        for (term, (s, own)) in &self.terms {
            let mut first = None;
            for v in own {
                let value = cases.value(term.source, values[*s] + v)?;
                out.push(value - *first.get_or_insert(value));
            }
        }
        Ok(())
    }
}

/// Every combination of values of scalars, for the values of variables below their extents, with how often it comes.
fn combinations(scalars: &[Scalar], fixed: &[i64], vars: &[(i64, usize)], slopes: &[Vec<i64>]) -> Vec<(Vec<i64>, i64)> {
    let mut all = vec![(scalars.iter().map(|s| fixed[*s]).collect::<Vec<i64>>(), 1)];
    for (extent, v) in vars {
        let of = |values: &Vec<i64>, digit: i64| {
            values.iter().zip(scalars).map(|(x, s)| x + digit * slopes[*s][*v]).collect()
        };
        all =
            all.iter().flat_map(|(values, times)| (0..*extent).map(move |digit| (of(values, digit), *times))).collect();
        all.sort_unstable();
        all.dedup_by(|(next, times), (values, sum)| {
            let same = next == values;
            *sum += if same { *times } else { 0 };
            same
        });
    }
    all
}

fn alike(all: &BTreeSet<i64>, answers: impl Fn(i64) -> Vec<bool>) -> Alike {
    let mut known: HashMap<Vec<bool>, i64> = HashMap::new();
    Alike(all.iter().map(|x| (*x, *known.entry(answers(*x)).or_insert(*x))).collect())
}
