//! Campaigns on the fake driver with cuBLAS beside it: killed at any moment and taken up again, moved to another machine, and ended where
//! they would prove nothing.

use crate::home::{Home, document, fault};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// A rehearsal of these stages on the first CUDA device.
fn stages<'a>(out: &'a str, stages: &'a str) -> [&'a str; 8] {
    ["campaign", "--device", "cuda:0", "--rehearsal", "--out", out, "--stages", stages]
}

fn ran(home: &Home, args: &[&str], variables: &[(&str, &str)]) -> (i32, Value) {
    document(args, &home.cuda_with(args, variables))
}

#[test]
fn a_campaign_that_would_prove_nothing_ends_at_once() {
    let faults = [("FAKE_CUDA_FAULTS", "1")];
    for (stage, parts) in [("doctor", ["doctor: ", "kernels failed"]), ("verify", ["verify: ", "cases failed"])] {
        let home = Home::new();
        let out = home.path().join("out");
        let args = stages(out.to_str().unwrap(), stage);
        let refused = fault(&ran(&home, &args, &faults), 4, "device");
        assert_eq!(refused.kind, "unsound");
        for part in parts.iter().chain(&["would prove anything", "CUDA_ERROR_LAUNCH_FAILED"]) {
            assert!(refused.message.contains(part), "no {part:?} in {}", refused.message);
        }
        let state = json(&out.join("campaign.json"));
        assert_eq!((&state["stages"][0]["name"], &state["stages"][0]["done"]), (&stage.into(), &false.into()));
        // Once the cause is mended, the folder is as good as new.
        let (code, summary) = ran(&home, &args, &[]);
        assert_eq!(
            (code, &summary["stages"][0]["done"], &summary["failed"]),
            (0, &true.into(), &0.into()),
            "{summary}"
        );
    }
}

#[test]
fn a_machine_of_the_same_model_goes_on_and_another_device_does_not() {
    let home = Home::new();
    let out = home.path().join("out");
    let args = stages(out.to_str().unwrap(), "doctor");
    assert_eq!(ran(&home, &args, &[]).0, 0);
    let state = json(&out.join("campaign.json"));
    assert_eq!(state["environment"]["assembler"], "the driver");
    let missing = state["environment"]["missing"].as_array().unwrap();
    assert!(
        missing.iter().any(|m| m["name"] == "cublas" && m["reason"].as_str().unwrap().contains("libcublas")),
        "{state:#}"
    );
    let clock = &state["stages"][0]["clock"];
    assert!(clock["before_mhz"].as_f64() > Some(0.0) && clock["after_mhz"].as_f64() > Some(0.0), "{state:#}");
    // Less memory, and a driver that does not report clocks.
    let (code, summary) = ran(&home, &args, &[("FAKE_CUDA_SISTER", "1")]);
    assert_eq!(code, 0, "{summary}");
    assert_eq!(json(&out.join("campaign.json"))["runs"], 2);
    let other = fault(&ran(&home, &args, &[("FAKE_CUDA_SM", "90")]), 1, "out");
    assert_eq!(other.kind, "other-device");
    for part in ["campaign.json", "Fake sm_80", "sm 80 there, 90 here", "another folder"] {
        assert!(other.message.contains(part), "no {part:?} in {}", other.message);
    }
}

#[test]
fn devices_and_drivers_that_nothing_can_be_made_for_are_named() {
    let home = Home::new();
    let out = home.path().join("out");
    let args = stages(out.to_str().unwrap(), "doctor");
    let named = |variables: &[(&str, &str)], field: &str, parts: &[&str]| {
        let message = fault(&ran(&home, &args, variables), 4, field).message;
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    };
    named(&[("FAKE_CUDA_SM", "35")], "cuda:0", &["it is sm_35", "known are", "sm_90"]);
    named(&[("FAKE_CUDA_LEVEL", "11080")], "device", &["CUDA 11.8", "CUDA 12.0"]);
}

/// What a campaign of a test does.
struct Extent {
    kernel: &'static str,
    stages: &'static [&'static str],
    /// Rows of the tables: a task of each element type each.
    rows: usize,
}

const ALL: Extent = Extent {
    kernel: "gemm",
    stages: &["doctor", "verify", "collect", "fit", "table4", "sweep", "types", "deepbench", "pool", "micro", "linear"],
    // Two types in two stages, then one task of each further type, and of DeepBench one of each type.
    rows: 2 * (17 + 3) + 7 + (2 + 7),
};

/// One kernel, and the square products only.
const SOME: Extent = Extent {
    kernel: "gemm.simt",
    stages: &["doctor", "verify", "collect", "fit", "sweep", "pool", "micro"],
    rows: 2 * 3,
};

