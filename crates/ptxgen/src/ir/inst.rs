//! Instructions: the leaves of the tree.

use super::reg::{Operand, Reg, Type};
use std::slice::from_ref;

/// A state space of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Device memory.
    Global,
    /// The block's memory.
    Shared,
}

impl Space {
    /// The suffix in PTX.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Global => ".global",
            Self::Shared => ".shared",
        }
    }

    /// The type of addresses in it.
    pub const fn address(self) -> Type {
        match self {
            Self::Global => Type::U64,
            Self::Shared => Type::U32,
        }
    }
}

/// A register plus a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// Holds an address of the instruction's space.
    pub base: Reg,
    /// Added to it.
    pub offset: i64,
}

/// An operation of two operands, in words of PTX. Products of integers keep the low half, unless they are `MulWide`, which gives
/// 64 bits of 32; quotients of integers are rounded down. Floats are rounded to nearest.
#[expect(missing_docs, reason = "the names are those of PTX")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arith {
    Add,
    Sub,
    Mul,
    MulWide,
    Div,
    Rem,
    Min,
    Max,
    And,
    Or,
    Xor,
    Shl,
    Shr,
}

/// A function of one float.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Function {
    /// Square root, rounded to nearest.
    Sqrt,
    /// Reciprocal of the square root, approximate; binary32 only.
    Rsqrt,
    /// Power of two, approximate; binary32 only.
    Exp2,
    /// The opposite number.
    Neg,
}

impl Function {
    /// The opcode with its modifiers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sqrt => "sqrt.rn",
            Self::Rsqrt => "rsqrt.approx",
            Self::Exp2 => "ex2.approx",
            Self::Neg => "neg",
        }
    }
}

/// A comparison.
#[expect(missing_docs, reason = "the names are those of PTX")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Compare {
    /// The name in PTX; also how conditions are shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Ne => "ne",
            Self::Lt => "lt",
            Self::Le => "le",
            Self::Gt => "gt",
            Self::Ge => "ge",
        }
    }

    /// Whether it holds.
    pub fn holds(self, a: i64, b: i64) -> bool {
        match self {
            Self::Eq => a == b,
            Self::Ne => a != b,
            Self::Lt => a < b,
            Self::Le => a <= b,
            Self::Gt => a > b,
            Self::Ge => a >= b,
        }
    }
}

/// How a load from device memory goes through the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Caching {
    /// As the hardware does by default.
    Default,
    /// As data that nobody writes while the kernel runs (`.nc`).
    ReadOnly,
    /// From the second level, which all blocks share (`.cg`): what other blocks wrote may not be what a first level holds.
    Second,
}

impl Caching {
    /// What stands behind the space.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Default => "",
            Self::ReadOnly => ".nc",
            Self::Second => ".cg",
        }
    }
}

/// Which caches an asynchronous copy passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyThrough {
    /// All levels (`.ca`): 4, 8 or 16 bytes.
    All,
    /// The second level only (`.cg`): 16 bytes.
    Second,
    /// The same, and what is fetched from memory are the 128 bytes around them (`.cg` with `.L2::128B`): the threads beside copy those.
    SecondByLine,
}

impl CopyThrough {
    /// The opcode with its modifiers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "cp.async.ca.shared.global",
            Self::Second => "cp.async.cg.shared.global",
            Self::SecondByLine => "cp.async.cg.shared.global.L2::128B",
        }
    }

    /// Bytes that a copy may have.
    pub const fn widths(self) -> &'static [u32] {
        match self {
            Self::All => &[4, 8, 16],
            Self::Second | Self::SecondByLine => &[16],
        }
    }
}

/// Matrix multiply-accumulate instructions of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MmaKind {
    /// m16n8k16, f16 operands, f32 accumulators.
    F16,
    /// m16n8k16, bf16 operands, f32 accumulators.
    Bf16,
    /// m16n8k8, tf32 operands, f32 accumulators.
    Tf32,
    /// m8n8k4, f64.
    F64,
    /// m16n8k16, f64.
    F64Deep,
    /// m16n8k32, signed integers of 8 bits, sums of 32.
    S8,
}

