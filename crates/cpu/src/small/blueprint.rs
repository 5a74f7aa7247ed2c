//! Everything that follows from an input and a configuration.

use super::isa::Isa;
use super::space::Config;
use crate::codegen::vector::Width;
use crate::config::Axis;
use crate::geometry::{Frame, Operand};
use crate::scalar::Float;
use crate::split::{Split, turns_edge};
use tilewright_ops::gemm::{GemmInput, Layout, ScalarClass};

/// Alignment of a thread's panel, in bytes.
const ALIGN: usize = 64;

/// A vector of a tile: where it begins, from the tile's first element, how wide it is, and how many of its lanes are elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Piece {
    pub(super) start: usize,
    pub(super) width: Width,
    pub(super) valid: usize,
}

/// Derived values. Strides are in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Blueprint {
    pub(super) input: GemmInput,
    pub(super) config: Config,
    pub(super) isa: Isa,
    /// Whether `v` is B rather than A.
    pub(super) swapped: bool,
    pub(super) v: Split,
    pub(super) s: Split,
    pub(super) k: usize,
    /// From a neighbour to the next, and from a step of k to the next.
    pub(super) v_along: i64,
    pub(super) v_step: i64,
    pub(super) s_along: i64,
    pub(super) s_step: i64,
    pub(super) c_v: i64,
    pub(super) c_s: i64,
    /// From a product of a batch to the next, of `v`, `s` and C.
    pub(super) strides: [i64; 3],
    /// The product of the elements along vectors that make no whole one, where its vectors run along the other side.
    pub(super) edge: Option<Box<Blueprint>>,
}

/// Chains of multiply-adds that keep two units busy.
const CHAINS: usize = 8;

/// The input as what it is also, where the only step of an operand lies tight: stored the way that vectors are loaded from.
pub(super) fn straightened(input: &GemmInput) -> GemmInput {
    let mut input = input.clone();
    let (a, b) = (input.layout.a_transposed(), input.layout.b_transposed());
    if input.k == 1 {
        let (along_a, along_b) = (a && input.lda == 1, !b && input.ldb == 1);
        input.layout = match (a && !along_a, b || along_b) {
            (false, false) => Layout::Nn,
            (false, true) => Layout::Nt,
            (true, false) => Layout::Tn,
            (true, true) => Layout::Tt,
        };
        input.lda = if along_a { input.m } else { input.lda };
        input.ldb = if along_b { input.n } else { input.ldb };
    }
    input
}

/// Steps of the reduction from which on a turned edge was as fast or faster on an Intel Xeon.
const TURNED_K: usize = 6;

/// Whether the edge of a product is [turned](turns_edge) whose operands have neighbours side by side.
pub(super) fn turns_edge_of(v_len: usize, lanes: usize, (s_len, k): (usize, usize)) -> bool {
    k >= TURNED_K && turns_edge(v_len, lanes, s_len)
}

/// Vectors of a tile of a turned edge, and sets of accumulators: of so many rows, beside so many vectors, with a reduction whose turns have
/// `k_s` steps.
pub(super) fn turned_tile((rows, units): (usize, usize), registers: usize, (k, k_s): (usize, usize)) -> (usize, usize) {
    // As the space has it for other tiles.
    let fits = |vectors: usize, sets: usize| vectors * rows * sets + (vectors.min(rows) + 1).max(4) <= registers;
    let vectors = (1..=units.min(4)).rev().find(|vectors| fits(*vectors, 1)).unwrap_or(1);
    let deals = |sets: &usize| {
        let busy = sets * vectors * rows <= CHAINS;
        busy && *sets <= k && k_s.is_multiple_of(*sets) && fits(vectors, *sets)
    };
    (vectors, [4, 2].into_iter().find(deals).unwrap_or(1))
}

impl Blueprint {
    /// Derives the values; the configuration must be legal for the input.
    pub(super) fn new(input: GemmInput, config: Config, evex: bool) -> Self {
        let mut blueprint = Self::whole(input, config, evex);
        let (v, s) = (blueprint.v, blueprint.s);
        let is_contiguous = blueprint.s_along == blueprint.es() && !blueprint.packs();
        if is_contiguous && turns_edge_of(v.extent, v.unit, (s.extent, blueprint.k)) {
            blueprint.edge = Some(Box::new(blueprint.turned()));
            blueprint.v = v.with_edge(blueprint.config.vectors);
        }
        blueprint
    }

