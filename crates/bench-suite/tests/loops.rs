//! Kernels of loops give the reference's results as PTX on the emulator and as machine code of this host.

use std::sync::Arc;
use tilewright_core::problem::Executor;
use tilewright_cpu::{CpuDevice, host_program};
use tilewright_emulator::EmulatorDevice;
use tilewright_loops::library::{Case, Scale, measurement_set, test_set};
use tilewright_loops::{Instance, reference};
use tilewright_ptxgen::loops::program;
use tilewright_ptxgen::target::Target;
use tilewright_ptxgen::verify::verify;

fn library() -> Vec<Case> {
    let mut cases = measurement_set(Scale::Tiny).unwrap();
    cases.extend(test_set(Scale::Tiny).unwrap());
    assert!(cases.len() > 30, "{}", cases.len());
    cases
}

/// Runs on a device and compares with the reference.
fn check(name: &str, instance: &Instance, device: &mut dyn Executor, program: &tilewright_core::program::Program) {
    let work = instance.workload(7);
    let expected = reference(instance, &work.buffers);
    let mut loaded = device.prepare(program, &work).unwrap_or_else(|e| panic!("{name}: {e}"));
    loaded.run().unwrap_or_else(|e| panic!("{name}: {e}"));
    let verdict = expected.compare(&loaded.read().unwrap());
    assert!(verdict.is_right(), "{name}: {verdict:?}");
}

#[test]
fn the_library_is_right_on_the_emulator() {
    let target: Target = "sm_80".parse().unwrap();
    let mut device = EmulatorDevice::new(Arc::new(target.spec())).unwrap();
    for case in library() {
        let name = format!("{} {}", case.class, case.name);
        let (module, program) = program(&case.instance, target).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(verify(&module), [], "{name}");
        check(&name, &case.instance, &mut device, &program);
    }
}

#[test]
fn the_library_is_right_on_this_host() {
    let mut device = CpuDevice::new(2).unwrap();
    for case in library() {
        let name = format!("{} {}", case.class, case.name);
        let program = host_program(&case.instance, 2).unwrap_or_else(|e| panic!("{name}: {e}"));
        check(&name, &case.instance, &mut device, &program);
    }
}
