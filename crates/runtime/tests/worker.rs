//! Devices in processes of their own, with children that abort, hang, print garbage and fault.
//!
//! This binary is its own child: started with `child` it serves a toy device whose kernels misbehave by name.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tilewright_core::buffer::{Buffer, BufferSpec, Buffers, Role, Workload};
use tilewright_core::data::Data;
use tilewright_core::device::{Device, DeviceKind, DeviceSpec};
use tilewright_core::dtype::DType;
use tilewright_core::measurement::{Failure, FailureKind, Measurement, Timing};
use tilewright_core::problem::MeasureError;
use tilewright_core::program::{
    Arg, Attributes, Code, DeviceError, Launch, Program, ScalarClass, ScalarSpec, Step, TensorMap,
};
use tilewright_runtime::worker::{Isolated, WorkerCommand, serve};

/// Adds 1 to every element per launch of `add`; misbehaves as other entries say.
struct Toy {
    spec: Arc<DeviceSpec>,
    data: Option<Workload>,
    expected: usize,
}

fn spec() -> DeviceSpec {
    DeviceSpec {
        id: "toy".into(),
        name: "toy".into(),
        kind: DeviceKind::Emulator,
        driver: "1".into(),
        facts: BTreeMap::from([("sm".to_owned(), 80)]),
        measured: BTreeMap::new(),
    }
}

impl Toy {
    fn step(&mut self, entry: &str) -> Result<(), DeviceError> {
        match entry {
            "add" => {
                let data = self.data.as_mut().ok_or_else(|| DeviceError::Run("no data".into()))?;
                data.buffers.iter_mut().for_each(|b| b.as_mut_slice::<f32>().iter_mut().for_each(|x| *x += 1.0));
                Ok(())
            }
            "abort" => std::process::abort(),
            "exit" => {
                eprintln!("last words");
                std::process::exit(9)
            }
            "hang" => loop {
                std::thread::sleep(Duration::from_secs(1));
            },
            "garbage" => {
                let mut out = std::io::stdout();
                out.write_all(b"a library says hello\n").and_then(|()| out.flush()).unwrap();
                Ok(())
            }
            "fault" => Err(DeviceError::Fault("illegal address".into())),
            "load" => Err(DeviceError::Load("line 3: no such instruction".into())),
            "memory" => Err(DeviceError::OutOfMemory { need: 1 << 40, have: Some(7) }),
            other => Err(DeviceError::Load(format!("no kernel {other:?}"))),
        }
    }
}

impl Device for Toy {
    fn spec(&self) -> &Arc<DeviceSpec> {
        &self.spec
    }

    fn ahead(&self) -> usize {
        5
    }

    fn precompile(&mut self, programs: &[Program]) {
        self.expected += programs.len();
    }

    fn abandon(&mut self) {
        self.expected = 0;
    }

    fn upload(&mut self, data: &Data) -> Result<(), DeviceError> {
        let (specs, scalars) = (data.specs().to_vec(), data.scalars().to_vec());
        self.data = Some(Workload { specs, buffers: data.buffers()?, scalars });
        Ok(())
    }

