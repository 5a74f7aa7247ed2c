//! What integers mean: quasi-polynomials in sizes, thread and block indices, and loop iterations.
//!
//! An [`Index`] is a polynomial whose variables are [`Atom`]s: symbols, and floors, remainders, minima and maxima of other
//! indices. Trip counts of loops, conditions of guards and addresses are told in this form, so that counting
//! operations, finding the stride of an access, its alignment and its range read the same expressions. Equal
//! polynomials compare equal; nothing is ever evaluated in floating point.

use super::reg::Axis;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sym {
    /// A parameter of the entry, by name: a size, or the address of a buffer.
    Param(Arc<str>),
    /// Index of the thread in its block.
    Tid,
    /// Index of the block.
    Ctaid(Axis),
    /// Number of blocks.
    Nctaid(Axis),
    /// A digit of the index of the block, from the fastest on: where counts take it apart, see [`crate::count::Launch::digits`].
    Digit(Axis, u32),
    /// Iterations of a loop that are complete, by the loop's number.
    Iteration(u32),
    /// Address of the block's shared memory.
    Shared,
    /// One of `0, step, 2 step .. (count - 1) step`: the offset of a buffer that is used in turn with others.
    Turn {
        /// How many buffers.
        count: u32,
        /// Distance between them.
        step: u32,
    },
    /// A number that the program does not tell, by the register's.
    Opaque(u32),
}

/// A factor of a term.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// A variable.
    Sym(Sym),
    /// Quotient by a positive constant, rounded down.
    Floor(Box<Index>, i64),
    /// Remainder by a positive constant.
    Mod(Box<Index>, i64),
    /// Quotient by another index, rounded down.
    Quotient(Box<Index>, Box<Index>),
    /// The smaller.
    Min(Box<Index>, Box<Index>),
    /// The larger.
    Max(Box<Index>, Box<Index>),
    /// Exclusive or of the bits of numbers that are not negative.
    Xor(Box<Index>, Box<Index>),
}

/// A polynomial over atoms: terms map their sorted factors to a coefficient that is not zero. The constant has no factors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Index {
    terms: BTreeMap<Vec<Atom>, i64>,
}

impl From<i64> for Index {
    fn from(constant: i64) -> Self {
        let mut out = Self::default();
        out.add_term(Vec::new(), constant);
        out
    }
}

impl From<Sym> for Index {
    fn from(sym: Sym) -> Self {
        Atom::Sym(sym).into()
    }
}

impl From<Atom> for Index {
    fn from(atom: Atom) -> Self {
        let mut out = Self::default();
        out.add_term(vec![atom], 1);
        out
    }
}

impl Index {
    /// A parameter by name.
    pub fn param(name: &str) -> Self {
        Sym::Param(name.into()).into()
    }

    /// The terms: sorted factors, and the coefficient.
    pub fn terms(&self) -> impl Iterator<Item = (&[Atom], i64)> {
        self.terms.iter().map(|(factors, &c)| (factors.as_slice(), c))
    }

