//! From tokens to statements.

use super::ast::{Instruction, Location, Operand, Registers, SourcePlace, Statement};
use super::lex::Token;
use super::parse::{MAX_DEPTH, Parser};
use super::place::{ParseError, Place};
use crate::types;

/// Registers that one declaration may name; a kernel needs a few thousand.
const MAX_REGISTERS: u64 = 60_000;

impl<'a> Parser<'a> {
    /// Statements between braces.
    pub(super) fn body(&mut self, depth: u32) -> Result<Vec<Statement<'a>>, ParseError> {
        if depth > MAX_DEPTH {
            return self.fail(format!("at most {MAX_DEPTH} nested braces"));
        }
        self.expect('{')?;
        let mut out = Vec::new();
        while !self.eat('}')? {
            self.statement(depth, &mut out)?;
        }
        Ok(out)
    }

    fn statement(&mut self, depth: u32, out: &mut Vec<Statement<'a>>) -> Result<(), ParseError> {
        let place = self.place;
        match self.token {
            Token::Sign('{') => out.push(Statement::Block(self.body(depth + 1)?)),
            Token::Sign(';') => {
                self.bump()?;
            }
            Token::Sign('@') => {
                self.bump()?;
                let negated = self.eat('!')?;
                let predicate = self.word("a predicate")?;
                let place = self.place;
                let name = self.word("an instruction")?;
                let instruction = self.instruction(Some((predicate, negated)), name, place)?;
                out.push(Statement::Instruction(instruction));
            }
            Token::Word(word) => {
                self.bump()?;
                if self.eat(':')? {
                    out.push(Statement::Label(word, place));
                } else {
                    out.push(Statement::Instruction(self.instruction(None, word, place)?));
                }
            }
            Token::Dot(word) => self.directive(word, out)?,
            _ => return self.fail("a statement or `}`"),
        }
        Ok(())
    }

    fn directive(&mut self, word: &'a str, out: &mut Vec<Statement<'a>>) -> Result<(), ParseError> {
        match word {
            "reg" => self.registers(out),
            "loc" => {
                out.push(Statement::Location(self.location()?));
                Ok(())
            }
            "pragma" => self.pragma(),
            // Of calls through registers, which nothing runs.
            "callprototype" | "calltargets" => self.skip_to(';'),
            "branchtargets" => {
                self.bump()?;
                let names = self.list(|p| p.word("a label"))?;
                self.expect(';')?;
                out.push(Statement::Targets(names));
                Ok(())
            }
            _ if types::space(word).is_some() => {
                out.extend(self.variables()?.into_iter().map(Statement::Variable));
                Ok(())
            }
            _ => self.fail("a directive of a body, such as `.reg` or `.shared`"),
        }
    }

    /// `.reg .f32 %f<8>, %g;`
    fn registers(&mut self, out: &mut Vec<Statement<'a>>) -> Result<(), ParseError> {
        self.bump()?;
        let width = match self.token {
            Token::Dot("v2") => 2,
            Token::Dot("v4") => 4,
            _ => 1,
        };
        if width > 1 {
            self.bump()?;
        }
        let ty = self.ty()?;
        let declared = self.list(|p| {
            let place = p.place;
            let name = p.word("a register")?;
            if !p.eat('<')? {
                return Ok(Registers { ty, width, name, count: None, place });
            }
            let number = p.int("a number of registers")?;
            if number > MAX_REGISTERS {
                let expected = format!("at most {MAX_REGISTERS} registers");
                return Err(ParseError { place, expected, found: number.to_string() });
            }
            p.expect('>')?;
            Ok(Registers { ty, width, name, count: Some(number), place })
        })?;
        out.extend(declared.into_iter().map(Statement::Registers));
        self.expect(';')
    }

    /// `.loc 1 2 3, function_name $L+4, inlined_at 1 2 3`
    fn location(&mut self) -> Result<Location, ParseError> {
        self.bump()?;
        let mut location = Location { at: self.source_place()?, inlined_at: None };
        while self.eat(',')? {
            match self.word("`function_name` or `inlined_at`")? {
                "inlined_at" => location.inlined_at = Some(self.source_place()?),
                "function_name" => {
                    self.word("a label")?;
                    if self.eat('+')? {
                        self.int("an offset")?;
                    }
                }
                _ => return self.fail("`function_name` or `inlined_at`"),
            }
        }
        Ok(location)
    }

    fn source_place(&mut self) -> Result<SourcePlace, ParseError> {
        Ok([self.int("a file")?, self.int("a line")?, self.int("a column")?])
    }

    fn instruction(
        &mut self,
        guard: Option<(&'a str, bool)>,
        name: &'a str,
        place: Place,
    ) -> Result<Instruction<'a>, ParseError> {
        let mut modifiers = Vec::new();
        while let Token::Dot(word) = self.token {
            modifiers.push(word);
            self.bump()?;
        }
        let has_none = self.token == Token::Sign(';');
        let operands = if has_none { Vec::new() } else { self.list(|p| p.operand(0))? };
        self.expect(';')?;
        Ok(Instruction { guard, name, modifiers, operands, place })
    }

    fn operand(&mut self, depth: u32) -> Result<Operand<'a>, ParseError> {
        if depth > 4 {
            return self.fail("at most four nested operands");
        }
        match self.token {
            Token::Word(word) => {
                self.bump()?;
                self.named(word)
            }
            Token::Sign('!') => {
                self.bump()?;
                Ok(Operand::Not(self.word("a predicate")?))
            }
            Token::Sign('{') => Ok(Operand::Vector(self.enclosed(['{', '}'], |p| p.operand(depth + 1))?)),
            Token::Sign('[') => Ok(Operand::Address(self.enclosed(['[', ']'], |p| p.operand(depth + 1))?)),
            Token::Sign('(') => Ok(Operand::Group(self.enclosed(['(', ')'], |p| p.operand(depth + 1))?)),
            Token::Sign('-') => {
                self.bump()?;
                self.number(true)
            }
            _ => self.number(false),
        }
    }

    /// What may follow a name.
    fn named(&mut self, name: &'a str) -> Result<Operand<'a>, ParseError> {
        match self.token {
            Token::Dot(component) => self.bump().map(|_| Operand::Component(name, component)),
            Token::Sign('|') => {
                self.bump()?;
                Ok(Operand::Pair(name, self.word("a second destination")?))
            }
            Token::Sign(sign @ ('+' | '-')) => {
                self.bump()?;
                // `+-4` is how nvcc writes a negative offset.
                let negative = (sign == '-') ^ self.eat('-')?;
                let value = self.int("an offset")? as i64;
                Ok(Operand::Offset(name, if negative { value.wrapping_neg() } else { value }))
            }
            _ => Ok(Operand::Name(name)),
        }
    }

    pub(super) fn number(&mut self, negative: bool) -> Result<Operand<'a>, ParseError> {
        let operand = match self.token {
            Token::Int(i) => Operand::Int(if negative { i.wrapping_neg() } else { i }),
            Token::F32(bits) => Operand::F32(if negative { bits ^ 1 << 31 } else { bits }),
            Token::F64(bits) => Operand::F64(if negative { bits ^ 1 << 63 } else { bits }),
            Token::Decimal(text) => {
                let value: f64 = text.parse().unwrap_or(f64::NAN);
                Operand::F64((if negative { -value } else { value }).to_bits())
            }
            _ => return self.fail("an operand"),
        };
        self.bump()?;
        Ok(operand)
    }
}
