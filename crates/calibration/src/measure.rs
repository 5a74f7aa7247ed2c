//! Timing cases on a device.

use std::time::{Duration, Instant};
use tilewright_core::data::Data;
use tilewright_core::device::{Device, classify};
use tilewright_core::measurement::{Failure, FailureKind, Timing};
use tilewright_core::problem::MeasureError;
use tilewright_core::program::Program;
use tilewright_loops::Instance;
use tilewright_loops::library::{Case, empty};

/// A case with its time.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The case.
    pub case: Case,
    /// Least seconds of one run.
    pub time_s: f64,
}

/// Visits that must agree.
const AGREEING: usize = 3;

/// Makes a device's programs of instances.
pub type Lower<'a> = dyn Fn(&Instance) -> Result<Program, String> + 'a;

/// How cases are timed.
#[derive(Clone, Debug)]
pub struct LinearMeasure {
    /// How often a case is visited at most; other cases lie between two visits, so that what disturbs one disturbs no other.
    pub rounds: u32,
    /// A case is visited no more once three visits are within this fraction of the least.
    pub settled: f64,
    /// One visit, its first runs dropped.
    pub policy: Timing,
    /// Seed of the data.
    pub seed: u64,
    /// No case is begun after this time; those without a time are left out.
    pub limit: Duration,
}

impl Default for LinearMeasure {
    fn default() -> Self {
        let policy = Timing {
            warmup: 2,
            min_repeats: 3,
            max_repeats: 9,
            max_time: Duration::from_millis(20),
            ..Timing::default()
        };
        Self { rounds: 20, settled: 0.01, policy, seed: 0, limit: Duration::from_secs(110) }
    }
}

impl LinearMeasure {
    /// As the paper times on a GPU: one visit of thirty runs, of which four are dropped.
    pub fn of_gpu() -> Self {
        let policy = Timing { warmup: 4, min_repeats: 26, max_repeats: 26, ..Timing::default() };
        Self { rounds: 1, policy, ..Self::default() }
    }

    /// Times cases, `progress` told how many visits are done of how many. Cases that have no code or fail are told and left
    /// out.
    ///
    /// # Errors
    /// A failed device.
    pub fn run(
        &self,
        device: &mut dyn Device,
        lower: &Lower<'_>,
        cases: &[Case],
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<(Vec<Measured>, Vec<String>), MeasureError> {
        let begun = Instant::now();
        let (mut programs, mut failures) = (Vec::new(), Vec::new());
        for case in cases {
            let program = lower(&case.instance);
            programs.push(program.map_err(|e| failures.push(format!("{}: {e}", super::case_name(case)))).ok());
        }
        let lowered: Vec<Program> = programs.iter().flatten().cloned().collect();
        device.precompile(&lowered);
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); cases.len()];
        let visits = cases.len() * self.rounds as usize;
        for visit in 0..visits {
            let i = visit % cases.len();
            if begun.elapsed() > self.limit {
                break;
            }
            progress(visit, visits);
            let Some(program) = &programs[i] else { continue };
            if self.is_settled(&times[i]) {
                continue;
            }
            let specs = cases[i].instance.buffers();
            let held = device.upload(&Data::Noise { specs, scalars: Vec::new(), seed: self.seed });
            // One case whose data do not fit must not end the others.
            match held.map_err(classify).and_then(|()| device.time(program, &self.policy)) {
                Ok(measurement) => times[i].push(measurement.time_s),
                Err(MeasureError::Failed(failure)) => {
                    failures.push(format!("{}: {failure}", super::case_name(&cases[i])));
                    programs[i] = None;
                }
                Err(error) => return Err(error),
            }
        }
        let least = times.iter().map(|all| all.iter().copied().reduce(f64::min));
        let measured = cases.iter().zip(least).zip(&programs).filter(|(_, program)| program.is_some());
        let measured =
            measured.filter_map(|((case, time_s), _)| Some(Measured { case: case.clone(), time_s: time_s? }));
        Ok((measured.collect(), failures))
    }

    fn is_settled(&self, times: &[f64]) -> bool {
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        times.iter().filter(|t| **t <= least * (1.0 + self.settled)).count() >= AGREEING
    }
}

/// Seconds of an empty kernel of one group.
///
/// # Errors
/// A failed device.
pub fn launch_overhead(device: &mut dyn Device, lower: &Lower<'_>, policy: &Timing) -> Result<f64, MeasureError> {
    let failed = |message| MeasureError::Failed(Failure { kind: FailureKind::Compile, message });
    let kernel = empty((16, 16)).map_err(|e| failed(e.to_string()))?;
    let instance = Instance::new(kernel, &[("n", 16)].into()).map_err(|e| failed(e.to_string()))?;
    let program = lower(&instance).map_err(failed)?;
    device.upload(&Data::Noise { specs: instance.buffers(), scalars: Vec::new(), seed: 0 })?;
    let mut least = f64::INFINITY;
    for _ in 0..3 {
        least = least.min(device.time(&program, policy)?.time_s);
    }
    Ok(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_settled_by_three_visits_near_the_least() {
        let how = LinearMeasure { settled: 0.01, ..LinearMeasure::default() };
        assert!(!how.is_settled(&[]));
        assert!(!how.is_settled(&[2.0, 2.0, 2.1]));
        assert!(how.is_settled(&[2.0, 2.01, 2.5, 2.02]));
        // A new least takes back what had agreed.
        assert!(!how.is_settled(&[2.0, 2.01, 2.02, 1.0]));
    }
}
