//! Variants behind one call.

use tilewright_core::selector::{Candidate, Selector, VariantOrder};
use tilewright_variant_select::regression::Regression;
use tilewright_variant_select::variants::{CodeVariants, VariantError, VariantSet};

fn named() -> CodeVariants<u64, &'static str> {
    CodeVariants::new("power")
        .variant("low", |_| "low")
        .variant("high", |_| "high")
        .feature("size", |n: &u64| *n as f64)
        .flag("odd", |n| (n % 2) as f64)
        .constraint("high", "at most 1000", |n| *n <= 1000)
}

fn tuned() -> VariantSet<u64, &'static str> {
    let mut set = named().default_variant("low").build().unwrap();
    for n in 1..200 {
        set.record_times(&n, &[("low", 1e-6 * n as f64), ("high", 1e-4)]).unwrap();
    }
    set.tune(&Regression::default(), 0).unwrap();
    set
}

#[test]
fn the_default_runs_until_something_is_tuned() {
    let set = named().default_variant("high").build();
    assert_eq!(set.err(), Some(VariantError::ConstrainedDefault { name: "high".into() }));
    let set = named().default_variant("low").build().unwrap();
    assert_eq!(set.call(&5).unwrap(), "low");
    assert_eq!(set.explain(&5).unwrap().order, ["low", "high"]);
}

#[test]
fn a_default_is_named_or_waived() {
    assert_eq!(named().build().err(), Some(VariantError::NoDefault { set: "power".into() }));
    let set = named().without_default().build().unwrap();
    assert_eq!(set.call(&5000).unwrap(), "low");
}

#[test]
fn the_faster_variant_runs_where_it_is_legal() {
    let set = tuned();
    assert_eq!(set.call(&10).unwrap(), "low");
    assert_eq!(set.call(&190).unwrap(), "high");
    assert_eq!(set.call(&5000).unwrap(), "low");
    let why = set.explain(&190).unwrap();
    assert_eq!((why.chosen.as_str(), why.features.len()), ("high", 2));
    assert_eq!(why.features[1], ("odd".to_owned(), 0.0));
    let why = set.explain(&5000).unwrap();
    assert_eq!(why.illegal, [("high".to_owned(), "at most 1000".to_owned())]);
}

#[test]
fn features_are_computed_only_when_they_decide() {
    let set = tuned();
    let calls = |set: &VariantSet<u64, &'static str>| set.feature_costs().iter().map(|c| c.calls).collect::<Vec<_>>();
    let before = calls(&set);
    set.call(&5000).unwrap();
    assert_eq!(calls(&set), before, "one legal variant needs no features");
    set.call(&50).unwrap();
    assert_eq!(calls(&set), before.iter().map(|c| c + 1).collect::<Vec<_>>());
}

#[test]
fn running_records_every_legal_variant() {
    let mut set = named().default_variant("low").build().unwrap();
    set.record(&5, 2).unwrap();
    set.record(&5000, 2).unwrap();
    let ran = |case: usize| set.recorded().cases()[case].trials.iter().map(|t| t.cost.is_some()).collect::<Vec<_>>();
    assert_eq!(ran(0), [true, true]);
    assert_eq!(ran(1), [true, false]);
}

#[test]
fn what_makes_no_sense_is_named() {
    let unknown = |name: &str| Some(VariantError::Unknown { name: name.into() });
    assert_eq!(named().default_variant("low").constraint("none", "", |_| true).build().err(), unknown("none"));
    assert_eq!(named().default_variant("none").build().err(), unknown("none"));
    assert_eq!(named().variant("low", |_| "").build().err(), Some(VariantError::Twice { name: "low".into() }));
    let empty = CodeVariants::<u64, ()>::new("empty").build();
    assert_eq!(empty.err(), Some(VariantError::Empty { set: "empty".into() }));
    let mut set = named().default_variant("low").build().unwrap();
    assert_eq!(set.record_times(&1, &[("none", 1.0)]).err(), unknown("none"));
    let negative = set.record_times(&1, &[("low", -1.0)]);
    assert!(matches!(&negative, Err(VariantError::Record(e)) if e.message.contains("cost")), "{negative:?}");
    assert!(matches!(set.tune(&Regression::default(), 0), Err(VariantError::Select(_))));
    assert_eq!(set.call(&1).unwrap(), "low");
}

#[test]
fn no_legal_variant_is_an_answer_with_its_reasons() {
    let mut set = named().constraint("low", "never", |_| false).without_default().build().unwrap();
    assert!(matches!(set.record(&2000, 1), Err(VariantError::NothingLegal { .. })));
    assert!(matches!(set.record_times(&2000, &[("low", 1.0)]), Err(VariantError::NothingLegal { .. })));
    assert!(set.recorded().is_empty());
    let refused = set.call(&2000).unwrap_err();
    assert!(refused.to_string().contains("never") && refused.to_string().contains("at most 1000"), "{refused}");
}

/// What fails fast is not fast, and what is wrong is not right.
#[test]
fn results_that_are_not_right_count_as_failures() {
    let mut set = CodeVariants::new("half")
        .variant("checked", |n: &u64| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            Some(n / 2)
        })
        .variant("gives up", |_| None)
        .feature("n", |n| *n as f64)
        .default_variant("checked")
        .build()
        .unwrap();
    for n in 1..20 {
        set.record_checked(&n, 1, Option::is_some).unwrap();
    }
    assert!(set.recorded().cases().iter().all(|c| c.trials[0].cost.is_some() && c.trials[1].cost.is_none()));
    set.tune(&Regression::default(), 0).unwrap();
    assert_eq!(set.call(&7).unwrap(), Some(3));
    let wrong = set.record_checked(&7, 1, |_| false);
    assert!(wrong.is_err_and(|e| e.to_string().contains("none has a time")));
}

/// A selector from elsewhere that gives no order, or one of something else.
struct Odd(Vec<usize>);

impl Selector for Odd {
    fn rank(&self, _: &[f32], _: &[Candidate], out: &mut VariantOrder) {
        out.clone_from(&self.0);
    }
}

#[test]
fn an_odd_order_still_names_every_legal_variant_once() {
    for (order, expected) in [(vec![], ["a", "b"]), (vec![1], ["b", "a"]), (vec![7, 1, 1, 0], ["b", "a"])] {
        let mut set = CodeVariants::new("set")
            .variant("a", |_: &u64| ())
            .variant("b", |_| ())
            .feature("n", |n| *n as f64)
            .default_variant("a")
            .build()
            .unwrap();
        set.adopt(Box::new(Odd(order)));
        assert_eq!(set.explain(&1).unwrap().order, expected);
    }
}
