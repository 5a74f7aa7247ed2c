//! A selector among kernels for a device that has none of its own: from what other devices recorded, and from the few inputs that were
//! timed here.

use super::records::name_of;
use super::transfer::{about, sentence};
use crate::error::Error;
use std::collections::BTreeSet;
use tilewright_core::choice::{Case, FitSelector};
use tilewright_core::device::DeviceSpec;
use tilewright_core::feature::FeatureSchema;
use tilewright_core::text::counted;
use tilewright_mtl::baselines::Majority;
use tilewright_mtl::device::queried;
use tilewright_mtl::experts::Experts;
use tilewright_mtl::shots::{Adapted, Differences, likeness};
use tilewright_mtl::transfer::{Dfs, tune_by_best};
use tilewright_mtl::{Source, Sources};
use tilewright_repository::{RepositoryError, open_existing, training};
use tilewright_runtime::store::Home;
use tilewright_variant_select::extra::ExtraTrees;
use tilewright_variant_select::forest::CostForest;
use tilewright_variant_select::guard::Guarded;

/// A selector among a computation's kernels that was learned from other devices.
pub struct KnownSelector {
    /// Ranks kernels by the input's features, and says what its first choice may lose.
    pub selector: Adapted,
    /// The kernels that it was learned on.
    pub variants: Vec<String>,
    /// The inputs that it was learned on.
    pub inputs: u64,
    /// The inputs that were timed on this device, which it has learned too.
    pub shots: Vec<Case>,
    /// What it was learned from, as part of a sentence.
    pub reason: String,
}

/// A selector for a device that has none of its own, from the cases that other devices recorded of the computation, and those few that
/// were timed here; none where nothing ran on the others.
///
/// # Errors
/// A repository that cannot be read or reached, records that are damaged or do not belong together, a target that shares no feature
/// with them.
pub fn selector(
    home: &Home,
    computation: &str,
    device: &DeviceSpec,
    schema: &FeatureSchema,
) -> Result<Option<KnownSelector>, Error> {
    let Some((own, sources)) = recorded(home, computation, device, schema)? else { return Ok(None) };
    let target = queried(device);
    let (extra, forest) = (Guarded(ExtraTrees::default()), Guarded(CostForest::thorough()));
    let learners: [&dyn FitSelector; 2] = [&extra, &forest];
    let (tuned, at) = tune_by_best(&sources, (&name_of(device), &target), &Dfs::LeaveOneOut, &learners, 0)?;
    let experts = Experts::led_by(tuned.selector, Majority::fit(&sources, learners[at], 0)?.into_experts());
    let like = &sources.all()[0].cases;
    let mut selector =
        Adapted::new(experts, Differences::default(), (like, &likeness(&sources))).with_confidence(tuned.confidence);
    let shots = own.map_or_else(Vec::new, |own| own.cases.cases().to_vec());
    selector.learn(&shots)?;
    let names: Vec<String> = sources.all().iter().map(|s| about(&s.device, &s.features, &target)).collect();
    let cases = || sources.all().iter().flat_map(|s| s.cases.cases()).chain(&shots);
    let variants: BTreeSet<&str> = cases().flat_map(|c| &c.trials).map(|t| t.candidate.variant.as_str()).collect();
    let variants = variants.into_iter().map(str::to_owned).collect();
    let inputs = cases().count() - shots.len();
    let mut reason = sentence(&names, inputs);
    if !shots.is_empty() {
        reason += &format!(", and {} timed here", counted(shots.len(), "input"));
    }
    Ok(Some(KnownSelector { selector, variants, inputs: inputs as u64, shots, reason }))
}

/// What this device recorded of a computation, where anything, and what others did; none where nothing ran. Records of this device
/// alone stand for those of another.
fn recorded(
    home: &Home,
    computation: &str,
    device: &DeviceSpec,
    schema: &FeatureSchema,
) -> Result<Option<(Option<Source>, Sources)>, Error> {
    let Some(mut repository) = open_existing(&home.repository())? else { return Ok(None) };
    let mut sources = training(&mut *repository, computation)?.sources;
    let other = |s: &Source| s.cases.schema().input != schema.input;
    if let (Some(one), true) = (sources.iter().find(|s| other(s)), sources.iter().all(other)) {
        let key = format!("{computation} on {}", one.device);
        let (found, expected) = (one.cases.schema().hash(), schema.hash());
        return Err(RepositoryError::schema(key, &found, &expected).into());
    }
    let ran = |s: &Source| s.cases.cases().iter().any(|case| case.best().is_some());
    sources.retain(|s| !other(s) && ran(s));
    let name = name_of(device);
    let own = sources.iter().position(|s| s.device == name).filter(|_| sources.len() > 1);
    let own = own.map(|at| sources.remove(at));
    if sources.is_empty() {
        return Ok(None);
    }
    Ok(Some((own, Sources::overlapping(sources)?)))
}
