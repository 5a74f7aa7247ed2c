//! Properties over random bytes, records and splits.

use proptest::prelude::*;
use std::path::Path;
use tilewright_core::expr::Value;
use tilewright_core::measurement::{Failure, FailureKind, Measurement};
use tilewright_core::space::Config;
use tilewright_datasets::{Dataset, Record, SplitSpec};

const TABLE: &[u8] = include_bytes!("data/blur.csv");
const SIDECAR: &[u8] = include_bytes!("data/blur.schema.json");

/// Everything that a reader of untrusted files may call.
fn use_all(table: &[u8], sidecar: &[u8]) {
    if let Ok(d) = Dataset::parse(table, sidecar, Path::new("x.csv")) {
        let _ = (d.describe(), d.training_set(), d.to_csv(), d.to_sidecar());
        for row in 0..d.len() {
            let _ = (d.outcome(row), d.input(row), d.config(row), d.device(row), d.variant(row));
        }
        if let Ok(kernel) = tilewright_datasets::RecordedKernel::new(d.into()) {
            let _ = kernel.problems();
        }
    }
}

/// A file with some bytes replaced, removed or doubled.
fn damaged(file: &'static [u8]) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec((0..file.len(), any::<u8>(), 0u8..3), 1..6).prop_map(move |edits| {
        let mut bytes = file.to_vec();
        for (at, byte, how) in edits {
            let at = at % bytes.len().max(1);
            match how {
                0 if !bytes.is_empty() => bytes[at] = byte,
                1 => drop(bytes.drain(at..bytes.len().min(at + usize::from(byte)))),
                _ => bytes.insert(at, b",\n\"0-x}"[usize::from(byte) % 7]),
            }
        }
        bytes
    })
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::Int),
        any::<bool>().prop_map(Value::Bool),
        (-1e6f64..1e6).prop_map(Value::Float),
        "[a-z,\"' ]{0,6}".prop_map(Value::Str),
    ]
}

fn record() -> impl Strategy<Value = Record> {
    let words = |names: &'static [&'static str]| {
        let names = prop::sample::subsequence(names.to_vec(), 0..=names.len());
        names.prop_flat_map(|names| {
            let len = names.len();
            (Just(names), prop::collection::vec(value(), len))
                .prop_map(|(n, v)| Config(n.into_iter().map(String::from).zip(v).collect()))
        })
    };
    let kinds = [FailureKind::Illegal, FailureKind::CutOff, FailureKind::Wrong, FailureKind::Launch];
    let outcome = prop_oneof![
        3 => (1e-9f64..1e3).prop_map(|t| Ok(Measurement::recorded(t))),
        1 => prop::sample::select(kinds.to_vec()).prop_map(|kind| Err(Failure { kind, message: String::new() })),
    ];
    ("[a-z]{1,3}", prop::option::of("[a-z]{1,2}"), words(&["m", "n"]), words(&["u", "pack", "k_l"]), outcome).prop_map(
        |(device, variant, input, config, outcome)| Record { device, variant, input, config, outcome, clock_s: None },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_bytes_panic(table in prop::collection::vec(any::<u8>(), 0..200), sidecar in prop::collection::vec(any::<u8>(), 0..100)) {
        use_all(&table, &sidecar);
        use_all(&table, SIDECAR);
        use_all(TABLE, &sidecar);
    }

    #[test]
    fn no_damage_panics(table in damaged(TABLE), sidecar in damaged(SIDECAR)) {
        use_all(&table, SIDECAR);
        use_all(TABLE, &sidecar);
        use_all(&table, &sidecar);
    }

    #[test]
    fn records_read_back(records in prop::collection::vec(record(), 0..20)) {
        let d = Dataset::from_records(&records).unwrap();
        let back = Dataset::parse(&d.to_csv().unwrap(), &d.to_sidecar().unwrap(), Path::new("x.csv")).unwrap();
        prop_assert_eq!(back.columns(), d.columns());
        prop_assert_eq!(back.describe(), d.describe());
        for (row, record) in records.iter().enumerate() {
            prop_assert_eq!(back.time_s(row), record.outcome.as_ref().ok().map(|m| m.time_s));
            prop_assert_eq!(back.outcome(row).map_err(|f| f.kind).is_ok(), record.outcome.is_ok());
        }
    }

    #[test]
    fn splits_divide_by_value(seed in any::<u64>(), fraction in 0.01f64..0.99, column in 0usize..4) {
        let d = Dataset::parse(TABLE, SIDECAR, Path::new("x.csv")).unwrap();
        let name = ["gpu", "border", "tile", "input"][column];
        let spec: SplitSpec = format!("{name}:{fraction}").parse().unwrap();
        let split = d.split(&spec, seed).unwrap();
        prop_assert_eq!(&split, &d.split(&spec, seed).unwrap());
        let mut all = [split.train.clone(), split.held_out.clone()].concat();
        all.sort_unstable();
        prop_assert_eq!(all, (0..d.len()).collect::<Vec<_>>());
        prop_assert!(!split.train.is_empty() && !split.held_out.is_empty());
        let value = |&row: &usize| match name {
            "input" => d.input(row).to_string(),
            _ => format!("{:?}", d.column(name).unwrap().get(row)),
        };
        let held: std::collections::BTreeSet<String> = split.held_out.iter().map(value).collect();
        prop_assert!(split.train.iter().all(|row| !held.contains(&value(row))));
    }

    #[test]
    fn split_texts_never_panic(text in "\\PC{0,20}") {
        if let Ok(spec) = text.parse::<SplitSpec>() {
            let d = Dataset::parse(TABLE, SIDECAR, Path::new("x.csv")).unwrap();
            let _ = d.split(&spec, 0);
        }
    }
}
