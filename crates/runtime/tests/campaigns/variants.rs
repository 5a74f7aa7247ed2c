//! Decisions among several toy kernels.

use crate::support::{device, words};
use std::time::Duration;
use tilewright_core::choice::{Case, ChoiceSet, Trial};
use tilewright_core::feature::FeatureSchema;
use tilewright_core::objective::Objective;
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::{AnyKernel, Erased, Measure, Problem};
use tilewright_core::selector::{Candidate, Selector, VariantOrder};
use tilewright_runtime::RuntimeError;
use tilewright_runtime::plan::{
    Asked, Entrant, KERNEL_TIE_ORDER, PlanSettings, Planned, Planner, Ranking, VariantPlanner,
};
use tilewright_runtime::plan_cache::PlanCache;
use tilewright_runtime::selection::{Ranker, SelectorHeader, StoredIncumbent, StoredSelector, learn};
use tilewright_sampler::Uniform;
use tilewright_testkit::toy::{self, AnalyticMeasure, Formula, ScaleKernel};

const NEAR: &str = "scale.near";
const FAR: &str = "scale.far";
const BACK: &str = "scale.back";
const NEVER: &str = "scale.never";
const ONLY: &str = "scale.only";
const MADE: &str = "scale.made";
/// Says that its default suits every input.
const KEEN: &str = "scale.keen";

/// One configuration, which is better than any that walks backward.
const ONLY_RULE: &str = "width == 4 and unroll == 4 and chunks == 8 and prefetch == 16 and order == 'forward'";

/// Below 4096 elements the near kernel is best, above it the far one; the third is always slow, the last never legal.
fn kernel(name: &'static str) -> Erased<ScaleKernel> {
    let rule = match name {
        NEAR => "prefetch == 1",
        FAR => "prefetch == 16",
        BACK => "order == 'backward'",
        NEVER => "width > 16",
        ONLY => ONLY_RULE,
        _ => "width <= 16",
    };
    let suits = match name {
        MADE => 2.0,
        KEEN => 1.0,
        _ => 0.0,
    };
    Erased::new(ScaleKernel::new().restricted(rule).named(name).suiting(suits))
}

/// Ranks by names; asks for what is not there, too.
struct Says(&'static [&'static str]);

impl Selector for Says {
    fn rank(&self, _: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        let place = |name: &&str| candidates.iter().position(|c| c.variant == *name).unwrap_or(99);
        *out = self.0.iter().map(place).collect();
    }
}

type Seconds = fn(&dyn Problem, &[u16]) -> f64;

struct Setup {
    kernels: Vec<&'static str>,
    measure: Option<AnalyticMeasure>,
    selector: Option<Says>,
    /// Whether that was learned, and is not the caller's own.
    is_learned: bool,
    /// One that a campaign learned, in its place.
    stored: Option<StoredSelector>,
    most: usize,
    cache: Option<PlanCache>,
    predictor: Option<Formula<Seconds>>,
    question: &'static str,
    settings: PlanSettings,
    searched: Vec<String>,
}

