//! Arithmetic of floating-point numbers.

use super::lane::{Bf16, F16, Lane, Raw, op1, op2, op3, per_type, store};
use super::{LaneOp, Registers, Slots, WARP};
use crate::rounding::{Directed, Divided, Round};
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
    #[inline(always)]
    fn operand<T: Directed>(self, x: T) -> T {
        if self.ftz { x.flushed() } else { x }
    }

    #[inline(always)]
    fn result<T: Directed>(self, x: T) -> T {
        self.clamped(self.operand(x))
    }

    #[inline(always)]
    pub(super) fn clamped<T: Directed>(self, x: T) -> T {
        match (self.sat, self.relu) {
            (true, _) => x.map(|x| if x > 0.0 { x.min(1.0) } else { 0.0 }),
            (_, true) => x.map(|x| if x.is_nan() { x } else { x.max(0.0) }),
            _ => x,
        }
    }
}

/// One operand, by a function in binary64.
fn of1<T: Directed + Lane>(o: Float, f: fn(f64) -> f64) -> LaneOp {
    op1(move |a: T| o.result(o.operand(a).map(f)))
}

fn of2<T: Directed + Lane>(o: Float, f: impl Fn(T, T) -> T + Send + Sync + 'static) -> LaneOp {
    op2(move |a: T, b: T| o.result(f(o.operand(a), o.operand(b))))
}

macro_rules! both {
    ($ty:expr, $T:ident => $e:expr) => {
        per_type!($ty, $T => $e, F32 = f32; F64 = f64;)
    };
}

/// Without the types that have no approximation.
macro_rules! short {
    ($ty:expr, $T:ident => $e:expr) => {
        per_type!($ty, $T => $e, F32 = f32; F16 = F16; Bf16 = Bf16; F16x2 = [F16; 2]; Bf16x2 = [Bf16; 2];)
    };
}

macro_rules! any {
    ($ty:expr, $T:ident => $e:expr) => {
        per_type!($ty, $T => $e,
            F32 = f32; F64 = f64; F16 = F16; Bf16 = Bf16; F16x2 = [F16; 2]; Bf16x2 = [Bf16; 2];)
    };
}

/// An instruction by its name. The approximations are computed in binary64 and are closer to the exact value than the
/// hardware's.
pub(crate) fn float(name: &str, ty: Ty, o: Float) -> Option<LaneOp> {
    let (plain, round) = (o == Float::default() && matches!(ty, Ty::F32 | Ty::F64), o.round);
    match name {
        "neg" if plain => both!(ty, T => op1(|a: T| -a)),
        "abs" if plain => both!(ty, T => op1(|a: T| a.abs())),
        "neg" => any!(ty, T => of1::<T>(o, |a| -a)),
        "abs" => any!(ty, T => of1::<T>(o, f64::abs)),
        "sqrt" => both!(ty, T => op1(move |a: T| o.result(o.operand(a).sqrt_in(round)))),
        "rcp" => both!(ty, T => op1(move |a: T| o.result((1.0 as T).div_in(o.operand(a), round)))),
        "rsqrt" => both!(ty, T => of1::<T>(o, |a| 1.0 / a.sqrt())),
        "ex2" => short!(ty, T => of1::<T>(o, f64::exp2)),
        "tanh" => short!(ty, T => of1::<T>(o, f64::tanh)),
        "lg2" => (ty == Ty::F32).then(|| of1::<f32>(o, f64::log2)),
        "sin" => (ty == Ty::F32).then(|| of1::<f32>(o, f64::sin)),
        "cos" => (ty == Ty::F32).then(|| of1::<f32>(o, f64::cos)),
        "add" if plain => both!(ty, T => op2(|a: T, b: T| a + b)),
        "sub" if plain => both!(ty, T => op2(|a: T, b: T| a - b)),
        "mul" if plain => both!(ty, T => op2(|a: T, b: T| a * b)),
        "div" if plain => both!(ty, T => op2(|a: T, b: T| a / b)),
        "add" => any!(ty, T => of2(o, move |a: T, b: T| a.add_in(b, round))),
        "sub" => any!(ty, T => of2(o, move |a: T, b: T| a.add_in(b.negated(), round))),
        "mul" => any!(ty, T => of2(o, move |a: T, b: T| a.mul_in(b, round))),
        "div" => both!(ty, T => of2(o, move |a: T, b: T| a.div_in(b, round))),
        "min" | "min.NaN" => {
            let nan = name != "min";
            any!(ty, T => of2(o, move |a: T, b: T| a.least(b, nan)))
        }
        "max" | "max.NaN" => {
            let nan = name != "max";
            any!(ty, T => of2(o, move |a: T, b: T| a.negated().least(b.negated(), nan).negated()))
        }
        "copysign" => both!(ty, T => op2(|a: T, b: T| b.copysign(a))),
        "fma" if plain && ty == Ty::F32 => Some(LaneOp::new(ty, [ty; 3], fused_single)),
        "fma" if plain => Some(LaneOp::new(ty, [ty; 3], fused_double)),
        "fma" => any!(ty, T => op3(move |a: T, b: T, c: T| {
            o.result(o.operand(a).fma_in(o.operand(b), o.operand(c), round))
        })),
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
                // Not a map of an array, which stays a call.
                let lanes = |slot| S::$split(bytemuck::cast_ref::<[$R; WARP], [$T; WARP]>(<$R>::lanes(r, slot)));
                let [x, y, z, _] = s.from;
                let ((a, a_rest), (b, b_rest), (c, c_rest)) = (lanes(x), lanes(y), lanes(z));
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
