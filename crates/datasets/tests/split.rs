//! Splits as the command line writes them.

use std::path::Path;
use tilewright_datasets::{Dataset, Split, SplitSpec};

fn blur() -> Dataset {
    Dataset::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/blur.csv")).unwrap()
}

fn split(spec: &str, seed: u64) -> Result<Split, String> {
    let spec: SplitSpec = spec.parse().map_err(|e: tilewright_datasets::SplitParseError| e.to_string())?;
    blur().split(&spec, seed).map_err(|e| e.to_string())
}

#[test]
fn specifications_are_read_and_written() {
    for (text, spec) in [
        ("row:0.25", SplitSpec::Rows(0.25)),
        ("input_id:0.2", SplitSpec::Column("input_id".into(), 0.2)),
        ("device=P100", SplitSpec::Value("device".into(), "P100".into())),
        ("state=a:0.5", SplitSpec::Value("state".into(), "a:0.5".into())),
        ("held/out.txt", SplitSpec::File("held/out.txt".into())),
    ] {
        assert_eq!(text.parse::<SplitSpec>().as_ref(), Ok(&spec));
        assert_eq!(spec.to_string(), text);
    }
    for text in ["", " ", ":0.5", "=x", "row:0", "row:1", "row:1.5", "row:-0.1", "m:nan", "m:inf"] {
        assert!(text.parse::<SplitSpec>().is_err(), "{text:?} is accepted");
    }
}

#[test]
fn rows_follow_fraction_and_seed() {
    let a = split("row:0.3", 1).unwrap();
    assert_eq!((a.train.len(), a.held_out.len()), (8, 3));
    assert_eq!(a, split("row:0.3", 1).unwrap());
    assert!((2..20).any(|seed| split("row:0.3", seed).unwrap() != a), "every seed splits alike");
}

#[test]
fn values_pick_their_rows() {
    assert_eq!(split("gpu=Beta", 0).unwrap().held_out, [8, 9, 10]);
    assert_eq!(split("device=Beta", 0).unwrap().held_out, [8, 9, 10], "by role");
    assert_eq!(split("tile=8.0", 0).unwrap().held_out, [0, 4, 8], "numbers are compared as numbers");
    assert_eq!(split("tile=", 0).unwrap().held_out, [3, 7, 10], "missing cells are a value");
    let error = split("gpu=Gamma", 0).unwrap_err();
    assert!(error.contains("there are Alpha Beta"), "{error}");
    let error = split("colour=red", 0).unwrap_err();
    assert!(error.contains("no column \"colour\"; there are gpu image"), "{error}");
    assert!(split("input=256", 0).unwrap_err().contains("stands for 2 columns"));
}

/// Two inputs that differ in another column only must not be on two sides.
#[test]
fn several_columns_are_one_value_together() {
    let (both, data) = (split("image+tile:0.4", 2).unwrap(), blur());
    let of = |rows: &[usize]| -> std::collections::BTreeSet<String> {
        let table = String::from_utf8(data.to_csv().unwrap()).unwrap();
        let lines: Vec<&str> = table.lines().skip(1).collect();
        rows.iter()
            .map(|&row| {
                let cells: Vec<&str> = lines[row].split(',').collect();
                format!("{} {}", cells[1], cells[4])
            })
            .collect()
    };
    let (train, held_out) = (of(&both.train), of(&both.held_out));
    assert!(train.is_disjoint(&held_out) && held_out.len() > 1 && train.len() > 1, "{train:?} {held_out:?}");
    assert!(split("image+colour:0.5", 0).unwrap_err().contains("no column \"colour\""));
}

#[test]
fn a_single_value_cannot_be_divided() {
    let error = split("note:0.5", 0);
    assert!(error.is_ok(), "missing, fast and cut are three values");
    let one = Dataset::parse(
        b"n,t\n1,2\n1,3\n",
        br#"{"format":"tilewright-dataset","version":1,"columns":{"input":["n"],"config":[],"time":{"column":"t","unit":"s"}}}"#,
        Path::new("one.csv"),
    )
    .unwrap();
    let error = one.split(&"n:0.5".parse().unwrap(), 0).unwrap_err().to_string();
    assert_eq!(error, "split \"n:0.5\": 1 distinct value, at least 2 are needed");
    assert!(one.split(&"device:0.5".parse().unwrap(), 0).is_err(), "no such role");
}

#[test]
fn files_list_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows");
    std::fs::write(&path, "10, 0\n3\n").unwrap();
    assert_eq!(split(path.to_str().unwrap(), 0).unwrap().held_out, [0, 3, 10]);
    std::fs::write(&path, "11").unwrap();
    assert!(split(path.to_str().unwrap(), 0).unwrap_err().contains("\"11\" is no row; the table has rows 0 to 10"));
    std::fs::write(&path, "first").unwrap();
    assert!(split(path.to_str().unwrap(), 0).is_err());
    assert!(split("no/such/file", 0).unwrap_err().contains("no/such/file"));
}
