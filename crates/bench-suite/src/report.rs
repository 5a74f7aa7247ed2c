//! Results of a comparison: the JSON fields of `tilewright bench` and `run`, and the table for people.

use std::fmt::Write as _;

use crate::statistics::Interval;
use crate::tasks::Task;
use serde::Serialize;
use std::sync::Arc;
use tilewright_baselines::{Identity, identities, in_own_layout, is_in_own_layout};
use tilewright_core::problem::{AnyKernel, Measure};
use tilewright_core::program::DeviceError;
use tilewright_core::space::Config;
use tilewright_core::text::counted;
use tilewright_runtime::contest::{CACHE_POLICY, ContestSettings, Entrant, Standing, contest, libraries};

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

/// A contender that was not timed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wrong {
    /// The contender.
    pub name: String,
    /// Why: a wrong result, or none.
    pub reason: String,
}

/// One task of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskReport {
    /// The task's name.
    pub name: String,
    /// The input's fields.
    pub input: Config,
    #[serde(skip)]
    shape: String,
    /// Floating-point operations of a call.
    pub flops: f64,
    /// Our median time, seconds; absent when our result was wrong.
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
    /// The same ratio within each round, in which both were timed one after the other: geometric mean and 95%.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio_of_rounds: Option<Interval>,
    /// Our kernel.
    pub variant: String,
    /// Its configuration.
    pub config: Config,
    /// Every baseline that ran.
    pub baselines: Vec<BaselineTime>,
    /// The best time of a library whose data lay in a layout of its own beforehand: what it could do, not what a caller gets, and so
    /// no baseline. See [`tilewright_baselines::in_own_layout`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_layout_s: Option<f64>,
    /// Contenders without a right result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wrong: Vec<Wrong>,
}

impl TaskReport {
    /// Checks and times our entrant beside the kernels of libraries.
    ///
    /// # Errors
    /// A device that failed.
    pub fn measured(
        measure: &mut dyn Measure,
        task: &Task,
        ours: Entrant,
        kernels: &[Arc<dyn AnyKernel>],
        settings: &ContestSettings,
    ) -> Result<Self, DeviceError> {
        let kernels = [kernels, &in_own_layout(kernels)].concat();
        let (found, missing) = libraries(measure, &kernels, &ours.problem.input(), settings)?;
        missing.iter().for_each(|reason| tracing::warn!(task = task.name, reason, "no baseline"));
        let entrants: Vec<Entrant> = std::iter::once(ours).chain(found).collect();
        let standings = contest(measure, &entrants, settings)?;
        Ok(Self::new(task, &entrants, &standings))
    }

    /// Sums up the standings of one task, ours first.
    ///
    /// # Panics
    /// Without an entrant.
    pub fn new(task: &Task, entrants: &[Entrant], standings: &[Standing]) -> Self {
        let ours = &entrants[0];
        let flops = ours.problem.work().flops;
        let ours_s = standings[0].cost.as_ref().ok().copied();
        let named = || entrants.iter().map(|e| e.name.clone()).zip(standings);
        let costs = || entrants.iter().zip(standings).skip(1).filter_map(|(e, s)| Some((e, *s.cost.as_ref().ok()?)));
        let is_own = |entrant: &Entrant| is_in_own_layout(&entrant.problem.kernel());
        let own_layout = costs().filter(|(e, _)| is_own(e)).map(|(_, cost)| cost).min_by(f64::total_cmp);
        let timed = costs().filter(|(e, _)| !is_own(e)).map(|(e, cost)| (e.name.clone(), cost));
        let baselines: Vec<BaselineTime> =
            timed.map(|(name, time_s)| BaselineTime { name, time_s, gflops: rate(flops, time_s) }).collect();
        let best = baselines.iter().min_by(|x, y| x.time_s.total_cmp(&y.time_s)).cloned();
        let wrong = named()
            .filter_map(|(name, standing)| Some(Wrong { name, reason: standing.cost.as_ref().err()?.message.clone() }));
        TaskReport {
            name: task.name.clone(),
            input: ours.problem.input(),
            shape: task.shape(),
            flops,
            ours_s,
            ours_gflops: ours_s.map(|seconds| rate(flops, seconds)),
            ratio: best.as_ref().map(|best| ours_s.map_or(0.0, |ours_s| best.time_s / ours_s)),
            ratio_of_rounds: best.as_ref().and_then(|best| {
                let at = entrants.iter().skip(1).position(|e| e.name == best.name)?;
                of_rounds(&standings[0], &standings[at + 1])
            }),
            best_baseline_s: best.as_ref().map(|best| best.time_s),
            best_baseline: best.map(|best| best.name),
            variant: ours.problem.kernel().to_string(),
            config: ours.problem.space().config(&ours.point),
            wrong: wrong.collect(),
            own_layout_s: own_layout,
            baselines,
        }
    }
}

