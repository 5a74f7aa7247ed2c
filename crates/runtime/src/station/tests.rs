use super::*;
use tilewright_core::buffer::{BufferSpec, Role};
use tilewright_core::dtype::DType;

fn noise_of(dtype: DType, len: usize, seed: u64) -> Data {
    let specs = vec![BufferSpec { name: "x", dtype, len, role: Role::In }];
    Data::Noise { specs, scalars: Vec::new(), seed }
}

#[test]
fn noise_repeats_after_a_period_and_by_its_seed() {
    let long = noise_of(DType::F64, data::PERIOD + 5, 1).workload();
    let values = long.buffers[0].as_slice::<f64>();
    assert_eq!(values[..5], values[data::PERIOD..]);
    assert!(values.windows(2).take(100).all(|w| w[0] != w[1]));
    assert_eq!(noise_of(DType::F64, 100, 1).workload().buffers[0].bytes(), &long.buffers[0].bytes()[..800]);
    assert_ne!(noise_of(DType::F64, 100, 2).workload().buffers[0].bytes(), &long.buffers[0].bytes()[..800]);
    assert!(noise_of(DType::F32, 0, 1).workload().buffers[0].is_empty());
}

#[test]
fn noise_of_half_floats_is_finite() {
    let work = noise_of(DType::F16, 1000, 3).workload();
    assert!(work.buffers[0].as_slice::<u16>().iter().all(|x| x & 0x7c00 != 0x7c00));
}
