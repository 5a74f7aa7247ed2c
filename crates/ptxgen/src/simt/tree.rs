//! The sum over the groups of a block, by a tree in shared memory.

use super::Reduction;
use crate::ir::{Builder, Compare, Form, Reg, Space, Type};

/// Adds the accumulators of all groups to those of group 0.
///
/// In every round the upper half of the groups that are left writes, and the lower half adds. A thread's accumulators lie in
/// pieces of 16 bytes, those of neighbouring threads side by side, so that no two threads meet in a bank.
pub(crate) fn tree(b: &mut Builder, of: &Reduction, acc: &[Reg]) -> Vec<Reg> {
    let (bytes, group, ty) = (of.arithmetic.ty.bytes(), of.group, of.arithmetic.ty);
    let piece = (1 << acc.len().trailing_zeros()).min(16 / bytes as usize);
    let piece_bytes = piece as u32 * bytes;
    let place = b.scale_add(Some(of.in_group), piece_bytes, of.shared);
    let offset = |i: usize| i64::from(i as u32 * group * piece_bytes);
    let all = acc.len() as u32 * group * bytes;
    let Some(my_group) = of.my_group else { return acc.to_vec() };
    // Carried in place: which threads add differs from round to round.
    let sums: Vec<Reg> = acc.iter().map(|x| b.mov(ty, *x)).collect();
    let mut left = of.groups;
    while left > 1 {
        let half = left / 2;
        let upper = b.compare(Compare::Ge, my_group, half, None);
        let writes = b.compare(Compare::Lt, my_group, left, Some(upper));
        b.when(writes, Form::Branch, |b| {
            let from = b.sub(Type::U32, my_group, half);
            let place = b.scale_add(Some(from), all, place);
            for (i, piece) in sums.chunks(piece).enumerate() {
                b.store(Space::Shared, ty, piece, place, offset(i));
            }
        });
        b.barrier();
        let adds = b.compare(Compare::Lt, my_group, half, None);
        b.when(adds, Form::Branch, |b| {
            let place = b.scale_add(Some(my_group), all, place);
            for (i, mine) in sums.chunks(piece).enumerate() {
                let theirs = b.load(Space::Shared, ty, piece, place, offset(i));
                mine.iter().zip(theirs).for_each(|(x, y)| b.advance(ty, *x, y));
            }
        });
        left = half;
        if left > 1 {
            b.barrier();
        }
    }
    sums
}
