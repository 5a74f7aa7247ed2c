//! Numbers that the program alone does not tell, and that are known all the same: words of a table whose data are given, and
//! quotients in which threads and blocks mix.

use super::walk::Walk;
use super::{CountError, Launch};
use crate::ir::{Access, Atom, Axis, Cond, Index, Inst, Operand, Reg, Sym};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A function of one number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Function {
    /// The word of a table that begins at so many bytes.
    Word(Arc<[u32]>),
    /// The quotient by a number, rounded down.
    Quotient(i64),
}

impl Function {
    /// `None` beyond the table.
    pub(super) fn at(&self, x: i64) -> Option<i64> {
        match self {
            Self::Word(words) => words.get(usize::try_from(x / 4).ok()?).map(|w| i64::from(*w)),
            Self::Quotient(by) => Some(x.div_euclid(*by)),
        }
    }
}

/// `function(shared + values[t])` in thread `t`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) function: Function,
    /// What all threads of a block agree on.
    pub(super) shared: Index,
    pub(super) values: usize,
}

/// `shared + values[t] + sum of c * source` in thread `t`.
#[derive(Clone, Debug)]
pub(super) struct Linear {
    pub(super) shared: Index,
    pub(super) values: usize,
    pub(super) terms: BTreeMap<usize, i64>,
}

/// `shared + values[t] + times * source < below`, all as unsigned numbers of 32 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) shared: Index,
    pub(super) values: usize,
    pub(super) times: i64,
    pub(super) source: usize,
    pub(super) below: i64,
    /// With this in the place of the first two it must never hold: what threads have that are left out by other conditions.
    pub(super) otherwise: Option<i64>,
}

/// What a register holds that has no meaning as an index.
#[derive(Clone, Debug)]
pub(super) enum Told {
    Source(usize),
    /// One number where a condition holds, and a constant elsewhere.
    Choice(Cond, Index, i64),
}

/// All that is known.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) told: BTreeMap<u32, Told>,
    pub(super) sources: Vec<Source>,
    pub(super) asks: Vec<Ask>,
}

impl Known {
    pub(super) fn source(&mut self, source: Source) -> usize {
        intern(&mut self.sources, source)
    }

    pub(super) fn ask(&mut self, ask: Ask) -> usize {
        intern(&mut self.asks, ask)
    }

    fn of(&self, atom: &Atom) -> Option<&Told> {
        let Atom::Sym(Sym::Opaque(id)) = atom else { return None };
        self.told.get(id)
    }

    /// Whether nothing stays unknown that the program does not tell, and something is known.
    pub(super) fn tells(&self, index: &Index) -> bool {
        let mut some = false;
        let all = index.all(|sym| !matches!(sym, Sym::Opaque(id) if !self.told.contains_key(id)));
        index.visit(&mut |sym| some |= matches!(sym, Sym::Opaque(_)));
        all && some
    }
}

fn intern<T: PartialEq>(all: &mut Vec<T>, new: T) -> usize {
    all.iter().position(|x| *x == new).unwrap_or_else(|| {
        all.push(new);
        all.len() - 1
    })
}

impl Launch {
    /// The index of the block along an axis, from its digits.
    fn block(&self, axis: Axis) -> Option<Index> {
        let mut worth = 1i64;
        let mut sum = Index::default();
        for (i, count) in (0..).zip(&self.digits[axis as usize]) {
            sum = sum.plus(&Index::from(Sym::Digit(axis, i)).times(&worth.into()));
            worth = worth.saturating_mul(*count);
        }
        (!self.digits[axis as usize].is_empty()).then_some(sum)
    }

    /// Blocks, or their digits, and how far each goes.
    pub(super) fn blocks(&self) -> Vec<(Sym, Index)> {
        let of = |axis: Axis| match self.digits[axis as usize].as_slice() {
            [] => vec![(Sym::Ctaid(axis), self.grid[axis as usize].clone())],
            digits => (0..).zip(digits).map(|(i, count)| (Sym::Digit(axis, i), (*count).into())).collect(),
        };
        [Axis::X, Axis::Y, Axis::Z].into_iter().flat_map(of).collect()
    }

    /// How far a digit goes.
    pub(super) fn digit(&self, axis: Axis, i: u32) -> Option<i64> {
        self.digits[axis as usize].get(i as usize).copied()
    }

    /// The same with blocks told by their digits: quotients and remainders by what digits are worth are decided.
    pub(super) fn by_digits(&self, index: Index, threads: i64) -> Index {
        if index.all(|sym| !matches!(sym, Sym::Ctaid(axis) if !self.digits[*axis as usize].is_empty())) {
            return index;
        }
        let bounds = |atom: &Atom| match atom {
            Atom::Sym(Sym::Tid) => Some((0, threads - 1)),
            Atom::Sym(Sym::Digit(axis, i)) => Some((0, self.digit(*axis, *i)? - 1)),
            _ => None,
        };
        decided(&index, &|sym| if let Sym::Ctaid(axis) = sym { self.block(*axis) } else { None }, &bounds)
    }
}

