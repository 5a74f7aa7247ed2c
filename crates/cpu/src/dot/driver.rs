//! What follows from an input and a configuration, and the loops over the tiles of C.

use super::kernel::{a_lies_along_k, b_lies_along_k};
use super::space::{Config, Prefetch};
use super::tile::{Ahead, DotTile};
use crate::LINE;
use crate::codegen::abi::PanelArgs;
use crate::codegen::vector::{Vector, Width};
use crate::device::vec_max;
use crate::exec::code::Invoke;
use crate::exec::driver::{Call, scalar_bits};
use crate::exec::pack::Block as Packing;
use crate::exec::parts::Parts;
use crate::geometry::Operand;
use crate::scalar::Float;
use crate::split::{Split, share};
use iced_x86::IcedError;
use std::ops::Range;
use tilewright_ops::gemm::{GemmInput, ScalarClass};

/// Derived values of one plan.
#[derive(Clone, Debug)]
pub(super) struct Blueprint {
    pub(super) input: GemmInput,
    pub(super) config: Config,
    pub(super) vector: Vector,
    m: Split,
    n: Split,
    /// Blocks of k, in vectors.
    k: Split,
    copied: Copied,
}

/// The shorter operand where it lies across k: each thread transposes what it reads of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copied {
    None,
    A,
    B,
}

impl Copied {
    fn of(input: &GemmInput) -> Self {
        match (a_lies_along_k(input), b_lies_along_k(input)) {
            (false, _) => Self::A,
            (true, false) => Self::B,
            (true, true) => Self::None,
        }
    }
}

/// Big tiles and small ones. There are no partial ones: their unit is an element.
const KINDS: usize = 2;

/// Which block of k a tile sums: the first meets C as the caller left it, the last ends with part of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Only,
    First,
    Between,
    Last,
}

impl Block {
    const ALL: [Self; 4] = [Self::Only, Self::First, Self::Between, Self::Last];

    /// Block `i` of so many.
    fn of(i: usize, blocks: usize) -> Self {
        match (i == 0, i + 1 == blocks) {
            (true, true) => Self::Only,
            (true, false) => Self::First,
            (false, false) => Self::Between,
            (false, true) => Self::Last,
        }
    }
}

/// Routines start at this alignment, in bytes.
const ALIGN: usize = 64;

/// Bytes at which rows meet in few sets of a first-level cache.
const SETS: usize = 1024;

/// Where the routine of each kind of tile starts, in each kind of block.
pub(super) type Entries = [[[usize; KINDS]; KINDS]; Block::ALL.len()];

impl Blueprint {
    /// Derives the values; the configuration must be legal for the input.
    pub(super) fn new(input: &GemmInput, config: Config) -> Self {
        let vector =
            Vector { width: Width::from_bytes(config.vec).unwrap_or(Width::X), float: Float::of(input.dtype()) };
        let (m, n) = (Split::new(input.m, 1, config.m_s), Split::new(input.n, 1, config.n_s));
        let lanes = vector.lanes();
        let k = Split::new(input.k, lanes, config.u / lanes);
        Self { input: one_stride(input), config, vector, m, n, k, copied: Copied::of(input) }
    }

    fn es(&self) -> usize {
        self.vector.float.bytes()
    }

    /// Bytes from a row of A to the next, of columns of B, and of columns of C, as tiles read them.
    fn strides(&self) -> [usize; 3] {
        let GemmInput { lda, ldb, ldc, .. } = self.input;
        let row = if self.copied == Copied::A { self.pitch() } else { lda };
        let column = if self.copied == Copied::B { self.pitch() } else { ldb };
        [row, column, ldc].map(|elements| elements * self.es())
    }

    /// Elements from a row of a copy to the next: all of a block, and a line more where rows would meet in few sets of a cache.
    fn pitch(&self) -> usize {
        let block = self.k.big_units * self.k.unit;
        if (block * self.es()).is_multiple_of(SETS) { block + LINE / self.es() } else { block }
    }

    /// Bytes of one thread's copy of a block of an operand.
    fn copy_bytes(&self) -> usize {
        let rows = match self.copied {
            Copied::A => self.input.m,
            Copied::B => self.input.n,
            Copied::None => return 0,
        };
        (rows * self.pitch() * self.es()).next_multiple_of(ALIGN)
    }

    fn tile(&self, m: usize, n: usize, block: Block) -> DotTile {
        let [a_row, b_column, c_column] = self.strides().map(|bytes| bytes as i32);
        DotTile {
            vector: self.vector,
            m,
            n,
            k_s: self.config.k_s,
            k_l: self.config.k_l,
            tail: if matches!(block, Block::Only | Block::Last) { self.k.tail() } else { 0 },
            a_row,
            b_column,
            c_column,
            prefetch: self.prefetch(a_row, b_column),
            alpha: self.input.alpha,
            beta: if matches!(block, Block::Only | Block::First) { self.input.beta } else { ScalarClass::One },
        }
    }

