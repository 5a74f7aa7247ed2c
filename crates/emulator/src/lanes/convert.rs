//! `cvt`. The common pairs have a loop of their own; all others go through [`Conversion`].

use super::lane::{F16, Raw, op1, op2, store};
use super::{Float, LaneOp, WARP};
use crate::rounding::{
    BFLOAT, Directed, HALF, Round, SINGLE, TF32, bfloat, from_integer, from_integer_odd, half, narrow, whole,
};
use crate::types::Ty;

/// What a `cvt` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conversion {
    pub(crate) to: Ty,
    pub(crate) from: Ty,
    /// Round to a whole number, also where the result is a float.
    pub(crate) to_whole: bool,
    pub(crate) float: Float,
    /// Bytes of the destination register; integers fill it.
    pub(crate) register: u64,
}

enum Number {
    Integer(i128),
    Float(f64),
}

impl Conversion {
    fn read(self, bits: u64) -> Number {
        match self.from {
            Ty::F16 => Number::Float(half(bits as u16)),
            Ty::Bf16 => Number::Float(bfloat(bits as u16)),
            Ty::F32 => {
                let x = f32::from_bits(bits as u32);
                Number::Float(f64::from(if self.float.ftz { x.flushed() } else { x }))
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
                self.integer(if self.float.sat { x.clamp(low, high) } else { x })
            }
            (Number::Float(x), false) => {
                let (low, high) = self.range();
                // A cast saturates, and NaN becomes zero.
                self.integer((whole(x, self.float.round) as i128).clamp(low, high))
            }
            (Number::Integer(x), true) if self.to == Ty::F64 => from_integer(x, self.float.round).to_bits(),
            (Number::Integer(x), true) => self.float(from_integer_odd(x), false),
            (Number::Float(x), true) => self.float(x, self.to_whole),
        }
    }

    fn float(self, x: f64, to_whole: bool) -> u64 {
        let x = self.float.clamped(if to_whole { whole(x, self.float.round).copysign(x) } else { x });
        match self.to {
            Ty::F16 => u64::from(narrow(x, HALF, self.float.round)),
            Ty::Bf16 => u64::from(narrow(x, BFLOAT, self.float.round)),
            Ty::Tf32 => u64::from(narrow(x, TF32, self.float.round)) << 13,
            Ty::F64 => x.to_bits(),
            _ => {
                let bits = narrow(x, SINGLE, self.float.round);
                let subnormal = bits & 0x7f80_0000 == 0;
                u64::from(if self.float.ftz && subnormal { bits & 1 << 31 } else { bits })
            }
        }
    }
}

fn general<A: Raw, D: Raw>(conversion: Conversion) -> LaneOp {
    LaneOp::new(conversion.to, [conversion.from], move |r, s, mask| {
        let a = A::lanes(r, s.from[0]);
        let mut out = [D::default(); WARP];
        for i in 0..WARP {
            out[i] = D::of_bits(conversion.convert(a[i].bits()));
        }
        store(r, s.d, out, mask);
    })
}

/// `wide` says whether the source lies in a register of 64 bits. `None` for types that have no conversion.
pub(crate) fn convert(c: Conversion, wide: bool) -> Option<LaneOp> {
    let has_none =
        |ty| matches!(ty, Ty::Pred | Ty::F16x2 | Ty::Bf16x2 | Ty::B8 | Ty::B16 | Ty::B32 | Ty::B64 | Ty::B128);
    if has_none(c.to) || has_none(c.from) {
        return None;
    }
    common(c, wide).filter(|_| !c.float.sat).or_else(|| {
        Some(match (wide, c.register > 4) {
            (false, false) => general::<u32, u32>(c),
            (false, true) => general::<u32, u64>(c),
            (true, false) => general::<u64, u32>(c),
            (true, true) => general::<u64, u64>(c),
        })
    })
}

fn common(c: Conversion, wide: bool) -> Option<LaneOp> {
    let plain = !c.float.ftz && !c.float.relu;
    Some(match (c.to, c.from, c.register, wide) {
        (Ty::U64 | Ty::S64, Ty::U32, 8, false) => op1(|a: u32| a as u64),
        (Ty::U64 | Ty::S64, Ty::S32, 8, false) => op1(|a: i32| a as i64),
        (Ty::U32 | Ty::S32, Ty::U64 | Ty::S64, 4, true) => op1(|a: u64| a as u32),
        (Ty::U16 | Ty::S16, Ty::U32 | Ty::S32, 2, false) => op1(|a: u32| a & 0xffff),
        (Ty::U32 | Ty::S32, Ty::U16, 4, false) => op1(|a: u16| a as u32),
        (Ty::U32 | Ty::S32, Ty::S16, 4, false) => op1(|a: i16| a as i32),
        (Ty::F32, Ty::S32, 4, false) if c.float.round == Round::Nearest => op1(|a: i32| a as f32),
        (Ty::F64, Ty::S32, 8, false) => op1(|a: i32| a as f64),
        (Ty::F64, Ty::F32, 8, false) if plain && !c.to_whole => op1(|a: f32| a as f64),
        (Ty::F32, Ty::F64, 4, true) if plain && !c.to_whole && c.float.round == Round::Nearest => {
            op1(|a: f64| a as f32)
        }
        (Ty::S32, Ty::F32, 4, false) if plain && c.float.round == Round::Zero => op1(|a: f32| a as i32),
        (Ty::F32, Ty::F16, 4, false) if plain && !c.to_whole => op1(|a: F16| half(a.0) as f32),
        _ => return None,
    })
}

/// `cvt` of two numbers into a pair: `a` becomes the upper half.
pub(crate) fn convert_pair(to: Ty, float: Float) -> Option<LaneOp> {
    let to = match to {
        Ty::F16x2 => Ty::F16,
        Ty::Bf16x2 => Ty::Bf16,
        _ => return None,
    };
    let c = Conversion { to, from: Ty::F32, to_whole: false, float: Float { ftz: false, ..float }, register: 2 };
    Some(op2(move |a: u32, b: u32| (c.convert(a.into()) << 16 | c.convert(b.into())) as u32))
}
