//! Learning a selector: which method does best on inputs that it was not fitted on.

use super::{
    Cases, SelectionError, SelectorHeader, SelectorStats, SelectorStore, StoredIncumbent, StoredSelector, cases,
};
use crate::error::RuntimeError;
use crate::log::Sample;
use std::path::PathBuf;
use std::sync::Arc;
use tilewright_core::choice::{ChoiceSet, FitSelector, SelectError};
use tilewright_core::device::DeviceSpec;
use tilewright_core::id::KernelId;
use tilewright_core::objective::Objective;
use tilewright_core::problem::AnyKernel;
use tilewright_core::selector::Selector;
use tilewright_core::space::Config;

/// Fewer inputs teach nothing of others.
const LEAST_INPUTS: usize = 6;

/// Learns a selector from what a campaign measured of several kernels, and keeps it; where it is and what it is. None where fewer
/// than two kernels, or too few inputs, were measured. `fixed` are the fields that all inputs share by request, `incumbent` is the
/// kernel that must not be left for a slower one, if any is ([`learn`]).
///
/// # Errors
/// As [`learn`], and a file that cannot be written.
pub fn learn_from(
    store: &SelectorStore,
    (kernels, samples): (&[&dyn AnyKernel], &[&[Sample]]),
    device: &Arc<DeviceSpec>,
    (objective, fixed, incumbent): (&Objective, &Config, Option<&KernelId>),
    seed: u64,
) -> Result<Option<(PathBuf, StoredSelector)>, RuntimeError> {
    if kernels.len() < 2 {
        return Ok(None);
    }
    let cases = cases(kernels, device, samples, objective)?;
    if cases.set.len() < LEAST_INPUTS {
        return Ok(None);
    }
    let header = SelectorHeader::new(kernels[0].computation(), device, objective.clone(), fixed.clone());
    let mut stored = learn(SelectorHeader { seed, ..header }, cases.set.clone(), incumbent)?;
    stored.header.stats.suited = worth_of_ratings(&cases, &stored.header);
    let path = store.put(&stored)?;
    Ok(Some((path, stored)))
}

/// Chooses a method by cross-validation on the cases; the header says for what and by which seed. What is stored is fitted again
/// whenever it is read, so only methods compete that are fitted within milliseconds. An incumbent is kept ([`StoredSelector::keeping`]).
///
/// # Errors
/// Cases that nothing can be learned from.
pub fn learn(
    header: SelectorHeader,
    cases: ChoiceSet,
    incumbent: Option<&KernelId>,
) -> Result<StoredSelector, SelectionError> {
    let (method, fraction_of_oracle) = chosen(&cases, header.seed, false).map_err(|e| failed(&header, e))?;
    let stats = SelectorStats { inputs: cases.len() as u64, fraction_of_oracle, suited: None };
    let mut variants: Vec<String> =
        cases.cases().iter().flat_map(|c| c.trials.iter().map(|t| t.candidate.variant.clone())).collect();
    variants.sort();
    variants.dedup();
    let variants = variants.into_iter().map(Into::into).collect();
    let header = SelectorHeader { schema: cases.schema().hash(), variants, method, stats, ..header };
    let stored = StoredSelector { header, cases };
    let Some(kernel) = incumbent else { return Ok(stored) };
    let mut kept = stored.keeping(kernel)?;
    let fraction_of_oracle = worth_of_keeping(&kept);
    if let Some(incumbent) = &mut kept.header.incumbent {
        incumbent.fraction_of_oracle = fraction_of_oracle;
    }
    Ok(kept)
}

fn failed(header: &SelectorHeader, source: SelectError) -> SelectionError {
    SelectionError::Learn { computation: header.computation.clone(), source }
}

