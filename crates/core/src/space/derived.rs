//! Derived names of a bound space: evaluated at a point, and remembered for points with the same values of the parameters that
//! decide them.

use super::bound::resolve;
use super::{Param, SpaceError, Symbols};
use crate::expr::{Compiled, Expr, Val, Value};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// The integer values of a name that were computed last. A walk changes the last parameters first, and most names depend on few of
/// them, so that nearly every value is found here.
#[derive(Debug)]
struct Table {
    /// The parameters that decide it, and the strides of their indices in the number of a combination.
    reach: Box<[(u16, u32)]>,
    /// A cell holds the number of a combination and its value, in one word, so that threads can share it.
    cells: OnceLock<Box<[AtomicU64]>>,
    combinations: u32,
}

/// Most derived names of a space.
pub(super) const MAX_NAMES: usize = u128::BITS as usize;
/// 32 KiB a name at most. Where there are more combinations, they share cells.
const MAX_CELLS: u32 = 1 << 12;
/// What no cell holds of a combination.
const EMPTY: u64 = u64::MAX;
/// Stands for a value that is not at hand. An integer of this value is evaluated each time.
pub(super) const UNKNOWN: i64 = i64::MIN;
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
            let (folded, value) = resolve(name, expr, &slots, &known)?;
            derived.0.push(Definition::new(name, folded, value, params, &derived.0));
            slots.push(name);
        }
        Ok(derived)
    }

    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|d| d.name == name)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The names that a parameter alone decides.
    pub(super) fn of(&self, param: usize) -> impl Iterator<Item = usize> {
        (0..self.0.len()).filter(move |&i| self.0[i].reach == [param])
    }

    /// The names that have one value.
    pub(super) fn constants(&self) -> impl Iterator<Item = usize> {
        (0..self.0.len()).filter(|&i| self.0[i].reach.is_empty())
    }

    /// An integer value of a name, or [`UNKNOWN`] where none is remembered.
    #[inline]
    pub(super) fn remembered(&self, i: usize, point: &[u16]) -> i64 {
        match self.0.get(i) {
            Some(Definition { table: Some(table), .. }) => table.remembered(point),
            _ => UNKNOWN,
        }
    }

    /// The value of a name, computed with those that it mentions; `None` if one has none, or there is no such name.
    #[cold]
    pub(super) fn compute<'s>(&'s self, i: usize, slots: &mut Slots<'s>) -> Option<Val<'s>> {
        let (definition, at) = (self.0.get(i)?, slots.point.len() + i);
        if slots.known >> i & 1 == 1 {
            return Some(slots.values()[at]);
        }
        let value = match (&definition.constant, self.remembered(i, slots.point)) {
            (Some(value), _) => value.as_val(),
            (None, value) if value != UNKNOWN => Val::Int(value),
            (None, _) => {
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
    /// None where the combinations have no numbers of 32 bits.
    fn new(of: &[usize], params: &[Param]) -> Option<Self> {
        let (mut reach, mut combinations) = (Vec::with_capacity(of.len()), 1u32);
        for &param in of {
            reach.push((u16::try_from(param).ok()?, combinations));
            combinations = combinations.checked_mul(u32::try_from(params[param].values.len()).ok()?)?;
        }
        Some(Self { reach: reach.into(), cells: OnceLock::new(), combinations })
    }

    #[inline]
    fn remembered(&self, point: &[u16]) -> i64 {
        let combination = self.combination(point);
        let Some(cells) = self.cells.get() else { return UNKNOWN };
        // Nothing else is published with a cell, so relaxed order is enough.
        let held = cells[self.cell(combination)].load(Ordering::Relaxed);
        if held >> 32 == u64::from(combination) { i64::from(held as i32) } else { UNKNOWN }
    }

    fn remember(&self, point: &[u16], value: i64) {
        let Ok(value) = i32::try_from(value) else { return };
        let count = self.combinations.min(MAX_CELLS);
        let cells = self.cells.get_or_init(|| (0..count).map(|_| AtomicU64::new(EMPTY)).collect());
        let combination = self.combination(point);
        let held = u64::from(combination) << 32 | u64::from(value as u32);
        cells[self.cell(combination)].store(held, Ordering::Relaxed);
    }

    /// Less than the number of combinations, and so never what an empty cell holds.
    #[inline]
    fn combination(&self, point: &[u16]) -> u32 {
        self.reach.iter().map(|&(param, stride)| u32::from(point[usize::from(param)]) * stride).sum()
    }

    #[inline]
    fn cell(&self, combination: u32) -> usize {
        if self.combinations <= MAX_CELLS {
            return combination as usize;
        }
        // The golden ratio times 2^32 spreads neighbours; the high bits are the best.
        (combination.wrapping_mul(0x9e37_79b9) >> (u32::BITS - MAX_CELLS.trailing_zeros())) as usize
    }
}
