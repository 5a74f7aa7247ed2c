//! How far a sum of products may be from its value, whatever the order of summation.

use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;

/// The largest error of `scale * sum(a_i b_i) + update`, rounded to the output's type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    /// Types of operands, sums and results.
    pub(crate) types: ElementTypes,
    /// Products of a sum.
    pub(crate) length: usize,
    /// Whether any order of summation is exact.
    pub(crate) exact: bool,
    /// How far each product may be from that of its operands, as a fraction of it, where operands may be rounded: to tf32, or to two
    /// parts of tf32.
    pub(crate) rounding: f64,
}

impl Bound {
    /// Of an element with this value and this scaled sum in it, where `norms` is the factor's magnitude times the 2-norms of what is
    /// multiplied (Cauchy-Schwarz over the sum of absolute products).
    pub(crate) fn of(&self, norms: f64, sum: f64, value: f64) -> f32 {
        if self.exact {
            return 0.0;
        }
        let ElementTypes { accumulator, output, .. } = self.types;
        let u = accumulator.unit_roundoff();
        // Three roundings of the update act on both of its terms; what it adds is at most |result| + |scaled sum|.
        let summed = self.summing(norms, sum) + 4.0 * norms;
        let bound = u * summed * self.parts() + self.rounding * norms + 4.0 * u * value.abs();
        let bound = bound + (self.length as f64 + 4.0) * least(accumulator);
        // The result is rounded once more where it is of another type.
        let once = if output == accumulator { 0.0 } else { output.unit_roundoff() };
        let bound = bound * (1.0 + once) + once * value.abs() + least(output);
        // A bound must not round down to nothing.
        if bound.is_finite() { (bound as f32).next_up() } else { 0.0 }
    }

    /// What a sum of rounded products is off by, in units of the accumulator.
    ///
    /// The first is the worst case, the second holds with overwhelming probability for rounding errors of random sign
    /// (Higham and Mary, *A new approach to probabilistic rounding error analysis*, 2019, with lambda = 6).
    ///
    /// Tensor cores cut instead (Fasi, Higham, Mikaitis and Pranesh, *Numerical behavior of NVIDIA tensor cores*, 2021). Of four
    /// products and what they are added to, each loses less than a unit of the largest, and the result two units of itself: 7 units
    /// for four products in the worst case. What the result loses has its sign: a part of the errors adds up, at most as much as
    /// that of sums that only grow.
    fn summing(&self, norms: f64, sum: f64) -> f64 {
        let k = self.length as f64;
        let random = (6.0 * k.sqrt() + 16.0) * norms;
        if self.may_be_cut() {
            ((1.75 * k + 8.0) * norms).min(random + 0.5 * k * sum.abs())
        } else {
            ((k + 4.0) * norms).min(random)
        }
    }

    /// Whether there are tensor cores for it that do not round to nearest: those that sum in binary32.
    fn may_be_cut(&self) -> bool {
        let narrow = matches!(self.types.operand, DType::F16 | DType::Bf16 | DType::Tf32);
        self.types.accumulator == DType::F32 && (narrow || self.rounding > 0.0)
    }

    /// Parts of operands that were rounded to tf32 have larger products than the operands, by less than five units.
    fn parts(&self) -> f64 {
        if self.rounding > 0.0 { 1.0 + 5.0 * DType::Tf32.unit_roundoff() } else { 1.0 }
    }
}

/// The error of rounding where numbers are too small for relative errors. Of types with eight bits of exponent and more it is
/// less than what bounds are rounded by.
fn least(dtype: DType) -> f64 {
    if dtype == DType::F16 { 2f64.powi(-25) } else { 0.0 }
}
