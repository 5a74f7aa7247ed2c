//! Descriptions in the T1 format: what is read, and how bad ones are refused.

use tilewright_core::expr::{List, Value};
use tilewright_core::space::SpaceError;
use tilewright_sampler::{Conflict, Description, LegalError, LegalSet, T1Error};
use tilewright_testkit::mutants;

fn t1(parameters: &[(&str, &str)], conditions: &[&str]) -> String {
    let parameters: Vec<String> =
        parameters.iter().map(|(n, v)| format!(r#"{{"Name": "{n}", "Type": "int", "Values": {v}}}"#)).collect();
    let conditions: Vec<String> =
        conditions.iter().map(|c| format!(r#"{{"Expression": "{c}", "Parameters": []}}"#)).collect();
    format!(
        r#"{{"General": {{"BenchmarkName": "x"}}, "ConfigurationSpace": {{"TuningParameters": [{}], "Conditions": [{}]}}}}"#,
        parameters.join(", "),
        conditions.join(", ")
    )
}

#[test]
fn values_as_text_and_as_lists() {
    let text = t1(
        &[
            ("a", r#""[1, 2] + list(range(32, 96+1, 32))""#),
            ("b", r#""[2**i for i in range(0, 4)]""#),
            ("c", r#"[1, 2.5, true, "nn"]"#),
        ],
        &["a % b == 0 and not (a == 1 or b > 4)", "32 <= a * b <= 128", "c == 'nn' or c == 1"],
    );
    let description = Description::from_t1(&text).unwrap();
    let values = |i: usize| description.params()[i].values.clone();
    assert_eq!(values(0), [1, 2, 32, 64, 96].map(Value::Int));
    assert_eq!(values(1), [1, 2, 4, 8].map(Value::Int));
    assert_eq!(values(2), [Value::Int(1), Value::Float(2.5), Value::Bool(true), Value::from("nn")]);
    let set = LegalSet::new(&description).unwrap();
    // a in 32 64 96, b in 1 2 4, at most 128: three, two and one of b; True is 1 in Python.
    assert_eq!(set.count(), (3 + 2 + 1) * 3);
    let (_, bound) = description.to_core().unwrap();
    assert_eq!(bound.count_legal(), set.count());
    assert!(set.walk().all(|p| bound.is_legal(&p)));
}

/// What Python does with the same text, computed by hand: true division, `in`, chains, functions.
#[test]
fn constraints_mean_what_python_means() {
    for (constraint, count) in [
        ("8 % ((x * y) / x) == 0", 4 * 3),
        ("x in range(2, 5) and y not in (1, 2)", 2 * 2),
        ("max([x, y]) - min(x, y) == abs(x - y)", 16),
        ("x / y == 0.5", 3),
        ("int(x / 3) == len([1, 2])", 4),
        ("1 < x <= y < 8", 3),
        ("-7 // x == -4 or x ** 2 == 64", 8),
        ("not x == 1 and not (y == 1)", 9),
    ] {
        let text = t1(&[("x", "[1, 2, 4, 8]"), ("y", r#""[1, 2, 4, 16]""#)], &[constraint]);
        let set = LegalSet::new(&Description::from_t1(&text).unwrap()).unwrap();
        assert_eq!(set.count(), count, "{constraint}");
    }
}

#[test]
fn bad_descriptions_say_what_and_where() {
    let error = |text: &str| Description::from_t1(text).unwrap_err();
    let good = t1(&[("x", "[1]")], &["x > 0"]);
    assert!(Description::from_t1(&format!("\u{feff}{good}")).is_ok(), "the mark of the byte order");
    let long = t1(&[("x", "[1]")], &[&format!("x > {} )", "1 + ".repeat(100_000))]);
    assert!(error(&long).to_string().len() < 400, "a message repeats no megabytes");
    for end in 0..good.len() {
        assert!(matches!(error(&good[..end]), T1Error::Json(_)), "{end}");
    }
    assert!(matches!(error("{}"), T1Error::Json(m) if m.contains("ConfigurationSpace")));
    for (values, said) in [
        (r#""[1, 2 3]""#, "at position 6: expected \"]\", found 3"),
        (r#""[1 / 0]""#, "element 0: division by zero"),
        ("3", "3 is no number, truth or word"),
        ("[null]", "null is no number, truth or word"),
        ("[18446744073709551615]", "18446744073709551615 is no number, truth or word"),
    ] {
        let T1Error::Values { parameter, message } = error(&t1(&[("x", values)], &[])) else { panic!("{values}") };
        assert_eq!((parameter.as_str(), message.as_str()), ("x", said));
    }
    let T1Error::Space(LegalError::Parse { constraint, error: at }) = error(&t1(&[("x", "[1]")], &["x => 1"])) else {
        panic!()
    };
    assert_eq!((constraint.as_str(), at.position), ("x => 1", 2));
    let built = |text: &str| LegalSet::new(&Description::from_t1(text).unwrap());
    assert!(
        matches!(built(&t1(&[("x", "[1]")], &["y > 1"])), Err(LegalError::UnknownName { name, .. }) if name == "y")
    );
    assert!(matches!(built(&t1(&[("x", "[0, 1]")], &["4 % x == 0"])), Err(LegalError::Undefined { .. })));
    assert!(matches!(built(&t1(&[("x", "[]")], &[])), Err(LegalError::Space(SpaceError::NoValues(_)))));
    let many = r#""list(range(100000))""#;
    assert!(matches!(
        built(&t1(&[("x", many)], &[])),
        Err(LegalError::Space(SpaceError::TooManyValues { count: 100_000, .. }))
    ));
    let wide = r#""list(range(60000))""#;
    let five: Vec<(&str, &str)> = ["a", "b", "c", "d", "e"].map(|n| (n, wide)).to_vec();
    assert_eq!(built(&t1(&five, &[])).unwrap_err(), LegalError::TooMany);
    let contradictory = t1(&[("x", "[1, 2]"), ("y", "[1, 2]")], &["x > y", "x * y < 9", "y >= x"]);
    let description = Description::from_t1(&contradictory).unwrap();
    let conflict = Conflict::find(&description).unwrap().unwrap();
    assert_eq!(conflict.constraints, ["x > y", "y >= x"]);
}

/// What reads is a space that answers; nothing panics.
fn read_mutant(text: &str) {
    if let Ok(list) = text.parse::<List>() {
        let _ = list.values(1_000);
    }
    let Ok(description) = Description::from_t1(text) else { return };
    let cartesian: f64 = description.params().iter().map(|p| p.values.len() as f64).product();
    if cartesian > 1e3 {
        return;
    }
    let Ok(set) = LegalSet::new(&description) else { return };
    assert!(set.walk().enumerate().all(|(number, point)| set.index_of(&point) == Some(number as u64)));
    if set.is_empty() {
        let _ = Conflict::find(&description);
    }
}

/// `TILEWRIGHT_MUTANTS` sets how many there are of each text.
#[test]
fn mutants_of_descriptions_are_read_or_refused() {
    let words = ["range(", "list(", "**", "//", "%", "for", "in", "if", "else", "not", "and", "x", "y", "bx"];
    let whole = t1(
        &[("bx", r#""[1, 2] + list(range(32, 96+1, 32))""#), ("y", r#""[2**i for i in range(0, 4)]""#)],
        &["bx % y == 0 and not (bx == 1 or y > 4)", "32 <= bx * y <= 128"],
    );
    let read = |bytes: &[u8]| read_mutant(&String::from_utf8_lossy(bytes));
    mutants(&[&whole, r#"[2**i for i in range(0, 4)] + [3]"#], &words, 1_500, &read);
    let constraints = ["x % y == 0 and not (x == 1 or y > 4)", "max([x, y]) / 2 in (1, 2) if x else abs(-y) // 3 < 4"];
    mutants(&constraints, &words, 1_500, &|bytes| {
        let text = serde_json::json!(String::from_utf8_lossy(bytes)).to_string();
        read_mutant(
            &t1(&[("x", "[1, 2, 4]"), ("y", r#""[i for i in range(5)]""#)], &[])
                .replace(r#""Conditions": []"#, &format!(r#""Conditions": [{{"Expression": {text}}}]"#)),
        );
    });
}
