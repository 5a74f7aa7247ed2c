//! Every routine found on this machine keeps the contract of a kernel: right results on awkward inputs, by one thread and by two.

use std::sync::Arc;
use tilewright_baselines::{LibraryGemm, SmallGemm, device_kernels, identity_of, inventory, kernels, select};
use tilewright_core::buffer::Filling;
use tilewright_core::computation::Computation;
use tilewright_core::data::Data;
use tilewright_core::device::Device;
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_core::dtype::DType;
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{AnyKernel, Bound, Problem, ProblemError};
use tilewright_core::program::{DeviceError, Step};
use tilewright_core::space::{Config, Point};
use tilewright_ops::gemm::{Accuracy, Batch, Gemm, GemmInput, Layout, ScalarClass};
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

/// Products of complex numbers of the same kinds, in every layout.
fn complex() -> Vec<GemmInput> {
    let classes = [ScalarClass::Zero, ScalarClass::One, ScalarClass::Other];
    let mut out = Vec::new();
    for (i, [m, n, k]) in
        [[7, 11, 13], [1, 1, 1], [33, 1, 40], [16, 16, 0], [0, 3, 2], [133, 65, 70]].into_iter().enumerate()
    {
        for (j, layout) in Layout::EVERY.into_iter().enumerate() {
            let tight = GemmInput::new(m, n, k, [DType::C32, DType::C64][(i + j) % 2], layout);
            let (lda, ldb, ldc) = (tight.lda + i % 3, tight.ldb + j % 2, tight.ldc + (i + j) % 2);
            let (alpha, beta) = (classes[(i + j + 1) % 3], classes[(2 * i + j) % 3]);
            let one = GemmInput { lda, ldb, ldc, alpha, beta, ..tight };
            out.push(GemmInput { batch: Batch::tight(1 + 2 * (j as u32 % 2), &one), ..one });
        }
    }
    out
}

/// Batches: strides with room, shared operands, overlapping ones.
fn batches() -> Vec<GemmInput> {
    let all = inputs().into_iter().step_by(3).enumerate();
    let batched = all.map(|(i, input)| {
        let mut batch = Batch::tight([2, 5, 3][i % 3], &input);
        match i % 4 {
            0 => batch.strides[0] = 0,
            1 => batch.strides[1] /= 2,
            2 => batch.strides = batch.strides.map(|stride| stride + 3),
            _ => {}
        }
        GemmInput { batch, ..input }
    });
    batched.collect()
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
        testkit::kernel(&kernel, &mut device, &[inputs(), batches()].concat(), &effort).unwrap();
    }
}

/// Right complex products of real and of exact data. Of special data libraries make what they like: all multiply by a complex alpha, whose
/// zero makes NaN of an infinity.
fn multiplies_complex_numbers(name: &str, accuracy: Accuracy) {
    let library = name.trim_end_matches("-3m");
    let Some(kernel) = LibraryGemm::of_host().into_iter().find(|kernel| kernel.id().name() == name) else {
        let missing = inventory().missing.iter().find(|missing| missing.name == library);
        return testkit::skip(
            library,
            missing.map_or("it is unknown, or has no such products", |missing| &missing.reason),
        );
    };
    assert_eq!(identity_of(&kernel.id()).map(|of| of.name), Some(library));
    let kernel = Arc::new(kernel);
    for (threads, mut input) in [1, 2].into_iter().flat_map(|threads| complex().into_iter().map(move |i| (threads, i)))
    {
        let mut device = toy::host_device_with(device(DeviceKind::Cpu, threads));
        input.accuracy = Accuracy::Full;
        let refused = kernel.accepts(&input).err().map(|e| e.to_string());
        let takes_three = "accuracy: full: three real products for a complex one take accuracy=3m";
        assert_eq!(refused.as_deref(), name.ends_with("-3m").then_some(takes_three));
        input.accuracy = accuracy;
        let problem = Bound::new(kernel.clone(), device.spec().clone(), input.clone()).unwrap();
        let program = problem.program(&problem.space().check(&[]).unwrap());
        for filling in [Filling::Real, Filling::Exact] {
            let work = Arc::new(problem.workload(filling, 1));
            device.upload(&Data::Given(work.clone())).unwrap();
            device.run(&program).unwrap();
            let expected = problem.reference(&work.buffers, &work.scalars).unwrap();
            let verdict = expected.compare(&device.read().unwrap());
            assert!(verdict.is_right(), "{name} {input:?}: {verdict:?}");
        }
    }
}

