//! Arithmetic of binary32 and binary64.

use super::lane::{Raw, lane, map1, map2, map3, store};
use super::{LaneFn, Registers, Slots, WARP, half};
use crate::rounding::{Directed, Round};
use crate::types::Ty;
use pulp::{Arch, Simd, WithSimd};

/// What the modifiers of an arithmetic instruction ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Float {
    pub(crate) round: Round,
    /// Subnormal operands and results are zeros.
    pub(crate) ftz: bool,
    /// Clamp the result to [0, 1].
    pub(crate) sat: bool,
    /// Clamp negative results to zero.
    pub(crate) relu: bool,
}

impl Float {
    fn is_plain(self) -> bool {
        self == Self::default()
    }

    /// As a slot number, so that general forms find it.
    pub(crate) fn packed(self) -> u16 {
        self.round as u16 | u16::from(self.ftz) << 3 | u16::from(self.sat) << 4 | u16::from(self.relu) << 5
    }

    pub(super) fn unpacked(bits: u16) -> Self {
        let round = match bits & 7 {
            0 => Round::Nearest,
            1 => Round::Zero,
            2 => Round::Down,
            3 => Round::Up,
            _ => Round::Away,
        };
        Self { round, ftz: bits & 8 != 0, sat: bits & 16 != 0, relu: bits & 32 != 0 }
    }

    #[inline(always)]
    fn operand<T: Directed>(self, x: T) -> T {
        if self.ftz { x.flushed() } else { x }
    }

    #[inline(always)]
    fn result<T: Directed>(self, x: T) -> T {
        let x = if self.ftz { x.flushed() } else { x };
        if self.sat { x.saturated() } else { x }
    }
}

/// The general form: options in slot `f`.
macro_rules! general {
    ($T:ty, 1, $op:expr) => {{
        fn run(r: &mut Registers, s: &Slots, mask: u32) {
            let o = Float::unpacked(s.f);
            map1::<$T, $T>(r, s, mask, |a| o.result($op(o.operand(a), o.round)));
        }
        run as LaneFn
    }};
    ($T:ty, 2, $op:expr) => {{
        fn run(r: &mut Registers, s: &Slots, mask: u32) {
            let o = Float::unpacked(s.f);
            map2::<$T, $T, $T>(r, s, mask, |a, b| o.result($op(o.operand(a), o.operand(b), o.round)));
        }
        run as LaneFn
    }};
    ($T:ty, 3, $op:expr) => {{
        fn run(r: &mut Registers, s: &Slots, mask: u32) {
            let o = Float::unpacked(s.f);
            map3::<$T, $T, $T, $T>(r, s, mask, |a, b, c| {
                o.result($op(o.operand(a), o.operand(b), o.operand(c), o.round))
            });
        }
        run as LaneFn
    }};
}

/// PTX's minimum and maximum: a number wins over NaN, and -0 is less than +0.
macro_rules! extreme {
    ($T:ty, $less:tt, $zero:expr) => {
        |a: $T, b: $T, _: Round| -> $T {
            if a.is_nan() {
                b
            } else if b.is_nan() || a $less b {
                a
            } else if a == b && a.is_sign_negative() == $zero {
                a
            } else {
                b
            }
        }
    };
}

macro_rules! both {
    ($ty:expr, $T:ident => $e:expr) => {
        match $ty {
            Ty::F32 => Some({
                type $T = f32;
                $e
            }),
            Ty::F64 => Some({
                type $T = f64;
                $e
            }),
            _ => None,
        }
    };
}

/// One operand: `neg`, `abs`, `sqrt`, `rcp`, `rsqrt`, `ex2`, `lg2`, `sin`, `cos`, `tanh`. The approximations are
/// computed in the type's own precision and are closer to the exact value than the hardware's.
pub(crate) fn float1(name: &str, ty: Ty, options: Float) -> Option<LaneFn> {
    if let Some(f) = half::half1(name, ty, options) {
        return Some(f);
    }
    match name {
        "neg" if options.is_plain() => both!(ty, T => lane!(|a: T| -> T { -a })),
        "abs" if options.is_plain() => both!(ty, T => lane!(|a: T| -> T { a.abs() })),
        "neg" => both!(ty, T => general!(T, 1, |a: T, _| -a)),
        "abs" => both!(ty, T => general!(T, 1, |a: T, _| a.abs())),
        "sqrt" => both!(ty, T => general!(T, 1, |a: T, round| a.sqrt_in(round))),
        "rcp" => both!(ty, T => general!(T, 1, |a: T, round| (1.0 as T).div_in(a, round))),
        "rsqrt" => both!(ty, T => general!(T, 1, |a: T, _| 1.0 / a.sqrt())),
        "ex2" => (ty == Ty::F32).then_some(general!(f32, 1, |a: f32, _| a.exp2())),
        "lg2" => (ty == Ty::F32).then_some(general!(f32, 1, |a: f32, _| a.log2())),
        "sin" => (ty == Ty::F32).then_some(general!(f32, 1, |a: f32, _| a.sin())),
        "cos" => (ty == Ty::F32).then_some(general!(f32, 1, |a: f32, _| a.cos())),
        "tanh" => (ty == Ty::F32).then_some(general!(f32, 1, |a: f32, _| a.tanh())),
        _ => None,
    }
}

