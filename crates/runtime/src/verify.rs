//! Checking results against a reference in higher precision, before anything is trusted.

use std::sync::{Arc, OnceLock};
use tilewright_core::buffer::{Buffer, BufferSpec, Buffers, Expected, Filling, Role, Verdict, Workload, Written};
use tilewright_core::data::Data;
use tilewright_core::device::{Device, GridPart};
use tilewright_core::problem::Problem;
use tilewright_core::program::DeviceError;
use tilewright_core::space::Illegal;

/// What results are checked on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifySettings {
    /// The kinds of data, one run each.
    pub fillings: Vec<Filling>,
    /// Seed of the data.
    pub seed: u64,
}

impl Default for VerifySettings {
    fn default() -> Self {
        Self { fillings: vec![Filling::Exact, Filling::Real], seed: 0x7157 }
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// On which data.
    pub filling: Filling,
    /// How the result compares.
    pub verdict: Verdict,
    /// An input buffer that was overwritten.
    pub overwritten: Option<&'static str>,
}

/// The result of all checks of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Verification {
    /// One per filling, up to the first that was wrong.
    pub checks: Vec<Checked>,
    /// What the last of them left in the buffers.
    pub after: Buffers,
}

impl Verification {
    /// Whether everything was right.
    pub fn is_right(&self) -> bool {
        self.checks.iter().all(|c| c.verdict.is_right() && c.overwritten.is_none())
    }

    /// Largest error relative to the largest reference, over all checks.
    pub fn max_rel_error(&self) -> f64 {
        self.checks.iter().map(|c| c.verdict.max_rel_error).fold(0.0, f64::max)
    }

    /// Largest error as a fraction of its bound, over all checks.
    pub fn worst_of_bound(&self) -> f64 {
        self.checks.iter().map(|c| c.verdict.worst_of_bound).fold(0.0, f64::max)
    }

    /// What is wrong, for people; None if nothing is.
    pub fn complaint(&self) -> Option<String> {
        let wrong = self.checks.iter().find(|c| !c.verdict.is_right() || c.overwritten.is_some())?;
        if let Some(name) = wrong.overwritten {
            return Some(format!("input buffer {name:?} was overwritten ({:?} data)", wrong.filling));
        }
        let v = &wrong.verdict;
        let first = v.first.as_ref().map_or(String::new(), |m| {
            format!(
                "; element {} of buffer {}: {:e} where {:e} +- {:e} belongs",
                m.index, m.buffer, m.found, m.expected, m.bound
            )
        });
        let elements = if v.wrong == 1 { "element" } else { "elements" };
        Some(format!("{} wrong {elements} ({:?} data){first}", v.wrong, wrong.filling))
    }
}

/// Why a configuration could not be checked.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// It is not legal.
    #[error(transparent)]
    Illegal(#[from] Illegal),
    /// The device reports a failure.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Checks configurations of one input. Data and references are made when first needed, once.
pub struct Verifier {
    settings: VerifySettings,
    cases: Vec<Case>,
}

/// Data and reference of one filling.
#[derive(Clone)]
struct Case {
    filling: Filling,
    work: Arc<Workload>,
    /// Made when it is first needed; none where it is made part by part for each comparison.
    expected: Option<Arc<OnceLock<Expected>>>,
}

/// Data are kept for the next configuration, and their reference in higher precision is, up to this many bytes together, or an eighth of the
/// memory that the system has to give, if that is more. Larger ones are made again: a reference takes three times the memory of its
/// results in f32, and those of a large product may not fit twice.
const MOST_HELD: usize = 150 << 20;

fn most_held() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    *MOST.get_or_init(|| {
        let said = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        MOST_HELD.max(available(&said).unwrap_or(0) / 8)
    })
}

/// Bytes of memory that may be had, of what the system says.
fn available(said: &str) -> Option<usize> {
    let line = said.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1 << 10)
}

/// Bytes that a reference takes for each element: the value and its bound.
const OF_REFERENCE: usize = size_of::<f64>() + size_of::<f32>();

impl Verifier {
    /// A verifier for one input.
    pub fn new(settings: VerifySettings) -> Self {
        Self { settings, cases: Vec::new() }
    }

    /// Runs a configuration on fresh data and compares. Output buffers hold NaN before the run, so that an element that
    /// is not written shows; buffers that are only read must be unchanged afterwards.
    ///
    /// # Errors
    /// A configuration that is not legal, or what the device reports. A wrong result is no error.
    pub fn check(
        &mut self,
        device: &mut dyn Device,
        problem: &dyn Problem,
        point: &[u16],
    ) -> Result<Verification, VerifyError> {
        let program = problem.program(&problem.space().check(point)?);
        let mut out = Verification::default();
        for wanted in self.settings.fillings.clone() {
            let filling = problem.checked_on(wanted);
            if out.checks.iter().any(|checked| checked.filling == filling) {
                continue;
            }
            // What an earlier filling left is of no use now, and large.
            out.after = Buffers::new();
            let case = self.case(problem, filling);
            device.upload(&Data::Given(case.work.clone()))?;
            device.run(&program)?;
            let after = device.read()?;
            let left = Left { after: &after, parts: device.parts() };
            let checked = Checked {
                filling: case.filling,
                verdict: verdict(problem, &case, &left)?,
                overwritten: overwritten(&case.work, &after),
            };
            out.checks.push(checked);
            out.after = after;
            if !out.is_right() {
                break;
            }
        }
        Ok(out)
    }

