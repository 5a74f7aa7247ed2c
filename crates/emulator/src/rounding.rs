//! Rounding that the host does not offer: narrow formats, and directions other than to nearest.
//!
//! Everything narrower than binary64 is computed there, rounded to odd where it is not exact, and then rounded once: with
//! at least two bits more than the target's, rounding to odd first changes no result (Boldo and Melquiond 2008).

use rustc_apfloat::ieee::Double;
use rustc_apfloat::{Float as _, Round as Direction, StatusAnd};

/// A rounding direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Round {
    /// To nearest, ties to even.
    #[default]
    Nearest,
    /// Towards zero.
    Zero,
    /// Towards minus infinity.
    Down,
    /// Towards plus infinity.
    Up,
    /// To nearest, ties away from zero.
    Away,
}

/// A binary format of at most 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// Bits behind the leading one.
    mantissa: i32,
    /// The exponent of the smallest normal number.
    lowest: i32,
    /// The bits of infinity.
    infinity: u32,
    /// Bits in all.
    width: u32,
}

pub(crate) const HALF: Format = Format { mantissa: 10, lowest: -14, infinity: 0x7c00, width: 16 };
pub(crate) const BFLOAT: Format = Format { mantissa: 7, lowest: -126, infinity: 0x7f80, width: 16 };
pub(crate) const SINGLE: Format = Format { mantissa: 23, lowest: -126, infinity: 0x7f80_0000, width: 32 };
/// Nineteen bits that stand at the top of a binary32.
pub(crate) const TF32: Format = Format { mantissa: 10, lowest: -126, infinity: 0x3_fc00, width: 19 };

/// 2^e for exponents of normal numbers; others saturate.
pub(crate) fn power(e: i32) -> f64 {
    f64::from_bits(((e.clamp(-1022, 1023) + 1023) as u64) << 52)
}

/// A number's magnitude `q` (a multiple of the unit) as an integer.
fn to_integer(q: f64, negative: bool, round: Round) -> f64 {
    let floor = q.floor();
    let rest = q - floor;
    let up = match round {
        Round::Nearest => rest > 0.5 || (rest == 0.5 && floor % 2.0 != 0.0),
        Round::Away => rest >= 0.5,
        Round::Zero => false,
        Round::Down => negative && rest > 0.0,
        Round::Up => !negative && rest > 0.0,
    };
    if up { floor + 1.0 } else { floor }
}

/// The bits of `x` in a narrower format.
pub(crate) fn narrow(x: f64, format: Format, round: Round) -> u32 {
    let negative = x.is_sign_negative();
    let sign = u32::from(negative) << (format.width - 1);
    if x.is_nan() {
        // What the hardware returns: all ones but the sign.
        return (1 << (format.width - 1)) - 1;
    }
    let magnitude = x.abs();
    if magnitude.is_infinite() {
        return sign | format.infinity;
    }
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(format.lowest);
    let unit = to_integer(magnitude * power(format.mantissa - exponent), negative, round);
    // A unit of 2^(mantissa + 1) carries into the exponent, as it must.
    let bits = (((exponent - format.lowest) as u64) << format.mantissa) + unit as u64;
    if bits < u64::from(format.infinity) {
        return sign | bits as u32;
    }
    let to_infinity = match round {
        Round::Nearest | Round::Away => true,
        Round::Zero => false,
        Round::Down => negative,
        Round::Up => !negative,
    };
    sign | if to_infinity { format.infinity } else { format.infinity - 1 }
}

