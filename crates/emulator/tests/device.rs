//! The emulator as core's device.

use std::collections::BTreeMap;
use std::sync::Arc;
use tilewright_core::buffer::{Buffer, BufferSpec, Role, Workload};
use tilewright_core::counts::{Op, Property, Space};
use tilewright_core::data::Data;
use tilewright_core::device::{Device, DeviceKind, DeviceSpec, GridPart};
use tilewright_core::dtype::DType;
use tilewright_core::measurement::Timing;
use tilewright_core::problem::MeasureError;
use tilewright_core::program::{Arg, Attributes, Code, DeviceError, Launch, Program, Step, TensorMap};
use tilewright_emulator::{Behaviour, EmulatorDevice};

/// y = alpha x through the workspace, and whatever stands in the workspace's second half.
const SCALE: &str = "
.version 7.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 x, .param .u64 y, .param .f32 alpha, .param .u32 n)
{
  .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<6>; .reg .f32 %f<3>;
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.f32 %f1, [alpha]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x; setp.ge.u32 %p1, %r2, %r1; @%p1 ret;
  mul.wide.u32 %rd3, %r2, 4; add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;
  ld.global.f32 %f2, [%rd4]; mul.f32 %f2, %f2, %f1; st.global.f32 [%rd5], %f2;
  ret;
}";

fn spec(sm: i64) -> Arc<DeviceSpec> {
    Arc::new(DeviceSpec {
        id: format!("emulator:sm_{sm}"),
        name: "emulated".into(),
        kind: DeviceKind::Emulator,
        driver: "1".into(),
        facts: BTreeMap::from([("sm".to_owned(), sm)]),
        measured: BTreeMap::new(),
    })
}

fn workload() -> Workload {
    let spec = |name, role| BufferSpec { name, dtype: DType::F32, len: 10, role };
    let mut x = Buffer::zeroed(DType::F32, 10);
    (0..10).for_each(|i| x.set_f64(i, i as f64));
    let y = Buffer::zeroed(DType::F32, 10);
    Workload { specs: vec![spec("x", Role::In), spec("y", Role::Out)], buffers: vec![x, y], scalars: vec![3.0] }
}

fn given(work: Workload) -> Data {
    Data::Given(Arc::new(work))
}

fn step(from: Arg, to: Arg, n: u32) -> Step {
    let code = Code::Ptx { text: SCALE.into(), entry: "scale".into() };
    Step::Launch(Launch::new(code, [1; 3], [32, 1, 1], vec![from, to, Arg::Scalar(0), Arg::U32(n)]))
}

fn program(steps: Vec<Step>) -> Program {
    Program::new(steps, 40)
}

#[test]
fn a_device_that_behaves_otherwise_says_so() {
    let behaviour: Behaviour = "mma=truncated:schedule=7".parse().unwrap();
    let mut device = EmulatorDevice::new(spec(80)).unwrap().with_behaviour(behaviour);
    assert_eq!(device.spec().id, "emulator:sm_80:mma=truncated:schedule=7");
    device.upload(&given(workload())).unwrap();
    device.run(&program(vec![step(Arg::Buffer(0, 0), Arg::Buffer(1, 0), 10)])).unwrap();
    let reports: Vec<Behaviour> = device.log().take().iter().map(|report| report.behaviour).collect();
    assert_eq!(reports, [behaviour]);
    let plain = EmulatorDevice::new(spec(80)).unwrap().with_behaviour(Behaviour::default());
    assert_eq!(plain.spec().id, "emulator:sm_80");
}

#[test]
fn a_program_runs_over_its_workspace() {
    let mut device = EmulatorDevice::new(spec(80)).unwrap();
    let there = step(Arg::Buffer(0, 0), Arg::Workspace(0), 10);
    let back = step(Arg::Workspace(0), Arg::Buffer(1, 0), 10);
    let there_and_back = program(vec![there, back]);
    device.upload(&given(workload())).unwrap();
    device.run(&there_and_back).unwrap();
    let after = device.read().unwrap();
    let found: Vec<f64> = (0..10).map(|i| after[1].get_f64(i)).collect();
    assert_eq!(found, (0..10).map(|i| 9.0 * f64::from(i)).collect::<Vec<_>>());
    assert_eq!(device.log().take().len(), 2);
    // Other data, the same program; then another program on the data.
    let mut other = workload();
    other.buffers[0].set_f64(4, 100.0);
    device.upload(&given(other)).unwrap();
    device.run(&there_and_back).unwrap();
    assert_eq!(device.read().unwrap()[1].get_f64(4), 900.0);
    device.run(&program(vec![step(Arg::Buffer(0, 0), Arg::Buffer(1, 0), 10)])).unwrap();
    assert_eq!(device.read().unwrap()[1].get_f64(4), 300.0);
    let timed = device.time(&there_and_back, &Timing::default());
    assert!(matches!(timed, Err(MeasureError::Device(DeviceError::Unsupported { .. }))), "{timed:?}");
}

