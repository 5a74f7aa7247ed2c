//! Profiling metrics: formulas of counted operations, or read from a profiler's table.
//!
//! - By formula ([`OperationCounts::metrics`]), from operations that somebody counted: `inst_fp_32`, `inst_fp_64` and
//!   `atomic_transactions` are the counts over the operations issued, exactly. `flop_count_sp` and `flop_count_dp` are the same counts:
//!   a fused multiply-add is one. `gld_transactions`, `gst_transactions`, `shared_load_transactions` and `shared_store_transactions`
//!   are loads and stores: how the hardware joins them is not known.
//! - By a profiler only ([`parse_profiles`]): traffic of caches and memory (`l2_...`, `dram_...`), efficiencies, rates, stalls, and real
//!   transactions.
//!
//! Kernels on the host have formulas alone. Algorithm 1 takes either.

use crate::device::read;
use crate::error::MtlError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Metrics of one run by name. Counts are divided by the instructions issued, as the paper does; rates stay.
pub type Metrics = BTreeMap<String, f64>;

/// What a profiler saw of one kernel of a variant on one input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The variant.
    pub variant: String,
    /// One of its kernels.
    pub kernel: String,
    /// Which input.
    pub input: String,
    /// Its metrics.
    pub metrics: Metrics,
}

/// What a profiler saw of an application proxy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProxyRun {
    /// The proxy's name.
    pub proxy: String,
    /// From 0 to 5: a fifth of all instructions each.
    pub intensity: u8,
    /// Its metrics.
    pub metrics: Metrics,
}

/// Refuses numbers that no profiler can have seen.
///
/// # Errors
/// A metric that is negative or not finite.
pub fn check_metrics(what: &str, metrics: &Metrics) -> Result<(), MtlError> {
    match metrics.iter().find(|(_, v)| !(v.is_finite() && **v >= 0.0)) {
        None => Ok(()),
        Some((metric, &value)) => Err(MtlError::Metric { what: what.into(), metric: metric.clone(), value }),
    }
}

/// Executed operations by kind: what a program's counter knows without a profiler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperationCounts {
    /// Single-precision arithmetic.
    pub fp32: f64,
    /// Double-precision arithmetic.
    pub fp64: f64,
    /// Integer arithmetic, comparisons, branches.
    pub integer: f64,
    /// Loads from memory.
    pub loads: f64,
    /// Stores to memory.
    pub stores: f64,
    /// Loads from shared memory (a CPU: from what one thread keeps in its first cache).
    pub shared_loads: f64,
    /// Stores to shared memory.
    pub shared_stores: f64,
    /// Atomic operations.
    pub atomics: f64,
}

impl OperationCounts {
    /// All operations.
    pub fn issued(&self) -> f64 {
        let memory = self.loads + self.stores + self.shared_loads + self.shared_stores;
        self.fp32 + self.fp64 + self.integer + memory + self.atomics
    }

    /// The metrics of Table 3 that follow from counts, under the profiler's names, by issued operation. Empty where nothing
    /// was counted.
    pub fn metrics(&self) -> Metrics {
        let issued = self.issued();
        if !(issued.is_finite() && issued > 0.0) {
            return Metrics::new();
        }
        let named = [
            ("flop_count_sp", self.fp32),
            ("inst_fp_32", self.fp32),
            ("flop_count_dp", self.fp64),
            ("inst_fp_64", self.fp64),
            ("atomic_transactions", self.atomics),
            ("gld_transactions", self.loads),
            ("gst_transactions", self.stores),
            ("shared_load_transactions", self.shared_loads),
            ("shared_store_transactions", self.shared_stores),
        ];
        named.into_iter().map(|(name, count)| (name.to_owned(), count / issued)).collect()
    }
}

/// Names of the instructions issued, by which counts are divided.
const ISSUED: [&str; 4] = ["inst_issued", "smsp__inst_issued.sum", "inst_executed", "smsp__inst_executed.sum"];

/// The newer profiler's names of Table 3's metrics.
const NEWER: [(&str, &str); 10] = [
    ("smsp__sass_thread_inst_executed_op_fp32_pred_on.sum", "inst_fp_32"),
    ("smsp__sass_thread_inst_executed_op_fp64_pred_on.sum", "inst_fp_64"),
    ("l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum", "atomic_transactions"),
    ("lts__t_requests_srcunit_tex_op_atom.sum", "l2_atomic_transactions"),
    ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "gld_transactions"),
    ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "gst_transactions"),
    ("dram__sectors_read.sum", "dram_read_transactions"),
    ("dram__sectors_write.sum", "dram_write_transactions"),
    ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "shared_load_transactions"),
    ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", "shared_store_transactions"),
];

/// Whether a metric is a share or a rate already, and not a count.
fn is_rate(name: &str) -> bool {
    let part = ["efficiency", "rate", "per_request", "utilization", "throughput", "pct", "stall"];
    part.iter().any(|p| name.contains(p))
}

/// Reads a profiler's table, one line a metric: the columns `Kernel Name`, `Metric Name` and `Metric Value` of ncu's
/// `--csv`, or `kernel`, `metric`, `value`; `variant` and `input` where they are told apart (else the kernel's name and the
/// launch's `ID`). Metrics of one (variant, kernel, input) make one profile; counts are divided by the instructions issued
/// where those are among them.
///
/// # Errors
/// A column that is missing, a value that is no number, negative or not finite.
pub fn parse_profiles(text: &[u8]) -> Result<Vec<Profile>, MtlError> {
    let fault = |line: u64, message: String| MtlError::Table { table: "profiles", line, message };
    let (header, records) = read("profiles", text)?;
    let find = |names: &[&str]| header.iter().position(|h| names.iter().any(|n| h.eq_ignore_ascii_case(n)));
    let need = |names: &[&str]| find(names).ok_or_else(|| fault(1, format!("no column {:?}", names[0])));
    let kernel = need(&["kernel", "Kernel Name"])?;
    let metric = need(&["metric", "Metric Name"])?;
    let value = need(&["value", "Metric Value"])?;
    let (variant, input) = (find(&["variant"]).unwrap_or(kernel), find(&["input", "ID"]));
    let mut found: BTreeMap<(String, String, String), Metrics> = BTreeMap::new();
    for (line, record) in records {
        let cell = |c: usize| record.get(c).unwrap_or_default();
        // Profilers write 1,234,567.
        let number: f64 =
            cell(value).replace(',', "").parse().map_err(|_| fault(line, format!("{:?} is no number", cell(value))))?;
        let name = NEWER.iter().find(|(newer, _)| *newer == cell(metric)).map_or(cell(metric), |(_, name)| *name);
        let key = (cell(variant).to_owned(), cell(kernel).to_owned(), input.map_or("", cell).to_owned());
        found.entry(key).or_default().insert(name.to_owned(), number);
    }
    found
        .into_iter()
        .map(|((variant, kernel, input), metrics)| {
            check_metrics(&kernel, &metrics)?;
            Ok(Profile { variant, kernel, input, metrics: by_instruction(metrics) })
        })
        .collect()
}

fn by_instruction(mut metrics: Metrics) -> Metrics {
    let issued = ISSUED.iter().find_map(|name| metrics.get(*name).copied()).filter(|n| *n > 0.0);
    if let Some(issued) = issued {
        metrics.iter_mut().filter(|(name, _)| !is_rate(name)).for_each(|(_, v)| *v /= issued);
    }
    metrics
}
