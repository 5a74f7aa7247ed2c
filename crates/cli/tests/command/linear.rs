//! The linear model on the command line: what is refused before anything is measured, and costs of a kernel from a stored model.

use crate::home::Home;
use serde_json::Value;
use tilewright_calibration::{Columns, HostTerms};
use tilewright_cpu::CpuDevice;
use tilewright_perfmodel_linear::{LinearModel, Report, Sharpness, Weight};

const THREADS: &str = "1";

/// A model of this host with made-up weights.
fn stored(home: &Home, device: Option<&str>) -> String {
    let spec = CpuDevice::new(1).unwrap().spec().clone();
    let columns = Columns::host(&spec, HostTerms { footprint: true, chains: true }).unwrap();
    let weight = |property| Weight { property, seconds: 1e-9, uncertainty: 1e-11, measured: true };
    let model = LinearModel {
        device: device.map_or_else(|| spec.fingerprint(), str::to_owned),
        weights: columns.properties().into_iter().map(weight).collect(),
        sharpness: Sharpness { core: 3.0, memory: 1.5 },
        quantised: false,
        report: Report::default(),
    };
    let file = home.path().join("linear.json");
    std::fs::write(&file, model.to_value().unwrap().to_string()).unwrap();
    file.display().to_string()
}

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_default()
}

#[test]
fn a_gpu_that_never_times_and_sizes_that_do_not_fit_are_refused() {
    let home = Home::new();
    home.error(&["model", "fit", "--model", "linear", "--device", "emulator:sm_80"], 2, "device");
    home.error(&["model", "fit"], 2, "dataset");
    let (code, answer) = home.json(&["explain", "n_body", "--threads", THREADS]);
    assert_eq!(code, 2, "{answer}");
    assert!(message(&answer).contains("model fit"), "{answer}");
    let model = stored(&home, None);
    let explain = |words: &[&'static str]| {
        let args = [&["explain", "n_body", "--threads", THREADS, "--profile", &model], words].concat();
        home.json(&args)
    };
    let (code, answer) = explain(&["n=1000"]);
    assert_eq!(code, 2, "{answer}");
    assert!(message(&answer).contains("1000 is not divisible by 256"), "{answer}");
    assert!(message(&explain(&["m=4"]).1).contains("no size of n_body; there are n"));
}

/// Measuring takes minutes: what cannot end well does not begin.
#[test]
fn settings_are_refused_before_anything_is_measured() {
    let home = Home::new();
    let folder = home.path().display().to_string();
    let fit = |more: &[&str]| {
        let (code, answer) = home.json(&[&["model", "fit", "--model", "linear", "--device", "cpu"], more].concat());
        assert_eq!(code, 2, "{more:?}: {answer}");
        message(&answer).to_owned()
    };
    for ridge in ["nan", "inf", "-1"] {
        let refused = fit(&["--ridge", ridge]);
        assert!(refused.contains("finite number of 0 or more"), "{refused}");
    }
    assert!(fit(&["--out", &folder]).contains("is a folder"));
    assert!(fit(&["--layers", "3"]).contains("no layers"));
    home.error(&["model", "fit", "x.csv", "--ridge", "1"], 2, "ridge");
}

#[test]
fn costs_add_up_and_are_drawn() {
    let home = Home::new();
    let (model, svg) = (stored(&home, None), home.path().join("costs.svg"));
    let file = svg.display().to_string();
    let args = ["explain", "finite_difference", "n=512", "--threads", THREADS, "--profile", &model, "--svg", &file];
    let (code, answer) = home.json(&args);
    assert_eq!(code, 0, "{answer}");
    let predicted = answer["predicted_s"].as_f64().unwrap();
    let sum: f64 = answer["costs"].as_array().unwrap().iter().map(|c| c["seconds"].as_f64().unwrap()).sum();
    assert!((sum - predicted).abs() < 1e-9 * predicted, "{sum} {predicted}");
    assert!(std::fs::read_to_string(svg).unwrap().contains("<rect"));
}