impl StoredSelector {
    /// The selector that leaves a kernel for another only where it expects clearly more of that than its method ever expected in vain,
    /// on cases that it was not fitted on. Methods that rank and expect nothing are replaced by the best of the others.
    ///
    /// # Errors
    /// As [`learn`]'s.
    pub fn keeping(self, kernel: &KernelId) -> Result<Self, SelectionError> {
        let Self { mut header, cases } = self;
        if ONLY_RANKS.contains(&&*header.method) {
            let (method, fraction_of_oracle) = chosen(&cases, header.seed, true).map_err(|e| failed(&header, e))?;
            header.stats = SelectorStats { fraction_of_oracle, suited: None, ..header.stats };
            header.method = method;
        }
        let margin = margin(&header, &cases, kernel).map_err(|e| failed(&header, e))?;
        let margin = margin.filter(|margin| margin.is_finite());
        header.incumbent = Some(StoredIncumbent { kernel: kernel.clone(), margin, fraction_of_oracle: None });
        Ok(Self { header, cases })
    }

    /// The selector.
    ///
    /// # Errors
    /// A method that this program does not have, or cases that it cannot be fitted on any more.
    pub fn fit(&self) -> Result<Box<dyn Selector>, SelectionError> {
        let SelectorHeader { method, seed, incumbent, .. } = &self.header;
        let methods = methods();
        let known = || methods.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        let Some((_, fit)) = methods.iter().find(|(name, _)| name == method) else {
            return Err(SelectionError::UnknownMethod { method: method.clone(), known: known() });
        };
        let selector = fit.fit(&self.cases, *seed).map_err(|e| failed(&self.header, e))?;
        Ok(guarded(selector, incumbent.as_ref(), &self.cases, *seed))
    }
}

/// The selector with its incumbent, if any. The guard stands within, so that what would replace the incumbent is likely to run, and
/// around it, so that an incumbent that is likely to fail does not lead.
#[cfg(feature = "select")]
fn guarded(
    selector: Box<dyn Selector>,
    incumbent: Option<&StoredIncumbent>,
    cases: &ChoiceSet,
    seed: u64,
) -> Box<dyn Selector> {
    use tilewright_variant_select::{guard, incumbent::kept};
    let selector = guard::guarded(selector, cases, seed);
    let Some(StoredIncumbent { kernel, margin, .. }) = incumbent else { return selector };
    guard::guarded(kept(selector, kernel.as_str(), margin.unwrap_or(f64::INFINITY)), cases, seed)
}

#[cfg(not(feature = "select"))]
fn guarded(selector: Box<dyn Selector>, _: Option<&StoredIncumbent>, _: &ChoiceSet, _: u64) -> Box<dyn Selector> {
    selector
}

/// The methods by their names, without the guard.
#[cfg(feature = "select")]
fn methods() -> Vec<(String, Box<dyn FitSelector>)> {
    use tilewright_variant_select::forest::CostForest;
    use tilewright_variant_select::regression::Regression;
    use tilewright_variant_select::trees::BoostedTrees;
    let trees = BoostedTrees { trees: 60, leaves: 16, ..BoostedTrees::default() };
    vec![
        ("forest".to_owned(), Box::new(CostForest::thorough())),
        ("trees".to_owned(), Box::new(trees)),
        ("regression".to_owned(), Box::new(Regression::default())),
    ]
}

#[cfg(not(feature = "select"))]
fn methods() -> Vec<(String, Box<dyn FitSelector>)> {
    Vec::new()
}

/// Methods that rank, and expect no costs.
const ONLY_RANKS: [&str; 1] = ["regression"];

/// Folds of each cross-validation.
#[cfg(feature = "select")]
const FOLDS: usize = 3;

/// A choice with less of the incumbent's performance is for the worse: what is closer is noise.
pub const FLOOR: f64 = 0.97;

/// The mean fraction of the oracle on unseen inputs that the method of a selector comes to where the kernels' own rating leads it; none where
/// that cannot be said.
#[cfg(feature = "select")]
pub(super) fn worth_of_ratings(cases: &Cases, header: &SelectorHeader) -> Option<f64> {
    use super::led::{Led, with_ratings};
    use tilewright_variant_select::evaluate::cross_validate;
    use tilewright_variant_select::guard::Guarded;
    let (_, method) = methods().into_iter().find(|(name, _)| *name == header.method)?;
    let cases = with_ratings(cases).ok()?;
    cross_validate(&Led(&Guarded(method)), &cases, FOLDS, header.seed).ok().map(|scores| scores.fraction_of_oracle)
}

