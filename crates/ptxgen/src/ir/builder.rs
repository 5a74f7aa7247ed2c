//! Builds an entry, instruction by instruction.

use super::index::{Index, Sym};
use super::inst::{Address, Arith, Caching, Compare, Inst, Space};
use super::meaning::Meanings;
use super::reg::{Class, Operand, Reg, Special, Type};
use super::tree::{Entry, Form, Guard, Loop, Param, Stmt};
use crate::target::Target;

/// The loop that is being built.
#[derive(Clone, Copy, Debug)]
pub struct Iteration {
    /// Its number.
    pub id: u32,
    /// Iterations left, the current one included.
    pub left: Reg,
}

/// Emits instructions into the innermost open block, and keeps track of what integers mean.
#[derive(Debug, Default)]
pub struct Builder {
    params: Vec<Param>,
    registers: [u32; Class::ALL.len()],
    open: Vec<Vec<Stmt>>,
    meanings: Meanings,
    loops: u32,
}

impl Builder {
    /// Nothing emitted yet.
    pub fn new() -> Self {
        Self { open: vec![Vec::new()], ..Self::default() }
    }

    /// Adds a parameter and loads it; addresses are converted to global ones.
    pub fn param(&mut self, name: &str, ty: Type, multiple_of: u32) -> Reg {
        let param = self.params.len();
        self.params.push(Param { name: name.to_owned(), ty, multiple_of });
        let dst = self.reg(ty);
        self.push(Inst::LdParam { ty, dst, param });
        dst
    }

    /// [`Builder::param`] for the address of a buffer.
    pub fn buffer(&mut self, name: &str, align: u32) -> Reg {
        let src = self.param(name, Type::U64, align);
        let dst = self.reg(Type::U64);
        self.push(Inst::ToGlobal { dst, src });
        dst
    }

    /// A new register.
    pub fn reg(&mut self, ty: Type) -> Reg {
        let class = ty.class();
        let at = Class::ALL.iter().position(|c| *c == class).unwrap_or(0);
        self.registers[at] += 1;
        Reg { class, id: self.registers[at] - 1 }
    }

    /// New registers.
    pub fn regs(&mut self, ty: Type, count: usize) -> Vec<Reg> {
        (0..count).map(|_| self.reg(ty)).collect()
    }

    /// Emits an instruction.
    pub fn push(&mut self, inst: Inst) {
        self.meanings.step(&inst, &self.params);
        self.emit(Stmt::Inst(inst));
    }

    fn emit(&mut self, stmt: Stmt) {
        if let Some(body) = self.open.last_mut() {
            body.push(stmt);
        }
    }

    fn inside(&mut self, f: impl FnOnce(&mut Self)) -> Vec<Stmt> {
        self.open.push(Vec::new());
        f(self);
        self.open.pop().unwrap_or_default()
    }

    /// What an operand means.
    pub fn meaning(&self, operand: impl Into<Operand>) -> Index {
        self.meanings.of(operand.into())
    }

    /// Emits code under a name.
    pub fn block<R>(&mut self, name: &'static str, f: impl FnOnce(&mut Self) -> R) -> R {
        self.open.push(Vec::new());
        let result = f(self);
        let body = self.open.pop().unwrap_or_default();
        self.emit(Stmt::Block { name, body });
        result
    }

    /// Code for the threads whose predicate is true.
    pub fn when(&mut self, pred: Reg, form: Form, f: impl FnOnce(&mut Self)) {
        let when = self.meanings.cond(pred);
        let body = self.inside(f);
        self.emit(Stmt::Guard(Guard { when, pred, form, body }));
    }

    /// [`Builder::when`] by predication, or without a guard where there is no predicate.
    pub fn predicated(&mut self, pred: Option<Reg>, f: impl FnOnce(&mut Self)) {
        match pred {
            Some(pred) => self.when(pred, Form::Predicate, f),
            None => f(self),
        }
    }

    /// The number that the next loop will have, for registers that are carried through it.
    pub fn next_loop(&self) -> Sym {
        Sym::Iteration(self.loops)
    }

