//! Results of a comparison: the JSON fields of `tilewright bench` and `run`, and the table for people.

use std::fmt::Write as _;

use serde::Serialize;
use tilewright_core::computation::Computation;
use tilewright_core::space::Config;
use tilewright_ops::gemm::Gemm;

use crate::compare::{CACHE_POLICY, Outcome, Time};
use crate::tasks::Task;

/// A baseline on one task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BaselineTime {
    /// `openblas`, ...
    pub name: String,
    /// Median time of a call, seconds.
    pub time_s: f64,
    /// Its rate, 10^9 floating-point operations a second.
    pub gflops: f64,
}

/// A contender whose result was wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wrong {
    /// The contender.
    pub name: String,
    /// What was wrong.
    pub reason: String,
}

/// One task of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskReport {
    /// The task's name.
    pub name: String,
    /// The input's words.
    pub input: Config,
    #[serde(skip)]
    shape: String,
    /// Floating-point operations of a call.
    pub flops: f64,
    /// Our median time, seconds; absent when only baselines ran or our result was wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ours_s: Option<f64>,
    /// Our rate, 10^9 floating-point operations a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ours_gflops: Option<f64>,
    /// The fastest baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_baseline: Option<String>,
    /// Its time, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_baseline_s: Option<f64>,
    /// Best baseline's time / our time: above 1, we are faster; 0 if our result was wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Our configuration, where the caller tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Config>,
    /// Every baseline that ran.
    pub baselines: Vec<BaselineTime>,
    /// Contenders refused because their result was wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wrong: Vec<Wrong>,
}

impl TaskReport {
    /// Sums up the outcomes of one task; `ours` is the name of our contender among them.
    pub fn new(task: &Task, ours: Option<&str>, outcomes: &[Outcome]) -> Self {
        let flops = task.flops();
        let is_ours = |outcome: &&Outcome| Some(outcome.name.as_str()) == ours;
        let time = |outcome: &Outcome| outcome.time.as_ref().ok().map(|time: &Time| time.median_s);
        let ours_s = outcomes.iter().find(is_ours).and_then(time);
        let baselines: Vec<BaselineTime> = outcomes
            .iter()
            .filter(|outcome| !is_ours(outcome))
            .filter_map(|outcome| time(outcome).map(|time_s| (outcome, time_s)))
            .map(|(outcome, time_s)| BaselineTime { name: outcome.name.clone(), time_s, gflops: rate(flops, time_s) })
            .collect();
        let best = baselines.iter().min_by(|x, y| x.time_s.total_cmp(&y.time_s)).cloned();
        let wrong = outcomes
            .iter()
            .filter_map(|outcome| {
                let reason = outcome.time.as_ref().err()?.clone();
                Some(Wrong { name: outcome.name.clone(), reason })
            })
            .collect();
        TaskReport {
            name: task.name.clone(),
            input: Gemm.words(&task.input),
            shape: task.shape(),
            flops,
            ours_s,
            ours_gflops: ours_s.map(|seconds| rate(flops, seconds)),
            ratio: best.as_ref().zip(ours).map(|(best, _)| ours_s.map_or(0.0, |ours_s| best.time_s / ours_s)),
            best_baseline_s: best.as_ref().map(|best| best.time_s),
            best_baseline: best.map(|best| best.name),
            config: None,
            baselines,
            wrong,
        }
    }
}

/// A whole comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// What the caches held.
    pub cache_policy: String,
    /// `f32` or `f64`.
    pub dtype: String,
    /// Threads of every contender.
    pub threads: usize,
    /// Measured peak at that many threads, 10^9 floating-point operations a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_gflops: Option<f64>,
    /// Names of the baselines that took part.
    pub baselines_found: Vec<String>,
    /// The tasks in their order.
    pub tasks: Vec<TaskReport>,
    /// Geometric mean of the ratios of all tasks that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub geomean_ratio: Option<f64>,
    /// Least ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst_ratio: Option<f64>,
}

impl Report {
    /// Puts the tasks together.
    pub fn new(
        dtype: &str,
        threads: usize,
        peak_gflops: Option<f64>,
        baselines_found: Vec<String>,
        tasks: Vec<TaskReport>,
    ) -> Self {
        let ratios: Vec<f64> = tasks.iter().filter_map(|task| task.ratio).collect();
        Report {
            cache_policy: CACHE_POLICY.to_owned(),
            dtype: dtype.to_owned(),
            threads,
            peak_gflops,
            baselines_found,
            geomean_ratio: geomean(&ratios),
            worst_ratio: ratios.into_iter().min_by(f64::total_cmp),
            tasks,
        }
    }

    /// An aligned table: GFLOP/s of each contender, ours in percent of the peak, the ratio to the best baseline.
    pub fn table(&self) -> String {
        let mut header: Vec<String> = ["task", "m x n x k", "ours", "% peak"].map(String::from).into();
        header.extend(self.baselines_found.iter().cloned());
        header.extend(["best", "ratio"].map(String::from));
        let mut rows = vec![header];
        rows.extend(self.tasks.iter().map(|task| self.row(task)));
        let mut text = align(&rows, 2);
        let threads = if self.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", self.threads) };
        let _ = write!(text, "\n{} GFLOP/s, {threads}", self.dtype);
        if let Some(peak) = self.peak_gflops {
            let _ = write!(text, ", measured peak {peak:.1}");
        }
        let _ = writeln!(text, "; cache policy: {}", self.cache_policy);
        if let (Some(geomean), Some(worst)) = (self.geomean_ratio, self.worst_ratio) {
            let _ = writeln!(text, "ratio to the best baseline: geometric mean {geomean:.3}, worst {worst:.3}");
        }
        for task in &self.tasks {
            for wrong in &task.wrong {
                let _ = writeln!(text, "not timed: {} on {}: {}", wrong.name, task.name, wrong.reason);
            }
        }
        text
    }

