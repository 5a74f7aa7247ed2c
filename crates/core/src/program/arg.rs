//! What kernels are given.

use super::DeviceError;
use super::tensor_map::TensorMap;
use serde::{Deserialize, Serialize};

/// An argument of a launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Arg {
    /// Address of a workload buffer, with an offset in bytes.
    Buffer(usize, u64),
    /// Address within the workspace, in bytes.
    Workspace(u64),
    /// A scalar of the workload, in the element type of its buffers.
    Scalar(usize),
    /// A constant.
    U8(u8),
    /// A constant.
    U16(u16),
    /// A constant.
    U32(u32),
    /// A constant.
    U64(u64),
    /// A constant.
    I8(i8),
    /// A constant.
    I16(i16),
    /// A constant.
    I32(i32),
    /// A constant.
    I64(i64),
    /// A constant of binary16, by its bits.
    F16(u16),
    /// A constant of bfloat16, by its bits.
    Bf16(u16),
    /// A constant of binary32.
    F32(#[serde(with = "bits32")] f32),
    /// A constant of binary64.
    F64(#[serde(with = "bits64")] f64),
    /// A structure by value.
    Struct {
        /// Its bytes, padding among them.
        bytes: Vec<u8>,
        /// The power of two that it is aligned to, in bytes: at most 64.
        align: u32,
    },
    /// How copies of tiles find a tensor. The device encodes it, and passes its 128 bytes by value.
    TensorMap(TensorMap),
}

/// Bytes that are passed by value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByValue {
    /// The bytes, little end first.
    pub bytes: Vec<u8>,
    /// What they are aligned to, in bytes.
    pub align: u32,
}

/// The largest alignment of a parameter, in bytes.
pub const MAX_ALIGN: u32 = 64;

/// Most bytes of a structure: what all parameters of a kernel together may have.
pub const MAX_STRUCT: usize = 32_764;

impl Arg {
    /// The bytes of constants and structures, which are the same on every device; None for what only a device knows.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] for a structure whose alignment is no power of two up to [`MAX_ALIGN`], that is empty, or that
    /// is longer than [`MAX_STRUCT`].
    pub fn by_value(&self) -> Result<Option<ByValue>, DeviceError> {
        let plain = |bytes: &[u8]| Ok(Some(ByValue { bytes: bytes.to_vec(), align: bytes.len() as u32 }));
        match self {
            Self::Buffer(..) | Self::Workspace(_) | Self::Scalar(_) | Self::TensorMap(_) => Ok(None),
            Self::U8(x) => plain(&x.to_le_bytes()),
            Self::I8(x) => plain(&x.to_le_bytes()),
            Self::U16(x) | Self::F16(x) | Self::Bf16(x) => plain(&x.to_le_bytes()),
            Self::I16(x) => plain(&x.to_le_bytes()),
            Self::U32(x) => plain(&x.to_le_bytes()),
            Self::I32(x) => plain(&x.to_le_bytes()),
            Self::F32(x) => plain(&x.to_le_bytes()),
            Self::U64(x) => plain(&x.to_le_bytes()),
            Self::I64(x) => plain(&x.to_le_bytes()),
            Self::F64(x) => plain(&x.to_le_bytes()),
            Self::Struct { bytes, align } => {
                let refuse = |message| Err(DeviceError::Argument { name: "struct".into(), message });
                if !align.is_power_of_two() || *align > MAX_ALIGN {
                    return refuse(format!("aligned to {align}: a power of two up to {MAX_ALIGN} is needed"));
                }
                if bytes.is_empty() || bytes.len() > MAX_STRUCT {
                    return refuse(format!("{} bytes: 1 to {MAX_STRUCT} can be passed", bytes.len()));
                }
                Ok(Some(ByValue { bytes: bytes.clone(), align: *align }))
            }
        }
    }
}

/// Constants travel as bits, since JSON has no NaN.
macro_rules! bits {
    ($module:ident, $float:ty, $bits:ty) => {
        mod $module {
            use serde::{Deserialize, Deserializer, Serialize, Serializer};

            #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives the field by reference")]
            pub(super) fn serialize<S: Serializer>(x: &$float, to: S) -> Result<S::Ok, S::Error> {
                x.to_bits().serialize(to)
            }

            pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<$float, D::Error> {
                <$bits>::deserialize(from).map(<$float>::from_bits)
            }
        }
    };
}

bits!(bits32, f32, u32);
bits!(bits64, f64, u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_and_structures_are_bytes() {
        let bytes = |arg: &Arg| arg.by_value().unwrap().map(|v| (v.bytes, v.align));
        assert_eq!(bytes(&Arg::I16(-2)), Some((vec![0xfe, 0xff], 2)));
        assert_eq!(bytes(&Arg::F32(1.0)), Some((vec![0, 0, 0x80, 0x3f], 4)));
        assert_eq!(bytes(&Arg::F16(0x3c00)), Some((vec![0, 0x3c], 2)));
        assert_eq!(bytes(&Arg::I64(-1)), Some((vec![0xff; 8], 8)));
        assert_eq!(bytes(&Arg::Struct { bytes: vec![1, 2, 3], align: 16 }), Some((vec![1, 2, 3], 16)));
        assert_eq!(bytes(&Arg::Workspace(0)), None);
        for (bytes, align, part) in [(3, 3, "aligned to 3"), (3, 128, "aligned to 128"), (0, 4, "0 bytes")] {
            let error = Arg::Struct { bytes: vec![0; bytes], align }.by_value().unwrap_err();
            assert!(matches!(&error, DeviceError::Argument { message, .. } if message.contains(part)), "{error}");
        }
        assert!(Arg::Struct { bytes: vec![0; MAX_STRUCT + 1], align: 1 }.by_value().is_err());
    }

    #[test]
    fn arguments_travel_bit_by_bit() {
        let args = [Arg::F32(f32::NAN), Arg::F64(f64::NEG_INFINITY), Arg::F64(-0.0), Arg::U64(u64::MAX), Arg::I8(-128)];
        for arg in args {
            let text = serde_json::to_string(&arg).unwrap();
            let back: Arg = serde_json::from_str(&text).unwrap();
            assert_eq!(back.by_value(), arg.by_value(), "{text}");
        }
    }
}
