//! Selectors on disk, beside the profiles.

use crate::store::envelope::{self, Format};
use crate::store::{DeviceRecord, Fitting, StoreError, StoreErrorKind, agrees, best_fit, stem, unix_seconds};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};
use tilewright_core::choice::{Case, ChoiceSet, Trial};
use tilewright_core::device::DeviceSpec;
use tilewright_core::feature::FeatureSchema;
use tilewright_core::id::{ComputationId, KernelId};
use tilewright_core::objective::Objective;
use tilewright_core::problem::AnyKernel;
use tilewright_core::selector::Candidate;
use tilewright_core::space::Config;
use tilewright_files::{MOST, read_file};

const FORMAT: Format = Format { name: "selector", version: 1 };
const EXTENSION: &str = "selector";

/// What a selector was learned from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SelectorStats {
    /// Inputs.
    pub inputs: u64,
    /// Best time over the chosen kernel's, mean over inputs that it was not fitted on; None where there were too few.
    pub fraction_of_oracle: Option<f64>,
    /// The same where the kernel leads whose default suits the input best by its own rating, the first of equals; None where nobody
    /// looked.
    #[serde(default)]
    pub suited: Option<f64>,
}

/// What a selector is for; checked before it ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SelectorHeader {
    /// The computation.
    pub computation: ComputationId,
    /// The kernels that it was learned on.
    pub variants: Vec<KernelId>,
    /// The device.
    pub device: DeviceRecord,
    /// Hash of the schema of the input's features.
    pub schema: String,
    /// What the costs are.
    pub objective: Objective,
    /// Input fields that all its inputs had in common by request.
    pub fixed: Config,
    /// What is fitted to the cases.
    pub method: String,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// The seed of the fit.
    pub seed: u64,
    /// What it was learned from.
    pub stats: SelectorStats,
    /// The kernel that it leaves only where that is surely worth it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incumbent: Option<StoredIncumbent>,
}

/// A kernel that is left for another only where the selector expects enough of that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredIncumbent {
    /// The kernel.
    pub kernel: KernelId,
    /// The natural log of the speed-up that must be expected; none where the cases do not tell it, and the kernel is never left.
    pub margin: Option<f64>,
    /// Best time over the chosen kernel's, mean over inputs that it was not fitted on, where this kernel is kept; none where there were
    /// too few.
    #[serde(default)]
    pub fraction_of_oracle: Option<f64>,
}

impl fmt::Display for StoredIncumbent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, margin, .. } = self;
        match margin {
            Some(margin) => {
                write!(f, "{kernel} is left where another is expected to be {:.0}% faster", 100.0 * margin.exp_m1())
            }
            None => write!(f, "{kernel} is never left: it ran on too few inputs to say when"),
        }
    }
}

impl SelectorHeader {
    /// A header of now, of nothing learned yet.
    pub fn new(computation: ComputationId, device: &DeviceSpec, objective: Objective, fixed: Config) -> Self {
        let (variants, schema, method) = (Vec::new(), String::new(), String::new());
        let (device, created, seed, stats) = (device.into(), unix_seconds(), 0, SelectorStats::default());
        let incumbent = None;
        Self { computation, variants, device, schema, objective, fixed, method, created, seed, stats, incumbent }
    }
}

/// A selector as it is kept: the cases that it is fitted on whenever it is needed.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredSelector {
    /// What it is for.
    pub header: SelectorHeader,
    /// What it is fitted on.
    pub cases: ChoiceSet,
}

/// The cases in a file. Missing features are null.
#[derive(Serialize, Deserialize)]
struct Body {
    schema: FeatureSchema,
    cases: Vec<Row>,
}

#[derive(Serialize, Deserialize)]
struct Row {
    features: Vec<Option<f32>>,
    /// The number of the variant in the header, and its cost; null where it failed.
    costs: Vec<(usize, Option<f64>)>,
    group: u32,
}

