//! What the command line says of itself and of what is wrong: whole, once, with what is allowed, as text and as JSON.

use crate::home::{Home, document};
use serde_json::Value;

/// What a command says on standard error.
fn said(home: &Home, words: &[&str]) -> String {
    String::from_utf8(home.run(words).stderr).unwrap()
}

#[test]
fn help_and_version_are_documents_where_json_is_asked_for() {
    let home = Home::new();
    assert_eq!(home.answer(&["--version"])["version"], env!("CARGO_PKG_VERSION"));
    for words in [&["--help"][..], &["-h"], &["help", "tune"], &["plan", "--help"], &["model", "fit", "--help"]] {
        let help = home.answer(words);
        assert!(help["help"].as_str().unwrap().contains("Usage: tilewright"), "{help}");
    }
    let text = home.run(&["--version"]);
    assert_eq!(String::from_utf8(text.stdout).unwrap(), concat!("tilewright ", env!("CARGO_PKG_VERSION"), "\n"));
}

/// Nothing that clap says is lost: possible values, what is missing, tips, the usage.
#[test]
fn usage_errors_are_whole() {
    let home = Home::new();
    let error = |words: &[&str]| {
        let (code, value) = home.json(words);
        assert_eq!((code, &value["error"]["kind"]), (2, &Value::from("usage")), "{value}");
        let text = |name: &str| value["error"][name].as_str().unwrap_or_default().to_owned();
        (text("field"), text("message"), text("hint"))
    };
    let (field, message, _) = error(&["plan", "gemm", "--model", "x"]);
    assert!(field == "--model <MODEL>" && message.contains("[possible values: mlp, linear]"), "{message}");
    let (_, message, hint) = error(&["tune"]);
    assert!(message.contains("<KERNEL>") && hint.contains("Usage: tilewright tune"), "{message} {hint}");
    let (field, _, hint) = error(&["tune", "gemm", "--buget", "1s"]);
    assert!(field == "--buget" && hint.contains("tip: a similar argument exists: '--budget'"), "{hint}");
    let (_, message, hint) = error(&[]);
    assert!(message.contains("command is missing") && hint.contains("doctor"), "{message} {hint}");
    assert!(!hint.contains("worker"), "what is hidden is not offered: {hint}");
    // Standard error has the same, once.
    let text = said(&home, &["tune", "--json"]);
    assert_eq!((text.matches("<KERNEL>\n").count(), text.matches("Usage:").count()), (2, 1), "{text}");
}

/// The field of an error stands there once, whoever names it.
#[test]
fn fields_are_named_once() {
    let home = Home::new();
    for (words, field) in [
        (&["tune", "gemm", "--budget", "soon", "--json"][..], "--budget <TIME>"),
        (&["plan", "gemm", "m=4", "n=4", "k=4", "--epsilon", "nan"], "epsilon"),
        (&["plan", "gemm", "m=4", "n=4", "k=4", "--alpha=-1"], "alpha"),
        (&["plan", "gemm", "m=4", "n=4", "k"], "\"k\""),
        (&["plan", "fft"], "kernel"),
        (&["doctor", "--device", "abacus"], "unknown device"),
        (&["doctor", "--device", "cuda:99"], "device"),
        (&["data", "describe", "none.csv"], "none.csv"),
        (&["plan", "gemm", "m=", "n=4", "k=4"], "m: "),
    ] {
        let text = said(&home, words);
        assert_eq!(text.lines().next().unwrap().matches(field).count(), 1, "{text}");
    }
}

#[test]
fn numbers_below_zero_are_told_the_range() {
    let home = Home::new();
    let product = ["m=4", "n=4", "k=4"];
    for (words, allowed) in [
        (&["tune", "gemm", "--seed", "-1"][..], "0..=18446744073709551615"),
        (&["tune", "gemm", "--budget", "-1"], "a time of 0 or more"),
        (&["tune", "gemm", "--budget", "-1s"], "a time of 0 or more"),
        (&["tune", "gemm", "--samples", "-1"], "0..="),
        (&["plan", "gemm", "--top", "-1"], "0..=10000"),
        (&["plan", "gemm", "--threads", "-1"], "1..=1024"),
        (&["plan", "gemm", "--candidates", "-1"], "1..=10000000"),
        (&["verify", "gemm", "--cases", "-1"], "1..="),
        (&["space", "gemm", "--sample", "-1"], "0..="),
        (&["search", "gemm", "--budget", "-1"], "0..="),
        (&["search", "gemm", "--repeats", "-1"], "1..=1000000"),
        (&["search", "gemm", "--batch", "-1"], "1..=65536"),
        (&["model", "fit", "none.csv", "--layers", "-1"], "0..="),
        (&["model", "ablation", "none.csv", "--rows", "-1"], "0..="),
        (&["select", "evaluate", "none.csv", "--repeats", "-1"], "1..=10000"),
        (&["plan", "gemm", product[0], product[1], product[2], "--epsilon", "-1"], "more than 0 and less than 1"),
        (&["plan", "gemm", product[0], product[1], product[2], "--epsilon", "much"], "a number"),
        (&["campaign", "--device", "cpu", "--minutes", "-1", "--out", "none"], "above 0"),
    ] {
        let text = said(&home, words);
        assert!(text.contains(allowed) && !text.contains("'-- "), "{words:?}: {text}");
    }
}

