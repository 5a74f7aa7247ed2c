//! What runs before anything is tuned: the tiling that a rough account of a core's cycles finds cheapest.
//!
//! The account was held against timings of all legal points of eight shapes, and its choices for eighty against libraries, on a core with
//! two units for multiply-adds and two for loads; figures are those of such cores. Unrolling made no difference there beyond a few
//! steps, so that it is not a part of it.

use super::blueprint::{turned_tile, turns_edge_of};
use super::space::{BROADCAST_TILE, VECTOR_TILE};
use crate::LINE;
use crate::sets::{PAGE, is_half_line, side_by_side};
use crate::split::{KINDS, Split};
use tilewright_core::expr::Value;
use tilewright_core::space::{BoundSpace, Point};
use tilewright_ops::gemm::GemmInput;

/// Multiply-adds and loads that a core begins in a cycle, and instructions.
const UNITS: f64 = 2.0;
const ISSUED: f64 = 5.0;
/// Cycles until a multiply-add's result can be added to.
const LATENCY: f64 = 4.0;
/// Instructions that a core looks ahead: so much of the next tile runs beside the end of this one.
const AHEAD: f64 = 100.0;
/// Steps of k that follow each other without a jump.
const UNROLLED: i64 = 4;
/// Instructions from which on tiles share their code: what a core keeps of decoded instructions is soon exceeded by more, and by the products
/// of a batch each time.
const SHARED: f64 = 400.0;
/// Instructions of transposing a vector of a step.
const GATHERED: f64 = 7.0;
/// Cycles of a tile besides.
const TILE: f64 = 4.0;
/// Cycles until what was written to a panel can be loaded from it.
const PANEL: f64 = 20.0;
/// Cycles more of each vector of a panel that takes, with what it is made of, half of the first-level cache or more: it is written to the
/// second-level one, and read again; the same where a vector is a line, and the two take all of that cache.
const FAR: f64 = 1.0;
const FAR_LINE: f64 = 2.0;
/// Cycles of transposing and writing 16 bytes of a column of C, where a vector is half a line: at the 0.67 of other cores random products nt
/// in f32 ran 0.89 times as fast on a Zen 3 as with vectors along columns.
const TRANSPOSED_HALVES: f64 = 1.0;
/// Cycles for which a vector that lies in two lines holds the others up, on a core whose vectors are half a line.
const LATE: f64 = 0.3;
/// Cycles more of a vector that comes from the second-level cache for each tile across: with tiles of fewer vectors and more elements across random
/// products of 128 to 512 rows and up to 60 columns, or the other way round, took 0.93 of the time in the mean in f64 on a Zen 3, and 0.97 in f32.
const EVICTED: f64 = 0.5;

/// Of an input that was straightened.
pub(super) fn default_point(input: &GemmInput, space: &BoundSpace) -> Option<Point> {
    let shape = Shape::of(input, space);
    let writes = writes_columns(input, None) || shape.as_ref().is_some_and(Shape::writes_runs);
    let runs = shape.as_ref().filter(|shape| writes && (shape.a_along || shape.vec_max >= LINE));
    let best = runs.map(Shape::in_long_runs).or_else(|| shape.as_ref().and_then(Shape::best));
    let fetches = input.batch.count > 1 || runs.is_some_and(Shape::waits_for_c);
    let shares = shape.iter().zip(&best).any(|(shape, tiling)| shape.code(tiling) > SHARED);
    let ints = |list: &[i64]| list.iter().map(|&i| Value::Int(i)).collect::<Vec<_>>();
    let chosen = |of: &dyn Fn(&Tiling) -> usize| best.iter().map(|b| Value::Int(of(b) as i64)).collect::<Vec<_>>();
    space.preferred_point(|param| match &*param.name {
        "axis" => vec![Value::from(if best.as_ref().is_some_and(|b| b.along_n) { "n" } else { "m" })],
        "vec" => [chosen(&|b| b.vec), ints(&[64, 32, 16])].concat(),
        "m_s" => chosen(&|b| b.vectors * b.lanes),
        "n_s" => [chosen(&|b| b.n_s), ints(&[12, 8, 6, 4, 2, 1])].concat(),
        "k_l" => [chosen(&|b| b.k_l), ints(&[1])].concat(),
        "k_s" => ints(&[UNROLLED, 2, 1, 8, 16]),
        "order" => (if writes { ["broadcast", "vector"] } else { ["vector", "broadcast"] }).map(Value::from).to_vec(),
        "loops" => ints(if shares { &[1, 0] } else { &[0, 1] }),
        "prefetch" => ints(if fetches { &[1, 0] } else { &[0] }),
        "t" => ints(&[192, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1]),
        _ => Vec::new(),
    })
}

