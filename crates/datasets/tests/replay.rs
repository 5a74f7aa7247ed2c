//! The replay device: recorded spaces, outcomes and optima.

use std::path::Path;
use std::time::Duration;
use tilewright_core::buffer::Buffer;
use tilewright_core::dtype::DType;
use tilewright_core::expr::Value;
use tilewright_core::measurement::{FailureKind, Timing};
use tilewright_core::problem::{AnyKernel, Measure, MeasureError, Problem};
use tilewright_core::program::{HostArgs, Step};
use tilewright_core::space::{Config, Point};
use tilewright_datasets::{RecordedKernel, RecordedProblem};

fn blur() -> RecordedKernel {
    RecordedKernel::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/blur.csv")).unwrap()
}

fn problem() -> RecordedProblem {
    blur().recorded("Alpha", &Config::parse("border=wrap,image=256").unwrap()).unwrap()
}

fn point(problem: &dyn Problem, config: &str) -> Point {
    Config::parse(config).unwrap().to_point(problem.space().params(), None).unwrap()
}

#[test]
fn the_space_is_what_was_recorded() {
    let kernel = blur();
    let params: Vec<&str> = AnyKernel::space(&kernel).params().iter().map(|p| p.name.as_str()).collect();
    assert_eq!(params, ["variant", "tile", "threads"]);
    assert_eq!(AnyKernel::space(&kernel).params()[1].values, [8.into(), 16.into(), Value::from("")]);
    let problem = problem();
    assert_eq!((problem.space().cartesian(), problem.space().count_legal()), (18, 4));
    assert!(problem.space().is_legal(&point(&problem, "variant=library,tile=,threads=")));
    let illegal = problem.space().check(&point(&problem, "variant=library,tile=8,threads=64")).unwrap_err();
    assert!(illegal.to_string().contains("not recorded"), "{illegal}");
    let devices: Vec<String> = kernel.devices().iter().map(|d| d.name.clone()).collect();
    assert_eq!(devices, ["Alpha", "Beta"]);
    assert_eq!(kernel.problems().unwrap().len(), 3);
}

#[test]
fn outcomes_are_looked_up() {
    let problem = problem();
    let mut device = problem.replay();
    let mut measure = |config: &str, policy: &Timing| device.measure(&problem, &point(&problem, config), policy);
    let whole = Timing::default();
    assert_eq!(measure("variant=tiled,tile=16,threads=64", &whole).unwrap().time_s, 0.00025);
    let failure = |r: Result<_, MeasureError>| match r {
        Err(MeasureError::Failed(f)) => f.kind,
        other => panic!("{other:?}"),
    };
    assert_eq!(failure(measure("variant=tiled,tile=16,threads=128", &whole)), FailureKind::Compile);
    assert_eq!(failure(measure("variant=tiled,tile=8,threads=128", &whole)), FailureKind::Illegal);
    let short = Timing { cut_off: Some(Duration::from_micros(300)), ..whole.clone() };
    assert_eq!(failure(measure("variant=tiled,tile=8,threads=64", &short)), FailureKind::CutOff);
    assert!(measure("variant=tiled,tile=16,threads=64", &short).is_ok());
    let best = problem.optimum().unwrap();
    assert_eq!(best, (point(&problem, "variant=tiled,tile=16,threads=64"), 0.00025));
}

#[test]
fn another_input_is_not_answered_for() {
    let kernel = blur();
    let large = kernel.recorded("Alpha", &Config::parse("image=512,border=clamp").unwrap()).unwrap();
    let at = large.optimum().unwrap().0;
    let result = problem().replay().measure(&large, &at, &Timing::default());
    assert!(matches!(result, Err(MeasureError::Failed(_))), "{result:?}");
    assert!(kernel.recorded("Gamma", &Config::parse("image=512,border=clamp").unwrap()).is_err());
    assert!(kernel.recorded("Alpha", &Config::parse("image=512").unwrap()).is_err());
}

#[test]
fn the_replay_device_conforms() {
    let problem = problem();
    tilewright_testkit::measure(&mut problem.replay(), &problem).unwrap();
}

#[test]
fn features_are_those_of_the_table() {
    let problem = problem();
    let mut row = Vec::new();
    problem.input_features(&mut row);
    problem.config_features(&point(&problem, "variant=tiled,tile=16,threads=64"), &mut row);
    assert_eq!(row.len(), problem.schema().width());
    assert_eq!(row, blur().dataset().training_set().unwrap().row(1));
}

#[test]
fn inputs_are_drawn_from_the_recording() {
    let kernel = blur();
    let limits = tilewright_core::computation::InputLimits { max_flops: 1.0, max_bytes: 1.0 };
    let fixed = Config::parse("image=512").unwrap();
    let drawn = kernel.draw(&fixed, &limits, &mut || 0.99).unwrap();
    assert_eq!(drawn.to_string(), "image=512,border=clamp");
    assert!(kernel.draw(&Config::parse("image=1").unwrap(), &limits, &mut || 0.0).is_err());
    let device = kernel.devices()[1].clone();
    assert_eq!(
        kernel.problem(&device, &Config::parse("image=256,border=wrap").unwrap()).unwrap().space().count_legal(),
        3
    );
    assert!(kernel.problem(&device, &drawn).is_err(), "Beta has no 512");
}

#[test]
fn a_recording_has_no_code() {
    let problem = problem();
    let at = problem.optimum().unwrap().0;
    let program = problem.program(&problem.space().check(&at).unwrap());
    let [Step::Host(code)] = program.steps.as_slice() else { panic!("{program:?}") };
    let mut workspace = Buffer::zeroed(DType::I8, 0);
    let ran = code.run(&mut HostArgs { buffers: &mut [], scalars: &[], workspace: &mut workspace });
    assert!(ran.unwrap_err().to_string().contains("a recording has times and no code"));
}
