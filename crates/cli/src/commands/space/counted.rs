//! The answer about a counted space.

use crate::failure::{Failure, Kind};
use crate::output::{Output, aligned, seconds, unless_closed};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use tilewright_core::space::{BoundSpace, Config, ParamSpace};
use tilewright_core::text::counted;
use tilewright_sampler::{Conflict, Description, Judged, LegalError, LegalSet, Settings, judge};

#[derive(Serialize)]
pub(super) struct Answer {
    pub(super) kernel: String,
    pub(super) input: Config,
    pub(super) cartesian: f64,
    pub(super) legal: u64,
    /// From the description to the set that can be asked.
    pub(super) seconds: f64,
    /// Nodes of the diagram and the bytes that it takes.
    pub(super) nodes: usize,
    pub(super) bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rejected_by: Option<BTreeMap<String, u64>>,
    /// Accepted of drawn candidates, by sampler.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    acceptance: BTreeMap<&'static str, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samplers: Option<Vec<Record>>,
}

/// A sampler's record as JSON.
#[derive(Serialize)]
pub(super) struct Record {
    sampler: &'static str,
    acceptance: f64,
    samples_per_second: f64,
    /// Total variation distances from uniform.
    marginal_distance: Option<f64>,
    joint_distance: Option<f64>,
}

impl From<Judged> for Record {
    fn from(judged: Judged) -> Self {
        Self {
            sampler: judged.name,
            acceptance: judged.acceptance,
            samples_per_second: judged.per_second,
            marginal_distance: judged.distance.map(|d| d.marginal),
            joint_distance: judged.distance.map(|d| d.joint),
        }
    }
}

impl Answer {
    pub(super) fn new(kernel: &str, input: Config, set: &LegalSet, seconds: f64) -> Self {
        Self {
            kernel: kernel.to_owned(),
            input,
            cartesian: set.cartesian() as f64,
            legal: set.count(),
            seconds,
            nodes: set.nodes(),
            bytes: set.bytes(),
            rejected_by: None,
            acceptance: BTreeMap::new(),
            samplers: None,
        }
    }

    pub(super) fn sampled(&mut self, records: Vec<Record>) {
        self.acceptance = records.iter().map(|r| (r.sampler, r.acceptance)).collect();
        self.samplers = Some(records);
    }

    pub(super) fn print(&self, output: Output) -> Result<(), Failure> {
        output.answer(self, || self.text())
    }

    fn text(&self) -> String {
        // What can be read is written out; of more, the size says enough.
        let of_all = if self.cartesian < 1e6 {
            counted(self.cartesian, "configuration")
        } else {
            format!("{:.3e} configurations", self.cartesian)
        };
        let mut out = format!(
            "{}{}{}\n{} legal of {}, built in {} ({}, {} KiB)\n",
            self.kernel,
            if self.input.0.is_empty() { "" } else { " for " },
            self.input,
            self.legal,
            of_all,
            seconds(self.seconds),
            counted(self.nodes, "node"),
            self.bytes.div_ceil(1024),
        );
        if let Some(records) = &self.samplers {
            let _ = write!(out, "\n{}", text_of(records));
        }
        if let Some(rejected) = &self.rejected_by {
            let mut rows: Vec<(&String, &u64)> = rejected.iter().collect();
            rows.sort_by(|a, b| b.1.cmp(a.1));
            let rows: Vec<Vec<String>> = rows.iter().map(|(n, c)| vec![(*n).clone(), c.to_string()]).collect();
            let _ = write!(out, "\nconfigurations rejected first by a rule:\n{}", aligned(&rows));
        }
        out
    }
}

/// Samplers side by side.
pub(super) fn text_of(records: &[Record]) -> String {
    let heading = ["sampler", "accepted", "points/s", "marginal distance", "joint distance"].map(str::to_owned);
    let number = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.4}"));
    let row = |r: &Record| {
        let accepted = format!("{:.3}%", 100.0 * r.acceptance);
        let rate = format!("{:.3e}", r.samples_per_second);
        vec![r.sampler.to_owned(), accepted, rate, number(r.marginal_distance), number(r.joint_distance)]
    };
    let rows: Vec<Vec<String>> = std::iter::once(heading.to_vec()).chain(records.iter().map(row)).collect();
    aligned(&rows)
}

/// Draws by every sampler, compared.
pub(super) fn samplers(
    spaces: (&ParamSpace, &BoundSpace),
    set: &LegalSet,
    count: u32,
    learn: u64,
    seed: u64,
) -> Result<Vec<Record>, Failure> {
    let found = judge(spaces, set, Settings::default(), (learn, count.into()), seed);
    let found = found.map_err(|e| Failure::new(Kind::Nothing, "sample", e))?;
    Ok(found.into_iter().map(Record::from).collect())
}

/// Points by the first rule that they break, in the order in which rules are checked.
pub(super) fn rejected_in_order(space: &BoundSpace) -> BTreeMap<String, u64> {
    let count = |n: u128| u64::try_from(n).unwrap_or(u64::MAX);
    space.census().rejected_by.into_iter().map(|(rule, n)| (rule, count(n))).collect()
}

/// Points by the first constraint that they break, in the order of the description.
pub(super) fn rejected_by(description: &Description, bound: &BoundSpace) -> Result<BTreeMap<String, u64>, LegalError> {
    match description.rejected_by() {
        Ok(counts) => Ok(counts),
        // A part of the constraints leaves more points than numbers count: rules are then taken in the order of checking.
        Err(LegalError::TooMany) => Ok(rejected_in_order(bound)),
        Err(e) => Err(e),
    }
}

/// Writes every legal configuration, a header first.
pub(super) fn list(set: &LegalSet, path: &Path) -> Result<(), Failure> {
    let mut write = |file: &mut dyn io::Write| -> io::Result<()> {
        let mut file = BufWriter::new(file);
        let names: Vec<&str> = set.params().iter().map(|p| p.name.as_str()).collect();
        writeln!(file, "{}", names.join(","))?;
        let texts: Vec<Vec<String>> =
            set.params().iter().map(|p| p.values.iter().map(ToString::to_string).collect()).collect();
        let mut walk = set.walk();
        while let Some(point) = walk.next_point() {
            let cells: Vec<&str> = texts.iter().zip(point).map(|(t, &i)| t[usize::from(i)].as_str()).collect();
            writeln!(file, "{}", cells.join(","))?;
        }
        file.flush()
    };
    unless_closed(tilewright_files::replace(path, &mut write)).map_err(|e| Failure::of_file(Kind::Store, path, e))
}

/// The failure of a space without points, with the constraints that conflict.
pub(super) fn empty(description: &Description, field: &str) -> Failure {
    let why = match Conflict::find(description) {
        Ok(Some(conflict)) => format!("no configuration is legal: {conflict}"),
        _ => "no configuration is legal".to_owned(),
    };
    Failure::new(Kind::Nothing, field, why)
}

/// A space that cannot be built.
pub(super) fn refused(error: &LegalError, field: &str) -> Failure {
    Failure::new(Kind::Input, field, error)
}
