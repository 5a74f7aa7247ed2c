//! The stage of a campaign that judges the pool of its tables' rows.

use super::{PoolError, PoolScore, judge};
use crate::campaign::rows::{DEEPBENCH, SWEEP, TYPES, Tables};
use crate::campaign::stages::{self, Progress};
use crate::campaign::state::State;
use crate::campaign::{Campaign, CampaignError, Deadline};

/// Its name.
pub(in crate::campaign) const POOL: &str = "pool";

/// Whether the tables have rows that were not judged. A file that cannot be read counts as none: the summary reads it too, and fails.
pub(in crate::campaign) fn has_more(campaign: &Campaign<'_>, state: &State) -> bool {
    Tables::read(&campaign.settings.out).is_ok_and(|tables| tables.rows.len() as u64 != state.judged)
}

/// Needs the host only. It is done once the stages are whose rows it judges, as far as they are wanted.
pub(in crate::campaign) fn run(
    campaign: &Campaign<'_>,
    state: &mut State,
    deadline: Deadline<'_>,
) -> Result<Progress, CampaignError> {
    let table = stages::table(&campaign.computation()).stage();
    let whole = [table, SWEEP, TYPES, DEEPBENCH].iter().all(|stage| !campaign.wants(stage) || state.is_done(stage));
    let out = &campaign.settings.out;
    let mut tables = Tables::read(out)?;
    let (seed, stop) = (campaign.settings.seed, || deadline.over());
    let judged = judge(&tables.rows, &campaign.kernels, &campaign.spec(), seed, &stop);
    let (is_final, note) = match &judged {
        Ok(report) => (true, format!("{} tasks; over the vendor's default: {}", report.tasks, line(&report.scores))),
        Err(error) => (!matches!(error, PoolError::Stopped), error.to_string()),
    };
    if is_final {
        (state.judged, tables.pool) = (tables.rows.len() as u64, judged.ok());
        tables.write(out, state)?;
    }
    Ok(Progress { done: whole && is_final, note })
}

fn line(scores: &[PoolScore]) -> String {
    let one = |PoolScore { way, over_default, .. }: &PoolScore| {
        format!("{way} {:.3}, worst {:.3}", over_default.geomean, over_default.worst)
    };
    scores.iter().map(one).collect::<Vec<_>>().join("; ")
}
