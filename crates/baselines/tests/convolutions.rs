//! Every library that computes convolutions keeps the contract of a kernel: right results on awkward inputs, by one thread and by
//! two; and what none of them computes is refused.

use std::sync::Arc;
use tilewright_baselines::{in_own_layout, inventory, is_in_own_layout, kernels, select};
use tilewright_core::buffer::{Buffers, Filling, Workload};
use tilewright_core::computation::Computation;
use tilewright_core::data::Data;
use tilewright_core::device::{Device, DeviceKind, DeviceSpec};
use tilewright_core::problem::{AnyKernel, Problem, ProblemError};
use tilewright_core::program::{DeviceError, Program};
use tilewright_core::space::Config;
use tilewright_ops::conv::Conv;
use tilewright_testkit::{self as testkit, toy};

fn device(threads: i64) -> Arc<DeviceSpec> {
    let mut spec = (*toy::device()).clone();
    spec.kind = DeviceKind::Cpu;
    spec.facts.insert("threads".to_owned(), threads);
    Arc::new(spec)
}

/// Small ones and odd ones: a single number, strides above the filter, padding, holes, groups, pointwise ones, and some with more
/// than one piece.
const SHAPES: [&str; 16] = [
    "n=1,c=1,h=1,k=1,r=1",
    "n=1,c=1,h=7,w=5,k=1,r=3,s=2,pad=1",
    "n=2,c=3,h=5,w=6,k=4,r=3,s=2,pad_h=2,pad_w=1",
    "n=2,c=5,h=9,w=8,k=7,r=2,stride=3",
    "n=3,c=4,h=9,w=7,k=6,r=1,stride_h=2,stride_w=3",
    "n=2,c=17,h=6,w=5,k=33,r=3,pad=2,dilation=2",
    "n=1,c=4,h=8,k=6,r=3,pad=1,groups=2",
    "n=2,c=32,h=7,k=32,r=3,pad=1,groups=2",
    "n=2,c=16,h=9,k=16,r=3,pad=1,groups=16,stride=2",
    "n=2,c=6,h=5,w=3,k=6,r=1,groups=3",
    "n=3,c=19,h=4,w=6,k=21,r=1",
    "n=1,c=2,h=6,w=9,k=5,r=6,s=9",
    "n=2,c=1,h=21,w=40,k=16,r=5,s=20,stride=2",
    "n=2,c=16,h=14,k=9,r=5,pad=2",
    "n=1,c=240,h=24,k=2,r=3,pad=1",
    "n=4,c=128,h=7,k=40,r=1,stride=2",
];

/// Those of which something is empty.
const EMPTY: [&str; 3] = ["n=0,c=2,h=3,k=2,r=2", "n=2,c=0,h=3,k=2,r=2", "n=2,c=3,h=3,k=0,r=1"];

/// The kernel of this name; the reason where its library is missing.
fn kernel(name: &str) -> Result<Arc<dyn AnyKernel>, String> {
    let found = select("conv", &device(1), name);
    found.map(|mut found| found.remove(0)).map_err(|e| e.to_string())
}

fn fields(shape: &str, more: &[(&str, &str)]) -> Config {
    let mut fields = Config::parse(shape).unwrap();
    fields.0.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())));
    fields
}

/// None where a library has nothing but the code that it is tested against.
fn run(device: &mut dyn Device, program: &Program, work: &Arc<Workload>) -> Option<Buffers> {
    device.upload(&Data::Given(work.clone())).unwrap();
    match device.run(program) {
        Err(DeviceError::Load(why)) if why.contains("other than its reference code") => None,
        done => {
            done.unwrap();
            Some(device.read().unwrap())
        }
    }
}

