//! What a template needs to know of numbers.

use crate::ir::{Address, Arith, Builder, Caching, Class, Function, Inst, Operand, Reg, Space, Type};
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;

/// The arithmetic of a product: fused multiply-adds in the type of sums. Narrower operands are widened where they are read
/// from shared memory, and narrower results rounded where they are stored.
///
/// Sums of f16 are kept in pairs while the main loop runs: a register holds those of two neighbouring rows, and one instruction
/// multiplies and adds for both. After the loop they are widened, so that all else is done to sums of binary32.
///
/// A complex number is two registers, the real part first, wherever elements are; scalars are real numbers. So additions, scaling and
/// the sums over groups and slices go register by register, and only products know which registers belong together.
#[derive(Clone, Copy, Debug)]
pub struct Arithmetic {
    /// The element type of operands.
    pub dtype: DType,
    /// What is multiplied, and an accumulator; of complex numbers, a component. Of pairs, what they are widened to after the loop.
    pub ty: Type,
    /// An operand in memory, or a component of it.
    pub operand: Type,
    /// A result in memory, and what is added to results, or a component of it.
    pub result: Type,
    /// Whether numbers are complex.
    pub complex: bool,
    /// Whether the main loop multiplies and adds pairs of f16.
    pub paired: bool,
    /// Whether the conjugates of A and of B are multiplied.
    pub conjugates: [bool; 2],
}

impl Arithmetic {
    /// Of binary32 or binary64 throughout, real or complex, or of types of 16 bits that are summed in binary32, or in f16.
    pub(crate) fn of(types: ElementTypes) -> Self {
        let [operand, sum, result] = [types.operand, types.accumulator, types.output].map(in_memory);
        let (complex, paired) = (types.operand.is_complex(), sum == Type::F16);
        let ty = if paired { Type::F32 } else { sum };
        Self { dtype: types.operand, ty, operand, result, complex, paired, conjugates: [false; 2] }
    }

    /// The same of the conjugates of A, of B, or of both.
    pub(crate) fn conjugating(self, conjugates: [bool; 2]) -> Self {
        Self { conjugates, ..self }
    }

    /// Registers of an element.
    pub(crate) fn parts(self) -> usize {
        if self.complex { 2 } else { 1 }
    }

    /// Neighbouring sums that share a register in the main loop.
    pub(crate) fn lanes(self) -> usize {
        if self.paired { 2 } else { 1 }
    }

    /// Bytes of an operand.
    pub fn bytes(self) -> u32 {
        self.operand.bytes() * self.parts() as u32
    }

    /// Bytes of a sum.
    pub(crate) fn sum_bytes(self) -> u32 {
        self.ty.bytes() * self.parts() as u32
    }

    /// Bytes of a result.
    pub(crate) fn result_bytes(self) -> u32 {
        self.result.bytes() * self.parts() as u32
    }

    /// Operands of the widest access: 16 bytes.
    pub(crate) fn widest(self) -> u32 {
        16 / self.bytes()
    }

    /// Registers that hold so many neighbouring operands as they lie in memory: their type and number. Narrow ones share a
    /// register, of the class of binary32: nothing counts in it, so that the verifier asks no meaning of it.
    pub(crate) fn packed(self, count: u32) -> (Type, usize) {
        in_registers(self.operand, count as usize * self.parts())
    }

    /// Zeros in such registers.
    pub(crate) fn clear(self, b: &mut Builder, count: u32, dst: &[Reg]) {
        let ty = match self.packed(count).0 {
            Type::B8 => Type::B16,
            ty => ty,
        };
        dst.iter().for_each(|&dst| b.push(Inst::Mov { ty, dst, src: zero_of(ty) }));
    }

    /// Operands one by one, still as they lie in memory; with their type. A complex one has two registers.
    pub(crate) fn split(self, b: &mut Builder, packed: &[Reg]) -> (Type, Vec<Reg>) {
        (raw(self.operand), split(b, self.operand, packed))
    }

    /// Registers that so many neighbouring operands are read into from shared memory: those that are multiplied as they are must be of
    /// the class of pairs.
    pub(crate) fn fetched(self, count: u32) -> (Type, usize) {
        match self.packed(count) {
            (Type::F32, registers) if self.paired => (Type::B32, registers),
            others => others,
        }
    }

