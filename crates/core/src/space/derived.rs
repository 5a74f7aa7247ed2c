//! Derived names of a bound space, ready to be evaluated at a point.

use super::values::Name;
use super::{Param, SpaceError, Symbols};
use crate::expr::{Compiled, Expr, Val, Value};

/// The derived names of a space, in the order of their definition: one mentions only those before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Derived(Vec<Definition>);

#[derive(Clone, Debug)]
struct Definition {
    name: String,
    /// Over the parameters and the names before this one.
    value: Compiled,
    /// Bits of the names that must have values before this one, its own among them.
    needs: u128,
}

/// Most derived names of a space.
pub(super) const MAX_NAMES: usize = u128::BITS as usize;

impl Derived {
    pub(super) fn new(params: &[Param], names: &[(String, Expr)], symbols: &Symbols) -> Result<Self, SpaceError> {
        let mut slots: Vec<&str> = params.iter().map(|p| p.name.as_str()).collect();
        let mut definitions: Vec<Definition> = Vec::with_capacity(names.len());
        // Names that come to a constant for this device and input are folded into those that mention them.
        let mut constants: Vec<(&str, Value)> = Vec::new();
        for (i, (name, expr)) in names.iter().enumerate() {
            let known = |n: &str| match constants.iter().find(|(name, _)| *name == n) {
                Some((_, value)) => Some(value.clone()),
                None if slots.contains(&n) => None,
                None => symbols.get(n).cloned(),
            };
            let unknown = |mentioned: String| SpaceError::UnknownName { rule: name.clone(), name: mentioned };
            let mut mentioned = expr.names().into_iter();
            if let Some(n) = mentioned.find(|n| !slots.contains(&n.as_str()) && known(n).is_none()) {
                return Err(unknown(n));
            }
            let folded = expr.fold(&known);
            let value = folded.compile(&slots).map_err(|e| unknown(e.0))?;
            let mentioned = folded.names();
            let before = definitions.iter().filter(|d| mentioned.contains(&d.name));
            let needs = before.fold(1 << i, |bits, d| bits | d.needs);
            if let Expr::Const(value) = folded {
                constants.push((name, value));
            }
            slots.push(name);
            definitions.push(Definition { name: name.clone(), value, needs });
        }
        Ok(Self(definitions))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|d| d.name == name)
    }

    /// Evaluates what a name needs and is not among the bits of `known` into its slots, behind those of the parameters.
    /// Gives the bits that are known then; `None` if something has no value, or the name is of another space.
    pub(super) fn evaluate<'s>(
        &'s self,
        name: Name,
        params: usize,
        slots: &mut [Val<'s>],
        mut known: u128,
    ) -> Option<u128> {
        let Some(i) = usize::from(name.0).checked_sub(params) else { return Some(known) };
        let mut missing = self.0.get(i)?.needs & !known;
        while missing != 0 {
            let next = missing.trailing_zeros() as usize;
            let (before, slot) = slots.split_at_mut(params + next);
            slot[0] = self.0[next].value.eval(before).ok()?;
            known |= 1 << next;
            missing &= missing - 1;
        }
        Some(known)
    }
}
