//! From tokens to a module: directives and declarations.

use super::ast::{Ast, Function, Variable};
use super::lex::{Lexer, Token};
use super::place::{ParseError, Place};
use crate::types::{self, Space, Ty};

/// How deep braces may nest; deeper text is refused so that it cannot overflow the stack.
pub(super) const MAX_DEPTH: u32 = 64;

/// Elements that an initialiser may list, and registers that a declaration may name.
const MAX_ELEMENTS: u64 = 1 << 24;

/// Reads a text.
pub(crate) fn parse(text: &str) -> Result<Ast<'_>, ParseError> {
    let mut parser = Parser::new(text)?;
    let mut ast = Ast::default();
    while parser.token != Token::End {
        parser.item(&mut ast)?;
    }
    Ok(ast)
}

/// One token ahead.
pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    pub(super) token: Token<'a>,
    pub(super) place: Place,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self, ParseError> {
        let mut lexer = Lexer::new(text);
        let (token, place) = lexer.next()?;
        Ok(Self { lexer, token, place })
    }

    pub(super) fn fail<T>(&self, expected: impl Into<String>) -> Result<T, ParseError> {
        Err(ParseError { place: self.place, expected: expected.into(), found: self.token.to_string() })
    }

    pub(super) fn bump(&mut self) -> Result<Token<'a>, ParseError> {
        let (token, place) = self.lexer.next()?;
        self.place = place;
        Ok(std::mem::replace(&mut self.token, token))
    }

    /// Takes a sign if it is the next token.
    pub(super) fn eat(&mut self, sign: char) -> Result<bool, ParseError> {
        let there = self.token == Token::Sign(sign);
        if there {
            self.bump()?;
        }
        Ok(there)
    }

    pub(super) fn expect(&mut self, sign: char) -> Result<(), ParseError> {
        if self.eat(sign)? { Ok(()) } else { self.fail(format!("`{sign}`")) }
    }

    pub(super) fn word(&mut self, what: &str) -> Result<&'a str, ParseError> {
        match self.token {
            Token::Word(word) => self.bump().map(|_| word),
            _ => self.fail(what),
        }
    }

    pub(super) fn int(&mut self, what: &str) -> Result<u64, ParseError> {
        match self.token {
            Token::Int(value) => self.bump().map(|_| value),
            _ => self.fail(what),
        }
    }

    /// One or more things with commas between.
    pub(super) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        let mut out = vec![item(self)?];
        while self.eat(',')? {
            out.push(item(self)?);
        }
        Ok(out)
    }

    /// The same between signs, or nothing.
    pub(super) fn enclosed<T>(
        &mut self,
        [open, close]: [char; 2],
        item: impl FnMut(&mut Self) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        self.expect(open)?;
        if self.eat(close)? {
            return Ok(Vec::new());
        }
        let out = self.list(item)?;
        self.expect(close)?;
        Ok(out)
    }

    pub(super) fn text(&mut self, what: &str) -> Result<&'a str, ParseError> {
        match self.token {
            Token::Text(text) => self.bump().map(|_| text),
            _ => self.fail(what),
        }
    }

    pub(super) fn skip_to(&mut self, sign: char) -> Result<(), ParseError> {
        while !self.eat(sign)? {
            if self.token == Token::End {
                return self.fail(format!("`{sign}`"));
            }
            self.bump()?;
        }
        Ok(())
    }

    pub(super) fn ty(&mut self) -> Result<Ty, ParseError> {
        let ty = if let Token::Dot(word) = self.token { Ty::parse(word) } else { None };
        match ty {
            Some(ty) => self.bump().map(|_| ty),
            None => self.fail("a type such as `.f32`"),
        }
    }

    /// One thing at module scope.
    fn item(&mut self, ast: &mut Ast<'a>) -> Result<(), ParseError> {
        let place = self.place;
        let Token::Dot(word) = self.token else { return self.fail("a directive") };
        match word {
            "version" => {
                self.bump()?;
                ast.version = self.version()?;
            }
            "target" => {
                self.bump()?;
                ast.target = self.word("a target such as `sm_80`")?;
                while self.eat(',')? {
                    self.word("an option of the target")?;
                }
            }
            "address_size" => {
                self.bump()?;
                if self.token != Token::Int(64) {
                    return self.fail("64: only 64-bit addresses are supported");
                }
                self.bump()?;
            }
            "extern" | "visible" | "weak" | "common" => {
                self.bump()?;
            }
            "entry" | "func" => {
                let function = self.function(word == "entry", place)?;
                ast.functions.push(function);
            }
            "pragma" => self.pragma()?,
            "file" => {
                let (number, name) = self.file()?;
                ast.files.insert(number, name);
            }
            "section" => self.section()?,
            _ if types::space(word).is_some() => {
                let variables = self.variables()?;
                ast.variables.extend(variables);
            }
            _ => return self.fail("a directive of a module, such as `.entry` or `.global`"),
        }
        Ok(())
    }

    fn version(&mut self) -> Result<(u32, u32), ParseError> {
        let numbers = match self.token {
            Token::Decimal(text) => text.split_once('.').map(|(a, b)| (a.parse().ok(), b.parse().ok())),
            _ => None,
        };
        match numbers {
            Some((Some(major), Some(minor))) => self.bump().map(|_| (major, minor)),
            _ => self.fail("a version such as 8.0"),
        }
    }

    /// `.pragma "a", "b";`
    pub(super) fn pragma(&mut self) -> Result<(), ParseError> {
        self.bump()?;
        self.list(|p| p.text("a string"))?;
        self.expect(';')
    }

    /// `.file 1 "name", 123, 456`
    fn file(&mut self) -> Result<(u64, &'a str), ParseError> {
        self.bump()?;
        let number = self.int("the number of the file")?;
        let name = self.text("the file's name")?;
        while self.eat(',')? {
            self.int("a number")?;
        }
        Ok((number, name))
    }

    /// Debugging data: skipped.
    fn section(&mut self) -> Result<(), ParseError> {
        self.bump()?;
        self.skip_to('{')?;
        self.skip_to('}')
    }

    /// A declaration that begins with its space: one or more variables, closed by a semicolon.
    pub(super) fn variables(&mut self) -> Result<Vec<Variable<'a>>, ParseError> {
        let first = self.variable()?;
        let mut out = vec![first];
        while self.eat(',')? {
            let like = &out[0];
            let (space, ty, align) = (like.space, like.ty, like.align);
            out.push(self.declared(space, ty, 1, align)?);
        }
        self.expect(';')?;
        Ok(out)
    }

    /// Space, attributes, type and name of one variable or parameter.
    fn variable(&mut self) -> Result<Variable<'a>, ParseError> {
        let space = if let Token::Dot(word) = self.token { types::space(word) } else { None };
        let Some(space) = space else { return self.fail("a space such as `.param`") };
        self.bump()?;
        let (mut align, mut width, mut ty) = (None, 1, None);
        while let Token::Dot(word) = self.token {
            match word {
                "align" => {
                    self.bump()?;
                    align = Some(self.alignment()?);
                }
                "v2" | "v4" => {
                    self.bump()?;
                    width = if word == "v2" { 2 } else { 4 };
                }
                // What a pointer parameter points to changes nothing here.
                "ptr" | "global" | "shared" | "const" | "local" | "surfref" => {
                    self.bump()?;
                }
                _ => ty = Some(self.ty()?),
            }
        }
        let Some(ty) = ty else { return self.fail("a type such as `.f32`") };
        let natural = ty.bytes() * width;
        self.declared(space, ty, width, align.filter(|_| !is_pointee(space, ty)).unwrap_or(natural))
    }

    fn alignment(&mut self) -> Result<u64, ParseError> {
        match self.token {
            Token::Int(a) if a.is_power_of_two() && a <= 1 << 16 => self.bump().map(|_| a),
            _ => self.fail("an alignment: a power of two up to 65536"),
        }
    }

    /// Name, dimensions and initialiser.
    fn declared(&mut self, space: Space, ty: Ty, width: u64, align: u64) -> Result<Variable<'a>, ParseError> {
        let place = self.place;
        let name = self.word("a name")?;
        let mut bytes = Some(ty.bytes() * width);
        while self.eat('[')? {
            if self.eat(']')? {
                bytes = None;
                continue;
            }
            let at = self.place;
            let count = self.int("a number of elements")?;
            bytes = match bytes.map(|b| b.checked_mul(count)) {
                Some(Some(b)) if b <= 1 << 40 => Some(b),
                Some(_) => return Err(oversized(at, "an array of at most 2^40 bytes", count)),
                None => None,
            };
            self.expect(']')?;
        }
        let (mut values, mut symbols) = (Vec::new(), Vec::new());
        if self.eat('=')? {
            self.initialiser(&mut values, &mut symbols, ty)?;
            let listed = values.len() as u64 * ty.bytes();
            if bytes.is_some_and(|b| listed > b) {
                return Err(oversized(place, "no more values than elements", values.len() as u64));
            }
            bytes = bytes.or(Some(listed));
        }
        Ok(Variable { space, name, ty, bytes, align, values, symbols, place })
    }

    /// Numbers, in braces or alone. Nested braces are flattened.
    fn initialiser(
        &mut self,
        values: &mut Vec<u64>,
        symbols: &mut Vec<(usize, &'a str, i64)>,
        ty: Ty,
    ) -> Result<(), ParseError> {
        let mut depth = 0u32;
        loop {
            if self.eat('{')? {
                depth += 1;
                if depth > MAX_DEPTH {
                    return self.fail(format!("at most {MAX_DEPTH} nested braces"));
                }
                continue;
            }
            if self.token != Token::Sign('}') {
                if values.len() as u64 >= MAX_ELEMENTS {
                    return self.fail(format!("at most {MAX_ELEMENTS} values"));
                }
                if let Token::Word(name) = self.token {
                    let (name, offset) = self.symbol(name, ty)?;
                    symbols.push((values.len(), name, offset));
                    values.push(0);
                } else {
                    values.push(self.value(ty)?);
                }
            }
            while depth > 0 && self.eat('}')? {
                depth -= 1;
            }
            if depth == 0 {
                return Ok(());
            }
            self.expect(',')?;
        }
    }

    /// `name`, `name+8`, `generic(name)`: an address.
    fn symbol(&mut self, name: &'a str, ty: Ty) -> Result<(&'a str, i64), ParseError> {
        if ty.bytes() != 8 {
            return self.fail("a number: only elements of 64 bits hold addresses");
        }
        self.bump()?;
        let name = if name == "generic" && self.eat('(')? {
            let inner = self.word("a variable")?;
            self.expect(')')?;
            inner
        } else {
            name
        };
        let offset = if self.eat('+')? { self.int("an offset")? as i64 } else { 0 };
        Ok((name, offset))
    }

    fn value(&mut self, ty: Ty) -> Result<u64, ParseError> {
        let negative = self.eat('-')?;
        let number = self.number(negative)?;
        Ok(number.bits(ty).unwrap_or(0))
    }

    fn function(&mut self, is_entry: bool, place: Place) -> Result<Function<'a>, ParseError> {
        self.bump()?;
        let has_results = !is_entry && self.token == Token::Sign('(');
        let returns = if has_results { self.params()? } else { Vec::new() };
        let name = self.word("the function's name")?;
        let params = if self.token == Token::Sign('(') { self.params()? } else { Vec::new() };
        let directives = self.function_directives()?;
        let body = match self.token {
            Token::Sign(';') => {
                self.bump()?;
                None
            }
            Token::Sign('{') => Some(self.body(0)?),
            _ => return self.fail("`{` or `;`"),
        };
        Ok(Function { name, is_entry, returns, params, directives, body, place })
    }

    fn params(&mut self) -> Result<Vec<Variable<'a>>, ParseError> {
        self.enclosed(['(', ')'], |p| match p.token {
            Token::Dot("reg") => p.fail("`.param`: parameters in registers are not supported"),
            _ => p.variable(),
        })
    }

    fn function_directives(&mut self) -> Result<Vec<(&'a str, Vec<u64>)>, ParseError> {
        let mut out = Vec::new();
        while let Token::Dot(word) = self.token {
            if word == "pragma" {
                self.pragma()?;
                continue;
            }
            self.bump()?;
            let has_numbers = matches!(self.token, Token::Int(_));
            let numbers = if has_numbers { self.list(|p| p.int("a number"))? } else { Vec::new() };
            out.push((word, numbers));
        }
        Ok(out)
    }
}

/// The alignment of a pointer parameter is that of what it points to.
fn is_pointee(space: Space, ty: Ty) -> bool {
    space == Space::Param && matches!(ty, Ty::U64 | Ty::B64 | Ty::S64)
}

fn oversized(place: Place, expected: &str, found: u64) -> ParseError {
    ParseError { place, expected: expected.into(), found: found.to_string() }
}
