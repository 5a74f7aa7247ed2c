use super::learn::worth_of_ratings;
use super::*;
use crate::RuntimeError;
use crate::log::Sample;
use std::sync::Arc;
use std::time::Instant;
use tilewright_core::choice::{Case, ChoiceSet, Trial};
use tilewright_core::computation::Computation;
use tilewright_core::device::DeviceSpec;
use tilewright_core::feature::{Feature, FeatureSchema};
use tilewright_core::measurement::{Failure, FailureKind, Measurement, Outcome};
use tilewright_core::objective::Objective;
use tilewright_core::problem::{AnyKernel, Erased};
use tilewright_core::space::Config;
use tilewright_testkit::toy::{self, Scale, ScaleKernel};

fn scale() -> Erased<ScaleKernel> {
    Erased::new(ScaleKernel::new())
}

fn words(text: &str) -> Config {
    Config::parse(text).unwrap()
}

fn ids(names: &[&'static str]) -> Vec<KernelId> {
    names.iter().map(|name| KernelId::new(name)).collect()
}

/// "near" is best below 4096 elements, "far" above; "last" never; "picky" fails for odd inputs.
fn learned(inputs: usize) -> ChoiceSet {
    let schema = FeatureSchema { input: Scale.feature_names(), config: Vec::new() };
    let width = schema.input.len();
    let mut out = ChoiceSet::new(schema);
    for i in 0..inputs {
        let n = 40.0 * 1.02f64.powi((i * 37 % 450) as i32);
        let trial = |name: &str, cost: Option<f64>| Trial {
            candidate: Candidate { variant: name.into(), features: Vec::new() },
            cost,
        };
        let (near, far) = if n < 4096.0 { (1.0, 2.0) } else { (3.0, 1.0) };
        let picky = (i % 2 == 0).then_some(1.5);
        let trials = vec![
            trial("scale.near", Some(near)),
            trial("scale.far", Some(far)),
            trial("scale.last", Some(9.0)),
            trial("scale.picky", picky),
        ];
        let mut features = vec![n as f32; width];
        features[width - 1] = f32::NAN;
        out.push(Case { features, trials, group: i as u32 }).unwrap();
    }
    out
}

fn header(fixed: &str) -> SelectorHeader {
    SelectorHeader::new(Scale.id(), &toy::device(), Objective::default(), words(fixed))
}

#[test]
fn a_selector_is_learned_kept_and_fitted_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = SelectorStore::new(dir.path());
    let learned = learn(header(""), learned(200), None).unwrap();
    assert!(learned.header.stats.fraction_of_oracle.unwrap() > 0.95, "{:?}", learned.header);
    let path = store.put(&learned).unwrap();
    let (found, read) = store.find(&scale(), &toy::device(), &words("n=5")).unwrap().best.unwrap();
    assert_eq!((&found, &read.header), (&path, &learned.header));
    assert_eq!(format!("{:?}", read.cases), format!("{:?}", learned.cases));
    let began = Instant::now();
    let ranker = Ranker::Stored(&read, String::new());
    let kernels = ids(&["scale.new", "scale.last", "scale.far", "scale.near"]);
    let mut features = vec![300.0; read.cases.schema().input.len()];
    assert_eq!(ranker.rank(&features, &kernels).unwrap().order[0], 3);
    features.fill(1e5);
    let ranked = ranker.rank(&features, &kernels).unwrap();
    // What it never saw it does not rank.
    assert!(ranked.order[0] == 2 && !ranked.order.contains(&0) && ranked.faults.is_empty(), "{ranked:?}");
    println!("method {}: {:?} for two fits", read.header.method, began.elapsed());
    assert!(learn(header(""), ChoiceSet::new(learned.cases.schema().clone()), None).is_err());
}

