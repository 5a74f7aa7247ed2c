//! Profile device feature selection: what the variants stress says which device features matter (Algorithm 1).

use crate::error::MtlError;
use crate::profile::{Metrics, OperationCounts, Profile, ProxyRun, check_metrics};
use crate::role::Role;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A small program whose share of instructions of one kind is set from 0 to 5 fifths (Table 3).
#[derive(Clone, Debug, PartialEq)]
pub struct Proxy {
    /// Its name.
    pub name: String,
    /// The metrics that tell its intensity.
    pub metrics: Vec<String>,
    /// What of a device it stresses.
    pub roles: Vec<Role>,
}

/// The largest intensity.
pub const MOST: u8 = 5;

impl Proxy {
    /// The five proxies of the paper.
    pub fn all() -> Vec<Self> {
        let proxy = |name: &str, metrics: &[&str], roles: &[Role]| Self {
            name: name.into(),
            metrics: metrics.iter().map(|m| (*m).to_owned()).collect(),
            roles: roles.to_vec(),
        };
        let compute = |flops| [flops, Role::Cores, Role::Multiprocessors, Role::Clock];
        vec![
            proxy("SP-GFLOP", &["flop_count_sp", "inst_fp_32", "flop_sp_efficiency"], &compute(Role::Flops32)),
            proxy("DP-GFLOP", &["flop_count_dp", "inst_fp_64", "flop_dp_efficiency"], &compute(Role::Flops64)),
            proxy("ATOMIC", &ATOMIC, &[Role::Atomic]),
            proxy("MEM-BW", &MEMORY, &[Role::Bandwidth, Role::MemoryClock, Role::BusWidth, Role::Cache]),
            proxy("SH-MEM-BW", &SHARED, &[Role::Shared]),
        ]
    }

    /// Instructions of one iteration, ten in all: two of the proxy's kind for each step of the intensity, the others loads
    /// and stores (for the proxy of memory: integer arithmetic). None for a proxy that is not the paper's.
    pub fn mix(name: &str, intensity: u8) -> Option<OperationCounts> {
        let own = 2.0 * f64::from(intensity.min(MOST));
        let rest = 10.0 - own;
        let memory = OperationCounts { loads: rest / 2.0, stores: rest / 2.0, ..OperationCounts::default() };
        Some(match name {
            "SP-GFLOP" => OperationCounts { fp32: own, ..memory },
            "DP-GFLOP" => OperationCounts { fp64: own, ..memory },
            "ATOMIC" => OperationCounts { atomics: own, ..memory },
            "MEM-BW" => {
                OperationCounts { loads: own / 2.0, stores: own / 2.0, integer: rest, ..OperationCounts::default() }
            }
            "SH-MEM-BW" => OperationCounts { shared_loads: own / 2.0, shared_stores: own / 2.0, ..memory },
            _ => return None,
        })
    }

    /// Runs of the paper's proxies at every intensity, their metrics counted exactly.
    pub fn counted_runs() -> Vec<ProxyRun> {
        let of = |proxy: &Self| {
            let name = proxy.name.clone();
            (0..=MOST).filter_map(move |intensity| {
                let metrics = Self::mix(&name, intensity)?.metrics();
                Some(ProxyRun { proxy: name.clone(), intensity, metrics })
            })
        };
        Self::all().iter().flat_map(of).collect()
    }
}

const ATOMIC: [&str; 5] = [
    "atomic_transactions_per_request",
    "atomic_transactions",
    "l2_atomic_transactions",
    "l2_atomic_throughput",
    "atomic_throughput",
];
const MEMORY: [&str; 21] = [
    "l1_cache_global_hit_rate",
    "l1_cache_local_hit_rate",
    "gld_transactions",
    "gst_transactions",
    "local_load_transactions",
    "local_store_transactions",
    "gld_transactions_per_request",
    "gst_transactions_per_request",
    "local_load_transactions_per_request",
    "local_store_transactions_per_request",
    "stall_memory_dependency",
    "gld_efficiency",
    "gst_efficiency",
    "l2_l1_read_hit_rate",
    "l2_read_transactions",
    "l2_write_transactions",
    "dram_read_transactions",
    "dram_write_transactions",
    "l2_l1_read_transactions",
    "l2_l1_write_transactions",
    "l2_utilization",
];
const SHARED: [&str; 4] = [
    "shared_load_transactions",
    "shared_store_transactions",
    "shared_load_transactions_per_request",
    "shared_store_throughput",
];

/// Tells a proxy's intensity from metrics: one line a metric, weighted by how well it told the intensity of the proxy's own
/// runs. With six runs and up to 21 metrics, a joint regression would fit noise.
struct Intensity {
    /// Metric, offset, slope, weight.
    lines: Vec<(String, f64, f64, f64)>,
}