#[test]
fn what_was_not_written_or_is_not_there_fails_the_run() {
    let mut device = EmulatorDevice::new(spec(80)).unwrap();
    let from_workspace = program(vec![step(Arg::Workspace(0), Arg::Buffer(1, 0), 10)]);
    device.upload(&given(workload())).unwrap();
    let Err(DeviceError::Run(message)) = device.run(&from_workspace) else { panic!() };
    assert!(message.contains("nobody has written") && message.contains("scale"), "{message}");
    let fill = Step::Fill { offset: 0, bytes: 40, value: 0 };
    let filled = program([vec![fill], from_workspace.steps].concat());
    device.run(&filled).unwrap();
    let beyond = program(vec![step(Arg::Buffer(0, 4), Arg::Buffer(1, 0), 10)]);
    let Err(DeviceError::Run(message)) = device.run(&beyond) else { panic!() };
    assert!(message.contains("out of bounds") && message.contains("\"x\" (40 bytes)"), "{message}");
    let mut tolerant = EmulatorDevice::new(spec(80)).unwrap().tolerant();
    tolerant.upload(&given(workload())).unwrap();
    tolerant.run(&beyond).unwrap();
    assert_eq!(tolerant.log().take()[0].findings.len(), 1);
}

#[test]
fn programs_that_do_not_fit_are_refused() {
    let refuse = |device: &mut EmulatorDevice, steps: Vec<Step>| {
        device.upload(&given(workload())).unwrap();
        device.run(&program(steps)).unwrap_err()
    };
    let good = || step(Arg::Buffer(0, 0), Arg::Buffer(1, 0), 10);
    let mut old = EmulatorDevice::new(spec(70)).unwrap();
    assert!(matches!(refuse(&mut old, vec![good()]), DeviceError::Unsupported { .. }));
    let mut device = EmulatorDevice::new(spec(90)).unwrap();
    assert!(matches!(
        refuse(&mut device, vec![step(Arg::Buffer(7, 0), Arg::Buffer(1, 0), 1)]),
        DeviceError::Argument { .. }
    ));
    let with = |code: Code| match good() {
        Step::Launch(launch) => Step::Launch(Launch { code, ..launch }),
        other => other,
    };
    let text = |text: &str, entry: &str| with(Code::Ptx { text: text.into(), entry: entry.into() });
    assert!(matches!(refuse(&mut device, vec![text("nonsense", "scale")]), DeviceError::Load(_)));
    assert!(matches!(refuse(&mut device, vec![text(SCALE, "other")]), DeviceError::Load(_)));
    let c = with(Code::Library { path: "none.so".into(), entry: String::new() });
    assert!(matches!(refuse(&mut device, vec![c]), DeviceError::Unsupported { .. }));
    let changed = |change: fn(&mut Launch)| match good() {
        Step::Launch(mut launch) => {
            change(&mut launch);
            vec![Step::Launch(launch)]
        }
        other => vec![other],
    };
    let map = |l: &mut Launch| {
        l.args[0] = Arg::TensorMap(TensorMap::new(0, DType::F32, vec![4, 2], vec![16], vec![4, 2]));
    };
    assert!(
        matches!(refuse(&mut device, changed(map)), DeviceError::Unsupported { feature, .. } if feature == "tensor maps")
    );
    let clustered = changed(|l| (l.grid, l.cluster) = ([2, 1, 1], Some([2, 1, 1])));
    assert!(matches!(refuse(&mut device, clustered), DeviceError::Unsupported { .. }));
    let apart = changed(|l| l.cluster = Some([2, 1, 1]));
    assert!(matches!(refuse(&mut device, apart), DeviceError::Argument { name, .. } if name == "cluster"));
    let less = changed(|l| l.attributes = Attributes { max_shared_bytes: Some(1), ..l.attributes });
    device.upload(&given(workload())).unwrap();
    device.run(&program(less)).unwrap();
    device.run(&program(changed(|l| l.cluster = Some([1; 3])))).unwrap();
    let other = text(&SCALE.replace("sm_80", "sm_80a"), "scale");
    assert!(matches!(refuse(&mut device, vec![other]), DeviceError::Unsupported { .. }));
    let fill = Step::Fill { offset: 8, bytes: 40, value: 0 };
    assert!(matches!(refuse(&mut device, vec![fill]), DeviceError::Argument { .. }));
    assert!(EmulatorDevice::new(Arc::new(DeviceSpec { facts: BTreeMap::new(), ..(*spec(80)).clone() })).is_err());
}

