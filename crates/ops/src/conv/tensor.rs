//! Where elements lie: images, filters, and the taps between them.

use super::input::{ConvInput, Layout};

/// The three tensors of a convolution.
///
/// Images are `n c h w` or `n h w c`, outputs `n k p q` or `n p q k`, filters `k c r s` or `k r s c`, by the layout.
#[derive(Clone, Copy, Debug)]
pub struct Tensors {
    layout: Layout,
    /// Channels, rows and columns of an image.
    x: [usize; 3],
    /// The same of an output.
    y: [usize; 3],
    /// Channels of a group, rows and columns of a filter.
    f: [usize; 3],
    n: usize,
    pad: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
}

impl Tensors {
    /// Of an input.
    pub fn of(input: &ConvInput) -> Self {
        let [p, q] = input.output();
        Self {
            layout: input.layout,
            x: [input.c, input.h, input.w],
            y: [input.k, p, q],
            f: [input.c / input.groups, input.r, input.s],
            n: input.n,
            pad: input.pad,
            stride: input.stride,
            dilation: input.dilation,
        }
    }

    fn at(
        &self,
        [channels, rows, columns]: [usize; 3],
        image: usize,
        channel: usize,
        [row, column]: [usize; 2],
    ) -> usize {
        match self.layout {
            Layout::Nchw => ((image * channels + channel) * rows + row) * columns + column,
            Layout::Nhwc => ((image * rows + row) * columns + column) * channels + channel,
        }
    }

    /// An element of the images.
    pub fn x(&self, image: usize, channel: usize, place: [usize; 2]) -> usize {
        self.at(self.x, image, channel, place)
    }

    /// An element of the outputs.
    pub fn y(&self, image: usize, channel: usize, place: [usize; 2]) -> usize {
        self.at(self.y, image, channel, place)
    }

    /// An element of the filters; the channel counts within its group.
    pub fn f(&self, output: usize, channel: usize, tap: [usize; 2]) -> usize {
        self.at(self.f, output, channel, tap)
    }

    /// Channel, row and column of position `i` of a filter as it lies in memory.
    pub fn tap(&self, i: usize) -> (usize, [usize; 2]) {
        let [channels, rows, columns] = self.f;
        match self.layout {
            Layout::Nchw => (i / (rows * columns), [i / columns % rows, i % columns]),
            Layout::Nhwc => (i % channels, [i / channels / columns, i / channels % columns]),
        }
    }

    /// Where in the image a tap of an output falls; none outside of it.
    pub fn seen(&self, output: [usize; 2], tap: [usize; 2]) -> Option<[usize; 2]> {
        Some([self.seen_along(0, output[0], tap[0])?, self.seen_along(1, output[1], tap[1])?])
    }

    /// The row (`d` = 0) or the column (1) of it.
    pub(super) fn seen_along(&self, d: usize, output: usize, tap: usize) -> Option<usize> {
        let at = (output * self.stride[d] + tap * self.dilation[d]).checked_sub(self.pad[d])?;
        (at < self.x[1 + d]).then_some(at)
    }

    /// Which output sees this place of the image by this tap, the other way round.
    pub fn seeing(&self, place: [usize; 2], tap: [usize; 2]) -> Option<[usize; 2]> {
        Some([self.seeing_along(0, place[0], tap[0])?, self.seeing_along(1, place[1], tap[1])?])
    }

    /// The row (`d` = 0) or the column (1) of it.
    pub(super) fn seeing_along(&self, d: usize, place: usize, tap: usize) -> Option<usize> {
        let at = (place + self.pad[d]).checked_sub(tap * self.dilation[d])?;
        (at.is_multiple_of(self.stride[d]) && at / self.stride[d] < self.y[1 + d]).then(|| at / self.stride[d])
    }

    /// Elements of images, filters and outputs.
    pub fn lens(&self) -> [usize; 3] {
        let product = |of: [usize; 3]| of.iter().product::<usize>();
        [self.n * product(self.x), self.y[0] * product(self.f), self.n * product(self.y)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_core::space::Config;

    #[test]
    fn both_ways_of_a_tap_agree() {
        for text in ["n=1,c=1,h=7,w=9,k=1,r=3,s=2,stride=2,pad=1", "n=1,c=1,h=9,w=9,k=1,r=3,s=3,dilation=2,pad_h=2"] {
            let input = ConvInput::parse(&Config::parse(text).unwrap()).unwrap();
            let t = Tensors::of(&input);
            let [p, q] = input.output();
            for tap in (0..input.r * input.s).map(|i| [i / input.s, i % input.s]) {
                for output in (0..p * q).map(|i| [i / q, i % q]) {
                    if let Some(place) = t.seen(output, tap) {
                        assert_eq!(t.seeing(place, tap), Some(output));
                    }
                }
                for place in (0..input.h * input.w).map(|i| [i / input.w, i % input.w]) {
                    if let Some(output) = t.seeing(place, tap) {
                        assert_eq!(t.seen(output, tap), Some(place));
                    }
                }
            }
        }
    }

    #[test]
    fn taps_are_in_the_order_of_memory() {
        for layout in ["nchw", "nhwc"] {
            let text = format!("n=1,c=6,h=5,w=5,k=2,r=2,s=3,groups=2,layout={layout}");
            let t = Tensors::of(&ConvInput::parse(&Config::parse(&text).unwrap()).unwrap());
            for i in 0..3 * 2 * 3 {
                let (channel, tap) = t.tap(i);
                assert_eq!(t.f(1, channel, tap), 18 + i);
            }
        }
    }
}
