//! Spaces of 10^9 points and more: time and memory to build and count them, and every sampler side by side on the same
//! space.
//!
//! ```text
//! cargo run --release -p tilewright-sampler --example large
//! ```
//!
//! One line of JSON a space: seconds to the set that can be asked, nodes and bytes of the set, peak of the process's
//! memory so far (Linux), and of each sampler what it accepts, legal points a second on one thread, and the total variation
//! distance of its points from uniform ones, by parameter and over ranges of numbers.

use serde_json::{Value, json};
use std::error::Error;
use std::time::Instant;
use tilewright_core::dtype::DType;
use tilewright_core::space::{BoundSpace, Param, ParamSpace, RuleGroup, Symbols};
use tilewright_sampler::bacugen::{DeviceConstants, Guidelines, Layout, Reading, param_space, symbols};
use tilewright_sampler::{Judged, LegalSet, Settings, judge};

#[path = "../tests/spaces/mod.rs"]
mod spaces;

/// Samples that the generative models learn from, and that all are judged by.
const LEARN: u64 = 20_000;
const COUNT: u64 = 20_000;

fn main() -> Result<(), Box<dyn Error>> {
    for (name, (space, bound)) in [
        ("ISAAC's GEMM", spaces::isaac_gemm_f32()?),
        ("work groups", spaces::work_group_gemm()?),
        ("twelve stages", stages()?),
        ("BACUGen's SGEMM", bacugen()?),
    ] {
        println!("{}", line(name, &space, &bound)?);
    }
    Ok(())
}

/// A chain of tiles, each a multiple of the next, within a budget: 10^15 points.
fn stages() -> Result<(ParamSpace, BoundSpace), Box<dyn Error>> {
    let names: Vec<String> = (0..12).map(|i| format!("t{i}")).collect();
    let sizes: Vec<i64> = (1..=18).collect();
    let mut builder = names.iter().fold(ParamSpace::builder(), |b, n| b.param(Param::ints(n, sizes.iter().copied())));
    for pair in names.windows(2) {
        let rule = format!("{} % {} == 0 or {} % {} == 0", pair[0], pair[1], pair[1], pair[0]);
        builder = builder.rule(&format!("{} fits {}", pair[1], pair[0]), RuleGroup::Implementation, &rule, "");
    }
    let space = builder.rule("budget", RuleGroup::Hardware, &format!("{} <= 60", names.join(" + ")), "").build()?;
    let bound = space.bind(&Symbols::new())?;
    Ok((space, bound))
}

fn bacugen() -> Result<(ParamSpace, BoundSpace), Box<dyn Error>> {
    let layout = Layout::parse("nn").ok_or("no layout")?;
    let fermi = DeviceConstants::known("fermi-s2050").ok_or("no such device")?;
    let space = param_space(layout)?;
    let bound = space.bind(&symbols(DType::F32, &fermi, &Guidelines::default(), Reading::Printed))?;
    Ok((space, bound))
}

fn line(name: &str, space: &ParamSpace, bound: &BoundSpace) -> Result<Value, Box<dyn Error>> {
    let start = Instant::now();
    let set = LegalSet::of(bound)?;
    let seconds = start.elapsed().as_secs_f64();
    let peak = peak_bytes();
    let settings = Settings { warmup_candidates: 100_000, ..Settings::default() };
    let samplers = judge((space, bound), &set, settings, (LEARN, COUNT), 1)?;
    Ok(json!({
        "space": name, "cartesian": set.cartesian() as f64, "legal": set.count(), "built_s": seconds,
        "nodes": set.nodes(), "bytes": set.bytes(), "peak_bytes": peak,
        "samplers": samplers.iter().map(record).collect::<Vec<Value>>(),
    }))
}

fn record(judged: &Judged) -> Value {
    json!({
        "sampler": judged.name, "acceptance": judged.acceptance, "samples_per_second": judged.per_second,
        "marginal_distance": judged.distance.map(|d| d.marginal), "joint_distance": judged.distance.map(|d| d.joint),
    })
}

/// The most memory that the process has held.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}