#[cfg(not(feature = "select"))]
pub(super) fn worth_of_ratings(_: &Cases, _: &SelectorHeader) -> Option<f64> {
    None
}

/// The best method, of all or of those that expect costs, and its mean fraction of the oracle on unseen inputs.
#[cfg(feature = "select")]
fn chosen(cases: &ChoiceSet, seed: u64, expects: bool) -> Result<(String, Option<f64>), SelectError> {
    use tilewright_variant_select::evaluate::{Auto, cross_validate};
    use tilewright_variant_select::guard::Guarded;
    let methods = methods().into_iter().filter(|(name, _)| !expects || !ONLY_RANKS.contains(&&**name));
    let guarded = |(name, method)| (name, Box::new(Guarded(method)) as Box<dyn FitSelector>);
    let auto = Auto { methods: methods.map(guarded).collect(), folds: FOLDS };
    let (name, _) = auto.choose(cases, seed)?;
    let method = auto.methods.iter().find(|(known, _)| *known == name);
    let scores = method.map(|(_, method)| cross_validate(&**method, cases, auto.folds, seed));
    Ok((name, scores.and_then(Result::ok).map(|s| s.fraction_of_oracle)))
}

#[cfg(not(feature = "select"))]
fn chosen(_: &ChoiceSet, _: u64, _: bool) -> Result<(String, Option<f64>), SelectError> {
    Err(SelectError::TooFew { what: "methods", found: 0, needed: 1 })
}

/// The header's method, keeping a kernel.
#[cfg(feature = "select")]
fn incumbent(
    header: &SelectorHeader,
    kernel: &KernelId,
) -> Option<tilewright_variant_select::incumbent::Incumbent<Box<dyn FitSelector>>> {
    let (_, method) = methods().into_iter().find(|(name, _)| *name == header.method)?;
    Some(tilewright_variant_select::incumbent::Incumbent { method, variant: kernel.to_string(), floor: FLOOR })
}

#[cfg(feature = "select")]
fn margin(header: &SelectorHeader, cases: &ChoiceSet, kernel: &KernelId) -> Result<Option<f64>, SelectError> {
    incumbent(header, kernel).map(|method| method.margin(cases, header.seed)).transpose()
}

#[cfg(not(feature = "select"))]
fn margin(_: &SelectorHeader, _: &ChoiceSet, _: &KernelId) -> Result<Option<f64>, SelectError> {
    Ok(None)
}

/// A header's method as [`StoredSelector::keeping`] makes it: to be judged on cases that it was not fitted on.
#[cfg(feature = "select")]
struct Keeping<'a>(&'a SelectorHeader, &'a KernelId);

#[cfg(feature = "select")]
impl FitSelector for Keeping<'_> {
    fn fit(&self, data: &ChoiceSet, seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        let Some(method) = incumbent(self.0, self.1) else { return Err(SelectError::NothingLegal) };
        let margin = Some(method.margin(data, seed)?);
        let incumbent = StoredIncumbent { kernel: self.1.clone(), margin, fraction_of_oracle: None };
        Ok(guarded(method.method.fit(data, seed)?, Some(&incumbent), data, seed))
    }
}

/// The mean fraction of the oracle on unseen inputs of a selector that keeps a kernel; none where that cannot be said.
#[cfg(feature = "select")]
fn worth_of_keeping(StoredSelector { header, cases }: &StoredSelector) -> Option<f64> {
    let method = Keeping(header, &header.incumbent.as_ref()?.kernel);
    let scores = tilewright_variant_select::evaluate::cross_validate(&method, cases, FOLDS, header.seed);
    scores.ok().map(|scores| scores.fraction_of_oracle)
}

#[cfg(not(feature = "select"))]
fn worth_of_keeping(_: &StoredSelector) -> Option<f64> {
    None
}
