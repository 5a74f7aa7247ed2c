//! From records to what models are fitted on.

use crate::error::{Fault, RepositoryError};
use crate::record::{Record, RecordedCase};
use crate::{Key, Repository};
use tilewright_core::choice::{Case, ChoiceSet, Trial};
use tilewright_core::feature::{Feature, FeatureSchema};
use tilewright_core::selector::Candidate;
use tilewright_core::space::Config;
use tilewright_mtl::device::DeviceTable;
use tilewright_mtl::profile::{Profile, ProxyRun};
use tilewright_mtl::{MtlError, Source};

/// Everything that devices recorded of a set of variants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Training {
    /// Devices with cases.
    pub sources: Vec<Source>,
    /// Profiles of variants, from any device.
    pub profiles: Vec<Profile>,
    /// Runs of application proxies, from any device.
    pub proxies: Vec<ProxyRun>,
    /// Features of devices that recorded no case.
    pub others: Vec<(String, Config)>,
}

impl Training {
    /// The features of the devices with cases, as a table.
    ///
    /// # Errors
    /// A device that stands twice.
    pub fn devices(&self) -> Result<DeviceTable, RepositoryError> {
        let mut table = DeviceTable::new();
        for source in &self.sources {
            table.insert(&source.device, source.features.clone())?;
        }
        Ok(table)
    }
}

/// Reads what all devices recorded of a set of variants.
///
/// # Errors
/// As [`Repository::read`], and a device whose cases have different features of the input.
pub fn training(repository: &mut dyn Repository, set: &str) -> Result<Training, RepositoryError> {
    let mut out = Training::default();
    for key in repository.keys()?.into_iter().filter(|k| k.set() == set) {
        let mut features = Config::default();
        let mut cases: Option<ChoiceSet> = None;
        for (_, record) in repository.read(&key)? {
            match record {
                Record::Device(more) => merge(&mut features, more),
                Record::Case(case) => push(&key, &mut cases, case)?,
                Record::Profile(profile) => out.profiles.push(profile),
                Record::Proxy(run) => out.proxies.push(run),
                // Of configurations, which `sampled` reads.
                Record::Samples(_) => {}
            }
        }
        let device = key.device().to_owned();
        match cases {
            Some(cases) => out.sources.push(Source { device, features, cases }),
            None if !features.0.is_empty() => out.others.push((device, features)),
            None => {}
        }
    }
    Ok(out)
}

pub(crate) fn merge(features: &mut Config, more: Config) {
    for (name, value) in more.0 {
        match features.0.iter_mut().find(|(n, _)| *n == name) {
            Some(known) => known.1 = value,
            None => features.0.push((name, value)),
        }
    }
}

fn push(key: &Key, cases: &mut Option<ChoiceSet>, case: RecordedCase) -> Result<(), RepositoryError> {
    let feature = |f: &crate::RecordedFeature| Feature { name: f.0.clone(), kind: f.1 };
    let schema = FeatureSchema { input: case.features.iter().map(feature).collect(), config: Vec::new() };
    let set = cases.get_or_insert_with(|| ChoiceSet::new(schema.clone()));
    if *set.schema() != schema {
        let names = |s: &FeatureSchema| s.input.iter().map(|f| f.name.as_str()).collect::<Vec<_>>().join(" ");
        let message = format!("cases with the features {} and {}", names(set.schema()), names(&schema));
        return Err(RepositoryError::new(Fault::Inconsistent, key, message));
    }
    let trial =
        |t: crate::RecordedTime| Trial { candidate: Candidate { variant: t.0, features: Vec::new() }, cost: t.1 };
    let features = case.features.iter().map(|f| f.2.unwrap_or(f32::NAN)).collect();
    let trials = case.times.into_iter().map(trial).collect();
    set.push(Case { features, trials, group: case.group }).map_err(|e| MtlError::from(e).into())
}
