//! Copies panels of an operand into the order in which the generated code reads them: for each tile, step of
//! k after step of k, `width` neighbours each.
//!
//! Both layouts of the source are vectorised: neighbours contiguous (a copy), and k contiguous (a
//! transposition of squares).

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod transpose;

use std::ops::Range;

use crate::geometry::Operand;
use crate::split::Split;

/// A panel to copy: `valid` neighbours `along` elements apart, `depth` steps of k `step` elements apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel<T> {
    pub(crate) source: *const T,
    pub(crate) along: usize,
    pub(crate) step: usize,
    pub(crate) valid: usize,
    /// Neighbours per step in the copy; those from `valid` on become zero.
    pub(crate) width: usize,
    pub(crate) depth: usize,
}

/// A row of panels to copy: those of the tiles `tiles` of `split`, over `depth` steps of k.
#[derive(Clone, Debug)]
pub(crate) struct Block<'a> {
    /// The operand's element at the block's first step of k and the dimension's start.
    pub(crate) source: *const u8,
    pub(crate) operand: Operand,
    pub(crate) split: &'a Split,
    pub(crate) tiles: Range<usize>,
    pub(crate) depth: usize,
}

/// Steps of k that are copied for all panels before the next steps: few enough that a line of the source that
/// several panels share is still in the first-level cache.
pub(super) const CHUNK: usize = 8;

/// An element that can be packed: something of its size, which need not lie as such a number does.
pub(crate) trait Packed: Copy + Default + 'static {
    /// Rows and columns of a square that is transposed in registers.
    const SQUARE: usize = 32 / size_of::<Self>();
}

impl Packed for f32 {}
impl Packed for f64 {}
impl Packed for [f64; 2] {}

impl Block<'_> {
    /// Steps `from..to` of the panel of a tile.
    pub(super) fn panel<T>(&self, tile: usize, from: usize, to: usize) -> Panel<T> {
        let (at, Operand { along, step }) = (self.split.start(tile), self.operand);
        Panel {
            source: self.source.cast::<T>().wrapping_add(at * along + from * step),
            along,
            step,
            valid: self.split.size(tile),
            width: self.split.start(tile + 1) - at,
            depth: to - from,
        }
    }

    /// Where step `from` of the panel of a tile goes.
    pub(super) fn target(&self, tile: usize, from: usize) -> usize {
        let at = self.split.start(tile);
        let width = self.split.start(tile + 1) - at;
        (at - self.split.start(self.tiles.start)) * self.depth + from * width
    }

    /// Copies the block to `to`, panel behind panel.
    ///
    /// # Safety
    /// The operand must be readable over the tiles' valid elements and the steps, the whole panels writable at `to`,
    /// and the two must not overlap. `simd` may be set only on a host with AVX2.
    pub(crate) unsafe fn pack<T: Packed>(&self, to: *mut T, simd: bool) {
        #[cfg(target_arch = "x86_64")]
        if simd && (self.operand.along == 1 || self.operand.step == 1) {
            // SAFETY: the caller's contract.
            unsafe { if self.operand.along == 1 { self.copy(to) } else { self.transpose(to) } }
            return;
        }
        let _ = simd;
        for tile in self.tiles.clone() {
            let panel = self.panel(tile, 0, self.depth);
            // SAFETY: the caller's contract.
            unsafe { pack_plain(&panel, to.add(self.target(tile, 0)), 0) };
        }
    }

    /// # Safety
    /// As for [`Block::pack`], with `along` = 1, on a host with AVX2.
    #[cfg(target_arch = "x86_64")]
    unsafe fn copy<T: Packed>(&self, to: *mut T) {
        // A panel alone has its lines to itself, however long it is.
        let chunk = if self.tiles.len() == 1 { self.depth.max(1) } else { CHUNK };
        for from in (0..self.depth).step_by(chunk) {
            let end = (from + chunk).min(self.depth);
            for tile in self.tiles.clone() {
                let panel = self.panel::<T>(tile, from, end);
                let room = (self.depth - from) * panel.width;
                // SAFETY: the caller's contract. Steps may run over into later ones, not into the next panel.
                unsafe { avx2::Rows::of(&panel, room).copy(to.add(self.target(tile, from)).cast()) };
            }
        }
    }

    /// # Safety
    /// As for [`Block::pack`], with `step` = 1, on a host with AVX2.
    #[cfg(target_arch = "x86_64")]
    unsafe fn transpose<T: Packed>(&self, to: *mut T) {
        for tile in self.tiles.clone() {
            let panel = self.panel(tile, 0, self.depth);
            // SAFETY: the caller's contract.
            unsafe { transpose::panel(&panel, to.add(self.target(tile, 0))) };
        }
    }
}

/// Copies the steps from `from` on, element by element.
///
/// # Safety
/// As for [`Block::pack`], for this panel.
unsafe fn pack_plain<T: Packed>(panel: &Panel<T>, to: *mut T, from: usize) {
    for p in from..panel.depth {
        for i in 0..panel.width {
            // SAFETY: i < valid and p < depth index the source, i < width and p < depth the copy.
            unsafe {
                let value = if i < panel.valid {
                    panel.source.add(i * panel.along + p * panel.step).read_unaligned()
                } else {
                    T::default()
                };
                *to.add(p * panel.width + i) = value;
            }
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// All panels of an operand, and a guard behind them.
    fn packed<T: Packed>(source: &[T], operand: Operand, split: &Split, depth: usize, simd: bool, guard: T) -> Vec<T> {
        let size = split.start(split.tiles()) * depth;
        let mut to = vec![guard; size + 24];
        let block = Block { source: source.as_ptr().cast(), operand, split, tiles: 0..split.tiles(), depth };
        // SAFETY: the source holds all steps of all neighbours, and there is room for whole panels.
        unsafe { block.pack(to.as_mut_ptr(), simd) };
        to
    }

    /// Panels of one copy beside those of the other, of every width that a tile may have and depths around those of squares and lines.
    fn are_alike<T: Packed + PartialEq + std::fmt::Debug>(number: impl Fn(usize) -> T) {
        let simd = is_x86_feature_detected!("avx2");
        for (unit, most) in (1..=28).map(|most| (1, most)).chain([(4, 3), (8, 4), (16, 4), (1, 300)]) {
            for depth in [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 33, 40] {
                for extent in [1, most, 2 * most * unit - 1, 3 * most * unit + 2] {
                    let split = Split::new(extent, unit, most);
                    let source: Vec<T> = (0..extent * (depth + 3)).map(&number).collect();
                    for operand in [Operand { along: depth + 3, step: 1 }, Operand { along: 1, step: extent }] {
                        let of = |simd| packed(&source, operand, &split, depth, simd, number(usize::MAX >> 40));
                        assert_eq!(of(simd), of(false), "{operand:?} {split:?} {depth}");
                    }
                }
            }
        }
    }

    #[test]
    fn vectors_pack_what_elements_pack() {
        are_alike(|i| i as f32 + 1.0);
        are_alike(|i| i as f64 + 1.0);
        are_alike(|i| [i as f64 + 1.0, -(i as f64)]);
    }
}
