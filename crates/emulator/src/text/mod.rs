//! Reading PTX text.

pub(crate) mod ast;
mod body;
mod lex;
mod parse;
mod place;

pub(crate) use parse::parse;
pub use place::{ParseError, Place};
