//! What earlier searches and other devices say of the points of a space.

use crate::listing::Listing;
use std::collections::BTreeMap;
use tilewright_core::space::Point;

/// Costs of points elsewhere, one view a recording.
///
/// Levels differ between devices and mean nothing here: a view says how much slower than its own fastest a point is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Experience {
    /// By view: costs above 0, not empty.
    views: Vec<BTreeMap<Point, f64>>,
}

impl Experience {
    /// Adds what one device says: points of the searched space with their cost. Costs that are no positive numbers are left out,
    /// and views without a cost.
    pub fn add(&mut self, costs: impl IntoIterator<Item = (Point, f64)>) {
        let view: BTreeMap<Point, f64> = costs.into_iter().filter(|(_, c)| *c > 0.0 && c.is_finite()).collect();
        if !view.is_empty() {
            self.views.push(view);
        }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    /// Up to `count` points that are fastest elsewhere: the best of each view, then the second of each, and so on.
    pub fn best(&self, count: usize) -> Vec<Point> {
        let ranked = |view: &BTreeMap<Point, f64>| {
            let mut points: Vec<(f64, Point)> = view.iter().map(|(p, c)| (*c, p.clone())).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
            points.truncate(count);
            points
        };
        let views: Vec<Vec<(f64, Point)>> = self.views.iter().map(ranked).collect();
        let mut out: Vec<Point> = Vec::new();
        for (_, point) in (0..count).flat_map(|rank| views.iter().filter_map(move |view| view.get(rank))) {
            if out.len() < count && !out.contains(point) {
                out.push(point.clone());
            }
        }
        out
    }

    /// The views by the numbers of a list.
    pub(crate) fn on(&self, listing: &Listing) -> Views {
        let mut out = Views::new(listing.len());
        for view in &self.views {
            let mut costs = vec![None; listing.len()];
            for (point, cost) in view {
                if let Some(number) = listing.find(point) {
                    costs[number as usize] = Some(*cost);
                }
            }
            out.add(costs);
        }
        out
    }
}

/// Differences of log cost up to about a third count in full, beyond that less and less.
pub(crate) fn squash(slower: f64) -> f64 {
    (1.0 + 3.0 * slower).ln()
}

/// [`Experience`] by the number of the point.
#[derive(Clone, Debug, Default)]
pub(crate) struct Views {
    size: usize,
    /// By view and point: log cost above the view's least, drawn together where it is slow; NaN where nothing is known.
    pub(crate) views: Vec<Vec<f32>>,
}

impl Views {
    /// Nothing yet of a list of `size` points.
    pub(crate) fn new(size: usize) -> Self {
        Self { size, views: Vec::new() }
    }

    /// Adds costs by number, where they are known. Views without a cost are left out.
    pub(crate) fn add(&mut self, costs: Vec<Option<f64>>) {
        let least = costs.iter().flatten().copied().filter(|c| *c > 0.0).fold(f64::INFINITY, f64::min);
        if costs.len() != self.size || !least.is_finite() {
            return;
        }
        let view = |cost: &Option<f64>| cost.map_or(f32::NAN, |c| squash((c / least).ln()) as f32);
        self.views.push(costs.iter().map(view).collect());
    }

    /// Whether nothing is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.views.is_empty()
    }
}
