//! Operands as registers.

use super::Lowering;
use super::names::{Found, Register, Variable};
use crate::kernel::{Address, Constant};
use crate::machine::Special;
use crate::memory::window;
use crate::module::LoadError;
use crate::text::ast::Operand;
use crate::types::{Space, Ty};

/// Slots of one kind that a kernel may use.
const MAX_SLOTS: usize = u16::MAX as usize;

impl<'a> Lowering<'a> {
    pub(super) fn fresh(&mut self, ty: Ty) -> Result<u16, LoadError> {
        let count = match (ty, ty.bytes()) {
            (Ty::Pred, _) => &mut self.kernel.predicates,
            (_, 8) => &mut self.kernel.doubles,
            (_, 16) => return self.error("registers of 128 bits are not supported"),
            _ => &mut self.kernel.words,
        };
        *count += 1;
        let slot = *count - 1;
        if slot >= MAX_SLOTS {
            self.error(format!("more than {MAX_SLOTS} registers of one kind"))
        } else {
            Ok(slot as u16)
        }
    }

    pub(super) fn register(&mut self, name: &str) -> Result<Option<Register>, LoadError> {
        match self.names.register(name) {
            Some(Found::Register(register)) => Ok(Some(register)),
            Some(Found::Fresh(scope, ty)) => {
                let register = Register { slot: self.fresh(ty)?, ty };
                self.names.use_register(scope, name, register);
                Ok(Some(register))
            }
            Some(Found::Vector(_)) => self.error(format!("{name} is a vector: an element is expected here")),
            None => Ok(None),
        }
    }

    /// A register of the width of a type.
    fn sized(&self, name: &str, register: Register, ty: Ty) -> Result<u16, LoadError> {
        let fits = (register.ty == Ty::Pred) == (ty == Ty::Pred) && register.ty.bytes() == ty.bytes();
        if fits {
            return Ok(register.slot);
        }
        self.error(format!("{name} is a .{} register where .{} is expected", register.ty.name(), ty.name()))
    }

    pub(super) fn predicate_named(&mut self, name: &str) -> Result<u16, LoadError> {
        match self.register(name)? {
            Some(register) => self.sized(name, register, Ty::Pred),
            None => self.error(format!("there is no predicate {name}")),
        }
    }

    /// A predicate and whether it is negated. Constants are allowed where PTX allows them.
    pub(super) fn predicate(&mut self, operand: &Operand<'a>) -> Result<(u16, bool), LoadError> {
        match operand {
            Operand::Name(name) => Ok((self.predicate_named(name)?, false)),
            Operand::Not(name) => Ok((self.predicate_named(name)?, true)),
            Operand::Int(value) => Ok((crate::kernel::ALWAYS, *value == 0)),
            _ => self.error("a predicate is expected"),
        }
    }

    /// A register to write; `_` is one that nobody reads.
    pub(super) fn destination(&mut self, operand: &Operand<'a>, ty: Ty) -> Result<u16, LoadError> {
        match operand {
            Operand::Name("_") if ty == Ty::Pred => Ok(1),
            Operand::Name("_") => self.fresh(ty),
            Operand::Name(name) => self.named_destination(name, ty),
            Operand::Component(name, element) => self.named_destination(&format!("{name}.{element}"), ty),
            _ => self.error("a register is expected as the destination"),
        }
    }

    fn named_destination(&mut self, name: &str, ty: Ty) -> Result<u16, LoadError> {
        match self.register(name)? {
            Some(register) => self.sized(name, register, ty),
            None => self.error(format!("there is no register {name}")),
        }
    }

    /// A register to read: constants, special registers and addresses have one too.
    pub(super) fn source(&mut self, operand: &Operand<'a>, ty: Ty) -> Result<u16, LoadError> {
        match operand {
            Operand::Name(name) => self.named_source(name, 0, ty),
            Operand::Offset(name, offset) => self.named_source(name, *offset, ty),
            Operand::Component(name, element) => {
                let full = format!("{name}.{element}");
                if let Some(register) = self.register(&full)? {
                    return self.sized(&full, register, ty);
                }
                self.special(&full, ty)
            }
            _ => match operand.bits(ty) {
                Some(bits) => self.constant(Constant::Bits(bits), ty),
                None => self.error("a register or constant is expected"),
            },
        }
    }