    fn case(&mut self, problem: &dyn Problem, filling: Filling) -> Case {
        if let Some(known) = self.cases.iter().find(|case| case.filling == filling) {
            return known.clone();
        }
        let work = Arc::new(problem.workload(filling, self.settings.seed));
        if held(&work) > most_held() {
            return Case { filling, work, expected: None };
        }
        let case = Case { filling, work, expected: Some(Arc::default()) };
        self.cases.push(case.clone());
        case
    }
}

/// Bytes of data and reference.
fn held(work: &Workload) -> usize {
    let of = |s: &BufferSpec| s.len.saturating_mul(s.dtype.size());
    let referred = work.specs.iter().filter(|s| s.role != Role::In).map(|s| s.len.saturating_mul(OF_REFERENCE));
    work.specs.iter().map(of).chain(referred).fold(0, usize::saturating_add)
}

/// What a device left of data, and the parts of the grid that ran where not all did.
struct Left<'a> {
    after: &'a Buffers,
    parts: Option<Vec<GridPart>>,
}

impl Left<'_> {
    fn expected(&self, problem: &dyn Problem, before: &Buffers, scalars: &[f64]) -> Result<Expected, DeviceError> {
        match &self.parts {
            Some(parts) => problem.reference_near(before, scalars, &Written { after: self.after, parts }),
            None => problem.reference(before, scalars),
        }
    }

    /// What was not written says nothing where only a part ran.
    fn verdict(&self, expected: &Expected, before: &Buffers) -> Verdict {
        match &self.parts {
            Some(_) => expected.compare_written(before, self.after),
            None => expected.compare(self.after),
        }
    }
}

/// How a result compares. References of small data are kept for the next configuration.
fn verdict(problem: &dyn Problem, case: &Case, left: &Left<'_>) -> Result<Verdict, DeviceError> {
    let Workload { buffers, scalars, .. } = &*case.work;
    let verdict = match (&left.parts, &case.expected) {
        (None, None) => problem.compare(buffers, scalars, left.after)?,
        (None, Some(known)) => {
            let expected = match known.get() {
                Some(expected) => expected,
                None => {
                    let made = problem.reference(buffers, scalars)?;
                    known.get_or_init(|| made)
                }
            };
            expected.compare(left.after)
        }
        (Some(_), _) => left.verdict(&left.expected(problem, buffers, scalars)?, buffers),
    };
    if verdict.is_right() { Ok(verdict) } else { within_rounding(problem, case, left, verdict) }
}

/// References of nudged data, at most: each takes one of two equal numbers either way.
const NUDGES: u64 = 24;

/// After so many without one more element that is right, the result is wrong.
const NUDGES_IN_VAIN: u64 = 4;

/// The verdict of a result that is wrong for its data, unless it is right for data within their rounding.
fn within_rounding(
    problem: &dyn Problem,
    case: &Case,
    left: &Left<'_>,
    wrong: Verdict,
) -> Result<Verdict, DeviceError> {
    let Workload { buffers, scalars, .. } = &*case.work;
    let (mut expected, mut fewest, mut in_vain) = (None, wrong.wrong, 0);
    for seed in 0..NUDGES {
        let Some(nudged) = problem.nudged(buffers, seed) else { return Ok(wrong) };
        let other = left.expected(problem, &nudged, scalars)?;
        let expected = match &mut expected {
            Some(expected) => expected,
            None => expected.insert(left.expected(problem, buffers, scalars)?),
        };
        expected.widen(&other);
        let verdict = left.verdict(expected, buffers);
        if verdict.is_right() {
            // The error is that beside the reference of these data: the middle of many is no reference.
            return Ok(Verdict { within_rounding: wrong.wrong, max_rel_error: wrong.max_rel_error, ..verdict });
        }
        in_vain = if verdict.wrong < fewest { 0 } else { in_vain + 1 };
        if in_vain == NUDGES_IN_VAIN {
            break;
        }
        fewest = fewest.min(verdict.wrong);
    }
    Ok(wrong)
}

fn overwritten(work: &Workload, after: &[Buffer]) -> Option<&'static str> {
    let changed = |i: usize| work.buffers[i].bytes() != after[i].bytes();
    let inputs = work.specs.iter().enumerate().filter(|(_, s)| s.role == Role::In);
    inputs.filter(|(i, _)| changed(*i)).map(|(_, s)| s.name).next()
}

#[cfg(test)]
mod tests;