impl Extent {
    fn command(&self, home: &Home, out: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
        command.args(["campaign", self.kernel, "--device", "cuda:0", "--rehearsal", "--minutes", "9", "--seed", "5"]);
        command.args(["--json", "--stages", &self.stages.join(","), "--out"]).arg(out);
        home.with_driver(&mut command)
            .env("TILEWRIGHT_BLAS_PATH", home.libraries())
            .env("TILEWRIGHT_HOME", home.path());
        command
    }
}

/// What a campaign has done, as its files tell: verified cases, measurements, rows, rates.
fn done(out: &Path) -> [u64; 4] {
    let read = |name: &str| std::fs::read(out.join(name)).unwrap_or_default();
    let state: Value = serde_json::from_slice(&read("campaign.json")).unwrap_or_default();
    let tables: Value = serde_json::from_slice(&read("tables.json")).unwrap_or_default();
    let logs = std::fs::read_dir(out).into_iter().flatten().map(|entry| entry.unwrap().path());
    let logs: Vec<PathBuf> = logs.filter(|path| path.extension().is_some_and(|e| e == "log")).collect();
    let lines = logs.iter().map(|path| std::fs::read(path).unwrap().split(|byte| *byte == b'\n').count() as u64).sum();
    let cases = |of: &Value| of["cases"].as_u64().unwrap_or(0);
    let verified = state["verify"].as_object().into_iter().flat_map(|of| of.values()).map(cases).sum();
    let count = |of: &Value| of.as_array().map_or(0, |all| all.len() as u64);
    [verified, lines, count(&tables["rows"]), count(&state["micro"])]
}

/// Kills a campaign so many times, each time after another while of at most so long, and lets it go on to its end.
fn killed_and_finished(extent: &Extent, kills: u32, longest: Duration) {
    let home = Home::new();
    let out = home.path().join("out");
    // Any sequence will do, as long as it is the same each time.
    let mut draw = 0x9e37_79b9_u64;
    let mut before = [0; 4];
    for kill in 0..kills {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let wait = longest.mul_f64((draw >> 33) as f64 / f64::from(1u32 << 31));
        let mut child = extent.command(&home, &out).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut began = Instant::now();
        // Every other run is left to do something first, however busy the machine is.
        let mut waits = kill % 2 == 1;
        while (waits || began.elapsed() < wait) && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(20));
            if waits && done(&out) != before {
                (waits, began) = (false, Instant::now());
            }
        }
        let is_over = child.try_wait().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let now = done(&out);
        eprintln!("kill {kill} after {wait:?}: {now:?} (cases, lines of logs, rows, rates)");
        // The last line of a log may be half a record, which the next run removes.
        assert!(now.iter().zip(before).all(|(now, before)| *now + 1 >= before), "{before:?} became {now:?}");
        before = now;
        if let Some(status) = is_over {
            assert!(status.success(), "it ended by itself: {status}");
        }
    }
    // On a busy machine a stage may be left unfinished: then it goes on with the next run.
    for run in 0.. {
        let output = extent.command(&home, &out).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {said}"));
        assert!(output.status.success(), "{summary:#}\n{said}");
        if summary["stages"].as_array().unwrap().iter().all(|s| s["done"] == true) || run == 3 {
            return expect_whole(extent, &out, &summary);
        }
    }
}

fn expect_whole(extent: &Extent, out: &Path, summary: &Value) {
    let stages = summary["stages"].as_array().unwrap();
    let names: Vec<&str> = stages.iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, extent.stages);
    assert!(stages.iter().all(|s| s["done"] == true), "{summary:#}");
    assert_eq!((&summary["wrong_results"], &summary["failed"]), (&0.into(), &0.into()), "{summary:#}");
    assert_eq!(summary["metric"], "time_s");
    assert!(summary["samples"].as_u64() >= Some(240), "{summary:#}");
    let tables = json(&out.join("tables.json"));
    let rows = tables["rows"].as_array().unwrap();
    assert_eq!(rows.len(), extent.rows, "a row for each task, once");
    for row in rows {
        if row["dtype"] == "i8" && row["stage"] == "deepbench" {
            // Its sizes, divided for the rehearsal, are none that the library takes, and the row says so.
            let missing = row["missing"].as_array().unwrap();
            assert!(
                missing.len() == 2 && missing.iter().all(|m| m.as_str().unwrap().contains("multiple of 4")),
                "{row:#}"
            );
            continue;
        }
        let baselines = row["baselines"].as_array().unwrap().iter().map(|b| b["name"].as_str().unwrap());
        assert_eq!(baselines.collect::<Vec<_>>(), ["cublas", "cublaslt", "cublaslt-best"], "{row:#}");
        assert!(row["spent"]["ranking_s"].as_f64().is_some_and(|s| s >= 0.0), "{row:#}");
        let is_cold = row["cost_cold"].as_f64().is_some() && row["ratio_default_cold"].as_f64().is_some();
        assert_eq!(is_cold, row["stage"] == "table4", "{row:#}");
        assert_eq!(row["missing"], serde_json::json!([]), "{row:#}");
    }
    let text = std::fs::read_to_string(out.join("tables.md")).unwrap();
    expect_pool(rows, &tables["pool"], &summary["pool"]);
    assert_eq!(json(&out.join("campaign.json"))["judged"], rows.len(), "rows of later runs are judged too");
    assert!(text.contains("- library: cublas 12.9.1") && text.contains("## Mixed pool"), "{text}");
    let is_cold = text.contains("default / ours, cold") && text.contains("with the second-level cache overwritten");
    assert_eq!(is_cold, extent.stages.contains(&"table4"), "{text}");
}

