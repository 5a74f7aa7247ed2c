//! Logic, shifts, bit fields.

use super::LaneOp;
use super::lane::{op1, op2, op3, op4, per_integer, per_type};
use crate::types::Ty;

macro_rules! per_bits {
    ($ty:expr, $T:ident => $e:expr) => {
        per_type!($ty, $T => $e, B16 = u16; B32 = u32; B64 = u64;)
    };
}

/// An instruction by its name with the modifiers that are no types. Shifts by the width or more give zero or the sign;
/// `bfi` inserts the first operand into the second.
pub(crate) fn bits(name: &str, ty: Ty) -> Option<LaneOp> {
    let signed = ty.is_signed();
    match name {
        "and" => per_bits!(ty, T => op2(|a: T, b: T| a & b)),
        "or" => per_bits!(ty, T => op2(|a: T, b: T| a | b)),
        "xor" => per_bits!(ty, T => op2(|a: T, b: T| a ^ b)),
        "not" => per_bits!(ty, T => op1(|a: T| !a)),
        "cnot" => per_bits!(ty, T => op1(|a: T| T::from(a == 0))),
        "shl" => per_bits!(ty, T => op2(|a: T, b: u32| a.checked_shl(b).unwrap_or(0))),
        "shr" if signed => per_integer!(ty, T => op2(|a: T, b: u32| a >> b.min(T::BITS - 1))),
        "shr" => per_integer!(ty, T => op2(|a: T, b: u32| a.checked_shr(b).unwrap_or(0))),
        "popc" => per_bits!(ty, T => op1(|a: T| a.count_ones())),
        "clz" => per_bits!(ty, T => op1(|a: T| a.leading_zeros())),
        "brev" => per_bits!(ty, T => op1(|a: T| a.reverse_bits())),
        "bfind" | "bfind.shiftamt" => {
            let top = name.ends_with("amt").then_some(8 * ty.bytes() as u32 - 1);
            match signed {
                true => per_integer!(ty, T => op1(move |a: T| find(wide(a ^ a >> (T::BITS - 1)), top))),
                false => per_integer!(ty, T => op1(move |a: T| find(wide(a), top))),
            }
        }
        "bfe" if signed => per_integer!(ty, T => op3(|a: T, b: u32, c: u32| {
            extract_signed(wide(a) as i64, b, c, T::BITS - 1) as T
        })),
        "bfe" => per_integer!(ty, T => op3(|a: T, b: u32, c: u32| extract(wide(a), b, c) as T)),
        "bfi" => per_bits!(ty, T => op4(|a: T, b: T, c: u32, e: u32| insert(wide(a), wide(b), c, e) as T)),
        _ if ty != Ty::B32 => None,
        "lop3" => Some(op4(lookup)),
        "fns" => Some(op3(nth_set)),
        "shf.l.wrap" => Some(op3(|a: u32, b: u32, c: u32| (pair(a, b) << (c & 31) >> 32) as u32)),
        "shf.l.clamp" => Some(op3(|a: u32, b: u32, c: u32| (pair(a, b) << c.min(32) >> 32) as u32)),
        "shf.r.wrap" => Some(op3(|a: u32, b: u32, c: u32| (pair(a, b) >> (c & 31)) as u32)),
        "shf.r.clamp" => Some(op3(|a: u32, b: u32, c: u32| (pair(a, b) >> c.min(32)) as u32)),
        _ => None,
    }
}

/// Extended to 64 bits, with the sign where there is one.
#[inline(always)]
fn wide(x: impl Into<i128>) -> u64 {
    x.into() as u64
}

/// The position of the highest bit, counted from `top` downwards where that is given, or all ones.
#[inline(always)]
fn find(a: u64, top: Option<u32>) -> u32 {
    let Some(at) = a.checked_ilog2() else { return u32::MAX };
    top.map_or(at, |top| top - at)
}

