//! `tilewright count`: symbolic operation counts of a GPU kernel, and their values for an input.

use super::emit::{Choice, choose, wanted};
use crate::args::CountArgs;
use crate::failure::{Failure, Kind};
use crate::fields;
use crate::output::Output;
use crate::wiring::Wiring;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use tilewright_core::counts::{Counts, Property};
use tilewright_core::space::Config;
use tilewright_ptxgen::count::{CountError, Launch};
use tilewright_ptxgen::ir::Module;
use tilewright_ptxgen::ragged;
use tilewright_ptxgen::target::{Target, UnknownTarget};

#[derive(Serialize)]
struct Answer {
    kernel: String,
    input: Config,
    config: Config,
    /// What expressions are in.
    sizes: Vec<String>,
    /// What was said of the data.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    statistics: Statistics,
    counts: BTreeMap<Property, Count>,
}

#[derive(Serialize)]
struct Count {
    expression: String,
    value: i64,
}

pub(crate) fn run(args: &CountArgs, wiring: &Wiring, output: Output) -> Result<(), Failure> {
    let target: Target = args.target.parse().map_err(|e: UnknownTarget| Failure::new(Kind::Usage, "target", e))?;
    let statistics = statistics(&args.statistic)?;
    let input = fields::parse(&args.input)?;
    let answer = match args.kernel.as_str() {
        ragged::NAME => of_data(&ragged::module(target), ragged::launch(), input, statistics)?,
        _ => of_kernel(args, wiring, target, &input, &statistics)?,
    };
    output.answer(&answer, || text(&answer))
}

/// Counts of a tunable kernel, which the sizes of its input tell.
fn of_kernel(
    args: &CountArgs,
    wiring: &Wiring,
    target: Target,
    input: &Config,
    statistics: &Statistics,
) -> Result<Answer, Failure> {
    let kernel = wanted(wiring, (&args.kernel, args.variant.as_deref()), args.config.as_deref(), target, input)?;
    let Choice { problem, point, .. } = choose(args.config.as_deref(), kernel, target, input)?;
    let legal = problem.space().check(&point).map_err(|e| Failure::new(Kind::Input, "config", e))?;
    let counts = problem.counts(&legal);
    let name = problem.kernel().to_string();
    let counts =
        counts.ok_or_else(|| Failure::new(Kind::Nothing, "kernel", format!("{name} has no symbolic counts")))?;
    expect_known(&name, statistics, &BTreeSet::new())?;
    let input = problem.input();
    Ok(Answer {
        kernel: name,
        config: problem.space().config(&point),
        sizes: counts.sizes().to_vec(),
        statistics: Statistics::new(),
        counts: values(&counts, &input)?,
        input,
    })
}

/// Counts of a kernel whose control depends on data, by statistics of them.
fn of_data(module: &Module, mut launch: Launch, input: Config, statistics: Statistics) -> Result<Answer, Failure> {
    let name = module.entry.name.clone();
    // Each answer of the counter goes as far as the next thing that it needs to know.
    let counts = loop {
        match tilewright_ptxgen::count::count(module, &launch) {
            Ok(counts) => break counts,
            Err(CountError::DataDependent { statistics, .. })
                if statistics.iter().any(|s| !launch.statistics.contains(s)) =>
            {
                launch.statistics.extend(statistics);
            }
            Err(error) => return Err(Failure::new(Kind::Input, "kernel", error)),
        }
    };
    expect_known(&name, &statistics, &launch.statistics)?;
    let missing: Vec<String> = launch
        .statistics
        .iter()
        .filter(|s| !statistics.contains_key(*s))
        .map(|s| format!("--statistic '{s}=N'"))
        .collect();
    if !missing.is_empty() {
        let message = format!("the control of {name} depends on data; to count it, give {}", missing.join(" "));
        let detail = Some("missing-statistics");
        return Err(Failure { detail, ..Failure::new(Kind::Input, "statistic", message) });
    }
    let mut fields = input.clone();
    fields.0.extend(statistics.iter().map(|(name, value)| (name.clone(), (*value).into())));
    let sizes = counts.sizes().to_vec();
    Ok(Answer { counts: values(&counts, &fields)?, kernel: name, input, config: Config::default(), sizes, statistics })
}

type Statistics = BTreeMap<String, i64>;

fn statistics(given: &[(String, i64)]) -> Result<Statistics, Failure> {
    let mut out = Statistics::new();
    for (name, value) in given {
        if out.insert(name.clone(), *value).is_some() {
            return Err(Failure::new(Kind::Usage, "statistic", format!("{name} is given twice")));
        }
    }
    Ok(out)
}

/// Refuses statistics that a kernel does not ask for.
fn expect_known(kernel: &str, given: &Statistics, asked: &BTreeSet<String>) -> Result<(), Failure> {
    let Some(unknown) = given.keys().find(|name| !asked.contains(*name)) else { return Ok(()) };
    let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
    let asked = if asked.is_empty() { "none".to_owned() } else { asked.join(", ") };
    let message = format!("{kernel} asks for no {unknown}: it asks for {asked}");
    Err(Failure { detail: Some("unknown-statistic"), ..Failure::new(Kind::Input, "statistic", message) })
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
