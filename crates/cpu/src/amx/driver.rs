//! What follows from an input and a configuration, and the loops over blocks.

use super::finish::{self, Written};
use super::pack::{Role, Source};
use super::space::Config;
use super::tile::{self, Block};
use super::{Operands, SIDE, TILE};
use crate::codegen::abi::PanelArgs;
use crate::exec::code::Invoke;
use crate::exec::driver::Call;
use crate::exec::parts::Parts;
use crate::split::{Split, pieces, share};
use iced_x86::IcedError;
use std::ops::Range;
use tilewright_core::dtype::DType;
use tilewright_core::element::Bf16;
use tilewright_ops::gemm::{GemmInput, ScalarClass};

/// Derived values of one plan.
#[derive(Clone, Debug)]
pub(super) struct Blueprint {
    pub(super) input: GemmInput,
    pub(super) config: Config,
    operands: Operands,
    /// Rows of C and its columns, in tiles of blocks, and the reduction in tiles.
    v: Split,
    s: Split,
    k: Split,
}

/// Most tiles of a block along a side.
const MOST: usize = 3;

/// Where the routines start: of blocks by tiles along both sides, and whether they add to C.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entries {
    begin: usize,
    end: usize,
    blocks: [[[usize; 2]; MOST]; MOST],
}

/// A block of sums on its way to C.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) ldc: usize,
    /// What becomes of C.
    pub(super) beta: ScalarClass,
    /// Alpha and beta.
    pub(super) factors: [f32; 2],
}

/// Routines start at this alignment, in bytes.
const ALIGN: usize = 64;

/// Bytes of a block of sums that is not C as it is.
const SCRATCH: usize = MOST * MOST * TILE;

impl Blueprint {
    /// Derives the values; the configuration must be legal for the input.
    pub(super) fn new(input: GemmInput, config: Config) -> Self {
        let operands = Operands::of(input.dtype());
        // Sums that are rounded for C are complete before.
        let depth = if input.types.output == DType::Bf16 { usize::MAX } else { config.u };
        Self {
            operands,
            v: Split::new(input.m, SIDE, config.m_s),
            s: Split::new(input.n, SIDE, config.n_s),
            k: Split::new(input.k.div_ceil(operands.steps()), 1, depth),
            config,
            input,
        }
    }

    fn rounds(&self) -> bool {
        self.input.types.output == DType::Bf16
    }

    /// Blocks of a cache block along each side.
    fn cached(&self) -> [usize; 2] {
        let config = &self.config;
        [config.m_l / (SIDE * config.m_s), config.n_l / (SIDE * config.n_s)].map(|blocks| blocks.max(1))
    }

    /// Bytes of a thread's packed blocks of each side.
    fn packed(&self) -> [usize; 2] {
        let [v, s] = self.cached();
        [(v, &self.v), (s, &self.s)].map(|(blocks, of)| blocks.min(of.tiles()) * of.big_units * self.k.big_units * TILE)
    }

    fn own_bytes(&self) -> usize {
        let [v, s] = self.packed();
        v + s + SCRATCH
    }

    fn sources(&self, call: &Call) -> [Source; 2] {
        let (operands, bytes) = (self.operands, self.operands.bytes());
        let of = |base, contiguous: bool, ld: usize| {
            let (along, step) = if contiguous { (bytes, ld * bytes) } else { (ld * bytes, bytes) };
            Source { base, along, step, operands }
        };
        let GemmInput { lda, ldb, layout, .. } = self.input;
        [of(call.a, !layout.a_transposed(), lda), of(call.b, layout.b_transposed(), ldb)]
    }

    /// Rows and columns of blocks that a thread computes: its share of the longer side.
    fn part(&self, thread: usize) -> [Range<usize>; 2] {
        let (v, s) = (0..self.v.tiles(), 0..self.s.tiles());
        if v.len() >= s.len() { [share(&v, thread, self.config.t), s] } else { [v, share(&s, thread, self.config.t)] }
    }

    /// Where the panel of a block begins behind that of the first one, of so many tiles of the reduction.
    fn panel(of: &Split, first: usize, block: usize, depth: usize) -> usize {
        (of.start(block) - of.start(first)) / SIDE * depth * TILE
    }

