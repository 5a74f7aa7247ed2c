//! Evaluation agrees with Python's, so that the constraint strings of existing tuners mean what their authors meant.

use tilewright_core::expr::{EvalError, Expr, Value};

fn eval(text: &str) -> Result<Value, EvalError> {
    text.parse::<Expr>().unwrap_or_else(|e| panic!("{text}: {e}")).eval_with(&|_| None)
}

fn expected(kind: &str, value: &str) -> Result<Value, EvalError> {
    Ok(match kind {
        "bool" => Value::Bool(value == "True"),
        "int" => Value::Int(value.parse().unwrap()),
        "float" => Value::Float(value.parse().unwrap()),
        "str" => Value::Str(value.to_owned()),
        _ => return Err(EvalError::DivisionByZero),
    })
}

#[test]
fn values_and_types_are_pythons() {
    let table = include_str!("python_semantics.tsv");
    let mut compared = 0;
    for line in table.lines().filter(|l| !l.starts_with('#')) {
        let [text, kind, value] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("bad line {line:?}") };
        assert_eq!(eval(text), expected(kind, value), "{text}");
        // Folding and printing keep the meaning.
        let folded = text.parse::<Expr>().unwrap().fold(&|_| None);
        assert_eq!(folded.eval_with(&|_| None), expected(kind, value), "folded {text} to {folded}");
        compared += 1;
    }
    assert!(compared > 350, "only {compared} lines compared");
}

#[test]
fn overflow_is_an_error_and_not_another_number() {
    for text in [
        "9223372036854775807 + 1",
        "-9223372036854775807 - 2",
        "4294967296 * 4294967296",
        "2 ** 63",
        "3 ** 9000000000",
        "abs(-9223372036854775807 - 1)",
        "-(-9223372036854775807 - 1)",
        "(-9223372036854775807 - 1) // -1",
        "1e308 * 10",
        "1e308 + 1e308",
        "10.0 ** 400",
        "(-8) ** 0.5",
        "int(1e300)",
        "ceil(1e19)",
        "log2(0)",
        "sqrt(-1)",
    ] {
        assert!(matches!(eval(text), Err(EvalError::Overflow(_))), "{text} is {:?}", eval(text));
    }
    assert_eq!(eval("-9223372036854775807 - 1"), Ok(Value::Int(i64::MIN)));
    // The quotient does not fit, and the remainder does.
    assert_eq!(eval("(-9223372036854775807 - 1) % -1"), Ok(Value::Int(0)));
}

#[test]
fn words_are_not_numbers() {
    for text in ["'a' + 1", "-'a'", "+'a'", "'a' < 1", "min('a', 1)", "abs('a')", "'a' * 2", "2 ** 'a'", "1 < 'b' < 3"]
    {
        assert!(matches!(eval(text), Err(EvalError::NotANumber(_))), "{text} is {:?}", eval(text));
    }
    assert_eq!(eval("missing + 1"), Err(EvalError::UnknownName("missing".into())));
}

#[test]
fn faults_of_a_text_are_located() {
    for (text, position) in [
        ("", 0),
        ("1 +", 3),
        ("1 + )", 4),
        ("(1", 2),
        ("a b", 2),
        ("1 @ 2", 2),
        ("f(1)", 0),
        ("min()", 4),
        ("abs(1, 2)", 8),
        ("'open", 0),
        ("1 < 2 in [1]", 6),
        ("a if b", 6),
        ("1.2.3", 0),
        ("99999999999999999999", 0),
        ("1e999", 0),
        ("x == 9 µ", 7),
    ] {
        let error = text.parse::<Expr>().expect_err(text);
        assert_eq!(error.position, position, "{text:?}: {error}");
    }
}
