//! Elements as numbers: how each type is read and written, and correctly rounded conversions to the narrow ones.
//!
//! ```
//! use tilewright_core::element::{Bf16, F16};
//!
//! assert_eq!(F16::from_f64(1.0 / 3.0).to_f64(), 0.333251953125);
//! assert_eq!(Bf16::from_f64(1e39).to_f64(), f64::INFINITY);
//! ```

use crate::dtype::DType;
use bytemuck::{Pod, Zeroable, bytes_of};
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};

/// A number of an element type: real and imaginary part, the latter zero for real types.
pub type Complex = (f64, f64);

/// An interchange format narrower than binary64: a sign, exponents and fractions as IEEE 754 has them.
#[derive(Clone, Copy)]
struct Format {
    /// Bits of the fraction.
    fraction: u32,
    /// Bits of the exponent.
    exponent: u32,
}

const BINARY16: Format = Format { fraction: 10, exponent: 5 };
const BFLOAT16: Format = Format { fraction: 7, exponent: 8 };
const TENSOR32: Format = Format { fraction: 10, exponent: 8 };

/// Bits of the fraction of binary64.
const WIDE: u32 = 52;

impl Format {
    /// The exponent of the smallest normal number.
    const fn lowest(self) -> i32 {
        2 - (1 << (self.exponent - 1))
    }

    /// The bits of infinity.
    const fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    /// The nearest number, ties to even; beyond the largest it is infinity. The payload of a NaN keeps its first bits.
    fn narrow(self, x: f64) -> u32 {
        let bits = x.to_bits();
        let sign = (bits >> 63) << (self.fraction + self.exponent);
        let (field, fraction) = ((bits >> WIDE) & 0x7ff, bits & ((1 << WIDE) - 1));
        if field == 0x7ff {
            let payload = fraction >> (WIDE - self.fraction);
            // A NaN whose first bits are zero must not become infinity.
            let payload = if fraction != 0 && payload == 0 { 1 << (self.fraction - 1) } else { payload };
            return (sign | self.infinity() | payload) as u32;
        }
        let significand = if field == 0 { fraction } else { fraction | 1 << WIDE };
        let exponent = field.max(1) as i32 - 1023;
        let normal = exponent.max(self.lowest());
        // What is lost: the surplus of bits, and as many more as the number lies below the normal ones. At 54 all is less
        // than half a unit.
        let lost = (WIDE - self.fraction + (normal - exponent) as u32).min(WIDE + 2);
        let (units, rest, half) = (significand >> lost, significand & ((1 << lost) - 1), 1u64 << (lost - 1));
        let units = units + u64::from(rest > half || (rest == half && units & 1 == 1));
        // A normal number's leading bit, and a carry out of the fraction, count in the exponent.
        let magnitude = (((normal - self.lowest()) as u64) << self.fraction) + units;
        (sign | magnitude.min(self.infinity())) as u32
    }

    /// The value of a number in this format, which is exact.
    fn widen(self, bits: u32) -> f64 {
        let bits = u64::from(bits);
        let sign = (bits >> (self.fraction + self.exponent)) << 63;
        let (field, fraction) = ((bits & self.infinity()) >> self.fraction, bits & ((1 << self.fraction) - 1));
        let aligned = fraction << (WIDE - self.fraction);
        if field << self.fraction == self.infinity() {
            return f64::from_bits(sign | 0x7ff << WIDE | aligned);
        }
        if field == 0 {
            let unit = f64::from_bits(((1023 + self.lowest() - self.fraction as i32) as u64) << WIDE);
            let magnitude = fraction as f64 * unit;
            return f64::from_bits(sign | magnitude.to_bits());
        }
        let exponent = (field as i32 - 1 + self.lowest() + 1023) as u64;
        f64::from_bits(sign | exponent << WIDE | aligned)
    }
}

