use super::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tilewright_core::buffer::Buffers;
use tilewright_core::data::Data;
use tilewright_core::device::{HostDevice, classify};
use tilewright_core::dtype::DType;
use tilewright_core::measurement::{CachePolicy, FailureKind};
use tilewright_core::problem::Bound;
use tilewright_core::program::{DeviceError, Program};
use tilewright_core::timing::Evictor;
use tilewright_testkit::toy::{self, ScaleInput, ScaleKernel};

/// Counts what is asked of it.
#[derive(Default)]
struct Counts {
    uploads: AtomicU32,
    times: AtomicU32,
    /// What the next times report.
    faults: Mutex<Vec<DeviceError>>,
}

struct Counting {
    inner: HostDevice<Instant>,
    counts: Arc<Counts>,
}

impl Device for Counting {
    fn spec(&self) -> &Arc<DeviceSpec> {
        self.inner.spec()
    }

    fn upload(&mut self, data: &Data) -> Result<(), DeviceError> {
        self.counts.uploads.fetch_add(1, Ordering::Relaxed);
        self.inner.upload(data)
    }

    fn run(&mut self, program: &Program) -> Result<(), DeviceError> {
        self.inner.run(program)
    }

    fn read(&mut self) -> Result<Buffers, DeviceError> {
        self.inner.read()
    }

    fn time(&mut self, program: &Program, timing: &Timing) -> Result<Measurement, MeasureError> {
        self.counts.times.fetch_add(1, Ordering::Relaxed);
        self.counts.faults.lock().unwrap().pop().map_or(Ok(()), |e| Err(classify(e)))?;
        self.inner.time(program, timing)
    }
}

fn counting() -> (Live<Counting>, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let inner = toy::host_device().with_evictor(Evictor::new(1 << 16));
    (Live::new(Counting { inner, counts: counts.clone() }), counts)
}

fn quick() -> Timing {
    Timing { max_time: Duration::from_millis(2), ..Timing::default() }
}

fn points(problem: &dyn Problem, count: usize) -> Vec<Point> {
    let mut out = Vec::new();
    problem.space().for_each_legal(|p| {
        out.push(Point::from(p));
        out.len() < count
    });
    out
}

#[test]
fn data_are_put_down_once_for_all_configurations_of_an_input() {
    let (mut measure, counts) = counting();
    let problem = toy::problem(1000);
    for point in points(&problem, 5) {
        let m = measure.measure(&problem, &point, &quick()).unwrap();
        assert!(m.time_s > 0.0 && m.repeats >= 3);
    }
    assert_eq!(counts.uploads.load(Ordering::Relaxed), 1);
    assert_eq!(counts.times.load(Ordering::Relaxed), 1 + 5, "nothing is timed on data that no run has touched");
    let first = points(&problem, 1).remove(0);
    measure.measure(&toy::problem(2000), &first, &quick()).unwrap();
    assert_eq!(counts.uploads.load(Ordering::Relaxed), 2, "another input has data of its own");
    // Whoever was lent the device may have left other data on it.
    let lent = Measure::device(&mut measure).unwrap();
    lent.upload(&toy::problem(10).data(1)).unwrap();
    measure.measure(&toy::problem(2000), &first, &quick()).unwrap();
    assert_eq!(counts.uploads.load(Ordering::Relaxed), 4);
}

#[test]
fn faults_of_a_configuration_are_told_from_faults_of_the_device() {
    let (mut measure, counts) = counting();
    let problem = toy::problem(1000);
    let point = points(&problem, 1).remove(0);
    let mut with = |fault: DeviceError| {
        counts.faults.lock().unwrap().push(fault);
        measure.measure(&problem, &point, &quick()).unwrap_err()
    };
    let kind = |e: MeasureError| match e {
        MeasureError::Failed(f) => Some(f.kind),
        MeasureError::Device(_) => None,
    };
    assert_eq!(kind(with(DeviceError::OutOfMemory { need: 1, have: None })), Some(FailureKind::Launch));
    assert_eq!(kind(with(DeviceError::Load("bad".into()))), Some(FailureKind::Compile));
    assert_eq!(kind(with(DeviceError::Run("lost".into()))), None);
    // It survives all of them.
    measure.measure(&problem, &point, &quick()).unwrap();
}

#[test]
fn points_that_are_illegal_or_of_another_space_are_failures() {
    let (mut measure, _) = counting();
    let problem = toy::tiny_problem(1);
    let mut illegal = points(&problem, 1).remove(0);
    illegal.0[0] += 1;
    for point in [illegal, Point(vec![9999; 5]), Point(vec![])] {
        let error = measure.measure(&problem, &point, &quick()).unwrap_err();
        let MeasureError::Failed(failure) = error else { panic!("{error}") };
        assert_eq!(failure.kind, FailureKind::Illegal);
    }
}

#[test]
fn cold_runs_work() {
    let (mut measure, _) = counting();
    let problem = toy::problem(1000);
    let policy = Timing { cache: CachePolicy::Cold, max_repeats: 3, ..quick() };
    measure.measure(&problem, &points(&problem, 1)[0], &policy).unwrap();
}

#[test]
fn behind_another_kernel_threads_are_woken_by_a_run_that_does_not_count() {
    let times = |threads: i64, warmup: u32| {
        let mut spec = DeviceSpec::clone(&toy::device());
        spec.facts.insert("threads".into(), threads);
        let counts = Arc::new(Counts::default());
        let inner = toy::host_device_with(Arc::new(spec)).with_evictor(Evictor::new(1 << 16));
        let mut measure = Live::new(Counting { inner, counts: counts.clone() });
        let kernels = ["scale.one", "scale.other"].map(|name| Arc::new(ScaleKernel::new().named(name)));
        let input = ScaleInput { n: 100, dtype: DType::F32 };
        let problems = kernels.map(|kernel| Bound::new(kernel, measure.spec().clone(), input.clone()).unwrap());
        let mut counted = Vec::new();
        for at in [0, 0, 1, 1, 0] {
            let timing = Timing { warmup, ..quick() };
            measure.measure(&problems[at], &points(&problems[at], 1)[0], &timing).unwrap();
            counted.push(counts.times.swap(0, Ordering::Relaxed));
        }
        counted
    };
    // The first of all is behind data that were just put down.
    assert_eq!(times(2, 1), [2, 1, 2, 1, 2]);
    assert_eq!(times(1, 1), [2, 1, 1, 1, 1], "a single thread is awake");
    assert_eq!(times(2, 0), [2, 1, 1, 1, 1], "calls so long that none goes before them wake the threads themselves");
}