impl Setup {
    fn new(kernels: &[&'static str]) -> Self {
        let budget = Duration::from_millis(400);
        Self {
            kernels: kernels.to_vec(),
            measure: Some(AnalyticMeasure::new(device()).checked_on(toy::host_device())),
            selector: None,
            is_learned: false,
            stored: None,
            most: 3,
            cache: None,
            predictor: None,
            question: "scale",
            settings: PlanSettings { refine: budget, budget, ..PlanSettings::default() },
            searched: Vec::new(),
        }
    }

    fn plan(&mut self, input: &str) -> Result<Planned, RuntimeError> {
        self.searched.clear();
        let kernels: Vec<Erased<ScaleKernel>> = self.kernels.iter().map(|name| kernel(name)).collect();
        let device = device();
        let problems: Vec<Box<dyn Problem>> =
            kernels.iter().map(|k| AnyKernel::problem(k, &device, &words(input)).unwrap()).collect();
        let entrants = kernels.iter().zip(&problems).map(|(kernel, problem)| Entrant {
            kernel,
            problem: &**problem,
            predictor: self.predictor.as_ref().map(|p| p as &dyn Predictor),
            ranking: Ranking::default(),
            knowledge: self.predictor.as_ref().map(|_| "own"),
            known: String::new(),
            warm: Box::new(Default::default),
            origin: None,
            sampler: Box::new(Uniform::new(100_000)),
        });
        let variants: Vec<String> = self.kernels.iter().map(|name| (*name).to_owned()).collect();
        let ranker = |says| match self.is_learned {
            true => Ranker::Transferred { selector: says, variants: &variants, inputs: 200 },
            false => Ranker::Own(says),
        };
        let own = self.selector.as_ref().map(|says| ranker(says));
        let ranker = self.stored.as_ref().map(|stored| Ranker::Stored(stored, String::new())).or(own);
        let searched = &mut self.searched;
        let mut planner = VariantPlanner {
            entrants: entrants.collect(),
            left_out: Vec::new(),
            notes: Vec::new(),
            ranker,
            most: self.most,
            device: &device,
            measure: self.measure.as_mut().map(|m| m as &mut dyn Measure),
            cache: self.cache.as_ref(),
            question: self.question.to_owned(),
            settings: self.settings.clone(),
            searching: &mut |kernel, _, _| searched.push(kernel.id().to_string()),
        };
        let (at, planned) = planner.plan()?;
        assert_eq!(problems[at].kernel(), planned.kernel);
        Ok(planned)
    }

    fn calls(&self) -> u64 {
        self.measure.as_ref().map_or(0, |m| m.calls)
    }
}

fn names(planned: &Planned) -> Vec<(&str, bool)> {
    planned.decision.variants.iter().map(|v| (v.name.as_str(), v.measured_s.is_some())).collect()
}

#[test]
fn a_kernel_made_for_an_input_leads_what_was_learned_where_nothing_is_timed() {
    for (is_learned, is_timed, first) in [(true, false, MADE), (false, false, NEAR), (true, true, NEAR)] {
        let selector = Some(Says(&[NEAR, MADE]));
        let mut setup = Setup { selector, is_learned, most: 1, ..Setup::new(&[NEAR, MADE]) };
        setup.measure = setup.measure.filter(|_| is_timed);
        let planned = setup.plan("n=1000").unwrap();
        assert_eq!(planned.kernel.as_str(), first, "{}", planned.reason);
        let says = planned.reason.to_lowercase().contains("nothing is timed, and scale.made is made for such inputs");
        assert_eq!(says, first == MADE, "{}", planned.reason);
    }
}

/// A selector of inputs of which the near kernel took half as long as the keen one, where the kernels' own rating was worth so much.
fn learned_where_ratings_were_worth(suited: f64) -> StoredSelector {
    let mut cases = ChoiceSet::new(FeatureSchema { config: Vec::new(), ..AnyKernel::schema(&kernel(NEAR)) });
    for group in 0..12 {
        let problem = AnyKernel::problem(&kernel(NEAR), &device(), &words(&format!("n={}", 100 << group))).unwrap();
        let trial = |name: &str, cost| Trial {
            candidate: Candidate { variant: name.to_owned(), features: Vec::new() },
            cost: Some(cost),
        };
        let mut features = Vec::new();
        problem.input_features(&mut features);
        cases.push(Case { features, trials: vec![trial(NEAR, 1.0), trial(KEEN, 2.0)], group }).unwrap();
    }
    let header = SelectorHeader::new(kernel(NEAR).computation(), &device(), Objective::default(), words(""));
    let mut stored = learn(header, cases, None).unwrap();
    stored.header.stats.suited = Some(suited);
    stored
}

#[test]
fn a_kernel_that_was_not_learned_on_leads_where_it_suits_the_input_best_and_nothing_is_timed() {
    // The far one is rated lower than a kernel that was learned on.
    for (is_timed, kernels, first) in
        [(false, [NEAR, MADE], MADE), (true, [NEAR, MADE], NEAR), (false, [NEAR, FAR], NEAR)]
    {
        let stored = Some(learned_where_ratings_were_worth(0.4));
        let mut setup = Setup { stored, most: 1, ..Setup::new(&[KEEN, kernels[0], kernels[1]]) };
        setup.measure = setup.measure.filter(|_| is_timed);
        let planned = setup.plan("n=1000").unwrap();
        let leads = "scale.made suits such inputs best by its own rating and was not learned on, so that it leads";
        assert_eq!(planned.reason.contains(leads), first == MADE, "{}", planned.reason);
        assert!(is_timed || planned.kernel.as_str() == first, "{}", planned.reason);
    }
}

#[test]
fn the_kernels_own_rating_leads_a_selector_that_was_worth_less_where_nothing_is_timed() {
    for (suited, is_timed, first) in [(1.0, false, KEEN), (0.4, false, NEAR), (1.0, true, NEAR)] {
        let stored = Some(learned_where_ratings_were_worth(suited));
        let mut setup = Setup { stored, most: 1, ..Setup::new(&[NEAR, KEEN]) };
        setup.measure = setup.measure.filter(|_| is_timed);
        let planned = setup.plan("n=1000").unwrap();
        assert_eq!(planned.kernel.as_str(), first, "{}", planned.reason);
        let says = planned.reason.contains("ran at 100.0% of the best, and without at 100.0%, so that it leads");
        assert_eq!(says, first == KEEN, "{}", planned.reason);
    }
}

/// A selector that keeps the near kernel, learned where the ratings would have put the keen one first.
fn keeping(margin: Option<f64>) -> StoredSelector {
    let mut stored = learned_where_ratings_were_worth(1.0);
    stored.header.incumbent =
        Some(StoredIncumbent { kernel: NEAR.to_owned().into(), margin, fraction_of_oracle: None });
    stored
}

#[test]
fn an_incumbent_leads_where_nothing_is_timed_and_the_reason_names_it() {
    for (margin, says) in
        [(Some(0.2), "scale.near is left where another is expected to be 22% faster"), (None, "is never left")]
    {
        let mut setup = Setup { stored: Some(keeping(margin)), most: 1, ..Setup::new(&[NEAR, KEEN]) };
        setup.measure = None;
        let planned = setup.plan("n=1000").unwrap();
        assert_eq!(planned.kernel.as_str(), NEAR, "{}", planned.reason);
        assert!(planned.reason.contains(says), "{}", planned.reason);
        // Where it does not compete, the selector and the ratings are as ever.
        setup.kernels = vec![KEEN, BACK];
        let without = setup.plan("n=1000").unwrap();
        assert!(without.kernel.as_str() == KEEN && !without.reason.contains("is left"), "{}", without.reason);
    }
}

#[test]
fn an_earlier_answer_does_not_push_an_incumbent_aside() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = Setup { cache: Some(PlanCache::new(dir.path())), ..Setup::new(&[NEAR, FAR]) };
    assert_eq!(setup.plan("n=100000").unwrap().kernel.as_str(), FAR);
    // Another selector: the answer is looked for again, and nothing may be timed.
    (setup.stored, setup.measure) = (Some(keeping(Some(10.0))), None);
    let planned = setup.plan("n=100000").unwrap();
    assert!(planned.kernel.as_str() == NEAR && !planned.cached, "{}", planned.reason);
}

