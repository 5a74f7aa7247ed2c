//! What tests read that is recorded, and what they do where the machine lacks what they need.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

/// Names of what must not be missing, separated by blanks: `ptxas nvrtc python redis kernel_tuner`, and those of libraries that tests skip for.
const REQUIRED: &str = "TILEWRIGHT_REQUIRE";

/// The file that collects what was skipped, a line each; `scripts/test` sums it up.
const SKIPPED: &str = "TILEWRIGHT_SKIPPED";

/// A file that was recorded on a machine of this project and lies in the repository: the six computations on six local devices.
pub fn recorded(name: &str) -> PathBuf {
    let folder = "../bench-suite/records/cpu-epyc-family25-model1/computations";
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder).join(name)
}

/// NVIDIA's compiler of CUDA C++: the place that `TILEWRIGHT_NVRTC` names, or where `scripts/nvrtc.sh` puts it. Without it the test says that
/// it is skipped.
pub fn nvrtc() -> Option<PathBuf> {
    let packaged = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../build/nvrtc");
    let place = std::env::var_os("TILEWRIGHT_NVRTC").map_or_else(packaged, PathBuf::from);
    if place.exists() {
        return Some(place);
    }
    skip("nvrtc", format_args!("{} is not there; see scripts/nvrtc.sh", place.display()));
    None
}

/// Says that a test is skipped because `what` is missing: on standard error, and in the file that `TILEWRIGHT_SKIPPED` names.
///
/// # Panics
/// Where `TILEWRIGHT_REQUIRE` names it: there a test fails instead of skipping.
pub fn skip(what: &str, why: impl Display) {
    let required = std::env::var(REQUIRED).unwrap_or_default();
    assert!(!required.split_whitespace().any(|name| name == what), "{what} is required by {REQUIRED}: {why}");
    let line = format!("{what}: {why}");
    eprintln!("skipped for want of {line}");
    if let Some(file) = std::env::var_os(SKIPPED) {
        // One write of a short line: tests of several processes append to one file.
        let appended = OpenOptions::new().create(true).append(true).open(file);
        let written = appended.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        written.unwrap_or_else(|e| panic!("{SKIPPED}: {e}"));
    }
}
