//! Everything derived from a correlation and a configuration: the generator and the driver read the same values.

use super::blocks::{Block, From, Runs, blocks, is_staged};
use super::config::{Axis, ConvConfig};
use super::panels::Panels;
use super::slab::Slab;
use crate::codegen::tile::{Gathered, Loaded, Tile, TilePrefetch, TileStore};
use crate::codegen::vector::{Vector, Width};
use crate::scalar::{Float, Numbers};
use crate::split::{KINDS, Split, share};
use std::ops::Range;
use tilewright_ops::conv::{Correlation, Strides, Tap};
use tilewright_ops::gemm::ScalarClass;

/// Alignment of every part of the workspace, in bytes.
const ALIGN: usize = 64;
/// A block of the reduction is the first for its outputs, or a later one.
pub(crate) const PHASES: usize = 2;
/// By split of runs: kind of positions, kind of outputs, phase.
pub(crate) type Positions = Vec<[[[usize; PHASES]; KINDS]; KINDS]>;
/// A tile that nothing needs.
pub(crate) const NONE: usize = usize::MAX;

/// Derived values of one correlation.
#[derive(Clone, Debug)]
pub(crate) struct Blueprint {
    pub(crate) of: Correlation,
    pub(crate) config: ConvConfig,
    pub(crate) vector: Vector,
    pub(crate) outs: Split,
    pub(crate) depth: Split,
    pub(crate) blocks: Vec<Block>,
    /// By block: its runs, and which of the splits its runs are cut by.
    pub(crate) runs: Vec<(Runs, usize)>,
    pub(crate) splits: Vec<Split>,
    pub(crate) panels: Panels,
    pub(crate) slab: Option<Slab>,
    /// Where sums of a block are kept until they are complete: because neither neighbouring outputs nor neighbouring positions are
    /// neighbours in memory, or because whole vectors are added to sooner than their parts.
    pub(crate) staged: Option<Staged>,
    /// Where tiles read what is gathered.
    pub(crate) from: From,
    /// Bytes from the first step of the reduction to every other.
    pub(crate) table: Vec<i64>,
}

/// The part of a thread: groups' blocks, numbered group after group, and tiles of outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) units: Range<usize>,
    pub(crate) outs: Range<usize>,
}

impl Blueprint {
    /// Derives the values; the configuration must be legal for the input.
    pub(crate) fn new(of: Correlation, config: ConvConfig, float: Float) -> Self {
        let vector = Vector { width: Width::from_bytes(config.vec).unwrap_or(Width::X), float };
        let lanes = vector.lanes();
        let vectors = (config.v_s / lanes).max(1);
        let (along_outs, c) = (config.axis == Axis::Outs, &config);
        let outs =
            if along_outs { Split::new(of.outs.count, lanes, vectors) } else { Split::new(of.outs.count, 1, c.s_s) };
        let depth = Split::into_multiple(of.depth(), c.k_s, (c.u / c.k_s).max(1), 1);
        let blocks = blocks(&of, c.positions, (c.t / c.t_outs).div_ceil(of.groups.len()));
        let taps = of.taps.len().max(1);
        let channels = |k: usize| depth.start(k) / taps..(depth.start(k) + depth.size(k)).div_ceil(taps);
        let most = (0..depth.tiles()).map(|k| channels(k).len()).max().unwrap_or(1);
        let slab = c.slab.then(|| Slab::new(&of, &blocks, most));
        let own = From {
            image: of.images.stride,
            channel: of.channels.stride,
            row: of.rows.stride,
            column: of.columns.stride,
        };
        let (from, step) = slab.as_ref().map_or((own, of.step), |slab| (slab.strides, slab.step));
        let staged = (c.stage || is_staged(&of)).then(|| Staged::new(&of, &blocks, outs.start(outs.tiles())));
        let to = staged.map_or(of.result, |staged| staged.strides);
        let mut splits: Vec<Split> = Vec::new();
        let mut runs = Vec::with_capacity(blocks.len());
        for block in &blocks {
            let these = Runs::new(&of, block, (from, step), to);
            let count = these.inner.count;
            let split = if along_outs { Split::new(count, 1, c.s_s) } else { Split::new(count, lanes, vectors) };
            let known = splits.iter().position(|s| *s == split).unwrap_or_else(|| {
                splits.push(split);
                splits.len() - 1
            });
            runs.push((these, known));
        }
        let panels = Panels::new(&of, outs, depth);
        let table = table(&of, from, float.bytes());
        Self { of, config, vector, outs, depth, blocks, runs, splits, panels, slab, staged, from, table }
    }

    /// Bytes of an element.
    pub(crate) fn es(&self) -> usize {
        self.vector.float.bytes()
    }

    pub(crate) fn along_outs(&self) -> bool {
        self.config.axis == Axis::Outs
    }

    /// Whether a tile of outputs stays while positions stream.
    pub(crate) fn keeps_outs(&self) -> bool {
        self.along_outs() == self.config.keeps_v
    }

    /// The channels that a block of the reduction sums over, some of them in part.
    pub(crate) fn channels(&self, k_block: usize) -> Range<usize> {
        let taps = self.of.taps.len().max(1);
        let (first, end) = (self.depth.start(k_block), self.depth.start(k_block) + self.depth.size(k_block));
        first / taps..end.div_ceil(taps)
    }

    pub(crate) fn part(&self, thread: usize) -> Part {
        let (along, all) = (self.config.t_outs, self.config.t);
        Part {
            units: share(&(0..self.of.groups.len() * self.blocks.len()), thread / along, all / along),
            outs: share(&(0..self.outs.tiles()), thread % along, along),
        }
    }

