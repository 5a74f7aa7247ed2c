//! The rows of the tables, and the tables for people.

use super::pool::PoolReport;
use super::state::State;
use super::{CampaignError, FILES, files};
use crate::report::{geomean, number};
use crate::tasks::Task;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use tilewright_baselines::identity_of;
use tilewright_core::id::KernelId;
use tilewright_core::problem::Problem;
use tilewright_core::space::Config;
use tilewright_runtime::store::write_atomically;

/// What of a configuration's features tells how it uses the device: section 8.1 of the paper.
const RESOURCES: [&str; 7] = ["threads", "blocks", "registers", "shared_bytes", "blocks_per_sm", "resident", "waves"];

/// The stages that write rows, with the titles of their tables.
const TITLES: [(&str, &str); 6] = [
    ("table4", "Table 4"),
    ("table5", "Table 5"),
    ("tasks", "Tasks"),
    (SWEEP, "Square sizes"),
    (TYPES, "Table 4 in other types"),
    (DEEPBENCH, "Products of DeepBench"),
];

/// The stage of square sizes, which are no usual tasks.
pub(super) const SWEEP: &str = "sweep";

/// The stage of the usual tasks in the types that not all kernels have.
pub(super) const TYPES: &str = "types";

/// The stage of DeepBench's products in all types.
pub(super) const DEEPBENCH: &str = "deepbench";

/// What a vendor's library does for who asks for nothing else; the first of these that took part.
pub(super) const DEFAULTS: [&str; 3] = ["cublas", "cublaslt", "cudnn"];

/// What tables of a computation show.
struct Columns {
    /// The sizes of an input.
    sizes: &'static str,
    /// Baselines with columns of their own.
    libraries: &'static [&'static str],
    /// Of configurations.
    parameters: &'static [&'static str],
}

impl Columns {
    /// Of the computation of these rows. Where an older version wrote them they are of GEMM.
    fn of(rows: &[&TaskRow]) -> Self {
        let kernel = rows.first().map_or("", |row| row.kernel.as_str());
        match kernel.split('.').next() {
            Some("" | "gemm") => Self {
                sizes: "m x n x k",
                libraries: &["cublas", "cublaslt"],
                // The paper's Table 6.
                parameters: &["m_s", "n_s", "m_l", "n_l", "u", "k_s", "k_l", "k_g"],
            },
            Some("conv") => Self {
                sizes: "n x c x h x w x k x r x s x pad x stride",
                libraries: &["cudnn", "cudnn-precomp"],
                parameters: &["k_s", "k_l", "p_s", "p_l", "q_s", "q_l", "n_s", "n_l", "u", "c_s", "c_l", "c_g"],
            },
            _ => Self { sizes: "input", libraries: &[], parameters: &[] },
        }
    }
}

/// The task that section 8.1 looks at.
const LOOKED_AT: &str = "deepbench-fwd-32";

/// A baseline on a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaselineRow {
    /// `cublas`, `cublaslt` and `cudnn`: the default; `cublaslt-best` and `cudnn-best`: the fastest of all that the library has;
    /// `cudnn-precomp`: the algorithm that the paper compares with.
    pub name: String,
    /// Its cost in the row's metric.
    pub cost: f64,
    /// 10^9 operations a second, where the cost is a time.
    pub gflops: Option<f64>,
    /// Its cost where the second-level cache was overwritten before each run; none where that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_cold: Option<f64>,
    /// The library: version, file, and the core whose code it runs; none where an older version wrote the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
}

impl BaselineRow {
    pub(super) fn new(name: &str, cost: f64, kernel: &KernelId) -> Self {
        let library = identity_of(kernel).map(|identity| identity.to_string());
        Self { name: name.to_owned(), cost, gflops: None, cost_cold: None, library }
    }
}

/// A generated kernel on a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelRow {
    /// The kernel.
    pub kernel: String,
    /// Cost of its best configuration that was right, in the row's metric.
    pub cost: f64,
}

