//! What runs before anything is tuned: tiles that fill the device, as large as they may be.

use tilewright_core::expr::Value;
use tilewright_core::space::{BoundSpace, Point};

/// Preferred values per parameter, best first; the first legal combination is taken, as for the GEMM.
pub(super) fn default_point(space: &BoundSpace) -> Option<Point> {
    let preferences = Preferences::of(space);
    space.preferred_point(|param| preferences.wanted(&param.name))
}

/// What the preferences depend on.
struct Preferences {
    outs: i64,
    images: i64,
    rows: i64,
    columns: i64,
    sums: i64,
    groups: i64,
    multiprocessors: i64,
    images_first: bool,
}

/// The powers of two up to a size, the nearest to the wanted one first.
fn near(wanted: i64) -> Vec<Value> {
    let mut sizes: Vec<i64> = (0..9).map(|i| 1 << i).collect();
    sizes.sort_by_key(|s| (s - wanted).abs());
    sizes.into_iter().map(Value::Int).collect()
}

fn power(size: i64) -> i64 {
    size.max(1).unsigned_abs().next_power_of_two() as i64
}

impl Preferences {
    fn of(space: &BoundSpace) -> Self {
        let int = |name| space.symbols().get(name).and_then(Value::as_int).unwrap_or(1).max(1);
        let images_first = space.symbols().get("images_first").is_some_and(|v| *v == Value::Bool(true));
        Self {
            outs: int("outs"),
            images: int("images"),
            rows: int("grid_rows"),
            columns: int("grid_columns"),
            sums: int("sums"),
            groups: int("groups"),
            multiprocessors: int("multiprocessors"),
            images_first,
        }
    }

    /// Outputs and positions of a block: about one tile per multiprocessor.
    fn tile(&self) -> [i64; 2] {
        let area = self.outs * self.images * self.rows * self.columns * self.groups / self.multiprocessors;
        let edge = [128, 64, 32].into_iter().find(|e| e * e <= area).unwrap_or(16);
        [edge.min(power(self.outs)), edge]
    }

    /// Images, rows and columns of a block, the neighbours first.
    fn places(&self) -> [i64; 3] {
        let mut left = self.tile()[1];
        let mut take = |size: i64, most: i64| {
            let taken = left.min(power(size)).min(most);
            left /= taken;
            taken
        };
        if self.images_first {
            let images = take(self.images, 128);
            let columns = take(self.columns, 128);
            return [images, take(self.rows, 16), columns];
        }
        let columns = take(self.columns, 16).max(8);
        let rows = take(self.rows, 16);
        [take(self.images, 128), rows, columns]
    }

    fn wanted(&self, name: &str) -> Vec<Value> {
        let ([outs, places], [images, rows, columns]) = (self.tile(), self.places());
        let thread = if places >= 128 { 8 } else { places / 16 };
        let list = |of: &[i64]| of.iter().map(|&i| Value::Int(i)).collect();
        // A thread's positions are neighbours, and then rows.
        let first = if self.images_first { images } else { columns };
        let first_s = first.min(4).min(thread);
        match name {
            "k_s" => near(thread.min(outs)),
            "k_l" => near(outs),
            "n_s" => near(if self.images_first { first_s } else { 1 }),
            "q_s" => near(if self.images_first { 1 } else { first_s }),
            "p_s" => near((thread / first_s).min(rows)),
            "n_l" => near(images),
            "p_l" => near(rows),
            "q_l" => near(columns),
            "u" => list(&[16, 8, 32, 4]),
            "vec_f" | "vec_g" => list(&[8, 4, 2, 1]),
            "stages" => list(&[2, 1, 3]),
            "load" => ["nc", "global"].map(Value::from).into(),
            "c_g" => {
                let area = self.outs * self.images * self.rows * self.columns * self.groups;
                let tiles = (area / (outs * places)).max(1);
                let wanted = (self.multiprocessors / tiles).min(self.sums / 256).max(1);
                let mut sizes = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256].to_vec();
                sizes.sort_by_key(|s| (s - wanted).abs());
                list(&sizes)
            }
            _ => Vec::new(),
        }
    }
}
