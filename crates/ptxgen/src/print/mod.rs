//! PTX text.
//!
//! The text names the lowest version of PTX that knows the target and every instruction, so that drivers as old as possible
//! load it. It is a function of the tree alone: the same module prints the same bytes.

mod inst;

use crate::features;
use crate::ir::{Class, Entry, Form, Module, Reg, Stmt};
use std::fmt::Write;

/// Name of the array of shared memory.
pub(crate) const SHARED: &str = "shared_memory";
/// Name of the global variable that holds the counters of tiles.
pub(crate) const TICKETS: &str = "tickets";
/// Alignment of shared memory in bytes.
pub(crate) const SHARED_ALIGN: u32 = 16;

/// The text of a module.
pub fn print(module: &Module) -> String {
    let mut out = String::new();
    let version = features::version(module);
    let _ = writeln!(out, ".version {version}\n.target {}\n.address_size 64\n", module.target);
    Printer { out, entry: &module.entry }.entry()
}

struct Printer<'a> {
    out: String,
    entry: &'a Entry,
}

/// Writing to a string cannot fail, so results of `write!` are dropped.
impl Printer<'_> {
    fn entry(mut self) -> String {
        let entry = self.entry;
        if entry.dynamic_shared {
            let _ = writeln!(self.out, ".extern .shared .align {SHARED_ALIGN} .b8 {SHARED}[];\n");
        }
        if entry.tickets > 0 {
            self.out.push_str("// Zero between launches: those of one loaded module must not overlap.\n");
            let _ = writeln!(self.out, ".global .align 4 .u32 {TICKETS}[{}];\n", entry.tickets);
        }
        let _ = writeln!(self.out, ".visible .entry {}(", entry.name);
        for (i, param) in entry.params.iter().enumerate() {
            let comma = if i + 1 < entry.params.len() { "," } else { "" };
            let _ = writeln!(self.out, "    .param {} {}{comma}", param.ty.suffix(), param.name);
        }
        let _ = writeln!(self.out, ")\n.maxntid {}, 1, 1", entry.threads);
        if let Some(registers) = entry.max_registers {
            let _ = writeln!(self.out, ".maxnreg {registers}");
        }
        self.out.push_str("{\n");
        for (class, count) in Class::ALL.into_iter().zip(entry.registers) {
            if count > 0 {
                let _ = writeln!(self.out, "    .reg {} {}<{count}>;", class.declared(), class.prefix());
            }
        }
        if entry.shared_bytes > 0 && !entry.dynamic_shared {
            let bytes = entry.shared_bytes;
            let _ = writeln!(self.out, "    .shared .align {SHARED_ALIGN} .b8 {SHARED}[{bytes}];");
        }
        let mut labels = 0;
        self.body(&entry.body, None, &mut labels);
        self.out.push_str("    ret;\n}\n");
        self.out
    }

    fn body(&mut self, body: &[Stmt], pred: Option<Reg>, labels: &mut u32) {
        for stmt in body {
            match stmt {
                Stmt::Inst(inst) => self.inst(inst, pred),
                Stmt::Block { name, body } => {
                    let _ = writeln!(self.out, "    // {name}");
                    self.body(body, pred, labels);
                }
                Stmt::Guard(guard) if guard.form == Form::Predicate => self.body(&guard.body, Some(guard.pred), labels),
                Stmt::Guard(guard) => {
                    let label = *labels;
                    *labels += 1;
                    let _ = writeln!(self.out, "    @!{} bra $L_{label};", guard.pred);
                    self.body(&guard.body, None, labels);
                    let _ = writeln!(self.out, "$L_{label}:");
                }
                Stmt::Loop(l) => {
                    let label = *labels;
                    *labels += 1;
                    l.head().iter().for_each(|inst| self.inst(inst, None));
                    // Unrolling again would change what is counted and how many registers are needed.
                    let _ = writeln!(self.out, "$L_{label}_{}:\n    .pragma \"nounroll\";", l.name);
                    self.body(&l.body, None, labels);
                    l.tail().iter().for_each(|inst| self.inst(inst, None));
                    let _ = writeln!(self.out, "    @{} bra $L_{label}_{};", l.again, l.name);
                }
            }
        }
    }

    fn inst(&mut self, inst: &crate::ir::Inst, pred: Option<Reg>) {
        self.out.push_str("    ");
        if let Some(pred) = pred {
            let _ = write!(self.out, "@{pred} ");
        }
        inst::write(&mut self.out, inst, self.entry);
        self.out.push_str(";\n");
    }
}