    /// The value, if it is a constant.
    pub fn constant(&self) -> Option<i64> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&[] as &[Atom]).copied(),
            _ => None,
        }
    }

    fn add_term(&mut self, factors: Vec<Atom>, coefficient: i64) {
        let sum = self.terms.get(&factors).copied().unwrap_or(0).wrapping_add(coefficient);
        if sum == 0 {
            self.terms.remove(&factors);
        } else {
            self.terms.insert(factors, sum);
        }
    }

    /// The sum.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let mut out = self.clone();
        other.terms.iter().for_each(|(f, &c)| out.add_term(f.clone(), c));
        out
    }

    /// The difference.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.plus(&other.times(&Self::from(-1)))
    }

    /// The product.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        let mut out = Self::default();
        for (f, c) in &self.terms {
            for (g, d) in &other.terms {
                let mut factors = [f.as_slice(), g].concat();
                factors.sort();
                out.add_term(factors, c.wrapping_mul(*d));
            }
        }
        out
    }

    /// The quotient by a positive constant, rounded down. Terms that the constant divides leave the floor.
    #[must_use]
    pub fn floor(&self, by: i64) -> Self {
        if by == 1 {
            return self.clone();
        }
        let (whole, rest) = self.split(by);
        match rest.constant() {
            Some(c) => whole.plus(&c.div_euclid(by).into()),
            None => whole.plus(&Atom::Floor(Box::new(rest), by).into()),
        }
    }

    /// The remainder by a positive constant. Terms that the constant divides vanish.
    #[must_use]
    pub fn rem(&self, by: i64) -> Self {
        let (_, rest) = self.split(by);
        match rest.constant() {
            Some(c) => c.rem_euclid(by).into(),
            None => Atom::Mod(Box::new(rest), by).into(),
        }
    }

    /// The quotient by another index, rounded down.
    #[must_use]
    pub fn quotient(&self, by: &Self) -> Self {
        match by.constant() {
            Some(c) if c > 0 => self.floor(c),
            _ => Atom::Quotient(Box::new(self.clone()), Box::new(by.clone())).into(),
        }
    }

    /// The smaller of two.
    #[must_use]
    pub fn smaller(&self, other: &Self) -> Self {
        match (self.constant(), other.constant()) {
            (Some(a), Some(b)) => a.min(b).into(),
            _ => Atom::Min(Box::new(self.clone()), Box::new(other.clone())).into(),
        }
    }

    /// The larger of two.
    #[must_use]
    pub fn larger(&self, other: &Self) -> Self {
        match (self.constant(), other.constant()) {
            (Some(a), Some(b)) => a.max(b).into(),
            _ => Atom::Max(Box::new(self.clone()), Box::new(other.clone())).into(),
        }
    }

    /// Exclusive or, of numbers that are not negative.
    #[must_use]
    pub fn xor(&self, other: &Self) -> Self {
        match (self.constant(), other.constant()) {
            (Some(a), Some(b)) => (a ^ b).into(),
            (_, Some(0)) => self.clone(),
            (Some(0), _) => other.clone(),
            _ => Atom::Xor(Box::new(self.clone()), Box::new(other.clone())).into(),
        }
    }

    /// `(self div by, self mod by)` as far as coefficients tell.
    fn split(&self, by: i64) -> (Self, Self) {
        let (mut whole, mut rest) = (Self::default(), Self::default());
        for (factors, &c) in &self.terms {
            let (q, r) = (c.div_euclid(by), c.rem_euclid(by));
            // Only multiples move out: 5 x mod 4 stays as it is told.
            if r == 0 {
                whole.add_term(factors.clone(), q);
            } else {
                rest.add_term(factors.clone(), c);
            }
        }
        (whole, rest)
    }

    /// Calls `f` on every symbol, those inside of floors too.
    pub fn visit(&self, f: &mut impl FnMut(&Sym)) {
        for atom in self.terms.keys().flatten() {
            match atom {
                Atom::Sym(sym) => f(sym),
                Atom::Floor(a, _) | Atom::Mod(a, _) => a.visit(f),
                Atom::Quotient(a, b) | Atom::Min(a, b) | Atom::Max(a, b) | Atom::Xor(a, b) => {
                    a.visit(f);
                    b.visit(f);
                }
            }
        }
    }

    /// Whether every symbol satisfies `f`.
    pub fn all(&self, f: impl Fn(&Sym) -> bool) -> bool {
        let mut all = true;
        self.visit(&mut |s| all &= f(s));
        all
    }

    /// Whether all threads of a block agree on it.
    pub fn is_uniform(&self) -> bool {
        self.all(|s| !matches!(s, Sym::Tid | Sym::Opaque(_)))
    }

    /// The value where `lookup` gives every symbol one; `None` for an unknown symbol, a quotient by zero or an overflow.
    pub fn eval(&self, lookup: &impl Fn(&Sym) -> Option<i64>) -> Option<i64> {
        let mut sum = 0i64;
        for (factors, &c) in &self.terms {
            let mut product = c;
            for atom in factors {
                product = product.checked_mul(atom.eval(lookup)?)?;
            }
            sum = sum.checked_add(product)?;
        }
        Some(sum)
    }

    /// The smallest and the largest value, where `bounds` tells what is known of atoms; `None` where a symbol has no bound.
    pub fn range(&self, bounds: &impl Fn(&Atom) -> Option<(i64, i64)>) -> Option<(i64, i64)> {
        let (mut low, mut high) = (0i64, 0i64);
        for (factors, &c) in &self.terms {
            let mut range = (c, c);
            for atom in factors {
                range = product(range, atom.range(bounds)?)?;
            }
            low = low.checked_add(range.0)?;
            high = high.checked_add(range.1)?;
        }
        Some((low, high))
    }

    /// The atom that this is, if it is nothing more.
    pub fn atom(&self) -> Option<&Atom> {
        match self.terms.iter().next() {
            Some((factors, 1)) if self.terms.len() == 1 && factors.len() == 1 => factors.first(),
            _ => None,
        }
    }

    /// What is added to the terms with factors.
    pub fn constant_term(&self) -> i64 {
        self.terms.get(&[] as &[Atom]).copied().unwrap_or(0)
    }

    /// The same with a symbol replaced.
    #[must_use]
    pub fn substitute(&self, sym: &Sym, by: &Self) -> Self {
        if self.all(|s| s != sym) { self.clone() } else { self.map(&|s| (s == sym).then(|| by.clone())) }
    }

    /// The same with all symbols replaced at once for which `f` gives something.
    #[must_use]
    pub fn map(&self, f: &impl Fn(&Sym) -> Option<Self>) -> Self {
        let mut sum = Self::default();
        for (factors, &c) in &self.terms {
            let product = factors.iter().fold(Self::from(c), |product, atom| product.times(&atom.map(f)));
            sum = sum.plus(&product);
        }
        sum
    }

    /// Number of low bits that are always zero, where `of` tells that of symbols; at most 62.
    pub fn trailing_zeros(&self, of: &impl Fn(&Sym) -> u32) -> u32 {
        let term = |(factors, c): (&Vec<Atom>, &i64)| {
            factors.iter().map(|a| a.trailing_zeros(of)).sum::<u32>().saturating_add(c.trailing_zeros())
        };
        self.terms.iter().map(term).min().unwrap_or(62).min(62)
    }
}

