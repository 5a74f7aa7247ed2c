//! The stages in their order, with their shares of the time.

use super::state::State;
use super::{Campaign, CampaignError, Deadline, collect, contest, linear, micro, verify};
use std::sync::{Arc, MutexGuard, PoisonError};
use tilewright_core::device::{Device, DeviceSpec};
use tilewright_core::problem::AnyKernel;
use tilewright_core::space::Config;
use tilewright_runtime::tune::TunePaths;

/// How far a stage came.
pub(super) struct Progress {
    pub(super) done: bool,
    pub(super) note: String,
}

pub(super) struct StageKind {
    pub(super) name: &'static str,
    /// Share of the time, among the stages that are left.
    pub(super) share: f64,
    pub(super) run: fn(&Campaign<'_>, &mut State, Deadline<'_>) -> Result<Progress, CampaignError>,
    /// Whether a finished stage has more to do: new samples to fit on.
    reopens: bool,
}

impl StageKind {
    pub(super) fn is_open(&self, state: &State) -> bool {
        self.reopens && state.samples as f64 > state.fitted as f64 * 1.1
    }
}

const fn stage(
    name: &'static str,
    share: f64,
    run: fn(&Campaign<'_>, &mut State, Deadline<'_>) -> Result<Progress, CampaignError>,
) -> StageKind {
    StageKind { name, share, run, reopens: false }
}

pub(super) const STAGES: [StageKind; 8] = [
    stage("doctor", 0.03, micro::doctor),
    stage("verify", 0.12, verify::run),
    stage("collect", 0.45, collect::run),
    StageKind { reopens: true, ..stage("fit", 0.12, collect::fit) },
    stage("table4", 0.18, contest::table4),
    stage("sweep", 0.07, contest::sweep),
    stage("micro", 0.03, micro::run),
    stage("linear", 0.10, linear::run),
];

/// Names of the stages in their order.
pub const STAGE_NAMES: [&str; STAGES.len()] = {
    let mut names = [""; STAGES.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = STAGES[i].name;
        i += 1;
    }
    names
};

impl Campaign<'_> {
    /// Whether a stage was asked for.
    pub(super) fn wants(&self, stage: &StageKind) -> bool {
        let wanted = &self.settings.stages;
        wanted.is_empty() || wanted.iter().any(|name| name == stage.name)
    }

    /// The log and the profile of each kernel.
    pub fn paths(&self) -> Vec<TunePaths> {
        let file = |kernel: &&dyn AnyKernel, ending| self.settings.out.join(format!("{}.{ending}", kernel.id()));
        self.kernels.iter().map(|k| TunePaths { log: file(k, "log"), profile: file(k, "profile") }).collect()
    }

    /// The classes of inputs that are verified and compared apart, by name.
    pub(super) fn classes(&self) -> Vec<(String, Config)> {
        let name = |class: &Config| class.0.iter().map(|(_, value)| value.to_string()).collect::<Vec<_>>().join(" ");
        let named = |class: Config| (if class.0.is_empty() { "all".into() } else { name(&class) }, class);
        self.kernels[0].classes().into_iter().map(named).collect()
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
