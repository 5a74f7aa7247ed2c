//! A thin layer over iced-x86's assembler: raw instructions by code, the first error kept for the end.

use iced_x86::code_asm::{CodeAssembler, CodeLabel};
use iced_x86::{Code, IcedError, Instruction, MemoryOperand, Register};

use super::abi::at;
use super::vector::{Vector, Width};

/// The k-mask of the valid lanes of the last vector.
const MASK: Register = Register::K1;

/// Cache line of every x86-64 processor, in bytes.
pub(crate) const LINE: i64 = 64;

/// Collects the instructions of one routine.
pub(crate) struct Emitter {
    asm: CodeAssembler,
    pub(crate) vector: Vector,
    failed: Option<IcedError>,
}

/// `[base + disp]`
pub(crate) fn mem(base: Register, disp: i64) -> MemoryOperand {
    MemoryOperand::with_base_displ(base, disp)
}

/// `[base + index + disp]`
pub(crate) fn mem_index(base: Register, index: Register, disp: i64) -> MemoryOperand {
    MemoryOperand::with_base_index_scale_displ_size(base, index, 1, disp, 1)
}

impl Emitter {
    /// # Errors
    /// The assembler's, when it refuses 64-bit mode.
    pub(crate) fn new(vector: Vector) -> Result<Self, IcedError> {
        Ok(Self { asm: CodeAssembler::new(64)?, vector, failed: None })
    }