/// Where the time of a task went, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// What the model was asked on the host, while the device waited.
    pub ranking_s: f64,
    /// The search in all: the ranking, compiling and timing of configurations.
    pub search_s: f64,
    /// Checking the finalists and timing them beside the libraries.
    pub contest_s: f64,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskRow {
    /// `table4`, `table5`, `tasks`, `sweep`, `types` or `deepbench`.
    pub stage: String,
    /// The task's name.
    pub name: String,
    /// The class of its input: `f32`, `f64`, or in other types `f16`, `f32 tf32` and so on.
    pub dtype: String,
    /// The kernel; empty where an older version wrote the row, which knew one.
    #[serde(default)]
    pub kernel: String,
    /// `2560x16x2560 nn`.
    pub shape: String,
    /// The input's fields.
    pub input: Config,
    /// Operations of a run.
    pub flops: f64,
    /// What is measured.
    pub metric: String,
    /// Our cost.
    pub cost: f64,
    /// 10^9 operations a second, where the cost is a time.
    pub gflops: Option<f64>,
    /// Our cost where the second-level cache was overwritten before each run; none where that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_cold: Option<f64>,
    /// Cost of the vendor's default over ours, both with the cache overwritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_default_cold: Option<f64>,
    /// What the model expected.
    pub predicted: Option<f64>,
    /// The chosen parameters.
    pub config: Config,
    /// Configurations that were timed.
    pub timed: usize,
    /// Samples that the model was fitted on.
    pub fitted: u64,
    /// The kernels that computed it, the winner among them; none where an older version wrote the row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<KernelRow>,
    /// The baselines.
    pub baselines: Vec<BaselineRow>,
    /// Cost of the vendor's default over ours: above 1, we are faster.
    pub ratio_default: Option<f64>,
    /// Cost of the vendor's best candidate over ours.
    pub ratio_best: Option<f64>,
    /// Where its time went; none where an older version wrote the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// Faster configurations whose result was wrong.
    pub wrong: Vec<String>,
    /// Baselines that did not take part, and why.
    pub missing: Vec<String>,
    /// How the device is used.
    pub resources: BTreeMap<String, f64>,
}

impl TaskRow {
    pub(super) fn new(
        stage: &str,
        (task, class): (&Task, &str),
        problem: &dyn Problem,
        point: &[u16],
        cost: f64,
        baselines: Vec<BaselineRow>,
    ) -> Self {
        let mut features = Vec::new();
        problem.config_features(point, &mut features);
        let named = problem.schema().config.iter().map(|f| f.name.as_str()).zip(features);
        let resources = named.filter(|(name, _)| RESOURCES.contains(name));
        let of = |name: &str| baselines.iter().find(|b| b.name == name).map(|b| b.cost / cost);
        let best = baselines.iter().map(|b| b.cost).min_by(f64::total_cmp);
        Self {
            stage: stage.to_owned(),
            name: task.name.clone(),
            dtype: class.to_owned(),
            kernel: problem.kernel().to_string(),
            shape: task.shape(),
            input: problem.input(),
            flops: problem.work().flops,
            metric: String::new(),
            cost,
            gflops: None,
            cost_cold: None,
            ratio_default_cold: None,
            predicted: None,
            config: problem.space().config(point),
            timed: 0,
            fitted: 0,
            ratio_default: DEFAULTS.into_iter().find_map(of),
            ratio_best: best.map(|b| b / cost),
            kernels: Vec::new(),
            baselines,
            spent: None,
            wrong: Vec::new(),
            missing: Vec::new(),
            resources: resources.map(|(name, value)| (name.to_owned(), f64::from(value))).collect(),
        }
    }

    /// Fills in rates, where costs are seconds.
    pub(super) fn rates(&mut self) {
        let flops = self.flops;
        self.gflops = Some(flops / self.cost / 1e9);
        self.baselines.iter_mut().for_each(|b| b.gflops = Some(flops / b.cost / 1e9));
    }

