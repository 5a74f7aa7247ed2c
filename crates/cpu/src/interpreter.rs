//! An interpreter of the x86-64 subset that the generator emits, for tests: it proves code right that the host cannot run
//! (AVX-512), and that no code reads or writes a byte outside of what it was given.
//!
//! Instructions are decoded from the machine code by iced-x86's decoder, so that what is tested is what would run.

mod memory;
mod tiles;
mod vector;
mod words;

use std::collections::HashMap;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

pub(crate) use memory::{Memory, Rights};
pub(crate) use tiles::Tiles;

/// Why a run stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    Read {
        address: u64,
        bytes: usize,
        by: String,
    },
    Write {
        address: u64,
        bytes: usize,
        by: String,
    },
    Alignment {
        address: u64,
        bytes: usize,
    },
    Unknown(String),
    /// A register that the caller owns came back changed.
    NotPreserved(Register),
    TooLong,
}

/// More instructions than any test needs.
const MOST_STEPS: usize = 20_000_000;
const STACK: usize = 4096;
const ARGUMENTS: [Register; 6] =
    [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9];
const SAVED: [Register; 7] =
    [Register::RBX, Register::RBP, Register::RSP, Register::R12, Register::R13, Register::R14, Register::R15];

/// Processor state and the memory it may touch.
pub(crate) struct Machine<'a> {
    code: HashMap<u64, Instruction>,
    memory: &'a mut Memory,
    general: [u64; 16],
    vectors: [[u8; 64]; 32],
    masks: [u64; 8],
    pub(crate) tiles: Tiles,
    /// Addresses that `prefetchw` named, in order.
    pub(crate) prefetched: Vec<u64>,
    zero: bool,
    carry: bool,
}

impl<'a> Machine<'a> {
    /// A machine with `code` at address 0.
    pub(crate) fn new(code: &[u8], memory: &'a mut Memory) -> Self {
        let decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
        let code = decoder.into_iter().map(|i| (i.ip(), i)).collect();
        // Registers are not zero when a routine starts.
        let vectors = [[0xa5; 64]; 32];
        let (general, masks, prefetched) = ([0x5a5a; 16], [!0; 8], Vec::new());
        Self { code, memory, general, vectors, masks, tiles: None, prefetched, zero: false, carry: false }
    }

    /// Calls the routine at `entry` with one pointer.
    pub(crate) fn call(&mut self, entry: u64, argument: u64) -> Result<(), Fault> {
        self.call_with(entry, &[argument])
    }

    /// Calls the routine at `entry` with up to six integers or pointers.
    pub(crate) fn call_with(&mut self, entry: u64, arguments: &[u64]) -> Result<(), Fault> {
        let mut stack = vec![0u64; STACK / 8];
        let low = stack.as_mut_ptr() as u64;
        let mark = self.memory.allow(low, STACK, Rights::ReadWrite);
        self.set(Register::RSP, low + STACK as u64);
        ARGUMENTS.iter().zip(arguments).for_each(|(register, argument)| self.set(*register, *argument));
        let before = SAVED.map(|r| self.get(r));
        let result = self.run(entry);
        self.memory.forget(mark);
        result?;
        match SAVED.iter().zip(before).find(|&(&r, old)| self.get(r) != old) {
            Some((&changed, _)) => Err(Fault::NotPreserved(changed)),
            None => Ok(()),
        }
    }

    fn run(&mut self, entry: u64) -> Result<(), Fault> {
        let mut ip = entry;
        for _ in 0..MOST_STEPS {
            let Some(&instruction) = self.code.get(&ip) else {
                return Err(Fault::Unknown(format!("no instruction at {ip:#x}")));
            };
            if instruction.mnemonic() == Mnemonic::Ret {
                return Ok(());
            }
            ip = self.step(&instruction)?;
        }
        Err(Fault::TooLong)
    }

    fn get(&self, register: Register) -> u64 {
        self.general[register.full_register().number()]
    }

    fn set(&mut self, register: Register, value: u64) {
        let value = if register.is_gpr32() { value & 0xffff_ffff } else { value };
        self.general[register.full_register().number()] = value;
    }

    fn address(&self, i: &Instruction) -> u64 {
        let part = |r: Register| if r == Register::None { 0 } else { self.get(r) };
        let index = part(i.memory_index()).wrapping_mul(u64::from(i.memory_index_scale()));
        part(i.memory_base()).wrapping_add(index).wrapping_add(i.memory_displacement64())
    }

