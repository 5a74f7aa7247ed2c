//! Integer arithmetic.

use super::LaneOp;
use super::lane::{Lane, op1, op2, op3, per_integer, per_type};
use crate::types::Ty;

/// An integer whose products have a type.
pub(super) trait Double: Lane {
    type Wide;
    fn product(self, b: Self) -> Self::Wide;
    /// The upper half of the product.
    fn high(self, b: Self) -> Self;
}

macro_rules! double {
    ($($T:ty: $W:ty),*) => {$(
        impl Double for $T {
            type Wide = $W;
            #[inline(always)]
            fn product(self, b: Self) -> $W {
                <$W>::from(self) * <$W>::from(b)
            }
            #[inline(always)]
            fn high(self, b: Self) -> Self {
                (self.product(b) >> Self::BITS) as Self
            }
        }
    )*};
}

double!(u16: u32, i16: i32, u32: u64, i32: i64, u64: u128, i64: i128);

/// An instruction by its name with the modifiers that are no types. Division by zero gives all ones and the dividend as
/// remainder, which is what the hardware's sequence leaves; PTX says unspecified.
pub(crate) fn integer(name: &str, ty: Ty) -> Option<LaneOp> {
    match name {
        "neg" => per_integer!(ty, T => op1(|a: T| a.wrapping_neg())),
        "abs" => per_type!(ty, T => op1(|a: T| a.wrapping_abs()), S16 = i16; S32 = i32; S64 = i64;),
        "add" => per_integer!(ty, T => op2(|a: T, b: T| a.wrapping_add(b))),
        "add.sat" => per_type!(ty, T => op2(|a: T, b: T| a.saturating_add(b)), S32 = i32;),
        "sub" => per_integer!(ty, T => op2(|a: T, b: T| a.wrapping_sub(b))),
        "sub.sat" => per_type!(ty, T => op2(|a: T, b: T| a.saturating_sub(b)), S32 = i32;),
        "div" => per_integer!(ty, T => op2(|a: T, b: T| if b == 0 { !0 } else { a.wrapping_div(b) })),
        "rem" => per_integer!(ty, T => op2(|a: T, b: T| if b == 0 { a } else { a.wrapping_rem(b) })),
        "min" => per_integer!(ty, T => op2(|a: T, b: T| a.min(b))),
        "max" => per_integer!(ty, T => op2(|a: T, b: T| a.max(b))),
        "mul.lo" => per_integer!(ty, T => op2(|a: T, b: T| a.wrapping_mul(b))),
        "mad.lo" => per_integer!(ty, T => op3(|a: T, b: T, c: T| a.wrapping_mul(b).wrapping_add(c))),
        "mul.hi" => per_integer!(ty, T => op2(|a: T, b: T| a.high(b))),
        "mad.hi" => per_integer!(ty, T => op3(|a: T, b: T, c: T| a.high(b).wrapping_add(c))),
        "mul.wide" => per_type!(ty, T => op2(|a: T, b: T| a.product(b)), U16 = u16; S16 = i16; U32 = u32; S32 = i32;),
        "mad.wide" => {
            per_type!(ty, T => op3(|a: T, b: T, c: <T as Double>::Wide| a.product(b).wrapping_add(c)),
                U16 = u16; S16 = i16; U32 = u32; S32 = i32;)
        }
        "mul24.lo" => per_type!(ty, T => op2(|a: T, b: T| low24(a).wrapping_mul(low24(b))), U32 = u32; S32 = i32;),
        "mul24.hi" => {
            per_type!(ty, T => op2(|a: T, b: T| (low24(a).product(low24(b)) >> 16) as T), U32 = u32; S32 = i32;)
        }
        "mad24.lo" => {
            per_type!(ty, T => op3(|a: T, b: T, c: T| low24(a).wrapping_mul(low24(b)).wrapping_add(c)),
                U32 = u32; S32 = i32;)
        }
        "sad" => per_integer!(ty, T => op3(|a: T, b: T, c: T| c.wrapping_add(a.abs_diff(b) as T))),
        _ => None,
    }
}

/// The lowest 24 bits, extended with the sign where there is one.
#[inline(always)]
fn low24<T: std::ops::Shl<u32, Output = T> + std::ops::Shr<u32, Output = T>>(x: T) -> T {
    x << 8 >> 8
}
