//! What runs before anything is tuned: tiles that fill the device, as large as they may be.

use tilewright_core::expr::Value;
use tilewright_core::space::{BoundSpace, Point};

/// Preferred values per parameter, best first; the first legal combination is taken, parameters in the order of the space, so
/// that a parameter gives way only to rules that earlier choices have not settled.
pub(super) fn default_point(space: &BoundSpace) -> Option<Point> {
    let preferences = Preferences::of(space);
    space.preferred_point(|param| preferences.wanted(&param.name))
}

/// What the preferences depend on: the sizes of a product, and how many multiprocessors share its tiles.
pub(crate) struct Preferences {
    pub(crate) m: i64,
    pub(crate) n: i64,
    pub(crate) k: i64,
    pub(crate) multiprocessors: i64,
}

impl Preferences {
    fn of(space: &BoundSpace) -> Self {
        let int = |name| space.symbols().get(name).and_then(Value::as_int).unwrap_or(1);
        Self { m: int("m"), n: int("n"), k: int("k"), multiprocessors: int("multiprocessors") }
    }

    /// Edge of the largest square tile of which there is about one per multiprocessor.
    fn tile(&self) -> i64 {
        let area = (self.m * self.n / self.multiprocessors.max(1)).max(1);
        let edge = [128, 64, 32].into_iter().find(|e| e * e <= area);
        edge.unwrap_or(16)
    }

    /// Values of a parameter, best first; none where any will do.
    pub(crate) fn wanted(&self, name: &str) -> Vec<Value> {
        let tile = self.tile();
        let list = |of: &[i64]| of.iter().map(|&i| Value::Int(i)).collect();
        let block = |size: i64| {
            let power = size.max(1).unsigned_abs().next_power_of_two() as i64;
            let mut sizes: Vec<i64> = [128, 96, 64, 48, 32, 24, 16, 8, 4, 2, 1].into();
            sizes.sort_by_key(|&s| (s - tile.min(power)).abs());
            sizes.into_iter().map(Value::Int).collect()
        };
        let thread = match tile {
            128 => 8,
            64 => 4,
            _ => 2,
        };
        match name {
            "m_s" | "n_s" => {
                let size = if name == "m_s" { self.m } else { self.n };
                let mut sizes = [8, 4, 2, 1].to_vec();
                sizes.sort_by_key(|s| (s - i64::min(thread, size.max(1))).abs());
                list(&sizes)
            }
            "m_l" => block(self.m),
            "n_l" => block(self.n),
            "u" => list(&[16, 8, 32, 4, 64]),
            "vec_a" | "vec_b" | "vec_c" => list(&[8, 4, 2, 1]),
            "stages" => list(&[2, 1, 3]),
            "load" => ["nc", "global"].map(Value::from).into(),
            "k_g" => {
                let tiles = (self.m / tile).max(1) * (self.n / tile).max(1);
                let wanted = (self.multiprocessors / tiles).min(self.k / 256).max(1);
                let mut sizes = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32].to_vec();
                sizes.sort_by_key(|s| (s - wanted).abs());
                list(&sizes)
            }
            _ => Vec::new(),
        }
    }
}
