//! A predictor for a device that ran nothing, from what other devices recorded of the kernel.

use super::records::name_of;
use crate::error::Error;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tilewright_core::device::DeviceSpec;
use tilewright_core::objective::Objective;
use tilewright_core::predictor::{BindError, Predictor, Scorer};
use tilewright_core::problem::{AnyKernel, Problem};
use tilewright_core::space::Config;
use tilewright_core::text::counted;
use tilewright_mtl::device::queried;
use tilewright_mtl::samples::{SampledDevice, pool};
use tilewright_repository::{Key, Repository, RepositoryError, Sampled, open_existing, sampled};
use tilewright_runtime::store::{Home, Profile, ProfileHeader, ProfileStore, TrainingStats};
use tilewright_runtime::trainer::{MlpTrainer, Trained, Trainer};
use tilewright_runtime::tune::FEWEST_SAMPLES;

/// The kind of a predictor that learned from other devices.
pub const TRANSFER: &str = "transfer";

/// About the most rows that it learns from, in seconds.
const MOST_ROWS: usize = 6000;

/// Changes with what is made of records: models of an older version are fitted anew.
const VERSION: u32 = 3;

/// A model of the rows of other devices, fixed to this one: its word says which configuration is faster, not how fast.
struct Transferred(Box<dyn Predictor>);

impl Predictor for Transferred {
    fn kind(&self) -> &str {
        TRANSFER
    }

    fn is_calibrated(&self) -> bool {
        false
    }

    fn bind<'a>(&'a self, problem: &'a dyn Problem) -> Result<Box<dyn Scorer + 'a>, BindError> {
        self.0.bind(problem)
    }
}

/// What a transferred model was fitted on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct From {
    /// Changes with the records and with the target.
    state: String,
    /// The devices, for people.
    devices: Vec<String>,
    inputs: usize,
    /// What could not be used, and why.
    left_out: LeftOut,
}

/// A predictor that learned from other devices.
pub(super) struct Found {
    pub(super) predictor: Box<dyn Predictor>,
    pub(super) reason: String,
}

/// What records give: a predictor, or none where they are too few, and what of them could not be used.
pub(super) type FoundOr = (Option<Found>, LeftOut);

/// What of the records could not be used, in words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct LeftOut {
    pub(super) all: Vec<String>,
    /// Those of them that are damaged: others are of another version of the kernel.
    pub(super) damaged: Vec<String>,
}

impl LeftOut {
    pub(super) fn of<'e>(errors: impl IntoIterator<Item = &'e RepositoryError> + Clone) -> Self {
        let damaged = errors.clone().into_iter().filter(|e| e.is_damage()).map(ToString::to_string).collect();
        Self { all: errors.into_iter().map(ToString::to_string).collect(), damaged }
    }
}

/// A predictor from what devices recorded of the kernel, kept for the next time.
pub(super) fn find(home: &Home, kernel: &dyn AnyKernel, device: &DeviceSpec) -> Result<FoundOr, Error> {
    let Some(mut repository) = open_existing(&home.repository())? else { return Ok(FoundOr::default()) };
    let Some(state) = state(&mut *repository, kernel, device)? else { return Ok(FoundOr::default()) };
    let path = ProfileStore::new(home.transferred()).path(&kernel.id(), device, &Config::default());
    let schema = kernel.schema();
    let kept = Profile::read(&path).ok().filter(|p| p.expect(&path, &kernel.id(), device, &schema).is_ok());
    let kept = kept.and_then(|p| Some((serde_json::from_value::<From>(p.model["from"].clone()).ok()?, p)));
    if let Some((from, profile)) = kept.filter(|(from, _)| from.state == state)
        && let Ok(predictor) = MlpTrainer.load(&profile.model["model"], &schema)
    {
        return Ok(found(predictor, from));
    }
    let (devices, others) = sampled(&mut *repository, kernel.id().as_str(), (&schema.hash(), &Objective::default()))?;
    let left_out = LeftOut::of(&others);
    let Some((trained, devices, inputs)) = fit(&devices, kernel, device)? else { return Ok((None, left_out)) };
    let from = From { state, devices, inputs, left_out };
    let header = ProfileHeader {
        model_kind: TRANSFER.into(),
        stats: TrainingStats { inputs: from.inputs as u64, ..TrainingStats::default() },
        ..ProfileHeader::new(kernel.id(), device, &schema, Config::default())
    };
    // Without a place to keep it, it is fitted again the next time.
    if let Err(error) = (Profile { header, model: json!({ "from": from, "model": trained.model }) }).write(&path) {
        tracing::warn!(%error, "a transferred model is not kept");
    }
    Ok(found(trained.predictor, from))
}