#[test]
fn constants_and_structures_are_passed_by_value() {
    // A structure of two numbers, a byte and a double: y[0] = a * b + c + d.
    const SUM: &str = ".version 7.0\n.target sm_80\n.address_size 64\n\
        .visible .entry sum(.param .u64 y, .param .align 8 .b8 s[8], .param .u8 c, .param .f64 d)\n{\n\
        .reg .u64 %rd<2>; .reg .f32 %f<4>; .reg .u32 %r<2>; .reg .f64 %d<2>; .reg .u16 %h<2>;\n\
        ld.param.u64 %rd1, [y]; ld.param.f32 %f1, [s]; ld.param.f32 %f2, [s+4]; ld.param.u8 %h1, [c];\n\
        ld.param.f64 %d1, [d]; cvt.u32.u16 %r1, %h1; cvt.rn.f32.u32 %f3, %r1; fma.rn.f32 %f1, %f1, %f2, %f3;\n\
        cvt.rn.f32.f64 %f2, %d1; add.f32 %f1, %f1, %f2; st.global.f32 [%rd1], %f1; ret;\n}\n";
    let mut device = EmulatorDevice::new(spec(80)).unwrap();
    device.upload(&given(workload())).unwrap();
    let pair = [1.5f32.to_le_bytes(), 4f32.to_le_bytes()].concat();
    let args = vec![Arg::Buffer(1, 0), Arg::Struct { bytes: pair, align: 8 }, Arg::U8(200), Arg::F64(0.25)];
    let code = Code::Ptx { text: SUM.into(), entry: "sum".into() };
    device.run(&Program::launch(Launch::new(code, [1; 3], [1; 3], args))).unwrap();
    assert_eq!(device.read().unwrap()[1].get_f64(0), 206.25);
}

/// y[i] = c[0] of constant memory, in blocks of 32.
const CONSTANT: &str = ".version 7.0 .target sm_80 .address_size 64 .const .align 4 .b8 c[48];
    .visible .entry k(.param .u64 y) { .reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .f32 %f<2>;
      ld.param.u64 %rd1, [y]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r1, 32, %r2;
      mul.wide.u32 %rd2, %r3, 4; add.u64 %rd3, %rd1, %rd2; ld.const.f32 %f1, [c+4]; st.global.f32 [%rd3], %f1; ret; }";

fn constant(blocks: u32, symbols: &[(&str, usize)]) -> (Data, Program) {
    let len = 32 * blocks as usize;
    let spec = |name, len, role| BufferSpec { name, dtype: DType::F32, len, role };
    let mut x = Buffer::zeroed(DType::F32, 10);
    x.set_f64(1, 2.5);
    let long = Buffer::zeroed(DType::F32, 13);
    let specs = vec![spec("x", 10, Role::In), spec("y", len, Role::Out), spec("long", 13, Role::In)];
    let buffers = vec![x, Buffer::zeroed(DType::F32, len), long];
    let code = Code::Ptx { text: CONSTANT.into(), entry: "k".into() };
    let mut launch = Launch::new(code, [blocks, 1, 1], [32, 1, 1], vec![Arg::Buffer(1, 0)]);
    launch.symbols = symbols.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
    (given(Workload { specs, buffers, scalars: vec![] }), Program::launch(launch))
}