    fn keep<T>(&mut self, result: Result<T, IcedError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.failed.get_or_insert(error);
                None
            }
        }
    }

    pub(crate) fn push(&mut self, instruction: Result<Instruction, IcedError>) {
        if let Some(instruction) = self.keep(instruction) {
            let added = self.asm.add_instruction(instruction);
            self.keep(added);
        }
    }

    pub(crate) fn label(&mut self) -> CodeLabel {
        self.asm.create_label()
    }

    pub(crate) fn bind(&mut self, label: &mut CodeLabel) {
        let bound = self.asm.set_label(label);
        self.keep(bound);
    }

    pub(crate) fn jump_if_not_zero(&mut self, label: CodeLabel) {
        let jumped = self.asm.jnz(label);
        self.keep(jumped);
    }

    pub(crate) fn jump_if_zero(&mut self, label: CodeLabel) {
        let jumped = self.asm.jz(label);
        self.keep(jumped);
    }

    pub(crate) fn push_register(&mut self, reg: Register) {
        self.push(Instruction::with1(Code::Push_r64, reg));
    }

    pub(crate) fn pop_register(&mut self, reg: Register) {
        self.push(Instruction::with1(Code::Pop_r64, reg));
    }

    /// 64-bit load of a general register.
    pub(crate) fn mov_load(&mut self, to: Register, from: MemoryOperand) {
        self.push(Instruction::with2(Code::Mov_r64_rm64, to, from));
    }

    pub(crate) fn mov_store(&mut self, to: MemoryOperand, from: Register) {
        self.push(Instruction::with2(Code::Mov_rm64_r64, to, from));
    }

    /// `reg += step`, unless that goes beyond `last`.
    pub(crate) fn advance_within(&mut self, reg: Register, scratch: Register, step: i64, last: MemoryOperand) {
        self.push(Instruction::with2(Code::Lea_r64_m, scratch, mem(reg, step)));
        self.push(Instruction::with2(Code::Cmp_r64_rm64, scratch, last));
        self.push(Instruction::with2(Code::Cmovbe_r64_rm64, reg, scratch));
    }

    pub(crate) fn mov(&mut self, to: Register, from: Register) {
        self.push(Instruction::with2(Code::Mov_r64_rm64, to, from));
    }

    pub(crate) fn add_load(&mut self, to: Register, from: MemoryOperand) {
        self.push(Instruction::with2(Code::Add_r64_rm64, to, from));
    }

    pub(crate) fn add_imm(&mut self, to: Register, value: i32) {
        if value != 0 {
            self.push(Instruction::with2(Code::Add_rm64_imm32, to, value));
        }
    }

    pub(crate) fn dec(&mut self, reg: Register) {
        self.push(Instruction::with1(Code::Dec_rm64, reg));
    }

    pub(crate) fn test(&mut self, reg: Register) {
        self.push(Instruction::with2(Code::Test_rm64_r64, reg, reg));
    }

    pub(crate) fn ret(&mut self) {
        // The caller may use SSE code; dirty upper halves would slow it down.
        self.push(Ok(Instruction::with(Code::VEX_Vzeroupper)));
        self.push(Ok(Instruction::with(Code::Retnq)));
    }

    pub(crate) fn prefetch(&mut self, at: MemoryOperand) {
        self.push(Instruction::with1(Code::Prefetcht0_m8, at));
    }

    /// Into the second-level cache.
    pub(crate) fn prefetch_l2(&mut self, at: MemoryOperand) {
        self.push(Instruction::with1(Code::Prefetcht1_m8, at));
    }

    pub(crate) fn prefetch_write(&mut self, at: MemoryOperand) {
        self.push(Instruction::with1(Code::Prefetchw_m8, at));
    }

    pub(crate) fn op2_load(&mut self, code: Code, to: Register, from: MemoryOperand) {
        self.push(Instruction::with2(code, to, from));
    }

    pub(crate) fn op2_store(&mut self, code: Code, to: MemoryOperand, from: Register) {
        self.push(Instruction::with2(code, to, from));
    }

    pub(crate) fn op3(&mut self, code: Code, to: Register, a: Register, b: Register) {
        self.push(Instruction::with3(code, to, a, b));
    }

    pub(crate) fn op3_load(&mut self, code: Code, to: Register, a: Register, b: MemoryOperand) {
        self.push(Instruction::with3(code, to, a, b));
    }

    /// Only the lanes of the mask, zeros in the others (EVEX only).
    pub(crate) fn op2_load_masked(&mut self, code: Code, to: Register, from: MemoryOperand) {
        self.push(Instruction::with2(code, to, from).map(|mut i| {
            i.set_op_mask(MASK);
            i.set_zeroing_masking(true);
            i
        }));
    }

    /// Only the lanes of the mask (EVEX only).
    pub(crate) fn op2_store_masked(&mut self, code: Code, to: MemoryOperand, from: Register) {
        self.push(Instruction::with2(code, to, from).map(|mut i| {
            i.set_op_mask(MASK);
            i
        }));
    }

    /// With one number in memory in all places of the last factor (EVEX only).
    pub(crate) fn op3_broadcast(&mut self, code: Code, to: Register, a: Register, b: MemoryOperand) {
        self.push(Instruction::with3(code, to, a, b).map(|mut i| {
            i.set_is_broadcast(true);
            i
        }));
    }

    /// A copy of a register, at the width of a vector.
    pub(crate) fn op2_move(&mut self, vector: Vector, to: Register, from: Register) {
        self.push(Instruction::with2(vector.load(), to, from));
    }

    pub(crate) fn zero(&mut self, reg: Register) {
        self.op3(self.vector.xor(), reg, reg, reg);
    }

    pub(crate) fn load(&mut self, to: Register, from: MemoryOperand) {
        self.op2_load(self.vector.load(), to, from);
    }

    pub(crate) fn broadcast(&mut self, to: Register, from: MemoryOperand) {
        self.op2_load(self.vector.broadcast(), to, from);
    }

    pub(crate) fn fma(&mut self, acc: Register, a: Register, b: Register) {
        self.op3(self.vector.fma(), acc, a, b);
    }

    /// Loads only the lanes of the mask, zeroes the others and touches no memory behind them. VEX
    /// widths read the mask from the arguments through `scratch` (which may be `to`), EVEX uses `k1`.
    pub(crate) fn load_masked(&mut self, to: Register, from: MemoryOperand, scratch: Register) {
        let code = self.vector.mask_load();
        if self.vector.width == Width::Z {
            self.op2_load_masked(code, to, from);
        } else {
            self.load(scratch, mem(Register::RDI, at::V_MASK));
            self.op3_load(code, to, scratch, from);
        }
    }

    /// Stores the first lanes only, of which there are so many: by the mask, where masks are registers of their own, else in parts.
    pub(crate) fn store_lanes(&mut self, to: MemoryOperand, from: Register, lanes: usize, scratch: Register) {
        if self.vector.width == Width::Z {
            self.op2_store_masked(self.vector.store(), to, from);
        } else {
            self.store_parts(to, from, lanes * self.vector.float.bytes(), scratch);
        }
    }

    /// Stores the low bytes of a vector of 16 or 32 bytes, not all of them, in parts of 16, 8 and 4: a masked store of AVX is dozens of
    /// microcoded steps on some processors.
    pub(crate) fn store_parts(&mut self, to: MemoryOperand, from: Register, mut bytes: usize, scratch: Register) {
        debug_assert!(bytes < 32 && bytes.is_multiple_of(4));
        let low = |register: Register| Register::XMM0 + register.number() as u32;
        let (mut at, mut rest, scratch) = (to, low(from), low(scratch));
        if bytes >= 16 {
            self.op2_store(Code::VEX_Vmovups_xmmm128_xmm, at, rest);
            (at.displacement, bytes) = (at.displacement + 16, bytes - 16);
            if bytes > 0 {
                let whole = Register::YMM0 + from.number() as u32;
                self.push(Instruction::with3(Code::VEX_Vextractf128_xmmm128_ymm_imm8, scratch, whole, 1));
                rest = scratch;
            }
        }
        if bytes >= 8 {
            self.op2_store(Code::VEX_Vmovsd_m64_xmm, at, rest);
            (at.displacement, bytes) = (at.displacement + 8, bytes - 8);
            if bytes > 0 {
                self.op3(Code::VEX_Vunpckhpd_xmm_xmm_xmmm128, scratch, rest, rest);
                rest = scratch;
            }
        }
        if bytes > 0 {
            self.op2_store(Code::VEX_Vmovss_m32_xmm, at, rest);
        }
    }

    /// Sets the k-mask to the low `lanes` lanes (EVEX only).
    pub(crate) fn set_mask(&mut self, lanes: usize) {
        if self.vector.width == Width::Z {
            let bits = (1i32 << lanes) - 1;
            self.push(Instruction::with2(Code::Mov_r32_imm32, Register::ECX, bits));
            self.push(Instruction::with2(Code::VEX_Kmovw_kr_r32, MASK, Register::ECX));
        }
    }

    /// The machine code, independent of its position.
    ///
    /// # Errors
    /// The first error met while emitting, or the encoder's.
    pub(crate) fn finish(mut self) -> Result<Vec<u8>, IcedError> {
        match self.failed {
            Some(error) => Err(error),
            None => self.asm.assemble(0),
        }
    }
}
