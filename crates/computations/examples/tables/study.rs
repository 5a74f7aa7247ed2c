//! One computation on all devices.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::path::Path;
use std::time::Instant;
use tilewright_core::choice::{ChoiceSet, FitSelector};
use tilewright_core::expr::Value;
use tilewright_core::metrics::ChoiceScores;
use tilewright_core::selector::{Candidate, Selector, VariantOrder};
use tilewright_datasets::{Dataset, FeatureTable, SplitSpec};
use tilewright_mtl::baselines::{BestOnSources, Majority};
use tilewright_mtl::cvdfs::CvDfs;
use tilewright_mtl::device::DeviceTable;
use tilewright_mtl::forward::Forward;
use tilewright_mtl::profile::parse_profiles;
use tilewright_mtl::transfer::{Dfs, Profiles, tune_from_source};
use tilewright_mtl::view::{OnDevice, View};
use tilewright_mtl::{Source, Sources};

type Fault = Box<dyn Error>;

/// The mean fraction of the oracle's performance; 0 where nothing ran.
fn fraction(selector: &dyn Selector, cases: &ChoiceSet) -> f64 {
    ChoiceScores::of(selector, cases).map_or(0.0, |scores| scores.fraction_of_oracle)
}

/// Scores by target.
pub(crate) type OfTargets = Vec<(String, Scores)>;

/// Cases of each device that CV-DFS compares features on.
const COMPARED: usize = 120;

/// Fractions of the oracle's performance.
#[derive(Clone, Default)]
pub(crate) struct Scores {
    values: [f64; 9],
}

/// What the numbers of [`Scores`] are of.
pub(crate) const METHODS: [&str; 9] =
    ["native", "full", "p-dfs", "cv-written", "cv-dfs", "rehearsed", "majority", "fixed", "random"];

/// What learns.
pub(crate) struct Learners {
    /// Chooses.
    pub choose: Box<dyn FitSelector>,
    /// Stands for it where CV-DFS compares features: thousands of models are fitted.
    pub compare: Box<dyn FitSelector>,
}

impl fmt::Display for Scores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> = self.values.iter().map(|v| format!("{:.1}", 100.0 * v)).collect();
        f.write_str(&shown.join(" "))
    }
}

impl Scores {
    /// In percent.
    pub(crate) fn percent(&self) -> Vec<f64> {
        self.values.iter().map(|v| 100.0 * v).collect()
    }

    /// The mean.
    pub(crate) fn mean(all: &[Self]) -> Self {
        let mut out = Self::default();
        for scores in all {
            out.values.iter_mut().zip(scores.values).for_each(|(o, v)| *o += v / all.len() as f64);
        }
        out
    }
}

/// Measurements of one computation.
pub(crate) struct Study {
    /// The computation.
    pub name: String,
    dataset: Dataset,
    table: FeatureTable,
    devices: Vec<String>,
    facts: DeviceTable,
    profiles: Profiles,
}

impl Study {
    /// Reads dataset, devices and profiles.
    pub(crate) fn read(folder: &Path, name: &str) -> Result<Self, Fault> {
        let dataset = Dataset::read(folder.join(format!("{name}.csv")))?;
        let facts = DeviceTable::parse(&std::fs::read(folder.join("devices.csv"))?)?;
        let variants = parse_profiles(&std::fs::read(folder.join(format!("{name}-profiles.csv")))?)?;
        let mut devices: Vec<String> = Vec::new();
        for device in (0..dataset.len()).map(|row| dataset.device(row)) {
            if !devices.contains(&device) {
                devices.push(device);
            }
        }
        let table = dataset.features_on_any_device()?;
        Ok(Self {
            name: name.into(),
            table,
            dataset,
            devices,
            facts,
            profiles: Profiles { variants, proxies: Vec::new() },
        })
    }

