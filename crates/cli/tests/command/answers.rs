//! The binary as others script against it: JSON fields, exit codes, errors that name the field.

use crate::home::{Home, has};
use std::path::Path;

/// Nothing is multiplied, so nothing is worth a search.
#[test]
fn an_empty_product_is_planned_at_once() {
    let home = Home::new();
    let begun = std::time::Instant::now();
    let plan = home.answer(&["plan", "gemm", "m=0", "n=400", "k=400", "--threads", "1"]);
    assert!(begun.elapsed().as_secs() < 5, "{plan}");
    assert_eq!(plan["verified"], true, "{plan}");
}

#[test]
fn run_says_what_it_does() {
    let home = Home::new();
    let out = home.run(&["run", "gemm", "m=16", "n=16", "k=16", "--threads", "1", "--baselines", "none"]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && said.contains("checking and timing 3 kernels and "), "{said}");
}

#[test]
fn a_small_input_is_planned_without_a_profile_and_then_cached() {
    let home = Home::new();
    let args = ["plan", "gemm", "m=40", "n=24", "k=32", "--threads", "1", "--budget", "300ms"];
    let (code, plan) = home.json(&args);
    assert_eq!(code, 0);
    has(&plan, &["kernel", "config", "predicted_s", "measured_s", "verified", "considered", "cached", "reason"]);
    assert_eq!((&plan["verified"], &plan["cached"]), (&true.into(), &false.into()));
    let (_, again) = home.json(&args);
    assert_eq!((&again["cached"], &again["config"]), (&true.into(), &plan["config"]));
    let (_, fresh) = home.json(&[&args[..], &["--fresh"]].concat());
    assert_eq!(fresh["cached"], false);
}

#[test]
fn a_plan_is_looked_for_again_when_more_is_asked_of_it() {
    let home = Home::new();
    let words = ["plan", "gemm", "m=96", "n=80", "k=64", "--threads", "1"];
    let plan = |more: &[&str]| home.answer(&[&words[..], more].concat());
    let again = |more: &[&str], why: &str| {
        let answer = plan(more);
        let told = answer["looked_again"].as_str().unwrap_or_else(|| panic!("{more:?}: {answer}"));
        assert!(answer["cached"] == false && told.contains(why), "{more:?}: {told}");
        assert!(answer["reason"].as_str().unwrap().contains("remembered"), "{answer}");
    };
    let first = plan(&["--budget", "0s"]);
    assert_eq!((&first["cached"], &first["looked_again"]), (&false.into(), &serde_json::Value::Null));
    assert_eq!(plan(&[])["cached"], true);
    again(&["--budget", "400ms"], "0 s were given to measuring, and 0.4 s are asked for");
    assert!([&["--budget", "400ms"][..], &["--budget", "0s"], &[]].iter().all(|more| plan(more)["cached"] == true));
    // Enough samples for a model, however busy the machine is.
    let tune = ["tune", "gemm", "--threads", "1", "--dtype", "f32", "--no-table", "--budget", "30s", "--samples"];
    home.answer(&[&tune[..], &["60"]].concat());
    again(&[], "without the profile that there is now");
    assert_eq!(plan(&["--model", "mlp"])["cached"], true);
    again(&["--top", "21", "--budget", "10ms"], "the best 20 by model were timed, and 21 are asked for");
    assert!([&["--top", "21"][..], &["--top", "3"], &[]].iter().all(|more| plan(more)["cached"] == true));
    // A newer profile.
    home.answer(&[&tune[..], &["70"]].concat());
    again(&["--budget", "10ms"], "without the profile that there is now");
    let text = String::from_utf8(home.run(&words).stdout).unwrap();
    assert!(text.contains("rom the plan cache"), "{text}");
}

