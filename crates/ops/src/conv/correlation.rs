//! Every direction of a convolution as correlations: sums over channels and taps at the positions of a grid.
//!
//! `result[image, position, out] = sum over channels and taps of gathered[image, channel, position * step + origin + tap] *
//! filter[out, channel, tap]`, what lies outside of an image being zero. The forward direction is one. The gradient of the images is
//! one for every remainder of a place by the stride: taps of other remainders never meet it. The gradient of the filters is one
//! whose images are channels, whose channels are images, and whose taps are the outputs.

use super::input::{ConvInput, Direction, Layout};

/// A dimension: how many, and elements from one to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim {
    /// How many.
    pub count: usize,
    /// Elements from one to the next.
    pub stride: usize,
}

/// A tap: its place relative to the first one, and its element in the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tap {
    /// Rows and columns from the first tap.
    pub at: [usize; 2],
    /// The element of a channel of the filter.
    pub filter: usize,
}

/// Elements between neighbours in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strides {
    /// From image to image.
    pub image: usize,
    /// From row to row of the grid.
    pub row: usize,
    /// From column to column of the grid.
    pub column: usize,
    /// From output to output of the filter.
    pub out: usize,
}

/// Where a group begins, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// In the gathered tensor.
    pub gathered: usize,
    /// In the filters.
    pub filter: usize,
    /// In the result.
    pub result: usize,
}

/// One correlation, the same for every group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correlation {
    /// Images of the gathered tensor.
    pub images: Dim,
    /// Channels of a group, which are summed over.
    pub channels: Dim,
    /// Rows of an image.
    pub rows: Dim,
    /// Columns of an image.
    pub columns: Dim,
    /// Positions of an image.
    pub grid: [usize; 2],
    /// Places from one position to the next.
    pub step: [usize; 2],
    /// The place of the first tap of the first position; negative in the padding.
    pub origin: [isize; 2],
    /// What is summed over at every position.
    pub taps: Vec<Tap>,
    /// Outputs of the filter, of a group.
    pub outs: Dim,
    /// Elements between channels of the filter.
    pub filter_channel: usize,
    /// Where results lie.
    pub result: Strides,
    /// Where groups begin.
    pub groups: Vec<Group>,
}

/// Strides of a tensor of images: image, channel, row, column.
fn strides(layout: Layout, channels: usize, [rows, columns]: [usize; 2]) -> [usize; 4] {
    let all = channels * rows * columns;
    match layout {
        Layout::Nchw => [all, rows * columns, columns, 1],
        Layout::Nhwc => [all, 1, columns * channels, channels],
    }
}

/// The sizes of an input, per group where that matters.
struct Sizes<'a> {
    input: &'a ConvInput,
    /// Channels and output channels of a group.
    c: usize,
    k: usize,
    output: [usize; 2],
    x: [usize; 4],
    y: [usize; 4],
    /// Strides of the filters: output, channel, row, column.
    f: [usize; 4],
}

impl<'a> Sizes<'a> {
    fn of(input: &'a ConvInput) -> Self {
        let (c, k, output) = (input.c / input.groups, input.k / input.groups, input.output());
        let x = strides(input.layout, input.c, [input.h, input.w]);
        let y = strides(input.layout, input.k, output);
        let f = strides(input.layout, c, [input.r, input.s]);
        Self { input, c, k, output, x, y, f }
    }

    fn groups(&self, gathered: usize, filter: usize, result: usize) -> Vec<Group> {
        let group = |g: usize| Group { gathered: g * gathered, filter: g * filter, result: g * result };
        (0..self.input.groups).map(group).collect()
    }

    fn filters(&self) -> usize {
        self.k * self.f[0]
    }

    fn forward(&self) -> Correlation {
        let ConvInput { n, h, w, r, s, pad, stride, dilation, .. } = *self.input;
        let tap = |i: usize| {
            let (r, s) = (i / s, i % s);
            Tap { at: [r * dilation[0], s * dilation[1]], filter: r * self.f[2] + s * self.f[3] }
        };
        Correlation {
            images: Dim { count: n, stride: self.x[0] },
            channels: Dim { count: self.c, stride: self.x[1] },
            rows: Dim { count: h, stride: self.x[2] },
            columns: Dim { count: w, stride: self.x[3] },
            grid: self.output,
            step: stride,
            origin: pad.map(|pad| -(pad as isize)),
            taps: (0..r * s).map(tap).collect(),
            outs: Dim { count: self.k, stride: self.f[0] },
            filter_channel: self.f[1],
            result: Strides { image: self.y[0], row: self.y[2], column: self.y[3], out: self.y[1] },
            groups: self.groups(self.c * self.x[1], self.filters(), self.k * self.y[1]),
        }
    }

