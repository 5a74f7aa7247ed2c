//! Transfer between made-up devices whose physics is known, the two algorithms, and what cannot be learned from.

use tilewright_core::choice::{Case, ChoiceSet, FitSelector, SelectError, Trial};
use tilewright_core::feature::{Feature, FeatureSchema};
use tilewright_core::metrics::ChoiceScores;
use tilewright_core::selector::{Candidate, Selector, VariantOrder};
use tilewright_core::setting::SettingError;
use tilewright_core::space::Config;
use tilewright_mtl::baselines::{BestOnSources, Majority};
use tilewright_mtl::cvdfs::{CvDfs, Judge, cvdfs};
use tilewright_mtl::device::DeviceTable;
use tilewright_mtl::forward::{Forward, forward};
use tilewright_mtl::leave_one_out::leave_one_out;
use tilewright_mtl::pdfs::{Proxy, pdfs};
use tilewright_mtl::profile::{OperationCounts, Profile, parse_profiles};
use tilewright_mtl::transfer::{Dfs, Profiles, tune_from_source};
use tilewright_mtl::view::View;
use tilewright_mtl::{MtlError, Source, Sources};
use tilewright_variant_select::forest::CostForest;
use tilewright_variant_select::svm::Svm;

fn trial(variant: &str, cost: f64) -> Trial {
    Trial { candidate: Candidate { variant: variant.into(), features: Vec::new() }, cost: Some(cost) }
}

/// "many" needs a round for every `cores` elements, "one" none: it pays off from n = 10 cores on. The year says nothing.
fn device(name: &str, cores: f64, year: i64) -> Source {
    let schema = FeatureSchema { input: vec![Feature::size("n"), Feature::size("noise")], config: Vec::new() };
    let mut cases = ChoiceSet::new(schema);
    for i in 0..150u32 {
        let n = 10f64.powf(1.0 + 3.0 * f64::from((i * 37) % 150) / 150.0);
        let trials = vec![trial("one", n), trial("many", 9.0 * cores + n / 10.0)];
        cases.push(Case { features: vec![n as f32, (i % 7) as f32], trials, group: i }).unwrap();
    }
    let features =
        Config(vec![("year".into(), year.into()), ("cores".into(), cores.into()), ("vendor".into(), "x".into())]);
    Source { device: name.into(), features, cases }
}

fn four() -> Sources {
    let all = [("a", 4.0, 2013), ("b", 16.0, 2010), ("c", 32.0, 2012), ("d", 100.0, 2011)];
    Sources::new(all.map(|(n, c, y)| device(n, c, y)).to_vec()).unwrap()
}

fn forest() -> CostForest {
    CostForest { trees: 30, ..CostForest::default() }
}

fn svm() -> Svm {
    Svm { widths: vec![2.0], penalties: vec![10.0], ..Svm::default() }
}

#[test]
fn physics_carries_over_to_a_device_between_the_others() {
    let target = device("t", 50.0, 2016);
    let fraction = |s: &dyn Selector| ChoiceScores::of(s, &target.cases).unwrap().fraction_of_oracle;
    let (plans, compared, _) = leave_one_out(&four(), ("t", &target.features), &forest(), 0).unwrap();
    assert!(compared.chosen.contains(&"ratios") && !compared.chosen.contains(&"blind"), "{compared:?}");
    assert_eq!((plans.len(), compared.plans.len()), (compared.chosen.len(), 6));
    let tuned = tune_from_source(&four(), ("t", &target.features), &Dfs::LeaveOneOut, &forest(), 0).unwrap();
    let tuned = fraction(&tuned);
    let majority = fraction(&Majority::fit(&four(), &forest(), 0).unwrap());
    let fixed = fraction(&BestOnSources::fit(&four()));
    assert!(tuned > 0.97 && tuned > majority && tuned > fixed, "{tuned} {majority} {fixed}");
    assert!(fraction(&tune_from_source(&four(), ("t", &target.features), &Dfs::Full, &svm(), 0).unwrap()) > 0.8);
}

