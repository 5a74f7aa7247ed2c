//! Arithmetic of binary16 and bfloat16, alone and in pairs. Exact in binary64 or rounded to odd there, then rounded once.

use super::float::Float;
use super::lane::{Bf16, F16, Lane, map1, map2, map3};
use super::{LaneFn, Registers, Slots};
use crate::rounding::{BFLOAT, HALF, add_odd, bfloat, half, narrow};
use crate::types::Ty;

/// A narrow float or a pair of them.
trait Narrow: Lane {
    fn map1(a: Self, f: impl Fn(f64) -> f64, options: Float) -> Self;
    fn map2(a: Self, b: Self, f: impl Fn(f64, f64) -> f64, options: Float) -> Self;
    fn map3(a: Self, b: Self, c: Self, f: impl Fn(f64, f64, f64) -> f64, options: Float) -> Self;
}

/// Clamps before rounding: zero and one are in every format.
fn clamped(x: f64, options: Float) -> f64 {
    if options.sat {
        if x > 0.0 { x.min(1.0) } else { 0.0 }
    } else if options.relu && !x.is_nan() {
        x.max(0.0)
    } else {
        x
    }
}

fn flush_half(bits: u16, ftz: bool) -> u16 {
    if ftz && bits & 0x7c00 == 0 { bits & 0x8000 } else { bits }
}

fn read_half(x: F16, options: Float) -> f64 {
    half(flush_half(x.0, options.ftz))
}

fn write_half(x: f64, options: Float) -> F16 {
    F16(flush_half(narrow(clamped(x, options), HALF, options.round) as u16, options.ftz))
}

/// bfloat16 arithmetic keeps subnormal numbers.
fn read_bfloat(x: Bf16, _: Float) -> f64 {
    bfloat(x.0)
}

fn write_bfloat(x: f64, options: Float) -> Bf16 {
    Bf16(narrow(clamped(x, options), BFLOAT, options.round) as u16)
}

macro_rules! narrow {
    ($T:ty, $read:ident, $write:ident) => {
        impl Narrow for $T {
            fn map1(a: Self, f: impl Fn(f64) -> f64, o: Float) -> Self {
                $write(f($read(a, o)), o)
            }
            fn map2(a: Self, b: Self, f: impl Fn(f64, f64) -> f64, o: Float) -> Self {
                $write(f($read(a, o), $read(b, o)), o)
            }
            fn map3(a: Self, b: Self, c: Self, f: impl Fn(f64, f64, f64) -> f64, o: Float) -> Self {
                $write(f($read(a, o), $read(b, o), $read(c, o)), o)
            }
        }

        impl Narrow for [$T; 2] {
            fn map1(a: Self, f: impl Fn(f64) -> f64, o: Float) -> Self {
                a.map(|x| <$T>::map1(x, &f, o))
            }
            fn map2(a: Self, b: Self, f: impl Fn(f64, f64) -> f64, o: Float) -> Self {
                std::array::from_fn(|i| <$T>::map2(a[i], b[i], &f, o))
            }
            fn map3(a: Self, b: Self, c: Self, f: impl Fn(f64, f64, f64) -> f64, o: Float) -> Self {
                std::array::from_fn(|i| <$T>::map3(a[i], b[i], c[i], &f, o))
            }
        }
    };
}

narrow!(F16, read_half, write_half);
narrow!(Bf16, read_bfloat, write_bfloat);

macro_rules! per_narrow {
    ($ty:expr, $T:ident => $e:expr) => {
        match $ty {
            Ty::F16 => Some({
                type $T = F16;
                $e
            }),
            Ty::Bf16 => Some({
                type $T = Bf16;
                $e
            }),
            Ty::F16x2 => Some({
                type $T = [F16; 2];
                $e
            }),
            Ty::Bf16x2 => Some({
                type $T = [Bf16; 2];
                $e
            }),
            _ => None,
        }
    };
}

macro_rules! op {
    ($T:ty, 1, $f:expr) => {{
        fn run(r: &mut Registers, s: &Slots, mask: u32) {
            let o = Float::unpacked(s.f);
            map1::<$T, $T>(r, s, mask, |a| <$T as Narrow>::map1(a, $f, o));
        }
        run as LaneFn
    }};
    ($T:ty, 2, $f:expr) => {{
        fn run(r: &mut Registers, s: &Slots, mask: u32) {
            let o = Float::unpacked(s.f);
            map2::<$T, $T, $T>(r, s, mask, |a, b| <$T as Narrow>::map2(a, b, $f, o));
        }
        run as LaneFn
    }};
    ($T:ty, 3, $f:expr) => {{
        fn run(r: &mut Registers, s: &Slots, mask: u32) {
            let o = Float::unpacked(s.f);
            map3::<$T, $T, $T, $T>(r, s, mask, |a, b, c| <$T as Narrow>::map3(a, b, c, $f, o));
        }
        run as LaneFn
    }};
}

pub(super) fn half1(name: &str, ty: Ty, _: Float) -> Option<LaneFn> {
    match name {
        "neg" => per_narrow!(ty, T => op!(T, 1, |a: f64| -a)),
        "abs" => per_narrow!(ty, T => op!(T, 1, f64::abs)),
        "ex2" => per_narrow!(ty, T => op!(T, 1, f64::exp2)),
        "tanh" => per_narrow!(ty, T => op!(T, 1, f64::tanh)),
        _ => None,
    }
}

pub(super) fn half2(name: &str, ty: Ty, _: Float) -> Option<LaneFn> {
    match name {
        "add" => per_narrow!(ty, T => op!(T, 2, add_odd)),
        "sub" => per_narrow!(ty, T => op!(T, 2, |a, b: f64| add_odd(a, -b))),
        "mul" => per_narrow!(ty, T => op!(T, 2, |a: f64, b: f64| a * b)),
        "min" => per_narrow!(ty, T => op!(T, 2, least)),
        "max" => per_narrow!(ty, T => op!(T, 2, |a: f64, b: f64| -least(-a, -b))),
        "min.nan" => per_narrow!(ty, T => op!(T, 2, |a: f64, b: f64| nan_of(a, b).unwrap_or(least(a, b)))),
        "max.nan" => per_narrow!(ty, T => op!(T, 2, |a: f64, b: f64| nan_of(a, b).unwrap_or(-least(-a, -b)))),
        _ => None,
    }
}

fn nan_of(a: f64, b: f64) -> Option<f64> {
    (a.is_nan() || b.is_nan()).then_some(f64::NAN)
}

/// A number wins over NaN, and -0 is less than +0.
fn least(a: f64, b: f64) -> f64 {
    if a.is_nan() || b < a || (a == b && b.is_sign_negative()) { b } else { a }
}

pub(super) fn half3(name: &str, ty: Ty, _: Float) -> Option<LaneFn> {
    match name {
        "fma" => per_narrow!(ty, T => op!(T, 3, |a: f64, b: f64, c| add_odd(a * b, c))),
        _ => None,
    }
}
