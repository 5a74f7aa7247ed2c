//! Two ways to count, on devices whose atomic operations cost more or less: a device that ran nothing is chosen for.

use tilewright_core::choice::{Case, ChoiceSet, Trial};
use tilewright_core::feature::{Feature, FeatureSchema};
use tilewright_core::metrics::ChoiceScores;
use tilewright_core::selector::Candidate;
use tilewright_core::space::Config;
use tilewright_mtl::cvdfs::CvDfs;
use tilewright_mtl::profile::{OperationCounts, Profile};
use tilewright_mtl::transfer::{Dfs, Profiles, tune_from_source};
use tilewright_mtl::{MtlError, Source, Sources};
use tilewright_variant_select::svm::Svm;

/// Sorting costs the same on all devices; atomics pay off where they are cheap, and where few of them collide.
fn record(device: &str, atomic: f64, gbps: f64) -> Result<Source, MtlError> {
    let schema = FeatureSchema { input: vec![Feature::size("n"), Feature::size("spread")], config: Vec::new() };
    let mut cases = ChoiceSet::new(schema);
    for i in 0..200u32 {
        let (n, spread) = (f64::from(1000 + 50 * i), f64::from(1 + (37 * i) % 97));
        let time = |variant: &str, cost: f64| Trial {
            candidate: Candidate { variant: variant.into(), features: Vec::new() },
            cost: Some(1e-9 * cost),
        };
        let trials = vec![time("sort", n), time("atomic", n * atomic * (1.0 + 20.0 / spread))];
        cases.push(Case { features: vec![n as f32, spread as f32], trials, group: i })?;
    }
    let features = Config(vec![("global_atomic".into(), atomic.into()), ("peak_gbps".into(), gbps.into())]);
    Ok(Source { device: device.into(), features, cases })
}

fn main() -> Result<(), MtlError> {
    let sources = Sources::new(vec![
        record("old", 0.9, 144.0)?,
        record("older", 1.2, 177.0)?,
        record("new", 0.1, 224.0)?,
        record("newer", 0.2, 86.0)?,
    ])?;
    let target = record("unseen", 0.15, 208.0)?;
    let counts = |atomics| OperationCounts { atomics, loads: 1.0, stores: 0.5, integer: 2.0, ..Default::default() };
    let profile = |variant: &str, atomics| Profile {
        variant: variant.into(),
        kernel: variant.into(),
        input: String::new(),
        metrics: counts(atomics).metrics(),
    };
    let profiles = Profiles { variants: vec![profile("sort", 0.0), profile("atomic", 6.0)], proxies: Vec::new() };
    let learner = Svm { widths: vec![2.0], penalties: vec![10.0], ..Svm::default() };
    for (name, dfs) in [
        ("full set", Dfs::Full),
        ("P-DFS", Dfs::Profiled(profiles.clone())),
        ("CV-DFS", Dfs::CrossValidated(CvDfs::default(), Some(profiles))),
        ("leave_one_out", Dfs::LeaveOneOut),
    ] {
        let tuned = tune_from_source(&sources, ("unseen", &target.features), &dfs, &learner, 0)?;
        let fraction = ChoiceScores::of(&tuned, &target.cases).map_or(0.0, |scores| scores.fraction_of_oracle);
        println!("{name:9} {fraction:.3} of the oracle by {}", tuned.features.join(" "));
    }
    Ok(())
}
