//! Vectors of the host as types: sums that stay in registers over a loop, which the compiler does not make of arrays.

use crate::codegen::vector::{Vector, Width};
use crate::scalar::Float;

/// A vector of elements, or a single one.
pub(super) trait Register: Copy {
    /// An element.
    type Element: super::super::finish::Real;
    /// How many there are.
    const COUNT: usize;

    /// # Safety
    /// The host must have these vectors, here and below.
    unsafe fn all(x: Self::Element) -> Self;

    /// # Safety
    /// As many elements must be readable.
    unsafe fn read(from: *const Self::Element) -> Self;

    /// The first so many, fewer than there are lanes; the others are 0.
    ///
    /// # Safety
    /// As many elements must be readable.
    unsafe fn read_some(from: *const Self::Element, count: usize) -> Self;

    /// # Safety
    /// As many elements must be writable.
    unsafe fn write(self, to: *mut Self::Element);

    /// The first so many, fewer than there are lanes.
    ///
    /// # Safety
    /// As many elements must be writable.
    unsafe fn write_some(self, to: *mut Self::Element, count: usize);

    /// # Safety
    /// See [`Register::all`].
    unsafe fn plus(self, other: Self) -> Self;

    /// `self + a * b`.
    ///
    /// # Safety
    /// See [`Register::all`].
    unsafe fn plus_product(self, a: Self, b: Self) -> Self;

    /// Of two vectors that follow each other, every second element, and those between them.
    ///
    /// # Safety
    /// See [`Register::all`].
    unsafe fn halves(self, next: Self) -> [Self; 2];

    /// What is above 0, else 0; also of NaN.
    ///
    /// # Safety
    /// See [`Register::all`].
    unsafe fn positive(self) -> Self;
}

/// What is done with vectors.
pub(super) trait Work {
    /// Does it.
    ///
    /// # Safety
    /// What each work says, and the host must have the vectors.
    unsafe fn run<X: Register>(&self);
}

/// Does it with a plan's vectors, or with single elements where the host has none of that width.
///
/// # Safety
/// What the work needs; the vectors must be the host's where they are called native.
pub(super) unsafe fn with_registers((vector, is_native): (Vector, bool), work: &impl Work) {
    // SAFETY: the caller's contract.
    unsafe {
        match (vector.width, vector.float) {
            #[cfg(target_arch = "x86_64")]
            (Width::Z, float) if is_native => x86::wide(float, work),
            #[cfg(target_arch = "x86_64")]
            (Width::Y, float) if is_native => x86::narrow(float, work),
            (_, Float::F32) => work.run::<f32>(),
            (_, Float::F64) => work.run::<f64>(),
        }
    }
}

