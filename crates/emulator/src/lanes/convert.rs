//! `cvt`. The common pairs have a loop of their own; all others go through [`Conversion`].

use super::lane::{F16, Raw, lane, map2, store};
use super::{Float, LaneFn, Registers, Slots, WARP};
use crate::rounding::{BFLOAT, HALF, Round, SINGLE, TF32, bfloat, from_integer, from_integer_odd, half, narrow, whole};
use crate::types::Ty;

/// What a `cvt` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conversion {
    pub(crate) to: Ty,
    pub(crate) from: Ty,
    pub(crate) round: Round,
    /// Round to a whole number, also where the result is a float.
    pub(crate) to_whole: bool,
    pub(crate) ftz: bool,
    pub(crate) sat: bool,
    pub(crate) relu: bool,
    /// Bytes of the destination register; integers fill it.
    pub(crate) register: u64,
}

/// Types in the order of their numbers in a packed conversion.
const TYPES: [Ty; 14] = [
    Ty::U8,
    Ty::U16,
    Ty::U32,
    Ty::U64,
    Ty::S8,
    Ty::S16,
    Ty::S32,
    Ty::S64,
    Ty::F16,
    Ty::Bf16,
    Ty::F32,
    Ty::F64,
    Ty::Tf32,
    Ty::Pred,
];

enum Number {
    Integer(i128),
    Float(f64),
}

impl Conversion {
    /// As slots `e` and `f`; `None` for types that have no conversion.
    fn packed(self) -> Option<(u16, u16)> {
        let index = |ty| TYPES.iter().position(|t| *t == ty).map(|i| i as u16);
        let round = match self.round {
            Round::Nearest => 0,
            Round::Zero => 1,
            Round::Down => 2,
            Round::Up => 3,
            Round::Away => 4,
        };
        let flags =
            u16::from(self.to_whole) | u16::from(self.ftz) << 1 | u16::from(self.sat) << 2 | u16::from(self.relu) << 3;
        let register = self.register.trailing_zeros() as u16;
        Some((index(self.to)? | index(self.from)? << 4 | register << 8, round | flags << 3))
    }

    fn unpacked(e: u16, f: u16) -> Self {
        let ty = |i: u16| TYPES[usize::from(i & 15).min(TYPES.len() - 1)];
        let round = match f & 7 {
            0 => Round::Nearest,
            1 => Round::Zero,
            2 => Round::Down,
            3 => Round::Up,
            _ => Round::Away,
        };
        Self {
            to: ty(e),
            from: ty(e >> 4),
            round,
            to_whole: f & 8 != 0,
            ftz: f & 16 != 0,
            sat: f & 32 != 0,
            relu: f & 64 != 0,
            register: 1 << (e >> 8),
        }
    }

    fn read(self, bits: u64) -> Number {
        match self.from {
            Ty::F16 => Number::Float(half(bits as u16)),
            Ty::Bf16 => Number::Float(bfloat(bits as u16)),
            Ty::F32 => {
                let x = f32::from_bits(bits as u32);
                Number::Float(f64::from(if self.ftz && x.is_subnormal() { 0f32.copysign(x) } else { x }))
            }
            Ty::F64 => Number::Float(f64::from_bits(bits)),
            from => {
                let above = 64 - 8 * from.bytes() as u32;
                let shifted = bits << above;
                Number::Integer(if from.is_signed() {
                    i128::from(shifted as i64 >> above)
                } else {
                    i128::from(shifted >> above)
                })
            }
        }
    }

    /// The smallest and largest value of the target.
    fn range(self) -> (i128, i128) {
        let bits = 8 * self.to.bytes() as u32;
        if self.to.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
    }

    fn integer(self, x: i128) -> u64 {
        let bits = 8 * self.register.min(8) as u32;
        // Truncated to the type, extended by its sign to the register.
        let (low, high) = self.range();
        let width = 8 * self.to.bytes() as u32;
        let kept = x & ((1 << width) - 1);
        let value = if low < 0 && kept > high { kept - (1 << width) } else { kept };
        (value & ((1i128 << bits) - 1)) as u64
    }

    fn convert(self, bits: u64) -> u64 {
        match (self.read(bits), self.to.is_float()) {
            (Number::Integer(x), false) => {
                let (low, high) = self.range();
                self.integer(if self.sat { x.clamp(low, high) } else { x })
            }
            (Number::Float(x), false) => {
                let (low, high) = self.range();
                // A cast saturates, and NaN becomes zero.
                self.integer((whole(x, self.round) as i128).clamp(low, high))
            }
            (Number::Integer(x), true) if self.to == Ty::F64 => from_integer(x, self.round).to_bits(),
            (Number::Integer(x), true) => self.float(from_integer_odd(x), false),
            (Number::Float(x), true) => self.float(x, self.to_whole),
        }
    }

