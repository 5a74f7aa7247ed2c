//! What runs before anything is tuned: register tiles that fill the registers and divide rows evenly, blocks that fit the caches.

use super::space::{BROADCAST_TILE, VECTORS};
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
    /// Vectors that fit the registers.
    registers: i64,
    outs: i64,
    along: i64,
    sums: i64,
    threads: i64,
    contiguous: bool,
    inside: bool,
    /// Whether outputs are neighbours in the result.
    neighbours: bool,
}

impl Preferences {
    fn of(space: &BoundSpace) -> Self {
        let symbols = space.symbols();
        let int = |name| symbols.get(name).and_then(Value::as_int);
        let is = |name| symbols.get(name) == Some(&Value::Bool(true));
        let vec = int("vec_max").unwrap_or(16);
        Self {
            lanes: vec / int("element").unwrap_or(4),
            registers: if vec == 64 { 32 } else { 16 },
            outs: int("outs").unwrap_or(1),
            along: int("along").unwrap_or(1),
            sums: int("sums").unwrap_or(1),
            threads: int("threads").unwrap_or(1),
            contiguous: is("contiguous") && is("contiguous_copied"),
            inside: is("inside"),
            neighbours: is("neighbours"),
        }
    }

    /// Vectors along neighbouring positions pay where there are few outputs, or few sums for each of them: outputs that are no
    /// neighbours in memory take transpositions to be stored.
    fn along_positions(&self) -> bool {
        let shallow = !self.neighbours && self.sums <= 400 && self.along >= 2 * self.lanes;
        self.contiguous && (2 * self.outs < self.lanes || shallow)
    }

    /// Sizes of the sides along vectors and across them.
    fn sides(&self) -> (i64, i64) {
        if self.along_positions() { (self.along, self.outs) } else { (self.outs, self.along) }
    }

    /// Vectors and the other side of the register tile that wastes least and has operations enough, the larger first.
    fn tile(&self) -> (i64, i64) {
        let (v, s) = self.sides();
        let units = v.max(1).div_euclid(self.lanes) + i64::from(v.max(1) % self.lanes > 0);
        let mut best = (0.0, (1, 1));
        for (vectors, other) in VECTORS.into_iter().flat_map(|v| BROADCAST_TILE.map(|s| (v, s))) {
            // Tiles are balanced: of 27 by 14 there are 14 and 13.
            let (used_v, own_v) = balanced(units, vectors);
            let (used_s, own_s) = balanced(s.max(1), other);
            let fits = vectors * other + (vectors.min(other) + 1).max(4) <= self.registers;
            let score = used_v * used_s * own_v * own_s / (own_v * own_s + own_v + own_s);
            if fits && vectors <= units && other <= s.max(1) && score > best.0 + 1e-9 {
                best = (score, (vectors, other));
            }
        }
        best.1
    }

    fn wanted(&self, name: &str) -> Vec<Value> {
        let ints = |list: &[i64]| list.iter().map(|&i| Value::Int(i)).collect();
        let (vectors, across) = self.tile();
        match name {
            "axis" => vec![Value::from(if self.along_positions() { "q" } else { "k" })],
            "vec" => ints(&[64, 32, 16]),
            "m_s" => [vectors, 2, 1, 3, 4].map(|vectors| Value::Int(vectors * self.lanes)).into(),
            "n_s" => ints(&[across, 14, 12, 6, 10, 5, 9, 8, 7, 4, 3, 2, 1]),
            "stage" => ints(&[i64::from(self.sums > 1024 && !self.neighbours)]),
            "k_l" | "t_m" => ints(&[1, 2, 4]),
            "t" => ints(&[self.threads, 192, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1]),
            "slab" => ints(&[i64::from(!self.inside || self.along < 16)]),
            "u" => ints(&[512, 384, 256, 192, 128, 96, 64, 32, 16]),
            "n_l" => ints(&[512, 1024, 256, 128, 64, 32, 16]),
            "k_s" => ints(&[4, 2, 8]),
            "order" => vec![Value::from("vector")],
            "prefetch" => ints(&[8]),
            _ => Vec::new(),
        }
    }
}

/// Of tiles that divide a length evenly: the share that is used, and the size of the largest.
fn balanced(len: i64, most: i64) -> (f64, f64) {
    let up = |a: i64, b: i64| (a + b - 1) / b;
    let tiles = up(len, most);
    let size = up(len, tiles);
    (len as f64 / (tiles * size) as f64, size as f64)
}