#[test]
fn cross_validation_finds_the_feature_that_matters() {
    let features = ["year", "cores"].map(String::from);
    for judge in [Judge::Performance, Judge::Labels] {
        let settings = CvDfs { judge, cases: 100, ..CvDfs::default() };
        let found = cvdfs(&four(), &features, &svm(), settings, 0).unwrap();
        assert_eq!((found.features, found.fits), (vec!["cores".to_owned()], 4 * 3));
        assert_eq!(found.of_targets.len(), 4);
    }
    let both = CvDfs { k: 5, cases: 60, ..CvDfs::default() };
    assert!(cvdfs(&four(), &features, &svm(), both, 0).unwrap().features.len() <= 2);
    let zero = cvdfs(&four(), &features, &svm(), CvDfs { k: 0, ..CvDfs::default() }, 0);
    assert!(matches!(zero, Err(MtlError::Setting(SettingError { field: "k", .. }))));
    let none = cvdfs(&four(), &[], &svm(), CvDfs::default(), 0);
    assert!(matches!(none, Err(MtlError::TooFew { found: 0, .. })));
    let two = four().without(0).unwrap().without(0).unwrap();
    assert!(matches!(
        cvdfs(&two, &features, &svm(), CvDfs::default(), 0),
        Err(MtlError::TooFew { found: 2, needed: 3, .. })
    ));
}

#[test]
fn features_come_in_one_by_one_while_they_help() {
    let features = ["year", "cores", "vendor"].map(String::from);
    let settings = Forward { cases: 100, splits: 2, ..Forward::default() };
    let found = forward(&four(), &features, &svm(), settings, 0).unwrap();
    // "year" is the same within a twentieth, "vendor" everywhere: neither is looked at.
    assert_eq!((found.features, found.scores.len(), found.fits), (vec!["cores".to_owned()], 2, 4 * 2 * 2));
    assert!(found.scores[1] > found.scores[0], "{:?}", found.scores);
    let alike = Sources::new(["a", "b", "c"].map(|n| device(n, 16.0, 2010)).to_vec()).unwrap();
    let none = forward(&alike, &features, &svm(), settings, 0).unwrap();
    assert!(none.features.is_empty() && none.scores[0] > 0.9, "{none:?}");
    let target = device("t", 50.0, 2016);
    let tuned = tune_from_source(&four(), ("t", &target.features), &Dfs::Forward(settings), &svm(), 0).unwrap();
    assert_eq!(tuned.features, ["cores"]);
    let zero = forward(&four(), &features, &svm(), Forward { splits: 0, ..settings }, 0);
    assert!(matches!(zero, Err(MtlError::Setting(SettingError { field: "splits", .. }))));
    let two = four().without(0).unwrap().without(0).unwrap();
    assert!(matches!(forward(&two, &features, &svm(), settings, 0), Err(MtlError::TooFew { found: 2, .. })));
}

fn profile(variant: &str, input: u32, counts: OperationCounts) -> Profile {
    Profile { variant: variant.into(), kernel: variant.into(), input: input.to_string(), metrics: counts.metrics() }
}

#[test]
fn profiles_point_to_what_the_variants_stress() {
    let sort = OperationCounts { loads: 4.0, stores: 4.0, integer: 3.0, ..OperationCounts::default() };
    let atomic = OperationCounts { loads: 1.0, atomics: 2.0, integer: 1.0, ..OperationCounts::default() };
    let profiles: Vec<Profile> =
        (0..3).flat_map(|i| [profile("sort", i, sort), profile("atomic", i, atomic)]).collect();
    let features = ["peak_gbps", "shared_atomic", "peak_gflops_sp", "l2_cache_size", "year"].map(String::from);
    let found = pdfs(&Proxy::all(), &Proxy::counted_runs(), &profiles, &features).unwrap();
    assert_eq!(found.proxies, ["ATOMIC", "MEM-BW"]);
    assert_eq!(found.features, ["peak_gbps", "shared_atomic", "l2_cache_size"]);
    // One input in three is another kind of run: the majority decides.
    let mut odd = vec![profile("sort", 0, sort), profile("sort", 1, sort)];
    odd.push(profile("sort", 2, OperationCounts { fp32: 9.0, loads: 1.0, ..OperationCounts::default() }));
    assert_eq!(pdfs(&Proxy::all(), &Proxy::counted_runs(), &odd, &features).unwrap().proxies, ["MEM-BW"]);
}