/// A whole comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// What the caches held.
    pub cache_policy: String,
    /// Element type of the inputs, where they have one field for it.
    pub dtype: String,
    /// Threads of every contender.
    pub threads: usize,
    /// Measured peak at that many threads, 10^9 floating-point operations a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_gflops: Option<f64>,
    /// Names of the baselines that took part.
    pub baselines_found: Vec<String>,
    /// The libraries behind them: version, file, and the core whose code they run.
    pub libraries: Vec<Identity>,
    /// The tasks in their order.
    pub tasks: Vec<TaskReport>,
    /// Geometric mean of the ratios of all tasks that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub geomean_ratio: Option<f64>,
    /// That mean with 95%, tasks being what is drawn anew; absent where a ratio is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub geomean_interval: Option<Interval>,
    /// Least ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst_ratio: Option<f64>,
    /// Geometric mean of the times in a library's own layout by ours, of the tasks that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub geomean_own_layout: Option<f64>,
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
        // As with the baselines, a wrong result of ours is a ratio of 0.
        let by_ours = |task: &TaskReport| task.own_layout_s.map(|own| task.ours_s.map_or(0.0, |ours| own / ours));
        let own: Vec<f64> = tasks.iter().filter_map(by_ours).collect();
        Report {
            cache_policy: CACHE_POLICY.to_owned(),
            dtype: dtype.to_owned(),
            threads,
            peak_gflops,
            baselines_found,
            libraries: Vec::new(),
            geomean_ratio: geomean(&ratios),
            geomean_interval: Interval::of_ratios(&ratios),
            worst_ratio: ratios.into_iter().min_by(f64::total_cmp),
            geomean_own_layout: geomean(&own),
            tasks,
        }
    }

    /// With the libraries behind these kernels.
    #[must_use]
    pub fn with_libraries(mut self, kernels: &[Arc<dyn AnyKernel>]) -> Self {
        let ids: Vec<_> = kernels.iter().map(|kernel| kernel.id()).collect();
        self.libraries = identities(&ids);
        self
    }

    /// An aligned table: GFLOP/s of each contender, ours in percent of the peak, the ratio to the best baseline.
    pub fn table(&self) -> String {
        let mut header: Vec<String> = ["task", "input", "ours", "% peak"].map(String::from).into();
        header.extend(self.baselines_found.iter().cloned());
        header.extend(self.has_own_layout().then(|| "own layout".to_owned()));
        header.extend(["best", "ratio", "95%"].map(String::from));
        let mut rows = vec![header];
        rows.extend(self.tasks.iter().map(|task| self.row(task)));
        let mut text = align(&rows, 2);
        let threads = counted(self.threads, "thread");
        let dtype = if self.dtype.is_empty() { String::new() } else { format!("{} ", self.dtype) };
        let _ = write!(text, "\n{dtype}GFLOP/s, {threads}");
        if let Some(peak) = self.peak_gflops {
            let _ = write!(text, ", measured peak {peak:.1}");
        }
        let _ = writeln!(text, "; cache policy: {}", self.cache_policy);
        if let (Some(geomean), Some(worst)) = (self.geomean_ratio, self.worst_ratio) {
            let _ = writeln!(
                text,
                "ratio to the best baseline: geometric mean {geomean:.3}{}, worst {worst:.3}",
                over_tasks(self)
            );
        }
        if let Some(geomean) = self.geomean_own_layout {
            let _ = writeln!(text, "ratio to a library's own layout: geometric mean {geomean:.3}");
        }
        for library in &self.libraries {
            let _ = writeln!(text, "with {library}");
        }
        for task in &self.tasks {
            for wrong in &task.wrong {
                let _ = writeln!(text, "not timed: {} on {}: {}", wrong.name, task.name, wrong.reason);
            }
        }
        text
    }

    fn has_own_layout(&self) -> bool {
        self.tasks.iter().any(|task| task.own_layout_s.is_some())
    }

    fn row(&self, task: &TaskReport) -> Vec<String> {
        let percent = task.ours_gflops.zip(self.peak_gflops).map(|(ours, peak)| 100.0 * ours / peak);
        let mut row = vec![task.name.clone(), task.shape.clone(), number(task.ours_gflops, 1), number(percent, 0)];
        for name in &self.baselines_found {
            let baseline = task.baselines.iter().find(|baseline| baseline.name == *name);
            row.push(number(baseline.map(|baseline| baseline.gflops), 1));
        }
        if self.has_own_layout() {
            row.push(number(task.own_layout_s.map(|seconds| rate(task.flops, seconds)), 1));
        }
        row.push(task.best_baseline.clone().unwrap_or_else(|| "-".to_owned()));
        row.push(number(task.ratio, 3));
        row.push(task.ratio_of_rounds.as_ref().and_then(ends).unwrap_or_else(|| "-".to_owned()));
        row
    }
}

