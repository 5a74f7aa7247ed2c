//! The CUDA device of the runtime on the fake driver: what it gives, and what it says of kernels that are wrong.
//!
//! A program finds its driver when it starts, so each test starts itself again with the fake one in its place.

#![cfg(target_os = "linux")]

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tilewright_core::buffer::{Buffer, BufferSpec, Role, Workload};
use tilewright_core::data::Data;
use tilewright_core::device::Device;
use tilewright_core::dtype::DType;
use tilewright_core::measurement::{CachePolicy, FailureKind, Timing};
use tilewright_core::problem::MeasureError;
use tilewright_core::program::{
    Arg, Attributes, Code, DeviceError, Launch, Program, ScalarClass, ScalarSpec, Step, TensorMap,
};
use tilewright_runtime::cuda::CudaDevice;

/// Whether this process has the fake driver. If not, the test has run, and passed, in one that has.
fn has_driver(test: &str) -> bool {
    const MARK: &str = "FAKE_CUDA_TEST";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let this = std::env::current_exe().unwrap();
    let library = this.parent().unwrap().join("libtilewright_fake_cuda.so");
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(&library, folder.path().join("libcuda.so")).unwrap();
    let ran = Command::new(this)
        .args([test, "--exact", "--nocapture"])
        .env(MARK, "1")
        .env("LD_LIBRARY_PATH", folder.path())
        // Nothing that assembles: its machine code is not for this driver.
        .env("PATH", folder.path())
        .env_remove("TILEWRIGHT_PTXAS")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    false
}

/// A kernel on `x` (binary32) with `%r1` the thread's number in its block, `%rd1` the address of its element, and this body.
fn text(body: &str) -> String {
    format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 x)\n{{\n\
         .reg .pred %p<4>; .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %rd<4>;\n.shared .align 4 .b8 s[4096];\n\
         ld.param.u64 %rd1, [x]; cvta.to.global.u64 %rd1, %rd1; mov.u32 %r1, %tid.x;\n\
         mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;\n{body}\nret;\n}}\n"
    )
}

const DOUBLE: &str = "ld.global.f32 %f1, [%rd1]; add.f32 %f1, %f1, %f1; st.global.f32 [%rd1], %f1;";

fn program(body: &str, threads: u32, shared_bytes: u32) -> Program {
    let code = Code::Ptx { text: text(body), entry: "k".into() };
    Program::launch(Launch::new(code, [1; 3], [threads, 1, 1], vec![Arg::Buffer(0, 0)]).sharing(shared_bytes))
}

fn four() -> Data {
    let mut buffer = Buffer::zeroed(DType::F32, 4);
    buffer.as_mut_slice::<f32>().copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
    let specs = vec![BufferSpec { name: "x", dtype: DType::F32, len: 4, role: Role::InOut }];
    Data::Given(Arc::new(Workload { specs, buffers: vec![buffer], scalars: Vec::new() }))
}

fn device() -> CudaDevice {
    let mut device = CudaDevice::open(0).unwrap();
    device.upload(&four()).unwrap();
    device
}

#[test]
fn programs_run_and_results_come_back() {
    if !has_driver("programs_run_and_results_come_back") {
        return;
    }
    let mut device = device();
    let environment = device.environment();
    assert_eq!((device.spec().fact("sm"), environment.assembler.as_deref()), (Some(80), Some("the driver")));
    assert!(environment.driver.is_some_and(|driver| driver.starts_with("CUDA 12.9")));
    device.run(&program(DOUBLE, 4, 0)).unwrap();
    assert_eq!(device.read().unwrap()[0].as_slice::<f32>(), [2.0, 4.0, 6.0, 8.0]);
    // More shared memory than a block has without asking.
    device.run(&program(DOUBLE, 4, 100 << 10)).unwrap();
    assert_eq!(device.read().unwrap()[0].as_slice::<f32>(), [4.0, 8.0, 12.0, 16.0]);
}

#[test]
fn short_programs_are_timed_without_their_launches() {
    if !has_driver("short_programs_are_timed_without_their_launches") {
        return;
    }
    let mut device = device();
    let warm = device.time(&program(DOUBLE, 4, 0), &Timing::default()).unwrap();
    let cold = Timing { cache: CachePolicy::Cold, ..Timing::default() };
    let cold = device.time(&program(DOUBLE, 4, 0), &cold).unwrap();
    // A run in a graph costs the driver less than one by itself.
    assert!(warm.time_s > 0.0 && warm.time_s < 0.5 * cold.time_s, "{warm:?} {cold:?}");
    assert!(warm.relative_error < 1e-6, "{warm:?}");
    let cut = Timing { cut_off: Some(Duration::from_nanos(1)), ..Timing::default() };
    let found = device.time(&program(DOUBLE, 4, 0), &cut);
    assert!(matches!(found, Err(MeasureError::Failed(f)) if f.kind == FailureKind::CutOff));
}

