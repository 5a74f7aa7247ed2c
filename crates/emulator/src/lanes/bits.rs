//! Logic, shifts, bit fields.

use super::LaneFn;
use super::lane::lane;
use crate::types::Ty;

/// `not`, `cnot`, `popc`, `clz`, `brev`, `bfind`: see [`bits1`]; `and`, `or`, `xor`, `shl`, `shr`: two operands. Shifts by
/// the width or more give zero or the sign.
pub(crate) fn bits2(name: &str, ty: Ty) -> Option<LaneFn> {
    if let Some(f) = bits1(name, ty) {
        return Some(f);
    }
    Some(match (name, ty) {
        ("and", Ty::B16 | Ty::B32) => lane!(|a: u32, b: u32| -> u32 { a & b }),
        ("or", Ty::B16 | Ty::B32) => lane!(|a: u32, b: u32| -> u32 { a | b }),
        ("xor", Ty::B16 | Ty::B32) => lane!(|a: u32, b: u32| -> u32 { a ^ b }),
        ("and", Ty::B64) => lane!(|a: u64, b: u64| -> u64 { a & b }),
        ("or", Ty::B64) => lane!(|a: u64, b: u64| -> u64 { a | b }),
        ("xor", Ty::B64) => lane!(|a: u64, b: u64| -> u64 { a ^ b }),
        ("shl", Ty::B16) => lane!(|a: u16, b: u32| -> u16 { if b > 15 { 0 } else { a << b } }),
        ("shl", Ty::B32) => lane!(|a: u32, b: u32| -> u32 { if b > 31 { 0 } else { a << (b & 31) } }),
        ("shl", Ty::B64) => lane!(|a: u64, b: u32| -> u64 { if b > 63 { 0 } else { a << (b & 63) } }),
        ("shr", Ty::B16 | Ty::U16) => lane!(|a: u16, b: u32| -> u16 { if b > 15 { 0 } else { a >> b } }),
        ("shr", Ty::B32 | Ty::U32) => lane!(|a: u32, b: u32| -> u32 { if b > 31 { 0 } else { a >> (b & 31) } }),
        ("shr", Ty::B64 | Ty::U64) => lane!(|a: u64, b: u32| -> u64 { if b > 63 { 0 } else { a >> (b & 63) } }),
        ("shr", Ty::S16) => lane!(|a: i16, b: u32| -> i16 { a >> b.min(15) }),
        ("shr", Ty::S32) => lane!(|a: i32, b: u32| -> i32 { a >> b.min(31) }),
        ("shr", Ty::S64) => lane!(|a: i64, b: u32| -> i64 { a >> b.min(63) }),
        _ => return None,
    })
}

fn bits1(name: &str, ty: Ty) -> Option<LaneFn> {
    Some(match (name, ty) {
        ("not", Ty::B16) => lane!(|a: u16| -> u16 { !a }),
        ("not", Ty::B32) => lane!(|a: u32| -> u32 { !a }),
        ("not", Ty::B64) => lane!(|a: u64| -> u64 { !a }),
        ("cnot", Ty::B16) => lane!(|a: u16| -> u16 { u16::from(a == 0) }),
        ("cnot", Ty::B32) => lane!(|a: u32| -> u32 { u32::from(a == 0) }),
        ("cnot", Ty::B64) => lane!(|a: u64| -> u64 { u64::from(a == 0) }),
        ("popc", Ty::B32) => lane!(|a: u32| -> u32 { a.count_ones() }),
        ("popc", Ty::B64) => lane!(|a: u64| -> u32 { a.count_ones() }),
        ("clz", Ty::B32) => lane!(|a: u32| -> u32 { a.leading_zeros() }),
        ("clz", Ty::B64) => lane!(|a: u64| -> u32 { a.leading_zeros() }),
        ("brev", Ty::B32) => lane!(|a: u32| -> u32 { a.reverse_bits() }),
        ("brev", Ty::B64) => lane!(|a: u64| -> u64 { a.reverse_bits() }),
        ("bfind", Ty::U32) => lane!(|a: u32| -> u32 { find(u64::from(a)) }),
        ("bfind", Ty::U64) => lane!(|a: u64| -> u32 { find(a) }),
        ("bfind", Ty::S32) => lane!(|a: i32| -> u32 { find(u64::from((a ^ a >> 31) as u32)) }),
        ("bfind", Ty::S64) => lane!(|a: i64| -> u32 { find((a ^ a >> 63) as u64) }),
        ("bfind.shiftamt", Ty::U32) => lane!(|a: u32| -> u32 { shift_amount(find(u64::from(a)), 31) }),
        ("bfind.shiftamt", Ty::U64) => lane!(|a: u64| -> u32 { shift_amount(find(a), 63) }),
        ("bfind.shiftamt", Ty::S32) => {
            lane!(|a: i32| -> u32 { shift_amount(find(u64::from((a ^ a >> 31) as u32)), 31) })
        }
        ("bfind.shiftamt", Ty::S64) => lane!(|a: i64| -> u32 { shift_amount(find((a ^ a >> 63) as u64), 63) }),
        _ => return None,
    })
}

