use super::*;
use tilewright_core::decision::{Alternative, Decision};
use tilewright_core::id::KernelId;
use tilewright_core::space::Config;
use tilewright_search::drive::StoppedBy;

fn look(budget_s: f64, top: usize, model: Option<&str>, profile: Option<&str>) -> Look {
    let (model, profile) = (model.map(String::from), profile.map(String::from));
    Look { budget_s, top, timed: 1, model, profile, searched: None }
}

fn remembered(looks: Vec<Look>, model: Option<&str>) -> CachedPlan {
    let chosen = Alternative {
        kernel: KernelId::new("gemm.cpu.1"),
        config: Config::default(),
        predicted_s: None,
        measured_s: None,
    };
    let decision = Decision { model: model.map(String::from), ..Decision::of(chosen, 1, String::new()) };
    let (config, predicted_s, measured_s, max_rel_error) = (Config::default(), None, None, Some(0.0));
    CachedPlan { config, predicted_s, measured_s, max_rel_error, decision, looks }
}

fn asked(budget: Option<u64>, top: Option<usize>, model: Option<&str>, profile: Option<&str>) -> Asked {
    let budget = budget.map(Duration::from_secs);
    let (model, profile) = (model.map(String::from), profile.map(String::from));
    Asked { budget, top, model, profile, ..Asked::default() }
}

#[test]
fn only_more_than_was_done_is_a_reason_to_look_again() {
    let plan = remembered(vec![look(10.0, 20, None, None), look(6.0, 30, Some("mlp"), Some("p"))], Some("mlp"));
    for enough in [
        Asked::default(),
        asked(Some(10), None, None, None),
        asked(Some(10), Some(20), None, None),
        asked(Some(6), Some(30), Some("mlp"), Some("p")),
        asked(None, Some(30), None, None),
    ] {
        assert_eq!(enough.exceeds(&plan), None, "{enough:?}");
    }
    for (more, part) in [
        (asked(Some(11), None, None, None), "10 s were given to measuring, and 11 s are asked for"),
        (asked(Some(10), None, None, Some("p")), "6 s were given"),
        (asked(None, Some(31), None, None), "the best 30 by model were timed, and 31 are asked for"),
        // No single look had both.
        (asked(Some(10), Some(30), None, None), "the best 20 by model"),
        (asked(None, None, Some("linear"), None), "without the linear model"),
        (asked(None, None, None, Some("q")), "without the profile that there is now"),
        (asked(None, None, Some("mlp"), Some("q")), "without the profile"),
    ] {
        let why = more.exceeds(&plan).unwrap_or_else(|| panic!("{more:?} is content"));
        assert!(why.contains(part), "{why}");
    }
}

#[test]
fn of_an_older_entry_only_the_model_is_known() {
    let plan = remembered(Vec::new(), Some("linear"));
    assert_eq!(Asked::default().exceeds(&plan), None);
    assert_eq!(asked(Some(0), None, Some("linear"), None).exceeds(&plan), None);
    for more in [
        asked(Some(1), None, None, None),
        asked(None, Some(1), None, None),
        asked(None, None, Some("mlp"), None),
        asked(None, None, None, Some("p")),
    ] {
        assert!(more.exceeds(&plan).is_some(), "{more:?}");
    }
}

#[test]
fn looks_of_one_model_are_one_and_the_oldest_go() {
    let mut looks = Vec::new();
    look(20.0, 5, None, None).note(&mut looks);
    look(6.0, 20, None, None).note(&mut looks);
    assert_eq!(looks, [Look { timed: 2, ..look(20.0, 20, None, None) }]);
    for profile in 0..2 * LOOKS_KEPT {
        look(1.0, 1, Some("mlp"), Some(&profile.to_string())).note(&mut looks);
    }
    assert_eq!(looks.len(), LOOKS_KEPT);
    assert_eq!(looks[LOOKS_KEPT - 1].profile.as_deref(), Some("15"));
}

#[test]
fn another_strategy_and_a_stricter_promise_are_reasons_to_look_again() {
    let searched = |strategy: &str, bound| Searched {
        strategy: strategy.into(),
        stopped_by: StoppedBy::Bound,
        epsilon: 0.05,
        bound,
        evaluations: 90,
        illegal: 0,
    };
    let looks = [searched("refine", None), searched("early-stop", Some(0.08))];
    let looks = looks.map(|searched| Look { searched: Some(searched), ..look(6.0, 20, None, None) });
    let plan = remembered(looks.to_vec(), None);
    let by = |strategy: Option<&str>, tolerance: Option<(f64, f64)>| Asked {
        strategy: strategy.map(String::from),
        tolerance: tolerance.map(|(epsilon, alpha)| Tolerance { epsilon, alpha }),
        ..Asked::default()
    };
    for enough in [by(Some("refine"), None), by(Some("early-stop"), Some((0.05, 0.1))), by(None, Some((0.1, 0.1)))] {
        assert_eq!(enough.exceeds(&plan), None, "{enough:?}");
    }
    for (more, part) in [
        (by(Some("random"), None), "without the strategy random"),
        (by(Some("refine"), Some((0.05, 0.1))), "without the promise"),
        (by(None, Some((0.05, 0.05))), "an alpha of 0.05"),
        (by(None, Some((0.01, 0.1))), "an epsilon of 0.01"),
    ] {
        let why = more.exceeds(&plan).unwrap_or_else(|| panic!("{more:?} is content"));
        assert!(why.contains(part), "{why}");
    }
}
