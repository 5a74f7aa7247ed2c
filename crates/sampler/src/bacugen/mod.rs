//! The space of BACUGen (Kurzak, Tomov, Dongarra: Autotuning GEMMs for Fermi): tiles and thread grids of a GEMM stencil, pruned
//! by what the device allows, by what the generator can do, and by guidelines for what is worth measuring.
//!
//! A block of `m_dim x n_dim` threads computes a tile of `m_blk x n_blk` elements of C in steps of `k_blk`, and regroups as
//! `m_dim_a x n_dim_a` to load the tile of A and as `m_dim_b x n_dim_b` to load that of B (Algorithms 2 and 3).
//!
//! Where the text leaves room, this is how it is read:
//! - The divisibilities of Algorithm 2 are printed the wrong way round (`m_dim_a % m_blk`); the grid divides the tile.
//! - The grid of a load covers the tile as it is stored: of a transposed operand, `m_dim_a` runs along k. Only so is the
//!   winner of ZGEMM `tt` in Table 2 (4x16 for a tile of 16x24x8) in the set.
//! - A combination is all nine parameters: five, and every way to load. Read so, we count 1,136,490 of SGEMM without
//!   guidelines, where the paper has "slightly more than one million".
//! - Occupancy without guidelines is still at least one block: a kernel that does not fit is none.
//! - The registers that hold prefetched elements are counted as Algorithm 3 does, but [`Reading::Scaled`] multiplies only
//!   the others by the size of an element. With the guidelines of Table 1 we count 86 combinations of SGEMM, 192 of DGEMM
//!   and 118 of ZGEMM so, and 66 and 60 of the last two as printed ([`Reading::Printed`]), where the text says of Figure 5
//!   that it goes from slightly below one hundred to slightly above four hundred. The winners of SGEMM, DGEMM and ZGEMM are
//!   in the set either way.
//!
//! CGEMM contradicts itself, and no reading was found that does not (`tests/bacugen/contradiction.rs`):
//! - Its winners (Table 2) have 4x4 elements a thread, by Algorithm 3 a reuse of `(4 * 4 * 4) / (2 * (4 + 4)) = 4.0`, and
//!   Table 1 asks for 5.0. However registers are counted, they are excluded.
//! - At 6.0 section 6.1 has six combinations. A thread of at least 512 has at most 64 registers, so `m * n <= 32` accumulators
//!   of two registers, and the reuse `2 m n / (m + n) <= sqrt(m n) <= 5.66`: there is none. With operands counted too it is
//!   at most 4.44, so that there is none at 5.0 either. With one register an element there are more than six at 6.0.
//! - Other formulas `a m n / (b m + c n + d)` that have the winners in at 5.0 and out at 6.0, with every way to count registers
//!   and shared memory that was thought of, do not give six at 6.0 and sizes within Figure 5 at once.
//!
//! So the guideline is the caller's: at `min_regs_reuse = 4` CGEMM is DGEMM at 2, and its winners are in the set.

mod device;
pub mod paper;

pub use device::{DeviceConstants, DeviceError, known_devices};

use tilewright_core::dtype::DType;
use tilewright_core::space::{BoundSpace, Config, Param, ParamSpace, RuleGroup, SpaceBuilder, SpaceError, Symbols};

/// The element type of `sgemm` and the like, or of the letter.
pub fn element(text: &str) -> Option<DType> {
    match text {
        "s" | "sgemm" => Some(DType::F32),
        "d" | "dgemm" => Some(DType::F64),
        "c" | "cgemm" => Some(DType::C32),
        "z" | "zgemm" => Some(DType::C64),
        _ => None,
    }
}

/// Whether an operand is stored transposed; conjugation does not change the space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// A is stored with k along columns.
    pub a_transposed: bool,
    /// B is stored with n along columns.
    pub b_transposed: bool,
}

impl Layout {
    /// Reads `nn`, `nt`, `tn`, `tt`; `c` is a transposed operand that is conjugated too.
    pub fn parse(text: &str) -> Option<Self> {
        let side = |c: u8| match c {
            b'n' => Some(false),
            b't' | b'c' => Some(true),
            _ => None,
        };
        let [a, b] = text.as_bytes() else { return None };
        Some(Self { a_transposed: side(*a)?, b_transposed: side(*b)? })
    }
}

/// How the count of registers is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Reading {
    /// The size of an element multiplies accumulators and operands, not what is prefetched.
    #[default]
    Scaled,
    /// It multiplies all, as the lines of Algorithm 3 stand.
    Printed,
}