/// The position of the highest bit, or all ones.
#[inline(always)]
fn find(a: u64) -> u32 {
    if a == 0 { u32::MAX } else { 63 - a.leading_zeros() }
}

#[inline(always)]
fn shift_amount(found: u32, top: u32) -> u32 {
    if found == u32::MAX { found } else { top - found }
}

/// `bfe`, `shf`: three operands.
pub(crate) fn bits3(name: &str, ty: Ty) -> Option<LaneFn> {
    Some(match (name, ty) {
        ("bfe", Ty::U32) => lane!(|a: u32, b: u32, c: u32| -> u32 { extract(u64::from(a), b, c) as u32 }),
        ("bfe", Ty::U64) => lane!(|a: u64, b: u32, c: u32| -> u64 { extract(a, b, c) }),
        ("bfe", Ty::S32) => lane!(|a: i32, b: u32, c: u32| -> i32 { extract_signed(i64::from(a), b, c, 31) as i32 }),
        ("bfe", Ty::S64) => lane!(|a: i64, b: u32, c: u32| -> i64 { extract_signed(a, b, c, 63) }),
        ("shf.l.wrap", Ty::B32) => lane!(|a: u32, b: u32, c: u32| -> u32 { funnel_left(a, b, c & 31) }),
        ("shf.l.clamp", Ty::B32) => lane!(|a: u32, b: u32, c: u32| -> u32 { funnel_left(a, b, c.min(32)) }),
        ("shf.r.wrap", Ty::B32) => lane!(|a: u32, b: u32, c: u32| -> u32 { funnel_right(a, b, c & 31) }),
        ("shf.r.clamp", Ty::B32) => lane!(|a: u32, b: u32, c: u32| -> u32 { funnel_right(a, b, c.min(32)) }),
        _ => return None,
    })
}

#[inline(always)]
fn pair(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

#[inline(always)]
fn funnel_left(low: u32, high: u32, by: u32) -> u32 {
    (pair(low, high) << by >> 32) as u32
}

#[inline(always)]
fn funnel_right(low: u32, high: u32, by: u32) -> u32 {
    (pair(low, high) >> by) as u32
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

/// Four operands: `bfi` inserts `a` into `b` at `c`, `e` bits long; `lop3` has its table in `e`.
pub(crate) fn bits4(name: &str, ty: Ty) -> Option<LaneFn> {
    Some(match (name, ty) {
        ("bfi", Ty::B32) => {
            lane!(|a: u32, b: u32, c: u32, e: u32| -> u32 { insert(u64::from(a), u64::from(b), c, e) as u32 })
        }
        ("bfi", Ty::B64) => lane!(|a: u64, b: u64, c: u32, e: u32| -> u64 { insert(a, b, c, e) }),
        ("lop3", Ty::B32) => lane!(|a: u32, b: u32, c: u32, e: u32| -> u32 { lookup(a, b, c, e) }),
        _ => return None,
    })
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

/// `prmt` in one of its modes.
pub(crate) fn permute(mode: Option<&str>) -> Option<LaneFn> {
    macro_rules! with {
        ($selector:expr) => {
            lane!(|a: u32, b: u32, c: u32| -> u32 { pick_bytes(a, b, $selector(c)) })
        };
    }
    Some(match mode {
        None => with!(|c: u32| c),
        Some("f4e") => with!(|c: u32| rotate_selectors(0x3210, c)),
        Some("b4e") => with!(|c: u32| rotate_selectors(0x5670, c)),
        Some("rc8") => with!(|c: u32| (c & 3) * 0x1111),
        Some("ecl") => with!(|c: u32| [0x3210, 0x3211, 0x3222, 0x3333][(c & 3) as usize]),
        Some("ecr") => with!(|c: u32| [0x0000, 0x1110, 0x2210, 0x3210][(c & 3) as usize]),
        Some("rc16") => with!(|c: u32| if c & 1 == 0 { 0x1010 } else { 0x3232 }),
        _ => return None,
    })
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
        let byte = if s & 8 != 0 && byte & 0x80 != 0 {
            255
        } else if s & 8 != 0 {
            0
        } else {
            byte
        };
        out | byte << (8 * i)
    })
}
