//! Moves, and packing and unpacking of vectors in registers.

use super::LaneOp;
use super::lane::{op1, op2, op4};

/// A move between registers of 64 bits, or of fewer.
pub(crate) fn same(wide: bool) -> LaneOp {
    if wide { op1(|a: u64| a) } else { op1(|a: u32| a) }
}

/// Puts so many parts together in a register of so many bytes.
pub(crate) fn pack(bytes: u64, parts: usize) -> Option<LaneOp> {
    Some(match (bytes, parts) {
        (4, 2) => op2(|a: u16, b: u16| u32::from(a) | u32::from(b) << 16),
        (8, 2) => op2(|a: u32, b: u32| u64::from(a) | u64::from(b) << 32),
        (8, 4) => op4(|a: u16, b: u16, c: u16, e: u16| {
            u64::from(a) | u64::from(b) << 16 | u64::from(c) << 32 | u64::from(e) << 48
        }),
        _ => return None,
    })
}

/// Takes one of so many parts out of a register of so many bytes.
pub(crate) fn unpack(bytes: u64, parts: usize, at: usize) -> Option<LaneOp> {
    Some(match (bytes, parts) {
        (4, 2) => op1(move |a: u32| (a >> (16 * at)) as u16),
        (8, 2) => op1(move |a: u64| (a >> (32 * at)) as u32),
        (8, 4) => op1(move |a: u64| (a >> (16 * at)) as u16),
        _ => return None,
    })
}
