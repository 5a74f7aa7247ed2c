//! Recordings by Kernel Tuner: what is read, and what is refused.

use std::path::Path;
use std::sync::Arc;
use tilewright_core::measurement::FailureKind;
use tilewright_core::problem::Problem;
use tilewright_datasets::{Dataset, DatasetError, Place, RecordedKernel};
use tilewright_testkit::mutants;

fn cache(entries: &str) -> String {
    format!(
        r#"{{"device_name": "A", "kernel_name": "k", "tune_params_keys": ["x", "y"],
            "tune_params": {{"x": [1, 2], "y": [1, 2]}}, "cache": {{{entries}}}}}"#
    )
}

fn entry(x: &str, y: &str, time: &str) -> String {
    format!(r#"{{"x": {x}, "y": {y}, "time": {time}, "compile_time": 500.0, "benchmark_time": 20.0}}"#)
}

fn parse(text: &str) -> Result<Dataset, DatasetError> {
    Dataset::from_kernel_tuner(text.as_bytes(), Path::new("cache.json"))
}

fn four() -> String {
    let entries = [
        format!(r#""1,1": {}"#, entry("1", "1", "4.0")),
        format!(r#""1,2": {}"#, entry("1", "2", "\"RuntimeFailedConfig\"")),
        format!(r#""2,1": {}"#, entry("2", "1", "\"CompilationFailedConfig\"")),
        format!(r#""2,2": {}"#, entry("2", "2", "1e20")),
    ];
    cache(&entries.join(","))
}

#[test]
fn a_cache_is_read_with_its_failures_and_its_clock() {
    let dataset = parse(&four()).unwrap();
    let summary = dataset.describe();
    assert_eq!((summary.rows, summary.devices, summary.configs, summary.failures), (4, 1, 4, 3));
    assert_eq!(dataset.time_s(0), Some(0.004));
    assert!((dataset.clock_s(1) - 0.52).abs() < 1e-12);
    let kinds: Vec<_> = (1..4).map(|r| dataset.outcome(r).unwrap_err().kind).collect();
    assert_eq!(kinds, [FailureKind::Launch, FailureKind::Compile, FailureKind::Launch]);
}

#[test]
fn what_is_imported_reads_back_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.csv");
    let dataset = parse(&four()).unwrap();
    dataset.write(&path).unwrap();
    let again = Dataset::open(&path).unwrap();
    assert_eq!(again.describe(), dataset.describe());
    for row in 0..4 {
        assert_eq!(again.config(row), dataset.config(row));
        assert_eq!(again.clock_s(row), dataset.clock_s(row));
        assert_eq!(again.time_s(row), dataset.time_s(row));
    }
    let problem = RecordedKernel::read(&path).unwrap().problems().unwrap().remove(0);
    assert_eq!(problem.space().count_legal(), 4);
    let (outcome, clock) = problem.look_up(&[0, 0]).unwrap();
    assert_eq!((outcome.as_ref().unwrap().time_s, clock), (0.004, 0.52));
    assert!(problem.look_up(&[7, 7]).is_none());
}

const T4: &str = r#"{"metadata": {"timeunit": "miliseconds"}, "schema_version": "1.0.0", "results": [
        {"configuration": {"x": 1, "w": "row"}, "invalidity": "correct", "correctness": 1,
         "times": {"compilation": 100, "framework": 1, "runtimes": [4.0, 4.5]},
         "measurements": [{"name": "time", "value": 4.25, "unit": ""}], "objectives": ["time"]},
        {"configuration": {"x": 2, "w": "column"}, "invalidity": "timeout", "times": {"compilation": 100}, "measurements": []}
    ]}"#;

#[test]
fn t4_results_are_read() {
    let dataset = parse(T4).unwrap();
    assert_eq!(dataset.time_s(0), Some(0.00425));
    assert!((dataset.clock_s(0) - 0.1095).abs() < 1e-12);
    assert_eq!(dataset.outcome(1).unwrap_err().kind, FailureKind::Timeout);
}

/// KTT's values are texts, its device is `device`, and compilation is `compilation_time`; what Kernel Tuner 1.5 calls `benchmark`
/// contains the runs.
#[test]
fn t4_results_of_ktt_and_of_newer_releases_are_read() {
    let ktt = T4
        .replace(
            "\"metadata\": {\"timeunit\": \"miliseconds\"}",
            "\"metadata\": {\"timeunit\": \"microseconds\", \"device\": \"A\"}",
        )
        .replace("\"x\": 1", "\"x\": \"1\"")
        .replace("\"x\": 2", "\"x\": \"2\"")
        .replace("\"compilation\"", "\"compilation_time\"");
    let dataset = parse(&ktt).unwrap();
    assert_eq!((dataset.device(0).as_str(), dataset.time_s(0)), ("A", Some(4.25e-6)));
    assert_eq!(dataset.config(1).get("x").and_then(|x| x.as_int()), Some(2));
    assert!((dataset.clock_s(0) - 109.5e-6).abs() < 1e-15);
    let newer = parse(&T4.replacen("\"framework\": 1", "\"framework\": 1, \"benchmark\": 20", 1)).unwrap();
    assert!((newer.clock_s(0) - 0.121).abs() < 1e-12);
}

/// The field that an error names.
fn field(text: &str) -> String {
    match parse(text).unwrap_err() {
        DatasetError::Invalid { place: Place::Entry { field, .. }, .. } => field,
        other => format!("{other:?}"),
    }
}

#[test]
fn faults_are_named() {
    let one = |entry: &str| cache(&format!(r#""1,1": {entry}"#));
    assert_eq!(field(&one(r#"{"x": 1, "time": 1.0}"#)), "y");
    assert_eq!(field(&one(r#"{"x": 1, "y": 1}"#)), "time");
    assert_eq!(field(&one(&entry("1", "1", "\"5.9\""))), "time");
    assert_eq!(field(&one(&entry("1", "1", "-1.0"))), "time");
    assert_eq!(field(&one(&entry("\"1\"", "1", "1.0"))), "x");
    assert_eq!(field(&one(&entry("3", "1", "1.0"))), "x");
    let text = one(r#"{"x": 1, "y": 1, "time": 1.0, "compile_time": "long"}"#);
    assert_eq!(field(&text), "compile_time");
    let same = entry("1", "1", "1.0");
    assert_eq!(field(&cache(&format!(r#""1,1": {same}, "1,1": {same}"#))), "cache");
    let other = entry("1", "1", "2.0");
    assert_eq!(field(&cache(&format!(r#""a": {same}, "b": {other}"#))), "configuration");
    assert_eq!(parse(&cache(&format!(r#""a": {same}, "b": {same}"#))).unwrap().len(), 1);
    assert!(matches!(parse("[1]").unwrap_err(), DatasetError::Invalid { place: Place::File, .. }));
    assert!(matches!(parse(r#"{"a": 1}"#).unwrap_err(), DatasetError::Invalid { place: Place::File, .. }));
}

#[test]
fn a_file_cut_off_anywhere_is_an_error_with_its_place() {
    let text = four();
    for end in 0..text.len() - 1 {
        match parse(&text[..end]).unwrap_err() {
            DatasetError::Invalid { place: Place::Json { line, .. }, .. } => assert!(line >= 1 || end == 0),
            other => panic!("{end}: {other:?}"),
        }
    }
}

/// `TILEWRIGHT_MUTANTS` sets how many there are of each text.
#[test]
fn mutants_of_recordings_are_read_or_refused() {
    let words = ["\"1,1\"", "\"x\"", "\"InvalidConfig\"", "\"cache\"", "\"results\"", "1e20"];
    mutants(&[&four(), T4], &words, 3_000, &|bytes| {
        let Ok(dataset) = Dataset::from_kernel_tuner(bytes, Path::new("mutant.json")) else { return };
        let (csv, sidecar) = (dataset.to_csv().unwrap(), dataset.to_sidecar().unwrap());
        if let Ok(again) = Dataset::parse(&csv, &sidecar, Path::new("mutant.csv")) {
            assert_eq!(again.len(), dataset.len());
        }
        let Ok(kernel) = RecordedKernel::new(Arc::new(dataset)) else { return };
        for problem in kernel.problems().unwrap() {
            assert!(problem.recorded().all(|(point, _)| problem.look_up(point).is_some()));
        }
    });
}
