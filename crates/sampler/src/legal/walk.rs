//! Going through all points: one after another, in parts, or as a list.

use super::diagram::{Below, Level};
use super::layers::Layer;
use super::{LegalError, LegalSet};
use rayon::prelude::*;
use std::ops::Range;
use tilewright_core::space::{Param, Point, Points};

/// The points of a range of numbers, in order.
#[derive(Clone, Debug)]
pub struct PointWalk<'a> {
    set: &'a LegalSet,
    indices: Vec<u16>,
    /// By level: the node, the arc taken in it, and its arcs.
    path: Vec<(u32, usize, usize)>,
    left: u64,
    started: bool,
}

impl LegalSet {
    /// A walk over all points in the order of their numbers.
    pub fn walk(&self) -> PointWalk<'_> {
        self.walk_range(0..self.count())
    }

    /// A walk over the points of a range of numbers; numbers beyond the last point have none.
    pub fn walk_range(&self, range: Range<u64>) -> PointWalk<'_> {
        let end = range.end.min(self.count());
        let start = range.start.min(end);
        let mut indices = vec![0; self.params().len()];
        let mut path = Vec::with_capacity(self.levels.len());
        if start < end {
            self.write_point(start, &mut indices);
            let mut node = 0;
            for level in self.levels.iter() {
                let value = indices[level.param];
                let at = level.choices(node).position(|(v, _)| v == value).unwrap_or(0);
                path.push((node, at, level.degree(node)));
                node = level.arc(node, at).1;
            }
        }
        PointWalk { set: self, indices, path, left: end - start, started: false }
    }

    /// Ranges of numbers for parallel walks, of about the same length.
    pub fn ranges(&self, parts: usize) -> Vec<Range<u64>> {
        let (count, parts) = (self.count(), (parts.max(1) as u64).min(self.count().max(1)));
        let at = |part: u64| (u128::from(count) * u128::from(part) / u128::from(parts)) as u64;
        (0..parts).map(|part| at(part)..at(part + 1)).collect()
    }

    /// All points as indices, one row after another; made by all threads where it is long.
    pub fn list(&self) -> PointList {
        let width = self.params().len();
        let rows = usize::try_from(self.count()).unwrap_or(usize::MAX);
        let mut indices = vec![0; rows.saturating_mul(width)];
        let fill = |(start, rows): (u64, &mut [u16])| {
            let mut walk = self.walk_range(start..start + (rows.len() / width.max(1)) as u64);
            for row in rows.chunks_exact_mut(width.max(1)) {
                if let Some(point) = walk.next_point() {
                    row.copy_from_slice(point);
                }
            }
        };
        if rows < SHORT {
            fill((0, &mut indices));
        } else {
            let parts = indices.par_chunks_mut(SHORT * width.max(1));
            parts.enumerate().for_each(|(part, rows)| fill(((part * SHORT) as u64, rows)));
        }
        PointList { rows, indices }
    }
}

/// Rows that are not worth a second thread.
const SHORT: usize = 1 << 14;

impl PointWalk<'_> {
    /// The next point.
    #[inline]
    pub fn next_point(&mut self) -> Option<&[u16]> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        if self.started {
            self.advance();
        }
        self.started = true;
        Some(&self.indices)
    }

    fn advance(&mut self) {
        let levels = &self.set.levels;
        // The deepest level with another arc; there is one, or `left` would be 0.
        let Some(mut depth) = self.path.iter().rposition(|&(_, at, arcs)| at + 1 < arcs) else { return };
        self.path[depth].1 += 1;
        loop {
            let level = &levels[depth];
            let (node, at, _) = self.path[depth];
            let (value, child) = level.arc(node, at);
            self.indices[level.param] = value;
            depth += 1;
            let Some(below) = levels.get(depth) else { return };
            self.path[depth] = (child, 0, below.degree(child));
        }
    }
}

impl Iterator for PointWalk<'_> {
    type Item = Point;

    fn next(&mut self) -> Option<Point> {
        self.next_point().map(Point::from)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left);
        (left.unwrap_or(usize::MAX), left.ok())
    }
}

/// Points as rows of indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointList {
    rows: usize,
    indices: Vec<u16>,
}

impl PointList {
    /// The points, in the order of their numbers.
    pub fn points(&self) -> Points<'_> {
        Points::new(&self.indices, self.rows)
    }
}

/// The set of points of the parameters, sorted and each once, in the order of the parameters.
pub(super) fn from_list(params: &[Param], points: &[Point]) -> Result<LegalSet, LegalError> {
    if points.is_empty() {
        return Ok(LegalSet::empty(params));
    }
    let mut layers: Vec<Layer> = Vec::with_capacity(params.len());
    // By point, its state: prefixes that are equal, which stand together.
    let mut states = vec![0u32; points.len()];
    for var in 0..params.len() {
        let mut layer = Layer { var, starts: Vec::new(), arcs: Vec::new() };
        let mut before = None;
        for (state, point) in states.iter_mut().zip(points) {
            let (arc, next) = ((*state, point[var]), layer.arcs.len() as u32);
            if before.replace(arc) != Some(arc) {
                layer.starts.resize(arc.0 as usize + 1, next);
                layer.arcs.push((arc.1, if var + 1 == params.len() { 0 } else { next }));
            }
            *state = layer.arcs.len() as u32 - 1;
        }
        layer.starts.push(layer.arcs.len() as u32);
        layers.push(layer);
    }
    let mut below = Below::terminal(1);
    let mut levels = Vec::with_capacity(params.len());
    for layer in layers.iter().rev() {
        let all: Vec<u16> = (0..params[layer.var].values.len() as u16).collect();
        let (level, next) = Level::reduce(layer, layer.var, &all, &below)?;
        levels.push(level);
        below = next;
    }
    levels.reverse();
    Ok(LegalSet::of_levels(params, levels, Vec::new(), below.points()))
}
