use super::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tilewright_core::buffer::Buffers;
use tilewright_testkit::toy::{self, HostExecutor};

/// Counts what is asked of it.
#[derive(Default)]
struct Counts {
    prepared: AtomicU32,
    replaced: AtomicU32,
    /// What the next runs report.
    faults: Mutex<Vec<DeviceError>>,
}

struct Counting {
    inner: HostExecutor,
    counts: Arc<Counts>,
    replaces: bool,
}

struct Counted {
    inner: Box<dyn Loaded>,
    counts: Arc<Counts>,
    replaces: bool,
}

impl Executor for Counting {
    fn spec(&self) -> &Arc<DeviceSpec> {
        self.inner.spec()
    }

    fn prepare(&mut self, program: &Program, work: &Workload) -> Result<Box<dyn Loaded>, DeviceError> {
        self.counts.prepared.fetch_add(1, Ordering::Relaxed);
        let (counts, replaces) = (self.counts.clone(), self.replaces);
        Ok(Box::new(Counted { inner: self.inner.prepare(program, work)?, counts, replaces }))
    }
}

impl Loaded for Counted {
    fn run(&mut self) -> Result<(), DeviceError> {
        self.counts.faults.lock().unwrap().pop().map_or(Ok(()), Err)?;
        self.inner.run()
    }

    fn write(&mut self, buffers: &Buffers) -> Result<(), DeviceError> {
        self.inner.write(buffers)
    }

    fn read(&mut self) -> Result<Buffers, DeviceError> {
        self.inner.read()
    }

    fn replace(&mut self, program: &Program) -> Result<(), DeviceError> {
        if !self.replaces {
            return self.inner.replace(program);
        }
        self.counts.replaced.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

fn counting(replaces: bool) -> (HostMeasure<Counting>, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let executor = Counting { inner: HostExecutor::default(), counts: counts.clone(), replaces };
    (HostMeasure::new(executor), counts)
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
fn data_is_made_once_for_all_configurations_of_an_input() {
    let (mut measure, counts) = counting(true);
    let problem = toy::problem(1000);
    for point in points(&problem, 5) {
        let m = measure.measure(&problem, &point, &quick()).unwrap();
        assert!(m.time_s > 0.0 && m.repeats >= 3);
    }
    assert_eq!(counts.prepared.load(Ordering::Relaxed), 1);
    assert_eq!(counts.replaced.load(Ordering::Relaxed), 4);
    measure.measure(&toy::problem(2000), &points(&problem, 1)[0], &quick()).unwrap();
    assert_eq!(counts.prepared.load(Ordering::Relaxed), 2, "another input has data of its own");
}

#[test]
fn a_device_that_cannot_replace_programs_is_prepared_anew() {
    let (mut measure, counts) = counting(false);
    let problem = toy::problem(1000);
    for point in points(&problem, 3) {
        measure.measure(&problem, &point, &quick()).unwrap();
    }
    assert_eq!(counts.prepared.load(Ordering::Relaxed), 3);
}

#[test]
fn faults_of_a_configuration_are_told_from_faults_of_the_device() {
    let (mut measure, counts) = counting(true);
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
    let (mut measure, _) = counting(true);
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
fn cold_runs_work_and_the_cache_size_comes_from_the_device() {
    let (mut measure, _) = counting(true);
    let problem = toy::problem(1000);
    let policy = Timing { cache: CachePolicy::Cold, max_repeats: 3, ..quick() };
    let spec = DeviceSpec {
        facts: [("l1d_bytes", 1 << 15), ("l3_bytes", 1 << 20), ("cores", 8)].map(|(n, v)| (n.into(), v)).into(),
        ..(*toy::device()).clone()
    };
    assert_eq!(last_level_bytes(&spec), 1 << 20);
    assert_eq!(last_level_bytes(&toy::device()), ASSUMED_CACHE_BYTES);
    measure.evictor = Some(Evictor::new(1 << 16));
    measure.measure(&problem, &points(&problem, 1)[0], &policy).unwrap();
}
