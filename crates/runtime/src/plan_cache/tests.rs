use super::*;
use crate::store::StoreErrorKind;
use std::sync::Arc;
use tilewright_core::decision::{Alternative, Tie, Tied};
use tilewright_core::device::DeviceSpec;
use tilewright_core::problem::Bound;
use tilewright_testkit::toy::{self, ScaleInput, ScaleKernel};

fn plan(problem: &dyn Problem) -> CachedPlan {
    let point = problem.default_point().unwrap();
    let config = problem.space().config(&point);
    let kernel = problem.kernel();
    let chosen = Alternative { kernel, config: config.clone(), predicted_s: None, measured_s: Some(1e-3) };
    let decision = Decision::of(chosen, 9, "because".into());
    CachedPlan {
        config,
        predicted_s: None,
        measured_s: Some(1e-3),
        max_rel_error: Some(0.0),
        decision,
        looks: Vec::new(),
    }
}

fn bound(kernel: ScaleKernel, device: Arc<DeviceSpec>, n: usize) -> Bound<ScaleKernel> {
    let dtype = tilewright_core::dtype::DType::F32;
    Bound::new(Arc::new(kernel), device, ScaleInput { n, dtype }).unwrap()
}

#[test]
fn what_is_put_is_found_for_the_same_question_only() {
    let dir = tempfile::tempdir().unwrap();
    let cache = PlanCache::new(dir.path());
    let (time, problem) = (Objective::default(), toy::problem(1000));
    assert_eq!(cache.get(&problem, &time).unwrap(), Lookup::Miss);
    let mut plan = plan(&problem);
    let member = |config: &Config| Tied {
        kernel: problem.kernel(),
        config: config.clone(),
        measured_s: Some(1e-3),
        relative: 1.002,
    };
    let (order, why) = ("an order".to_owned(), "it is first".to_owned());
    plan.decision.tie = Some(Tie { members: vec![member(&plan.config)], within: 0.01, order, why });
    cache.put(&problem, &time, &plan).unwrap();
    let point = problem.default_point().unwrap();
    assert_eq!(cache.get(&problem, &time).unwrap(), Lookup::Hit(Box::new(plan), point));
    assert_eq!(cache.get(&toy::problem(1001), &time).unwrap(), Lookup::Miss);
    let energy = Objective { metric: "energy_j".into(), ..time.clone() };
    assert_eq!(cache.get(&problem, &energy).unwrap(), Lookup::Miss);
    assert_eq!(cache.entries().unwrap().len(), 1);
}

#[test]
fn another_state_of_device_or_kernel_is_stale() {
    let dir = tempfile::tempdir().unwrap();
    let cache = PlanCache::new(dir.path());
    let time = Objective::default();
    let problem = toy::problem(1000);
    cache.put(&problem, &time, &plan(&problem)).unwrap();
    let changed = [
        (bound(ScaleKernel::new(), toy::device_with(16), 1000), "state of the device"),
        (bound(ScaleKernel::new().restricted("width <= 4"), toy::device(), 1000), "parameter space"),
    ];
    for (other, what) in changed {
        let Lookup::Stale(why) = cache.get(&other, &time).unwrap() else {
            panic!("trusted in spite of another {what}")
        };
        assert!(why.contains(what), "{why}");
    }
}

#[test]
fn damage_is_an_error_that_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let cache = PlanCache::new(dir.path());
    let time = Objective::default();
    let problem = toy::problem(1000);
    let path = cache.put(&problem, &time, &plan(&problem)).unwrap();
    let mut damaged = std::fs::read(&path).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(&path, damaged).unwrap();
    let error = cache.get(&problem, &time).unwrap_err();
    assert_eq!(error.path, path);
    assert!(matches!(error.kind, StoreErrorKind::Corrupt(_)), "{error}");
}

#[test]
fn an_entry_of_before_looks_and_ties_were_noted_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let cache = PlanCache::new(dir.path());
    let (time, problem) = (Objective::default(), toy::problem(1000));
    let plan = plan(&problem);
    let path = cache.put(&problem, &time, &plan).unwrap();
    /// What an entry was.
    #[derive(Serialize)]
    struct Old {
        config: Config,
        predicted_s: Option<f64>,
        measured_s: Option<f64>,
        max_rel_error: Option<f64>,
        decision: OldDecision,
    }
    /// What a decision was.
    #[derive(Serialize)]
    struct OldDecision {
        chosen: Alternative,
        considered: Vec<Alternative>,
        considered_count: u64,
        reason: String,
    }
    let CachedPlan { config, predicted_s, measured_s, max_rel_error, decision, looks: _ } = plan.clone();
    let Decision { chosen, considered, considered_count, reason, .. } = decision;
    let decision = OldDecision { chosen, considered, considered_count, reason };
    let old = Old { config, predicted_s, measured_s, max_rel_error, decision };
    envelope::write(&path, FORMAT, &PlanHeader::new(&problem, time.clone()), &old).unwrap();
    let Lookup::Hit(found, _) = cache.get(&problem, &time).unwrap() else { panic!("not read") };
    let decision = Decision { variants: Vec::new(), ..plan.decision.clone() };
    assert_eq!(*found, CachedPlan { decision, ..plan });
}

#[test]
fn a_plan_that_is_none_here_is_not_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let cache = PlanCache::new(dir.path());
    let time = Objective::default();
    let problem = toy::problem(1000);
    let honest = plan(&problem);
    let stale = |config: Config| {
        cache.put(&problem, &time, &CachedPlan { config, ..honest.clone() }).unwrap();
        match cache.get(&problem, &time).unwrap() {
            Lookup::Stale(why) => why,
            other => panic!("trusted: {other:?}"),
        }
    };
    assert!(stale(Config::default()).contains("none of this space"));
    let mut unknown = honest.config.clone();
    unknown.0.push(("colour".into(), "red".into()));
    assert!(stale(unknown).contains("colour"));
    // The widest step of all: more than the toy device's registers hold.
    let point = Point(vec![4, 4, 0, 0, 0]);
    assert!(stale(problem.space().config(&point)).contains("not legal"));
}