/// Whether a product does little but write long columns of a C that is beyond the first-level cache, of so many bytes if it is known.
pub(super) fn writes_columns(input: &GemmInput, l1: Option<usize>) -> bool {
    let column = input.m * input.dtype().size();
    input.k < WRITTEN_K && column >= WRITTEN_COLUMN && column * input.n >= l1.unwrap_or(WRITTEN)
}

/// Products below so many steps of k do little but write C: bytes of a column, and of C, from which on it matters in which order.
const WRITTEN_K: usize = 16;
const WRITTEN_COLUMN: usize = 1 << 10;
const WRITTEN: usize = 128 << 10;
/// Steps of k from which on C is fetched in time by itself; and up to which so few loads are spared by broad tiles that narrow ones, which
/// leave a processor fewer columns to follow, are faster.
const FETCHED_K: usize = 8;
const FEW_COLUMNS_K: usize = 6;

/// What the account knows of an input and a device.
#[derive(Clone, Copy)]
struct Shape {
    m: usize,
    n: usize,
    k: usize,
    element: usize,
    vec_max: usize,
    /// Bytes of the first-level cache.
    l1: usize,
    /// Whether rows of op(A), and columns of op(B), are neighbours in memory.
    a_along: bool,
    b_along: bool,
    ld: [usize; 3],
    /// Whether vectors that evict each other are charged for it.
    evicts: bool,
}

/// One way to tile a product.
#[derive(Clone, Copy, Debug)]
struct Tiling {
    along_n: bool,
    vec: usize,
    lanes: usize,
    vectors: usize,
    n_s: usize,
    k_l: usize,
}

impl Shape {
    fn of(input: &GemmInput, space: &BoundSpace) -> Option<Self> {
        let int = |name| space.symbols().get(name).and_then(Value::as_int).and_then(|x| usize::try_from(x).ok());
        Some(Self {
            m: input.m,
            n: input.n,
            k: input.k,
            element: int("element")?,
            vec_max: int("vec_max")?,
            l1: int("l1d_bytes")?,
            a_along: !input.layout.a_transposed(),
            b_along: input.layout.b_transposed(),
            ld: [input.lda, input.ldb, input.ldc],
            evicts: true,
        })
    }

    /// Of the axis that is cheapest otherwise, what is cheapest when steps of vectors evict each other.
    fn best(&self) -> Option<Tiling> {
        let plain = Self { evicts: false, ..*self };
        let best = plain.cheapest(&[false, true])?;
        if self.evicts_vectors(best.along_n) { self.cheapest(&[best.along_n]) } else { Some(best) }
    }

    fn cheapest(&self, axes: &[bool]) -> Option<Tiling> {
        let mut best: Option<(f64, Tiling)> = None;
        for along_n in axes.iter().copied() {
            for vec in [64, 32, 16].into_iter().filter(|vec| *vec <= self.vec_max) {
                for tiling in self.tilings(along_n, vec) {
                    let cycles = self.cycles(&tiling);
                    if best.is_none_or(|(least, _)| cycles < least) {
                        best = Some((cycles, tiling));
                    }
                }
            }
        }
        best.map(|(_, tiling)| tiling)
    }

    /// Whether, where a vector is a line, a product does little but write a C beyond the first-level cache whose columns have as many vectors
    /// as a tile may: [`writes_columns`] with lower limits.
    fn writes_runs(&self) -> bool {
        let column = self.m * self.element;
        self.vec_max >= LINE && self.k < WRITTEN_K && column >= 4 * self.vec_max && column * self.n >= self.l1
    }

    /// Whether there is too little to do between stores for a processor to fetch the lines of C by itself, where a vector is a line: columns
    /// that begin anywhere in one took 1.3 to 1.7 times as long without a prefetch on the core that was measured, aligned ones as long.
    fn waits_for_c(&self) -> bool {
        self.vec_max >= LINE && self.k < FETCHED_K
    }

    /// Of as many vectors as there may be side by side: a tile writes long runs of each column, a few columns at once.
    fn in_long_runs(&self) -> Tiling {
        let (vec, n_s) = (self.vec_max, if self.vec_max < LINE || self.k <= FEW_COLUMNS_K { 3 } else { 6 });
        Tiling { along_n: false, vec, lanes: vec / self.element, vectors: 4, n_s: n_s.min(self.n), k_l: 1 }
    }