    fn cases(&self, device: &str, rows: &[usize]) -> Result<ChoiceSet, Fault> {
        // Constraints are known before a choice: what does not apply is no candidate.
        let status = self.dataset.columns().iter().find(|c| c.name() == "status");
        let applies = |row: usize| status.and_then(|c| c.get(row)).is_none_or(|s| s.as_str() != Some("illegal"));
        let own = rows.iter().copied().filter(|&r| self.dataset.device(r) == device && applies(r));
        let own: Vec<usize> = own.collect();
        Ok(self.dataset.choices_from(&self.table, &own)?)
    }

    fn sources(&self, devices: &[&String], rows: &[usize]) -> Result<Sources, Fault> {
        let source = |device: &&String| -> Result<Source, Fault> {
            let features = self.facts.of(device)?.clone();
            Ok(Source { device: (*device).clone(), features, cases: self.cases(device, rows)? })
        };
        Ok(Sources::new(devices.iter().map(source).collect::<Result<_, _>>()?)?)
    }

    fn split(&self, holdout: f64, seed: u64) -> Result<(Vec<usize>, Vec<usize>), Fault> {
        let split = self.dataset.split(&SplitSpec::Column("input".into(), holdout), seed)?;
        Ok((split.train, split.held_out))
    }

    /// Table 4, and how many inputs have different winners on different devices (Figure 4).
    pub(crate) fn print_winners(&self) {
        let mut best: BTreeMap<(String, String), (f64, String)> = BTreeMap::new();
        let input = self.dataset.columns().iter().find(|c| c.name() == "input");
        let word = |row: usize| input.and_then(|c| c.get(row)).map_or_else(String::new, Value::to_string);
        for row in 0..self.dataset.len() {
            let Some(time) = self.dataset.time_s(row) else { continue };
            let key = (word(row), self.dataset.device(row));
            let variant = self.dataset.variant(row).unwrap_or_default();
            let entry = best.entry(key).or_insert((time, variant.clone()));
            if time < entry.0 {
                *entry = (time, variant);
            }
        }
        let mut winners: BTreeMap<&String, Vec<&String>> = BTreeMap::new();
        best.iter().for_each(|((input, _), (_, variant))| winners.entry(input).or_default().push(variant));
        let sensitive = winners.values().filter(|w| w.iter().any(|v| v != &w[0])).count();
        let share = 100.0 * sensitive as f64 / winners.len().max(1) as f64;
        println!(
            "\nTable 4: {}, {} inputs; {share:.1}% have different winners on different devices (Figure 4)",
            self.name,
            winners.len()
        );
        let mut variants: Vec<&String> = best.values().map(|(_, v)| v).collect();
        variants.sort();
        variants.dedup();
        println!("device {}", variants.iter().map(|v| v.as_str()).collect::<Vec<_>>().join(" "));
        for device in &self.devices {
            let own: Vec<&String> = best.iter().filter(|((_, d), _)| d == device).map(|(_, (_, v))| v).collect();
            let share = |v: &&String| 100.0 * own.iter().filter(|w| *w == v).count() as f64 / own.len().max(1) as f64;
            println!("{device} {}", variants.iter().map(|v| format!("{:.1}", share(v))).collect::<Vec<_>>().join(" "));
        }
    }

