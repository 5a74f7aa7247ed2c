//! The matrices of a comparison, and an exact check of the product.
//!
//! The elements are small integers, so every partial sum of a task is an integer that f32 holds exactly: a right GEMM gives one
//! result to the last bit, whatever its order of summation, and a wrong element anywhere can be found without computing the
//! product a second time.

use crate::baseline::{CallError, GemmCall, Operand};
use crate::tasks::Layout;

/// Elements are integers of this magnitude at most, so that sums over k ≤ 2^24 / 9 are exact in f32.
const MAGNITUDE: i64 = 3;

/// Buffers start at a cache line.
const ALIGNMENT: usize = 64;

/// f32 or f64.
pub trait Element: Copy + Default + PartialEq + Send + Sync + 'static {
    /// `f32` or `f64`.
    const DTYPE: &'static str;
    /// From an integer it holds exactly.
    fn from_integer(value: i64) -> Self;
    /// To f64, exactly.
    fn to_f64(self) -> f64;
    /// Not a number.
    const NAN: Self;
}

impl Element for f32 {
    const DTYPE: &'static str = "f32";
    const NAN: Self = f32::NAN;

    fn from_integer(value: i64) -> Self {
        value as f32
    }

    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Element for f64 {
    const DTYPE: &'static str = "f64";
    const NAN: Self = f64::NAN;

    fn from_integer(value: i64) -> Self {
        value as f64
    }

    fn to_f64(self) -> f64 {
        self
    }
}

/// A cache-line aligned buffer.
#[derive(Debug)]
struct Aligned<T> {
    storage: Vec<T>,
    first: usize,
    length: usize,
}

impl<T: Element> Aligned<T> {
    fn from_fn(length: usize, element: impl FnMut(usize) -> T) -> Self {
        let mut storage = vec![T::default(); length + ALIGNMENT / size_of::<T>()];
        let first = storage.as_ptr().align_offset(ALIGNMENT).min(storage.len() - length);
        let filled = storage[first..first + length].iter_mut();
        filled.zip((0..length).map(element)).for_each(|(slot, value)| *slot = value);
        Aligned { storage, first, length }
    }

    fn as_slice(&self) -> &[T] {
        &self.storage[self.first..self.first + self.length]
    }

    fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.storage[self.first..self.first + self.length]
    }
}

/// A wrong element of a product.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("wrong result in row {row} of C: its product with a test vector is {got}, {expected} expected")]
pub struct WrongProduct {
    /// The row of C with the wrong element.
    pub row: usize,
    /// Its product with the test vector.
    pub got: f64,
    /// What that should be.
    pub expected: f64,
}

/// A, B and C of one task, with packed leading dimensions, filled with small integers.
#[derive(Debug)]
pub struct Operands<T> {
    m: usize,
    n: usize,
    k: usize,
    layout: Layout,
    a: Aligned<T>,
    b: Aligned<T>,
    c: Aligned<T>,
    c_before: u64,
}

impl<T: Element> Operands<T> {
    /// Operands of C (m × n) = op(A) · op(B) with inner size k; the same seed gives the same elements.
    pub fn new(m: usize, n: usize, k: usize, layout: Layout, seed: u64) -> Self {
        let fill = |seed: u64| move |index: usize| T::from_integer(small_integer(seed, index));
        let [sa, sb, sc] = [1, 2, 3].map(|role| mix(seed ^ mix(role)));
        Operands {
            m,
            n,
            k,
            layout,
            a: Aligned::from_fn(m * k, fill(sa)),
            b: Aligned::from_fn(k * n, fill(sb)),
            c: Aligned::from_fn(m * n, fill(sc)),
            c_before: sc,
        }
    }

