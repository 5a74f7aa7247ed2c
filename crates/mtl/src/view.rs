//! What a model sees of a device, beside the features of the input.

use crate::device::number;
use crate::error::MtlError;
use crate::role::Role;
use crate::sources::Sources;
use serde::Serialize;
use std::collections::BTreeSet;
use tilewright_core::choice::{Case, ChoiceSet, FitSelector};
use tilewright_core::expr::Value;
use tilewright_core::feature::{Feature, FeatureKind, FeatureSchema};
use tilewright_core::selector::{Candidate, Selector, VariantOrder};
use tilewright_core::space::Config;

/// Columns that a device adds to the features of an input.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct View {
    /// Features of the device as they are.
    numbers: Vec<String>,
    /// One flag a word that a source has.
    words: Vec<(String, String)>,
    /// A size of the input over a feature of the device.
    ratios: Vec<(usize, String)>,
}

impl View {
    /// Nothing of the device: one model for all.
    pub fn blind() -> Self {
        Self::default()
    }

    /// The named features: numbers as they are, words as one flag for each that a source has.
    ///
    /// # Errors
    /// A source that lacks one.
    pub fn concatenated(sources: &Sources, names: &[String]) -> Result<Self, MtlError> {
        let mut view = Self::default();
        for name in names {
            let mut words = BTreeSet::new();
            for source in sources.all() {
                match source.features.get(name) {
                    None => return Err(missing(&source.device, name)),
                    Some(Value::Str(word)) => drop(words.insert(word.clone())),
                    Some(_) => {}
                }
            }
            if words.is_empty() {
                view.numbers.push(name.clone());
            } else {
                view.words.extend(words.into_iter().map(|word| (name.clone(), word)));
            }
        }
        Ok(view)
    }

    /// Without the words that a single device has, the target counted: they only name it, and what is learned of a name carries over to
    /// nobody.
    #[must_use]
    pub fn with_words_shared(mut self, sources: &Sources, target: &Config) -> Self {
        let has = |features: &Config, (name, word): &(String, String)| {
            features.get(name).is_some_and(|value| value.to_string() == *word)
        };
        let devices = || sources.all().iter().map(|s| &s.features).chain([target]);
        self.words.retain(|word| devices().filter(|features| has(features, word)).count() >= 2);
        self
    }

    /// Adds the sizes of the input over what of a device measures them: bytes over bandwidth are a time, rows over
    /// multiprocessors are rounds, a working set over a cache is how much of it fits. Only features that all sources and the
    /// target have.
    #[must_use]
    pub fn with_ratios(mut self, sources: &Sources, target: &Config) -> Self {
        let schema = match sources.all().first() {
            Some(first) => first.cases.schema(),
            None => return self,
        };
        let sizes = (0..schema.input.len()).filter(|&i| schema.input[i].kind == FeatureKind::Size);
        let known = |name: &str| {
            let positive = |features| number(features, name).is_some_and(|v| v > 0.0);
            positive(target) && sources.all().iter().all(|s| positive(&s.features))
        };
        let measures: Vec<&String> = target.0.iter().map(|(name, _)| name).collect();
        let measures = measures.into_iter().filter(|name| Role::of(name).measures_inputs() && known(name));
        let measures: Vec<&String> = measures.collect();
        self.ratios = sizes.flat_map(|i| measures.iter().map(move |m| (i, (*m).clone()))).collect();
        self
    }

    /// The features of the device that the view uses.
    pub fn features(&self) -> Vec<String> {
        let all = self.numbers.iter().chain(self.words.iter().map(|w| &w.0)).chain(self.ratios.iter().map(|r| &r.1));
        let mut seen = BTreeSet::new();
        all.filter(|name| seen.insert(name.as_str())).cloned().collect()
    }

    /// The schema of cases with the device's columns.
    pub fn schema(&self, of: &FeatureSchema) -> FeatureSchema {
        let mut input = of.input.clone();
        // Logarithms already, and no sizes of the input: nobody needs to make ratios with them.
        input.extend(self.numbers.iter().map(|n| Feature::flag(&format!("log of device {n}"))));
        input.extend(self.words.iter().map(|(n, w)| Feature::flag(&format!("device {n}={w}"))));
        let ratio = |(i, n): &(usize, String)| Feature::flag(&format!("log of {} / device {n}", of.input[*i].name));
        input.extend(self.ratios.iter().map(ratio));
        FeatureSchema { input, config: of.config.clone() }
    }

