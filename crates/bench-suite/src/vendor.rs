//! Programs on a device beside the vendor's libraries: every result is checked first, then all are timed in rounds on the
//! same buffers.

use crate::compare::{Outcome, Time};
use crate::exact::ExactProduct;
use crate::report::TaskReport;
use crate::tasks::Task;
use std::sync::Arc;
use std::time::Duration;
use tilewright_core::buffer::Filling;
use tilewright_core::computation::Computation;
use tilewright_core::data::Data;
use tilewright_core::device::Device;
use tilewright_core::measurement::Timing;
use tilewright_core::objective::Objective;
use tilewright_core::problem::{MeasureError, Problem};
use tilewright_core::program::{DeviceError, LibraryCall, Program};
use tilewright_ops::gemm::{Gemm, GemmInput};

/// The vendor's libraries that are looked for: the plain interface, and the one that tells its candidates.
pub const LIBRARIES: [&str; 2] = ["cublas", "cublaslt"];

/// A configuration this many times slower than the best so far is cut off.
pub(crate) const CUT_OFF: f64 = 2.5;

/// Contenders by name.
pub type Contenders = Vec<(String, Program)>;

/// How programs on a device are checked and compared.
#[derive(Clone, Copy)]
pub struct Vendors<'a> {
    /// What is compared: the time, unless the device has no clock.
    pub objective: &'a Objective,
    /// Rounds, each contender timed once in each.
    pub rounds: usize,
    /// Seed of the data.
    pub seed: u64,
}

