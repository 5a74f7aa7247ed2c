//! The transformations, of vectors of channels or outputs.

use std::ops::{Add, Mul, Sub};

/// Most numbers along a tile.
pub(super) const MOST: usize = 6;

/// A vector.
#[derive(Clone, Copy)]
pub(super) struct Lanes<T, const L: usize>([T; L]);

/// An element type.
pub(super) trait Element: Copy + Default + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + 'static {
    fn of(x: f64) -> Self;
}

impl Element for f32 {
    #[inline(always)]
    fn of(x: f64) -> Self {
        x as f32
    }
}

impl Element for f64 {
    #[inline(always)]
    fn of(x: f64) -> Self {
        x
    }
}

impl<T: Element, const L: usize> Lanes<T, L> {
    #[inline(always)]
    pub(super) fn zero() -> Self {
        Self([T::default(); L])
    }

    /// # Safety
    /// As many elements must be readable.
    #[inline(always)]
    pub(super) unsafe fn read(from: *const T) -> Self {
        // SAFETY: the caller's contract; arrays of elements are aligned as elements are.
        Self(unsafe { from.cast::<[T; L]>().read() })
    }

    /// # Safety
    /// As many elements must be writable.
    #[inline(always)]
    pub(super) unsafe fn write(self, to: *mut T) {
        // SAFETY: the caller's contract.
        unsafe { to.cast::<[T; L]>().write(self.0) }
    }

    #[inline(always)]
    pub(super) fn set(&mut self, lane: usize, value: T) {
        self.0[lane] = value;
    }

    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        let mut out = self;
        for (x, y) in out.0.iter_mut().zip(other.0) {
            *x = f(*x, y);
        }
        out
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.zip(other, |x, y| x + y)
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        self.zip(other, |x, y| x - y)
    }

    #[inline(always)]
    fn times(self, by: f64) -> Self {
        let by = T::of(by);
        let mut out = self;
        out.0.iter_mut().for_each(|x| *x = *x * by);
        out
    }
}

/// What a transformation does along one direction.
pub(super) type Line<T, const L: usize> = [Lanes<T, L>; MOST];

/// Of a tile's inputs: `B^T d`, for outputs of 2 or 4.
#[inline(always)]
pub(super) fn inputs<T: Element, const L: usize>(m: usize, d: Line<T, L>) -> Line<T, L> {
    let zero = Lanes::zero();
    if m == 2 {
        return [d[0].minus(d[2]), d[1].plus(d[2]), d[2].minus(d[1]), d[1].minus(d[3]), zero, zero];
    }
    let (a, b) = (d[4].minus(d[2].times(4.0)), d[3].minus(d[1].times(4.0)));
    let (c, e) = (d[4].minus(d[2]), d[3].minus(d[1]).times(2.0));
    [
        d[0].times(4.0).minus(d[2].times(5.0)).plus(d[4]),
        a.plus(b),
        a.minus(b),
        c.plus(e),
        c.minus(e),
        d[1].times(4.0).minus(d[3].times(5.0)).plus(d[5]),
    ]
}

/// Of a filter: `G g`.
#[inline(always)]
pub(super) fn filters<T: Element, const L: usize>(m: usize, g: [Lanes<T, L>; 3]) -> Line<T, L> {
    let zero = Lanes::zero();
    let [a, b, c] = g;
    if m == 2 {
        let (even, odd) = (a.plus(c).times(0.5), b.times(0.5));
        return [a, even.plus(odd), even.minus(odd), c, zero, zero];
    }
    let (even, odd) = (a.plus(c).times(-1.0 / 6.0), b.times(1.0 / 6.0));
    let (wide, half) = (a.times(1.0 / 24.0).plus(c.times(1.0 / 6.0)), b.times(1.0 / 12.0));
    [a.times(0.25), even.minus(odd), even.plus(odd), wide.plus(half), wide.minus(half), c]
}

/// Of products: `A^T p`, the first 2 or 4 of which are outputs.
#[inline(always)]
pub(super) fn outputs<T: Element, const L: usize>(m: usize, p: Line<T, L>) -> [Lanes<T, L>; 4] {
    let zero = Lanes::zero();
    let (a, b) = (p[1].plus(p[2]), p[1].minus(p[2]));
    if m == 2 {
        return [p[0].plus(a), b.minus(p[3]), zero, zero];
    }
    let (c, d) = (p[3].plus(p[4]), p[3].minus(p[4]));
    [
        p[0].plus(a).plus(c),
        b.plus(d.times(2.0)),
        a.plus(c.times(4.0)),
        b.plus(d.times(8.0)).plus(p[5]),
    ]
}

/// Transforms a square in both directions.
#[inline(always)]
pub(super) fn square_of_inputs<T: Element, const L: usize>(m: usize, square: &mut [Line<T, L>; MOST]) {
    let t = m + 2;
    for row in &mut square[..t] {
        *row = inputs(m, *row);
    }
    for column in 0..t {
        let mut line = [Lanes::zero(); MOST];
        (0..t).for_each(|i| line[i] = square[i][column]);
        let line = inputs(m, line);
        (0..t).for_each(|i| square[i][column] = line[i]);
    }
}

/// Transforms products to `m x m` outputs.
#[inline(always)]
pub(super) fn square_of_outputs<T: Element, const L: usize>(
    m: usize,
    square: &[Line<T, L>; MOST],
) -> [[Lanes<T, L>; 4]; 4] {
    let t = m + 2;
    let mut rows = [[Lanes::zero(); 4]; MOST];
    for (row, line) in rows.iter_mut().zip(&square[..t]) {
        *row = outputs(m, *line);
    }
    let mut out = [[Lanes::zero(); 4]; 4];
    for column in 0..m {
        let mut line = [Lanes::zero(); MOST];
        (0..t).for_each(|i| line[i] = rows[i][column]);
        let line = outputs(m, line);
        (0..m).for_each(|i| out[i][column] = line[i]);
    }
    out
}

/// Transforms a filter of 3 x 3.
#[inline(always)]
pub(super) fn square_of_filters<T: Element, const L: usize>(
    m: usize,
    filter: &[[Lanes<T, L>; 3]; 3],
) -> [Line<T, L>; MOST] {
    let t = m + 2;
    let mut rows = [[Lanes::zero(); MOST]; 3];
    for (row, line) in rows.iter_mut().zip(filter) {
        *row = filters(m, *line);
    }
    let mut out = [[Lanes::zero(); MOST]; MOST];
    for column in 0..t {
        let line = filters(m, [rows[0][column], rows[1][column], rows[2][column]]);
        (0..t).for_each(|i| out[i][column] = line[i]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A correlation of four or six numbers with three, by the transformations.
    #[test]
    fn transformations_are_a_correlation() {
        for m in [2, 4] {
            let number = |i: usize| ((i * 7 + 3) % 11) as f64 - 5.0;
            let d: Vec<f64> = (0..m + 2).map(number).collect();
            let g = [1.5, -2.0, 0.5];
            let lanes = |x: f64| Lanes([x; 2]);
            let mut line = [Lanes::zero(); MOST];
            (0..m + 2).for_each(|i| line[i] = lanes(d[i]));
            let (v, u) = (inputs(m, line), filters(m, g.map(lanes)));
            let mut p = [Lanes::zero(); MOST];
            (0..m + 2).for_each(|i| p[i] = v[i].zip(u[i], |x, y| x * y));
            let found = outputs(m, p);
            for i in 0..m {
                let expected: f64 = (0..3).map(|j| d[i + j] * g[j]).sum();
                assert!((found[i].0[0] - expected).abs() < 1e-12, "{m} {i}");
            }
        }
    }
}