    /// Those that registers and rules leave.
    fn tilings(&self, along_n: bool, vec: usize) -> Vec<Tiling> {
        let (rows, columns) = self.sides(along_n);
        let lanes = vec / self.element;
        let registers = if self.vec_max >= 64 { 32 } else { 16 };
        let widest = columns.max(1).min(self.rows_at_once(along_n));
        let mut all = Vec::new();
        // The tallest first: of tiles that cost the same they read the longest runs.
        for m_s in VECTOR_TILE.into_iter().rev().map(|m_s| m_s as usize) {
            let vectors = m_s / lanes;
            if m_s % lanes != 0 || !(1..=4).contains(&vectors) || m_s >= rows.max(1) + lanes {
                continue;
            }
            for n_s in BROADCAST_TILE.map(|n_s| n_s as usize).into_iter().filter(|n_s| *n_s <= widest) {
                for k_l in [1, 2, 4].into_iter().filter(|k_l| *k_l == 1 || *k_l <= self.k) {
                    if vectors * n_s * k_l + (vectors.min(n_s) + 1).max(4) <= registers {
                        all.push(Tiling { along_n, vec, lanes, vectors, n_s, k_l });
                    }
                }
            }
        }
        all
    }

    /// Rows of an operand across vectors that lies along k of which [the first-level cache holds](side_by_side) a line each.
    fn rows_at_once(&self, along_n: bool) -> usize {
        let (along, ld) = if along_n { (self.a_along, self.ld[0]) } else { (self.b_along, self.ld[1]) };
        let pitch = ld * self.element;
        if along || pitch < LINE { usize::MAX } else { side_by_side(pitch, self.l1) }
    }

    /// Whether what vectors run along is transposed first.
    fn packs(&self, t: &Tiling) -> bool {
        if t.along_n { !self.b_along } else { !self.a_along }
    }

    /// The same with another side along vectors.
    fn with_rows(&self, along_n: bool, rows: usize) -> Self {
        let (m, n) = if along_n { (self.m, rows) } else { (rows, self.n) };
        Self { m, n, ..*self }
    }

    fn sides(&self, along_n: bool) -> (usize, usize) {
        if along_n { (self.n, self.m) } else { (self.m, self.n) }
    }

    /// Cycles of a product, an edge turned where the code does so.
    fn cycles(&self, t: &Tiling) -> f64 {
        let (rows, columns) = self.sides(t.along_n);
        if !(self.a_along && self.b_along && turns_edge_of(rows, t.lanes, (columns, self.k))) {
            return self.whole_cycles(t);
        }
        let edge = rows % t.lanes;
        let registers = if self.vec_max >= LINE { 32 } else { 16 };
        let (vectors, k_l) = turned_tile((edge, columns.div_ceil(t.lanes)), registers, (self.k, UNROLLED as usize));
        let turned = Tiling { along_n: !t.along_n, n_s: edge, vectors, k_l, ..*t };
        self.with_rows(t.along_n, rows - edge).whole_cycles(t) + self.with_rows(t.along_n, edge).whole_cycles(&turned)
    }

    /// The same where an edge takes whole vectors.
    fn whole_cycles(&self, t: &Tiling) -> f64 {
        let (rows, columns) = self.sides(t.along_n);
        let (v, s) = (Split::new(rows, t.lanes, t.vectors), Split::new(columns, 1, t.n_s));
        let tiles = (v.tiles() * s.tiles()) as f64;
        let mut sum = 0.0;
        for v_kind in (0..KINDS).filter(|kind| v.has(*kind)) {
            for s_kind in (0..KINDS).filter(|kind| s.has(*kind)) {
                let count = count(&v, v_kind) * count(&s, s_kind);
                let has_tail = v_kind == TAIL && self.vec_max >= LINE;
                let stored = self.store(t, v.units(v_kind) as f64, s.units(s_kind) as f64, has_tail);
                sum += count * self.tile(t, v.units(v_kind) as f64, s.units(s_kind) as f64, (tiles, stored));
            }
        }
        let units = rows.div_ceil(t.lanes) as f64;
        // A panel and what it is made of, beside each other in the first-level cache.
        let panel = 2 * t.vec * t.vectors.min(rows.div_ceil(t.lanes)) * self.k;
        let (most, each) = if self.vec_max < LINE { (self.l1 / 2, FAR) } else { (self.l1, FAR_LINE) };
        let far = if panel > most { each } else { 0.0 };
        sum + if self.packs(t) { PANEL + units * self.k as f64 * (self.transposed(t) + far) } else { 0.0 }
    }

