//! Variants of a function behind one call, in the spirit of Nitro's listings: name them, record, tune, call.

mod error;
mod explain;

pub use error::VariantError;
pub use explain::{Explanation, FeatureCost};

use crate::guard::guarded;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use tilewright_core::choice::{Case, ChoiceSet, FitSelector, Trial};
use tilewright_core::feature::{Feature, FeatureSchema};
use tilewright_core::selector::{Candidate, Selector, VariantOrder};

type Call<I, O> = Box<dyn Fn(&I) -> O + Send + Sync>;
type Test<I> = Box<dyn Fn(&I) -> bool + Send + Sync>;
type Number<I> = Box<dyn Fn(&I) -> f64 + Send + Sync>;

/// Names what a [`VariantSet`] is made of.
pub struct CodeVariants<I, O> {
    name: String,
    variants: Vec<(String, Call<I, O>)>,
    features: Vec<Computed<I>>,
    constraints: Vec<(String, String, Test<I>)>,
    default: Fallback,
}

/// A feature, and what computing it has cost so far.
struct Computed<I> {
    feature: Feature,
    of: Number<I>,
    calls: AtomicU64,
    nanoseconds: AtomicU64,
}

/// The place of a variant.
fn find<T>(variants: &[(String, T)], name: &str) -> Result<usize, VariantError> {
    variants.iter().position(|v| v.0 == name).ok_or_else(|| VariantError::Unknown { name: name.into() })
}

/// What runs before anything is tuned.
enum Fallback {
    /// Nobody has said.
    Unnamed,
    /// This variant.
    Named(String),
    /// The first that is legal, if one is.
    Waived,
}

impl<I, O> CodeVariants<I, O> {
    /// No variants yet.
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), variants: vec![], features: vec![], constraints: vec![], default: Fallback::Unnamed }
    }

    /// Adds an implementation. All must give the same result.
    #[must_use]
    pub fn variant(mut self, name: &str, run: impl Fn(&I) -> O + Send + Sync + 'static) -> Self {
        self.variants.push((name.into(), Box::new(run)));
        self
    }

    /// Adds a feature of the input: a size, a count or a ratio. It is computed when a choice needs it.
    #[must_use]
    pub fn feature(self, name: &str, of: impl Fn(&I) -> f64 + Send + Sync + 'static) -> Self {
        self.add_feature(Feature::size(name), of)
    }

    /// Adds a feature that is 0 or 1, or best left on its own scale.
    #[must_use]
    pub fn flag(self, name: &str, of: impl Fn(&I) -> f64 + Send + Sync + 'static) -> Self {
        self.add_feature(Feature::flag(name), of)
    }

    fn add_feature(mut self, feature: Feature, of: impl Fn(&I) -> f64 + Send + Sync + 'static) -> Self {
        let (of, calls, nanoseconds) = (Box::new(of), AtomicU64::new(0), AtomicU64::new(0));
        self.features.push(Computed { feature, of, calls, nanoseconds });
        self
    }

    /// A variant may only run where this holds; `why` is what an explanation says where it does not.
    #[must_use]
    pub fn constraint(mut self, variant: &str, why: &str, holds: impl Fn(&I) -> bool + Send + Sync + 'static) -> Self {
        self.constraints.push((variant.into(), why.into(), Box::new(holds)));
        self
    }

    /// The variant that runs before anything is tuned. It may not have a constraint, so that a call always has an answer.
    #[must_use]
    pub fn default_variant(mut self, name: &str) -> Self {
        self.default = Fallback::Named(name.into());
        self
    }

    /// For sets in which no variant is legal for every input: before anything is tuned the first legal one runs, and a call for
    /// an input without one is an error.
    #[must_use]
    pub fn without_default(mut self) -> Self {
        self.default = Fallback::Waived;
        self
    }

    /// Checks the names.
    ///
    /// # Errors
    /// No variants, two of a name, a constraint or a default of a variant that is not there, a default with a constraint, no
    /// default where [`CodeVariants::without_default`] does not say so.
    pub fn build(self) -> Result<VariantSet<I, O>, VariantError> {
        if self.variants.is_empty() {
            return Err(VariantError::Empty { set: self.name });
        }
        let twice =
            |names: Vec<&str>| (1..names.len()).find(|&i| names[..i].contains(&names[i])).map(|i| names[i].to_owned());
        let variants = twice(self.variants.iter().map(|v| v.0.as_str()).collect());
        let features = twice(self.features.iter().map(|f| f.feature.name.as_str()).collect());
        if let Some(name) = variants.or(features) {
            return Err(VariantError::Twice { name });
        }
        let default = match &self.default {
            Fallback::Named(name) => Some(find(&self.variants, name)?),
            Fallback::Waived => None,
            Fallback::Unnamed => return Err(VariantError::NoDefault { set: self.name }),
        };
        let mut constraints = Vec::new();
        for (variant, why, holds) in self.constraints {
            let at = find(&self.variants, &variant)?;
            if Some(at) == default {
                return Err(VariantError::ConstrainedDefault { name: variant });
            }
            constraints.push((at, why, holds));
        }
        let schema =
            FeatureSchema { input: self.features.iter().map(|f| f.feature.clone()).collect(), config: Vec::new() };
        let candidates =
            self.variants.iter().map(|v| Candidate { variant: v.0.clone(), features: Vec::new() }).collect();
        Ok(VariantSet {
            name: self.name,
            variants: self.variants,
            features: self.features,
            constraints,
            default,
            candidates,
            recorded: ChoiceSet::new(schema),
            selector: None,
        })
    }
}

