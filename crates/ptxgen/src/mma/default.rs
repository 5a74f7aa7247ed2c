//! What runs before anything is tuned: tiles that fill the device, as large as they may be, and copies enough on their way.

use tilewright_core::expr::Value;
use tilewright_core::space::{BoundSpace, Point};

/// Preferred values per parameter, best first; see [`BoundSpace::preferred_point`].
pub(super) fn default_point(space: &BoundSpace) -> Option<Point> {
    let preferences = Preferences::of(space);
    space.preferred_point(|param| preferences.wanted(&param.name))
}

/// What the preferences depend on.
struct Preferences {
    m: i64,
    n: i64,
    k: i64,
    element: i64,
    multiprocessors: i64,
}

/// Tiles of a block and of its warps, largest first: rows, columns, rows and columns of a warp.
const TILES: [[i64; 4]; 8] = [
    [128, 256, 64, 64],
    [128, 128, 64, 64],
    [128, 64, 64, 32],
    [64, 128, 32, 64],
    [64, 64, 32, 32],
    [64, 32, 32, 16],
    [32, 64, 16, 32],
    [32, 32, 16, 16],
];

impl Preferences {
    fn of(space: &BoundSpace) -> Self {
        let int = |name| space.symbols().get(name).and_then(Value::as_int).unwrap_or(1);
        let [m, n, k] = ["m", "n", "k"].map(int);
        Self { m, n, k, element: int("element"), multiprocessors: int("multiprocessors") }
    }

    /// The largest tile of which there is at least one per multiprocessor, and that the matrix fills.
    fn tile(&self) -> [i64; 4] {
        // Accumulators of f64 take twice the registers.
        let fits = |[_, _, m_w, n_w]: &[i64; 4]| self.element < 8 || m_w * n_w <= 2048;
        let fills = |[m_l, n_l, ..]: &[i64; 4]| {
            let tiles = ((self.m + m_l - 1) / m_l) * ((self.n + n_l - 1) / n_l);
            tiles >= self.multiprocessors && *m_l < 2 * self.m.max(16) && *n_l < 2 * self.n.max(16)
        };
        let narrow = |[m_l, n_l, ..]: &[i64; 4]| *m_l < 2 * self.m.max(16) && *n_l < 2 * self.n.max(16);
        let all = || TILES.into_iter().filter(fits);
        all().find(fills).or_else(|| all().rfind(narrow)).unwrap_or([16, 16, 16, 16])
    }

    /// Values of a parameter, best first; none where any will do.
    fn wanted(&self, name: &str) -> Vec<Value> {
        let [m_l, n_l, m_w, n_w] = self.tile();
        let list = |of: &[i64]| of.iter().map(|&i| Value::Int(i)).collect();
        let near = |wanted: i64, of: &[i64]| {
            let mut sizes = of.to_vec();
            sizes.sort_by_key(|s| (s - wanted).abs());
            sizes.into_iter().map(Value::Int).collect()
        };
        match name {
            "m_w" => near(m_w, &[16, 32, 48, 64]),
            "n_w" => near(n_w, &[16, 32, 48, 64]),
            "m_l" => near(m_l, &[16, 32, 48, 64, 96, 128]),
            "n_l" => near(n_l, &[16, 32, 48, 64, 96, 128, 256]),
            // Rows of 64 bytes along the reduction.
            "u" => near(64 / self.element, &[8, 16, 32, 64, 128]),
            "vec_a" | "vec_b" => list(&[16, 8, 4, 2, 1]),
            "vec_c" => list(&[2, 1]),
            "stages" => list(&[4, 3, 2]),
            "load" => ["async", "nc"].map(Value::from).into(),
            "k_g" => {
                let tiles = ((self.m + m_l - 1) / m_l).max(1) * ((self.n + n_l - 1) / n_l).max(1);
                near((self.multiprocessors / tiles).min(self.k / 256).max(1), &[1, 2, 3, 4, 6, 8, 12, 16, 24, 32])
            }
            _ => Vec::new(),
        }
    }
}
