//! The rules of the repository: which crate may know which, where `unsafe` may stand, how long a file may be.

use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// For each crate, the crates of the workspace that it may depend on. `None` may wire everything.
///
/// Dependencies for tests, examples and benches may go to any crate that stands below in this list, or to the testkit.
const EDGES: [(&str, Option<&[&str]>); 31] = [
    ("core", Some(&[])),
    ("testkit", Some(&["core"])),
    ("ops", Some(&["core"])),
    // Kernels as loops, without a backend: both generators lower them.
    ("loops", Some(&["core"])),
    // Workers for jobs of microseconds.
    ("threads", Some(&[])),
    // How files of users are read and written.
    ("files", Some(&[])),
    // Pictures of plain numbers.
    ("charts", Some(&[])),
    // Decision trees as texts without Tilewright; knows tables of times and no backend.
    ("export", Some(&["core"])),
    ("datasets", Some(&["core", "files"])),
    ("sampler", Some(&["core"])),
    ("search", Some(&["core", "sampler"])),
    ("perfmodel-mlp", Some(&["core"])),
    ("perfmodel-linear", Some(&["core"])),
    ("variant-select", Some(&["core"])),
    ("mtl", Some(&["core", "variant-select"])),
    ("repository", Some(&["core", "files", "mtl"])),
    ("cpu", Some(&["core", "ops", "loops", "threads"])),
    // `sampler` has the constraints of BACUGen's paper.
    ("ptxgen", Some(&["core", "ops", "loops", "sampler"])),
    // Meets `ptxgen` only in PTX text.
    ("emulator", Some(&["core"])),
    ("runtime", Some(&["core", "files", "sampler", "search"])),
    // Users' sources made ready to run, and kernels that files describe.
    ("compile", Some(&["core", "files"])),
    ("user", Some(&["core", "compile", "files"])),
    // Kernels like those of `cpu`; their measuring example uses the runtime.
    ("computations", Some(&["core", "files", "threads"])),
    // Routines of libraries as kernels; those of GPUs behind the feature of the runtime's CUDA devices.
    ("baselines", Some(&["core", "files", "ops", "runtime"])),
    // The weights of the linear model, measured on any device.
    ("calibration", Some(&["core", "loops", "perfmodel-linear", "ptxgen", "runtime"])),
    // The front door: leads to all libraries, and composes what a program of one's own needs.
    (
        "tilewright",
        Some(&[
            "core",
            "ops",
            "datasets",
            "export",
            "files",
            "loops",
            "sampler",
            "search",
            "perfmodel-mlp",
            "perfmodel-linear",
            "variant-select",
            "mtl",
            "repository",
            "computations",
            "cpu",
            "ptxgen",
            "emulator",
            "compile",
            "user",
            "runtime",
            "baselines",
            "calibration",
        ]),
    ),
    // The driver's side of what `runtime` calls.
    ("fake-cuda", Some(&["emulator"])),
    // The vendor's side of what `baselines` calls; works on any driver.
    ("fake-cublas", Some(&[])),
    ("bench-suite", None),
    ("cli", None),
    ("fuzz", None),
];

/// Concrete crates that `runtime` may name behind a feature.
const BEHIND_FEATURES: [&str; 4] = ["cpu", "perfmodel-mlp", "perfmodel-linear", "variant-select"];

/// What the contract may use: serialisation, errors, hashing, byte views. No I/O, no threads, no backend.
const FOREIGN_IN_CORE: [&str; 5] = ["blake3", "bytemuck", "serde", "serde_json", "thiserror"];

/// The longest file that passes.
const MAX_LINES: usize = 500;

