//! What filters see, unfolded: the matrix that a GEMM multiplies by the filters.

use std::ops::Range;
use tilewright_ops::conv::{ConvInput, Layout};

/// Elements of a matrix below which handing work to another thread costs more than it saves.
const WORTH_DIVIDING: usize = 1 << 14;

/// The patches of a group of an input. Its channels begin at element 0 of what is unfolded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patches<'i> {
    input: &'i ConvInput,
    /// Channels of a group.
    channels: usize,
    p: usize,
    q: usize,
}

impl<'i> Patches<'i> {
    pub(super) fn of(input: &'i ConvInput) -> Self {
        let [p, q] = input.output();
        Self { input, channels: input.c / input.groups, p, q }
    }

    /// Numbers of a patch.
    pub(super) fn depth(&self) -> usize {
        self.channels * self.input.r * self.input.s
    }

    /// Unfolds rows of outputs, which are counted through all images from the one that `x` begins with; where channels come
    /// before places, they lie in that image.
    ///
    /// With channels first, a line of the matrix is a number of all patches; with channels last it is a patch.
    pub(super) fn unfold<T: Copy + Default + Send + Sync>(
        self,
        x: &[T],
        rows: Range<usize>,
        threads: usize,
        out: &mut [T],
    ) {
        match self.input.layout {
            Layout::Nchw => {
                let line = rows.len() * self.q;
                in_lines(out, line, threads, |number, line| self.number_of_all(x, number, rows.start, line));
            }
            Layout::Nhwc => in_lines(out, self.depth(), threads, |at, line| {
                self.all_of_one(x, rows.start + at / self.q, at % self.q, line);
            }),
        }
    }

    /// One number of the patches of whole rows of outputs.
    fn number_of_all<T: Copy + Default>(self, x: &[T], number: usize, first_row: usize, out: &mut [T]) {
        let &ConvInput { h, w, r, s, pad, stride, dilation, .. } = self.input;
        let (channel, tap) = (number / (r * s), [number / s % r, number % s]);
        let at = tap[1] * dilation[1];
        let inside = inside(self.q, stride[1], at, pad[1], w);
        for (row, line) in out.chunks_exact_mut(self.q).enumerate() {
            let Some(y) = place(first_row + row, stride[0], tap[0] * dilation[0], pad[0], h) else {
                line.fill(T::default());
                continue;
            };
            line[..inside.start].fill(T::default());
            line[inside.end..].fill(T::default());
            if inside.is_empty() {
                continue;
            }
            let from = &x[(channel * h + y) * w..][..w][inside.start * stride[1] + at - pad[1]..];
            let to = &mut line[inside.clone()];
            match stride[1] {
                1 => to.copy_from_slice(&from[..to.len()]),
                stride => to.iter_mut().zip(from.iter().step_by(stride)).for_each(|(to, from)| *to = *from),
            }
        }
    }

    /// The patch of one output.
    fn all_of_one<T: Copy + Default>(self, x: &[T], row: usize, column: usize, out: &mut [T]) {
        let &ConvInput { h, w, c, s, pad, stride, dilation, .. } = self.input;
        let (image, row) = (row / self.p, row % self.p);
        let at = column * stride[1];
        let inside = inside(s, dilation[1], at, pad[1], w);
        for (tap, line) in out.chunks_exact_mut(s * self.channels).enumerate() {
            let Some(y) = place(tap, dilation[0], row * stride[0], pad[0], h) else {
                line.fill(T::default());
                continue;
            };
            line[..inside.start * self.channels].fill(T::default());
            line[inside.end * self.channels..].fill(T::default());
            if inside.is_empty() {
                continue;
            }
            let first = inside.start * dilation[1] + at - pad[1];
            let from = &x[((image * h + y) * w + first) * c..];
            let to = &mut line[inside.start * self.channels..inside.end * self.channels];
            if dilation[1] == 1 && self.channels == c {
                to.copy_from_slice(&from[..to.len()]);
                continue;
            }
            for (tap, to) in to.chunks_exact_mut(self.channels).enumerate() {
                to.copy_from_slice(&from[tap * dilation[1] * c..][..self.channels]);
            }
        }
    }
}