    /// Repeats a body; `count` must be at least 1 when the loop is reached.
    pub fn repeat(&mut self, name: &'static str, count: impl Into<Operand>, f: impl FnOnce(&mut Self, Iteration)) {
        let count = count.into();
        let id = self.loops;
        self.loops += 1;
        let trips = self.meanings.of(count);
        let (counter, again) = (self.reg(Type::U32), self.reg(Type::Pred));
        self.meanings.carried.insert(counter, trips.minus(&Sym::Iteration(id).into()));
        let mut built = Loop { id, name, trips, count, counter, again, body: Vec::new() };
        built.head().iter().for_each(|inst| self.meanings.step(inst, &self.params));
        built.body = self.inside(|b| f(b, Iteration { id, left: counter }));
        built.tail().iter().for_each(|inst| self.meanings.step(inst, &self.params));
        self.emit(Stmt::Loop(built));
    }

    /// A register that will be written again, with what it means at every time.
    pub fn carried(&mut self, ty: Type, init: impl Into<Operand>, meaning: Index) -> Reg {
        let dst = self.reg(ty);
        self.meanings.carried.insert(dst, meaning);
        self.push(Inst::Mov { ty, dst, src: init.into() });
        dst
    }

    /// A register that every iteration of the next loop moves on by `step`; see [`Builder::advance`].
    pub fn walking(&mut self, ty: Type, from: Reg, step: impl Into<Operand>) -> Reg {
        let meaning = self.meaning(from).plus(&self.meaning(step).times(&self.next_loop().into()));
        self.carried(ty, from, meaning)
    }

    /// Adds to a register in place.
    pub fn advance(&mut self, ty: Type, dst: Reg, by: impl Into<Operand>) {
        self.push(Inst::Arith { op: Arith::Add, ty, dst, a: dst.into(), b: by.into() });
    }

    /// The finished entry, without shared memory and without a limit of registers.
    pub fn finish(mut self, name: &str, threads: u32) -> Entry {
        Entry {
            name: name.to_owned(),
            params: self.params,
            threads,
            max_registers: None,
            shared_bytes: 0,
            dynamic_shared: false,
            tickets: 0,
            body: self.open.pop().unwrap_or_default(),
            carried: self.meanings.carried,
            registers: self.registers,
        }
    }
}

/// Instructions by name. Integer ones drop what does nothing (adding 0, multiplying by 1).
impl Builder {
    /// `mov`.
    pub fn mov(&mut self, ty: Type, src: impl Into<Operand>) -> Reg {
        let dst = self.reg(ty);
        self.push(Inst::Mov { ty, dst, src: src.into() });
        dst
    }

    /// A special register.
    pub fn special(&mut self, special: Special) -> Reg {
        self.mov(Type::U32, special)
    }

    /// An operation of two operands.
    pub fn arith(&mut self, op: Arith, ty: Type, a: impl Into<Operand>, b: impl Into<Operand>) -> Reg {
        let (a, b) = (a.into(), b.into());
        let dst = self.reg(if op == Arith::MulWide { Type::U64 } else { ty });
        self.push(Inst::Arith { op, ty, dst, a, b });
        dst
    }

    /// `a + b`.
    pub fn add(&mut self, ty: Type, a: Reg, b: impl Into<Operand>) -> Reg {
        let b = b.into();
        if b == Operand::Int(0) { a } else { self.arith(Arith::Add, ty, a, b) }
    }

    /// `a - b`.
    pub fn sub(&mut self, ty: Type, a: impl Into<Operand>, b: impl Into<Operand>) -> Reg {
        self.arith(Arith::Sub, ty, a, b)
    }

    /// `a * constant` in 32 bits.
    pub fn scale(&mut self, a: Reg, by: u32) -> Reg {
        match by {
            1 => a,
            _ if by.is_power_of_two() => self.arith(Arith::Shl, Type::U32, a, by.trailing_zeros()),
            _ => self.arith(Arith::Mul, Type::U32, a, by),
        }
    }

    /// `a / constant` of an unsigned number.
    pub fn div(&mut self, a: Reg, by: u32) -> Reg {
        match by {
            1 => a,
            _ if by.is_power_of_two() => self.arith(Arith::Shr, Type::U32, a, by.trailing_zeros()),
            _ => self.arith(Arith::Div, Type::U32, a, by),
        }
    }

    /// `a mod constant` of an unsigned number; `None` where it is always 0.
    pub fn rem(&mut self, a: Reg, by: u32) -> Option<Reg> {
        match by {
            1 => None,
            _ if by.is_power_of_two() => Some(self.arith(Arith::And, Type::U32, a, by - 1)),
            _ => Some(self.arith(Arith::Rem, Type::U32, a, by)),
        }
    }