#[test]
fn weights_of_another_device_and_damaged_ones_are_refused() {
    let home = Home::new();
    let model = stored(&home, Some("another"));
    let args = ["explain", "n_body", "--threads", THREADS, "--profile", &model];
    let (code, answer) = home.json(&args);
    assert_eq!(code, 1, "{answer}");
    assert!(message(&answer).contains("weights are of the device another"), "{answer}");
    let text = std::fs::read_to_string(stored(&home, None)).unwrap();
    std::fs::write(&model, text.replace("1e-9", "2e-9")).unwrap();
    assert!(message(&home.json(&args).1).contains("checksum"));
}

/// Weights where `model fit` leaves them.
fn kept(home: &Home) {
    let fingerprint = CpuDevice::new(1).unwrap().spec().fingerprint();
    let folder = home.path().join("profiles");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(stored(home, None), folder.join(format!("linear-{}.json", &fingerprint[..12]))).unwrap();
}

/// A decision that takes as little time as it may.
const PLAN: [&str; 13] = [
    "plan",
    "gemm.cpu",
    "m=64",
    "n=48",
    "k=80",
    "--threads",
    THREADS,
    "--candidates",
    "30",
    "--top",
    "4",
    "--budget",
    "20ms",
];

fn plan<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&PLAN, more].concat()
}

#[test]
fn weights_alone_make_a_plan_that_says_so() {
    let home = Home::new();
    kept(&home);
    let answer = home.answer(&plan(&["--model", "linear"]));
    assert_eq!(
        (&answer["model"], &answer["verified"], &answer["cached"]),
        (&"linear".into(), &true.into(), &false.into())
    );
    assert!(answer["considered"].as_u64().unwrap() >= 30 && answer["predicted_s"].as_f64().unwrap() > 0.0, "{answer}");
    assert!(answer["reason"].as_str().unwrap().contains("linear model was asked"), "{answer}");
    // The same file answers without the model's name, and for `explain`.
    let again = home.answer(&PLAN);
    assert_eq!(
        (&again["cached"], &again["model"], &again["config"]),
        (&true.into(), &"linear".into(), &answer["config"])
    );
    let mut explain = plan(&[]);
    explain[0] = "explain";
    let text = String::from_utf8(home.run(&explain).stdout).unwrap();
    assert!(text.contains("by the linear model") && text.contains("linear model was asked"), "{text}");
}

#[test]
fn without_a_profile_the_weights_are_used_and_a_model_asked_for_is_not_replaced() {
    let home = Home::new();
    let missing = home.error(&plan(&["--model", "mlp"]), 2, "model");
    assert!(missing.kind == "no-profile" && missing.message.contains("tilewright tune gemm"), "{}", missing.message);
    kept(&home);
    let out = home.run(&plan(&["--json"]));
    let told = String::from_utf8(out.stderr).unwrap();
    assert!(told.contains("linear model ranks configurations instead"), "{told}");
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(answer["model"], "linear", "{answer}");
    // What the linear model decided is no answer of the other.
    assert_eq!(home.error(&plan(&["--model", "mlp"]), 2, "model").kind, "no-profile");
}

#[test]
fn missing_and_foreign_weights_name_the_command_that_makes_them() {
    let home = Home::new();
    let command = "`tilewright model fit --model linear --device cpu --threads 1`";
    let ask = |more: &[&str]| home.json(&plan(&[&["--model", "linear"], more].concat()));
    let (code, answer) = ask(&[]);
    assert_eq!((code, &answer["error"]["kind"]), (2, &"no-weights".into()), "{answer}");
    assert!(message(&answer).contains(command), "{answer}");
    let foreign = stored(&home, Some("another"));
    let (code, answer) = ask(&["--profile", &foreign]);
    assert_eq!((code, &answer["error"]["kind"]), (1, &"other-device".into()), "{answer}");
    assert!(message(&answer).contains(command), "{answer}");
    std::fs::write(&foreign, "{}").unwrap();
    assert_eq!(ask(&["--profile", &foreign]).1["error"]["kind"], "corrupt");
}
