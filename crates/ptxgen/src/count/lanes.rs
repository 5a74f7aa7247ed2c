//! Numbers of the threads of a block: what an index is in each thread, apart from what all threads share.

use super::CountError;
use super::facts::is_never_negative;
use crate::ir::{Atom, Index, Sym};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// One number for each thread.
pub(super) type Values = Rc<Vec<i64>>;

/// `shared + values[t] + sum of factor * by_factor[t]` in thread `t`.
#[derive(Debug)]
pub(super) struct Split {
    /// What all threads of a block agree on; without a constant, which is in the values.
    pub(super) shared: Index,
    pub(super) values: usize,
    /// Sizes times numbers that differ from thread to thread.
    pub(super) by_factor: BTreeMap<Index, usize>,
}

/// `axis + values[t] + more > 0`, without an axis where only the thread matters; or what is asked of known data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Condition {
    pub(super) axis: Option<usize>,
    pub(super) values: usize,
    pub(super) more: i64,
    /// The number of an [`Ask`](super::known::Ask), which is then all that there is to it.
    pub(super) ask: Option<usize>,
}

impl Condition {
    pub(super) fn asks(ask: usize) -> Self {
        Self { axis: None, values: 0, more: 0, ask: Some(ask) }
    }
}

/// All numbers of the threads of a block, each kept once.
#[derive(Debug)]
pub(super) struct Lanes {
    pub(super) threads: usize,
    known: HashMap<Index, Rc<Split>>,
    vectors: Vec<Values>,
    ids: HashMap<Values, usize>,
    relative: HashMap<usize, usize>,
    /// What conditions compare with thresholds: the same in all threads.
    pub(super) axes: Vec<Index>,
}

impl Lanes {
    pub(super) fn new(threads: usize) -> Self {
        let (known, ids, relative) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { threads, known, vectors: Vec::new(), ids, relative, axes: Vec::new() }
    }

    pub(super) fn values(&self, id: usize) -> &Values {
        &self.vectors[id]
    }

    pub(super) fn intern(&mut self, values: Vec<i64>) -> usize {
        let values = Rc::new(values);
        if let Some(id) = self.ids.get(&values) {
            return *id;
        }
        self.vectors.push(values.clone());
        self.ids.insert(values, self.vectors.len() - 1);
        self.vectors.len() - 1
    }

    /// The same numbers less that of the first thread.
    pub(super) fn relative(&mut self, id: usize) -> usize {
        if let Some(known) = self.relative.get(&id) {
            return *known;
        }
        let values = self.values(id).clone();
        let relative = self.intern(values.iter().map(|v| v - values[0]).collect());
        self.relative.insert(id, relative);
        relative
    }

    /// Splits an index whose constant is 0.
    pub(super) fn split(&mut self, place: &dyn Fn() -> String, index: &Index) -> Result<Rc<Split>, CountError> {
        if let Some(split) = self.known.get(index) {
            return Ok(split.clone());
        }
        let (mut shared, mut values) = (Index::default(), vec![0i64; self.threads]);
        let mut by_factor: BTreeMap<Index, Vec<i64>> = BTreeMap::new();
        for (factors, c) in index.terms() {
            let has_tid = |atom: &&Atom| !Index::from((*atom).clone()).all(|s| *s != Sym::Tid);
            let (threads, others): (Vec<&Atom>, Vec<&Atom>) = factors.iter().partition(has_tid);
            let product = |atoms: &[&Atom], c: i64| {
                atoms.iter().fold(Index::from(c), |product, atom| product.times(&(*atom).clone().into()))
            };
            if threads.is_empty() {
                shared = shared.plus(&product(&others, c));
                continue;
            }
            let factor = product(&threads, c);
            if !factor.all(|s| *s == Sym::Tid) {
                let what = "a number that mixes threads with blocks or sizes";
                return Err(CountError::NotCountable { place: place(), what, index: index.to_string() });
            }
            let to = match others.is_empty() {
                true => &mut values,
                false => by_factor.entry(product(&others, 1)).or_insert_with(|| vec![0; self.threads]),
            };
            for (t, to) in to.iter_mut().enumerate() {
                let value = factor.eval(&|_| Some(t as i64)).unwrap_or(0);
                *to = to.wrapping_add(value);
            }
        }
        by_factor.retain(|_, v| v.iter().any(|x| *x != 0));
        let by_factor = by_factor.into_iter().map(|(f, v)| (f, self.intern(v))).collect();
        let split = Rc::new(Split { shared, values: self.intern(values), by_factor });
        self.known.insert(index.clone(), split.clone());
        Ok(split)
    }

    /// `index > 0` as a condition; `None` where it always holds.
    pub(super) fn positive(
        &mut self,
        place: &dyn Fn() -> String,
        index: &Index,
    ) -> Result<Option<Condition>, CountError> {
        let more = index.constant_term();
        let split = self.split(place, &index.minus(&more.into()))?;
        if let Some((factor, _)) = split.by_factor.iter().next() {
            let what = "a condition on a multiple of a size that differs from thread to thread";
            return Err(CountError::NotCountable { place: place(), what, index: format!("{index}, by {factor}") });
        }
        if split.shared.constant() == Some(0) {
            let always = self.values(split.values).iter().all(|v| v + more > 0);
            return Ok((!always).then_some(Condition { axis: None, values: split.values, more, ask: None }));
        }
        let axis = self.axes.iter().position(|a| *a == split.shared).unwrap_or_else(|| {
            self.axes.push(split.shared.clone());
            self.axes.len() - 1
        });
        let least = self.values(split.values).iter().min().copied().unwrap_or(0);
        let always = is_never_negative(&split.shared) && least + more > 0;
        Ok((!always).then_some(Condition { axis: Some(axis), values: split.values, more, ask: None }))
    }
}