/// Two operands.
pub(crate) fn float2(name: &str, ty: Ty, options: Float) -> Option<LaneFn> {
    if let Some(f) = half::half2(name, ty, options) {
        return Some(f);
    }
    let plain = options.is_plain();
    match name {
        "add" if plain => both!(ty, T => lane!(|a: T, b: T| -> T { a + b })),
        "sub" if plain => both!(ty, T => lane!(|a: T, b: T| -> T { a - b })),
        "mul" if plain => both!(ty, T => lane!(|a: T, b: T| -> T { a * b })),
        "div" if plain => both!(ty, T => lane!(|a: T, b: T| -> T { a / b })),
        "add" => both!(ty, T => general!(T, 2, |a: T, b: T, round| a.add_in(b, round))),
        "sub" => both!(ty, T => general!(T, 2, |a: T, b: T, round| a.add_in(-b, round))),
        "mul" => both!(ty, T => general!(T, 2, |a: T, b: T, round| a.mul_in(b, round))),
        "div" => both!(ty, T => general!(T, 2, |a: T, b: T, round| a.div_in(b, round))),
        "min" => both!(ty, T => general!(T, 2, extreme!(T, <, true))),
        "max" => both!(ty, T => general!(T, 2, extreme!(T, >, false))),
        "min.nan" => both!(ty, T => general!(T, 2, |a: T, b: T, r: Round| {
            if a.is_nan() || b.is_nan() { T::NAN } else { extreme!(T, <, true)(a, b, r) }
        })),
        "max.nan" => both!(ty, T => general!(T, 2, |a: T, b: T, r: Round| {
            if a.is_nan() || b.is_nan() { T::NAN } else { extreme!(T, >, false)(a, b, r) }
        })),
        "copysign" => both!(ty, T => lane!(|a: T, b: T| -> T { b.copysign(a) })),
        _ => None,
    }
}

/// Fused multiply-add.
pub(crate) fn float3(name: &str, ty: Ty, options: Float) -> Option<LaneFn> {
    if let Some(f) = half::half3(name, ty, options) {
        return Some(f);
    }
    match name {
        "fma" if options.is_plain() && ty == Ty::F32 => Some(fused_single),
        "fma" if options.is_plain() && ty == Ty::F64 => Some(fused_double),
        "fma" => both!(ty, T => general!(T, 3, |a: T, b: T, c: T, round| a.fma_in(b, c, round))),
        _ => None,
    }
}

/// The instruction that kernels spend their time in, in the host's widest vectors: without them a fused multiply-add is a
/// call for every lane.
struct Fused<'a>(&'a mut Registers, &'a Slots, u32);

macro_rules! fused {
    ($name:ident, $kernel:ident, $T:ty, $R:ty, $split:ident, $split_mut:ident, $mul_add:ident) => {
        struct $kernel<'a>(Fused<'a>);

        impl WithSimd for $kernel<'_> {
            type Output = ();

            #[inline(always)]
            fn with_simd<S: Simd>(self, simd: S) {
                let Fused(r, s, mask) = self.0;
                let mut out = [0 as $R; WARP];
                let sources =
                    [s.a, s.b, s.c].map(|slot| bytemuck::cast_ref::<[$R; WARP], [$T; WARP]>(<$R>::lanes(r, slot)));
                let [(a, a_rest), (b, b_rest), (c, c_rest)] = sources.map(|x| S::$split(x));
                let (to, to_rest) = S::$split_mut(bytemuck::cast_mut::<[$R; WARP], [$T; WARP]>(&mut out));
                for (((o, a), b), c) in to.iter_mut().zip(a).zip(b).zip(c) {
                    *o = simd.$mul_add(*a, *b, *c);
                }
                for (((o, a), b), c) in to_rest.iter_mut().zip(a_rest).zip(b_rest).zip(c_rest) {
                    *o = a.mul_add(*b, *c);
                }
                store(r, s.d, out, mask);
            }
        }

        fn $name(r: &mut Registers, s: &Slots, mask: u32) {
            Arch::new().dispatch($kernel(Fused(r, s, mask)));
        }
    };
}

fused!(fused_single, FusedSingle, f32, u32, as_simd_f32s, as_mut_simd_f32s, mul_add_f32s);
fused!(fused_double, FusedDouble, f64, u64, as_simd_f64s, as_mut_simd_f64s, mul_add_f64s);