    /// Operands of the first side as they are multiplied: pairs of rows stay as they lie in memory.
    pub(crate) fn rows(self, b: &mut Builder, packed: &[Reg]) -> Vec<Reg> {
        if self.paired { packed.to_vec() } else { self.widen(b, packed) }
    }

    /// Operands of the second side as they are multiplied: by pairs of rows, each in both halves of a register. The assembler makes
    /// no instruction of it, since multiply-adds of pairs may read one half twice.
    pub(crate) fn columns(self, b: &mut Builder, packed: &[Reg]) -> Vec<Reg> {
        if !self.paired {
            return self.widen(b, packed);
        }
        let halves = split(b, self.operand, packed);
        let twice = |half: Reg| {
            let dst = b.reg(Type::B32);
            b.push(Inst::Join { ty: Type::B32, dst, src: [half; 2] });
            dst
        };
        halves.into_iter().map(twice).collect()
    }

    /// Operands in the type of sums.
    fn widen(self, b: &mut Builder, packed: &[Reg]) -> Vec<Reg> {
        let (_, elements) = self.split(b, packed);
        self.converted(b, self.operand, elements)
    }

    /// Loads a result, or what is added to one. Where the predicate is false it is zero.
    pub(crate) fn load_result(self, b: &mut Builder, addr: Address, inside: Option<Reg>) -> Reg {
        self.load_results(b, addr, 1, inside)[0]
    }

    /// Loads neighbouring results at once.
    pub(crate) fn load_results(self, b: &mut Builder, addr: Address, count: usize, inside: Option<Reg>) -> Vec<Reg> {
        let (ty, registers) = in_registers(self.result, count * self.parts());
        let dst = b.regs(ty, registers);
        if inside.is_some() {
            dst.iter().for_each(|&dst| b.push(Inst::Mov { ty, dst, src: zero_of(ty) }));
        }
        let load = Inst::Ld { space: Space::Global, caching: Caching::Default, ty, dst: dst.clone(), addr };
        b.predicated(inside, |b| b.push(load));
        let elements = split(b, self.result, &dst);
        self.converted(b, self.result, elements)
    }

    /// A result as it is stored: its register and type.
    pub(crate) fn rounded(self, b: &mut Builder, value: Reg) -> (Reg, Type) {
        let (values, ty) = self.rounded_all(b, vec![value]);
        (values[0], ty)
    }

