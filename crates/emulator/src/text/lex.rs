//! Tokens of PTX.

use super::place::{ParseError, Place};
use std::fmt;

/// A token; text is borrowed from the source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Token<'a> {
    /// An identifier, with its leading `%`, `$` or `_`.
    Word(&'a str),
    /// A word behind a dot: directive, type or modifier. `::` belongs to it.
    Dot(&'a str),
    /// An integer.
    Int(u64),
    /// Bits of an exact `0f` constant.
    F32(u32),
    /// Bits of an exact `0d` constant.
    F64(u64),
    /// A decimal fraction, as it stands; it reads as an `f64`.
    Decimal(&'a str),
    /// What stands between quotes.
    Text(&'a str),
    /// Any other character.
    Sign(char),
    /// The end of the text.
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(w) => write!(f, "`{w}`"),
            Self::Dot(w) => write!(f, "`.{w}`"),
            Self::Int(i) => write!(f, "`{i}`"),
            Self::F32(bits) => write!(f, "`0f{bits:08X}`"),
            Self::F64(bits) => write!(f, "`0d{bits:016X}`"),
            Self::Decimal(d) => write!(f, "`{d}`"),
            Self::Text(_) => f.write_str("a string"),
            Self::Sign(c) => write!(f, "`{}`", c.escape_default()),
            Self::End => f.write_str("the end of the text"),
        }
    }
}

/// Splits a text into tokens.
pub(crate) struct Lexer<'a> {
    rest: &'a str,
    place: Place,
}

fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text, place: Place { line: 1, column: 1 } }
    }

    /// Takes `bytes` of the text; they end at a character.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        for c in taken.chars() {
            if c == '\n' {
                self.place = Place { line: self.place.line.saturating_add(1), column: 1 };
            } else {
                self.place.column = self.place.column.saturating_add(1);
            }
        }
        taken
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !keep(c)).unwrap_or(self.rest.len());
        self.take(end)
    }

    fn fail<T>(&self, place: Place, expected: &str, found: &str) -> Result<T, ParseError> {
        Err(ParseError { place, expected: expected.into(), found: found.into() })
    }

    fn skip_blank(&mut self) -> Result<(), ParseError> {
        loop {
            self.take_while(char::is_whitespace);
            if self.rest.starts_with("//") {
                self.take_while(|c| c != '\n');
            } else if self.rest.starts_with("/*") {
                let Some(end) = self.rest.find("*/") else {
                    return self.fail(self.place, "`*/`", "the end of the text");
                };
                self.take(end + 2);
            } else {
                return Ok(());
            }
        }
    }

    /// The next token and where it begins.
    pub(crate) fn next(&mut self) -> Result<(Token<'a>, Place), ParseError> {
        self.skip_blank()?;
        let place = self.place;
        let Some(first) = self.rest.chars().next() else { return Ok((Token::End, place)) };
        let token = match first {
            '.' => return self.dot(place),
            '"' => self.text(place)?,
            '0'..='9' => self.number(place)?,
            c if in_word(c) || c == '%' => {
                let end = self.rest[1..].find(|c| !in_word(c)).map_or(self.rest.len(), |e| e + 1);
                Token::Word(self.take(end))
            }
            c => {
                self.take(c.len_utf8());
                Token::Sign(c)
            }
        };
        Ok((token, place))
    }

    fn dot(&mut self, place: Place) -> Result<(Token<'a>, Place), ParseError> {
        self.take(1);
        let mut end = 0;
        loop {
            end += self.rest[end..].find(|c| !in_word(c)).unwrap_or(self.rest.len() - end);
            let more = self.rest[end..].strip_prefix("::").is_some_and(|r| r.starts_with(in_word));
            if !more {
                break;
            }
            end += 2;
        }
        if end == 0 {
            return self.fail(place, "a word after the dot", "`.`");
        }
        Ok((Token::Dot(self.take(end)), place))
    }

    fn text(&mut self, place: Place) -> Result<Token<'a>, ParseError> {
        self.take(1);
        let text = self.take_while(|c| c != '"' && c != '\n');
        if !self.rest.starts_with('"') {
            return self.fail(place, "a closing quote in the same line", "none");
        }
        self.take(1);
        Ok(Token::Text(text))
    }

    fn number(&mut self, place: Place) -> Result<Token<'a>, ParseError> {
        let start = self.rest;
        let mut word = self.take_while(in_word);
        let bits = |digits: &str, wanted: usize| {
            (digits.len() == wanted).then(|| u64::from_str_radix(digits, 16).ok()).flatten()
        };
        let prefix = word.get(..2).unwrap_or_default();
        match prefix {
            "0f" | "0F" => match bits(&word[2..], 8) {
                Some(value) => return Ok(Token::F32(value as u32)),
                None => return self.fail(place, "8 hexadecimal digits after 0f", word),
            },
            "0d" | "0D" => match bits(&word[2..], 16) {
                Some(value) => return Ok(Token::F64(value)),
                None => return self.fail(place, "16 hexadecimal digits after 0d", word),
            },
            _ => {}
        }
        if self.rest.starts_with('.') && self.rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
            return self.decimal(place, start, word.len());
        }
        word = word.strip_suffix('U').unwrap_or(word);
        let value = match prefix {
            "0x" | "0X" => u64::from_str_radix(&word[2..], 16),
            "0b" | "0B" => u64::from_str_radix(&word[2..], 2),
            _ if word.len() > 1 && word.starts_with('0') => u64::from_str_radix(&word[1..], 8),
            _ => word.parse(),
        };
        match value {
            Ok(value) => Ok(Token::Int(value)),
            Err(_) => self.fail(place, "an integer of at most 64 bits", word),
        }
    }

    /// A decimal fraction whose part before the dot has been taken from `start`.
    fn decimal(&mut self, place: Place, start: &'a str, whole: usize) -> Result<Token<'a>, ParseError> {
        let mut end = self.rest[1..].find(|c: char| !in_word(c)).map_or(self.rest.len(), |e| e + 1);
        // A signed exponent: the sign is no part of a word.
        if self.rest[..end].ends_with(['e', 'E']) && self.rest[end..].starts_with(['+', '-']) {
            let digits = self.rest[end + 1..].find(|c: char| !c.is_ascii_digit());
            end = digits.map_or(self.rest.len(), |d| end + 1 + d);
        }
        self.take(end);
        let text = &start[..whole + end];
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Token::Decimal(text)),
            _ => self.fail(place, "a number", text),
        }
    }
}