    /// What exhaustive search is sure of: the fastest of the even visits, judged by the odd ones, and the other way.
    pub(crate) fn print_noise(&self) {
        let column = |name: &str| self.dataset.columns().iter().find(|c| c.name() == name);
        let (Some(input), Some(even), Some(odd)) = (column("input"), column("even_s"), column("odd_s")) else { return };
        let mut cases: BTreeMap<(String, String), Vec<[f64; 2]>> = BTreeMap::new();
        for row in 0..self.dataset.len() {
            let number = |c: &tilewright_datasets::Column| c.get(row).and_then(Value::as_f64);
            if let (Some(even), Some(odd)) = (number(even), number(odd)) {
                let word = input.get(row).map_or_else(String::new, Value::to_string);
                cases.entry((self.dataset.device(row), word)).or_default().push([even, odd]);
            }
        }
        let mut of_device: BTreeMap<&String, (f64, usize)> = BTreeMap::new();
        for ((device, _), times) in &cases {
            let least = |half: usize| times.iter().min_by(|a, b| a[half].total_cmp(&b[half])).copied();
            let (Some(by_even), Some(by_odd)) = (least(0), least(1)) else { continue };
            let entry = of_device.entry(device).or_default();
            entry.0 += (by_odd[1] / by_even[1] + by_even[0] / by_odd[0]) / 2.0;
            entry.1 += 1;
        }
        let share = |d: &String| of_device.get(d).map_or(0.0, |(sum, n)| 100.0 * sum / *n as f64);
        let shares: Vec<f64> = self.devices.iter().map(share).collect();
        let shown: Vec<String> = shares.iter().map(|s| format!("{s:.1}")).collect();
        println!("{} {} mean {:.1}", self.name, shown.join(" "), shares.iter().sum::<f64>() / shares.len() as f64);
    }

    /// All ways to choose on a target, learning from these sources.
    fn compare(
        &self,
        target: &str,
        from: &[&String],
        learners: &Learners,
        split: &(Vec<usize>, Vec<usize>),
        seed: u64,
    ) -> Result<Scores, Fault> {
        let (train, test) = split;
        let sources = self.sources(from, train)?;
        let held_out = self.cases(target, test)?;
        let facts = self.facts.of(target)?;
        let choose = &*learners.choose;
        let score = |selector: &dyn Selector| fraction(selector, &held_out);
        let native = score(&*choose.fit(&self.cases(target, train)?, seed)?);
        let transferred = |dfs: Dfs| -> Result<f64, Fault> {
            Ok(score(&tune_from_source(&sources, (target, facts), &dfs, choose, seed)?))
        };
        let written = self.cross_validated(&sources, target, learners, seed)?;
        let forward = self.forward(&sources, target, learners, seed)?;
        Ok(Scores {
            values: [
                native,
                transferred(Dfs::Full)?,
                transferred(Dfs::Profiled(self.profiles.clone()))?,
                score(&self.with_features(&sources, target, &written, choose)?),
                score(&self.with_features(&sources, target, &forward, choose)?),
                transferred(Dfs::Rehearsed)?,
                score(&Majority::fit(&sources, choose, seed)?),
                score(&BestOnSources::fit(&sources)),
                ChoiceScores::at_random(&held_out),
            ],
        })
    }

    /// The features that Algorithm 2 finds among those of Algorithm 1.
    fn cross_validated(
        &self,
        sources: &Sources,
        target: &str,
        learners: &Learners,
        seed: u64,
    ) -> Result<Vec<String>, Fault> {
        let settings = CvDfs { cases: COMPARED, ..CvDfs::default() };
        let dfs = Dfs::CrossValidated(settings, Some(self.profiles.clone()));
        let tuned = tune_from_source(sources, (target, self.facts.of(target)?), &dfs, &*learners.compare, seed)?;
        Ok(tuned.features)
    }

    /// The features that the improved algorithm finds among all.
    fn forward(&self, sources: &Sources, target: &str, learners: &Learners, seed: u64) -> Result<Vec<String>, Fault> {
        let dfs = Dfs::Forward(Forward { cases: COMPARED, ..Forward::default() });
        Ok(tune_from_source(sources, (target, self.facts.of(target)?), &dfs, &*learners.compare, seed)?.features)
    }

    /// A model for a target by these features of devices.
    fn with_features(
        &self,
        sources: &Sources,
        target: &str,
        features: &[String],
        learner: &dyn FitSelector,
    ) -> Result<OnDevice, Fault> {
        let view = View::concatenated(sources, features)?;
        let values = view.values(target, self.facts.of(target)?)?;
        Ok(OnDevice { inner: learner.fit(&view.pool(sources)?, 0)?, values })
    }

