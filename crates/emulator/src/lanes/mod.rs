//! Instructions that read and write registers lane by lane.
//!
//! A register of a warp is one array of 32 lanes. Each instruction becomes a function over whole arrays, chosen when the
//! kernel is loaded; its loop over the lanes is what the compiler turns into vector code. Lanes outside of the mask keep
//! what they had.

// One index over several arrays of a fixed length is what becomes vector code.
#![allow(clippy::needless_range_loop)]

mod bits;
mod carry;
mod compare;
mod convert;
mod float;
mod half;
mod integer;
mod lane;
mod moves;
mod packed;

pub(crate) use bits::{bits2, bits3, bits4, permute};
pub(crate) use carry::{READS, WRITES, carry};
pub(crate) use compare::{Compare, combine, compare, compare_high, in_window, select, test_property};
pub(crate) use convert::{Conversion, convert, convert_pair};
pub(crate) use float::{Float, float1, float2, float3};
pub(crate) use integer::{integer1, integer2, integer3, wide};
pub(crate) use lane::store;
pub(crate) use moves::move_lanes;
pub(crate) use packed::{byte_differences, dot, nth_set, pack};

/// Lanes of a warp.
pub(crate) const WARP: usize = 32;

/// A mask with every lane.
pub(crate) const FULL: u32 = u32::MAX;

/// A register of up to 32 bits: one value per lane. Narrower values have zeros above.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes32(pub(crate) [u32; WARP]);

/// A register of 64 bits.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes64(pub(crate) [u64; WARP]);

/// The registers of a warp.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registers {
    /// Up to 32 bits.
    pub(crate) words: Vec<Lanes32>,
    /// 64 bits.
    pub(crate) doubles: Vec<Lanes64>,
    /// One bit per lane.
    pub(crate) predicates: Vec<u32>,
}

/// Numbers of registers: destination, sources, second destination. Which of the three kinds each is depends on the
/// instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slots {
    pub(crate) d: u16,
    pub(crate) a: u16,
    pub(crate) b: u16,
    pub(crate) c: u16,
    pub(crate) e: u16,
    pub(crate) f: u16,
}

/// One instruction over the lanes of a mask.
pub(crate) type LaneFn = fn(&mut Registers, &Slots, u32);