    /// Bytes of the packed filters of all groups.
    pub(crate) fn packed_bytes(&self) -> usize {
        self.bytes(self.packed_len() * self.of.groups.len())
    }

    /// Elements of the packed filters of one group.
    pub(crate) fn packed_len(&self) -> usize {
        self.panels.len().next_multiple_of(ALIGN / self.es())
    }

    /// Bytes of one thread's slab.
    pub(crate) fn slab_bytes(&self) -> usize {
        self.slab.as_ref().map_or(0, |slab| self.bytes(slab.len))
    }

    /// Bytes of one thread's staged outputs.
    pub(crate) fn staged_bytes(&self) -> usize {
        self.staged.map_or(0, |staged| self.bytes(staged.len))
    }

    fn bytes(&self, elements: usize) -> usize {
        (elements * self.es()).next_multiple_of(ALIGN)
    }

    /// Bytes of workspace of all threads.
    pub(crate) fn workspace(&self) -> usize {
        self.packed_bytes() + self.config.t * (self.slab_bytes() + self.staged_bytes())
    }

    /// Every tile that is needed, and its position by split, kind of positions, kind of outputs and phase.
    pub(crate) fn tiles(&self) -> (Vec<Tile>, Positions) {
        let mut tiles = Vec::new();
        let mut positions = vec![[[[NONE; PHASES]; KINDS]; KINDS]; self.splits.len()];
        for (split, at) in self.splits.iter().zip(&mut positions) {
            for index in 0..KINDS * KINDS * PHASES {
                let (run, out, phase) = (index / PHASES / KINDS, index / PHASES % KINDS, index % PHASES);
                let later = self.depth.tiles() > 1;
                if split.has(run) && self.outs.has(out) && (phase == 0 || later) {
                    at[run][out][phase] = tiles.len();
                    tiles.push(self.tile((split, run), out, phase));
                }
            }
        }
        (tiles, positions)
    }

    fn tile(&self, (split, run): (&Split, usize), out: usize, phase: usize) -> Tile {
        let es = self.es();
        let bytes = |elements: usize| (elements * es) as i32;
        let along_outs = self.along_outs();
        // All blocks have the same distances between neighbours of a run, wherever they are cut.
        let inner = self.runs.first().map_or((0, 0), |(runs, _)| (runs.inner.from, runs.inner.to));
        let is_row = inner.1 == 1 || split.extent == 1;
        let ((v, v_kind), (s, s_kind)) =
            if along_outs { ((&self.outs, out), (split, run)) } else { ((split, run), (&self.outs, out)) };
        let (vecs, width) = (v.units(v_kind), s.units(s_kind));
        let to_outs = self.target().out;
        let store = match (along_outs, is_row, to_outs == 1) {
            (true, _, true) => TileStore::Along { s_stride: bytes(inner.1) },
            (true, ..) => TileStore::Across { v_stride: bytes(to_outs) },
            (false, true, _) => TileStore::Along { s_stride: bytes(to_outs) },
            (false, ..) => TileStore::Across { v_stride: bytes(inner.1) },
        };
        Tile {
            vector: self.vector,
            vecs,
            tail: if v_kind + 1 == KINDS { v.tail() } else { 0 },
            s: width,
            numbers: Numbers::Real,
            conjugated: [false; 2],
            k_s: self.config.k_s,
            k_l: self.config.k_l,
            v_masked: !along_outs,
            copy_v: false,
            loaded_v: Loaded::AsIs,
            flips_s: false,
            gathered: if along_outs { Gathered::S } else { Gathered::V },
            v_k: if along_outs { bytes(vecs * self.vector.lanes()) } else { 0 },
            s_k: if along_outs { 0 } else { bytes(width) },
            s_s: if along_outs { bytes(inner.0) } else { bytes(1) },
            store,
            alpha: ScalarClass::One,
            beta: if phase == 0 { ScalarClass::Zero } else { ScalarClass::One },
            stream: false,
            prefetch: TilePrefetch {
                v_steps: if along_outs { self.config.prefetch } else { 0 },
                c: self.config.prefetch > 0,
                ..TilePrefetch::default()
            },
        }
    }

    /// Elements between neighbours where tiles store.
    pub(crate) fn target(&self) -> Strides {
        self.staged.map_or(self.of.result, |staged| staged.strides)
    }
}

/// Sums of a block, position after position, outputs side by side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Staged {
    pub(crate) strides: Strides,
    /// Elements.
    len: usize,
}

impl Staged {
    /// For any of these blocks, with so many outputs.
    fn new(of: &Correlation, blocks: &[Block], outs: usize) -> Self {
        let most = |count: &dyn Fn(&Block) -> usize| blocks.iter().map(count).max().unwrap_or(0);
        let (rows, images) = (most(&|b| b.rows.len()), most(&|b| b.images.len()));
        let (row, image) = (of.grid[1] * outs, of.grid[1] * outs * rows);
        Self { strides: Strides { image, row, column: outs, out: 1 }, len: image * images }
    }
}

/// Bytes from the first step of the reduction to every step.
fn table(of: &Correlation, from: From, es: usize) -> Vec<i64> {
    let tap = |channel: usize| {
        move |tap: &Tap| ((channel * from.channel + tap.at[0] * from.row + tap.at[1] * from.column) * es) as i64
    };
    (0..of.channels.count).flat_map(|channel| of.taps.iter().map(tap(channel))).collect()
}