    fn others(&self, not: &[&String]) -> Vec<&String> {
        self.devices.iter().filter(|d| !not.contains(d)).collect()
    }

    /// Every device as the target once.
    pub(crate) fn figure6(
        &self,
        learners: &Learners,
        repeats: u64,
        holdout: f64,
    ) -> Result<Vec<(String, Scores)>, Fault> {
        let mut out = Vec::new();
        for target in &self.devices {
            let mut scores = Vec::new();
            for seed in 0..repeats {
                scores.push(self.compare(
                    target,
                    &self.others(&[target]),
                    learners,
                    &self.split(holdout, seed)?,
                    seed,
                )?);
            }
            let mean = Scores::mean(&scores);
            println!("{} {target} {mean}", self.name);
            out.push((target.clone(), mean));
        }
        println!("{} mean {}", self.name, Scores::mean(&out.iter().map(|s| s.1.clone()).collect::<Vec<_>>()));
        Ok(out)
    }

    /// Every device as the target, without each of the others in turn: for each that is missing, targets with scores.
    pub(crate) fn figure7(
        &self,
        learners: &Learners,
        repeats: u64,
        holdout: f64,
    ) -> Result<Vec<(String, OfTargets)>, Fault> {
        let mut out = Vec::new();
        for without in &self.devices {
            let mut of_targets = Vec::new();
            for target in self.others(&[without]) {
                let mut scores = Vec::new();
                for seed in 0..repeats {
                    let from = self.others(&[without, target]);
                    scores.push(self.compare(target, &from, learners, &self.split(holdout, seed)?, seed)?);
                }
                let mean = Scores::mean(&scores);
                println!("{without} {target} {mean}");
                of_targets.push((target.clone(), mean));
            }
            out.push((without.clone(), of_targets));
        }
        Ok(out)
    }

