//! cuBLAS and cuBLASLt that compute and check their arguments, on the fake driver: whoever is compared with them, and what is told of them.

use crate::home::{Home, document};
use serde_json::Value;

fn ran(home: &Home, args: &[&str], variables: &[(&str, &str)]) -> (i32, Value) {
    document(args, &home.cublas(args, variables))
}

#[test]
fn kernels_are_timed_beside_them() {
    let home = Home::new();
    let input = ["run", "gemm", "m=65", "n=33", "k=48", "dtype=f32", "layout=tn", "--device", "cuda:0"];
    // What a user may have set for other programs makes another type of the comparison, and is taken away.
    let variables = [("NVIDIA_TF32_OVERRIDE", "1")];
    let (code, answer) = ran(&home, &[&input[..], &["--baselines", "all"]].concat(), &variables);
    assert_eq!(code, 0, "{answer}");
    let baselines = answer["baselines"].as_array().unwrap();
    let names: Vec<&str> = baselines.iter().map(|b| b["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["cublas", "cublaslt", "cublaslt-best"]);
    assert!(baselines.iter().all(|b| b["time_s"].as_f64().unwrap() > 0.0), "{answer}");
    assert_eq!(answer["libraries"][0]["version"], "12.9.1");
    let (code, told) = ran(&home, &["doctor", "--device", "cuda:0"], &variables);
    let environment = &told["environment"];
    assert_eq!((code, &environment["assembler"]), (0, &"the driver".into()), "{told}");
    assert!(environment["driver"].as_str().unwrap().starts_with("CUDA 12.9"), "{environment}");
    assert_eq!(
        (&environment["libraries"][0]["name"], &environment["libraries"][0]["version"]),
        (&"cublas".into(), &"12.9.1".into())
    );
    assert!(environment["libraries"][0]["path"].as_str().unwrap().ends_with("libcublas.so.12"), "{environment}");
    let notes = environment["notes"].as_array().unwrap();
    assert!(notes.iter().any(|n| n.as_str().unwrap().contains("NVIDIA_TF32_OVERRIDE=1")), "{environment}");
}

/// What is found, and what is needed.
#[test]
fn another_release_is_refused_by_name() {
    let home = Home::new();
    for (variables, parts) in [
        (vec![("FAKE_CUBLAS_VERSION", "10.2.3")], ["cuBLAS 10.2.3", "releases 11 to 13 are needed"]),
        (vec![("FAKE_CUBLAS_VERSION", "13.0.2")], ["cuBLAS 13.0.2 and needs a driver of CUDA 13", "is of CUDA 12.9"]),
    ] {
        let (code, told) = ran(&home, &["doctor", "--device", "cuda:0"], &variables);
        assert_eq!(code, 0, "{told}");
        let missing = told["environment"]["missing"].as_array().unwrap();
        let reason = missing.iter().find(|m| m["name"] == "cublas").unwrap()["reason"].as_str().unwrap();
        assert!(parts.iter().all(|part| reason.contains(part)), "{reason}");
        // Who asks for it is told the same.
        let asked = ["run", "gemm.cublas", "m=8", "n=8", "k=8", "--device", "cuda:0"];
        let (code, refused) = ran(&home, &asked, &variables);
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(code == 4 && parts.iter().all(|part| message.contains(part)), "{code}: {message}");
    }
}