    fn run(&mut self, program: &Program) -> Result<(), DeviceError> {
        for step in &program.steps {
            if let Step::Launch(Launch { code: Code::Ptx { entry, .. }, .. }) = step {
                self.step(entry)?;
            }
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Buffers, DeviceError> {
        Ok(self.data.as_ref().ok_or_else(|| DeviceError::Run("no data".into()))?.buffers.clone())
    }

    fn time(&mut self, program: &Program, policy: &Timing) -> Result<Measurement, MeasureError> {
        self.run(program)?;
        if policy.cut_off.is_some() {
            return Err(Failure { kind: FailureKind::CutOff, message: "too slow".into() }.into());
        }
        Ok(Measurement { relative_error: f64::INFINITY, ..Measurement::recorded(1.5e-3 + self.expected as f64) })
    }
}

fn program(entries: &[&str]) -> Program {
    let step = |entry: &&str| {
        let code = Code::Ptx { text: "// \"text\"\n".into(), entry: (*entry).to_owned() };
        let map = TensorMap::new(0, DType::F32, vec![4, 2], vec![16], vec![4, 2]);
        let bytes = Arg::Struct { bytes: vec![1, 0, 255], align: 16 };
        let plain = [Arg::Buffer(0, 8), Arg::U64(u64::MAX), Arg::Scalar(0), Arg::F32(f32::INFINITY)];
        let args = plain.into_iter().chain([bytes, Arg::TensorMap(map)]).collect();
        let attributes = Attributes { shared_carveout: Some(50), ..Attributes::default() };
        let launch = Launch::new(code, [1, 2, 3], [4, 5, 6], args).sharing(7).clustered([1, 2, 1]);
        Step::Launch(Launch { attributes, ..launch })
    };
    let mut steps: Vec<Step> = entries.iter().map(step).collect();
    steps.push(Step::Fill { offset: 0, bytes: 4, value: 255 });
    Program::new(steps, 4)
}

fn work() -> Workload {
    let mut buffer = Buffer::zeroed(DType::F32, 3);
    buffer.as_mut_slice::<f32>().copy_from_slice(&[1.0, -2.0, f32::NAN]);
    let specs = vec![BufferSpec { name: "x", dtype: DType::F32, len: 3, role: Role::InOut }];
    Workload { specs, buffers: vec![buffer], scalars: vec![f64::NAN, 2.0] }
}

fn given() -> Data {
    Data::Given(Arc::new(work()))
}

fn command(mode: &str) -> WorkerCommand {
    let this = std::env::current_exe().unwrap();
    let command = WorkerCommand::new(this, vec!["child".into(), mode.into()]);
    WorkerCommand { patience: Duration::from_millis(700), ..command }
}

fn isolated() -> Isolated {
    Isolated::open(command("toy")).unwrap()
}

fn results_come_back() {
    let mut device = isolated();
    assert_eq!(**device.spec(), spec());
    assert_eq!(device.ahead(), 5);
    device.upload(&given()).unwrap();
    device.run(&program(&["add", "add"])).unwrap();
    let after = device.read().unwrap();
    assert_eq!(after[0].as_slice::<f32>()[..2], [3.0, 0.0]);
    assert!(after[0].as_slice::<f32>()[2].is_nan());
    device.precompile(&[program(&["add"]), program(&["add"])]);
    let m = device.time(&program(&["add"]), &Timing::default()).unwrap();
    assert_eq!((m.time_s, m.relative_error), (2.0015, 1.0));
    device.abandon();
    assert_eq!(device.time(&program(&["add"]), &Timing::default()).unwrap().time_s, 1.5e-3);
    let cut = Timing { cut_off: Some(Duration::from_millis(1)), ..Timing::default() };
    let failure = device.time(&program(&["add"]), &cut).unwrap_err();
    assert!(matches!(failure, MeasureError::Failed(f) if f.kind == FailureKind::CutOff));
    assert_eq!(device.restarts(), 0);
}

fn scalars_of_another_program_are_refused() {
    let mut device = isolated();
    let given = |scalars: &[f64]| Data::Given(Arc::new(Workload { scalars: scalars.to_vec(), ..work() }));
    let one = program(&["add"]).taking(vec![ScalarSpec { name: "alpha", class: ScalarClass::Exactly(1.0) }]);
    for scalars in [&[2.0][..], &[]] {
        device.upload(&given(scalars)).unwrap();
        let error = device.run(&one).unwrap_err();
        assert!(matches!(&error, DeviceError::Argument { name, .. } if name == "alpha"), "{error}");
        assert!(matches!(device.time(&one, &Timing::default()), Err(MeasureError::Failed(_))));
    }
    device.upload(&given(&[1.0])).unwrap();
    device.run(&one).unwrap();
    assert_eq!(device.read().unwrap()[0].as_slice::<f32>()[..2], [2.0, -1.0]);
}

fn noise_is_made_by_the_child() {
    let mut device = isolated();
    let specs = vec![BufferSpec { name: "x", dtype: DType::F32, len: 200_000, role: Role::In }];
    let noise = Data::Noise { specs, scalars: vec![1.0], seed: 5 };
    device.upload(&noise).unwrap();
    let read = device.read().unwrap();
    assert_eq!(read[0].bytes(), noise.buffers().unwrap()[0].bytes());
    let values = read[0].as_slice::<f32>();
    assert!(values.iter().all(|x| (-1.0..1.0).contains(x)) && values[0] != values[1]);
}

/// A failed candidate, and everything works afterwards with the data still there.
fn fails_and_goes_on(entry: &str, kind: FailureKind, message: &str, restarts: u64) {
    let mut device = isolated();
    device.upload(&given()).unwrap();
    let found = device.time(&program(&[entry]), &Timing { max_time: Duration::ZERO, ..Timing::default() });
    let Err(MeasureError::Failed(failure)) = found else { panic!("{entry}: {found:?}") };
    assert_eq!(failure.kind, kind, "{entry}: {failure}");
    assert!(failure.message.contains(message), "{entry}: {failure}");
    device.run(&program(&["add"])).unwrap();
    assert_eq!(device.read().unwrap()[0].as_slice::<f32>()[..2], [2.0, -1.0], "{entry}");
    assert_eq!(device.restarts(), restarts, "{entry}");
}

fn misbehaviour_is_the_candidates() {
    fails_and_goes_on("abort", FailureKind::Launch, "signal: 6", 1);
    fails_and_goes_on("exit", FailureKind::Launch, "exit status: 9", 1);
    fails_and_goes_on("exit", FailureKind::Launch, "last words", 1);
    fails_and_goes_on("hang", FailureKind::Timeout, "still ran after 700 ms", 1);
    fails_and_goes_on("garbage", FailureKind::Launch, "not a message", 1);
    fails_and_goes_on("fault", FailureKind::Launch, "illegal address", 1);
    fails_and_goes_on("load", FailureKind::Compile, "line 3", 0);
    fails_and_goes_on("memory", FailureKind::Launch, "out of memory", 0);
}

fn results_tell_faults_apart() {
    let mut device = isolated();
    device.upload(&given()).unwrap();
    assert!(matches!(device.run(&program(&["abort"])), Err(DeviceError::Fault(_))));
    assert!(matches!(device.run(&program(&["hang"])), Err(DeviceError::Hang { after_ms: 700 })));
    assert!(matches!(device.run(&program(&["load"])), Err(DeviceError::Load(_))));
    let full = DeviceError::OutOfMemory { need: 1 << 40, have: Some(7) };
    assert_eq!(device.run(&program(&["memory"])), Err(full));
    // A good one among twenty that kill is not lost, and does not count as a device that is.
    for _ in 0..10 {
        assert!(device.run(&program(&["exit"])).is_err());
        assert!(device.run(&program(&["fault"])).is_err());
    }
    device.run(&program(&["add"])).unwrap();
}

fn host_code_stays_at_home() {
    struct Nothing;
    impl tilewright_core::program::HostCode for Nothing {
        fn run(&self, _: &mut tilewright_core::program::HostArgs<'_, '_>) -> Result<(), DeviceError> {
            Ok(())
        }
    }
    let mut device = isolated();
    device.upload(&given()).unwrap();
    let found = device.run(&Program::host(Arc::new(Nothing), 0));
    assert!(matches!(found, Err(DeviceError::Unsupported { .. })), "{found:?}");
}

fn a_missing_device_is_told() {
    let open = |command| match Isolated::open(command) {
        Err(error) => error,
        Ok(_) => panic!("opened"),
    };
    assert_eq!(open(command("missing")), DeviceError::Missing { device: "toy".into(), why: "no driver".into() });
    let nowhere = WorkerCommand { program: PathBuf::from("/nowhere/at-all"), ..command("toy") };
    assert!(matches!(open(nowhere), DeviceError::Missing { .. }));
    assert!(matches!(open(command("stillborn")), DeviceError::Fault(m) if m.contains("exit status: 4")));
    let silent = WorkerCommand { start: Duration::from_millis(300), ..command("silent") };
    assert!(matches!(open(silent), DeviceError::Hang { .. }));
}

fn data_stay_while_programs_come_and_go() {
    let mut device = isolated();
    let of = |device: &mut Isolated| device.read().unwrap()[0].as_slice::<f32>()[0];
    device.upload(&given()).unwrap();
    device.run(&program(&["add"])).unwrap();
    device.run(&program(&["add", "add"])).unwrap();
    assert_eq!(of(&mut device), 4.0);
    device.upload(&given()).unwrap();
    assert_eq!(of(&mut device), 1.0);
    let unlike = Workload { buffers: Vec::new(), ..work() };
    assert!(matches!(device.upload(&Data::Given(Arc::new(unlike))), Err(DeviceError::Argument { .. })));
}

/// A child whose parent goes away ends, even in the middle of a kernel that does not.
fn orphans_end() {
    use std::process::{Command, Stdio};
    let mut parent = Command::new(std::env::current_exe().unwrap());
    let mut parent = parent.args(["child", "parent"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(parent.stdout.take().unwrap()), &mut line).unwrap();
    let child: u32 = line.trim().parse().unwrap();
    parent.kill().unwrap();
    parent.wait().unwrap();
    let alive = || {
        let state = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        !state.is_empty() && !state.contains(") Z ")
    };
    for _ in 0..100 {
        if !alive() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("process {child} goes on without its parent");
}

/// What this binary does as a child.
fn child(mode: &str) -> ExitCode {
    let toy = || -> Result<Box<dyn Device>, DeviceError> {
        Ok(Box::new(Toy { spec: Arc::new(spec()), data: None, expected: 0 }))
    };
    match mode {
        "toy" => match serve(std::io::stdin(), &mut std::io::stdout(), toy) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::from(5)
            }
        },
        "pid" => {
            // Where the parent of `orphans_end` finds it.
            std::fs::write(std::env::var_os("TOY_PID").unwrap(), std::process::id().to_string()).unwrap();
            child("toy")
        }
        "missing" => {
            let open = || Err(DeviceError::Missing { device: "toy".into(), why: "no driver".into() });
            let _ = serve(std::io::stdin(), &mut std::io::stdout(), open);
            ExitCode::SUCCESS
        }
        "stillborn" => ExitCode::from(4),
        "silent" => loop {
            std::thread::sleep(Duration::from_secs(1));
        },
        "parent" => {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("pid");
            let env = vec![("TOY_PID".to_owned(), file.display().to_string())];
            let mut device =
                Isolated::open(WorkerCommand { env, patience: Duration::from_secs(60), ..command("pid") }).unwrap();
            println!("{}", std::fs::read_to_string(file).unwrap());
            device.upload(&given()).unwrap();
            let _ = device.run(&program(&["hang"]));
            ExitCode::SUCCESS
        }
        other => panic!("unknown mode {other}"),
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).is_some_and(|a| a == "child") {
        return child(&args[2]);
    }
    let tests: [(&str, fn()); 9] = [
        ("results_come_back", results_come_back),
        ("scalars_of_another_program_are_refused", scalars_of_another_program_are_refused),
        ("noise_is_made_by_the_child", noise_is_made_by_the_child),
        ("misbehaviour_is_the_candidates", misbehaviour_is_the_candidates),
        ("results_tell_faults_apart", results_tell_faults_apart),
        ("host_code_stays_at_home", host_code_stays_at_home),
        ("a_missing_device_is_told", a_missing_device_is_told),
        ("data_stay_while_programs_come_and_go", data_stay_while_programs_come_and_go),
        ("orphans_end", orphans_end),
    ];
    // What runners ask of a test program: a list, or those whose names hold a word.
    let list = args.iter().any(|a| a == "--list");
    let ignored = args.iter().any(|a| a == "--ignored");
    let word = args.iter().skip(1).find(|a| !a.starts_with('-') && *a != "terse").map_or("", String::as_str);
    for (name, test) in tests.into_iter().filter(|(name, _)| !ignored && name.contains(word)) {
        if list {
            println!("{name}: test");
        } else {
            test();
            println!("test {name} ... ok");
        }
    }
    ExitCode::SUCCESS
}