    /// Cycles of a tile, one of so many, that takes so long to be written.
    fn tile(&self, t: &Tiling, vectors: f64, wide: f64, (tiles, stored): (f64, f64)) -> f64 {
        let (k, sets) = (self.k as f64, t.k_l as f64);
        let (along, ld) = if t.along_n { (self.b_along, self.ld[1]) } else { (self.a_along, self.ld[0]) };
        let crossed = if along { self.crossings(t.vec, ld) } else { 0.0 };
        // A single vector is multiplied with elements as they are broadcast from memory.
        let apart = if vectors > 1.0 || self.vec_max < 64 { wide } else { 0.0 };
        let instructions = vectors + apart + vectors * wide;
        let loads = vectors * (1.0 + crossed) + wide;
        let late = if self.vec_max < 64 { crossed * LATE } else { 0.0 };
        let evicted = if self.evicts && self.evicts_vectors(t.along_n) { EVICTED } else { 0.0 };
        // A line is two vectors.
        let late = vectors * late + vectors.max(2.0) * evicted;
        let step = (vectors * wide / UNITS).max(loads / UNITS).max(instructions / ISSUED) + late;
        let beside = (1.0 + AHEAD / (k.max(1.0) * instructions)).min(tiles);
        let waits = LATENCY * k / sets / beside;
        let sums = (sets - 1.0) * vectors * wide / UNITS;
        let multiplied = (k * step).max(waits);
        // Plain stores of vectors that are lines take turns with the multiply-adds of the next tile; what is transposed first needs the same
        // units as these.
        let both = if self.across(t) || self.vec_max < LINE { multiplied + stored } else { multiplied.max(stored) };
        both + sums + TILE
    }

    /// Whether steps of the vectors evict each other from the first-level cache before the next tile across reads them, where vectors are half a line.
    fn evicts_vectors(&self, along_n: bool) -> bool {
        let (along, ld) = if along_n { (self.b_along, self.ld[1]) } else { (self.a_along, self.ld[0]) };
        let pitch = ld * self.element;
        along && is_half_line(self.vec_max) && pitch.is_multiple_of(PAGE / 4) && self.k > side_by_side(pitch, self.l1)
    }

    /// Instructions of a product whose tiles have code of their own.
    fn code(&self, t: &Tiling) -> f64 {
        let (rows, columns) = self.sides(t.along_n);
        let (vectors, wide) = (t.vectors as f64, t.n_s as f64);
        let tiles = (rows.div_ceil(t.vectors * t.lanes) * columns.div_ceil(t.n_s)) as f64;
        let steps = self.k.min(UNROLLED as usize + 1) as f64;
        let packed = if self.packs(t) {
            (rows.div_ceil(t.lanes) * self.k.min(2 * LINE / self.element)) as f64 * GATHERED
        } else {
            0.0
        };
        tiles * (steps * (vectors + wide + vectors * wide) + vectors * wide) + packed
    }

    /// Cycles of writing a tile: a vector each, of which the last is as narrow as it may be where it is a tail, or the elements of four, two
    /// or one vectors together.
    fn store(&self, t: &Tiling, vectors: f64, wide: f64, has_tail: bool) -> f64 {
        if !self.across(t) {
            if t.along_n {
                return vectors * wide;
            }
            let end = if has_tail { self.m % t.lanes * self.element } else { t.vec };
            let last = [16, 32].into_iter().find(|vec| end <= *vec).unwrap_or(t.vec).min(t.vec);
            let crossed = (vectors - 1.0) * self.crossings(t.vec, self.ld[2]) + self.crossings(last, self.ld[2]);
            return wide * (vectors + crossed);
        }
        let most = 16 / self.element;
        let (whole, rest) = ((wide as usize / most) as f64, wide as usize % most);
        let lanes = t.lanes as f64;
        // The shortest vectors need not be taken apart before, for which a core whose vectors are lines has one unit.
        let part = if t.vec == 16 && self.vec_max >= LINE { 0.5 } else { 1.5 };
        let whole = if is_half_line(self.vec_max) { whole * TRANSPOSED_HALVES } else { whole / 1.5 };
        vectors * lanes * (whole + rest.div_ceil(2) as f64 * part)
    }

    /// Whether C is transposed when it is written.
    fn across(&self, t: &Tiling) -> bool {
        t.along_n && !(self.m == 1 && self.ld[2] == 1)
    }

    /// Cycles of transposing a vector of a step.
    fn transposed(&self, t: &Tiling) -> f64 {
        0.25 * self.element as f64 + 0.15 * t.lanes as f64
    }

    /// How many of the vectors at multiples of so many elements lie in two lines, each half of which is loaded.
    fn crossings(&self, vec: usize, stride: usize) -> f64 {
        let places = LINE / self.element;
        let crossed = (0..places).filter(|i| i * stride % places * self.element + vec > LINE).count();
        crossed as f64 / places as f64
    }
}

/// The kind of a tile whose last vector is a part of one.
const TAIL: usize = KINDS - 1;

/// Tiles of a kind.
fn count(split: &Split, kind: usize) -> f64 {
    split.runs(0..split.tiles()).filter(|run| run.kind == kind).map(|run| run.count as f64).sum()
}
