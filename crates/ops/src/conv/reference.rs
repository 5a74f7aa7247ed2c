//! The reference: every element of the result in higher precision, with a bound on the error of any summation order.
//!
//! Sums in f32 and narrower are accumulated in f64, f64 as if in twice the precision ([`crate::product`]). The bound of an
//! element is [`Bound::of`] the 2-norms of the taps that it gathers and of what they are multiplied with; a bias and a residual
//! are additions more, and an activation moves no error further than it was. Integer data small enough to be exact in the
//! element type must match exactly.

use super::input::{ConvInput, Layout};
use super::product::Product;
use super::workload::BIAS;
use crate::bound::Bound;
use crate::product::{compensated, plain};
use rayon::prelude::*;
use std::ops::Range;
use tilewright_core::buffer::{Buffer, Buffers, Comparison, Expected, ExpectedBuffer, Part, Verdict};
use tilewright_core::dtype::DType;

/// Bytes of each operand that are held in f64 at a time.
const BLOCK_BYTES: usize = 64 << 20;
/// Rows and columns of a block at least.
const FEWEST: usize = 8;

/// All of the tensor that is written.
pub(super) fn compute(input: &ConvInput, before: &Buffers) -> Expected {
    let index = input.written();
    let len = before[index].len();
    let (mut values, mut bounds) = (vec![0.0; len], vec![0f32; len]);
    parts(input, before, BLOCK_BYTES, &mut |part| {
        values[part.first..][..part.values.len()].copy_from_slice(part.values);
        bounds[part.first..][..part.values.len()].copy_from_slice(part.bounds);
    });
    Expected { buffers: vec![ExpectedBuffer { index, values, bounds }] }
}

/// Compares it after a run, block by block.
pub(super) fn compare(input: &ConvInput, before: &Buffers, after: &[Buffer]) -> Verdict {
    let mut comparison = Comparison::default();
    let written = input.written();
    assert_eq!(after[written].len(), before[written].len(), "length of what is written");
    parts(input, before, BLOCK_BYTES, &mut |part| comparison.add(&after[written], part));
    comparison.verdict()
}

/// Every element, in runs of neighbours, block by block.
fn parts(input: &ConvInput, before: &Buffers, block_bytes: usize, visit: &mut dyn FnMut(&Part<'_>)) {
    if before[input.written()].is_empty() {
        return;
    }
    let gathered = wide(&before[input.gathered()]);
    let most = |length: usize| (block_bytes / size_of::<f64>() / length.max(1)).max(FEWEST);
    for group in 0..input.groups {
        let product = Product::new(input, group);
        let other = wide(&before[product.other()]);
        let exact = is_exact(input, before, &gathered, &other, product.depth());
        for columns in blocks(product.columns(), most(product.depth())) {
            let right = product.gather_columns(&columns, &other);
            let norms = right.column_norms();
            for rows in blocks(product.rows(), most(product.depth()).min(most(columns.len()))) {
                let left = product.gather_rows(&rows, &gathered);
                let is_double = input.types.accumulator == DType::F64 && !exact;
                let sums = if is_double { compensated(&left, &right) } else { plain(&left, &right) };
                let bound = Bound { types: input.types, length: product.depth() + 2, exact, rounding: 0.0 };
                let block = Block { input, before, product: &product, rows, columns: columns.clone(), bound };
                block.visit(&sums.values, (&left.row_norms(), &norms), visit);
            }
        }
    }
}

/// The elements in f64.
fn wide(buffer: &Buffer) -> Vec<f64> {
    (0..buffer.len()).into_par_iter().map(|i| buffer.get_f64(i)).collect()
}

/// `0..length` in ranges that are at most so long.
fn blocks(length: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    (0..length).step_by(most).map(move |from| from..(from + most).min(length))
}

/// A block of the result.
struct Block<'a> {
    input: &'a ConvInput,
    before: &'a Buffers,
    product: &'a Product<'a>,
    rows: Range<usize>,
    columns: Range<usize>,
    bound: Bound,
}

