//! What other devices recorded.

use crate::error::MtlError;
use std::collections::BTreeSet;
use tilewright_core::choice::ChoiceSet;
use tilewright_core::feature::FeatureKind;
use tilewright_core::space::Config;

/// A device with its features and what it recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// The device.
    pub device: String,
    /// Its features.
    pub features: Config,
    /// Inputs with the times of the variants; the features of a case are those of the input alone.
    pub cases: ChoiceSet,
}

impl Source {
    /// The cases of some groups.
    pub(crate) fn of_groups(&self, keep: impl Fn(u32) -> bool) -> Self {
        let cases = self.cases.cases();
        let kept: Vec<usize> = (0..cases.len()).filter(|&i| keep(cases[i].group)).collect();
        Self { device: self.device.clone(), features: self.features.clone(), cases: self.cases.subset(&kept) }
    }
}

/// Devices that recorded the same variants of the same computation.
#[derive(Clone, Debug, PartialEq)]
pub struct Sources(Vec<Source>);

impl Sources {
    /// Checks that the devices belong together.
    ///
    /// # Errors
    /// No device, one that stands twice, different features of the input, different variants (where candidates have
    /// sizes of their own, as configurations do, these stand for them, and the devices may have tried others).
    pub fn new(sources: Vec<Source>) -> Result<Self, MtlError> {
        let sources = Self::overlapping(sources)?;
        if let Some((first, others)) = sources.0.split_first() {
            others.iter().try_for_each(|other| same_variants(first, other))?;
        }
        Ok(sources)
    }

    /// As [`Sources::new`], of devices that lack some of the variants, as collections of other people's measurements do: what a
    /// device has not recorded, it says nothing about.
    ///
    /// # Errors
    /// As [`Sources::new`]; two devices without a variant in common.
    pub fn overlapping(sources: Vec<Source>) -> Result<Self, MtlError> {
        let Some((first, others)) = sources.split_first() else {
            return Err(MtlError::TooFew { what: "source devices", found: 0, needed: 1 });
        };
        for (i, other) in others.iter().enumerate() {
            if sources[..=i].iter().any(|s| s.device == other.device) {
                return Err(MtlError::Twice(other.device.clone()));
            }
            same_schema(first, other)?;
            let (a, b) = (variants(first), variants(other));
            if named(first) && !a.is_empty() && !b.is_empty() && a.is_disjoint(&b) {
                return Err(different(first, other, &a));
            }
        }
        Ok(Self(sources))
    }

    /// The devices.
    pub fn all(&self) -> &[Source] {
        &self.0
    }

    /// The features of each device.
    pub(crate) fn devices(&self) -> Vec<&Config> {
        self.0.iter().map(|s| &s.features).collect()
    }

    /// The features that some source has; a view of one that another lacks is an error that names it.
    pub fn features(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let all = self.0.iter().flat_map(|s| s.features.0.iter().map(|(name, _)| name));
        all.filter(|name| seen.insert(name.as_str())).cloned().collect()
    }

    /// All but one, to compare plans with that one as the target.
    ///
    /// # Errors
    /// There is only one.
    pub fn without(&self, at: usize) -> Result<Self, MtlError> {
        let rest: Vec<Source> = self.0.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, s)| s.clone()).collect();
        if rest.is_empty() {
            return Err(MtlError::TooFew { what: "source devices", found: self.0.len(), needed: 2 });
        }
        Ok(Self(rest))
    }

    /// The devices on which anything ran: others have nothing to tell.
    #[must_use]
    pub fn that_ran(&self) -> Self {
        Self(self.0.iter().filter(|s| s.cases.cases().iter().any(|c| c.best().is_some())).cloned().collect())
    }

    /// At most so many cases of each device, evenly spread.
    #[must_use]
    pub fn thinned(&self, most: usize) -> Self {
        self.with_counts(|_, source| most.min(source.cases.len()))
    }

    /// The cases of some groups.
    #[must_use]
    pub(crate) fn of_groups(&self, keep: impl Fn(u32) -> bool) -> Self {
        Self(self.0.iter().map(|source| source.of_groups(&keep)).collect())
    }

    /// A share of the cases of each device, evenly spread.
    #[must_use]
    pub fn shared(&self, shares: &[f64]) -> Self {
        let share = |device: usize| shares.get(device).copied().unwrap_or(1.0);
        self.with_counts(|device, source| (source.cases.len() as f64 * share(device)).round() as usize)
    }

    fn with_counts(&self, count: impl Fn(usize, &Source) -> usize) -> Self {
        let thin = |(device, s): (usize, &Source)| {
            let kept = count(device, s).max(1).min(s.cases.len());
            let spread: Vec<usize> = (0..kept).map(|i| i * s.cases.len() / kept).collect();
            Source { device: s.device.clone(), features: s.features.clone(), cases: s.cases.subset(&spread) }
        };
        Self(self.0.iter().enumerate().map(thin).collect())
    }
}

fn same_schema(one: &Source, other: &Source) -> Result<(), MtlError> {
    let (a, b) = (one.cases.schema(), other.cases.schema());
    if a == b {
        return Ok(());
    }
    let (one, other) = (one.device.clone(), other.device.clone());
    Err(MtlError::Schemas { one, one_schema: a.hash(), other, other_schema: b.hash() })
}

/// Whether variants are told apart by name. Sizes of candidates stand for them: these are configurations, and devices may have
/// tried others.
fn named(source: &Source) -> bool {
    source.cases.schema().config.iter().all(|f| f.kind == FeatureKind::Flag)
}

fn variants(source: &Source) -> BTreeSet<&str> {
    source.cases.cases().iter().flat_map(|c| &c.trials).map(|t| t.candidate.variant.as_str()).collect()
}

fn same_variants(one: &Source, other: &Source) -> Result<(), MtlError> {
    let (a, b) = (variants(one), variants(other));
    let lacking: BTreeSet<&str> = a.symmetric_difference(&b).copied().collect();
    if lacking.is_empty() || !named(one) { Ok(()) } else { Err(different(one, other, &lacking)) }
}

fn different(one: &Source, other: &Source, lacking: &BTreeSet<&str>) -> MtlError {
    let variant = lacking.first().map_or_else(String::new, |v| (*v).to_owned());
    MtlError::Variants { one: one.device.clone(), other: other.device.clone(), variant }
}
