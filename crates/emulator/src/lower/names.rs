//! Names of a kernel: registers, variables, labels, by block.

use crate::text::ast::Registers;
use crate::types::{Space, Ty};
use std::collections::HashMap;

/// A register. Its slot is one of three kinds, by its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Register {
    pub(super) slot: u16,
    pub(super) ty: Ty,
}

/// A variable, by where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variable {
    /// Offset in shared or local memory, or among the parameters.
    At(Space, u64),
    /// Dynamic shared memory.
    Dynamic,
    /// Number among the module's variables.
    Module(usize),
}

#[derive(Debug, Default)]
struct Scope<'a> {
    parent: Option<usize>,
    /// Those that have no slots yet: a declaration may name thousands that nobody uses.
    registers: HashMap<&'a str, Registers<'a>>,
    used: HashMap<String, Register>,
    variables: HashMap<&'a str, Variable>,
    labels: HashMap<&'a str, usize>,
    tables: HashMap<&'a str, Vec<&'a str>>,
}

/// What a name of a register stands for.
pub(super) enum Found {
    Register(Register),
    /// Declared in that scope, not used so far.
    Fresh(usize, Ty),
    /// A vector register of that many elements.
    Vector(u8),
}

pub(super) struct Names<'a> {
    scopes: Vec<Scope<'a>>,
    pub(super) current: usize,
}

impl<'a> Names<'a> {
    pub(super) fn new() -> Self {
        Self { scopes: vec![Scope::default()], current: 0 }
    }

    pub(super) fn enter(&mut self) {
        self.scopes.push(Scope { parent: Some(self.current), ..Scope::default() });
        self.current = self.scopes.len() - 1;
    }

    /// Enters a function, which sees the names of the module alone. Returns the scope to go back to.
    pub(super) fn enter_function(&mut self) -> usize {
        let caller = std::mem::replace(&mut self.current, 0);
        self.enter();
        caller
    }

    pub(super) fn leave(&mut self) {
        self.current = self.scopes[self.current].parent.unwrap_or(0);
    }

    fn scope(&mut self) -> &mut Scope<'a> {
        &mut self.scopes[self.current]
    }

    /// The scopes from one outwards.
    fn outwards(&self, from: usize) -> impl Iterator<Item = (usize, &Scope<'a>)> {
        std::iter::successors(Some(from), |at| self.scopes[*at].parent).map(|at| (at, &self.scopes[at]))
    }

    pub(super) fn declare_registers(&mut self, r: &Registers<'a>) {
        self.scope().registers.insert(r.name, *r);
    }

    pub(super) fn declare(&mut self, name: &'a str, variable: Variable) {
        self.scope().variables.insert(name, variable);
    }

    /// False if the block has a label of this name already.
    pub(super) fn declare_label(&mut self, name: &'a str, pc: usize) -> bool {
        self.scope().labels.insert(name, pc).is_none()
    }

    pub(super) fn declare_table(&mut self, name: &'a str, labels: Vec<&'a str>) {
        self.scope().tables.insert(name, labels);
    }

    pub(super) fn variable(&self, name: &str) -> Option<Variable> {
        self.outwards(self.current).find_map(|(_, s)| s.variables.get(name).copied())
    }

    pub(super) fn label(&self, scope: usize, name: &str) -> Option<usize> {
        self.outwards(scope).find_map(|(_, s)| s.labels.get(name).copied())
    }

    pub(super) fn table(&self, scope: usize, name: &str) -> Option<&[&'a str]> {
        self.outwards(scope).find_map(|(_, s)| s.tables.get(name).map(Vec::as_slice))
    }

    /// The register of a name; an element of a vector register is named with a dot.
    pub(super) fn register(&self, name: &str) -> Option<Found> {
        for (at, scope) in self.outwards(self.current) {
            if let Some(register) = scope.used.get(name) {
                return Some(Found::Register(*register));
            }
            if let Some(declared) = scope.declared(name) {
                return Some(if declared.width > 1 {
                    Found::Vector(declared.width)
                } else {
                    Found::Fresh(at, declared.ty)
                });
            }
        }
        None
    }

    pub(super) fn use_register(&mut self, scope: usize, name: &str, register: Register) {
        self.scopes[scope].used.insert(name.to_owned(), register);
    }
}

impl<'a> Scope<'a> {
    fn declared(&self, name: &str) -> Option<Registers<'a>> {
        if let Some(d) = self.registers.get(name).filter(|d| d.count.is_none()) {
            return Some(*d);
        }
        if let Some((vector, element)) = name.split_once('.') {
            let d = self.registers.get(vector).filter(|d| d.count.is_none())?;
            let within = "xyzw".find(element).is_some_and(|i| i < usize::from(d.width) && element.len() == 1);
            return within.then_some(Registers { width: 1, ..*d });
        }
        let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
        // A prefix may end in digits itself, so every split is tried.
        (digits..name.len()).find_map(|at| {
            let (prefix, number) = name.split_at(at);
            let canonical = number == "0" || !number.starts_with('0');
            let d = self.registers.get(prefix)?;
            let number: u64 = number.parse().ok()?;
            d.count.is_some_and(|count| number < count && canonical).then_some(*d)
        })
    }
}