/// Runs the input on all kinds of data, one program for all, twice each; whether there is code for it.
fn is_right(kernel: &dyn AnyKernel, threads: i64, fields: &Config) -> bool {
    let spec = device(threads);
    let problem = kernel.problem(&spec, fields).unwrap_or_else(|e| panic!("{} on {fields}: {e}", kernel.id()));
    let program = program(&*problem);
    let mut device = toy::host_device_with(spec);
    for (seed, filling) in (1..).zip([Filling::Real, Filling::Exact, Filling::Special]) {
        let work = Arc::new(problem.workload(filling, seed));
        for _ in 0..2 {
            let Some(after) = run(&mut device, &program, &work) else { return false };
            let verdict = problem.compare(&work.buffers, &work.scalars, &after).unwrap();
            assert!(verdict.is_right(), "{} on {fields}, {filling:?}: {verdict:?}", kernel.id());
            let written = Conv.parse(fields).unwrap().written();
            for (i, (before, after)) in work.buffers.iter().zip(&after).enumerate() {
                assert!(
                    i == written || before.bytes() == after.bytes(),
                    "{} on {fields} wrote buffer {i}",
                    kernel.id()
                );
            }
        }
    }
    true
}

fn program(problem: &dyn Problem) -> Program {
    let point = problem.default_point().unwrap();
    problem.program(&problem.space().check(&point).unwrap())
}

/// All shapes in both layouts, one of them by two threads, in these element types and directions.
fn keeps_the_contract(library: &str, name: &str, dtypes: &[&str], directions: &[&str], shapes: &[&str]) {
    let kernel = match kernel(name) {
        Ok(kernel) => kernel,
        Err(why) => return testkit::skip(library, why),
    };
    let mut served = Vec::new();
    for (at, shape) in shapes.iter().enumerate() {
        let threads = if at % 2 == 0 { [1, 2] } else { [2, 1] };
        for (layout, threads) in ["nchw", "nhwc"].into_iter().zip(threads) {
            for (dtype, direction) in dtypes.iter().flat_map(|t| directions.iter().map(move |d| (t, d))) {
                let fields = fields(shape, &[("layout", layout), ("dtype", dtype), ("direction", direction)]);
                served.push(is_right(&*kernel, threads, &fields));
            }
        }
    }
    let count = served.iter().filter(|served| **served).count();
    // Binary32 has code on every processor; 16-bit numbers only where there are instructions for them.
    assert!(2 * count >= served.len(), "{name} has code for {count} of {} inputs", served.len());
}

fn patches_keep_the_contract(library: &str) {
    let shapes = [&SHAPES[..], &EMPTY].concat();
    keeps_the_contract(library, &format!("im2col-{library}"), &["f32", "f64"], &["forward"], &shapes);
}

#[test]
fn patches_by_the_crate_gemm() {
    patches_keep_the_contract("gemm");
}

#[test]
fn patches_by_the_crate_matrixmultiply() {
    patches_keep_the_contract("matrixmultiply");
}

#[test]
fn patches_by_openblas() {
    patches_keep_the_contract("openblas");
}

#[test]
fn patches_by_blis() {
    patches_keep_the_contract("blis");
}

#[test]
fn patches_by_mkl() {
    patches_keep_the_contract("mkl");
}

#[test]
fn onednn_in_its_own_layouts() {
    keeps_the_contract("onednn", "onednn", &["f32"], &["forward", "data", "filter"], &SHAPES);
}

#[test]
fn onednn_with_filters_in_its_own_layout() {
    keeps_the_contract("onednn", "onednn-filters", &["f32"], &["forward", "data", "filter"], &SHAPES);
}

#[test]
fn onednn_in_plain_layouts() {
    keeps_the_contract("onednn", "onednn-plain", &["f32"], &["forward", "data", "filter"], &SHAPES);
}

