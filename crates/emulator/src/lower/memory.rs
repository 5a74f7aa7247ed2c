//! Loads, stores, atomics, asynchronous copies.

use super::Lowering;
use super::words::Words;
use crate::counts::Class;
use crate::kernel::{Access, Atomic, AtomicOp, AtomicType, Copy, Data, Run};
use crate::module::LoadError;
use crate::text::ast::{Instruction, Operand};
use crate::types::{Space, Ty};

/// Words that say how an access is cached or ordered, and change nothing here.
const HINTS: [&str; 14] =
    ["nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "weak", "cta", "cluster", "gpu", "sys", "aligned"];

/// Words that make an access one of synchronisation.
const STRONG: [&str; 6] = ["volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"];

impl<'a> Lowering<'a> {
    pub(super) fn memory(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        words.ignore_starting("L1::");
        words.ignore_starting("L2::");
        match i.name {
            "cp" => self.copies(i, words),
            "ldmatrix" | "stmatrix" => self.move_matrix(i, words),
            "atom" | "red" => self.atomic(i, words),
            _ => self.load_or_store(i, words),
        }
    }

    fn load_or_store(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        let is_store = i.name == "st";
        let strong = STRONG.iter().fold(false, |s, w| s | words.take(w));
        words.ignore(&HINTS);
        let space = words.space().unwrap_or(Space::Generic);
        let Some(ty) = words.ty() else { return self.error("a type is expected") };
        let width = match words.one_of(&["v2", "v4", "v8"]) {
            Some("v2") => 2,
            Some("v4") => 4,
            Some(_) => 8,
            None => 1,
        };
        let [first, second] = &i.operands.iter().take(2).collect::<Vec<_>>()[..] else {
            return self.error("two operands are expected");
        };
        let (data, address) = if is_store { (second, first) } else { (first, second) };
        let class_space = space;
        let space = self.param_space(space, address)?;
        if ty == Ty::Pred || ty.bytes() > 8 || u64::from(width) * ty.bytes() > 32 {
            return self.error("this type is not supported in memory");
        }
        if is_store && matches!(space, Space::Const | Space::Param) {
            return self.error(format!("stores to .{space} are not possible"));
        }
        let elements = self.elements(data);
        if elements.len() != width as usize {
            return self.error(format!("{} registers where {width} are expected", elements.len()));
        }
        let address = self.address(address, space)?;
        let mut registers = Vec::new();
        for element in &elements {
            registers.push(match element {
                Operand::Name("_") if !is_store => None,
                element => {
                    let (slot, bytes) =
                        if is_store { self.any_source(element, ty)? } else { self.any_destination(element, ty)? };
                    Some(Data { slot, bytes: bytes as u8 })
                }
            });
        }
        self.watch(space, ty.bytes());
        let bits = 8 * width * ty.bytes() as u32;
        let access = Access {
            space,
            address,
            bytes: ty.bytes() as u8,
            signed: ty.is_signed(),
            data: registers,
            strong,
            is_simple: false,
        };
        let access = Box::new(access.classified());
        match (is_store, space) {
            (true, _) => self.emit(Run::Store(access), Some(Class::Store(class_space, bits))),
            (false, _) => self.emit(Run::Load(access), Some(Class::Load(class_space, bits))),
        }
        Ok(())
    }

    /// Shared memory is watched as finely as the kernel may access it.
    fn watch(&mut self, space: Space, bytes: u64) {
        if matches!(space, Space::Shared | Space::Generic) {
            self.kernel.cell_bytes = self.kernel.cell_bytes.min(bytes as u32);
        }
    }

    fn atomic(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        words.ignore(&STRONG);
        words.ignore(&HINTS);
        words.ignore(&["noftz"]);
        let space = words.space().unwrap_or(Space::Generic);
        let Some(ty) = words.ty() else { return self.error("a type is expected") };
        let name = words.first().unwrap_or_default();
        let op = match name {
            "add" => AtomicOp::Add,
            "min" => AtomicOp::Min,
            "max" => AtomicOp::Max,
            "and" => AtomicOp::And,
            "or" => AtomicOp::Or,
            "xor" => AtomicOp::Xor,
            "exch" => AtomicOp::Exchange,
            "cas" => AtomicOp::CompareAndSwap,
            "inc" => AtomicOp::Increment,
            "dec" => AtomicOp::Decrement,
            _ => return self.error("this operation is not supported"),
        };
        let interpreted = match ty {
            Ty::U32 | Ty::B32 => AtomicType::U32,
            Ty::S32 => AtomicType::S32,
            Ty::U64 | Ty::B64 => AtomicType::U64,
            Ty::S64 => AtomicType::S64,
            Ty::F32 => AtomicType::F32,
            Ty::F64 => AtomicType::F64,
            Ty::F16 => AtomicType::F16,
            Ty::Bf16 => AtomicType::Bf16,
            Ty::F16x2 => AtomicType::F16x2,
            Ty::Bf16x2 => AtomicType::Bf16x2,
            Ty::B16 if op == AtomicOp::CompareAndSwap => AtomicType::U32,
            _ => return self.error("this type is not supported"),
        };
        let (to, rest) = match i.operands.split_first() {
            Some((first, rest)) if i.name == "atom" => (Some(first), rest),
            _ => (None, i.operands.as_slice()),
        };
        let (address, operand, swap) = match (rest, op) {
            ([address, operand, swap], AtomicOp::CompareAndSwap) => (address, operand, Some(swap)),
            ([address, operand], op) if op != AtomicOp::CompareAndSwap => (address, operand, None),
            _ => return self.error("another number of operands is expected"),
        };
        let address = self.address(address, space)?;
        let operand = self.source(operand, ty)?;
        let swap = swap.map_or(Ok(operand), |swap| self.source(swap, ty))?;
        let to = to.map(|to| self.destination(to, ty)).transpose()?;
        self.watch(space, ty.bytes());
        let bytes = ty.bytes() as u8;
        let atomic = Atomic { op, ty: interpreted, space, address, bytes, wide: ty.bytes() == 8, to, operand, swap };
        self.emit(Run::Atomic(Box::new(atomic)), Some(Class::Atomic(space, 8 * ty.bytes() as u32)));
        Ok(())
    }

    /// `cp.async` and its waits.
    fn copies(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        if !words.take("async") {
            return self.error("only cp.async is supported");
        }
        if words.take("commit_group") {
            self.emit(Run::Commit, Some(Class::Order));
            return Ok(());
        }
        if words.take("wait_all") {
            self.emit(Run::Wait(None), Some(Class::Order));
            return Ok(());
        }
        if words.take("wait_group") {
            let [Operand::Int(keep)] = i.operands.as_slice() else { return self.error("a number is expected") };
            self.emit(Run::Wait(Some((*keep).min(u64::from(u32::MAX)) as u32)), Some(Class::Order));
            return Ok(());
        }
        words.ignore(&["ca", "cg"]);
        if words.space() != Some(Space::Shared) || words.space() != Some(Space::Global) {
            return self.error("a copy from .global to .shared is expected");
        }
        let [to, from, Operand::Int(bytes @ (4 | 8 | 16)), rest @ ..] = i.operands.as_slice() else {
            return self.error("two addresses and 4, 8 or 16 bytes are expected");
        };
        let (mut read, mut ignore) = (None, None);
        match rest {
            [] => {}
            [Operand::Name(name)] if self.register(name)?.is_some_and(|r| r.ty == Ty::Pred) => {
                ignore = Some((self.predicate_named(name)?, false));
            }
            [Operand::Not(name)] => ignore = Some((self.predicate_named(name)?, true)),
            [size] => read = Some(self.source(size, Ty::U32)?),
            _ => return self.error("a number of bytes or a predicate is expected last"),
        }
        let (to, from) = (self.address(to, Space::Shared)?, self.address(from, Space::Global)?);
        self.watch(Space::Shared, *bytes);
        let copy = Copy {
            to,
            from,
            bytes: *bytes as u8,
            read,
            ignore: ignore.map(|(p, _)| p),
            ignore_negated: ignore.is_some_and(|(_, negated)| negated),
        };
        self.emit(Run::Copy(Box::new(copy)), Some(Class::AsyncCopy(8 * *bytes as u32)));
        Ok(())
    }
}
