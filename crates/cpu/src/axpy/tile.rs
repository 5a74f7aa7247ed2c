//! Generated code: a block of C, to which all columns of the matrix are added a group at a time.

use crate::codegen::abi::at;
use crate::codegen::emitter::{Emitter, LINE, mem};
use crate::codegen::vector::{Vector, Width};
use crate::split::Split;
use iced_x86::{Code, IcedError, Instruction, MemoryOperand, Register};
use tilewright_ops::gemm::ScalarClass;

const ARGS: Register = Register::RDI;
const V: Register = Register::RAX;
const S: Register = Register::RDX;
const COUNT: Register = Register::RCX;
const V_BASE: Register = Register::R8;
const C_BASE: Register = Register::R9;
const C: Register = Register::R10;
const GROUPS: Register = Register::R11;

/// Everything that the code of a block depends on. Of the arguments of panels (`PanelArgs`) it reads `v`, `s`, `c`, the scalars and
/// the mask: what there is of loops is known when the code is made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AxpyTile {
    pub(super) vector: Vector,
    /// Vectors of the block.
    pub(super) vectors: usize,
    /// Valid lanes of the last one; 0 means that it is whole.
    pub(super) tail: usize,
    /// Vectors of a turn of the loop along the block.
    pub(super) m_s: usize,
    /// Columns of C.
    pub(super) s: usize,
    /// Columns of the matrix, in groups that are added together.
    pub(super) k: Split,
    /// Bytes between columns of the matrix and of C.
    pub(super) v_column: i32,
    pub(super) c_column: i32,
    /// Bytes between scalars along k and along the columns of C.
    pub(super) s_step: i32,
    pub(super) s_column: i32,
    /// Lines that are fetched ahead within each column; 0 is none.
    pub(super) prefetch: usize,
    pub(super) alpha: ScalarClass,
    pub(super) beta: ScalarClass,
}

/// Registers that hold neither sums nor scalars: a loaded vector, a mask, and beta.
pub(super) const FREE: usize = 3;

/// Vectors that are lines, and are written without a look at what C held, are asked for so many ahead: without it, columns that begin
/// anywhere in a line took up to twice as long on the core that was measured.
const WRITTEN_AHEAD: usize = 8;

/// Registers that sums and scalars may take.
pub(super) const fn most(width: Width) -> usize {
    width.registers() - FREE
}

impl AxpyTile {
    fn loaded(&self) -> Register {
        self.vector.reg(0)
    }

    fn mask(&self) -> Register {
        self.vector.reg(1)
    }

    fn factor(&self) -> Register {
        self.vector.reg(2)
    }

    fn sum(&self, i: usize, j: usize) -> Register {
        self.vector.reg(FREE + j * self.m_s + i)
    }

    fn scalar(&self, kk: usize, j: usize) -> Register {
        self.vector.reg(FREE + self.s * (self.m_s + kk) + j)
    }

    fn bytes(&self, vectors: usize) -> i32 {
        (vectors * self.vector.width.bytes()) as i32
    }

    /// Machine code of the routine.
    ///
    /// # Errors
    /// The encoder's; a block whose turns fit the registers and whose strides fit 31 bits gives none.
    pub(super) fn assemble(&self) -> Result<Vec<u8>, IcedError> {
        let mut e = Emitter::new(self.vector)?;
        e.mov_load(V_BASE, mem(ARGS, at::V));
        e.mov_load(S, mem(ARGS, at::S));
        e.mov_load(C_BASE, mem(ARGS, at::C));
        if self.tail != 0 {
            e.set_mask(self.tail);
        }
        // The first group does with C what beta asks for, the others add to it.
        self.emit_group(&mut e, self.k.big_units, self.beta);
        self.emit_groups(&mut e, self.k.big - 1, self.k.big_units);
        self.emit_groups(&mut e, self.k.small, self.k.big_units - 1);
        e.ret();
        e.finish()
    }

    /// A loop over groups of so many columns.
    fn emit_groups(&self, e: &mut Emitter, groups: usize, columns: usize) {
        if groups == 0 {
            return;
        }
        let mut next = e.label();
        count(e, GROUPS, groups);
        e.bind(&mut next);
        self.emit_group(e, columns, ScalarClass::One);
        e.dec(GROUPS);
        e.jump_if_not_zero(next);
    }

