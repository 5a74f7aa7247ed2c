//! A campaign rehearsed on the emulator: killed in the middle, taken up, finished; and what it refuses.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn command(device: &str, minutes: &str, out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    command.args(["campaign", "--device", device, "--minutes", minutes, "--seed", "3", "--json", "--out"]).arg(out);
    // What it records for other devices stays with its results.
    command.env("TILEWRIGHT_BASELINE_CORES", "as-found").env("TILEWRIGHT_HOME", out.join("home"));
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

/// Sends a run a signal as soon as the log has grown by some samples, and gives what it says.
fn ended_while_collecting(signal: &str, out: &Path) -> std::process::Output {
    let log = out.join("gemm.simt.1.log");
    let length = || std::fs::metadata(&log).map_or(0, |m| m.len());
    let before = length();
    let mut child = command("emulator:sm_80", "9", out).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while length() < before + 4000 {
        assert!(began.elapsed() < Duration::from_secs(120), "nothing was collected");
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    child.wait_with_output().unwrap()
}

/// Every number says what it is, and none is a time.
fn expect_no_times(out: &Path, answer: &Value) {
    let stages = answer["stages"].as_array().unwrap();
    let tables = json(&out.join("tables.json"));
    let rows = tables["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * (17 + 3) + 7 + (2 + 7));
    assert!(rows.iter().all(|r| r["metric"] == "emulated_cost" && r["gflops"].is_null()));
    assert!(rows.iter().all(|r| r["missing"].as_array().unwrap().len() == 2), "absent baselines are named");
    assert!(rows.iter().all(|r| !r["kernels"].as_array().unwrap().is_empty()), "each kernel's best is kept");
    assert_eq!((&tables["pool"], &answer["pool"]), (&Value::Null, &Value::Null), "no library took part");
    let note = stages.iter().find(|s| s["name"] == "pool").unwrap()["note"].as_str().unwrap();
    assert_eq!(note, "no default of a vendor's library (cublas, cublaslt, cudnn) took part in a task");
    let text = std::fs::read_to_string(out.join("tables.md")).unwrap();
    for part in ["no times of any device", "| m_s |", "occupancy", "Baseline absent: cublas"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let state = json(&out.join("campaign.json"));
    let micro = state["micro"].as_array().unwrap();
    assert!(micro.iter().all(|m| m["unit"].as_str().unwrap().contains("emulated cost")), "{micro:?}");
    assert!(micro.len() > 8);
}

#[test]
fn a_killed_campaign_goes_on_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("records");
    ended_while_collecting("-KILL", &out);
    let state = json(&out.join("campaign.json"));
    assert_eq!(state["stages"][0]["name"], "doctor");
    let verified = state["verify"]["f32"]["cases"].as_u64().unwrap();
    assert!(verified > 0, "{state:#}");
    // Who is asked ends in order, and says what is left.
    let asked = ended_while_collecting("-TERM", &out);
    let (said, answer) =
        (String::from_utf8_lossy(&asked.stderr), serde_json::from_slice::<Value>(&asked.stdout).unwrap());
    assert!(asked.status.success() && said.contains("goes on where this one stopped"), "{said}");
    assert_eq!(answer["stages"].as_array().unwrap().last().unwrap()["done"], false, "{answer:#}");
    // What a kill at another byte leaves: half a record, and a file that was not renamed.
    let log = out.join("gemm.simt.1.log");
    let mut bytes = std::fs::read(&log).unwrap();
    bytes.extend_from_slice(b"000001f0 0123");
    std::fs::write(&log, &bytes).unwrap();
    std::fs::write(out.join(".tilewright-1-2-3"), b"half").unwrap();
    // As an older version named it.
    std::fs::rename(&log, out.join("samples.log")).unwrap();

    let (code, answer) = run("emulator:sm_80", "9", &out);
    assert_eq!(code, 0, "{answer:#}");
    let stages = answer["stages"].as_array().unwrap();
    let names: Vec<&str> = stages.iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["doctor", "verify", "collect", "fit", "table4", "sweep", "types", "deepbench", "pool", "micro", "linear"]
    );
    assert!(stages.iter().all(|s| s["done"] == true && s["seconds"].as_f64().unwrap() > 0.0), "{answer:#}");
    assert_eq!(answer["wrong_results"], 0);
    assert_eq!(answer["metric"], "emulated_cost");
    assert_eq!(answer["samples"], 240);
    let found = files(&out);
    let records = answer["records"].as_array().unwrap();
    assert_eq!(found.len(), records.len(), "{found:?}");
    let is_small = |f: &String| std::fs::metadata(out.join(f)).unwrap().len() < 16 << 20;
    assert!(found.len() <= 12 && found.iter().all(is_small), "{found:?}");

    expect_no_times(&out, &answer);
    let tables = json(&out.join("tables.json"));

    // Nothing is left to do.
    let (code, again) = run("emulator:sm_80", "9", &out);
    assert_eq!((code, &again["samples"]), (0, &answer["samples"]));
    assert_eq!(json(&out.join("tables.json")), tables);

    // Another device's results are not mixed in.
    let (code, other) = run("emulator:sm_90", "1", &out);
    assert_eq!(code, 1);
    assert!(other["error"]["message"].as_str().unwrap().contains("device"), "{other}");
}

/// A device is there once, but every emulated one is made anew: two of a name rehearse a campaign that devices share.
#[test]
fn an_emulated_device_may_be_named_twice() {
    let folder = tempfile::tempdir().unwrap();
    let twice = |device: &str| {
        let output = command(device, "0.05", folder.path()).args(["--stages", "doctor"]).output().unwrap();
        (output.status.code().unwrap(), serde_json::from_slice::<Value>(&output.stdout).unwrap())
    };
    assert_eq!(twice("emulator:sm_80,emulator:sm_80").0, 0);
    let (code, refused) = twice("cpu,cpu");
    assert!(code == 2 && refused["error"]["message"].as_str().unwrap().contains("twice"), "{refused}");
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

#[test]
fn a_few_seconds_for_all_kernels_of_a_computation() {
    let folder = tempfile::tempdir().unwrap();
    let output = command("cpu", "0.1", folder.path()).args(["transpose", "--rehearsal"]).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &answer["wrong_results"]), (Some(0), &0.into()), "{answer:#}");
    assert!(answer["samples"].as_u64().unwrap() > 0 && answer["verified"].as_u64().unwrap() > 0, "{answer:#}");
    let logs = files(folder.path()).into_iter().filter(|f| f.starts_with("transpose.") && f.ends_with(".log"));
    assert_eq!(logs.count(), 4, "a log for each kernel");
    let table = std::fs::read_to_string(folder.path().join("samples.csv")).unwrap();
    assert!(table.lines().next().unwrap().contains("variant"), "the dataset tells the kernels apart");
    let rows = json(&folder.path().join("tables.json"))["rows"].as_array().unwrap().len();
    assert!(rows > 0, "the usual inputs were planned and compared");
}

