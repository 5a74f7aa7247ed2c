//! What a template needs to know of numbers.

use crate::ir::{Address, Arith, Builder, Caching, Inst, Operand, Reg, Space, Type};
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;

/// The arithmetic of a product: fused multiply-adds in the type of sums. Narrower operands are widened where they are read
/// from shared memory, and narrower results rounded where they are stored.
#[derive(Clone, Copy, Debug)]
pub struct Arithmetic {
    /// The element type of operands.
    pub dtype: DType,
    /// What is multiplied, and an accumulator.
    pub ty: Type,
    /// An operand in memory.
    pub operand: Type,
    /// A result in memory, and what is added to results.
    pub result: Type,
}

impl Arithmetic {
    /// Of binary32 or binary64 throughout, or of types of 16 bits that are summed in binary32.
    pub(crate) fn of(types: ElementTypes) -> Self {
        let [operand, ty, result] = [types.operand, types.accumulator, types.output].map(in_memory);
        Self { dtype: types.operand, ty, operand, result }
    }

    /// Bytes of an operand.
    pub fn bytes(self) -> u32 {
        self.operand.bytes()
    }

    /// Operands of the widest access: 16 bytes.
    pub(crate) fn widest(self) -> u32 {
        16 / self.bytes()
    }

    /// Registers that hold so many neighbouring operands as they lie in memory: their type and number. Narrow ones share a
    /// register, of the class of binary32: nothing counts in it, so that the verifier asks no meaning of it.
    pub(crate) fn packed(self, count: u32) -> (Type, usize) {
        match (self.bytes(), self.bytes() * count) {
            (1, 1) => (Type::B8, 1),
            (1 | 2, 2) => (Type::B16, 1),
            (1 | 2, bytes) => (Type::F32, bytes as usize / 4),
            _ => (self.ty, count as usize),
        }
    }

    /// Zeros in such registers.
    pub(crate) fn clear(self, b: &mut Builder, count: u32, dst: &[Reg]) {
        let ty = match self.packed(count).0 {
            Type::B8 => Type::B16,
            ty => ty,
        };
        dst.iter().for_each(|&dst| b.push(Inst::Mov { ty, dst, src: zero_of(ty) }));
    }

    /// Operands one by one, still as they lie in memory; with their type.
    pub(crate) fn split(self, b: &mut Builder, packed: &[Reg]) -> (Type, Vec<Reg>) {
        let pairs = self.bytes() == 2 && packed.first().is_some_and(|reg| reg.class == Type::F32.class());
        let ty = if self.bytes() == 2 { Type::B16 } else { self.ty };
        if !pairs {
            return (ty, packed.to_vec());
        }
        let mut halves = Vec::with_capacity(2 * packed.len());
        for &src in packed {
            let dst = [b.reg(Type::B16), b.reg(Type::B16)];
            b.push(Inst::Split { ty: Type::F32, dst, src });
            halves.extend(dst);
        }
        (ty, halves)
    }

    /// Operands as they are multiplied.
    pub(crate) fn widen(self, b: &mut Builder, packed: &[Reg]) -> Vec<Reg> {
        let (_, elements) = self.split(b, packed);
        self.converted(b, self.operand, elements)
    }

    /// Loads a result, or what is added to one. Where the predicate is false it is zero.
    pub(crate) fn load_result(self, b: &mut Builder, addr: Address, inside: Option<Reg>) -> Reg {
        self.load_results(b, addr, 1, inside)[0]
    }

    /// Loads neighbouring results at once.
    pub(crate) fn load_results(self, b: &mut Builder, addr: Address, count: usize, inside: Option<Reg>) -> Vec<Reg> {
        let ty = raw(self.result);
        let dst = b.regs(ty, count);
        if inside.is_some() {
            dst.iter().for_each(|&dst| b.push(Inst::Mov { ty, dst, src: zero_of(ty) }));
        }
        let load = Inst::Ld { space: Space::Global, caching: Caching::Default, ty, dst: dst.clone(), addr };
        b.predicated(inside, |b| b.push(load));
        self.converted(b, self.result, dst)
    }

    /// A result as it is stored: its register and type.
    pub(crate) fn rounded(self, b: &mut Builder, value: Reg) -> (Reg, Type) {
        let (values, ty) = self.rounded_all(b, vec![value]);
        (values[0], ty)
    }

    /// Results as they are stored, with their type.
    pub(crate) fn rounded_all(self, b: &mut Builder, values: Vec<Reg>) -> (Vec<Reg>, Type) {
        if self.result == self.ty {
            return (values, self.ty);
        }
        let round = |src: Reg| {
            let dst = b.reg(self.result);
            b.push(Inst::Cvt { to: self.result, from: self.ty, dst, src });
            dst
        };
        (values.into_iter().map(round).collect(), raw(self.result))
    }

    /// Numbers of a type in memory, in the type of sums.
    fn converted(self, b: &mut Builder, from: Type, src: Vec<Reg>) -> Vec<Reg> {
        if from == self.ty {
            return src;
        }
        // A bfloat16 is the upper half of a binary32: devices before sm_90 have no instruction for it, and need none.
        let low = (from == Type::Bf16).then(|| b.mov(Type::B16, zero_of(Type::B16)));
        let one = |src: Reg| {
            let dst = b.reg(self.ty);
            b.push(match low {
                Some(low) => Inst::Join { ty: self.ty, dst, src: [low, src] },
                None => Inst::Cvt { to: self.ty, from, dst, src },
            });
            dst
        };
        src.into_iter().map(one).collect()
    }

    /// `acc += x * y`.
    pub(crate) fn multiply_add(self, b: &mut Builder, acc: Reg, x: Reg, y: Reg) {
        b.push(Inst::Fma { ty: self.ty, dst: acc, a: x.into(), b: y.into(), c: acc.into() });
    }

    /// `x + y`.
    pub(crate) fn add(self, b: &mut Builder, x: Reg, y: Reg) -> Reg {
        b.arith(Arith::Add, self.ty, x, y)
    }

    /// `x * y`.
    pub(crate) fn multiply(self, b: &mut Builder, x: Reg, y: Reg) -> Reg {
        b.arith(Arith::Mul, self.ty, x, y)
    }

    /// `x * y + z`.
    pub(crate) fn fused(self, b: &mut Builder, x: Reg, y: Reg, z: Reg) -> Reg {
        let dst = b.reg(self.ty);
        b.push(Inst::Fma { ty: self.ty, dst, a: x.into(), b: y.into(), c: z.into() });
        dst
    }

    /// An accumulator of 0.
    pub(crate) fn zero(self, b: &mut Builder) -> Reg {
        b.mov(self.ty, zero_of(self.ty))
    }
}

fn in_memory(dtype: DType) -> Type {
    match dtype {
        DType::F16 => Type::F16,
        DType::Bf16 => Type::Bf16,
        DType::F64 => Type::F64,
        DType::I8 => Type::B8,
        DType::I32 => Type::S32,
        _ => Type::F32,
    }
}

/// How loads, stores and moves call a type in memory: those of 16 bits go by their size.
fn raw(ty: Type) -> Type {
    if ty.bytes() == 2 { Type::B16 } else { ty }
}

fn zero_of(ty: Type) -> Operand {
    if matches!(ty, Type::B16 | Type::S32) { Operand::Int(0) } else { Operand::Float(0.0) }
}