/// The value of bits in a narrower format.
pub(crate) fn widen(bits: u32, format: Format) -> f64 {
    let negative = bits >> (format.width - 1) & 1 != 0;
    let magnitude = bits & ((1 << (format.width - 1)) - 1);
    let value = if magnitude >= format.infinity {
        if magnitude == format.infinity { f64::INFINITY } else { f64::NAN }
    } else {
        let fraction = f64::from(magnitude & ((1 << format.mantissa) - 1));
        let exponent = (magnitude >> format.mantissa) as i32;
        let one = f64::from(1u32 << format.mantissa);
        if exponent == 0 {
            fraction * power(format.lowest - format.mantissa)
        } else {
            (fraction + one) * power(exponent - 1 + format.lowest - format.mantissa)
        }
    };
    if negative { -value } else { value }
}

pub(crate) fn half(bits: u16) -> f64 {
    widen(u32::from(bits), HALF)
}

pub(crate) fn bfloat(bits: u16) -> f64 {
    f64::from(f32::from_bits(u32::from(bits) << 16))
}

/// Moves an inexact result to its odd neighbour; `error` is exact minus `rounded`.
fn to_odd(rounded: f64, error: f64) -> f64 {
    let even = rounded.to_bits() & 1 == 0;
    if error == 0.0 || error.is_nan() || !even || rounded.is_infinite() {
        return rounded;
    }
    if (error > 0.0) == (rounded > 0.0) {
        f64::from_bits(rounded.to_bits() + 1)
    } else {
        f64::from_bits(rounded.to_bits() - 1)
    }
}

/// The sum, rounded to odd.
pub(crate) fn add_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let virtual_b = sum - a;
    to_odd(sum, (a - (sum - virtual_b)) + (b - virtual_b))
}

fn div_odd(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    let rest = (-quotient).mul_add(b, a);
    to_odd(quotient, if b > 0.0 { rest } else { -rest })
}

fn sqrt_odd(a: f64) -> f64 {
    let root = a.sqrt();
    to_odd(root, (-root).mul_add(root, a))
}

fn single(x: f64, round: Round) -> f32 {
    f32::from_bits(narrow(x, SINGLE, round))
}

fn double(x: f64) -> Double {
    Double::from_bits(u128::from(x.to_bits()))
}

fn of_double(x: StatusAnd<Double>) -> f64 {
    f64::from_bits(x.value.to_bits() as u64)
}

fn direction(round: Round) -> Direction {
    match round {
        Round::Nearest => Direction::NearestTiesToEven,
        Round::Zero => Direction::TowardZero,
        Round::Down => Direction::TowardNegative,
        Round::Up => Direction::TowardPositive,
        Round::Away => Direction::NearestTiesToAway,
    }
}

/// A type, or a pair of one, with arithmetic in all directions.
pub(crate) trait Directed: Copy {
    fn add_in(self, b: Self, round: Round) -> Self;
    fn mul_in(self, b: Self, round: Round) -> Self;
    fn fma_in(self, b: Self, c: Self, round: Round) -> Self;
    /// PTX's minimum: -0 is less than +0, and a number wins over NaN unless `keeps_nan`.
    fn least(self, b: Self, keeps_nan: bool) -> Self;
    /// By a function in binary64, rounded to nearest.
    fn map(self, f: impl Fn(f64) -> f64) -> Self;
    /// Subnormal numbers become zeros of the same sign.
    fn flushed(self) -> Self;

    #[inline(always)]
    fn negated(self) -> Self {
        self.map(|x| -x)
    }
}

/// Quotients and roots in all directions.
pub(crate) trait Divided: Directed {
    fn div_in(self, b: Self, round: Round) -> Self;
    fn sqrt_in(self, round: Round) -> Self;
}

/// An exact zero sum of non-zero terms is negative only when rounding down.
fn signed_zero(sum: f64, a: f64, b: f64, round: Round) -> f64 {
    if sum != 0.0 {
        sum
    } else if a == 0.0 && b == 0.0 && a.is_sign_negative() == b.is_sign_negative() {
        a
    } else if round == Round::Down {
        -0.0
    } else {
        0.0
    }
}

