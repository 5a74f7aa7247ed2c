//! Expected counts beside those that the profiler saw.

use super::metrics::{METRICS, MOVES, PRODUCTS};
use super::ncu::{Profile, Seen};
use super::{Expectation, Launched};
use std::collections::BTreeMap;
use std::error::Error;

/// How a metric compares over all launches.
#[derive(Default)]
struct Tally {
    equal: u64,
    /// Equal ones that are not zero: only these say much.
    nonzero: u64,
    differ: u64,
    /// Launches whose number is not foretold.
    unknown: u64,
    /// What is counted beyond what is expected, where that is furthest from zero.
    largest: i128,
    expected: u64,
    counted: u64,
}

impl Tally {
    fn add(&mut self, expected: Option<u64>, counted: u64) {
        self.counted += counted;
        let Some(expected) = expected else {
            self.unknown += 1;
            return;
        };
        self.expected += expected;
        let beyond = i128::from(counted) - i128::from(expected);
        if beyond == 0 {
            self.equal += 1;
            self.nonzero += u64::from(expected > 0);
            return;
        }
        self.differ += 1;
        if beyond.abs() > self.largest.abs() {
            self.largest = beyond;
        }
    }
}

/// Prints how the launches compare; whether all that ran are equal in all judged metrics, and all ran.
///
/// # Errors
/// The launches are not the expected ones, or a metric is missing.
pub(crate) fn compare(expectation: &Expectation, profile: &Profile) -> Result<bool, Box<dyn Error>> {
    let ran: Vec<&Launched> = expectation.launches.iter().filter(|l| !profile.failed.contains(&l.case)).collect();
    expect_same(&ran, &profile.launches)?;
    let mut tallies: Vec<Tally> = METRICS.iter().map(|_| Tally::default()).collect();
    let mut kernels: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    let mut differing = Vec::new();
    for (launch, seen) in ran.iter().zip(&profile.launches) {
        let mut differences = Vec::new();
        for (metric, tally) in METRICS.iter().zip(&mut tallies) {
            let (expected, counted) = numbers(launch, seen, metric.name)?;
            tally.add(expected, counted);
            if let Some(expected) = expected.filter(|expected| metric.judged && *expected != counted) {
                differences.push(format!("    {}: {expected} expected, {counted} counted", metric.name));
            }
        }
        let of = kernels.entry(launch.kernel.as_str()).or_default();
        of[0] += 1;
        of[1] += u64::from(differences.is_empty());
        if !differences.is_empty() {
            differing.push(format!("{}\n{}", described(launch), differences.join("\n")));
        }
    }
    show(&tallies);
    differing.iter().for_each(|launch| println!("{launch}"));
    for case in &profile.failed {
        println!("case {case} failed on the device, and is not compared");
    }
    for (kernel, [launches, equal]) in kernels {
        println!("{kernel}: {equal} of {launches} launches equal in all judged metrics");
    }
    println!("{} of {} launches equal in all judged metrics", ran.len() - differing.len(), ran.len());
    Ok(differing.is_empty() && profile.failed.is_empty())
}

/// Refuses launches that are not those expected.
fn expect_same(expected: &[&Launched], seen: &[Seen]) -> Result<(), Box<dyn Error>> {
    for (launch, seen) in expected.iter().zip(seen) {
        let (of_one, of_other) = ((&launch.entry, launch.grid, launch.block), (&seen.entry, seen.grid, seen.block));
        if of_one != of_other {
            let (entry, grid, block) = of_other;
            let other = format!("the profiler's launch {} is {entry} of {grid:?} blocks of {block:?}", seen.id);
            return Err(format!("{}\nis expected where {other}", described(launch)).into());
        }
    }
    if expected.len() != seen.len() {
        return Err(format!("{} launches are expected, the profiler saw {}", expected.len(), seen.len()).into());
    }
    Ok(())
}

/// What is expected of a metric, and what was counted.
fn numbers(launch: &Launched, seen: &Seen, metric: &str) -> Result<(Option<u64>, u64), Box<dyn Error>> {
    let expected = launch.expected.get(metric).ok_or_else(|| format!("{metric} is not among what is expected"))?;
    let counted = |metric: &str| {
        let counted = seen.counted.get(metric).copied();
        counted.ok_or_else(|| format!("launch {} of the profiler has no {metric}", seen.id))
    };
    let moves = if metric == PRODUCTS { counted(MOVES)? } else { 0 };
    Ok((*expected, counted(metric)?.saturating_sub(moves)))
}

fn described(launch: &Launched) -> String {
    let Launched { case, kernel, input, config, entry, grid, block, .. } = launch;
    format!("case {case}, {kernel}: {entry} of {grid:?} blocks of {block:?} for {input} with {config}")
}

/// The table of the metrics, in parentheses those that are only shown.
fn show(tallies: &[Tally]) {
    let heads = ["equal", "not zero", "differ", "unknown", "largest", "expected", "counted"];
    let line = |name: &str, cells: [String; 7]| {
        let [equal, nonzero, differ, unknown, largest, expected, counted] = cells;
        println!(
            "{name:58} {equal:>6} {nonzero:>8} {differ:>6} {unknown:>7} {largest:>11} {expected:>12} {counted:>12}"
        );
    };
    line("metric", heads.map(str::to_owned));
    for (metric, t) in METRICS.iter().zip(tallies) {
        let counts = [t.equal, t.nonzero, t.differ, t.unknown].map(|count| count.to_string());
        let [equal, nonzero, differ, unknown] = counts;
        let largest = if t.largest == 0 { "0".to_owned() } else { format!("{:+}", t.largest) };
        let sums = [t.expected, t.counted].map(|sum| sum.to_string());
        let [expected, counted] = sums;
        let name = if metric.judged { metric.name.to_owned() } else { format!("({})", metric.name) };
        line(&name, [equal, nonzero, differ, unknown, largest, expected, counted]);
    }
}