    /// Prints the row of the computation and gives the best features.
    pub(crate) fn table5(&self, learners: &Learners, holdout: f64) -> Result<Vec<String>, Fault> {
        let learner = &*learners.compare;
        let split = self.split(holdout, 0)?;
        let (mut subsets, mut frequent): (BTreeMap<Vec<String>, f64>, BTreeMap<String, usize>) = Default::default();
        let mut improved: BTreeMap<String, usize> = BTreeMap::new();
        let (mut proxies, mut profile_s, mut validate_s, mut forward_s) = (Vec::new(), 0.0, 0.0, 0.0);
        for target in &self.devices {
            let sources = self.sources(&self.others(&[target]), &split.0)?;
            let (facts, held_out) = (self.facts.of(target)?, self.cases(target, &split.1)?);
            let start = Instant::now();
            let dfs = Dfs::Profiled(self.profiles.clone());
            let profiled = tune_from_source(&sources, (target, facts), &dfs, learner, 0)?;
            profile_s += start.elapsed().as_secs_f64();
            proxies = profiled.reason.profiled.map_or_else(Vec::new, |p| p.proxies);
            let start = Instant::now();
            let validated = self.cross_validated(&sources, target, learners, 0)?;
            validate_s += start.elapsed().as_secs_f64();
            validated.iter().for_each(|f| *frequent.entry(f.clone()).or_default() += 1);
            let start = Instant::now();
            let forward = self.forward(&sources, target, learners, 0)?;
            forward_s += start.elapsed().as_secs_f64();
            *improved.entry(if forward.is_empty() { "none".into() } else { forward.join("+") }).or_default() += 1;
            for subset in pairs(&sources.features()) {
                let selector = self.with_features(&sources, target, &subset, learner)?;
                *subsets.entry(subset).or_default() += fraction(&selector, &held_out) / self.devices.len() as f64;
            }
        }
        let best = subsets.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.len().cmp(&a.0.len())));
        let (best, score) = best.unwrap_or_default();
        let most = frequent.into_iter().max_by_key(|f| f.1).map_or_else(String::new, |f| f.0);
        let n = self.devices.len() as f64;
        let (p, cv, forward) = (profile_s / n, validate_s / n, forward_s / n);
        let improved: Vec<String> = improved.into_iter().map(|(f, targets)| format!("{f} ({targets})")).collect();
        println!(
            "{}: best {} ({:.1}%); proxies {}; CV-DFS as written {most}, improved {}; \
             P-DFS {p:.3} s, CV-DFS as written {cv:.3} s, improved {forward:.3} s",
            self.name,
            best.join("+"),
            100.0 * score,
            proxies.join("+"),
            improved.join(", "),
        );
        Ok(best)
    }

    /// Cosines between devices, each feature standardised over them.
    pub(crate) fn print_similarity(&self, features: &[String]) -> Result<(), Fault> {
        let mut columns = Vec::new();
        for feature in features {
            let of = |d: &String| -> Result<f64, Fault> {
                Ok(self.facts.of(d)?.get(feature).and_then(Value::as_f64).unwrap_or(0.0))
            };
            let values = self.devices.iter().map(of).collect::<Result<Vec<f64>, _>>()?;
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let deviation = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt().max(1e-12);
            columns.push(values.iter().map(|v| (v - mean) / deviation).collect::<Vec<f64>>());
        }
        let dot = |a: usize, b: usize| columns.iter().map(|c| c[a] * c[b]).sum::<f64>();
        println!("{} by {}: {}", self.name, features.join("+"), self.devices.join(" "));
        for a in 0..self.devices.len() {
            let cosine = |b| dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(1e-12);
            let row: Vec<String> = (0..self.devices.len()).map(|b| format!("{:.1}", cosine(b))).collect();
            println!("{} {}", self.devices[a], row.join(" "));
        }
        Ok(())
    }

    /// Time of the features and of the prediction against what runs.
    pub(crate) fn print_overhead(&self, learner: &dyn FitSelector) -> Result<(), Fault> {
        let rows: Vec<usize> = (0..self.dataset.len()).collect();
        let Some(device) = self.devices.last() else { return Ok(()) };
        let cases = self.cases(device, &rows)?;
        let selector = learner.fit(&cases, 0)?;
        let mut order = VariantOrder::new();
        let start = Instant::now();
        const TIMES: usize = 20;
        for _ in 0..TIMES {
            for case in cases.cases() {
                let candidates: Vec<Candidate> = case.trials.iter().map(|t| t.candidate.clone()).collect();
                selector.rank(&case.features, &candidates, &mut order);
            }
        }
        let predict = start.elapsed().as_secs_f64() / (TIMES * cases.len().max(1)) as f64;
        let column = self.dataset.columns().iter().find(|c| c.name() == "features_s");
        let mut shares: Vec<f64> = Vec::new();
        let mut features_us: Vec<f64> = Vec::new();
        for row in rows.iter().copied().filter(|&r| self.dataset.device(r) == *device) {
            let features_s = column.and_then(|c| c.get(row)).and_then(Value::as_f64).unwrap_or(0.0);
            if let Some(time) = self.dataset.time_s(row) {
                shares.push((features_s + predict) / time);
                features_us.push(features_s * 1e6);
            }
        }
        let median = |v: &mut Vec<f64>| {
            v.sort_by(f64::total_cmp);
            v.get(v.len() / 2).copied().unwrap_or(0.0)
        };
        let (share, features_us) = (median(&mut shares), median(&mut features_us));
        println!(
            "{} on {device}: features {features_us:.1} us, prediction {:.1} us, {:.1}% of a run (medians)",
            self.name,
            predict * 1e6,
            100.0 * share
        );
        Ok(())
    }
}

/// All sets of one or two.
fn pairs(features: &[String]) -> Vec<Vec<String>> {
    let mut out: Vec<Vec<String>> = features.iter().map(|f| vec![f.clone()]).collect();
    for (i, a) in features.iter().enumerate() {
        out.extend(features[i + 1..].iter().map(|b| vec![a.clone(), b.clone()]));
    }
    out
}
