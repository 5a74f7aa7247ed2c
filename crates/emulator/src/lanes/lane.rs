//! What a lane holds, and loops over the lanes.

use super::{FULL, Lanes32, Lanes64, Registers, Slots, WARP};

/// A kind of register with values of this type.
pub(crate) trait Raw: Copy + Default {
    fn lanes(registers: &Registers, slot: u16) -> &[Self; WARP];
    fn lanes_mut(registers: &mut Registers, slot: u16) -> &mut [Self; WARP];
}

impl Raw for u32 {
    #[inline(always)]
    fn lanes(registers: &Registers, slot: u16) -> &[u32; WARP] {
        let Lanes32(lanes) = &registers.words[usize::from(slot)];
        lanes
    }

    #[inline(always)]
    fn lanes_mut(registers: &mut Registers, slot: u16) -> &mut [u32; WARP] {
        let Lanes32(lanes) = &mut registers.words[usize::from(slot)];
        lanes
    }
}

impl Raw for u64 {
    #[inline(always)]
    fn lanes(registers: &Registers, slot: u16) -> &[u64; WARP] {
        let Lanes64(lanes) = &registers.doubles[usize::from(slot)];
        lanes
    }

    #[inline(always)]
    fn lanes_mut(registers: &mut Registers, slot: u16) -> &mut [u64; WARP] {
        let Lanes64(lanes) = &mut registers.doubles[usize::from(slot)];
        lanes
    }
}

/// A type as an instruction sees it, and the register that it lies in.
pub(super) trait Lane: Copy {
    type Raw: Raw;
    fn of(raw: Self::Raw) -> Self;
    fn raw(self) -> Self::Raw;
}