impl Intensity {
    fn fit(proxy: &Proxy, runs: &[ProxyRun]) -> Result<Self, MtlError> {
        let own: Vec<&ProxyRun> = runs.iter().filter(|r| r.proxy == proxy.name).collect();
        let line = |metric: &String| {
            let points: Vec<(f64, f64)> =
                own.iter().filter_map(|r| Some((*r.metrics.get(metric)?, f64::from(r.intensity)))).collect();
            let (offset, slope, fit) = regression(&points)?;
            Some((metric.clone(), offset, slope, fit))
        };
        let lines: Vec<_> = proxy.metrics.iter().filter_map(line).collect();
        if lines.is_empty() {
            return Err(MtlError::TooFew { what: "metrics that tell a proxy's intensity", found: 0, needed: 1 });
        }
        Ok(Self { lines })
    }

    /// From 0 to 5; none where no metric is known.
    fn of(&self, metrics: &Metrics) -> Option<f64> {
        let (mut sum, mut weights) = (0.0, 0.0);
        for (metric, offset, slope, weight) in &self.lines {
            if let Some(value) = metrics.get(metric) {
                sum += weight * (offset + slope * value).clamp(0.0, f64::from(MOST));
                weights += weight;
            }
        }
        (weights > 0.0).then(|| sum / weights)
    }
}

/// Offset, slope and the share of the variance that the line explains; none where x does not vary.
fn regression(points: &[(f64, f64)]) -> Option<(f64, f64, f64)> {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
    let (xx, xy) = (sum(&|p| (p.0 - x).powi(2)), sum(&|p| (p.0 - x) * (p.1 - y)));
    let yy = sum(&|p| (p.1 - y).powi(2));
    let usable = points.len() >= 2 && xx > 1e-12 * (1.0 + x * x) && yy > 0.0;
    usable.then(|| (y - xy / xx * x, xy / xx, xy * xy / (xx * yy))).filter(|(_, _, fit)| *fit > 1e-3)
}

/// What Algorithm 1 found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PdfsOutcome {
    /// The proxies that some kernel of some variant resembles most.
    pub proxies: Vec<String>,
    /// The device features that go with them.
    pub features: Vec<String>,
    /// Mean intensity of every proxy over the profiles, for an explanation.
    pub intensities: Vec<(String, f64)>,
}

/// Algorithm 1: for every kernel of every variant, the proxies that most inputs resemble most; the features of all of them,
/// among those that there are.
///
/// # Errors
/// No profile, a metric that makes no sense, no proxy whose runs tell its intensity.
pub fn pdfs(
    proxies: &[Proxy],
    runs: &[ProxyRun],
    profiles: &[Profile],
    features: &[String],
) -> Result<PdfsOutcome, MtlError> {
    if profiles.is_empty() {
        return Err(MtlError::TooFew { what: "profiles of variants", found: 0, needed: 1 });
    }
    runs.iter().try_for_each(|r| check_metrics(&r.proxy, &r.metrics))?;
    profiles.iter().try_for_each(|p| check_metrics(&p.kernel, &p.metrics))?;
    // A proxy that was not run here cannot be told.
    let known: Vec<(&Proxy, Intensity)> =
        proxies.iter().filter_map(|p| Intensity::fit(p, runs).ok().map(|model| (p, model))).collect();
    if known.is_empty() {
        return Err(MtlError::TooFew { what: "proxies with runs", found: 0, needed: 1 });
    }
    let mut votes: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    let mut sums = vec![(0.0, 0usize); known.len()];
    for profile in profiles {
        let intensity: Vec<Option<f64>> = known.iter().map(|(_, model)| model.of(&profile.metrics)).collect();
        for (sum, value) in sums.iter_mut().zip(&intensity) {
            *sum = value.map_or(*sum, |v| (sum.0 + v, sum.1 + 1));
        }
        let counts =
            votes.entry((profile.variant.as_str(), profile.kernel.as_str())).or_insert_with(|| vec![0; known.len()]);
        for best in highest(&intensity) {
            counts[best] += 1;
        }
    }
    let winners: BTreeSet<usize> = votes.values().flat_map(|counts| most(counts)).collect();
    let roles: BTreeSet<Role> = winners.iter().flat_map(|&w| known[w].0.roles.iter().copied()).collect();
    Ok(PdfsOutcome {
        proxies: winners.iter().map(|&w| known[w].0.name.clone()).collect(),
        features: features.iter().filter(|f| roles.contains(&Role::of(f))).cloned().collect(),
        intensities: known.iter().zip(&sums).map(|((p, _), (s, n))| (p.name.clone(), s / (*n).max(1) as f64)).collect(),
    })
}

fn highest(intensity: &[Option<f64>]) -> Vec<usize> {
    let most = intensity.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
    (0..intensity.len()).filter(|&i| intensity[i].is_some_and(|v| v >= most - 1e-9)).collect()
}

fn most(counts: &[usize]) -> Vec<usize> {
    let most = counts.iter().copied().max().unwrap_or(0);
    (0..counts.len()).filter(|&i| most > 0 && counts[i] == most).collect()
}