    /// `a * constant + c` in 32 bits; an absent term is 0.
    pub fn scale_add(&mut self, a: Option<Reg>, by: u32, c: impl Into<Operand>) -> Reg {
        let c = c.into();
        match (a, c) {
            (None, Operand::Reg(c)) => c,
            (None, c) => self.mov(Type::U32, c),
            (Some(a), Operand::Int(0)) => self.scale(a, by),
            (Some(a), Operand::Reg(c)) if by == 1 => self.add(Type::U32, c, a),
            (Some(a), c) => {
                let dst = self.reg(Type::U32);
                self.push(Inst::Mad { wide: false, ty: Type::U32, dst, a: a.into(), b: by.into(), c });
                dst
            }
        }
    }

    /// `a * b + c` with 32-bit `a` and `b` and 64-bit `c`.
    pub fn mad_wide(&mut self, a: impl Into<Operand>, b: impl Into<Operand>, c: Reg) -> Reg {
        let dst = self.reg(Type::U64);
        self.push(Inst::Mad { wide: true, ty: Type::U32, dst, a: a.into(), b: b.into(), c: c.into() });
        dst
    }

    /// A comparison of unsigned 32-bit numbers, true only where `and` is too.
    pub fn compare(&mut self, cmp: Compare, a: impl Into<Operand>, b: impl Into<Operand>, and: Option<Reg>) -> Reg {
        let dst = self.reg(Type::Pred);
        self.push(Inst::Setp { cmp, ty: Type::U32, dst, a: a.into(), b: b.into(), and });
        dst
    }

    /// Whether `a` is above a constant, as a signed number, true only where `and` is too.
    pub fn exceeds(&mut self, a: Reg, constant: u32, and: Option<Reg>) -> Reg {
        let dst = self.reg(Type::Pred);
        self.push(Inst::Setp { cmp: Compare::Gt, ty: Type::S32, dst, a: a.into(), b: constant.into(), and });
        dst
    }

    /// An unsigned 32-bit number in 64 bits.
    pub fn widen(&mut self, src: Reg) -> Reg {
        let dst = self.reg(Type::U64);
        self.push(Inst::Cvt { to: Type::U64, from: Type::U32, dst, src });
        dst
    }

    /// `pred ? a : b`.
    pub fn select(&mut self, ty: Type, pred: Reg, a: impl Into<Operand>, b: impl Into<Operand>) -> Reg {
        let dst = self.reg(ty);
        self.push(Inst::Selp { ty, dst, a: a.into(), b: b.into(), pred });
        dst
    }

    /// A load into new registers.
    pub fn load(&mut self, space: Space, ty: Type, count: usize, base: Reg, offset: i64) -> Vec<Reg> {
        let dst = self.regs(ty, count);
        let addr = Address { base, offset };
        self.push(Inst::Ld { space, caching: Caching::Default, ty, dst: dst.clone(), addr });
        dst
    }

    /// A load of what other blocks wrote.
    pub fn load_coherent(&mut self, ty: Type, dst: &[Reg], base: Reg, offset: i64) {
        let addr = Address { base, offset };
        self.push(Inst::Ld { space: Space::Global, caching: Caching::Second, ty, dst: dst.to_vec(), addr });
    }

    /// A store.
    pub fn store(&mut self, space: Space, ty: Type, src: &[Reg], base: Reg, offset: i64) {
        let src = src.iter().map(|r| Operand::from(*r)).collect();
        self.push(Inst::St { space, ty, addr: Address { base, offset }, src });
    }

    /// A fence for the whole device.
    pub fn fence(&mut self, target: Target) {
        self.push(Inst::Fence { lighter: target.sm() >= 70 });
    }

    /// `atom.add` of an unsigned number; what was there before.
    pub fn add_atomically(&mut self, base: Reg, count: impl Into<Operand>) -> Reg {
        let (ty, dst) = (Type::U32, self.reg(Type::U32));
        self.push(Inst::Atom { ty, dst, addr: Address { base, offset: 0 }, src: count.into() });
        dst
    }

    /// Loads a number that no instruction tells, with what stands for it where instructions are counted.
    pub fn read_as(&mut self, space: Space, base: Reg, stands_for: Index) -> Reg {
        let (ty, dst) = (Type::U32, self.reg(Type::U32));
        self.meanings.carried.insert(dst, stands_for);
        self.push(Inst::Ld { space, caching: Caching::Default, ty, dst: vec![dst], addr: Address { base, offset: 0 } });
        dst
    }

    /// `bar.sync`.
    pub fn barrier(&mut self) {
        self.push(Inst::Barrier);
    }
}
