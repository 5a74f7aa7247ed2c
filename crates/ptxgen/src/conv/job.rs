//! A correlation as numbers for launches: its taps are progressions, so that a kernel can count them out.

use super::facts::channels_first;
use tilewright_ops::conv::{Correlation, Dim, Strides, Tap};

/// What an entry of the table holds: where a step gathers, the tap's row and column, and its element of the filters. As what is
/// added from one digit of a step to the next, these are differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) gathered: i64,
    pub(crate) row: i64,
    pub(crate) column: i64,
    pub(crate) filter: i64,
}

impl Look {
    /// In the order of the table.
    pub(crate) fn words(self) -> [u32; 4] {
        // Negative differences wrap round, and so do sums with them.
        [self.gathered, self.row, self.column, self.filter].map(|x| x as u32)
    }
}

/// One of the three digits of a step of the reduction: channel, row of taps, column of taps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digit {
    /// How many values it has.
    pub(crate) count: usize,
    /// What one more is worth.
    pub(crate) step: Look,
}

/// One correlation, without its taps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) images: Dim,
    pub(crate) rows: Dim,
    pub(crate) columns: Dim,
    pub(crate) outs: Dim,
    pub(crate) grid: [usize; 2],
    pub(crate) step: [usize; 2],
    pub(crate) origin: [isize; 2],
    pub(crate) result: Strides,
    /// Where the first group begins, in elements: what is gathered, filters, result; and from one group to the next.
    pub(crate) first: [usize; 3],
    pub(crate) groups: [usize; 3],
    /// Length of the sums.
    pub(crate) depth: usize,
    /// The first step, and the digits from the fastest to the slowest.
    pub(crate) look: Look,
    pub(crate) digits: [Digit; 3],
}

impl Job {
    pub(crate) fn of(of: &Correlation) -> Self {
        let starts = |i: usize| of.groups.get(i).map_or([0; 3], |g| [g.gathered, g.filter, g.result]);
        let (first, second) = (starts(0), starts(1));
        let (look, digits) = look(of);
        Self {
            images: of.images,
            rows: of.rows,
            columns: of.columns,
            outs: of.outs,
            grid: of.grid,
            step: of.step,
            origin: of.origin,
            result: of.result,
            first,
            groups: [0, 1, 2].map(|i| second[i].saturating_sub(first[i])),
            depth: of.depth(),
            look,
            digits,
        }
    }

    /// What the table holds of a step that there is.
    pub(crate) fn entry(&self, step: usize) -> [u32; 4] {
        let (mut words, mut rest) = (self.look.words(), step);
        for digit in self.digits {
            let value = (rest % digit.count) as u32;
            rest /= digit.count;
            words.iter_mut().zip(digit.step.words()).for_each(|(w, d)| *w = w.wrapping_add(value.wrapping_mul(d)));
        }
        words
    }
}

/// The first step and the digits of the others. Taps are a grid of rows and columns, equally far apart.
fn look(of: &Correlation) -> (Look, [Digit; 3]) {
    let at = |tap: &Tap| Look {
        gathered: (tap.at[0] * of.rows.stride + tap.at[1] * of.columns.stride) as i64,
        row: tap.at[0] as i64,
        column: tap.at[1] as i64,
        filter: tap.filter as i64,
    };
    let first = of.taps.first().map_or_else(Look::default, at);
    let from_first = |i: usize| {
        let look = of.taps.get(i).map_or(first, at);
        Look {
            gathered: look.gathered - first.gathered,
            row: look.row - first.row,
            column: look.column - first.column,
            filter: look.filter - first.filter,
        }
    };
    let columns = of.taps.iter().take_while(|tap| tap.at[0] == of.taps[0].at[0]).count().max(1);
    let rows = of.taps.len() / columns;
    let channel = Look { gathered: of.channels.stride as i64, filter: of.filter_channel as i64, ..Look::default() };
    let channels = Digit { count: of.channels.count, step: channel };
    let rows = Digit { count: rows.max(1), step: from_first(columns) };
    let columns = Digit { count: columns, step: from_first(1) };
    (first, if channels_first(of) { [channels, columns, rows] } else { [columns, rows, channels] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_core::computation::Computation;
    use tilewright_core::space::Config;
    use tilewright_ops::conv::Conv;

    #[test]
    fn digits_count_out_all_taps_of_all_channels() {
        for text in [
            "n=2,c=3,h=5,w=6,k=4,r=3,s=2,pad=1",
            "n=1,c=4,h=19,w=17,k=6,r=5,s=4,stride_h=2,stride_w=3,groups=2,pad_h=2",
            "n=2,c=2,h=28,k=3,r=4,dilation_h=3,dilation_w=2,pad_w=2,stride=4",
            "n=1,c=2,h=3,k=2,r=1,stride=5",
            "n=3,c=5,h=2,k=3,r=2,pad=1,dilation_w=2",
        ] {
            for (direction, layout) in
                ["forward", "data", "filter"].iter().flat_map(|d| ["nchw", "nhwc"].map(|l| (d, l)))
            {
                let fields = format!("{text},direction={direction},layout={layout}");
                let input = Conv.parse(&Config::parse(&fields).unwrap()).unwrap();
                Correlation::all(&input).iter().for_each(check);
            }
        }
    }

    fn check(of: &Correlation) {
        let job = Job::of(of);
        let mut found: Vec<[u32; 4]> = (0..job.depth).map(|step| job.entry(step)).collect();
        let mut expected: Vec<[u32; 4]> = Vec::new();
        for (channel, tap) in (0..of.channels.count).flat_map(|c| of.taps.iter().map(move |t| (c, t))) {
            let gathered = channel * of.channels.stride + tap.at[0] * of.rows.stride + tap.at[1] * of.columns.stride;
            let filter = channel * of.filter_channel + tap.filter;
            expected.push([gathered, tap.at[0], tap.at[1], filter].map(|x| x as u32));
        }
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}
