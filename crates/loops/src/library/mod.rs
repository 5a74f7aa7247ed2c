//! The measurement kernels and the test kernels of Stevens and Kloeckner (sections 4.1 and 5), and a few beyond them.
//!
//! The text of the paper gives classes, variants and how sizes grow, but not all numbers: group sizes here are 128, 256 and
//! 512 threads ("ranging from 128 to 512"), and sizes double from case to case. Rows of matrices are sixteen elements longer than
//! what is used of them ([`PITCH`]): with a power of two all rows of a column would share one set of a cache.

mod arithmetic;
mod beyond;
mod measurement;
mod mixed;
mod test;

use crate::error::LoopError;
use crate::instance::Instance;
use crate::kernel::{Axis, LoopKernel};
use crate::size::{Size, Sizes, size};

pub use arithmetic::{Operation, arithmetic};
pub use beyond::{atomics, bank_stride, reread, uncoalesced};
pub use measurement::{
    COPIES, Transposing, empty, matmul, naive_matmul, scale_and_add, stride_one, strided_sums, transpose,
};
pub use mixed::{Beside, Cached, cached, mixed};
pub use test::{convolution, finite_difference, n_body, skinny_matmul};

/// Elements that a row of a matrix is longer than its extent.
pub const PITCH: i64 = 16;

/// Threads of a group along both axes: the two-dimensional sets of the paper.
pub const GROUPS_2D: [(i64, i64); 3] = [(16, 8), (16, 16), (16, 32)];

/// Threads of a group: the one-dimensional sets of the paper.
pub const GROUPS_1D: [i64; 3] = [128, 256, 512];

/// A row of a matrix with so many used columns.
pub(crate) fn pitched(columns: &'static str) -> Size {
    size(columns) + PITCH
}

impl LoopKernel {
    /// Runs the loops `j` and `i` on groups of so many threads along both axes.
    fn spread_2d(self, (x, y): (i64, i64)) -> Result<Self, LoopError> {
        self.spread("j", x, Axis::X, "jg", "jt")?.spread("i", y, Axis::Y, "ig", "it")
    }
}

/// A kernel with sizes, as part of a set.
#[derive(Clone, Debug)]
pub struct Case {
    /// The class of measurement kernels, or the test kernel.
    pub class: &'static str,
    /// Variant, group and size, for reports.
    pub name: String,
    /// The kernel with its sizes.
    pub instance: Instance,
}

/// How large cases are: exponents of two that are added to those of a GPU of the paper's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// A few groups, for emulators and tests.
    Tiny,
    /// A few cores of a host.
    Host,
    /// A GPU.
    Gpu,
}

impl Scale {
    /// `2^(exponent)` for hosts; smaller and larger ones for the others.
    fn of(self, host: u32, gpu: u32) -> i64 {
        match self {
            Self::Tiny => 32,
            Self::Host => 1 << host,
            Self::Gpu => 1 << gpu,
        }
    }

    /// Number of size cases.
    fn cases(self, full: u32) -> u32 {
        if self == Self::Tiny { 1 } else { full }
    }
}

/// Collects cases.
pub(crate) struct Set {
    cases: Vec<Case>,
}

impl Set {
    fn add(
        &mut self,
        class: &'static str,
        variant: &str,
        kernel: Result<LoopKernel, LoopError>,
        sizes: &[(&'static str, i64)],
    ) -> Result<(), LoopError> {
        let sizes: Sizes = sizes.iter().copied().collect();
        let instance = Instance::new(kernel?, &sizes)?;
        let words: Vec<String> = sizes.iter().map(|(n, v)| format!("{n}={v}")).collect();
        let [x, y, _] = instance.block();
        let name = format!("{variant} {x}x{y} {}", words.join(" "));
        self.cases.push(Case { class, name: name.trim().to_owned(), instance });
        Ok(())
    }
}

/// All cases that a model is fitted on.
///
/// # Errors
/// None for the scales that there are; a test holds the library to that.
pub fn measurement_set(scale: Scale) -> Result<Vec<Case>, LoopError> {
    let mut set = Set { cases: Vec::new() };
    measurement::add(&mut set, scale)?;
    arithmetic::add(&mut set, scale)?;
    beyond::add(&mut set, scale)?;
    mixed::add(&mut set, scale)?;
    Ok(set.cases)
}

/// The four test kernels with sizes a to d: what a model is judged on and never fitted on.
///
/// # Errors
/// None for the scales that there are; a test holds the library to that.
pub fn test_set(scale: Scale) -> Result<Vec<Case>, LoopError> {
    let mut set = Set { cases: Vec::new() };
    test::add(&mut set, scale)?;
    Ok(set.cases)
}