#[test]
fn the_best_kernel_wins_and_the_answer_lists_all() {
    let mut setup = Setup::new(&[NEVER, BACK, FAR, NEAR]);
    for (input, best) in [("n=1000", NEAR), ("n=100000", FAR)] {
        let planned = setup.plan(input).unwrap();
        assert_eq!(planned.kernel.as_str(), best, "{}", planned.reason);
        let optimum = toy::optimum(&*AnyKernel::problem(&kernel(best), &device(), &words(input)).unwrap()).unwrap();
        assert!(planned.measured_s.unwrap() <= optimum.1 * 1.03 && planned.verified, "{planned:?}");
        assert_eq!((names(&planned)[0], names(&planned)[3]), ((best, true), (NEVER, false)));
        let decision = &planned.decision;
        assert_eq!((decision.chosen.kernel.as_str(), &decision.considered[0]), (best, &decision.chosen));
        assert!(decision.variants[3].reason.as_deref().unwrap().contains("restricted"), "{:?}", decision.variants);
        for part in ["No selector ranks the 3 kernels", "timed against each other", "left out: scale.never"] {
            assert!(planned.reason.contains(part), "{part}: {}", planned.reason);
        }
        assert_eq!((&decision.reason, decision.knowledge.as_str()), (&planned.reason, "default"));
        assert_eq!(setup.searched.len(), 3);
    }
}

#[test]
fn a_single_kernel_is_decided_as_ever() {
    let of = |best: f64| (best * 1e9).round();
    let single = Setup::new(&[FAR]).plan("n=5000").unwrap();
    let (kernel, device) = (kernel(FAR), device());
    let mut measure = AnalyticMeasure::new(device.clone()).checked_on(toy::host_device());
    let mut planner = Planner {
        kernel: &kernel,
        device: &device,
        measure: Some(&mut measure),
        predictor: None,
        sampler: &mut Uniform::new(100_000),
        cache: None,
        settings: Setup::new(&[]).settings,
    };
    let alone = planner.plan(&words("n=5000")).unwrap();
    assert_eq!((&single.config, of(single.measured_s.unwrap())), (&alone.config, of(alone.measured_s.unwrap())));
    assert_eq!(names(&single), [(FAR, true)]);
    assert!(single.decision.selection.is_none() && !single.reason.contains("selector"), "{}", single.reason);
}

