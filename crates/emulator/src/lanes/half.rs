//! Arithmetic of binary16 and bfloat16, alone and in pairs. Exact in binary64 or rounded to odd there, then rounded once.

use super::lane::Narrow;
use crate::rounding::{BFLOAT, Directed, Format, HALF, Round, add_odd, bfloat, half, narrow};

impl<const BRAIN: bool> Narrow<BRAIN> {
    const FORMAT: Format = if BRAIN { BFLOAT } else { HALF };

    pub(crate) fn value(self) -> f64 {
        if BRAIN { bfloat(self.0) } else { half(self.0) }
    }

    fn rounded(x: f64, round: Round) -> Self {
        Self(narrow(x, Self::FORMAT, round) as u16)
    }
}

impl<const BRAIN: bool> Directed for Narrow<BRAIN> {
    fn add_in(self, b: Self, round: Round) -> Self {
        Self::rounded(add_odd(self.value(), b.value()), round)
    }

    fn mul_in(self, b: Self, round: Round) -> Self {
        Self::rounded(self.value() * b.value(), round)
    }

    fn fma_in(self, b: Self, c: Self, round: Round) -> Self {
        Self::rounded(add_odd(self.value() * b.value(), c.value()), round)
    }

    fn least(self, b: Self, keeps_nan: bool) -> Self {
        Self::rounded(self.value().least(b.value(), keeps_nan), Round::Nearest)
    }

    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        Self::rounded(f(self.value()), Round::Nearest)
    }

    /// bfloat16 arithmetic keeps subnormal numbers.
    fn flushed(self) -> Self {
        if !BRAIN && self.0 & 0x7c00 == 0 { Self(self.0 & 0x8000) } else { self }
    }
}

impl<const BRAIN: bool> Directed for [Narrow<BRAIN>; 2] {
    fn add_in(self, b: Self, round: Round) -> Self {
        std::array::from_fn(|i| self[i].add_in(b[i], round))
    }

    fn mul_in(self, b: Self, round: Round) -> Self {
        std::array::from_fn(|i| self[i].mul_in(b[i], round))
    }

    fn fma_in(self, b: Self, c: Self, round: Round) -> Self {
        std::array::from_fn(|i| self[i].fma_in(b[i], c[i], round))
    }

    fn least(self, b: Self, keeps_nan: bool) -> Self {
        std::array::from_fn(|i| self[i].least(b[i], keeps_nan))
    }

    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        self.map(|x| x.map(&f))
    }

    fn flushed(self) -> Self {
        self.map(Directed::flushed)
    }
}
