//! Comparisons, predicates from them, selection.

use super::lane::{Bf16, F16, Lane, Raw, op3, per_integer, per_type, store, test1, test2};
use super::{LaneOp, WARP};
use crate::memory::REGION_BITS;
use crate::rounding::Directed;
use crate::types::Ty;

/// A comparison: whether it holds of two numbers of which the first is less, equal or greater, and where one is NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compare {
    less: bool,
    equal: bool,
    greater: bool,
    unordered: bool,
}

impl Compare {
    pub(crate) fn parse(word: &str) -> Option<Self> {
        let name = word.strip_suffix('u').unwrap_or(word);
        let (less, equal, greater) = match name {
            "eq" => (false, true, false),
            "ne" => (true, false, true),
            "lt" | "lo" => (true, false, false),
            "le" | "ls" => (true, true, false),
            "gt" | "hi" => (false, false, true),
            "ge" | "hs" => (false, true, true),
            "num" => (true, true, true),
            "nan" => (false, false, false),
            _ => return None,
        };
        Some(Self { less, equal, greater, unordered: name != word || name == "nan" })
    }

    /// Whether integers have it too.
    fn is_ordered(self) -> bool {
        !(self.unordered || self.less && self.equal && self.greater)
    }

    #[inline(always)]
    fn holds<T: PartialOrd>(self, a: T, b: T) -> bool {
        let (less, equal, greater) = (a < b, a == b, a > b);
        self.less & less | self.equal & equal | self.greater & greater | self.unordered & !(less | equal | greater)
    }
}

/// `setp` without its boolean part: a predicate of two numbers, for pairs of their upper or lower halves.
pub(crate) fn compare(with: Compare, ty: Ty, ftz: bool, high: bool) -> Option<LaneOp> {
    let half = usize::from(high);
    match ty {
        Ty::F32 if ftz => Some(test2(move |a: f32, b: f32| with.holds(a.flushed(), b.flushed()))),
        Ty::F32 | Ty::F64 => per_type!(ty, T => test2(move |a: T, b: T| with.holds(a, b)), F32 = f32; F64 = f64;),
        Ty::F16 | Ty::Bf16 => {
            per_type!(ty, T => test2(move |a: T, b: T| with.holds(a.value(), b.value())), F16 = F16; Bf16 = Bf16;)
        }
        Ty::F16x2 | Ty::Bf16x2 => {
            per_type!(ty, T => test2(move |a: [T; 2], b: [T; 2]| with.holds(a[half].value(), b[half].value())),
                F16x2 = F16; Bf16x2 = Bf16;)
        }
        _ if with.is_ordered() => per_integer!(ty, T => test2(move |a: T, b: T| with.holds(a, b))),
        _ => None,
    }
}

/// `testp`.
pub(crate) fn test_property(property: &str, ty: Ty) -> Option<LaneOp> {
    macro_rules! both {
        (|$x:ident| $holds:expr) => {
            per_type!(ty, T => test1(|$x: T| $holds), F32 = f32; F64 = f64;)
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

/// `isspacep`: whether an address lies in the window that begins there, or `below` all: what is in no window is global.
pub(crate) fn in_window(window: u64, below: bool) -> LaneOp {
    let region = window >> REGION_BITS;
    test1(move |a: u64| if below { a >> REGION_BITS < region } else { a >> REGION_BITS == region })
}

/// A boolean operation on two predicates, of which the second may be negated.
pub(crate) fn combine(name: &str, negated: bool) -> Option<LaneOp> {
    let f: fn(u32, u32) -> u32 = match name {
        "and" => |a, b| a & b,
        "or" => |a, b| a | b,
        "xor" => |a, b| a ^ b,
        // Of the first operand alone.
        "mov" => |a, _| a,
        "not" => |a, _| !a,
        // The second result of `setp` takes the complement of the comparison.
        "not.and" => |a, b| !a & b,
        "not.or" => |a, b| !a | b,
        "not.xor" => |a, b| !a ^ b,
        _ => return None,
    };
    Some(LaneOp::new(Ty::Pred, [Ty::Pred; 2], move |r, s, mask| {
        let bits = f(r.predicate((s.from[0], false)), r.predicate((s.from[1], negated)));
        r.set_predicate(s.d, bits, mask);
    }))
}

/// `selp` by the predicate behind the operands, or `slct` by the sign of a register of type `by`; for registers of 64 bits
/// or fewer.
pub(crate) fn select(by: Option<Ty>, wide: bool) -> Option<LaneOp> {
    fn selp<T: Raw + Lane>() -> LaneOp {
        LaneOp::new(T::TY, [T::TY, T::TY, Ty::Pred], |r, s, mask| {
            let chosen = r.predicate((s.from[2], false));
            let (a, b) = (T::lanes(r, s.from[0]), T::lanes(r, s.from[1]));
            let mut out = [T::default(); WARP];
            for i in 0..WARP {
                out[i] = if chosen >> i & 1 != 0 { a[i] } else { b[i] };
            }
            store(r, s.d, out, mask);
        })
    }
    Some(match (by, wide) {
        (None, false) => selp::<u32>(),
        (None, true) => selp::<u64>(),
        (Some(Ty::S32), false) => op3(|a: u32, b: u32, c: i32| if c >= 0 { a } else { b }),
        (Some(Ty::S32), true) => op3(|a: u64, b: u64, c: i32| if c >= 0 { a } else { b }),
        (Some(Ty::F32), false) => op3(|a: u32, b: u32, c: f32| if c >= 0.0 { a } else { b }),
        (Some(Ty::F32), true) => op3(|a: u64, b: u64, c: f32| if c >= 0.0 { a } else { b }),
        _ => return None,
    })
}