    /// Notes the costs with an overwritten cache: ours, and those of the baselines in their order.
    pub(super) fn cold(&mut self, ours: Option<f64>, baselines: impl IntoIterator<Item = Option<f64>>) {
        self.cost_cold = ours;
        self.baselines.iter_mut().zip(baselines).for_each(|(baseline, cost)| baseline.cost_cold = cost);
        let of = |name: &str| self.baselines.iter().find(|b| b.name == name)?.cost_cold;
        self.ratio_default_cold = DEFAULTS.into_iter().find_map(of).zip(ours).map(|(theirs, ours)| theirs / ours);
    }

    fn baseline(&self, name: &str) -> Option<f64> {
        self.baselines.iter().find(|b| b.name == name).and_then(|b| b.gflops)
    }
}

/// All rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Tables {
    pub(super) rows: Vec<TaskRow>,
    /// What choosing among generated kernels and the vendor's routines comes to on the rows; none before that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pool: Option<PoolReport>,
}

impl Tables {
    pub(super) fn read(out: &Path) -> Result<Self, CampaignError> {
        Ok(files::read(&out.join(FILES[1]))?.unwrap_or_default())
    }

    pub(super) fn has(&self, stage: &str, name: &str, dtype: &str) -> bool {
        self.rows.iter().any(|r| r.stage == stage && r.name == name && r.dtype == dtype)
    }

    pub(super) fn wrong(&self) -> u64 {
        self.rows.iter().map(|r| r.wrong.len() as u64).sum()
    }

    /// Of the usual tasks, by element type.
    pub(super) fn geomeans(&self) -> BTreeMap<String, f64> {
        let mut ratios: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for row in self.rows.iter().filter(|r| r.stage != SWEEP && r.stage != DEEPBENCH) {
            ratios.entry(row.dtype.clone()).or_default().extend(row.ratio_default);
        }
        ratios.into_iter().filter_map(|(dtype, r)| Some((dtype, geomean(&r)?))).collect()
    }

    /// Replaces both files.
    pub(super) fn write(&self, out: &Path, state: &State) -> Result<(), CampaignError> {
        files::write(&out.join(FILES[1]), self)?;
        Ok(write_atomically(&out.join(FILES[2]), self.text(state).as_bytes())?)
    }

    fn text(&self, state: &State) -> String {
        let mut out = format!("# {} ({}), {}\n\n", state.device.name, state.device.id, state.device.driver);
        let timed = state.metric == tilewright_core::measurement::Measurement::TIME;
        if !timed {
            let _ = writeln!(out, "Costs are `{}`, counted by an emulator: no times of any device.\n", state.metric);
        }
        let _ = writeln!(out, "Kernel {}, caches {}.\n", state.kernel, state.cache_policy);
        let with = state.environment.lines();
        for line in &with {
            let _ = writeln!(out, "- {line}");
        }
        out.push_str(if with.is_empty() { "" } else { "\n" });
        for (stage, title) in TITLES {
            let mut dtypes: Vec<&str> =
                self.rows.iter().filter(|r| r.stage == stage).map(|r| r.dtype.as_str()).collect();
            dtypes.sort_unstable();
            dtypes.dedup();
            for dtype in dtypes {
                let rows: Vec<&TaskRow> = self.rows.iter().filter(|r| r.stage == stage && r.dtype == dtype).collect();
                let _ = writeln!(out, "## {title}, {dtype}\n");
                table(&mut out, &rows, timed);
            }
        }
        if let Some(pool) = &self.pool {
            let _ = writeln!(out, "## Mixed pool\n\n{}", pool.text());
        }
        self.analysis(&mut out, state);
        self.left_out(&mut out);
        out
    }