fn product(a: (i64, i64), b: (i64, i64)) -> Option<(i64, i64)> {
    let corners = [a.0.checked_mul(b.0)?, a.0.checked_mul(b.1)?, a.1.checked_mul(b.0)?, a.1.checked_mul(b.1)?];
    Some((*corners.iter().min()?, *corners.iter().max()?))
}

/// All bits that numbers up to this one may have.
fn low_bits(most: i64) -> i64 {
    (most.unsigned_abs() + 1).next_power_of_two() as i64 - 1
}

impl Atom {
    fn eval(&self, lookup: &impl Fn(&Sym) -> Option<i64>) -> Option<i64> {
        match self {
            Self::Sym(sym) => lookup(sym),
            Self::Floor(a, by) => Some(a.eval(lookup)?.div_euclid(*by)),
            Self::Mod(a, by) => Some(a.eval(lookup)?.rem_euclid(*by)),
            Self::Quotient(a, b) => a.eval(lookup)?.checked_div_euclid(b.eval(lookup)?),
            Self::Min(a, b) => Some(a.eval(lookup)?.min(b.eval(lookup)?)),
            Self::Max(a, b) => Some(a.eval(lookup)?.max(b.eval(lookup)?)),
            Self::Xor(a, b) => Some(a.eval(lookup)? ^ b.eval(lookup)?),
        }
    }

    /// What `bounds` knows, and what follows from the parts.
    fn range(&self, bounds: &impl Fn(&Self) -> Option<(i64, i64)>) -> Option<(i64, i64)> {
        let (known, derived) = (bounds(self), self.derived_range(bounds));
        match (known, derived) {
            (Some(a), Some(b)) => Some((a.0.max(b.0), a.1.min(b.1))),
            (a, b) => a.or(b),
        }
    }

    fn derived_range(&self, bounds: &impl Fn(&Self) -> Option<(i64, i64)>) -> Option<(i64, i64)> {
        match self {
            Self::Sym(_) | Self::Quotient(..) => None,
            Self::Floor(a, by) => a.range(bounds).map(|(l, h)| (l.div_euclid(*by), h.div_euclid(*by))),
            Self::Mod(a, by) => Some(match a.range(bounds) {
                Some((l, h)) if l.div_euclid(*by) == h.div_euclid(*by) => (l.rem_euclid(*by), h.rem_euclid(*by)),
                _ => (0, by - 1),
            }),
            Self::Min(a, b) => {
                let (a, b) = (a.range(bounds)?, b.range(bounds)?);
                Some((a.0.min(b.0), a.1.min(b.1)))
            }
            Self::Max(a, b) => {
                let (a, b) = (a.range(bounds)?, b.range(bounds)?);
                Some((a.0.max(b.0), a.1.max(b.1)))
            }
            Self::Xor(a, b) => {
                let (a, b) = (a.range(bounds)?, b.range(bounds)?);
                // Bits above those of the smaller number stay as they are.
                let (least, most) = (a.1.min(b.1), a.1.max(b.1));
                (a.0 >= 0 && b.0 >= 0).then(|| (0, most | low_bits(least)))
            }
        }
    }

    fn map(&self, f: &impl Fn(&Sym) -> Option<Index>) -> Index {
        let inner = |x: &Index| x.map(f);
        match self {
            Self::Sym(s) => f(s).unwrap_or_else(|| s.clone().into()),
            Self::Floor(a, d) => inner(a).floor(*d),
            Self::Mod(a, d) => inner(a).rem(*d),
            Self::Quotient(a, b) => inner(a).quotient(&inner(b)),
            Self::Min(a, b) => inner(a).smaller(&inner(b)),
            Self::Max(a, b) => inner(a).larger(&inner(b)),
            Self::Xor(a, b) => inner(a).xor(&inner(b)),
        }
    }

