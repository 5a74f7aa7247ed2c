//! Cases of `verify`: drawn by number, run, judged. The same seed and number give the same case on any number of devices.

use crate::failure::{Failure, Kind};
use crate::wiring::Wiring;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;
use tilewright_core::buffer::{Filling, Role, Verdict};
use tilewright_core::computation::InputLimits;
use tilewright_core::data::Data;
use tilewright_core::device::{Device, DeviceSpec};
use tilewright_core::expr::Value;
use tilewright_core::problem::{AnyKernel, Problem};
use tilewright_core::space::{BoundSpace, Config, Point};
use tilewright_emulator::{Finding, Log};

/// Inputs stay small, so that many configurations and every kind of edge are seen.
const LIMITS: InputLimits = InputLimits { max_flops: 4e6, max_bytes: 4e6 };
/// Inputs drawn for a value of a parameter that is this case's to show, before another value will do.
const INPUTS: u32 = 60;
/// Points drawn on each of them.
const POINTS: u32 = 24;

/// Threads of the host that repeat what must not depend on them. A device's own run has one.
const OTHER_THREADS: usize = 3;

/// Where a run is repeated.
///
/// # Errors
/// The host starts no threads.
pub(super) fn elsewhere() -> Result<ThreadPool, Failure> {
    let pool = ThreadPoolBuilder::new().num_threads(OTHER_THREADS).build();
    pool.map_err(|e| Failure::new(Kind::Other, "threads", e))
}

/// What cases are drawn from.
pub(super) struct Cases<'a> {
    pub(super) wiring: &'a Wiring,
    pub(super) kernel: &'a dyn AnyKernel,
    pub(super) spec: Arc<DeviceSpec>,
    /// Words of the input that are given.
    pub(super) fixed: Config,
    pub(super) seed: u64,
    /// Other threads than those of a device.
    pub(super) elsewhere: ThreadPool,
}

/// Something to run.
struct Case {
    problem: Box<dyn Problem>,
    point: Point,
    filling: Filling,
    seed: u64,
}

/// A device that checks one case at a time.
pub(super) struct Bench {
    pub(super) device: Box<dyn Device>,
    /// What the emulator found; it then runs its blocks one after the other.
    pub(super) log: Option<Log>,
}

/// What came of a case.
pub(super) struct Outcome {
    pub(super) input: Config,
    pub(super) config: Config,
    pub(super) filling: Filling,
    /// What the input is an example of.
    pub(super) aspects: Vec<String>,
    pub(super) result: Result<Verdict, String>,
    /// Whether it was run twice, and had to give the same bits.
    pub(super) repeated: bool,
    /// What the emulator found beside a wrong result.
    pub(super) findings: Vec<Finding>,
}

