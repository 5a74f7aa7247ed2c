//! The samples as a dataset that other programs read.

use super::files::damaged;
use super::{Campaign, CampaignError, FILES};
use tilewright_core::objective::Objective;
use tilewright_datasets::{Dataset, Record};
use tilewright_runtime::log::CampaignLog;

/// Writes the measurements of the logs as a table with its description; how many rows. An emulator's costs are no times and
/// make no dataset.
pub(super) fn export(campaign: &Campaign<'_>) -> Result<usize, CampaignError> {
    if campaign.objective != Objective::default() {
        return Ok(0);
    }
    let device = campaign.spec().name.clone();
    let mut records = Vec::new();
    for (kernel, paths) in campaign.kernels.iter().zip(campaign.paths()) {
        let variant = (campaign.kernels.len() > 1).then(|| kernel.id().to_string());
        records.extend(CampaignLog::read(&paths.log)?.1.into_iter().map(|s| Record {
            device: device.clone(),
            variant: variant.clone(),
            input: s.input,
            config: s.config,
            outcome: s.outcome,
            clock_s: None,
        }));
    }
    let table = campaign.settings.out.join(FILES[3]);
    let dataset = Dataset::from_records(&records).map_err(|e| damaged(&table, e))?;
    dataset.write(&table).map_err(|e| damaged(&table, e))?;
    Ok(dataset.len())
}
