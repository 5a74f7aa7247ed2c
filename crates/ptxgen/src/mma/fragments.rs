//! From shared memory to fragments, and the products.

use super::blueprint::Blueprint;
use super::emit::Position;
use super::tile::{First, Places};
use super::variants::Fetch;
use crate::ir::{Address, Builder, Caching, Inst, MmaKind, Operand as Value, Reg, Space, Type};
use crate::simt::Multiply;

/// One load of fragments: which address, bytes beyond it, and how many registers it fills.
#[derive(Clone, Copy)]
struct Load {
    address: usize,
    offset: u32,
    registers: usize,
}

/// One operand's tile as a warp reads it.
struct Operand {
    fetch: Fetch,
    /// The type of a register.
    ty: Type,
    /// Registers of a fragment.
    each: usize,
    /// Addresses in the first stage.
    addresses: Vec<Reg>,
    /// The loads of each step, fragment after fragment.
    steps: Vec<Vec<Load>>,
}

/// What a warp reads, and how it multiplies. The first factor of the instruction comes from B.
pub(super) struct Fragments {
    kind: MmaKind,
    first: Operand,
    second: Operand,
}

impl Fragments {
    pub(super) fn new(b: &mut Builder, bp: &Blueprint, at: &Position, shared: Reg) -> Self {
        let second = Operand::new(b, bp, at, true, shared);
        let first = Operand::new(b, bp, at, false, shared);
        Self { kind: bp.kind, first, second }
    }
}

impl Operand {
    fn new(b: &mut Builder, bp: &Blueprint, at: &Position, is_a: bool, shared: Reg) -> Self {
        let [_, first, second] = bp.kind.registers();
        let (ty, each) = if is_a { second } else { first };
        let reader = Reader::new(bp, is_a, each as u32);
        let base = b.add(Type::U32, shared, if is_a { 0 } else { bp.tile_a_bytes });
        let begin = reader.begin(b, at.lane, at.warp[usize::from(!is_a)]);
        let mut places = Places::new(b, bp.tile(is_a), base, begin, reader.apart());
        let steps = (0..bp.config.u / reader.depth).map(|step| {
            let at = |(rows, pieces)| {
                let (address, offset) = places.at(b, rows, pieces);
                Load { address, offset, registers: reader.at_once() }
            };
            reader.places(step).into_iter().map(at).collect()
        });
        let steps = steps.collect();
        Self { fetch: reader.fetch, ty, each, addresses: places.registers(), steps }
    }

    /// The fragments of a step.
    fn fetch(&self, b: &mut Builder, addresses: &[Reg], step: usize) -> Vec<Reg> {
        let mut all = Vec::new();
        for load in &self.steps[step] {
            let addr = Address { base: addresses[load.address], offset: load.offset.into() };
            let dst = b.regs(self.ty, load.registers);
            all.extend(&dst);
            b.push(match self.fetch {
                Fetch::Plain => Inst::Ld { space: Space::Shared, caching: Caching::Default, ty: self.ty, dst, addr },
                fetch => Inst::Ldmatrix { transposed: fetch == Fetch::Transposed, dst, addr },
            });
        }
        all
    }
}

fn or_zero(reg: Option<Reg>) -> Value {
    reg.map_or(0u32.into(), Value::from)
}

/// How the lanes of a warp share the loads of one operand.
struct Reader {
    fetch: Fetch,
    along_k: bool,
    /// Rows of A or columns of B of a warp, and of a fragment.
    rows: u32,
    height: u32,
    /// Registers of a fragment.
    each: u32,
    /// Steps of an instruction.
    depth: u32,
    /// Elements of a piece.
    piece: u32,
    bytes: u32,
    /// Whether it is the first factor, whose fragments hold blocks of rows before blocks of steps.
    is_first: bool,
}

impl Reader {
    fn new(bp: &Blueprint, is_a: bool, each: u32) -> Self {
        let [height, width, depth] = bp.kind.shape();
        let (rows, height) = if is_a { (bp.config.m_w, width) } else { (bp.config.n_w, height) };
        let (fetch, bytes) = (bp.fetch(is_a), bp.frame.arithmetic.bytes());
        let along_k = bp.loaders[usize::from(!is_a)].along_k;
        Self { fetch, along_k, rows, height, each, depth, piece: fetch.grain() / bytes, bytes, is_first: !is_a }
    }

    /// Registers that one load fills.
    fn at_once(&self) -> usize {
        if self.fetch == Fetch::Plain { 1 } else { 4 }
    }

