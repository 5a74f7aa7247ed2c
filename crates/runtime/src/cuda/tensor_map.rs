//! Tensor maps in the driver's encoding.

use super::driver::Driver;
use super::error::Asked;
use cudarc::driver::sys;
use tilewright_core::dtype::DType;
use tilewright_core::program::{ByValue, DeviceError, Interleave, Swizzle, TensorMap};

/// What the driver writes, aligned as it must be.
#[repr(C, align(64))]
struct Encoded(sys::CUtensorMap);

/// Bytes of an encoded map.
const BYTES: usize = 128;

/// Encodes a tensor whose first element lies at an address of the device. The map was checked.
///
/// # Errors
/// [`DeviceError::Unsupported`] where the driver knows no tensor maps, or [`DeviceError::Argument`] for one that it refuses.
pub(super) fn encode(driver: &Driver, map: &TensorMap, address: u64) -> Result<ByValue, DeviceError> {
    let unsupported =
        |feature: &str| DeviceError::Unsupported { device: driver.id().to_owned(), feature: feature.into() };
    // SAFETY: the library was opened when the driver was; nothing is called.
    let known = unsafe { sys::culib().get::<*const ()>(b"cuTensorMapEncodeTiled\0").is_ok() };
    if !known {
        return Err(unsupported("tensor maps"));
    }
    let dtype = data_type(map.dtype).ok_or_else(|| unsupported(&format!("tensor maps of {}", map.dtype)))?;
    driver.bind()?;
    let mut out = Encoded(sys::CUtensorMap { opaque: [0; 16] });
    // SAFETY: the place is aligned to 64 bytes; the lists are as long as the rank says, which the map's check has seen to.
    let encoded = unsafe {
        sys::cuTensorMapEncodeTiled(
            &raw mut out.0,
            dtype,
            map.dims.len() as u32,
            std::ptr::without_provenance_mut(address as usize),
            map.dims.as_ptr(),
            map.strides.as_ptr(),
            map.boxed.as_ptr(),
            map.element_strides.as_ptr(),
            interleave(map.interleave),
            swizzle(map.swizzle),
            sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    };
    encoded.result().map_err(|e| driver.error(e, Asked::Launch))?;
    let bytes: Vec<u8> = out.0.opaque.iter().flat_map(|word| word.to_le_bytes()).collect();
    debug_assert_eq!(bytes.len(), BYTES);
    Ok(ByValue { bytes, align: 64 })
}

fn data_type(dtype: DType) -> Option<sys::CUtensorMapDataType> {
    use sys::CUtensorMapDataType as Type;
    Some(match dtype {
        DType::F16 => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        DType::Bf16 => Type::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        DType::F32 => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        DType::F64 => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
        DType::I8 => Type::CU_TENSOR_MAP_DATA_TYPE_UINT8,
        DType::I32 => Type::CU_TENSOR_MAP_DATA_TYPE_INT32,
        DType::C32 | DType::C64 => return None,
    })
}

fn swizzle(swizzle: Swizzle) -> sys::CUtensorMapSwizzle {
    use sys::CUtensorMapSwizzle as Of;
    match swizzle {
        Swizzle::None => Of::CU_TENSOR_MAP_SWIZZLE_NONE,
        Swizzle::B32 => Of::CU_TENSOR_MAP_SWIZZLE_32B,
        Swizzle::B64 => Of::CU_TENSOR_MAP_SWIZZLE_64B,
        Swizzle::B128 => Of::CU_TENSOR_MAP_SWIZZLE_128B,
    }
}

fn interleave(interleave: Interleave) -> sys::CUtensorMapInterleave {
    use sys::CUtensorMapInterleave as Of;
    match interleave {
        Interleave::None => Of::CU_TENSOR_MAP_INTERLEAVE_NONE,
        Interleave::B16 => Of::CU_TENSOR_MAP_INTERLEAVE_16B,
        Interleave::B32 => Of::CU_TENSOR_MAP_INTERLEAVE_32B,
    }
}