#[test]
fn a_selector_says_which_are_searched() {
    let all = [BACK, NEAR, FAR];
    let mut setup = Setup { selector: Some(Says(&[FAR, "scale.gone", NEAR, BACK, FAR])), most: 1, ..Setup::new(&all) };
    let planned = setup.plan("n=1000").unwrap();
    assert_eq!((planned.kernel.as_str(), &setup.searched), (FAR, &vec![FAR.to_owned()]), "{}", planned.reason);
    let said = planned.decision.selection.as_ref().unwrap();
    assert_eq!((said.method.as_str(), said.ranked.len()), ("own", 3));
    for part in ["it ranks number 99 of 3", "ranks scale.far twice", "ranks scale.far, scale.near, scale.back"] {
        assert!(planned.reason.contains(part), "{part}: {}", planned.reason);
    }
    // Those behind are tried where the best has no plan.
    let mut setup = Setup { selector: Some(Says(&[FAR, NEAR])), most: 1, ..Setup::new(&all) };
    setup.measure = Some(AnalyticMeasure::new(device()).failing(|p| p[3] == 4).checked_on(toy::host_device()));
    let planned = setup.plan("n=100000").unwrap();
    assert_eq!(planned.kernel.as_str(), NEAR, "{}", planned.reason);
    assert!(planned.reason.contains("none of"), "{}", planned.reason);
    // It ranks nothing that there is: all are tried, and the answer says why.
    let mut setup = Setup { selector: Some(Says(&["scale.gone"])), ..Setup::new(&all) };
    let planned = setup.plan("n=1000").unwrap();
    assert!(planned.kernel.as_str() == NEAR && planned.reason.contains("ranks none of 3 kernels"), "{planned:?}");
}

#[test]
fn a_kernel_of_few_configurations_is_timed_wherever_the_selector_ranks_it() {
    let all = [BACK, NEAR, ONLY];
    let with = |most| Setup { selector: Some(Says(&[BACK, NEAR, ONLY])), most, ..Setup::new(&all) };
    let planned = with(1).plan("n=100000").unwrap();
    assert_eq!(planned.kernel.as_str(), ONLY, "{}", planned.reason);
    let searched: Vec<&str> =
        planned.decision.variants.iter().filter(|v| v.measured_s.is_some()).map(|v| v.name.as_str()).collect();
    assert_eq!(searched, [ONLY, BACK], "{}", planned.reason);
    // Untimed, the selector's word counts.
    let mut untimed = with(1);
    untimed.settings.top = 0;
    assert_eq!(untimed.plan("n=100000").unwrap().kernel.as_str(), BACK);
    // The time is spent before its turn comes.
    let mut short = with(1);
    short.settings.refine = Duration::ZERO;
    short.settings.budget = Duration::ZERO;
    let planned = short.plan("n=100000").unwrap();
    let only = planned.decision.variants.iter().find(|v| v.name.as_str() == ONLY).unwrap();
    assert!(only.measured_s.is_some() || only.reason.as_deref().unwrap().contains("time was short"), "{planned:?}");
}

#[test]
fn nothing_is_timed_where_nothing_may_be() {
    let all = [NEVER, BACK, NEAR, FAR];
    let untimed = PlanSettings { top: 0, ..Setup::new(&[]).settings };
    let mut setup = Setup { settings: untimed, ..Setup::new(&all) };
    let planned = setup.plan("n=1000").unwrap();
    assert_eq!((planned.kernel.as_str(), setup.calls()), (BACK, 0), "without any knowledge the first");
    assert!(planned.verified && planned.measured_s.is_none(), "{planned:?}");
    setup.predictor = Some(Formula { kind: "exact", is_costly: false, seconds: toy::cost_s });
    let planned = setup.plan("n=100000").unwrap();
    assert_eq!((planned.kernel.as_str(), setup.calls()), (FAR, 0), "{}", planned.reason);
    assert_eq!(planned.decision.knowledge, "own");
    setup.selector = Some(Says(&[NEAR, FAR]));
    let planned = setup.plan("n=100000").unwrap();
    assert_eq!((planned.kernel.as_str(), setup.calls()), (NEAR, 0), "{}", planned.reason);
}