impl Vendors<'_> {
    /// Puts down data to time on.
    ///
    /// # Errors
    /// Memory that runs out.
    pub fn upload(&self, device: &mut dyn Device, problem: &dyn Problem) -> Result<(), DeviceError> {
        device.upload(&problem.data(self.seed))
    }

    /// The cost of a program on the data held, cut off far beyond `best`; None where it fails.
    ///
    /// # Errors
    /// A device that failed.
    pub fn cost(
        &self,
        device: &mut dyn Device,
        program: &Program,
        best: Option<f64>,
    ) -> Result<Option<f64>, DeviceError> {
        match device.time(program, &self.policy(best)) {
            Ok(measurement) => Ok(self.objective.cost(&measurement)),
            Err(MeasureError::Failed(failure)) => {
                tracing::debug!(%failure);
                Ok(None)
            }
            Err(MeasureError::Device(error)) => Err(error),
        }
    }

    pub(crate) fn policy(&self, best: Option<f64>) -> Timing {
        let timed = best.filter(|_| *self.objective == Objective::default());
        Timing {
            warmup: 1,
            min_repeats: 3,
            max_repeats: 8,
            relative_error: 0.01,
            max_time: Duration::from_millis(15),
            cut_off: timed.and_then(|s| Duration::try_from_secs_f64(s * CUT_OFF).ok()),
            ..Timing::default()
        }
    }

    /// Runs on small integers, whose result is exact whatever the order of summation.
    ///
    /// # Errors
    /// A device that is gone; a program that fails is a wrong one.
    pub fn check(
        &self,
        device: &mut dyn Device,
        problem: &dyn Problem,
        input: &GemmInput,
        program: &Program,
    ) -> Result<Result<(), String>, DeviceError> {
        let work = Arc::new(problem.workload(Filling::Exact, self.seed));
        let exact = ExactProduct::new(input, &work);
        let ran = device.upload(&Data::Given(work)).and_then(|()| device.run(program));
        match ran.and_then(|()| device.read()) {
            Ok(after) => Ok(exact.check(&after).map_err(|e| e.to_string())),
            Err(error @ (DeviceError::Missing { .. } | DeviceError::Run(_))) => Err(error),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// The vendor's default of each library and the best of all its candidates, as far as they are right; and what is missing.
    ///
    /// # Errors
    /// A device that failed.
    pub fn libraries(
        &self,
        device: &mut dyn Device,
        libraries: &[&str],
        problem: &dyn Problem,
        input: &GemmInput,
    ) -> Result<(Contenders, Vec<String>), DeviceError> {
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for &library in libraries {
            let call = |option| LibraryCall { library: library.into(), option, input: Gemm.words(input) };
            let options = match device.options(&call(0)) {
                Ok(options) => options,
                Err(error) => {
                    missing.push(format!("{library}: {error}"));
                    continue;
                }
            };
            let best = self.best_option(device, problem, options, &call)?;
            let named = [(library.to_owned(), 0), (format!("{library}-best"), best)];
            for (name, option) in named.into_iter().take(if options > 1 { 2 } else { 1 }) {
                let program = Program::library(call(option));
                match self.check(device, problem, input, &program)? {
                    Ok(()) => found.push((name, program)),
                    Err(message) => missing.push(format!("{name}: {message}")),
                }
            }
        }
        Ok((found, missing))
    }

    fn best_option(
        &self,
        device: &mut dyn Device,
        problem: &dyn Problem,
        options: u32,
        call: &dyn Fn(u32) -> LibraryCall,
    ) -> Result<u32, DeviceError> {
        let mut best = (0, f64::INFINITY);
        self.upload(device, problem)?;
        for option in 0..options {
            let cost = self.cost(device, &Program::library(call(option)), None)?;
            if let Some(cost) = cost.filter(|c| *c < best.1) {
                best = (option, cost);
            }
        }
        Ok(best.0)
    }

    /// The costs of each contender over rounds in rotating order, on the same buffers; empty for one that fails.
    ///
    /// # Errors
    /// A device that failed.
    pub fn compare(
        &self,
        device: &mut dyn Device,
        problem: &dyn Problem,
        contenders: &[(String, Program)],
    ) -> Result<Vec<Vec<f64>>, DeviceError> {
        let mut costs: Vec<Vec<f64>> = vec![Vec::new(); contenders.len()];
        self.upload(device, problem)?;
        for round in 0..self.rounds.max(1) {
            for turn in 0..contenders.len() {
                let at = (round + turn) % contenders.len();
                costs[at].extend(self.cost(device, &contenders[at].1, None)?);
            }
        }
        Ok(costs)
    }

    /// One task: our program and those of the `libraries`, each checked before it is timed.
    ///
    /// # Errors
    /// A device that failed.
    pub fn task(
        &self,
        device: &mut dyn Device,
        problem: &dyn Problem,
        task: &Task,
        ours: (&str, Program),
        libraries: &[&str],
    ) -> Result<TaskReport, DeviceError> {
        let mut contenders = vec![(ours.0.to_owned(), ours.1)];
        let mut refused = Vec::new();
        if let Err(message) = self.check(device, problem, &task.input, &contenders[0].1)? {
            refused.push((contenders.remove(0).0, message));
        }
        let (found, missing) = self.libraries(device, libraries, problem, &task.input)?;
        missing.iter().for_each(|reason| tracing::warn!(task = task.name, reason, "no baseline"));
        contenders.extend(found);
        let costs = self.compare(device, problem, &contenders)?;
        let timed = contenders.into_iter().zip(costs).map(|((name, _), costs)| Outcome { name, time: time(costs) });
        let wrong = refused.into_iter().map(|(name, message)| Outcome { name, time: Err(message) });
        Ok(TaskReport::new(task, Some(ours.0), &wrong.chain(timed).collect::<Vec<_>>()))
    }
}

fn time(mut costs: Vec<f64>) -> Result<Time, String> {
    costs.sort_by(f64::total_cmp);
    let median_s = median(&costs).ok_or("it could not be timed")?;
    Ok(Time { median_s, least_s: costs[0], most_s: costs[costs.len() - 1], calls: costs.len() })
}

/// The median of sorted costs.
pub(crate) fn median(sorted: &[f64]) -> Option<f64> {
    let count = sorted.len();
    (count > 0).then(|| f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]))
}
