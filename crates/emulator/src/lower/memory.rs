//! Loads, stores, atomics, asynchronous copies.

use super::Lowering;
use super::words::Words;
use crate::counts::Class;
use crate::kernel::{Access, Atomic, AtomicOp, Copy, Data, Order, Run, Scope};
use crate::module::LoadError;
use crate::text::ast::{Instruction, Operand};
use crate::types::{Space, Ty};

/// Words that say how an access is cached or ordered, and change nothing here.
const HINTS: [&str; 14] =
    ["nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "weak", "cta", "cluster", "gpu", "sys", "aligned"];

/// Words that make an access one of synchronisation.
const STRONG: [&str; 5] = ["relaxed", "acquire", "release", "acq_rel", "mmio"];

impl<'a> Lowering<'a> {
    pub(super) fn load_or_store(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        let is_store = i.name == "st";
        let (order, is_release, scope) = self.order(words);
        let space = words.space().unwrap_or(Space::Generic);
        let Some(ty) = words.ty() else { return self.error("a type is expected") };
        let width = words.pick(&[("v2", 2), ("v4", 4), ("v8", 8)]).unwrap_or(1);
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
        let is_argument = space != class_space;
        self.kernel.has_fences |= is_release;
        let access =
            Box::new(Access { is_argument, is_release, scope, ..Access::new(space, address, ty, registers, order) });
        match is_store {
            true => self.emit(Run::Store(access), Some(Class::Store(class_space, bits))),
            false => self.emit(Run::Load(access), Some(Class::Load(class_space, bits))),
        }
        Ok(())
    }

    /// How a load or store is ordered, whether it is a release, and for whom.
    fn order(&self, words: &mut Words<'a>) -> (Order, bool, Scope) {
        let is_release = words.take("release");
        let strong = STRONG.iter().fold(is_release, |s, w| s | words.take(w));
        let scope = self.scope(words);
        let order = match (words.take("volatile"), strong) {
            (_, true) => Order::Strong,
            (true, _) => Order::Volatile,
            _ => Order::Weak,
        };
        words.ignore(&HINTS);
        (order, is_release, scope)
    }

    /// Who sees an operation of synchronisation; all threads of the device unless the words say that only those of the block do.
    fn scope(&self, words: &mut Words<'a>) -> Scope {
        words.pick(&[("cta", Scope::Block), ("cluster", Scope::Block)]).unwrap_or_default()
    }

    /// A fence. Those that order other things than what threads write have nothing to do.
    pub(super) fn fence(&mut self, words: &mut Words<'a>) {
        let scope = self.scope(words);
        let is_other = ["proxy", "mbarrier_init", "acquire"].iter().fold(false, |is, word| is | words.take(word));
        words.clear();
        self.kernel.has_fences |= !is_other;
        self.emit(if is_other { Run::Skip } else { Run::Fence(scope) }, Some(Class::Order));
    }

    /// Memory is watched as finely as the kernel may access it.
    fn watch(&mut self, space: Space, bytes: u64) {
        let least = |cell: &mut u32| *cell = (*cell).min(bytes as u32);
        if matches!(space, Space::Shared | Space::Generic) {
            least(&mut self.kernel.cell_bytes);
        }
        if matches!(space, Space::Global | Space::Generic) {
            least(&mut self.kernel.global_cell_bytes);
        }
    }

    pub(super) fn atomic(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        let is_release = words.take("release") || words.take("acq_rel");
        let scope = self.scope(words);
        self.kernel.has_fences |= is_release;
        words.ignore(&STRONG);
        words.ignore(&HINTS);
        words.ignore(&["noftz"]);
        let space = words.space().unwrap_or(Space::Generic);
        let Some(ty) = words.ty() else { return self.error("a type is expected") };
        let Some(op) = words.first().and_then(AtomicOp::parse) else {
            return self.error("this operation is not supported");
        };
        let is_known = match ty {
            Ty::B16 => op == AtomicOp::CompareAndSwap,
            _ => ty.bytes() > 1 && !matches!(ty, Ty::B128 | Ty::U16 | Ty::S16 | Ty::Tf32),
        };
        if !is_known {
            return self.error("this type is not supported");
        }
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
        let atomic = Atomic { op, ty, space, address, to, operand, swap, is_release, scope };
        self.emit(Run::Atomic(Box::new(atomic)), Some(Class::Atomic(space, 8 * ty.bytes() as u32)));
        Ok(())
    }

    /// `cp.async` and its waits.
    pub(super) fn copies(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
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
        let copy = Copy { to, from, bytes: *bytes as u8, read, ignore };
        self.emit(Run::Copy(Box::new(copy)), Some(Class::AsyncCopy(8 * *bytes as u32)));
        Ok(())
    }
}
