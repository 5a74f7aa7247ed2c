//! Rules and features of GPU kernels find every fact that they name on a real device.
#![cfg(feature = "cuda")]

use tilewright_ptxgen::target::Target;
use tilewright_runtime::cuda::{CudaDevice, count, fact_names};

#[test]
fn a_device_tells_whatever_a_target_does() {
    for name in Target::OLDEST.facts().keys() {
        assert!(fact_names().any(|fact| fact == name), "no fact {name}");
    }
}

#[test]
fn without_a_device_there_is_a_typed_error() {
    let have = count().unwrap_or(0);
    let Err(error) = CudaDevice::open(have + 1000) else { panic!("opened") };
    assert!(error.to_string().contains("cuda:"), "{error}");
}