#[test]
fn variables_of_the_module_hold_buffers() {
    let mut device = EmulatorDevice::new(spec(80)).unwrap();
    let (data, program) = constant(2, &[("c", 0)]);
    device.upload(&data).unwrap();
    device.run(&program).unwrap();
    let after = device.read().unwrap();
    assert!((0..64).all(|i| after[1].get_f64(i) == 2.5));
    assert!(device.parts().is_none());
    for (symbol, wrong) in [(("d", 0), "no variable"), (("c", 2), "52 bytes"), (("c", 7), "number 7")] {
        let (data, program) = constant(2, &[symbol]);
        device.upload(&data).unwrap();
        let Err(DeviceError::Argument { name, message }) = device.run(&program) else { panic!("{symbol:?}") };
        assert!(name == symbol.0 && message.contains(wrong), "{message}");
    }
}

#[test]
fn samples_are_of_the_size_asked_for_and_always_the_same() {
    let written = |seed: u64, most: u64| {
        let mut device = EmulatorDevice::new(spec(80)).unwrap().sampling(most, seed);
        let (data, program) = constant(500, &[("c", 0)]);
        device.upload(&data).unwrap();
        device.run(&program).unwrap();
        let counts = device.log().take().remove(0).counts.total();
        let after = device.read().unwrap();
        let blocks: Vec<usize> = (0..500).filter(|b| after[1].get_f64(32 * b) == 2.5).collect();
        (blocks, counts.threads, device.parts().is_some())
    };
    // A block is 9 instructions of 32 threads.
    let (blocks, threads, in_part) = written(1, 9 * 32 * 50);
    assert_eq!((blocks.len() as u64 * 9 * 32, in_part), (threads, true));
    assert!((50..=60).contains(&blocks.len()) && blocks.contains(&0) && blocks.contains(&499), "{blocks:?}");
    assert_eq!(written(1, 9 * 32 * 50).0, blocks);
    assert_ne!(written(2, 9 * 32 * 50).0, blocks);
    assert_eq!(written(1, 1).0, [0]);
    let (all, _, in_part) = written(1, u64::MAX);
    assert_eq!((all.len(), in_part), (500, false));
    // Blocks of counts stand for all, without corners, and whatever a program has beside its first launch.
    let mut device = EmulatorDevice::new(spec(80)).unwrap().counting(9 * 32 * 50, 1);
    let (data, mut program) = constant(500, &[("c", 0)]);
    program.steps.push(program.steps[0].clone());
    device.upload(&data).unwrap();
    device.run(&program).unwrap();
    let reports = device.log().take();
    assert!(reports.iter().all(|report| (400..460).contains(&report.left_out)), "{:?}", reports[0].left_out);
    let counted = tilewright_emulator::properties(&reports);
    assert_eq!((counted[&Property::Groups], counted[&Property::Launches]), (1000, 2));
    let store = Op::Store(Space::Global, 32);
    assert_eq!((counted[&Property::Threads(store)], counted[&Property::Warps(store)]), (32_000, 1000));
    // Programs of several launches run whole.
    let mut device = EmulatorDevice::new(spec(80)).unwrap().sampling(1, 1);
    let (data, mut program) = constant(20, &[("c", 0)]);
    program.steps.push(program.steps[0].clone());
    device.upload(&data).unwrap();
    device.run(&program).unwrap();
    assert!(device.parts().is_none() && device.read().unwrap()[1].get_f64(32 * 19) == 2.5);
}

#[test]
fn blocks_near_parts_of_another_grid_run_alone() {
    let mut device = EmulatorDevice::new(spec(80)).unwrap();
    let (data, program) = constant(500, &[("c", 0)]);
    device.upload(&data).unwrap();
    // The fourth block of ten: of 500 over the same problem those of its share, and of what its grid may reach beyond the end.
    let parts = [GridPart::of_block(3, [10, 1, 1])];
    device.run_near(&program, &parts, 0.0).unwrap();
    let after = device.read().unwrap();
    let ran: Vec<usize> = (0..500).filter(|b| after[1].get_f64(32 * b) == 2.5).collect();
    assert_eq!((ran[0], ran.len(), ran[ran.len() - 1]), (149, 74, 222));
    assert_eq!(device.parts().map(|parts| parts.len()), Some(74));
    // Most of the grid is all of it.
    device.run_near(&program, &parts, 5.0).unwrap();
    assert!(device.parts().is_none() && device.read().unwrap()[1].get_f64(32 * 499) == 2.5);
}
