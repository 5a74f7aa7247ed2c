//! The taps of a correlation as what they are: a grid of rows and columns, equally far apart.

use tilewright_ops::conv::Correlation;

/// The taps of a correlation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taps {
    /// Rows and columns of the grid; 0 where there are no taps.
    pub(super) counts: [usize; 2],
    /// Places of the image from one row to the next, and from one column to the next.
    pub(super) apart: [usize; 2],
    /// The element of a channel of the filter at the first row and column.
    pub(super) first: u32,
    /// Elements of the filter from one row to the next, and from one column to the next: differences that wrap round, since the taps of
    /// a gradient come in the other order.
    pub(super) strides: [u32; 2],
}

impl Taps {
    pub(super) fn of(of: &Correlation) -> Self {
        let places = [0, 1].map(|d| {
            let mut places: Vec<usize> = of.taps.iter().map(|tap| tap.at[d]).collect();
            places.sort_unstable();
            places.dedup();
            places
        });
        let [rows, columns] = &places;
        let element = |i: usize, j: usize| {
            let at = [*rows.get(i)?, *columns.get(j)?];
            of.taps.iter().find(|tap| tap.at == at).map(|tap| tap.filter as u32)
        };
        let first = element(0, 0).unwrap_or(0);
        let stride = |other: Option<u32>| other.map_or(0, |other| other.wrapping_sub(first));
        Self {
            counts: [rows.len(), columns.len()],
            apart: places.each_ref().map(|places| places.get(1).map_or(0, |second| second - places[0])),
            first,
            strides: [stride(element(1, 0)), stride(element(0, 1))],
        }
    }

    /// Columns of the image from the first tap to the last.
    pub(super) fn reach(&self) -> usize {
        self.apart[1] * self.counts[1].saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_core::computation::Computation;
    use tilewright_core::space::Config;
    use tilewright_ops::conv::Conv;

    #[test]
    fn taps_are_a_grid() {
        for text in [
            "n=1,c=2,h=9,w=8,k=3,r=3,s=2,pad=1",
            "n=1,c=2,h=19,w=17,k=2,r=5,s=4,stride_h=2,stride_w=3,pad_h=2",
            "n=1,c=2,h=28,k=3,r=4,dilation_h=3,dilation_w=2,stride=4",
            "n=1,c=1,h=3,k=2,r=1,stride=5",
        ] {
            for (direction, layout) in ["forward", "data"].iter().flat_map(|d| ["nchw", "nhwc"].map(|l| (d, l))) {
                let fields = Config::parse(&format!("{text},direction={direction},layout={layout}")).unwrap();
                for of in Correlation::all(&Conv.parse(&fields).unwrap()) {
                    let taps = Taps::of(&of);
                    assert_eq!(taps.counts[0] * taps.counts[1], of.taps.len());
                    for i in 0..of.taps.len() {
                        let at = [i / taps.counts[1], i % taps.counts[1]];
                        let steps = [0, 1].map(|d| taps.strides[d].wrapping_mul(at[d] as u32));
                        let filter = taps.first.wrapping_add(steps[0]).wrapping_add(steps[1]) as usize;
                        let at = [0, 1].map(|d| at[d] * taps.apart[d]);
                        assert!(of.taps.iter().any(|tap| tap.at == at && tap.filter == filter), "{text} {i}");
                    }
                }
            }
        }
    }
}
