//! The sum over the slices of a reduction that is split over the grid.

use super::Arithmetic;
use crate::ir::{Arith, Builder, Index, Inst, Reg, Space, Type};

/// The partial sums of one element, slice after slice, `slab` bytes apart: added in order, several loads in flight. A complex sum
/// has two registers.
pub(crate) fn ordered_sum(b: &mut Builder, of: Arithmetic, slices: u32, (work, slab): (Reg, Reg)) -> Vec<Reg> {
    let at_once = [8, 6, 5, 4, 3, 2].into_iter().find(|n| slices.is_multiple_of(*n)).unwrap_or(1);
    let total: Vec<Reg> = (0..of.parts()).map(|_| of.zero(b)).collect();
    let meaning = b
        .meaning(work)
        .plus(&b.meaning(slab).times(&Index::from(i64::from(at_once))).times(&Index::from(b.next_loop())));
    let pointer = b.carried(Type::U64, work, meaning);
    b.repeat("slices", slices / at_once, |b, _| {
        let mut from = pointer;
        let mut loads = Vec::new();
        for slice in 0..at_once {
            if slice > 0 {
                from = b.add(Type::U64, from, slab);
            }
            loads.extend(b.load(Space::Global, of.ty, total.len(), from, 0));
        }
        let (dst, ty) = (pointer, Type::U64);
        b.push(Inst::Arith { op: Arith::Add, ty, dst, a: from.into(), b: slab.into() });
        loads.into_iter().zip(total.iter().cycle()).for_each(|(x, total)| b.advance(of.ty, *total, x));
    });
    total
}