    /// The product of the last elements along vectors, transposed.
    fn turned(&self) -> Self {
        let (rows, mut input, config) = (self.v.tail(), self.input.clone(), &self.config);
        *(if self.swapped { &mut input.n } else { &mut input.m }) = rows;
        let units = self.s.extent.div_ceil(self.v.unit);
        let (vectors, k_l) = turned_tile((rows, units), self.isa.registers(), (self.k, config.k_s));
        let config = Config {
            axis: if self.swapped { Axis::M } else { Axis::N },
            vectors,
            n_s: rows,
            k_l,
            broadcast: false,
            prefetch: false,
            ..config.clone()
        };
        Self::whole(input, config, self.isa.evex)
    }

    fn whole(input: GemmInput, config: Config, evex: bool) -> Self {
        let frame = Frame::of(&input, config.axis);
        let isa = Isa { float: Float::of(input.dtype()), evex };
        let es = isa.float.bytes() as i64;
        let bytes = |elements: usize| elements as i64 * es;
        let both = |of: Operand| (bytes(of.along), bytes(of.step));
        let ((v_along, v_step), (s_along, s_step)) = (both(frame.v), both(frame.s));
        let [a, b, c] = input.batch.strides.map(|stride| bytes(stride as usize));
        let width = Width::from_bytes(config.vec).unwrap_or(Width::X);
        Self {
            isa,
            swapped: frame.swapped,
            v: Split::new(frame.v_len, isa.lanes(width), config.vectors),
            s: Split::new(frame.s_len, 1, config.n_s),
            k: input.k,
            v_along,
            v_step,
            s_along,
            s_step,
            c_v: bytes(frame.c_v),
            c_s: bytes(frame.c_s),
            strides: if frame.swapped { [b, a, c] } else { [a, b, c] },
            edge: None,
            config,
            input,
        }
    }

    pub(super) fn es(&self) -> i64 {
        self.isa.float.bytes() as i64
    }

    /// Whether vectors are transposed into a panel first.
    pub(super) fn packs(&self) -> bool {
        self.config.packs
    }

    /// Whether the next product of a batch is fetched.
    pub(super) fn fetches_product(&self) -> bool {
        self.config.prefetch && self.input.batch.count > 1
    }

    /// The vectors of tile `i` along `v`; the last of an edge is as narrow as its elements allow.
    pub(super) fn pieces(&self, i: usize) -> Vec<Piece> {
        let (size, unit) = (self.v.size(i), self.v.unit);
        let piece = |start: usize| {
            let valid = unit.min(size - start);
            let narrow = [Width::X, Width::Y].into_iter().find(|w| self.isa.lanes(*w) >= valid);
            let widest = Width::from_bytes(self.config.vec).unwrap_or(Width::X);
            Piece { start, width: narrow.filter(|w| w.bytes() < widest.bytes()).unwrap_or(widest), valid }
        };
        (0..size).step_by(unit).map(piece).collect()
    }

    /// Tiles along vectors but for a turned edge.
    pub(super) fn v_tiles(&self) -> usize {
        self.v.tiles() - usize::from(self.edge.is_some())
    }

    /// Lanes of the one vector that is masked; 0 where none is.
    pub(super) fn masked(&self) -> usize {
        if let Some(edge) = &self.edge {
            return edge.masked();
        }
        let last = self.pieces(self.v.tiles() - 1).pop();
        last.filter(|p| p.valid < self.isa.lanes(p.width)).map_or(0, |p| p.valid)
    }

    /// Bytes between steps of k of a panel.
    pub(super) fn pitch(&self) -> i64 {
        (self.v.big_units * self.v.unit) as i64 * self.es()
    }

    /// Bytes of one thread's panel.
    pub(super) fn panel(&self) -> usize {
        if self.packs() { (self.pitch() as usize * self.k).next_multiple_of(ALIGN) } else { 0 }
    }

    /// Bytes of workspace: a panel for each thread, from an aligned address on.
    pub(super) fn workspace(&self) -> usize {
        if self.packs() { self.panel() * self.config.t + ALIGN } else { 0 }
    }

    /// Whether C has neighbours along vectors: also its only row does, whose elements lie one after the other.
    pub(super) fn stores_along(&self) -> bool {
        !self.swapped || (self.input.m == 1 && self.c_v == self.es())
    }

    /// Vectors of host memory that the code needs, in bytes.
    pub(super) fn needs(&self) -> i64 {
        if self.isa.evex { 64 } else { self.config.vec as i64 }
    }

    /// Whether the code reads one of the scalars.
    pub(super) fn reads_scalars(&self) -> bool {
        self.input.alpha == ScalarClass::Other || self.input.beta == ScalarClass::Other
    }
}