impl MmaKind {
    /// Rows, columns and depth.
    pub const fn shape(self) -> [u32; 3] {
        match self {
            Self::F16 | Self::Bf16 | Self::F64Deep => [16, 8, 16],
            Self::Tf32 => [16, 8, 8],
            Self::F64 => [8, 8, 4],
            Self::S8 => [16, 8, 32],
        }
    }

    /// Type and number of the registers of d (and c), a and b.
    pub const fn registers(self) -> [(Type, usize); 3] {
        match self {
            Self::F16 | Self::Bf16 | Self::Tf32 => [(Type::F32, 4), (Type::B32, 4), (Type::B32, 2)],
            Self::F64 => [(Type::F64, 2), (Type::F64, 1), (Type::F64, 1)],
            Self::F64Deep => [(Type::F64, 4), (Type::F64, 8), (Type::F64, 4)],
            Self::S8 => [(Type::S32, 4), (Type::B32, 4), (Type::B32, 2)],
        }
    }

    /// What stands between `mma.sync.aligned` and the operands.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::F16 => ".m16n8k16.row.col.f32.f16.f16.f32",
            Self::Bf16 => ".m16n8k16.row.col.f32.bf16.bf16.f32",
            Self::Tf32 => ".m16n8k8.row.col.f32.tf32.tf32.f32",
            Self::F64 => ".m8n8k4.row.col.f64.f64.f64.f64",
            Self::F64Deep => ".m16n8k16.row.col.f64.f64.f64.f64",
            Self::S8 => ".m16n8k32.row.col.s32.s8.s8.s32",
        }
    }
}

/// Where numbers go that are half-way between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// To the one of larger magnitude. From sm_80; two instructions of the device.
    Away,
    /// To the one whose last bit is zero. From sm_90; one instruction.
    Even,
}

/// An instruction. Fields are the operands of the PTX instruction, destinations first.
#[expect(missing_docs, reason = "the operands are those that the PTX manual names")]
#[derive(Clone, Debug, PartialEq)]
pub enum Inst {
    /// `mov`.
    Mov { ty: Type, dst: Reg, src: Operand },
    /// `ld.param`, by the position of the parameter.
    LdParam { ty: Type, dst: Reg, param: usize },
    /// `cvta.to.global`.
    ToGlobal { dst: Reg, src: Reg },
    /// Two operands.
    Arith { op: Arith, ty: Type, dst: Reg, a: Operand, b: Operand },
    /// A function of one float.
    Function { function: Function, ty: Type, dst: Reg, src: Operand },
    /// `mad.lo`, or `mad.wide` with 64-bit `dst` and `c`.
    Mad { wide: bool, ty: Type, dst: Reg, a: Operand, b: Operand, c: Operand },
    /// `fma.rn`.
    Fma { ty: Type, dst: Reg, a: Operand, b: Operand, c: Operand },
    /// `cvt`, rounded to nearest between floats.
    Cvt { to: Type, from: Type, dst: Reg, src: Reg },
    /// `cvt.rna.tf32.f32` or `cvt.rn.tf32.f32`: to the nearest number of ten bits of fraction.
    RoundTf32 { ties: Ties, dst: Reg, src: Reg },
    /// `mov` of 32 bits as they are, to a register of another class.
    Bits { to: Type, from: Type, dst: Reg, src: Reg },
    /// `prmt`: four of the eight bytes of `a` and then `b`, the lowest first, by the digits of `select` from the lowest on.
    Prmt { dst: Reg, a: Reg, b: Reg, select: Operand },
    /// `mov` of 32 bits to two registers of 16, the lower half first.
    Split { ty: Type, dst: [Reg; 2], src: Reg },
    /// `mov` of two registers of 16 bits, the lower half first, to one of 32.
    Join { ty: Type, dst: Reg, src: [Reg; 2] },
    /// `setp`, true only where `and` is too.
    Setp { cmp: Compare, ty: Type, dst: Reg, a: Operand, b: Operand, and: Option<Reg> },
    /// `selp`: `a` where the predicate is true.
    Selp { ty: Type, dst: Reg, a: Operand, b: Operand, pred: Reg },
    /// `ld`, of as many elements as there are destinations.
    Ld { space: Space, caching: Caching, ty: Type, dst: Vec<Reg>, addr: Address },
    /// `st`.
    St { space: Space, ty: Type, addr: Address, src: Vec<Operand> },
    /// `red.global.add`.
    Red { ty: Type, addr: Address, src: Operand },
    /// `atom.global.add`.
    Atom { ty: Type, dst: Reg, addr: Address, src: Operand },
    /// `cp.async` to shared from global memory. Of the bytes, those beyond `read` become zero.
    CpAsync { bytes: u32, through: CopyThrough, to: Address, from: Address, read: Option<Operand> },
    /// `cp.async.commit_group`.
    CpAsyncCommit,
    /// `cp.async.wait_group`: until at most so many of the latest groups are under way.
    CpAsyncWait { pending: u32 },
    /// `bar.sync 0`.
    Barrier,
    /// What a thread knows to be written is seen by whoever knows of the fence, on the whole device: `fence.acq_rel.gpu`, or
    /// `membar.gl`, which all targets have.
    Fence { lighter: bool },
    /// `griddepcontrol.launch_dependents`: the blocks of the next launch may begin, if it overlaps with this one.
    GridRelease,
    /// `griddepcontrol.wait`: the launch before is over, and what it stored is seen.
    GridWait,
    /// `ldmatrix` of 1, 2 or 4 matrices of 8 x 8 elements of 16 bits.
    Ldmatrix { transposed: bool, dst: Vec<Reg>, addr: Address },
    /// `mma.sync`: d = a b + c.
    Mma { kind: MmaKind, d: Vec<Reg>, a: Vec<Reg>, b: Vec<Reg>, c: Vec<Reg> },
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Where.
    pub space: Space,
    /// The address of the first byte.
    pub addr: Address,
    /// How many bytes a thread touches; also the alignment that the hardware asks for.
    pub bytes: u32,
    /// Whether memory is written.
    pub writes: bool,
}