/// Where `unsafe` may stand.
const UNSAFE: [&str; 10] = [
    "crates/compile/src/native.rs",
    "crates/compile/src/nvrtc.rs",
    "crates/cpu/",
    "crates/threads/src/lib.rs",
    "crates/fake-cublas/src/exports.rs",
    "crates/fake-cublas/src/launch.rs",
    "crates/fake-cuda/src/exports.rs",
    "crates/runtime/src/cuda",
    "crates/baselines/src/foreign",
    "crates/computations/src/isa.rs",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Name of the folder and manifest of every crate.
fn crates() -> Vec<(String, Table)> {
    let folders = fs::read_dir(root().join("crates")).unwrap().map(|f| f.unwrap().path());
    let mut out: Vec<_> = folders
        .filter(|f| f.join("Cargo.toml").exists())
        .map(|f| {
            let name = f.file_name().unwrap().to_string_lossy().into_owned();
            (name, manifest(&f.join("Cargo.toml")))
        })
        .collect();
    out.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(out.len() >= 10, "only {} crates found", out.len());
    out
}

fn manifest(path: &Path) -> Table {
    fs::read_to_string(path).unwrap().parse().unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Name and value of the dependencies in a section, those of targets included.
fn dependencies(manifest: &Table, section: &str) -> Vec<(String, Value)> {
    let of = |table: &Table| {
        let section = table.get(section).and_then(Value::as_table);
        section.into_iter().flatten().map(|(n, v)| (n.clone(), v.clone())).collect::<Vec<_>>()
    };
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(|t| t.values()).filter_map(Value::as_table);
    of(manifest).into_iter().chain(targets.flat_map(of)).collect()
}

/// The folder of one of our packages.
fn ours(package: &str) -> Option<&str> {
    if package == "tilewright" { Some(package) } else { package.strip_prefix("tilewright-") }
}

fn position(name: &str) -> usize {
    let at = EDGES.iter().position(|(n, _)| *n == name);
    at.unwrap_or_else(|| panic!("crates/{name} is not in the list of allowed edges: add it and its dependencies"))
}

#[test]
fn crates_depend_only_on_what_they_may() {
    for (name, manifest) in crates() {
        let Some(allowed) = EDGES[position(&name)].1 else { continue };
        for (package, value) in dependencies(&manifest, "dependencies") {
            let Some(on) = ours(&package) else { continue };
            let optional = value.get("optional").and_then(Value::as_bool) == Some(true);
            let behind_feature = name == "runtime" && optional && BEHIND_FEATURES.contains(&on);
            assert!(allowed.contains(&on) || behind_feature, "{name} may not depend on {on}; allowed: {allowed:?}");
        }
        for section in ["dev-dependencies", "build-dependencies"] {
            for (package, _) in dependencies(&manifest, section) {
                let Some(on) = ours(&package) else { continue };
                assert!(position(on) < position(&name), "{section} of {name}: {on} stands above it");
            }
        }
    }
}

#[test]
fn the_contract_stays_small() {
    let (_, core) = crates().into_iter().find(|(n, _)| n == "core").unwrap();
    for (package, _) in dependencies(&core, "dependencies") {
        assert!(FOREIGN_IN_CORE.contains(&package.as_str()), "core may not depend on {package}");
    }
    for file in sources(&root().join("crates/core/src")) {
        let code = code_of(&file);
        for module in ["fs", "net", "process", "thread", "env"] {
            let used = code.contains(&format!("std::{module}"));
            assert!(!used, "{}: core uses std::{module}", file.display());
        }
    }
}

#[test]
fn packages_are_named_described_and_inherit() {
    for (name, manifest) in crates() {
        let package = manifest["package"].as_table().unwrap();
        let wanted = if name == "tilewright" { name.clone() } else { format!("tilewright-{name}") };
        assert_eq!(package["name"].as_str(), Some(wanted.as_str()), "crates/{name}");
        let description = package.get("description").and_then(Value::as_str).unwrap_or_default();
        assert!(description.len() > 20, "crates/{name} has no description");
        for field in ["version", "edition", "rust-version", "license", "repository", "authors"] {
            let inherited = package.get(field).and_then(|v| v.get("workspace")).and_then(Value::as_bool);
            assert_eq!(inherited, Some(true), "crates/{name}: {field} is not inherited from the workspace");
        }
        let lints = manifest.get("lints").and_then(|l| l.get("workspace")).and_then(Value::as_bool);
        assert_eq!(lints, Some(true), "crates/{name} does not inherit the workspace's lints");
        let readme = fs::read_to_string(root().join("crates").join(&name).join("README.md")).unwrap_or_default();
        assert!(readme.starts_with("# tilewright"), "crates/{name}/README.md does not begin with its name");
    }
}

#[test]
fn versions_live_in_the_workspace_table() {
    for (name, manifest) in crates() {
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for (package, value) in dependencies(&manifest, section) {
                let inherited = value.get("workspace").and_then(Value::as_bool) == Some(true);
                assert!(inherited, "crates/{name}: {package} states a version of its own");
            }
        }
    }
}

#[test]
fn files_are_short_and_no_module_is_a_drawer() {
    for file in all_sources() {
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= MAX_LINES, "{} has {lines} lines, at most {MAX_LINES} pass", file.display());
        let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
        for drawer in ["util", "utils", "helper", "helpers", "misc", "common"] {
            assert_ne!(stem, drawer, "{}: say what the module is about", file.display());
        }
    }
}

