//! Filters in the order in which register tiles read them.
//!
//! For every block of the reduction and every tile of outputs a panel: step after step, the tile's outputs side by side.

#[cfg(target_arch = "x86_64")]
use crate::exec::pack::transpose;
use crate::exec::pack::{Block, Packed};
use crate::geometry::Operand;
use crate::split::Split;
use std::ops::Range;
use tilewright_ops::conv::Correlation;

/// Where panels lie.
#[derive(Clone, Debug)]
pub(crate) struct Panels {
    outs: Split,
    depth: Split,
    /// Steps of the reduction that follow each other at equal distances: the first, and how many; within one block each.
    runs: Vec<Vec<Run>>,
    /// The taps of each block, where channels are neighbours in the filter and steps go from tap to tap: of a tap, its channels lie as
    /// squares of them and of outputs, which vectors transpose. Empty where runs are as good.
    taps: Vec<Vec<Tap>>,
    /// Elements between outputs of the filter, and steps between the channels of a tap.
    out: usize,
    apart: usize,
}

/// The channels of a tap.
#[derive(Clone, Copy, Debug)]
struct Tap {
    /// The step of the first, within its block, and how many.
    first: usize,
    count: usize,
    /// The element of the first.
    at: usize,
}

/// Steps at equal distances.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The first, within its block, and how many.
    first: usize,
    count: usize,
    /// The element of the first, and how far it is to the next.
    at: usize,
    stride: usize,
}

impl Panels {
    pub(crate) fn new(of: &Correlation, outs: Split, depth: Split) -> Self {
        let taps = of.taps.len().max(1);
        let element = |k: usize| k / taps * of.filter_channel + of.taps[k % taps].filter;
        let block = |k: usize| runs(depth.start(k), depth.size(k), element);
        let tiles = if of.depth() == 0 { 0 } else { depth.tiles() };
        let is_woven = taps > 1 && of.filter_channel == 1 && of.outs.stride != 1;
        let of_block = |k: usize| taps_of(depth.start(k), depth.size(k), taps, element);
        Self {
            outs,
            depth,
            runs: (0..tiles).map(block).collect(),
            taps: if is_woven { (0..tiles).map(of_block).collect() } else { Vec::new() },
            out: of.outs.stride,
            apart: taps,
        }
    }

    /// Elements of all panels of one group.
    pub(crate) fn len(&self) -> usize {
        self.at(self.runs.len(), 0)
    }

    /// Where the panel of a tile begins.
    pub(crate) fn at(&self, k_block: usize, tile: usize) -> usize {
        let before = if k_block < self.depth.tiles() { self.depth.start(k_block) } else { self.depth.extent };
        let depth = if k_block < self.depth.tiles() { self.depth.size(k_block) } else { 0 };
        before * self.outs.start(self.outs.tiles()) + self.outs.start(tile) * depth
    }

    /// Elements from the panel of a tile that is so many units wide to the next.
    pub(crate) fn step(&self, k_block: usize, units: usize) -> usize {
        units * self.outs.unit * self.depth.size(k_block)
    }

    /// How many panels there are: each can be packed alone.
    pub(crate) fn count(&self) -> usize {
        self.runs.len() * self.outs.tiles()
    }

    /// Packs one of them.
    ///
    /// # Safety
    /// The group's filters must be readable at `from`, and the panel writable. `simd` may be set only on a host with AVX2.
    pub(crate) unsafe fn pack<T: Packed>(&self, number: usize, from: *const T, to: *mut T, simd: bool) {
        let (k_block, tile) = (number / self.outs.tiles(), number % self.outs.tiles());
        let width = self.outs.start(tile + 1) - self.outs.start(tile);
        let to = to.wrapping_add(self.at(k_block, tile));
        #[cfg(target_arch = "x86_64")]
        if let Some(taps) = self.taps.get(k_block).filter(|_| simd && self.outs.extent >= T::SQUARE) {
            // SAFETY: the caller's contract.
            taps.iter().for_each(|tap| unsafe { self.weave(tap, tile, from, to) });
            return;
        }
        for run in &self.runs[k_block] {
            let operand = Operand { along: self.out, step: run.stride };
            let source = from.wrapping_add(run.at).cast();
            let block = Block { source, operand, split: &self.outs, tiles: tile..tile + 1, depth: run.count };
            // SAFETY: the caller's contract.
            unsafe { block.pack(to.wrapping_add(run.first * width), simd) };
        }
    }