/// Every proxy at full intensity is itself.
#[test]
fn proxies_recognise_themselves() {
    for proxy in Proxy::all() {
        let counts = Proxy::mix(&proxy.name, 5).unwrap();
        assert!((counts.issued() - 10.0).abs() < 1e-12);
        let found = pdfs(&Proxy::all(), &Proxy::counted_runs(), &[profile("v", 0, counts)], &[]).unwrap();
        assert_eq!(found.proxies, [proxy.name], "{:?}", found.intensities);
    }
    assert_eq!(Proxy::mix("none", 3), None);
}

#[test]
fn a_profilers_table_is_read() {
    let ncu = b"\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n\
        0,spmv,smsp__inst_issued.sum,inst,\"1,000\"\n0,spmv,dram__sectors_read.sum,sector,\"2,500\"\n0,spmv,gld_efficiency,%,50\n";
    let profiles = parse_profiles(ncu).unwrap();
    let metrics = &profiles[0].metrics;
    assert_eq!((profiles.len(), profiles[0].variant.as_str()), (1, "spmv"));
    assert_eq!((metrics["dram_read_transactions"], metrics["gld_efficiency"]), (2.5, 50.0));
    let plain = b"variant,kernel,input,metric,value\ncsr,k1,m1,inst_fp_64,0.2\ncsr,k1,m2,inst_fp_64,0.3\n";
    assert_eq!(parse_profiles(plain).unwrap().len(), 2);
    for (text, what) in [("kernel,value\n", "metric"), ("kernel,metric,value\nk,m,x\n", "no number")] {
        let fault = parse_profiles(text.as_bytes()).unwrap_err();
        assert!(matches!(&fault, MtlError::Table { .. }) && fault.to_string().contains(what), "{fault}");
    }
    let negative = parse_profiles(b"kernel,metric,value\nk,inst_fp_64,-1\n");
    assert!(matches!(negative, Err(MtlError::Metric { value: -1.0, .. })), "{negative:?}");
    let none = pdfs(&Proxy::all(), &Proxy::counted_runs(), &[], &[]);
    assert!(matches!(none, Err(MtlError::TooFew { found: 0, .. })));
    let dfs = Dfs::Profiled(Profiles::default());
    assert!(tune_from_source(&four(), ("t", &Config::default()), &dfs, &forest(), 0).is_err());
}

#[test]
fn devices_that_do_not_belong_together_are_named() {
    let (a, mut b) = (device("a", 4.0, 1), device("b", 8.0, 2));
    assert_eq!(Sources::new(vec![a.clone(), a.clone()]), Err(MtlError::Twice("a".into())));
    assert!(matches!(Sources::new(Vec::new()), Err(MtlError::TooFew { found: 0, .. })));
    let mut cases = ChoiceSet::new(b.cases.schema().clone());
    cases
        .push(Case { features: vec![1.0, 1.0], trials: vec![trial("one", 1.0), trial("third", 1.0)], group: 0 })
        .unwrap();
    b.cases = cases;
    let fault = Sources::new(vec![a.clone(), b.clone()]).unwrap_err();
    assert!(matches!(&fault, MtlError::Variants { variant, .. } if variant == "many"), "{fault}");
    assert!(Sources::overlapping(vec![a.clone(), b.clone()]).is_ok());
    let mut strange = ChoiceSet::new(b.cases.schema().clone());
    strange.push(Case { features: vec![1.0, 1.0], trials: vec![trial("third", 1.0)], group: 0 }).unwrap();
    b.cases = strange;
    assert!(matches!(Sources::overlapping(vec![a.clone(), b.clone()]), Err(MtlError::Variants { .. })));
    b.cases = ChoiceSet::new(FeatureSchema { input: vec![Feature::size("m")], config: Vec::new() });
    assert!(matches!(Sources::new(vec![a, b]), Err(MtlError::Schemas { .. })));
}