/// Those of `0..count` for which `i * step + at - pad` lies in `0..extent`.
fn inside(count: usize, step: usize, at: usize, pad: usize, extent: usize) -> Range<usize> {
    let end = (extent + pad).saturating_sub(at).div_ceil(step).min(count);
    pad.saturating_sub(at).div_ceil(step).min(end)..end
}

/// `i * step + at - pad`, if it lies in `0..extent`.
fn place(i: usize, step: usize, at: usize, pad: usize, extent: usize) -> Option<usize> {
    (i * step + at).checked_sub(pad).filter(|place| *place < extent)
}

/// Fills the lines of a matrix, each known by its number, by as many threads.
fn in_lines<T: Send>(out: &mut [T], line: usize, threads: usize, fill: impl Fn(usize, &mut [T]) + Sync) {
    if out.is_empty() || line == 0 {
        return;
    }
    let some = |first: usize, part: &mut [T]| {
        part.chunks_exact_mut(line).enumerate().for_each(|(i, line)| fill(first + i, line));
    };
    if threads <= 1 || out.len() < WORTH_DIVIDING {
        return some(0, out);
    }
    let (lines, some) = ((out.len() / line).div_ceil(threads), &some);
    rayon::scope(|scope| {
        for (i, part) in out.chunks_mut(lines * line).enumerate() {
            scope.spawn(move |_| some(i * lines, part));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_core::computation::Computation;
    use tilewright_core::space::Config;
    use tilewright_ops::conv::Conv;

    fn input(text: &str) -> ConvInput {
        Conv.parse(&Config::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn what_is_inside_is_what_has_a_place() {
        for (count, step, at, pad, extent) in
            [(5, 1, 0, 2, 4), (5, 3, 1, 2, 4), (4, 2, 5, 0, 4), (3, 1, 0, 5, 2), (1, 7, 2, 2, 1), (6, 2, 0, 3, 9)]
        {
            let range = inside(count, step, at, pad, extent);
            for i in 0..count {
                assert_eq!(range.contains(&i), place(i, step, at, pad, extent).is_some(), "{i} of {range:?}");
            }
        }
    }

    #[test]
    fn patches_hold_what_taps_see() {
        for text in [
            "n=2,c=3,h=5,w=6,k=1,r=3,s=2,pad=1",
            "n=2,c=4,h=9,w=7,k=2,r=3,stride_h=2,stride_w=3,pad_h=2,groups=2",
            "n=2,c=2,h=8,k=1,r=2,dilation=3,pad_w=2,stride=2",
            "n=1,c=1,h=3,k=1,r=1,stride=5",
        ] {
            for layout in ["nchw", "nhwc"] {
                let input = input(&format!("{text},layout={layout}"));
                let (patches, tensors) = (Patches::of(&input), input.tensors());
                let x: Vec<f32> = (0..tensors.lens()[0]).map(|i| i as f32 + 1.0).collect();
                let (rows, q, depth) = (patches.p, patches.q, patches.depth());
                let mut out = vec![f32::NAN; rows * q * depth];
                patches.unfold(&x, 0..rows, 2, &mut out);
                for (at, number) in (0..rows * q).flat_map(|at| (0..depth).map(move |number| (at, number))) {
                    let (channel, tap) = tensors.tap(number);
                    let seen = tensors.seen([at / q, at % q], tap);
                    let expected = seen.map_or(0.0, |place| x[tensors.x(0, channel, place)]);
                    let found = if layout == "nchw" { out[number * rows * q + at] } else { out[at * depth + number] };
                    assert_eq!(found, expected, "{text} {layout}: {number} of {at}");
                }
            }
        }
    }

    #[test]
    fn threads_share_the_lines() {
        let mut out = vec![0; 3 * WORTH_DIVIDING];
        in_lines(&mut out, 3, 4, |number, line| line.fill(number));
        assert!(out.iter().enumerate().all(|(i, number)| *number == i / 3));
    }
}