    fn trailing_zeros(&self, of: &impl Fn(&Sym) -> u32) -> u32 {
        match self {
            Self::Sym(sym) => of(sym),
            Self::Floor(a, by) if by.count_ones() == 1 => a.trailing_zeros(of).saturating_sub(by.trailing_zeros()),
            Self::Mod(a, by) => a.trailing_zeros(of).min(by.trailing_zeros()),
            Self::Min(a, b) | Self::Max(a, b) | Self::Xor(a, b) => a.trailing_zeros(of).min(b.trailing_zeros(of)),
            Self::Floor(..) | Self::Quotient(..) => 0,
        }
    }
}

impl fmt::Display for Sym {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Param(name) => f.write_str(name),
            Self::Tid => f.write_str("tid"),
            Self::Ctaid(axis) => write!(f, "ctaid.{}", axis.name()),
            Self::Nctaid(axis) => write!(f, "nctaid.{}", axis.name()),
            Self::Digit(axis, i) => write!(f, "ctaid.{}.{i}", axis.name()),
            Self::Iteration(id) => write!(f, "i{id}"),
            Self::Shared => f.write_str("shared"),
            Self::Turn { count, step } => write!(f, "turn({count} x {step})"),
            Self::Opaque(id) => write!(f, "?{id}"),
        }
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sym(sym) => sym.fmt(f),
            Self::Floor(a, by) => write!(f, "floor(({a}) / {by})"),
            Self::Mod(a, by) => write!(f, "(({a}) mod {by})"),
            Self::Quotient(a, b) => write!(f, "floor(({a}) / ({b}))"),
            Self::Min(a, b) => write!(f, "min({a}, {b})"),
            Self::Max(a, b) => write!(f, "max({a}, {b})"),
            Self::Xor(a, b) => write!(f, "(({a}) xor ({b}))"),
        }
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() {
            return f.write_str("0");
        }
        for (i, (factors, c)) in self.terms.iter().enumerate() {
            let sign = match (i, *c < 0) {
                (0, false) => "",
                (0, true) => "-",
                (_, false) => " + ",
                (_, true) => " - ",
            };
            f.write_str(sign)?;
            let size = c.unsigned_abs();
            if size != 1 || factors.is_empty() {
                write!(f, "{size}")?;
            }
            for (j, atom) in factors.iter().enumerate() {
                write!(f, "{}{atom}", if j > 0 || size != 1 { " " } else { "" })?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tid() -> Index {
        Sym::Tid.into()
    }

    #[test]
    fn polynomials_are_normal_forms() {
        let m = Index::param("m");
        let a = tid().plus(&1.into()).times(&m);
        let b = m.times(&tid()).plus(&m);
        assert_eq!(a, b);
        assert_eq!(a.minus(&b), Index::from(0));
        assert_eq!(a.to_string(), "m + m tid");
    }

    #[test]
    fn floors_give_up_their_multiples() {
        let x = tid().times(&8.into()).plus(&Index::param("k"));
        assert_eq!(x.floor(4), tid().times(&2.into()).plus(&Index::param("k").floor(4)));
        assert_eq!(x.rem(4), Index::param("k").rem(4));
        assert_eq!(Index::from(-3).floor(2), Index::from(-2));
    }

    #[test]
    fn exclusive_or_keeps_to_the_bits_of_both() {
        let x = tid().floor(8).xor(&tid().rem(8));
        let range = x.range(&|a| matches!(a, Atom::Sym(_)).then_some((0, 127)));
        assert_eq!(range, Some((0, 15)));
        assert_eq!(x.times(&16.into()).trailing_zeros(&|_| 0), 4);
        assert_eq!(x.eval(&|_| Some(0x35)), Some(6 ^ 5));
        assert_eq!(x.xor(&0.into()), x);
        assert_eq!(Index::from(6).xor(&3.into()), Index::from(5));
    }

    #[test]
    fn ranges_and_zeros_hold_for_every_value() {
        // (tid mod 12) * 16 + (tid / 12) * 132 * 4
        let x = tid().rem(12).times(&16.into()).plus(&tid().floor(12).times(&528.into()));
        let (low, high) = x.range(&|a| matches!(a, Atom::Sym(_)).then_some((0, 95))).unwrap();
        let zeros = x.trailing_zeros(&|_| 0);
        assert_eq!((low, high, zeros), (0, 11 * 16 + 7 * 528, 4));
        for t in 0..96 {
            let value = x.eval(&|_| Some(t)).unwrap();
            assert!((low..=high).contains(&value) && value % 16 == 0);
        }
    }
}
