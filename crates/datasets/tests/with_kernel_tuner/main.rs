//! Files exchanged with Kernel Tuner itself, both ways: the same best configuration, the same counts.
//!
//! `scripts/kernel_tuner.sh` installs the package under `build/kernel_tuner`; `judge.py` runs it. Without it these tests say that they
//! skipped, or fail where `TILEWRIGHT_REQUIRE` names `kernel_tuner`.

use serde_json::{Value as Json, json};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use tilewright_core::expr::Value;
use tilewright_core::measurement::{Failure, FailureKind, Measurement};
use tilewright_core::space::Config;
use tilewright_datasets::{Dataset, ExportOf, Format, Record};

/// What Kernel Tuner answers; none where it is not installed.
fn judge<A: AsRef<OsStr>>(folder: &Path, args: &[A]) -> Option<Json> {
    let package = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../build/kernel_tuner");
    if !package.join("complete").exists() {
        tilewright_testkit::skip("kernel_tuner", "not installed: scripts/kernel_tuner.sh does it");
        return None;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/with_kernel_tuner/judge.py");
    let mut python = Command::new("python3");
    python.args(["-s", "-B", script]).args(args).env("PYTHONPATH", package.canonicalize().unwrap());
    // Whatever it writes beside what it was asked for stays here.
    let out = python.current_dir(folder).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(serde_json::from_slice(&out.stdout).unwrap())
}

/// Counts and the best configuration, as `judge.py` gives them.
fn summary(dataset: &Dataset) -> Json {
    let fastest = dataset.fastest().unwrap();
    let found = dataset.describe();
    json!({
        "configs": found.configs, "failures": found.failures, "time_ms": fastest.time_s * 1e3, "best": named(&fastest.config),
    })
}

/// A configuration by name, without order and without the difference between 2 and 2.0.
fn named(config: &Config) -> Json {
    let json = |value: &Value| match value.as_f64() {
        Some(number) if !matches!(value, Value::Bool(_)) => json!(number),
        _ => json!(value),
    };
    config.0.iter().map(|(name, value)| (name.clone(), json(value))).collect::<serde_json::Map<_, _>>().into()
}

/// The same counts and the same best configuration, in as long a time to a part in 1e12.
fn assert_agree(theirs: &Json, ours: &Json, what: &str) {
    for field in ["configs", "failures"] {
        assert_eq!(theirs[field], ours[field], "{what}, {field}: {theirs} {ours}");
    }
    let config: Config = serde_json::from_value(theirs["best"].clone()).unwrap();
    assert_eq!(named(&config), ours["best"], "{what}");
    let (a, b) = (theirs["time_ms"].as_f64().unwrap(), ours["time_ms"].as_f64().unwrap());
    assert!((a - b).abs() <= 1e-12 * b, "{what}: {a} ms, {b} ms");
}

/// A grid of numbers, fractions, words and flags with holes in it, failures of every kind, and a second device and input.
fn recorded() -> Dataset {
    let kinds = [
        FailureKind::Illegal,
        FailureKind::Compile,
        FailureKind::Launch,
        FailureKind::Timeout,
        FailureKind::CutOff,
        FailureKind::Wrong,
    ];
    let mut records = Vec::new();
    for at in 0..96_usize {
        let config = vec![
            ("tile".to_owned(), Value::from([16, 8, 1, 4][at % 4])),
            ("scale".to_owned(), Value::from([0.5, 2.0, 1e-5][at / 4 % 3])),
            ("walk".to_owned(), Value::from(["row", "column of \"4\""][at / 12 % 2])),
            ("pad".to_owned(), Value::from(at / 24 % 2 == 1)),
            ("unroll".to_owned(), Value::from([1, 3][at / 48])),
        ];
        let seconds = 1e-4 * (1.0 + (at * 37 % 97) as f64 / 7.0);
        let outcome = match at % 11 {
            3 => continue,
            7 => Err(Failure { kind: kinds[at / 11 % 6], message: String::new() }),
            _ => Ok(Measurement::recorded(seconds)),
        };
        let input = Config(vec![("m".into(), Value::from(640)), ("n".into(), Value::from(48))]);
        let (device, clock_s) = ("Some GPU".to_owned(), Some(0.5 + seconds));
        records.push(Record { device, variant: None, input, config: Config(config), outcome, clock_s });
    }
    let mut other = records[0].clone();
    other.device = "Other GPU".into();
    records.push(other);
    Dataset::from_records(&records).unwrap()
}

#[test]
fn kernel_tuner_opens_what_we_write() {
    let folder = tempfile::tempdir().unwrap();
    let of = ExportOf { device: Some("Some GPU".into()), kernel: Some("some_kernel".into()), ..ExportOf::default() };
    let export = recorded().export(&of).unwrap();
    assert!(export.configs() > 80 && export.failures() >= 6);
    let files = ["ours.json", "ours.t4.json"].map(|name| folder.path().join(name));
    for (file, format) in files.iter().zip([Format::KernelTuner, Format::T4]) {
        std::fs::write(file, export.to_text(format).unwrap()).unwrap();
    }
    let Some(theirs) = judge(folder.path(), &[OsStr::new("read"), files[0].as_os_str(), files[1].as_os_str()]) else {
        return;
    };
    let only = |row: &usize| recorded().device(*row) == "Some GPU";
    let rows: Vec<usize> = (0..recorded().len()).filter(only).collect();
    let best =
        rows.iter().filter_map(|&r| Some((recorded().time_s(r)?, r))).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    let ours = json!({
        "configs": rows.len(), "failures": rows.iter().filter(|&&r| recorded().time_s(r).is_none()).count(),
        "time_ms": best.0 * 1e3, "best": named(&recorded().config(best.1)),
    });
    assert_agree(&theirs[0], &ours, "the cache, simulated");
    assert_agree(&theirs[1], &ours, "T4, by the schemas of the package");
    assert_eq!(
        (&theirs[0]["device"], &theirs[0]["kernel"], &theirs[0]["problem_size"], &theirs[0]["goes_on"]),
        (&json!("Some GPU"), &json!("some_kernel"), &json!([640, 48]), &json!(true))
    );
    let count = |list: &Json, name: &str| list.as_array().unwrap().iter().filter(|error| *error == name).count();
    let errors = &theirs[0]["errors"];
    let counts = ["InvalidConfig", "CompilationFailedConfig", "RuntimeFailedConfig"].map(|name| count(errors, name));
    assert_eq!(counts.iter().sum::<usize>(), export.failures());
    assert!(counts[2] > counts[0] && counts[0] > 0 && counts[1] > 0, "{counts:?}");
    for name in ["constraints", "compile", "runtime", "timeout", "correctness"] {
        assert!(count(&theirs[1]["errors"], name) > 0, "{name}");
    }
    let clock_ms = 1e3 * rows.iter().map(|&row| recorded().clock_s(row)).sum::<f64>();
    let simulated_ms = theirs[0]["simulated_ms"].as_f64().unwrap();
    assert!((simulated_ms - clock_ms).abs() < 1e-9 * clock_ms, "{simulated_ms} ms, {clock_ms} ms");
    // And what it writes of the simulation is what it was given.
    let again = Dataset::open(folder.path().join("ours.simulated.t4.json")).unwrap();
    assert_agree(&theirs[0], &summary(&again), "T4 of the simulation");
}

#[test]
fn what_kernel_tuner_tuned_and_wrote_is_read_and_goes_back() {
    let folder = tempfile::tempdir().unwrap();
    let Some(theirs) = judge(folder.path(), &[OsStr::new("tune"), folder.path().as_os_str()]) else { return };
    assert_eq!((&theirs["configs"], &theirs["failures"]), (&json!(36), &json!(9)));
    let mut written = Vec::new();
    for name in ["theirs.json", "theirs.t4.json"] {
        let dataset = Dataset::open(folder.path().join(name)).unwrap();
        assert_agree(&theirs, &summary(&dataset), name);
        assert_eq!(dataset.failures().len(), 1, "all of them did not compile: {:?}", dataset.failures());
        assert!((0..dataset.len()).all(|row| dataset.clock_s(row) > 0.0), "compilation took its time");
        let export = dataset.export(&ExportOf { kernel: Some("f".into()), ..ExportOf::default() }).unwrap();
        for (suffix, format) in [("json", Format::KernelTuner), ("t4.json", Format::T4)] {
            let file = folder.path().join(format!("again-{}.{suffix}", written.len()));
            std::fs::write(&file, export.to_text(format).unwrap()).unwrap();
            written.push(file);
        }
    }
    let mut args = vec![PathBuf::from("read")];
    args.extend(written.iter().cloned());
    let again = judge(folder.path(), &args).unwrap();
    for (found, file) in again.as_array().unwrap().iter().zip(&written) {
        let ours = Dataset::open(file).unwrap();
        assert_agree(found, &summary(&ours), &file.display().to_string());
        assert_agree(found, &summary(&Dataset::open(folder.path().join("theirs.json")).unwrap()), "and as before");
    }
}