#[test]
fn a_field_without_a_value_is_told_what_it_may_be() {
    let home = Home::new();
    for (words, field, allowed) in [
        (&["plan", "gemm", "m=", "n=4", "k=4"][..], "m", "an integer within 0..=2147483647"),
        (
            &["plan", "gemm", "m=4", "n=4", "k=4", "dtype="],
            "dtype",
            "one of f16, bf16, tf32, f32, f64, c32, c64 and i8",
        ),
        (&["plan", "gemm", "m=4", "n=4", "k=4", "layout="], "layout", "one of nn, nt, tn and tt"),
        (&["plan", "gemm", "m=4", "n=4", "k=4", "alpha="], "alpha", "a number or the word other"),
        (&["plan", "spmv", "matrix=banded", "rows=", "half=1"], "rows", "an integer within 1..="),
        (&["plan", "spmv", "matrix="], "matrix", "a file or one of the generators"),
    ] {
        let message = home.error(words, 2, field).message;
        assert!(message.starts_with("no value is given: ") && message.contains(allowed), "{message}");
    }
    let message = home.error(&["plan", "gemm", "n=4", "k=4"], 2, "m").message;
    assert!(message.contains("missing") && message.contains("0..=2147483647"), "{message}");
}

#[test]
fn a_generator_names_the_numbers_that_are_too_large() {
    let home = Home::new();
    for (words, field, way) in [
        (&["matrix=uniform", "rows=1000", "per_row=1000000"][..], "rows per_row", "per_row to at most 200000"),
        (&["matrix=stencil", "points=27", "side=5000"], "side", "side to at most 194"),
    ] {
        let message = home.error(&[&["plan", "spmv"], words].concat(), 2, field).message;
        assert!(message.contains("at most 200000000 are made") && message.contains(way), "{message}");
    }
}

#[test]
fn a_device_that_is_none_is_told_which_there_are() {
    let home = Home::new();
    let message = home.error(&["doctor", "--device", "cpu:0"], 2, "device").message;
    for part in ["cpu:0", "cuda:N", "emulator:sm_XX", "replay:FILE", "did you mean cpu,"] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn a_plan_says_how_many_configurations_were_timed_and_how_often() {
    let home = Home::new();
    let plan = ["plan", "gemm", "m=33", "n=21", "k=17", "--threads", "1", "--budget", "300ms"];
    let answer = home.answer(&plan);
    let number = |name: &str| answer[name].as_u64().unwrap();
    assert!(0 < number("timed_configs") && number("timed_configs") <= number("considered"), "{answer}");
    // The best are timed against each other, so that each is timed again.
    assert!(number("timed") + number("failed") > number("timed_configs"), "{answer}");
    let text = String::from_utf8(home.run(&[&plan[..], &["--fresh"]].concat()).stdout).unwrap();
    assert!(text.contains(" of them timed: ") && text.contains(" timings"), "{text}");
    let text = String::from_utf8(home.run(&plan).stdout).unwrap();
    assert!(text.contains("nothing was timed for this answer"), "{text}");
}

/// What keeps one plan from being stored keeps all from it, and is said once.
#[cfg(target_os = "linux")]
#[test]
fn a_plan_that_is_not_remembered_is_told_of_once() {
    let home = Home::new();
    // A file where the folder of plans would be.
    std::fs::write(home.path().join("plans"), "").unwrap();
    let words = ["matrix=banded", "rows=200", "half=2", "--threads", "1", "--budget", "200ms", "--fresh", "--json"];
    let out = home.run(&[&["plan", "spmv"], &words[..]].concat());
    let (code, value) = document(&words, &out);
    assert!(code == 0 && value["unstored"].is_string(), "{value}");
    let text = String::from_utf8(out.stderr).unwrap();
    assert_eq!(text.matches("not remembered").count(), 1, "{text}");
}
