//! Balanced division of one dimension into tiles.
//!
//! A dimension of 16 with tiles of at most 6 becomes 6 + 5 + 5, not 6 + 6 + 4: the smallest tile decides how
//! well the latency of the multiply-adds is hidden.

use std::ops::Range;

/// Tiles of one dimension, counted in units (a vector, a step of the unrolled loop, or one element): first `big`
/// tiles of `big_units`, then `small` tiles of one unit less. The last unit may be partial, and may be a tile of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Split {
    pub(crate) extent: usize,
    pub(crate) unit: usize,
    pub(crate) big: usize,
    pub(crate) big_units: usize,
    pub(crate) small: usize,
    /// Whether the elements that make no whole unit are a tile of their own, after the others.
    pub(crate) apart: bool,
}

/// Tiles of one kind in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: usize,
    pub(crate) count: usize,
    pub(crate) kind: usize,
}

/// Big, small, and the last tile when its last unit is partial.
pub(crate) const KINDS: usize = 3;

impl Split {
    /// Divides `extent` into the fewest tiles of at most `most` units each, of as equal size as possible.
    pub(crate) fn new(extent: usize, unit: usize, most: usize) -> Self {
        Self::into_multiple(extent, unit, most, 1)
    }

    /// The same with a number of tiles that is a multiple of `groups`, as far as there are units for it.
    pub(crate) fn into_multiple(extent: usize, unit: usize, most: usize, groups: usize) -> Self {
        let units = extent.div_ceil(unit).max(1);
        let tiles = units.div_ceil(most.max(1)).next_multiple_of(groups).min(units);
        let (least, rest) = (units / tiles, units % tiles);
        if rest == 0 {
            Self { extent, unit, big: tiles, big_units: least, small: 0, apart: false }
        } else {
            Self { extent, unit, big: rest, big_units: least + 1, small: tiles - rest, apart: false }
        }
    }

    /// The same dimension with tiles of at most `most` whole units, and a tile for the elements that make no whole unit: there must be
    /// elements of both kinds.
    pub(crate) fn with_edge(self, most: usize) -> Self {
        Self { extent: self.extent, apart: true, ..Self::new(self.extent - self.tail(), self.unit, most) }
    }

    pub(crate) const fn tiles(&self) -> usize {
        self.big + self.small + self.apart as usize
    }

    /// Valid elements of the last unit, 0 when it is whole.
    pub(crate) const fn tail(&self) -> usize {
        self.extent % self.unit
    }

    /// First element of tile `i`; for `i` = number of tiles, the extent rounded up to units.
    pub(crate) const fn start(&self, i: usize) -> usize {
        let beyond = i.saturating_sub(self.big + self.small);
        let i = i - beyond;
        let units = if i <= self.big { i * self.big_units } else { i * (self.big_units - 1) + self.big };
        (units + beyond) * self.unit
    }

    /// Valid elements of tile `i`.
    pub(crate) const fn size(&self, i: usize) -> usize {
        let end = self.start(i + 1);
        (if end < self.extent { end } else { self.extent }) - self.start(i)
    }

    /// Units of a tile of `kind`.
    pub(crate) const fn units(&self, kind: usize) -> usize {
        match kind {
            0 => self.big_units,
            1 => self.big_units - 1,
            _ if self.apart => 1,
            _ if self.small > 0 => self.big_units - 1,
            _ => self.big_units,
        }
    }

    /// Kind of tile `i`.
    pub(crate) const fn kind(&self, i: usize) -> usize {
        if i + 1 == self.tiles() && self.tail() != 0 {
            2
        } else if i < self.big {
            0
        } else {
            1
        }
    }

    /// Whether any tile is of `kind`.
    pub(crate) const fn has(&self, kind: usize) -> bool {
        let shared = (self.tail() != 0 && !self.apart) as usize;
        match kind {
            0 => self.big > if self.small == 0 { shared } else { 0 },
            1 => self.small > shared,
            _ => self.tail() != 0,
        }
    }

    /// The tiles of `range` as runs of one kind.
    pub(crate) fn runs(&self, range: Range<usize>) -> impl Iterator<Item = Run> + use<> {
        let whole = self.tiles() - usize::from(self.tail() != 0);
        let ends = [self.big.min(whole), whole, self.tiles()];
        let mut first = range.start;
        (0..KINDS).filter_map(move |kind| {
            let end = ends[kind].min(range.end);
            let count = end.saturating_sub(first);
            let run = Run { first, count, kind };
            first += count;
            (count > 0).then_some(run)
        })
    }
}