    /// Pieces that all warps begin at multiples of, but for low bits that no piece further on has.
    fn apart(&self) -> u32 {
        // Along the reduction all warps begin with the first piece.
        if self.along_k { 1 << 16 } else { self.rows / self.piece }
    }

    /// Where a lane begins.
    fn begin(&self, b: &mut Builder, lane: Reg, warp: Option<Reg>) -> First {
        // Eight rows of a matrix, four matrices; or eight rows of a fragment, four lanes along the reduction.
        let ([row, step], within) = match self.fetch {
            Fetch::Plain => (self.of_plain(b, lane), true),
            _ => (self.of_matrix(b, lane), false),
        };
        let mut side = row;
        if self.along_k {
            if warp.is_some() {
                side = Some(b.scale_add(warp, self.rows, or_zero(side)));
            }
            // A step is a piece of a matrix, or an element.
            let within = step.filter(|_| within).map(|step| b.scale(step, self.bytes));
            return First { row: side, piece: step.filter(|_| within.is_none()), within };
        }
        let (mut piece, mut rest) = (side, None);
        if within {
            piece = side.filter(|_| self.piece < 8).map(|side| b.div(side, self.piece));
            rest = side.and_then(|side| b.rem(side, self.piece)).map(|rest| b.scale(rest, self.bytes));
        }
        if warp.is_some() {
            piece = Some(b.scale_add(warp, self.rows / self.piece, or_zero(piece)));
        }
        First { row: step, piece, within: rest }
    }

    /// The row and the step of a lane's element.
    fn of_plain(&self, b: &mut Builder, lane: Reg) -> [Option<Reg>; 2] {
        [Some(b.div(lane, 4)), b.rem(lane, 4)]
    }

    /// Of the row of a matrix whose address a lane gives: which row of A or column of B, or block of eight of them, and which
    /// step or block of steps; whichever memory is contiguous in goes by blocks.
    fn of_matrix(&self, b: &mut Builder, lane: Reg) -> [Option<Reg>; 2] {
        let (within, matrix) = (b.rem(lane, 8), b.div(lane, 8));
        let (low, high) = (b.rem(matrix, 2), b.div(matrix, 2));
        // Registers of the first factor are blocks of rows before blocks of steps; of the second, the other way round.
        let (rows, steps) = if self.is_first { (low, Some(high)) } else { (Some(high), low) };
        let down = |b: &mut Builder, block: Option<Reg>| Some(b.scale_add(block, 8, or_zero(within)));
        if self.along_k { [down(b, rows), steps] } else { [rows, down(b, steps)] }
    }

    /// Rows and pieces to go from where a lane begins to each load of a step.
    fn places(&self, step: u32) -> Vec<(u32, u32)> {
        let first = step * self.depth;
        let place = |side: u32, k: u32| match self.along_k {
            true => (side, k / self.piece),
            false => (k, side / self.piece),
        };
        if self.fetch != Fetch::Plain {
            return (0..self.rows).step_by(16).map(|side| place(side, first)).collect();
        }
        let blocks = self.height / 8;
        let register = |r: u32| {
            let (row, k) = if self.is_first { (r % blocks, r / blocks) } else { (0, r) };
            (8 * row, 4 * k)
        };
        let fragment = |side: u32| (0..self.each).map(register).map(move |(row, k)| place(side + row, first + k));
        (0..self.rows).step_by(self.height as usize).flat_map(fragment).collect()
    }
}

impl Multiply for Fragments {
    /// The fragments of a step are loaded one step ahead.
    fn compute(&self, b: &mut Builder, turn: Option<Reg>, acc: &[Reg]) {
        let mut shifted = |of: &Operand| -> Vec<Reg> {
            of.addresses.iter().map(|&at| turn.map_or(at, |turn| b.add(Type::U32, at, turn))).collect()
        };
        let (first, second) = (shifted(&self.first), shifted(&self.second));
        let fetch = |b: &mut Builder, step: usize| {
            let second = self.second.fetch(b, &second, step);
            (self.first.fetch(b, &first, step), second)
        };
        let steps = self.first.steps.len();
        let [(_, sums), ..] = self.kind.registers();
        let mut next = fetch(b, 0);
        for step in 0..steps {
            let (first, second) = next;
            next = if step + 1 < steps { fetch(b, step + 1) } else { Default::default() };
            let mut acc = acc.chunks(sums);
            for x in first.chunks(self.first.each) {
                for y in second.chunks(self.second.each) {
                    let Some(acc) = acc.next() else { return };
                    let (d, a, bb, c) = (acc.to_vec(), x.to_vec(), y.to_vec(), acc.to_vec());
                    b.push(Inst::Mma { kind: self.kind, d, a, b: bb, c });
                }
            }
        }
    }
}