macro_rules! least {
    () => {
        fn least(self, b: Self, keeps_nan: bool) -> Self {
            if keeps_nan && (self.is_nan() || b.is_nan()) {
                Self::NAN
            } else if self.is_nan() || b < self || (self == b && b.is_sign_negative()) {
                b
            } else {
                self
            }
        }
    };
}

impl Directed for f32 {
    fn add_in(self, b: Self, round: Round) -> Self {
        if round == Round::Nearest {
            return self + b;
        }
        let (a, b) = (f64::from(self), f64::from(b));
        single(signed_zero(add_odd(a, b), a, b, round), round)
    }

    fn mul_in(self, b: Self, round: Round) -> Self {
        if round == Round::Nearest { self * b } else { single(f64::from(self) * f64::from(b), round) }
    }

    fn fma_in(self, b: Self, c: Self, round: Round) -> Self {
        if round == Round::Nearest {
            return self.mul_add(b, c);
        }
        let (product, c) = (f64::from(self) * f64::from(b), f64::from(c));
        single(signed_zero(add_odd(product, c), product, c, round), round)
    }

    least!();

    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        f(self.into()) as Self
    }

    fn flushed(self) -> Self {
        if self.is_subnormal() { 0f32.copysign(self) } else { self }
    }
}

impl Divided for f32 {
    fn div_in(self, b: Self, round: Round) -> Self {
        if round == Round::Nearest { self / b } else { single(div_odd(f64::from(self), f64::from(b)), round) }
    }

    fn sqrt_in(self, round: Round) -> Self {
        if round == Round::Nearest { self.sqrt() } else { single(sqrt_odd(f64::from(self)), round) }
    }
}

impl Directed for f64 {
    fn add_in(self, b: Self, round: Round) -> Self {
        if round == Round::Nearest { self + b } else { of_double(double(self).add_r(double(b), direction(round))) }
    }

    fn mul_in(self, b: Self, round: Round) -> Self {
        if round == Round::Nearest { self * b } else { of_double(double(self).mul_r(double(b), direction(round))) }
    }

    fn fma_in(self, b: Self, c: Self, round: Round) -> Self {
        if round == Round::Nearest {
            return self.mul_add(b, c);
        }
        of_double(double(self).mul_add_r(double(b), double(c), direction(round)))
    }

    least!();

    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        f(self)
    }

    fn flushed(self) -> Self {
        self
    }
}

impl Divided for f64 {
    fn div_in(self, b: Self, round: Round) -> Self {
        if round == Round::Nearest { self / b } else { of_double(double(self).div_r(double(b), direction(round))) }
    }

    fn sqrt_in(self, round: Round) -> Self {
        let root = self.sqrt();
        let rest = (-root).mul_add(root, self);
        match round {
            Round::Zero | Round::Down if rest < 0.0 => root.next_down(),
            Round::Up if rest > 0.0 => root.next_up(),
            _ => root,
        }
    }
}

/// An integer in binary64, in any direction.
pub(crate) fn from_integer(x: i128, round: Round) -> f64 {
    let nearest = x as f64;
    let exact = nearest as i128;
    match round {
        Round::Zero if exact.abs() > x.abs() => f64::from_bits(nearest.to_bits() - 1),
        Round::Down if exact > x => nearest.next_down(),
        Round::Up if exact < x => nearest.next_up(),
        _ => nearest,
    }
}

/// An integer of at most 64 bits in binary64, rounded to odd where it does not fit.
pub(crate) fn from_integer_odd(x: i128) -> f64 {
    let low = x & 0xffff_ffff;
    add_odd((x - low) as f64, low as f64)
}

/// Rounded to a whole number.
pub(crate) fn whole(x: f64, round: Round) -> f64 {
    match round {
        Round::Nearest => x.round_ties_even(),
        Round::Zero => x.trunc(),
        Round::Down => x.floor(),
        Round::Up => x.ceil(),
        Round::Away => x.round(),
    }
}

#[cfg(test)]
mod tests;