    fn filter(&self) -> Correlation {
        let ConvInput { n, h, w, r, s, pad, stride, dilation, .. } = *self.input;
        let [p, q] = self.output;
        let tap = |i: usize| {
            let (p, q) = (i / q, i % q);
            Tap { at: [p * stride[0], q * stride[1]], filter: p * self.y[2] + q * self.y[3] }
        };
        Correlation {
            images: Dim { count: self.c, stride: self.x[1] },
            channels: Dim { count: n, stride: self.x[0] },
            rows: Dim { count: h, stride: self.x[2] },
            columns: Dim { count: w, stride: self.x[3] },
            grid: [r, s],
            step: dilation,
            origin: pad.map(|pad| -(pad as isize)),
            taps: (0..p * q).map(tap).collect(),
            outs: Dim { count: self.k, stride: self.y[1] },
            filter_channel: self.y[0],
            result: Strides { image: self.f[1], row: self.f[2], column: self.f[3], out: self.f[0] },
            groups: self.groups(self.c * self.x[1], self.k * self.y[1], self.filters()),
        }
    }

    /// The places of the images whose padded place has these remainders by the stride.
    fn data(&self, remainders: [usize; 2]) -> Option<Correlation> {
        let ConvInput { n, h, w, r, s, .. } = *self.input;
        let along = [self.along(0, r, h, remainders[0])?, self.along(1, s, w, remainders[1])?];
        let least = [0, 1].map(|d| along[d].taps.iter().map(|t| t.1).min().unwrap_or(0));
        let mut taps = Vec::new();
        for &(r, y) in &along[0].taps {
            for &(s, x) in &along[1].taps {
                let at = [(y - least[0]) as usize, (x - least[1]) as usize];
                taps.push(Tap { at, filter: r * self.f[2] + s * self.f[3] });
            }
        }
        let stride = self.input.stride;
        let mut groups = self.groups(self.k * self.y[1], self.filters(), self.c * self.x[1]);
        let first = along[0].first * self.x[2] + along[1].first * self.x[3];
        groups.iter_mut().for_each(|group| group.result += first);
        Some(Correlation {
            images: Dim { count: n, stride: self.y[0] },
            channels: Dim { count: self.k, stride: self.y[1] },
            rows: Dim { count: self.output[0], stride: self.y[2] },
            columns: Dim { count: self.output[1], stride: self.y[3] },
            grid: [along[0].count, along[1].count],
            step: [1, 1],
            origin: least,
            taps,
            outs: Dim { count: self.c, stride: self.f[1] },
            filter_channel: self.f[0],
            result: Strides {
                image: self.x[0],
                row: stride[0] * self.x[2],
                column: stride[1] * self.x[3],
                out: self.x[1],
            },
            groups,
        })
    }

    /// One direction of [`Sizes::data`]; none where the image has no such place.
    fn along(&self, d: usize, taps: usize, extent: usize, remainder: usize) -> Option<Along> {
        let (pad, stride, dilation) = (self.input.pad[d], self.input.stride[d], self.input.dilation[d]);
        let first = (remainder + stride - pad % stride) % stride;
        let count = extent.checked_sub(first)?.div_ceil(stride);
        let meets = |&tap: &usize| (tap * dilation) % stride == remainder;
        let place = |tap: usize| (tap, ((first + pad) as isize - (tap * dilation) as isize) / stride as isize);
        (count > 0).then(|| Along { first, count, taps: (0..taps).filter(meets).map(place).collect() })
    }
}

/// Places of an image in one direction: the first, how many, and the taps that meet them with the output that they come from,
/// relative to the number of the place.
struct Along {
    first: usize,
    count: usize,
    taps: Vec<(usize, isize)>,
}

impl Correlation {
    /// The correlations of a convolution. Together they write every element of the result once.
    pub fn all(input: &ConvInput) -> Vec<Self> {
        let sizes = Sizes::of(input);
        match input.direction {
            Direction::Forward => vec![sizes.forward()],
            Direction::Filter => vec![sizes.filter()],
            Direction::Data => {
                let [rows, columns] = input.stride;
                (0..rows * columns).filter_map(|i| sizes.data([i / columns, i % columns])).collect()
            }
        }
    }

