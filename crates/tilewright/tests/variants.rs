//! The kernels of a computation compete: with libraries' routines, by a selector that was learned, by one's own.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tilewright::core::decision::Variant;
use tilewright::core::device::DeviceSpec;
use tilewright::core::measurement::Timing;
use tilewright::core::problem::{AnyKernel, Erased, Measure, MeasureError};
use tilewright::core::selector::{Candidate, Selector, VariantOrder};
use tilewright::core::space::Config;
use tilewright::kernels::Kernels;
use tilewright::planning::Planning;
use tilewright::runtime::log::Sample;
use tilewright::runtime::plan::{PlanSettings, Planned};
use tilewright::runtime::selection::{SelectorStore, StoredSelector, learn_from};
use tilewright::runtime::store::Home;
use tilewright::runtime::{Live, RuntimeError};
use tilewright::{Callable, Error, Request, Tuner};
use tilewright_testkit::toy::{self, AnalyticMeasure, ScaleKernel};

/// What a machine with a library has of the toy computation: a routine that is best for long vectors.
fn library(computation: &str, _: &DeviceSpec) -> Vec<Arc<dyn AnyKernel>> {
    let routine = "prefetch == 16 and width == 8 and unroll == 4 and chunks == 8 and order == 'forward'";
    let routine = ScaleKernel::new().restricted(routine).named("scale.fakeblas.1");
    if computation == "scale" { vec![Arc::new(Erased::new(routine))] } else { Vec::new() }
}

fn generated() -> Arc<dyn AnyKernel> {
    Arc::new(Erased::new(ScaleKernel::new().restricted("prefetch == 1").named("scale.near.1")))
}

fn decide(home: &Path, kernels: &[Arc<dyn AnyKernel>], with_libraries: bool) -> Result<Planned, Error> {
    let budget = Duration::from_millis(200);
    let device = toy::device();
    let (home, settings) = (Home::at(home), PlanSettings { refine: budget, budget, ..PlanSettings::default() });
    let mut measure = AnalyticMeasure::new(device.clone()).checked_on(toy::host_device());
    let planning = Planning::new(&home, kernels, &device, Some(&mut measure), settings);
    let planning = Planning { with_libraries, ..planning };
    planning.decide(&Config::parse("n=100000").unwrap()).map(|(problem, planned)| {
        assert_eq!(problem.kernel(), planned.kernel);
        planned
    })
}

#[test]
fn routines_of_libraries_compete_where_they_are_asked_for() {
    let kernels = Kernels::default().with_libraries(library);
    let names = |name: &str, with: bool| -> Result<Vec<String>, Error> {
        let found = kernels.competing(name, &toy::device(), with)?;
        Ok(found.iter().map(|kernel| kernel.id().to_string()).collect())
    };
    assert_eq!(names("scale", true).unwrap(), ["scale.fakeblas.1"]);
    assert_eq!(names("scale.fakeblas", false).unwrap(), ["scale.fakeblas.1"]);
    assert!(matches!(names("scale", false), Err(Error::UnknownKernel { .. })));
    assert!(matches!(names("scale.mkl", true), Err(Error::UnknownKernel { .. })));
    assert_eq!(names("spmv", true).unwrap(), names("spmv", false).unwrap());

    let home = tempfile::tempdir().unwrap();
    let all = [vec![generated()], kernels.libraries("scale", &toy::device())].concat();
    let alone = decide(home.path(), &all[..1], false).unwrap();
    assert_eq!((alone.kernel.as_str(), alone.cached), ("scale.near.1", false));
    let beside = decide(home.path(), &all, true).unwrap();
    assert_eq!((beside.kernel.as_str(), beside.cached, beside.verified), ("scale.fakeblas.1", false, true));
    assert!(decide(home.path(), &all, true).unwrap().cached && decide(home.path(), &all[..1], false).unwrap().cached);
    // Another generated kernel, so that several are left when the library is gone.
    let other: Arc<dyn AnyKernel> =
        Arc::new(Erased::new(ScaleKernel::new().restricted("prefetch == 2").named("scale.two.1")));
    let gone = decide(home.path(), &[generated(), other], true).unwrap();
    assert_eq!((gone.kernel.as_str(), gone.cached, gone.verified), ("scale.two.1", false, true));
    assert!(gone.reason.contains("scale.fakeblas.1, which the cached plan is of, is not there"), "{}", gone.reason);
}

fn spmv() -> Request {
    Request::of("spmv").with("matrix", "banded").with("rows", 300).with("half", 2)
}

fn tuner(home: &Path) -> Tuner {
    Tuner::on("cpu").unwrap().threads(1).unwrap().budget(Duration::from_millis(120)).home(home)
}

fn variants(callable: &Callable) -> Vec<String> {
    let all = callable.planned().decision.variants.iter().filter(|v| v.reason.is_none());
    all.map(|v| v.name.to_string()).collect()
}