    /// Packs blocks of one side over a block of the reduction.
    ///
    /// # Safety
    /// The operand must be readable over them, and the memory at `to` writable over their panels.
    unsafe fn pack(&self, (source, of, role): (&Source, &Split, Role), blocks: &Range<usize>, k: usize, to: *mut u8) {
        let (depth, steps) = (self.k.size(k), self.operands.steps());
        let one = |block: usize, p: usize| {
            let panel = to.wrapping_add(Self::panel(of, blocks.start, block, depth));
            let tiles = (of.start(block + 1) - of.start(block)) / SIDE;
            for tile in 0..tiles {
                let (first, from) = (of.start(block) + tile * SIDE, (self.k.start(k) + p) * steps);
                let there = ((first, of.extent - first), (from, self.input.k - from));
                // SAFETY: the caller's contract; what is there ends with the operand.
                unsafe { source.pack(role, there.0, there.1, panel.wrapping_add((p * tiles + tile) * TILE)) };
            }
        };
        // Along memory: each step of the reduction may lie on a page of its own.
        if source.along < source.step {
            (0..depth).for_each(|p| blocks.clone().for_each(|block| one(block, p)));
        } else {
            blocks.clone().for_each(|block| (0..depth).for_each(|p| one(block, p)));
        }
    }

    /// Computes a block of sums.
    ///
    /// # Safety
    /// As for [`Parts::run_part`]; the panels in `args` must be those of the block.
    unsafe fn block(
        &self,
        mut args: PanelArgs,
        (v, s, k): (usize, usize, usize),
        (call, scratch): (&Call, *mut u8),
        (entries, runs): (&Entries, &impl Invoke),
    ) {
        let GemmInput { ldc, alpha, .. } = self.input;
        let tiles = [(&self.v, v), (&self.s, s)].map(|(of, at)| (of.start(at + 1) - of.start(at)) / SIDE);
        let (rows, columns) = (self.v.size(v), self.s.size(s));
        let whole = rows == tiles[0] * SIDE && columns == tiles[1] * SIDE;
        let beta = if k == 0 { self.input.beta } else { ScalarClass::One };
        let at = self.v.start(v) + self.s.start(s) * ldc;
        let direct = whole && alpha == ScalarClass::One && beta != ScalarClass::Other && !self.rounds();
        let entry = |adds: bool| entries.blocks[tiles[0] - 1][tiles[1] - 1][usize::from(adds)];
        args.k_main = self.k.size(k);
        if direct {
            args.c = call.c.wrapping_add(at * size_of::<f32>());
            args.c_step = (ldc * size_of::<f32>()) as isize;
            // SAFETY: the block lies within C.
            return unsafe { runs.invoke(entry(beta == ScalarClass::One), &raw mut args) };
        }
        let stride = tiles[0] * SIDE;
        (args.c, args.c_step) = (scratch, (stride * size_of::<f32>()) as isize);
        let factors = [call.alpha as f32, if beta == ScalarClass::Other { call.beta as f32 } else { 1.0 }];
        let to = Sums { rows, columns, ldc, beta, factors };
        // SAFETY: the scratch memory holds a block; what is there of it lies within C.
        unsafe {
            runs.invoke(entry(false), &raw mut args);
            match (self.operands, self.rounds()) {
                (Operands::I8, _) => {
                    finish::write::<i32, i32>((scratch.cast(), stride), call.c.cast::<i32>().add(at), &to)
                }
                (_, false) => finish::write::<f32, f32>((scratch.cast(), stride), call.c.cast::<f32>().add(at), &to),
                (_, true) => finish::write::<f32, Bf16>((scratch.cast(), stride), call.c.cast::<Bf16>().add(at), &to),
            }
        }
    }