#[test]
fn unsafe_stands_where_it_may_with_its_contract() {
    for file in all_sources() {
        let relative = file.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        let code = code_of(&file);
        let uses = words(&code).filter(|w| *w == "unsafe").count();
        let allowed = UNSAFE.iter().any(|place| relative.starts_with(place));
        assert!(uses == 0 || allowed, "{relative} uses unsafe; it may stand in {UNSAFE:?}");
    }
}

#[test]
fn nothing_is_left_undone() {
    // Put together here, so that this file does not find itself.
    let marks = [["TO", "DO"].concat(), ["FIX", "ME"].concat(), ["X", "XX"].concat()];
    for file in all_sources() {
        let text = fs::read_to_string(&file).unwrap();
        let found = words(&text).find(|w| marks.iter().any(|m| m == w));
        assert_eq!(found, None, "{}", file.display());
    }
}

#[test]
fn outside_consumers_take_only_paths() {
    let folder = root().join("examples/consumers");
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|e| e.unwrap().path().join("Cargo.toml")).filter(|p| p.exists()) {
        let manifest = manifest(&path);
        assert!(manifest.contains_key("workspace"), "{} is not a workspace of its own", path.display());
        for (name, value) in dependencies(&manifest, "dependencies") {
            assert!(value.get("path").is_some(), "{}: {name} is not taken by path", path.display());
        }
    }
}

/// Every Rust file of the project, build outputs apart.
fn all_sources() -> Vec<PathBuf> {
    let folders = ["crates", "examples", "fuzz"].map(|f| root().join(f));
    let files: Vec<PathBuf> = folders.iter().filter(|f| f.exists()).flat_map(|f| sources(f)).collect();
    assert!(files.len() > 50, "only {} files found", files.len());
    files
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        if path.is_dir() && !path.ends_with("target") {
            out.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
    out
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// The text of a file without comments and string literals.
fn code_of(file: &Path) -> String {
    without_text(&fs::read_to_string(file).unwrap())
}

fn without_text(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skip = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            'r' if rest.starts_with("r\"") => rest[2..].find('"').map_or(rest.len(), |end| end + 3),
            'r' if rest.starts_with("r#\"") => rest[3..].find("\"#").map_or(rest.len(), |end| end + 5),
            '"' => string_length(rest),
            // A quote in a character literal begins no string; a lifetime has no such length.
            '\'' if rest.starts_with("'\"'") => 3,
            '\'' if rest.starts_with("'\\\"'") => 4,
            _ => {
                code.push(c);
                c.len_utf8()
            }
        };
        rest = &rest[skip..];
    }
    code
}

fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (i, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return i + 1,
            _ => {}
        }
    }
    text.len()
}

#[test]
fn comments_and_strings_are_not_code() {
    let text = "a // unsafe\nb \"unsafe \\\" unsafe\" c /* unsafe */ d r#\"unsafe \" \"# '\"' e r\"unsafe\" unsafe { }";
    let code = without_text(text);
    let found: Vec<&str> = words(&code).filter(|w| !w.is_empty()).collect();
    assert_eq!(found, ["a", "b", "c", "d", "e", "unsafe"]);
}
