//! The base-two logarithm of a slice, in plain arithmetic that compilers turn into SIMD.
//!
//! Training and inference share this one function: rows of a search are transformed a million at a time, and a model
//! must see the very bits it was trained on, whatever the instruction set.

/// Replaces every positive, finite, normal value by its base-two logarithm.
///
/// Exact at powers of two; elsewhere within 4 units in the last place of the result's integer part. Zero, negative and
/// non-finite values give unspecified finite results: the caller puts them right.
#[inline(always)]
pub(crate) fn log2_in_place(values: &mut [f32]) {
    for value in values {
        *value = log2(*value);
    }
}

/// `log2` of one value by the inverse hyperbolic tangent series on `[1/√2, √2)`.
#[inline(always)]
fn log2(value: f32) -> f32 {
    const SQRT_HALF_BITS: i32 = 0x3f35_04f3;
    const TWO_OVER_LN_2: f32 = 2.0 * std::f32::consts::LOG2_E;
    let bits = value.to_bits() as i32;
    let exponent = bits.wrapping_sub(SQRT_HALF_BITS) >> 23;
    let mantissa = f32::from_bits(bits.wrapping_sub(exponent << 23) as u32);
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let s2 = s * s;
    // |s| <= 0.172, so the first term left out is below 2e-8 of the result.
    let series = s2 * (1.0 / 3.0 + s2 * (1.0 / 5.0 + s2 * (1.0 / 7.0 + s2 * (1.0 / 9.0))));
    exponent as f32 + TWO_OVER_LN_2 * (s + s * series)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn powers_of_two_are_exact() {
        for exponent in -100..100 {
            assert_eq!(log2(2f32.powi(exponent)), exponent as f32);
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_library(value in 1e-30f32..1e30) {
            let exact = f64::from(value).log2();
            let bound = 1e-6 + 2.5e-7 * exact.abs();
            prop_assert!((f64::from(log2(value)) - exact).abs() <= bound, "{value}: {} {exact}", log2(value));
        }
    }
}