    /// # Safety
    /// As for [`Parts::run_part`]; `T` is the type of operands, `S` of sums and `C` of C.
    unsafe fn plainly<T: Copy, S: Copy + Default, C: Written<S>>(&self, call: &Call, plus: impl Fn(S, T, T) -> S) {
        let GemmInput { m, n, k, ldc, beta, .. } = self.input;
        let [a, b] = self.sources(call);
        let factors = [call.alpha as f32, if beta == ScalarClass::Other { call.beta as f32 } else { 1.0 }];
        for (j, i) in (0..n).flat_map(|j| (0..m).map(move |i| (j, i))) {
            // SAFETY: the caller's contract.
            unsafe {
                let of = |x: &Source, at: usize, p: usize| {
                    x.base.wrapping_add(at * x.along + p * x.step).cast::<T>().read_unaligned()
                };
                let sum = (0..k).fold(S::default(), |sum, p| plus(sum, of(&a, i, p), of(&b, j, p)));
                let to = Sums { rows: 1, columns: 1, ldc, beta, factors };
                finish::write((&raw const sum, 1), call.c.cast::<C>().add(j * ldc + i), &to);
            }
        }
    }
}

impl Parts for Blueprint {
    type Entries = Entries;

    fn generate(&self) -> Result<(Vec<u8>, Entries), IcedError> {
        let (mut code, mut entries) = (Vec::new(), Entries::default());
        let mut add = |routine: Vec<u8>| {
            code.resize(code.len().next_multiple_of(ALIGN), 0xcc);
            let start = code.len();
            code.extend(routine);
            start
        };
        (entries.begin, entries.end) = (add(tile::begin()?), add(tile::end()?));
        for (v, s) in (1..=self.config.m_s).flat_map(|v| (1..=self.config.n_s).map(move |s| (v, s))) {
            for adds in [false, true] {
                let block = Block { operands: self.operands, v, s, adds };
                entries.blocks[v - 1][s - 1][usize::from(adds)] = add(block.assemble()?);
            }
        }
        Ok((code, entries))
    }

    fn threads(&self) -> usize {
        self.config.t
    }

    fn workspace(&self) -> usize {
        self.config.t * self.own_bytes()
    }

    fn runs_here(&self) -> bool {
        crate::device::has_tiles()
    }

    unsafe fn run_part(&self, thread: usize, call: &Call, entries: &Entries, runs: &impl Invoke) {
        let [v_part, s_part] = self.part(thread);
        if v_part.is_empty() || s_part.is_empty() {
            return;
        }
        let ([v_source, s_source], [v_blocks, s_blocks]) = (self.sources(call), self.cached());
        let [v_bytes, s_bytes] = self.packed();
        let v_packed = call.workspace.wrapping_add(thread * self.own_bytes());
        let s_packed = v_packed.wrapping_add(v_bytes);
        let scratch = s_packed.wrapping_add(s_bytes);
        let mut args = PanelArgs::default();
        // SAFETY: the caller's contract; the workspace has room for the panels of a cache block of each side, and a block of sums.
        unsafe {
            runs.invoke(entries.begin, &raw mut args);
            for (s_block, k) in
                pieces(s_part, s_blocks).flat_map(|block| (0..self.k.tiles()).map(move |k| (block.clone(), k)))
            {
                let depth = self.k.size(k);
                self.pack((&s_source, &self.s, Role::Rows), &s_block, k, s_packed);
                for v_block in pieces(v_part.clone(), v_blocks) {
                    self.pack((&v_source, &self.v, Role::Woven), &v_block, k, v_packed);
                    for (s, v) in s_block.clone().flat_map(|s| v_block.clone().map(move |v| (s, v))) {
                        args.v = v_packed.wrapping_add(Self::panel(&self.v, v_block.start, v, depth));
                        args.s = s_packed.wrapping_add(Self::panel(&self.s, s_block.start, s, depth));
                        self.block(args.clone(), (v, s, k), (call, scratch), (entries, runs));
                    }
                }
            }
            runs.invoke(entries.end, &raw mut args);
        }
    }

    unsafe fn run_plainly(&self, call: &Call) {
        let wide = Bf16::to_f32;
        let floats = |sum: f32, a: Bf16, b: Bf16| sum + wide(a) * wide(b);
        let integers = |sum: i32, a: i8, b: i8| sum.wrapping_add(i32::from(a) * i32::from(b));
        // SAFETY: the caller's contract.
        unsafe {
            match (self.operands, self.rounds()) {
                (Operands::I8, _) => self.plainly::<i8, i32, i32>(call, integers),
                (_, false) => self.plainly::<Bf16, f32, f32>(call, floats),
                (_, true) => self.plainly::<Bf16, f32, Bf16>(call, floats),
            }
        }
    }
}
