//! Computations whose inputs name data: the same commands as for GEMM.

use crate::home::Home;
use serde_json::Value;

const MATRIX: &str = "%%MatrixMarket matrix coordinate real general\n4 4 5\n1 1 4\n2 2 3\n3 3 2\n4 4 1\n1 4 -1\n";

fn file(home: &Home, name: &str, text: &str) -> String {
    let path = home.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn names(of: &Value) -> Vec<&str> {
    of["variants"].as_array().unwrap().iter().map(|v| v["name"].as_str().unwrap()).collect()
}

#[test]
fn a_product_with_a_file_runs_all_variants() {
    let home = Home::new();
    let matrix = format!("matrix={}", file(&home, "a.mtx", MATRIX));
    let answer = home.answer(&["run", "spmv", &matrix, "--device", "cpu", "--threads", "1"]);
    assert_eq!(names(&answer).len(), 6);
    assert!(
        answer["input"]["content"].as_str().is_some_and(|c| c.starts_with(&format!("{}-", MATRIX.len()))),
        "{answer}"
    );
    let times = answer["variants"].as_array().unwrap().iter().map(|v| v["time_s"].as_f64().unwrap());
    assert!(times.fold(f64::INFINITY, f64::min) > 0.0 && answer["time_s"].as_f64().unwrap() > 0.0);
    assert!(names(&answer).contains(&answer["variant"].as_str().unwrap()));
    assert!(answer["features_s"].as_f64().unwrap() > 0.0);
    let one = home.answer(&["run", "spmv.ell", &matrix, "--config", "band=512", "--threads", "1"]);
    assert_eq!((names(&one), &one["config"]["band"]), (vec!["spmv.ell.1"], &512.into()));
}

#[test]
fn all_six_run_on_generated_data() {
    let home = Home::new();
    for (kernel, input, variants) in [
        ("spmv", "matrix=banded rows=300 half=2", 6),
        ("sort", "keys=runs count=999 run=50", 3),
        ("histogram", "image=noise width=60 height=40", 8),
        ("bfs", "graph=grid width=30 height=20", 8),
        ("solve", "matrix=stencil points=5 side=9 shift=0.1", 6),
        ("transpose", "rows=40 cols=90", 4),
    ] {
        let args: Vec<&str> = ["run", kernel, "--threads", "1"].into_iter().chain(input.split(' ')).collect();
        let answer = home.answer(&args);
        assert_eq!((names(&answer).len(), answer["kernel"].as_str()), (variants, Some(kernel)));
        assert!(answer["max_rel_error"].as_f64().unwrap() < 1e-6, "{answer}");
    }
}

#[test]
fn variants_without_a_result_say_why_and_the_others_answer() {
    let home = Home::new();
    let hollow = MATRIX
        .replace("1 1 4\n", "2 3 1\n")
        .replace("4 4 1", "3 2 1")
        .replace("3 3 2", "4 1 -1")
        .replace("2 2 3", "1 1 2");
    let matrix = format!("matrix={}", file(&home, "hollow.mtx", &hollow));
    let answer = home.answer(&["run", "solve", &matrix, "--threads", "1"]);
    let rows = answer["variants"].as_array().unwrap();
    let jacobi = rows.iter().find(|v| v["name"] == "solve.cg-jacobi.1").unwrap();
    assert!(
        jacobi["time_s"].is_null() && jacobi["reason"].as_str().unwrap().contains("no diagonal at row 1"),
        "{answer}"
    );
    assert!(rows.iter().any(|v| v["time_s"].is_number()), "{answer}");
    let wide = home.answer(&["run", "spmv", "matrix=full-rows", "rows=300", "per_row=1", "full=1", "--threads", "1"]);
    let dia = &wide["variants"][2];
    assert!(dia["reason"].as_str().unwrap().contains("fill"), "{wide}");
}

#[test]
fn faults_name_the_field_and_the_place() {
    let home = Home::new();
    let broken = file(&home, "broken.mtx", &MATRIX.replace("3 3 2", "3 x 2"));
    let fault = |args: &[&str], field: &str| home.error(args, 2, field).message;
    let message = fault(&["run", "spmv", &format!("matrix={broken}"), "--threads", "1"], "matrix");
    assert!(message.contains("line 5, column 3"), "{message}");
    let message = fault(&["plan", "spmv", "matrix=none.mtx", "--threads", "1"], "matrix");
    assert!(message.contains("neither a file nor one of the generators"), "{message}");
    fault(&["run", "histogram", "image=flat", "width=10", "--threads", "1"], "height");
    fault(&["space", "bfs", "graph=grid", "width=10", "height=0", "--device", "cpu"], "height");
    let image = file(&home, "a.pgm", "P2\n2 2\n255\n1 2 3 x\n");
    let message = fault(&["run", "histogram", &format!("image={image}"), "--threads", "1"], "image");
    assert!(message.contains("line 4, column 7"), "{message}");
}

#[test]
fn a_variant_is_planned_and_tuned() {
    let home = Home::new();
    let input = ["matrix=banded", "rows=500", "half=2"];
    let plan = |kernel| home.answer(&[&["plan", kernel, "--threads", "1", "--budget", "100ms"], &input[..]].concat());
    let planned = plan("spmv.ell");
    assert_eq!(
        (planned["kernel"].as_str(), planned["verified"].as_bool()),
        (Some("spmv.ell.1"), Some(true)),
        "{planned}"
    );
    let tuned = home.answer(&["tune", "spmv.dia", "--threads", "1", "--samples", "24", "--budget", "20s"]);
    assert!(tuned["samples"].as_u64().unwrap() >= 24, "{tuned}");
    let space = home.answer(&[&["space", "spmv.dia", "--device", "cpu"], &input[..]].concat());
    assert_eq!((&space["cartesian"], &space["legal"]), (&4.0.into(), &4.into()));
}

#[test]
fn any_computation_has_a_table() {
    let home = Home::new();
    let args = ["bench", "spmv", "--threads", "1", "--budget", "1s"];
    home.error(&[&args[..], &["--out", "/proc/none/table.md"]].concat(), 2, "out");
    let table = home.answer(&args);
    let tasks = table["tasks"].as_array().unwrap();
    assert_eq!((tasks.len(), &table["baselines_found"]), (5, &serde_json::json!([])));
    for task in tasks {
        assert!(task["ours_s"].as_f64().unwrap() > 0.0 && task["ratio"].is_null(), "{task}");
        assert!(
            task["variant"].as_str().unwrap().starts_with("spmv.") && task["input"]["matrix"].is_string(),
            "{task}"
        );
    }
    home.error(&[&args[..], &["--tasks", "edges"]].concat(), 2, "tasks");
    home.error(&[&args[..], &["--baselines", "openblas"]].concat(), 2, "baselines");
}

#[test]
fn the_kernels_of_a_computation_compete_in_a_plan() {
    let home = Home::new();
    let input = ["matrix=banded", "rows=500", "half=2", "--threads", "1"];
    let call = |command: &[&str]| home.answer(&[command, &input[..]].concat());
    let planned = call(&["plan", "spmv", "--budget", "200ms"]);
    let names = |answer: &Value| -> Vec<String> {
        let rows = answer["variants"].as_array().unwrap().iter();
        rows.map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    let mut all = names(&planned);
    assert_eq!(all[0], planned["kernel"], "{planned}");
    assert_eq!(planned["variants"][0]["measured_s"], planned["measured_s"], "{planned}");
    all.sort();
    let known = ["coo", "csr-vector", "csr", "dia", "ell", "sellp"].map(|name| format!("spmv.{name}.1"));
    assert_eq!(all, known, "{planned}");
    let state = |answer: &Value| ["verified", "cached", "knowledge", "selector"].map(|field| answer[field].clone());
    assert_eq!(state(&planned), [true.into(), false.into(), "default".into(), Value::Null]);
    let again = call(&["plan", "spmv"]);
    assert_eq!(
        (&again["cached"], &again["kernel"], &again["config"]),
        (&true.into(), &planned["kernel"], &planned["config"])
    );
    assert_eq!(again["variants"], planned["variants"]);
    // Libraries are another question; each kernel's own answer is known by now.
    let beside = call(&["plan", "spmv", "--with-libraries"]);
    assert_eq!((&beside["cached"], &beside["verified"]), (&false.into(), &true.into()), "{beside}");
    assert_eq!(call(&["plan", "spmv", "--with-libraries"])["cached"], true);
    let explained = call(&["explain", "spmv"]);
    assert_eq!((&explained["cached"], &explained["alternatives"][0]["kernel"]), (&true.into(), &planned["kernel"]));
    let text = String::from_utf8(home.run(&[&["explain", "spmv"], &input[..]].concat()).stdout).unwrap();
    assert!(text.contains("the kernels:") && text.contains("spmv.coo.1"), "{text}");
    // Nothing is timed, and the answer is right.
    let untimed = call(&["plan", "spmv", "--top", "0", "--fresh"]);
    assert_eq!(
        (&untimed["timed"], &untimed["measured_s"], &untimed["verified"]),
        (&0.into(), &Value::Null, &true.into())
    );
    home.error(&["plan", "spmv.none", "matrix=banded"], 2, "kernel");
}
