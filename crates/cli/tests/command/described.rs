//! Kernels that a file describes, as their authors use them.

use crate::home::{Home, has};
use serde_json::Value;
use std::path::Path;
use tilewright_testkit::nvrtc;

/// Doubles; in some modes it does what kernels of users do when they are wrong.
const SOURCE: &str = r"
#include <stdlib.h>
void twice(float *y, const float *x, int n) {
#if mode == 1
    *(volatile int *)0 = 1;
#elif mode == 2
    for (volatile int i = 0;; i++);
#elif mode == 3
    exit(3);
#elif mode == 4
#error not this one
#endif
    for (int i = 0; i < n; i += step)
        for (int j = i; j < i + step && j < n; j++) y[j] = mode == 5 ? 3 * x[j] : 2 * x[j];
}
";

const DESCRIPTION: &str = r#"{
    "ConfigurationSpace": {"TuningParameters": [
        {"Name": "mode", "Type": "int", "Values": "[0, 1, 2, 3, 4, 5]", "Default": 0},
        {"Name": "step", "Type": "int", "Values": "[2**i for i in range(8)]", "Default": 1}
    ], "Conditions": []},
    "KernelSpecification": {"Language": "C", "KernelName": "twice", "KernelFile": "twice.c",
        "Arguments": [
            {"Name": "y", "Type": "float", "MemoryType": "Vector", "AccessType": "WriteOnly", "Size": "n", "Output": 1},
            {"Name": "x", "Type": "float", "MemoryType": "Vector", "AccessType": "ReadOnly", "Size": "n", "FillType": "Random"},
            {"Name": "n", "Type": "int32", "MemoryType": "Scalar", "FillValue": "n"}
        ],
        "Inputs": [{"Name": "n", "Values": "1000..100000"}]}
}"#;

/// The description in a home, with a part of the source replaced.
fn described(home: &Home, description: &str, source: &str) -> String {
    std::fs::write(home.path().join("twice.c"), source).unwrap();
    let path = home.path().join("twice.json");
    std::fs::write(&path, description).unwrap();
    path.display().to_string()
}

/// The examples of the repository.
fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kernels").join(name).display().to_string()
}

#[test]
fn a_candidate_that_crashes_hangs_or_lies_ends_nothing() {
    let home = Home::new();
    let file = described(&home, DESCRIPTION, SOURCE);
    let plan = home.answer_with(&["plan", &file, "n=3000", "--budget", "2s"], &[("TILEWRIGHT_PATIENCE", "0.3")]);
    assert_eq!((&plan["config"]["mode"], &plan["verified"]), (&Value::from(0), &Value::from(true)), "{plan:#}");
    let (code, verify) = home.json_with(&["verify", &file, "--cases", "12"], &[("TILEWRIGHT_PATIENCE", "0.3")]);
    assert_eq!(code, 1, "{verify:#}");
    let messages: Vec<&str> =
        verify["failures"].as_array().unwrap().iter().map(|f| f["message"].as_str().unwrap()).collect();
    for says in ["SIGSEGV", "still ran after", "exit status: 3", "twice.c:11:2: error: #error", "wrong elements"] {
        assert!(messages.iter().any(|message| message.contains(says)), "{says} is not in {messages:#?}");
    }
}

#[test]
fn one_description_serves_many_sizes() {
    let home = Home::new();
    let file = described(&home, &DESCRIPTION.replace("[0, 1, 2, 3, 4, 5]", "[0, 4]"), SOURCE);
    let tuned = home.answer(&["tune", &file, "--budget", "60s", "--samples", "60", "--no-table"]);
    assert!(tuned["samples"].as_u64() > Some(20) && tuned["inputs"].as_u64() > Some(1), "{tuned:#}");
    // Answered by the model alone, for a size that was never measured.
    let plan = home.answer_with(&["plan", &file, "n=54321", "--top", "0"], &[]);
    assert_eq!(plan["knowledge"].as_str(), Some("profile"), "{plan:#}");
    let ran = home.answer(&["run", &file, "n=100", "--config", "mode=0,step=8"]);
    has(&ran, &["time_s", "max_rel_error"]);
    let space = home.answer(&["space", &file, "n=100"]);
    assert_eq!(space["legal"], 16);
    let search = home.answer_with(&["search", &file, "n=2000", "--strategy", "random", "--budget", "10"], &[]);
    has(&search, &["fraction_of_optimum", "stopped_by"]);
}

#[test]
fn faults_of_descriptions_and_sources_are_told_before_anything_runs() {
    let home = Home::new();
    let refused = |description: &str, source: &str, field: &str, says: &str| {
        let file = described(&home, description, source);
        let field = field.replace("FILE", &file);
        for command in [&["kernel", "check", &file][..], &["plan", &file, "n=2000"]] {
            let message = home.error(command, 2, &field).message;
            assert!(message.contains(says), "{message}");
        }
    };
    refused(
        &DESCRIPTION.replace("\"Size\": \"n\"", "\"Size\": \"m\""),
        SOURCE,
        "KernelSpecification.Arguments[0].Size",
        "twice.json:8:",
    );
    refused(&DESCRIPTION.replace("\"Language\"", "\"Lang\""), SOURCE, "FILE:6:34", "unknown field `Lang`");
    refused("{", SOURCE, "FILE:1:1", "EOF");
    refused(DESCRIPTION, &SOURCE.replace("y[j] =", "z[j] ="), "FILE", "twice.c:14:");
    refused(DESCRIPTION, &SOURCE.replace("void twice(", "void thrice("), "FILE", "twice");
    refused(
        DESCRIPTION,
        &SOURCE.replace(", int n)", ")").replace("i < n", "i < 9").replace("j < n", "j < 9"),
        "FILE",
        "too many arguments",
    );
    home.error(&["plan", "none.json", "n=1"], 2, "none.json");
    let file = described(&home, DESCRIPTION, SOURCE);
    home.error(&["plan", &file, "m=1"], 2, "m");
    home.error(&["plan", &file], 2, "n");
    home.error(&["tune", &file, "--device", "emulator:sm_80"], 2, "device");
}