    fn named_source(&mut self, name: &str, offset: i64, ty: Ty) -> Result<u16, LoadError> {
        if let Some(register) = self.register(name)? {
            if offset != 0 {
                return self.error("a register plus an offset stands only in addresses");
            }
            return self.sized(name, register, ty);
        }
        if name.eq_ignore_ascii_case("WARP_SZ") {
            return self.constant(Constant::Bits(32), ty);
        }
        match self.names.variable(name) {
            Some(variable) => self.constant(address_of(variable, offset), ty),
            None => self.special(name, ty),
        }
    }

    /// A register that holds a constant; equal ones share it.
    pub(super) fn constant(&mut self, constant: Constant, ty: Ty) -> Result<u16, LoadError> {
        let wide = ty.bytes() == 8;
        if let Some(slot) = self.constants.get(&(wide, constant)) {
            return Ok(*slot);
        }
        let slot = self.fresh(if wide { Ty::B64 } else { Ty::B32 })?;
        self.constants.insert((wide, constant), slot);
        self.kernel.constants.push((slot, wide, constant));
        Ok(slot)
    }

    fn special(&mut self, name: &str, ty: Ty) -> Result<u16, LoadError> {
        let Some(which) = Special::named(name) else { return self.error(format!("there is no register {name}")) };
        let wide = ty.bytes() == 8;
        if let Some((slot, ..)) = self.kernel.specials.iter().find(|(_, w, s)| *w == wide && *s == which) {
            return Ok(*slot);
        }
        let slot = self.fresh(if wide { Ty::B64 } else { Ty::B32 })?;
        self.kernel.specials.push((slot, wide, which));
        Ok(slot)
    }

    /// The address of a memory operand.
    pub(super) fn address(&mut self, operand: &Operand<'a>, space: Space) -> Result<Address, LoadError> {
        let Operand::Address(parts) = operand else { return self.error("an address in brackets is expected") };
        let [base] = parts.as_slice() else { return self.error("an address of one part is expected") };
        let (name, offset) = match base {
            Operand::Name(name) => (*name, 0),
            Operand::Offset(name, offset) => (*name, *offset),
            Operand::Int(value) => {
                let slot = self.constant(Constant::Bits(*value), Ty::B64)?;
                return Ok(Address { slot, wide: true, offset: 0 });
            }
            _ => return self.error("a register, variable or number is expected in the address"),
        };
        if let Some(register) = self.register(name)? {
            let wide = register.ty.bytes() == 8;
            if register.ty.bytes() < 4 || register.ty == Ty::Pred {
                return self.error(format!("{name} is no register for addresses"));
            }
            return Ok(Address { slot: register.slot, wide, offset });
        }
        let Some(variable) = self.names.variable(name) else {
            return self.error(format!("there is no register or variable {name}"));
        };
        let constant = match (variable, space) {
            (Variable::At(of, at), Space::Generic) => Constant::Bits(window(of).unwrap_or(0) + at),
            _ => address_of(variable, 0),
        };
        Ok(Address { slot: self.constant(constant, Ty::B64)?, wide: true, offset })
    }

    /// The elements of a vector operand, or the operand alone.
    pub(super) fn elements<'o>(&self, operand: &'o Operand<'a>) -> Vec<Operand<'a>>
    where
        'a: 'o,
    {
        match operand {
            Operand::Vector(elements) => elements.clone(),
            Operand::Name(name) => match self.names.register(name) {
                Some(Found::Vector(width)) => {
                    ["x", "y", "z", "w"].iter().take(usize::from(width)).map(|e| Operand::Component(name, e)).collect()
                }
                _ => vec![operand.clone()],
            },
            _ => vec![operand.clone()],
        }
    }
}

fn address_of(variable: Variable, offset: i64) -> Constant {
    match variable {
        Variable::At(_, at) => Constant::Bits(at.wrapping_add(offset as u64)),
        Variable::Dynamic => Constant::DynamicShared(offset),
        Variable::Module(i) => Constant::Variable(i, offset),
    }
}
