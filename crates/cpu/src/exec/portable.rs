//! The same plans without generated code, for hosts that the generator has none for: register tiles in plain Rust, driven,
//! packed and divided among threads like generated ones.

use std::ops::{Add, Mul};

use super::code::Invoke;
use super::run::Kept;
use crate::codegen::abi::PanelArgs;
use crate::codegen::tile::{Gathered, Loaded, Tile, TileStore};
use crate::scalar::{Float, Numbers};
use tilewright_core::element::{Bf16, F16};
use tilewright_ops::gemm::ScalarClass;

/// Most numbers of a register tile: 32 vectors of 16, or 36 where [three products](three_products) leave half of every second run unused, of which two
/// vectors by nine elements have most.
const MOST: usize = 576;

/// The routines of a plan; an entry is an index.
#[derive(Debug)]
pub(crate) struct Portable {
    pub(crate) tiles: Vec<Tile>,
}

impl Invoke for Portable {
    unsafe fn invoke(&self, entry: usize, args: *mut PanelArgs) {
        let tile = &self.tiles[entry];
        // SAFETY: the caller's contract.
        unsafe {
            match (tile.numbers, tile.vector.float) {
                (Numbers::Pairs, _) => panel::<i32, i32>(tile, &mut *args),
                (Numbers::Quads, _) => panel::<Quad, Quad>(tile, &mut *args),
                (Numbers::Halves, _) if matches!(tile.store, TileStore::Rounded { .. }) => {
                    panel::<Halves, Bf16>(tile, &mut *args);
                }
                (Numbers::Halves, _) => panel::<Halves, Halves>(tile, &mut *args),
                (_, Float::F32) => panel::<f32, f32>(tile, &mut *args),
                (_, Float::F64) => panel::<f64, f64>(tile, &mut *args),
            }
        }
    }
}

/// An element type, with its scalars as [`PanelArgs`] holds them.
trait Element: Copy + Default + Add<Output = Self> + Mul<Output = Self> {
    fn of_bits(bits: u64) -> Self;

    /// The same with the other sign.
    fn negated(self) -> Self {
        unreachable!("only parts of complex numbers are subtracted")
    }

    /// `self + a * b`, of pairs the sum of both products.
    fn plus(self, a: Self, b: Self) -> Self {
        a * b + self
    }

    /// A bfloat16 number as one of this type.
    fn of_bf16(_: u16) -> Self {
        unreachable!("only binary32 is made of bfloat16 as it is loaded")
    }

    /// A binary16 number as one of this type.
    fn of_f16(_: u16) -> Self {
        unreachable!("only binary32 is made of binary16 as it is loaded")
    }

    /// The numbers of two steps.
    fn woven(_: [u16; 2]) -> Self {
        unreachable!("only bfloat16 is woven as it is loaded")
    }

    /// The same with bits changed.
    fn flipped(self, _: u64) -> Self {
        self
    }

    /// One of a pair as [`PanelArgs`] holds it.
    fn of_pair(bits: [u64; 2], part: usize) -> Self;
}

impl Element for f32 {
    fn negated(self) -> Self {
        -self
    }

    fn of_bf16(number: u16) -> Self {
        Bf16(number).to_f32()
    }

    fn of_f16(number: u16) -> Self {
        F16(number).to_f32()
    }

    fn of_bits(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }

    fn of_pair(bits: [u64; 2], part: usize) -> Self {
        Self::of_bits(bits[0] >> (32 * part))
    }
}

impl Element for f64 {
    fn negated(self) -> Self {
        -self
    }

    fn of_bits(bits: u64) -> Self {
        Self::from_bits(bits)
    }

    fn of_pair(bits: [u64; 2], part: usize) -> Self {
        Self::of_bits(bits[part])
    }
}

/// Pairs of 16-bit integers, and sums of 32 bits.
impl Element for i32 {
    fn of_bits(bits: u64) -> Self {
        bits as Self
    }

    fn plus(self, a: Self, b: Self) -> Self {
        let halves = |x: Self| (i32::from(x as i16), x >> 16);
        let ((a, c), (b, d)) = (halves(a), halves(b));
        self.wrapping_add(a * b).wrapping_add(c * d)
    }

    fn of_pair(bits: [u64; 2], part: usize) -> Self {
        bits[part] as Self
    }
}

/// Four 8-bit integers, those of the second factor 128 too large, and sums of 32 bits.
#[derive(Clone, Copy, Debug, Default)]
struct Quad(i32);

impl Add for Quad {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }
}

impl Mul for Quad {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self(self.0.wrapping_mul(other.0))
    }
}

impl Element for Quad {
    fn of_bits(bits: u64) -> Self {
        Self(bits as i32)
    }

    fn plus(self, a: Self, b: Self) -> Self {
        let products = a.0.to_le_bytes().into_iter().zip(b.0.to_le_bytes());
        products.fold(self, |sum, (a, b)| sum + Self(i32::from(a as i8) * i32::from(b)))
    }

