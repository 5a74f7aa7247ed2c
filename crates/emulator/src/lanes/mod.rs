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

use crate::types::Ty;
pub(crate) use bits::{bits, permute};
pub(crate) use carry::{Flag, carry};
pub(crate) use compare::{Compare, combine, compare, in_window, select, test_property};
pub(crate) use convert::{Conversion, convert, convert_pair};
pub(crate) use float::{Float, float};
pub(crate) use integer::integer;
pub(crate) use lane::{Bf16, F16, Lane, Raw, store};
pub(crate) use moves::{pack, same, unpack};
pub(crate) use packed::{dot, pack_saturated};
use std::fmt;

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

impl Registers {
    /// The lanes of a predicate in which it holds, or does not where `negated`.
    #[inline(always)]
    pub(crate) fn predicate(&self, (slot, negated): (u16, bool)) -> u32 {
        self.predicates[usize::from(slot)] ^ if negated { FULL } else { 0 }
    }

    /// Writes the lanes of a mask.
    #[inline(always)]
    pub(crate) fn set_predicate(&mut self, slot: u16, bits: u32, mask: u32) {
        let to = &mut self.predicates[usize::from(slot)];
        *to = *to & !mask | bits & mask;
    }

    /// The lanes of a register of 64 bits or fewer, extended with zeros.
    pub(crate) fn values(&self, slot: u16, wide: bool) -> [u64; WARP] {
        if wide { *u64::lanes(self, slot) } else { u32::lanes(self, slot).map(u64::from) }
    }
}

/// Numbers of registers: destination and sources. Which of the three kinds each is depends on the instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slots {
    pub(crate) d: u16,
    pub(crate) from: [u16; 4],
}

impl Slots {
    pub(crate) fn new<const N: usize>(d: u16, sources: [u16; N]) -> Self {
        let mut from = [0; 4];
        from[..N].copy_from_slice(&sources);
        Self { d, from }
    }
}

type Run = dyn Fn(&mut Registers, &Slots, u32) + Send + Sync;

/// One instruction over the lanes of a mask.
pub(crate) struct LaneFn(pub(crate) Box<Run>);

impl fmt::Debug for LaneFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LaneFn")
    }
}

/// An instruction with the types of its destination and its sources.
#[derive(Debug)]
pub(crate) struct LaneOp {
    pub(crate) to: Ty,
    pub(crate) from: Vec<Ty>,
    pub(crate) run: LaneFn,
}