/// Whether the processor multiplies bytes as they are. Without it oneDNN adds their products in 16 bits, which saturate, and has no code for
/// bfloat16: comparisons find the first wrong and leave out both.
fn has_narrow_instructions() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx512vnni");
    #[cfg(not(target_arch = "x86_64"))]
    true
}

/// Runs a narrow product on real and on exact data; whether the library has code for it on this processor.
fn multiplies_narrow(problem: &dyn Problem, device: &Arc<DeviceSpec>) -> bool {
    if !has_narrow_instructions() && problem.input().get("dtype").is_some_and(|dtype| dtype.to_string() == "i8") {
        return false;
    }
    let program = problem.program(&problem.space().check(&problem.default_point().unwrap()).unwrap());
    let mut host = toy::host_device_with(device.clone());
    for filling in [Filling::Real, Filling::Exact] {
        let work = Arc::new(problem.workload(filling, 1));
        host.upload(&Data::Given(work.clone())).unwrap();
        match host.run(&program) {
            Err(DeviceError::Load(why)) if why.contains("it has no code for this") => return false,
            done => done.unwrap(),
        }
        let verdict = problem.compare(&work.buffers, &work.scalars, &host.read().unwrap()).unwrap();
        assert!(verdict.is_right(), "{}: {verdict:?}", problem.input());
    }
    true
}

/// Every library that takes narrow operands multiplies them right, in all layouts, with room between columns.
#[test]
fn libraries_multiply_narrow_operands() {
    let mut served = Vec::new();
    for (threads, layout) in [(1, "nn"), (2, "nt"), (1, "tn"), (2, "tt")] {
        let device = device(DeviceKind::Cpu, threads);
        for (dtype, sums) in [("f16", "f32"), ("bf16", "f32"), ("i8", "i32")] {
            for [m, n, k] in [[7, 11, 13], [1, 37, 5], [133, 129, 140]] {
                let types = format!("dtype={dtype},acc={sums},out={sums}");
                let input = format!("m={m},n={n},k={k},{types},layout={layout},lda=150,ldb=151,ldc=152");
                for kernel in kernels("gemm", &device) {
                    let Ok(problem) = kernel.problem(&device, &Config::parse(&input).unwrap()) else { continue };
                    if multiplies_narrow(&*problem, &device) {
                        served.push((kernel.id().name().to_owned(), dtype));
                    }
                }
            }
        }
    }
    if inventory().missing.iter().any(|missing| missing.name == "onednn") {
        return testkit::skip("onednn", "it is missing");
    }
    if !has_narrow_instructions() {
        return testkit::skip("avx512vnni", "oneDNN has no right products of bytes without it");
    }
    assert!(["bf16", "i8"].iter().all(|&dtype| served.contains(&("onednn".to_owned(), dtype))), "{served:?}");
}

#[test]
fn libraries_multiply_complex_numbers() {
    for accuracy in [Accuracy::Full, Accuracy::ThreeM] {
        ["gemm", "openblas", "blis", "mkl"].into_iter().for_each(|name| multiplies_complex_numbers(name, accuracy));
    }
    ["openblas-3m", "blis-3m", "mkl-3m"]
        .into_iter()
        .for_each(|name| multiplies_complex_numbers(name, Accuracy::ThreeM));
}