macro_rules! narrow {
    ($(#[$doc:meta])* $name:ident, $bits:ty, $format:ident, $low:literal) => {
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
        pub struct $name(pub $bits);

        impl $name {
            /// The nearest number, ties to even; infinity beyond the largest.
            pub fn from_f64(x: f64) -> Self {
                Self(($format.narrow(x) << $low) as $bits)
            }

            /// Its value, which is exact. Bits that the type does not have are not looked at.
            pub fn to_f64(self) -> f64 {
                $format.widen(u32::from(self.0) >> $low)
            }
        }
    };
}

narrow!(
    /// IEEE 754 binary16, by its bits.
    F16, u16, BINARY16, 0
);
narrow!(
    /// bfloat16, by its bits.
    Bf16, u16, BFLOAT16, 0
);
narrow!(
    /// The numbers of tensor cores with eight bits of exponent and ten of fraction, in the upper bits of a binary32.
    Tf32, u32, TENSOR32, 13
);

/// Of binary32 without a look at the format: what loops over results are made of, and vectorised.
impl F16 {
    /// [`F16::from_f64`] of a binary32.
    #[inline]
    pub fn from_f32(x: f32) -> Self {
        const SMALLEST_NORMAL: u32 = 113 << 23;
        const BEYOND_LARGEST: u32 = 143 << 23;
        let (sign, magnitude) = (x.to_bits() >> 16 & 0x8000, x.to_bits() & 0x7fff_ffff);
        // Added to a half, the last bit of what is left counts in units of the smallest number.
        let small = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
        // To even; a carry goes into the exponent, as it should, and at last to infinity.
        let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + (magnitude >> 13 & 1)) >> 13;
        let nan = magnitude >> 13 & 0x3ff | 0x7e00;
        let beyond = if magnitude > 0x7f80_0000 { nan } else { 0x7c00 };
        let bits = if magnitude < SMALLEST_NORMAL { small } else { normal };
        Self((sign | if magnitude < BEYOND_LARGEST { bits } else { beyond }) as u16)
    }

    /// Its value, which is exact.
    #[inline]
    pub fn to_f32(self) -> f32 {
        let (sign, magnitude) = (u32::from(self.0 & 0x8000) << 16, u32::from(self.0 & 0x7fff) << 13);
        // As if the exponent were a binary32's, and then scaled to it: exact, also for what is less than normal.
        let scaled = (f32::from_bits(magnitude) * f32::from_bits(239 << 23)).to_bits();
        let special = magnitude | 0x7f80_0000;
        f32::from_bits(sign | if magnitude < 0x1f << 23 { scaled } else { special })
    }
}

/// Of binary32 without a look at the format: the upper half of one.
impl Bf16 {
    /// [`Bf16::from_f64`] of a binary32.
    #[inline]
    pub fn from_f32(x: f32) -> Self {
        let bits = x.to_bits();
        // To even; a carry goes into the exponent, as it should.
        let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
        Self(if x.is_nan() { bits >> 16 | 0x40 } else { rounded } as u16)
    }

    /// Its value, which is exact.
    #[inline]
    pub fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

/// A Rust type that is an element type of buffers.
pub trait Element: Pod {
    /// Which.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($t:ty => $d:ident),*) => { $(impl Element for $t { const DTYPE: DType = DType::$d; })* };
}

elements!(
    F16 => F16, Bf16 => Bf16, Tf32 => Tf32, f32 => F32, f64 => F64, i8 => I8, i32 => I32, [f32; 2] => C32, [f64; 2] => C64
);

/// Why an element was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElementError {
    /// There is no such element.
    #[error("element {index} of {len}")]
    Beyond {
        /// Which was asked for.
        index: usize,
        /// How many there are.
        len: usize,
    },
    /// The memory was lent to be read.
    #[error("the elements were lent to be read only")]
    ReadOnly,
}

