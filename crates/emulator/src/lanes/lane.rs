//! What a lane holds, and loops over the lanes.

use super::{FULL, LaneFn, LaneOp, Lanes32, Lanes64, Registers, Slots, WARP};
use crate::types::Ty;

/// A kind of register with values of this type.
pub(crate) trait Raw: Copy + Default {
    fn lanes(registers: &Registers, slot: u16) -> &[Self; WARP];
    fn lanes_mut(registers: &mut Registers, slot: u16) -> &mut [Self; WARP];
    /// Words of memory.
    const WORDS: usize = size_of::<Self>() / 4;
    fn bits(self) -> u64;
    fn of_bits(bits: u64) -> Self;

    #[inline(always)]
    fn of_words(words: &[u32]) -> Self {
        let low = u64::from(words[0]);
        Self::of_bits(if Self::WORDS == 1 { low } else { low | u64::from(words[1]) << 32 })
    }

    #[inline(always)]
    fn to_words(self, words: &mut [u32]) {
        words[0] = self.bits() as u32;
        if Self::WORDS > 1 {
            words[1] = (self.bits() >> 32) as u32;
        }
    }
}

macro_rules! raw_type {
    ($raw:ty, $lanes:ident, $registers:ident) => {
        impl Raw for $raw {
            #[inline(always)]
            fn lanes(registers: &Registers, slot: u16) -> &[Self; WARP] {
                let $lanes(lanes) = &registers.$registers[usize::from(slot)];
                lanes
            }

            #[inline(always)]
            fn lanes_mut(registers: &mut Registers, slot: u16) -> &mut [Self; WARP] {
                let $lanes(lanes) = &mut registers.$registers[usize::from(slot)];
                lanes
            }

            #[inline(always)]
            fn bits(self) -> u64 {
                self.into()
            }

            #[inline(always)]
            fn of_bits(bits: u64) -> Self {
                bits as Self
            }
        }
    };
}

raw_type!(u32, Lanes32, words);
raw_type!(u64, Lanes64, doubles);

/// A type as an instruction sees it, and the register that it lies in.
pub(crate) trait Lane: Copy + 'static {
    type Raw: Raw;
    /// What operands of the type are.
    const TY: Ty;
    fn of(raw: Self::Raw) -> Self;
    fn raw(self) -> Self::Raw;
}

macro_rules! lane_type {
    ($($ty:ty = $name:ident: $raw:ty, |$r:ident| $of:expr, |$x:ident| $to:expr;)*) => {$(
        impl Lane for $ty {
            type Raw = $raw;
            const TY: Ty = Ty::$name;
            #[inline(always)]
            fn of($r: $raw) -> Self {
                $of
            }
            #[inline(always)]
            fn raw(self) -> $raw {
                let $x = self;
                $to
            }
        }
    )*};
}

/// Bits of a binary16, or of a bfloat16.
#[derive(Clone, Copy)]
pub(crate) struct Narrow<const BRAIN: bool>(pub(crate) u16);
/// Bits of a binary16.
pub(crate) type F16 = Narrow<false>;
/// Bits of a bfloat16.
pub(crate) type Bf16 = Narrow<true>;

lane_type! {
    u16 = U16: u32, |r| r as u16, |x| u32::from(x);
    i16 = S16: u32, |r| r as i16, |x| u32::from(x as u16);
    u32 = U32: u32, |r| r, |x| x;
    i32 = S32: u32, |r| r as i32, |x| x as u32;
    u64 = U64: u64, |r| r, |x| x;
    i64 = S64: u64, |r| r as i64, |x| x as u64;
    f32 = F32: u32, |r| f32::from_bits(r), |x| x.to_bits();
    f64 = F64: u64, |r| f64::from_bits(r), |x| x.to_bits();
    F16 = F16: u32, |r| Narrow(r as u16), |x| u32::from(x.0);
    Bf16 = Bf16: u32, |r| Narrow(r as u16), |x| u32::from(x.0);
    [F16; 2] = F16x2: u32, |r| [Narrow(r as u16), Narrow((r >> 16) as u16)], |x| x[0].raw() | x[1].raw() << 16;
    [Bf16; 2] = Bf16x2: u32, |r| [Narrow(r as u16), Narrow((r >> 16) as u16)], |x| x[0].raw() | x[1].raw() << 16;
}

