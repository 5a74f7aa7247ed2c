//! The binary as others script against it: JSON fields, exit codes, errors that name the field.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_tilewright")).args(args).env("TILEWRIGHT_HOME", self.path()).output().unwrap()
    }

    /// Runs with `--json`: the exit code, and the one document on standard output.
    fn json(&self, args: &[&str]) -> (i32, Value) {
        let out = self.run(&[args, &["--json"]].concat());
        let text = String::from_utf8(out.stdout).unwrap();
        let value = serde_json::from_str(&text)
            .unwrap_or_else(|e| panic!("{args:?}: {e}: {text:?}; {}", String::from_utf8_lossy(&out.stderr)));
        (out.status.code().unwrap(), value)
    }

    fn error(&self, args: &[&str], code: i32, field: &str) -> String {
        let (found, value) = self.json(args);
        let error = &value["error"];
        assert_eq!(found, code, "{args:?}: {value}");
        assert!(error["kind"].is_string(), "{value}");
        assert_eq!(error["field"], field, "{args:?}: {value}");
        error["message"].as_str().unwrap().to_owned()
    }
}

fn has(value: &Value, fields: &[&str]) {
    for field in fields {
        assert!(value.get(field).is_some(), "no {field} in {value:#}");
    }
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
fn tuning_leaves_a_profile_that_plans_by_model_and_explains() {
    let home = Home::new();
    let (code, tuned) =
        home.json(&["tune", "gemm", "--threads", "1", "--dtype", "f32", "--budget", "2s", "--no-table"]);
    assert_eq!(code, 0, "{tuned}");
    has(&tuned, &["device", "samples", "failed", "seconds", "cv_mse", "profile"]);
    assert!(Path::new(tuned["profile"].as_str().unwrap()).exists());
    let (code, plan) = home.json(&["plan", "gemm", "m=65", "n=33", "k=47", "--threads", "1", "--top", "3"]);
    assert_eq!(code, 0, "{plan}");
    // The choice itself may come from looking around the model's best, and then has no prediction of its own.
    assert!(plan["reason"].as_str().unwrap().contains("model was searched"), "{plan}");
    assert_eq!(plan["verified"], true, "{plan}");
    let (code, why) = home.json(&["explain", "gemm", "m=65", "n=33", "k=47", "--threads", "1"]);
    assert_eq!(code, 0);
    assert!(!why["alternatives"].as_array().unwrap().is_empty() && why["cached"] == true);
    // A damaged profile is named when it is asked for.
    let profile = tuned["profile"].as_str().unwrap();
    let mut bytes = std::fs::read(profile).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(profile, bytes).unwrap();
    let (code, error) = home.json(&["plan", "gemm", "m=5", "n=5", "k=5", "--threads", "1", "--profile", profile]);
    assert_eq!((code, &error["error"]["field"]), (1, &profile.into()), "{error}");
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
fn doctor_says_what_there_is() {
    let (code, doctor) = Home::new().json(&["doctor", "--threads", "1"]);
    assert_eq!(code, 0);
    has(&doctor, &["device", "baselines_found", "baselines_missing", "profiles"]);
    assert!(doctor["device"]["measured"]["peak_flops_f32"].as_f64().unwrap() > 1e8);
}

#[test]
fn bad_words_are_named_and_exit_2() {
    let home = Home::new();
    let plan = |words: &[&'static str]| [&["plan", "gemm"], words].concat();
    for (words, field) in [
        (&["n=4", "k=4"][..], "m"),
        (&["m=-4", "n=4", "k=4"], "m"),
        (&["m=4", "n=4", "k=99999999999999999999"], "k"),
        (&["m=4", "n=4", "k=4", "lda=2"], "lda"),
        (&["m=4", "n=4", "k=4", "dtype=f8"], "dtype"),
        (&["m=4", "n=4", "k=4", "layout=zz"], "layout"),
        (&["m=4", "n=4", "k=4", "colour=red"], "colour"),
        (&["m=4", "n=4", "k"], "k"),
        (&["m=4", "m=4", "n=4", "k=4"], "m"),
    ] {
        let message = home.error(&plan(words), 2, field);
        assert!(!message.is_empty());
    }
    assert!(home.error(&["plan", "sort", "m=4"], 2, "kernel").contains("gemm"));
    home.error(&["run", "gemm", "m=8", "n=8", "k=8", "--config", "m_s=7"], 2, "config");
    home.error(&["run", "gemm", "m=8", "n=8", "k=8", "--config", "tile=7"], 2, "config");
    home.error(&["bench", "gemm", "--tasks", "nothing"], 2, "tasks");
    home.error(&["bench", "gemm", "--dtype", "f16"], 2, "dtype");
    home.error(&["run", "gemm", "m=8", "n=8", "k=8", "--baselines", "atlas"], 2, "baselines");
}

#[test]
fn usage_errors_are_json_too() {
    let home = Home::new();
    let (code, error) = home.json(&["frobnicate"]);
    assert_eq!((code, &error["error"]["kind"]), (2, &"usage".into()));
    let (code, _) = home.json(&["tune", "gemm", "--budget", "soon"]);
    assert_eq!(code, 2);
    let (code, _) = home.json(&["plan", "gemm", "m=4", "n=4", "k=4", "--threads", "0"]);
    assert_eq!(code, 2);
}

#[test]
fn a_missing_device_exits_4_and_too_large_an_input_2() {
    let home = Home::new();
    home.error(&["plan", "gemm", "m=4", "n=4", "k=4", "--device", "cuda:0"], 4, "device");
    let (code, error) = home.json(&["plan", "gemm", "m=1000000", "n=1000000", "k=4"]);
    assert_eq!(code, 2, "{error}");
    assert!(error["error"]["message"].as_str().unwrap().contains("bytes"));
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