/// The same with symbols replaced, and without floors and remainders that have one value.
fn decided(index: &Index, by: &dyn Fn(&Sym) -> Option<Index>, bounds: &dyn Fn(&Atom) -> Option<(i64, i64)>) -> Index {
    let inner = |x: &Index| decided(x, by, bounds);
    let settle = |index: Index| {
        let mut out = Index::default();
        for (factors, c) in index.terms() {
            let settled = |atom: &Atom| match atom {
                Atom::Floor(a, d) | Atom::Mod(a, d) => {
                    let (low, high) = a.range(&|atom| bounds(atom))?;
                    let cell = low.div_euclid(*d);
                    let is_floor = matches!(atom, Atom::Floor(..));
                    let value = if is_floor { cell.into() } else { a.minus(&(cell * d).into()) };
                    (high.div_euclid(*d) == cell).then_some(value)
                }
                _ => None,
            };
            let factor = |atom: &Atom| settled(atom).unwrap_or_else(|| atom.clone().into());
            out = out.plus(&factors.iter().fold(Index::from(c), |product, atom| product.times(&factor(atom))));
        }
        out
    };
    let mut sum = Index::default();
    for (factors, c) in index.terms() {
        let atom = |atom: &Atom| match atom {
            _ if Index::from(atom.clone()).all(|sym| by(sym).is_none()) => atom.clone().into(),
            Atom::Sym(sym) => by(sym).unwrap_or_else(|| atom.clone().into()),
            Atom::Floor(a, d) => settle(inner(a).floor(*d)),
            Atom::Mod(a, d) => settle(inner(a).rem(*d)),
            Atom::Quotient(a, b) => inner(a).quotient(&inner(b)),
            Atom::Min(a, b) => inner(a).smaller(&inner(b)),
            Atom::Max(a, b) => inner(a).larger(&inner(b)),
            Atom::Xor(a, b) => inner(a).xor(&inner(b)),
        };
        sum = sum.plus(&factors.iter().fold(Index::from(c), |product, a| product.times(&atom(a))));
    }
    sum
}

