//! Comparisons, predicates from them, selection.

use super::float::Float;
use super::lane::{Bf16, F16, Lane, Raw, bits_where, lane, store};
use super::{LaneFn, Registers, Slots, WARP};
use crate::memory::REGION_BITS;
use crate::rounding::{Directed, bfloat, half};
use crate::types::Ty;
use std::cmp::Ordering;

/// A comparison. The unordered ones hold where an operand is NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    Num,
    Nan,
}

impl Compare {
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "eq" => Self::Eq,
            "ne" => Self::Ne,
            "lt" | "lo" => Self::Lt,
            "le" | "ls" => Self::Le,
            "gt" | "hi" => Self::Gt,
            "ge" | "hs" => Self::Ge,
            "equ" => Self::Equ,
            "neu" => Self::Neu,
            "ltu" => Self::Ltu,
            "leu" => Self::Leu,
            "gtu" => Self::Gtu,
            "geu" => Self::Geu,
            "num" => Self::Num,
            "nan" => Self::Nan,
            _ => return None,
        })
    }

    #[inline(always)]
    fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Self::Eq => order == Some(Ordering::Equal),
            Self::Ne => order.is_some_and(|o| o != Ordering::Equal),
            Self::Lt => order == Some(Ordering::Less),
            Self::Le => order.is_some_and(|o| o != Ordering::Greater),
            Self::Gt => order == Some(Ordering::Greater),
            Self::Ge => order.is_some_and(|o| o != Ordering::Less),
            Self::Equ => order.is_none_or(|o| o == Ordering::Equal),
            Self::Neu => order != Some(Ordering::Equal),
            Self::Ltu => order.is_none_or(|o| o == Ordering::Less),
            Self::Leu => order != Some(Ordering::Greater),
            Self::Gtu => order.is_none_or(|o| o == Ordering::Greater),
            Self::Geu => order != Some(Ordering::Less),
            Self::Num => order.is_some(),
            Self::Nan => order.is_none(),
        }
    }
}

#[inline(always)]
fn write(r: &mut Registers, slot: u16, bits: u32, mask: u32) {
    let to = &mut r.predicates[usize::from(slot)];
    *to = *to & !mask | bits & mask;
}

#[inline(always)]
fn flags<A: Lane>(r: &mut Registers, s: &Slots, mask: u32, holds: impl Fn(A, A) -> bool) {
    let (a, b) = (A::Raw::lanes(r, s.a), A::Raw::lanes(r, s.b));
    let bits = bits_where(|i| holds(A::of(a[i]), A::of(b[i])));
    write(r, s.d, bits, mask);
}

/// `setp` without its boolean part: predicate `d` from `a` and `b`.
pub(crate) fn compare(with: Compare, ty: Ty, options: Float) -> Option<LaneFn> {
    macro_rules! of {
        ($T:ty, $op:tt) => {{
            fn run(r: &mut Registers, s: &Slots, mask: u32) {
                flags::<$T>(r, s, mask, |a, b| a $op b);
            }
            run as LaneFn
        }};
    }
    macro_rules! integers {
        ($op:tt) => {
            Some(match ty {
                Ty::B16 | Ty::U16 => of!(u16, $op),
                Ty::S16 => of!(i16, $op),
                Ty::B32 | Ty::U32 => of!(u32, $op),
                Ty::S32 => of!(i32, $op),
                Ty::B64 | Ty::U64 => of!(u64, $op),
                Ty::S64 => of!(i64, $op),
                _ => return None,
            })
        };
    }
    if ty.is_float() {
        return float(with, ty, options, false);
    }
    match with {
        Compare::Eq => integers!(==),
        Compare::Ne => integers!(!=),
        Compare::Lt => integers!(<),
        Compare::Le => integers!(<=),
        Compare::Gt => integers!(>),
        Compare::Ge => integers!(>=),
        _ => None,
    }
}

fn float(with: Compare, ty: Ty, options: Float, high: bool) -> Option<LaneFn> {
    macro_rules! one {
        ($C:ident, $T:ty, |$x:ident| $value:expr) => {{
            fn run(r: &mut Registers, s: &Slots, mask: u32) {
                flags::<$T>(r, s, mask, |a, b| {
                    let of = |$x: $T| $value;
                    Compare::$C.holds(of(a).partial_cmp(&of(b)))
                });
            }
            run as LaneFn
        }};
    }
    macro_rules! all {
        ($T:ty, |$x:ident| $value:expr) => {
            match with {
                Compare::Eq => one!(Eq, $T, |$x| $value),
                Compare::Ne => one!(Ne, $T, |$x| $value),
                Compare::Lt => one!(Lt, $T, |$x| $value),
                Compare::Le => one!(Le, $T, |$x| $value),
                Compare::Gt => one!(Gt, $T, |$x| $value),
                Compare::Ge => one!(Ge, $T, |$x| $value),
                Compare::Equ => one!(Equ, $T, |$x| $value),
                Compare::Neu => one!(Neu, $T, |$x| $value),
                Compare::Ltu => one!(Ltu, $T, |$x| $value),
                Compare::Leu => one!(Leu, $T, |$x| $value),
                Compare::Gtu => one!(Gtu, $T, |$x| $value),
                Compare::Geu => one!(Geu, $T, |$x| $value),
                Compare::Num => one!(Num, $T, |$x| $value),
                Compare::Nan => one!(Nan, $T, |$x| $value),
            }
        };
    }
    Some(match ty {
        Ty::F32 if options.ftz => all!(f32, |x| x.flushed()),
        Ty::F32 => all!(f32, |x| x),
        Ty::F64 => all!(f64, |x| x),
        Ty::F16 => all!(F16, |x| half(x.0)),
        Ty::Bf16 => all!(Bf16, |x| bfloat(x.0)),
        Ty::F16x2 if high => all!([F16; 2], |x| half(x[1].0)),
        Ty::F16x2 => all!([F16; 2], |x| half(x[0].0)),
        Ty::Bf16x2 if high => all!([Bf16; 2], |x| bfloat(x[1].0)),
        Ty::Bf16x2 => all!([Bf16; 2], |x| bfloat(x[0].0)),
        _ => return None,
    })
}