/// Their time by ours, round by round; none where one of them was not timed. A contender that was dropped has fewer rounds.
fn of_rounds(ours: &Standing, theirs: &Standing) -> Option<Interval> {
    if ours.cost.is_err() || theirs.cost.is_err() {
        return None;
    }
    let ratios: Vec<f64> = theirs.rounds.iter().zip(&ours.rounds).map(|(theirs, ours)| theirs / ours).collect();
    Interval::of_ratios(&ratios)
}

/// The ends of an interval; none where there was one observation.
fn ends(of: &Interval) -> Option<String> {
    (of.count > 1).then(|| format!("{:.3} to {:.3}", of.low, of.high))
}

fn over_tasks(report: &Report) -> String {
    let ends = report.geomean_interval.as_ref().and_then(ends);
    ends.map_or_else(String::new, |ends| format!(" (95% over tasks: {ends})"))
}

/// A number with so many digits behind the point; a dash for none.
pub(crate) fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
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
pub fn align(rows: &[Vec<String>], left: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let line: Vec<String> = cells
            .map(|(column, (cell, &width))| {
                // Padded by hand: formatting knows no width beyond 65,535.
                let space = " ".repeat(width - cell.chars().count());
                if column < left { format!("{cell}{space}") } else { format!("{space}{cell}") }
            })
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
    use tilewright_baselines::kernels;
    use tilewright_core::measurement::{Failure, FailureKind};
    use tilewright_core::problem::Erased;
    use tilewright_cpu::{CpuDevice, CpuGemm};

    /// The report of a task of Table 4 on which these took so long; ours is the first.
    fn task(at: usize, times: &[(&str, Result<f64, &str>)]) -> TaskReport {
        let kernel = Erased::new(CpuGemm::new());
        let task = &TaskSet::IsaacTable4.tasks(&kernel, &Config::default()).unwrap()[at];
        let problem = kernel.problem(CpuDevice::new(1).unwrap().spec(), &task.input).unwrap();
        let point = problem.default_point().unwrap();
        let ours = Entrant { name: String::new(), problem: problem.into(), point };
        let failure = |message: &str| Failure { kind: FailureKind::Wrong, message: message.to_owned() };
        let (entrants, standings): (Vec<_>, Vec<_>) = times
            .iter()
            .map(|(name, time)| {
                let rounds = time.map_or(Vec::new(), |t| [0.9, 1.0, 1.1].map(|pace| t * pace).to_vec());
                let standing = Standing { cost: time.map_err(failure), rounds, max_rel_error: 0.0 };
                (Entrant { name: (*name).to_owned(), ..ours.clone() }, standing)
            })
            .unzip();
        TaskReport::new(task, &entrants, &standings)
    }

    fn report(baselines: &[&str], tasks: Vec<TaskReport>) -> Report {
        Report::new("f32", 1, Some(100.0), baselines.iter().map(|name| (*name).to_owned()).collect(), tasks)
    }

    fn sample() -> Report {
        let first = [("ours", Ok(2.0)), ("blis", Ok(6.0)), ("openblas", Ok(4.0)), ("mkl", Err("row 3"))];
        let second = [("ours", Ok(2.0)), ("blis", Ok(1.0)), ("openblas", Ok(4.0))];
        report(&["blis", "openblas"], vec![task(0, &first), task(1, &second)])
    }

    #[test]
    fn a_cell_may_be_longer_than_any_width_that_formatting_knows() {
        let rows = [["a".repeat(70_000), "b".into()], ["c".into(), "dd".into()]].map(Vec::from);
        let table = align(&rows, 1);
        assert!(table.ends_with("  dd\n") && table.lines().all(|line| line.len() == 70_004), "columns line up");
    }

    #[test]
    fn ratio_is_against_the_best_baseline() {
        let report = sample();
        assert_eq!(report.tasks[0].best_baseline.as_deref(), Some("openblas"));
        assert_eq!(report.tasks[0].ratio, Some(2.0));
        assert_eq!(report.tasks[1].ratio, Some(0.5));
        assert!((report.geomean_ratio.unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(report.worst_ratio, Some(0.5));
        let over = report.geomean_interval.unwrap();
        assert!(over.count == 2 && over.low < 0.5 && over.high > 2.0, "two tasks that differ say little: {over:?}");
        assert_eq!(report.tasks[0].wrong[0].name, "mkl");
    }

    #[test]
    fn what_slows_a_round_slows_both_and_goes_out_of_their_ratio() {
        let found = sample().tasks[0].ratio_of_rounds.unwrap();
        assert!(
            (found.mean - 2.0).abs() < 1e-12 && (found.high - found.low).abs() < 1e-9 && found.count == 3,
            "{found:?}"
        );
        assert!(sample().table().contains("2.000 to 2.000"), "{}", sample().table());
        let standing = |rounds: &[f64]| Standing { cost: Ok(1.0), rounds: rounds.to_vec(), max_rel_error: 0.0 };
        let uneven = of_rounds(&standing(&[1.0, 1.0, 1.0, 1.0]), &standing(&[2.0, 3.0, 2.5])).unwrap();
        assert!(uneven.count == 3 && uneven.low > 1.0 && uneven.high > uneven.mean, "{uneven:?}");
    }

    #[test]
    fn json_has_the_fields_of_the_contract() {
        let json = serde_json::to_value(sample()).unwrap();
        for field in ["cache_policy", "baselines_found", "tasks", "geomean_ratio", "worst_ratio"] {
            assert!(json.get(field).is_some(), "{field}");
        }
        for field in ["name", "input", "ours_s", "best_baseline", "best_baseline_s", "ratio", "baselines", "config"] {
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
        assert!(table.contains("geometric mean 1.000 (95% over tasks: "), "{table}");
    }

    #[test]
    fn a_layout_of_its_own_is_told_beside_the_baselines() {
        let spec = CpuDevice::new(1).unwrap().spec().clone();
        let Some(own) = in_own_layout(&kernels("conv", &spec)).pop() else {
            eprintln!("skipped: no library has a layout of its own");
            return;
        };
        let plain = kernels("conv", &spec).remove(0);
        let task = &TaskSet::IsaacTable5.tasks(&*plain, &Config::default()).unwrap()[12];
        let entrant = |name: &str, kernel: &dyn AnyKernel| {
            let problem = kernel.problem(&spec, &task.input).unwrap();
            let point = problem.default_point().unwrap();
            Entrant { name: name.to_owned(), problem: problem.into(), point }
        };
        let entrants = [("ours", &plain), ("im2col", &plain), ("own", &own)].map(|(name, k)| entrant(name, &**k));
        let standings = [2.0, 4.0, 1.0].map(|t| Standing { cost: Ok(t), rounds: vec![t], max_rel_error: 0.0 });
        let found = TaskReport::new(task, &entrants, &standings);
        assert_eq!((found.own_layout_s, found.ratio, found.baselines.len()), (Some(1.0), Some(2.0), 1));
        let table = report(&["im2col"], vec![found]).table();
        assert!(table.contains("own layout: geometric mean 0.500"), "{table}");
        assert!(table.lines().next().unwrap().contains("im2col  own layout"), "{table}");
        assert!(!sample().table().contains("own layout"));
    }

    #[test]
    fn a_wrong_result_of_ours_cannot_be_left_out_of_the_mean() {
        let wrong = task(0, &[("ours", Err("row 0")), ("blis", Ok(1.0))]);
        assert_eq!((wrong.ratio, wrong.ours_s), (Some(0.0), None));
        let report = report(&[], vec![task(0, &[("ours", Ok(1.0)), ("blis", Ok(2.0))]), wrong]);
        assert_eq!((report.geomean_ratio, report.worst_ratio), (Some(0.0), Some(0.0)));
    }

    #[test]
    fn without_baselines_there_is_no_ratio() {
        let alone = task(0, &[("ours", Ok(1.0))]);
        assert_eq!((alone.ours_s, alone.ratio), (Some(1.0), None));
        assert_eq!(geomean(&[]), None);
    }
}
