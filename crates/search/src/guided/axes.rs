//! Where the values of the parameters lie on the axes that a surrogate measures distances on.

use tilewright_core::expr::Value;
use tilewright_core::space::Param;

/// The distances between the values of one parameter.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// Which parameter.
    pub(crate) param: usize,
    /// Number of its values.
    pub(crate) count: usize,
    /// Distance of every two values, row by row; from 0 to 1.
    pub(crate) distance: Vec<f32>,
}

/// The axes of the parameters that take more than one value.
pub(crate) fn axes(params: &[Param]) -> Vec<Axis> {
    let varied = params.iter().enumerate().filter(|(_, p)| p.values.len() > 1);
    varied.map(|(param, p)| Axis { param, count: p.values.len(), distance: distances(&p.values) }).collect()
}

/// Sizes lie on a log scale, since what matters is how often one fits into another; other numbers in their order; words
/// are as far from each other as can be.
fn distances(values: &[Value]) -> Vec<f32> {
    let numbers: Option<Vec<f64>> = values.iter().map(Value::as_f64).collect();
    let Some(numbers) = numbers else {
        let far = |i: usize, j: usize| f32::from(u8::from(i != j));
        return table(values.len(), far);
    };
    let (least, most) = numbers.iter().fold((f64::INFINITY, 0.0_f64), |(l, m), &x| (l.min(x), m.max(x)));
    let places: Vec<f64> = if least > 0.0 && most >= 4.0 * least {
        numbers.iter().map(|x| (x / least).ln() / (most / least).ln()).collect()
    } else {
        let rank = |x: &f64| numbers.iter().filter(|y| *y < x).count() as f64 / (numbers.len() - 1) as f64;
        numbers.iter().map(rank).collect()
    };
    table(values.len(), |i, j| (places[i] - places[j]).abs() as f32)
}

fn table(count: usize, of: impl Fn(usize, usize) -> f32) -> Vec<f32> {
    (0..count * count).map(|at| of(at / count, at % count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_logarithmic_flags_are_apart_and_words_are_equally_far() {
        let params = [
            Param::ints("tile", [1, 2, 4, 16]),
            Param::ints("only", [3]),
            Param::ints("flag", [0, 1]),
            Param::words("order", ["row", "column", "tiled"]),
        ];
        let axes = axes(&params);
        assert_eq!(axes.iter().map(|a| a.param).collect::<Vec<_>>(), [0, 2, 3]);
        assert_eq!(axes[0].distance[..4], [0.0, 0.25, 0.5, 1.0]);
        assert_eq!(axes[1].distance, [0.0, 1.0, 1.0, 0.0]);
        assert_eq!(axes[2].distance, [0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0]);
    }
}
