//! How threads divide a product.

use super::facts::{Facts, Family, OFTEN};
use crate::config::Axis;
use crate::kernel::{ENOUGH_STEPS, READ, THREADED, reads_short_runs, steps_of_work};
use crate::sets::PAGE;

/// The dimensions that threads divide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Threads {
    /// The one along vectors among so many, the one across them among the others.
    Grid(usize),
    Reduction,
}

impl Facts {
    /// What threads divide of a product whose vectors run along this axis, and whose tile has so many vectors and elements across them.
    pub(super) fn divided(&self, axis: Axis, tile: (usize, usize)) -> Threads {
        let is_deep = self.family() == Family::Deep && (self.bytes() > self.l2 / 3 || !self.has_tiles(axis, tile));
        // Slices of a long product are long for each thread, unless it takes long to add them up.
        let is_added = 3 * self.m * self.n * self.es <= self.l2;
        let is_long = self.family() == Family::Long && self.k >= ENOUGH_STEPS * self.threads && is_added;
        if is_deep || is_long || self.shortens_runs(axis) {
            Threads::Reduction
        } else {
            Threads::Grid(self.along(axis, tile.1))
        }
    }

    /// Whether every thread has a tile of C.
    fn has_tiles(&self, axis: Axis, (vectors, across): (usize, usize)) -> bool {
        let (v, s) = self.sides(axis);
        v >= self.threads * vectors * self.lanes || s >= self.threads * across
    }

    /// Whether threads that divided vectors which are loaded where they lie [would read short runs](reads_short_runs).
    pub(super) fn shortens_runs(&self, axis: Axis) -> bool {
        let (v, s) = self.sides(axis);
        let is_thin = matches!(self.family(), Family::Skinny | Family::Deep);
        is_thin && self.is_loaded(axis) && reads_short_runs(self.threads, [v, s, self.k], self.es, self.l2)
    }

    /// Threads along vectors, such that parts of C are about as wide as they are tall: each thread reads, and perhaps copies, what it needs of
    /// A and of B. Where a part of a column would be short, a thread waits for lines that another one has written, or fetched ahead. Threads of
    /// a flat product, which does little but write C, then take whole columns: 644 x 128 x 3 took 2.6 times as long in parts, in f32. Of other
    /// products the number of threads along a column is rounded down: 512 x 512 x 512 took 1.06 times as long in parts, in f64.
    pub(super) fn along(&self, axis: Axis, across: usize) -> usize {
        let (v, s) = self.sides(axis);
        let even = (self.threads as f64 * v as f64 / s as f64).sqrt();
        let along = (if v >= s { even.ceil() } else { even.max(1.0) } as usize).min(self.threads);
        // A thread that takes whole columns copies all of A where A has to be copied. Where little is done but to write, columns that leave the
        // second-level caches are better taken whole, too: 2686 x 512 x 3 took 1.25 times as long in parts, in f64.
        let is_copied = !self.is_loaded(axis) && self.k >= FEW_STEPS;
        let (short, bytes) = (if is_copied { PAGE / 2 } else { PAGE }, self.m * self.n * self.out);
        let is_far = self.k < FEW_STEPS / 2 && bytes > self.threads * self.l2;
        let is_short = self.m * self.out < short * along || is_far;
        if axis == Axis::N || along == 1 || !is_short || self.n < 2 * OFTEN * self.threads {
            return along;
        }
        match self.family() {
            Family::Flat if self.is_even(s, across) => 1,
            Family::Large | Family::Long | Family::Medium | Family::Skinny if v < 2 * s => even as usize,
            _ => along,
        }
    }

    /// Whether the thread that has most tiles of so many columns has at most a fifth more than its share.
    fn is_even(&self, columns: usize, across: usize) -> bool {
        5 * columns.div_ceil(across).div_ceil(self.threads) * across * self.threads <= 6 * columns
    }

    /// Whether there is too little to do for the waking of threads, in multiply-adds of 32-bit numbers: by all lanes of vectors along this axis,
    /// some of which are masked; narrower vectors take as long.
    pub(super) fn is_little(&self, axis: Axis, divided: Threads) -> bool {
        let (v, s) = self.sides(axis);
        let written = [self.n, self.products, self.out].into_iter().fold(self.m, usize::saturating_mul);
        let steps = steps_of_work(self.k, written, self.l1);
        let factors = [s, steps, self.products, self.parts * self.parts, (self.es / self.parts).div_ceil(4)];
        let multiplied = factors.into_iter().fold(v.next_multiple_of(self.lanes), usize::saturating_mul);
        let read = (self.m + self.n).saturating_mul(self.k).saturating_mul(self.products * self.es.div_ceil(4) * READ);
        multiplied.max(read) <= self.threaded(axis, divided)
    }