/// What stands behind the opcode of an instruction.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// Registers that are written.
    Write(&'a [Reg], Type),
    /// Registers that are read.
    Regs(&'a [Reg], Type),
    /// What is read.
    Read(&'a [Operand], Type),
    /// Memory.
    At(Access),
    /// A parameter of the entry, by its position.
    Param(usize),
    /// A number that belongs to the instruction.
    Number(u32),
}

impl Inst {
    /// Calls `f` on every part behind the opcode, in the order of PTX.
    pub fn parts<'a>(&'a self, mut f: impl FnMut(Part<'a>)) {
        let mut all = |parts: &[Part<'a>]| parts.iter().for_each(|part| f(*part));
        let write = |reg: &'a Reg, ty: Type| Part::Write(from_ref(reg), ty);
        let reg = |reg: &'a Reg, ty: Type| Part::Regs(from_ref(reg), ty);
        let read = |operand: &'a Operand, ty: Type| Part::Read(from_ref(operand), ty);
        let at = |space, addr: &Address, bytes, writes| Part::At(Access { space, addr: *addr, bytes, writes });
        let width = |ty: Type, count: usize| ty.bytes() * count as u32;
        match self {
            &Self::Mov { ty, ref dst, ref src } | &Self::Function { ty, ref dst, ref src, .. } => {
                all(&[write(dst, ty), read(src, ty)]);
            }
            Self::LdParam { ty, dst, param } => all(&[write(dst, *ty), Part::Param(*param)]),
            Self::ToGlobal { dst, src } => all(&[write(dst, Type::U64), reg(src, Type::U64)]),
            &Self::Arith { op, ty, ref dst, ref a, ref b } => {
                let second = if matches!(op, Arith::Shl | Arith::Shr) { Type::U32 } else { ty };
                let result = if op == Arith::MulWide { doubled(ty) } else { ty };
                all(&[write(dst, result), read(a, ty), read(b, second)]);
            }
            &Self::Mad { wide, ty, ref dst, ref a, ref b, ref c } => {
                let sum = if wide { doubled(ty) } else { ty };
                all(&[write(dst, sum), read(a, ty), read(b, ty), read(c, sum)]);
            }
            &Self::Fma { ty, ref dst, ref a, ref b, ref c } => {
                all(&[write(dst, ty), read(a, ty), read(b, ty), read(c, ty)]);
            }
            Self::Cvt { to, from, dst, src } => all(&[write(dst, *to), reg(src, *from)]),
            Self::RoundTf32 { dst, src, .. } => all(&[write(dst, Type::B32), reg(src, Type::F32)]),
            Self::Bits { to, from, dst, src } => all(&[write(dst, *to), reg(src, *from)]),
            Self::Prmt { dst, a, b, select } => {
                all(&[write(dst, Type::B32), reg(a, Type::B32), reg(b, Type::B32), read(select, Type::B32)]);
            }
            Self::Split { ty, dst, src } => all(&[Part::Write(dst, Type::B16), reg(src, *ty)]),
            Self::Join { ty, dst, src } => all(&[write(dst, *ty), Part::Regs(src, Type::B16)]),
            Self::Setp { ty, dst, a, b, and, .. } => {
                all(&[write(dst, Type::Pred), read(a, *ty), read(b, *ty)]);
                and.iter().for_each(|p| all(&[reg(p, Type::Pred)]));
            }
            &Self::Selp { ty, ref dst, ref a, ref b, ref pred } => {
                all(&[write(dst, ty), read(a, ty), read(b, ty), reg(pred, Type::Pred)]);
            }
            Self::Ld { space, ty, dst, addr, .. } => {
                all(&[Part::Write(dst, *ty), at(*space, addr, width(*ty, dst.len()), false)]);
            }
            Self::St { space, ty, addr, src } => {
                all(&[at(*space, addr, width(*ty, src.len()), true), Part::Read(src, *ty)]);
            }
            Self::Red { ty, addr, src } => all(&[at(Space::Global, addr, ty.bytes(), true), read(src, *ty)]),
            Self::Atom { ty, dst, addr, src } => {
                all(&[write(dst, *ty), at(Space::Global, addr, ty.bytes(), true), read(src, *ty)]);
            }
            Self::CpAsync { bytes, to, from, read: of, .. } => {
                let (to, from) = (at(Space::Shared, to, *bytes, true), at(Space::Global, from, *bytes, false));
                all(&[to, from, Part::Number(*bytes)]);
                of.iter().for_each(|of| all(&[read(of, Type::U32)]));
            }
            Self::CpAsyncCommit | Self::Fence { .. } | Self::GridRelease | Self::GridWait => {}
            Self::CpAsyncWait { pending } => all(&[Part::Number(*pending)]),
            Self::Barrier => all(&[Part::Number(0)]),
            // A row of eight elements of 16 bits.
            Self::Ldmatrix { dst, addr, .. } => all(&[Part::Write(dst, Type::B32), at(Space::Shared, addr, 16, false)]),
            Self::Mma { kind, d, a, b, c } => {
                let [sum, left, right] = kind.registers().map(|(ty, _)| ty);
                all(&[Part::Write(d, sum), Part::Regs(a, left), Part::Regs(b, right), Part::Regs(c, sum)]);
            }
        }
    }

    /// Calls `f` on every operand that is read, with the type the instruction gives it. Bases of addresses are among them.
    pub fn reads(&self, mut f: impl FnMut(Operand, Type)) {
        self.parts(|part| match part {
            Part::Read(operands, ty) => operands.iter().for_each(|x| f(*x, ty)),
            Part::Regs(regs, ty) => regs.iter().for_each(|x| f((*x).into(), ty)),
            Part::At(access) => f(access.addr.base.into(), access.space.address()),
            Part::Write(..) | Part::Param(_) | Part::Number(_) => {}
        });
    }

    /// Calls `f` on every register that is written, with its type.
    pub fn writes(&self, mut f: impl FnMut(Reg, Type)) {
        self.parts(|part| {
            if let Part::Write(regs, ty) = part {
                regs.iter().for_each(|reg| f(*reg, ty));
            }
        });
    }

    /// Every access to memory; parameters are not memory.
    pub fn accesses(&self) -> Vec<Access> {
        let mut out = Vec::new();
        self.parts(|part| {
            if let Part::At(access) = part {
                out.push(access);
            }
        });
        out
    }

    /// Whether all threads of the block, or of the warp, must reach it together.
    pub fn is_collective(&self) -> bool {
        matches!(self, Self::Barrier | Self::Ldmatrix { .. } | Self::Mma { .. })
    }
}

/// The type of a product of two.
const fn doubled(ty: Type) -> Type {
    match ty {
        Type::S32 => Type::S64,
        _ => Type::U64,
    }
}
