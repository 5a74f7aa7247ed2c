//! The kernel and the device keep the contract of their traits, on the host, for inputs of every kind.

use std::sync::Arc;

use tilewright_core::dtype::DType;
use tilewright_core::problem::Bound;
use tilewright_cpu::{CpuDevice, CpuGemm};
use tilewright_ops::gemm::{GemmInput, Layout, ScalarClass};
use tilewright_testkit::Effort;

fn inputs(dtype: DType) -> Vec<GemmInput> {
    let new = |m, n, k, layout| GemmInput::new(m, n, k, dtype, layout);
    let mut all =
        vec![new(0, 5, 3, Layout::Nn), new(5, 0, 3, Layout::Nt), new(5, 3, 0, Layout::Tn), new(1, 1, 1, Layout::Tt)];
    for (i, layout) in Layout::ALL.into_iter().enumerate() {
        all.push(new(31 + i, 17 + 2 * i, 65 + i, layout));
        all.push(new(1, 63, 200, layout));
        all.push(new(127, 1, 33, layout));
    }
    let mut odd = new(37, 29, 129, Layout::Tn);
    (odd.lda, odd.ldb, odd.ldc) = (odd.lda + 3, odd.ldb + 1, odd.ldc + 5);
    (odd.alpha, odd.beta, odd.align) = (ScalarClass::Other, ScalarClass::Other, 16);
    let mut scaled = new(9, 7, 5, Layout::Nn);
    (scaled.alpha, scaled.beta) = (ScalarClass::Zero, ScalarClass::Other);
    let mut added = new(48, 20, 300, Layout::Nt);
    added.beta = ScalarClass::One;
    all.extend([odd, scaled, added]);
    all
}

fn conform(dtype: DType, threads: usize) {
    let effort = Effort { probes: 300, runs: 10, ..Effort::default() };
    let mut device = CpuDevice::new(threads).unwrap();
    tilewright_testkit::kernel(&Arc::new(CpuGemm::new()), &mut device, &inputs(dtype), &effort).unwrap();
}

#[test]
fn single_precision_conforms() {
    conform(DType::F32, 1);
}

#[test]
fn double_precision_conforms() {
    conform(DType::F64, 1);
}

#[test]
fn threads_conform() {
    conform(DType::F32, 3);
}

#[test]
fn the_device_is_an_executor() {
    let mut device = CpuDevice::new(2).unwrap();
    let input = GemmInput::new(40, 30, 50, DType::F32, Layout::Nt);
    let problem = Bound::new(Arc::new(CpuGemm::new()), device.spec().clone(), input).unwrap();
    tilewright_testkit::device(&mut device, &problem).unwrap();
    tilewright_testkit::host_device(&mut device).unwrap();
}