#[test]
fn onednn_that_keeps_its_layout_is_right_once() {
    let kernel = match kernel("onednn") {
        Ok(kernel) => in_own_layout(&[kernel]).remove(0),
        Err(why) => return testkit::skip("onednn", why),
    };
    assert_eq!(kernel.id().name(), "onednn-blocked");
    for (shape, direction) in SHAPES.iter().flat_map(|shape| ["forward", "data", "filter"].map(|d| (shape, d))) {
        let fields = fields(shape, &[("direction", direction)]);
        let spec = device(1);
        let problem = kernel.problem(&spec, &fields).unwrap();
        let mut device = toy::host_device_with(spec);
        let program = program(&*problem);
        let work = Arc::new(problem.workload(Filling::Exact, 1));
        let Some(after) = run(&mut device, &program, &work) else { continue };
        assert!(problem.compare(&work.buffers, &work.scalars, &after).unwrap().is_right(), "{fields}");
        device.run(&program).unwrap();
        let again = device.read().unwrap();
        assert!(
            problem.compare(&work.buffers, &work.scalars, &again).unwrap().is_right(),
            "{fields}: it writes what it wrote"
        );
    }
}

#[test]
fn a_kernel_that_is_right_once_competes_with_nobody() {
    let spec = device(1);
    assert!(kernels("conv", &spec).iter().all(|kernel| !is_in_own_layout(&kernel.id())));
    assert!(in_own_layout(&kernels("conv", &spec)).iter().all(|kernel| is_in_own_layout(&kernel.id())));
    assert!(in_own_layout(&select("conv", &spec, "im2col-gemm").unwrap()).is_empty());
    assert!(in_own_layout(&kernels("gemm", &spec)).is_empty());
}

#[test]
fn every_library_has_its_kernels_and_what_is_missing_says_why() {
    let (spec, inventory) = (device(1), inventory());
    let has_onednn = inventory.found.iter().any(|identity| identity.name == "onednn");
    let names: Vec<String> =
        select("conv", &spec, "all").unwrap().iter().map(|kernel| kernel.id().name().to_owned()).collect();
    // Those for small products unfold nothing.
    let others = ["onednn", "nano-gemm", "libxsmm"];
    let by_gemm = inventory.found.iter().filter(|identity| !others.contains(&identity.name));
    let mut expected: Vec<String> = by_gemm.map(|identity| format!("im2col-{}", identity.name)).collect();
    if has_onednn {
        expected.extend(["onednn", "onednn-filters", "onednn-plain"].map(String::from));
    }
    assert_eq!(names, expected);
    for missing in &inventory.missing {
        let names = match missing.name {
            "onednn" => ["onednn", "onednn-filters", "onednn-plain"].map(String::from).to_vec(),
            library => vec![format!("im2col-{library}")],
        };
        for name in names {
            let refused = select("conv", &spec, &name).err().unwrap().to_string();
            assert!(refused.contains(&missing.reason) && refused.contains(&name), "{refused}");
        }
    }
    let unknown = select("conv", &spec, "im2col-atlas").err().unwrap().to_string();
    assert!(unknown.contains("im2col-gemm"), "{unknown}");
}

#[test]
fn what_no_library_computes_is_refused_by_its_field() {
    let spec = device(1);
    for kernel in kernels("conv", &spec) {
        let refused =
            |more: &str| match kernel.problem(&spec, &Config::parse(&format!("n=2,c=3,h=4,k=2,r=1,{more}")).unwrap()) {
                Err(ProblemError::Input(e)) => e.field,
                other => format!("{:?}", other.map(|p| p.input())),
            };
        let name = kernel.id().name().to_owned();
        for (more, field) in [
            ("dtype=f16", "dtype"),
            ("dtype=bf16,out=f32", "dtype"),
            ("out=f64", "out"),
            ("acc=f64", "acc"),
            ("bias=1", "bias"),
            ("residual=1", "residual"),
            ("activation=relu", "activation"),
        ] {
            assert_eq!(refused(more), field, "{name} {more}");
        }
        if name.starts_with("im2col-") {
            assert_eq!(refused("direction=data"), "direction", "{name}");
            assert_eq!(refused("direction=filter"), "direction", "{name}");
        } else {
            assert_eq!(refused("dtype=f64"), "dtype", "{name}");
        }
    }
}
