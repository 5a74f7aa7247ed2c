//! Datasets written for Kernel Tuner, and read again.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use tilewright_core::expr::Value;
use tilewright_core::measurement::{Failure, FailureKind, Measurement, Outcome};
use tilewright_core::space::Config;
use tilewright_datasets::{Dataset, DatasetError, Export, ExportOf, Format, Record};

const FORMATS: [Format; 2] = [Format::KernelTuner, Format::T4];

fn config(text: &str) -> Config {
    Config::parse(text).unwrap()
}

fn record(device: &str, input: &str, words: &str, outcome: Outcome) -> Record {
    let config = config(words);
    Record {
        device: device.into(),
        variant: None,
        input: Config::parse(input).unwrap(),
        config,
        outcome,
        clock_s: None,
    }
}

fn took(seconds: f64) -> Outcome {
    Ok(Measurement::recorded(seconds))
}

fn failed(kind: FailureKind) -> Outcome {
    Err(Failure { kind, message: String::new() })
}

/// Two devices, two inputs, failures of every kind.
fn mixed() -> Dataset {
    let mut records = vec![
        record("A", "m=64,n=8", "u=1,s=0.5", took(0.004)),
        record("A", "m=64,n=8", "u=2,s=0.5", took(0.003)),
        record("A", "m=64,n=8", "u=1,s=2", took(0.0011)),
        record("A", "m=64,n=8", "u=2,s=0.5", took(0.002)),
    ];
    let kinds = [
        FailureKind::Illegal,
        FailureKind::Compile,
        FailureKind::Launch,
        FailureKind::Timeout,
        FailureKind::CutOff,
        FailureKind::Wrong,
    ];
    records.extend((3..).zip(kinds).map(|(u, k)| record("A", "m=64,n=8", &format!("u={u},s=2"), failed(k))));
    records.push(record("A", "m=32,n=8", "u=1,s=2", took(0.001)));
    records.push(record("B", "m=64,n=8", "u=1,s=2", took(0.001)));
    Dataset::from_records(&records).unwrap()
}

fn chosen() -> ExportOf {
    ExportOf { device: Some("A".into()), input: config("m=64"), kernel: Some("k".into()), ..ExportOf::default() }
}

fn read(export: &Export, format: Format) -> Dataset {
    Dataset::from_recording(export.to_text(format).unwrap().as_bytes(), Path::new("written.json")).unwrap()
}

/// Of every configuration, the time and the clock, or the kind of failure; the fastest of several.
fn outcomes(dataset: &Dataset, kind: fn(FailureKind) -> FailureKind) -> BTreeMap<String, String> {
    let mut rows: Vec<usize> = (0..dataset.len()).collect();
    rows.sort_by(|&a, &b| dataset.time_s(b).unwrap_or(f64::MAX).total_cmp(&dataset.time_s(a).unwrap_or(f64::MAX)));
    let said = |row: usize| match dataset.outcome(row) {
        Ok(m) => format!("{:e} {:e}", m.time_s, dataset.clock_s(row)),
        Err(failure) => format!("{:?}", kind(failure.kind)),
    };
    let sorted = |row: usize| {
        let mut config = dataset.config(row);
        config.0.sort_by(|a, b| a.0.cmp(&b.0));
        config.to_string()
    };
    rows.into_iter().map(|row| (sorted(row), said(row))).collect()
}

/// The kinds that a format has.
fn kinds_of(format: Format) -> fn(FailureKind) -> FailureKind {
    match format {
        Format::KernelTuner => |kind| match kind {
            FailureKind::Illegal | FailureKind::Compile => kind,
            _ => FailureKind::Launch,
        },
        Format::T4 => |kind| if kind == FailureKind::CutOff { FailureKind::Timeout } else { kind },
    }
}

#[test]
fn one_device_and_input_is_written_and_reads_back() {
    let dataset = mixed();
    let export = dataset.export(&chosen()).unwrap();
    assert_eq!((export.rows(), export.configs(), export.failures()), (10, 9, 6));
    let rows: Vec<usize> =
        (0..dataset.len()).filter(|&r| dataset.device(r) == "A" && dataset.input(r) == config("m=64,n=8")).collect();
    let records = rows.iter().map(|&r| Record {
        device: "A".into(),
        variant: None,
        input: Config::default(),
        config: dataset.config(r),
        outcome: dataset.outcome(r),
        clock_s: None,
    });
    let part = Dataset::from_records(&records.collect::<Vec<_>>()).unwrap();
    for format in FORMATS {
        let again = read(&export, format);
        assert_eq!((again.describe().rows, again.describe().failures, again.device(0).as_str()), (9, 6, "A"));
        assert_eq!(outcomes(&again, |kind| kind), outcomes(&part, kinds_of(format)), "{format:?}");
        let fastest = again.fastest().unwrap();
        assert_eq!((fastest.time_s, fastest.config.get("u")), (0.0011, Some(&Value::Int(1))));
    }
}