    /// Length of the sums.
    pub fn depth(&self) -> usize {
        self.channels.count * self.taps.len()
    }

    /// Positions of an image.
    pub fn positions(&self) -> usize {
        self.grid[0] * self.grid[1]
    }

    /// Places from the first tap to the last.
    pub fn reach(&self) -> [usize; 2] {
        [0, 1].map(|d| self.taps.iter().map(|tap| tap.at[d]).max().unwrap_or(0))
    }

    /// Whether every tap of every position lies inside of its image.
    pub fn is_inside(&self) -> bool {
        let (reach, extent) = (self.reach(), [self.rows.count, self.columns.count]);
        (0..2).all(|d| {
            let last = self.origin[d] + ((self.grid[d].max(1) - 1) * self.step[d] + reach[d]) as isize;
            self.origin[d] >= 0 && last < extent[d] as isize
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::Conv;
    use tilewright_core::buffer::Filling;
    use tilewright_core::computation::Computation;
    use tilewright_core::space::Config;

    /// The correlations by their definition.
    fn computed(input: &ConvInput, gathered: &[f64], filter: &[f64], result: &mut [f64]) {
        for of in Correlation::all(input) {
            for group in &of.groups {
                for (image, at, out) in (0..of.images.count)
                    .flat_map(|i| (0..of.positions()).map(move |at| (i, at)))
                    .flat_map(|(i, at)| (0..of.outs.count).map(move |out| (i, at, out)))
                {
                    let at = [at / of.grid[1], at % of.grid[1]];
                    let mut sum = 0.0;
                    for (channel, tap) in (0..of.channels.count).flat_map(|c| of.taps.iter().map(move |t| (c, t))) {
                        let place = [0, 1].map(|d| of.origin[d] + (at[d] * of.step[d] + tap.at[d]) as isize);
                        if place[0] < 0 || place[1] < 0 {
                            continue;
                        }
                        let [row, column] = place.map(|p| p as usize);
                        if row < of.rows.count && column < of.columns.count {
                            let from = group.gathered
                                + image * of.images.stride
                                + channel * of.channels.stride
                                + row * of.rows.stride
                                + column * of.columns.stride;
                            let by = group.filter + out * of.outs.stride + channel * of.filter_channel + tap.filter;
                            sum += gathered[from] * filter[by];
                        }
                    }
                    let r = &of.result;
                    let to = group.result + image * r.image + at[0] * r.row + at[1] * r.column + out * r.out;
                    assert!(result[to].is_nan(), "written once");
                    result[to] = sum;
                }
            }
        }
    }

    #[test]
    fn correlations_are_the_computation() {
        for text in [
            "n=2,c=3,h=5,w=6,k=4,r=3,s=2,pad=1",
            "n=1,c=4,h=9,w=7,k=6,r=3,stride_h=2,stride_w=3,groups=2,pad_h=2",
            "n=2,c=2,h=8,k=3,r=2,dilation=3,pad_w=2,stride=2",
            "n=2,c=4,h=4,k=4,r=3,pad=2,groups=4,stride=2",
            "n=1,c=2,h=3,k=2,r=1,stride=5",
        ] {
            for (direction, layout) in
                ["forward", "data", "filter"].into_iter().flat_map(|d| ["nchw", "nhwc"].map(|l| (d, l)))
            {
                let mut fields = Config::parse(text).unwrap();
                fields.0.extend([("direction".into(), direction.into()), ("layout".into(), layout.into())]);
                let input = Conv.parse(&fields).unwrap();
                let work = Conv.workload(&input, Filling::Exact, 7);
                let expected = Conv.reference(&input, &work.buffers, &[]).unwrap().buffers.remove(0).values;
                let wide = |i: usize| {
                    let buffer = &work.buffers[i];
                    (0..buffer.len()).map(|i| buffer.get_f64(i)).collect::<Vec<_>>()
                };
                let other = 3 - input.written() - input.gathered();
                let mut result = wide(input.written());
                computed(&input, &wide(input.gathered()), &wide(other), &mut result);
                assert_eq!(result, expected, "{text} {direction} {layout}");
            }
        }
    }
}