/// What is worth measuring (Table 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guidelines {
    /// Threads of a multiprocessor that the kernel allows for.
    pub min_threads: i64,
    /// Blocks of a multiprocessor that it allows for.
    pub min_blocks: i64,
    /// Multiply-adds by loads in the innermost loop.
    pub min_regs_reuse: f64,
}

impl Default for Guidelines {
    /// None: a block fits.
    fn default() -> Self {
        Self { min_threads: 0, min_blocks: 1, min_regs_reuse: 0.0 }
    }
}

impl Guidelines {
    /// Reads them by name; those not named ask nothing.
    ///
    /// # Errors
    /// Another name, or a value that is no number of at least 0, with the name.
    pub fn from_config(config: &Config) -> Result<Self, GuidelineError> {
        let mut out = Self::default();
        for (name, value) in &config.0 {
            let bad = || GuidelineError { name: name.clone(), value: value.to_string() };
            let whole = || value.as_int().filter(|v| *v >= 0).ok_or_else(bad);
            match name.as_str() {
                "min_threads" => out.min_threads = whole()?,
                "min_blocks" => out.min_blocks = whole()?.max(1),
                "min_regs_reuse" => {
                    out.min_regs_reuse = value.as_f64().filter(|v| *v >= 0.0 && v.is_finite()).ok_or_else(bad)?;
                }
                _ => return Err(bad()),
            }
        }
        Ok(out)
    }
}

/// A guideline that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}={value} is no guideline: min_threads, min_blocks and min_regs_reuse take numbers of at least 0")]
pub struct GuidelineError {
    /// What was named.
    pub name: String,
    /// What it was to be.
    pub value: String,
}

/// Where a rule comes from, in the paper's words (section 5.3.1), and its guidelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A limit that the device can be asked for.
    QueryableHardware,
    /// A limit known by the compute capability.
    CapabilityHardware,
    /// The code would be wrong.
    HardImplementation,
    /// The code would idle.
    SoftImplementation,
    /// Not worth measuring.
    Guideline,
}

/// The source of a rule of this space, by its name.
pub fn source(rule: &str) -> Option<Source> {
    Some(match rule {
        "threads_per_block" | "shared_per_block" | "registers_per_block" => Source::QueryableHardware,
        "blocks_by_shared" | "blocks_by_registers" => Source::CapabilityHardware,
        "grid_covers_m" | "grid_covers_n" | "load_a_threads" | "load_b_threads" | "load_a_covers" | "load_b_covers" => {
            Source::HardImplementation
        }
        "whole_warps" | "no_idle_thread_a" | "no_idle_thread_b" => Source::SoftImplementation,
        _ if rule.starts_with("min_") => Source::Guideline,
        _ => return None,
    })
}

/// Largest sizes of Algorithm 2.
const MAX_BLK: i64 = 256;
const MAX_K: i64 = 64;

/// The space of one type and layout.
///
/// # Errors
/// None that a caller can cause.
pub fn param_space(layout: Layout) -> Result<ParamSpace, SpaceError> {
    let sides = [layout.a_transposed, layout.b_transposed];
    // A is stored with k first if it is transposed, B if it is not.
    let [a, b] = [sides[0], !sides[1]].map(|k_first| if k_first { [MAX_K, MAX_BLK] } else { [MAX_BLK, MAX_K] });
    let mut builder = ParamSpace::builder()
        .param(Param::ints("n_dim", 1..=MAX_BLK))
        .param(Param::ints("m_dim", 1..=MAX_BLK))
        .param(Param::ints("k_blk", 1..=MAX_K))
        .param(Param::ints("n_blk", 1..=MAX_BLK))
        .param(Param::ints("m_blk", 1..=MAX_BLK));
    for (name, most) in ["m_dim_a", "n_dim_a", "m_dim_b", "n_dim_b"].into_iter().zip(a.into_iter().chain(b)) {
        builder = builder.param(Param::ints(name, 1..=most));
    }
    let along = |k_first: bool, tile: &'static str| if k_first { ["k_blk", tile] } else { [tile, "k_blk"] };
    constraints(builder, [along(sides[0], "m_blk"), along(!sides[1], "n_blk")]).build()
}