#[test]
fn tuning_leaves_a_profile_that_plans_by_model_and_explains() {
    let home = Home::new();
    // Enough samples for a model, however busy the machine is.
    let enough = ["--budget", "30s", "--samples", "60"];
    let tune = ["tune", "gemm.cpu", "--threads", "1", "--dtype", "f32", "--no-table"];
    let (code, tuned) = home.json(&[&tune[..], &enough].concat());
    assert_eq!(code, 0, "{tuned}");
    has(&tuned, &["device", "samples", "failed", "seconds", "cv_mse", "profile"]);
    assert!(Path::new(tuned["profile"].as_str().unwrap()).exists());
    let (code, plan) = home.json(&["plan", "gemm.cpu", "m=65", "n=33", "k=47", "--threads", "1", "--top", "3"]);
    assert_eq!(code, 0, "{plan}");
    // The choice itself may come from looking around the model's best, and then has no prediction of its own.
    assert!(plan["reason"].as_str().unwrap().contains("model was searched"), "{plan}");
    assert_eq!(plan["verified"], true, "{plan}");
    let band = plan["tie_band"].as_array().unwrap();
    // Beside other tests there may be no time for a round that compares: then nothing is said of equals.
    if let Some(first) = band.first() {
        assert_eq!((&first["config"], &first["measured_s"]), (&plan["config"], &plan["measured_s"]), "{plan}");
        let within = plan["tie_within"].as_f64().unwrap();
        assert!(band.iter().all(|tied| tied["relative"].as_f64().unwrap() <= 1.0 + within), "{plan}");
        assert!(plan["tie_order"].as_str().unwrap().starts_with("the remembered configuration, then"), "{plan}");
    }
    let explain = ["explain", "gemm.cpu", "m=65", "n=33", "k=47", "--threads", "1"];
    let (code, why) = home.json(&explain);
    assert_eq!(code, 0);
    assert!(!why["alternatives"].as_array().unwrap().is_empty() && why["cached"] == true);
    assert_eq!((&why["tie_band"], &why["tie_why"]), (&plan["tie_band"], &plan["tie_why"]), "{why}");
    let told = String::from_utf8(home.run(&explain).stdout).unwrap();
    let said = ["", "no other configuration counts as equal", "count as equal:"][band.len().min(2)];
    assert!(told.contains(said), "{told}");
}

#[test]
fn one_run_is_checked_and_timed_beside_the_baselines() {
    let home = Home::new();
    let (code, run) = home.json(&[
        "run",
        "gemm",
        "m=96",
        "n=64",
        "k=50",
        "dtype=f64",
        "layout=tn",
        "beta=1",
        "--threads",
        "1",
        "--baselines",
        "gemm,matrixmultiply",
    ]);
    assert_eq!(code, 0, "{run}");
    has(&run, &["time_s", "gflops", "max_rel_error"]);
    let baselines = run["baselines"].as_array().unwrap();
    assert_eq!(baselines.len(), 2);
    baselines.iter().for_each(|b| has(b, &["name", "time_s", "ratio"]));
}

#[test]
fn the_legal_space_is_counted_and_sampled() {
    let home = Home::new();
    let (code, space) = home.json(&[
        "space",
        "gemm",
        "m=2048",
        "n=2048",
        "k=2048",
        "layout=nt",
        "--threads",
        "1",
        "--sample",
        "200",
        "--why",
    ]);
    assert_eq!(code, 0, "{space}");
    has(&space, &["cartesian", "legal", "seconds", "rejected_by"]);
    assert!(space["acceptance"]["categorical"].as_f64() > space["acceptance"]["uniform"].as_f64());
}

#[test]
fn verification_reports_its_coverage() {
    let home = Home::new();
    let (code, v) = home.json(&["verify", "gemm", "--cases", "24", "--threads", "2", "--seed", "7"]);
    assert_eq!(code, 0, "{v}");
    has(&v, &["cases", "failed", "worst_rel_error", "races", "out_of_bounds", "coverage"]);
    assert_eq!((&v["cases"], &v["failed"]), (&24.into(), &0.into()));
}

#[test]
fn verification_keeps_the_fields_that_are_asked_for() {
    let home = Home::new();
    let verify = ["verify", "gemm", "--cases", "24", "--threads", "2", "--dtype", "c64", "--field"];
    let (code, v) = home.json(&[&verify[..], &["accuracy=3m"]].concat());
    assert_eq!((code, &v["failed"]), (0, &0.into()), "{v}");
    let coverage = v["coverage"].to_string();
    assert!(coverage.contains("accuracy:3m") && coverage.contains("gemm.cpu-3m"), "{coverage}");
    let (code, refused) = home.json(&[&verify[..], &["accuracy=4m"]].concat());
    assert_eq!(code, 2, "{refused}");
    assert!(refused.to_string().contains("4m is not one of full, tf32, 3xtf32 and 3m"), "{refused}");
    let (code, refused) = home.json(&[&verify[..], &["dtype=f32"]].concat());
    assert_eq!(code, 2, "{refused}");
    assert!(refused.to_string().contains("--dtype says c64, --field f32: leave one out"), "{refused}");
}

/// Whoever asks why has not asked for a plan.
#[test]
fn explaining_stores_no_plan() {
    let home = Home::new();
    let explain = |more: &[&str]| {
        home.answer(&[&["explain", "gemm", "m=65", "n=33", "k=47", "--threads", "1", "--budget=100ms"], more].concat())
    };
    let measured = explain(&[]);
    assert_eq!((&measured["verified"], &measured["cached"]), (&true.into(), &false.into()), "{measured}");
    let predicted = explain(&["--top", "0"]);
    assert_eq!((&predicted["timed"], &predicted["verified"]), (&0.into(), &false.into()), "{predicted}");
    let (spmv, input) =
        (["explain", "spmv", "--threads", "1", "--budget=100ms"], ["matrix=banded", "rows=50", "half=2"]);
    home.answer(&[&spmv[..], &input].concat());
    home.answer(&[&spmv[..], &input, &["--top", "0"]].concat());
    assert!(home.files("plans").is_empty(), "{:?}", home.files("plans"));
}

