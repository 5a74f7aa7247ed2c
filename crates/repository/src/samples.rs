//! Configurations of a kernel with what they cost.

use crate::error::{Fault, RepositoryError};
use crate::record::Record;
use crate::training::merge;
use crate::{Key, Repository};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use tilewright_core::expr::Value;
use tilewright_core::feature::FeatureSchema;
use tilewright_core::objective::Objective;
use tilewright_core::space::Config;
use tilewright_core::training::TrainingSet;

/// Configurations of a kernel that were measured for one input. The rows of features are kept with them, so that nobody needs the
/// device, or the data that an input names, to learn from them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedSamples {
    /// Hash of the kernel's feature schema.
    pub schema: String,
    /// What the costs are of.
    pub objective: Objective,
    /// The input's fields.
    pub input: Config,
    /// The input's features; none where one is unknown.
    pub features: Vec<Option<f32>>,
    /// The names of the kernel's parameters.
    pub params: Vec<String>,
    /// The configurations.
    pub trials: Vec<RecordedTrial>,
}

/// One configuration: the values of the parameters, its features, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedTrial(pub Vec<Value>, pub Vec<Option<f32>>, pub RecordedOutcome);

/// What became of a configuration. Costs are positive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordedOutcome {
    /// It cost so much: seconds, or the objective's cost.
    Cost(f64),
    /// It was cut off when it had cost so much.
    AtLeast(f64),
    /// It failed.
    Failed,
}

impl RecordedSamples {
    pub(crate) fn check(
        &self,
        fault: impl Fn(String, String, &'static str) -> Result<(), RepositoryError>,
    ) -> Result<(), RepositoryError> {
        let Some(RecordedTrial(_, first, _)) = self.trials.first() else {
            return fault("the number of configurations".into(), "0".into(), "at least 1");
        };
        for RecordedTrial(values, features, outcome) in &self.trials {
            if values.len() != self.params.len() {
                return fault("the number of values".into(), values.len().to_string(), "the number of parameters");
            }
            if features.len() != first.len() {
                return fault("the number of features".into(), features.len().to_string(), "the same for all");
            }
            if let RecordedOutcome::Cost(cost) | RecordedOutcome::AtLeast(cost) = outcome
                && !(cost.is_finite() && *cost > 0.0)
            {
                return fault("the cost of a configuration".into(), cost.to_string(), "positive and finite");
            }
            if let Some(bad) = self.features.iter().chain(features).flatten().find(|v| !v.is_finite()) {
                return fault("a feature".into(), bad.to_string(), "finite, or missing");
            }
        }
        Ok(())
    }

    /// The configurations that ran, with their costs.
    pub fn costs(&self) -> impl Iterator<Item = (Config, f64)> {
        self.trials.iter().filter_map(|RecordedTrial(values, _, outcome)| match outcome {
            RecordedOutcome::Cost(cost) => {
                Some((Config(self.params.iter().cloned().zip(values.clone()).collect()), *cost))
            }
            _ => None,
        })
    }
}

impl Record {
    /// What of a record is not among what is known, with how much that is; it is known from then on.
    pub(crate) fn retain_new(self, known: &mut HashSet<blake3::Hash>) -> Option<(Self, usize)> {
        let Self::Samples(mut samples) = self else {
            return known.insert(hash(&self)).then_some((self, 1));
        };
        let trials = std::mem::take(&mut samples.trials);
        let about = hash(&samples);
        samples.trials = trials.into_iter().filter(|t| known.insert(hash(&(about.as_bytes(), t)))).collect();
        let count = samples.trials.len();
        (count > 0).then_some((Self::Samples(samples), count))
    }
}

fn hash(what: &impl Serialize) -> blake3::Hash {
    // What cannot be written is refused when it is appended.
    blake3::hash(&serde_json::to_vec(what).unwrap_or_default())
}

/// What a device recorded of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// The device.
    pub device: String,
    /// Its features.
    pub features: Config,
    /// Distinct inputs, each with all that was recorded of it.
    pub inputs: Vec<RecordedSamples>,
}

impl Sampled {
    /// The rows of a model, one group an input. Configurations that were cut off count with what they had cost.
    ///
    /// # Errors
    /// Features that are not those of the schema.
    pub fn rows(&self, schema: &FeatureSchema) -> Result<TrainingSet, RepositoryError> {
        let mut out = TrainingSet::new(schema.clone());
        let mut row = Vec::new();
        for (group, input) in self.inputs.iter().enumerate() {
            for RecordedTrial(_, features, outcome) in &input.trials {
                let (RecordedOutcome::Cost(cost) | RecordedOutcome::AtLeast(cost)) = outcome else { continue };
                row.clear();
                row.extend(input.features.iter().chain(features).map(|f| f.unwrap_or(f32::NAN)));
                let place = || format!("{} on {}", input.input, self.device);
                let pushed = out.push(&row, *cost, group as u32);
                pushed.map_err(|e| RepositoryError::new(Fault::Inconsistent, place(), e))?;
            }
        }
        Ok(out)
    }
}

/// Devices and records that cannot be used, and why.
pub type LeftOut = Vec<RepositoryError>;

/// What all devices recorded of the configurations of a kernel, by this schema and objective; what is recorded under another
/// objective is passed over. Records that are damaged or of another schema are left out with the error that names them.
///
/// # Errors
/// A store that cannot be read or reached.
pub fn sampled(
    repository: &mut dyn Repository,
    kernel: &str,
    (schema, objective): (&str, &Objective),
) -> Result<(Vec<Sampled>, LeftOut), RepositoryError> {
    let (mut devices, mut left_out) = (Vec::new(), Vec::new());
    for key in repository.keys()?.into_iter().filter(|k| k.set() == kernel) {
        match of_device(repository, &key, (schema, objective), &mut left_out) {
            Ok(device) if device.inputs.is_empty() => {}
            Ok(device) => devices.push(device),
            Err(error) if error.is_damage() => left_out.push(error),
            Err(error) => return Err(error),
        }
    }
    Ok((devices, left_out))
}

fn of_device(
    repository: &mut dyn Repository,
    key: &Key,
    (schema, objective): (&str, &Objective),
    left_out: &mut LeftOut,
) -> Result<Sampled, RepositoryError> {
    let mut features = Config::default();
    let mut inputs: BTreeMap<String, RecordedSamples> = BTreeMap::new();
    let (mut known, mut other) = (HashSet::new(), None);
    for (_, record) in repository.read(key)? {
        let Some((record, _)) = record.retain_new(&mut known) else { continue };
        match record {
            Record::Device(more) => merge(&mut features, more),
            Record::Samples(samples) if samples.schema != schema => other = Some(samples.schema),
            Record::Samples(samples) if samples.objective == *objective => {
                let of = inputs.entry(samples.input.to_string());
                let known = of.or_insert_with(|| RecordedSamples { trials: Vec::new(), ..samples.clone() });
                known.trials.extend(samples.trials);
            }
            _ => {}
        }
    }
    left_out.extend(repository.unfinished(key)?);
    left_out.extend(other.map(|found| RepositoryError::schema(key, &found, schema)));
    Ok(Sampled { device: key.device().to_owned(), features, inputs: inputs.into_values().collect() })
}