    /// Multiply-adds up to which threads are not woken. Where vectors are half a line, for a single product on exactly two threads: a quarter of
    /// [`THREADED`]; half of it where threads divide the reduction or there are up to 5 steps; all of it where each thread writes a part of every
    /// column in up to 5 steps, or 16 in f64. On two threads of a Zen 3 that were called without a pause, random products above these bounds and
    /// below `THREADED` took 0.7 to 0.8 of the time in the mean, complex ones too; parts of columns took 1.0 to 1.25 times as long in so few steps.
    fn threaded(&self, axis: Axis, divided: Threads) -> usize {
        if !(self.halves_lines() && self.in_place && self.threads == 2 && self.products == 1) {
            return THREADED;
        }
        let some = if self.es == 8 && self.parts == 1 { FEW_STEPS } else { VERY_FEW_STEPS };
        match divided {
            Threads::Grid(2..) if axis == Axis::M && self.k <= some => THREADED,
            Threads::Grid(_) if self.k > VERY_FEW_STEPS => THREADED / 4,
            _ => THREADED / 2,
        }
    }
}

/// Steps that take little beside the writing of C.
const FEW_STEPS: usize = 16;
/// Steps that take next to nothing beside it.
const VERY_FEW_STEPS: usize = 5;

#[cfg(test)]
mod tests {
    use super::super::tests::waiting;
    use crate::CpuGemm;
    use crate::proofs::device;
    use std::sync::Arc;
    use tilewright_core::device::DeviceSpec;
    use tilewright_core::dtype::DType;
    use tilewright_core::expr::Value;
    use tilewright_core::problem::{Bound, Problem};
    use tilewright_ops::gemm::{GemmInput, Layout};

    /// Of a default: all threads, those along rows, and those along the reduction.
    fn grid(device: DeviceSpec, (m, n, k): (usize, usize, usize), dtype: DType, layout: Layout) -> [i64; 3] {
        let input = GemmInput::new(m, n, k, dtype, layout);
        let problem = Bound::new(Arc::new(CpuGemm::new()), Arc::new(device), input).unwrap();
        let config = problem.space().config(&problem.default_point().unwrap());
        ["t", "t_m", "k_g"].map(|name| config.get(name).and_then(Value::as_int).unwrap())
    }

    #[test]
    fn threads_that_would_read_short_runs_divide_the_reduction() {
        let along = |size, dtype| grid(waiting(2), size, dtype, Layout::Nn);
        assert_eq!([along((300, 2, 3000), DType::F32), along((753, 16, 1051), DType::F32)], [[2, 1, 2]; 2]);
        // Long columns, few steps, and an operand that a thread's own cache holds.
        assert_eq!(along((5000, 2, 1000), DType::F32), [2, 2, 1]);
        assert_eq!([along((1500, 30, 300), DType::F32), along((200, 30, 700), DType::F32)], [[2, 2, 1]; 2]);
        // Rows of A lie along the reduction.
        assert_eq!(grid(waiting(2), (753, 16, 1051), DType::F32, Layout::Tn)[2], 1);
        assert_eq!(grid(waiting(1), (300, 2, 3000), DType::F32, Layout::Nn), [1, 1, 1]);
    }

    #[test]
    fn threads_share_a_deep_product_by_tiles_where_it_is_near_and_by_steps_elsewhere() {
        let of = |size, layout| grid(waiting(2), size, DType::F32, layout)[2];
        assert_eq!([of((20, 99, 521), Layout::Tt), of((16, 128, 9000), Layout::Nt)], [1, 2]);
        // One tile is all there is.
        assert_eq!(of((11, 32, 1872), Layout::Tt), 2);
    }

    #[test]
    fn threads_take_slices_of_a_long_product_that_are_long_themselves() {
        let of = |k, layout| grid(waiting(2), (256, 256, k), DType::F32, layout)[2];
        assert_eq!([of(8192, Layout::Nn), of(7808, Layout::Tt), of(7808, Layout::Nt)], [2, 2, 1]);
        assert_eq!(grid(waiting(64), (256, 256, 8192), DType::F32, Layout::Nn)[2], 1);
    }

    #[test]
    fn threads_divide_both_sides_of_a_large_product() {
        let grid = |threads, size| grid(device(64, threads), size, DType::F32, Layout::Nn);
        assert_eq!(grid(64, (2048, 2048, 2048)), [64, 8, 1]);
        assert_eq!(grid(64, (8192, 512, 2048)), [64, 32, 1]);
        assert_eq!(grid(64, (500, 700, 2000)), [64, 4, 1]);
        assert_eq!([grid(2, (2048, 2048, 2048)), grid(2, (500, 700, 2000))], [[2, 2, 1], [2, 1, 1]]);
    }

    #[test]
    fn little_of_narrow_operands_runs_on_one_thread() {
        // Fewer multiply-adds of four steps each than threads are woken for, and more of single steps.
        let input = GemmInput::new(96, 100, 110, DType::I8, Layout::Nn);
        let problem = Bound::new(Arc::new(CpuGemm::narrow()), Arc::new(device(64, 8)), input).unwrap();
        let config = problem.space().config(&problem.default_point().unwrap());
        assert_eq!(config.get("t").and_then(Value::as_int), Some(1), "{config}");
    }
}