/// Knows nothing of inputs.
struct Fixed(&'static str);

impl Selector for Fixed {
    fn rank(&self, _: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        *out = (0..candidates.len()).filter(|at| candidates[*at].variant == self.0).collect();
    }
}

#[test]
fn all_kernels_are_planned_once_and_ones_own_selector_is_heard() {
    let home = tempfile::tempdir().unwrap();
    let first = tuner(home.path()).plan(&spmv()).unwrap();
    assert!(first.planned().verified && !first.planned().cached, "{}", first.planned().reason);
    assert_eq!(variants(&first).len(), 6, "{:?}", first.planned().decision.variants);
    let again = tuner(home.path()).plan(&spmv()).unwrap();
    assert!(again.planned().cached && again.planned().kernel == first.planned().kernel);
    let other = tempfile::tempdir().unwrap();
    let mut own = tuner(other.path()).selector(Fixed("spmv.ell.1")).with_libraries(true);
    let planned = own.plan(&spmv()).unwrap();
    assert_eq!(variants(&planned), ["spmv.ell.1"], "{}", planned.planned().reason);
    // A kernel by its own name competes with no other.
    let named = Request::of("spmv.coo").with("matrix", "banded").with("rows", 300).with("half", 2);
    assert_eq!(tuner(other.path()).plan(&named).unwrap().planned().kernel.as_str(), "spmv.coo.1");
}

/// Times the default configuration of every kernel on a few small matrices, and learns from that.
fn learned(home: &Path, spec: &Arc<DeviceSpec>) -> StoredSelector {
    let mut measure = Live::new(tilewright::DeviceName::Cpu.open(Some(1)).unwrap());
    let kernels = Kernels::default().competing("spmv", spec, false).unwrap();
    let timing = Timing { min_repeats: 1, max_repeats: 2, max_time: Duration::from_micros(500), ..Timing::default() };
    let mut samples = vec![Vec::new(); kernels.len()];
    for draw in 0..14u64 {
        let text = format!("matrix=uniform,rows={},per_row={},seed={draw}", 50 + 40 * draw, 2 + draw % 5);
        let input = Config::parse(&text).unwrap();
        for (kernel, samples) in kernels.iter().zip(&mut samples) {
            let problem = kernel.problem(spec, &input).unwrap();
            let Some(point) = problem.default_point() else { continue };
            let outcome = match measure.measure(&*problem, &point, &timing) {
                Ok(measured) => Ok(measured),
                Err(MeasureError::Failed(failure)) => Err(failure),
                Err(MeasureError::Device(error)) => panic!("{error}"),
            };
            let (input, config) = (problem.input(), problem.space().config(&point));
            samples.push(Sample { draw, seed: 0, input, config, outcome, cut_off_s: None, spent_s: 0.0 });
        }
    }
    let kernels: Vec<&dyn AnyKernel> = kernels.iter().map(|kernel| &**kernel).collect();
    let samples: Vec<&[Sample]> = samples.iter().map(Vec::as_slice).collect();
    let store = SelectorStore::new(Home::at(home).profiles());
    let what = (&Default::default(), &Config::default(), None);
    learn_from(&store, (&kernels, &samples), spec, what, 3).unwrap().unwrap().1
}

#[test]
fn a_learned_selector_ranks_and_kernels_of_few_configurations_are_all_timed() {
    let home = tempfile::tempdir().unwrap();
    let mut tuner = tuner(home.path());
    let selector = learned(home.path(), &tuner.spec());
    assert_eq!((selector.header.variants.len(), selector.header.stats.inputs), (6, 14), "{:?}", selector.header);
    let planned = tuner.plan(&spmv()).unwrap();
    let decision = &planned.planned().decision;
    let said = decision.selection.as_ref().unwrap();
    assert_eq!((said.inputs, said.ranked.len(), &said.method), (14, 6, &selector.header.method));
    // Unless a busy machine spends the time on those before.
    let short = |v: &&Variant| v.reason.as_deref().is_some_and(|why| why.contains("the time was short"));
    let (timed, short) = (variants(&planned).len(), decision.variants.iter().filter(short).count());
    assert!(timed >= 3 && timed + short == 6, "{:?}", decision.variants);
    assert!(decision.reason.contains("learned on 14 inputs"), "{}", decision.reason);
    assert!(tuner.plan(&spmv()).unwrap().planned().cached);
    // A selector of features that are others now is refused with a reason, and all are searched.
    let store = SelectorStore::new(Home::at(home.path()).profiles());
    let mut stale = selector;
    stale.header.schema = "0".into();
    store.put(&stale).unwrap();
    let anew = tuner.plan(&spmv().with("rows", 200)).unwrap();
    assert_eq!(variants(&anew).len(), 6);
    assert!(anew.planned().reason.contains("tored selector is of no use"), "{}", anew.planned().reason);
}

#[test]
fn errors_of_all_kernels_are_the_first_ones() {
    let home = tempfile::tempdir().unwrap();
    let error = tuner(home.path()).plan(&Request::of("spmv").with("matrix", "none.mtx")).unwrap_err();
    assert_eq!(error.field().as_deref(), Some("matrix"), "{error}");
    assert!(matches!(error, Error::Runtime(RuntimeError::Problem(_))), "{error}");
}