    fn prefetch(&self, a_row: i32, b_column: i32) -> Ahead {
        let (c, rows_stay) = (&self.config, self.config.rows_stay);
        let (stays, stride, streams, threads) =
            if rows_stay { (&self.m, a_row, &self.n, c.t_n) } else { (&self.n, b_column, &self.m, c.t_m) };
        let share = stays.big_units.div_ceil((streams.tiles() / threads).max(1));
        match c.prefetch {
            Prefetch::None => Ahead::None,
            Prefetch::Stays => Ahead::Stays { count: share, stride },
            Prefetch::Streams if rows_stay => Ahead::B,
            Prefetch::Streams => Ahead::A,
        }
    }

    /// What all tiles of a block of k are called with.
    fn args(&self, call: &Call, block: usize) -> PanelArgs {
        let (vectors, tail) = (self.k.size(block) / self.vector.lanes(), self.k.tail());
        let mut v_mask = [0; 8];
        v_mask.iter_mut().take(tail * self.es() / 4).for_each(|word| *word = u32::MAX);
        PanelArgs {
            k_main: vectors / self.config.k_s,
            k_tail: vectors % self.config.k_s,
            alpha: scalar_bits(self.vector.float, call.alpha),
            beta: scalar_bits(self.vector.float, call.beta),
            v_mask,
            ..PanelArgs::default()
        }
    }

    /// The operands from a block of k on, or the copy of those rows or columns of it that the tiles of a thread read.
    ///
    /// # Safety
    /// As for [`Parts::run_part`].
    unsafe fn block_of(&self, call: &Call, block: usize, thread: usize, tiles: [&Range<usize>; 2]) -> Call {
        let GemmInput { lda, ldb, .. } = self.input;
        let copy = call.workspace.wrapping_add(thread * self.copy_bytes());
        let from = self.k.start(block) * self.es();
        let mut moved = call.moved([from, from, 0]);
        match self.copied {
            Copied::None => {}
            Copied::A => {
                // SAFETY: the caller's contract; A lies across k.
                unsafe { self.pack(call.a.wrapping_add(from * lda), lda, &self.m, tiles[0], block, copy) };
                moved.a = copy;
            }
            Copied::B => {
                // SAFETY: the caller's contract; B lies across k.
                unsafe { self.pack(call.b.wrapping_add(from * ldb), ldb, &self.n, tiles[1], block, copy) };
                moved.b = copy;
            }
        }
        moved
    }

    /// Transposes the rows of these tiles, whose steps of k lie so many elements apart.
    ///
    /// # Safety
    /// The operand must be readable over the rows and the block, the copy writable over all rows.
    unsafe fn pack(
        &self,
        source: *const u8,
        step: usize,
        side: &Split,
        tiles: &Range<usize>,
        block: usize,
        copy: *mut u8,
    ) {
        let first = side.start(tiles.start);
        let row = first * self.es();
        // To what transposes, k is the side and rows are the steps.
        let units = self.pitch() / self.k.unit;
        let split =
            Split { extent: self.k.size(block), unit: self.k.unit, big: 1, big_units: units, small: 0, apart: false };
        let rows = Packing {
            source: source.wrapping_add(row),
            operand: Operand { along: step, step: 1 },
            split: &split,
            tiles: 0..1,
            depth: side.start(tiles.end) - first,
        };
        let (to, simd) = (copy.wrapping_add(row * self.pitch()), vec_max() >= Width::Y.bytes() as i64);
        // SAFETY: the caller's contract; the element type is the plan's.
        unsafe {
            match self.vector.float {
                Float::F32 => rows.pack(to.cast::<f32>(), simd),
                Float::F64 => rows.pack(to.cast::<f64>(), simd),
            }
        }
    }

    /// Computes tiles of C in these rows and columns, of one block of k.
    ///
    /// # Safety
    /// As for [`Parts::run_part`], the operands from the block on, the next of which is so many bytes ahead; `args` are the block's.
    unsafe fn run_block(
        &self,
        mut args: PanelArgs,
        call: &Call,
        [rows, columns]: [Range<usize>; 2],
        next_block: usize,
        entries: &[[usize; KINDS]; KINDS],
        runs: &impl Invoke,
    ) {
        let (c, es) = (&self.config, self.es());
        let [a_row, b_column, c_column] = self.strides();
        let (outer, inner) =
            if c.rows_stay { ((&self.m, rows), (&self.n, columns)) } else { ((&self.n, columns), (&self.m, rows)) };
        let stays = |tile: usize| {
            let start = outer.0.start(tile);
            if c.rows_stay { call.a.wrapping_add(start * a_row) } else { call.b.wrapping_add(start * b_column) }
        };
        let Range { start: first, end } = outer.1;
        for tile in first..end {
            // After the last tile, the first of the next block of k; there is none after the last block, which asks for what it has.
            args.next = if tile + 1 < end { stays(tile + 1) } else { stays(first).wrapping_add(next_block) };
            for run in inner.0.runs(inner.1.clone()) {
                let units = inner.0.units(run.kind);
                let ((m, n), (m_kind, n_kind)) = if c.rows_stay {
                    args.s_step = (units * b_column) as isize;
                    args.c_step = (units * c_column) as isize;
                    ((tile, run.first), (outer.0.kind(tile), run.kind))
                } else {
                    args.v_step = (units * a_row) as isize;
                    args.c_step = (units * es) as isize;
                    ((run.first, tile), (run.kind, outer.0.kind(tile)))
                };
                let (m, n) = (self.m.start(m), self.n.start(n));
                args.v = call.a.wrapping_add(m * a_row);
                args.s = call.b.wrapping_add(n * b_column);
                args.c = call.c.wrapping_add(m * es + n * c_column);
                args.tiles = run.count;
                // SAFETY: the arguments describe tiles within the caller's extents.
                unsafe { runs.invoke(entries[m_kind][n_kind], &raw mut args) };
            }
        }
    }