#[test]
fn a_cache_has_the_header_and_the_keys_of_kernel_tuner() {
    let text = mixed().export(&chosen()).unwrap().to_text(Format::KernelTuner).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&json["device_name"], &json["kernel_name"]), (&"A".into(), &"k".into()));
    assert_eq!(json["problem_size"], serde_json::json!([64, 8]));
    assert_eq!(json["tune_params_keys"], serde_json::json!(["u", "s"]));
    assert_eq!(json["tune_params"], serde_json::json!({"u": [1, 2, 3, 4, 5, 6, 7, 8], "s": [0.5, 2.0]}));
    assert!(text.find("\"u\": [1,").unwrap() < text.find("\"s\": [0.5,").unwrap(), "in the order of the keys");
    // A column with a fraction has floats only, and keys are Python's.
    let entry = &json["cache"]["1,2.0"];
    assert_eq!((&entry["time"], &entry["times"], &entry["s"]), (&1.1.into(), &serde_json::json!([1.1]), &2.0.into()));
    assert_eq!(json["cache"]["4,2.0"]["__error__"], "CompilationFailedConfig");
    assert!(json["cache"]["4,2.0"].get("time").is_none());
    assert!(text.ends_with("}\n}"), "how Kernel Tuner tells that a cache was closed");
    let sized = ExportOf { problem_size: vec![7], ..chosen() };
    let text = mixed().export(&sized).unwrap().to_text(Format::KernelTuner).unwrap();
    assert!(text.contains("\"problem_size\": [7],"));
}

#[test]
fn variants_become_a_parameter() {
    let row =
        |variant: &str, words: &str, s| Record { variant: Some(variant.into()), ..record("A", "", words, took(s)) };
    let dataset = Dataset::from_records(&[row("x", "u=1", 0.002), row("y", "w=row", 0.001)]).unwrap();
    for format in FORMATS {
        let again = read(&dataset.export(&ExportOf::default()).unwrap(), format);
        assert_eq!(again.fastest().unwrap().config.to_string().split(',').count(), 2, "what y lacks is missing again");
        assert_eq!(again.fastest().unwrap().config.get("variant"), Some(&Value::from("y")));
        assert_eq!(again.fastest().unwrap().config.get("w"), Some(&Value::from("row")));
    }
}

#[test]
fn what_is_to_choose_from_is_listed() {
    let error = |of: &ExportOf| mixed().export(of).unwrap_err();
    let none = ExportOf::default();
    let text = error(&none).to_string();
    assert!(matches!(error(&none), DatasetError::Several { what: "device", .. }) && text.ends_with("A; B"), "{text}");
    let text = error(&ExportOf { device: Some("A".into()), ..none.clone() }).to_string();
    assert_eq!(text, "2 inputs were recorded, and one is wanted: m=64,n=8; m=32,n=8");
    assert_eq!(mixed().export(&ExportOf { input: config("m=32"), ..none.clone() }).unwrap().configs(), 1);
    for of in [ExportOf { device: Some("C".into()), ..none.clone() }, ExportOf { input: config("q=1"), ..none }] {
        assert!(matches!(error(&of), DatasetError::NotRecorded { .. }));
    }
    assert!(matches!(
        Dataset::from_records(&[]).unwrap().export(&ExportOf::default()),
        Err(DatasetError::NotRecorded { .. })
    ));
}

#[test]
fn what_a_format_cannot_hold_is_refused() {
    let field = |records: &[Record], format| {
        let export = Dataset::from_records(records).unwrap().export(&ExportOf::default()).unwrap();
        match export.to_text(format).unwrap_err() {
            DatasetError::Record { field, .. } => field,
            other => panic!("{other}"),
        }
    };
    let one = |name: &str, value: &str, other: &str| Record {
        config: Config(vec![(name.into(), value.into()), ("b".into(), other.into())]),
        ..record("A", "", "", took(1.0))
    };
    assert_eq!(field(&[one("time", "x", "y")], Format::KernelTuner), "time");
    assert_eq!(field(&[one("a", "x", "y,z"), one("a", "x,y", "z")], Format::KernelTuner), "configuration");
    for format in FORMATS {
        assert_eq!(field(&[record("A", "", "a=1", took(1e17))], format), "time");
    }
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::Int),
        (-1e6f64..1e6).prop_map(Value::Float),
        "[a-z\"' é]{0,6}".prop_map(Value::Str),
        any::<bool>().prop_map(Value::Bool),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever milliseconds a cache has, they read back as the same seconds when they are written again; and of seconds that come
    /// from elsewhere at most the last digit changes.
    #[test]
    fn times_and_failures_read_back(
        rows in prop::collection::vec((value(), 0i64..4, prop::option::weighted(0.8, 1e-6f64..1e6), any::<bool>()), 1..20),
    ) {
        let records: Vec<Record> = rows.iter().map(|(x, y, time, of_ms)| Record {
            config: Config(vec![("x".into(), x.clone()), ("y".into(), Value::Int(*y))]),
            clock_s: Some(0.25),
            ..record("A", "", "", time.map_or_else(|| failed(FailureKind::Compile), |t| took(if *of_ms { t / 1e3 } else { t })))
        }).collect();
        let dataset = Dataset::from_records(&records).unwrap();
        let export = dataset.export(&ExportOf::default()).unwrap();
        for format in FORMATS {
            let text = match export.to_text(format) {
                // Two values that Python writes alike, such as the number 2 and the word "2.0".
                Err(DatasetError::Record { field, .. }) if field == "configuration" => continue,
                text => text.unwrap(),
            };
            let once = Dataset::from_recording(text.as_bytes(), Path::new("a.json")).unwrap();
            prop_assert_eq!(once.len(), export.configs());
            prop_assert_eq!(once.describe().failures, export.failures());
            let (a, b) = (once.fastest().map_or(0.0, |f| f.time_s), dataset.fastest().map_or(0.0, |f| f.time_s));
            prop_assert!((a - b).abs() <= b * f64::EPSILON, "{a:e} {b:e}");
            let again = read(&once.export(&ExportOf::default()).unwrap(), format);
            prop_assert_eq!(outcomes(&again, |k| k), outcomes(&once, |k| k));
        }
    }
}