/// A run of one stage on the processor, as large as a real campaign's or as small as a rehearsal's.
fn verify_on_cpu(out: &Path, more: &[&str]) -> (i32, Value) {
    let output = command("cpu", "0.05", out).args(["--stages", "verify"]).args(more).output().unwrap();
    (output.status.code().unwrap(), serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn a_rehearsal_and_a_campaign_do_not_share_a_folder() {
    let rehearsal = ["--rehearsal"];
    for (first, second, holds) in [(&rehearsal[..], &[][..], "rehearsal"), (&[], &rehearsal, "real")] {
        let folder = tempfile::tempdir().unwrap();
        let (code, answer) = verify_on_cpu(folder.path(), first);
        assert_eq!((code, &answer["kind"]), (0, &holds.into()), "{answer}");
        let file = folder.path().join("campaign.json");
        let before = json(&file);
        assert_eq!(before["kind"], holds);
        let (code, refused) = verify_on_cpu(folder.path(), second);
        let error = &refused["error"];
        assert_eq!((code, error["field"].as_str(), error["kind"].as_str()), (2, Some("out"), Some("other-campaign")));
        let message = error["message"].as_str().unwrap();
        let folder_name = folder.path().to_str().unwrap();
        for part in [folder_name, holds, "another --out"] {
            assert!(message.contains(part), "no {part:?} in {message:?}");
        }
        assert_eq!(json(&file), before, "a refused run leaves the folder as it was");
        assert_eq!(verify_on_cpu(folder.path(), first).0, 0, "its own kind goes on");
    }
}

#[test]
fn a_folder_of_before_the_distinction_is_judged_by_what_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("campaign.json");
    assert_eq!(verify_on_cpu(folder.path(), &["--rehearsal"]).0, 0);
    let mut state = json(&file);
    state.as_object_mut().unwrap().remove("kind");
    let old = |state: &Value| std::fs::write(&file, serde_json::to_vec(state).unwrap()).unwrap();
    // All cases of a rehearsal, and no more, are verified: this was one.
    old(&state);
    assert_eq!(verify_on_cpu(folder.path(), &[]).0, 2);
    assert_eq!(verify_on_cpu(folder.path(), &["--rehearsal"]).0, 0);
    assert_eq!(json(&file)["kind"], "rehearsal", "it is noted from now on");
    // More cases than any rehearsal has.
    state["verify"]["f32"]["cases"] = 7.into();
    old(&state);
    assert_eq!(verify_on_cpu(folder.path(), &["--rehearsal"]).0, 2);
    assert_eq!(verify_on_cpu(folder.path(), &[]).0, 0);
    // A few cases of either: nobody can tell, so nobody may go on.
    state["verify"]["f32"]["cases"] = 3.into();
    state["stages"] = serde_json::json!([]);
    old(&state);
    for more in [&[][..], &["--rehearsal"]] {
        let (code, refused) = verify_on_cpu(folder.path(), more);
        assert_eq!(code, 2, "{refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("does not say") && message.contains("another --out"), "{message}");
    }
}
