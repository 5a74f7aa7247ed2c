//! Tensors of a correlation as arguments of launches.

use tilewright_core::program::Arg;
use tilewright_ops::conv::{ConvInput, Correlation, Group};

/// Which tensor of a correlation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tensor {
    Gathered,
    Filter,
    Result,
}

impl Tensor {
    /// The address of its first group, and elements from one group to the next.
    pub(super) fn of(self, input: &ConvInput, of: &Correlation) -> (Arg, usize) {
        let (gathered, written) = (input.gathered(), input.written());
        let (buffer, start): (_, fn(&Group) -> usize) = match self {
            Self::Gathered => (gathered, |group| group.gathered),
            // What is neither gathered nor written.
            Self::Filter => (3 - gathered - written, |group| group.filter),
            Self::Result => (written, |group| group.result),
        };
        let starts = [0, 1].map(|i| of.groups.get(i).map_or(0, start));
        let address = Arg::Buffer(buffer, (starts[0] * input.dtype().size()) as u64);
        (address, starts[1].saturating_sub(starts[0]))
    }
}
