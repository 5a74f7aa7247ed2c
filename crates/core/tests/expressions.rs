//! Properties of expressions over random trees and random text.

use proptest::prelude::*;
use tilewright_core::expr::{BinaryOp, CompareOp, Expr, Function, Value};

const NAMES: [&str; 4] = ["m_s", "n", "k_l", "stages"];

fn constant() -> impl Strategy<Value = Expr> {
    prop_oneof![
        (-20i64..300).prop_map(Value::Int),
        Just(Value::Int(i64::MIN)),
        Just(Value::Int(i64::MAX)),
        (-1000i64..1000).prop_map(|i| Value::Float(i as f64 / 8.0)),
        any::<bool>().prop_map(Value::Bool),
        "[a-z'\\\\ ]{0,4}".prop_map(Value::Str),
    ]
    .prop_map(Expr::Const)
}

fn binary_op() -> impl Strategy<Value = BinaryOp> {
    use BinaryOp::*;
    prop::sample::select(vec![Add, Sub, Mul, Div, FloorDiv, Rem, Pow])
}

fn compare_op() -> impl Strategy<Value = CompareOp> {
    use CompareOp::*;
    prop::sample::select(vec![Eq, Ne, Lt, Le, Gt, Ge])
}

fn one_argument() -> impl Strategy<Value = Function> {
    use Function::*;
    prop::sample::select(vec![Abs, Ceil, Floor, Round, Log2, Sqrt, Int, Float])
}

fn tree() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![constant(), prop::sample::select(&NAMES).prop_map(|n| Expr::Name(n.into()))];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        let list = |least| prop::collection::vec(inner.clone(), least..4);
        let chain = prop::collection::vec((compare_op(), inner.clone()), 1..3);
        prop_oneof![
            boxed().prop_map(Expr::Neg),
            boxed().prop_map(Expr::Not),
            (binary_op(), inner.clone(), inner.clone()).prop_map(|(op, a, b)| Expr::Binary(op, [a, b].into())),
            (boxed(), chain).prop_map(|(a, rest)| Expr::Compare(a, rest)),
            (boxed(), list(0), any::<bool>()).prop_map(|(a, list, not)| Expr::In(a, list, not)),
            list(2).prop_map(Expr::And),
            list(2).prop_map(Expr::Or),
            (one_argument(), inner.clone()).prop_map(|(f, a)| Expr::Call(f, vec![a])),
            (any::<bool>(), list(1))
                .prop_map(|(min, list)| Expr::Call(if min { Function::Min } else { Function::Max }, list)),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, c, b)| Expr::If([a, c, b].into())),
        ]
    })
}

fn values() -> impl Strategy<Value = Vec<Value>> {
    let value = prop_oneof![
        (-5i64..64).prop_map(Value::Int),
        (-5i64..5).prop_map(|i| Value::Float(i as f64 / 2.0)),
        any::<bool>().prop_map(Value::Bool),
        Just(Value::Str("nn".into())),
    ];
    prop::collection::vec(value, NAMES.len())
}

fn lookup(values: &[Value]) -> impl Fn(&str) -> Option<Value> {
    |name| NAMES.iter().position(|n| *n == name).map(|i| values[i].clone())
}

