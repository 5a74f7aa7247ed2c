//! Tensors as the units that copy tiles see them.

use super::DeviceError;
use crate::dtype::DType;
use serde::{Deserialize, Serialize};

/// How the 16-byte parts of a tile's rows are mixed in shared memory, so that columns lie in different banks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Swizzle {
    /// Not at all.
    #[default]
    None,
    /// Within 32 bytes.
    B32,
    /// Within 64 bytes.
    B64,
    /// Within 128 bytes.
    B128,
}

impl Swizzle {
    /// Most bytes of a row of the box; None without a limit.
    const fn row_bytes(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::B32 => Some(32),
            Self::B64 => Some(64),
            Self::B128 => Some(128),
        }
    }
}

/// Whether channels of a tensor lie interleaved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Interleave {
    /// They do not.
    #[default]
    None,
    /// In parts of 16 bytes.
    B16,
    /// In parts of 32 bytes.
    B32,
}

/// A tensor in a buffer and the box that one copy moves: the arguments of `cuTensorMapEncodeTiled` (CUDA driver API). The
/// fastest dimension comes first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorMap {
    /// Which buffer of the workload.
    pub buffer: usize,
    /// Where the tensor begins in it, in bytes: a multiple of 16.
    pub offset: u64,
    /// Element type.
    pub dtype: DType,
    /// Elements along each dimension; one to five dimensions.
    pub dims: Vec<u64>,
    /// Bytes from one element to the next along each dimension but the first: multiples of 16.
    pub strides: Vec<u64>,
    /// Elements of the box along each dimension: 1 to 256.
    pub boxed: Vec<u32>,
    /// Every how many elements are copied along each dimension: 1 to 8.
    pub element_strides: Vec<u32>,
    /// How the box lies in shared memory.
    pub swizzle: Swizzle,
    /// How the tensor lies in memory.
    pub interleave: Interleave,
}

impl TensorMap {
    /// A tensor without gaps along its first dimension, copied whole.
    pub fn new(buffer: usize, dtype: DType, dims: Vec<u64>, strides: Vec<u64>, boxed: Vec<u32>) -> Self {
        let element_strides = vec![1; dims.len()];
        let (swizzle, interleave) = (Swizzle::None, Interleave::None);
        Self { buffer, offset: 0, dtype, dims, strides, boxed, element_strides, swizzle, interleave }
    }

    /// Whether a device could encode it, for a buffer of so many bytes.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] with the field and its limit.
    pub fn check(&self, buffer_bytes: u64) -> Result<(), DeviceError> {
        let rank = self.dims.len();
        let lengths = [self.strides.len() + 1, self.boxed.len(), self.element_strides.len()];
        if !(1..=5).contains(&rank) || lengths.iter().any(|l| *l != rank) {
            return refuse(
                "dims",
                format!("{rank} dimensions with {lengths:?}: one to five, and of all the same number"),
            );
        }
        if matches!(self.dtype, DType::C32 | DType::C64) {
            return refuse("dtype", format!("{}: the units that copy tiles know no complex numbers", self.dtype));
        }
        let within =
            |name, values: &[u64], least: u64, most: u64| match values.iter().find(|v| !(least..=most).contains(*v)) {
                Some(value) => refuse(name, format!("{value} is not within {least}..={most}")),
                None => Ok(()),
            };
        let wide = |values: &[u32]| values.iter().map(|v| u64::from(*v)).collect::<Vec<_>>();
        within("dims", &self.dims, 1, 1 << 32)?;
        within("strides", &self.strides, 16, (1 << 40) - 16)?;
        within("boxed", &wide(&self.boxed), 1, 256)?;
        within("element_strides", &wide(&self.element_strides), 1, 8)?;
        if let Some(x) = self.strides.iter().chain([&self.offset]).find(|x| !x.is_multiple_of(16)) {
            return refuse("strides", format!("{x} bytes: multiples of 16 are needed, of the offset too"));
        }
        self.check_box()?;
        let bytes = self.end().filter(|end| *end <= buffer_bytes);
        bytes.map_or_else(
            || refuse("dims", format!("the tensor ends behind its buffer of {buffer_bytes} bytes")),
            |_| Ok(()),
        )
    }

    fn check_box(&self) -> Result<(), DeviceError> {
        let row = u64::from(self.boxed[0]) * self.dtype.size() as u64;
        if self.interleave == Interleave::None && !row.is_multiple_of(16) {
            return refuse("boxed", format!("its rows have {row} bytes: multiples of 16 are needed"));
        }
        if let Some(most) = self.swizzle.row_bytes().filter(|most| row > *most) {
            return refuse("swizzle", format!("rows of the box have {row} bytes, at most {most} can be mixed"));
        }
        if self.interleave == Interleave::B32 && self.swizzle != Swizzle::B32 {
            return refuse("swizzle", "parts of 32 bytes are mixed within 32 bytes".to_owned());
        }
        if self.interleave != Interleave::None && self.dims.len() < 3 {
            return refuse("interleave", format!("{} dimensions: at least three are needed", self.dims.len()));
        }
        Ok(())
    }

    /// The byte behind the last element.
    fn end(&self) -> Option<u64> {
        let first = (self.dims[0] - 1).checked_mul(self.dtype.size() as u64)?;
        let start = self.offset.checked_add(first)?.checked_add(self.dtype.size() as u64)?;
        let rest = self.dims[1..].iter().zip(&self.strides);
        rest.map(|(dim, stride)| (dim - 1).checked_mul(*stride)).try_fold(start, |sum, x| sum.checked_add(x?))
    }
}

fn refuse(name: &str, message: String) -> Result<(), DeviceError> {
    Err(DeviceError::Argument { name: format!("tensor map: {name}"), message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_that_no_device_encodes_are_refused_by_field() {
        // 64 columns of 100 rows in f32, 32 x 8 at once.
        let map = TensorMap::new(0, DType::F32, vec![100, 64], vec![400], vec![32, 8]);
        assert_eq!(map.check(100 * 64 * 4), Ok(()));
        let refused = |change: fn(&mut TensorMap)| {
            let mut map = map.clone();
            change(&mut map);
            map.check(100 * 64 * 4).unwrap_err().to_string()
        };
        type Change = fn(&mut TensorMap);
        let cases: [(Change, &str); 10] = [
            (|m| m.dims.clear(), "dims"),
            (|m| m.boxed.push(1), "dims"),
            (|m| m.dims[1] = 65, "dims"),
            (|m| m.dims[0] = u64::MAX, "dims"),
            (|m| m.strides[0] = 404, "strides"),
            (|m| m.boxed[1] = 257, "boxed"),
            (|m| m.boxed[0] = 3, "boxed"),
            (|m| m.element_strides[0] = 9, "element_strides"),
            (|m| m.swizzle = Swizzle::B64, "swizzle"),
            (|m| m.dtype = DType::C32, "dtype"),
        ];
        for (change, field) in cases {
            let said = refused(change);
            assert!(said.contains(&format!("tensor map: {field}")), "{field}: {said}");
        }
        assert!(refused(|m| m.offset = 16).contains("behind its buffer"));
    }
}