/// Small products, those among them that the library says it makes something for.
fn keeps_the_contract_small(library: &str, least: usize) {
    let Some(kernel) = SmallGemm::of_host().into_iter().find(|kernel| kernel.id().name() == library) else {
        let missing = inventory().missing.iter().find(|missing| missing.name == library);
        return testkit::skip(library, missing.map_or("it is unknown", |missing| &missing.reason));
    };
    let mut all = [inputs(), batches()].concat();
    for (i, [m, n, k]) in
        [[8, 8, 8], [16, 4, 64], [5, 3, 1], [31, 33, 32], [64, 64, 64], [128, 3, 100]].into_iter().enumerate()
    {
        for (j, layout) in Layout::ALL.into_iter().enumerate() {
            let beta = [ScalarClass::Zero, ScalarClass::One][(i + j) % 2];
            let one = GemmInput { beta, ..GemmInput::new(m, n, k, [DType::F32, DType::F64][i % 2], layout) };
            all.push(GemmInput { batch: Batch::tight(1 + 16 * (j as u32 % 2), &one), ..one });
        }
    }
    all.retain(|input| kernel.accepts(input).is_ok());
    assert!(all.len() >= least, "{library} accepts {} inputs", all.len());
    let kernel = Arc::new(kernel);
    let effort = Effort { probes: 4, runs: 1, ..Effort::default() };
    for threads in [1, 2] {
        let mut device = toy::host_device_with(device(DeviceKind::Cpu, threads));
        testkit::kernel(&kernel, &mut device, &all, &effort).unwrap();
    }
}

#[test]
fn nano_gemm_keeps_the_contract() {
    keeps_the_contract_small("nano-gemm", 30);
}

#[test]
fn libxsmm_keeps_the_contract() {
    keeps_the_contract_small("libxsmm", 6);
}

#[test]
fn what_small_routines_are_not_made_for_is_refused_by_field() {
    for kernel in SmallGemm::of_host() {
        let refused = |input: &GemmInput| kernel.accepts(input).err().map_or(String::new(), |e| e.field);
        let small = GemmInput::new(8, 8, 8, DType::F32, Layout::Nn);
        assert_eq!(refused(&small), "");
        assert_eq!(refused(&GemmInput::new(129, 128, 128, DType::F32, Layout::Nn)), "m");
        assert_eq!(refused(&GemmInput::new(8, 8, 0, DType::F32, Layout::Nn)), "k");
        assert_eq!(refused(&GemmInput::new(8, 8, 8, DType::F16, Layout::Nn)), "dtype");
        assert_eq!(refused(&GemmInput { alpha: ScalarClass::Zero, ..small.clone() }), "alpha");
        if kernel.id().name() == "libxsmm" {
            assert_eq!(refused(&GemmInput { alpha: ScalarClass::Other, ..small.clone() }), "alpha");
            assert_eq!(refused(&GemmInput { beta: ScalarClass::Other, ..small }), "beta");
        }
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
    assert_eq!(inventory.found.len() + inventory.missing.len(), 8);
    let gemms = inventory.found.len();
    let names = |selection: &str| -> Vec<String> {
        let found = select("gemm", &device, selection).unwrap();
        found.iter().map(|kernel| kernel.id().name().to_owned()).collect()
    };
    let (three, one): (Vec<String>, Vec<String>) = names("all").into_iter().partition(|name| name.ends_with("-3m"));
    assert_eq!(one.len(), gemms);
    assert!(three.iter().all(|name| one.contains(&name.replace("-3m", ""))), "{three:?}");
    assert_eq!(names("all")[..2], ["gemm", "matrixmultiply"]);
    for kernel in kernels("gemm", &device).iter().chain(&kernels("conv", &device)) {
        assert!(
            identity_of(&kernel.id()).is_some_and(|identity| inventory.found.contains(&identity)),
            "{}",
            kernel.id()
        );
    }
    assert_eq!(names("matrixmultiply, gemm"), ["matrixmultiply", "gemm"]);
    assert_eq!(names("none"), [""; 0]);
    let refused = |selection: &str| select("gemm", &device, selection).err().unwrap().to_string();
    assert!(refused("gemm,atlas").contains("atlas"), "{}", refused("gemm,atlas"));
    assert!(refused("gemm-3m").contains("unknown `gemm-3m`"), "{}", refused("gemm-3m"));
    for missing in &inventory.missing {
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
        // That of narrow operands leaves the others to the rest.
        let other = if kernel.id().name() == "onednn" { "f32" } else { "f16" };
        assert_eq!(refused(&format!("m=4,n=4,k=4,dtype={other}")), "dtype");
    }
    for kernel in LibraryGemm::of_cuda() {
        let one = GemmInput::new(4, 4, 4, DType::F32, Layout::Nn);
        assert_eq!(kernel.accepts(&GemmInput { batch: Batch::tight(2, &one), ..one }).unwrap_err().field, "batch");
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
