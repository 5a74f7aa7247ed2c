//! Described kernels keep the contract of computations and kernels.

mod described;

use described::{DESCRIPTION, device, folder, open};
use std::sync::Arc;
use tilewright_core::buffer::Filling;
use tilewright_core::computation::Computation;
use tilewright_core::space::Config;
use tilewright_testkit::{self as testkit, Effort};
use tilewright_user::{InputOfUser, UserKernel};

fn inputs(kernel: &UserKernel, sizes: &[i64]) -> Vec<InputOfUser> {
    let fields = |n: &i64| Config(vec![("n".into(), (*n).into())]);
    sizes.iter().map(|n| kernel.parse(&fields(n)).unwrap()).collect()
}

#[test]
fn a_described_kernel_is_an_ordinary_one() {
    let folder = folder(DESCRIPTION);
    let kernel = open(&folder).unwrap();
    let inputs = inputs(&kernel, &[1, 7, 1000]);
    testkit::computation(&kernel, &inputs).unwrap();
    let mut device = device(&folder.path().join("built"));
    let effort = Effort { probes: 20, runs: 3, ..Effort::default() };
    testkit::kernel(&Arc::new(kernel), &mut *device, &inputs, &effort).unwrap();
}

#[test]
fn references_are_configurations_arrays_and_closures() {
    let text = |reference: &str| DESCRIPTION.replace(r#""Reference": {"KernelName": "plain"}"#, reference);
    let array = {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n";
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend([0.0f32; 3].iter().flat_map(|x| x.to_le_bytes()));
        bytes
    };
    for reference in [
        r#""Reference": {"Configuration": {"step": 1}}"#,
        r#""Reference": {"File": "zeros.npy"}"#,
        r#""Reference": {"Files": {"y": "zeros.npy"}}"#,
        r#""Profiling": false"#,
    ] {
        let folder = folder(&text(reference));
        std::fs::write(folder.path().join("zeros.npy"), &array).unwrap();
        let kernel = open(&folder).unwrap();
        let input = &inputs(&kernel, &[3])[0];
        let work = kernel.workload(input, Filling::Real, 1);
        let expected = kernel.reference(input, &work.buffers, &[]).unwrap();
        let x = work.buffers[1].as_slice::<f32>();
        let right = |x: f32| if reference.contains("zeros") { 0.0 } else { f64::from((1.5 * f64::from(x)) as f32) };
        assert_eq!(expected.buffers[0].values, x.iter().map(|x| right(*x)).collect::<Vec<_>>(), "{reference}");
    }
    let folder = folder(DESCRIPTION);
    let kernel = open(&folder).unwrap().compared_with(|fields, before| {
        let n = fields.get("n").and_then(|n| n.as_int()).unwrap() as usize;
        vec![(0..n).map(|i| 1.5 * before[1].get_f64(i)).collect()]
    });
    let input = &inputs(&kernel, &[100])[0];
    let mut work = kernel.workload(input, Filling::Real, 1);
    for i in 0..100 {
        let x = work.buffers[1].get_f64(i);
        work.buffers[0].set_f64(i, 1.5 * x);
    }
    let before = kernel.workload(input, Filling::Real, 1).buffers;
    assert!(kernel.compare(input, &before, &[], &work.buffers).unwrap().is_right());
    work.buffers[0].set_f64(99, 2.0);
    assert_eq!(kernel.compare(input, &before, &[], &work.buffers).unwrap().wrong, 1);
}

#[test]
fn a_reference_that_fails_says_so() {
    let broken = DESCRIPTION.replace(r#"{"KernelName": "plain"}"#, r#"{"KernelName": "absent"}"#);
    let folder = folder(&broken);
    let kernel = open(&folder).unwrap();
    let input = &inputs(&kernel, &[3])[0];
    let work = kernel.workload(input, Filling::Real, 1);
    let error = kernel.reference(input, &work.buffers, &[]).unwrap_err().to_string();
    assert!(error.contains("reference") && error.contains("absent"), "{error}");
}

#[test]
fn another_source_is_another_kernel() {
    use tilewright_core::kernel::Kernel;
    let folder = folder(DESCRIPTION);
    let id = || Kernel::id(&open(&folder).unwrap()).to_string();
    let first = id();
    assert_eq!(id(), first);
    std::fs::write(folder.path().join("scale.c"), described::SOURCE.replace("void scale", "/**/ void scale")).unwrap();
    assert_ne!(id(), first);
}
