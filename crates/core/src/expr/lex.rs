//! Text to tokens.

use super::Function;
use super::parse::ParseError;
use super::value::Value;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Literal(Value),
    Name(String),
    /// Operators, punctuation and the keywords `and or not in if else for`.
    Symbol(&'static str),
    End,
}

const SYMBOLS: [&str; 27] = [
    "**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "<", ">", "(", ")", "[", "]", "{", "}", ",", "and",
    "or", "not", "in", "if", "else", "for",
];
/// Symbols from here on are words.
const FIRST_KEYWORD: usize = 20;

pub(super) fn lex(text: &str) -> Result<Vec<(usize, Token)>, ParseError> {
    let mut out = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let c = bytes[at];
        if c.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let token = if c.is_ascii_digit() || (c == b'.' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)) {
            at = number_end(bytes, at);
            number(&text[start..at], start)?
        } else if c.is_ascii_alphabetic() || c == b'_' {
            while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_' || bytes[at] == b'.') {
                at += 1;
            }
            word(&text[start..at])
        } else if c == b'\'' || c == b'"' {
            let (s, end) = string(text, at)?;
            at = end;
            Token::Literal(Value::Str(s))
        } else {
            let symbol = SYMBOLS[..FIRST_KEYWORD].iter().find(|s| text[at..].starts_with(**s)).copied();
            let found = || text[at..].chars().next().map_or(String::new(), |c| format!("{c:?}"));
            let symbol = symbol.ok_or_else(|| ParseError::new(start, "an operator, a name or a number", &found()))?;
            at += symbol.len();
            Token::Symbol(symbol)
        };
        out.push((start, token));
    }
    out.push((text.len(), Token::End));
    Ok(out)
}

fn word(text: &str) -> Token {
    if let Some(keyword) = SYMBOLS[FIRST_KEYWORD..].iter().find(|k| **k == text) {
        return Token::Symbol(keyword);
    }
    match text {
        "True" | "true" => Token::Literal(Value::Bool(true)),
        "False" | "false" => Token::Literal(Value::Bool(false)),
        // `math.ceil` and the like: before a function the module's name says nothing. Anything else of a module is an unknown name.
        _ => Token::Name(
            text.strip_prefix("math.").filter(|f| Function::by_name(f).is_some()).unwrap_or(text).to_owned(),
        ),
    }
}

fn number_end(bytes: &[u8], mut at: usize) -> usize {
    let mut seen_exponent = false;
    while at < bytes.len() {
        match bytes[at] {
            b'0'..=b'9' | b'.' | b'_' => {}
            b'e' | b'E' if !seen_exponent => {
                seen_exponent = true;
                if matches!(bytes.get(at + 1), Some(b'+' | b'-')) {
                    at += 1;
                }
            }
            _ => break,
        }
        at += 1;
    }
    at
}

fn number(text: &str, at: usize) -> Result<Token, ParseError> {
    let digits = text.replace('_', "");
    if let Ok(i) = digits.parse::<i64>() {
        return Ok(Token::Literal(Value::Int(i)));
    }
    match digits.parse::<f64>() {
        // As a float it would silently lose digits.
        Ok(_) if digits.bytes().all(|b| b.is_ascii_digit()) => {
            Err(ParseError::new(at, "an integer of at most 64 bits", &format!("{text:?}")))
        }
        Ok(f) if f.is_finite() => Ok(Token::Literal(Value::Float(f))),
        _ => Err(ParseError::new(at, "a number", &format!("{text:?}"))),
    }
}

fn string(text: &str, at: usize) -> Result<(String, usize), ParseError> {
    let mut chars = text[at..].char_indices();
    let quote = chars.next().map(|(_, c)| c);
    let mut out = String::new();
    while let Some((i, c)) = chars.next() {
        if Some(c) == quote {
            return Ok((out, at + i + c.len_utf8()));
        }
        if c == '\\' {
            match chars.next() {
                Some((_, escaped)) => out.push(escaped),
                None => break,
            }
        } else {
            out.push(c);
        }
    }
    Err(ParseError::new(at, "a closing quote", "the end"))
}
