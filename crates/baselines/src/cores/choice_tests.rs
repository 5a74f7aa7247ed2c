use super::*;
use crate::cores::candidates::{BLIS, MKL, OPENBLAS};

fn rates(version: &str, core: &str, f32_gflops: f64) -> Rates {
    let core = Some(core.to_owned());
    Rates { version: version.to_owned(), core, f32_gflops, f64_gflops: f32_gflops / 2.0, numbered: Vec::new() }
}

fn attempt(file: &str, core: Option<&str>, outcome: Result<Rates, Failure>) -> Attempt {
    let setting = core.map(|core| Setting { core: core.to_owned(), value: core.to_owned() });
    Attempt { file: file.into(), setting, outcome }
}

fn of_openblas(attempts: Vec<Attempt>) -> Tried {
    let chosen = best(&attempts);
    let (library, variable) = ("openblas".to_owned(), "OPENBLAS_CORETYPE".to_owned());
    Tried { library, variable, asked: None, attempts, chosen }
}

#[test]
fn each_core_that_the_host_can_run_is_tried_once_and_what_crashes_or_is_not_heeded_is_told() {
    let host = Features::of_host();
    let (file, mut asked) = (PathBuf::from("libopenblas.so.0"), Vec::new());
    let done = tried(&OPENBLAS, std::slice::from_ref(&file), &host, None, |_, setting| {
        let core = setting.map_or("Own", |setting| setting.core.as_str());
        asked.push(core.to_owned());
        match core {
            "Haswell" | "NEOVERSEN1" => Err(Failure::Died("signal 4".to_owned())),
            "Zen" | "CORTEXA57" => Ok(rates("0.3.21", "Own", 900.0)),
            _ => Ok(rates("0.3.21", core, 10.0)),
        }
    });
    let cores = OPENBLAS.cores_for(&host);
    assert_eq!(done.attempts.len(), 1 + cores.len());
    assert_eq!(asked[0], "Own");
    assert_eq!(asked[1..=cores.len()], cores);
    let of = |core: &str| done.attempts.iter().find(|a| a.setting.as_ref().is_some_and(|s| s.core == core));
    if let Some(died) = of("Haswell") {
        assert_eq!(died.outcome, Err(Failure::Died("signal 4".to_owned())));
        assert_eq!(of("Zen").unwrap().outcome, Err(Failure::NotHonoured("Own".to_owned())));
        let text = done.lines().join("\n");
        assert!(text.contains("OPENBLAS_CORETYPE=Haswell: the probe died: signal 4"), "{text}");
        assert!(text.contains("OPENBLAS_CORETYPE=Zen: it runs Own all the same"), "{text}");
        assert!(text.contains("as found: Own, 10.0 GFLOP/s in f32 and 5.0 in f64; used"), "{text}");
    }
    // Nothing is faster than what it does by itself, so no variable is needed.
    assert_eq!((done.chosen, done.needs()), (Some(0), None));
}

#[test]
fn a_file_that_cannot_be_opened_or_a_variable_that_is_set_ends_the_trying() {
    let host = Features::of_host();
    let file = [PathBuf::from("libmkl_rt.so.3")];
    let refused = tried(&MKL, &file, &host, None, |_, _| Err(Failure::Refused("no library".to_owned())));
    assert_eq!((refused.attempts.len(), refused.chosen), (1, None));
    assert_eq!(refused.why_none(), "libmkl_rt.so.3: no library");
    let set = Some("9".to_owned());
    let crashed = tried(&BLIS, &file, &host, set, |_, _| Err(Failure::Died("signal 6".to_owned())));
    assert_eq!(crashed.attempts.len(), 1);
    assert_eq!(crashed.why_none(), "libmkl_rt.so.3 with BLIS_ARCH_TYPE=9: the probe died: signal 6");
    assert!(crashed.lines()[0].contains("BLIS_ARCH_TYPE=9: the probe died"));
}

