//! The stages in their order, with their shares of the time.

use super::state::State;
use super::{Campaign, CampaignError, Deadline, collect, contest, linear, micro, pool, rows, verify};
use crate::tasks::TaskSet;
use std::sync::{Arc, MutexGuard, PoisonError};
use tilewright_core::device::{Device, DeviceSpec};
use tilewright_core::dtype::DType;
use tilewright_core::id::ComputationId;
use tilewright_core::problem::AnyKernel;
use tilewright_core::space::Config;
use tilewright_runtime::tune::TunePaths;

/// How far a stage came.
pub(super) struct Progress {
    pub(super) done: bool,
    pub(super) note: String,
}

pub(super) struct StageKind {
    /// None for the table, which has the name of the computation's usual tasks.
    own_name: Option<&'static str>,
    /// Share of the time, among the stages that are left.
    pub(super) share: f64,
    pub(super) run: fn(&Campaign<'_>, &mut State, Deadline<'_>) -> Result<Progress, CampaignError>,
    /// Whether a finished stage has more to do: new samples to fit on, new rows to judge.
    pub(super) is_open: fn(&Campaign<'_>, &State) -> bool,
}

impl StageKind {
    /// The name in a campaign of this computation.
    pub(super) fn name(&self, computation: &ComputationId) -> &'static str {
        self.own_name.unwrap_or_else(|| table(computation).stage())
    }
}

const fn stage(
    own_name: &'static str,
    share: f64,
    run: fn(&Campaign<'_>, &mut State, Deadline<'_>) -> Result<Progress, CampaignError>,
) -> StageKind {
    StageKind { own_name: Some(own_name), share, run, is_open: |_, _| false }
}

pub(super) const STAGES: [StageKind; 11] = [
    stage("doctor", 0.03, micro::doctor),
    stage("verify", 0.12, verify::run),
    stage("collect", 0.35, collect::run),
    StageKind { is_open: collect::has_more, ..stage("fit", 0.12, collect::fit) },
    StageKind { own_name: None, ..stage("", 0.22, contest::table) },
    stage(rows::SWEEP, 0.07, contest::sweep),
    stage(rows::TYPES, 0.20, contest::types),
    stage(rows::DEEPBENCH, 0.05, contest::deepbench),
    StageKind { is_open: pool::stage::has_more, ..stage(pool::stage::POOL, 0.03, pool::stage::run) },
    stage("micro", 0.03, micro::run),
    stage("linear", 0.10, linear::run),
];

/// The usual tasks of a computation.
pub(super) fn table(computation: &ComputationId) -> TaskSet {
    TaskSet::of(computation)[0]
}

/// Names of the stages in their order. The table is `table4` of GEMM, `table5` of convolutions, and `tasks` of other computations.
pub const STAGE_NAMES: [&str; 13] = [
    "doctor",
    "verify",
    "collect",
    "fit",
    "table4",
    "table5",
    "tasks",
    rows::SWEEP,
    rows::TYPES,
    rows::DEEPBENCH,
    pool::stage::POOL,
    "micro",
    "linear",
];

/// Names of the stages of a campaign of this computation, in their order.
pub fn stage_names(computation: &ComputationId) -> Vec<&'static str> {
    STAGES.iter().map(|stage| stage.name(computation)).collect()
}

/// A class with its name.
fn named(class: Config) -> (String, Config) {
    let name = class.0.iter().map(|(_, value)| value.to_string()).collect::<Vec<_>>().join(" ");
    (if class.0.is_empty() { "all".into() } else { name }, class)
}

impl Campaign<'_> {
    /// Whether a stage was asked for.
    pub(super) fn wants(&self, stage: &str) -> bool {
        let wanted = &self.settings.stages;
        wanted.is_empty() || wanted.iter().any(|name| name == stage)
    }

    /// What the kernels compute.
    pub(super) fn computation(&self) -> ComputationId {
        self.kernels[0].computation()
    }

    /// The log and the profile of each kernel.
    pub fn paths(&self) -> Vec<TunePaths> {
        let file = |kernel: &&dyn AnyKernel, ending| self.settings.out.join(format!("{}.{ending}", kernel.id()));
        self.kernels.iter().map(|k| TunePaths { log: file(k, "log"), profile: file(k, "profile") }).collect()
    }

    /// The classes of inputs that are verified and compared apart, by name. Of convolutions f16 is one more where a kernel takes it.
    pub(super) fn classes(&self) -> Vec<(String, Config)> {
        let half = Config(vec![("dtype".to_owned(), DType::F16.name().into())]);
        let known = self.kernels[0].classes();
        let more =
            (self.computation().as_str() == "conv" && !known.contains(&half) && self.takes(&half)).then_some(half);
        known.into_iter().chain(more).map(named).collect()
    }

    /// The classes of products besides those that all kernels have, as far as a kernel takes them, those that most people ask for first.
    pub(super) fn other_types(&self) -> Vec<(String, Config)> {
        const TYPES: [&[(&str, &str)]; 7] = [
            &[("dtype", "f16")],
            &[("dtype", "bf16")],
            &[("dtype", "f32"), ("accuracy", "tf32")],
            &[("dtype", "i8")],
            &[("dtype", "c32")],
            &[("dtype", "f16"), ("acc", "f16")],
            &[("dtype", "c64")],
        ];
        let class = |fields: &[(&str, &str)]| {
            Config(fields.iter().map(|&(name, value)| (name.to_owned(), value.into())).collect())
        };
        let products = TYPES.iter().filter(|_| self.computation().as_str() == "gemm").map(|fields| class(fields));
        products.filter(|class| self.takes(class)).map(named).collect()
    }

    /// Whether a kernel takes the usual tasks with these fields.
    fn takes(&self, fixed: &Config) -> bool {
        let (tasks, spec) = (table(&self.computation()).tasks(self.kernels[0], fixed), self.spec());
        let Some(task) = tasks.ok().and_then(|tasks| tasks.into_iter().next()) else { return false };
        self.kernels.iter().any(|kernel| kernel.problem(&spec, &task.input).is_ok())
    }

    /// The facts of the device.
    pub(super) fn spec(&self) -> Arc<DeviceSpec> {
        self.device().spec().clone()
    }

    /// The device that all stages use.
    ///
    /// # Panics
    /// If the campaign was given none.
    pub(super) fn device(&self) -> MutexGuard<'_, Box<dyn Device>> {
        self.devices[0].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_names_are_those_of_all_computations() {
        let of = |computation: &'static str| stage_names(&ComputationId::new(computation));
        let after = ["sweep", "types", "deepbench", "pool", "micro", "linear"];
        assert_eq!(of("gemm"), [&["doctor", "verify", "collect", "fit", "table4"][..], &after].concat());
        assert_eq!((of("conv")[4], of("spmv")[4]), ("table5", "tasks"));
        let all: BTreeSet<&str> = ["gemm", "conv", "spmv"].into_iter().flat_map(of).collect();
        assert_eq!(all, STAGE_NAMES.into_iter().collect());
    }
}
