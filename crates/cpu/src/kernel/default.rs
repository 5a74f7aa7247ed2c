//! What runs before anything is tuned: a textbook blocking for the caches at hand.

use tilewright_core::expr::Value;
use tilewright_core::space::{BoundSpace, Point};

/// Preferred values per parameter, best first; the first combination that is legal is taken, parameters in the order of
/// the space, so that a parameter gives way only to rules that earlier choices have not settled.
pub(super) fn default_point(space: &BoundSpace) -> Option<Point> {
    let preferences = Preferences::of(space);
    space.preferred_point(|param| preferences.wanted(&param.name))
}

/// What the preferences depend on.
struct Preferences {
    /// Elements of the widest vector.
    lanes: i64,
    /// Whether rows of op(A) are contiguous along k: then they are broadcast as they lie, and vectors run along n.
    streams_a: bool,
}

impl Preferences {
    fn of(space: &BoundSpace) -> Self {
        let int = |name| space.symbols().get(name).and_then(Value::as_int);
        let lanes = int("vec_max").unwrap_or(16) / int("element").unwrap_or(4);
        Self { lanes, streams_a: space.symbols().get("transpose_a") == Some(&Value::Bool(true)) }
    }

    fn wanted(&self, name: &str) -> Vec<Value> {
        let ints = |list: &[i64]| list.iter().map(|&i| Value::Int(i)).collect();
        let streams = self.streams_a;
        match name {
            "axis" => vec![Value::from(if streams { "n" } else { "m" })],
            "vec" => ints(&[64, 32, 16]),
            "m_s" => [2, 1, 3, 4].map(|vectors| Value::Int(vectors * self.lanes)).into(),
            "n_s" => ints(&[12, 6, 10, 5, 9, 8, 7, 4, 3, 2, 1]),
            "k_l" | "k_g" | "pack_a" => ints(&[1]),
            "t" | "t_m" => ints(&[192, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1]),
            "pack_b" => ints(&[i64::from(!streams)]),
            "u" if streams => ints(&[1024, 768, 512, 384, 256, 128, 64, 32, 16]),
            "u" => ints(&[256, 192, 128, 96, 64, 32, 16]),
            "m_l" if streams => ints(&[256, 128, 64, 32, 16, 8]),
            // A single tile: its panel is copied on the way.
            "m_l" => ints(&[2 * self.lanes, 8, 16, 32, 64]),
            "n_l" if streams => ints(&[4096, 2048, 1024, 512, 256, 128, 64, 32, 16, 8]),
            "n_l" => ints(&[512, 256, 128, 64, 32, 16, 8]),
            "k_s" => ints(&[4, 2, 8]),
            "store" => vec![Value::from("normal")],
            "order" => vec![Value::from(if streams { "broadcast" } else { "vector" })],
            "prefetch" => ints(&[8]),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preferred_value_is_a_value() {
        let space = super::super::space::space().unwrap();
        for (lanes, streams_a) in [(4, false), (16, true), (8, false), (2, true)] {
            let preferences = Preferences { lanes, streams_a };
            for param in space.params() {
                // The widest tiles of narrow vectors are the only ones that need not exist.
                let known = preferences.wanted(&param.name).iter().filter(|v| param.index_of(v).is_some()).count();
                let all = preferences.wanted(&param.name).len();
                assert!(known + 1 >= all, "{} with {lanes} lanes", param.name);
            }
        }
    }
}