#[test]
fn numbers_of_cores_are_those_of_the_file() {
    let host = Features::of_host();
    let mut told = Vec::new();
    tried(&BLIS, &["libblis.so.4".into()], &host, None, |_, setting| {
        told.extend(setting.cloned());
        let mut found = rates("0.9.0", setting.map_or("own", |s| s.core.as_str()), 10.0);
        found.numbered = ["zen", "own", "generic"].map(str::to_owned).into();
        Ok(found)
    });
    let generic = told.iter().find(|setting| setting.core == "generic").unwrap();
    assert_eq!(generic.value, "2");
    assert!(told.iter().all(|setting| ["zen", "generic"].contains(&setting.core.as_str())));
}

#[test]
fn what_ran_in_company_is_tried_again_and_what_runs_only_sometimes_is_not_used() {
    let (file, mut calls) = ([PathBuf::from("libopenblas.so.0")], 0);
    let done = tried(&OPENBLAS, &file, &Features::of_host(), None, |_, _| {
        calls += 1;
        Ok(rates("0.3.21", "Own", if calls == 1 { 10.0 } else { 12.0 }))
    });
    assert_eq!(done.attempts[0].outcome, Ok(rates("0.3.21", "Own", 12.0)));
    let mut calls = 0;
    let flaky = tried(&MKL, &file, &Features::of_host(), Some("AVX2".to_owned()), |_, _| {
        calls += 1;
        if calls == 1 { Ok(rates("1", "Own", 10.0)) } else { Err(Failure::Silent(10)) }
    });
    assert_eq!((flaky.chosen, &flaky.attempts[0].outcome), (None, &Err(Failure::Silent(10))));
}

#[test]
fn of_equals_the_newest_and_the_one_without_a_variable_is_used() {
    let old = || attempt("old.so", None, Ok(rates("0.3.21 DYNAMIC_ARCH", "Haswell", 101.0)));
    let new = |core, gflops| attempt("new.so", core, Ok(rates("0.3.34.0.0", core.unwrap_or("SkylakeX"), gflops)));
    let chosen = |attempts: Vec<Attempt>| of_openblas(attempts).chosen;
    assert_eq!(chosen(vec![old(), new(None, 100.0), new(Some("Haswell"), 102.0)]), Some(1));
    assert_eq!(chosen(vec![old(), new(None, 80.0)]), Some(0));
    assert_eq!(chosen(vec![old(), new(None, 80.0), new(Some("Haswell"), 200.0)]), Some(2));
    assert_eq!(chosen(vec![attempt("x.so", None, Err(Failure::Silent(1)))]), None);
    assert_eq!(numbers("Intel(R) oneAPI Math Kernel Library Version 2026.2-Product"), [2026]);
}

#[test]
fn a_library_below_its_best_is_warned_of_with_what_mends_it() {
    let best = |gflops| attempt("l.so.0", Some("SkylakeX"), Ok(rates("0.3.21 X", "SkylakeX", gflops)));
    let found = || attempt("l.so.0", None, Ok(rates("0.3.21 X", "Haswell", 105.0)));
    assert_eq!(
        of_openblas(vec![found(), best(199.0)]).warnings(),
        ["openblas 0.3.21 (l.so.0) runs its Haswell core as installed: 105 GFLOP/s (f32) of 199 with \
          OPENBLAS_CORETYPE=SkylakeX"]
    );
    assert_eq!(of_openblas(vec![found(), best(114.0)]).warnings(), [""; 0]);
    // Another file that is faster mends nothing of this one.
    let other = attempt("new.so", Some("SkylakeX"), Ok(rates("0.3.34", "SkylakeX", 300.0)));
    assert_eq!(of_openblas(vec![found(), other]).warnings(), [""; 0]);
    let crashed = attempt("l.so.0", None, Err(Failure::Died("signal 4".to_owned())));
    let said = of_openblas(vec![crashed, best(199.0)]).warnings();
    assert!(said[0].contains("does not run as installed (the probe died: signal 4)"), "{said:?}");
}
