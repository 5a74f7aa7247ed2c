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
        let row = |i: usize| {
            let mut row = self.products[i * self.width..=i * self.width + i].to_vec();
            let scale = if intercept { self.weight } else { row[i] };
            let penalty = if intercept && i == 0 { 1e-12 } else { ridge };
            row[i] += penalty * scale + f64::MIN_POSITIVE;
            row
        };
        let factor = Cholesky::of((0..self.width).map(row).collect())?;
        let mut x = self.targets.clone();
        factor.solve(&mut x);
        x.iter().all(|v| v.is_finite()).then(|| x.iter().map(|&v| v as f32).collect())
    }
}

/// A positive definite matrix as L L'.
pub(crate) struct Cholesky {
    /// Row i has i + 1 numbers.
    rows: Vec<Vec<f64>>,
}

impl Cholesky {
    /// Of a lower triangle; none where the matrix is not positive definite.
    pub(crate) fn of(mut rows: Vec<Vec<f64>>) -> Option<Self> {
        for i in 0..rows.len() {
            let (above, own) = rows.split_at_mut(i);
            let own = &mut own[0];
            for (j, other) in above.iter().enumerate() {
                own[j] = (own[j] - dot64(&own[..j], &other[..j])) / other[j];
            }
            let rest = own[i] - dot64(&own[..i], &own[..i]);
            if rest.is_nan() || rest <= 0.0 {
                return None;
            }
            own[i] = rest.sqrt();
        }
        Some(Self { rows })
    }

    /// Solves in place.
    pub(crate) fn solve(&self, x: &mut [f64]) {
        for (i, row) in self.rows.iter().enumerate() {
            x[i] = (x[i] - dot64(&row[..i], &x[..i])) / row[i];
        }
        for (i, row) in self.rows.iter().enumerate().rev() {
            x[i] /= row[i];
            let (known, own) = x.split_at_mut(i);
            known.iter_mut().zip(row).for_each(|(k, r)| *k -= r * own[0]);
        }
    }
}

fn dot64(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0f64; 8];
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a8.remainder().iter().zip(b8.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a8.zip(b8) {
        for (lane, (x, y)) in lanes.iter_mut().zip(x.iter().zip(y)) {
            *lane += x * y;
        }
    }
    lanes.iter().sum::<f64>() + rest
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
