use super::*;
use crate::Live;
use std::sync::Mutex;
use tilewright_core::device::Device;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{Bound, Erased};
use tilewright_core::program::{HostArgs, HostCode, Program};
use tilewright_core::space::{BoundSpace, Legal, Param, ParamSpace, Symbols, Values};
use tilewright_testkit::toy;

/// Scales a vector right, with one wrong element, not at all, or fails.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    Right,
    Wrong,
    Nothing,
    Fails,
}

/// A kernel with options, of which those from 3 on do not run.
struct Odd(Does, ParamSpace);

#[derive(Clone, Debug)]
struct Code(Does, usize, u16);

impl Odd {
    fn new(does: Does) -> Self {
        Self(does, ParamSpace::builder().param(Param::ints("option", 0..5)).build().unwrap())
    }
}

impl Kernel for Odd {
    type Of = toy::Scale;
    type Plan = Code;

    fn id(&self) -> KernelId {
        KernelId::new(if self.0 == Does::Fails { "scale.failing.1" } else { "scale.odd.1" })
    }
    fn computation(&self) -> &toy::Scale {
        &toy::Scale
    }
    fn space(&self) -> &ParamSpace {
        &self.1
    }
    fn symbols(&self, device: &DeviceSpec, _: &toy::ScaleInput) -> Symbols {
        device.symbols()
    }
    fn plan(&self, _: &DeviceSpec, input: &toy::ScaleInput, at: &Legal<'_>) -> Code {
        Code(self.0, input.n, at.point()[0])
    }
    fn generate(&self, plan: &Code) -> Program {
        Program::host(Arc::new(plan.clone()), 0)
    }
    fn feature_names(&self) -> Vec<Feature> {
        Vec::new()
    }
    fn features(&self, _: &DeviceSpec, _: &toy::ScaleInput, _: &Values<'_>, _: &mut Vec<f32>) {}
    fn default_point(&self, _: &DeviceSpec, _: &toy::ScaleInput, space: &BoundSpace) -> Option<Point> {
        space.first_legal()
    }
}

impl HostCode for Code {
    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        let &Code(does, n, option) = self;
        if does == Does::Fails || option >= 3 {
            return Err(DeviceError::NoResult("no".into()));
        }
        for i in 0..if does == Does::Nothing { 0 } else { n } {
            let wrong = if does == Does::Wrong && i == 5 { 1.0 } else { 0.0 };
            let value = args.scalars[0] * args.buffers[0].get_f64(i) + wrong;
            args.buffers[1].set_f64(i, value);
        }
        Ok(())
    }
}

fn input() -> toy::ScaleInput {
    toy::ScaleInput { n: 50, dtype: tilewright_core::dtype::DType::F32 }
}

fn entrant(name: &str, does: Does) -> Entrant {
    let problem = Bound::new(Arc::new(Odd::new(does)), toy::device(), input()).unwrap();
    Entrant { name: name.into(), point: problem.default_point().unwrap(), problem: Arc::new(problem) }
}

fn quick() -> ContestSettings {
    let usual = ContestSettings::on(&toy::device(), 3);
    ContestSettings { rounds: 4, min_rounds: 4, enough: Duration::MAX, block: Some(Duration::ZERO), ..usual }
}

/// Notes the options that are timed and how, and makes up their times: the second option is the fastest.
struct Noting<'a, D> {
    live: Live<D>,
    timed: &'a Mutex<Vec<(u16, Timing)>>,
}

impl<D: Device> Measure for Noting<'_, D> {
    fn spec(&self) -> &Arc<DeviceSpec> {
        self.live.spec()
    }
    fn measure(&mut self, problem: &dyn Problem, at: &Point, timing: &Timing) -> Result<Measurement, MeasureError> {
        self.live.measure(problem, at, timing)?;
        self.timed.lock().unwrap().push((at[0], timing.clone()));
        Ok(Measurement::recorded([3e-3, 1e-3, 2e-3][usize::from(at[0])]))
    }
    fn device(&mut self) -> Option<&mut dyn Device> {
        Some(self.live.device())
    }
}

#[test]
fn the_wrong_the_idle_and_the_failing_are_named_and_not_timed() {
    let mut live = Live::new(toy::host_device());
    let does = [("right", Does::Right), ("wrong", Does::Wrong), ("idle", Does::Nothing), ("failing", Does::Fails)];
    let entrants = does.map(|(name, does)| entrant(name, does));
    let standings = contest(&mut live, &entrants, &quick()).unwrap();
    assert!(standings[0].cost.as_ref().is_ok_and(|cost| *cost > 0.0) && standings[0].rounds.len() == 4);
    let failures: Vec<&Failure> = standings.iter().filter_map(|s| s.cost.as_ref().err()).collect();
    let kinds: Vec<FailureKind> = failures.iter().map(|f| f.kind).collect();
    assert_eq!(kinds, [FailureKind::Wrong, FailureKind::Wrong, FailureKind::Launch]);
    assert!(
        failures[0].message.contains("element 5 of buffer 1") && failures[2].message.contains("no"),
        "{failures:?}"
    );
    assert!(standings[1..].iter().all(|s| s.rounds.is_empty()));
}

