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
        let lane_m = b.rem(lane, warp_m);
        let lane_n = (warp_m < 32).then(|| b.div(lane, warp_m));
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
