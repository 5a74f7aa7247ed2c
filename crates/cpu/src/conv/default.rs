//! What runs before anything is tuned: register tiles that fill the registers, blocks that fit the caches.

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
    /// Outputs of a filter.
    outs: i64,
    contiguous: bool,
    inside: bool,
}

impl Preferences {
    fn of(space: &BoundSpace) -> Self {
        let symbols = space.symbols();
        let int = |name| symbols.get(name).and_then(Value::as_int);
        let is = |name| symbols.get(name) == Some(&Value::Bool(true));
        let lanes = int("vec_max").unwrap_or(16) / int("element").unwrap_or(4);
        Self { lanes, outs: int("outs").unwrap_or(1), contiguous: is("contiguous") && is("contiguous_copied"), inside: is("inside") }
    }

    fn wanted(&self, name: &str) -> Vec<Value> {
        let ints = |list: &[i64]| list.iter().map(|&i| Value::Int(i)).collect();
        let along_positions = self.contiguous && 2 * self.outs < self.lanes;
        match name {
            "axis" => vec![Value::from(if along_positions { "q" } else { "k" })],
            "vec" => ints(&[64, 32, 16]),
            "m_s" => [2, 1, 3, 4].map(|vectors| Value::Int(vectors * self.lanes)).into(),
            "n_s" => ints(&[14, 12, 6, 10, 5, 9, 8, 7, 4, 3, 2, 1]),
            "stage" => ints(&[0]),
            "k_l" | "t_m" => ints(&[1, 2, 4]),
            "t" => ints(&[192, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1]),
            "slab" => ints(&[i64::from(!self.inside)]),
            "u" => ints(&[256, 192, 128, 96, 64, 32, 16]),
            "n_l" => ints(&[1024, 2048, 512, 256, 128, 64, 32, 16]),
            "k_s" => ints(&[4, 2, 8]),
            "order" => vec![Value::from("vector")],
            "prefetch" => ints(&[8]),
            _ => Vec::new(),
        }
    }
}
