//! A few inputs of the target: what they teach, what contradicts the sources, and what there is too little of.

use tilewright_core::choice::{Case, ChoiceSet, Trial};
use tilewright_core::feature::{Feature, FeatureSchema};
use tilewright_core::selector::{Candidate, Selector, VariantOrder};
use tilewright_core::space::Config;
use tilewright_mtl::Source;
use tilewright_mtl::experts::Experts;
use tilewright_mtl::protocol::{Protocol, TransferScores};
use tilewright_mtl::shots::{Adapted, Differences, Pool};
use tilewright_mtl::transfer::Dfs;
use tilewright_variant_select::forest::CostForest;

fn trial(variant: &str, cost: Option<f64>) -> Trial {
    Trial { candidate: Candidate { variant: variant.into(), features: Vec::new() }, cost }
}

/// "one" costs n, "many" pays off from `from` on; a device may have "own", which is always twice as fast as the better of both, or
/// run nothing.
fn cases(from: f64, own: bool, runs: bool, seed: u32) -> ChoiceSet {
    let schema = FeatureSchema { input: vec![Feature::size("n"), Feature::size("noise")], config: Vec::new() };
    let mut cases = ChoiceSet::new(schema);
    for i in 0..150u32 {
        let n = 10f64.powf(1.0 + 3.0 * f64::from((i * 37 + seed) % 150) / 150.0);
        let (one, many) = (n, 0.9 * from + n / 10.0);
        let mut trials = vec![trial("one", runs.then_some(one)), trial("many", runs.then_some(many))];
        trials.extend(own.then(|| trial("own", runs.then_some(one.min(many) / 2.0))));
        cases.push(Case { features: vec![n as f32, (i % 7) as f32], trials, group: i }).unwrap();
    }
    cases
}

fn source(device: &str, from: f64) -> Source {
    let features = Config::parse(&format!("cores={from},vendor=x")).unwrap();
    Source { device: device.into(), features, cases: cases(from, false, true, 0) }
}

fn judged(sources: Vec<Source>, own: ChoiceSet, held_out: &ChoiceSet, shots: &[usize]) -> Option<TransferScores> {
    let (features, learner) = (Config::parse("cores=60,vendor=x").unwrap(), CostForest::default());
    let protocol =
        Protocol { target: "t", features: &features, dfs: &Dfs::LeaveOneOut, learners: &[("forest", &learner)], shots };
    protocol.split(sources, own, held_out, 0).unwrap()
}

#[test]
fn shots_that_contradict_the_sources_win() {
    // Here "many" pays off a hundred times later than on any source.
    let sources = vec![source("a", 30.0), source("b", 50.0), source("c", 90.0)];
    let (own, held_out) = (cases(5000.0, false, true, 0), cases(5000.0, false, true, 11));
    let found = judged(sources, own, &held_out, &[0, 1, 3, 10, 40]).unwrap();
    let at: Vec<f64> = found.shots.iter().map(|s| s.scores.fraction_of_oracle).collect();
    assert!(at[0] < 0.8 && at[3] > 0.95 && at[4] > 0.98, "{at:?}");
    assert_eq!(found.scores, found.shots[4].scores);
    let losses: Vec<f64> = found.shots.iter().map(|s| s.expected_loss).collect();
    assert!(losses[4] < losses[0] / 10.0, "{losses:?}");
    assert!(found.shots.iter().all(|s| s.timed == s.shots && s.next_saves > 0.0 && s.next_saves < s.expected_loss));
}

#[test]
fn a_variant_that_no_source_has_is_learned_from_a_shot() {
    let sources = vec![source("a", 30.0), source("b", 50.0)];
    let found = judged(sources, cases(50.0, true, true, 0), &cases(50.0, true, true, 11), &[0, 2, 3]).unwrap();
    let at: Vec<f64> = found.shots.iter().map(|s| s.scores.fraction_of_oracle).collect();
    assert!(at[0] < 0.7 && at[1] == at[0] && at[2] > 0.95, "{at:?}");
}

#[test]
fn more_shots_than_there_are_inputs_are_all_of_them() {
    let few = cases(50.0, false, true, 0).subset(&[3, 70]);
    let found = judged(vec![source("a", 30.0)], few, &cases(50.0, false, true, 11), &[0, 100]).unwrap();
    let last = found.shots[1];
    assert_eq!((last.shots, last.timed, last.next_saves), (100, 2, 0.0));
}

#[test]
fn a_target_on_which_nothing_runs_teaches_nothing() {
    let failed = cases(50.0, false, false, 0);
    let found = judged(vec![source("a", 30.0)], failed.clone(), &cases(50.0, false, true, 11), &[0, 5]).unwrap();
    assert_eq!((found.shots[1].timed, found.shots[0].scores), (0, found.shots[1].scores));
    assert!(judged(vec![source("a", 30.0)], cases(50.0, false, true, 0), &failed, &[3]).is_none());
}

/// Prefers the first candidate and says nothing of costs.
struct First;

impl Selector for First {
    fn rank(&self, _: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        out.clear();
        out.extend(0..candidates.len());
    }
}

#[test]
fn who_only_ranks_is_an_expert_too_and_constant_features_are_no_fault() {
    let schema = FeatureSchema { input: vec![Feature::size("n")], config: Vec::new() };
    let mut all = ChoiceSet::new(schema);
    for group in 0..4 {
        let trials = vec![trial("slow", Some(2.0)), trial("fast", Some(1.0)), trial("never", None)];
        all.push(Case { features: vec![7.0], trials, group }).unwrap();
    }
    let mut adapted = Adapted::new(Experts::new(vec![(Box::new(First), 1.0)]), Differences::default(), (&all, &[]));
    let candidates: Vec<Candidate> = all.cases()[0].trials.iter().map(|t| t.candidate.clone()).collect();
    let mut order = VariantOrder::new();
    adapted.rank(&[7.0], &candidates, &mut order);
    assert_eq!(order, [0, 1, 2]);
    let worth = Pool::new(&adapted, &all).next(&adapted, &[]).unwrap();
    assert!(worth.saved > 0.0 && worth.saved <= worth.expected_loss, "{worth:?}");
    adapted.learn(&all.cases()[..3]).unwrap();
    adapted.rank(&[7.0], &candidates, &mut order);
    assert_eq!((adapted.shots(), order), (3, vec![1, 0, 2]));
    adapted.learn(&[]).unwrap();
    let mut costs = Vec::new();
    assert!(adapted.relative_costs(&[7.0], &candidates, &mut costs) && costs[0] < costs[1]);
}
