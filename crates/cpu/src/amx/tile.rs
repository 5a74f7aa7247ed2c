//! Generated code of blocks of tiles.

use super::{Operands, ROW, SIDE, TILE};
use crate::codegen::abi::at;
use crate::codegen::emitter::{Emitter, mem};
use crate::codegen::vector::{Vector, Width};
use crate::scalar::Float;
use iced_x86::{Code, IcedError, Instruction, MemoryOperand, Register};

const ARGS: Register = Register::RDI;
const V: Register = Register::RAX;
const S: Register = Register::RDX;
const COUNT: Register = Register::RCX;
const C: Register = Register::R8;
const C_STRIDE: Register = Register::R9;
const STRIDE: Register = Register::R10;
const C_GROUP: Register = Register::R11;

/// Tile registers.
pub(super) const REGISTERS: usize = 8;

/// Tiles of sums of a block: `v` along the rows of C, `s` across them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Block {
    pub(super) operands: Operands,
    pub(super) v: usize,
    pub(super) s: usize,
    /// Whether sums begin with what is in their place, and not with zeros.
    pub(super) adds: bool,
}

fn emitter() -> Result<Emitter, IcedError> {
    Emitter::new(Vector { width: Width::Z, float: Float::F32 })
}

/// The routine that gives a thread its tile registers, all whole.
///
/// # Errors
/// The encoder's: there is none.
pub(super) fn begin() -> Result<Vec<u8>, IcedError> {
    // Palette 1; bytes of a row of each of eight tiles; rows of each.
    let row = u64::from_ne_bytes([ROW as u8, 0, ROW as u8, 0, ROW as u8, 0, ROW as u8, 0]);
    let words = [1, 0, row, row, 0, 0, u64::from_ne_bytes([SIDE as u8; 8]), 0];
    let mut e = emitter()?;
    for word in words.into_iter().rev() {
        e.push(Instruction::with2(Code::Mov_r64_imm64, V, word));
        e.push_register(V);
    }
    e.push(Instruction::with1(Code::VEX_Ldtilecfg_m512, mem(Register::RSP, 0)));
    e.add_imm(Register::RSP, 8 * words.len() as i32);
    e.ret();
    e.finish()
}

/// The routine that gives them back: a thread that keeps them has more to save at each switch.
///
/// # Errors
/// The encoder's: there is none.
pub(super) fn end() -> Result<Vec<u8>, IcedError> {
    let mut e = emitter()?;
    e.push(Ok(Instruction::with(Code::VEX_Tilerelease)));
    e.ret();
    e.finish()
}

/// Where row 0 of a tile lies, and the distance of its rows.
fn rows(base: Register, stride: Register, disp: usize) -> MemoryOperand {
    MemoryOperand::with_base_index_scale_displ_size(base, stride, 1, disp as i64, 1)
}

impl Block {
    fn sum(self, i: usize, j: usize) -> Register {
        Register::TMM0 + (j * self.v + i) as u32
    }

    fn v_tile(self, i: usize) -> Register {
        Register::TMM0 + (self.v * self.s + i) as u32
    }

    fn s_tile(self, j: usize) -> Register {
        Register::TMM0 + (self.v * self.s + self.v + j) as u32
    }

    /// Machine code of the routine: panels at `v` and `s`, sums at `c`, `c_step` bytes from column to column, `k_main` tiles deep.
    ///
    /// # Errors
    /// The encoder's; a block that fits the registers gives none.
    pub(super) fn assemble(self) -> Result<Vec<u8>, IcedError> {
        let mut e = emitter()?;
        e.mov_load(V, mem(ARGS, at::V));
        e.mov_load(S, mem(ARGS, at::S));
        e.mov_load(C_STRIDE, mem(ARGS, at::C_STEP));
        e.mov_load(COUNT, mem(ARGS, at::K_MAIN));
        e.push(Instruction::with2(Code::Mov_rm64_imm32, STRIDE, ROW as i32));
        self.emit_sums(&mut e, |e, sum, place| {
            if self.adds {
                e.op2_load(Code::VEX_Tileloadd_tmm_sibmem, sum, place);
            } else {
                e.push(Instruction::with1(Code::VEX_Tilezero_tmm, sum));
            }
        });
        let mut turn = e.label();
        e.bind(&mut turn);
        self.emit_step(&mut e);
        e.add_imm(V, (self.v * TILE) as i32);
        e.add_imm(S, (self.s * TILE) as i32);
        e.dec(COUNT);
        e.jump_if_not_zero(turn);
        self.emit_sums(&mut e, |e, sum, place| e.op2_store(Code::VEX_Tilestored_sibmem_tmm, place, sum));
        e.ret();
        e.finish()
    }

    /// Does something with each tile of sums and its place.
    fn emit_sums(self, e: &mut Emitter, each: impl Fn(&mut Emitter, Register, MemoryOperand)) {
        e.mov_load(C, mem(ARGS, at::C));
        if self.s > 1 {
            // Bytes to the next tile across: 16 columns.
            e.mov(C_GROUP, C_STRIDE);
            for _ in 0..SIDE.trailing_zeros() {
                e.push(Instruction::with2(Code::Add_r64_rm64, C_GROUP, C_GROUP));
            }
        }
        for j in 0..self.s {
            if j > 0 {
                e.push(Instruction::with2(Code::Add_r64_rm64, C, C_GROUP));
            }
            for i in 0..self.v {
                each(e, self.sum(i, j), rows(C, C_STRIDE, i * ROW));
            }
        }
    }

    fn emit_step(self, e: &mut Emitter) {
        let product = match self.operands {
            Operands::Bf16 => Code::VEX_Tdpbf16ps_tmm_tmm_tmm,
            Operands::I8 => Code::VEX_Tdpbssd_tmm_tmm_tmm,
        };
        for i in 0..self.v {
            e.op2_load(Code::VEX_Tileloadd_tmm_sibmem, self.v_tile(i), rows(V, STRIDE, i * TILE));
        }
        for j in 0..self.s {
            e.op2_load(Code::VEX_Tileloadd_tmm_sibmem, self.s_tile(j), rows(S, STRIDE, j * TILE));
            for i in 0..self.v {
                e.op3(product, self.sum(i, j), self.s_tile(j), self.v_tile(i));
            }
        }
    }
}
