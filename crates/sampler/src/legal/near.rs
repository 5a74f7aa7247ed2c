//! Points next to a point.

use super::LegalSet;
use super::project::Occurring;
use tilewright_core::space::Point;

/// What counts as next to a point; the words and their meanings are Kernel Tuner's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Nearness {
    /// Exactly one parameter has another value.
    Hamming,
    /// No index differs by more than one.
    StrictlyAdjacent,
    /// No parameter is further away than the next value, on either side, that occurs in a legal point.
    Adjacent,
    /// Exactly one parameter differs, and no nearer value of it on the same side would be legal.
    HammingAdjacent,
}

impl LegalSet {
    /// The legal points next to a point, which may itself be illegal; in the order of their numbers, without the point.
    /// Nothing for a point of another space.
    pub fn neighbours(&self, point: &[u16], nearness: Nearness) -> Vec<Point> {
        let mut out = Vec::new();
        if point.len() != self.params().len() || self.is_empty() {
            return out;
        }
        match nearness {
            Nearness::Hamming => self.hamming(point, |_, _| {}, &mut out),
            Nearness::HammingAdjacent => self.hamming(point, nearest, &mut out),
            Nearness::StrictlyAdjacent => {
                let within: Vec<(u16, u16)> =
                    point.iter().map(|&i| (i.saturating_sub(1), i.saturating_add(1))).collect();
                self.boxed(point, &within, &mut out);
            }
            Nearness::Adjacent => {
                let within: Vec<(u16, u16)> =
                    self.occurring().iter().zip(point).map(|(values, &i)| around(values, i)).collect();
                self.boxed(point, &within, &mut out);
            }
        }
        out
    }

    /// Points that differ in one parameter; of a parameter, those that `choose` leaves of the legal values.
    fn hamming(&self, point: &[u16], choose: impl Fn(&mut Vec<(u16, u64)>, u16), out: &mut Vec<Point>) {
        let mut at = point.to_vec();
        let mut found = Vec::new();
        for (param, description) in self.params().iter().enumerate() {
            let mut values = Vec::new();
            for value in (0..description.values.len() as u16).filter(|&v| v != point[param]) {
                at[param] = value;
                values.extend(self.index_of(&at).map(|number| (value, number)));
            }
            choose(&mut values, point[param]);
            for (value, number) in values {
                at[param] = value;
                found.push((number, Point(at.clone())));
            }
            at[param] = point[param];
        }
        found.sort_unstable_by_key(|(number, _)| *number);
        out.extend(found.into_iter().map(|(_, p)| p));
    }

    /// Points with every index within bounds, bounds included.
    fn boxed(&self, point: &[u16], within: &[(u16, u16)], out: &mut Vec<Point>) {
        if self.fixed.iter().any(|&(p, v)| v < within[p].0 || v > within[p].1) {
            return;
        }
        let mut at = point.to_vec();
        for &(param, value) in &self.fixed {
            at[param] = value;
        }
        self.descend(0, 0, within, &mut at, &mut |found| {
            if found != point {
                out.push(Point::from(found));
            }
        });
    }

    fn descend(&self, depth: usize, node: u32, within: &[(u16, u16)], at: &mut [u16], visit: &mut impl FnMut(&[u16])) {
        let Some(level) = self.levels.get(depth) else { return visit(at) };
        let (low, high) = within[level.param];
        for (value, child) in level.choices(node).filter(|(v, _)| (low..=high).contains(v)) {
            at[level.param] = value;
            self.descend(depth + 1, child, within, at, visit);
        }
    }

    fn occurring(&self) -> Occurring {
        self.marginals().into_iter().map(|m| m.into_iter().map(|(v, _)| v).collect()).collect()
    }
}

/// The nearest of some sorted values on each side, or the value itself.
fn around(values: &[u16], at: u16) -> (u16, u16) {
    let low = values.iter().rev().find(|&&v| v < at);
    let high = values.iter().find(|&&v| v > at);
    (low.copied().unwrap_or(at), high.copied().unwrap_or(at))
}

/// Leaves the nearest of some sorted values on each side.
fn nearest(values: &mut Vec<(u16, u64)>, at: u16) {
    let indices: Vec<u16> = values.iter().map(|(v, _)| *v).collect();
    let (low, high) = around(&indices, at);
    values.retain(|(v, _)| *v == low || *v == high);
}
