//! Whatever is wrong with words or files: an exit code, a kind, the field, and nothing lost.

use crate::home::{Home, fault};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tilewright::kernels::Kernels;
use tilewright_core::device::DeviceKind;
use tilewright_runtime::store::{DeviceRecord, Profile};
use tilewright_runtime::tune::TunePaths;

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
        assert!(!home.error(&plan(words), 2, field).message.is_empty());
    }
    assert!(home.error(&["plan", "fft", "m=4"], 2, "kernel").message.contains("gemm"));
    home.error(&["run", "gemm", "m=8", "n=8", "k=8", "--config", "m_s=7"], 2, "config");
    home.error(&["run", "gemm", "m=8", "n=8", "k=8", "--config", "tile=7"], 2, "config");
    home.error(&["bench", "gemm", "--tasks", "nothing"], 2, "tasks");
    let folder = home.path().join("none").display().to_string();
    home.error(&["campaign", "--device", "cpu,cpu", "--minutes", "1", "--out", &folder], 2, "device");
    home.error(&["verify", "gemm", "--device", "emulator:sm_80", "--cases", "0"], 2, "--cases <N>");
    let long = "x".repeat(100_000);
    let message = home.json(&["plan", &long]).1["error"]["message"].as_str().unwrap().len();
    assert!(message < 5_000, "an error repeats {message} bytes of what was given");
    let unknown = home.error(&["explain", "nothing"], 2, "kernel").message;
    assert!(unknown.contains("gemm") && unknown.contains("matmul"), "explain names what it accepts: {unknown}");
    home.error(&["bench", "gemm", "--dtype", "tf32"], 2, "dtype");
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
    assert!(error["error"]["message"].as_str().unwrap().contains("TiB"), "{error}");
}

#[test]
fn every_command_names_what_it_does_not_know() {
    let home = Home::new();
    for kernel in [&["tune"][..], &["plan"], &["run"], &["bench"], &["space"], &["verify"], &["explain"]] {
        assert!(home.error(&[kernel, &["fft"]].concat(), 2, "kernel").message.contains("gemm"));
    }
    home.error(&["tune", "gemm", "--dtype", "f8"], 2, "dtype");
    home.error(&["verify", "gemm", "--dtype", "f8"], 2, "dtype");
    home.error(&["space", "gemm", "m=4", "n=4", "k=4", "depth=3"], 2, "depth");
    home.error(&["explain", "gemm", "m=4", "k=4"], 2, "n");
    home.error(&["doctor", "--device", "abacus"], 2, "device");
    let unknown = home.error(&["run", "gemm", "m=8", "n=8", "k=8", "--config", "tile=7"], 2, "config");
    assert!(unknown.message.contains("\"tile\"") && unknown.message.contains("m_s"), "{}", unknown.message);
    let value = home.error(&["run", "gemm", "m=8", "n=8", "k=8", "--config", "k_s=7"], 2, "config");
    assert!(value.message.contains("\"k_s\"") && value.message.contains("its values are"), "{}", value.message);
    let directory = home.path().to_str().unwrap();
    home.error(&["tune", "gemm", "--out", directory], 2, "out");
    assert_eq!(home.files(""), Vec::<PathBuf>::new(), "nothing was begun");
}