#[test]
fn check_says_what_is_there() {
    let home = Home::new();
    let checked = home.answer(&["kernel", "check", &example("stencil.c.json")]);
    assert_eq!((&checked["language"], &checked["legal"]), (&"C".into(), &660.into()), "{checked:#}");
    has(&checked, &["kernel", "compiler", "parameters", "cartesian", "example", "config", "buffers"]);
}

#[test]
fn gpu_kernels_are_proven_without_one() {
    let Some(place) = nvrtc() else { return };
    let home = Home::new();
    let place = place.display().to_string();
    let (file, junit) = (example("stencil.cu.json"), home.path().join("cases.xml").display().to_string());
    let words = ["verify", &file, "--device", "emulator:sm_80", "--cases", "20", "--junit", &junit];
    let verified = home.answer_with(&words, &[("TILEWRIGHT_NVRTC", &place)]);
    assert_eq!(
        (&verified["failed"], &verified["races"], &verified["out_of_bounds"]),
        (&0.into(), &0.into(), &0.into())
    );
    assert!(verified["coverage"]["use_shared:1"].as_u64() > Some(0));
    let report = std::fs::read_to_string(&junit).unwrap();
    assert!(report.contains("tests=\"20\" failures=\"0\"") && report.matches("<testcase").count() == 20);
}

/// Integers of floats: `mode` 1 rounds its factor otherwise, which flips a few of them by one, and 2 is wrong.
const BINS: &str = r"
void twice(int *y, const float *x, int n) {
    const float factor = mode == 1 ? 4096.0005f : 4096.0f;
    for (int i = 0; i < n; i += step)
        for (int j = i; j < i + step && j < n; j++) y[j] = (int)(x[j] * factor + 5000.0f) + (mode == 2 && j % 1000 == 7);
}
";

#[test]
fn results_are_right_within_the_rounding_of_the_data() {
    let home = Home::new();
    let description = DESCRIPTION
        .replace(r#""y", "Type": "float""#, r#""y", "Type": "int32""#)
        .replace("1000..100000", "50000..100000")
        .replace("FillType\": \"Random\"", "FillType\": \"Random\", \"FillValue\": 1.0");
    let one = |mode: &str| {
        let file = described(&home, &description.replace("[0, 1, 2, 3, 4, 5]", &format!("[0, {mode}]")), BINS);
        home.json_with(&["verify", &file, "--cases", "8"], &[])
    };
    let (code, right) = one("1");
    assert_eq!(code, 0, "{right:#}");
    assert!(right["within_rounding"].as_u64() > Some(0), "some integers differ: {right:#}");
    // Whole numbers tie where floats become integers: they are no data to compare on.
    assert!(right["coverage"]["data:exact"].is_null(), "{right:#}");
    let (code, wrong) = one("2");
    assert_eq!(code, 1, "{wrong:#}");
    let wrongs: Vec<_> = wrong["failures"].as_array().unwrap().iter().map(|f| &f["config"]["mode"]).collect();
    assert!(wrongs.iter().all(|mode| **mode == 2), "{wrongs:?}");
}

/// A grid of two million threads is checked by a part of it, and its reference runs only there.
#[test]
fn large_gpu_kernels_are_checked_in_part() {
    let Some(nvrtc) = nvrtc() else { return };
    let home = Home::new();
    let text = std::fs::read_to_string(example("stencil.cu.json")).unwrap();
    let mut description: Value = serde_json::from_str(&text).unwrap();
    for (input, size) in description["Inputs"].as_array_mut().unwrap().iter_mut().zip(["1501..1501", "1499..1499"]) {
        input["Values"] = size.into();
    }
    let specification = description["KernelSpecification"].as_object_mut().unwrap();
    // The default configuration instead of the function of the host.
    specification.remove("Reference");
    description.as_object_mut().unwrap().remove("Reference");
    let source = std::fs::read_to_string(example("stencil.cu")).unwrap();
    let check = |source: &str| {
        std::fs::write(home.path().join("stencil.cu"), source).unwrap();
        let file = home.path().join("stencil.cu.json");
        std::fs::write(&file, description.to_string()).unwrap();
        let arguments = ["verify", &file.display().to_string(), "--device", "emulator:sm_80", "--cases", "4"];
        home.json_with(&arguments, &[("TILEWRIGHT_NVRTC", &nvrtc.display().to_string())])
    };
    let (code, right) = check(&source);
    assert_eq!((code, &right["failed"]), (0, &Value::from(0)), "{right:#}");
    let (code, wrong) = check(&source.replace("in[y * w + x] : 0.0f", "in[y * w + x] + 1.0f : 0.0f"));
    assert_eq!(code, 1, "{wrong:#}");
    let failed = wrong["failures"].as_array().unwrap();
    assert!(failed.iter().all(|f| f["config"]["use_shared"] == 1), "{wrong:#}");
    assert_eq!(Some(failed.len() as u64), wrong["coverage"]["use_shared:1"].as_u64(), "{wrong:#}");
}