/// Element `i`; None where there is none.
pub(crate) fn get(dtype: DType, bytes: &[u8], i: usize) -> Option<Complex> {
    fn at<T: Pod>(bytes: &[u8], i: usize) -> Option<T> {
        let bytes = bytes.get(i.checked_mul(size_of::<T>())?..)?.get(..size_of::<T>())?;
        Some(bytemuck::pod_read_unaligned(bytes))
    }
    Some(match dtype {
        DType::F16 => (at::<F16>(bytes, i)?.to_f64(), 0.0),
        DType::Bf16 => (at::<Bf16>(bytes, i)?.to_f64(), 0.0),
        DType::Tf32 => (at::<Tf32>(bytes, i)?.to_f64(), 0.0),
        DType::F32 => (at::<f32>(bytes, i)?.into(), 0.0),
        DType::F64 => (at::<f64>(bytes, i)?, 0.0),
        DType::I8 => (at::<i8>(bytes, i)?.into(), 0.0),
        DType::I32 => (at::<i32>(bytes, i)?.into(), 0.0),
        DType::C32 => at::<[f32; 2]>(bytes, i)?.map(f64::from).into(),
        DType::C64 => at::<[f64; 2]>(bytes, i)?.into(),
    })
}

/// Stores a number in element `i`, rounded to the nearest that the type has. Integers saturate, and NaN is their zero; the
/// imaginary part of a real type is dropped.
pub(crate) fn set(dtype: DType, bytes: &mut [u8], i: usize, (re, im): Complex) -> Result<(), ElementError> {
    let size = dtype.size();
    let beyond = ElementError::Beyond { index: i, len: bytes.len() / size };
    let place = i.checked_mul(size).and_then(|at| bytes.get_mut(at..)?.get_mut(..size)).ok_or(beyond)?;
    let mut put = |element: &[u8]| place.copy_from_slice(element);
    match dtype {
        DType::F16 => put(bytes_of(&F16::from_f64(re))),
        DType::Bf16 => put(bytes_of(&Bf16::from_f64(re))),
        DType::Tf32 => put(bytes_of(&Tf32::from_f64(re))),
        DType::F32 => put(bytes_of(&(re as f32))),
        DType::F64 => put(bytes_of(&re)),
        DType::I8 => put(bytes_of(&(re.round_ties_even() as i8))),
        DType::I32 => put(bytes_of(&(re.round_ties_even() as i32))),
        DType::C32 => put(bytes_of(&[re as f32, im as f32])),
        DType::C64 => put(bytes_of(&[re, im])),
    }
    Ok(())
}

/// The element types of a computation with operands, a sum, and a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ElementTypes {
    /// What is read and multiplied.
    pub operand: DType,
    /// What sums are kept in.
    pub accumulator: DType,
    /// What is written.
    pub output: DType,
}

/// As one word: inputs are looked up by their hash before every call of a plan.
impl Hash for ElementTypes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u32(u32::from_le_bytes([self.operand as u8, self.accumulator as u8, self.output as u8, 0]));
    }
}

impl ElementTypes {
    /// One type for all three.
    pub const fn all(dtype: DType) -> Self {
        Self { operand: dtype, accumulator: dtype, output: dtype }
    }

    /// What is usual with operands of a type: one type for all three, but 32 bits where narrower numbers are summed, as tensor cores
    /// and vector instructions sum them. Results are of the operands' type again where it is one of memory: f16 and bf16; sums of tf32
    /// and of 8-bit integers are written as they are.
    pub const fn of(operand: DType) -> Self {
        match operand {
            DType::F16 | DType::Bf16 => Self { operand, accumulator: DType::F32, output: operand },
            DType::Tf32 => Self { operand, accumulator: DType::F32, output: DType::F32 },
            DType::I8 => Self { operand, accumulator: DType::I32, output: DType::I32 },
            other => Self::all(other),
        }
    }

    /// The one type, where there is one.
    pub fn uniform(self) -> Option<DType> {
        (self == Self::all(self.operand)).then_some(self.operand)
    }
}

impl From<DType> for ElementTypes {
    fn from(dtype: DType) -> Self {
        Self::of(dtype)
    }
}