    /// The GEMM call on these operands.
    ///
    /// # Errors
    /// [`CallError`] for sizes beyond 32-bit BLAS.
    pub fn call(&mut self, alpha: T, beta: T) -> Result<GemmCall<'_, T>, CallError> {
        let a_rows = if self.layout.a_transposed { self.k } else { self.m };
        let b_rows = if self.layout.b_transposed { self.n } else { self.k };
        let a = Operand { data: self.a.as_slice(), ld: a_rows.max(1) };
        let b = Operand { data: self.b.as_slice(), ld: b_rows.max(1) };
        let c = Operand { data: self.c.as_mut_slice(), ld: self.m.max(1) };
        GemmCall::new((self.m, self.n, self.k), self.layout, (alpha, beta), a, b, c)
    }

    /// A, B and C, for a contender that is not a [`crate::baseline::Baseline`].
    pub fn slices(&mut self) -> (&[T], &[T], &mut [T]) {
        (self.a.as_slice(), self.b.as_slice(), self.c.as_mut_slice())
    }

    /// Puts back the C that `new` made.
    pub fn reset_c(&mut self) {
        let seed = self.c_before;
        let c = self.c.as_mut_slice().iter_mut();
        c.enumerate().for_each(|(index, slot)| *slot = T::from_integer(small_integer(seed, index)));
    }

    /// Fills C with NaN, so that an element that is read although beta is 0, or never written, cannot go unseen.
    pub fn poison_c(&mut self) {
        self.c.as_mut_slice().fill(T::NAN);
    }

    /// Checks every element of C after one call on the C that [`Operands::reset_c`] makes (or any, if beta is 0), by
    /// comparing C·x with alpha·op(A)·(op(B)·x) + beta·C₀·x for a random integer vector x (Freivalds, 1977). All numbers are
    /// integers, so equality is exact and a wrong C passes with a probability below 2^-19. alpha and beta must be integers.
    ///
    /// # Errors
    /// [`WrongProduct`] names the first row that differs.
    pub fn verify(&self, alpha: i64, beta: i64) -> Result<(), WrongProduct> {
        // at most 2^20 · 9 · 60000 · columns: within the 2^53 of f64 for all tasks
        let x: Vec<f64> = (0..self.n).map(|j| (mix(0x5eed ^ j as u64) >> 44) as f64).collect();
        let (a, b) = (self.a.as_slice(), self.b.as_slice());
        let bx = product(b, self.k, self.n, self.layout.b_transposed, &x);
        let abx = product(a, self.m, self.k, self.layout.a_transposed, &bx);
        let cx = product(self.c.as_slice(), self.m, self.n, false, &x);
        let seed = self.c_before;
        for (row, (&got, &abx)) in cx.iter().zip(&abx).enumerate() {
            let mut expected = alpha as f64 * abx;
            if beta != 0 {
                let before = |j: usize| small_integer(seed, row + j * self.m) as f64;
                expected += beta as f64 * x.iter().enumerate().map(|(j, x)| before(j) * x).sum::<f64>();
            }
            // written so that NaN differs
            if got.partial_cmp(&expected) != Some(std::cmp::Ordering::Equal) {
                return Err(WrongProduct { row, got, expected });
            }
        }
        Ok(())
    }
}

/// op(M) · x in f64, op(M) rows × columns and packed.
fn product<T: Element>(matrix: &[T], rows: usize, columns: usize, transposed: bool, x: &[f64]) -> Vec<f64> {
    let mut y = vec![0.0; rows];
    if rows == 0 || columns == 0 {
        return y;
    }
    if transposed {
        for (y, row) in y.iter_mut().zip(matrix.chunks_exact(columns)) {
            *y = row.iter().zip(x).map(|(&element, x)| element.to_f64() * x).sum();
        }
    } else {
        for (&x, column) in x.iter().zip(matrix.chunks_exact(rows)) {
            y.iter_mut().zip(column).for_each(|(y, &element)| *y += element.to_f64() * x);
        }
    }
    y
}

/// Uniform over -MAGNITUDE..=MAGNITUDE.
fn small_integer(seed: u64, index: usize) -> i64 {
    let span = 2 * MAGNITUDE as u64 + 1;
    (((mix(seed.wrapping_add(index as u64)) >> 32) * span) >> 32) as i64 - MAGNITUDE
}

/// SplitMix64's finaliser (Steele, Lea and Flood, 2014).
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
