//! Elements as numbers.

use crate::dtype::DType;

/// One component as `f64`.
///
/// # Panics
/// For types without a plain conversion, or an index out of bounds.
pub(super) fn get(dtype: DType, bytes: &[u8], i: usize) -> f64 {
    match dtype {
        DType::F32 => f64::from(bytemuck::cast_slice::<u8, f32>(bytes)[i]),
        DType::F64 => bytemuck::cast_slice::<u8, f64>(bytes)[i],
        DType::I32 => f64::from(bytemuck::cast_slice::<u8, i32>(bytes)[i]),
        DType::I8 => f64::from(bytemuck::cast_slice::<u8, i8>(bytes)[i]),
        other => panic!("no plain conversion of {other}"),
    }
}

/// Stores a number rounded to the element type.
///
/// # Panics
/// As [`get`].
pub(super) fn set(dtype: DType, bytes: &mut [u8], i: usize, x: f64) {
    match dtype {
        DType::F32 => bytemuck::cast_slice_mut::<u8, f32>(bytes)[i] = x as f32,
        DType::F64 => bytemuck::cast_slice_mut::<u8, f64>(bytes)[i] = x,
        DType::I32 => bytemuck::cast_slice_mut::<u8, i32>(bytes)[i] = x as i32,
        DType::I8 => bytemuck::cast_slice_mut::<u8, i8>(bytes)[i] = x as i8,
        other => panic!("no plain conversion of {other}"),
    }
}
