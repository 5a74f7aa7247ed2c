//! What a point says by name, and the proof that the rules accept it.

use super::derived::{Derived, Slots, UNKNOWN};
use super::{BoundSpace, Config, Param};
use crate::expr::{Val, Value};
use std::fmt;
use std::ops::Deref;

/// A parameter or a derived name of a space, found once by [`ParamSpace::name`](super::ParamSpace::name) and read at many
/// points. It belongs to that space and to all that are bound from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name(pub(super) u16);

/// A point of a bound space, legal or not, with its values by name. It borrows both, and is as cheap to pass as they are.
///
/// Names are those of the parameters, of [`SpaceBuilder::define`](super::SpaceBuilder::define), and of the symbols. A derived
/// name is evaluated when it is asked for, after the names that its text mentions: if one of those has no value (a division
/// by zero, an overflow), neither has it. At a legal point, all names of a kernel have one; the conformance suite of
/// `testkit` holds kernels to that.
#[derive(Clone, Copy)]
pub struct Values<'s> {
    space: &'s BoundSpace,
    point: &'s [u16],
}

/// A legal point: proof that every rule of one [`BoundSpace`] holds. Only [`BoundSpace::check`] makes one.
#[derive(Clone, Copy)]
pub struct Legal<'s>(Values<'s>);

impl<'s> Values<'s> {
    /// The caller has seen that the point is one of the space.
    pub(super) fn new(space: &'s BoundSpace, point: &'s [u16]) -> Self {
        Self { space, point }
    }

    /// The space.
    pub fn space(&self) -> &'s BoundSpace {
        self.space
    }

    /// One index per parameter.
    pub fn point(&self) -> &'s [u16] {
        self.point
    }

    /// The parameters by name.
    pub fn config(&self) -> Config {
        self.space.config(self.point)
    }

    /// The value of a parameter, a derived name or a symbol; `None` for other names, and where there is no value.
    pub fn get(&self, name: &str) -> Option<Val<'s>> {
        match self.space.name(name) {
            Some(name) => self.read([name]).map(|[value]| value),
            None => self.space.symbols().get(name).map(Value::as_val),
        }
    }

    /// [`Values::get`] as an integer; `None` also for what is none or does not fit.
    pub fn int<T: TryFrom<i64>>(&self, name: &str) -> Option<T> {
        self.get(name).and_then(integer)
    }

    /// Values of several names at once: what they share is evaluated once, and nothing is allocated. `None` if one of them has
    /// no value, or is of another space.
    #[inline]
    pub fn read<const N: usize>(&self, names: [Name; N]) -> Option<[Val<'s>; N]> {
        let (mut out, mut slots) = ([Val::Int(0); N], None);
        for (out, name) in out.iter_mut().zip(names) {
            *out = self.value(name, &mut slots)?;
        }
        Some(out)
    }

    /// [`Values::read`] as integers; `None` also if one is none or does not fit.
    #[inline]
    pub fn ints<T: TryFrom<i64> + Copy + Default, const N: usize>(&self, names: [Name; N]) -> Option<[T; N]> {
        let (mut out, mut slots) = ([T::default(); N], None);
        let (numbers, derived) = (self.space.numbers(), self.space.derived());
        for (out, name) in out.iter_mut().zip(&names) {
            let slot = usize::from(name.0);
            let at_hand = match *numbers.columns.get(slot)? {
                (_, ELSEWHERE) => derived.remembered(slot - numbers.last.len(), self.point),
                (param, start) => numbers.values[start as usize + usize::from(self.point[usize::from(param)])],
            };
            *out = match T::try_from(at_hand) {
                Ok(value) if at_hand != UNKNOWN => value,
                _ => integer(self.value(*name, &mut slots)?)?,
            };
        }
        Some(out)
    }

    /// The slots are made for the first name that is evaluated.
    #[cold]
    fn value(&self, name: Name, slots: &mut Option<Slots<'s>>) -> Option<Val<'s>> {
        let (params, derived, slot) = (self.space.params(), self.space.derived(), usize::from(name.0));
        match slot.checked_sub(params.len()) {
            None => Some(params[slot].values[usize::from(self.point[slot])].as_val()),
            Some(i) => match derived.remembered(i, self.point) {
                value if value != UNKNOWN => Some(Val::Int(value)),
                _ => derived.compute(i, slots.get_or_insert_with(|| Slots::new(params, derived, self.point))),
            },
        }
    }
}

/// The integers that one parameter decides, in one table: its values, and the names that are derived of it alone. A search reads
/// them at millions of points.
#[derive(Debug)]
pub(super) struct Numbers {
    /// The last index of each parameter.
    last: Box<[u16]>,
    /// Of each name, the parameter, and where its values begin; [`ELSEWHERE`] for names of several parameters.
    columns: Box<[(u16, u32)]>,
    /// [`UNKNOWN`] where it is no integer.
    values: Box<[i64]>,
}

/// Stands for the place of values that no single parameter decides.
const ELSEWHERE: u32 = u32::MAX;

impl Numbers {
    pub(super) fn new(params: &[Param], derived: &Derived) -> Self {
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for (p, param) in params.iter().enumerate() {
            columns.push((p as u16, values.len() as u32));
            values.extend(param.values.iter().map(|v| integer(v.as_val()).unwrap_or(UNKNOWN)));
        }
        columns.resize(params.len() + derived.len(), (0, ELSEWHERE));
        let mut point = vec![0; params.len()];
        for (p, param) in params.iter().enumerate() {
            // A constant goes with the first parameter.
            let names: Vec<usize> = derived.of(p).chain(derived.constants().filter(|_| p == 0)).collect();
            let (start, count) = (values.len(), param.values.len());
            for (n, i) in names.iter().enumerate() {
                columns[params.len() + i] = (p as u16, (start + n * count) as u32);
            }
            values.resize(start + names.len() * count, UNKNOWN);
            for index in (0..count).take_while(|_| !names.is_empty()) {
                point[p] = index as u16;
                let mut slots = Slots::new(params, derived, &point);
                for (n, &i) in names.iter().enumerate() {
                    let value = derived.compute(i, &mut slots).and_then(integer);
                    values[start + n * count + index] = value.unwrap_or(UNKNOWN);
                }
            }
            point[p] = 0;
        }
        let last = params.iter().map(|p| p.values.len().saturating_sub(1) as u16).collect();
        Self { last, columns: columns.into(), values: values.into() }
    }

    /// Whether the indices are of these parameters. Looks at all of them, which is faster than to branch at each.
    #[inline]
    pub(super) fn contain(&self, point: &[u16]) -> bool {
        let within = || self.last.iter().zip(point).fold(true, |all, (last, index)| all & (index <= last));
        point.len() == self.last.len() && within()
    }
}

fn integer<T: TryFrom<i64>>(value: Val<'_>) -> Option<T> {
    T::try_from(value.as_integer()?).ok()
}

impl fmt::Debug for Values<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.config())
    }
}

impl<'s> Legal<'s> {
    /// The caller has seen that every rule holds.
    pub(super) fn new(values: Values<'s>) -> Self {
        Self(values)
    }
}

impl<'s> Deref for Legal<'s> {
    type Target = Values<'s>;

    fn deref(&self) -> &Values<'s> {
        &self.0
    }
}

impl fmt::Debug for Legal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
