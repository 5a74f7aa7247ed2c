//! Datasets from cases of choice in memory: what `choices` makes of a table, the other way round.

use crate::dataset::Dataset;
use crate::error::DatasetError;
use crate::schema::{Columns, Status, Time, TimeUnit};
use tilewright_core::choice::{ChoiceError, ChoiceSet};
use tilewright_core::expr::Value;

impl Dataset {
    /// A table of the cases of some devices, whose candidates are named variants: columns `device`, the features of the input,
    /// `variant`, `time_s`, `ok` (1, or 0 for what has no time) and `group`. A table does not say which features are flags: as
    /// everywhere, those that are 0 or 1 or negative somewhere.
    ///
    /// # Errors
    /// Candidates with features, devices with different features, a feature with the name of another column.
    pub fn from_choices(devices: &[(&str, &ChoiceSet)]) -> Result<Self, DatasetError> {
        let input: Vec<String> = devices
            .first()
            .map_or_else(Vec::new, |(_, set)| set.schema().input.iter().map(|f| f.name.clone()).collect());
        check(devices, &input)?;
        let columns = Columns {
            device: Some("device".into()),
            input,
            config: Vec::new(),
            variant: Some("variant".into()),
            time: Time { column: "time_s".into(), unit: TimeUnit::Seconds },
            status: Some(Status { column: "ok".into(), ok: Value::Int(1) }),
            group: Some("group".into()),
            clock: None,
        };
        let mut rows = Vec::new();
        for (device, set) in devices {
            for case in set.cases() {
                for trial in &case.trials {
                    let mut row = vec![Some(Value::from(*device))];
                    row.extend(case.features.iter().map(|&v| number(v)));
                    row.push(Some(Value::from(trial.candidate.variant.as_str())));
                    row.push(trial.cost.map(Value::Float));
                    row.push(Some(Value::Int(i64::from(trial.cost.is_some()))));
                    row.push(Some(Value::Int(i64::from(case.group))));
                    rows.push((row, trial.cost.unwrap_or(f64::NAN)));
                }
            }
        }
        Self::made(columns, rows)
    }
}

/// The number with the fewest digits that reads back as the feature; none where it is missing.
fn number(feature: f32) -> Option<Value> {
    feature.is_finite().then(|| Value::parse(&feature.to_string()))
}

fn check(devices: &[(&str, &ChoiceSet)], input: &[String]) -> Result<(), DatasetError> {
    for (device, set) in devices {
        ChoiceError::expect_width(0, &format!("a candidate of {device}"), set.schema().config.len(), 0)?;
        ChoiceError::expect_width(0, &format!("the input of {device}"), set.schema().input.len(), input.len())?;
        if let Some((own, _)) = set.schema().input.iter().zip(input).find(|(own, name)| own.name != **name) {
            let message = format!("{device} has this feature where others have another");
            return Err(DatasetError::Record { record: 0, field: own.name.clone(), message });
        }
    }
    Ok(())
}
