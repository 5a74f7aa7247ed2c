//! Derived names of a bound space: evaluated at a point, and remembered where they depend on few parameters.

use super::{Param, SpaceError, Symbols};
use crate::expr::{Compiled, Expr, Val, Value};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

/// The derived names of a space, in the order of their definition: one mentions only those before it.
#[derive(Debug, Default)]
pub(super) struct Derived(Vec<Definition>);

#[derive(Debug)]
struct Definition {
    name: String,
    /// The value, where it is the same at every point.
    constant: Option<Value>,
    /// Over the parameters and the names before this one.
    value: Compiled,
    /// Bits of the names that it mentions.
    mentions: u128,
    /// The parameters that decide it, directly or by names that it mentions.
    reach: Vec<usize>,
    table: Option<Table>,
}

/// The integer values of a name that few parameters decide.
#[derive(Debug)]
struct Table {
    /// These parameters, and the strides of their indices among the cells; strides of 0 where there are fewer.
    reach: [(u16, u16); MAX_REACH],
    /// Threads that compute the same value store the same, so relaxed order is enough.
    cells: OnceLock<Box<[AtomicI64]>>,
    combinations: usize,
}

/// Most derived names of a space.
pub(super) const MAX_NAMES: usize = u128::BITS as usize;
/// Values of a name over more parameters, or more combinations of their values, are computed anew each time.
const MAX_REACH: usize = 4;
/// 32 KiB a name at most.
const MAX_CELLS: usize = 1 << 12;
/// A cell whose value is not known yet. An integer of this value is never found there.
const UNKNOWN: i64 = i64::MIN;
/// Reading a name of a space with more parameters and names allocates.
const INLINE: usize = 64;

/// Values by slot at one point: parameters, then the names that are known so far.
pub(super) struct Slots<'s> {
    point: &'s [u16],
    inline: [Val<'s>; INLINE],
    spilled: Vec<Val<'s>>,
    known: u128,
}

impl<'s> Slots<'s> {
    #[cold]
    pub(super) fn new(params: &'s [Param], derived: &Derived, point: &'s [u16]) -> Self {
        let len = params.len() + derived.0.len();
        let spilled = if len > INLINE { vec![Val::Int(0); len] } else { Vec::new() };
        let mut slots = Self { point, inline: [Val::Int(0); INLINE], spilled, known: 0 };
        for (slot, (param, &i)) in slots.values().iter_mut().zip(params.iter().zip(point)) {
            *slot = param.values[usize::from(i)].as_val();
        }
        slots
    }

    fn values(&mut self) -> &mut [Val<'s>] {
        if self.spilled.is_empty() { &mut self.inline } else { &mut self.spilled }
    }
}

impl Derived {
    pub(super) fn new(params: &[Param], names: &[(String, Expr)], symbols: &Symbols) -> Result<Self, SpaceError> {
        let mut slots: Vec<&str> = params.iter().map(|p| p.name.as_str()).collect();
        let mut derived = Self(Vec::with_capacity(names.len()));
        for (name, expr) in names {
            // Names that come to a constant for this device and input are folded into those that mention them.
            let known = |n: &str| match derived.0.iter().find(|d| d.name == n) {
                Some(definition) => definition.constant.clone(),
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
            derived.0.push(Definition::new(name, folded, value, params, &derived.0));
            slots.push(name);
        }
        Ok(derived)
    }

    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|d| d.name == name)
    }

    /// An integer value of a name that is remembered.
    #[inline]
    pub(super) fn remembered(&self, i: usize, point: &[u16]) -> Option<i64> {
        self.0.get(i)?.table.as_ref()?.remembered(point)
    }

    /// The value of a name, computed with those that it mentions; `None` if one has none, or there is no such name.
    #[cold]
    pub(super) fn compute<'s>(&'s self, i: usize, slots: &mut Slots<'s>) -> Option<Val<'s>> {
        let (definition, at) = (self.0.get(i)?, slots.point.len() + i);
        if slots.known >> i & 1 == 1 {
            return Some(slots.values()[at]);
        }
        let remembered = definition.table.as_ref().and_then(|table| table.remembered(slots.point));
        let value = match (&definition.constant, remembered) {
            (Some(value), _) => value.as_val(),
            (None, Some(value)) => Val::Int(value),
            (None, None) => {
                let mut mentions = definition.mentions;
                while mentions != 0 {
                    self.compute(mentions.trailing_zeros() as usize, slots)?;
                    mentions &= mentions - 1;
                }
                definition.value.eval(&slots.values()[..at]).ok()?
            }
        };
        if let (Val::Int(value), Some(table)) = (value, &definition.table) {
            table.remember(slots.point, value);
        }
        slots.values()[at] = value;
        slots.known |= 1 << i;
        Some(value)
    }
}

impl Definition {
    fn new(name: &str, folded: Expr, value: Compiled, params: &[Param], before: &[Self]) -> Self {
        let names = folded.names();
        let mentioned = || before.iter().enumerate().filter(|(_, d)| names.contains(&d.name));
        let decides = |p: &usize| names.contains(&params[*p].name) || mentioned().any(|(_, d)| d.reach.contains(p));
        let reach: Vec<usize> = (0..params.len()).filter(decides).collect();
        let table = Table::new(&reach, params);
        let mentions = mentioned().fold(0, |bits, (i, _)| bits | 1 << i);
        let constant = if let Expr::Const(value) = folded { Some(value) } else { None };
        Self { name: name.to_owned(), constant, value, mentions, reach, table }
    }
}

impl Table {
    fn new(of: &[usize], params: &[Param]) -> Option<Self> {
        let (mut reach, mut combinations) = ([(0, 0); MAX_REACH], 1usize);
        if of.len() > MAX_REACH {
            return None;
        }
        for (entry, &param) in reach.iter_mut().zip(of) {
            *entry = (u16::try_from(param).ok()?, u16::try_from(combinations).ok()?);
            combinations = combinations.saturating_mul(params[param].values.len());
        }
        (combinations <= MAX_CELLS).then_some(Self { reach, cells: OnceLock::new(), combinations })
    }

    #[inline]
    fn remembered(&self, point: &[u16]) -> Option<i64> {
        let known = self.cells.get()?.get(self.cell(point))?.load(Ordering::Relaxed);
        (known != UNKNOWN).then_some(known)
    }

    fn remember(&self, point: &[u16], value: i64) {
        let cells = self.cells.get_or_init(|| (0..self.combinations).map(|_| AtomicI64::new(UNKNOWN)).collect());
        cells[self.cell(point)].store(value, Ordering::Relaxed);
    }

    #[inline]
    fn cell(&self, point: &[u16]) -> usize {
        let part = |&(param, stride): &(u16, u16)| match point.get(usize::from(param)) {
            Some(&index) => usize::from(index) * usize::from(stride),
            None => 0,
        };
        self.reach.iter().map(part).sum()
    }
}
