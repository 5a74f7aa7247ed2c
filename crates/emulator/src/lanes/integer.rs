//! Integer arithmetic.

use super::LaneFn;
use super::lane::{lane, per_integer};
use crate::types::Ty;

/// `neg`, `abs`: one operand.
pub(crate) fn integer1(name: &str, ty: Ty) -> Option<LaneFn> {
    match name {
        "neg" => per_integer!(ty, T => lane!(|a: T| -> T { a.wrapping_neg() })),
        "abs" => match ty {
            Ty::S16 => Some(lane!(|a: i16| -> i16 { a.wrapping_abs() })),
            Ty::S32 => Some(lane!(|a: i32| -> i32 { a.wrapping_abs() })),
            Ty::S64 => Some(lane!(|a: i64| -> i64 { a.wrapping_abs() })),
            _ => None,
        },
        _ => None,
    }
}

/// Two operands. Division by zero gives all ones and the dividend as remainder, which is what the hardware's sequence
/// leaves; PTX says unspecified.
pub(crate) fn integer2(name: &str, ty: Ty) -> Option<LaneFn> {
    match name {
        "add" => per_integer!(ty, T => lane!(|a: T, b: T| -> T { a.wrapping_add(b) })),
        "add.sat" => (ty == Ty::S32).then_some(lane!(|a: i32, b: i32| -> i32 { a.saturating_add(b) })),
        "sub" => per_integer!(ty, T => lane!(|a: T, b: T| -> T { a.wrapping_sub(b) })),
        "sub.sat" => (ty == Ty::S32).then_some(lane!(|a: i32, b: i32| -> i32 { a.saturating_sub(b) })),
        "mul.lo" => per_integer!(ty, T => lane!(|a: T, b: T| -> T { a.wrapping_mul(b) })),
        "mul.hi" => high(ty),
        "mul24.lo" => match ty {
            Ty::U32 => Some(lane!(|a: u32, b: u32| -> u32 { (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff) })),
            Ty::S32 => Some(lane!(|a: i32, b: i32| -> i32 { (a << 8 >> 8).wrapping_mul(b << 8 >> 8) })),
            _ => None,
        },
        "mul24.hi" => match ty {
            Ty::U32 => Some(lane!(|a: u32, b: u32| -> u32 {
                ((u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)) >> 16) as u32
            })),
            Ty::S32 => Some(lane!(|a: i32, b: i32| -> i32 {
                ((i64::from(a << 8 >> 8) * i64::from(b << 8 >> 8)) >> 16) as i32
            })),
            _ => None,
        },
        "div" => per_integer!(ty, T => lane!(|a: T, b: T| -> T { if b == 0 { !0 } else { a.wrapping_div(b) } })),
        "rem" => per_integer!(ty, T => lane!(|a: T, b: T| -> T { if b == 0 { a } else { a.wrapping_rem(b) } })),
        "min" => per_integer!(ty, T => lane!(|a: T, b: T| -> T { a.min(b) })),
        "max" => per_integer!(ty, T => lane!(|a: T, b: T| -> T { a.max(b) })),
        _ => None,
    }
}

fn high(ty: Ty) -> Option<LaneFn> {
    Some(match ty {
        Ty::U16 => lane!(|a: u16, b: u16| -> u16 { ((u32::from(a) * u32::from(b)) >> 16) as u16 }),
        Ty::S16 => lane!(|a: i16, b: i16| -> i16 { ((i32::from(a) * i32::from(b)) >> 16) as i16 }),
        Ty::U32 => lane!(|a: u32, b: u32| -> u32 { ((u64::from(a) * u64::from(b)) >> 32) as u32 }),
        Ty::S32 => lane!(|a: i32, b: i32| -> i32 { ((i64::from(a) * i64::from(b)) >> 32) as i32 }),
        Ty::U64 => lane!(|a: u64, b: u64| -> u64 { ((u128::from(a) * u128::from(b)) >> 64) as u64 }),
        Ty::S64 => lane!(|a: i64, b: i64| -> i64 { ((i128::from(a) * i128::from(b)) >> 64) as i64 }),
        _ => return None,
    })
}

/// Three operands: `mad`, `sad`.
pub(crate) fn integer3(name: &str, ty: Ty) -> Option<LaneFn> {
    match name {
        "mad.lo" => per_integer!(ty, T => lane!(|a: T, b: T, c: T| -> T { a.wrapping_mul(b).wrapping_add(c) })),
        "mad24.lo" => match ty {
            Ty::U32 => Some(lane!(|a: u32, b: u32, c: u32| -> u32 {
                (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff).wrapping_add(c)
            })),
            Ty::S32 => {
                Some(lane!(|a: i32, b: i32, c: i32| -> i32 { (a << 8 >> 8).wrapping_mul(b << 8 >> 8).wrapping_add(c) }))
            }
            _ => None,
        },
        "mad.hi" => high_add(ty),
        "sad" => per_integer!(ty, T => lane!(|a: T, b: T, c: T| -> T { c.wrapping_add(a.abs_diff(b) as T) })),
        _ => None,
    }
}

fn high_add(ty: Ty) -> Option<LaneFn> {
    Some(match ty {
        Ty::U32 => {
            lane!(|a: u32, b: u32, c: u32| -> u32 { (((u64::from(a) * u64::from(b)) >> 32) as u32).wrapping_add(c) })
        }
        Ty::S32 => {
            lane!(|a: i32, b: i32, c: i32| -> i32 { (((i64::from(a) * i64::from(b)) >> 32) as i32).wrapping_add(c) })
        }
        Ty::U64 => {
            lane!(|a: u64, b: u64, c: u64| -> u64 { (((u128::from(a) * u128::from(b)) >> 64) as u64).wrapping_add(c) })
        }
        Ty::S64 => {
            lane!(|a: i64, b: i64, c: i64| -> i64 { (((i128::from(a) * i128::from(b)) >> 64) as i64).wrapping_add(c) })
        }
        _ => return None,
    })
}

/// `mul.wide`, and `mad.wide` where `add` is set.
pub(crate) fn wide(ty: Ty, add: bool) -> Option<LaneFn> {
    Some(match (ty, add) {
        (Ty::U16, false) => lane!(|a: u16, b: u16| -> u32 { u32::from(a) * u32::from(b) }),
        (Ty::S16, false) => lane!(|a: i16, b: i16| -> i32 { i32::from(a) * i32::from(b) }),
        (Ty::U32, false) => lane!(|a: u32, b: u32| -> u64 { u64::from(a) * u64::from(b) }),
        (Ty::S32, false) => lane!(|a: i32, b: i32| -> i64 { i64::from(a) * i64::from(b) }),
        (Ty::U16, true) => lane!(|a: u16, b: u16, c: u32| -> u32 { (u32::from(a) * u32::from(b)).wrapping_add(c) }),
        (Ty::S16, true) => lane!(|a: i16, b: i16, c: i32| -> i32 { (i32::from(a) * i32::from(b)).wrapping_add(c) }),
        (Ty::U32, true) => lane!(|a: u32, b: u32, c: u64| -> u64 { (u64::from(a) * u64::from(b)).wrapping_add(c) }),
        (Ty::S32, true) => lane!(|a: i32, b: i32, c: i64| -> i64 { (i64::from(a) * i64::from(b)).wrapping_add(c) }),
        _ => return None,
    })
}