impl Block<'_> {
    fn visit(&self, sums: &[f64], norms: (&[f64], &[f64]), visit: &mut dyn FnMut(&Part<'_>)) {
        let (rows, columns) = (self.rows.len(), self.columns.len());
        let mut run = Run::new(self.input.written());
        // In the order of memory, so that runs are long: channels are innermost in one layout, places in the other.
        let by_rows = self.input.layout == Layout::Nhwc && self.input.written() != super::F;
        for at in 0..rows * columns {
            let (i, j) = if by_rows { (at / columns, at % columns) } else { (at % rows, at / rows) };
            let (place, channel) = self.product.result(self.rows.start + i, self.columns.start + j);
            let sum = sums[j * rows + i];
            let (value, magnitude) = self.finished(sum, place, channel);
            run.add(place, value, self.bound.of(norms.0[i] * norms.1[j], sum, magnitude), visit);
        }
        run.flush(visit);
    }

    /// An output, and how large the numbers are that it is made of: additions round at the size of what they add.
    fn finished(&self, sum: f64, place: usize, channel: usize) -> (f64, f64) {
        let epilogue = &self.input.epilogue;
        let bias = if epilogue.bias { self.before[BIAS].get_f64(channel) } else { 0.0 };
        let residual = self.input.residual().map_or(0.0, |buffer| self.before[buffer].get_f64(place));
        let value = sum + bias + residual;
        (epilogue.activation.of(value), value.abs() + bias.abs() + residual.abs())
    }
}

/// Neighbours that wait to be shown together.
struct Run {
    buffer: usize,
    first: usize,
    values: Vec<f64>,
    bounds: Vec<f32>,
}

impl Run {
    fn new(buffer: usize) -> Self {
        Self { buffer, first: 0, values: Vec::new(), bounds: Vec::new() }
    }