    /// Neighbouring results as they are stored, with their type.
    pub(crate) fn rounded_all(self, b: &mut Builder, values: Vec<Reg>) -> (Vec<Reg>, Type) {
        if self.result == self.ty {
            return (values, self.ty);
        }
        let round = |src: Reg| {
            let dst = b.reg(self.result);
            b.push(Inst::Cvt { to: self.result, from: self.ty, dst, src });
            dst
        };
        let rounded: Vec<Reg> = values.into_iter().map(round).collect();
        let (ty, registers) = in_registers(self.result, rounded.len());
        if registers == rounded.len() {
            return (rounded, ty);
        }
        let join = |pair: &[Reg]| {
            let dst = b.reg(ty);
            b.push(Inst::Join { ty, dst, src: [pair[0], pair[1]] });
            dst
        };
        (rounded.chunks(2).map(join).collect(), ty)
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

    /// An element of B as elements of A are multiplied by it: see [`Arithmetic::multiply_add`].
    pub(crate) fn factor(self, b: &mut Builder, y: &[Reg]) -> Vec<Reg> {
        let &[re, im] = y else { return y.to_vec() };
        let mut negated = |src: Reg| {
            let dst = b.reg(self.ty);
            b.push(Inst::Function { function: Function::Neg, ty: self.ty, dst, src: src.into() });
            dst
        };
        let [a, bb] = self.conjugates;
        // Which signs differ: of the product of the imaginary parts, and of each that is multiplied by a real part.
        let minus_im = (a == bb || bb).then(|| negated(im));
        let minus_re = a.then(|| negated(re));
        let signed = |minus: bool, plus: Reg, negated: Option<Reg>| negated.filter(|_| minus).unwrap_or(plus);
        vec![re, signed(a == bb, im, minus_im), signed(bb, im, minus_im), signed(a, re, minus_re)]
    }

    /// `acc += x * y`, where y is a factor. A complex one holds what the real and the imaginary part of x are multiplied by for the
    /// real part of the sum, and then for its imaginary part, signs included.
    pub(crate) fn multiply_add(self, b: &mut Builder, acc: &[Reg], x: &[Reg], y: &[Reg]) {
        let ty = if self.paired { Type::F16x2 } else { self.ty };
        for (acc, factors) in acc.iter().zip(y.chunks(x.len())) {
            for (x, y) in x.iter().zip(factors) {
                b.push(Inst::Fma { ty, dst: *acc, a: (*x).into(), b: (*y).into(), c: (*acc).into() });
            }
        }
    }

    /// `x + y`.
    pub(crate) fn add(self, b: &mut Builder, x: Reg, y: Reg) -> Reg {
        b.arith(Arith::Add, self.ty, x, y)
    }

    /// `x * y`.
    pub(crate) fn multiply(self, b: &mut Builder, x: Reg, y: Reg) -> Reg {
        b.arith(Arith::Mul, self.ty, x, y)
    }

    /// `x * y + z`, rounded once.
    pub(crate) fn fused(self, b: &mut Builder, x: Reg, y: Reg, z: Reg) -> Reg {
        let (ty, dst) = (self.ty, b.reg(self.ty));
        let (a, factor, c) = (x.into(), y.into(), z.into());
        b.push(match ty.is_float() {
            true => Inst::Fma { ty, dst, a, b: factor, c },
            false => Inst::Mad { wide: false, ty, dst, a, b: factor, c },
        });
        dst
    }

    /// What is done to a scaled sum: what is added to it, and the activation.
    pub(crate) fn finished(self, b: &mut Builder, sum: Reg, more: [Option<Reg>; 2], relu: bool) -> Reg {
        let mut value = sum;
        for more in more.into_iter().flatten() {
            value = self.add(b, value, more);
        }
        if relu { b.arith(Arith::Max, self.ty, value, zero_of(self.ty)) } else { value }
    }

    /// A sum of 0.
    pub(crate) fn zero(self, b: &mut Builder) -> Reg {
        b.mov(self.ty, zero_of(self.ty))
    }

    /// The same as the main loop begins with it.
    pub(crate) fn start(self, b: &mut Builder) -> Reg {
        if self.paired { b.mov(Type::B32, zero_of(Type::B32)) } else { self.zero(b) }
    }

    /// What the main loop has added up, sum by sum.
    pub(crate) fn sums(self, b: &mut Builder, acc: &[Reg]) -> Vec<Reg> {
        if !self.paired {
            return acc.to_vec();
        }
        let halves = split(b, Type::F16, acc);
        self.converted(b, Type::F16, halves)
    }
}

fn in_memory(dtype: DType) -> Type {
    match dtype {
        DType::F16 => Type::F16,
        DType::Bf16 => Type::Bf16,
        DType::F64 | DType::C64 => Type::F64,
        DType::I8 => Type::B8,
        DType::I32 => Type::S32,
        _ => Type::F32,
    }
}

/// Type and number of the registers that so many neighbouring numbers of a type are loaded into and stored from.
fn in_registers(ty: Type, count: usize) -> (Type, usize) {
    match (ty.bytes(), ty.bytes() * count as u32) {
        (1, 1) => (Type::B8, 1),
        (1 | 2, 2) => (Type::B16, 1),
        (1 | 2, bytes) => (Type::F32, bytes as usize / 4),
        _ => (ty, count),
    }
}

/// Numbers of a type one by one, of registers that they may share.
fn split(b: &mut Builder, ty: Type, packed: &[Reg]) -> Vec<Reg> {
    let pairs = match packed.first().map(|reg| reg.class) {
        Some(Class::F32) if ty.bytes() == 2 => Type::F32,
        Some(Class::B32) if ty.bytes() == 2 => Type::B32,
        _ => return packed.to_vec(),
    };
    let mut halves = Vec::with_capacity(2 * packed.len());
    for &src in packed {
        let dst = [b.reg(Type::B16), b.reg(Type::B16)];
        b.push(Inst::Split { ty: pairs, dst, src });
        halves.extend(dst);
    }
    halves
}

/// How loads, stores and moves call a type in memory: those of 16 bits go by their size.
fn raw(ty: Type) -> Type {
    if ty.bytes() == 2 { Type::B16 } else { ty }
}

fn zero_of(ty: Type) -> Operand {
    if matches!(ty, Type::B16 | Type::B32 | Type::S32) { Operand::Int(0) } else { Operand::Float(0.0) }
}
