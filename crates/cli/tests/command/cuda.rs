//! CUDA devices on a fake driver: everything between the command line and the driver, in the process that isolates it.

use crate::home::{Home, document, has};
use serde_json::Value;
use std::path::Path;
use tilewright_perfmodel_linear::{LinearModel, Part, Property, Report, Sharpness, Weight};

fn answer(home: &Home, args: &[&str]) -> Value {
    let (code, value) = document(args, &home.cuda(args));
    assert_eq!(code, 0, "{args:?}: {value}");
    value
}

#[test]
fn a_device_is_found_and_told() {
    let home = Home::new();
    // Unnamed, since there is one.
    let told = answer(&home, &["doctor"]);
    assert_eq!((&told["device"]["id"], &told["device"]["kind"]), (&"cuda:0".into(), &"cuda".into()));
    assert_eq!(told["device"]["facts"]["sm"], 80);
    // Its maker's libraries are there, or there is a reason.
    let lists = ["baselines_found", "baselines_missing"].map(|list| told[list].as_array().unwrap());
    for name in ["cublas", "cudnn"] {
        assert_eq!(
            lists.iter().flat_map(|list| list.iter()).filter(|b| b["name"] == name).count(),
            1,
            "{name}: {told}"
        );
    }
    assert!(lists[1].iter().all(|missing| !missing["reason"].as_str().unwrap().is_empty()), "{told}");
    let (code, error) = document(&["doctor"], &home.cuda(&["doctor", "--device", "cuda:1"]));
    assert_eq!(code, 4, "{error}");
}

