//! What a model expects to be the best near given points.

use crate::model::Model;
use crate::neighbourhood::{Neighbourhood, Reach};
use std::collections::HashMap;
use tilewright_core::space::{BoundSpace, Point};

/// The best starts that are followed uphill.
const CLIMBS: usize = 8;

/// Steps of a climb at most.
const STEPS: u32 = 40;

/// Up to `count` points that the model expects to be the best: the ends of climbs over changes of one parameter, from the best of
/// the starts, which are legal; then the best of all that were looked at on the way.
pub fn suggest(space: &BoundSpace, model: Model<'_>, mut starts: Vec<Point>, count: usize) -> Vec<Point> {
    starts.sort();
    starts.dedup();
    let mut scored = Scored { space, model, seen: HashMap::new() };
    let starts: Vec<(f32, Point)> = scored.best_of(starts).into_iter().take(CLIMBS).collect();
    let mut ends: Vec<(f32, Point)> = starts.into_iter().map(|start| scored.climb(start)).collect();
    let mut rest: Vec<(f32, Point)> = scored.seen.into_iter().map(|(point, score)| (score, point)).collect();
    ends.sort_by(order);
    rest.sort_by(order);
    let mut out: Vec<Point> = Vec::new();
    for (_, point) in ends.into_iter().chain(rest) {
        if out.len() == count {
            break;
        }
        if !out.contains(&point) {
            out.push(point);
        }
    }
    out
}

fn order(a: &(f32, Point), b: &(f32, Point)) -> std::cmp::Ordering {
    a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1))
}

/// Scores that are asked for once.
struct Scored<'a> {
    space: &'a BoundSpace,
    model: Model<'a>,
    seen: HashMap<Point, f32>,
}

impl Scored<'_> {
    /// The points, those included that were looked at before, best first, with their scores.
    fn best_of(&mut self, points: Vec<Point>) -> Vec<(f32, Point)> {
        let fresh: Vec<Point> = points.iter().filter(|p| !self.seen.contains_key(*p)).cloned().collect();
        let scores = self.model.log_costs(&fresh);
        self.seen.extend(fresh.into_iter().zip(scores));
        let mut out: Vec<(f32, Point)> = points.into_iter().map(|p| (self.seen[&p], p)).collect();
        out.sort_by(order);
        out
    }

    /// Goes to the best single change as long as there is a better one.
    fn climb(&mut self, start: (f32, Point)) -> (f32, Point) {
        let mut here = start;
        for _ in 0..STEPS {
            let around = Neighbourhood::of(self.space).within(&here.1, Reach::Single);
            match self.best_of(around).into_iter().next() {
                Some(best) if best.0 < here.0 => here = best,
                _ => break,
            }
        }
        here
    }
}
