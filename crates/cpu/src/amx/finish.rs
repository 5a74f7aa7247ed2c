//! Sums that are not C as they are: of an edge, with an alpha, or to be rounded.

use super::SIDE;
use super::driver::Sums;
use tilewright_core::element::Bf16;
use tilewright_ops::gemm::ScalarClass;

/// A type of C, beside sums of a type.
pub(super) trait Written<S>: Copy {
    fn finished(sum: S, old: Option<Self>, alpha: f32, beta: f32) -> Self;
}

impl Written<f32> for f32 {
    #[inline(always)]
    fn finished(sum: f32, old: Option<f32>, alpha: f32, beta: f32) -> f32 {
        old.map_or(alpha * sum, |old| beta * old + alpha * sum)
    }
}

impl Written<f32> for Bf16 {
    #[inline(always)]
    fn finished(sum: f32, old: Option<Self>, alpha: f32, beta: f32) -> Self {
        Self::from_f32(f32::finished(sum, old.map(Self::to_f32), alpha, beta))
    }
}

/// Neither alpha nor beta multiplies integers.
impl Written<i32> for i32 {
    #[inline(always)]
    fn finished(sum: i32, old: Option<i32>, _: f32, _: f32) -> i32 {
        old.map_or(sum, |old| old.wrapping_add(sum))
    }
}

/// Writes a block of sums, `stride` of them from column to column, to C.
///
/// # Safety
/// The sums must be readable over the block, C writable over it, and read where beta is not zero.
pub(super) unsafe fn write<S: Copy, C: Written<S>>(sums: (*const S, usize), c: *mut C, to: &Sums) {
    #[cfg(target_arch = "x86_64")]
    if super::wide::is_there() {
        // SAFETY: the caller's contract; the host has the vectors.
        return unsafe { write_wide(sums, c, to) };
    }
    // SAFETY: the caller's contract.
    unsafe { write_any(sums, c, to) };
}

/// # Safety
/// As for [`write`], on a host with AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn write_wide<S: Copy, C: Written<S>>(sums: (*const S, usize), c: *mut C, to: &Sums) {
    // SAFETY: the caller's contract.
    unsafe { write_any(sums, c, to) };
}

/// The same, rounded to bfloat16.
///
/// # Safety
/// As for [`write`].
pub(super) unsafe fn write_rounded(sums: (*const f32, usize), c: *mut Bf16, to: &Sums) {
    #[cfg(target_arch = "x86_64")]
    if super::wide::is_there() {
        // SAFETY: the caller's contract; the host has the vectors, and the type is a transparent wrapper of its bits.
        return unsafe { super::wide::write_rounded(sums, c.cast(), to) };
    }
    // SAFETY: the caller's contract.
    unsafe { write_any(sums, c, to) };
}

/// Turns a block of sums: tiles of which `v` lie side by side and `s` one below the other.
///
/// # Safety
/// The sums must be readable, and as many writable at `to`, apart from them.
pub(super) unsafe fn turn(sums: *const i32, to: *mut i32, (v, s): (usize, usize)) {
    let (wide, high) = (v * SIDE, s * SIDE);
    #[cfg(target_arch = "x86_64")]
    if super::wide::is_there() {
        for (i, j) in (0..v).flat_map(|i| (0..s).map(move |j| (i * SIDE, j * SIDE))) {
            let (from, to) = ((sums.wrapping_add(j * wide + i), wide), (to.wrapping_add(i * high + j), high));
            // SAFETY: the caller's contract; the host has the vectors.
            unsafe { crate::exec::weave::turn(from, to) };
        }
        return;
    }
    for (i, j) in (0..wide).flat_map(|i| (0..high).map(move |j| (i, j))) {
        // SAFETY: the caller's contract.
        unsafe { to.add(i * high + j).write(*sums.add(j * wide + i)) };
    }
}

/// # Safety
/// As for [`write`].
#[inline(always)]
unsafe fn write_any<S: Copy, C: Written<S>>(sums: (*const S, usize), c: *mut C, to: &Sums) {
    let [alpha, beta] = to.factors;
    for j in 0..to.columns {
        let (from, column) = (sums.0.wrapping_add(j * sums.1), c.wrapping_add(j * to.ldc));
        // Two loops, in neither of which anything is decided: both are vectorised.
        // SAFETY: the caller's contract.
        unsafe {
            if to.beta == ScalarClass::Zero {
                (0..to.rows).for_each(|i| column.add(i).write(C::finished(*from.add(i), None, alpha, beta)));
            } else {
                (0..to.rows).for_each(|i| {
                    let at = column.add(i);
                    at.write(C::finished(*from.add(i), Some(at.read()), alpha, beta));
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turned_sums_are_the_transposed_ones() {
        for (v, s) in [(1, 1), (2, 2), (3, 1), (1, 3)] {
            let (wide, high) = (v * SIDE, s * SIDE);
            let sums: Vec<i32> = (0..(wide * high) as i32).collect();
            let mut to = vec![-1; wide * high];
            // SAFETY: both hold a block.
            unsafe { turn(sums.as_ptr(), to.as_mut_ptr(), (v, s)) };
            for (i, j) in (0..wide).flat_map(|i| (0..high).map(move |j| (i, j))) {
                assert_eq!(to[i * high + j], sums[j * wide + i], "{v} {s}: {i} {j}");
            }
        }
    }

    #[test]
    fn rounded_sums_are_those_of_plain_rust_and_nothing_else_is_written() {
        let (stride, ldc) = (3 * SIDE, 3 * SIDE + 5);
        // Ties to either side, numbers that round up to the next power and to infinity, and what is none.
        let special = [0x3f80_8000, 0x3f81_8000, 0x3fff_ffff, 0x7f7f_ffff, 0x7f80_0000, 0x7fc0_0001, 0x8000_0000];
        let sums: Vec<f32> = (0..2 * stride as u32)
            .map(|i| f32::from_bits(special.get(i as usize % 11).copied().unwrap_or(0x3e00_0000 + i * 77_777)))
            .collect();
        let betas = [(ScalarClass::Zero, 0.0), (ScalarClass::One, 1.0), (ScalarClass::Other, -0.5)];
        for (rows, (beta, factor)) in (1..=stride).flat_map(|rows| betas.map(|beta| (rows, beta))) {
            let to = Sums { rows, columns: 2, ldc, beta, factors: [1.0, factor] };
            // Also less than normal numbers, which stay where nothing else is there.
            let before: Vec<Bf16> = (0..2 * ldc).map(|i| Bf16((i * 997 % 0x7f80) as u16)).collect();
            let (mut ours, mut plain) = (before.clone(), before);
            // SAFETY: all hold two columns.
            unsafe {
                write_rounded((sums.as_ptr(), stride), ours.as_mut_ptr(), &to);
                write_any((sums.as_ptr(), stride), plain.as_mut_ptr(), &to);
            }
            for (x, y) in ours.iter().zip(&plain) {
                assert!(x == y || x.to_f32().is_nan() && y.to_f32().is_nan(), "{rows} {beta:?}: {x:?} {y:?}");
            }
        }
    }
}
