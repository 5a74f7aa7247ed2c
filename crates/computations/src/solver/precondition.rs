//! Approximate inverses of a symmetric matrix.

use crate::description::Failure;
use crate::device::Device;
use crate::isa::on_isa;
use crate::matrix::Csr;

/// Something that is cheap to multiply with and near the inverse.
pub(super) trait Preconditioner: Sized + Send + 'static {
    /// Makes it; its time is part of the solver's.
    fn of(matrix: &Csr) -> Result<Self, Failure>;
    /// `z` becomes the approximate inverse times `r`.
    fn apply(&mut self, device: &Device, r: &[f64], z: &mut [f64]);
}

fn none<T>(row: usize, what: &'static str) -> Result<T, Failure> {
    Err(Failure::NoPreconditioner { row, what })
}

/// `y = A x`, rows dealt to the threads.
pub(super) fn product(device: &Device, matrix: &Csr, x: &[f64], y: &mut [f64]) {
    let isa = device.isa();
    device.each_range(device.balanced(&matrix.starts), y, |rows, y| on_isa!(isa, matrix.rows_times(x, rows, y)));
}

/// The inverse of the diagonal.
pub(super) struct Jacobi(Vec<f64>);

impl Preconditioner for Jacobi {
    fn of(matrix: &Csr) -> Result<Self, Failure> {
        let mut inverse = vec![0.0; matrix.rows()];
        for (row, column, value) in matrix.entries() {
            if row == column {
                inverse[row] = 1.0 / value;
            }
        }
        match inverse.iter().position(|v| *v == 0.0 || !v.is_finite()) {
            Some(row) => none(row, "no diagonal"),
            None => Ok(Self(inverse)),
        }
    }

    fn apply(&mut self, device: &Device, r: &[f64], z: &mut [f64]) {
        on_isa!(device.isa(), {
            for ((z, r), d) in z.iter_mut().zip(r).zip(&self.0) {
                *z = r * d;
            }
        });
    }
}

/// Rows and columns of a block.
const BLOCK: usize = 4;

/// The inverses of the blocks on the diagonal; a shorter one at the end is filled up with the identity.
pub(super) struct BlockJacobi(Vec<[[f64; BLOCK]; BLOCK]>);

impl Preconditioner for BlockJacobi {
    fn of(matrix: &Csr) -> Result<Self, Failure> {
        let rows = matrix.rows();
        let mut blocks = vec![[[0.0; BLOCK]; BLOCK]; rows.div_ceil(BLOCK)];
        for (row, column, value) in matrix.entries().filter(|(r, c, _)| r / BLOCK == c / BLOCK) {
            blocks[row / BLOCK][row % BLOCK][column % BLOCK] = value;
        }
        for row in rows..blocks.len() * BLOCK {
            blocks[row / BLOCK][row % BLOCK][row % BLOCK] = 1.0;
        }
        for (i, block) in blocks.iter_mut().enumerate() {
            let Some(inverse) = inverted(*block) else { return none(i * BLOCK, "a singular block") };
            *block = inverse;
        }
        Ok(Self(blocks))
    }

    fn apply(&mut self, device: &Device, r: &[f64], z: &mut [f64]) {
        let blocks = &self.0;
        on_isa!(device.isa(), {
            for ((z, r), block) in z.chunks_mut(BLOCK).zip(r.chunks(BLOCK)).zip(blocks) {
                let mut own = [0.0; BLOCK];
                own[..r.len()].copy_from_slice(r);
                let mut sums = [0.0; BLOCK];
                for (row, sum) in block.iter().zip(&mut sums) {
                    *sum = (row[0] * own[0] + row[1] * own[1]) + (row[2] * own[2] + row[3] * own[3]);
                }
                z.copy_from_slice(&sums[..z.len()]);
            }
        });
    }
}

/// Gauss and Jordan's elimination with the largest pivot of each column.
fn inverted(mut a: [[f64; BLOCK]; BLOCK]) -> Option<[[f64; BLOCK]; BLOCK]> {
    let mut inverse = [[0.0; BLOCK]; BLOCK];
    (0..BLOCK).for_each(|i| inverse[i][i] = 1.0);
    let largest = a.iter().flatten().fold(0.0, |m: f64, v| m.max(v.abs()));
    for k in 0..BLOCK {
        let pivot = (k..BLOCK).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs()))?;
        if a[pivot][k].is_nan() || a[pivot][k].abs() <= 1e-14 * largest {
            return None;
        }
        a.swap(k, pivot);
        inverse.swap(k, pivot);
        let scale = 1.0 / a[k][k];
        (a[k], inverse[k]) = (a[k].map(|v| v * scale), inverse[k].map(|v| v * scale));
        let (a_row, inverse_row) = (a[k], inverse[k]);
        for i in (0..BLOCK).filter(|&i| i != k) {
            let factor = a[i][k];
            for j in 0..BLOCK {
                a[i][j] -= factor * a_row[j];
                inverse[i][j] -= factor * inverse_row[j];
            }
        }
    }
    Some(inverse)
}

