//! `tilewright doctor`: what this machine has.

use crate::args::DeviceArgs;
use crate::device::with_peaks;
use crate::failure::Failure;
use crate::output::Output;
use crate::wiring::{home, open};
use serde::Serialize;
use std::fmt::Write as _;
use tilewright_baselines::cores::{self, Tried};
use tilewright_baselines::{Identity, Missing, inventory};
#[cfg(feature = "cuda")]
use tilewright_core::device::DeviceKind;
use tilewright_core::device::{Device, DeviceSpec, Environment};
use tilewright_core::problem::Measure as _;
use tilewright_core::text::counted;
use tilewright_runtime::store::{Profile, ProfileStore};

#[derive(Serialize)]
struct StoredProfile {
    file: String,
    kernel: Option<String>,
    device: Option<String>,
    samples: Option<u64>,
    cv_mse: Option<f64>,
    /// Whether it was made on a device like this one.
    fits: bool,
    /// The number of threads that it was made with, where that is all that keeps it from fitting.
    other_threads: Option<i64>,
    error: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    version: &'static str,
    device: DeviceSpec,
    /// What the device is used with: driver, assembler, libraries of its maker; empty where the device reports nothing.
    #[serde(skip_serializing_if = "Environment::is_empty")]
    environment: Environment,
    fingerprint: String,
    baselines_found: Vec<Identity>,
    baselines_missing: Vec<Missing>,
    /// Libraries that run below their best as installed, and what mends that.
    baselines_slow: Vec<String>,
    /// Each file and core of each library that was tried, and what it did; none where libraries are left as they are.
    baselines_tried: Vec<Tried>,
    home: Option<String>,
    profiles: Vec<StoredProfile>,
}

pub(crate) fn run(args: &DeviceArgs, output: Output) -> Result<(), Failure> {
    let mut opened = open(args)?;
    let environment = Device::environment(opened.device());
    let device = with_peaks(args, opened.spec())?;
    let (found, missing) = baselines(&device);
    let tried = cores::chosen().map_or(Vec::new(), |chosen| chosen.tried.clone());
    let home = home();
    let profiles = match &home {
        Ok(home) => profiles(&ProfileStore::new(home.profiles()), &device),
        Err(_) => Vec::new(),
    };
    let answer = Answer {
        version: env!("CARGO_PKG_VERSION"),
        fingerprint: device.fingerprint(),
        device: (*device).clone(),
        environment,
        baselines_found: found,
        baselines_missing: missing,
        baselines_slow: tried.iter().flat_map(Tried::warnings).collect(),
        baselines_tried: tried,
        home: home.ok().map(|h| h.path().display().to_string()),
        profiles,
    };
    output.answer(&answer, || text(&answer))
}

/// The libraries of this machine's host and, where the device is of CUDA, those of its maker: what is there, and why the rest is not.
fn baselines(device: &DeviceSpec) -> (Vec<Identity>, Vec<Missing>) {
    let host = inventory();
    let (found, missing) = (host.found.clone(), host.missing.clone());
    #[cfg(feature = "cuda")]
    if device.kind == DeviceKind::Cuda {
        let own = tilewright_baselines::device_libraries();
        return ([found, own.found].concat(), [missing, own.missing].concat());
    }
    let _ = device;
    (found, missing)
}

fn profiles(store: &ProfileStore, device: &DeviceSpec) -> Vec<StoredProfile> {
    let read = |file: std::path::PathBuf| {
        let profile = Profile::read(&file);
        let header = profile.as_ref().ok().map(|p| &p.header);
        StoredProfile {
            file: file.display().to_string(),
            kernel: header.map(|h| h.kernel.to_string()),
            device: header.map(|h| h.device.name.clone()),
            samples: header.map(|h| h.stats.samples),
            cv_mse: header.and_then(|h| h.stats.cv_mse),
            fits: header.is_some_and(|h| h.device.expect(device).is_ok()),
            other_threads: header.and_then(|h| h.device.other_threads(device)),
            error: profile.err().map(|e| e.to_string()),
        }
    };
    store.list().unwrap_or_default().into_iter().map(read).collect()
}

fn text(a: &Answer) -> String {
    let mut out = format!("tilewright {}\n\n{}: {} ({})\n", a.version, a.device.id, a.device.name, a.device.driver);
    for line in a.environment.lines() {
        let _ = writeln!(out, "  {line}");
    }
    for (name, value) in &a.device.facts {
        let _ = writeln!(out, "  {name:<24} {value}");
    }
    for (name, value) in &a.device.measured {
        let _ = writeln!(out, "  {name:<24} {:.1}e9 (measured)", value / 1e9);
    }
    out.push_str("\nbaselines\n");
    for b in &a.baselines_found {
        let _ = writeln!(out, "  found    {b}");
    }
    for b in &a.baselines_missing {
        let _ = writeln!(out, "  missing  {}: {}", b.name, b.reason);
    }
    for warning in &a.baselines_slow {
        let _ = writeln!(out, "  warning  {warning}");
    }
    match &a.home {
        Some(home) => {
            let _ = writeln!(out, "\nfiles are kept in {home}");
        }
        None => out.push_str("\nno place to keep files: set TILEWRIGHT_HOME\n"),
    }
    for p in &a.profiles {
        let state = match (&p.error, p.fits) {
            (Some(e), _) => e.clone(),
            (None, true) => format!("{}, usable here", counted(p.samples.unwrap_or(0), "sample")),
            (None, false) => match (p.other_threads, a.device.fact("threads")) {
                (Some(own), Some(here)) => {
                    format!("of this device with another number of threads: {own}, and here {here} are asked for")
                }
                _ => format!("of another device: {}", p.device.clone().unwrap_or_default()),
            },
        };
        let _ = writeln!(out, "  {}: {state}", p.file);
    }
    if a.profiles.is_empty() {
        out.push_str("  no profile yet: run `tilewright tune gemm`\n");
    }
    out
}