    /// Packs the channels of a tap.
    ///
    /// # Safety
    /// As for [`Panels::pack`], on a host with AVX2; there must be outputs for a square.
    #[cfg(target_arch = "x86_64")]
    unsafe fn weave<T: Packed>(&self, tap: &Tap, tile: usize, from: *const T, to: *mut T) {
        let (start, valid) = (self.outs.start(tile), self.outs.size(tile));
        let width = self.outs.start(tile + 1) - start;
        let (from, to) = (from.wrapping_add(tap.at), to.wrapping_add(tap.first * width));
        let pitch = self.apart * width;
        let squares = tap.count / T::SQUARE * T::SQUARE;
        for c in (0..squares).step_by(T::SQUARE) {
            for i in (0..valid).step_by(T::SQUARE) {
                let some = start + i..start + valid.min(i + T::SQUARE);
                let to = to.wrapping_add(c * pitch + i);
                // SAFETY: the caller's contract: channels and outputs are the filter's, and the columns the panel's.
                unsafe { self.square(from.wrapping_add(c), some, (to, pitch)) };
            }
        }
        for c in 0..tap.count {
            // What no square has, and what there is no output for.
            for i in if c < squares { valid } else { 0 }..width {
                let from = from.wrapping_add((start + i) * self.out + c);
                // SAFETY: as above.
                unsafe { *to.add(c * pitch + i) = if i < valid { from.read_unaligned() } else { T::default() } };
            }
        }
    }

    /// As many channels as a square has, of some outputs, no more than that.
    ///
    /// # Safety
    /// As for [`Panels::weave`].
    #[cfg(target_arch = "x86_64")]
    unsafe fn square<T: Packed>(&self, from: *const T, outs: Range<usize>, (to, pitch): (*mut T, usize)) {
        // At the end the square has outputs before these too.
        let first = outs.start.min(self.outs.extent - T::SQUARE);
        let from = (from.wrapping_add(first * self.out), self.out);
        if outs.len() == T::SQUARE {
            // SAFETY: the caller's contract.
            unsafe { transpose::square(from, (to, pitch)) };
            return;
        }
        let mut square = [[T::default(); MOST]; MOST];
        // SAFETY: the square lies in the filter; no square is larger than the array.
        unsafe { transpose::square(from, (square.as_mut_ptr().cast(), MOST)) };
        for (c, row) in square[..T::SQUARE].iter().enumerate() {
            let row = &row[outs.start - first..][..outs.len()];
            // SAFETY: the caller's contract.
            unsafe { to.add(c * pitch).copy_from_nonoverlapping(row.as_ptr(), row.len()) };
        }
    }
}

/// Rows of the largest square.
const MOST: usize = 8;

/// Channels by taps of `count` steps from a step on, which go from tap to tap of a channel.
fn taps_of(from: usize, count: usize, taps: usize, element: impl Fn(usize) -> usize) -> Vec<Tap> {
    let of = |tap: usize| {
        let first = (tap + taps - from % taps) % taps;
        let channels = count.saturating_sub(first).div_ceil(taps);
        (channels > 0).then(|| Tap { first, count: channels, at: element(from + first) })
    };
    (0..taps).filter_map(of).collect()
}

/// Steps `from..from + count` in runs.
fn runs(from: usize, count: usize, element: impl Fn(usize) -> usize) -> Vec<Run> {
    let mut out: Vec<Run> = Vec::new();
    for step in 0..count {
        let at = element(from + step);
        if let Some(run) = out.last_mut() {
            let distance = at.wrapping_sub(run.at + (run.count - 1) * run.stride);
            if at > run.at && (run.count == 1 || distance == run.stride) {
                (run.stride, run.count) = (distance, run.count + 1);
                continue;
            }
        }
        out.push(Run { first: step, count: 1, at, stride: 1 });
    }
    out
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use tilewright_core::computation::Computation;
    use tilewright_core::space::Config;
    use tilewright_ops::conv::Conv;

    /// All panels, packed with the host's vectors or without.
    fn packed<T: Packed>(panels: &Panels, filter: &[T], simd: bool) -> Vec<T> {
        let mut to = vec![T::default(); panels.len()];
        // SAFETY: the filter is that of the input, and there is room for all panels.
        (0..panels.count()).for_each(|at| unsafe { panels.pack(at, filter.as_ptr(), to.as_mut_ptr(), simd) });
        to
    }

    #[test]
    fn channels_of_a_tap_are_packed_as_single_elements_are() {
        if !crate::device::generates() {
            tilewright_testkit::skip("avx2", "panels are packed element by element here");
            return;
        }
        for (c, k, r) in [(16, 24, 3), (9, 7, 3), (8, 8, 2), (35, 29, 3), (64, 6, 3), (3, 40, 5), (17, 13, 1)] {
            let words = Config::parse(&format!("n=1,c={c},h=9,k={k},r={r},layout=nhwc")).unwrap();
            let of = &Correlation::all(&Conv.parse(&words).unwrap())[0];
            let filter: Vec<f32> = (1..=c * k * r * r).map(|x| x as f32).collect();
            let wide: Vec<f64> = filter.iter().map(|x| f64::from(*x)).collect();
            for (unit, most, deep) in [(6, 6, 40), (8, 16, 1000), (5, 20, 16), (16, 48, 7)] {
                let panels = Panels::new(of, Split::new(k, unit, most), Split::new(of.depth(), 1, deep));
                assert_eq!(!panels.taps.is_empty(), r > 1);
                let what = format!("{words} {unit} {most} {deep}");
                assert_eq!(packed(&panels, &filter, true), packed(&panels, &filter, false), "{what}");
                assert_eq!(packed(&panels, &wide, true), packed(&panels, &wide, false), "{what}");
            }
        }
    }
}
