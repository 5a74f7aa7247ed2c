//! Which thread of a group computes what.

use crate::ir::{Builder, Reg};

/// Neighbouring elements of a thread in one direction, of so many: what one shared load fetches.
pub(crate) fn chunk(of: u32, widest: u32) -> u32 {
    (1 << of.trailing_zeros()).min(widest)
}

/// Which thread computes what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrangement {
    /// Threads along m and n of one group.
    pub(crate) t_m: u32,
    pub(crate) t_n: u32,
    /// Threads of a warp along m, where warps are rectangles of threads; else threads follow each other along m.
    pub(crate) warp_m: Option<u32>,
    /// Neighbouring rows and columns of a thread: what one shared load fetches.
    pub(crate) chunk_m: u32,
    pub(crate) chunk_n: u32,
}

impl Arrangement {
    pub(crate) fn new([t_m, t_n]: [u32; 2], [chunk_m, chunk_n]: [u32; 2]) -> Self {
        let fits = |w: &u32| t_m.is_multiple_of(*w) && t_n.is_multiple_of(32 / *w);
        // The rectangle whose rows and columns of the tile are fewest; wide ones first, for the stores of the result.
        let warp_m = [32, 16, 8, 4, 2, 1].into_iter().filter(fits).min_by_key(|w| w * chunk_m + 32 / w * chunk_n);
        Self { t_m, t_n, warp_m, chunk_m, chunk_n }
    }

    /// Threads follow each other along m and columns of them along n; the elements of a thread are as far apart as there are
    /// threads.
    pub(crate) fn interleaved([t_m, t_n]: [u32; 2]) -> Self {
        Self { t_m, t_n, warp_m: None, chunk_m: 1, chunk_n: 1 }
    }

    /// How far a thread's row lies from its first.
    pub(crate) fn row(&self, i: u32) -> u32 {
        i / self.chunk_m * self.chunk_m * self.t_m + i % self.chunk_m
    }

    /// How far a thread's column lies from its first.
    pub(crate) fn column(&self, j: u32) -> u32 {
        j / self.chunk_n * self.chunk_n * self.t_n + j % self.chunk_n
    }

    /// Threads of a group.
    pub(crate) fn group(&self) -> u32 {
        self.t_m * self.t_n
    }

    /// Row and column of threads of a thread of the group; `None` where there is one.
    pub(crate) fn place(&self, b: &mut Builder, t: Reg) -> (Option<Reg>, Option<Reg>) {
        let Some(warp_m) = self.warp_m else {
            return (b.rem(t, self.t_m), (self.t_n > 1).then(|| b.div(t, self.t_m)));
        };
        let warps_m = self.t_m / warp_m;
        let lane = if self.group() == 32 { t } else { b.rem(t, 32).unwrap_or(t) };
        let warp = (self.group() > 32).then(|| b.div(t, 32));
        let (lane_m, lane_n) = in_warp(b, lane, warp_m);
        let across = warp.and_then(|w| b.rem(w, warps_m));
        let down = warp.filter(|_| self.t_n > 32 / warp_m).map(|w| b.div(w, warps_m));
        let join = |b: &mut Builder, warp: Option<Reg>, by: u32, lane: Option<Reg>| match (warp, lane) {
            (None, lane) => lane,
            (warp, Some(lane)) => Some(b.scale_add(warp, by, lane)),
            (warp, None) => Some(b.scale_add(warp, by, 0u32)),
        };
        (join(b, across, warp_m, lane_m), join(b, down, 32 / warp_m, lane_n))
    }
}

/// Row and column of a lane in a rectangle of so many lanes along m. Where both edges allow it, squares of two by two lanes follow
/// each other: all lanes have the row of the lane at a distance of 2, and the column of the lane at a distance of 1, so that shared
/// memory answers a load of 16 bytes in two passes and not in four. From sm_70 on it does where threads share addresses in such pairs.
fn in_warp(b: &mut Builder, lane: Reg, warp_m: u32) -> (Option<Reg>, Option<Reg>) {
    match warp_m {
        32 => (Some(lane), None),
        4..=16 => {
            let high_m = b.div(lane, 4);
            let (low_m, high_m) = (b.rem(lane, 2).unwrap_or(lane), b.rem(high_m, warp_m / 2));
            let row = b.scale_add(high_m, 2, low_m);
            let column = b.div(lane, 2);
            let column = b.rem(column, 2).unwrap_or(column);
            if warp_m == 16 {
                return (Some(row), Some(column));
            }
            let high_n = b.div(lane, 2 * warp_m);
            (Some(row), Some(b.scale_add(Some(high_n), 2, column)))
        }
        // A row of lanes, or two, are such squares already.
        _ => (b.rem(lane, warp_m), Some(b.div(lane, warp_m))),
    }
}
