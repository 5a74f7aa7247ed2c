//! The calls of cuBLAS and cuBLASLt that this project makes, on libraries that check their arguments and compute: results are compared with
//! the reference in higher precision, as everything is, and a caller who has two arguments in the wrong order is noticed.
//!
//! A program finds its driver when it starts, so each test starts itself again with the fake one in its place.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::process::Command;
use tilewright_baselines::{device_kernels, device_libraries};
use tilewright_core::buffer::Filling;
use tilewright_core::device::Device;
use tilewright_core::program::DeviceError;
use tilewright_core::space::{Config, Point};
use tilewright_runtime::cuda::CudaDevice;
use tilewright_runtime::verify::{Verifier, VerifyError, VerifySettings};

/// All layouts, all types, gaps behind columns, scalars that are one, another number, or zero; no two sizes are the same.
const INPUTS: [&str; 17] = [
    "m=17,n=9,k=33,dtype=f32",
    "m=9,n=21,k=14,dtype=f32,layout=tn,alpha=other,beta=1",
    "m=8,n=16,k=5,dtype=f32,layout=nt,lda=11,ldb=19,ldc=13,beta=other",
    "m=12,n=7,k=20,dtype=f64,layout=tt,alpha=other,beta=other",
    "m=31,n=2,k=1,dtype=f64,layout=nn,lda=40,ldc=35",
    "m=1,n=130,k=6,dtype=f64,layout=nt,beta=1",
    "m=140,n=3,k=4,dtype=f32,layout=tn,ldb=9",
    "m=15,n=6,k=21,dtype=f32,accuracy=tf32,layout=nt,ldc=17",
    "m=11,n=10,k=12,dtype=tf32,alpha=other,beta=1,lda=14",
    "m=13,n=19,k=9,dtype=f16,layout=tn,beta=other,ldc=20",
    "m=6,n=23,k=17,dtype=f16,acc=f16,alpha=other,ldb=18",
    "m=7,n=12,k=26,dtype=f16,out=f32,layout=tt,beta=1",
    "m=21,n=5,k=16,dtype=bf16,layout=nt,alpha=other",
    "m=10,n=14,k=11,dtype=bf16,out=f32,lda=12,beta=other",
    "m=9,n=18,k=15,dtype=i8,layout=tn,lda=16,ldb=20,beta=1",
    "m=8,n=13,k=10,dtype=c32,layout=cn,alpha=other,beta=other",
    "m=5,n=16,k=7,dtype=c64,layout=tc,ldb=19,ldc=9",
];

/// Runs a test again in a process that has the fake driver and the fake libraries, with these variables. Whether this process is one.
fn has_libraries(test: &str, variables: &[(&str, &str)]) -> bool {
    const MARK: &str = "FAKE_CUBLAS_TEST";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let this = std::env::current_exe().unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (built, name) in [("cuda", "cuda.so"), ("cublas", "cublas.so.12"), ("cublas", "cublasLt.so.12")] {
        let built = this.with_file_name(format!("libtilewright_fake_{built}.so"));
        std::os::unix::fs::symlink(built, folder.path().join(format!("lib{name}"))).unwrap();
    }
    let ran = Command::new(&this)
        .args([test, "--exact", "--nocapture"])
        .env(MARK, "1")
        .env("LD_LIBRARY_PATH", folder.path())
        .env("TILEWRIGHT_BLAS_PATH", folder.path())
        .env("PATH", folder.path())
        .env_remove("TILEWRIGHT_PTXAS")
        .envs(variables.iter().copied())
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    false
}

fn device() -> CudaDevice {
    let libraries = device_libraries();
    assert!(libraries.missing.iter().all(|missing| missing.name != "cublas"), "{:?}", libraries.missing);
    libraries.routines.into_iter().fold(CudaDevice::open(0).unwrap(), CudaDevice::with_library)
}

/// Names the routine that is checked, for a process of this test; all where there is none.
const ROUTINE: &str = "FAKE_CUBLAS_ROUTINE";

/// Checks every configuration of the routines on every input: how many were right, by routine, and what was said of the others.
fn check(device: &mut dyn Device) -> (BTreeMap<String, u32>, Vec<String>) {
    let (mut right, mut complaints) = (BTreeMap::new(), Vec::new());
    let asked = std::env::var(ROUTINE).ok();
    for kernel in device_kernels("gemm").into_iter().filter(|k| asked.as_ref().is_none_or(|name| k.id().name() == name))
    {
        for fields in INPUTS {
            let problem = kernel.problem(device.spec(), &Config::parse(fields).unwrap()).unwrap();
            let mut walk = problem.space().walk();
            while let Some(point) = walk.next_point() {
                let point = Point(point.to_vec());
                let mut verifier =
                    Verifier::new(VerifySettings { fillings: vec![Filling::Exact, Filling::Real], seed: 3 });
                let checked = verifier.check(device, &*problem, &point);
                let what = || format!("{} of {fields} at {point:?}", kernel.id());
                match checked {
                    Ok(found) if found.is_right() => *right.entry(kernel.id().name().to_owned()).or_default() += 1,
                    Ok(found) => complaints.push(format!("{}: {}", what(), found.complaint().unwrap_or_default())),
                    // The library names fewer candidates than may be asked for.
                    Err(VerifyError::Device(DeviceError::Argument { name, .. })) if name == "option" => {}
                    Err(error) => complaints.push(format!("{}: {error}", what())),
                }
            }
        }
    }
    (right, complaints)
}

#[test]
fn results_are_right() {
    if !has_libraries("results_are_right", &[]) {
        return;
    }
    let (right, complaints) = check(&mut device());
    assert_eq!(complaints, Vec::<String>::new());
    let count = |name: &str| right.get(name).copied().unwrap_or(0);
    let inputs = INPUTS.len() as u32;
    assert_eq!((count("cublas"), count("cublaslt")), (inputs, 3 * inputs), "{right:?}");
}

/// In each process one pair is exchanged in all calls of one routine: some inputs must show it. What reads beyond a matrix takes the device,
/// and with it the inputs that follow, so each routine has a process of its own.
fn is_noticed(test: &str, swapped: &str) {
    for (routine, each) in [("cublas", 1), ("cublaslt", 3)] {
        if !has_libraries(test, &[("FAKE_CUBLAS_SWAP", swapped), (ROUTINE, routine)]) {
            continue;
        }
        let (right, complaints) = check(&mut device());
        let most = each * INPUTS.len() as u32;
        assert!(right.values().all(|count| *count + 3 <= most), "{swapped}: {right:?}");
        assert!(complaints.len() >= 3, "{swapped}: {complaints:#?}");
        return;
    }
}

#[test]
fn sizes_in_the_wrong_order_are_noticed() {
    is_noticed("sizes_in_the_wrong_order_are_noticed", "m,n");
}

#[test]
fn matrices_in_the_wrong_order_are_noticed() {
    is_noticed("matrices_in_the_wrong_order_are_noticed", "a,b");
}

#[test]
fn leading_dimensions_in_the_wrong_order_are_noticed() {
    is_noticed("leading_dimensions_in_the_wrong_order_are_noticed", "lda,ldb");
}

#[test]
fn transpositions_in_the_wrong_order_are_noticed() {
    is_noticed("transpositions_in_the_wrong_order_are_noticed", "transa,transb");
}

#[test]
fn scalars_in_the_wrong_order_are_noticed() {
    is_noticed("scalars_in_the_wrong_order_are_noticed", "alpha,beta");
}