#[test]
fn sizes_name_the_limit() {
    let home = Home::new();
    let message = |words: &[&'static str], field| home.error(&[&["plan", "gemm"], words].concat(), 2, field).message;
    assert!(message(&["n=4", "k=4"], "m").contains("missing"));
    assert!(message(&["m=4", "n=-1", "k=4"], "n").contains("0..=2147483647"));
    assert!(message(&["m=4", "n=4", "k=99999999999999999999"], "k").contains("0..=2147483647"));
    assert!(message(&["m=4", "n=4", "k=1.5"], "k").contains("not an integer"));
    assert!(message(&["m=9", "n=4", "k=4", "lda=8"], "lda").contains("9..=2147483647"));
    assert!(message(&["m=4", "n=4", "k=9", "ldb=8"], "ldb").contains("9..=2147483647"));
    assert!(message(&["m=9", "n=4", "k=4", "ldc=8"], "ldc").contains("9..=2147483647"));
    assert!(message(&["m=2147483647", "n=4", "k=2147483647"], "k").contains("the limit is"));
    let beyond = ["m=1000000", "n=1000000", "k=4"];
    assert!(message(&beyond, "m n").contains("there are"));
    // Nor is a matrix made that would not fit: its rows are counted by their distribution.
    let heavy =
        ["matrix=power-law", "rows=67108864", "mean=0.001", "exponent=1.5", "longest=16777216", "--threads", "1"];
    assert_eq!(home.json(&[&["run", "spmv"], &heavy[..]].concat()).0, 2);
    // What is allocated counts, not what is computed with.
    let padded = ["m=64", "n=64", "k=64", "lda=2000000000"];
    assert!(message(&padded, "lda").contains("its buffers take 469.4 GiB"));
    for command in [&["run", "gemm"][..], &["space", "gemm"], &["explain", "gemm"]] {
        home.error(&[command, &beyond].concat(), 2, "m n");
    }
}

/// The bytes of a profile and of a log that a campaign left.
fn campaign() -> &'static (Vec<u8>, Vec<u8>) {
    static FILES: OnceLock<(Vec<u8>, Vec<u8>)> = OnceLock::new();
    FILES.get_or_init(|| {
        let home = Home::new();
        let tuned = home.answer(&[&TUNE[..], &["--samples", "60"]].concat());
        let read = |name: &str| std::fs::read(tuned[name].as_str().unwrap()).unwrap();
        (read("profile"), read("log"))
    })
}

const TUNE: [&str; 8] = ["tune", "gemm.cpu", "--threads", "1", "--dtype", "f32", "--no-table", "--budget=60s"];
const PLAN: [&str; 8] = ["plan", "gemm.cpu", "m=33", "n=21", "k=17", "--threads", "1", "--budget=100ms"];

