//! Every routine found on this machine keeps the contract of a kernel: right results on awkward inputs, by one thread and by two.

use std::sync::Arc;
use tilewright_baselines::{LibraryGemm, device_kernels, inventory, kernels, select};
use tilewright_core::buffer::Filling;
use tilewright_core::computation::Computation;
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_core::dtype::DType;
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{AnyKernel, ProblemError};
use tilewright_core::program::Step;
use tilewright_core::space::{Config, Point};
use tilewright_ops::gemm::{Gemm, GemmInput, Layout, ScalarClass};
use tilewright_testkit::{self as testkit, Effort, toy};

fn device(kind: DeviceKind, threads: i64) -> Arc<DeviceSpec> {
    let mut spec = (*toy::device()).clone();
    spec.kind = kind;
    spec.facts.insert("threads".to_owned(), threads);
    Arc::new(spec)
}

/// Empty, padded and odd ones, every layout and class of scalar, and some beyond the sizes at which libraries begin to pack, block
/// and divide.
fn inputs() -> Vec<GemmInput> {
    let classes = [ScalarClass::Zero, ScalarClass::One, ScalarClass::Other];
    let sizes = [
        [7, 11, 13],
        [1, 1, 1],
        [33, 1, 40],
        [1, 37, 5],
        [16, 16, 0],
        [0, 3, 2],
        [40, 17, 9],
        [133, 129, 140],
        [65, 300, 33],
    ];
    let mut out = Vec::new();
    for (i, [m, n, k]) in sizes.into_iter().enumerate() {
        for (j, layout) in Layout::ALL.into_iter().enumerate() {
            let tight = GemmInput::new(m, n, k, [DType::F32, DType::F64][(i + j) % 2], layout);
            let (lda, ldb, ldc) = (tight.lda + i % 3, tight.ldb + j, tight.ldc + (i + j) % 2);
            let (alpha, beta) = (classes[(i + j + 1) % 3], classes[(2 * i + j) % 3]);
            out.push(GemmInput { lda, ldb, ldc, alpha, beta, ..tight });
        }
    }
    out
}

fn keeps_the_contract(library: &str) {
    let Some(kernel) = LibraryGemm::of_host().into_iter().find(|kernel| kernel.id().name() == library) else {
        let missing = inventory().missing.iter().find(|missing| missing.name == library);
        return testkit::skip(library, missing.map_or("it is unknown", |missing| &missing.reason));
    };
    let kernel = Arc::new(kernel);
    // Libraries may divide sums differently from call to call.
    let effort = Effort { probes: 4, runs: 1, repeatable: false, ..Effort::default() };
    for threads in [1, 2] {
        let mut device = toy::host_device_with(device(DeviceKind::Cpu, threads));
        testkit::kernel(&kernel, &mut device, &inputs(), &effort).unwrap();
    }
}

#[test]
fn gemm_keeps_the_contract() {
    keeps_the_contract("gemm");
}

#[test]
fn matrixmultiply_keeps_the_contract() {
    keeps_the_contract("matrixmultiply");
}

#[test]
fn openblas_keeps_the_contract() {
    keeps_the_contract("openblas");
}

#[test]
fn blis_keeps_the_contract() {
    keeps_the_contract("blis");
}

#[test]
fn mkl_keeps_the_contract() {
    keeps_the_contract("mkl");
}

#[test]
fn the_two_crates_are_always_there_and_the_rest_is_accounted_for() {
    let (device, inventory) = (device(DeviceKind::Cpu, 1), inventory());
    assert_eq!(inventory.found.len() + inventory.missing.len(), 6);
    let gemms = inventory.found.iter().filter(|identity| identity.name != "onednn").count();
    let names = |selection: &str| -> Vec<String> {
        let found = select("gemm", &device, selection).unwrap();
        found.iter().map(|kernel| kernel.id().name().to_owned()).collect()
    };
    assert_eq!(names("all").len(), gemms);
    assert_eq!(names("all")[..2], ["gemm", "matrixmultiply"]);
    assert_eq!(names("matrixmultiply, gemm"), ["matrixmultiply", "gemm"]);
    assert_eq!(names("none"), [""; 0]);
    let refused = |selection: &str| select("gemm", &device, selection).err().unwrap().to_string();
    assert!(refused("gemm,atlas").contains("atlas"), "{}", refused("gemm,atlas"));
    for missing in inventory.missing.iter().filter(|missing| missing.name != "onednn") {
        assert!(refused(missing.name).contains(&missing.reason));
    }
    assert!(kernels("sort", &device).is_empty());
}

