//! What follows from an input and a configuration, and the loops over blocks.

use super::finish::{self, Written};
use super::pack::{Panels, Role, Source};
use super::space::Config;
use super::tile::{self, Block};
use super::{MOST, Operands, SIDE, TILE};
use crate::codegen::abi::PanelArgs;
use crate::config::Axis;
use crate::exec::code::Invoke;
use crate::exec::driver::Call;
use crate::exec::parts::Parts;
use crate::split::{Split, pieces, share};
use iced_x86::IcedError;
use std::ops::Range;
use tilewright_core::dtype::DType;
use tilewright_core::element::Bf16;
use tilewright_ops::gemm::{GemmInput, ScalarClass};

/// Derived values of one plan. `v` is the side of C that its axis names, whose operand is woven; `s` is the other.
#[derive(Clone, Debug)]
pub(super) struct Blueprint {
    pub(super) input: GemmInput,
    pub(super) config: Config,
    operands: Operands,
    /// Both sides of C, in tiles of blocks, and the reduction in tiles.
    v: Split,
    s: Split,
    k: Split,
}

/// Where the routines start: of blocks by tiles along both sides, whether they add to C, and whether they read one side in place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entries {
    begin: usize,
    end: usize,
    blocks: [[[[usize; 2]; 2]; MOST]; MOST],
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

/// A thread's memory beside the packed panels.
#[derive(Clone, Copy, Debug)]
struct Memory {
    /// A block of sums that is not C as it is, and the same turned.
    block: *mut u8,
    turned: *mut u8,
    /// Sums of a cache block of one side and all of the other, block by block.
    kept: *mut u8,
}

/// Where a block stands: in C and in the reduction, and among the kept sums.
#[derive(Clone, Copy, Debug)]
struct Place {
    v: usize,
    s: usize,
    k: usize,
    kept: usize,
}

/// Routines start at this alignment, in bytes.
const ALIGN: usize = 64;

/// Bytes of a block of sums.
const SCRATCH: usize = MOST * MOST * TILE;

impl Blueprint {
    /// Derives the values; the configuration must be legal for the input.
    pub(super) fn new(input: GemmInput, config: Config) -> Self {
        let operands = Operands::of(input.dtype());
        let (v, s) = if config.axis == Axis::M { (input.m, input.n) } else { (input.n, input.m) };
        let (v, s) = (Split::new(v, SIDE, config.m_s), Split::new(s, SIDE, config.n_s));
        let k = Split::new(input.k.div_ceil(operands.steps()), 1, config.u);
        Self { operands, v, s, k, config, input }
    }

    fn rounds(&self) -> bool {
        self.input.types.output == DType::Bf16
    }

    /// Whether whole blocks of sums are written to C as they are, and added to it there.
    fn is_direct(&self) -> bool {
        let GemmInput { alpha, beta, .. } = self.input;
        self.config.axis == Axis::M && alpha == ScalarClass::One && beta != ScalarClass::Other && !self.rounds()
    }

    /// Whether sums of one block of the reduction wait for the next: they are not C's.
    fn keeps(&self) -> bool {
        self.k.tiles() > 1 && !self.is_direct()
    }

    /// Whether tiles of `s` are read where the caller has them.
    fn in_place(&self) -> bool {
        !self.config.pack_b
    }

    /// Blocks of a cache block of each side.
    fn cached(&self) -> [usize; 2] {
        let config = &self.config;
        [config.m_l / (SIDE * config.m_s), config.n_l / (SIDE * config.n_s)].map(|blocks| blocks.max(1))
    }

    /// Bytes of a thread's packed blocks of each side.
    fn packed(&self) -> [usize; 2] {
        let [v, s] = self.cached();
        let s = if self.in_place() { 1 } else { s };
        [(v, &self.v), (s, &self.s)].map(|(blocks, of)| blocks.min(of.tiles()) * of.big_units * self.k.big_units * TILE)
    }

    /// Blocks of each side that a thread computes at most.
    fn share(&self) -> [usize; 2] {
        let (v, s, t) = (self.v.tiles(), self.s.tiles(), self.config.t);
        if v >= s { [v.div_ceil(t), s] } else { [v, s.div_ceil(t)] }
    }

    /// Bytes of a block of sums, and of a thread's that wait.
    fn kept(&self) -> [usize; 2] {
        let block = self.v.big_units * self.s.big_units * TILE;
        let [v, s] = self.share();
        [block, if self.keeps() { self.cached()[1].min(s) * v * block } else { 0 }]
    }

