//! Generated code of blocks of tiles.

use super::{MOST, Operands, ROW, SIDE, TILE};
use crate::codegen::abi::at;
use crate::codegen::emitter::{Emitter, mem};
use crate::codegen::vector::{Vector, Width};
use crate::scalar::Float;
use iced_x86::{Code, IcedError, Instruction, MemoryOperand, Register};

const ARGS: Register = Register::RDI;
const V: Register = Register::RAX;
/// One for each tile of the other side, in the loop; the third is C's before and after it.
const S: [Register; MOST] = [Register::RDX, Register::RSI, Register::R8];
const COUNT: Register = Register::RCX;
const C: Register = Register::R8;
const C_STRIDE: Register = Register::R9;
const STRIDE: Register = Register::R10;
/// In the loop, between rows of tiles that are read where they lie; before and after it, to the next tile of sums across.
const S_STRIDE: Register = Register::R11;
const C_GROUP: Register = Register::R11;

/// Tile registers.
pub(super) const REGISTERS: usize = 8;

/// Tiles of sums of a block: `v` of them side by side, `s` one below the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Block {
    pub(super) operands: Operands,
    pub(super) v: usize,
    pub(super) s: usize,
    /// Whether sums begin with what is in their place, and not with zeros.
    pub(super) adds: bool,
    /// Whether tiles of `s` are read where the caller has them, and not packed.
    pub(super) in_place: bool,
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

    /// Machine code of the routine: panels at `v` and `s`, sums at `c`, `c_step` bytes from row to row of tiles, `k_main` tiles deep. Rows of
    /// `s` that are read in place lie `s_step` bytes apart.
    ///
    /// # Errors
    /// The encoder's; a block that fits the registers gives none.
    pub(super) fn assemble(self) -> Result<Vec<u8>, IcedError> {
        let mut e = emitter()?;
        e.mov_load(V, mem(ARGS, at::V));
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
        self.emit_rows(&mut e);
        let mut turn = e.label();
        e.bind(&mut turn);
        self.emit_step(&mut e);
        e.add_imm(V, (self.v * TILE) as i32);
        if self.in_place {
            S.iter().take(self.s).for_each(|&tile| e.add_imm(tile, ROW as i32));
        } else {
            e.add_imm(S[0], (self.s * TILE) as i32);
        }
        e.dec(COUNT);
        e.jump_if_not_zero(turn);
        self.emit_sums(&mut e, |e, sum, place| e.op2_store(Code::VEX_Tilestored_sibmem_tmm, place, sum));
        e.ret();
        e.finish()
    }

    /// Where the tiles of `s` begin.
    fn emit_rows(self, e: &mut Emitter) {
        e.mov_load(S[0], mem(ARGS, at::S));
        if !self.in_place {
            return;
        }
        e.mov_load(S_STRIDE, mem(ARGS, at::S_STEP));
        for pair in S.windows(2).take(self.s - 1) {
            e.mov(pair[1], S_STRIDE);
            for _ in 0..SIDE.trailing_zeros() {
                e.push(Instruction::with2(Code::Add_r64_rm64, pair[1], pair[1]));
            }
            e.push(Instruction::with2(Code::Add_r64_rm64, pair[1], pair[0]));
        }
    }

    /// Where a tile of `s` lies.
    fn s_place(self, j: usize) -> MemoryOperand {
        if self.in_place { rows(S[j], S_STRIDE, 0) } else { rows(S[0], STRIDE, j * TILE) }
    }

    /// Does something with each tile of sums and its place.
    fn emit_sums(self, e: &mut Emitter, each: impl Fn(&mut Emitter, Register, MemoryOperand)) {
        e.mov_load(C, mem(ARGS, at::C));
        if self.s > 1 {
            // Bytes to the next tile below: 16 rows.
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
            e.op2_load(Code::VEX_Tileloadd_tmm_sibmem, self.s_tile(j), self.s_place(j));
            for i in 0..self.v {
                e.op3(product, self.sum(i, j), self.s_tile(j), self.v_tile(i));
            }
        }
    }
}
