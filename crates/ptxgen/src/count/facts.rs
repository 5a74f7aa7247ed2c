//! What is known of numbers, and what gets simpler by it.

use crate::ir::{Atom, Index, Sym};
use std::cell::RefCell;
use std::collections::HashMap;

/// What is known of numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// Numbers that are not negative.
    natural: Vec<Index>,
    /// What has been simplified.
    simple: RefCell<HashMap<Index, Index>>,
}

/// Whether no value is negative: sizes, indices and iterations are not.
pub(super) fn is_never_negative(index: &Index) -> bool {
    index.terms().all(|(factors, c)| c >= 0 && factors.iter().all(is_natural))
}

fn is_natural(atom: &Atom) -> bool {
    match atom {
        Atom::Sym(Sym::Opaque(_)) => false,
        Atom::Sym(_) | Atom::Mod(..) | Atom::Xor(..) => true,
        Atom::Floor(a, _) => is_never_negative(a),
        Atom::Quotient(a, b) | Atom::Min(a, b) => is_never_negative(a) && is_never_negative(b),
        Atom::Max(a, b) => is_never_negative(a) || is_never_negative(b),
    }
}

impl Facts {
    /// Takes note that `index >= least`, and of what follows for its parts.
    pub(super) fn learn(&mut self, index: &Index, least: i64) {
        let fact = index.minus(&least.into());
        if fact.constant().is_none() && !self.natural.contains(&fact) {
            self.natural.push(fact);
            self.simple.borrow_mut().clear();
        }
        let constant = index.constant_term();
        let rest = index.minus(&constant.into());
        match rest.atom() {
            // floor(x / d) >= t is x >= d t.
            Some(Atom::Floor(inner, by)) => self.learn(inner, (least - constant).saturating_mul(*by)),
            Some(Atom::Min(a, b)) => {
                self.learn(a, least - constant);
                self.learn(b, least - constant);
            }
            _ => {}
        }
    }

    /// Whether an index is known not to be negative.
    pub(super) fn covers(&self, index: &Index) -> bool {
        self.least(index).is_some_and(|least| least >= 0)
    }

    /// The greatest number that an index is known not to be below.
    pub(super) fn least(&self, index: &Index) -> Option<i64> {
        let follows = self.natural.iter().filter_map(|fact| index.minus(fact).constant());
        follows.chain(is_never_negative(index).then_some(0)).max()
    }

    /// The same number, with minima and maxima that are decided left out.
    pub(super) fn simplify(&self, index: &Index) -> Index {
        if let Some(known) = self.simple.borrow().get(index) {
            return known.clone();
        }
        let out = self.simpler(index);
        self.simple.borrow_mut().insert(index.clone(), out.clone());
        out
    }

    fn simpler(&self, index: &Index) -> Index {
        let mut out = Index::default();
        for (factors, c) in index.terms() {
            let product = factors.iter().fold(Index::from(c), |product, atom| product.times(&self.atom(atom)));
            out = out.plus(&product);
        }
        remainders(&out)
    }

    fn atom(&self, atom: &Atom) -> Index {
        let pair = |a: &Index, b: &Index| {
            let (a, b) = (self.simplify(a), self.simplify(b));
            let (a_above, b_above) = (self.covers(&a.minus(&b)), self.covers(&b.minus(&a)));
            (a, b, a_above, b_above)
        };
        match atom {
            Atom::Sym(sym) => sym.clone().into(),
            Atom::Floor(a, by) => self.simplify(a).floor(*by),
            Atom::Mod(a, by) => self.simplify(a).rem(*by),
            Atom::Quotient(a, b) => self.simplify(a).quotient(&self.simplify(b)),
            Atom::Xor(a, b) => self.simplify(a).xor(&self.simplify(b)),
            Atom::Min(a, b) => match pair(a, b) {
                (_, b, true, _) => b,
                (a, _, _, true) => a,
                (a, b, ..) => a.smaller(&b),
            },
            Atom::Max(a, b) => match pair(a, b) {
                (a, _, true, _) => a,
                (_, b, _, true) => b,
                (a, b, ..) => a.larger(&b),
            },
        }
    }
}

/// `x - d floor(x / d)` is `x mod d`.
fn remainders(index: &Index) -> Index {
    for (factors, c) in index.terms() {
        let [Atom::Floor(inner, by)] = factors else { continue };
        if c >= 0 || c % by != 0 {
            continue;
        }
        let times = Index::from(-c / by);
        let floor = Index::from(factors[0].clone()).times(&c.into());
        let rest = index.minus(&floor).minus(&inner.times(&times));
        // A constant does not count: it is there or not.
        let terms = |index: &Index| index.terms().filter(|(factors, _)| !factors.is_empty()).count();
        if terms(&rest) + 1 < terms(index) {
            return remainders(&rest.plus(&inner.rem(*by).times(&times)));
        }
    }
    index.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_slice_alone_may_be_short() {
        // Slices of a multiple of 8 steps; all have at least one.
        let k = Index::param("k");
        let slice = k.plus(&23.into()).floor(24).times(&8.into());
        let rest = |r: i64| k.minus(&slice.times(&r.into()));
        let trips = |r: i64| rest(r).smaller(&slice).plus(&7.into()).floor(8);
        let mut facts = Facts::default();
        (0..3).for_each(|r| facts.learn(&trips(r), 1));
        let full = slice.floor(8);
        assert_eq!((facts.simplify(&trips(0)), facts.simplify(&trips(1))), (full.clone(), full.clone()));
        assert_ne!(facts.simplify(&trips(2)), full);
        let steps = |r: i64| rest(r).smaller(&slice).plus(&8.into()).minus(&trips(r).times(&8.into()));
        assert_eq!(facts.simplify(&steps(1)), Index::from(8));
        let axis = k.minus(&k.plus(&7.into()).floor(8).times(&8.into()));
        assert_eq!(Facts::default().simplify(&axis), k.plus(&7.into()).rem(8).minus(&7.into()));
        // Without a split: 1 + (k - 1) mod 8.
        let first = k.plus(&8.into()).minus(&k.plus(&7.into()).floor(8).times(&8.into()));
        assert_eq!(Facts::default().simplify(&first), k.plus(&7.into()).rem(8).plus(&1.into()));
    }
}
