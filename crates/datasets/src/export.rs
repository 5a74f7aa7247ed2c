//! One device and one input of a dataset, for the formats of other tuners.

use crate::column::sorted;
use crate::dataset::Dataset;
use crate::error::DatasetError;
use crate::replay::has_words;
use std::collections::{BTreeSet, HashMap};
use tilewright_core::expr::Value;
use tilewright_core::measurement::Outcome;
use tilewright_core::space::Config;

/// A format of another tuner that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A cache file of Kernel Tuner.
    KernelTuner,
    /// Results in the T4 format.
    T4,
}

/// What is exported, and what the formats hold that a dataset does not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExportOf {
    /// The device; the only one unless given.
    pub device: Option<String>,
    /// Words of the input; the only input that has them is exported.
    pub input: Config,
    /// The kernel's name; that of the dataset's file unless given.
    pub kernel: Option<String>,
    /// Kernel Tuner's problem size; where it is empty, the input if that is one to three integers above 0, else 1.
    pub problem_size: Vec<u64>,
}

/// A part of a dataset that other tuners can hold: configurations of one kernel for one input on one device. The variant, where there
/// are variants, is the first parameter, and a parameter that a variant lacks is the empty word, as in a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    pub(crate) device: String,
    pub(crate) kernel: String,
    pub(crate) problem_size: Vec<u64>,
    pub(crate) params: Vec<ExportParam>,
    pub(crate) entries: Vec<Entry>,
    rows: usize,
}

/// A parameter with its values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExportParam {
    pub(crate) name: String,
    /// Numbers in order of size, then words, then the empty word. Where one is a float, all numbers are: a table does not know
    /// 2.0 from 2, and a tuner that lists 0.5 and 2.0 does.
    pub(crate) values: Vec<Value>,
}

/// A configuration and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// Values of the parameters, in their order.
    pub(crate) config: Vec<Value>,
    pub(crate) outcome: Outcome,
    pub(crate) clock_s: f64,
}

impl Dataset {
    /// What other tuners can hold of this dataset. Of several recordings of one configuration, the fastest is exported.
    ///
    /// # Errors
    /// Nothing recorded for the device and the input; several devices or several inputs to choose from.
    pub fn export(&self, of: &ExportOf) -> Result<Export, DatasetError> {
        let rows = self.rows_to_export(of)?;
        let columns: Vec<usize> = self.roles.variant.iter().chain(&self.roles.config).copied().collect();
        let (codes, _) = self.tuples(&columns);
        let mut place: HashMap<u32, usize> = HashMap::new();
        let mut entries: Vec<Entry> = Vec::new();
        for &row in &rows {
            let value = |&c: &usize| self.columns[c].get(row).cloned().unwrap_or_else(|| Value::from(""));
            let entry = || Entry {
                config: columns.iter().map(value).collect(),
                outcome: self.outcome(row),
                clock_s: self.clock_s(row),
            };
            let time = |outcome: &Outcome| outcome.as_ref().map_or(f64::INFINITY, |m| m.time_s);
            let at = *place.entry(codes[row]).or_insert(entries.len());
            match entries.get_mut(at) {
                None => entries.push(entry()),
                Some(kept) if self.time_s(row).unwrap_or(f64::INFINITY) < time(&kept.outcome) => *kept = entry(),
                Some(_) => {}
            }
        }
        let param = |(at, &c): (usize, &usize)| param(self.columns[c].name(), at, &mut entries);
        let params = columns.iter().enumerate().map(param).collect();
        let input = self.input(rows[0]);
        Ok(Export {
            device: self.device(rows[0]),
            kernel: of.kernel.clone().unwrap_or_else(|| self.name()),
            problem_size: if of.problem_size.is_empty() { sizes(&input) } else { of.problem_size.clone() },
            params,
            entries,
            rows: rows.len(),
        })
    }

    /// The rows of one device and one input.
    fn rows_to_export(&self, of: &ExportOf) -> Result<Vec<usize>, DatasetError> {
        let (problems, _) = self.problems();
        let wanted = |row: usize| {
            of.device.as_ref().is_none_or(|name| *name == self.device(row)) && has_words(&self.input(row), &of.input)
        };
        let mut verdicts: HashMap<u32, bool> = HashMap::new();
        let mut rows = Vec::new();
        // A row of each device and input that is wanted.
        let mut firsts = Vec::new();
        for (row, &problem) in problems.iter().enumerate() {
            let known = verdicts.get(&problem).copied();
            let found = known.unwrap_or_else(|| wanted(row));
            if known.is_none() {
                verdicts.insert(problem, found);
                firsts.extend(found.then_some(row));
            }
            if found {
                rows.push(row);
            }
        }
        if rows.is_empty() {
            let device = of.device.as_ref().map_or_else(String::new, |name| format!("device {name:?}, "));
            return Err(DatasetError::NotRecorded { what: format!("{device}input {}", of.input) });
        }
        let several = |what: &'static str, name: &dyn Fn(usize) -> String| {
            let mut seen = BTreeSet::new();
            let choices: Vec<String> = firsts.iter().map(|&row| name(row)).filter(|n| seen.insert(n.clone())).collect();
            if choices.len() > 1 { Err(DatasetError::Several { what, choices }) } else { Ok(()) }
        };
        several("device", &|row| self.device(row))?;
        several("input", &|row| self.input(row).to_string())?;
        Ok(rows)
    }

    /// The name of the dataset's file.
    pub(crate) fn name(&self) -> String {
        self.path().file_stem().map_or_else(|| "recorded".into(), |s| s.to_string_lossy().into_owned())
    }
}

impl Export {
    /// The rows of the dataset that it was made of.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many configurations there are, those that failed included.
    pub fn configs(&self) -> usize {
        self.entries.len()
    }

    /// How many of them failed.
    pub fn failures(&self) -> usize {
        self.entries.iter().filter(|e| e.outcome.is_err()).count()
    }

    /// The file's contents in a format.
    ///
    /// # Errors
    /// What the format cannot hold: a parameter named as one of its fields, two configurations with one key, a time beyond 1e16 s.
    pub fn to_text(&self, format: Format) -> Result<String, DatasetError> {
        match format {
            Format::KernelTuner => self.to_kernel_tuner(),
            Format::T4 => self.to_t4(),
        }
    }
}

/// The values of a parameter; those of the entries become floats where one is.
fn param(name: &str, at: usize, entries: &mut [Entry]) -> ExportParam {
    let is_float = |e: &Entry| matches!(e.config[at], Value::Float(_));
    if entries.iter().any(is_float) {
        for entry in &mut *entries {
            if let Value::Int(i) = entry.config[at] {
                entry.config[at] = Value::Float(i as f64);
            }
        }
    }
    let mut seen = BTreeSet::new();
    let all = entries.iter().map(|e| &e.config[at]);
    let values = sorted(all.filter(|v| seen.insert(v.to_string())).cloned().collect());
    ExportParam { name: name.to_owned(), values }
}

/// The input as Kernel Tuner's problem size, which has at most three numbers.
fn sizes(input: &Config) -> Vec<u64> {
    let size = |value: &Value| value.as_int().and_then(|i| u64::try_from(i).ok()).filter(|i| *i > 0);
    let sizes: Option<Vec<u64>> = input.0.iter().map(|(_, value)| size(value)).collect();
    sizes.filter(|s| (1..=3).contains(&s.len())).unwrap_or_else(|| vec![1])
}
