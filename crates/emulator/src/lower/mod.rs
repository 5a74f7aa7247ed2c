//! From the syntax tree of a kernel to what the machine runs.

mod arithmetic;
mod call;
mod compare;
mod control;
mod convert;
mod flow;
mod flow_of;
mod matrix;
mod memory;
mod names;
mod operands;
mod warp_wide;
mod words;

use crate::counts::Class;
use crate::kernel::{ALWAYS, Constant, Flow, Inst, Kernel, Note, Param, Run, Wide};
use crate::lanes::{self, LaneOp, Slots};
use crate::lines::{LineId, Lines};
use crate::module::LoadError;
use crate::text::Place;
use crate::text::ast::{self, Ast, Function, Instruction, Statement};
use crate::types::Space;
use call::Frame;
use names::{Names, Variable};
use std::collections::HashMap;
use words::Words;

/// A kernel from its text.
pub(crate) fn lower<'a>(ast: &'a Ast<'a>, function: &'a Function<'a>) -> Result<Kernel, LoadError> {
    let mut lowering = Lowering::new(ast, function)?;
    if let Some(body) = &function.body {
        lowering.block(body)?;
    }
    // Code that runs past its end returns.
    lowering.at = Here { place: function.place, opcode: "ret".into(), ..Here::default() };
    lowering.emit(Run::Exit, None);
    lowering.finish()
}

/// Whether a target is one before another compute capability.
fn is_before(target: &str, capability: u32) -> bool {
    let number = target.trim_start_matches("sm_").trim_end_matches(['a', 'f']);
    number.parse::<u32>().is_ok_and(|sm| sm < capability)
}

/// The instruction that is being lowered.
#[derive(Clone, Debug, Default)]
struct Here {
    place: Place,
    opcode: String,
    line: Option<LineId>,
    guard: u16,
    flip: u32,
    /// A step of it has been emitted.
    begun: bool,
}

/// Instructions of a kernel with the bodies of all its calls.
const MAX_CODE: usize = 1 << 18;

/// A branch to labels that may stand further down.
struct Jump<'a> {
    /// The instruction.
    pc: usize,
    /// The block that it stands in.
    scope: usize,
    /// The label, or the name of a table of labels.
    name: &'a str,
    at: Here,
}

struct Lowering<'a> {
    kernel: Kernel,
    names: Names<'a>,
    at: Here,
    /// Branches whose labels are not known yet.
    jumps: Vec<Jump<'a>>,
    /// The predicate that holds the carry flag.
    carry_flag: Option<u16>,
    /// Registers of constants.
    constants: HashMap<(Wide, Constant), u16>,
    /// Functions with a body.
    functions: HashMap<&'a str, &'a Function<'a>>,
    /// Functions whose bodies are being lowered, from the outermost call.
    calls: Vec<Frame<'a>>,
    /// Shared variables of functions: all calls of one share them.
    statics: HashMap<(&'a str, &'a str), u64>,
    /// Bytes of the variables in `.param` within bodies, by their offsets in local memory.
    param_bytes: HashMap<u64, u64>,
}

