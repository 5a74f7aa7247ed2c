//! Any text: parsing, evaluating, folding and printing do not panic, and what is printed reads back with the same value.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tilewright_core::expr::{Expr, Value};

fuzz_target!(|text: &str| {
    let Ok(expr) = text.parse::<Expr>() else { return };
    let value = expr.eval_with(&|name| Some(Value::Int(name.len() as i64))).ok();
    let printed: Expr = expr.to_string().parse().expect("a printed expression reads back");
    assert_eq!(printed.eval_with(&|name| Some(Value::Int(name.len() as i64))).ok(), value);
    let folded = expr.fold(&|name| Some(Value::Int(name.len() as i64)));
    assert_eq!(folded.eval_with(&|_| None).ok(), value);
});
