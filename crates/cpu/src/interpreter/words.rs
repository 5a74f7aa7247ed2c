//! Vector instructions of 16-bit numbers.

use super::vector::{Bytes, lane, width};
use super::{Fault, Machine, plain};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use tilewright_core::element::{Bf16, F16};

impl Machine<'_> {
    pub(super) fn words(&mut self, i: &Instruction) -> Result<(), Fault> {
        let value = match i.mnemonic() {
            Mnemonic::Vpermt2w => self.picked(i),
            Mnemonic::Vpinsrw => self.inserted(i)?,
            Mnemonic::Vpmovzxwd => self.widened(i)?,
            Mnemonic::Vcvtph2ps => {
                let numbers = self.widened(i)?;
                let converted = |n: usize| F16(u16::from_le_bytes(lane(&numbers, 2 * n))).to_f32().to_le_bytes();
                std::array::from_fn(|n| converted(n / 4)[n % 4])
            }
            Mnemonic::Vpslld => {
                let (from, by) = (self.vector(i.op1_register()), i.immediate8());
                let moved = |n: usize| u32::from_le_bytes(lane(&from, n / 4)) << by;
                std::array::from_fn(|n| moved(n).to_le_bytes()[n % 4])
            }
            Mnemonic::Vcvtneps2bf16 => self.rounded(i),
            _ => return Err(Fault::Unknown(plain(i))),
        };
        self.set_vector(i.op0_register(), value);
        Ok(())
    }

    /// Numbers of two registers, the first of which is written.
    fn picked(&self, i: &Instruction) -> Bytes {
        let [first, order, second] = [0, 1, 2].map(|operand| self.vector(i.op_register(operand)));
        std::array::from_fn(|n| {
            let from = u16::from_le_bytes(lane(&order, n / 2)) as usize % 64;
            if from < 32 { first[2 * from + n % 2] } else { second[2 * (from - 32) + n % 2] }
        })
    }

    /// A register's low quarter with one number of it from memory.
    fn inserted(&self, i: &Instruction) -> Result<Bytes, Fault> {
        let (old, at, mut out) = (self.vector(i.op1_register()), 2 * (i.immediate8() as usize % 8), [0; 64]);
        out[..16].copy_from_slice(&old[..16]);
        self.load(i, self.address(i), &mut out[at..at + 2])?;
        Ok(out)
    }

    /// Numbers of a register or in memory with zeros above them, those of the mask if there is one.
    fn widened(&self, i: &Instruction) -> Result<Bytes, Fault> {
        if i.op1_kind() == OpKind::Register {
            let (from, lanes) = (self.vector(i.op1_register()), width(i.op0_register()) / 4);
            return Ok(std::array::from_fn(|n| if n % 4 < 2 && n / 4 < lanes { from[n / 4 * 2 + n % 4] } else { 0 }));
        }
        let mask = if i.op_mask() == Register::None { u64::MAX } else { self.masks[i.op_mask().number()] };
        let mut out = [0; 64];
        for n in (0..width(i.op0_register()) / 4).filter(|n| mask >> n & 1 == 1) {
            self.load(i, self.address(i) + 2 * n as u64, &mut out[4 * n..4 * n + 2])?;
        }
        Ok(out)
    }

    /// Binary32 as bfloat16; denormal numbers are zero before.
    fn rounded(&self, i: &Instruction) -> Bytes {
        let (from, mut out) = (self.vector(i.op1_register()), [0; 64]);
        for n in 0..width(i.op1_register()) / 4 {
            let x = f32::from_le_bytes(lane(&from, n));
            let rounded = Bf16::from_f32(if x.is_subnormal() { 0.0_f32.copysign(x) } else { x });
            out[2 * n..2 * n + 2].copy_from_slice(&rounded.0.to_le_bytes());
        }
        out
    }
}