    /// How the device is used by the choice for the task of section 8.1.
    fn analysis(&self, out: &mut String, state: &State) {
        let rows: Vec<&TaskRow> = self.rows.iter().filter(|r| r.name.starts_with(LOOKED_AT)).collect();
        if rows.is_empty() {
            return;
        }
        let _ = writeln!(out, "## DeepBench, forward, N = 32 (section 8.1 of the paper)\n");
        let _ = writeln!(out, "| task | dtype | {} | occupancy |", RESOURCES.join(" | "));
        let _ = writeln!(out, "|---|---|{}---:|", "---:|".repeat(RESOURCES.len()));
        for row in rows {
            let cells: Vec<String> = RESOURCES.iter().map(|n| number(row.resources.get(*n).copied(), 1)).collect();
            let most = state.device.fact("threads_per_sm").map(|t| t as f64);
            let occupancy = row.resources.get("resident").zip(most).map(|(r, m)| 100.0 * r / m);
            let _ =
                writeln!(out, "| {} | {} | {} | {} % |", row.name, row.dtype, cells.join(" | "), number(occupancy, 0));
        }
        out.push('\n');
    }

    fn left_out(&self, out: &mut String) {
        let mut missing: Vec<&String> = self.rows.iter().flat_map(|r| &r.missing).collect();
        missing.sort();
        missing.dedup();
        for message in missing {
            let _ = writeln!(out, "Baseline absent: {message}");
        }
        for row in &self.rows {
            for wrong in &row.wrong {
                let _ = writeln!(out, "Wrong result on {} {}: {wrong}", row.name, row.dtype);
            }
        }
    }
}

fn table(out: &mut String, rows: &[&TaskRow], timed: bool) {
    let what = if timed { "GFLOP/s" } else { "cost" };
    let (columns, is_cold) = (Columns::of(rows), rows.iter().any(|row| row.cost_cold.is_some()));
    let names = |of: &[&str]| of.iter().map(|name| format!(" {name} |")).collect::<String>();
    let (libraries, parameters) = (names(columns.libraries), names(columns.parameters));
    let _ = writeln!(
        out,
        "| task | {} | ours, {what} |{libraries} best | default / ours | best / ours |{}{parameters}",
        columns.sizes,
        if is_cold { " default / ours, cold |" } else { "" }
    );
    let numbers = 4 + usize::from(is_cold) + columns.libraries.len() + columns.parameters.len();
    let _ = writeln!(out, "|---|---|{}", "---:|".repeat(numbers));
    for row in rows {
        let best = row.baselines.iter().filter_map(|b| b.gflops).max_by(f64::total_cmp);
        let ours = if timed { number(row.gflops, 1) } else { format!("{:.3e}", row.cost) };
        let libraries = columns.libraries.iter().map(|name| number(row.baseline(name), 1));
        let cold = is_cold.then(|| number(row.ratio_default_cold, 3));
        let more = [number(best, 1), number(row.ratio_default, 3), number(row.ratio_best, 3)].into_iter().chain(cold);
        let parameter = |name: &&str| row.config.get(name).map_or_else(|| "-".to_owned(), ToString::to_string);
        let cells: Vec<String> = libraries.chain(more).chain(columns.parameters.iter().map(parameter)).collect();
        let _ = writeln!(out, "| {} | {} | {ours} | {} |", row.name, row.shape, cells.join(" | "));
    }
    let warm: Vec<f64> = rows.iter().filter_map(|r| r.ratio_default).collect();
    let cold: Vec<f64> = rows.iter().filter_map(|r| r.ratio_default_cold).collect();
    for (ratios, caches) in [(warm, ""), (cold, " with the second-level cache overwritten before each run")] {
        if let (Some(mean), Some(worst)) = (geomean(&ratios), ratios.iter().copied().min_by(f64::total_cmp)) {
            let _ = writeln!(out, "\nDefault over ours{caches}: geometric mean {mean:.3}, worst {worst:.3}.");
        }
    }
    out.push('\n');
}