impl StoredSelector {
    /// Reads a selector, whatever it is for.
    ///
    /// # Errors
    /// The file cannot be read, is no selector, or is damaged.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        let bytes = read_file(path, MOST).map_err(|e| StoreError::io(path, e))?;
        Self::from_bytes(&bytes).map_err(|kind| StoreError::new(path, kind))
    }

    /// [`StoredSelector::read`] of a file's bytes.
    ///
    /// # Errors
    /// The bytes are no selector, or are damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StoreErrorKind> {
        let (header, body): (SelectorHeader, Body) = envelope::decode(FORMAT, bytes)?;
        let corrupt = StoreErrorKind::Corrupt;
        let mut cases = ChoiceSet::new(body.schema);
        for row in body.cases {
            let trial = |(at, cost): (usize, Option<f64>)| {
                let variant = header.variants.get(at)?.to_string();
                Some(Trial { candidate: Candidate { variant, features: Vec::new() }, cost })
            };
            let trials: Option<Vec<Trial>> = row.costs.into_iter().map(trial).collect();
            let trials = trials.ok_or_else(|| corrupt("a case of a variant that its header does not have".into()))?;
            let features = row.features.into_iter().map(|x| x.unwrap_or(f32::NAN)).collect();
            cases.push(Case { features, trials, group: row.group }).map_err(|e| corrupt(e.to_string()))?;
        }
        Ok(Self { header, cases })
    }

    fn write(&self, path: &Path) -> Result<(), StoreError> {
        let number = |variant: &str| self.header.variants.iter().position(|known| known.as_str() == variant);
        let cost = |t: &Trial| Some((number(&t.candidate.variant)?, t.cost));
        let row = |case: &Case| Row {
            features: case.features.iter().map(|x| Some(*x).filter(|x| x.is_finite())).collect(),
            costs: case.trials.iter().filter_map(cost).collect(),
            group: case.group,
        };
        let cases = self.cases.cases().iter().map(row).collect();
        envelope::write(path, FORMAT, &self.header, &Body { schema: self.cases.schema().clone(), cases })
    }

    /// Refuses another computation, device or schema of features than the one at hand.
    ///
    /// # Errors
    /// The first thing that differs, naming `path`.
    pub fn expect(
        &self,
        path: &Path,
        computation: &ComputationId,
        device: &DeviceSpec,
        schema: &FeatureSchema,
    ) -> Result<(), StoreError> {
        let refuse = |kind| Err(StoreError::new(path, kind));
        let header = &self.header;
        if header.computation != *computation {
            let (found, expected) = (header.computation.to_string(), computation.to_string());
            return refuse(StoreErrorKind::OtherKernel { found, expected });
        }
        let expected = FeatureSchema { input: schema.input.clone(), config: Vec::new() }.hash();
        if header.schema != expected || self.cases.schema().hash() != expected {
            return refuse(StoreErrorKind::SchemaMismatch { found: header.schema.clone(), expected });
        }
        header.device.expect(device).or_else(refuse)
    }
}

/// The selectors of a directory, one for each computation, device and set of fixed fields.
#[derive(Clone, Debug)]
pub struct SelectorStore {
    directory: PathBuf,
}

impl SelectorStore {
    /// The selectors of a directory, [`crate::store::Home::profiles`] as a rule.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Where the selector of a computation on a device belongs.
    pub fn path(&self, computation: &ComputationId, device: &DeviceSpec, fixed: &Config) -> PathBuf {
        self.directory.join(format!("{}.{EXTENSION}", stem(computation.as_str(), device, fixed)))
    }

    /// Keeps a selector in its place; where that is.
    ///
    /// # Errors
    /// See [`crate::store::write_atomically`].
    pub fn put(&self, selector: &StoredSelector) -> Result<PathBuf, StoreError> {
        let header = &selector.header;
        let path = self.path(&header.computation, &header.device.spec(), &header.fixed);
        selector.write(&path)?;
        Ok(path)
    }

    /// The selector that fits an input best, of the computation of any of its kernels, as [`crate::store::ProfileStore::find`] finds profiles.
    ///
    /// # Errors
    /// The directory exists and cannot be listed.
    pub fn find(
        &self,
        kernel: &dyn AnyKernel,
        device: &DeviceSpec,
        input: &Config,
    ) -> Result<Fitting<StoredSelector>, StoreError> {
        let (computation, agrees) = (kernel.computation(), |fixed: &Config| agrees(kernel, input, fixed));
        let of = |s: &StoredSelector| (s.header.computation == computation).then_some(());
        best_fit(&self.directory, (computation.as_str(), EXTENSION), (device, agrees), StoredSelector::read, |s| {
            of(s).map(|()| (&s.header.device, &s.header.fixed, s.header.created))
        })
    }
}
