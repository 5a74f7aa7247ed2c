//! Kernels of loops give the reference's results as PTX on the emulator and as machine code of this host, and are counted as they
//! run.

use std::collections::BTreeMap;
use std::sync::Arc;
use tilewright_core::counts::Property;
use tilewright_core::data::Data;
use tilewright_core::device::Device;
use tilewright_core::dtype::DType::F32;
use tilewright_core::program::{Code, Launch, Step};
use tilewright_cpu::{CpuDevice, host_program};
use tilewright_emulator::{EmulatorDevice, Report};
use tilewright_loops::kernel::{Axis, each, load, store};
use tilewright_loops::library::{Case, Scale, measurement_set, test_set};
use tilewright_loops::{Array, Instance, LoopKernel, reference};
use tilewright_ptxgen::loops::{count, program};
use tilewright_ptxgen::target::Target;
use tilewright_ptxgen::verify::verify;

fn library() -> Vec<Case> {
    let mut cases = measurement_set(Scale::Tiny).unwrap();
    cases.extend(test_set(Scale::Tiny).unwrap());
    assert!(cases.len() > 30, "{}", cases.len());
    cases
}

/// Runs on a device and compares with the reference.
fn check(name: &str, instance: &Instance, device: &mut dyn Device, program: &tilewright_core::program::Program) {
    let work = instance.workload(7);
    let expected = reference(instance, &work.buffers);
    device.upload(&Data::Given(Arc::new(work))).unwrap_or_else(|e| panic!("{name}: {e}"));
    device.run(program).unwrap_or_else(|e| panic!("{name}: {e}"));
    let verdict = expected.compare(&device.read().unwrap());
    assert!(verdict.is_right(), "{name}: {verdict:?}");
}

/// Threads that execute each operation, by the symbolic counter.
fn counted(instance: &Instance, target: Target) -> BTreeMap<String, u64> {
    let counts = count(instance.kernel(), target).unwrap_or_else(|e| panic!("{}: {e}", instance.kernel().name));
    let mut evaluator = counts.evaluator();
    let properties = evaluator.properties().to_vec();
    let values = evaluator.eval_by(|size| instance.sizes().get(size).copied()).unwrap();
    let threads = properties.iter().zip(values).filter_map(|(property, value)| match property {
        Property::Threads(op) if *value > 0 => Some((op.to_string(), u64::try_from(*value).unwrap())),
        _ => None,
    });
    threads.collect()
}

/// The same by the emulator.
fn run(report: &Report) -> BTreeMap<String, u64> {
    let tallies = report.counts.by_class().into_iter().filter(|(_, tally)| tally.threads > 0);
    tallies.map(|(class, tally)| (class.to_string(), tally.threads)).collect()
}

#[test]
fn the_library_is_right_on_the_emulator() {
    let target: Target = "sm_80".parse().unwrap();
    let mut device = EmulatorDevice::new(Arc::new(target.spec())).unwrap();
    let log = device.log();
    for case in library() {
        let name = format!("{} {}", case.class, case.name);
        let (module, program) = program(&case.instance, target).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(verify(&module), [], "{name}");
        check(&name, &case.instance, &mut device, &program);
        let report = log.take().pop().unwrap();
        assert_eq!(counted(&case.instance, target), run(&report), "{name}");
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

#[test]
fn vector_loops_join_neighbours() {
    let kernel = LoopKernel::new("joined")
        .domain("i", "n")
        .multiple("n", 4)
        .array(Array::input("a", F32, ["n"]))
        .array(Array::output("to", F32, ["n"]))
        .stmt(each("i", [store("to", ["i"], load("a", ["i"]) * 2.0)]))
        .split("i", 4, "io", "iv")
        .and_then(|k| k.spread("io", 32, Axis::X, "ig", "it"))
        .and_then(|k| k.vectorize("iv"))
        .unwrap();
    let instance = Instance::new(kernel, &[("n", 256)].into()).unwrap();
    let target: Target = "sm_80".parse().unwrap();
    let (module, program) = program(&instance, target).unwrap();
    assert_eq!(verify(&module), []);
    let Step::Launch(Launch { code: Code::Ptx { text, .. }, .. }) = &program.steps[0] else { panic!("no launch") };
    assert!(text.contains("ld.global.v4.f32") && text.contains("st.global.v4.f32"), "{text}");
    let mut device = EmulatorDevice::new(Arc::new(target.spec())).unwrap();
    check("joined", &instance, &mut device, &program);
    check("joined", &instance, &mut CpuDevice::new(1).unwrap(), &host_program(&instance, 1).unwrap());
}
