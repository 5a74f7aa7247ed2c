//! Reading and writing: what stands in a dataset, and what is refused and where.

use std::path::{Path, PathBuf};
use tilewright_core::expr::Value;
use tilewright_core::feature::FeatureKind;
use tilewright_core::measurement::{Failure, FailureKind, Measurement};
use tilewright_core::space::Config;
use tilewright_datasets::{Dataset, DatasetError, Record, Summary};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/blur.csv")
}

fn blur() -> Dataset {
    Dataset::open(fixture()).unwrap()
}

const SIDECAR: &str = r#"{"format":"tilewright-dataset","version":1,"columns":{"device":"d","input":["n"],
"config":["c"],"variant":null,"time":{"column":"t","unit":"ms"},"status":{"column":"ok","ok":1}}}"#;

fn parse(table: &str, sidecar: &str) -> Result<Dataset, DatasetError> {
    Dataset::parse(table.as_bytes(), sidecar.as_bytes(), Path::new("x.csv"))
}

fn message(table: &str, sidecar: &str) -> String {
    parse(table, sidecar).map_or_else(|e| e.to_string(), |d| panic!("accepted: {:?}", d.describe()))
}

#[test]
fn a_dataset_is_described() {
    let summary = Summary { rows: 11, devices: 2, inputs: 2, configs: 4, failures: 2 };
    assert_eq!(blur().describe(), summary);
    let json = serde_json::to_string(&summary).unwrap();
    assert_eq!(json, r#"{"rows":11,"devices":2,"inputs":2,"configs":4,"failures":2}"#);
}

#[test]
fn columns_times_and_failures_are_described() {
    let d = blur();
    let columns = d.column_summaries();
    let named = |name: &str| columns.iter().find(|c| c.name == name).unwrap();
    assert_eq!(columns.len(), d.columns().len());
    let tile = named("tile");
    assert_eq!((tile.role, tile.distinct, tile.least, tile.greatest), ("config", 2, Some(8.0), Some(16.0)));
    assert!(tile.missing > 0 && tile.values == [Value::Int(8), Value::Int(16)], "{tile:?}");
    assert_eq!(named("border").least, None);
    let (fastest, slowest) = (d.fastest().unwrap(), d.slowest_s().unwrap());
    let times: Vec<f64> = (0..d.len()).filter_map(|row| d.time_s(row)).collect();
    assert!(times.iter().all(|t| (fastest.time_s..=slowest).contains(t)), "{fastest:?} {slowest}");
    assert_eq!(d.failures().values().sum::<usize>(), d.describe().failures);
}

#[test]
fn too_many_columns_are_refused() {
    let header: String = (0..20_000).map(|i| format!("c{i},")).collect();
    assert!(message(&format!("{header}t\n"), SIDECAR).contains("at most 10000"));
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_read() {
    let refused = tilewright_files::read_file(Path::new("/dev/zero"), 10).unwrap_err();
    assert!(refused.to_string().contains("no regular file"), "{refused}");
    let long = tilewright_files::read_file(&fixture(), 10).unwrap_err();
    assert!(long.to_string().contains("longer than 10 bytes"), "{long}");
}

#[test]
fn cells_are_typed_and_missing_ones_stay_missing() {
    let d = blur();
    assert_eq!(d.time_s(0), Some(0.0005));
    assert_eq!(d.time_s(2), None);
    assert_eq!(d.time_s(9), None, "a time in a failed row is not one");
    assert_eq!(d.input(4), Config::parse("image=512,border=clamp").unwrap());
    assert_eq!(d.config(8), Config::parse("tile=8,threads=64").unwrap(), "8.0 is the integer 8");
    assert_eq!(d.config(3), Config::default());
    assert_eq!((d.device(8), d.variant(3)), ("Beta".into(), Some("library".into())));
    let tile = d.column("tile").unwrap();
    assert_eq!(tile.levels(), [Value::Int(8), Value::Int(16)]);
    assert_eq!((tile.get(3), tile.code(1)), (None, Some(1)));
    assert!(d.column("no such").is_none());
}

#[test]
fn failures_keep_their_kind() {
    let d = blur();
    let kind = |row: usize| d.outcome(row).map_err(|f| f.kind);
    assert_eq!(kind(2), Err(FailureKind::Compile));
    assert_eq!(kind(9), Err(FailureKind::Timeout));
    assert_eq!(kind(1), Ok(Measurement::recorded(0.00025)));
    let numbered = parse("d,n,c,t,ok\nA,1,1,,0\n", SIDECAR).unwrap();
    assert_eq!(numbered.outcome(0).unwrap_err().to_string(), "Launch: recorded as 0");
}

#[test]
fn without_a_status_a_missing_time_is_a_failure() {
    let sidecar = SIDECAR.replace(r#","status":{"column":"ok","ok":1}"#, "");
    let d = parse("d,n,c,t,ok\nA,1,1,2,0\nA,1,2,,0\n", &sidecar).unwrap();
    assert_eq!((d.time_s(0), d.time_s(1)), (Some(0.002), None));
}

#[test]
fn units_become_seconds() {
    for (unit, seconds) in [("s", 250.0), ("ms", 0.25), ("us", 0.00025), ("ns", 2.5e-7)] {
        let sidecar = SIDECAR.replace(r#""unit":"ms""#, &format!(r#""unit":"{unit}""#));
        assert_eq!(parse("d,n,c,t,ok\nA,1,1,250,1\n", &sidecar).unwrap().time_s(0), Some(seconds));
    }
}

#[test]
fn features_are_named_split_and_derived() {
    let d = blur();
    let set = d.training_set().unwrap();
    let names = |f: &[tilewright_core::feature::Feature]| f.iter().map(|f| f.name.clone()).collect::<Vec<_>>();
    let input = ["gpu=Alpha", "gpu=Beta", "image", "border=clamp", "border=wrap", "aligned"];
    assert_eq!(names(&set.schema.input), input);
    let config = ["variant=library", "variant=tiled", "tile", "threads", "tiles", "warps"];
    assert_eq!(names(&set.schema.config), config);
    let kinds: Vec<bool> = set.schema.iter().map(|f| f.kind == FeatureKind::Flag).collect();
    assert_eq!(kinds, [true, true, false, true, true, true, true, true, false, false, false, false]);
    assert_eq!(set.len(), 9);
    assert_eq!(set.row(1), [1.0, 0.0, 256.0, 0.0, 1.0, 0.0, 0.0, 1.0, 16.0, 64.0, 16.0, 2.0]);
    let library = set.row(2);
    assert_eq!(library[..8], [1.0, 0.0, 256.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
    assert!(library[8..].iter().all(|x| x.is_nan()), "missing stays missing: {library:?}");
    assert_eq!(set.costs[..3], [0.0005, 0.00025, 0.0004]);
    assert_eq!(set.groups, [0, 0, 0, 1, 1, 1, 1, 2, 2]);
    let some = d.training_set_of(&[10, 2, 0]).unwrap();
    assert_eq!((some.len(), some.row(1)), (2, set.row(0)));
    assert_eq!(some.schema, set.schema, "a part has the schema of the whole");
}

#[test]
fn faults_of_a_sidecar_name_the_field() {
    let table = "d,n,c,t,ok\nA,1,1,2,1\n";
    for (from, to, wanted) in [
        (
            "\"version\":1",
            "\"version\":2",
            "x.schema.json: format \"tilewright-dataset\" version 2; this program reads",
        ),
        ("tilewright-dataset", "another", "x.schema.json: format \"another\" version 1"),
        ("\"config\":[\"c\"],", "", "missing field `config`"),
        ("\"unit\":\"ms\"", "\"unit\":\"h\"", "x.schema.json, line 2, column "),
        ("\"unit\":\"ms\"", "\"unit\":\"h\"", "unknown variant `h`"),
        ("\"variant\":null", "\"varint\":null", "unknown field `varint`"),
        ("[\"c\"]", "[\"q\"]", "field \"columns.config[0]\": the table has no column \"q\""),
        ("\"device\":\"d\"", "\"device\":\"e\"", "field \"columns.device\": the table has no column \"e\""),
        ("[\"c\"]", "[\"c\",\"n\"]", "field \"columns.config[1]\": column \"n\" has another role already"),
        ("}}}", "}},\"derived\":{\"x\":\"1 +\"}}", "field \"derived.x\": at position 3: expected"),
        ("}}}", "}},\"derived\":{\"x\":7}}", "field \"derived.x\": not a text"),
        ("}}}", "}},\"derived\":{\"x\":\"c * q\"}}", "field \"derived.x\": \"q\" is neither a column nor a constant"),
        ("}}}", "}},\"derived\":{\"x\":\"t * 2\"}}", "field \"derived.x\": \"t\" is what is to be predicted"),
        ("}}}", "}},\"derived\":{\"c\":\"n\"}}", "field \"derived.c\": the name is that of"),
        ("}}}", "}},\"constants\":{\"a\":1,\"a\":2}}", "field \"constants.a\": the name is that of"),
        ("}}}", "}}", "EOF while parsing an object"),
    ] {
        let sidecar = SIDECAR.replacen(from, to, 1);
        assert_ne!(sidecar, SIDECAR, "{from} is not there");
        let message = message(table, &sidecar);
        assert!(message.contains(wanted), "{wanted:?} is not in {message:?}");
    }
}

#[test]
fn faults_of_a_table_name_line_and_column() {
    for (table, wanted) in [
        ("", "x.csv, line 1: no header"),
        ("d,n,c,t,ok,n\n", "x.csv, line 1: the column \"n\" stands twice"),
        ("d,n,c,t,ok\nA,1,1,2,1\nA,1,1\n", "x.csv, line 3: 3 cells, the header has 5"),
        ("d,n,c,t,ok\nA,1,1,2,1\nA,1,1,fast,1\n", "x.csv, line 3, column \"t\": \"fast\" is not a number"),
        ("d,n,c,t,ok\nA,1,1,-2,1\n", "x.csv, line 2, column \"t\": \"-2\" is not a positive time"),
        ("d,n,c,t,ok\nA,1,1,0,1\n", "is not a positive time"),
        ("d,n,c,t,ok\nA,1,1,inf,1\n", "\"inf\" is not a number"),
        (
            "d,n,c,t,ok\nA,\"1\n1\",1,2,1\nA,1,1,,1\n",
            "x.csv, line 4, column \"t\": \"\" is no time, and the row is marked",
        ),
        (
            "d,n,c,t,ok\nA,1,1,2,1\nA,1,2, NaN,1\n",
            "x.csv, line 3, column \"t\": \"NaN\" is no time, and the row is marked as good: a time is a number above 0, and a \
             configuration that failed has another value than 1 in column \"ok\"",
        ),
    ] {
        let message = message(table, SIDECAR);
        assert!(message.contains(wanted), "{wanted:?} is not in {message:?}");
    }
    let latin1 = b"d,n,c,t,ok\nA,\xe9,1,2,1\n";
    let error = Dataset::parse(latin1, SIDECAR.as_bytes(), Path::new("x.csv")).unwrap_err().to_string();
    assert!(error.contains("x.csv, line 2, column \"n\": \"\u{fffd}\" incomplete utf-8"), "{error}");
}

#[test]
fn a_derived_feature_without_a_value_names_the_row() {
    let sidecar = SIDECAR.replacen("}}}", "}},\"derived\":{\"x\":\"n // (c - 1)\"}}", 1);
    let d = parse("d,n,c,t,ok\nA,1,2,2,1\nA,1,1,2,1\n", &sidecar).unwrap();
    assert_eq!(d.training_set().unwrap_err().to_string(), "derived feature \"x\", row 1: division by zero");
    let words = SIDECAR.replacen("}}}", "}},\"derived\":{\"x\":\"d\"}}", 1);
    let d = parse("d,n,c,t,ok\nA,1,2,2,1\n", &words).unwrap();
    assert!(d.training_set().is_err());
}

#[test]
fn missing_files_are_named() {
    let error = Dataset::open("no/such.csv").unwrap_err();
    assert!(matches!(&error, DatasetError::Io { path, .. } if path == Path::new("no/such.csv")), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("alone.csv");
    std::fs::write(&table, "a\n").unwrap();
    let error = Dataset::open(&table).unwrap_err();
    assert!(matches!(&error, DatasetError::Io { path, .. } if path.ends_with("alone.schema.json")), "{error}");
}

#[test]
fn a_written_dataset_reads_back_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.csv");
    let d = blur();
    d.write(&path).unwrap();
    let back = Dataset::open(&path).unwrap();
    assert_eq!(back.schema(), d.schema());
    assert_eq!(back.columns(), d.columns());
    assert_eq!(format!("{:?}", back.training_set()), format!("{:?}", d.training_set()));
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert_eq!(files.len(), 2, "temporary files are left: {files:?}");
    d.write(folder.path().join("new/copy.csv")).unwrap();
    // A file is no folder.
    let nowhere = d.write(path.join("copy.csv")).unwrap_err();
    assert!(matches!(nowhere, DatasetError::Io { .. }), "{nowhere}");
}

#[test]
fn writers_at_the_same_time_leave_one_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared.csv");
    let d = blur();
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| (0..10).for_each(|_| d.write(&path).unwrap()));
        }
        for _ in 0..50 {
            if path.with_extension("schema.json").exists() {
                assert_eq!(Dataset::open(&path).unwrap().len(), d.len());
            }
        }
    });
}

fn record(n: i64, config: &str, outcome: Result<f64, FailureKind>) -> Record {
    Record {
        device: "cpu".into(),
        variant: None,
        input: Config(vec![("n".into(), Value::Int(n))]),
        config: Config::parse(config).unwrap(),
        outcome: outcome.map(Measurement::recorded).map_err(|kind| Failure { kind, message: "as made up".into() }),
        clock_s: None,
    }
}

#[test]
fn records_become_a_dataset() {
    let records = [
        record(10, "u=1,pack=both", Ok(0.25)),
        record(10, "u=2", Err(FailureKind::CutOff)),
        record(20, "u=2,pack=none", Ok(1e-7)),
    ];
    let d = Dataset::from_records(&records).unwrap();
    assert_eq!(d.describe(), Summary { rows: 3, devices: 1, inputs: 2, configs: 3, failures: 1 });
    assert_eq!(d.outcome(1).unwrap_err().kind, FailureKind::CutOff);
    assert_eq!(d.config(1), Config::parse("u=2").unwrap());
    let back = Dataset::parse(&d.to_csv().unwrap(), &d.to_sidecar().unwrap(), Path::new("x.csv")).unwrap();
    assert_eq!(back.columns(), d.columns());
    assert_eq!((back.time_s(0), back.time_s(1), back.time_s(2)), (Some(0.25), None, Some(1e-7)));
}

#[test]
fn records_that_are_no_table_are_refused() {
    let clash = Dataset::from_records(&[record(1, "u=1", Ok(1.0)), record(1, "n=1", Ok(1.0))]).unwrap_err();
    assert!(clash.to_string().starts_with("record 0, field \"n\": two columns"), "{clash}");
    let reserved = Dataset::from_records(&[record(1, "status=1", Ok(1.0))]).unwrap_err();
    assert!(reserved.to_string().contains("field \"status\""), "{reserved}");
    let negative = Dataset::from_records(&[record(1, "u=1", Ok(1.0)), record(1, "u=1", Ok(-1.0))]).unwrap_err();
    assert_eq!(negative.to_string(), "record 1, field \"time_s\": -1 is not a positive time");
    assert!(Dataset::from_records(&[]).unwrap().is_empty());
}

#[test]
fn what_is_known_of_devices_is_used() {
    let sidecar =
        SIDECAR.replacen("}}}", "}},\"device_features\":[\"sms\"],\"derived\":{\"waves\":\"n / c / sms\"}}", 1);
    let table = "d,n,c,t,ok\nA,12,2,1,1\nB,12,2,1,1\nC,12,2,1,1\n";
    let mut d = parse(table, &sidecar).unwrap();
    let waves = |d: &Dataset| {
        let set = d.training_set().unwrap();
        let at = set.schema.iter().position(|f| f.name == "waves").unwrap();
        (0..set.len()).map(|r| set.row(r)[at]).collect::<Vec<_>>()
    };
    assert!(waves(&d).iter().all(|w| w.is_nan()), "nothing is known yet");
    let sms = |name: &str| [("A", 2), ("B", 3)].iter().find(|d| d.0 == name).map(|d| d.1);
    d.know_devices(|name| Some(Config(vec![("sms".into(), Value::Int(sms(name)?))])));
    let found = waves(&d);
    assert_eq!(found[..2], [3.0, 2.0]);
    assert!(found[2].is_nan());
    let clash = SIDECAR.replacen("}}}", "}},\"device_features\":[\"n\"]}", 1);
    assert!(parse(table, &clash).unwrap_err().to_string().contains("device_features.n"));
}

/// A file from an editor on Windows.
#[test]
fn marks_of_byte_order_are_skipped() {
    let mark = "\u{feff}";
    let d = parse(&format!("{mark}d,n,c,t,ok\r\nA,1,2,2,1\r\n"), &format!("{mark}{SIDECAR}")).unwrap();
    assert_eq!((d.len(), d.time_s(0)), (1, Some(0.002)));
}

#[test]
fn a_number_that_is_not_finite_is_missing_and_its_column_stays_numeric() {
    let features = parse("d,n,c,t,ok\nA,inf,1,2,1\nA,7,1,2,1\nA,-1e999,1,2,1\n", SIDECAR).unwrap().features().unwrap();
    assert_eq!(features.schema().input.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["n"]);
    let of = |row| {
        let mut out = Vec::new();
        features.input(row, &mut out);
        out[0]
    };
    assert!(of(0).is_nan() && of(2).is_nan());
    assert_eq!(of(1), 7.0);
}

/// One slip of the pen in a column of numbers would make a flag of every number.
#[test]
fn more_words_than_a_model_needs_are_refused() {
    let row = |n: i32| format!("A,{},1,2,1\n", if n == 3 { "1O24".to_owned() } else { n.to_string() });
    let table = |rows: i32| "d,n,c,t,ok\n".to_owned() + &(0..rows).map(row).collect::<String>();
    assert_eq!(parse(&table(500), SIDECAR).unwrap().features().unwrap().schema().input.len(), 500);
    let error = parse(&table(501), SIDECAR).unwrap().features().unwrap_err().to_string();
    assert!(error.contains("x.csv: column \"n\" has 501 distinct words, such as \"1O24\"; at most 500"), "{error}");
}

#[test]
fn a_very_long_cell_is_not_repeated_whole() {
    let long = "x".repeat(1_000_000);
    let error = message(&format!("d,n,c,t,ok\nA,1,1,{long},1\n"), SIDECAR);
    assert!(error.len() < 300 && error.contains("xxx... (1000000 bytes)\" is not a number"), "{}", error.len());
}