macro_rules! single {
    ($t:ty) => {
        impl Register for $t {
            type Element = $t;
            const COUNT: usize = 1;

            #[inline(always)]
            unsafe fn all(x: $t) -> Self {
                x
            }

            #[inline(always)]
            unsafe fn read(from: *const $t) -> Self {
                // SAFETY: the caller's contract.
                unsafe { *from }
            }

            #[inline(always)]
            unsafe fn read_some(_: *const $t, _: usize) -> Self {
                0.0
            }

            #[inline(always)]
            unsafe fn write(self, to: *mut $t) {
                // SAFETY: the caller's contract.
                unsafe { *to = self }
            }

            #[inline(always)]
            unsafe fn write_some(self, _: *mut $t, _: usize) {}

            #[inline(always)]
            unsafe fn plus(self, other: Self) -> Self {
                self + other
            }

            #[inline(always)]
            unsafe fn plus_product(self, a: Self, b: Self) -> Self {
                self + a * b
            }

            #[inline(always)]
            unsafe fn halves(self, next: Self) -> [Self; 2] {
                [self, next]
            }

            #[inline(always)]
            unsafe fn positive(self) -> Self {
                if self > 0.0 { self } else { 0.0 }
            }
        }
    };
}
single!(f32);
single!(f64);

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Float, Register, Work};
    use std::arch::x86_64::*;

    /// # Safety
    /// As for [`super::with_registers`], on a host with AVX-512.
    #[target_feature(enable = "avx512f,avx2,fma")]
    pub(super) unsafe fn wide(float: Float, work: &impl Work) {
        // SAFETY: the caller's contract.
        unsafe {
            match float {
                Float::F32 => work.run::<__m512>(),
                Float::F64 => work.run::<__m512d>(),
            }
        }
    }

    /// # Safety
    /// As for [`super::with_registers`], on a host with AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn narrow(float: Float, work: &impl Work) {
        // SAFETY: the caller's contract.
        unsafe {
            match float {
                Float::F32 => work.run::<__m256>(),
                Float::F64 => work.run::<__m256d>(),
            }
        }
    }

    /// The first lanes of AVX-512 vectors.
    fn first(count: usize) -> u32 {
        (1 << count) - 1
    }

    /// Elements of a mask for AVX's vectors: ones, then zeros; a mask begins as far before the zeros as it has lanes.
    const ONES: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

    /// The first lanes of AVX's vectors, of so many bytes an element.
    ///
    /// # Safety
    /// The host must have AVX, and there must be as many lanes.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn mask(count: usize, bytes: usize) -> __m256i {
        // SAFETY: eight words from the first to the last that may be the first are within the table.
        unsafe { _mm256_loadu_si256(ONES.as_ptr().wrapping_add(8 - count * bytes / 4).cast()) }
    }

    macro_rules! vector {
        ($v:ty, $t:ty, $count:literal; $all:ident $read:ident $write:ident $add:ident $fma:ident $max:ident $zero:ident;
            |$from:ident, $some:ident| $read_some:expr; |$to:ident, $x:ident, $n:ident| $write_some:expr; |$a:ident, $b:ident| $halves:expr) => {
            impl Register for $v {
                type Element = $t;
                const COUNT: usize = $count;

                #[inline(always)]
                unsafe fn all(x: $t) -> Self {
                    // SAFETY: the caller's contract.
                    unsafe { $all(x) }
                }

                #[inline(always)]
                unsafe fn read(from: *const $t) -> Self {
                    // SAFETY: the caller's contract.
                    unsafe { $read(from) }
                }

                #[inline(always)]
                unsafe fn read_some($from: *const $t, $some: usize) -> Self {
                    // SAFETY: the caller's contract.
                    unsafe { $read_some }
                }

                #[inline(always)]
                unsafe fn write(self, to: *mut $t) {
                    // SAFETY: the caller's contract.
                    unsafe { $write(to, self) }
                }

                #[inline(always)]
                unsafe fn write_some(self, $to: *mut $t, $n: usize) {
                    let $x = self;
                    // SAFETY: the caller's contract.
                    unsafe { $write_some }
                }

                #[inline(always)]
                unsafe fn plus(self, other: Self) -> Self {
                    // SAFETY: the caller's contract.
                    unsafe { $add(self, other) }
                }

                #[inline(always)]
                unsafe fn plus_product(self, a: Self, b: Self) -> Self {
                    // SAFETY: the caller's contract.
                    unsafe { $fma(a, b, self) }
                }

                #[inline(always)]
                unsafe fn halves(self, next: Self) -> [Self; 2] {
                    let ($a, $b) = (self, next);
                    // SAFETY: the caller's contract.
                    unsafe { $halves }
                }

                #[inline(always)]
                unsafe fn positive(self) -> Self {
                    // SAFETY: the caller's contract. Where one operand is NaN the second is taken.
                    unsafe { $max(self, $zero()) }
                }
            }
        };
    }

    vector!(__m512, f32, 16;
    _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_add_ps _mm512_fmadd_ps _mm512_max_ps _mm512_setzero_ps;
    |from, count| _mm512_maskz_loadu_ps(first(count) as u16, from);
    |to, x, count| _mm512_mask_storeu_ps(to, first(count) as u16, x);
    |a, b| {
        let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        let odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
        [_mm512_permutex2var_ps(a, even, b), _mm512_permutex2var_ps(a, odd, b)]
    });
    vector!(__m512d, f64, 8;
    _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_add_pd _mm512_fmadd_pd _mm512_max_pd _mm512_setzero_pd;
    |from, count| _mm512_maskz_loadu_pd(first(count) as u8, from);
    |to, x, count| _mm512_mask_storeu_pd(to, first(count) as u8, x);
    |a, b| {
        let (even, odd) = (_mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15));
        [_mm512_permutex2var_pd(a, even, b), _mm512_permutex2var_pd(a, odd, b)]
    });
    vector!(__m256, f32, 8;
    _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_add_ps _mm256_fmadd_ps _mm256_max_ps _mm256_setzero_ps;
    |from, count| _mm256_maskload_ps(from, mask(count, 4));
    |to, x, count| _mm256_maskstore_ps(to, mask(count, 4), x);
    |a, b| {
        // Halves of the vectors come alternately.
        let even = _mm256_castps_pd(_mm256_shuffle_ps::<0b10_00_10_00>(a, b));
        let odd = _mm256_castps_pd(_mm256_shuffle_ps::<0b11_01_11_01>(a, b));
        let even = _mm256_permute4x64_pd::<0b11_01_10_00>(even);
        let odd = _mm256_permute4x64_pd::<0b11_01_10_00>(odd);
        [_mm256_castpd_ps(even), _mm256_castpd_ps(odd)]
    });
    vector!(__m256d, f64, 4;
    _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_add_pd _mm256_fmadd_pd _mm256_max_pd _mm256_setzero_pd;
    |from, count| _mm256_maskload_pd(from, mask(count, 8));
    |to, x, count| _mm256_maskstore_pd(to, mask(count, 8), x);
    |a, b| {
        let (even, odd) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
        [_mm256_permute4x64_pd::<0b11_01_10_00>(even), _mm256_permute4x64_pd::<0b11_01_10_00>(odd)]
    });
}