impl<'a> Lowering<'a> {
    fn new(ast: &'a Ast<'a>, function: &'a Function<'a>) -> Result<Self, LoadError> {
        let lines = Lines::new(&ast.files);
        let mut kernel = Kernel {
            name: function.name.to_owned(),
            cell_bytes: 4,
            global_cell_bytes: 4,
            in_step: is_before(ast.target, 70),
            before_ampere: is_before(ast.target, 80),
            lines,
            ..Kernel::default()
        };
        for (name, numbers) in &function.directives {
            let axis = |i: usize| numbers.get(i).copied().unwrap_or(1);
            match *name {
                "maxntid" => kernel.max_threads = Some(axis(0).saturating_mul(axis(1)).saturating_mul(axis(2))),
                "reqntid" => kernel.required_block = Some([axis(0), axis(1), axis(2)]),
                _ => {}
            }
        }
        // Predicate 0 always holds, predicate 1 is for results that nobody wants.
        kernel.predicates = 2;
        let mut names = Names::new();
        for (i, variable) in crate::module::module_variables(ast).enumerate() {
            names.declare(variable.name, Variable::Module(i));
        }
        let mut out = Self {
            kernel,
            names,
            at: Here { place: function.place, ..Here::default() },
            jumps: Vec::new(),
            carry_flag: None,
            functions: ast.functions.iter().filter(|f| !f.is_entry && f.body.is_some()).map(|f| (f.name, f)).collect(),
            constants: HashMap::new(),
            calls: Vec::new(),
            statics: HashMap::new(),
            param_bytes: HashMap::new(),
        };
        for variable in ast.variables.iter().filter(|v| v.space == Space::Shared) {
            out.shared(variable)?;
        }
        for param in &function.params {
            out.param(param)?;
        }
        Ok(out)
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T, LoadError> {
        let opcode = if self.at.opcode.is_empty() { self.kernel.name.clone() } else { self.at.opcode.clone() };
        Err(LoadError { place: self.at.place, opcode, message: message.into() })
    }

    fn param(&mut self, param: &ast::Variable<'a>) -> Result<(), LoadError> {
        let Some(bytes) = param.bytes.filter(|b| *b <= 32_764) else {
            return self.error(format!("parameter {:?} has no length or more than 32764 bytes", param.name));
        };
        let offset = u64::from(self.kernel.param_bytes).next_multiple_of(param.align.max(1));
        if offset + bytes > 32_764 {
            return self.error("more than 32764 bytes of parameters");
        }
        self.kernel.param_bytes = (offset + bytes) as u32;
        self.names.declare(param.name, Variable::At(Space::Param, offset));
        self.kernel.params.push(Param { name: param.name.to_owned(), offset: offset as u32, bytes: bytes as u32 });
        Ok(())
    }

    /// Gives a shared variable its offset; one without a length is dynamic memory.
    fn shared(&mut self, variable: &ast::Variable<'a>) -> Result<(), LoadError> {
        let Some(bytes) = variable.bytes else {
            self.names.declare(variable.name, Variable::Dynamic);
            // Dynamic memory begins behind all static memory, aligned as the strictest asks.
            let align = variable.align.clamp(16, 1024) as u32;
            self.kernel.dynamic_align = self.kernel.dynamic_align.max(align);
            return Ok(());
        };
        let function = self.calls.last().map_or("", |frame| frame.name);
        if let Some(offset) = self.statics.get(&(function, variable.name)).copied().filter(|_| !function.is_empty()) {
            self.names.declare(variable.name, Variable::At(Space::Shared, offset));
            return Ok(());
        }
        let offset = u64::from(self.kernel.shared_bytes).next_multiple_of(variable.align.max(1));
        match u32::try_from(offset + bytes) {
            Ok(end) if end <= 1 << 20 => {
                self.kernel.shared_bytes = end;
                self.statics.insert((function, variable.name), offset);
                self.names.declare(variable.name, Variable::At(Space::Shared, offset));
                Ok(())
            }
            _ => self.error(format!("{:?}: more than 1 MiB of shared memory", variable.name)),
        }
    }

    fn local(&mut self, variable: &ast::Variable<'a>) -> Result<(), LoadError> {
        let offset = self.local_slot(variable)?;
        self.names.declare(variable.name, Variable::At(Space::Local, offset));
        Ok(())
    }

    /// Gives a variable its offset in local memory.
    fn local_slot(&mut self, variable: &ast::Variable<'a>) -> Result<u64, LoadError> {
        let offset = u64::from(self.kernel.local_bytes).next_multiple_of(variable.align.max(1));
        match variable.bytes.map(|b| offset + b) {
            Some(end) if end <= 512 << 10 => {
                self.kernel.local_bytes = (end as u32).next_multiple_of(16);
                Ok(offset)
            }
            _ => self.error(format!("{:?}: no length, or more than 512 KiB of local memory", variable.name)),
        }
    }

    /// The statements of a block, with names of its own.
    fn block(&mut self, statements: &[Statement<'a>]) -> Result<(), LoadError> {
        self.names.enter();
        let mut last_label = None;
        for statement in statements {
            match statement {
                Statement::Label(name, place) => {
                    self.at = Here { place: *place, opcode: (*name).to_owned(), ..Here::default() };
                    if !self.names.declare_label(name, self.kernel.code.len()) {
                        return self.error("a second label of this name");
                    }
                    last_label = Some(*name);
                }
                Statement::Targets(labels) => {
                    if let Some(name) = last_label {
                        self.names.declare_table(name, labels.clone());
                    }
                }
                Statement::Registers(registers) => {
                    self.at.place = registers.place;
                    self.names.declare_registers(registers);
                }
                Statement::Variable(variable) => {
                    self.at = Here { place: variable.place, opcode: variable.name.to_owned(), ..Here::default() };
                    match variable.space {
                        Space::Shared => self.shared(variable)?,
                        Space::Local => self.local(variable)?,
                        Space::Param => self.param_variable(variable)?,
                        _ => {
                            return self.error(format!(".{} inside of a function is not supported", variable.space));
                        }
                    }
                }
                Statement::Location(location) => self.kernel.lines.enter(location),
                Statement::Instruction(instruction) => self.instruction(instruction)?,
                Statement::Block(inner) => self.block(inner)?,
            }
        }
        self.names.leave();
        Ok(())
    }

    fn instruction(&mut self, i: &Instruction<'a>) -> Result<(), LoadError> {
        let line = self.kernel.lines.current();
        self.at = Here { place: i.place, opcode: i.opcode(), line, ..Here::default() };
        if self.kernel.code.len() > MAX_CODE {
            return self.error(format!("more than {MAX_CODE} instructions with a body for every call"));
        }
        if let Some((name, negated)) = i.guard {
            self.at.guard = self.predicate_named(name)?;
            self.at.flip = if negated { u32::MAX } else { 0 };
        }
        let mut words = Words::new(&i.modifiers);
        match i.name {
            "mov" => self.mov(i, &mut words)?,
            "cvta" => self.cvta(i, &mut words)?,
            "cvt" => self.cvt(i, &mut words)?,
            "selp" | "slct" => self.select(i, &mut words)?,
            "prmt" => {
                words.ignore(&["b32"]);
                self.apply(i, lanes::permute(words.first()), Class::Move)?;
            }
            "setp" | "set" | "testp" | "isspacep" => self.comparison(i, &mut words)?,
            "ld" | "ldu" | "st" => self.load_or_store(i, &mut words)?,
            "atom" | "red" => self.atomic(i, &mut words)?,
            "cp" => self.copies(i, &mut words)?,
            "ldmatrix" | "stmatrix" => self.move_matrix(i, &mut words)?,
            "mma" => self.multiply(i, &mut words)?,
            "call" if Self::is_assertion(i) => {
                words.clear();
                self.emit(Run::Assert, Some(Class::Exit));
            }
            "call" => self.call(i, &mut words)?,
            "bra" | "brx" | "ret" | "exit" | "trap" | "bar" | "barrier" => self.control(i, &mut words)?,
            "shfl" | "vote" | "activemask" | "match" | "redux" | "elect" => self.warp_wide(i, &mut words)?,
            "membar" | "fence" => self.fence(&mut words),
            "griddepcontrol" => {
                let run = if words.take("wait") { Run::GridWait } else { Run::Skip };
                words.ignore(&["launch_dependents"]);
                self.emit(run, Some(Class::Order));
            }
            "prefetch" | "prefetchu" | "nanosleep" | "applypriority" | "discard" | "pmevent" | "brkpt"
            | "setmaxnreg" => {
                words.clear();
                self.emit(Run::Skip, Some(Class::Order));
            }
            _ => self.arithmetic(i, &mut words)?,
        }
        match words.left() {
            Some(word) => self.error(format!("modifier .{word} is not supported here")),
            None => Ok(()),
        }
    }

    /// Adds a step of the current instruction. Only the first one counts.
    fn emit(&mut self, run: Run, class: Option<Class>) {
        let flow = flow_of::of_run(&run);
        self.emit_with(run, flow, class);
    }

    fn emit_with(&mut self, run: Run, flow: Flow, class: Option<Class>) {
        let class = if self.at.begun { None } else { class };
        self.at.begun = true;
        self.kernel.code.push(Inst { guard: self.at.guard, flip: self.at.flip, run });
        let (place, opcode, line) = (self.at.place, self.at.opcode.clone(), self.at.line);
        self.kernel.flows.push(flow);
        self.kernel.notes.push(Note { place, opcode, line, class });
    }

    fn lanes(&mut self, op: LaneOp, slots: Slots, class: Class) {
        let is_select = self.at.opcode.starts_with("selp") && op.from.len() == 3;
        let flow = flow_of::of_lanes(&op, &slots, is_select);
        self.emit_with(Run::Lanes(op.run, slots), flow, Some(class));
    }

    /// Lane functions that no instruction of this type has.
    fn known(&self, op: Option<LaneOp>) -> Result<LaneOp, LoadError> {
        op.map_or_else(|| self.error("this instruction is not supported"), Ok)
    }

    fn finish(mut self) -> Result<Kernel, LoadError> {
        self.resolve_jumps()?;
        flow::set_joins(&mut self.kernel.code);
        self.kernel.without_value = flow_of::without_value(&self.kernel);
        let kernel = &mut self.kernel;
        if kernel.dynamic_align > 0 {
            kernel.shared_bytes = kernel.shared_bytes.next_multiple_of(kernel.dynamic_align);
        }
        kernel.local_bytes = kernel.local_bytes.next_multiple_of(16);
        debug_assert!(kernel.predicates > usize::from(ALWAYS));
        Ok(self.kernel)
    }
}
