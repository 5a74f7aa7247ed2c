//! Least squares.

/// Sums of weighted normal equations.
#[derive(Clone, Debug)]
pub(crate) struct Normal {
    width: usize,
    /// Lower triangle of the products, row-major with full rows.
    products: Vec<f64>,
    targets: Vec<f64>,
    weight: f64,
}

impl Normal {
    pub(crate) fn new(width: usize) -> Self {
        Self { width, products: vec![0.0; width * width], targets: vec![0.0; width], weight: 0.0 }
    }

    pub(crate) fn add(&mut self, row: &[f32], target: f64, weight: f64) {
        for i in 0..self.width {
            let x = f64::from(row[i]) * weight;
            self.targets[i] += x * target;
            let products = &mut self.products[i * self.width..=i * self.width + i];
            products.iter_mut().zip(row).for_each(|(p, &y)| *p += x * f64::from(y));
        }
        self.weight += weight;
    }

    /// Coefficients with a ridge relative to the mean square of each term; the first term is not penalised where it is
    /// the intercept. None where they are not finite.
    pub(crate) fn solve(&self, ridge: f64, intercept: bool) -> Option<Vec<f32>> {
        let n = self.width;
        let mut a = self.products.clone();
        for i in 0..n {
            let scale = if intercept { self.weight } else { a[i * n + i] };
            let penalty = if intercept && i == 0 { 1e-12 } else { ridge };
            a[i * n + i] += penalty * scale + f64::MIN_POSITIVE;
        }
        let mut x = self.targets.clone();
        cholesky_solve(&mut a, &mut x)?;
        x.iter().all(|v| v.is_finite()).then(|| x.iter().map(|&v| v as f32).collect())
    }
}

/// Solves in place, given the lower triangle of a positive definite matrix. None where it is not one.
fn cholesky_solve(a: &mut [f64], x: &mut [f64]) -> Option<()> {
    let n = x.len();
    for i in 0..n {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| a[i * n + k] * a[j * n + k]).sum();
            let rest = a[i * n + j] - known;
            a[i * n + j] = match i == j {
                true if rest > 0.0 => rest.sqrt(),
                true => return None,
                false => rest / a[j * n + j],
            };
        }
        let known: f64 = (0..i).map(|k| a[i * n + k] * x[k]).sum();
        x[i] = (x[i] - known) / a[i * n + i];
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|k| a[k * n + i] * x[k]).sum();
        x[i] = (x[i] - known) / a[i * n + i];
    }
    Some(())
}

/// Inner product, in lanes so that it needs no chain of additions.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0f32; 8];
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f32 = a8.remainder().iter().zip(b8.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a8.zip(b8) {
        for (lane, (x, y)) in lanes.iter_mut().zip(x.iter().zip(y)) {
            *lane += x * y;
        }
    }
    lanes.iter().sum::<f32>() + rest
}