    fn add(&mut self, place: usize, value: f64, bound: f32, visit: &mut dyn FnMut(&Part<'_>)) {
        if place != self.first + self.values.len() {
            self.flush(visit);
            self.first = place;
        }
        self.values.push(value);
        self.bounds.push(bound);
    }

    fn flush(&mut self, visit: &mut dyn FnMut(&Part<'_>)) {
        if !self.values.is_empty() {
            visit(&Part { buffer: self.buffer, first: self.first, values: &self.values, bounds: &self.bounds });
        }
        self.first += self.values.len();
        self.values.clear();
        self.bounds.clear();
    }
}

/// Whether every partial sum, in any order, is exact in the element type: integers whose sums of absolute products fit the
/// significand.
fn is_exact(input: &ConvInput, before: &Buffers, left: &[f64], right: &[f64], depth: usize) -> bool {
    fn largest(values: &[f64]) -> Option<f64> {
        values.iter().try_fold(0f64, |most, v| if v.fract() == 0.0 { Some(most.max(v.abs())) } else { None })
    }
    let added: Vec<f64> = before[BIAS..].iter().flat_map(wide).collect();
    let (Some(left), Some(right), Some(added)) = (largest(left), largest(right), largest(&added)) else {
        return false;
    };
    let total = left * right * depth as f64 + 2.0 * added;
    let u = input.types.accumulator.unit_roundoff().max(input.types.output.unit_roundoff());
    total * 2.0 * u <= 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::{Conv, F, X, Y};
    use tilewright_core::buffer::Filling;
    use tilewright_core::computation::Computation;
    use tilewright_core::space::Config;

    /// The definition, term by term.
    fn naive(input: &ConvInput, before: &Buffers) -> Vec<f64> {
        let (t, [p, q]) = (input.tensors(), input.output());
        let (c, k) = (input.c / input.groups, input.k / input.groups);
        let mut out = vec![0.0; before[input.written()].len()];
        for image in 0..input.n {
            for (output, channel) in (0..input.k).flat_map(|o| (0..c).map(move |c| (o, c))) {
                for at in (0..p * q).map(|i| [i / q, i % q]) {
                    for tap in (0..input.r * input.s).map(|i| [i / input.s, i % input.s]) {
                        let y = (at[0] * input.stride[0] + tap[0] * input.dilation[0]) as isize - input.pad[0] as isize;
                        let x = (at[1] * input.stride[1] + tap[1] * input.dilation[1]) as isize - input.pad[1] as isize;
                        if y < 0 || x < 0 || y >= input.h as isize || x >= input.w as isize {
                            continue;
                        }
                        let place = t.x(image, output / k * c + channel, [y as usize, x as usize]);
                        let places = [place, t.f(output, channel, tap), t.y(image, output, at)];
                        let [a, b] = match input.written() {
                            Y => [X, F],
                            X => [F, Y],
                            _ => [X, Y],
                        };
                        out[places[input.written()]] += before[a].get_f64(places[a]) * before[b].get_f64(places[b]);
                    }
                }
            }
        }
        out
    }

    #[test]
    fn the_reference_is_the_definition() {
        for text in [
            "n=2,c=3,h=5,w=6,k=4,r=3,s=2,pad=1",
            "n=1,c=4,h=9,w=7,k=6,r=3,stride_h=2,stride_w=3,groups=2,layout=nhwc",
            "n=2,c=2,h=8,k=3,r=2,dilation=3,pad_w=2,layout=nhwc",
            "n=3,c=4,h=4,k=4,r=3,pad=2,groups=4,stride=2",
            "n=1,c=2,h=3,k=2,r=1,stride=5",
        ] {
            for direction in ["forward", "data", "filter"] {
                let mut fields = Config::parse(text).unwrap();
                fields.0.push(("direction".into(), direction.into()));
                let input = ConvInput::parse(&fields).unwrap();
                let work = Conv.workload(&input, Filling::Exact, 7);
                let expected = naive(&input, &work.buffers);
                let found = compute(&input, &work.buffers).buffers.remove(0);
                assert_eq!(found.values, expected, "{text} {direction}");
                assert!(found.bounds.iter().all(|&b| b == 0.0));
                // In blocks of few rows and columns, each element comes once.
                let mut seen = vec![0; expected.len()];
                parts(&input, &work.buffers, 1, &mut |part| {
                    assert_eq!(part.values, &expected[part.first..][..part.values.len()]);
                    seen[part.first..][..part.values.len()].iter_mut().for_each(|n| *n += 1);
                });
                assert!(seen.iter().all(|&n| n == 1), "{text} {direction}");
            }
        }
    }

    #[test]
    fn outputs_are_added_to_and_cut_off() {
        let text = "n=2,c=3,h=4,k=5,r=3,pad=1,bias=1,residual=1,activation=relu,layout=nhwc";
        let input = ConvInput::parse(&Config::parse(text).unwrap()).unwrap();
        let work = Conv.workload(&input, Filling::Exact, 3);
        let plain = naive(&input, &work.buffers);
        let found = compute(&input, &work.buffers).buffers.remove(0);
        for (i, value) in found.values.iter().enumerate() {
            let more = work.buffers[BIAS].get_f64(i % 5) + work.buffers[4].get_f64(i);
            assert_eq!(*value, (plain[i] + more).max(0.0));
        }
    }

    #[test]
    fn real_data_have_bounds_that_narrow_sums_keep() {
        let input = ConvInput::parse(&Config::parse("n=1,c=16,h=6,k=3,r=3,pad=1").unwrap()).unwrap();
        let work = Conv.workload(&input, Filling::Real, 3);
        let mut after = work.buffers.clone();
        let values: Vec<f64> = naive(&input, &work.buffers);
        values.iter().enumerate().for_each(|(i, v)| after[Y].set_f64(i, *v));
        assert!(compare(&input, &work.buffers, &after).is_right());
        let off = after[Y].get_f64(5) + 1e-3;
        after[Y].set_f64(5, off);
        assert_eq!(compare(&input, &work.buffers, &after).wrong, 1);
    }
}