    fn float(self, x: f64, to_whole: bool) -> u64 {
        let x = if to_whole { whole(x, self.round).copysign(x) } else { x };
        let x = match (self.sat, self.relu) {
            (true, _) => {
                if x > 0.0 {
                    x.min(1.0)
                } else {
                    0.0
                }
            }
            (_, true) if !x.is_nan() => x.max(0.0),
            _ => x,
        };
        match self.to {
            Ty::F16 => u64::from(narrow(x, HALF, self.round)),
            Ty::Bf16 => u64::from(narrow(x, BFLOAT, self.round)),
            Ty::Tf32 => u64::from(narrow(x, TF32, self.round)) << 13,
            Ty::F64 => x.to_bits(),
            _ => {
                let bits = narrow(x, SINGLE, self.round);
                let subnormal = bits & 0x7f80_0000 == 0;
                u64::from(if self.ftz && subnormal { bits & 1 << 31 } else { bits })
            }
        }
    }
}

trait Bits: Raw {
    fn bits(self) -> u64;
    fn of_bits(bits: u64) -> Self;
}

impl Bits for u32 {
    fn bits(self) -> u64 {
        u64::from(self)
    }
    fn of_bits(bits: u64) -> Self {
        bits as u32
    }
}

impl Bits for u64 {
    fn bits(self) -> u64 {
        self
    }
    fn of_bits(bits: u64) -> Self {
        bits
    }
}

fn general<A: Bits, D: Bits>(r: &mut Registers, s: &Slots, mask: u32) {
    let conversion = Conversion::unpacked(s.e, s.f);
    let a = A::lanes(r, s.a);
    let mut out = [D::default(); WARP];
    for i in 0..WARP {
        out[i] = D::of_bits(conversion.convert(a[i].bits()));
    }
    store(r, s.d, out, mask);
}

/// The function of a conversion, with what its slots `e` and `f` must hold. `wide` says whether the source lies in a
/// register of 64 bits.
pub(crate) fn convert(c: Conversion, wide: bool) -> Option<(LaneFn, u16, u16)> {
    if !c.sat
        && let Some(f) = common(c, wide)
    {
        return Some((f, 0, 0));
    }
    let (e, f) = c.packed()?;
    let run: LaneFn = match (wide, c.register > 4) {
        (false, false) => general::<u32, u32>,
        (false, true) => general::<u32, u64>,
        (true, false) => general::<u64, u32>,
        (true, true) => general::<u64, u64>,
    };
    Some((run, e, f))
}

fn common(c: Conversion, wide: bool) -> Option<LaneFn> {
    let plain = !c.ftz && !c.relu;
    Some(match (c.to, c.from, c.register, wide) {
        (Ty::U64 | Ty::S64, Ty::U32, 8, false) => lane!(|a: u32| -> u64 { u64::from(a) }),
        (Ty::U64 | Ty::S64, Ty::S32, 8, false) => lane!(|a: i32| -> i64 { i64::from(a) }),
        (Ty::U32 | Ty::S32, Ty::U64 | Ty::S64, 4, true) => lane!(|a: u64| -> u32 { a as u32 }),
        (Ty::U16 | Ty::S16, Ty::U32 | Ty::S32, 2, false) => lane!(|a: u32| -> u32 { a & 0xffff }),
        (Ty::U32 | Ty::S32, Ty::U16, 4, false) => lane!(|a: u16| -> u32 { u32::from(a) }),
        (Ty::U32 | Ty::S32, Ty::S16, 4, false) => lane!(|a: i16| -> i32 { i32::from(a) }),
        (Ty::F32, Ty::S32, 4, false) if c.round == Round::Nearest => lane!(|a: i32| -> f32 { a as f32 }),
        (Ty::F64, Ty::S32, 8, false) => lane!(|a: i32| -> f64 { f64::from(a) }),
        (Ty::F64, Ty::F32, 8, false) if plain && !c.to_whole => lane!(|a: f32| -> f64 { f64::from(a) }),
        (Ty::F32, Ty::F64, 4, true) if plain && !c.to_whole && c.round == Round::Nearest => {
            lane!(|a: f64| -> f32 { a as f32 })
        }
        (Ty::S32, Ty::F32, 4, false) if plain && c.round == Round::Zero => lane!(|a: f32| -> i32 { a as i32 }),
        (Ty::F32, Ty::F16, 4, false) if plain && !c.to_whole => lane!(|a: F16| -> f32 { half(a.0) as f32 }),
        _ => return None,
    })
}

/// `cvt` of two numbers into a pair: `a` becomes the upper half.
pub(crate) fn convert_pair(to: Ty) -> Option<LaneFn> {
    fn run<const BRAIN: bool>(r: &mut Registers, s: &Slots, mask: u32) {
        let options = Float::unpacked(s.f);
        let to = if BRAIN { Ty::Bf16 } else { Ty::F16 };
        let c = Conversion {
            to,
            from: Ty::F32,
            round: options.round,
            to_whole: false,
            ftz: false,
            sat: options.sat,
            relu: options.relu,
            register: 2,
        };
        map2::<u32, u32, u32>(r, s, mask, |a, b| (c.convert(u64::from(a)) << 16 | c.convert(u64::from(b))) as u32);
    }
    match to {
        Ty::F16x2 => Some(run::<false>),
        Ty::Bf16x2 => Some(run::<true>),
        _ => None,
    }
}