/// Kolotilina and Yeremin's factorised sparse approximate inverse: `G^T G` with `G` as sparse as the lower triangle.
pub(super) struct FactorisedInverse {
    factor: Csr,
    transposed: Csr,
    middle: Vec<f64>,
}

/// Longer rows of the factor keep the entries nearest to the diagonal.
const MOST_IN_ROW: usize = 24;

impl Preconditioner for FactorisedInverse {
    fn of(matrix: &Csr) -> Result<Self, Failure> {
        let rows = matrix.rows();
        let mut factor = Csr { cols: rows, starts: vec![0], columns: Vec::new(), values: Vec::new() };
        let mut local = Vec::new();
        for row in 0..rows {
            let (columns, _) = matrix.row(row);
            let end = columns.partition_point(|&c| c as usize <= row);
            let pattern = &columns[end.saturating_sub(MOST_IN_ROW)..end];
            if pattern.last() != Some(&(row as u32)) {
                return none(row, "no diagonal");
            }
            dense(matrix, pattern, &mut local);
            let Some(solved) = last_column(&mut local, pattern.len()) else {
                return none(row, "not positive definite");
            };
            let scale = 1.0 / solved[solved.len() - 1].sqrt();
            factor.columns.extend_from_slice(pattern);
            factor.values.extend(solved.iter().map(|v| v * scale));
            factor.starts.push(factor.columns.len() as u32);
        }
        let transposed = turned(&factor);
        Ok(Self { factor, transposed, middle: vec![0.0; rows] })
    }

    fn apply(&mut self, device: &Device, r: &[f64], z: &mut [f64]) {
        product(device, &self.factor, r, &mut self.middle);
        product(device, &self.transposed, &self.middle, z);
    }
}

/// The transpose by counting, without sorting.
fn turned(m: &Csr) -> Csr {
    let mut starts = vec![0u32; m.cols + 1];
    m.columns.iter().for_each(|&c| starts[c as usize + 1] += 1);
    for c in 0..m.cols {
        starts[c + 1] += starts[c];
    }
    let mut next = starts.clone();
    let (mut columns, mut values) = (vec![0; m.nonzeros()], vec![0.0; m.nonzeros()]);
    for (row, column, value) in m.entries() {
        let at = next[column] as usize;
        (columns[at], values[at]) = (row as u32, value);
        next[column] += 1;
    }
    Csr { cols: m.rows(), starts, columns, values }
}

/// The rows and columns of a pattern as a dense matrix.
fn dense(matrix: &Csr, pattern: &[u32], out: &mut Vec<f64>) {
    out.clear();
    for &row in pattern {
        let (columns, values) = matrix.row(row as usize);
        let mut at = 0;
        for &wanted in pattern {
            while columns.get(at).is_some_and(|&c| c < wanted) {
                at += 1;
            }
            let here = columns.get(at) == Some(&wanted);
            out.push(if here { values[at] } else { 0.0 });
        }
    }
}

/// The last column of the inverse of a symmetric matrix, by Cholesky's factorisation; none if it is not positive definite.
fn last_column(a: &mut [f64], n: usize) -> Option<Vec<f64>> {
    for k in 0..n {
        for j in 0..k {
            let factor = a[k * n + j];
            for i in k..n {
                a[i * n + k] -= factor * a[i * n + j];
            }
        }
        if a[k * n + k].is_nan() || a[k * n + k] <= 0.0 {
            return None;
        }
        let scale = 1.0 / a[k * n + k].sqrt();
        (k..n).for_each(|i| a[i * n + k] *= scale);
    }
    // Forward substitution leaves one number; backward substitution follows.
    let mut y = vec![0.0; n];
    y[n - 1] = 1.0 / a[n * n - 1];
    for i in (0..n).rev() {
        let sum: f64 = (i + 1..n).map(|j| a[j * n + i] * y[j]).sum();
        y[i] = (y[i] - sum) / a[i * n + i];
    }
    y.iter().all(|v| v.is_finite()).then_some(y)
}