    /// Adds so many columns to the whole block, and moves on to the next ones.
    fn emit_group(&self, e: &mut Emitter, columns: usize, beta: ScalarClass) {
        self.emit_scalars(e, columns);
        if beta == ScalarClass::Other {
            e.broadcast(self.factor(), mem(ARGS, at::BETA));
        }
        e.mov(V, V_BASE);
        e.mov(C, C_BASE);
        // A vector that is not whole is the last of what the turns leave.
        let turns = (self.vectors - usize::from(self.tail != 0)) / self.m_s;
        let rest = self.vectors - turns * self.m_s;
        if turns > 0 {
            let mut turn = e.label();
            count(e, COUNT, turns);
            e.bind(&mut turn);
            self.emit_turn(e, self.m_s, columns, beta, false);
            e.add_imm(V, self.bytes(self.m_s));
            e.add_imm(C, self.bytes(self.m_s));
            e.dec(COUNT);
            e.jump_if_not_zero(turn);
        }
        if rest > 0 {
            self.emit_turn(e, rest, columns, beta, self.tail != 0);
        }
        e.add_imm(V_BASE, columns as i32 * self.v_column);
        e.add_imm(S, columns as i32 * self.s_step);
    }

    /// The scalars of so many columns, times alpha.
    fn emit_scalars(&self, e: &mut Emitter, columns: usize) {
        let scales = self.alpha != ScalarClass::One;
        if scales {
            e.broadcast(self.loaded(), mem(ARGS, at::ALPHA));
        }
        for (kk, j) in (0..columns).flat_map(|kk| (0..self.s).map(move |j| (kk, j))) {
            let disp = kk as i64 * i64::from(self.s_step) + j as i64 * i64::from(self.s_column);
            let scalar = self.scalar(kk, j);
            e.broadcast(scalar, mem(S, disp));
            if scales {
                e.op3(self.vector.mul(), scalar, scalar, self.loaded());
            }
        }
    }

    /// So many vectors along the block, of which the last may be masked.
    fn emit_turn(&self, e: &mut Emitter, vectors: usize, columns: usize, beta: ScalarClass, masked: bool) {
        let masked = |i: usize| masked && i + 1 == vectors;
        for (i, j) in (0..vectors).flat_map(|i| (0..self.s).map(move |j| (i, j))) {
            self.emit_old(e, i, j, beta, masked(i));
        }
        for kk in 0..columns {
            let column = kk as i64 * i64::from(self.v_column);
            let first = kk == 0 && beta == ScalarClass::Zero;
            for i in 0..vectors {
                self.emit_products(e, (i, kk), mem(V, column + i64::from(self.bytes(i))), first, masked(i));
            }
            self.emit_prefetch(e, column, vectors);
        }
        for (i, j) in (0..vectors).flat_map(|i| (0..self.s).map(move |j| (i, j))) {
            let to = self.c(i, j);
            if masked(i) {
                e.store_lanes(to, self.sum(i, j), self.tail, self.mask());
            } else {
                e.op2_store(self.vector.store(), to, self.sum(i, j));
            }
            if beta == ScalarClass::Zero && self.vector.width == Width::Z {
                e.prefetch_write(self.c(i + WRITTEN_AHEAD, j));
            }
        }
    }

    fn c(&self, i: usize, j: usize) -> MemoryOperand {
        mem(C, j as i64 * i64::from(self.c_column) + i64::from(self.bytes(i)))
    }

    /// What a sum begins with: nothing is read where beta is zero.
    fn emit_old(&self, e: &mut Emitter, i: usize, j: usize, beta: ScalarClass, masked: bool) {
        if beta == ScalarClass::Zero {
            return;
        }
        let sum = self.sum(i, j);
        if masked {
            e.load_masked(sum, self.c(i, j), self.mask());
        } else {
            e.load(sum, self.c(i, j));
        }
        if beta == ScalarClass::Other {
            e.op3(self.vector.mul(), sum, sum, self.factor());
        }
    }

    /// A vector of a column times its scalars, the first of which are what sums begin with.
    fn emit_products(&self, e: &mut Emitter, (i, kk): (usize, usize), from: MemoryOperand, first: bool, masked: bool) {
        let code = if first { self.vector.mul() } else { self.vector.fma() };
        if self.s == 1 && !masked {
            return e.op3_load(code, self.sum(i, 0), self.scalar(kk, 0), from);
        }
        if masked {
            e.load_masked(self.loaded(), from, self.mask());
        } else {
            e.load(self.loaded(), from);
        }
        (0..self.s).for_each(|j| e.op3(code, self.sum(i, j), self.scalar(kk, j), self.loaded()));
    }

    fn emit_prefetch(&self, e: &mut Emitter, column: i64, vectors: usize) {
        if self.prefetch > 0 {
            let lines = (i64::from(self.bytes(vectors)) + LINE - 1) / LINE;
            (0..lines).for_each(|line| e.prefetch(mem(V, column + LINE * (self.prefetch as i64 + line))));
        }
    }
}

/// `reg = turns`
fn count(e: &mut Emitter, reg: Register, turns: usize) {
    e.push(Instruction::with2(Code::Mov_rm64_imm32, reg, turns as i32));
}