/// Writes the lanes of a mask.
#[inline(always)]
pub(crate) fn store<D: Raw>(registers: &mut Registers, slot: u16, values: [D; WARP], mask: u32) {
    let to = D::lanes_mut(registers, slot);
    if mask == FULL {
        *to = values;
    } else {
        for i in 0..WARP {
            to[i] = if mask >> i & 1 != 0 { values[i] } else { to[i] };
        }
    }
}

impl LaneOp {
    pub(super) fn new(
        to: Ty,
        from: impl Into<Vec<Ty>>,
        run: impl Fn(&mut Registers, &Slots, u32) + Send + Sync + 'static,
    ) -> Self {
        Self { to, from: from.into(), run: LaneFn(Box::new(run)) }
    }
}

/// An instruction from a function of the values in a lane, whose types are those of the operands.
macro_rules! lane_op {
    ($name:ident: $($T:ident $x:ident $at:literal),*) => {
        pub(super) fn $name<$($T: Lane,)* D: Lane>(f: impl Fn($($T),*) -> D + Send + Sync + 'static) -> LaneOp {
            LaneOp::new(D::TY, [$($T::TY),*], move |r, s, mask| {
                $(let $x = $T::Raw::lanes(r, s.from[$at]);)*
                let mut out = [D::Raw::default(); WARP];
                for i in 0..WARP {
                    out[i] = f($($T::of($x[i])),*).raw();
                }
                store(r, s.d, out, mask);
            })
        }
    };
}

lane_op!(op1: A a 0);
lane_op!(op2: A a 0, B b 1);
lane_op!(op3: A a 0, B b 1, C c 2);
lane_op!(op4: A a 0, B b 1, C c 2, E e 3);

/// A predicate of two numbers in a lane.
pub(super) fn test2<A: Lane>(holds: impl Fn(A, A) -> bool + Send + Sync + 'static) -> LaneOp {
    LaneOp::new(Ty::Pred, [A::TY; 2], move |r, s, mask| {
        let (a, b) = (A::Raw::lanes(r, s.from[0]), A::Raw::lanes(r, s.from[1]));
        let bits = bits_where(|i| holds(A::of(a[i]), A::of(b[i])));
        r.set_predicate(s.d, bits, mask);
    })
}

/// A predicate of one number in a lane.
pub(super) fn test1<A: Lane>(holds: impl Fn(A) -> bool + Send + Sync + 'static) -> LaneOp {
    LaneOp::new(Ty::Pred, [A::TY], move |r, s, mask| {
        let a = A::Raw::lanes(r, s.from[0]);
        let bits = bits_where(|i| holds(A::of(a[i])));
        r.set_predicate(s.d, bits, mask);
    })
}

/// One bit per lane.
#[inline(always)]
fn bits_where(holds: impl Fn(usize) -> bool) -> u32 {
    let mut flags = [0u8; WARP];
    for (i, flag) in flags.iter_mut().enumerate() {
        *flag = u8::from(holds(i));
    }
    // Eight flags at a time: the product moves the lowest bit of every byte into the top byte.
    let pack = |at: usize| {
        let eight: [u8; 8] = std::array::from_fn(|i| flags[at + i]);
        (u64::from_le_bytes(eight).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
    };
    pack(0) | pack(8) << 8 | pack(16) << 16 | pack(24) << 24
}

/// An expression for each of some types, with the type's name bound; `None` for other types.
macro_rules! per_type {
    ($ty:expr, $T:ident => $e:expr, $($($name:ident)|+ = $type:ty;)*) => {
        match $ty {
            $($($crate::types::Ty::$name)|+ => Some({
                type $T = $type;
                $e
            }),)*
            _ => None,
        }
    };
}

macro_rules! per_integer {
    ($ty:expr, $T:ident => $e:expr) => {
        $crate::lanes::lane::per_type!($ty, $T => $e,
            U16 | B16 = u16; S16 = i16; U32 | B32 = u32; S32 = i32; U64 | B64 = u64; S64 = i64;)
    };
}

pub(super) use {per_integer, per_type};
