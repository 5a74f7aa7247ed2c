//! Calls: the body of the function takes the place of the call. Parameters lie in local memory, those of the function where
//! the caller put them.

use super::Lowering;
use super::names::Variable;
use super::words::Words;
use crate::counts::Class;
use crate::kernel::{ALWAYS, Access, Address, Constant, Data, Order, Run};
use crate::module::LoadError;
use crate::text::ast::{self, Function, Instruction, Operand};
use crate::types::{Space, Ty};

/// How deep calls may nest, so that a text cannot overflow the stack.
const MAX_CALLS: usize = 32;

/// A function that takes the place of a call.
pub(super) struct Frame<'a> {
    pub(super) name: &'a str,
    /// Its `ret` instructions: branches whose target is not known yet.
    pub(super) returns: Vec<usize>,
}

impl<'a> Lowering<'a> {
    /// Whether a call says that an assertion does not hold.
    pub(super) fn is_assertion(i: &Instruction<'a>) -> bool {
        i.operands.iter().any(|o| matches!(o, Operand::Name("__assertfail" | "__assert_fail")))
    }

    pub(super) fn call(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        words.ignore(&["uni"]);
        let (results, name, arguments) = match i.operands.as_slice() {
            [Operand::Group(results), Operand::Name(name), Operand::Group(arguments)] => {
                (&results[..], *name, &arguments[..])
            }
            [Operand::Group(results), Operand::Name(name)] => (&results[..], *name, &[][..]),
            [Operand::Name(name), Operand::Group(arguments)] => (&[][..], *name, &arguments[..]),
            [Operand::Name(name)] => (&[][..], *name, &[][..]),
            _ => return self.error("calls through a register are not supported"),
        };
        let function = self.callee(name)?;
        self.emit(Run::Skip, Some(Class::Branch));
        let mut bound = Vec::new();
        for (kind, formals, actuals) in
            [("results", &function.returns, results), ("arguments", &function.params, arguments)]
        {
            if formals.len() != actuals.len() {
                return self.error(format!("{} {kind} for {} of {name}", actuals.len(), formals.len()));
            }
            for (formal, actual) in formals.iter().zip(actuals) {
                bound.push((formal.name, self.argument(formal, actual, kind == "arguments")?));
            }
        }
        // Lanes whose guard does not hold go around the whole body.
        let around = (self.at.guard != ALWAYS).then(|| {
            self.at.flip = !self.at.flip;
            self.emit(Run::Branch { target: 0, join: 0 }, None);
            self.kernel.code.len() - 1
        });
        let caller = self.names.enter_function();
        for (name, offset) in bound {
            self.names.declare(name, Variable::At(Space::Local, offset));
        }
        self.calls.push(Frame { name, returns: Vec::new() });
        let outside = self.kernel.lines.enter_call();
        if let Some(body) = &function.body {
            self.block(body)?;
        }
        self.kernel.lines.leave_call(outside);
        self.names.current = caller;
        let end = self.kernel.code.len() as u32;
        let returns = self.calls.pop().map(|frame| frame.returns).unwrap_or_default();
        for pc in returns.into_iter().chain(around) {
            if let Run::Branch { target, .. } = &mut self.kernel.code[pc].run {
                *target = end;
            }
        }
        Ok(())
    }

    /// The function of a name, if it can take the place of its call.
    fn callee(&self, name: &'a str) -> Result<&'a Function<'a>, LoadError> {
        if self.calls.iter().any(|frame| frame.name == name) {
            return self.error(format!("{name} calls itself: recursion is not supported"));
        }
        if self.calls.len() >= MAX_CALLS {
            return self.error(format!("calls nest deeper than {MAX_CALLS}"));
        }
        match self.functions.get(name).copied() {
            Some(function) => Ok(function),
            None => self.error(match name {
                "vprintf" => "printing (vprintf) is not supported".to_owned(),
                "malloc" | "free" => format!("memory from the device's heap ({name}) is not supported"),
                _ => format!("there is no function {name} with a body"),
            }),
        }
    }

    /// Where an argument or result lies in local memory.
    fn argument(&mut self, formal: &ast::Variable<'a>, actual: &Operand<'a>, is_read: bool) -> Result<u64, LoadError> {
        if let Operand::Name(name) = actual
            && let Some(Variable::At(Space::Local, offset)) = self.names.variable(name)
            && let Some(bytes) = self.param_bytes.get(&offset)
        {
            if Some(*bytes) != formal.bytes {
                let wanted = formal.bytes.unwrap_or(0);
                return self.error(format!("{name} has {bytes} bytes where {} has {wanted}", formal.name));
            }
            return Ok(offset);
        }
        if !is_read || formal.bytes != Some(formal.ty.bytes()) {
            return self.error("a variable in .param is expected");
        }
        // A register or constant: put where a variable would be.
        let (slot, bytes) = self.any_source(actual, formal.ty)?;
        let offset = self.local_slot(formal)?;
        let address = Address { slot: self.constant(Constant::Bits(offset), Ty::B64)?, wide: true, offset: 0 };
        let data = vec![Some(Data { slot, bytes: bytes as u8 })];
        let access = Access { is_argument: true, ..Access::new(Space::Local, address, formal.ty, data, Order::Weak) };
        self.emit(Run::Store(Box::new(access)), None);
        Ok(offset)
    }

    /// A variable in `.param` within a body: the arguments and results of calls.
    pub(super) fn param_variable(&mut self, variable: &ast::Variable<'a>) -> Result<(), LoadError> {
        let offset = self.local_slot(variable)?;
        self.names.declare(variable.name, Variable::At(Space::Local, offset));
        self.param_bytes.insert(offset, variable.bytes.unwrap_or(0));
        Ok(())
    }

    /// The space of an access to `.param`: arguments and results of calls lie in local memory.
    pub(super) fn param_space(&self, space: Space, address: &Operand<'a>) -> Result<Space, LoadError> {
        let Operand::Address(parts) = address else { return Ok(space) };
        let (Space::Param, [Operand::Name(name) | Operand::Offset(name, _)]) = (space, parts.as_slice()) else {
            return Ok(space);
        };
        if self.names.register(name).is_some() {
            if self.calls.is_empty() {
                return Ok(space);
            }
            return self.error("an address of a function's parameter in a register is not supported");
        }
        Ok(if let Some(Variable::At(Space::Local, _)) = self.names.variable(name) { Space::Local } else { space })
    }
}