macro_rules! lane_type {
    ($($ty:ty: $raw:ty, |$r:ident| $of:expr, |$x:ident| $to:expr;)*) => {$(
        impl Lane for $ty {
            type Raw = $raw;
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

/// Bits of a binary16.
#[derive(Clone, Copy)]
pub(super) struct F16(pub(super) u16);

/// Bits of a bfloat16.
#[derive(Clone, Copy)]
pub(super) struct Bf16(pub(super) u16);

lane_type! {
    u8: u32, |r| r as u8, |x| u32::from(x);
    i8: u32, |r| r as i8, |x| u32::from(x as u8);
    u16: u32, |r| r as u16, |x| u32::from(x);
    i16: u32, |r| r as i16, |x| u32::from(x as u16);
    u32: u32, |r| r, |x| x;
    i32: u32, |r| r as i32, |x| x as u32;
    u64: u64, |r| r, |x| x;
    i64: u64, |r| r as i64, |x| x as u64;
    f32: u32, |r| f32::from_bits(r), |x| x.to_bits();
    f64: u64, |r| f64::from_bits(r), |x| x.to_bits();
    F16: u32, |r| F16(r as u16), |x| u32::from(x.0);
    Bf16: u32, |r| Bf16(r as u16), |x| u32::from(x.0);
    [F16; 2]: u32, |r| [F16(r as u16), F16((r >> 16) as u16)], |x| u32::from(x[0].0) | u32::from(x[1].0) << 16;
    [Bf16; 2]: u32, |r| [Bf16(r as u16), Bf16((r >> 16) as u16)], |x| u32::from(x[0].0) | u32::from(x[1].0) << 16;
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

#[inline(always)]
pub(super) fn map1<A: Lane, D: Lane>(r: &mut Registers, s: &Slots, mask: u32, f: impl Fn(A) -> D) {
    let a = A::Raw::lanes(r, s.a);
    let mut out = [D::Raw::default(); WARP];
    for i in 0..WARP {
        out[i] = f(A::of(a[i])).raw();
    }
    store(r, s.d, out, mask);
}

#[inline(always)]
pub(super) fn map2<A: Lane, B: Lane, D: Lane>(r: &mut Registers, s: &Slots, mask: u32, f: impl Fn(A, B) -> D) {
    let (a, b) = (A::Raw::lanes(r, s.a), B::Raw::lanes(r, s.b));
    let mut out = [D::Raw::default(); WARP];
    for i in 0..WARP {
        out[i] = f(A::of(a[i]), B::of(b[i])).raw();
    }
    store(r, s.d, out, mask);
}

#[inline(always)]
pub(super) fn map3<A: Lane, B: Lane, C: Lane, D: Lane>(
    r: &mut Registers,
    s: &Slots,
    mask: u32,
    f: impl Fn(A, B, C) -> D,
) {
    let (a, b, c) = (A::Raw::lanes(r, s.a), B::Raw::lanes(r, s.b), C::Raw::lanes(r, s.c));
    let mut out = [D::Raw::default(); WARP];
    for i in 0..WARP {
        out[i] = f(A::of(a[i]), B::of(b[i]), C::of(c[i])).raw();
    }
    store(r, s.d, out, mask);
}

#[inline(always)]
pub(super) fn map4<A: Lane, B: Lane, C: Lane, E: Lane, D: Lane>(
    r: &mut Registers,
    s: &Slots,
    mask: u32,
    f: impl Fn(A, B, C, E) -> D,
) {
    let (a, b) = (A::Raw::lanes(r, s.a), B::Raw::lanes(r, s.b));
    let (c, e) = (C::Raw::lanes(r, s.c), E::Raw::lanes(r, s.e));
    let mut out = [D::Raw::default(); WARP];
    for i in 0..WARP {
        out[i] = f(A::of(a[i]), B::of(b[i]), C::of(c[i]), E::of(e[i])).raw();
    }
    store(r, s.d, out, mask);
}

/// One bit per lane.
#[inline(always)]
pub(super) fn bits_where(holds: impl Fn(usize) -> bool) -> u32 {
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

/// A lane function from a closure: `lane!(|a: u32, b: u32| -> u32 { a.wrapping_add(b) })`.
macro_rules! lane {
    (|$a:ident: $A:ty| -> $D:ty $body:block) => {{
        fn run(r: &mut $crate::lanes::Registers, s: &$crate::lanes::Slots, mask: u32) {
            $crate::lanes::lane::map1::<$A, $D>(r, s, mask, |$a| $body);
        }
        run as $crate::lanes::LaneFn
    }};
    (|$a:ident: $A:ty, $b:ident: $B:ty| -> $D:ty $body:block) => {{
        fn run(r: &mut $crate::lanes::Registers, s: &$crate::lanes::Slots, mask: u32) {
            $crate::lanes::lane::map2::<$A, $B, $D>(r, s, mask, |$a, $b| $body);
        }
        run as $crate::lanes::LaneFn
    }};
    (|$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty| -> $D:ty $body:block) => {{
        fn run(r: &mut $crate::lanes::Registers, s: &$crate::lanes::Slots, mask: u32) {
            $crate::lanes::lane::map3::<$A, $B, $C, $D>(r, s, mask, |$a, $b, $c| $body);
        }
        run as $crate::lanes::LaneFn
    }};
    (|$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty, $e:ident: $E:ty| -> $D:ty $body:block) => {{
        fn run(r: &mut $crate::lanes::Registers, s: &$crate::lanes::Slots, mask: u32) {
            $crate::lanes::lane::map4::<$A, $B, $C, $E, $D>(r, s, mask, |$a, $b, $c, $e| $body);
        }
        run as $crate::lanes::LaneFn
    }};
}

/// An expression for each integer type, with the type's name bound.
macro_rules! per_integer {
    ($ty:expr, $T:ident => $e:expr) => {
        match $ty {
            $crate::types::Ty::U16 | $crate::types::Ty::B16 => Some({
                type $T = u16;
                $e
            }),
            $crate::types::Ty::S16 => Some({
                type $T = i16;
                $e
            }),
            $crate::types::Ty::U32 | $crate::types::Ty::B32 => Some({
                type $T = u32;
                $e
            }),
            $crate::types::Ty::S32 => Some({
                type $T = i32;
                $e
            }),
            $crate::types::Ty::U64 | $crate::types::Ty::B64 => Some({
                type $T = u64;
                $e
            }),
            $crate::types::Ty::S64 => Some({
                type $T = i64;
                $e
            }),
            _ => None,
        }
    };
}

pub(super) use {lane, per_integer};
