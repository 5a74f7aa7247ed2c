//! Packing of complex numbers that are multiplied by three real products: for each step the elements of a tile as they are, and behind
//! them the sum of the parts of each, or the difference where the operand is conjugated.

use super::pack::{Block, Panel};
use std::ops::{Add, Sub};

/// Steps that are copied for all panels before the next steps, where neighbours lie side by side: lines that panels share are still near.
const CHUNK: usize = 8;

/// A part of a complex number.
pub(super) trait Part: Copy + Add<Output = Self> + Sub<Output = Self> + 'static {}

impl Part for f32 {}
impl Part for f64 {}

/// Copies the block to `to`, panel behind panel, three numbers for an element.
///
/// # Safety
/// As for [`Block::pack`], of so many numbers.
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
    let chunk = if block.operand.along == 1 { CHUNK } else { block.depth.max(1) };
    for from in (0..block.depth).step_by(chunk) {
        let end = (from + chunk).min(block.depth);
        for tile in block.tiles.clone() {
            let panel = block.panel::<[T; 2]>(tile, from, end);
            let to = to.wrapping_add(3 * block.target(tile, from));
            // SAFETY: the caller's contract.
            unsafe {
                match (panel.width, negative) {
                    (1, false) => steps::<T, 1>(&panel, to, |x, y| x + y),
                    (2, false) => steps::<T, 2>(&panel, to, |x, y| x + y),
                    (3, false) => steps::<T, 3>(&panel, to, |x, y| x + y),
                    (4, false) => steps::<T, 4>(&panel, to, |x, y| x + y),
                    (8, false) => steps::<T, 8>(&panel, to, |x, y| x + y),
                    (4, true) => steps::<T, 4>(&panel, to, |x, y| x - y),
                    (8, true) => steps::<T, 8>(&panel, to, |x, y| x - y),
                    (_, false) => any_steps(&panel, to, |x, y| x + y),
                    (_, true) => any_steps(&panel, to, |x, y| x - y),
                }
            }
        }
    }
}

/// Steps of a panel of a known width.
///
/// # Safety
/// As for [`pack`], for this panel, all of whose elements are there.
#[inline(always)]
unsafe fn steps<T: Part, const W: usize>(panel: &Panel<[T; 2]>, to: *mut T, combine: impl Fn(T, T) -> T) {
    debug_assert_eq!((panel.width, panel.valid), (W, W));
    for p in 0..panel.depth {
        let (from, to) = (panel.source.wrapping_add(p * panel.step), to.wrapping_add(3 * W * p));
        // SAFETY: the caller's contract; the source's parts are aligned as such, and so is the copy.
        unsafe {
            let element = |i: usize| from.add(i * panel.along).read_unaligned();
            let elements: [[T; 2]; W] = if panel.along == 1 {
                from.cast::<[[T; 2]; W]>().read_unaligned()
            } else {
                std::array::from_fn(element)
            };
            to.cast::<[[T; 2]; W]>().write_unaligned(elements);
            to.add(2 * W).cast::<[T; W]>().write_unaligned(elements.map(|[x, y]| combine(x, y)));
        }
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