#[test]
fn inputs_that_no_routine_computes_are_refused_by_field() {
    let device = device(DeviceKind::Cpu, 1);
    for kernel in kernels("gemm", &device) {
        let refused = |fields: &str| match kernel.problem(&device, &Config::parse(fields).unwrap()) {
            Err(ProblemError::Input(e)) => e.field,
            other => format!("{:?}", other.map(|p| p.input())),
        };
        assert_eq!(refused("m=4,n=4,k=4,dtype=f16"), "dtype");
        assert_eq!(refused("m=4,n=4,k=4,batch=2"), "batch");
    }
    let beyond = GemmInput { lda: 1 << 32, ..GemmInput::new(1, 1, 1, DType::F32, Layout::Nn) };
    assert_eq!(LibraryGemm::of_host()[0].accepts(&beyond).unwrap_err().field, "lda");
}

#[test]
fn routines_of_a_gpu_are_steps_of_programs() {
    let device = device(DeviceKind::Cuda, 1);
    let fields = Gemm.fields(&GemmInput::new(5, 6, 7, DType::F32, Layout::Tn));
    let calls = LibraryGemm::of_cuda().into_iter().map(|kernel| {
        let problem = kernel.erased().problem(&device, &fields).unwrap();
        let params = problem.space().params().iter();
        let last = Point(params.map(|param| param.values.len() as u16 - 1).collect());
        let program = problem.program(&problem.space().check(&last).unwrap());
        match &program.steps[..] {
            [Step::Library(call)] => (call.library.clone(), call.option, call.input == fields),
            other => panic!("{other:?}"),
        }
    });
    let expected = [("cublas".to_owned(), 0, true), ("cublaslt".to_owned(), 63, true)];
    assert_eq!(calls.collect::<Vec<_>>(), expected);
}

#[test]
fn convolutions_of_a_gpu_are_steps_of_programs() {
    let device = device(DeviceKind::Cuda, 1);
    let kernels = device_kernels("conv");
    let names: Vec<String> = kernels.iter().map(|kernel| kernel.id().name().to_owned()).collect();
    assert_eq!(names, ["cudnn", "cudnn-precomp"]);
    let program = |kernel: &dyn AnyKernel, fields: &str| {
        let problem = kernel.problem(&device, &Config::parse(fields).unwrap())?;
        let params = problem.space().params().iter();
        let last = Point(params.map(|param| param.values.len() as u16 - 1).collect());
        let program = problem.program(&problem.space().check(&last).unwrap());
        let filling = problem.checked_on(Filling::Exact);
        match &program.steps[..] {
            [Step::Library(call)] if call.input == problem.input() => Ok((call.library.clone(), call.option, filling)),
            other => panic!("{other:?}"),
        }
    };
    let whole = |kernel: usize| program(&*kernels[kernel], "n=2,c=4,h=9,k=6,r=3").unwrap();
    // Winograd's and Fourier's algorithms are exact on no integers; the one that is asked for by its number is.
    assert_eq!(whole(0), ("cudnn".to_owned(), 7, Filling::Real));
    assert_eq!(whole(1), ("cudnn".to_owned(), (1 << 16) + 1, Filling::Exact));
    let refused = |kernel: usize, more: &str| match program(&*kernels[kernel], &format!("n=2,c=4,h=9,k=6,r=3,{more}")) {
        Err(ProblemError::Input(e)) => e.field,
        other => format!("{other:?}"),
    };
    for kernel in [0, 1] {
        assert_eq!(refused(kernel, "residual=true"), "residual");
        assert_eq!(refused(kernel, "activation=relu"), "activation");
        assert_eq!(refused(kernel, "dtype=bf16"), "dtype");
        assert_eq!(refused(kernel, "dtype=f16,acc=f16"), "acc");
        assert!(refused(kernel, "dtype=f16").starts_with("Ok"));
        assert!(refused(kernel, "dtype=f64,groups=2,dilation=2,layout=nhwc").starts_with("Ok"));
    }
    assert!(refused(0, "direction=data").starts_with("Ok"));
    assert_eq!(refused(1, "direction=filter"), "direction");
    // Asked for by name it is there, or there is a reason.
    if let Err(error) = select("conv", &device, "cudnn-precomp") {
        assert!(error.to_string().contains("missing") && error.to_string().contains("cudnn"), "{error}");
    }
    assert!(device_kernels("sort").is_empty());
}