/// A file in three states that no reader may trust, with the kind of error that says so.
fn damaged(whole: &[u8]) -> [(Vec<u8>, &'static str); 3] {
    let mut flipped = whole.to_vec();
    let middle = whole.len() / 2;
    flipped[middle] ^= 1;
    let first = whole.iter().position(|b| *b == b'\n').unwrap();
    let foreign = [&whole[..first - 1], b"9", &whole[first..]].concat();
    [(flipped, "corrupt"), (whole[..middle].to_vec(), "truncated"), (foreign, "foreign-version")]
}

#[test]
fn a_damaged_profile_is_named_and_left_alone() {
    let home = Home::new();
    let path = home.path().join("x.profile");
    let name = path.to_str().unwrap();
    let plan = [&PLAN[..], &["--profile", name]].concat();
    assert_eq!(fault(&home.json(&plan), 2, name).kind, "io", "there is none");
    for (bytes, kind) in damaged(&campaign().0) {
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(home.error(&plan, 2, name).kind, kind);
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
    std::fs::write(&path, b"a diary").unwrap();
    assert_eq!(home.error(&plan, 2, name).kind, "not-ours");
    std::fs::write(&path, &campaign().0).unwrap();
    assert_eq!(home.answer(&plan)["verified"], true);
}

/// A stored profile is nobody's argument: the plan is made without it, and says so.
#[test]
fn a_damaged_stored_profile_is_told_of() {
    let home = Home::new();
    home.answer(&[&TUNE[..], &["--samples", "60"]].concat());
    let stored = home.only_file("profiles");
    std::fs::write(&stored, b"a diary").unwrap();
    let planned = home.answer(&PLAN);
    let damaged = planned["damaged"].as_array().unwrap();
    assert!(damaged[0].as_str().unwrap().contains(stored.to_str().unwrap()), "{planned}");
    assert_ne!(planned["knowledge"], "profile", "{planned}");
}

#[test]
fn a_damaged_cache_entry_is_named_and_replaced_on_request() {
    let home = Home::new();
    let first = home.answer(&PLAN);
    let entry = home.only_file("plans");
    let whole = std::fs::read(&entry).unwrap();
    for (bytes, kind) in damaged(&whole) {
        std::fs::write(&entry, &bytes).unwrap();
        assert_eq!(home.error(&PLAN, 1, entry.to_str().unwrap()).kind, kind);
        assert_eq!(std::fs::read(&entry).unwrap(), bytes);
    }
    assert_eq!(home.answer(&[&PLAN[..], &["--fresh"]].concat())["cached"], false);
    assert_eq!(home.answer(&PLAN)["cached"], true);
    // A change of what it answers is no damage: the entry is planned anew.
    std::fs::write(&entry, resealed_plan(&whole)).unwrap();
    let again = home.answer(&PLAN);
    assert_eq!((&again["cached"], &again["input"]), (&false.into(), &first["input"]));
    assert!(again["reason"].as_str().unwrap().contains("another parameter space"), "{again}");
}

/// An entry of a kernel whose parameters have changed since.
fn resealed_plan(entry: &[u8]) -> Vec<u8> {
    use tilewright_runtime::plan_cache::entry_from_bytes;
    use tilewright_runtime::store::envelope::{Format, encode};
    let (mut header, plan) = entry_from_bytes(entry).unwrap();
    header.space = "0".repeat(32);
    encode(Format { name: "plan", version: 1 }, &header, &plan).unwrap()
}

/// Where the log of a campaign is whose profile goes to a place of the caller's choice.
fn log_of(home: &Home, profile: &Path) -> PathBuf {
    let kernels = Kernels::default();
    let kernel = kernels.variant("gemm", None, DeviceKind::Cpu).unwrap();
    TunePaths::to(&tilewright_runtime::store::Home::at(home.path()), &**kernel, profile).log
}

#[test]
fn a_damaged_log_is_named_and_left_alone() {
    let home = Home::new();
    let out = home.path().join("x.profile");
    let tune = [&TUNE[..], &["--samples", "61", "--out", out.to_str().unwrap()]].concat();
    let whole = &campaign().1;
    let log = log_of(&home, &out);
    std::fs::create_dir(log.parent().unwrap()).unwrap();
    for (bytes, kind) in damaged(whole) {
        if kind == "truncated" {
            continue; // A torn tail is what a kill leaves, and no error: see `processes`.
        }
        std::fs::write(&log, &bytes).unwrap();
        assert_eq!(home.error(&tune, 1, log.to_str().unwrap()).kind, kind);
        assert_eq!(std::fs::read(&log).unwrap(), bytes);
        assert!(!out.exists());
    }
    std::fs::write(&log, &whole[..whole.len() - 7]).unwrap();
    assert!(home.answer(&tune)["resumed"].as_u64() >= Some(50));
    // On request it is forgotten.
    std::fs::write(&log, b"tilewright log 9\n").unwrap();
    assert_eq!(home.answer(&[&tune[..], &["--fresh"]].concat())["resumed"], 0);
}

/// The campaign's profile with something changed, sound in every other way.
fn forged(path: &Path, change: impl FnOnce(&mut Profile)) {
    let mut profile = Profile::from_bytes(&campaign().0).unwrap();
    change(&mut profile);
    profile.write(path).unwrap();
}

#[test]
fn a_profile_for_something_else_is_refused_with_what_differs() {
    let home = Home::new();
    let path = home.path().join("x.profile");
    let name = path.to_str().unwrap();
    let plan = [&PLAN[..], &["--profile", name]].concat();
    let refused = || home.error(&plan, 2, name);

    forged(&path, |p| p.header.schema = "0".repeat(32));
    assert_eq!(refused().kind, "schema-mismatch");
    forged(&path, |p| p.header.kernel = tilewright_core::id::KernelId::new("sort.cpu"));
    assert_eq!(refused().kind, "other-kernel");
    forged(&path, |p| tuned_elsewhere(&mut p.header.device));
    let other = refused();
    assert_eq!(other.kind, "other-device");
    for lacking in ["amx: had 1, has none", "l2_bytes: had 1099511627776, has "] {
        assert!(other.message.contains(lacking), "{}", other.message);
    }
    // The header is right and the model inside is of another schema, or none at all.
    forged(&path, |p| p.model["model"]["schema_hash"] = "0".into());
    assert_eq!(refused().kind, "train");
    forged(&path, |p| p.model = "a diary".into());
    assert_eq!(refused().kind, "train");
}

/// A device with a feature that no host of these tests has, and with more cache than any.
fn tuned_elsewhere(device: &mut DeviceRecord) {
    device.fingerprint = "0".repeat(32);
    device.facts.insert("amx".into(), 1);
    device.facts.insert("l2_bytes".into(), 1 << 40);
}
