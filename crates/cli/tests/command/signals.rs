//! SIGINT and SIGTERM: a command that cannot end in order says what is kept.

use crate::home::{Home, document};
use crate::places::dataset;
use std::fs;
use std::process::{Child, Command, Stdio};

/// Waits until a process catches both signals: bits 1 and 14 of what the system tells.
fn is_ready(child: &mut Child) {
    loop {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
        if u64::from_str_radix(caught.trim(), 16).unwrap() & 0x4002 == 0x4002 {
            return;
        }
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        std::thread::yield_now();
    }
}

#[test]
fn every_command_that_is_interrupted_says_what_is_kept() {
    let home = Home::new();
    let select = format!("select evaluate {} --method blend --repeats 10000", dataset(&home, 400));
    for (args, kept) in [
        ("plan gemm m=300 n=300 k=300 --threads 1 --budget 600s", "remembered"),
        ("explain gemm m=300 n=300 k=300 --threads 1 --budget 600s", "nothing was stored"),
        ("run gemm m=3000 n=3000 k=3000 --threads 1", "begin anew"),
        ("search gemm m=300 n=300 k=300 --threads 1 --time 600s", "nothing was stored"),
        ("verify gemm --threads 1 --cases 1000000", "nothing was stored"),
        ("bench gemm --threads 1 --budget 600s", "begins anew"),
        ("doctor --threads 1", "nothing was stored"),
        ("model fit --model linear --device cpu", "neither measurements nor a model"),
        (&select, "nothing was stored"),
    ] {
        for (signal, name, code) in [("-INT", "SIGINT", 130), ("-TERM", "SIGTERM", 143)] {
            let args: Vec<&str> = args.split(' ').collect();
            let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
            command.args(&args).arg("--json").env("TILEWRIGHT_HOME", home.path());
            command.env("TILEWRIGHT_BASELINE_CORES", "as-found");
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            is_ready(&mut child);
            assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
            let out = child.wait_with_output().unwrap();
            let (found, value) = document(&args, &out);
            let message = value["error"]["message"].as_str().unwrap_or_default();
            assert_eq!((found, &value["error"]["kind"]), (code, &"interrupted".into()), "{args:?}: {value}");
            assert!(message.contains(name) && message.contains(kept), "{args:?}: {message}");
            assert!(String::from_utf8_lossy(&out.stderr).contains(message), "people read it too");
        }
    }
    assert!(home.files("plans").is_empty() && home.files("profiles").is_empty());
}
