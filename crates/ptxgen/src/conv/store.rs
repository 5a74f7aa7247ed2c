//! From registers to the result, or to the workspace.

use super::blueprint::Blueprint;
use super::emit::{Params, Position, places};
use crate::ir::{Address, Arith, Builder, Compare, Form, Reg, Space, Type};
use std::collections::BTreeMap;

/// Stores what of a thread's tile lies inside of the result.
pub(crate) fn store(b: &mut Builder, bp: &Blueprint, params: &Params, at: &Position, sums: &[Reg]) {
    match at.my_group {
        None => tile(b, bp, params, at, sums),
        Some(group) => {
            let first = b.compare(Compare::Eq, group, 0u32, None);
            b.when(first, Form::Branch, |b| tile(b, bp, params, at, sums));
        }
    }
}

/// An output of a thread: its number, elements to it, and its bias.
struct Out {
    number: Reg,
    offset: Reg,
    bias: Option<Reg>,
}

fn tile(b: &mut Builder, bp: &Blueprint, params: &Params, at: &Position, sums: &[Reg]) {
    let outs = outs(b, bp, params, at);
    let [_, chunk] = bp.chunks();
    let inner = bp.order()[0];
    let mine: Vec<Reg> =
        (0..3).map(|d| b.scale_add(at.t_at[d], if d == inner { chunk } else { 1 }, at.first[d])).collect();
    let mut along = Along { params, mine: &mine, found: BTreeMap::new() };
    for (row, (beyond, _)) in sums.chunks(bp.config.k_s as usize).zip(places(bp)) {
        let (mut inside, mut offset) = (None, at.starts.map(|[_, _, start]| start));
        for (d, beyond) in beyond.into_iter().enumerate() {
            let (index, elements) = along.get(b, d, beyond);
            inside = Some(b.compare(Compare::Lt, index, params.grid[d], inside));
            offset = Some(offset.map_or(elements, |offset| b.add(Type::U32, offset, elements)));
        }
        let place = inside.zip(offset);
        place.into_iter().for_each(|place| elements(b, bp, params, place, (row, &outs)));
    }
}

/// What is known along images, rows and columns: found once.
struct Along<'a> {
    params: &'a Params,
    mine: &'a [Reg],
    found: BTreeMap<(usize, u32), (Reg, Reg)>,
}

impl Along<'_> {
    /// The image, row or column that lies so many beyond the thread's first, and elements to it.
    fn get(&mut self, b: &mut Builder, d: usize, beyond: u32) -> (Reg, Reg) {
        *self.found.entry((d, beyond)).or_insert_with(|| {
            let index = b.add(Type::U32, self.mine[d], beyond);
            (index, b.arith(Arith::Mul, Type::U32, index, self.params.result_strides[d]))
        })
    }
}

fn outs(b: &mut Builder, bp: &Blueprint, params: &Params, at: &Position) -> Vec<Out> {
    let [chunk, _] = bp.chunks();
    let first = b.scale_add(at.t_k, chunk, at.k0);
    let bias = params.bias.map(|bias| {
        let start = at.group.map(|group| b.arith(Arith::Mul, Type::U32, group, params.outs));
        let first = start.map_or(first, |start| b.add(Type::U32, start, first));
        b.mad_wide(first, bp.arithmetic.result.bytes(), bias)
    });
    let one = |i: u32| {
        let beyond = i / chunk * chunk * bp.along_k + i % chunk;
        let out = b.add(Type::U32, first, beyond);
        let inside = b.compare(Compare::Lt, out, params.outs, None);
        let offset = b.arith(Arith::Mul, Type::U32, out, params.result_strides[3]);
        let bias = bias.map(|base| {
            let addr = Address { base, offset: (beyond * bp.arithmetic.result.bytes()).into() };
            bp.arithmetic.load_result(b, addr, Some(inside))
        });
        Out { number: out, offset, bias }
    };
    (0..bp.config.k_s).map(one).collect()
}

/// The outputs of one position.
fn elements(
    b: &mut Builder,
    bp: &Blueprint,
    params: &Params,
    (inside, offset): (Reg, Reg),
    (sums, outs): (&[Reg], &[Out]),
) {
    let numbers = bp.arithmetic;
    let bytes = if bp.partial() { numbers.ty.bytes() } else { numbers.result.bytes() };
    for (sum, out) in sums.iter().zip(outs) {
        let inside = b.compare(Compare::Lt, out.number, params.outs, Some(inside));
        let offset = b.add(Type::U32, offset, out.offset);
        let residual = params.residual.map(|base| {
            let base = b.mad_wide(offset, bytes, base);
            numbers.load_result(b, Address { base, offset: 0 }, Some(inside))
        });
        let whole = (!bp.partial()).then(|| numbers.finished(b, *sum, [out.bias, residual], bp.relu()));
        let to = b.mad_wide(offset, bytes, params.result);
        let (value, ty) = whole.map_or((*sum, numbers.ty), |value| numbers.rounded(b, value));
        b.when(inside, Form::Predicate, |b| b.store(Space::Global, ty, &[value], to, 0));
    }
}