/// The options of entrants, each as it is timed, and how.
fn timed(options: &[u16], settings: &ContestSettings) -> Vec<(u16, Timing)> {
    let timed = Mutex::default();
    let mut noting = Noting { live: Live::new(toy::host_device()), timed: &timed };
    let one = |option: &u16| Entrant { point: Point(vec![*option]), ..entrant("any", Does::Right) };
    let entrants: Vec<Entrant> = options.iter().map(one).collect();
    contest(&mut noting, &entrants, settings).unwrap();
    timed.into_inner().unwrap()
}

#[test]
fn order_rotates_and_blocks_are_led_where_calls_are_short() {
    let settings = ContestSettings { block: Some(Duration::from_millis(2)), ..quick() };
    let timed = timed(&[0, 1, 2], &settings);
    let order: Vec<u16> = timed.iter().map(|(option, _)| *option).collect();
    // A warm-up of each, then one block in each round.
    assert_eq!(order, [0, 1, 2, 0, 1, 2, 1, 2, 0, 2, 0, 1, 0, 1, 2]);
    let blocks: Vec<_> = timed[3..6].iter().map(|(_, how)| (how.warmup, how.batch, how.max_repeats)).collect();
    assert_eq!(blocks, [(0, Some(1), 1), (1, Some(2), 1), (1, Some(1), 1)]);
}

#[test]
fn rounds_end_when_every_entrant_has_been_timed_enough() {
    let rounds = |min_rounds, enough| {
        let settings = ContestSettings { rounds: 6, min_rounds, enough, ..quick() };
        timed(&[0, 1], &settings).len() / 2 - 1
    };
    assert_eq!(rounds(2, Duration::ZERO), 2);
    assert_eq!(rounds(2, Duration::from_millis(4)), 4, "a millisecond a round");
    assert_eq!(rounds(2, Duration::MAX), 6);
}

#[test]
fn the_slow_are_left_out_where_that_is_asked_for() {
    let settings = ContestSettings { rounds: 5, min_rounds: 5, drop_beyond: 1.5, ..quick() };
    let count = |option| timed(&[0, 1, 2], &settings).iter().filter(|(o, _)| *o == option).count();
    assert_eq!([0, 1, 2].map(count), [4, 6, 6], "the first takes three times as long as the second");
}

#[test]
fn the_fastest_of_a_librarys_configurations_stands_beside_its_default() {
    let timed = Mutex::default();
    let mut noting = Noting { live: Live::new(toy::host_device()), timed: &timed };
    let kernels = [Does::Right, Does::Fails].map(|does| Arc::new(Erased::new(Odd::new(does))) as Arc<dyn AnyKernel>);
    let fields = toy::problem(50).input();
    let (entrants, missing) = libraries(&mut noting, &kernels, &fields, &quick()).unwrap();
    let named: Vec<_> = entrants.iter().map(|e| (e.name.as_str(), e.point[0])).collect();
    assert_eq!(named, [("odd", 0), ("odd-best", 1), ("failing", 0)], "what does not run has no best");
    assert_eq!(missing, [""; 0]);
    let (_, missing) = libraries(&mut noting, &kernels, &Config::parse("n=none").unwrap(), &quick()).unwrap();
    assert!(missing.len() == 2 && missing[0].starts_with("odd: n"), "{missing:?}");
}

#[test]
fn where_nothing_can_be_checked_nothing_is_timed() {
    let mut recorded = toy::AnalyticMeasure::new(toy::device());
    let refused = contest(&mut recorded, &[entrant("any", Does::Right)], &quick());
    assert!(matches!(refused, Err(DeviceError::Unsupported { .. })), "{refused:?}");
}

#[test]
fn the_median_ignores_a_disturbed_round() {
    let standing = |costs: &[f64]| Runs { costs: costs.to_vec(), failure: None, ..Runs::failed(not()) }.standing(0.0);
    assert_eq!(standing(&[3.0, 1.0, 99.0]).cost, Ok(3.0));
    assert_eq!(standing(&[1.0, 2.0, 99.0, 4.0]).cost, Ok(3.0));
    assert!(standing(&[]).cost.is_err());
}

fn not() -> Failure {
    Failure { kind: FailureKind::Launch, message: "not".into() }
}