#[inline(always)]
fn pair(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// `length` bits from `at`; both count modulo 256.
#[inline(always)]
fn extract(a: u64, at: u32, length: u32) -> u64 {
    let (at, length) = (at & 255, length & 255);
    let shifted = if at > 63 { 0 } else { a >> at };
    if length > 63 { shifted } else { shifted & ((1 << length) - 1) }
}

/// The same, filled with the field's top bit, or the operand's where the field reaches beyond it.
#[inline(always)]
fn extract_signed(a: i64, at: u32, length: u32, top: u32) -> i64 {
    let (at, length) = (at & 255, length & 255);
    if length == 0 {
        return 0;
    }
    let last = (at + length - 1).min(top);
    let sign = -(a >> last & 1);
    let kept = length.min((top + 1).saturating_sub(at));
    let low = if kept > 63 { u64::MAX } else { (1 << kept) - 1 };
    let shifted = if at > 63 { 0 } else { a as u64 >> at };
    (shifted & low | sign as u64 & !low) as i64
}

#[inline(always)]
fn insert(a: u64, b: u64, at: u32, length: u32) -> u64 {
    let (at, length) = (at & 255, length & 255);
    if at > 63 {
        return b;
    }
    let field = if length > 63 { u64::MAX } else { (1 << length) - 1 } << at;
    b & !field | a << at & field
}

/// Any function of three bits, by its table.
#[inline(always)]
fn lookup(a: u32, b: u32, c: u32, table: u32) -> u32 {
    let mut out = 0;
    for row in 0..8 {
        let pick = |x: u32, bit: u32| if row & bit != 0 { x } else { !x };
        let term = pick(a, 4) & pick(b, 2) & pick(c, 1);
        out |= if table >> row & 1 != 0 { term } else { 0 };
    }
    out
}

/// The position of the n-th set bit of `a`, counted from bit `b` upwards or, for negative `n`, downwards.
fn nth_set(a: u32, b: u32, n: i32) -> u32 {
    let is_set = |at: i64| (0..32).contains(&at) && a >> at & 1 != 0;
    let start = i64::from(b);
    let step = if n < 0 { -1 } else { 1 };
    // Nothing but the base itself counts for zero.
    let reach = if n == 0 { 1 } else { 32 };
    let mut found = (0..reach).map(|i| start + step * i).filter(|at| is_set(*at));
    let wanted = n.unsigned_abs().saturating_sub(1) as usize;
    found.nth(wanted).map_or(u32::MAX, |at| at as u32)
}

/// `prmt` in one of its modes.
pub(crate) fn permute(mode: Option<&str>) -> Option<LaneOp> {
    let selector: fn(u32) -> u32 = match mode {
        None => return Some(op3(pick_bytes)),
        Some("f4e") => |c| rotate_selectors(0x3210, c),
        Some("b4e") => |c| rotate_selectors(0x5670, c),
        Some("rc8") => |c| (c & 3) * 0x1111,
        Some("ecl") => |c| [0x3210, 0x3211, 0x3222, 0x3333][(c & 3) as usize],
        Some("ecr") => |c| [0x0000, 0x1110, 0x2210, 0x3210][(c & 3) as usize],
        Some("rc16") => |c| if c & 1 == 0 { 0x1010 } else { 0x3232 },
        _ => return None,
    };
    Some(op3(move |a: u32, b: u32, c: u32| pick_bytes(a, b, selector(c))))
}

/// The selectors of the extraction modes, moved on by `c` bytes.
#[inline(always)]
fn rotate_selectors(first: u32, c: u32) -> u32 {
    (0..4).fold(0, |out, i| out | (((first >> (4 * i)) + (c & 3)) & 7) << (4 * i))
}

#[inline(always)]
fn pick_bytes(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = pair(a, b);
    (0..4).fold(0, |out, i| {
        let s = selector >> (4 * i) & 15;
        let byte = (bytes >> (8 * (s & 7))) as u32 & 255;
        let sign = if byte & 0x80 != 0 { 255 } else { 0 };
        out | (if s & 8 != 0 { sign } else { byte }) << (8 * i)
    })
}
