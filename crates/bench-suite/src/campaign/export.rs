//! The samples as a dataset that other programs read.

use super::{Campaign, CampaignError, FILES};
use tilewright_core::objective::Objective;
use tilewright_datasets::{Dataset, Record};
use tilewright_runtime::log::CampaignLog;

/// Writes the measurements of the log as a table with its description; how many rows. An emulator's costs are no times and
/// make no dataset.
pub(super) fn export(campaign: &Campaign<'_>) -> Result<usize, CampaignError> {
    if campaign.objective != Objective::default() {
        return Ok(0);
    }
    let out = &campaign.settings.out;
    let (_, samples) = CampaignLog::read(&out.join(FILES[3]))?;
    let device = campaign.spec().name.clone();
    let record = |s: tilewright_runtime::log::Sample| Record {
        device: device.clone(),
        variant: None,
        input: s.input,
        config: s.config,
        outcome: s.outcome,
        clock_s: None,
    };
    let records: Vec<Record> = samples.into_iter().map(record).collect();
    let table = out.join(FILES[4]);
    let damaged = |e: tilewright_datasets::DatasetError| CampaignError::Damaged {
        file: table.display().to_string(),
        message: e.to_string(),
    };
    let dataset = Dataset::from_records(&records).map_err(damaged)?;
    dataset.write(&table).map_err(damaged)?;
    Ok(dataset.len())
}