/// A profile of the same machine with other threads is not one of another machine.
#[test]
fn doctor_tells_other_threads_from_another_device() {
    let home = Home::new();
    home.answer(&["tune", "gemm", "--threads", "1", "--dtype", "f32", "--no-table", "--samples", "40"]);
    let said = |threads: &str| {
        let one = &home.answer(&["doctor", "--threads", threads])["profiles"][0];
        let text = String::from_utf8(home.run(&["doctor", "--threads", threads]).stdout).unwrap();
        (one["fits"] == true, one["other_threads"].as_i64(), text)
    };
    let (fits, other, text) = said("1");
    assert!(fits && other.is_none() && text.contains("usable here"), "{text}");
    let (fits, other, text) = said("2");
    assert!(!fits && other == Some(1), "{text}");
    assert!(text.contains("another number of threads: 1, and here 2") && !text.contains("another device"), "{text}");
}

#[test]
fn doctor_says_what_there_is() {
    let (code, doctor) = Home::new().json(&["doctor", "--threads", "1"]);
    assert_eq!(code, 0);
    has(&doctor, &["device", "baselines_found", "baselines_missing", "profiles"]);
    assert!(doctor["device"]["measured"]["peak_flops_f32"].as_f64().unwrap() > 1e8);
}

/// A core that whoever starts the program asks for is taken and told, and one that crashes a library only costs that library.
#[test]
fn doctor_takes_the_cores_that_it_is_told() {
    let home = Home::new();
    let (core, crashing) = (("OPENBLAS_CORETYPE", "Haswell"), ("BLIS_ARCH_TYPE", "999"));
    let others = [("MKL_ENABLE_INSTRUCTIONS", "AVX2"), ("LIBXSMM_TARGET", "hsw")];
    let variables = [core, crashing, others[0], others[1], ("TILEWRIGHT_BASELINE_CORES", "")];
    let (code, told) = home.json_with(&["doctor", "--device", "cpu", "--threads", "1"], &variables);
    assert_eq!(code, 0, "{told}");
    let of = |list: &str, name: &str| told[list].as_array().unwrap().iter().find(|b| b["name"] == name).cloned();
    if let Some(openblas) = of("baselines_found", "openblas") {
        assert_eq!(openblas["core_choice"]["asked"], "OPENBLAS_CORETYPE=Haswell", "{openblas}");
        assert!(openblas["path"].is_string() && openblas["version"].is_string(), "{openblas}");
    }
    let tried = told["baselines_tried"].as_array().unwrap();
    if tried.iter().any(|one| one["library"] == "blis") {
        let reason = of("baselines_missing", "blis").unwrap()["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains("BLIS_ARCH_TYPE=999") && reason.contains("died"), "{reason}");
    }
    assert!(tried.iter().all(|one| one["asked"].is_string()), "{told}");
    assert_eq!(told["baselines_slow"], serde_json::json!([]));
    if !tried.is_empty() {
        let kept = std::fs::read(home.path().join("cores.json")).unwrap();
        let (_, again) = home.json_with(&["doctor", "--device", "cpu", "--threads", "1"], &variables);
        assert_eq!(again["baselines_tried"], told["baselines_tried"]);
        assert_eq!(std::fs::read(home.path().join("cores.json")).unwrap(), kept);
    }
}

/// Nothing is tried where that is forbidden; libraries then say which core they took by themselves.
#[test]
fn doctor_leaves_libraries_as_they_are() {
    let home = Home::new();
    let (code, told) = home.json(&["doctor", "--device", "cpu", "--threads", "1"]);
    assert_eq!((code, &told["baselines_tried"]), (0, &serde_json::json!([])));
    let with_cores = told["baselines_found"].as_array().unwrap().iter().filter(|b| !b["core_choice"].is_null());
    assert!(with_cores.into_iter().all(|b| b["core_choice"] == "as_found"), "{told}");
    assert!(!home.path().join("cores.json").exists());
}

#[test]
fn empty_products_run() {
    let home = Home::new();
    for words in [["m=0", "n=4", "k=4"], ["m=4", "n=4", "k=0"]] {
        let out = home.run(&[&["run", "gemm"], &words[..], &["--threads", "1", "--baselines", "none"]].concat());
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(0), "{words:?}: {text}");
    }
}

#[test]
fn help_goes_to_standard_output_and_exits_0() {
    let out = Home::new().run(&["--help"]);
    assert!(out.status.success());
    assert!(String::from_utf8(out.stdout).unwrap().contains("tune"));
}