impl Walk<'_> {
    /// Takes note of what is known of a register that an instruction has written.
    pub(super) fn learn(&mut self, inst: &Inst, accesses: &[Access]) -> Result<(), CountError> {
        match inst {
            Inst::Ld { dst, .. } => {
                let Some(access) = accesses.first() else { return Ok(()) };
                let Some((name, words)) = self.table(access) else { return Ok(()) };
                let (split, address, constant) = self.address(access)?;
                if !split.by_factor.is_empty() {
                    return self.no_form("a place in a table that depends on sizes", &address);
                }
                let shared = split.shared.minus(&Index::param(&name));
                for (i, reg) in (0..).zip(dst) {
                    let values = self.lanes.values(split.values).iter().map(|v| v + constant + 4 * i).collect();
                    let values = self.lanes.intern(values);
                    let function = Function::Word(words.clone());
                    let source = self.known.source(Source { function, shared: shared.clone(), values });
                    self.tell(*reg, Told::Source(source));
                }
            }
            Inst::Selp { dst, a: Operand::Reg(a), b: Operand::Int(b), pred, .. } if !self.launch.tables.is_empty() => {
                let told = Told::Choice(self.meanings.cond(*pred), self.meanings.of((*a).into()), *b);
                self.tell(*dst, told);
            }
            _ => {}
        }
        Ok(())
    }

    fn tell(&mut self, reg: Reg, told: Told) {
        if let Some(Atom::Sym(Sym::Opaque(id))) = self.meanings.of(reg.into()).atom() {
            self.known.told.insert(*id, told);
        }
    }

    /// The table that an access reads.
    fn table(&self, access: &Access) -> Option<(String, Arc<[u32]>)> {
        if access.writes || self.launch.tables.is_empty() {
            return None;
        }
        let address = self.meanings.of(access.addr.base.into());
        let is_in = |name: &&String| {
            let begins = Index::param(name);
            address.minus(&begins).all(|sym| !matches!(sym, Sym::Param(of) if **of == ***name))
        };
        let (name, words) =
            self.launch.tables.iter().find(|(name, _)| is_in(name) && address.all(|s| *s != Sym::Shared))?;
        Some((name.clone(), words.clone()))
    }

    /// A comparison with a number that is known: `Some` of the condition, besides others that come with it.
    pub(super) fn ask(&mut self, left: &Index, right: &Index) -> Result<(Option<Cond>, usize), CountError> {
        let Some(below) = self.sized(right).constant() else {
            return self.no_form("a condition on known data that depends on sizes", right);
        };
        // A choice is one of its numbers where its condition holds: then it need not be asked elsewhere.
        let choice = left.terms().find_map(|(factors, c)| match (factors, c) {
            ([atom], 1) => match self.known.of(atom) {
                Some(Told::Choice(cond, yes, no)) => Some((atom.clone(), cond.clone(), yes.clone(), *no)),
                _ => None,
            },
            _ => None,
        });
        let (left, cond, otherwise) = match choice {
            Some((atom, cond, yes, no)) => (left.minus(&atom.into()).plus(&yes), Some(cond), Some(no)),
            None => (left.clone(), None, None),
        };
        let index = self.sized(&left);
        let Linear { shared, values, terms } = self.linear(&index)?;
        let (Some((source, times)), 1) = (terms.first_key_value(), terms.len()) else {
            return self.no_form("a condition on several known numbers", &index);
        };
        let (source, times) = (*source, *times);
        Ok((cond, self.known.ask(Ask { shared, values, times, source, below, otherwise })))
    }

    /// Whether threads and blocks mix, or known data, in an address whose numbers are all there.
    pub(super) fn is_mixed(&self, index: &Index) -> bool {
        let mixes = |atom: &Atom| {
            let of = Index::from(atom.clone());
            !of.all(|s| *s != Sym::Tid) && !of.all(|s| !matches!(s, Sym::Ctaid(_) | Sym::Digit(..)))
        };
        let is_number = self.launch.grid.iter().all(|n| n.constant().is_some());
        self.known.tells(index) || is_number && index.terms().any(|(factors, _)| factors.iter().any(mixes))
    }

    /// In known numbers. A quotient of known data whose multiple by its divisor is asked for is exact: so are the addresses of
    /// vectors, which lie at multiples of their sizes.
    pub(super) fn linear(&mut self, index: &Index) -> Result<Linear, CountError> {
        let mut terms = BTreeMap::new();
        let plain = self.plain(index, &mut terms)?;
        terms.retain(|_, times| *times != 0);
        if !plain.all(|sym| !matches!(sym, Sym::Opaque(_))) {
            return self.no_form("known data in a form that is not followed", index);
        }
        let constant = plain.constant_term();
        let place = &self.place;
        let split = self.lanes.split(&|| place.join("/"), &plain.minus(&constant.into()))?;
        if !split.by_factor.is_empty() {
            return self.no_form("known data beside sizes that differ from thread to thread", index);
        }
        let values = self.lanes.values(split.values).iter().map(|v| v + constant).collect();
        Ok(Linear { shared: split.shared.clone(), values: self.lanes.intern(values), terms })
    }

    /// What is left without known numbers, which are added to the terms.
    fn plain(&mut self, index: &Index, terms: &mut BTreeMap<usize, i64>) -> Result<Index, CountError> {
        let mut plain = Index::default();
        for (factors, c) in index.terms() {
            let source = match factors {
                [atom @ Atom::Sym(Sym::Opaque(_))] => match self.known.of(atom) {
                    Some(Told::Source(source)) => *source,
                    _ => return self.no_form("a number that is chosen", index),
                },
                [Atom::Floor(inner, by)] if self.known.tells(inner) => {
                    if c % by != 0 {
                        return self.no_form("a quotient of known data", index);
                    }
                    plain = plain.plus(&self.plain(&inner.times(&(c / by).into()), terms)?);
                    continue;
                }
                [Atom::Floor(inner, by)] if self.is_mixed(&factors[0].clone().into()) => self.quotient(inner, *by)?,
                // What the quotient leaves.
                [Atom::Mod(inner, by)] if self.is_mixed(&factors[0].clone().into()) => {
                    plain = plain.plus(&self.plain(&inner.times(&c.into()), terms)?);
                    let source = self.quotient(inner, *by)?;
                    *terms.entry(source).or_insert(0) -= c * by;
                    continue;
                }
                _ => {
                    let product = factors.iter().fold(Index::from(c), |all, a| all.times(&a.clone().into()));
                    plain = plain.plus(&product);
                    continue;
                }
            };
            *terms.entry(source).or_insert(0) += c;
        }
        Ok(plain)
    }

    /// The quotient of a number in which threads and blocks add up; a quotient of a quotient is one.
    fn quotient(&mut self, of: &Index, by: i64) -> Result<usize, CountError> {
        if let Some(Atom::Floor(inner, first)) = of.atom() {
            return self.quotient(inner, by.saturating_mul(*first));
        }
        let mut terms = BTreeMap::new();
        let plain = self.plain(of, &mut terms)?;
        if !terms.is_empty() {
            return self.no_form("a quotient of several numbers", of);
        }
        let Linear { shared, values, .. } = self.linear(&plain)?;
        Ok(self.known.source(Source { function: Function::Quotient(by), shared, values }))
    }
}
