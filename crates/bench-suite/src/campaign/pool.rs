//! The mixed pool of the tables' rows, judged.

use super::rows::{DEEPBENCH, SWEEP, TYPES, Tables};
use super::stages::{self, Progress};
use super::state::State;
use super::{Campaign, CampaignError, Deadline};
use crate::pool::{PoolScore, judge};

/// The stage of this name.
pub(super) const POOL: &str = "pool";

/// Needs the host only. It is done once the stages are whose rows it judges, as far as they are wanted.
pub(super) fn run(
    campaign: &Campaign<'_>,
    state: &mut State,
    deadline: Deadline<'_>,
) -> Result<Progress, CampaignError> {
    if deadline.over() {
        return Ok(Progress { done: false, note: "no time left".into() });
    }
    let table = stages::table(&campaign.computation()).stage();
    let whole = [table, SWEEP, TYPES, DEEPBENCH].iter().all(|stage| !campaign.wants(stage) || state.is_done(stage));
    let out = &campaign.settings.out;
    let mut tables = Tables::read(out)?;
    let note = match judge(&tables.rows, &campaign.kernels, &campaign.spec(), campaign.settings.seed) {
        Err(error) => error.to_string(),
        Ok(report) => {
            let one = |PoolScore { way, over_default, .. }: &PoolScore| {
                format!("{way} {:.3}, worst {:.3}", over_default.geomean, over_default.worst)
            };
            let scores: Vec<String> = report.scores.iter().map(one).collect();
            let note = format!("{} tasks; over the vendor's default: {}", report.tasks, scores.join("; "));
            tables.pool = Some(report);
            tables.write(out, state)?;
            note
        }
    };
    Ok(Progress { done: whole, note })
}
