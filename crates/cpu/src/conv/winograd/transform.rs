//! The transformations, of vectors of channels or outputs.

use crate::conv::lanes::{Element, Lanes};
use tilewright_ops::conv::winograd::{filters_2, filters_4, inputs_2, inputs_4, outputs_2, outputs_4};

/// Most numbers along a tile.
const MOST: usize = 6;

/// What a transformation does along one direction.
pub(super) type Line<T, const L: usize> = [Lanes<T, L>; MOST];

/// Of a tile's inputs: `B^T d`, for `M` outputs, 2 or 4.
#[inline(always)]
pub(super) fn inputs<T: Element, const L: usize, const M: usize>(d: Line<T, L>) -> Line<T, L> {
    if M == 4 { inputs_4(d) } else { padded(inputs_2([d[0], d[1], d[2], d[3]])) }
}

/// Of a filter: `G g`.
#[inline(always)]
pub(super) fn filters<T: Element, const L: usize, const M: usize>(g: [Lanes<T, L>; 3]) -> Line<T, L> {
    if M == 4 { filters_4(g) } else { padded(filters_2(g)) }
}

/// Of products: `A^T p`, the first 2 or 4 of which are outputs.
#[inline(always)]
pub(super) fn outputs<T: Element, const L: usize, const M: usize>(p: Line<T, L>) -> [Lanes<T, L>; 4] {
    if M == 4 {
        return outputs_4(p);
    }
    let [a, b] = outputs_2([p[0], p[1], p[2], p[3]]);
    [a, b, Lanes::zero(), Lanes::zero()]
}

/// The numbers of the smaller tile as a line.
#[inline(always)]
fn padded<T: Element, const L: usize>([a, b, c, d]: [Lanes<T, L>; 4]) -> Line<T, L> {
    [a, b, c, d, Lanes::zero(), Lanes::zero()]
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
