//! What is kept: features of a device, inputs with the times of all variants, configurations with their costs, profiles.

use crate::error::{Fault, RepositoryError};
use crate::samples::RecordedSamples;
use serde::{Deserialize, Serialize};
use tilewright_core::choice::{Case, ChoiceSet};
use tilewright_core::feature::{Feature, FeatureKind, FeatureSchema};
use tilewright_core::space::Config;
use tilewright_mtl::profile::{Metrics, Profile, ProxyRun};

/// One record. It names everything that it needs, so that it can be read without any other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Record {
    /// Features of the device; a later record adds to an earlier one.
    Device(Config),
    /// One input with the times of its variants.
    Case(RecordedCase),
    /// One input with configurations of a kernel and what they cost.
    Samples(RecordedSamples),
    /// Profiling metrics of a variant.
    Profile(Profile),
    /// Profiling metrics of an application proxy.
    Proxy(ProxyRun),
}

/// One input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedCase {
    /// Features of the input.
    pub features: Vec<RecordedFeature>,
    /// Times of the variants.
    pub times: Vec<RecordedTime>,
    /// Inputs of one group belong on one side of a split.
    pub group: u32,
}

/// A feature: name, kind, value; no value where it is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedFeature(pub String, pub FeatureKind, pub Option<f32>);

/// A variant's name, and its time in seconds; no time where it failed or is illegal for the input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedTime(pub String, pub Option<f64>);

impl RecordedCase {
    /// A case of named variants; features of candidates that are named are not kept.
    ///
    /// # Errors
    /// Features of another number than the schema's; a schema with features of candidates.
    pub fn of(schema: &FeatureSchema, case: &Case) -> Result<Self, RepositoryError> {
        let fault = |message: &str| RepositoryError::new(Fault::Damaged, "a case", message);
        if !schema.config.is_empty() {
            return Err(fault("its candidates have features; the repository keeps named variants"));
        }
        if case.features.len() != schema.input.len() {
            return Err(fault("it does not fit its schema"));
        }
        let feature =
            |(f, &v): (&Feature, &f32)| RecordedFeature(f.name.clone(), f.kind, Some(v).filter(|v| v.is_finite()));
        Ok(Self {
            features: schema.input.iter().zip(&case.features).map(feature).collect(),
            times: case.trials.iter().map(|t| RecordedTime(t.candidate.variant.clone(), t.cost)).collect(),
            group: case.group,
        })
    }
}

impl Record {
    /// The cases of a set by the names of their variants alone: flags that a table makes of names say nothing more.
    ///
    /// # Errors
    /// Features of another number than the schema's.
    pub fn of_cases(cases: &ChoiceSet) -> Result<Vec<Self>, RepositoryError> {
        let schema = FeatureSchema { input: cases.schema().input.clone(), config: Vec::new() };
        cases.cases().iter().map(|case| RecordedCase::of(&schema, case).map(Self::Case)).collect()
    }

    /// Refuses what no measurement gives: times that are not positive and finite, features and metrics that are not finite, a
    /// variant twice, an intensity beyond 5.
    pub(crate) fn check(&self, place: &str) -> Result<(), RepositoryError> {
        let fault = |field: String, value: String, limit| {
            Err(RepositoryError::new(Fault::Poisoned, place, format!("{field} is {value}, it must be {limit}")))
        };
        let metrics = |of: &Metrics| match of.iter().find(|(_, v)| !(v.is_finite() && **v >= 0.0)) {
            Some((name, value)) => fault(format!("metric {name:?}"), value.to_string(), "finite and not negative"),
            None => Ok(()),
        };
        match self {
            Self::Device(features) => {
                let bad = features.0.iter().find(|(_, v)| v.as_f64().is_some_and(|v| !v.is_finite()));
                bad.map_or(Ok(()), |(name, v)| fault(format!("feature {name:?}"), v.to_string(), "finite"))
            }
            Self::Case(case) => case.check(fault),
            Self::Samples(samples) => samples.check(fault),
            Self::Profile(profile) => metrics(&profile.metrics),
            Self::Proxy(run) if run.intensity > tilewright_mtl::pdfs::MOST => {
                fault("intensity".into(), run.intensity.to_string(), "0 to 5")
            }
            Self::Proxy(run) => metrics(&run.metrics),
        }
    }
}

impl RecordedCase {
    fn check(
        &self,
        fault: impl Fn(String, String, &'static str) -> Result<(), RepositoryError>,
    ) -> Result<(), RepositoryError> {
        if self.times.is_empty() {
            return fault("the number of variants".into(), "0".into(), "at least 1");
        }
        for (i, RecordedTime(variant, time)) in self.times.iter().enumerate() {
            if let Some(t) = time.filter(|t| !(t.is_finite() && *t > 0.0)) {
                return fault(format!("the time of {variant:?}"), t.to_string(), "positive and finite");
            }
            if self.times[..i].iter().any(|t| t.0 == *variant) {
                return fault(format!("variant {variant:?}"), "there twice".into(), "there once");
            }
        }
        match self.features.iter().find(|f| f.2.is_some_and(|v| !v.is_finite())) {
            Some(f) => fault(format!("feature {:?}", f.0), format!("{:?}", f.2), "finite, or missing"),
            None => Ok(()),
        }
    }
}