    fn load(&self, i: &Instruction, at: u64, out: &mut [u8]) -> Result<(), Fault> {
        if !self.memory.may(at, out.len(), Rights::Read) {
            return Err(Fault::Read { address: at, bytes: out.len(), by: plain(i) });
        }
        self.memory.read(at, out);
        Ok(())
    }

    fn store(&mut self, i: &Instruction, at: u64, from: &[u8]) -> Result<(), Fault> {
        if !self.memory.may(at, from.len(), Rights::Write) {
            return Err(Fault::Write { address: at, bytes: from.len(), by: plain(i) });
        }
        self.memory.write(at, from);
        Ok(())
    }

    /// A 64-bit source operand.
    fn source(&self, i: &Instruction, operand: u32) -> Result<u64, Fault> {
        match i.op_kind(operand) {
            OpKind::Register => Ok(self.get(i.op_register(operand))),
            OpKind::Memory => {
                let mut bytes = [0; 8];
                self.load(i, self.address(i), &mut bytes)?;
                Ok(u64::from_le_bytes(bytes))
            }
            _ => Ok(i.immediate(operand)),
        }
    }

    /// Executes one instruction; returns the address of the next.
    fn step(&mut self, i: &Instruction) -> Result<u64, Fault> {
        let to = i.op0_register();
        match i.mnemonic() {
            Mnemonic::Mov if i.op0_kind() == OpKind::Memory => {
                self.store(i, self.address(i), &self.get(i.op1_register()).to_le_bytes())?;
            }
            Mnemonic::Mov => self.set(to, self.source(i, 1)?),
            Mnemonic::Add => {
                let sum = self.get(to).wrapping_add(self.source(i, 1)?);
                self.set(to, sum);
                self.zero = sum == 0;
            }
            Mnemonic::Lea => self.set(to, self.address(i)),
            Mnemonic::Cmp => {
                let (a, b) = (self.get(to), self.source(i, 1)?);
                (self.zero, self.carry) = (a == b, a < b);
            }
            Mnemonic::Cmovbe if self.zero || self.carry => self.set(to, self.source(i, 1)?),
            Mnemonic::Cmovbe => {}
            Mnemonic::Dec => {
                let less = self.get(to).wrapping_sub(1);
                self.set(to, less);
                self.zero = less == 0;
            }
            Mnemonic::Test => self.zero = self.get(to) & self.get(i.op1_register()) == 0,
            Mnemonic::Jne if !self.zero => return Ok(i.near_branch64()),
            Mnemonic::Je if self.zero => return Ok(i.near_branch64()),
            Mnemonic::Jne | Mnemonic::Je => {}
            Mnemonic::Push => {
                let (value, at) = (self.get(to), self.get(Register::RSP) - 8);
                self.set(Register::RSP, at);
                self.store(i, at, &value.to_le_bytes())?;
            }
            Mnemonic::Pop => {
                let (mut bytes, at) = ([0; 8], self.get(Register::RSP));
                self.load(i, at, &mut bytes)?;
                self.set(to, u64::from_le_bytes(bytes));
                self.set(Register::RSP, at + 8);
            }
            // Hints: they may name any address.
            Mnemonic::Prefetcht0 | Mnemonic::Prefetcht1 => {}
            Mnemonic::Prefetchw => self.prefetched.push(self.address(i)),
            Mnemonic::Vzeroupper => {
                for v in &mut self.vectors[..16] {
                    v[16..].fill(0);
                }
            }
            Mnemonic::Kmovw => self.masks[to.number()] = self.get(i.op1_register()) & 0xffff,
            Mnemonic::Ldtilecfg
            | Mnemonic::Tilerelease
            | Mnemonic::Tilezero
            | Mnemonic::Tileloadd
            | Mnemonic::Tilestored
            | Mnemonic::Tdpbf16ps
            | Mnemonic::Tdpbssd => self.step_tile(i)?,
            _ => self.step_vector(i)?,
        }
        Ok(i.next_ip())
    }
}

/// Text of an instruction for a fault.
fn plain(i: &Instruction) -> String {
    format!("{:#x} {:?}", i.ip(), i.code())
}