fn found(predictor: Box<dyn Predictor>, from: From) -> FoundOr {
    let From { devices, inputs, left_out, .. } = from;
    (Some(Found { predictor: Box::new(Transferred(predictor)), reason: sentence(&devices, inputs) }), left_out)
}

/// What changes with everything that a transferred model depends on; none where nothing of the kernel is recorded.
fn state(
    repository: &mut dyn Repository,
    kernel: &dyn AnyKernel,
    device: &DeviceSpec,
) -> Result<Option<String>, Error> {
    let id = kernel.id();
    let keys: Vec<Key> = repository.keys()?.into_iter().filter(|k| k.set() == id.as_str()).collect();
    let mut text = format!("{VERSION} {} {}", kernel.schema().hash(), queried(device));
    for key in &keys {
        text += &format!("\n{key} {}", repository.state(key)?);
    }
    Ok((!keys.is_empty()).then(|| blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()))
}

/// A model with the devices and the number of inputs that it was fitted on; none of too few rows.
type Fitted = Option<(Trained, Vec<String>, usize)>;

fn fit(devices: &[Sampled], kernel: &dyn AnyKernel, device: &DeviceSpec) -> Result<Fitted, Error> {
    let (schema, target) = (kernel.schema(), queried(device));
    let rows = |d: &Sampled| -> Result<SampledDevice, Error> {
        Ok(SampledDevice { device: d.device.clone(), features: d.features.clone(), rows: d.rows(&schema)? })
    };
    let mut sampled = devices.iter().map(rows).collect::<Result<Vec<_>, _>>()?;
    sampled.retain(|d| !d.rows.is_empty());
    if sampled.iter().map(|d| d.rows.len() as u64).sum::<u64>() < FEWEST_SAMPLES {
        return Ok(None);
    }
    let pooled = pool(&sampled, (&name_of(device), &target), MOST_ROWS)?;
    let trained = MlpTrainer.train(&pooled.set, 0).and_then(|t| MlpTrainer.fixing(&t.model, &pooled.target));
    let trained = trained.map_err(tilewright_runtime::RuntimeError::from)?;
    let names = sampled.iter().map(|d| about(&d.device, &d.features, &target)).collect();
    Ok(Some((trained, names, pooled.inputs)))
}

/// The name of a device, and how it differs from the target.
pub(super) fn about(name: &str, features: &Config, target: &Config) -> String {
    const MOST: usize = 3;
    let name = features.get("name").map_or_else(|| name.to_owned(), ToString::to_string);
    let differs = |(feature, value): &&(String, tilewright_core::expr::Value)| {
        !["name", "kind"].contains(&feature.as_str()) && target.get(feature).is_some_and(|own| own != value)
    };
    let apart: Vec<String> = features.0.iter().filter(differs).take(MOST).map(|(f, v)| format!("{f}={v}")).collect();
    if apart.is_empty() { name } else { format!("{name} with {}", apart.join(" ")) }
}

/// Where something was learned, as part of a sentence.
pub(super) fn sentence(devices: &[String], inputs: usize) -> String {
    let (from, inputs) = (counted(devices.len(), "device"), counted(inputs, "input"));
    format!("transferred from {from} ({}), {inputs}", devices.join("; "))
}
