//! Everything derived from a correlation and a configuration.

use super::space::Config;
use crate::codegen::vector::{Vector, Width};
use crate::scalar::Float;
use std::ops::Range;
use tilewright_ops::conv::Correlation;

/// Alignment of every part of the workspace, in bytes.
const ALIGN: usize = 64;

/// Derived values. Sizes are in elements.
#[derive(Clone, Debug)]
pub(crate) struct Blueprint {
    pub(super) of: Correlation,
    pub(super) config: Config,
    pub(super) vector: Vector,
    /// Whether vectors lie along channels, which are neighbours; else along columns.
    pub(super) channels_first: bool,
    /// Columns of each remainder by the stride, in a row that was brought together; and of such a row.
    pub(super) phase: usize,
    pub(super) pitch: usize,
    /// Where a tap is in rows that were brought together, from the element of an output.
    pub(super) taps: Vec<usize>,
    /// Blocks of rows of a plane.
    pub(super) blocks: usize,
    /// Columns of outputs whose taps are all within the image.
    pub(super) inner: Range<usize>,
}

impl Blueprint {
    /// Derives the values; the configuration must be legal for the input.
    pub(super) fn new(of: Correlation, config: Config, float: Float, channels_first: bool) -> Self {
        let vector = Vector { width: Width::from_bytes(config.vec).unwrap_or(Width::X), float };
        let step = of.step[1].max(1);
        // Vectors begin at outputs and may end behind the last.
        let outputs = of.grid[1].next_multiple_of(config.vectors * vector.lanes());
        let phase = outputs + of.reach()[1] / step + 1;
        let pitch = phase * step;
        let taps = of.taps.iter().map(|tap| tap.at[0] * pitch + tap.at[1] % step * phase + tap.at[1] / step).collect();
        let blocks = of.grid[0].div_ceil(config.p_l);
        let inner = inner(&of);
        Self { of, config, vector, channels_first, phase, pitch, taps, blocks, inner }
    }

    /// Channels whose filters lie side by side: whole vectors.
    pub(super) fn channels(&self) -> usize {
        self.of.groups.len().next_multiple_of(self.vector.lanes())
    }

    /// Pieces of work: blocks of rows of all planes, or rows of all channels of an image.
    pub(super) fn units(&self) -> usize {
        self.of.images.count * if self.channels_first { self.of.grid[0] } else { self.of.groups.len() * self.blocks }
    }

    /// Rows of an image that a block of rows of outputs sees.
    pub(super) fn rows(&self, outputs: usize) -> usize {
        outputs.saturating_sub(1) * self.of.step[0] + self.of.reach()[0] + 1
    }

    /// Elements of a thread's filters, and of its rows or the zeros of all channels.
    pub(super) fn parts(&self) -> [usize; 2] {
        match self.channels_first {
            true => [self.taps.len() * self.channels(), self.channels()],
            false => [self.taps.len(), self.rows(self.config.p_l) * self.pitch],
        }
    }

    fn bytes(&self, elements: usize) -> usize {
        (elements * self.vector.float.bytes()).next_multiple_of(ALIGN)
    }

    /// Where a thread's filters and its rows begin in the workspace, in bytes.
    pub(super) fn own(&self, thread: usize) -> [usize; 2] {
        let [filters, rows] = self.parts().map(|elements| self.bytes(elements));
        [thread * (filters + rows), thread * (filters + rows) + filters]
    }

    /// Bytes of workspace.
    pub(super) fn workspace(&self) -> usize {
        self.own(self.config.t)[0]
    }
}

/// Columns of outputs whose taps are all within the image.
fn inner(of: &Correlation) -> Range<usize> {
    let (step, origin) = (of.step[1].max(1), of.origin[1]);
    let first = of.taps.iter().map(|tap| tap.at[1]).min().unwrap_or(0) as isize + origin;
    let last = of.taps.iter().map(|tap| tap.at[1]).max().unwrap_or(0) as isize + origin;
    let end = (of.columns.count as isize - last).max(0) as usize;
    let end = end.div_ceil(step).min(of.grid[1]);
    (((-first).max(0) as usize).div_ceil(step).min(end))..end
}
