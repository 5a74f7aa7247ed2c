//! Branches, ends, barriers.

use super::words::Words;
use super::{Jump, Lowering};
use crate::counts::Class;
use crate::kernel::{Barrier, BarrierKind, Run};
use crate::module::LoadError;
use crate::text::ast::{Instruction, Operand};
use crate::types::Ty;

/// Targets of all branches of a kernel: tables of thousands, used thousands of times, are no kernel.
const MAX_EDGES: usize = 1 << 20;

impl<'a> Lowering<'a> {
    pub(super) fn control(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        words.ignore(&["uni"]);
        match (i.name, i.operands.as_slice()) {
            ("bra", [Operand::Name(label)]) => {
                self.jump(label);
                self.emit(Run::Branch { target: 0, join: 0 }, Some(Class::Branch));
                Ok(())
            }
            ("brx", [index, Operand::Name(table)]) if words.take("idx") => {
                let index = self.source(index, Ty::U32)?;
                self.jump(table);
                self.emit(Run::Table { index, targets: Box::default(), join: 0 }, Some(Class::Branch));
                Ok(())
            }
            ("ret", []) if !self.calls.is_empty() => {
                let pc = self.kernel.code.len();
                if let Some(frame) = self.calls.last_mut() {
                    frame.returns.push(pc);
                }
                self.emit(Run::Branch { target: 0, join: 0 }, Some(Class::Branch));
                Ok(())
            }
            ("ret" | "exit", []) => {
                self.emit(Run::Exit, Some(Class::Exit));
                Ok(())
            }
            ("trap", []) => {
                self.emit(Run::Trap, Some(Class::Exit));
                Ok(())
            }
            ("bar" | "barrier", operands) => self.barrier(operands, words),
            _ => self.error("these operands are not supported"),
        }
    }

    fn jump(&mut self, name: &'a str) {
        let (pc, scope) = (self.kernel.code.len(), self.names.current);
        self.jumps.push(Jump { pc, scope, name, at: self.at.clone() });
    }

    pub(super) fn resolve_jumps(&mut self) -> Result<(), LoadError> {
        let mut edges = 0;
        for jump in std::mem::take(&mut self.jumps) {
            self.at = jump.at;
            let names = match self.names.table(jump.scope, jump.name) {
                Some(labels) => labels.to_vec(),
                None => vec![jump.name],
            };
            edges += names.len();
            if edges > MAX_EDGES {
                return self.error(format!("more than {MAX_EDGES} targets of branches"));
            }
            let mut found = Vec::with_capacity(names.len());
            for name in names {
                match self.names.label(jump.scope, name) {
                    Some(pc) => found.push(pc as u32),
                    None => return self.error(format!("there is no label {name}")),
                }
            }
            match &mut self.kernel.code[jump.pc].run {
                Run::Branch { target, .. } => *target = found[0],
                Run::Table { targets, .. } => *targets = found.into_boxed_slice(),
                _ => {}
            }
        }
        Ok(())
    }

    fn barrier(&mut self, operands: &[Operand<'a>], words: &mut Words<'a>) -> Result<(), LoadError> {
        words.ignore(&["aligned", "cta"]);
        if words.take("warp") {
            words.ignore(&["sync"]);
            let members = match operands {
                [members] => Some(self.source(members, Ty::B32)?),
                _ => None,
            };
            self.warp_barrier(members);
            return Ok(());
        }
        use BarrierKind::{AllTrue, AnyTrue, Arrive, CountTrue, Sync};
        let kind = match words.take("red") {
            true => words.pick(&[("popc", CountTrue), ("and", AllTrue), ("or", AnyTrue)]),
            false => words.pick(&[("sync", Sync), ("arrive", Arrive)]),
        };
        let Some(kind) = kind else { return self.error("this barrier is not supported") };
        let (mut to, mut from, mut rest) = (0, (0, false), operands);
        if !matches!(kind, Sync | Arrive) {
            let ty = words.ty();
            let [first, middle @ .., last] = operands else { return self.error("more operands are expected") };
            let register = if kind == CountTrue { Ty::U32 } else { Ty::Pred };
            if ty != Some(register) {
                return self.error("this type of the result is not supported");
            }
            to = self.destination(first, register)?;
            from = self.predicate(last)?;
            rest = middle;
        }
        let (id, threads) = match rest {
            [id] => (self.source(id, Ty::U32)?, None),
            [id, threads] => (self.source(id, Ty::U32)?, Some(self.source(threads, Ty::U32)?)),
            _ => return self.error("a barrier number and perhaps a thread count are expected"),
        };
        let barrier = Barrier { kind, id, threads, to, from };
        self.emit(Run::Barrier(Box::new(barrier)), Some(Class::Barrier));
        Ok(())
    }
}
