//! The profiler's metrics, and what each is in the emulator's counts.
//!
//! The emulator counts instructions of PTX, the profiler those of machine code. They are the same where the assembler makes one of
//! one and leaves out, adds and merges none. For `mma` that is assumed of every shape that the kernels use on sm_90: `m16n8k16` of f16
//! and bf16, `m16n8k8` of tf32, `m8n8k4` and `m16n8k16` of f64, `m16n8k32` of i8 are each one instruction there. Targets without the
//! larger shapes in hardware may take several.

use std::collections::BTreeMap;
use tilewright_core::counts::Space;
use tilewright_emulator::{Class, Counts, FloatOp, Precision, Site};

/// A metric of the profiler.
pub(crate) struct Metric {
    /// As the profiler names it.
    pub(crate) name: &'static str,
    /// Whether a launch that differs in it differs. The others are shown beside these, for what they tell of a difference.
    pub(crate) judged: bool,
    /// What an instruction adds to it; none where the emulator's counts do not say.
    of: fn(&Site) -> Option<u64>,
}

impl Metric {
    const fn judged(name: &'static str, of: fn(&Site) -> Option<u64>) -> Self {
        Self { name, judged: true, of }
    }

    const fn shown(name: &'static str, of: fn(&Site) -> Option<u64>) -> Self {
        Self { name, judged: false, of }
    }
}

/// Instructions of the pipe for products of halves, and those of them that are no products: the assembler moves constants with
/// `HFMA2.MMA`.
pub(crate) const PRODUCTS: &str = "sm__inst_executed_pipe_tensor_op_hmma.sum";
pub(crate) const MOVES: &str = "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum";

/// All of them.
///
/// Those of memory end with `_pred_on_any` where there is such a one: warp instructions with at least one executing lane, which is
/// what the emulator counts as accesses. It leaves out the loads that the assembler adds before asynchronous copies and fences, whose
/// guards never hold. `global_atom` has none: its guards are branches, or hold for a lane of each warp.
pub(crate) const METRICS: [Metric; 17] = [
    // Threads.
    Metric::judged("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", |s| fma(s, &[Precision::Single])),
    Metric::judged("smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", |s| fma(s, &[Precision::Double])),
    // Two halves in one register are one instruction in both; bf16 is a flavour of it. The assembler moves constants with it too, in
    // kernels without halves as well: there may be more than are expected.
    Metric::shown("smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", |s| {
        fma(s, &[Precision::Half, Precision::Half2])
    }),
    // Warps. Products of tf32 run as those of halves do; moves of constants that do too are subtracted, see [`MOVES`].
    Metric::judged(PRODUCTS, |s| mma(s, &[Precision::Half, Precision::Single])),
    Metric::judged("sm__inst_executed_pipe_tensor_op_dmma.sum", |s| mma(s, &[Precision::Double])),
    Metric::judged("sm__inst_executed_pipe_tensor_op_imma.sum", |s| mma(s, &[Precision::Byte])),
    // Such moves of constants, where the profiler counts them among products of halves.
    Metric::shown(MOVES, |_| None),
    // Loads of parameters and constants are of other spaces; those through the read-only cache are loads as others.
    Metric::judged("smsp__inst_executed_op_global_ld_pred_on_any.sum", |s| {
        accesses(s, matches!(s.class, Class::Load(Space::Global, _)))
    }),
    Metric::judged("smsp__inst_executed_op_global_st_pred_on_any.sum", |s| {
        accesses(s, matches!(s.class, Class::Store(Space::Global, _)))
    }),
    Metric::judged("smsp__inst_executed_op_global_red_pred_on_any.sum", |s| {
        accesses(s, is_atomic(s) && s.opcode.starts_with("red."))
    }),
    Metric::judged("smsp__sass_inst_executed_op_global_atom.sum", |s| {
        accesses(s, is_atomic(s) && s.opcode.starts_with("atom."))
    }),
    Metric::judged("smsp__inst_executed_op_shared_ld_pred_on_any.sum", |s| accesses(s, is_shared_load(s))),
    // Where the assembler has merged loads of neighbours, the bytes may still be the same.
    Metric::shown("smsp__sass_data_bytes_mem_shared_op_ld.sum", |s| {
        Some(s.traffic.filter(|_| is_shared_load(s)).map_or(0, |traffic| traffic.bytes))
    }),
    Metric::judged("smsp__inst_executed_op_shared_st_pred_on_any.sum", |s| {
        accesses(s, matches!(s.class, Class::Store(Space::Shared, _)))
    }),
    Metric::judged("smsp__inst_executed_op_ldsm_pred_on_any.sum", |s| {
        accesses(s, matches!(s.class, Class::MatrixLoad(_)))
    }),
    // With those whose guards hold for no lane, as the emulator counts what is issued.
    Metric::judged("smsp__inst_executed_op_ldgsts.sum", |s| Some(if is_copy(s) { s.tally.issued } else { 0 })),
    Metric::judged("smsp__inst_executed_op_ldgsts_pred_on_any.sum", copies),
];

/// The metrics of a launch.
pub(crate) fn expected(counts: &Counts) -> BTreeMap<String, Option<u64>> {
    let sum = |metric: &Metric| counts.sites.iter().map(metric.of).sum();
    METRICS.iter().map(|metric| (metric.name.to_owned(), sum(metric))).collect()
}

/// Threads of a fused multiply-add.
fn fma(site: &Site, of: &[Precision]) -> Option<u64> {
    let is_one = matches!(site.class, Class::Float(FloatOp::Fma, precision) if of.contains(&precision));
    Some(if is_one { site.tally.threads } else { 0 })
}

/// Warps of a product of matrices: it is of whole warps, and never guarded.
fn mma(site: &Site, of: &[Precision]) -> Option<u64> {
    let is_one = matches!(site.class, Class::Tensor(precision, _) if of.contains(&precision));
    Some(if is_one { site.tally.issued } else { 0 })
}

/// Warps with at least one executing lane, of an instruction that is one of those meant.
fn accesses(site: &Site, is_one: bool) -> Option<u64> {
    Some(site.traffic.filter(|_| is_one).map_or(0, |traffic| traffic.accesses()))
}

fn is_atomic(site: &Site) -> bool {
    matches!(site.class, Class::Atomic(Space::Global, _))
}

fn is_shared_load(site: &Site) -> bool {
    matches!(site.class, Class::Load(Space::Shared, _))
}

fn is_copy(site: &Site) -> bool {
    matches!(site.class, Class::AsyncCopy(_))
}

/// Warps with at least one lane that copies. The emulator counts as accesses only those that also read, and the machine those that
/// write nothing but zeros too: how many these are is known where no guard failed, all failed, or all read.
fn copies(site: &Site) -> Option<u64> {
    if !is_copy(site) || site.tally.threads == 0 {
        return Some(0);
    }
    let all_read = site.traffic.is_some_and(|traffic| traffic.accesses() == site.tally.issued);
    (site.tally.predicated_off == 0 || all_read).then_some(site.tally.issued)
}
