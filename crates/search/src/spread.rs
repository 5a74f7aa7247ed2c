//! Choosing what to time from a model's ranking.

use tilewright_core::space::Point;

/// How many of a model's best are looked at, for each one that is timed.
pub const RANKED_PER_TIMED: usize = 100;

/// Share of the timed ones that are simply the model's best.
const PLAIN: f64 = 0.4;

/// Of points ranked best first, `count` to be timed, in their order: the best, and the best that differ from everything
/// better by a fifth of their parameters.
///
/// The first points of a ranking differ in parameters that hardly matter, so that timing them all is timing one thing
/// many times; and a model's error is far larger than what it sees between them.
pub fn spread(ranked: Vec<(Point, f64)>, count: usize) -> Vec<(Point, f64)> {
    if ranked.len() <= count {
        return ranked;
    }
    let apart = ranked[0].0.len().div_ceil(5);
    let plain = (PLAIN * count as f64).ceil() as usize;
    let mut chosen: Vec<usize> = (0..plain).collect();
    let mut centres: Vec<usize> = Vec::new();
    for (i, (point, _)) in ranked.iter().enumerate() {
        if chosen.len() == count {
            break;
        }
        if centres.iter().all(|&c| distance(&ranked[c].0, point) >= apart) {
            centres.push(i);
            if i >= plain {
                chosen.push(i);
            }
        }
    }
    let rest: Vec<usize> = (plain..ranked.len()).filter(|i| !chosen.contains(i)).take(count - chosen.len()).collect();
    chosen.extend(rest);
    let mut keep = vec![false; ranked.len()];
    chosen.into_iter().for_each(|i| keep[i] = true);
    ranked.into_iter().zip(keep).filter(|(_, keep)| *keep).map(|(r, _)| r).collect()
}

/// In how many parameters two points differ.
fn distance(a: &Point, b: &Point) -> usize {
    a.iter().zip(b.iter()).filter(|(a, b)| a != b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten groups of ten points that differ in the last two of six parameters, group by group.
    fn ranked() -> Vec<(Point, f64)> {
        let point = |i: u16| Point(vec![i / 10, i / 10, i / 10, i / 10, i % 10 / 5, i % 5]);
        (0..100).map(|i| (point(i), f64::from(i))).collect()
    }

    #[test]
    fn every_group_has_a_part_and_the_best_have_theirs() {
        let found = spread(ranked(), 10);
        assert_eq!(found.len(), 10);
        assert!(found.is_sorted_by(|a, b| a.1 < b.1), "the order of the ranking is kept");
        assert_eq!(found.iter().take(4).map(|f| f.1).collect::<Vec<_>>(), [0.0, 1.0, 2.0, 3.0]);
        let groups: std::collections::BTreeSet<u16> = found.iter().map(|f| f.0.0[0]).collect();
        assert!(groups.len() >= 3, "{groups:?}");
    }

    #[test]
    fn short_and_uniform_rankings_are_kept_whole() {
        assert_eq!(spread(ranked(), 100).len(), 100);
        assert_eq!(spread(ranked(), 1000).len(), 100);
        assert_eq!(spread(ranked(), 1), ranked()[..1]);
        let same: Vec<(Point, f64)> = (0..50).map(|i| (Point(vec![i]), 0.0)).collect();
        assert_eq!(spread(same, 20).len(), 20);
        let near: Vec<(Point, f64)> = (0..50).map(|i| (Point(vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 0, i]), 0.0)).collect();
        assert_eq!(spread(near.clone(), 20), near[..20], "without other kinds the best are taken");
    }
}
