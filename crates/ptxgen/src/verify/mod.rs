//! Finds every fault of a module before it is printed.
//!
//! Checked: types and declarations of registers; that every register is written before it is read, on every way; meanings
//! written in the tree against those that follow from the instructions, claims about carried registers among them;
//! barriers under conditions that depend on the thread; bounds and alignment of shared memory, alignment of global
//! accesses as far as the promises of the parameters tell; parameters; features and limits of the target.
//!
//! Not checked: that global addresses are inside of their buffers, that `cp.async` is waited for, and races. They are the
//! emulator's.

mod fault;
mod memory;

pub use fault::{Fault, FaultKind};

use crate::features;
use crate::ir::{
    Arith, Class, Cond, Form, Guard, Index, Inst, Loop, Meanings, Module, Operand, Reg, Space, Stmt, Sym, Type,
};
use memory::Facts;
use std::collections::{HashMap, HashSet};

/// All faults of a module, in the order of its instructions; none for a sound one.
pub fn verify(module: &Module) -> Vec<Fault> {
    let entry = &module.entry;
    let meanings = Meanings::with_claims(entry.carried.clone());
    let mut walk = Walk {
        module,
        meanings,
        defined: HashSet::new(),
        written: HashMap::new(),
        path: vec![entry.name.clone()],
        guards: Vec::new(),
        loops: Vec::new(),
        trips: HashMap::new(),
        faults: Vec::new(),
    };
    walk.limits();
    walk.body(&entry.body);
    walk.faults
}

struct Walk<'a> {
    module: &'a Module,
    meanings: Meanings,
    defined: HashSet<Reg>,
    /// How often an integer register has been written.
    written: HashMap<Reg, u32>,
    path: Vec<String>,
    guards: Vec<&'a Cond>,
    /// Loops around, by number.
    loops: Vec<u32>,
    trips: HashMap<u32, Index>,
    faults: Vec<Fault>,
}

impl<'a> Walk<'a> {
    fn fault(&mut self, kind: FaultKind) {
        self.faults.push(Fault { place: self.path.join("/"), kind });
    }

    fn limits(&mut self) {
        let (entry, target) = (&self.module.entry, self.module.target);
        let shared = if entry.dynamic_shared { target.shared_optin() } else { 48 << 10 };
        for (what, need, have) in
            [("threads", entry.threads, 1024), ("bytes of shared memory", entry.shared_bytes, shared)]
        {
            if need > have {
                self.fault(FaultKind::Limit { what, need, have });
            }
        }
    }

    fn body(&mut self, body: &'a [Stmt]) {
        for (i, stmt) in body.iter().enumerate() {
            self.path.push(i.to_string());
            match stmt {
                Stmt::Inst(inst) => self.inst(inst),
                Stmt::Block { name, body } => self.named(name, |w| w.body(body)),
                Stmt::Loop(l) => self.named(l.name, |w| w.repeat(l)),
                Stmt::Guard(guard) => self.named("when", |w| w.guard(guard)),
            }
            self.path.pop();
        }
    }

    fn named(&mut self, name: &str, f: impl FnOnce(&mut Self)) {
        if let Some(last) = self.path.last_mut() {
            *last = format!("{name}[{last}]");
        }
        f(self);
    }

    fn repeat(&mut self, l: &'a Loop) {
        let found = self.meanings.of(l.count);
        if found != l.trips {
            self.fault(FaultKind::Meaning { written: l.trips.to_string(), found: found.to_string() });
        }
        l.head().iter().for_each(|inst| self.inst(inst));
        self.trips.insert(l.id, l.trips.clone());
        self.loops.push(l.id);
        self.body(&l.body);
        l.tail().iter().for_each(|inst| self.inst(inst));
        self.loops.pop();
    }

    fn guard(&mut self, guard: &'a Guard) {
        self.read(guard.pred.into(), Type::Pred);
        let found = self.meanings.cond(guard.pred);
        if found != guard.when {
            self.fault(FaultKind::Meaning { written: format!("{:?}", guard.when), found: format!("{found:?}") });
        }
        let whole = |s: &Stmt| matches!(s, Stmt::Inst(inst) if !inst.is_collective());
        if guard.form == Form::Predicate && !guard.body.iter().all(whole) {
            self.fault(FaultKind::NotPredicable);
        }
        // What only some threads write is not written for those that follow.
        let before = self.defined.clone();
        self.guards.push(&guard.when);
        self.body(&guard.body);
        self.guards.pop();
        self.defined = before;
    }

    fn inst(&mut self, inst: &Inst) {
        let mut reads = Vec::new();
        inst.reads(|operand, ty| reads.push((operand, ty)));
        reads.into_iter().for_each(|(operand, ty)| self.read(operand, ty));
        self.shape(inst);
        if let Some(f) = features::needs(inst).filter(|f| f.sm > self.module.target.sm()) {
            let target = self.module.target.sm();
            self.fault(FaultKind::TooNew { feature: f.name, needs: f.sm, target });
        }
        if inst.is_collective() {
            self.divergence();
        }
        self.memory(inst);
        let mut writes = Vec::new();
        inst.writes(|reg, ty| writes.push((reg, ty)));
        for (reg, ty) in writes {
            self.write(inst, reg, ty);
        }
        self.meanings.step(inst, &self.module.entry.params);
    }

    fn read(&mut self, operand: Operand, ty: Type) {
        let fits = match operand {
            Operand::Reg(reg) => reg.class == ty.class(),
            Operand::Int(_) => !ty.is_float() && ty != Type::Pred,
            Operand::Float(_) => ty.is_float(),
            Operand::Special(_) | Operand::Shared => ty.class() == Class::B32,
            Operand::Tickets => ty == Type::U64 && self.module.entry.tickets > 0,
        };
        if !fits {
            self.fault(FaultKind::Type { operand, expected: ty });
        }
        if let Operand::Reg(reg) = operand {
            self.declared(reg);
            if !self.defined.contains(&reg) {
                self.fault(FaultKind::Undefined(reg));
            }
        }
    }