#[test]
fn an_incumbent_is_kept_across_files_and_left_where_that_is_worth_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = SelectorStore::new(dir.path());
    let [near, far] = ["scale.near", "scale.far"].map(|name| KernelId::from(name.to_owned()));
    let first = |read: &StoredSelector, size: f32| {
        let features = vec![size; read.cases.schema().input.len()];
        let ranked = Ranker::Stored(read, String::new()).rank(&features, &[near.clone(), far.clone()]).unwrap();
        ranked.order[0]
    };
    let learned = learn(header(""), learned(200), Some(&far)).unwrap();
    let StoredIncumbent { kernel, margin, .. } = learned.header.incumbent.clone().unwrap();
    assert!(kernel == far && margin.is_some_and(|margin| margin >= 0.0), "{margin:?}");
    store.put(&learned).unwrap();
    let (_, read) = store.find(&scale(), &toy::device(), &words("n=5")).unwrap().best.unwrap();
    assert_eq!(read.header, learned.header);
    assert_eq!((first(&read, 300.0), first(&read, 1e5)), (0, 1));
    assert!(learned.header.incumbent.as_ref().unwrap().fraction_of_oracle.unwrap() > 0.9, "{:?}", learned.header);
    // A method that only ranks would never leave it.
    let mut ranks = learn(header(""), self::learned(200), None).unwrap();
    ranks.header.method = "regression".into();
    let other = ranks.keeping(&far).unwrap();
    assert!(other.header.method != "regression" && first(&other, 300.0) == 0, "{:?}", other.header);
    // Who expects less than the margin stays, and so does who knows no margin.
    for margin in [Some(10.0), None] {
        let mut wary = learned.clone();
        wary.header.incumbent = Some(StoredIncumbent { kernel: far.clone(), margin, fraction_of_oracle: None });
        store.put(&wary).unwrap();
        let (_, read) = store.find(&scale(), &toy::device(), &words("n=5")).unwrap().best.unwrap();
        assert_eq!((read.header.incumbent.clone().unwrap().margin, first(&read, 300.0)), (margin, 1));
    }
}

#[test]
fn the_selector_that_fits_best_is_found_and_a_stale_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (store, device) = (SelectorStore::new(dir.path()), toy::device());
    let find = |device: &Arc<DeviceSpec>, input: &str| store.find(&scale(), device, &words(input)).unwrap().best;
    for fixed in ["", "dtype=f64"] {
        store.put(&learn(header(fixed), learned(12), None).unwrap()).unwrap();
    }
    assert_eq!(find(&device, "n=3,dtype=f64").unwrap().1.header.fixed, words("dtype=f64"));
    let (path, stored) = find(&device, "n=3,dtype=f32").unwrap();
    assert_eq!(stored.header.fixed, words(""));
    assert!(find(&toy::device_with(16), "n=3").is_none());
    let schema = AnyKernel::schema(&Erased::new(ScaleKernel::new()));
    assert!(stored.expect(&path, &Scale.id(), &device, &schema).is_ok());
    let other = FeatureSchema { input: vec![Feature::size("m")], ..schema.clone() };
    let refused = |schema: &FeatureSchema, device: &DeviceSpec, of: &'static str| {
        let error = stored.expect(&path, &ComputationId::new(of), device, schema).unwrap_err();
        assert_eq!(error.path, path);
        RuntimeError::from(error).kind()
    };
    assert_eq!(refused(&other, &device, "scale"), "schema-mismatch");
    assert_eq!(refused(&schema, &toy::device_with(16), Scale.id().to_string().leak()), "other-device");
    assert_eq!(refused(&schema, &device, "sort"), "other-kernel");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
    assert_eq!(RuntimeError::from(StoredSelector::read(&path).unwrap_err()).kind(), "truncated");
    assert!(find(&device, "n=3,dtype=f32").is_none(), "a damaged file is passed over");
    let strange = SelectorHeader { method: "oracle".into(), ..stored.header };
    let error = StoredSelector { header: strange, cases: stored.cases }.fit().err().unwrap();
    assert!(matches!(&error, SelectionError::UnknownMethod { method, .. } if method == "oracle"), "{error}");
    assert_eq!(RuntimeError::from(error).field().as_deref(), Some("selector"));
}

struct Says(Vec<usize>);

impl Selector for Says {
    fn rank(&self, _: &[f32], _: &[Candidate], out: &mut VariantOrder) {
        out.clone_from(&self.0);
    }
}

#[test]
fn a_wrong_order_is_mended_and_said_so() {
    let kernels = ids(&["a", "b", "c"]);
    let rank = |order: Vec<usize>| Ranker::Own(&Says(order)).rank(&[], &kernels).unwrap();
    let RankedVariants { order, faults, .. } = rank(vec![2, 7, 0, 2]);
    assert_eq!(order, [2, 0]);
    let twice = SelectionError::Twice { kernel: KernelId::new("c") };
    assert_eq!(faults, [SelectionError::UnknownVariant { index: 7, of: 3 }, twice]);
    assert_eq!(rank(vec![]).faults, [SelectionError::Nothing { of: 3 }]);
}

fn sample(input: &str, outcome: Outcome, cut_off_s: Option<f64>) -> Sample {
    let config = Config::default();
    Sample { draw: 0, seed: 0, input: words(input), config, outcome, cut_off_s, spent_s: 0.0 }
}