#[test]
fn what_cannot_be_launched_is_an_argument() {
    if !has_driver("what_cannot_be_launched_is_an_argument") {
        return;
    }
    let mut device = device();
    let mut refused = |program: &Program| device.run(program).unwrap_err();
    assert!(matches!(refused(&program(DOUBLE, 2048, 0)), DeviceError::Argument { name, .. } if name == "launch"));
    let shared = refused(&program(DOUBLE, 4, 1 << 20));
    assert!(matches!(shared, DeviceError::Argument { name, .. } if name == "shared_bytes"));
    let wrong = refused(&program("no.such.instruction %r1;", 4, 0));
    assert!(matches!(&wrong, DeviceError::Load(log) if log.contains("no")), "{wrong}");
    let mut many = program(DOUBLE, 4, 0);
    if let Step::Launch(launch) = &mut many.steps[0] {
        launch.args.push(Arg::U32(7));
    }
    assert!(matches!(refused(&many), DeviceError::Argument { .. }));
    let changed = |change: fn(&mut Launch)| {
        let mut program = program(DOUBLE, 4, 0);
        let Step::Launch(launch) = &mut program.steps[0] else { unreachable!() };
        change(launch);
        program
    };
    let pairs = changed(|l| (l.grid, l.cluster) = ([2, 1, 1], Some([2, 1, 1])));
    assert!(matches!(refused(&pairs), DeviceError::Unsupported { .. }));
    let map = changed(|l| l.args[0] = Arg::TensorMap(TensorMap::new(0, DType::F32, vec![4], vec![], vec![4])));
    assert!(matches!(refused(&map), DeviceError::Unsupported { feature, .. } if feature == "tensor maps"));
    let beyond = changed(|l| l.attributes = Attributes { max_shared_bytes: Some(1 << 20), ..l.attributes });
    assert!(matches!(refused(&beyond), DeviceError::Argument { name, .. } if name == "shared_bytes"));
    let full = changed(|l| l.attributes = Attributes { shared_carveout: Some(101), ..l.attributes });
    assert!(matches!(refused(&full), DeviceError::Argument { name, .. } if name == "shared_carveout"));
    let alone = changed(|l| {
        l.cluster = Some([1; 3]);
        l.attributes = Attributes { shared_carveout: Some(50), ..l.attributes };
    });
    // None of it touched the device.
    device.run(&program(DOUBLE, 4, 0)).unwrap();
    assert_eq!(device.read().unwrap()[0].as_slice::<f32>(), [2.0, 4.0, 6.0, 8.0]);
    // A cluster of one block, and a wish.
    device.run(&alone).unwrap();
    assert_eq!(device.read().unwrap()[0].as_slice::<f32>(), [4.0, 8.0, 12.0, 16.0]);
}

#[test]
fn scalars_that_a_program_was_not_made_for_are_refused() {
    if !has_driver("scalars_that_a_program_was_not_made_for_are_refused") {
        return;
    }
    let mut device = device();
    let Data::Given(work) = four() else { unreachable!("data are given") };
    let given = |scalars: &[f64]| Data::Given(Arc::new(Workload { scalars: scalars.to_vec(), ..(*work).clone() }));
    let one = program(DOUBLE, 4, 0).taking(vec![ScalarSpec { name: "alpha", class: ScalarClass::Exactly(1.0) }]);
    for scalars in [&[2.0][..], &[]] {
        device.upload(&given(scalars)).unwrap();
        let error = device.run(&one).unwrap_err();
        assert!(matches!(&error, DeviceError::Argument { name, .. } if name == "alpha"), "{error}");
        assert!(matches!(device.time(&one, &Timing::default()), Err(MeasureError::Failed(_))));
    }
    assert_eq!(device.read().unwrap()[0].as_slice::<f32>(), [1.0, 2.0, 3.0, 4.0]);
    device.upload(&given(&[1.0])).unwrap();
    device.run(&one).unwrap();
    assert_eq!(device.read().unwrap()[0].as_slice::<f32>(), [2.0, 4.0, 6.0, 8.0]);
}

#[test]
fn data_that_do_not_fit_leave_the_device_whole() {
    if !has_driver("data_that_do_not_fit_leave_the_device_whole") {
        return;
    }
    let mut device = device();
    let specs = vec![BufferSpec { name: "x", dtype: DType::F32, len: 1 << 29, role: Role::In }];
    let found = device.upload(&Data::Noise { specs, scalars: Vec::new(), seed: 0 });
    assert!(matches!(found, Err(DeviceError::OutOfMemory { need, .. }) if need > 1 << 31), "{found:?}");
    assert!(matches!(device.run(&program(DOUBLE, 4, 0)), Err(DeviceError::Run(_))));
    device.upload(&four()).unwrap();
    device.run(&program(DOUBLE, 4, 0)).unwrap();
}

#[test]
fn a_write_behind_a_buffer_is_seen() {
    if !has_driver("a_write_behind_a_buffer_is_seen") {
        return;
    }
    let mut device = device();
    device.run(&program("st.global.f32 [%rd1+16], 0f00000000;", 1, 0)).unwrap();
    let found = device.read().unwrap_err();
    assert!(matches!(&found, DeviceError::Fault(m) if m.contains("0 bytes behind a buffer of 16")), "{found}");
}

#[test]
fn a_fault_takes_the_device() {
    if !has_driver("a_fault_takes_the_device") {
        return;
    }
    let mut device = device();
    let far = "add.u64 %rd1, %rd1, 1048576; st.global.f32 [%rd1], 0f00000000;";
    assert!(matches!(device.run(&program(far, 4, 0)), Err(DeviceError::Fault(_))));
    assert!(matches!(device.read(), Err(DeviceError::Fault(_))));
    // Its handles cannot be given back, and nothing comes of trying.
    drop(device);
}

#[test]
fn a_kernel_that_hangs_is_given_up() {
    if !has_driver("a_kernel_that_hangs_is_given_up") {
        return;
    }
    let mut device = device().with_limit(Duration::from_millis(50));
    let found = device.run(&program("L: bra L;", 1, 0));
    assert!(matches!(found, Err(DeviceError::Hang { after_ms }) if after_ms >= 50), "{found:?}");
    // Freeing would wait for the kernel.
    let began = Instant::now();
    drop(device);
    assert!(began.elapsed() < Duration::from_secs(1));
}
