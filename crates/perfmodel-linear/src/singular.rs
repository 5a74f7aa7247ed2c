//! Singular values, and what a singular matrix does not tell apart.

use ndarray::{Array1, Array2, ArrayView1};

/// Sweeps of rotations; a few suffice, each squares what is left.
const SWEEPS: usize = 60;

/// Singular values and right singular vectors (columns) of a tall matrix, by one-sided Jacobi rotations.
pub(crate) fn decompose(a: &Array2<f64>) -> (Array1<f64>, Array2<f64>) {
    let mut u = a.clone();
    let n = a.ncols();
    let mut v = Array2::<f64>::eye(n);
    for _ in 0..SWEEPS {
        let mut turned = 0.0f64;
        for i in 0..n {
            for j in i + 1..n {
                turned = turned.max(rotate(&mut u, &mut v, i, j));
            }
        }
        if turned < 1e-15 {
            break;
        }
    }
    let values = u.columns().into_iter().map(|c| c.dot(&c).sqrt()).collect();
    (values, v)
}

/// Makes two columns orthogonal; how far they were from it.
fn rotate(u: &mut Array2<f64>, v: &mut Array2<f64>, i: usize, j: usize) -> f64 {
    let (a, b) = (u.column(i), u.column(j));
    let (aa, bb, ab) = (a.dot(&a), b.dot(&b), a.dot(&b));
    if ab == 0.0 {
        return 0.0;
    }
    let apart = ab.abs() / (aa * bb).sqrt().max(f64::MIN_POSITIVE);
    let zeta = (bb - aa) / (2.0 * ab);
    let t = zeta.signum() / (zeta.abs() + zeta.hypot(1.0));
    let c = 1.0 / t.hypot(1.0);
    let s = c * t;
    for m in [u, v] {
        for row in 0..m.nrows() {
            let (x, y) = (m[(row, i)], m[(row, j)]);
            m[(row, i)] = c * x - s * y;
            m[(row, j)] = s * x + c * y;
        }
    }
    apart
}

/// Columns scaled to length 1; the lengths.
pub(crate) fn normalised(a: &Array2<f64>) -> (Array2<f64>, Array1<f64>) {
    let lengths: Array1<f64> = a.columns().into_iter().map(|c: ArrayView1<'_, f64>| c.dot(&c).sqrt()).collect();
    (a / &lengths.mapv(|l| if l > 0.0 { l } else { 1.0 }), lengths)
}

/// Below this part of the largest, a singular value of a normalised matrix is zero.
pub(crate) const ZERO: f64 = 1e-9;

/// For each direction that rows do not see, the columns that it mixes.
pub(crate) fn indistinct(values: &Array1<f64>, vectors: &Array2<f64>) -> Vec<Vec<usize>> {
    let most = values.iter().copied().fold(0.0, f64::max);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (k, value) in values.iter().enumerate() {
        if *value > ZERO * most {
            continue;
        }
        let column = vectors.column(k);
        let largest = column.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let mixed: Vec<usize> = (0..column.len()).filter(|i| column[*i].abs() > 1e-3 * largest).collect();
        // Directions that share columns are one group: any mixture of them is as unseen.
        let (touching, apart): (Vec<_>, Vec<_>) = groups.into_iter().partition(|g| g.iter().any(|i| mixed.contains(i)));
        groups = apart;
        let mut all: Vec<usize> = touching.into_iter().flatten().chain(mixed).collect();
        all.sort_unstable();
        all.dedup();
        groups.push(all);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn values_and_vectors_multiply_to_the_matrix() {
        let a = array![[1.0, 2.0, 0.5], [0.0, 1.0, 4.0], [3.0, -1.0, 2.0], [1.0, 1.0, 1.0]];
        let (values, v) = decompose(&a);
        let gram = a.t().dot(&a);
        let again = (&v * &values.mapv(|s| s * s)).dot(&v.t());
        assert!((gram - again).iter().all(|x| x.abs() < 1e-12));
    }

    #[test]
    fn equal_columns_are_one_group() {
        let a = array![[1.0, 2.0, 2.0, 0.1], [2.0, 1.0, 1.0, 0.7], [0.5, 3.0, 3.0, 0.2], [0.3, 0.2, 0.2, 0.9]];
        let (values, v) = decompose(&a);
        assert_eq!(indistinct(&values, &v), [[1, 2]]);
    }
}
