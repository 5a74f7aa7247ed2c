//! What earlier searches and other devices say of the points of a space.

/// Costs of the listed points elsewhere, one view a recording.
///
/// Levels differ between devices and mean nothing here: a view says how much slower than its own fastest a point is.
#[derive(Clone, Debug, Default)]
pub struct Experience {
    size: usize,
    /// By view and point: log cost above the view's least, drawn together where it is slow; NaN where nothing is known.
    pub(crate) views: Vec<Vec<f32>>,
}

impl Experience {
    /// Nothing yet of a space of `size` points.
    pub fn new(size: usize) -> Self {
        Self { size, views: Vec::new() }
    }

    /// Adds what one device says: the cost by number of the point, where it is known. Costs of other lengths than the
    /// space's, and views without a cost, are left out.
    pub fn add(&mut self, costs: Vec<Option<f64>>) {
        let least = costs.iter().flatten().copied().filter(|c| *c > 0.0).fold(f64::INFINITY, f64::min);
        if costs.len() != self.size || !least.is_finite() {
            return;
        }
        let view = |cost: &Option<f64>| cost.map_or(f32::NAN, |c| (1.0 + (c / least).ln()).ln() as f32);
        self.views.push(costs.iter().map(view).collect());
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }
}
