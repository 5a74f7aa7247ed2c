//! Sums as tensor cores make them: aligned to the largest exponent and cut off.
//!
//! The hardware adds a few exact products and the accumulator at a time. All are shifted to the largest exponent among them,
//! bits that fall off the end of the fixed-point number are lost, and the sum is cut off to binary32 or rounded to binary16
//! before the next few follow (Fasi, Higham, Mikaitis and Pranesh 2021, "Numerical behavior of NVIDIA tensor cores"; Khattak
//! and Mikaitis 2025, "Accurate models of NVIDIA tensor cores", who find the numbers below by comparing bits).
//!
//! | tensor cores | products at a time: 16 bits, tf32 | bits behind the 24th |
//! |---|---|---|
//! | Volta | 4, - | 0 |
//! | Ampere, Ada | 8, 4 | 1 |
//! | Hopper | 16, 8 | 2 |
//!
//! Code for a target runs on later devices too, so that here it gets the least exact that can run it: Ampere's, and Volta's
//! for targets before `sm_80`.

use crate::kernel::Multiply;
use crate::rounding::{HALF, Round, SINGLE, narrow, power, widen};
use crate::types::Ty;

/// Bits of binary32 behind its leading one.
const FRACTION: i32 = 23;

/// How many products are added at a time, and how exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TensorCore {
    products: usize,
    extra_bits: i32,
    /// The exponent of the least normal factor: smaller ones are not normalised before they are multiplied.
    lowest: i32,
    sum: Ty,
}

impl TensorCore {
    /// The one that adds up an instruction's products; `None` where sums are exact or those of IEEE 754.
    pub(super) fn of(multiply: &Multiply, before_ampere: bool) -> Option<Self> {
        let (products, lowest) = match multiply.factors[0] {
            Ty::F16 => (8, -14),
            Ty::Bf16 => (8, -126),
            Ty::Tf32 => (4, -126),
            _ => return None,
        };
        let (products, extra_bits) = if before_ampere { (4, 0) } else { (products, 1) };
        Some(Self { products, extra_bits, lowest, sum: multiply.sum })
    }

    /// One element of the result from a row of A, a column of B and an element of C.
    pub(super) fn sum(&self, a: &[f64], b: &[f64], c: f64) -> f64 {
        a.chunks(self.products).zip(b.chunks(self.products)).fold(c, |sum, (a, b)| self.add(a, b, sum))
    }

    /// A few products and what came before them.
    fn add(&self, a: &[f64], b: &[f64], c: f64) -> f64 {
        let plain = a.iter().zip(b).fold(c, |sum, (a, b)| sum + a * b);
        if !plain.is_finite() {
            return plain;
        }
        let product = |(a, b): (&f64, &f64)| exponent(*a, self.lowest) + exponent(*b, self.lowest);
        let products = a.iter().zip(b).filter(|(a, b)| **a * **b != 0.0);
        let largest = products.clone().map(product).chain((c != 0.0).then(|| exponent(c, -126))).max();
        let Some(largest) = largest else { return 0.0 };
        // Powers of two within binary64: factors have at most 8 bits of exponent, so that products lie above 2^-300.
        let unit = power(largest - FRACTION - self.extra_bits);
        let cut = |x: f64| (x / unit).trunc();
        let sum = products.fold(cut(c), |sum, (a, b)| sum + cut(a * b)) * unit;
        self.rounded(if sum == 0.0 { 0.0 } else { sum })
    }

    /// What is kept of a sum. One that is too large is infinite, also where it is cut off.
    fn rounded(&self, sum: f64) -> f64 {
        match self.sum {
            Ty::F16 => widen(narrow(sum, HALF, Round::Nearest), HALF),
            _ if sum.abs() >= power(128) => f64::INFINITY.copysign(sum),
            _ => widen(narrow(sum, SINGLE, Round::Zero), SINGLE),
        }
    }
}

