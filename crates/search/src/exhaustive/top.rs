//! The k best points of a stream.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use tilewright_core::space::Point;

/// A scored point; the order is by score, then by point, and NaN is the worst score.
#[derive(Clone, Debug)]
struct Entry {
    score: f32,
    point: Point,
}

impl Entry {
    fn order(&self, score: f32, point: &[u16]) -> Ordering {
        by_score(self.score, score).then_with(|| self.point.0.as_slice().cmp(point))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order(other.score, &other.point)
    }
}

fn by_score(a: f32, b: f32) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// The k best points offered so far, whatever the order of offering.
#[derive(Clone, Debug)]
pub(super) struct Top {
    k: usize,
    /// The worst one first.
    heap: BinaryHeap<Entry>,
}

impl Top {
    pub(super) fn new(k: usize) -> Self {
        Self { k, heap: BinaryHeap::new() }
    }

    /// Keeps a point if it is among the best. Points are offered once.
    #[inline]
    pub(super) fn offer(&mut self, point: &[u16], score: f32) {
        if self.heap.len() < self.k {
            self.heap.push(Entry { score, point: Point::from(point) });
        } else if let Some(mut worst) = self.heap.peek_mut()
            && worst.order(score, point).is_gt()
        {
            worst.score = score;
            worst.point.0.copy_from_slice(point);
        }
    }

    pub(super) fn merge(k: usize, tops: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self::new(k);
        for entry in tops.into_iter().flat_map(|t| t.heap) {
            all.offer(&entry.point, entry.score);
        }
        all
    }

    /// The points with their score, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u16], f32)> {
        self.heap.iter().map(|e| (e.point.0.as_slice(), e.score))
    }

    /// Best first, scores turned from logarithms into costs.
    pub(super) fn into_points(self) -> Vec<(Point, f64)> {
        let cost = |score: f32| if score.is_nan() { f64::INFINITY } else { f64::from(score).exp() };
        self.heap.into_sorted_vec().into_iter().map(|e| (e.point, cost(e.score))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_split_keeps_the_best(
            scores in prop::collection::vec(prop::sample::select(vec![-1.0f32, 0.0, 0.5, 2.0, f32::NAN, f32::INFINITY]), 0..60),
            k in 0usize..12,
            cut in 0usize..60,
        ) {
            let points: Vec<(Vec<u16>, f32)> =
                scores.iter().enumerate().map(|(i, &s)| (vec![i as u16 % 7, i as u16], s)).collect();
            let mut expected = points.clone();
            expected.sort_by(|a, b| by_score(a.1, b.1).then_with(|| a.0.cmp(&b.0)));
            expected.truncate(k);
            let (left, right) = points.split_at(cut.min(points.len()));
            let tops = [left, right].map(|part| {
                let mut top = Top::new(k);
                part.iter().for_each(|(p, s)| top.offer(p, *s));
                top
            });
            let kept: Vec<_> = Top::merge(k, tops).into_points().into_iter().map(|(p, _)| p.0).collect();
            prop_assert_eq!(kept, expected.into_iter().map(|(p, _)| p).collect::<Vec<_>>());
        }
    }

    #[test]
    fn scores_become_costs() {
        let mut top = Top::new(3);
        top.offer(&[2], f32::NAN);
        top.offer(&[1], 0.0);
        top.offer(&[0], f32::NEG_INFINITY);
        let costs: Vec<f64> = top.into_points().iter().map(|(_, c)| *c).collect();
        assert_eq!(costs, [0.0, 1.0, f64::INFINITY]);
    }
}
