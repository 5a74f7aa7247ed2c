//! The transformations, of vectors of channels or outputs.

use super::super::lanes::{Element, Lanes};

/// Most numbers along a tile.
const MOST: usize = 6;

/// What a transformation does along one direction.
pub(super) type Line<T, const L: usize> = [Lanes<T, L>; MOST];

/// Of a tile's inputs: `B^T d`, for `M` outputs, 2 or 4.
#[inline(always)]
pub(super) fn inputs<T: Element, const L: usize, const M: usize>(d: Line<T, L>) -> Line<T, L> {
    let zero = Lanes::zero();
    if M == 2 {
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
pub(super) fn filters<T: Element, const L: usize, const M: usize>(g: [Lanes<T, L>; 3]) -> Line<T, L> {
    let zero = Lanes::zero();
    let [a, b, c] = g;
    if M == 2 {
        let (even, odd) = (a.plus(c).times(0.5), b.times(0.5));
        return [a, even.plus(odd), even.minus(odd), c, zero, zero];
    }
    let (even, odd) = (a.plus(c).times(-1.0 / 6.0), b.times(1.0 / 6.0));
    let (wide, half) = (a.times(1.0 / 24.0).plus(c.times(1.0 / 6.0)), b.times(1.0 / 12.0));
    [a.times(0.25), even.minus(odd), even.plus(odd), wide.plus(half), wide.minus(half), c]
}

/// Of products: `A^T p`, the first 2 or 4 of which are outputs.
#[inline(always)]
pub(super) fn outputs<T: Element, const L: usize, const M: usize>(p: Line<T, L>) -> [Lanes<T, L>; 4] {
    let zero = Lanes::zero();
    let (a, b) = (p[1].plus(p[2]), p[1].minus(p[2]));
    if M == 2 {
        return [p[0].plus(a), b.minus(p[3]), zero, zero];
    }
    let (c, d) = (p[3].plus(p[4]), p[3].minus(p[4]));
    [p[0].plus(a).plus(c), b.plus(d.times(2.0)), a.plus(c.times(4.0)), b.plus(d.times(8.0)).plus(p[5])]
}

/// The numbers of a line, one by one: loops over registers must not be left to the compiler's taste.
#[inline(always)]
fn line<T: Element, const L: usize, const M: usize>(at: impl Fn(usize) -> Lanes<T, L>) -> Line<T, L> {
    let last = |i: usize| if M == 4 { at(i) } else { Lanes::zero() };
    [at(0), at(1), at(2), at(3), last(4), last(5)]
}

/// Every number of a line.
#[inline(always)]
fn each<T: Element, const L: usize, const M: usize>(line: Line<T, L>, mut put: impl FnMut(usize, Lanes<T, L>)) {
    put(0, line[0]);
    put(1, line[1]);
    put(2, line[2]);
    put(3, line[3]);
    if M == 4 {
        put(4, line[4]);
        put(5, line[5]);
    }
}

/// A column of rows.
#[inline(always)]
fn column<T: Element, const L: usize, const N: usize>(rows: &[[Lanes<T, L>; N]], i: usize, j: usize) -> Lanes<T, L> {
    rows[i][j]
}

/// Transforms a square of inputs in both directions, given by row and column.
#[inline(always)]
pub(super) fn square_of_inputs<T: Element, const L: usize, const M: usize>(
    at: impl Fn(usize, usize) -> Lanes<T, L>,
    mut put: impl FnMut(usize, usize, Lanes<T, L>),
) {
    let mut rows = [[Lanes::zero(); MOST]; MOST];
    for (i, row) in rows.iter_mut().enumerate().take(M + 2) {
        *row = inputs::<T, L, M>(line::<T, L, M>(|j| at(i, j)));
    }
    for j in 0..M + 2 {
        each::<T, L, M>(inputs::<T, L, M>(line::<T, L, M>(|i| column(&rows, i, j))), |i, number| put(i, j, number));
    }
}

/// Transforms a square of products to `M x M` outputs.
#[inline(always)]
pub(super) fn square_of_outputs<T: Element, const L: usize, const M: usize>(
    at: impl Fn(usize, usize) -> Lanes<T, L>,
    mut put: impl FnMut(usize, usize, Lanes<T, L>),
) {
    let mut rows = [[Lanes::zero(); 4]; MOST];
    for (i, row) in rows.iter_mut().enumerate().take(M + 2) {
        *row = outputs::<T, L, M>(line::<T, L, M>(|j| at(i, j)));
    }
    for j in 0..M {
        let [a, b, c, d] = outputs::<T, L, M>(line::<T, L, M>(|i| column(&rows, i, j)));
        put(0, j, a);
        put(1, j, b);
        if M == 4 {
            put(2, j, c);
            put(3, j, d);
        }
    }
}

/// Transforms a filter of 3 x 3.
#[inline(always)]
pub(super) fn square_of_filters<T: Element, const L: usize, const M: usize>(
    filter: &[[Lanes<T, L>; 3]; 3],
    mut put: impl FnMut(usize, usize, Lanes<T, L>),
) {
    let rows = filter.map(|row| filters::<T, L, M>(row));
    for j in 0..M + 2 {
        let numbers = filters::<T, L, M>([0, 1, 2].map(|i| column(&rows, i, j)));
        each::<T, L, M>(numbers, |i, number| put(i, j, number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A correlation of four or six numbers with three, by the transformations.
    fn correlates<const M: usize>() {
        let number = |i: usize| ((i * 7 + 3) % 11) as f64 - 5.0;
        let d: Vec<f64> = (0..M + 2).map(number).collect();
        let g = [1.5, -2.0, 0.5];
        let lanes = |x: f64| Lanes([x; 2]);
        let mut line = [Lanes::zero(); MOST];
        (0..M + 2).for_each(|i| line[i] = lanes(d[i]));
        let (v, u) = (inputs::<f64, 2, M>(line), filters::<f64, 2, M>(g.map(lanes)));
        let mut p = [Lanes::zero(); MOST];
        (0..M + 2).for_each(|i| p[i] = v[i].zip(u[i], |x, y| x * y));
        let found = outputs::<f64, 2, M>(p);
        for i in 0..M {
            let expected: f64 = (0..3).map(|j| d[i + j] * g[j]).sum();
            assert!((found[i].0[0] - expected).abs() < 1e-12, "{M} {i}");
        }
    }

    #[test]
    fn transformations_are_a_correlation() {
        correlates::<2>();
        correlates::<4>();
    }
}