/// Whether a product has whole vectors along `v` and so few elements beside them that vectors along the other side, so many elements at a time,
/// take at most half of the multiply-adds for these, and of loads half as many as there are elements across, two for a vector, which may lie
/// in two lines: the edge is *turned*, its few elements are broadcast.
pub(crate) fn turns_edge(v_len: usize, lanes: usize, across: usize) -> bool {
    let (edge, vectors) = (v_len % lanes, across.div_ceil(lanes));
    edge > 0 && v_len > lanes && across > 0 && 2 * (edge * vectors).max(2 * vectors + edge) <= across
}

/// Part `i` of `parts` of a range, of as equal size as possible.
pub(crate) fn share(range: &Range<usize>, i: usize, parts: usize) -> Range<usize> {
    let len = range.len();
    let at = |i: usize| range.start + len * i / parts;
    at(i)..at(i + 1)
}

/// A range cut into pieces of at most `most`, of as equal size as possible.
pub(crate) fn pieces(range: Range<usize>, most: usize) -> impl Iterator<Item = Range<usize>> {
    let parts = range.len().div_ceil(most.max(1));
    (0..parts).map(move |i| share(&range, i, parts))
}

/// The length of the shortest of the [`pieces`] that so many elements are cut into; 0 where there are none. A division, and not a look at
/// all pieces, of which a long side has thousands.
pub(crate) fn fewest_of(len: usize, most: usize) -> usize {
    len.checked_div(len.div_ceil(most.max(1))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sixteen_by_six_is_six_five_five() {
        let split = Split::new(16, 1, 6);
        let sizes: Vec<usize> = (0..split.tiles()).map(|i| split.size(i)).collect();
        assert_eq!(sizes, [6, 5, 5]);
    }

    /// The split, and where it can be the one with a tile for the last elements.
    fn kinds_of(split: Split, most: usize) -> impl Iterator<Item = Split> {
        let apart = (split.tail() > 0 && split.extent > split.unit).then(|| split.with_edge(most));
        std::iter::once(split).chain(apart)
    }

    proptest! {
        #[test]
        fn the_shortest_piece_is_known_without_looking(len in 0usize..3000, most in 0usize..100) {
            let shortest = pieces(0..len, most).map(|piece| piece.len()).min().unwrap_or(0);
            prop_assert_eq!(fewest_of(len, most), shortest);
        }

        #[test]
        fn tiles_cover_the_extent_once(extent in 1usize..5000, unit in 1usize..17, most in 1usize..20, groups in 1usize..4) {
            for split in kinds_of(Split::into_multiple(extent, unit, most, groups), most) {
                let mut at = 0;
                for i in 0..split.tiles() {
                    prop_assert_eq!(split.start(i), at);
                    prop_assert!(split.size(i) >= 1);
                    prop_assert!(split.size(i) <= most * unit);
                    at += split.size(i);
                }
                prop_assert_eq!(at, extent);
                prop_assert_eq!(split.start(split.tiles()), extent.next_multiple_of(unit));
            }
        }

        #[test]
        fn runs_name_each_tile_once(extent in 1usize..500, unit in 1usize..9, most in 1usize..9) {
            for split in kinds_of(Split::new(extent, unit, most), most) {
                let mut kinds = [false; KINDS];
                for block in pieces(0..split.tiles(), 3) {
                    let mut at = block.start;
                    for run in split.runs(block.clone()) {
                        prop_assert_eq!(run.first, at);
                        kinds[run.kind] = true;
                        for i in run.first..run.first + run.count {
                            prop_assert_eq!(split.size(i).div_ceil(unit), split.units(run.kind));
                            prop_assert_eq!(!split.size(i).is_multiple_of(unit), run.kind == 2);
                            prop_assert_eq!(split.kind(i), run.kind);
                        }
                        at += run.count;
                    }
                    prop_assert_eq!(at, block.end);
                }
                prop_assert_eq!(kinds, [0, 1, 2].map(|kind| split.has(kind)));
            }
        }
    }
}