/// The comparison of the upper halves of pairs; [`compare`] takes the lower ones.
pub(crate) fn compare_high(with: Compare, ty: Ty) -> Option<LaneFn> {
    matches!(ty, Ty::F16x2 | Ty::Bf16x2).then(|| float(with, ty, Float::default(), true)).flatten()
}

/// `testp`.
pub(crate) fn test_property(property: &str, ty: Ty) -> Option<LaneFn> {
    macro_rules! with {
        ($T:ty, |$x:ident| $holds:expr) => {{
            fn run(r: &mut Registers, s: &Slots, mask: u32) {
                flags::<$T>(r, s, mask, |$x, _| $holds);
            }
            run as LaneFn
        }};
    }
    macro_rules! both {
        (|$x:ident| $holds:expr) => {
            match ty {
                Ty::F32 => Some(with!(f32, |$x| $holds)),
                Ty::F64 => Some(with!(f64, |$x| $holds)),
                _ => None,
            }
        };
    }
    match property {
        "finite" => both!(|x| x.is_finite()),
        "infinite" => both!(|x| x.is_infinite()),
        "number" => both!(|x| !x.is_nan()),
        "notanumber" => both!(|x| x.is_nan()),
        "normal" => both!(|x| x.is_normal()),
        "subnormal" => both!(|x| x.is_subnormal()),
        _ => None,
    }
}

/// `isspacep`: whether an address lies in the region `b`, or below it: all that is in no window is global.
pub(crate) fn in_window(below: bool) -> LaneFn {
    fn run<const BELOW: bool>(r: &mut Registers, s: &Slots, mask: u32) {
        flags::<u64>(r, s, mask, |a, b| {
            let region = a >> REGION_BITS;
            if BELOW { region < b } else { region == b }
        });
    }
    if below { run::<true> } else { run::<false> }
}

/// A boolean operation on predicates `a` and `b`; `b` is negated where `f` is not zero.
pub(crate) fn combine(name: &str) -> Option<LaneFn> {
    macro_rules! with {
        (|$a:ident, $b:ident| $e:expr) => {{
            fn run(r: &mut Registers, s: &Slots, mask: u32) {
                let $a = r.predicates[usize::from(s.a)];
                let $b = r.predicates[usize::from(s.b)] ^ if s.f != 0 { u32::MAX } else { 0 };
                write(r, s.d, $e, mask);
            }
            run as LaneFn
        }};
    }
    Some(match name {
        "and" => with!(|a, b| a & b),
        "or" => with!(|a, b| a | b),
        "xor" => with!(|a, b| a ^ b),
        // Of the first operand alone.
        "mov" => with!(|a, _b| a),
        "not" => with!(|a, _b| !a),
        // The second result of `setp` takes the complement of the comparison.
        "not.and" => with!(|a, b| !a & b),
        "not.or" => with!(|a, b| !a | b),
        "not.xor" => with!(|a, b| !a ^ b),
        _ => return None,
    })
}

/// `selp` by predicate `c`, for registers of 64 bits or fewer; `slct` by the sign of register `c`.
pub(crate) fn select(name: &str, wide: bool) -> Option<LaneFn> {
    fn selp<T: Raw>(r: &mut Registers, s: &Slots, mask: u32) {
        let chosen = r.predicates[usize::from(s.c)];
        let (a, b) = (T::lanes(r, s.a), T::lanes(r, s.b));
        let mut out = [T::default(); WARP];
        for i in 0..WARP {
            out[i] = if chosen >> i & 1 != 0 { a[i] } else { b[i] };
        }
        store(r, s.d, out, mask);
    }
    Some(match (name, wide) {
        ("selp", false) => selp::<u32>,
        ("selp", true) => selp::<u64>,
        ("slct.s32", false) => lane!(|a: u32, b: u32, c: i32| -> u32 { if c >= 0 { a } else { b } }),
        ("slct.s32", true) => lane!(|a: u64, b: u64, c: i32| -> u64 { if c >= 0 { a } else { b } }),
        ("slct.f32", false) => lane!(|a: u32, b: u32, c: f32| -> u32 { if c >= 0.0 { a } else { b } }),
        ("slct.f32", true) => lane!(|a: u64, b: u64, c: f32| -> u64 { if c >= 0.0 { a } else { b } }),
        _ => return None,
    })
}