#[test]
fn a_target_without_its_features_is_named() {
    let bare = Config(vec![("year".into(), 2020.into())]);
    let full = tune_from_source(&four(), ("t", &bare), &Dfs::Full, &forest(), 0).map(|_| ());
    assert_eq!(full, Err(MtlError::MissingFeature { device: "t".into(), feature: "cores".into() }));
    // A comparison makes do with what is there, but not with nothing.
    assert!(leave_one_out(&four(), ("t", &bare), &forest(), 0).is_ok());
    let nothing = leave_one_out(&four(), ("t", &Config::default()), &forest(), 0);
    assert!(matches!(nothing, Err(MtlError::MissingFeature { .. })), "{nothing:?}");
    let mut lacking = device("e", 8.0, 1);
    lacking.features = Config(vec![("cores".into(), f64::NAN.into())]);
    let view = View::concatenated(&four(), &["cores".into()]).unwrap();
    assert!(matches!(view.values("e", &lacking.features), Err(MtlError::MissingFeature { .. })));
}

/// A word of a single device only names it.
#[test]
fn words_that_no_other_device_has_are_left_out() {
    let named = |of: &Source, word: &str| {
        let features = of.features.0.iter().filter(|(n, _)| n != "vendor").cloned();
        let own = Config::parse(&format!("vendor={word}")).unwrap().0;
        Source { features: Config(features.chain(own).collect()), ..of.clone() }
    };
    let words = ["x", "x", "y", "z"];
    let sources = four().all().iter().zip(words).map(|(source, word)| named(source, word)).collect();
    let sources = Sources::new(sources).unwrap();
    let columns = |target: &str| {
        let target = named(&device("t", 50.0, 2016), target).features;
        let view = View::concatenated(&sources, &["vendor".into()]).unwrap().with_words_shared(&sources, &target);
        let schema = view.schema(sources.all()[0].cases.schema());
        schema.input[sources.all()[0].cases.schema().input.len()..].iter().map(|f| f.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(columns("new"), ["device vendor=x"]);
    assert_eq!(columns("z"), ["device vendor=x", "device vendor=z"], "the target has it too");
}

/// With its features under names that mean nothing, every plan is there once.
#[test]
fn plans_that_see_the_same_are_one() {
    let renamed = |of: &Source| {
        let features = of.features.0.iter().filter(|(n, _)| n != "vendor");
        Config(features.map(|(n, v)| (format!("zeta {}", n.len()), v.clone())).collect())
    };
    let sources: Vec<Source> = four().all().iter().map(|s| Source { features: renamed(s), ..s.clone() }).collect();
    let target = renamed(&device("t", 50.0, 2016));
    let (_, compared, _) = leave_one_out(&Sources::new(sources).unwrap(), ("t", &target), &forest(), 0).unwrap();
    let names: Vec<&str> = compared.plans.iter().map(|p| p.0).collect();
    assert_eq!(names, ["blind", "features", "near"]);
}

#[test]
fn a_source_on_which_nothing_ran_is_left_out() {
    let mut all = four().all().to_vec();
    let target = device("t", 50.0, 2016);
    let dead = |of: &Source| {
        let mut cases = ChoiceSet::new(of.cases.schema().clone());
        for case in of.cases.cases() {
            let trials = case.trials.iter().map(|t| Trial { cost: None, ..t.clone() }).collect();
            cases.push(Case { trials, ..case.clone() }).unwrap();
        }
        Source { cases, ..of.clone() }
    };
    let without = tune_from_source(&four(), ("t", &target.features), &Dfs::Full, &forest(), 0).unwrap();
    all.push(dead(&device("e", 50.0, 2016)));
    let mut empty = device("f", 50.0, 2016);
    empty.cases = ChoiceSet::new(empty.cases.schema().clone());
    all.push(empty);
    let with = Sources::new(all[..5].to_vec()).unwrap();
    assert!(Majority::fit(&with, &forest(), 0).is_ok());
    for dfs in [Dfs::LeaveOneOut, Dfs::CrossValidated(CvDfs { cases: 60, ..CvDfs::default() }, None)] {
        assert!(tune_from_source(&with, ("t", &target.features), &dfs, &forest(), 0).is_ok(), "{dfs:?}");
    }
    let with = Sources::overlapping(all).unwrap();
    let with = tune_from_source(&with, ("t", &target.features), &Dfs::Full, &forest(), 0).unwrap();
    assert_eq!(ChoiceScores::of(&with, &target.cases), ChoiceScores::of(&without, &target.cases));
    let none = Sources::new(vec![dead(&device("a", 4.0, 1))]).unwrap();
    let fault = tune_from_source(&none, ("t", &target.features), &Dfs::Full, &forest(), 0).err().unwrap();
    assert!(fault.to_string().contains("source devices on which anything ran"), "{fault}");
}

/// "70" and "gfx90a" are both a device's name of itself.
#[test]
fn a_feature_that_is_a_number_here_and_a_word_there_is_not_needed() {
    let mut sources = four().all().to_vec();
    let mut target = device("t", 50.0, 2016);
    for (source, arch) in sources.iter_mut().zip([60, 70, 75, 80]) {
        source.features.0.push(("arch".into(), arch.into()));
    }
    target.features.0.push(("arch".into(), "gfx90a".into()));
    let sources = Sources::new(sources).unwrap();
    let tuned = tune_from_source(&sources, ("t", &target.features), &Dfs::LeaveOneOut, &forest(), 0).unwrap();
    assert!(!tuned.features.contains(&"arch".into()), "{:?}", tuned.features);
}

#[test]
fn tables_of_devices_name_what_they_cannot_hold() {
    let fault = |text: &str| DeviceTable::parse(text.as_bytes()).unwrap_err().to_string();
    assert!(fault("device,cores,cores\na,1,2\n").contains("line 1: the feature \"cores\" stands twice"));
    for number in ["inf", "-Infinity", "1e999"] {
        let fault = fault(&format!("device,cores\na,4\nb,{number}\n"));
        assert!(fault.contains("line 3: \"cores\" is no finite number"), "{fault}");
    }
    let empty = DeviceTable::parse(b"device,cores\n").unwrap();
    assert!(empty.of("a").unwrap_err().to_string().contains("there are those of no device"));
}

#[test]
fn one_source_is_used_as_it_is() {
    let one = Sources::new(vec![device("a", 50.0, 1)]).unwrap();
    let target = device("t", 50.0, 2);
    let tuned = tune_from_source(&one, ("t", &target.features), &Dfs::LeaveOneOut, &forest(), 0).unwrap();
    assert!(tuned.features.is_empty());
    assert!(ChoiceScores::of(&tuned, &target.cases).unwrap().fraction_of_oracle > 0.97);
}

#[test]
fn votes_are_counted() {
    struct Says(&'static str);
    impl FitSelector for Says {
        fn fit(&self, data: &ChoiceSet, _: u64) -> Result<Box<dyn Selector>, SelectError> {
            let best = |c: &Case| {
                c.trials.iter().min_by(|a, b| a.cost.partial_cmp(&b.cost).unwrap()).map(|t| t.candidate.variant.clone())
            };
            Ok(Box::new(Always(data.cases().first().and_then(best).unwrap_or(self.0.into()))))
        }
    }
    struct Always(String);
    impl Selector for Always {
        fn rank(&self, _: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
            out.clear();
            out.extend(0..candidates.len());
            out.sort_by_key(|&i| candidates[i].variant != self.0);
        }
    }
    let source = |name: &str, best: &str| {
        let mut cases = ChoiceSet::new(FeatureSchema { input: vec![Feature::size("n")], config: Vec::new() });
        let cost = |v: &str| if v == best { 1.0 } else { 2.0 };
        let trials = ["x", "y", "z"].map(|v| trial(v, cost(v))).to_vec();
        cases.push(Case { features: vec![1.0], trials, group: 0 }).unwrap();
        Source { device: name.into(), features: Config::default(), cases }
    };
    let sources = Sources::new(vec![source("a", "z"), source("b", "y"), source("c", "z")]).unwrap();
    let candidates = ["x", "y", "z"].map(|v| Candidate { variant: v.into(), features: Vec::new() });
    let mut order = VariantOrder::new();
    Majority::fit(&sources, &Says("x"), 0).unwrap().rank(&[1.0], &candidates, &mut order);
    assert_eq!(order, [2, 1, 0]);
    BestOnSources::fit(&sources).rank(&[1.0], &candidates, &mut order);
    assert_eq!(order, [2, 1, 0]);
    let random = ChoiceScores::at_random(&sources.all()[0].cases);
    assert!((random - (1.0 + 0.5 + 0.5) / 3.0).abs() < 1e-12);
}