    fn flipped(self, bits: u64) -> Self {
        Self(self.0 ^ bits as i32)
    }

    fn of_pair(bits: [u64; 2], part: usize) -> Self {
        Self::of_bits(bits[part])
    }
}

/// Two bfloat16 numbers, and sums of binary32.
#[derive(Clone, Copy, Debug, Default)]
struct Halves(f32);

impl Add for Halves {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Mul for Halves {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self(self.0 * other.0)
    }
}

impl Element for Halves {
    fn of_bits(bits: u64) -> Self {
        Self(f32::of_bits(bits))
    }

    fn plus(self, a: Self, b: Self) -> Self {
        let of = |x: Self| [f32::from_bits(x.0.to_bits() & 0xffff_0000), f32::from_bits(x.0.to_bits() << 16)];
        let ([a, c], [b, d]) = (of(a), of(b));
        Self(self.0 + a * b + c * d)
    }

    fn woven([low, high]: [u16; 2]) -> Self {
        Self(f32::from_bits(u32::from(low) | u32::from(high) << 16))
    }

    fn of_pair(bits: [u64; 2], part: usize) -> Self {
        Self(f32::of_pair(bits, part))
    }
}

impl Kept<Halves> for Bf16 {
    fn widened(self) -> Halves {
        Halves(self.to_f32())
    }

    fn of(sum: Halves) -> Self {
        Self::from_f32(sum.0)
    }
}

/// A row of tiles, with elements of C of type `O`.
///
/// # Safety
/// The arguments must describe tiles within readable operands and writable C.
unsafe fn panel<T: Element, O: Kept<T>>(tile: &Tile, args: &mut PanelArgs) {
    for _ in 0..args.tiles {
        let mut acc = [T::default(); MOST];
        // SAFETY: the caller's contract.
        unsafe {
            begin(tile, args, &mut acc);
            multiply(tile, args, &mut acc);
            store::<T, O>(tile, args, &acc);
        }
        args.v = args.v.wrapping_offset(args.v_step);
        args.s = args.s.wrapping_offset(args.s_step);
        args.c = args.c.wrapping_offset(args.c_step);
    }
}

/// Elements of the tile along `v`: those it has room for, and those that are there.
fn extent(tile: &Tile) -> (usize, usize) {
    let width = tile.vecs * tile.vector.lanes();
    (width, if tile.tail == 0 { width } else { width - tile.vector.lanes() + tile.tail })
}

/// What sums begin with, where a panel has it before its steps.
///
/// # Safety
/// As for [`panel`].
unsafe fn begin<T: Element>(tile: &Tile, args: &PanelArgs, acc: &mut [T; MOST]) {
    let (width, _) = extent(tile);
    if tile.numbers.head() > 0 {
        for sums in acc.chunks_exact_mut(width).take(tile.s) {
            // SAFETY: the caller's contract: the panel is packed and has a step more.
            unsafe { std::ptr::copy_nonoverlapping(args.v.cast::<T>(), sums.as_mut_ptr(), width) };
        }
    }
}

/// # Safety
/// As for [`panel`].
unsafe fn multiply<T: Element>(tile: &Tile, args: &PanelArgs, acc: &mut [T; MOST]) {
    let (width, valid) = extent(tile);
    let first = args.v.wrapping_offset(tile.numbers.head() as isize * tile.v_k as isize);
    let read = if tile.v_masked { valid } else { width };
    let mut row = [T::default(); MOST];
    for p in 0..args.k_main * tile.k_s + args.k_tail {
        // SAFETY: the caller's contract: a table has an entry for every step.
        let place = if tile.gathered == Gathered::None { 0 } else { unsafe { *args.table.add(p) as isize } };
        let at = |of: Gathered, step: i32| if tile.gathered == of { place } else { p as isize * step as isize };
        let v = first.wrapping_offset(at(Gathered::V, tile.v_k)).cast::<T>();
        let s = args.s.wrapping_offset(at(Gathered::S, tile.s_k));
        // SAFETY: the caller's contract: `read` elements at every step of `v`.
        unsafe {
            let row = row.iter_mut().take(read).enumerate();
            let numbers = v.cast::<u16>();
            match tile.loaded_v {
                Loaded::Woven => {
                    let steps = [numbers, numbers.wrapping_byte_offset(tile.v_k as isize / 2)];
                    row.for_each(|(i, x)| *x = T::woven(steps.map(|s| s.add(i).read())));
                }
                Loaded::Converted => row.for_each(|(i, x)| *x = T::of_f16(numbers.add(i).read())),
                Loaded::Widened => row.for_each(|(i, x)| *x = T::of_bf16(numbers.add(i).read())),
                Loaded::AsIs => row.for_each(|(i, x)| *x = v.add(i).read()),
            }
        }
        if tile.copy_v {
            let copy = args.packed.cast::<T>().wrapping_add(p * width);
            // SAFETY: the workspace holds a whole panel.
            unsafe { std::ptr::copy_nonoverlapping(row.as_ptr(), copy, width) };
        }
        if tile.numbers == Numbers::ThreeM {
            // SAFETY: the caller's contract: the parts of elements, and their sums, at every step of `s`.
            unsafe { three_products(tile, acc, &row[..width], s) };
            continue;
        }
        for (j, sums) in acc.chunks_exact_mut(width).take(tile.s).enumerate() {
            // SAFETY: the caller's contract: `tile.s` elements at every step of `s`.
            let b = unsafe { s.wrapping_offset(tile.s_at(j) as isize).cast::<T>().read_unaligned() };
            let b = if tile.flips_s { b.flipped(args.flip) } else { b };
            for (sum, &a) in sums.iter_mut().zip(&row) {
                *sum = sum.plus(a, b);
            }
        }
    }
}

