//! Moves, and packing and unpacking of vectors in registers.

use super::LaneFn;
use super::lane::lane;

/// A move by what it does: `32`, `64`; `low16`, `high16`, `low32`, `high32`, `0of4` ... `3of4` take a part out;
/// `pack16x2`, `pack32x2`, `pack16x4` put parts together.
pub(crate) fn move_lanes(what: &str) -> Option<LaneFn> {
    Some(match what {
        "32" => lane!(|a: u32| -> u32 { a }),
        "64" => lane!(|a: u64| -> u64 { a }),
        "low16" => lane!(|a: u32| -> u32 { a & 0xffff }),
        "high16" => lane!(|a: u32| -> u32 { a >> 16 }),
        "low32" => lane!(|a: u64| -> u32 { a as u32 }),
        "high32" => lane!(|a: u64| -> u32 { (a >> 32) as u32 }),
        "0of4" => lane!(|a: u64| -> u32 { a as u32 & 0xffff }),
        "1of4" => lane!(|a: u64| -> u32 { (a >> 16) as u32 & 0xffff }),
        "2of4" => lane!(|a: u64| -> u32 { (a >> 32) as u32 & 0xffff }),
        "3of4" => lane!(|a: u64| -> u32 { (a >> 48) as u32 }),
        "pack16x2" => lane!(|a: u32, b: u32| -> u32 { a & 0xffff | b << 16 }),
        "pack32x2" => lane!(|a: u32, b: u32| -> u64 { u64::from(a) | u64::from(b) << 32 }),
        "pack16x4" => lane!(|a: u16, b: u16, c: u16, e: u16| -> u64 {
            u64::from(a) | u64::from(b) << 16 | u64::from(c) << 32 | u64::from(e) << 48
        }),
        _ => return None,
    })
}