/// Variants that can be recorded, tuned and called.
pub struct VariantSet<I, O> {
    name: String,
    variants: Vec<(String, Call<I, O>)>,
    features: Vec<Computed<I>>,
    constraints: Vec<(usize, String, Test<I>)>,
    default: Option<usize>,
    candidates: Vec<Candidate>,
    recorded: ChoiceSet,
    selector: Option<Box<dyn Selector>>,
}

/// How a choice was come to.
struct Chosen {
    order: Vec<usize>,
    features: Option<Vec<f32>>,
    features_s: f64,
    selection_s: f64,
    reason: &'static str,
}

impl<I, O> VariantSet<I, O> {
    /// What was recorded so far, to be kept or judged.
    pub fn recorded(&self) -> &ChoiceSet {
        &self.recorded
    }

    /// Runs every legal variant `repeats` times on an input, and remembers the best time of each.
    ///
    /// # Errors
    /// No variant is legal for the input.
    pub fn record(&mut self, input: &I, repeats: usize) -> Result<(), VariantError> {
        self.record_checked(input, repeats, |_| true)
    }

    /// As [`VariantSet::record`], for variants that may fail or be wrong: one of which a result is not `right` counts as failed on
    /// this input, however fast it was. The check is not timed.
    ///
    /// # Errors
    /// No variant is legal for the input and right.
    pub fn record_checked(
        &mut self,
        input: &I,
        repeats: usize,
        right: impl Fn(&O) -> bool,
    ) -> Result<(), VariantError> {
        let time = |call: &Call<I, O>| {
            let once = || {
                let start = Instant::now();
                let result = std::hint::black_box(call(input));
                // A clock too coarse to see the call must not make it free.
                let seconds = start.elapsed().as_secs_f64().max(1e-9);
                right(&result).then_some(seconds)
            };
            (0..repeats.max(1)).try_fold(f64::INFINITY, |least, _| once().map(|seconds| least.min(seconds)))
        };
        let legal = self.legal(input);
        let of = |v: usize| if legal.contains(&v) { time(&self.variants[v].1) } else { None };
        let times = (0..self.variants.len()).map(of).collect();
        self.remember(input, times)
    }

    /// Remembers times that the caller measured: seconds by variant. A variant without one counts as failed.
    ///
    /// # Errors
    /// A name that is no variant, a time that is not positive and finite, no variant that is legal and has a time.
    pub fn record_times(&mut self, input: &I, times: &[(&str, f64)]) -> Result<(), VariantError> {
        let legal = self.legal(input);
        let mut all = vec![None; self.variants.len()];
        for &(name, seconds) in times {
            let v = find(&self.variants, name)?;
            all[v] = legal.contains(&v).then_some(seconds);
        }
        self.remember(input, all)
    }

    fn remember(&mut self, input: &I, times: Vec<Option<f64>>) -> Result<(), VariantError> {
        if times.iter().all(Option::is_none) {
            return Err(self.nothing_legal(input));
        }
        let features = self.compute(input);
        let trials = self.candidates.iter().zip(times);
        let trials = trials.map(|(candidate, cost)| Trial { candidate: candidate.clone(), cost }).collect();
        let group = u32::try_from(self.recorded.len()).unwrap_or(u32::MAX);
        Ok(self.recorded.push(Case { features, trials, group })?)
    }

    /// Fits a selector on what was recorded, [guarded](crate::guard) against variants that failed. Until then, and where it
    /// fails, the default runs.
    ///
    /// # Errors
    /// Too little to learn from; the selector that was there stays.
    pub fn tune(&mut self, method: &dyn FitSelector, seed: u64) -> Result<(), VariantError> {
        self.selector = Some(guarded(method.fit(&self.recorded, seed)?, &self.recorded, seed));
        Ok(())
    }

