//! Packing of complex numbers that are multiplied by three real products: for each step the elements of a tile as they are, and behind
//! them the sum of the parts of each, or the difference where the operand is conjugated.

use super::pack::{Block, CHUNK, Panel};
use std::ops::{Add, Sub};

/// A part of a complex number.
pub(super) trait Part: Copy + Add<Output = Self> + Sub<Output = Self> + 'static {}

impl Part for f32 {}
impl Part for f64 {}

/// Copies the block to `to`, panel behind panel, three numbers for an element.
///
/// # Safety
/// As for [`Block::pack`], with room for three numbers an element at `to`.
pub(super) unsafe fn pack<T: Part>(block: &Block<'_>, to: *mut T, negative: bool, simd: bool) {
    #[cfg(target_arch = "x86_64")]
    if simd {
        // SAFETY: the caller's contract.
        return unsafe { by_vectors(block, to, negative) };
    }
    let _ = simd;
    // SAFETY: the caller's contract.
    unsafe { plainly(block, to, negative) };
}

/// The same loops, compiled for AVX2.
///
/// # Safety
/// As for [`pack`], on a host with AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn by_vectors<T: Part>(block: &Block<'_>, to: *mut T, negative: bool) {
    // SAFETY: the caller's contract.
    unsafe { plainly(block, to, negative) };
}

/// # Safety
/// As for [`pack`].
#[inline(always)]
unsafe fn plainly<T: Part>(block: &Block<'_>, to: *mut T, negative: bool) {
    // Lines that panels share are still near where some steps of all panels are copied at a time.
    let chunk = if block.operand.along == 1 { CHUNK } else { block.depth.max(1) };
    for from in (0..block.depth).step_by(chunk) {
        let end = (from + chunk).min(block.depth);
        for tile in block.tiles.clone() {
            let panel = block.panel::<[T; 2]>(tile, from, end);
            let to = to.wrapping_add(3 * block.target(tile, from));
            // SAFETY: the caller's contract.
            unsafe { if negative { copied(&panel, to, |x, y| x - y) } else { copied(&panel, to, |x, y| x + y) } };
        }
    }
}

/// Steps of a panel, by code of its own for widths that default tiles have, so that it is compiled to vectors.
///
/// # Safety
/// As for [`steps`].
#[inline(always)]
unsafe fn copied<T: Part>(panel: &Panel<[T; 2]>, to: *mut T, combine: impl Fn(T, T) -> T) {
    // SAFETY: the caller's contract.
    unsafe {
        match panel.width {
            1 => steps::<T, 1>(panel, to, combine),
            2 => steps::<T, 2>(panel, to, combine),
            3 => steps::<T, 3>(panel, to, combine),
            4 => steps::<T, 4>(panel, to, combine),
            7 => steps::<T, 7>(panel, to, combine),
            8 => steps::<T, 8>(panel, to, combine),
            _ => any_steps(panel, to, combine),
        }
    }
}

/// Steps of a panel of a known width: by a loop of its own where the elements of a step are neighbours, or a compiler loads one by one for both.
///
/// # Safety
/// As for [`pack`], for this panel, all of whose elements are there.
#[inline(always)]
unsafe fn steps<T: Part, const W: usize>(panel: &Panel<[T; 2]>, to: *mut T, combine: impl Fn(T, T) -> T) {
    debug_assert_eq!((panel.width, panel.valid), (W, W));
    let Panel { source, along, step, depth, .. } = *panel;
    let at = |p: usize| to.wrapping_add(3 * W * p);
    // SAFETY: the caller's contract.
    unsafe {
        if along == 1 {
            for p in 0..depth {
                let elements = source.add(p * step).cast::<[[T; 2]; W]>().read_unaligned();
                write(elements, at(p), &combine);
            }
        } else {
            for p in 0..depth {
                let element = |i: usize| source.add(i * along + p * step).read_unaligned();
                write::<T, W>(std::array::from_fn(element), at(p), &combine);
            }
        }
    }
}

/// Writes the elements of a step and what is combined of the parts of each.
///
/// # Safety
/// There is room for three numbers an element at `to`.
#[inline(always)]
unsafe fn write<T: Part, const W: usize>(elements: [[T; 2]; W], to: *mut T, combine: impl Fn(T, T) -> T) {
    // SAFETY: the caller's contract.
    unsafe {
        to.cast::<[[T; 2]; W]>().write_unaligned(elements);
        to.add(2 * W).cast::<[T; W]>().write_unaligned(elements.map(|[x, y]| combine(x, y)));
    }
}

/// Steps of a panel of any width.
///
/// # Safety
/// As for [`steps`].
#[inline(always)]
unsafe fn any_steps<T: Part>(panel: &Panel<[T; 2]>, to: *mut T, combine: impl Fn(T, T) -> T) {
    debug_assert_eq!(panel.width, panel.valid);
    let width = panel.width;
    for (p, i) in (0..panel.depth).flat_map(|p| (0..width).map(move |i| (p, i))) {
        let to = to.wrapping_add(3 * width * p);
        // SAFETY: the caller's contract.
        unsafe {
            let [x, y] = panel.source.add(p * panel.step + i * panel.along).read_unaligned();
            to.add(2 * i).cast::<[T; 2]>().write_unaligned([x, y]);
            to.add(2 * width + i).write(combine(x, y));
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::geometry::Operand;
    use crate::split::Split;

    /// The numbers of a copy, step by step of each panel, as the module says.
    fn expected(split: &Split, depth: usize, negative: bool, element: impl Fn(usize, usize) -> [f64; 2]) -> Vec<f64> {
        let mut all = Vec::new();
        for (tile, p) in (0..split.tiles()).flat_map(|tile| (0..depth).map(move |p| (tile, p))) {
            let elements: Vec<[f64; 2]> = (split.start(tile)..split.start(tile + 1)).map(|i| element(i, p)).collect();
            all.extend(elements.as_flattened());
            all.extend(elements.iter().map(|[x, y]| if negative { x - y } else { x + y }));
        }
        all
    }

    #[test]
    fn elements_are_followed_by_the_sums_of_their_parts() {
        let simd = is_x86_feature_detected!("avx2");
        for (most, extent) in
            (1..=12).flat_map(|most| [1, most, 2 * most - 1, 3 * most + 2].map(|extent| (most, extent)))
        {
            let split = Split::new(extent, 1, most);
            for (depth, negative) in [1, 7, 8, 9, 19].into_iter().flat_map(|depth| [false, true].map(|n| (depth, n))) {
                let pitch = extent.max(depth) + 2;
                let source: Vec<[f64; 2]> = (0..pitch * pitch).map(|i| [i as f64 + 0.5, -3.0 * i as f64]).collect();
                for operand in [Operand { along: 1, step: pitch }, Operand { along: pitch, step: 1 }] {
                    let wanted = expected(&split, depth, negative, |i, p| source[i * operand.along + p * operand.step]);
                    for simd in [false, simd] {
                        let mut to = vec![f64::NAN; wanted.len() + 8];
                        let block = Block {
                            source: source.as_ptr().cast(),
                            operand,
                            split: &split,
                            tiles: 0..split.tiles(),
                            depth,
                        };
                        // SAFETY: the source holds all steps of all neighbours, and there is room for whole panels.
                        unsafe { pack(&block, to.as_mut_ptr(), negative, simd) };
                        assert_eq!(to[..wanted.len()], wanted, "{operand:?} {split:?} {depth}");
                        assert!(to[wanted.len()..].iter().all(|x| x.is_nan()), "beyond the copy");
                    }
                }
            }
        }
    }
}
