//! Inner products with several sums at once: one sum alone would have to wait for itself.

/// Sums under way.
const LANES: usize = 8;

pub(crate) fn dot32(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0_f32; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = a.remainder().iter().zip(b.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a.zip(b) {
        (0..LANES).for_each(|i| sums[i] += x[i] * y[i]);
    }
    sums.iter().sum::<f32>() + rest
}

pub(crate) fn dot64(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0_f64; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a.zip(b) {
        (0..LANES).for_each(|i| sums[i] += x[i] * y[i]);
    }
    sums.iter().sum::<f64>() + rest
}