    fn row(&self, task: &TaskReport) -> Vec<String> {
        let number = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
        };
        let percent = task.ours_gflops.zip(self.peak_gflops).map(|(ours, peak)| 100.0 * ours / peak);
        let mut row = vec![task.name.clone(), task.shape.clone(), number(task.ours_gflops, 1), number(percent, 0)];
        for name in &self.baselines_found {
            let baseline = task.baselines.iter().find(|baseline| baseline.name == *name);
            row.push(number(baseline.map(|baseline| baseline.gflops), 1));
        }
        row.push(task.best_baseline.clone().unwrap_or_else(|| "-".to_owned()));
        row.push(number(task.ratio, 3));
        row
    }
}

/// 10^9 operations a second.
fn rate(flops: f64, seconds: f64) -> f64 {
    flops / seconds / 1e9
}

/// The geometric mean; none of nothing.
pub fn geomean(values: &[f64]) -> Option<f64> {
    let logarithms: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (logarithms / values.len() as f64).exp())
}

/// Columns padded to equal width; the first `left` are aligned left, the rest right.
fn align(rows: &[Vec<String>], left: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let line: Vec<String> = cells
            .map(
                |(column, (cell, &width))| {
                    if column < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                },
            )
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::TaskSet;
    use tilewright_core::dtype::DType;

    fn outcome(name: &str, median_s: f64) -> Outcome {
        Outcome { name: name.to_owned(), time: Ok(Time { median_s, least_s: median_s, most_s: median_s, calls: 1 }) }
    }

    fn sample() -> Report {
        let tasks = TaskSet::IsaacTable4.tasks(DType::F32);
        let wrong = Outcome { name: "mkl".to_owned(), time: Err("row 3".to_owned()) };
        let first = [outcome("tilewright", 2.0), outcome("blis", 6.0), outcome("openblas", 4.0), wrong];
        let second = [outcome("tilewright", 2.0), outcome("blis", 1.0), outcome("openblas", 4.0)];
        let reports = [
            TaskReport::new(&tasks[0], Some("tilewright"), &first),
            TaskReport::new(&tasks[1], Some("tilewright"), &second),
        ];
        Report::new("f32", 1, Some(100.0), vec!["blis".to_owned(), "openblas".to_owned()], reports.into())
    }

    #[test]
    fn ratio_is_against_the_best_baseline() {
        let report = sample();
        assert_eq!(report.tasks[0].best_baseline.as_deref(), Some("openblas"));
        assert_eq!(report.tasks[0].ratio, Some(2.0));
        assert_eq!(report.tasks[1].ratio, Some(0.5));
        assert!((report.geomean_ratio.unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(report.worst_ratio, Some(0.5));
        assert_eq!(report.tasks[0].wrong[0].name, "mkl");
    }

    #[test]
    fn json_has_the_fields_of_the_contract() {
        let json = serde_json::to_value(sample()).unwrap();
        for field in ["cache_policy", "baselines_found", "tasks", "geomean_ratio", "worst_ratio"] {
            assert!(json.get(field).is_some(), "{field}");
        }
        for field in ["name", "input", "ours_s", "best_baseline", "best_baseline_s", "ratio", "baselines"] {
            assert!(json["tasks"][0].get(field).is_some(), "{field}");
        }
        for field in ["name", "time_s", "gflops"] {
            assert!(json["tasks"][0]["baselines"][0].get(field).is_some(), "{field}");
        }
    }

    #[test]
    fn table_is_aligned_and_names_what_was_refused() {
        let table = sample().table();
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].starts_with("task"), "{table}");
        let column = lines[0].find("best").unwrap() + "best".len();
        assert!(lines[1][..column].ends_with("openblas") && lines[2][..column].ends_with("blis"), "{table}");
        assert!(table.contains("not timed: mkl on linpack-512: row 3"), "{table}");
        assert!(table.contains("geometric mean 1.000, worst 0.500"), "{table}");
    }

    #[test]
    fn a_wrong_result_of_ours_cannot_be_left_out_of_the_mean() {
        let task = &TaskSet::IsaacTable4.tasks(DType::F32)[0];
        let wrong = Outcome { name: "tilewright".to_owned(), time: Err("row 0".to_owned()) };
        let report = TaskReport::new(task, Some("tilewright"), &[wrong, outcome("blis", 1.0)]);
        assert_eq!((report.ratio, report.ours_s), (Some(0.0), None));
        let right = TaskReport::new(task, Some("tilewright"), &[outcome("tilewright", 1.0), outcome("blis", 2.0)]);
        let report = Report::new("f32", 1, None, Vec::new(), vec![right, report]);
        assert_eq!((report.geomean_ratio, report.worst_ratio), (Some(0.0), Some(0.0)));
    }

    #[test]
    fn without_ours_there_is_no_ratio() {
        let task = &TaskSet::IsaacTable4.tasks(DType::F32)[0];
        let report = TaskReport::new(task, None, &[outcome("blis", 1.0)]);
        assert_eq!((report.ours_s, report.ratio), (None, None));
        assert_eq!(report.best_baseline.as_deref(), Some("blis"));
        assert_eq!(geomean(&[]), None);
    }
}