#[test]
fn an_answer_is_remembered_until_its_kernel_is_gone_or_another_one_competes() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = Setup { cache: Some(PlanCache::new(dir.path())), ..Setup::new(&[NEAR, BACK, FAR]) };
    let first = setup.plan("n=100000").unwrap();
    let calls = setup.calls();
    let again = setup.plan("n=100000").unwrap();
    assert!(again.cached && !first.cached && again.verified, "{}", again.reason);
    assert_eq!((setup.calls(), &again.kernel, &again.config), (calls, &first.kernel, &first.config));
    assert_eq!((&again.decision.variants, setup.searched.len()), (&first.decision.variants, 0));
    // Another question, the same kernels: each is known by itself, and only the winners are timed again.
    setup.question = "scale+libraries";
    let other = setup.plan("n=100000").unwrap();
    assert!(!other.cached && setup.searched.is_empty() && setup.calls() > calls, "{:?}", setup.searched);
    // The winner vanishes.
    setup.kernels = vec![NEAR, BACK];
    let next = setup.plan("n=100000").unwrap();
    assert!(!next.cached && next.verified && next.kernel.as_str() == NEAR, "{}", next.reason);
    assert!(next.reason.contains("scale.far, which the cached plan is of, is not there any more"), "{}", next.reason);
    assert!(setup.plan("n=100000").unwrap().cached);
    // A newcomer.
    setup.kernels = vec![NEAR, "scale.all", BACK];
    let wider = setup.plan("n=100000").unwrap();
    assert!(wider.kernel.as_str() == "scale.all" && wider.looked_again.unwrap().contains("decided without scale.all"));
    // More time than any look had: what is remembered takes part, and wins ties.
    setup.settings.asked = Asked { budget: Some(Duration::from_millis(900)), ..Asked::default() };
    setup.settings.budget = Duration::from_millis(900);
    let longer = setup.plan("n=100000").unwrap();
    assert!(!longer.cached && longer.looked_again.is_some() && longer.kernel.as_str() == "scale.all");
    assert!(setup.plan("n=100000").unwrap().cached);
}

#[test]
fn among_equal_kernels_the_remembered_the_selector_the_default_and_the_name_choose() {
    let dir = tempfile::tempdir().unwrap();
    let chosen = |setup: &mut Setup| {
        let planned = setup.plan("n=10000").unwrap();
        let tie = planned.decision.kernel_tie.unwrap();
        assert_eq!((tie.order.as_str(), &tie.members[0].kernel), (KERNEL_TIE_ORDER, &planned.kernel));
        assert_eq!(tie.members.len(), 2, "{}", planned.reason);
        assert!(tie.members.iter().all(|m| m.relative <= 1.0 + tie.within), "{tie:?}");
        (planned.kernel.to_string(), tie.why)
    };
    let found = |kernel: &str, why: &str| (kernel.to_owned(), why.to_owned());
    let mut setup = Setup::new(&[BACK, "scale.b", "scale.a"]);
    assert_eq!(chosen(&mut setup), found("scale.a", "its kernel's name comes first"));
    let mut setup = Setup::new(&["scale.b", BACK, "scale.a"]);
    assert_eq!(chosen(&mut setup), found("scale.b", "its kernel is the default"));
    setup.selector = Some(Says(&["scale.a", "scale.b", BACK]));
    assert_eq!(chosen(&mut setup), found("scale.a", "the selector ranks its kernel first"));
    setup.cache = Some(PlanCache::new(dir.path()));
    chosen(&mut setup);
    setup.selector = Some(Says(&["scale.b", "scale.a", BACK]));
    setup.settings.asked = Asked { budget: Some(Duration::from_secs(1)), ..Asked::default() };
    assert_eq!(chosen(&mut setup), found("scale.a", "its kernel is that of the remembered answer"));
}

#[test]
fn what_no_kernel_computes_is_the_first_ones_error() {
    let error = Setup::new(&[NEVER, NEVER]).plan("n=1000").unwrap_err();
    assert_eq!(error.kind(), "nothing-legal", "{error}");
    let mut setup = Setup::new(&[NEAR, FAR]);
    setup.measure = Some(AnalyticMeasure::new(device()).failing(|_| true));
    assert_eq!(setup.plan("n=1000").unwrap_err().kind(), "nothing-runs");
    let dir = tempfile::tempdir().unwrap();
    let cache = PlanCache::new(dir.path());
    let mut unchecked = Setup { cache: Some(cache.clone()), measure: None, ..Setup::new(&[NEAR, FAR]) };
    assert!(!unchecked.plan("n=1000").unwrap().verified);
    assert_eq!(cache.entries().unwrap().len(), 0, "what was not verified is not remembered");
}
