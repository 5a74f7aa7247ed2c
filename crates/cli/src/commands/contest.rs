//! What `tune`, `run` and `bench` compare with: the libraries that `--baselines` names, and how.

use crate::device::Opened;
use crate::failure::{Failure, Kind};
use crate::fields;
use crate::output::note;
use std::sync::Arc;
use tilewright_baselines::CoreChoice;
use tilewright_bench_suite::report::{Report, TaskReport};
use tilewright_bench_suite::tasks::Task;
use tilewright_core::device::DeviceSpec;
use tilewright_core::expr::Value;
use tilewright_core::id::{ComputationId, KernelId};
use tilewright_core::problem::{AnyKernel, Problem};
use tilewright_core::space::{Config, Point};
use tilewright_runtime::RuntimeError;
use tilewright_runtime::contest::{ContestSettings, Entrant};

/// Our name among the contenders.
const OURS: &str = "tilewright";

/// The libraries of a computation on a device, and how they are compared with.
pub(crate) struct Contest {
    pub(crate) libraries: Vec<Arc<dyn AnyKernel>>,
    pub(crate) settings: ContestSettings,
}

impl Contest {
    /// With the libraries that `--baselines` names.
    pub(crate) fn of(
        device: &DeviceSpec,
        computation: &ComputationId,
        selection: &str,
        seed: u64,
    ) -> Result<Self, Failure> {
        let libraries = tilewright_baselines::select(computation.as_str(), device, selection);
        let libraries = libraries.map_err(|e| Failure::new(Kind::Usage, "baselines", e))?;
        warn_of_cores(&libraries);
        Ok(Self { libraries, settings: ContestSettings::on(device, seed) })
    }

    /// Times the code of a point beside the libraries, every result checked first.
    pub(crate) fn task(
        &self,
        device: &mut Opened,
        problem: Box<dyn Problem>,
        point: &Point,
        task: &Task,
    ) -> Result<TaskReport, Failure> {
        let ours = Entrant { name: OURS.to_owned(), problem: problem.into(), point: point.clone() };
        Ok(TaskReport::measured(device, task, ours, &self.libraries, &self.settings)?)
    }

    /// The whole table.
    pub(crate) fn report(&self, device: &DeviceSpec, tasks: Vec<TaskReport>) -> Report {
        let mut names: Vec<String> = self.libraries.iter().map(|kernel| kernel.id().name().to_owned()).collect();
        let timed = tasks.iter().flat_map(|task| &task.baselines).map(|row| row.name.clone());
        for name in timed {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let dtype = tasks.first().and_then(|task| task.input.get("dtype")).map_or_else(String::new, Value::to_string);
        let peak = device.measured.get(&format!("peak_flops_{dtype}")).map(|peak| peak / 1e9);
        let threads = device.fact("threads").and_then(|t| usize::try_from(t).ok()).unwrap_or(1);
        Report::new(&dtype, threads, peak, names, tasks).with_libraries(&self.libraries)
    }
}

/// Says which libraries run a core that a variable asks for and that was not found to be their fastest: a machine may set it for everyone.
fn warn_of_cores(libraries: &[Arc<dyn AnyKernel>]) {
    let kernels: Vec<KernelId> = libraries.iter().map(|kernel| kernel.id()).collect();
    for identity in tilewright_baselines::identities(&kernels) {
        if let Some(CoreChoice::Asked(by)) = &identity.core_choice {
            note(format_args!("warning: {} may be slower than it can be here: {by} is set, unset it", identity.name));
        }
    }
}

/// The fields that every input of a command has: `--dtype`, and each `--field`.
pub(crate) fn fixed(dtype: Option<&String>, fields: &[String]) -> Result<Config, Failure> {
    let named = fields::parse(fields)?;
    let Some(dtype) = dtype.map(|dtype| Value::parse(dtype)) else { return Ok(named) };
    match named.get("dtype") {
        Some(other) if *other != dtype => {
            let message = format!("--dtype says {dtype}, --field {other}: leave one out");
            Err(Failure::new(Kind::Usage, "dtype", message))
        }
        Some(_) => Ok(named),
        None => Ok(Config([("dtype".to_owned(), dtype)].into_iter().chain(named.0).collect())),
    }
}

/// Whether a kernel just has no configuration for an input.
pub(crate) fn has_none(error: &RuntimeError) -> bool {
    use RuntimeError::{NothingLegal, NothingRight, NothingRuns};
    matches!(error, NothingLegal { .. } | NothingRuns { .. } | NothingRight { .. })
}
