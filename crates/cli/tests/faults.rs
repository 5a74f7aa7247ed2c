//! The CUDA kernels under `examples/kernels` with a fault in each, as `faults.json` lists them: `verify` on the emulator must say what kind
//! of fault it is, and name the line.
//!
//! Kernels are compiled by NVRTC. Without it these tests say that they skipped, or fail where `TILEWRIGHT_REQUIRE` names `nvrtc`.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use tilewright_testkit::nvrtc;

/// Cases of each fault: inputs are drawn, and not each of them shows it.
const CASES: &str = "8";

/// Cases of a kernel as it is.
const CASES_OF_RIGHT_ONES: &str = "20";

/// The share of faults that must be found: some may need an input that was not drawn.
const SHARE: f64 = 0.95;

/// What is not right, but is no finding of the emulator.
const WRONG_RESULT: &str = "wrong_result";

#[derive(Deserialize)]
struct Table {
    /// Values of inputs by kernel: small ones, so that many cases run.
    inputs: Map<String, Value>,
    faults: Vec<Fault>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fault {
    name: String,
    kernel: String,
    /// The file that is changed; the source unless it is given.
    #[serde(rename = "in")]
    file: Option<String>,
    /// One of these must be reported.
    finding: Vec<String>,
    /// Stands there once.
    find: String,
    replace: String,
    /// A text that stands once in the changed source; the line on which it ends must be named.
    line: Option<String>,
    /// Parameters that have one value.
    #[serde(default)]
    config: Map<String, Value>,
    /// Values of inputs where the fault shows.
    #[serde(default)]
    inputs: Map<String, Value>,
}

/// The folder of the examples.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kernels")
}

fn table() -> Table {
    serde_json::from_str(include_str!("faults.json")).unwrap()
}

/// Puts the only `find` in a text to `replace`.
fn replaced(text: &str, find: &str, replace: &str) -> String {
    assert_eq!(text.matches(find).count(), 1, "{find:?} must stand there once");
    text.replace(find, replace)
}

/// A description whose inputs and parameters have the given values only.
fn narrowed(description: &str, inputs: &[&Map<String, Value>], config: &Map<String, Value>) -> String {
    let mut description: Value = serde_json::from_str(description).unwrap();
    for input in description["Inputs"].as_array_mut().unwrap() {
        let name = input["Name"].as_str().unwrap().to_owned();
        for values in inputs.iter().filter_map(|given| given.get(&name)) {
            input["Values"] = values.clone();
        }
    }
    for param in description["ConfigurationSpace"]["TuningParameters"].as_array_mut().unwrap() {
        if let Some(value) = config.get(param["Name"].as_str().unwrap()) {
            param["Values"] = json!([value]);
            param["Default"] = value.clone();
        }
    }
    description.to_string()
}

/// Writes a kernel into a folder, with a fault if one is given; the source as it was written.
fn write(folder: &Path, kernel: &str, of_kernel: &Value, fault: Option<&Fault>) -> String {
    let (source, description) = (format!("{kernel}.cu"), format!("{kernel}.cu.json"));
    let reference = format!("{kernel}_reference.c");
    let read = |name: &str| std::fs::read_to_string(examples().join(name)).unwrap();
    let changed = |name: &str| match fault {
        Some(fault) if fault.file.as_deref().unwrap_or(&source) == name => {
            replaced(&read(name), &fault.find, &fault.replace)
        }
        _ => read(name),
    };
    let none = Map::new();
    let (inputs, config) = fault.map_or((&none, &none), |fault| (&fault.inputs, &fault.config));
    let narrow = narrowed(&changed(&description), &[of_kernel.as_object().unwrap(), inputs], config);
    let text = changed(&source);
    for (name, text) in [(&source, &text), (&description, &narrow), (&reference, &read(&reference))] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    text
}

/// What `verify` says of the kernel in a folder, and whether all was right.
fn verify(folder: &Path, kernel: &str, cases: &str, nvrtc: &Path) -> (bool, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    command.args(["verify", &format!("{kernel}.cu.json"), "--device", "emulator:sm_80", "--cases", cases, "--json"]);
    // A folder of its own for what is built and stored.
    command.current_dir(folder).env("TILEWRIGHT_HOME", folder.join("home")).env("TILEWRIGHT_NVRTC", nvrtc);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let answer = serde_json::from_str(&text);
    (output.status.success(), answer.unwrap_or_else(|_| json!({"error": String::from_utf8_lossy(&output.stderr)})))
}

fn messages(answer: &Value) -> Vec<&str> {
    let failures = answer["failures"].as_array().map_or(&[][..], Vec::as_slice);
    failures.iter().filter_map(|failure| failure["message"].as_str()).collect()
}

/// Whether an answer counts a finding of this name.
fn counts(answer: &Value, finding: &str) -> bool {
    let count = |value: &Value| value.as_u64().unwrap_or(0) > 0;
    match finding {
        WRONG_RESULT => messages(answer).iter().any(|message| message.contains("wrong element")),
        "race" => count(&answer["races"]),
        "out_of_bounds" => count(&answer["out_of_bounds"]),
        other => count(&answer["other_findings"][other]),
    }
}

/// Whether a message names a line of a file.
fn names(message: &str, file: &str, line: usize) -> bool {
    let line = line.to_string();
    message.split(file).skip(1).any(|rest| {
        let rest = rest.strip_prefix(':').or_else(|| rest.strip_prefix(" line "));
        rest.is_some_and(|rest| rest.split(|c: char| !c.is_ascii_digit()).next() == Some(line.as_str()))
    })
}

/// Why a fault counts as missed, if it was.
fn missed(fault: &Fault, table: &Table, nvrtc: &Path) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let source = write(folder.path(), &fault.kernel, &table.inputs[&fault.kernel], Some(fault));
    let (right, answer) = verify(folder.path(), &fault.kernel, CASES, nvrtc);
    let said = || format!("{}: {}", answer["error"], messages(&answer).first().unwrap_or(&"no case failed"));
    if right || !fault.finding.iter().any(|finding| counts(&answer, finding)) {
        return Some(format!("no {} found; {}", fault.finding.join(" or "), said()));
    }
    let text = fault.line.as_deref()?;
    assert_eq!(source.matches(text).count(), 1, "{}: {text:?} must stand there once", fault.name);
    let end = source.find(text).unwrap() + text.len();
    let line = source[..end].matches('\n').count() + 1;
    let file = format!("{}.cu", fault.kernel);
    let named = messages(&answer).iter().any(|message| names(message, &file, line));
    (!named).then(|| format!("no message names line {line}; {}", said()))
}

#[test]
fn faults_are_found_and_their_lines_named() {
    let Some(nvrtc) = nvrtc() else { return };
    let table = table();
    let missed = |fault: &Fault| Some(format!("{} ({}): {}", fault.name, fault.kernel, missed(fault, &table, &nvrtc)?));
    let missed: Vec<String> = table.faults.iter().filter_map(missed).collect();
    let (all, found) = (table.faults.len(), table.faults.len() - missed.len());
    eprintln!("{found} of {all} faults found\n{}", missed.join("\n"));
    assert!(found as f64 >= SHARE * all as f64, "{found} of {all} faults found; missed:\n{}", missed.join("\n"));
}

#[test]
fn kernels_without_a_fault_have_no_findings() {
    let Some(nvrtc) = nvrtc() else { return };
    for (kernel, inputs) in &table().inputs {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), kernel, inputs, None);
        let (right, answer) = verify(folder.path(), kernel, CASES_OF_RIGHT_ONES, &nvrtc);
        assert!(right && answer["failed"] == 0, "{kernel}: {answer}");
    }
}
