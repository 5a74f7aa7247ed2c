//! Bounds and alignment of accesses, from what addresses mean.

use super::FaultKind;
use crate::ir::{Access, Atom, Compare, Cond, Entry, Index, Space, Sym};
use std::collections::HashMap;

/// What is known where an access stands.
pub(super) struct Facts<'a> {
    pub(super) entry: &'a Entry,
    pub(super) guards: &'a [&'a Cond],
    pub(super) trips: &'a HashMap<u32, Index>,
}

impl Facts<'_> {
    pub(super) fn check(&self, access: &Access, address: &Index) -> Vec<FaultKind> {
        let mut faults = Vec::new();
        let zeros = address.trailing_zeros(&|sym| self.entry.trailing_zeros(sym));
        if zeros < access.bytes.trailing_zeros() {
            let (bytes, known) = (access.bytes, 1 << zeros);
            faults.push(FaultKind::Misaligned { bytes, known, address: address.to_string() });
        }
        if access.space == Space::Shared {
            faults.extend(self.shared(access, address));
        }
        faults
    }

    fn shared(&self, access: &Access, address: &Index) -> Option<FaultKind> {
        let declared = self.entry.shared_bytes;
        let Some((from, last)) = address.range(&|atom| self.range(atom)) else {
            return Some(FaultKind::SharedUnbounded(address.to_string()));
        };
        let to = last + i64::from(access.bytes);
        (from < 0 || to > declared.into()).then_some(FaultKind::SharedBounds { from, to, declared })
    }

    fn range(&self, atom: &Atom) -> Option<(i64, i64)> {
        let comparisons = self.guards.iter().flat_map(|cond| &cond.0);
        let mut about = comparisons.filter(|c| c.left.atom() == Some(atom)).peekable();
        let (mut low, mut high) = match atom {
            Atom::Sym(sym) => self.symbol(sym)?,
            _ if about.peek().is_none() => return None,
            // What follows from its parts is intersected by the caller.
            _ => (i64::MIN, i64::MAX),
        };
        for c in about {
            let Some(right) = c.right.constant() else { continue };
            match c.cmp {
                Compare::Lt => high = high.min(right - 1),
                Compare::Le => high = high.min(right),
                Compare::Gt => low = low.max(right + 1),
                Compare::Ge => low = low.max(right),
                Compare::Eq => (low, high) = (low.max(right), high.min(right)),
                Compare::Ne => {}
            }
        }
        Some((low, high))
    }

    fn symbol(&self, sym: &Sym) -> Option<(i64, i64)> {
        match sym {
            Sym::Tid => Some((0, i64::from(self.entry.threads) - 1)),
            Sym::Shared => Some((0, 0)),
            Sym::Turn { count, step } => Some((0, (i64::from(*count) - 1) * i64::from(*step))),
            Sym::Iteration(id) => {
                let trips = self.trips.get(id)?.range(&|atom| self.range(atom))?;
                Some((0, (trips.1 - 1).max(0)))
            }
            Sym::Param(_) | Sym::Ctaid(_) | Sym::Nctaid(_) | Sym::Digit(..) | Sym::Opaque(_) => None,
        }
    }
}