/// What is chosen among are the kernels of the rows and the libraries' routines.
fn expect_pool(rows: &[Value], pool: &Value, summary: &Value) {
    let with_vendor = rows.iter().filter(|row| row["baselines"][0]["name"] == "cublas").count();
    assert_eq!(pool["tasks"], with_vendor, "{pool:#}");
    let names = |of: &Value, field: &str| -> Vec<String> {
        of.as_array().unwrap().iter().map(|one| one[field].as_str().unwrap().to_owned()).collect()
    };
    let kernels: BTreeSet<String> = rows.iter().flat_map(|row| names(&row["kernels"], "kernel")).collect();
    let libraries = ["cublas", "cublaslt", "cublaslt-best"].map(str::to_owned);
    let variants: BTreeSet<String> = kernels.into_iter().chain(libraries).collect();
    assert_eq!(pool["variants"], serde_json::json!(variants));
    let ways = ["generated", "selector", "first two timed", "keeping cublas", "keeping cublaslt-best", "oracle"];
    assert_eq!(names(&pool["scores"], "way"), ways);
    assert_eq!(summary, &pool["scores"]);
    let keeping = |at: usize| pool["scores"][at]["tasks"].as_u64().unwrap();
    assert!(keeping(3) == with_vendor as u64 && keeping(4) > 0, "{pool:#}");
}

#[test]
fn a_campaign_survives_kills() {
    killed_and_finished(&SOME, 2, Duration::from_secs(3));
}

/// Minutes: run by hand by whoever changes campaigns.
#[test]
#[ignore = "takes minutes"]
fn a_whole_campaign_survives_twenty_kills() {
    killed_and_finished(&ALL, 20, Duration::from_secs(12));
}

/// A machine that has a driver and nothing else: what is packed here runs there, and its results are packed for the next.
#[test]
fn a_campaign_travels_and_its_results_come_back() {
    let home = Home::new();
    let (here, there) = (home.path().join("here"), home.path().join("there"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/campaign.sh");
    std::fs::create_dir_all(&here).unwrap();
    // Stands for the binary, whose packing takes long: it is looked at by hand.
    let binary = here.join("tilewright");
    let text =
        format!("#!/bin/sh\nexec {} \"$@\" --rehearsal --stages doctor,verify\n", env!("CARGO_BIN_EXE_tilewright"));
    std::fs::write(&binary, text).unwrap();
    Command::new("chmod").arg("+x").arg(&binary).status().unwrap();
    let command = |program: &Path, folder: &Path, args: &[&str]| {
        let mut command = Command::new(program);
        home.with_driver(command.args(args)).env("PATH", env!("PATH")).env("TILEWRIGHT_HOME", home.path());
        let output = command.current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let pack = |earlier: &[&str]| {
        let args = [&["pack", "bundle.tar.gz"], earlier].concat();
        let mut command = Command::new("sh");
        let packed =
            command.arg(&script).args(args).env("TILEWRIGHT_BIN", &binary).current_dir(&here).output().unwrap();
        assert!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
        let _ = std::fs::remove_dir_all(&there);
        std::fs::create_dir_all(&there).unwrap();
        let mut tar = Command::new("tar");
        assert!(tar.arg("xzf").arg(here.join("bundle.tar.gz")).arg("-C").arg(&there).status().unwrap().success());
    };
    let results = here.join("results.tar.gz");
    for runs in 1..=2 {
        pack(if runs == 1 { &[] } else { &["results.tar.gz"] });
        let program = there.join("tilewright-campaign/campaign.sh");
        let said = command(&program, &there, &["run", results.to_str().unwrap(), "cuda:0", "1"]);
        let summary: Value = serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"));
        assert!(summary["stages"].as_array().unwrap().iter().all(|s| s["done"] == true), "{summary:#}");
        let listed = command(Path::new("tar"), &here, &["xzOf", "results.tar.gz", "./campaign.json"]);
        let state: Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(state["runs"], runs, "what was packed was taken up");
        assert!(std::fs::metadata(&results).unwrap().len() < 64 << 20);
        // The next run is on another machine.
        std::fs::remove_dir_all(here.join("results.tar.gz.d")).unwrap();
    }
}