    /// # Safety
    /// As for [`Parts::run_plainly`]; `T` is the plan's element type.
    unsafe fn plainly<T>(&self, call: &Call, alpha: T, beta: T)
    where
        T: Copy + Default + std::ops::Add<Output = T> + std::ops::Mul<Output = T>,
    {
        let GemmInput { m, n, k, lda, ldb, ldc, .. } = self.input;
        let (row, of_a) = if self.copied == Copied::A { (1, lda) } else { (lda, 1) };
        let (column, of_b) = if self.copied == Copied::B { (1, ldb) } else { (ldb, 1) };
        let (a, b, c) = (call.a.cast::<T>(), call.b.cast::<T>(), call.c.cast::<T>());
        for (j, i) in (0..n).flat_map(|j| (0..m).map(move |i| (j, i))) {
            // SAFETY: the caller's contract; C is read only if beta is not zero.
            unsafe {
                let terms = (0..k).map(|p| *a.add(i * row + p * of_a) * *b.add(j * column + p * of_b));
                let sum = alpha * terms.fold(T::default(), |sum, term| sum + term);
                let to = c.add(i + j * ldc);
                to.write(if self.input.beta == ScalarClass::Zero { sum } else { beta * to.read() + sum });
            }
        }
    }
}

impl Parts for Blueprint {
    type Entries = Entries;

    fn generate(&self) -> Result<(Vec<u8>, Entries), IcedError> {
        let (mut code, mut entries) = (Vec::new(), Entries::default());
        let blocks = self.k.tiles();
        let is_there = |block: &Block| (0..blocks).any(|i| Block::of(i, blocks) == *block);
        for block in Block::ALL.into_iter().filter(is_there) {
            for (m, n) in (0..KINDS).flat_map(|m| (0..KINDS).map(move |n| (m, n))) {
                if self.m.has(m) && self.n.has(n) {
                    code.resize(code.len().next_multiple_of(ALIGN), 0xcc);
                    entries[block as usize][m][n] = code.len();
                    code.extend(self.tile(self.m.units(m), self.n.units(n), block).assemble()?);
                }
            }
        }
        Ok((code, entries))
    }

    fn threads(&self) -> usize {
        self.config.t_m * self.config.t_n
    }

    fn workspace(&self) -> usize {
        self.threads() * self.copy_bytes()
    }

    unsafe fn run_part(&self, thread: usize, call: &Call, entries: &Entries, runs: &impl Invoke) {
        let c = &self.config;
        let rows = share(&(0..self.m.tiles()), thread % c.t_m, c.t_m);
        let columns = share(&(0..self.n.tiles()), thread / c.t_m, c.t_n);
        let blocks = self.k.tiles();
        for block in 0..blocks {
            // SAFETY: the caller's contract; the copy is this thread's.
            let call = unsafe { self.block_of(call, block, thread, [&rows, &columns]) };
            let entries = &entries[Block::of(block, blocks) as usize];
            let (args, sides) = (self.args(&call, block), [rows.clone(), columns.clone()]);
            let next = if block + 1 < blocks { (self.k.start(block + 1) - self.k.start(block)) * self.es() } else { 0 };
            // SAFETY: the caller's contract; operands begin where the block does.
            unsafe { self.run_block(args, &call, sides, next, entries, runs) };
        }
    }

    unsafe fn run_plainly(&self, call: &Call) {
        // SAFETY: the caller's contract.
        unsafe {
            match self.vector.float {
                Float::F32 => self.plainly::<f32>(call, call.alpha as f32, call.beta as f32),
                Float::F64 => self.plainly::<f64>(call, call.alpha, call.beta),
            }
        }
    }
}

/// The input with the leading dimension of a single row of A, or column of B, as its distance along the side of length 1: nothing.
fn one_stride(input: &GemmInput) -> GemmInput {
    let mut input = input.clone();
    if !input.layout.a_transposed() && a_lies_along_k(&input) {
        input.lda = 0;
    }
    if input.layout.b_transposed() && b_lies_along_k(&input) {
        input.ldb = 0;
    }
    input
}
