//! Dot products of packed integers, packing with saturation.

use super::LaneOp;
use super::lane::op3;
use crate::types::Ty;

/// The sum of the products, and `c`.
#[inline(always)]
fn sum_of<const N: usize>(a: [i32; N], b: [i32; N], c: u32) -> u32 {
    (0..N).fold(c, |sum, i| sum.wrapping_add(a[i].wrapping_mul(b[i]) as u32))
}

#[inline(always)]
fn bytes(x: u32, signed: bool) -> [i32; 4] {
    x.to_le_bytes().map(|b| if signed { i32::from(b as i8) } else { i32::from(b) })
}

#[inline(always)]
fn halves(x: u32, signed: bool) -> [i32; 2] {
    [x as u16, (x >> 16) as u16].map(|h| if signed { i32::from(h as i16) } else { i32::from(h) })
}

/// `dp4a`, `dp2a.lo`, `dp2a.hi` with `a` and `b` of a sign each; `vabsdiff4` of unsigned bytes: the absolute differences, or
/// their sum and `c`.
pub(crate) fn dot(name: &str, a: Ty, b: Ty) -> Option<LaneOp> {
    let is_32 = |ty: Ty| matches!(ty, Ty::U32 | Ty::S32);
    let (a_signed, b_signed) = (a.is_signed(), b.is_signed());
    Some(match name {
        _ if !(is_32(a) && is_32(b)) => return None,
        "dp4a" => op3(move |a: u32, b: u32, c: u32| sum_of(bytes(a, a_signed), bytes(b, b_signed), c)),
        "dp2a.lo" | "dp2a.hi" => {
            let at = if name == "dp2a.lo" { 0 } else { 2 };
            op3(move |a: u32, b: u32, c: u32| {
                let b = bytes(b, b_signed);
                sum_of(halves(a, a_signed), [b[at], b[at + 1]], c)
            })
        }
        "vabsdiff4" if !a_signed => op3(|a: u32, b: u32, _: u32| u32::from_le_bytes(differences(a, b))),
        "vabsdiff4.add" if !a_signed => {
            op3(|a: u32, b: u32, c: u32| differences(a, b).iter().fold(c, |s, d| s.wrapping_add(u32::from(*d))))
        }
        _ => return None,
    })
}

#[inline(always)]
fn differences(a: u32, b: u32) -> [u8; 4] {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    std::array::from_fn(|i| a[i].abs_diff(b[i]))
}

/// `cvt.pack.sat`: `a` above `b`, each clamped to the type; narrow types push `c` up.
pub(crate) fn pack_saturated(to: Ty) -> Option<LaneOp> {
    let bits = 8 * to.bytes() as u32;
    if bits > 16 {
        return None;
    }
    let mask = (1u64 << bits) - 1;
    let (least, most) = if to.is_signed() { (-1 << (bits - 1), mask as i32 >> 1) } else { (0, mask as i32) };
    Some(op3(move |a: i32, b: i32, c: u32| {
        let clamp = |x: i32| x.clamp(least, most) as u64 & mask;
        (u64::from(c) << (2 * bits) | clamp(a) << bits | clamp(b)) as u32
    }))
}
