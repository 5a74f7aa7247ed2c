//! `export`: files that compile alone, and plans by them.

use crate::home::{Home, has};
use std::process::Command;

const FIXED: [&str; 10] =
    ["export", "gemm.cpu", "n=8", "k=8", "dtype=f32", "layout=nn", "alpha=1", "beta=0", "--threads", "1"];

/// One size is left to decide by, so that little is measured.
#[test]
fn an_artefact_is_written_compiled_and_planned_by() {
    let home = Home::new();
    let file = |name: &str| home.path().join(name).display().to_string();
    let asked = |format: &str, out: &str| {
        let words = ["--inputs", "6", "--budget", "3s", "--format", format, "--out", out];
        home.answer(&[&FIXED[..], &words].concat())
    };
    let json = file("artefact.json");
    let answer = asked("json", &json);
    has(&answer, &["format", "inputs", "regret", "device", "file", "leaves", "configurations", "fallback"]);
    assert_eq!((&answer["format"], &answer["guaranteed"]), (&"json".into(), &true.into()), "{answer}");
    assert!(answer["asks"].as_array().unwrap().contains(&"m".into()) && answer["regret"].is_number(), "{answer}");
    let words = ["plan", "gemm", "m=640", "n=8", "k=8", "--threads"];
    let plan = home.answer(&[&words[..], &["1", "--top", "0", "--profile", &json]].concat());
    assert_eq!((&plan["knowledge"], &plan["model"]), (&"artefact".into(), &"artefact".into()), "{plan}");
    let other = home.error(&[&words[..], &["2", "--top", "0", "--profile", &json]].concat(), 2, "device");
    assert!(other.message.contains("1 threads") && other.message.contains("2 threads"), "{}", other.message);
    let outside = ["plan", "gemm", "m=640", "n=8", "k=9", "--threads", "1", "--top", "0", "--profile", &json];
    home.error(&outside, 2, "k");
    let header = file("gemm_cpu.h");
    asked("c", &header);
    let compiled = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c", &header])
        .output();
    let compiled = compiled.unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}

/// A kernel that a file describes is exported as any other.
#[test]
fn a_described_kernel_is_exported() {
    let home = Home::new();
    let file = |name: &str| home.path().join(name).display().to_string();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/kernels/stencil.c.json");
    let asked = |format: &str, out: &str| {
        let words = ["export", example, "h=40", "--inputs", "6", "--budget", "3s", "--threads", "1"];
        home.answer(&[&words[..], &["--format", format, "--out", out]].concat())
    };
    let json = file("artefact.json");
    let answer = asked("json", &json);
    assert_eq!((&answer["guaranteed"], &answer["asks"]), (&true.into(), &["w"].as_slice().into()), "{answer}");
    let words = ["plan", example, "h=40", "w=333", "--threads", "1", "--top", "0", "--profile", &json];
    let plan = home.answer(&words);
    assert_eq!(&plan["knowledge"], "artefact", "{plan}");
    let rust = file("choice.rs");
    asked("rust", &rust);
    let to = file("choice.rlib");
    let compiled = Command::new("rustc").args(["--edition", "2021", "--crate-type", "lib", "-o", &to, &rust]).output();
    let compiled = compiled.unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}

#[test]
fn what_cannot_be_exported_is_refused_before_anything_is_measured() {
    let home = Home::new();
    let (code, error) = home.json(&[&FIXED[..], &["--format", "fortran"]].concat());
    assert!(code == 2 && error["error"]["message"].as_str().unwrap().contains("json, c, rust, cuda"), "{error}");
    home.error(&["export", "fft", "--format", "c"], 2, "kernel");
    home.error(&["export", "gemm", "m=x", "--threads", "1", "--format", "c"], 2, "m");
    home.error(&["export", "gemm", "--device", "emulator:sm_80", "--format", "c"], 2, "device");
    let folder = home.path().display().to_string();
    home.error(&[&FIXED[..], &["--format", "c", "--out", &folder]].concat(), 2, "out");
}
