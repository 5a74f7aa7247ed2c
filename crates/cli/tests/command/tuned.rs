//! Tuning all kernels of a computation, and what plans make of it.

use crate::home::Home;
use serde_json::Value;
use std::path::Path;

const TUNE: [&str; 7] = ["tune", "transpose", "--threads", "1", "--budget", "60s", "--no-table"];

fn rows(answer: &Value) -> &Vec<Value> {
    answer["kernels"].as_array().unwrap()
}

#[test]
fn all_kernels_of_a_computation_are_tuned_and_planned() {
    let home = Home::new();
    let tuned = home.answer(&[&TUNE[..], &["--samples", "240"]].concat());
    assert_eq!((tuned["kernel"].as_str(), rows(&tuned).len()), (Some("transpose"), 4), "{tuned:#}");
    let sum = |field: &str| rows(&tuned).iter().map(|k| k[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!((tuned["samples"].as_u64(), tuned["failed"].as_u64()), (Some(sum("samples")), Some(sum("failed"))));
    assert!(sum("samples") >= 240);
    // One configuration needs no model; several get one, or a reason.
    assert!(rows(&tuned).iter().all(|k| k["profile"].is_string() != k["reason"].is_string()), "{tuned:#}");
    let selector = &tuned["selector"];
    assert!(std::path::Path::new(selector["file"].as_str().unwrap()).exists(), "{selector}");
    assert!(selector["inputs"].as_u64().unwrap() > 5 && selector["method"].is_string(), "{selector}");

    let input = ["rows=200", "cols=300", "--threads", "1", "--budget", "100ms"];
    let planned = home.answer(&[&["plan", "transpose"][..], &input].concat());
    assert_eq!(planned["verified"], true, "{planned:#}");
    for k in rows(&tuned).iter().filter(|k| k["profile"].is_string()) {
        let planned = home.answer(&[&["plan", k["kernel"].as_str().unwrap()][..], &input].concat());
        assert_eq!((&planned["kernel"], planned["model"].as_str()), (&k["kernel"], Some("mlp")), "{planned:#}");
    }

    // Another run goes on: there is enough, and nothing is measured.
    let again = home.answer(&[&TUNE[..], &["--samples", "240"]].concat());
    assert_eq!((&again["samples"], &again["resumed"]), (&tuned["samples"], &(sum("samples") + sum("failed")).into()));
}

/// Inputs that allow three real products for a complex one are tuned with the kernel that makes them, and no others are planned by it.
#[test]
fn an_accuracy_that_all_inputs_share_is_tuned_for() {
    let home = Home::new();
    let shared = ["gemm", "--threads", "1", "--dtype", "c32"];
    // A field that says what is usual is not in an input's own fields: what was tuned is found nevertheless.
    let fields = ["--field", "accuracy=3m", "--field", "batch=1", "--samples", "120", "--no-table"];
    let tune = [&["tune"][..], &shared, &fields].concat();
    let tuned = home.answer(&tune);
    let samples_of = |name: &str| {
        let row = rows(&tuned).iter().find(|k| k["kernel"].as_str().unwrap().contains(name)).unwrap();
        row["samples"].as_u64().unwrap()
    };
    assert!(samples_of("gemm.cpu-3m") > 0 && samples_of("gemm.cpu-complex") > 0, "{tuned:#}");
    let plan = |accuracy: &str| {
        let input = ["m=150", "n=140", "k=160", "dtype=c32", accuracy, "--threads", "1", "--budget", "100ms"];
        home.answer(&[&["plan", "gemm"][..], &input].concat())
    };
    let planned = plan("accuracy=3m");
    assert_eq!((&planned["verified"], &planned["model"]), (&true.into(), &"mlp".into()), "{planned:#}");
    assert!(!plan("accuracy=full")["kernel"].as_str().unwrap().contains("3m"));
}

#[test]
fn files_that_are_asked_for_carry_the_names_of_several_kernels() {
    let home = Home::new();
    let out = home.path().join("own.profile");
    let tune = ["--samples", "60", "--out", out.to_str().unwrap()];
    let tuned = home.answer(&[&TUNE[..], &tune].concat());
    for (at, k) in rows(&tuned).iter().enumerate() {
        let (log, kernel) = (k["log"].as_str().unwrap(), k["kernel"].as_str().unwrap());
        assert!(Path::new(log).exists() && log.contains("/logs/") && log.contains(kernel), "{log}");
        // The first one's is where it was asked for.
        let own = if at == 0 { out.clone() } else { home.path().join(format!("own-{kernel}.profile")) };
        assert_eq!(k["profile"].as_str(), own.to_str().filter(|_| own.exists()));
    }
}

/// So few samples may not tell when it can be left; plans that time nothing say what they owe to it.
fn expect_kept(home: &Home, incumbent: &Value) {
    assert!(incumbent["kernel"] == "gemm.matrixmultiply.1" && incumbent.get("margin").is_some(), "{incumbent}");
    let plan =
        ["plan", "gemm", "m=50", "n=60", "k=70", "dtype=f32", "--threads", "1", "--with-libraries", "--top", "0"];
    let planned = home.answer(&plan);
    let is_known = incumbent["margin"].as_f64().is_some();
    let says = if is_known { "is left where another is expected to be" } else { "is never left: it ran on too few" };
    assert!(planned["reason"].as_str().unwrap().contains(&format!("gemm.matrixmultiply.1 {says}")), "{planned:#}");
    assert!(is_known || planned["kernel"] == "gemm.matrixmultiply.1", "{planned:#}");
}

#[test]
fn routines_of_libraries_are_tuned_where_they_are_asked_for() {
    let home = Home::new();
    let tune =
        ["tune", "gemm", "--threads", "1", "--dtype", "f32", "--no-table", "--budget", "60s", "--samples", "200"];
    let names = |answer: &Value| {
        let all = rows(answer).iter().map(|k| k["kernel"].as_str().unwrap().to_owned());
        all.collect::<Vec<_>>()
    };
    let generated = names(&home.answer(&tune));
    // A routine of a library takes part only where that is asked for.
    let alone = [&tune[..], &["--incumbent", "gemm.matrixmultiply"]].concat();
    let refused = home.error(&alone, 2, "incumbent");
    assert!(refused.message.contains("take part with --with-libraries"), "{}", refused.message);
    let tuned = home.answer(&[&alone[..], &["--with-libraries", "--fresh"]].concat());
    expect_kept(&home, &tuned["selector"]["incumbent"]);
    let all = names(&tuned);
    assert!(all.len() > generated.len() && all.starts_with(&generated), "{all:?}");
    // Those for small products may have met none, oneDNN is for narrow operands, and three products make complex ones.
    let takes_all = |k: &&Value| {
        ["nano-gemm", "libxsmm", "onednn", "-3m"].iter().all(|name| !k["kernel"].as_str().unwrap().contains(name))
    };
    let mut all = rows(&tuned)[generated.len()..].iter().filter(takes_all);
    assert!(all.all(|k| k["samples"].as_u64() > Some(0)), "{tuned:#}");
}