    /// The view's numbers of a device, in the order of the columns; for a ratio, the logarithm of what the size is divided by.
    ///
    /// # Errors
    /// A feature that the device lacks.
    pub fn values(&self, device: &str, features: &Config) -> Result<ViewValues, MtlError> {
        let need = |name: &String| number(features, name).ok_or_else(|| missing(device, name));
        let flag = |(name, word): &(String, String)| match features.get(name) {
            None => Err(missing(device, name)),
            Some(value) => Ok(if value.to_string() == *word { 1.0 } else { 0.0 }),
        };
        let log = |v: f64| v.abs().ln_1p().copysign(v);
        let numbers = self.numbers.iter().map(|name| need(name).map(log));
        let plain = numbers.chain(self.words.iter().map(flag)).collect::<Result<Vec<f64>, _>>()?;
        let ratios = self.ratios.iter().map(|(i, name)| Ok((*i, need(name)?.ln() as f32)));
        Ok(ViewValues {
            plain: plain.into_iter().map(|v| v as f32).collect(),
            ratios: ratios.collect::<Result<_, MtlError>>()?,
        })
    }

    /// The cases of all sources with the columns of their devices.
    ///
    /// # Errors
    /// A feature that a source lacks.
    pub fn pool(&self, sources: &Sources) -> Result<ChoiceSet, MtlError> {
        let first = sources.all().first().ok_or(MtlError::TooFew { what: "source devices", found: 0, needed: 1 })?;
        let values: Vec<ViewValues> =
            sources.all().iter().map(|s| self.values(&s.device, &s.features)).collect::<Result<_, _>>()?;
        let mut out = ChoiceSet::new(self.schema(first.cases.schema()));
        for (source, values) in sources.all().iter().zip(&values) {
            for case in source.cases.cases() {
                let mut features = case.features.clone();
                values.append(&mut features);
                out.push(Case { features, trials: case.trials.clone(), group: case.group })?;
            }
        }
        Ok(out)
    }

    /// A model of all sources, for a target.
    ///
    /// # Errors
    /// A feature that a source or the target lacks, a learner that fails.
    pub fn fit(
        &self,
        sources: &Sources,
        (device, features): (&str, &Config),
        learner: &dyn FitSelector,
        seed: u64,
    ) -> Result<OnDevice, MtlError> {
        let values = self.values(device, features)?;
        Ok(OnDevice { inner: learner.fit(&self.pool(sources)?, seed)?, values })
    }
}

fn missing(device: &str, feature: &str) -> MtlError {
    MtlError::MissingFeature { device: device.to_owned(), feature: feature.to_owned() }
}

/// The columns of one device.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewValues {
    plain: Vec<f32>,
    ratios: Vec<(usize, f32)>,
}

impl ViewValues {
    /// Appends the device's columns to the features of an input.
    pub fn append(&self, features: &mut Vec<f32>) {
        features.extend_from_slice(&self.plain);
        for &(i, per) in &self.ratios {
            // A size of 0 is a very small one; what is missing stays missing.
            let size = features.get(i).copied().unwrap_or(f32::NAN);
            features.push(if size < 1e-6 { 1e-6f32 } else { size }.ln() - per);
        }
    }
}

/// A selector that was fitted with columns of devices, on one of them.
pub struct OnDevice {
    /// Ranks by features of the input and of the device.
    pub inner: Box<dyn Selector>,
    /// The device's columns.
    pub values: ViewValues,
}

impl OnDevice {
    fn row(&self, input: &[f32]) -> Vec<f32> {
        let mut features = Vec::with_capacity(input.len() + self.values.plain.len() + self.values.ratios.len());
        features.extend_from_slice(input);
        self.values.append(&mut features);
        features
    }
}

impl Selector for OnDevice {
    fn rank(&self, input: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        self.inner.rank(&self.row(input), candidates, out);
    }

    fn relative_costs(&self, input: &[f32], candidates: &[Candidate], out: &mut Vec<f32>) -> bool {
        self.inner.relative_costs(&self.row(input), candidates, out)
    }
}