impl Cases<'_> {
    /// Draws and runs a case.
    pub(super) fn check(&self, number: u32, bench: &mut Bench) -> Result<Outcome, Failure> {
        let case = self.draw(number)?;
        let config = case.problem.space().config(&case.point);
        let repeated = is_ordered(&config);
        let result = check(&case, &mut *bench.device, repeated.then_some(&self.elsewhere));
        let reports = bench.log.as_ref().map(|log| log.take()).unwrap_or_default();
        Ok(Outcome {
            input: case.problem.input(),
            config,
            repeated,
            filling: case.filling,
            aspects: case.problem.aspects(),
            result,
            findings: reports.into_iter().flat_map(|r| r.findings).collect(),
        })
    }

    /// Cases take turns in showing every value of every parameter: drawn at random alone, values that few rules leave
    /// (the largest tiles, many slices) would hardly be seen.
    fn draw(&self, number: u32) -> Result<Case, Failure> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(number.into());
        let params = self.kernel.space().params();
        let turns: usize = params.iter().map(|p| p.values.len()).sum();
        let mut wanted = number as usize % turns.max(1);
        let param = params.iter().position(|p| {
            let here = wanted < p.values.len();
            wanted -= if here { 0 } else { p.values.len() };
            here
        });
        let wanted = param.map(|param| (param, wanted as u16));
        let mut any = None;
        for _ in 0..INPUTS {
            let problem = self.input(&mut rng)?;
            if let Some(point) = (0..POINTS).find_map(|_| point(problem.space(), wanted, &mut rng)) {
                return Ok(case(problem, point, &mut rng));
            }
            if let Some(point) = (0..POINTS).find_map(|_| point(problem.space(), None, &mut rng)) {
                any = Some((problem, point));
            }
        }
        // An input without a legal configuration is possible, and says nothing about the kernel; none at all is an answer.
        let (problem, point) = any.ok_or_else(|| {
            let message = format!("no legal configuration was found for {INPUTS} drawn inputs");
            Failure::new(Kind::Nothing, "input", message)
        })?;
        Ok(case(problem, point, &mut rng))
    }

    fn input(&self, rng: &mut ChaCha8Rng) -> Result<Box<dyn Problem>, Failure> {
        let fields = self.kernel.draw_awkward(&self.fixed, &LIMITS, &mut || rng.random());
        let fields = fields.map_err(|e| Failure::new(Kind::Input, &e.field, e.message))?;
        self.wiring.problem(self.kernel, &self.spec, &fields)
    }
}

fn case(problem: Box<dyn Problem>, point: Point, rng: &mut ChaCha8Rng) -> Case {
    let filling = [Filling::Real, Filling::Exact, Filling::Special][rng.random_range(0..3)];
    Case { problem, point, filling, seed: rng.random() }
}

/// A legal point, each parameter uniform among the values that the rules leave it, one of them as wanted; `None` at a dead end.
fn point(space: &BoundSpace, wanted: Option<(usize, u16)>, rng: &mut ChaCha8Rng) -> Option<Point> {
    let (mut point, mut allowed) = (Vec::new(), Vec::new());
    for depth in 0..space.params().len() {
        space.next_values(&point, &mut allowed);
        allowed.retain(|&i| wanted.is_none_or(|(param, value)| param != depth || value == i));
        point.push(*allowed.get(rng.random_range(0..allowed.len().max(1)))?);
    }
    // A rule without parameters is nobody's last value.
    space.is_legal(&point).then_some(Point(point))
}

/// Whether the grid splits the reduction and adds the parts in order, which is a promise of bitwise equal repeats.
fn is_ordered(config: &Config) -> bool {
    let slices = config.get("k_g").and_then(Value::as_int);
    slices > Some(1) && config.get("split").and_then(Value::as_str) == Some("ordered")
}

/// Runs a case and compares it with the reference; and with another run in `again`, if given, bit by bit.
fn check(case: &Case, device: &mut dyn Device, again: Option<&ThreadPool>) -> Result<Verdict, String> {
    let legal = case.problem.space().check(&case.point).map_err(|e| e.to_string())?;
    let program = case.problem.program(&legal);
    let work = Arc::new(case.problem.workload(case.filling, case.seed));
    let expected = case.problem.reference(&work.buffers, &work.scalars);
    let mut run = || {
        device.upload(&Data::Given(work.clone()))?;
        device.run(&program)?;
        device.read()
    };
    let after = run().map_err(|e| e.to_string())?;
    let kept = |i: usize| work.specs[i].role != Role::In || work.buffers[i].bytes() == after[i].bytes();
    if let Some(written) = (0..after.len()).find(|&i| !kept(i)) {
        return Err(format!("the read-only buffer {} was written", work.specs[written].name));
    }
    if let Some(pool) = again {
        let repeat = pool.install(run).map_err(|e| e.to_string())?;
        if let Some(i) = (0..after.len()).find(|&i| after[i].bytes() != repeat[i].bytes()) {
            return Err(format!("a repeat left other bits in {}: slices are not added in order", work.specs[i].name));
        }
    }
    Ok(expected.compare(&after))
}