#[test]
fn cases_hold_the_best_of_each_kernel_and_what_cannot_run() {
    let kernel = |name, rule: &str| Erased::new(ScaleKernel::new().restricted(rule).named(name));
    let (a, b, never, idle) = (
        kernel("scale.a", "width <= 16"),
        Erased::new(ScaleKernel::new().restricted("width <= 16").named("scale.b").suiting(1.0)),
        Erased::new(ScaleKernel::new().restricted("width > 16").named("scale.never").suiting(2.0)),
        kernel("scale.idle", "width <= 16"),
    );
    let took = |s: f64| Ok(Measurement::recorded(s));
    let failed = |kind| Err(Failure { kind, message: String::new() });
    let of_a = [sample("n=100", took(3.0), None), sample("n=100", took(2.0), None), sample("n=7", took(1.0), None)];
    let of_b = [
        sample("n=100", failed(FailureKind::CutOff), Some(8.0)),
        sample("n=9", took(1.0), None),
        sample("n=7", failed(FailureKind::Launch), None),
    ];
    let kernels: [&dyn AnyKernel; 4] = [&a, &b, &never, &idle];
    let samples: [&[Sample]; 4] = [&of_a, &of_b, &[], &[]];
    let Cases { set: found, suits } = cases(&kernels, &toy::device(), &samples, &Objective::default()).unwrap();
    let costs = |at: usize| -> Vec<(&str, Option<f64>)> {
        found.cases()[at].trials.iter().map(|t| (t.candidate.variant.as_str(), t.cost)).collect()
    };
    assert_eq!(found.len(), 2, "an input of one kernel only says nothing");
    assert_eq!(
        suits,
        [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]],
        "what each of the kernels of a case says, and nothing of what cannot run"
    );
    assert_eq!(costs(0), [("scale.a", Some(2.0)), ("scale.b", Some(8.0)), ("scale.never", None)]);
    assert_eq!(costs(1), [("scale.a", Some(1.0)), ("scale.b", None), ("scale.never", None)]);
    assert_eq!(found.cases()[0].features.len(), found.schema().input.len());
    let store = SelectorStore::new(tempfile::tempdir().unwrap().path());
    let fixed = (&Objective::default(), &Config::default(), None);
    let too_few = learn_from(&store, (&kernels, &samples), &toy::device(), fixed, 1).unwrap();
    assert!(too_few.is_none());
}

#[test]
fn the_kernels_own_rating_is_weighed_beside_the_selector() {
    let says = |suits: &[f64], order: &[usize]| {
        let mut order = order.to_vec();
        let found = leader(&order, |at| suits[at]);
        found.iter().for_each(|at| lead(&mut order, *at));
        order
    };
    assert_eq!(says(&[0.0, 1.0, 1.0], &[0, 2, 1]), [1, 0, 2], "of equals the one that is named first");
    assert_eq!(says(&[1.0, 2.0, 1.0], &[1, 2, 0]), [1, 2, 0], "it leads already");
    assert!(leader(&[], |_| 1.0).is_none());
    // A rating that is always wrong, and one that is always right.
    let set = learned(200);
    let costs = |case: &Case| case.trials.iter().map(|t| t.cost.unwrap_or(f64::INFINITY)).collect::<Vec<_>>();
    let worth = |rates: &dyn Fn(&[f64], f64) -> bool| {
        let ratings = |case: &Case| {
            let costs = costs(case);
            costs.iter().map(|cost| f64::from(u8::from(rates(&costs, *cost)))).collect()
        };
        let suits: Vec<Vec<f64>> = set.cases().iter().map(ratings).collect();
        let stored = learn(header(""), set.clone(), None).unwrap();
        worth_of_ratings(&Cases { set: set.clone(), suits }, &stored.header).unwrap()
    };
    let right = worth(&|all, cost| all.iter().all(|other| *other >= cost));
    assert!((right - 1.0).abs() < 1e-9, "{right}");
    let wrong = worth(&|_, cost| cost == 9.0);
    assert!(wrong < 0.2, "{wrong}");
}

#[test]
fn a_header_of_before_says_nothing_of_ratings() {
    let stats: SelectorStats = serde_json::from_str(r#"{"inputs":3,"fraction_of_oracle":0.5}"#).unwrap();
    assert_eq!(stats, SelectorStats { inputs: 3, fraction_of_oracle: Some(0.5), suited: None });
}
