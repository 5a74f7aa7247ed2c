//! Winograd's minimal filtering, F(2 x 2, 3 x 3) and F(4 x 4, 3 x 3) (Lavin and Gray, *Fast algorithms for convolutional neural
//! networks*, 2016): what kernels of all devices share.
//!
//! A tile of `m x m` outputs is `A^T [sum over channels of (G g G^T) * (B^T d B)] A`, where `*` multiplies number by number, `d` are
//! the `(m + 2) x (m + 2)` inputs of the tile and `g` is the filter. The functions of this module multiply one column by `B^T`, `G` or
//! `A^T`, for m = 2 and for m = 4; a square is transformed along its columns and then along its rows.

use super::input::{ConvInput, Direction};
use tilewright_core::computation::InputError;

/// Fewest channels of a group for which the errors of tiles of 4 x 4 are within the bound of the reference.
///
/// The bound grows with the square root of the length of the sums, above a constant; the transformations of the larger tile add
/// errors that do not shrink with the sums. Those of the smaller tile are within the bound for any number of channels.
pub const FEWEST_CHANNELS: usize = 8;

/// Refuses convolutions that are none of these: other filters than 3 x 3, strides, dilations, the gradient of filters, no channels.
///
/// # Errors
/// The field, and what there is code for.
pub fn accepts(input: &ConvInput) -> Result<(), InputError> {
    let only = |field: &str, what: &str| Err(InputError::new(field, format!("there is code for {what} only")));
    match input {
        ConvInput { direction: Direction::Filter, .. } => only("direction", "forward and data"),
        ConvInput { r, s, .. } if (*r, *s) != (3, 3) => only("r", "filters of 3 x 3"),
        ConvInput { stride, .. } if *stride != [1, 1] => only("stride_h", "a stride of 1"),
        ConvInput { dilation, .. } if *dilation != [1, 1] => only("dilation_h", "a dilation of 1"),
        ConvInput { c, k, .. } if c * k == 0 => only("c", "at least one channel and one output channel"),
        _ => Ok(()),
    }
}

/// What can be transformed: a number, a vector of them, or a register that will hold one.
pub trait Linear: Copy {
    /// The sum.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// The difference.
    #[must_use]
    fn minus(self, other: Self) -> Self;
    /// The product with a constant.
    #[must_use]
    fn times(self, by: f64) -> Self;
    /// `self + other * by`.
    #[inline(always)]
    #[must_use]
    fn plus_times(self, other: Self, by: f64) -> Self {
        self.plus(other.times(by))
    }
}

/// `B^T d` for m = 2.
#[inline(always)]
pub fn inputs_2<N: Linear>(d: [N; 4]) -> [N; 4] {
    [d[0].minus(d[2]), d[1].plus(d[2]), d[2].minus(d[1]), d[1].minus(d[3])]
}

/// `B^T d` for m = 4.
#[inline(always)]
pub fn inputs_4<N: Linear>(d: [N; 6]) -> [N; 6] {
    let (a, b) = (d[4].plus_times(d[2], -4.0), d[3].plus_times(d[1], -4.0));
    let (c, e) = (d[4].minus(d[2]), d[3].minus(d[1]).times(2.0));
    [
        d[0].times(4.0).plus_times(d[2], -5.0).plus(d[4]),
        a.plus(b),
        a.minus(b),
        c.plus(e),
        c.minus(e),
        d[1].times(4.0).plus_times(d[3], -5.0).plus(d[5]),
    ]
}

/// `G g` for m = 2.
#[inline(always)]
pub fn filters_2<N: Linear>([a, b, c]: [N; 3]) -> [N; 4] {
    let (even, odd) = (a.plus(c).times(0.5), b.times(0.5));
    [a, even.plus(odd), even.minus(odd), c]
}

/// `G g` for m = 4.
#[inline(always)]
pub fn filters_4<N: Linear>([a, b, c]: [N; 3]) -> [N; 6] {
    let (even, odd) = (a.plus(c).times(-1.0 / 6.0), b.times(1.0 / 6.0));
    let (wide, half) = (a.times(1.0 / 24.0).plus_times(c, 1.0 / 6.0), b.times(1.0 / 12.0));
    [a.times(0.25), even.minus(odd), even.plus(odd), wide.plus(half), wide.minus(half), c]
}

/// `A^T p` for m = 2.
#[inline(always)]
pub fn outputs_2<N: Linear>(p: [N; 4]) -> [N; 2] {
    [p[0].plus(p[1].plus(p[2])), p[1].minus(p[2]).minus(p[3])]
}

/// `A^T p` for m = 4.
#[inline(always)]
pub fn outputs_4<N: Linear>(p: [N; 6]) -> [N; 4] {
    let (a, b) = (p[1].plus(p[2]), p[1].minus(p[2]));
    let (c, d) = (p[3].plus(p[4]), p[3].minus(p[4]));
    [p[0].plus(a).plus(c), b.plus_times(d, 2.0), a.plus_times(c, 4.0), b.plus_times(d, 8.0).plus(p[5])]
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Linear for f64 {
        fn plus(self, other: Self) -> Self {
            self + other
        }

        fn minus(self, other: Self) -> Self {
            self - other
        }

        fn times(self, by: f64) -> Self {
            self * by
        }
    }

    /// A correlation of `T` numbers with three, by transformations.
    fn correlates<const T: usize, const M: usize>(
        inputs: fn([f64; T]) -> [f64; T],
        filters: fn([f64; 3]) -> [f64; T],
        outputs: fn([f64; T]) -> [f64; M],
    ) {
        let d: [f64; T] = std::array::from_fn(|i| ((i * 7 + 3) % 11) as f64 - 5.0);
        let g = [1.5, -2.0, 0.5];
        let (v, u) = (inputs(d), filters(g));
        let found = outputs(std::array::from_fn(|i| v[i] * u[i]));
        for (i, found) in found.into_iter().enumerate() {
            let expected: f64 = (0..3).map(|j| d[i + j] * g[j]).sum();
            assert!((found - expected).abs() < 1e-12, "{M} {i}: {found} is not {expected}");
        }
    }

    #[test]
    fn transformations_are_a_correlation() {
        correlates(inputs_2, filters_2, outputs_2);
        correlates(inputs_4, filters_4, outputs_4);
    }
}