    fn declared(&mut self, reg: Reg) {
        let at = Class::ALL.iter().position(|c| *c == reg.class).unwrap_or(0);
        if reg.id >= self.module.entry.registers[at] {
            self.fault(FaultKind::Undeclared(reg));
        }
    }

    fn write(&mut self, inst: &Inst, reg: Reg, ty: Type) {
        if reg.class != ty.class() {
            self.fault(FaultKind::Type { operand: reg.into(), expected: ty });
        }
        self.declared(reg);
        self.defined.insert(reg);
        if !matches!(reg.class, Class::B32 | Class::B64) {
            return;
        }
        let times = self.written.entry(reg).or_insert(0);
        *times += 1;
        let again = *times > 1;
        match self.meanings.carried.get(&reg).cloned() {
            // Sums of signed integers, and of pairs of floats, and fragments are data: nobody asks what they mean.
            None if again && !is_data(inst) => {
                self.fault(FaultKind::Rewritten(reg));
            }
            None => {}
            Some(claim) => self.claim(inst, reg, &claim, again),
        }
    }

    /// A carried register begins as what its claim says before the first iteration, and becomes what it says of the next one.
    /// Turns are claims about a set of values, of which ranges are what is used.
    fn claim(&mut self, inst: &Inst, reg: Reg, claim: &Index, again: bool) {
        let mut iterations = Vec::new();
        let mut turns = false;
        claim.visit(&mut |sym| match sym {
            Sym::Iteration(id) => iterations.push(*id),
            Sym::Turn { .. } => turns = true,
            _ => {}
        });
        let Some(found) = self.meanings.value(inst, &self.module.entry.params) else {
            // What is loaded no instruction tells. A claim may say what stands for it, as long as all threads and iterations agree.
            let stands_for = matches!(inst, Inst::Ld { .. }) && !again && iterations.is_empty() && claim.is_uniform();
            if !turns && !stands_for {
                self.fault(FaultKind::Claim { reg, claimed: claim.to_string(), found: "unknown".into() });
            }
            return;
        };
        let inner = iterations.iter().copied().max();
        let expected = inner.map(|id| {
            let sym = Sym::Iteration(id);
            let next = if again { Index::from(sym.clone()).plus(&1.into()) } else { 0.into() };
            claim.substitute(&sym, &next)
        });
        if !turns && expected.is_some_and(|e| e != found) {
            self.fault(FaultKind::Claim { reg, claimed: claim.to_string(), found: found.to_string() });
        }
    }

    fn divergence(&mut self) {
        let guard = self.guards.iter().find(|cond| !cond.is_uniform()).map(|cond| format!("{cond:?}"));
        let looped = self.loops.iter().filter_map(|id| self.trips.get(id)).find(|trips| !trips.is_uniform());
        if let Some(why) = guard.or_else(|| looped.map(|trips| format!("{trips} iterations"))) {
            self.fault(FaultKind::DivergentBarrier(why));
        }
    }

    fn shape(&mut self, inst: &Inst) {
        let widths = |count: usize, bytes: u32| matches!(count, 1 | 2 | 4) && count as u32 * bytes <= 16;
        match inst {
            Inst::Ld { ty, dst, .. } if !widths(dst.len(), ty.bytes()) => {
                self.fault(FaultKind::Width { count: dst.len(), bytes: ty.bytes() });
            }
            Inst::St { ty, src, .. } if !widths(src.len(), ty.bytes()) => {
                self.fault(FaultKind::Width { count: src.len(), bytes: ty.bytes() });
            }
            Inst::CpAsync { bytes, through, .. } if !through.widths().contains(bytes) => {
                self.fault(FaultKind::Width { count: 1, bytes: *bytes });
            }
            Inst::LdParam { ty, param, .. } if self.module.entry.params.get(*param).is_none_or(|p| p.ty != *ty) => {
                self.fault(FaultKind::Param(*param));
            }
            Inst::Mma { kind, d, a, b, c } => {
                let [(_, nd), (_, na), (_, nb)] = kind.registers();
                for (found, expected) in [(d.len(), nd), (a.len(), na), (b.len(), nb), (c.len(), nd)] {
                    if found != expected {
                        self.fault(FaultKind::Arity { found, expected });
                    }
                }
            }
            Inst::Ldmatrix { dst, .. } if !matches!(dst.len(), 1 | 2 | 4) => {
                self.fault(FaultKind::Arity { found: dst.len(), expected: 4 });
            }
            _ => {}
        }
    }

    fn memory(&mut self, inst: &Inst) {
        for access in inst.accesses() {
            let facts = Facts { entry: &self.module.entry, guards: &self.guards, trips: &self.trips };
            let address = self.meanings.of(access.addr.base.into()).plus(&access.addr.offset.into());
            let faults = facts.check(&access, &address);
            faults.into_iter().for_each(|kind| self.fault(kind));
        }
    }
}

/// Whether an instruction may write data: a sum of integers or of pairs of floats, or fragments and what is made of them in place, again.
fn is_data(inst: &Inst) -> bool {
    matches!(
        inst,
        Inst::Mma { .. }
            | Inst::Ldmatrix { .. }
            | Inst::RoundTf32 { .. }
            | Inst::Ld { ty: Type::B32, space: Space::Shared, .. }
            | Inst::Fma { ty: Type::F16x2, .. }
            | Inst::Ld { ty: Type::S32, .. }
            | Inst::Arith { op: Arith::Add, ty: Type::S32, .. }
    )
}
