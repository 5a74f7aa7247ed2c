//! A campaign rehearsed on the emulator: killed in the middle, taken up, finished; and what it refuses.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn command(device: &str, minutes: &str, out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    command.args(["campaign", "--device", device, "--minutes", minutes, "--seed", "3", "--json", "--out"]).arg(out);
    command
}

fn run(device: &str, minutes: &str, out: &Path) -> (i32, Value) {
    let output = command(device, minutes, out).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {said}"));
    (output.status.code().unwrap(), value)
}

fn files(out: &Path) -> BTreeSet<String> {
    std::fs::read_dir(out).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Kills a run as soon as the log has grown by some samples.
fn killed_while_collecting(out: &Path) {
    let log = out.join("samples.log");
    let length = || std::fs::metadata(&log).map_or(0, |m| m.len());
    let before = length();
    let mut child = command("emulator:sm_80", "9", out).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while length() < before + 4000 {
        assert!(began.elapsed() < Duration::from_secs(120), "nothing was collected");
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_killed_campaign_goes_on_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("records");
    killed_while_collecting(&out);
    let state = json(&out.join("campaign.json"));
    assert_eq!(state["stages"][0]["name"], "doctor");
    let verified = state["verify"]["f32"]["cases"].as_u64().unwrap();
    assert!(verified > 0, "{state:#}");
    killed_while_collecting(&out);
    // What a kill at another byte leaves: half a record, and a file that was not renamed.
    let log = out.join("samples.log");
    let mut bytes = std::fs::read(&log).unwrap();
    bytes.extend_from_slice(b"000001f0 0123");
    std::fs::write(&log, &bytes).unwrap();
    std::fs::write(out.join(".tilewright-1-2-3"), b"half").unwrap();

    let (code, answer) = run("emulator:sm_80", "9", &out);
    assert_eq!(code, 0, "{answer:#}");
    let stages = answer["stages"].as_array().unwrap();
    let names: Vec<&str> = stages.iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["doctor", "verify", "collect", "fit", "table4", "sweep", "micro", "linear"]);
    assert!(stages.iter().all(|s| s["done"] == true && s["seconds"].as_f64().unwrap() > 0.0), "{answer:#}");
    assert_eq!(answer["wrong_results"], 0);
    assert_eq!(answer["metric"], "emulated_cost");
    assert_eq!(answer["samples"], 240);
    let found = files(&out);
    let records = answer["records"].as_array().unwrap();
    assert_eq!(found.len(), records.len(), "{found:?}");
    assert!(found.len() <= 8 && found.iter().all(|f| std::fs::metadata(out.join(f)).unwrap().len() < 16 << 20));

    // Every number says what it is, and none is a time.
    let tables = json(&out.join("tables.json"));
    let rows = tables["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * (17 + 3));
    assert!(rows.iter().all(|r| r["metric"] == "emulated_cost" && r["gflops"].is_null()));
    assert!(rows.iter().all(|r| r["missing"].as_array().unwrap().len() == 2), "absent baselines are named");
    let text = std::fs::read_to_string(out.join("tables.md")).unwrap();
    for part in ["no times of any device", "| m_s |", "occupancy", "Baseline absent: cublas"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let state = json(&out.join("campaign.json"));
    let micro = state["micro"].as_array().unwrap();
    assert!(micro.iter().all(|m| m["unit"].as_str().unwrap().contains("emulated cost")), "{micro:?}");
    assert!(micro.len() > 8);

    // Nothing is left to do.
    let (code, again) = run("emulator:sm_80", "9", &out);
    assert_eq!((code, &again["samples"]), (0, &answer["samples"]));
    assert_eq!(json(&out.join("tables.json")), tables);

    // Another device's results are not mixed in.
    let (code, other) = run("emulator:sm_90", "1", &out);
    assert_eq!(code, 1);
    assert!(other["error"]["message"].as_str().unwrap().contains("device"), "{other}");
}

#[test]
fn what_cannot_be_run_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let error = |device: &str, minutes: &str, code: i32, field: &str| {
        let (found, answer) = run(device, minutes, &folder.path().join("none"));
        assert_eq!((found, answer["error"]["field"].as_str()), (code, Some(field)), "{answer}");
    };
    error("emulator:sm_1", "1", 2, "device");
    error("gpu", "1", 2, "device");
    error("cuda:first", "1", 2, "device");
    error("cpu", "0", 2, "minutes");
    error("cpu", "nan", 2, "minutes");
    // No machine has so many.
    error("cuda:977", "1", 4, "device");
    assert!(!folder.path().join("none").exists());
}

#[test]
fn a_few_seconds_on_the_processor() {
    let folder = tempfile::tempdir().unwrap();
    let (code, answer) = run("cpu", "0.1", folder.path());
    assert_eq!(code, 0, "{answer:#}");
    assert_eq!(answer["metric"], "time_s");
    assert_eq!(answer["wrong_results"], 0);
    assert!(answer["verified"].as_u64().unwrap() > 0 && answer["samples"].as_u64().unwrap() > 0, "{answer:#}");
    let found = files(folder.path());
    assert!(found.contains("samples.csv") && found.contains("samples.schema.json"), "{found:?}");
}
