//! Standard streams that are closed or full, files that are none, signals: nothing panics, and no answer is lost.

use crate::home::{Home, document};
use crate::search::cache;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

/// Runs a line of the shell in which `$T` is the program.
fn shell(home: &Home, line: &str) -> Output {
    let mut command = Command::new("bash");
    command.args(["-c", line]).env("T", env!("CARGO_BIN_EXE_tilewright")).env("TILEWRIGHT_HOME", home.path());
    command.env("TILEWRIGHT_BASELINE_CORES", "as-found");
    command.output().unwrap()
}

#[test]
fn a_standard_stream_may_be_closed_or_full() {
    let home = Home::new();
    let lines = [
        ("$T plan gem --json > /dev/full", 2),
        ("$T plan gem --json 2> /dev/full", 2),
        ("$T plan gem --json >&- 2>&-", 2),
        ("$T space gemm m=4 n=4 k=4 --json > /dev/full", 1),
        ("$T --help > /dev/full", 1),
        ("$T plan --help --json > /dev/full", 1),
        ("$T --version > /dev/full", 1),
        ("$T --help >&-", 0),
        ("set -o pipefail; $T --help | true", 0),
        ("$T space gemm m=4 n=4 k=4 2>&-", 0),
        ("set -o pipefail; $T space gemm m=64 n=64 k=64 --list /dev/stdout | head -1", 0),
        ("set -o pipefail; $T plan gemm m=4 n=4 k=4 --threads 1 --budget 50ms 2> /dev/full", 0),
    ];
    for (line, code) in lines {
        let out = shell(&home, line);
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(!said.contains("panicked"), "{line}: {said}");
        assert_eq!(out.status.code(), Some(code), "{line}: {said}");
    }
}

#[test]
fn an_argument_may_be_no_text() {
    let name = std::ffi::OsString::from_vec(b"gem\xffm".to_vec());
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    let out = command.arg("plan").arg(name).arg("--json").output().unwrap();
    let (code, value) = document(&["plan"], &out);
    assert_eq!(code, 2, "{value}");
}

/// Devices stay devices, links stay links, and what has no end is not read to it.
#[test]
fn files_that_are_none() {
    let home = Home::new();
    let at = |name: &str| home.path().join(name).display().to_string();
    symlink("/dev/null", at("nowhere")).unwrap();
    let recording = format!("replay:{}", cache(&home, "one", 1.0).display());
    home.answer(&["search", "--device", &recording, "--strategy", "random", "--plot", &at("nowhere")]);
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    assert!(fs::symlink_metadata(at("nowhere")).unwrap().is_symlink());
    home.error(&["space", "bacugen", "type=s", "layout=nn", "--device-spec", "/dev/zero"], 2, "/dev/zero");
    home.error(&["space", "--t1", "/dev/zero"], 2, "/dev/zero");
    home.error(&["plan", "gemm", "m=4", "n=4", "k=4", "--threads", "1", "--profile", "/dev/zero"], 2, "/dev/zero");
    home.error(&["run", "spmv", "matrix=/dev/zero", "--threads", "1"], 2, "matrix");
    // A recording that is written leaves links and devices as they are, too.
    let (link, json) = (at("table.csv"), cache(&home, "two", 1.0).display().to_string());
    symlink(at("real.csv"), &link).unwrap();
    home.answer(&["data", "import", &json, "--out", &link]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink() && fs::metadata(at("real.csv")).unwrap().len() > 0);
    let pipe = at("pipe.csv");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    home.error(&["data", "describe", &pipe], 2, &pipe);
}

#[test]
fn a_signal_ends_the_measuring_and_the_same_command_goes_on() {
    let home = Home::new();
    let tune = ["tune", "gemm", "--threads", "1", "--dtype", "f32", "--no-table", "--budget"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    command.args(tune).args(["600s", "--json"]).env("TILEWRIGHT_HOME", home.path());
    command.env("TILEWRIGHT_BASELINE_CORES", "as-found");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Until enough is measured to learn from.
    let begun = std::time::Instant::now();
    let measured = || home.files("logs").iter().map(|log| fs::metadata(log).map_or(0, |m| m.len())).sum::<u64>();
    while measured() < 100_000 && begun.elapsed().as_secs() < 120 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let out = child.wait_with_output().unwrap();
    assert!(out.status.signal().is_none(), "{:?}", out.status);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("interrupted") && said.contains("goes on"), "{said}");
    let (code, value) = document(&tune, &out);
    assert_eq!((code, &value["interrupted"]), (0, &true.into()), "{value}");
    let more = home.answer(&[&tune[..], &["1s"]].concat());
    assert!(more["resumed"].as_u64() >= value["samples"].as_u64(), "{more}");
}