    /// Chooses by a selector from elsewhere: one that other devices' records gave, as `tilewright_mtl::transfer` builds. It
    /// ranks by the features of this set, in the order they were named.
    pub fn adopt(&mut self, selector: Box<dyn Selector>) {
        self.selector = Some(selector);
    }

    /// Runs the variant that is expected to be fastest for the input.
    ///
    /// # Errors
    /// No variant is legal for the input; cannot happen with a default.
    pub fn call(&self, input: &I) -> Result<O, VariantError> {
        let v = self.choose(input)?.order[0];
        Ok((self.variants[v].1)(input))
    }

    /// What [`VariantSet::call`] would run, and why.
    ///
    /// # Errors
    /// As [`VariantSet::call`].
    pub fn explain(&self, input: &I) -> Result<Explanation, VariantError> {
        let chosen = self.choose(input)?;
        let name = |v: usize| self.variants[v].0.clone();
        let names = self.features.iter().map(|f| f.feature.name.clone());
        let failing = self.constraints.iter().filter(|(_, _, holds)| !holds(input));
        Ok(Explanation {
            chosen: name(chosen.order[0]),
            order: chosen.order.iter().map(|&v| name(v)).collect(),
            illegal: failing.map(|(v, why, _)| (name(*v), why.clone())).collect(),
            features: names.zip(chosen.features.into_iter().flatten()).collect(),
            features_s: chosen.features_s,
            selection_s: chosen.selection_s,
            reason: chosen.reason.to_owned(),
        })
    }

    /// What computing each feature has cost since the set was built.
    pub fn feature_costs(&self) -> Vec<FeatureCost> {
        let cost = |f: &Computed<I>| FeatureCost {
            feature: f.feature.name.clone(),
            calls: f.calls.load(Relaxed),
            seconds: f.nanoseconds.load(Relaxed) as f64 * 1e-9,
        };
        self.features.iter().map(cost).collect()
    }

    fn legal(&self, input: &I) -> Vec<usize> {
        let mut legal = vec![true; self.variants.len()];
        for (v, _, holds) in &self.constraints {
            legal[*v] = legal[*v] && holds(input);
        }
        (0..legal.len()).filter(|&v| legal[v]).collect()
    }

    fn nothing_legal(&self, input: &I) -> VariantError {
        let failing = self.constraints.iter().filter(|(_, _, holds)| !holds(input));
        let reasons: Vec<String> = failing.map(|(v, why, _)| format!("{}: {why}", self.variants[*v].0)).collect();
        let reasons = if reasons.is_empty() { "none has a time".to_owned() } else { reasons.join("; ") };
        VariantError::NothingLegal { set: self.name.clone(), reasons }
    }

    fn compute(&self, input: &I) -> Vec<f32> {
        let one = |f: &Computed<I>| {
            let start = Instant::now();
            let value = (f.of)(input) as f32;
            f.calls.fetch_add(1, Relaxed);
            f.nanoseconds.fetch_add(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX), Relaxed);
            value
        };
        self.features.iter().map(one).collect()
    }

    /// Features are only computed where there is a model and something to choose between.
    fn choose(&self, input: &I) -> Result<Chosen, VariantError> {
        let mut order = self.legal(input);
        let plain = |order, reason| Chosen { order, features: None, features_s: 0.0, selection_s: 0.0, reason };
        if order.is_empty() {
            return Err(self.nothing_legal(input));
        }
        if order.len() == 1 {
            return Ok(plain(order, "no other variant is legal"));
        }
        let Some(selector) = &self.selector else {
            // Stable: the default first, the others as they were named.
            order.sort_by_key(|&v| Some(v) != self.default);
            return Ok(plain(order, "nothing is tuned yet"));
        };
        let start = Instant::now();
        let features = self.compute(input);
        let features_s = start.elapsed().as_secs_f64();
        let legal: Vec<Candidate> = order.iter().map(|&v| self.candidates[v].clone()).collect();
        let mut ranked = VariantOrder::new();
        let start = Instant::now();
        selector.rank(&features, &legal, &mut ranked);
        let selection_s = start.elapsed().as_secs_f64();
        // The selector may be anybody's: what it leaves out or names twice is no reason to fail.
        let mut ranks: Vec<usize> = vec![usize::MAX; order.len()];
        for (rank, &i) in ranked.iter().enumerate().filter(|(_, i)| **i < order.len()) {
            ranks[i] = ranks[i].min(rank);
        }
        let mut places: Vec<usize> = (0..order.len()).collect();
        places.sort_by_key(|&i| ranks[i]);
        Ok(Chosen {
            order: places.into_iter().map(|i| order[i]).collect(),
            features: Some(features),
            features_s,
            selection_s,
            reason: "the model expects it to be fastest",
        })
    }
}
