//! Where files of answers go: folders that are missing are made, what cannot be written is refused before the work, and nothing else is
//! written beside them.

use crate::home::Home;
use crate::search::cache;
use std::fs;
use std::path::Path;
use std::process::Command;

const TUNE: [&str; 10] =
    ["tune", "gemm.cpu", "--threads", "1", "--dtype", "f32", "--no-table", "--budget=60s", "--samples", "40"];

/// A table of two kinds of candidates, with its sidecar.
pub(crate) fn dataset(home: &Home, rows: u32) -> String {
    let mut table = "device,n,k,variant,s\n".to_owned();
    let row = |n: u32, variant: &str, s: u32| format!("here,{n},{},{variant},{s}\n", 1 + n % 7);
    (1..rows).for_each(|n| table += &(row(n, "flat", 100) + &row(n, "steep", n * n)));
    let path = home.path().join("made.csv");
    fs::write(&path, table).unwrap();
    let time = r#""time": {"column": "s", "unit": "s"}"#;
    let columns = format!(r#"{{"device": "device", "input": ["n", "k"], "config": [], "variant": "variant", {time}}}"#);
    let sidecar = format!(r#"{{"format": "tilewright-dataset", "version": 1, "columns": {columns}}}"#);
    fs::write(path.with_extension("schema.json"), sidecar).unwrap();
    path.display().to_string()
}

#[test]
fn missing_folders_are_made_for_every_flag_and_what_cannot_be_written_is_refused() {
    let home = Home::new();
    let recording = cache(&home, "one", 1.0).display().to_string();
    let (data, replay, store) = (dataset(&home, 60), format!("replay:{recording}"), home.path().join("store"));
    let store = store.display().to_string();
    home.answer(&["repository", "import", &store, &data]);
    let space = ["space", "gemm", "m=64", "n=64", "k=64", "--threads", "1"];
    for (args, flag, name) in [
        (&["search", "--device", &replay, "--strategy", "random"][..], "plot", "x.svg"),
        (&["select", "evaluate", &data, "--method", "fixed"], "map", "x.svg"),
        (&space, "list", "x.csv"),
        (&["data", "import", &recording], "out", "x.csv"),
        (&["data", "export", &recording, "--format", "t4"], "out", "x.json"),
        (&["repository", "export", &store, "made"], "out", "x.csv"),
        (&["model", "fit", &data], "out", "x.json"),
        (&TUNE, "out", "x.profile"),
    ] {
        let with =
            |path: &str| [args, &[&format!("--{flag}"), path]].concat().iter().map(ToString::to_string).collect();
        let run = |path: &str| {
            let args: Vec<String> = with(path);
            home.json(&args.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let path = home.path().join(flag).join("not/there").join(name);
        let (code, answer) = run(path.to_str().unwrap());
        assert!(code == 0 && path.is_file(), "{args:?}: {answer}");
        // A folder, a place below a file, a place where nobody can write.
        let below = path.join(name).display().to_string();
        let folder = home.path().join("folder.csv");
        fs::create_dir_all(&folder).unwrap();
        for bad in [folder.to_str().unwrap(), &below, &format!("/proc/none/{name}")] {
            let (code, answer) = run(bad);
            let error = &answer["error"];
            assert!(code == 2 && error["field"] == flag, "{args:?} --{flag} {bad}: {code} {answer}");
            assert!(error["message"].as_str().unwrap().contains(bad), "{answer}");
        }
    }
}

#[test]
fn a_profile_has_nothing_beside_it_and_may_be_a_device() {
    let home = Home::new();
    let out = home.path().join("mine/x.profile");
    let tune = |out: &str| home.answer(&[&TUNE[..], &["--out", out]].concat());
    let tuned = tune(out.to_str().unwrap());
    assert_eq!(home.files("mine"), std::slice::from_ref(&out));
    let log = tuned["log"].as_str().unwrap();
    assert!(Path::new(log).starts_with(home.path().join("logs")), "{log}");
    // The same place goes on with the same log, another place has another.
    let all = tuned["samples"].as_u64().unwrap() + tuned["failed"].as_u64().unwrap();
    assert_eq!(tune(out.to_str().unwrap())["resumed"].as_u64(), Some(all));
    let nowhere = tune("/dev/null");
    assert!(nowhere["resumed"] == 0 && nowhere["unstored"].is_null(), "{nowhere}");
    assert!(!Path::new("/dev/null.log").exists() && !fs::metadata("/dev/null").unwrap().is_file());
    let several = ["tune", "transpose", "--threads", "1", "--out", "/dev/null"];
    assert!(home.error(&several, 2, "out").message.contains("have a profile each"));
}

#[test]
fn a_pipe_that_nobody_reads_is_refused() {
    let home = Home::new();
    let pipe = home.path().join("pipe.csv").display().to_string();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let recording = cache(&home, "one", 1.0).display().to_string();
    for args in [&TUNE[..], &["bench", "gemm"], &["data", "import", &recording]] {
        let message = home.error(&[args, &["--out", &pipe]].concat(), 2, "out").message;
        assert!(message.contains("nobody reads"), "{message}");
    }
    assert!(home.files("logs").is_empty(), "nothing was begun");
}