/// Adds the constraints of Algorithms 2 and 3, to a space of the nine parameters. `stored` says of A and of B, as expressions, how
/// long their tiles are in the direction in which they are contiguous in memory, and in the other. The other names that
/// the rules mention are those of [`symbols`], or definitions that come before.
pub fn constraints(builder: SpaceBuilder, stored: [[&str; 2]; 2]) -> SpaceBuilder {
    use RuleGroup::Implementation;
    let mut builder = guidelines(hardware(builder));
    for (side, [contiguous, other]) in ["a", "b"].into_iter().zip(stored) {
        let (threads, covers) = (format!("load_{side}_threads"), format!("load_{side}_covers"));
        let same = format!("m_dim_{side} * n_dim_{side} == threads");
        let overlay = format!("{contiguous} % m_dim_{side} == 0 and {other} % n_dim_{side} == 0");
        builder = builder.rule(&threads, Implementation, &same, "the same threads load the tile").rule(
            &covers,
            Implementation,
            &overlay,
            "the grid overlays the tile as stored",
        );
    }
    builder
}

/// Sections one to three of Algorithm 3, but for the guidelines.
fn hardware(builder: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::{Hardware, Implementation};
    builder
        .define("threads", "m_dim * n_dim")
        .define("m_thr", "m_blk // m_dim")
        .define("n_thr", "n_blk // n_dim")
        .define("shared", "((m_blk + 1) * k_blk + (k_blk + 1) * n_blk) * bytes")
        .define("prefetched", "m_blk * k_blk + k_blk * n_blk")
        .define(
            "registers",
            "(m_thr * n_thr + m_thr + n_thr) * threads * element_words + prefetched * prefetched_words",
        )
        // min(blocks * warps of a block, max_warps) // warps of a block, without the detour.
        .define("most_blocks", "min(max_blocks_per_sm, max_warps_per_sm * warp_size // threads)")
        .define("blocks_shared", "min(shared_per_sm // shared, most_blocks)")
        .define("blocks_registers", "min(registers_per_sm // registers, most_blocks)")
        .rule("threads_per_block", Hardware, "threads <= max_threads_per_block", "the grid fits a block")
        .rule("whole_warps", Implementation, "threads % warp_size == 0", "no warp is partly idle")
        .rule("grid_covers_n", Implementation, "n_blk % n_dim == 0", "the grid overlays the tile of C")
        .rule("grid_covers_m", Implementation, "m_blk % m_dim == 0", "the grid overlays the tile of C")
        .rule("no_idle_thread_b", Implementation, "(k_blk * n_blk) % threads == 0", "all threads load the tile of B")
        .rule("no_idle_thread_a", Implementation, "(m_blk * k_blk) % threads == 0", "all threads load the tile of A")
        .rule("shared_per_block", Hardware, "shared <= max_shared_per_block", "shared memory of a block")
        .rule("blocks_by_shared", Hardware, "blocks_shared >= 1", "a block fits a multiprocessor's shared memory")
        .rule("registers_per_block", Hardware, "registers <= max_registers_per_block", "registers of a block")
        .rule("blocks_by_registers", Hardware, "blocks_registers >= 1", "a block fits a multiprocessor's registers")
}

/// The guidelines of Algorithm 3.
fn guidelines(mut builder: SpaceBuilder) -> SpaceBuilder {
    use RuleGroup::Guideline;
    for (name, blocks) in [("shared", "blocks_shared"), ("registers", "blocks_registers")] {
        let (least, busy) = (format!("min_blocks_by_{name}"), format!("min_threads_by_{name}"));
        builder = builder
            .rule(&least, Guideline, &format!("{blocks} >= min_blocks"), "several blocks hide each other's barriers")
            .rule(&busy, Guideline, &format!("threads * {blocks} >= min_threads"), "threads hide latency");
    }
    builder.rule(
        "min_regs_reuse",
        Guideline,
        "fma_per_product * m_thr * n_thr >= min_regs_reuse * words_per_load * (m_thr + n_thr)",
        "computing outweighs loading",
    )
}

/// The names that the rules mention.
pub fn symbols(element: DType, device: &DeviceConstants, guidelines: &Guidelines, reading: Reading) -> Symbols {
    let bytes = element.size() as i64;
    let (fma, loads) = if element.is_complex() { (4, 2) } else { (1, 1) };
    device
        .symbols()
        .with("bytes", bytes)
        .with("element_words", bytes / 4)
        .with("prefetched_words", if reading == Reading::Printed { bytes / 4 } else { 1 })
        .with("fma_per_product", fma)
        .with("words_per_load", loads)
        .with("min_threads", guidelines.min_threads)
        .with("min_blocks", guidelines.min_blocks)
        .with("min_regs_reuse", guidelines.min_regs_reuse)
}

/// The space of one type and layout on one device.
///
/// # Errors
/// None that a caller can cause.
pub fn space(
    element: DType,
    layout: Layout,
    device: &DeviceConstants,
    guidelines: &Guidelines,
    reading: Reading,
) -> Result<BoundSpace, SpaceError> {
    param_space(layout)?.bind(&symbols(element, device, guidelines, reading))
}
