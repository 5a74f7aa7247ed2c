//! `tilewright count`: symbolic operation counts of a GPU kernel, and their values for an input.

use super::emit::{Choice, choose};
use crate::args::CountArgs;
use crate::failure::{Failure, Kind};
use crate::output::Output;
use crate::wiring::Wiring;
use crate::words;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tilewright_core::counts::{Counts, Property};
use tilewright_core::device::DeviceKind;
use tilewright_core::space::Config;
use tilewright_ptxgen::target::{Target, UnknownTarget};

#[derive(Serialize)]
struct Answer {
    kernel: String,
    input: Config,
    config: Config,
    /// What expressions are in.
    sizes: Vec<String>,
    counts: BTreeMap<Property, Count>,
}

#[derive(Serialize)]
struct Count {
    expression: String,
    value: i64,
}

pub(crate) fn run(args: &CountArgs, wiring: &Wiring, output: Output) -> Result<(), Failure> {
    let target: Target = args.target.parse().map_err(|e: UnknownTarget| Failure::new(Kind::Usage, "target", e))?;
    let kernel = wiring.variant(&args.kernel, args.variant.as_deref(), DeviceKind::Cuda)?;
    let input = words::parse(&args.input)?;
    let Choice { problem, point, .. } = choose(args.config.as_deref(), wiring, kernel, target, &input)?;
    let counts = problem.counts(&point).map_err(|e| Failure::new(Kind::Input, "config", e))?;
    let counts = counts
        .ok_or_else(|| Failure::new(Kind::Nothing, "kernel", format!("{} has no symbolic counts", problem.kernel())))?;
    let input = problem.input();
    let answer = Answer {
        kernel: problem.kernel().to_string(),
        config: problem.space().config(&point),
        sizes: counts.sizes().to_vec(),
        counts: values(&counts, &input)?,
        input,
    };
    output.answer(&answer, || text(&answer))
}

fn values(counts: &Counts, input: &Config) -> Result<BTreeMap<Property, Count>, Failure> {
    let mut evaluator = counts.evaluator();
    let values = evaluator.eval_by(|name| input.get(name)?.as_int());
    let values = values.map_err(|e| Failure::new(Kind::Input, "input", e))?.to_vec();
    let count = |(property, value): (&Property, i64)| {
        let expression = counts.expression(*property).unwrap_or_default();
        (*property, Count { expression, value })
    };
    Ok(evaluator.properties().iter().zip(values).map(count).collect())
}

/// Properties that are counted in the same unit.
fn family(property: &Property) -> &'static str {
    match property {
        Property::Threads(_) => "operations of threads",
        Property::Accesses(..) => "accesses of warps, by stride",
        Property::Passes(_) => "passes over the banks of shared memory",
        Property::Warps(_) => "issues to warps",
        Property::Off(_) => "threads whose guard does not hold",
        Property::Overlap(..) => "loads beside stores",
        Property::Groups | Property::Launches | Property::Constant => "overhead",
    }
}

/// One table for each unit, what there is most of first.
fn text(answer: &Answer) -> String {
    let mut out = format!("{} for {}\n{}\n", answer.kernel, answer.input, answer.config);
    let mut families: Vec<(&str, Vec<(&Property, &Count)>)> = Vec::new();
    for entry in answer.counts.iter().filter(|(_, c)| c.value != 0) {
        let family = family(entry.0);
        match families.iter_mut().find(|(name, _)| *name == family) {
            Some((_, entries)) => entries.push(entry),
            None => families.push((family, vec![entry])),
        }
    }
    for (name, mut entries) in families {
        entries.sort_by_key(|(_, c)| Reverse(c.value));
        let total: i128 = entries.iter().map(|(_, c)| i128::from(c.value)).sum();
        let _ = writeln!(out, "\n{name}");
        for (property, count) in entries {
            let share = 100.0 * count.value as f64 / total as f64;
            let name = property.to_string();
            let _ = writeln!(out, "  {name:<26} {:>16} {share:>5.1}%  {}", count.value, count.expression);
        }
    }
    out
}