/// The exponent of a finite number, at least that of the least normal one of its format.
fn exponent(x: f64, lowest: i32) -> i32 {
    ((x.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(lowest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AMPERE: TensorCore = TensorCore { products: 8, extra_bits: 1, lowest: -14, sum: Ty::F32 };
    const VOLTA: TensorCore = TensorCore { products: 4, extra_bits: 0, lowest: -14, sum: Ty::F32 };

    fn two(e: i32) -> f64 {
        f64::powi(2.0, e)
    }

    /// A sum of terms, each a product with one.
    fn sum(core: TensorCore, terms: &[f64], c: f64) -> f64 {
        core.sum(terms, &vec![1.0; terms.len()], c)
    }

    #[test]
    fn bits_beyond_the_largest_exponent_are_cut_off() {
        // One bit behind the 24 of binary32 is kept on Ampere, and two of it carry.
        assert_eq!(sum(AMPERE, &[two(-24); 2], 1.0), 1.0 + two(-23));
        assert_eq!(sum(VOLTA, &[two(-24); 2], 1.0), 1.0);
        assert_eq!(sum(AMPERE, &[two(-14) * two(-10); 8], 1.0 + two(-23)), 1.0 + 5.0 * two(-23));
        assert_eq!(sum(AMPERE, &[two(-25); 8], 1.0), 1.0);
        // Towards zero, on both sides of it.
        assert_eq!(sum(AMPERE, &[-two(-25); 8], -1.0), -1.0);
        assert_eq!(sum(AMPERE, &[-two(-24)], 1.0), 1.0 - two(-24));
        assert_eq!(sum(AMPERE, &[two(-24)], 1.0), 1.0);
    }

    #[test]
    fn a_few_products_come_before_the_next_ones() {
        // The small ones are lost beside the large one, and kept in a group of their own.
        let (large, mut terms) = (4096.0, [two(-14); 16]);
        terms[0] = large;
        terms[8] = -large;
        assert_eq!(sum(AMPERE, &terms, 0.0), 0.0);
        terms[8] = two(-14);
        terms[1] = -large;
        assert_eq!(sum(AMPERE, &terms, 0.0), 8.0 * two(-14));
    }

    #[test]
    fn exponents_of_products_are_not_normalised() {
        // 1.5 times 1.5 has the exponent of one: a bit more of what is small beside it is kept.
        let kept = AMPERE.sum(&[1.5, two(-14)], &[1.5, two(-10)], 0.0);
        assert_eq!(kept, 2.25);
        assert_eq!(AMPERE.sum(&[1.5, two(-14), two(-14)], &[1.5, two(-10), two(-10)], 0.0), 2.25);
        assert_eq!(AMPERE.sum(&[1.5, -two(-14)], &[1.5, two(-10)], 0.0), 2.25 - two(-22));
    }

    #[test]
    fn halves_are_rounded_and_what_is_no_number_stays() {
        let core = TensorCore { sum: Ty::F16, ..AMPERE };
        assert_eq!(sum(core, &[1.0, two(-11), two(-12)], 0.0), 1.0 + two(-10));
        assert_eq!(sum(core, &[65504.0, 32.0], 0.0), f64::INFINITY);
        assert!(sum(AMPERE, &[f64::INFINITY, f64::NEG_INFINITY], 0.0).is_nan());
        assert_eq!(sum(AMPERE, &[1.0], f64::NEG_INFINITY), f64::NEG_INFINITY);
        assert_eq!(sum(AMPERE, &[65504.0; 8], f64::from(f32::MAX)), f64::from(f32::MAX));
        let brain = TensorCore { lowest: -126, ..AMPERE };
        assert_eq!(brain.sum(&[two(127); 2], &[1.0; 2], 0.0), f64::INFINITY);
        assert_eq!(brain.sum(&[two(-100)], &[two(-49)], 0.0), two(-149));
        assert_eq!(brain.sum(&[two(-100)], &[-two(-50)], 0.0), 0.0);
        assert_eq!(sum(AMPERE, &[1.0, -1.0], -0.0).to_bits(), 0);
    }
}