/// Adds the three products of each element of a row with each element along `s`: those of the parts where these stand, and that of the sums
/// where the first part stands, in the run of accumulators that follows.
///
/// # Safety
/// The parts of the tile's elements, and their sums, must be readable at `s`.
unsafe fn three_products<T: Element>(tile: &Tile, acc: &mut [T; MOST], row: &[T], s: *const u8) {
    for (j, sums) in acc.chunks_exact_mut(2 * row.len()).take(tile.outs()).enumerate() {
        let (direct, cross) = sums.split_at_mut(row.len());
        let number = |bytes: i64| s.wrapping_offset(bytes as isize).cast::<T>();
        // SAFETY: the caller's contract.
        let ([real, imaginary], sum) = unsafe {
            let parts = [0, 1].map(|part| number(tile.s_at(2 * j + part)).read_unaligned());
            (parts, number(tile.sum_at(j)).read_unaligned())
        };
        for i in (0..row.len()).step_by(2) {
            let second = if tile.conjugated[0] { row[i + 1].negated() } else { row[i + 1] };
            direct[i] = direct[i].plus(row[i], real);
            direct[i + 1] = direct[i + 1].plus(row[i + 1], imaginary);
            cross[i] = cross[i].plus(row[i] + second, sum);
        }
    }
}

/// A part of an element from its [three products](three_products): `(a + b i) (c + d i)` has `ac - bd` and `(a + b) (c + d) - ac - bd`.
fn of_three<T: Element>(tile: &Tile, direct: &[T], cross: &[T], i: usize) -> T {
    let (real, imaginary) = (direct[i & !1], direct[i | 1]);
    let square = if tile.conjugated[0] == tile.conjugated[1] { imaginary } else { imaginary.negated() };
    if i.is_multiple_of(2) { real + square.negated() } else { cross[i - 1] + (real + square).negated() }
}

/// What sums come to before C is added: lane `i` at element `j` along `s`.
fn finished<T: Element>(tile: &Tile, args: &PanelArgs, acc: &[T; MOST], width: usize, (j, i): (usize, usize)) -> T {
    match tile.numbers {
        Numbers::Complex => {
            let (direct, turned) = (acc[2 * j * width + i], acc[(2 * j + 1) * width + (i ^ 1)]);
            direct * T::of_pair(args.direct, i % 2) + turned * T::of_pair(args.turned, i % 2)
        }
        Numbers::ThreeM => {
            let (direct, cross) = acc[2 * j * width..][..2 * width].split_at(width);
            let product = of_three(tile, direct, cross, i);
            if tile.alpha == ScalarClass::One { product } else { T::of_bits(args.alpha) * product }
        }
        _ if tile.alpha == ScalarClass::One => acc[j * width + i],
        _ => T::of_bits(args.alpha) * acc[j * width + i],
    }
}

/// # Safety
/// As for [`panel`].
unsafe fn store<T: Element, O: Kept<T>>(tile: &Tile, args: &PanelArgs, acc: &[T; MOST]) {
    let (width, valid) = extent(tile);
    let parts = tile.numbers.parts();
    let element = (parts * size_of::<O>()) as isize;
    let (v_stride, s_stride) = match tile.store {
        TileStore::Along { s_stride } | TileStore::Rounded { s_stride } => (element, s_stride as isize),
        TileStore::Across { v_stride } => (v_stride as isize, element),
    };
    for (j, i) in (0..tile.outs()).flat_map(|j| (0..valid).map(move |i| (j, i))) {
        let product = finished(tile, args, acc, width, (j, i));
        let first = args.c.wrapping_offset((i / parts) as isize * v_stride + j as isize * s_stride);
        let at = first.cast::<O>().wrapping_add(i % parts);
        // SAFETY: the caller's contract; C is read only if beta is not zero.
        unsafe {
            at.write(O::of(match tile.beta {
                ScalarClass::Zero => product,
                ScalarClass::One => at.read().widened() + product,
                ScalarClass::Other => T::of_bits(args.beta) * at.read().widened() + product,
            }));
        }
    }
}