    fn own_bytes(&self) -> usize {
        let [v, s] = self.packed();
        v + s + 2 * SCRATCH + self.kept()[1]
    }

    /// The operands of `v` and of `s`.
    fn sources(&self, call: &Call) -> [Source; 2] {
        let (operands, bytes) = (self.operands, self.operands.bytes());
        let of = |base, contiguous: bool, ld: usize| {
            let (along, step) = if contiguous { (bytes, ld * bytes) } else { (ld * bytes, bytes) };
            Source { base, along, step, operands }
        };
        let GemmInput { lda, ldb, layout, .. } = self.input;
        let (a, b) = (of(call.a, !layout.a_transposed(), lda), of(call.b, layout.b_transposed(), ldb));
        if self.config.axis == Axis::M { [a, b] } else { [b, a] }
    }

    /// Blocks of each side that a thread computes: its share of the side that has more.
    fn part(&self, thread: usize) -> [Range<usize>; 2] {
        let (v, s) = (0..self.v.tiles(), 0..self.s.tiles());
        if v.len() >= s.len() { [share(&v, thread, self.config.t), s] } else { [v, share(&s, thread, self.config.t)] }
    }

    fn panels<'a>(&self, split: &'a Split, blocks: Range<usize>, k: usize, to: *mut u8) -> Panels<'a> {
        let (from, depth) = (self.k.start(k) * self.operands.steps(), self.k.size(k));
        Panels { split, blocks, from, depth, k: self.input.k, to }
    }

    /// Computes a block of sums.
    ///
    /// # Safety
    /// As for [`Parts::run_part`]; the panels in `args` must be those of the block, in place or not, and the memory a thread's own.
    unsafe fn block(
        &self,
        (args, in_place): (&mut PanelArgs, bool),
        at: Place,
        (call, memory): (&Call, &Memory),
        (entries, runs): (&Entries, &impl Invoke),
    ) {
        let ldc = self.input.ldc;
        let tiles = [(&self.v, at.v), (&self.s, at.s)].map(|(of, at)| (of.start(at + 1) - of.start(at)) / SIDE);
        let (wide, high) = (self.v.size(at.v), self.s.size(at.s));
        let entry = |adds: bool| entries.blocks[tiles[0] - 1][tiles[1] - 1][usize::from(adds)][usize::from(in_place)];
        args.k_main = self.k.size(at.k);
        let is_first = at.k == 0;
        let beta = if is_first { self.input.beta } else { ScalarClass::One };
        if self.is_direct() && wide == tiles[0] * SIDE && high == tiles[1] * SIDE {
            args.c = call.c.wrapping_add((self.v.start(at.v) + self.s.start(at.s) * ldc) * size_of::<f32>());
            args.c_step = (ldc * size_of::<f32>()) as isize;
            // SAFETY: the block lies within C.
            return unsafe { runs.invoke(entry(beta == ScalarClass::One), args) };
        }
        let (sums, adds, is_last) = if self.keeps() {
            (memory.kept.wrapping_add(at.kept * self.kept()[0]), !is_first, at.k + 1 == self.k.tiles())
        } else {
            (memory.block, false, true)
        };
        (args.c, args.c_step) = (sums, (tiles[0] * SIDE * size_of::<f32>()) as isize);
        // SAFETY: there is memory for a block; what is there of it lies within C.
        unsafe {
            runs.invoke(entry(adds), args);
            if is_last {
                let beta = if self.keeps() { self.input.beta } else { beta };
                self.write((sums, memory.turned), tiles, at, (call, beta));
            }
        }
    }

    /// Writes a block of sums to C.
    ///
    /// # Safety
    /// As for [`Blueprint::block`].
    unsafe fn write(
        &self,
        (sums, turned): (*mut u8, *mut u8),
        [v, s]: [usize; 2],
        at: Place,
        (call, beta): (&Call, ScalarClass),
    ) {
        let ldc = self.input.ldc;
        let (wide, high) = ((self.v.start(at.v), self.v.size(at.v)), (self.s.start(at.s), self.s.size(at.s)));
        let (sums, stride, (i, rows), (j, columns)) = if self.config.axis == Axis::M {
            (sums, v * SIDE, wide, high)
        } else {
            // SAFETY: the caller's contract: there is memory for two blocks.
            unsafe { finish::turn(sums.cast(), turned.cast(), (v, s)) };
            (turned, s * SIDE, high, wide)
        };
        let factors = [call.alpha as f32, if beta == ScalarClass::Other { call.beta as f32 } else { 1.0 }];
        let (c, to) = (i + j * ldc, Sums { rows, columns, ldc, beta, factors });
        // SAFETY: what is there of the block lies within C.
        unsafe {
            match (self.operands, self.rounds()) {
                (Operands::I8, _) => finish::write::<i32, i32>((sums.cast(), stride), call.c.cast::<i32>().add(c), &to),
                (_, false) => finish::write::<f32, f32>((sums.cast(), stride), call.c.cast::<f32>().add(c), &to),
                (_, true) => finish::write_rounded((sums.cast(), stride), call.c.cast::<Bf16>().add(c), &to),
            }
        }
    }

    /// Computes the blocks of a cache block of both sides.
    ///
    /// # Safety
    /// As for [`Blueprint::block`].
    unsafe fn blocks(
        &self,
        (v, s): (&Panels<'_>, &Panels<'_>),
        (source, first, k): (&Source, [usize; 2], usize),
        (call, memory): (&Call, &Memory),
        (entries, runs): (&Entries, &impl Invoke),
    ) {
        let mut args = PanelArgs::default();
        for s_block in s.blocks.clone() {
            let in_place = self.in_place() && self.is_whole(s_block);
            (args.s, args.s_step) = if in_place {
                (source.at(self.s.start(s_block), s.from), source.along as isize)
            } else {
                // Of those that are read in place only the last may be another one.
                (if self.in_place() { s.to } else { s.at(s_block) }.cast_const(), 0)
            };
            for v_block in v.blocks.clone() {
                args.v = v.at(v_block);
                let kept = (s_block - first[1]) * self.share()[0] + v_block - first[0];
                let at = Place { v: v_block, s: s_block, k, kept };
                // SAFETY: the caller's contract.
                unsafe { self.block((&mut args, in_place), at, (call, memory), (entries, runs)) };
            }
        }
    }

    fn is_whole(&self, s_block: usize) -> bool {
        self.s.start(s_block + 1) <= self.s.extent
    }

    /// # Safety
    /// As for [`Parts::run_part`]; `T` is the type of operands, `S` of sums and `C` of C.
    unsafe fn plainly<T: Copy, S: Copy + Default, C: Written<S>>(&self, call: &Call, plus: impl Fn(S, T, T) -> S) {
        let GemmInput { m, n, k, ldc, beta, .. } = self.input;
        let [v, s] = self.sources(call);
        let (a, b) = if self.config.axis == Axis::M { (v, s) } else { (s, v) };
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
        for (v, s) in (1..=self.v.big_units).flat_map(|v| (1..=self.s.big_units).map(move |s| (v, s))) {
            for (adds, in_place) in [(false, false), (true, false), (false, true), (true, true)] {
                if self.in_place() || !in_place {
                    let block = Block { operands: self.operands, v, s, adds, in_place };
                    entries.blocks[v - 1][s - 1][usize::from(adds)][usize::from(in_place)] = add(block.assemble()?);
                }
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
        let block = s_packed.wrapping_add(s_bytes);
        let turned = block.wrapping_add(SCRATCH);
        let memory = Memory { block, turned, kept: turned.wrapping_add(SCRATCH) };
        let mut none = PanelArgs::default();
        // SAFETY: the caller's contract; the workspace has room for the panels of a cache block of each side, and for sums.
        unsafe {
            runs.invoke(entries.begin, &raw mut none);
            for (s_block, k) in
                pieces(s_part, s_blocks).flat_map(|block| (0..self.k.tiles()).map(move |k| (block.clone(), k)))
            {
                let first = [v_part.start, s_block.start];
                let s = self.panels(&self.s, s_block.clone(), k, s_packed);
                if !self.in_place() {
                    s_source.pack_panels(Role::Rows, &s);
                } else if !self.is_whole(s_block.end - 1) {
                    let last = s_block.end - 1..s_block.end;
                    s_source.pack_panels(Role::Rows, &self.panels(&self.s, last, k, s_packed));
                }
                for v_block in pieces(v_part.clone(), v_blocks) {
                    let v = self.panels(&self.v, v_block, k, v_packed);
                    v_source.pack_panels(Role::Woven, &v);
                    self.blocks((&v, &s), (&s_source, first, k), (call, &memory), (entries, runs));
                }
            }
            runs.invoke(entries.end, &raw mut none);
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
