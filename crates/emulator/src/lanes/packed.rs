//! Dot products of packed integers, packing with saturation, the n-th set bit.

use super::LaneFn;
use super::lane::lane;
use crate::types::Ty;

/// The sum of the products of four bytes each.
#[inline(always)]
fn dot4(a: [i32; 4], b: [i32; 4], c: u32) -> u32 {
    (0..4).fold(c, |sum, i| sum.wrapping_add(a[i].wrapping_mul(b[i]) as u32))
}

/// Two numbers of 16 bits with the bytes `at` and `at + 1`.
#[inline(always)]
fn dot2(a: [i32; 2], b: [i32; 4], at: usize, c: u32) -> u32 {
    (0..2).fold(c, |sum, i| sum.wrapping_add(a[i].wrapping_mul(b[at + i]) as u32))
}

#[inline(always)]
fn bytes(x: u32) -> [i32; 4] {
    x.to_le_bytes().map(i32::from)
}

#[inline(always)]
fn signed_bytes(x: u32) -> [i32; 4] {
    x.to_le_bytes().map(|b| i32::from(b as i8))
}

#[inline(always)]
fn halves(x: u32) -> [i32; 2] {
    [(x & 0xffff) as i32, (x >> 16) as i32]
}

#[inline(always)]
fn signed_halves(x: u32) -> [i32; 2] {
    [i32::from(x as i16), i32::from((x >> 16) as i16)]
}

/// `dp4a`, `dp2a.lo`, `dp2a.hi` with `a` and `b` of a sign each.
pub(crate) fn dot(name: &str, a: Ty, b: Ty) -> Option<LaneFn> {
    macro_rules! of {
        ($A:expr, $B:expr) => {
            lane!(|a: u32, b: u32, c: u32| -> u32 { dot4($A(a), $B(b), c) })
        };
        ($A:expr, $B:expr, $at:expr) => {
            lane!(|a: u32, b: u32, c: u32| -> u32 { dot2($A(a), $B(b), $at, c) })
        };
    }
    Some(match (name, a, b) {
        ("dp4a", Ty::U32, Ty::U32) => of!(bytes, bytes),
        ("dp4a", Ty::U32, Ty::S32) => of!(bytes, signed_bytes),
        ("dp4a", Ty::S32, Ty::U32) => of!(signed_bytes, bytes),
        ("dp4a", Ty::S32, Ty::S32) => of!(signed_bytes, signed_bytes),
        ("dp2a.lo", Ty::U32, Ty::U32) => of!(halves, bytes, 0),
        ("dp2a.lo", Ty::U32, Ty::S32) => of!(halves, signed_bytes, 0),
        ("dp2a.lo", Ty::S32, Ty::U32) => of!(signed_halves, bytes, 0),
        ("dp2a.lo", Ty::S32, Ty::S32) => of!(signed_halves, signed_bytes, 0),
        ("dp2a.hi", Ty::U32, Ty::U32) => of!(halves, bytes, 2),
        ("dp2a.hi", Ty::U32, Ty::S32) => of!(halves, signed_bytes, 2),
        ("dp2a.hi", Ty::S32, Ty::U32) => of!(signed_halves, bytes, 2),
        ("dp2a.hi", Ty::S32, Ty::S32) => of!(signed_halves, signed_bytes, 2),
        _ => return None,
    })
}

/// `cvt.pack.sat`: `a` above `b`, each clamped to the type; narrow types push `c` up.
pub(crate) fn pack(to: Ty) -> Option<LaneFn> {
    macro_rules! with {
        ($T:ty) => {
            lane!(|a: i32, b: i32, c: u32| -> u32 {
                let clamp = |x: i32| u64::from(x.clamp(i32::from(<$T>::MIN), i32::from(<$T>::MAX)) as $T as u32);
                let mask = (1u64 << <$T>::BITS) - 1;
                let pair = (clamp(a) & mask) << <$T>::BITS | clamp(b) & mask;
                (u64::from(c) << (2 * <$T>::BITS) | pair) as u32
            })
        };
    }
    Some(match to {
        Ty::S16 => with!(i16),
        Ty::U16 => with!(u16),
        Ty::S8 => with!(i8),
        Ty::U8 => with!(u8),
        _ => return None,
    })
}

/// `fns`: the position of the n-th set bit of `a`, counted from bit `b` upwards or, for negative `n`, downwards.
pub(crate) fn nth_set() -> LaneFn {
    lane!(|a: u32, b: u32, n: i32| -> u32 {
        let is_set = |at: i64| (0..32).contains(&at) && a >> at & 1 != 0;
        let start = i64::from(b);
        let step = if n < 0 { -1 } else { 1 };
        // Nothing but the base itself counts for zero.
        let reach = if n == 0 { 1 } else { 32 };
        let mut found = (0..reach).map(|i| start + step * i).filter(|at| is_set(*at));
        let wanted = n.unsigned_abs().saturating_sub(1) as usize;
        found.nth(wanted).map_or(u32::MAX, |at| at as u32)
    })
}

/// `vabsdiff4` of unsigned bytes: the absolute differences, or their sum and `c`.
pub(crate) fn byte_differences(add: bool) -> LaneFn {
    if add {
        lane!(|a: u32, b: u32, c: u32| -> u32 {
            differences(a, b).iter().fold(c, |s, d| s.wrapping_add(u32::from(*d)))
        })
    } else {
        lane!(|a: u32, b: u32, _c: u32| -> u32 { u32::from_le_bytes(differences(a, b)) })
    }
}

#[inline(always)]
fn differences(a: u32, b: u32) -> [u8; 4] {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    std::array::from_fn(|i| a[i].abs_diff(b[i]))
}
