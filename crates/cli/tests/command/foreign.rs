//! Recordings by other tuners, and datasets written for them.

use crate::home::{Home, has};
use crate::search::cache;
use serde_json::{Value, json};
use std::path::Path;

fn write(home: &Home, name: &str, text: &str) -> String {
    let path = home.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// A table of two devices and two inputs.
fn table(home: &Home) -> String {
    let sidecar = r#"{"format": "tilewright-dataset", "version": 1, "columns": {"device": "gpu", "input": ["n"],
        "config": ["tile"], "variant": null, "time": {"column": "us", "unit": "us"}, "status": {"column": "ok", "ok": 1}}}"#;
    write(home, "blur.schema.json", sidecar);
    write(home, "blur.csv", "gpu,n,tile,us,ok\nA,64,8,5,1\nA,64,16,2.5,1\nA,64,32,,0\nA,128,8,9,1\nB,64,8,7,1\n")
}

#[test]
fn one_device_and_input_is_exported() {
    let home = Home::new();
    let (data, out) = (table(&home), home.path().join("new/blur.json").display().to_string());
    let choice = ["--device", "A", "--input", "n=64", "--out", &out];
    for format in ["kernel-tuner", "t4"] {
        let answer = home.answer(&[&["data", "export", &data, "--format", format][..], &choice].concat());
        assert_eq!(answer, json!({"rows": 3, "configs": 3, "failures": 1, "file": out}));
        let described = home.answer(&["data", "describe", &out]);
        assert_eq!((&described["configs"], &described["failures"]), (&json!(3), &json!(1)));
        assert_eq!(described["fastest"]["time_s"], json!(2.5e-6));
        assert_eq!(
            (&described["fastest"]["device"], &described["fastest"]["config"]),
            (&json!("A"), &json!({"tile": 16}))
        );
    }
    let named = ["--kernel", "blur_kernel", "--problem-size", "640,480"];
    home.answer(&[&["data", "export", &data, "--format", "kernel-tuner"], &choice[..], &named].concat());
    let cache: Value = serde_json::from_str(&std::fs::read_to_string(&out).unwrap()).unwrap();
    assert_eq!((&cache["kernel_name"], &cache["problem_size"]), (&json!("blur_kernel"), &json!([640, 480])));
    assert_eq!(cache["cache"]["16"]["time"], json!(0.0025), "milliseconds");
}

#[test]
fn what_is_to_be_chosen_is_asked_for() {
    let home = Home::new();
    let data = table(&home);
    let export = ["data", "export", &data, "--format", "t4"];
    let with = |more: &[&'static str]| [&export[..], more].concat();
    let error = home.error(&with(&[]), 2, "device");
    assert!(error.kind == "usage" && error.message.ends_with("one is wanted: A; B"), "{}", error.message);
    assert!(home.error(&with(&["--device", "A"]), 2, "input").message.ends_with("n=64; n=128"));
    home.error(&with(&["--device", "C"]), 3, &data);
    home.error(&with(&["--input", "n"]), 2, "input");
    let itself = ["data", "export", &data, "--format", "t4", "--device", "B", "--out", &data];
    assert!(home.error(&itself, 2, "out").message.contains("would replace"));
    assert!(std::fs::read_to_string(&data).unwrap().starts_with("gpu"));
}

/// Kernel Tuner's cache of 16 x 8 points to search, and what KTT says of four of them on another device.
fn ktt(home: &Home) -> String {
    let result = |x: i32, y: i32, time: f64| {
        let configuration = json!([{"Name": "x", "Value": x, "ValueType": "UnsignedInt"},
            {"Name": "y", "Value": y, "ValueType": "UnsignedInt"}, {"Name": "PRECISION", "Value": 32, "ValueType": "Int"}]);
        json!({"KernelName": "k", "Status": "Ok", "TotalDuration": time, "TotalOverhead": 10.0, "Configuration": configuration})
    };
    let results = [result(3, 3, 40.0), result(11, 2, 20.0), result(12, 2, 30.0), result(99, 2, 1.0)];
    let metadata = json!({"Device": "there", "TimeUnit": "Microseconds", "KttVersion": "2.2.0"});
    write(home, "ktt.json", &json!({"Metadata": metadata, "Results": results}).to_string())
}

/// CLBlast's database about two kernels, of which one is searched.
fn clblast(home: &Home) -> String {
    let section = |kernel: &str, names: [&str; 2], results: Value| {
        json!({"kernel": kernel, "kernel_family": kernel, "precision": "32", "arg_n": "64", "clblast_device_name": "there",
            "parameter_names": names, "results": results})
    };
    let other = section("Other", ["WGS", "WPT"], json!([["64,1", 0.001]]));
    let searched = section("Searched", ["x", "y"], json!([["3,3", 0.5], ["11,2", 0.25]]));
    write(home, "database.json", &json!({"sections": [other, searched]}).to_string())
}

fn replay(path: &Path) -> String {
    format!("replay:{}", path.display())
}

/// The first evaluation is what was best elsewhere, by the names of the parameters.
#[test]
fn recordings_of_other_tuners_are_begun_from() {
    let home = Home::new();
    let here = replay(&cache(&home, "one", 1.0));
    for file in [ktt(&home), clblast(&home)] {
        let described = home.answer(&["data", "describe", &file]);
        has(&described, &["rows", "columns", "fastest"]);
        let out = home.path().join("imported.csv").display().to_string();
        let imported = home.answer(&["data", "import", &file, "--out", &out]);
        assert_eq!(imported["rows"], described["rows"]);
        for known in [&file, &out] {
            let found = home.answer(&["search", "--device", &here, "--budget", "1", "--warm-start", known]);
            assert_eq!(found["fraction_of_optimum"], json!([1.0]), "{known}");
        }
    }
    let other = write(&home, "other.json", &std::fs::read_to_string(ktt(&home)).unwrap().replace("\"x\"", "\"z\""));
    let error = home.error(&["search", "--device", &here, "--budget", "1", "--warm-start", &other], 2, &other);
    assert!(error.message.contains("none of its configurations"), "{}", error.message);
}

/// A recording of another tuner is itself replayed.
#[test]
fn recordings_of_other_tuners_are_searched() {
    let home = Home::new();
    let found = home.answer(&["search", "--device", &replay(Path::new(&ktt(&home))), "--strategy", "exhaustive"]);
    assert_eq!((&found["points"], &found["optimum_s"]), (&json!(4), &json!(1e-6)));
    let two = clblast(&home);
    home.answer(&["data", "export", &two, "--format", "kernel-tuner", "--out", &format!("{two}.cache.json")]);
}