#[test]
fn kernels_are_right_on_it() {
    let home = Home::new();
    let verified = answer(&home, &["verify", "gemm", "--device", "cuda:0", "--cases", "40"]);
    assert_eq!((&verified["cases"], &verified["failed"]), (&40.into(), &0.into()), "{verified}");
    assert!(verified["worst_rel_error"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_plan_is_made_run_and_remembered() {
    let home = Home::new();
    let input = ["m=64", "n=48", "k=33", "dtype=f32", "--device", "cuda:0"];
    let ran = answer(&home, &[&["run", "gemm"], &input[..]].concat());
    assert!(ran["max_rel_error"].as_f64().unwrap() < 1e-5 && ran["time_s"].as_f64().unwrap() > 0.0, "{ran}");
    let plan = answer(&home, &[&["plan", "gemm"], &input[..]].concat());
    has(&plan, &["config", "measured_s", "verified"]);
    assert!(plan["measured_s"].as_f64().unwrap() > 0.0 && plan["verified"] == true, "{plan}");
    let again = answer(&home, &[&["plan", "gemm"], &input[..]].concat());
    assert_eq!((&again["config"], &again["cached"]), (&plan["config"], &true.into()), "{again}");
}

#[test]
fn a_campaign_takes_the_stages_that_it_is_asked_for() {
    let home = Home::new();
    let out = home.path().join("out");
    let folder = out.to_str().unwrap();
    let asked = ["--stages", "verify", "--rehearsal", "--minutes", "1"];
    let summary = answer(&home, &[&["campaign", "--device", "cuda:0", "--out", folder], &asked[..]].concat());
    let stages: Vec<&Value> = summary["stages"].as_array().unwrap().iter().map(|s| &s["name"]).collect();
    assert_eq!(stages, ["verify"]);
    assert_eq!((&summary["verified"], &summary["wrong_results"]), (&12.into(), &0.into()));
    let unknown = ["campaign", "--device", "cuda:0", "--out", folder, "--stages", "verify,tabel4"];
    assert_eq!(document(&unknown, &home.cuda(&unknown)).0, 2);
}

/// In a few seconds every stage is begun, and none is over for lack of work.
#[test]
fn a_campaign_of_convolutions_has_the_stages_of_convolutions() {
    let home = Home::new();
    let out = home.path().join("out");
    let campaign = ["campaign", "conv", "--device", "cuda:0", "--out", out.to_str().unwrap(), "--rehearsal"];
    let summary = answer(&home, &[&campaign[..], &["--minutes", "0.15"]].concat());
    let stages: Vec<&Value> = summary["stages"].as_array().unwrap().iter().map(|s| &s["name"]).collect();
    assert_eq!(
        stages,
        ["doctor", "verify", "collect", "fit", "table5", "sweep", "types", "deepbench", "pool", "micro", "linear"]
    );
    assert_eq!(summary["wrong_results"], 0, "{summary}");
    assert!(summary["verified"].as_u64() > Some(0) && summary["samples"].as_u64() > Some(0), "{summary}");
    let state: Value = serde_json::from_slice(&std::fs::read(out.join("campaign.json")).unwrap()).unwrap();
    let classes: Vec<&str> = state["verify"].as_object().unwrap().keys().map(String::as_str).collect();
    assert!(classes.starts_with(&["f16", "f32", "f64"]) || classes == ["f32", "f64"], "{classes:?}");
    let tables: Value = serde_json::from_slice(&std::fs::read(out.join("tables.json")).unwrap()).unwrap();
    let rows = tables["rows"].as_array().unwrap();
    let is_cold = |row: &Value| row["stage"] == "table5" && row["cost_cold"].as_f64() > Some(0.0);
    assert!(!rows.is_empty() && rows.iter().all(is_cold), "{tables}");
    let names = rows[0]["missing"].as_array().unwrap().iter().map(|why| why.as_str().unwrap());
    assert!(names.clone().any(|why| why.starts_with("cudnn: ")), "{tables}");
    assert!(names.clone().any(|why| why.starts_with("cudnn-precomp: ")), "{tables}");
    let text = std::fs::read_to_string(out.join("tables.md")).unwrap();
    for part in ["## Table 5, f32", "| cudnn | cudnn-precomp | best |", "Baseline absent: cudnn: "] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    // The table of another computation is no stage of this one.
    let wrong = [&campaign[..], &["--stages", "table4"]].concat();
    let (code, refused) = document(&wrong, &home.cuda(&wrong));
    assert_eq!((code, refused["error"]["field"].as_str()), (2, Some("stages")), "{refused}");
}

fn cold<'a>(input: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    let little = ["--candidates", "6", "--top", "2", "--budget", "20ms"];
    [&["plan"], input, &["--device", "cuda:0", "--model", "linear"], &little, more].concat()
}

/// Weights of the device of a home.
fn weights(home: &Home) -> String {
    let told = answer(home, &["doctor"]);
    let weight = |name: &str, part, seconds| {
        let property = Property { name: name.to_owned(), part };
        Weight { property, seconds, uncertainty: 0.0, measured: true }
    };
    let model = LinearModel {
        device: told["fingerprint"].as_str().unwrap().to_owned(),
        weights: vec![weight("groups", Part::Overhead, 1e-8), weight("fma.f32", Part::Arithmetic, 1e-11)],
        sharpness: Sharpness::SUM,
        quantised: false,
        report: Report::default(),
    };
    let file = home.path().join("weights.json");
    std::fs::write(&file, model.to_value().unwrap().to_string()).unwrap();
    file.display().to_string()
}

#[test]
fn weights_alone_make_a_plan_on_it() {
    let home = Home::new();
    let input = ["gemm", "m=64", "n=48", "k=33", "dtype=f32"];
    let missing = document(&["plan"], &home.cuda(&cold(&input, &[])));
    assert_eq!((missing.0, &missing.1["error"]["kind"]), (2, &"no-weights".into()), "{}", missing.1);
    let command = "`tilewright model fit --model linear --device cuda:0`";
    assert!(missing.1["error"]["message"].as_str().unwrap().contains(command), "{}", missing.1);
    let planned = answer(&home, &cold(&input, &["--profile", &weights(&home)]));
    assert_eq!((&planned["model"], &planned["verified"]), (&"linear".into(), &true.into()), "{planned}");
    assert!(planned["considered"].as_u64().unwrap() >= 6 && planned["measured_s"].as_f64().unwrap() > 0.0, "{planned}");
}

/// A described kernel has no symbolic counts: blocks of it are emulated.
#[test]
fn weights_alone_make_a_plan_of_a_described_kernel() {
    let Some(nvrtc) = tilewright_testkit::nvrtc() else { return };
    let home = Home::new();
    let stencil = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kernels/stencil.cu.json");
    let words = [stencil.to_str().unwrap(), "h=70", "w=90"];
    let (weights, nvrtc) = (weights(&home), nvrtc.display().to_string());
    // Its reference needs the host's compiler.
    let variables = [("TILEWRIGHT_NVRTC", nvrtc.as_str()), ("PATH", env!("PATH"))];
    let (code, planned) = document(&["plan"], &home.cuda_with(&cold(&words, &["--profile", &weights]), &variables));
    assert_eq!(code, 0, "{planned}");
    assert_eq!((&planned["model"], &planned["verified"]), (&"linear".into(), &true.into()), "{planned}");
    assert!(planned["predicted_s"].as_f64().unwrap() > 0.0, "{planned}");
}