/// Results are the same value, or both no value. Which part fails first may differ: folding can find it earlier.
fn same<E>(a: &Result<Value, E>, b: &Result<Value, E>) -> bool {
    match (a, b) {
        (Ok(Value::Float(a)), Ok(Value::Float(b))) => a.to_bits() == b.to_bits() || a == b,
        (Ok(a), Ok(b)) => a == b,
        (a, b) => a.is_err() && b.is_err(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn printed_trees_read_back(expr in tree(), values in values()) {
        let text = expr.to_string();
        let back: Expr = text.parse().map_err(|e| TestCaseError::fail(format!("{text}: {e}")))?;
        // Negative literals read back as negations, so the text is compared and not the tree.
        prop_assert_eq!(back.to_string().parse::<Expr>(), Ok(back.clone()));
        let lookup = lookup(&values);
        let (a, b) = (expr.eval_with(&lookup), back.eval_with(&lookup));
        prop_assert!(same(&a, &b), "{text}: {a:?}, read back {b:?}");
    }

    #[test]
    fn folding_keeps_the_value(expr in tree(), values in values(), known in prop::bits::u8::masked(15)) {
        let lookup = lookup(&values);
        let some = |n: &str| NAMES.iter().position(|m| *m == n).filter(|i| known & (1 << i) != 0).and_then(|_| lookup(n));
        let folded = expr.fold(&some);
        let (a, b) = (expr.eval_with(&lookup), folded.eval_with(&lookup));
        prop_assert!(same(&a, &b), "{expr} is {a:?}, folded to {folded} is {b:?}");
        let left = folded.names();
        prop_assert!(left.iter().all(|n| some(n).is_none()), "{folded} still has known names");
    }

    #[test]
    fn substitution_keeps_the_value(expr in tree(), inner in tree(), values in values()) {
        let lookup = lookup(&values);
        let substituted = expr.substitute(&|n| (n == "n").then(|| inner.clone()));
        // The inner value is needed even where it is not used, as when all names are looked up first.
        if let Ok(n) = inner.eval_with(&lookup) {
            let with_n = |name: &str| if name == "n" { Some(n.clone()) } else { lookup(name) };
            let (a, b) = (expr.eval_with(&with_n), substituted.eval_with(&lookup));
            prop_assert!(same(&a, &b), "{expr} with n = {n:?} is {a:?}, {substituted} is {b:?}");
        }
    }

    #[test]
    fn compiled_slots_are_names(expr in tree(), values in values()) {
        let compiled = expr.compile(&NAMES).unwrap();
        let slots: Vec<_> = values.iter().map(Value::as_val).collect();
        let a = compiled.eval(&slots).map(Value::from);
        prop_assert!(same(&a, &expr.eval_with(&lookup(&values))));
        prop_assert_eq!(compiled.holds(&slots).ok(), a.ok().map(|v| v.as_val().truthy()));
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,60}") {
        let _ = text.parse::<Expr>();
    }

    #[test]
    fn no_heap_of_tokens_panics(
        tokens in prop::collection::vec(
            prop::sample::select(vec![
                "(", ")", "[", "]", ",", "+", "-", "*", "**", "/", "//", "%", "<", "==", "!=", "and", "or", "not", "in",
                "if", "else", "1", "2.5", ".", "e", "'a", "'", "x", "min", "ceil(", "True", "9223372036854775807", "µ", "\\",
            ]),
            0..80,
        ),
    ) {
        let text = tokens.join(" ");
        if let Ok(expr) = text.parse::<Expr>() {
            let _ = expr.eval_with(&|_| Some(Value::Int(3)));
            prop_assert!(expr.to_string().parse::<Expr>().is_ok(), "{text} printed as {expr}");
        }
    }
}

/// A module's name stands before functions only. Anything else of it is an unknown name, not the word behind the dot.
#[test]
fn a_module_has_functions_only() {
    assert_eq!("math.ceil(2.5)".parse::<Expr>().unwrap().eval_with(&|_| None), Ok(Value::Int(3)));
    for text in ["math.", "math.0", "math.x", "math.not", "-math.7 + x"] {
        let expr: Expr = text.parse().unwrap();
        assert!(expr.eval_with(&|name| (name == "x").then_some(Value::Int(1))).is_err(), "{text}");
        assert_eq!(expr.to_string().parse::<Expr>().unwrap(), expr, "{text}");
    }
}

#[test]
fn nesting_and_length_are_bounded() {
    let deep = [
        "(".repeat(100_000),
        "-".repeat(100_000),
        "not ".repeat(100_000),
        "min(".repeat(100_000),
        "1 in [".repeat(100_000),
        "1 ** ".repeat(100_000),
        "1 if 1 else ".repeat(100_000),
        "1 + ".repeat(100_000) + "1",
    ];
    for text in deep {
        assert!(text.parse::<Expr>().is_err(), "{}...", &text[..12]);
    }
    let wide = "x == 1 or ".repeat(20_000) + "True";
    assert!(wide.parse::<Expr>().is_ok());
}

/// Chains at every nesting stand on top of each other: the deepest tree that parses must not overflow a test's stack.
#[test]
fn the_deepest_accepted_tree_is_walked() {
    let mut text = "x".to_owned();
    let mut accepted = None;
    for level in 0..100 {
        text = format!("min(({text}){} if x else 1)", ["+1*2", "-x"][level % 2].repeat(8));
        match text.parse::<Expr>() {
            Ok(expr) => accepted = Some(expr),
            Err(_) => break,
        }
    }
    let expr = accepted.expect("the first level parses");
    assert!(expr.to_string().len() > 500);
    let folded = expr.fold(&|_| None);
    let _ = expr.eval_with(&|_| Some(Value::Int(1)));
    let _ = folded.substitute(&|_| Some(expr.clone())).names();
    let flat = "1 + ".repeat(511) + "x";
    let flat: Expr = flat.parse().expect("as long as allowed");
    assert_eq!(flat.eval_with(&|_| Some(Value::Int(1))), Ok(Value::Int(512)));
    assert_eq!(flat.to_string().parse(), Ok(flat));
}
